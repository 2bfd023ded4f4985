// The form, the address and the answer on the page; texts are put in as text alone.

const $ = (id) => document.getElementById(id);
const form = $("question");
const LOADS = ["users", "concurrent_requests", "requests_per_second"];
const CHOICES = ["weight_dtype", "purchase", "region", "kv_cache_dtype"];
const NUMBERS = Object.keys(FACTS.inputs);
const COUNTED = ["users", "concurrent_requests", "input_tokens", "output_tokens"]; // which show thousands with commas
const OFF = ["tpot_ms", "ttft_ms"]; // which may be off
const OPTIONAL = [...OFF, "context_tokens", "history_hit_fraction"]; // which follow where they are empty
const PLACES = [
  "month",
  "a_month",
  "certainty",
  "rent",
  "year",
  "quality",
  "weights_of",
  "longest",
  "spare",
  "fastest",
  "take_target",
  "scale",
  "load_words",
  "sure",
  "least_sure",
  "margin",
  "wait",
  "memory_words",
  "hardware",
];
const USUAL = {
  model: "",
  load: "users",
  users: "640",
  requests_per_user_per_day: String(FACTS.asks),
  concurrent_requests: "32",
  requests_per_second: "1",
  input_tokens: count(FACTS.usual.input_tokens),
  output_tokens: count(FACTS.usual.output_tokens),
  weight_dtype: "recommended",
  purchase: ON_DEMAND,
  region: "",
  kv_cache_dtype: "auto",
  confidence: String(FACTS.confidence),
  tpot_ms: "",
  ttft_ms: "",
  context_tokens: "",
  history_hit_fraction: "",
  compare: "",
  providers: [],
};
const OPENED = FACTS.opened ? Object.entries(FACTS.opened) : [["model", FACTS.first]]; // where the address says nothing

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function fill(select, options) {
  select.replaceChildren(...options.map(([value, text]) => element("option", text, { value })));
}

function setUp() {
  modelField($("model"), $("model_list"), changed);
  modelField($("compare_model"), $("compare_list"), weightsNext);
  fill(form.elements.weight_dtype, [
    ["recommended", "recommended"],
    ["published", "as published"],
    ...FACTS.precisions.map((dtype) => [dtype, dtype.toUpperCase()]),
  ]);
  fill(form.elements.kv_cache_dtype, [
    ["auto", "the model's own"],
    ...FACTS.precisions.map((dtype) => [dtype, dtype.toUpperCase()]),
  ]);
  fill(
    form.elements.purchase,
    Object.entries(FACTS.purchases).map(([id, { words }]) => [id, words]),
  );
  fill(
    form.elements.region,
    Object.keys(MARKET.regions).filter((area) => !FACTS.same_areas[area]).map((area) => [area, area ? say("area", { area: areaWords(area), is_default: Number(area === FACTS.default_area) }) : "US (default)"]),
  );
  for (const { id, name, input_tokens, output_tokens, asks } of FACTS.workloads) {
    const button = element("button", name, { type: "button", "data-workload": id });
    const pages = Math.round((input_tokens + output_tokens) / FACTS.judged.tokens_per_page);
    if (pages) button.append(element("small", say("pages", { pages })));
    button.addEventListener("click", () => {
      form.elements.input_tokens.value = count(input_tokens);
      form.elements.output_tokens.value = count(output_tokens);
      if (asks) form.elements.requests_per_user_per_day.value = String(asks);
      changed();
    });
    $("workloads").append(button);
  }
  $("known_asks").textContent = say("known_asks", {});
  $("a_page").textContent = say("a_page", { tokens: String(FACTS.judged.tokens_per_page) });
  for (const [id, name] of Object.entries(MARKET.providers)) {
    const label = element("label"),
      box = element("input", "", { type: "checkbox", name: "provider", value: id });
    label.append(box, name);
    $("providers").append(label);
  }
  fill($("compare_weights"), [...form.elements.weight_dtype.options].map(({ value, textContent }) => [value, textContent]));
  fill($("derived"), DERIVED_ROOTS.map((name) => [name, EXPLAINED[name][0]]));
}

// A row of a table under these heads, which stand before its cells where the screen is narrow.
function rowOf([first, ...cells], [, ...heads]) {
  const row = element("tr");
  row.append(element("th", first, { scope: "row" }), ...cells.map((text, i) => element("td", text, { "data-head": heads[i] })));
  return row;
}
function headOf(heads) {
  const row = element("tr");
  row.append(...heads.map((text) => element("th", text, { scope: "col" })));
  return row;
}
const itemsOf = (texts) => texts.map((text) => element("li", text));

// What the form holds, as texts by the names of `recommend`.
function formTexts() {
  const texts = Object.fromEntries(
    Object.keys(USUAL).map((name) => [name, String(form.elements[name]?.value ?? "").trim()]),
  );
  texts.providers = [...form.querySelectorAll("[name=provider]:checked")].map((box) => box.value);
  return texts;
}

function putTexts(texts) {
  for (const [name, value] of Object.entries(texts)) {
    if (name === "providers") {
      for (const box of form.querySelectorAll("[name=provider]")) box.checked = value.includes(box.value);
    } else form.elements[name].value = value;
  }
}

const PARTED = /^[1-9][0-9]{0,2}(\.[0-9]{3})+$/; // 1.000, which is 1 to some readers and 1000 to others
const NUMBER = /^([0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+\.?[0-9]*|\.[0-9]+)([km%]?)$/;

// The number of a text: 16k tokens are 16,384, 200k people 200,000; a share is 0.9, 90% or 90. NaN for what is none.
function numberOf(name, text) {
  const match = NUMBER.exec(text.toLowerCase()),
    { is_share } = FACTS.inputs[name];
  if (!match || (match[2] && (match[2] === "%") !== Boolean(is_share))) return NaN;
  const number = Number(plain(match[1]));
  if (is_share) return match[2] === "%" || number > 1 ? number / 100 : number;
  const base = name.endsWith("_tokens") ? 1024 : 1000;
  return number * { "": 1, k: base, m: base ** 2 }[match[2]];
}

// Whether a number is one that an input may be.
function isWithin(name, number) {
  const { low, high, is_whole } = FACTS.inputs[name],
    isAbove = number > 0 || (low === 0 && name.endsWith("_fraction"));
  return number >= low && number <= high && isAbove && !(is_whole && number % 1);
}

// The question of texts. Throws QuestionError with all that is none of it.
function questionOf(texts) {
  const question = { model: texts.model },
    wrong = new Problems();
  wrong.attempt(() => modelOf(texts.model));
  const names = [texts.load, "requests_per_user_per_day", "input_tokens", "output_tokens", "confidence", ...OPTIONAL];
  for (const name of names) {
    const text = texts[name];
    if (OPTIONAL.includes(name) && text === "") continue;
    const { low, high, is_whole, is_share, words } = FACTS.inputs[name];
    const isOff = OFF.includes(name) && text.toLowerCase() === "off";
    const number = isOff ? 0 : numberOf(name, text);
    const isUnsure = is_whole && PARTED.test(text);
    const isRight = isOff || (!isUnsure && isWithin(name, number));
    const kind = isUnsure ? text.replaceAll(".", "") : is_share ? say("a_share", { low, high }) : words;
    const label = labelOf(form.elements[name]);
    if (!isRight) wrong.attempt(() => refuse("wrong", { label, value: inQuotes(text), kind }, name));
    question[name] = number;
  }
  wrong.throwAll();
  for (const name of CHOICES) question[name] = texts[name];
  return { ...question, providers: texts.providers };
}

const plain = (text) => text.replaceAll(",", "");
const labelOf = (field) => field.labels[0].firstChild.textContent.trim().replace(/:$/, "");

// The address ---------------------------------------------------------------------------------------------------------

// Names of inputs as the form has them, where they are spelled otherwise.
const SPOKEN = new Map([["people", "users"], ["context", "context_tokens"]]);
const KEYS = Object.keys(USUAL).filter((name) => name !== "load");

// The values that the form lets one choose; null of an input that is typed.
function valuesOf(name) {
  if (name === "providers") return Object.keys(MARKET.providers);
  return CHOICES.includes(name) ? [...form.elements[name].options].map(({ value }) => value) : null;
}

// The texts of an address, and what it may not have; what it does not have is as usual.
function addressTexts(hash) {
  const given = [...new URLSearchParams(hash.replace(/^#/, ""))],
    texts = { ...USUAL },
    names = new Set(),
    wrong = new Problems();
  for (const [key, value] of given.length ? given : OPENED) {
    const name = SPOKEN.get(key) ?? key,
      known = valuesOf(name);
    if (!KEYS.includes(name)) {
      wrong.attempt(() => refuse("unknown", { name: inQuotes(name), near: nearestTo(name, [...KEYS, ...SPOKEN.keys()]), names: KEYS.join(", ") }));
      continue;
    }
    if (names.has(name)) wrong.attempt(() => refuse("twice", { name }));
    names.add(name);
    if (LOADS.includes(name)) texts.load = name;
    const isArea = name === "region" && Object.hasOwn(FACTS.same_areas, value),
      values = name === "providers" ? value.split(",").filter(Boolean) : [isArea ? FACTS.same_areas[value] : value],
      strange = known ? values.filter((one) => !known.includes(one)) : [];
    if (!strange.length) texts[name] = name === "providers" ? values : known ? values[0] : value;
    for (const one of strange) wrong.attempt(() => refuse("wrong", { label: name, value: inQuotes(one), kind: `one of ${known.filter(Boolean).join(", ")}`, near: nearestTo(one, known) }));
  }
  const loads = LOADS.filter((name) => names.has(name));
  if (loads.length > 1) wrong.attempt(() => refuse("together", { given: loads.join(" and ") }));
  wrong.attempt(() => Object.assign(texts, lengthsOf(texts, names)));
  return { texts, wrong };
}

const inQuotes = (text) => `"${text.slice(0, 60)}"`;

// Prompt, answer and context where an address has not all of them: what follows from the others, as in `recommend`.
function lengthsOf(texts, names) {
  const [context, prompt, answered] = ["context_tokens", "input_tokens", "output_tokens"].map((name) => (names.has(name) ? numberOf(name, texts[name]) : null)),
    { usual } = FACTS,
    whole = context ?? usual.input_tokens + usual.output_tokens;
  if (whole !== whole || prompt !== prompt || answered !== answered) return {}; // no number, as the field says
  if (prompt !== null && answered !== null) return {};
  const output = answered ?? (prompt === null ? Math.min(usual.output_tokens, Math.floor(whole / 2)) : whole - prompt),
    input = prompt ?? whole - output;
  if (Math.min(input, output) < 0) refuse("short", { context: count(whole), both: count(prompt ?? answered), is_usual: Number(context === null) });
  return { input_tokens: String(input), output_tokens: String(output), context_tokens: "" };
}

// How many characters two words share in the same order, by the longest part that both have, and so on beside it.
function sharedBy(word, other) {
  let [most, from, to] = [0, 0, 0];
  for (let i = 0; i < word.length; i++)
    for (let k = 0; k < other.length; k++) {
      let n = 0;
      while (i + n < word.length && word[i + n] === other[k + n]) n++;
      if (n > most) [most, from, to] = [n, i, k];
    }
  return most && most + sharedBy(word.slice(0, from), other.slice(0, to)) + sharedBy(word.slice(from + most), other.slice(to + most));
}

const LEAST_LIKE = 0.6; // of what two words share, to be taken for each other

// What a word stands for, where other tools call it so, or the nearest of those allowed; "" where none is near: as
// `did_you_mean` of Python.
function nearestTo(text, allowed) {
  const word = text.slice(0, 60).toLowerCase(),
    meant = Object.hasOwn(FACTS.elsewhere, word) ? FACTS.elsewhere[word] : "";
  if (meant && allowed.includes(meant)) return meant;
  const likes = allowed.map((one) => [(2 * sharedBy(one.toLowerCase(), word)) / (one.length + word.length), one]);
  const [like, near] = likes.sort(([one, name], [other, second]) => other - one || (name < second ? 1 : -1))[0];
  return like >= LEAST_LIKE ? near : "";
}

// A text as the address has it: numbers without commas, a share as `recommend` reads it.
function addressText(name, text) {
  if (!Object.hasOwn(FACTS.inputs, name)) return String(text);
  return FACTS.inputs[name].is_share && text !== "" ? String(numberOf(name, text)) : plain(text);
}

// The part of the address that says what is asked and is not as usual.
function addressOf(texts) {
  const said = new URLSearchParams();
  for (const name of Object.keys(USUAL)) {
    const text = addressText(name, texts[name]);
    const isAlways = ["model", "input_tokens", "output_tokens", texts.load].includes(name);
    const isOther = !LOADS.includes(name) && text !== addressText(name, USUAL[name]);
    if (name !== "load" && (isAlways || isOther)) said.set(name, text);
  }
  return `#${said.toString().replaceAll("%2C", ",").replaceAll("%3A", ":")}`;
}

const quoted = (text) => (/^[\w.,:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const commandOf = (address) =>
  [
    "sheetgen recommend",
    ...[...[...new URLSearchParams(address.slice(1))].filter(([name]) => name !== "compare"), ...Object.entries(FACTS.command ?? {})].map(
      ([name, value]) => `--${name.replaceAll("_", "-")} ${quoted(value)}`,
    ),
  ].join(" ");

// The answer ----------------------------------------------------------------------------------------------------------

let later = 0; // the task that works out the rest of an answer
let shown = null; // the last valid answer, its words, and the texts that asked for it

function show(words) {
  for (const place of PLACES) $(place).textContent = words[place] ?? "";
  $("figure").classList.toggle("none", !words.rent);
  $("rest").hidden = !words.rent;
  for (const button of document.querySelectorAll(".beneath .how")) button.hidden = !words.rent;
  $("take_target").hidden = !words.take_target;
  if (!words.rent) return;
  $("chance").style.width = `${100 * words.chance}%`;
  document.querySelector(".meter b").style.left = `${100 * words.asked}%`;
  $("memory").replaceChildren(...words.memory.map(({ part, words: text }) => element("li", text, { class: part })));
  for (const { part, share } of words.memory)
    document.querySelector(`.bar .${part}`).style.width = `${100 * Math.min(1, share)}%`;
}

// Beside each field that is wrong its message; nothing is wrong without one.
function showProblems(problems = []) {
  for (const place of form.querySelectorAll(".problem")) place.remove();
  for (const other of form.querySelectorAll("[aria-invalid=true]")) other.setAttribute("aria-invalid", "false");
  for (const other of form.querySelectorAll("[aria-describedby^=problem_]")) other.removeAttribute("aria-describedby");
  for (const { message, of } of problems) {
    const field = form.elements[of],
      place = element("span", message, { class: "alarm problem", id: `problem_${of}` });
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", place.id);
    field.after(place);
    if (field.closest("details")) field.closest("details").open = true;
  }
}

// What is copied, loaded and printed is of what is asked: nothing where that is no question.
function letTake(isValid) {
  for (const id of ["copy", "copy_start", "copy_markdown", "csv", "print"]) $(id).disabled = !isValid;
  $("taken").textContent = isValid ? "" : say("nothing_taken", {});
}

// What is asked is no question: the last valid answer stays, in grey; where there is none, there is the message alone.
// Beside a field stands what is wrong with it; the message names the field, and says what is of no field.
function refused({ problems }) {
  const ofFields = problems.filter(({ of }) => of && form.elements[of]);
  showProblems(ofFields);
  $("message").textContent = [
    say(shown ? "stale" : "unanswered", {}),
    ...new Set(problems.filter((problem) => !ofFields.includes(problem)).map(({ message }) => message)),
    ofFields.length ? say("see_fields", { fields: ofFields.map(({ of }) => labelOf(form.elements[of])).join("; ") }) : "",
  ].filter(Boolean).join("\n");
  for (const part of document.querySelectorAll(".answer, .beneath, .rest")) part.classList.toggle("stale", shown !== null);
  letTake(false);
  if (!shown) show({});
  document.documentElement.dataset.complete = "refused";
}

const WAY_HEADS = ["Way", "A month", "Answers and certainty", "Commits to", "Gives up"];

// The rows of the ways to pay less, the cheapest first, and why others are none.
function showWays(record) {
  const rows = record.chosen ? rowsOfWays(record, waysToPayLess(record)) : [];
  $("ways_heads").replaceChildren(headOf(WAY_HEADS));
  $("ways").replaceChildren(
    ...rows.map((way) => {
      const { what, gives_up } = wayWords(way, record),
        row = rowOf([what, dollars(way.monthly_usd), keepsWords(way, record), commitsWords(way, record), gives_up], WAY_HEADS);
      row.dataset.way = way.kind;
      if (way.instance) row.firstChild.append(element("small", `${rentWords(way)}, ${providerOf(way.instance)}`));
      return row;
    }),
  );
  $("ways_table").hidden = !rows.length;
  $("cheapest_same").textContent = rows.length ? cheapestWords(record, rows) : "";
  $("no_ways").textContent = rows.length ? "" : say("no_ways", {});
  const absent = record.chosen ? absentWords(record, rows) : [];
  $("absent_words").textContent = absent.length ? say("absent_ways", {}) : "";
  $("absent_ways").replaceChildren(...itemsOf(absent));
  return rows;
}

// What the form says of these texts beside its fields.
function dressForm(texts) {
  for (const label of form.querySelectorAll("[data-load]")) label.hidden = label.dataset.load !== texts.load;
  const ofProviders = texts.providers.length ? texts.providers : FACTS.default_providers;
  $("providers_words").textContent = ofProviders.map((id) => MARKET.providers[id] ?? id).join(", ");
  for (const button of $("workloads").children) {
    const { input_tokens, output_tokens } = FACTS.workloads.find(({ id }) => id === button.dataset.workload);
    const isChosen =
      plain(texts.input_tokens) === String(input_tokens) && plain(texts.output_tokens) === String(output_tokens);
    button.setAttribute("aria-pressed", String(isChosen));
  }
  $("model_name").textContent = modelCalled(texts.model)?.name ?? "";
}

function answerTexts(texts) {
  dressForm(texts);
  try {
    const start = performance.now(),
      record = answer(questionOf(texts)),
      words = answerWords(record);
    clearTimeout(later);
    showProblems();
    $("message").textContent = "";
    for (const part of document.querySelectorAll(".stale")) part.classList.remove("stale");
    letTake(true);
    show(words);
    const address = addressOf(texts);
    $("command").replaceChildren(...unbrokenOptions(commandOf(address)));
    document.documentElement.dataset.answered = String(performance.now() - start);
    shown = { record, words, texts, ways: [], compared: [], others: [] };
    later = setTimeout(() => {
      const begun = performance.now();
      shown.ways = showWays(record);
      for (const [place, text] of Object.entries(laterWords(record))) $(place).textContent = text;
      document.documentElement.dataset.ways = String(performance.now() - begun);
      later = setTimeout(() => {
        if (record.chosen) showBeside(shown);
        document.documentElement.dataset.complete = String(performance.now() - start);
      });
    });
    return address;
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error;
    refused(error);
    return null;
  }
}

function changed() {
  const address = answerTexts(formTexts());
  if (address) history.replaceState(null, "", address);
}

// The texts of an address as a reader types them: thousands with commas, shares as percentages.
function asTyped(texts) {
  const typed = Object.entries(texts).map(([name, text]) => {
    if (FACTS.inputs[name]?.is_share && isWithin(name, numberOf(name, text))) return [name, `${Number((100 * numberOf(name, text)).toPrecision(12))}%`];
    return [name, COUNTED.includes(name) && /^[0-9]{4,9}$/.test(text) ? count(Number(text)) : text];
  });
  return Object.fromEntries(typed);
}

function readAddress() {
  clearTimeout(later);
  shown = null;
  const { texts, wrong } = addressTexts(location.hash);
  putTexts(asTyped({ ...texts, model: texts.model || FACTS.first }));
  const typed = formTexts();
  if (!wrong.errors.length) return answerTexts(typed);
  dressForm(typed);
  wrong.attempt(() => questionOf(typed));
  refused({ problems: wrong.errors });
}

// A field that finds a model by any parts of its names ---------------------------------------------------------------

const MOST_LISTED = 60;
const PRESS = 200; // milliseconds

// The model that a text means: the one called so, or the only one whose names have its parts; null where several have.
function oneModel(text) {
  const [model, ...others] = partsOf(text).length ? modelsWith(text) : [];
  return modelCalled(text) ?? (others.length ? null : (model ?? null));
}

// The list below a field, of which one is tapped, or taken by Enter where the arrows are on it. What is typed is taken
// where it means one model; else the list stays for the reader to choose.
function modelField(field, list, taken) {
  let active = -1;
  const options = () => [...list.children];
  const found = () => modelsWith(field.value).slice(0, MOST_LISTED);
  function close() {
    list.hidden = true;
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }
  function open(models) {
    list.replaceChildren(
      ...models.map((model, i) => {
        const option = element("li", model.name, { role: "option", id: `${list.id}_${i}`, "data-model": model.id, "aria-selected": "false" });
        option.append(element("small", model.id));
        return option;
      }),
    );
    active = -1;
    list.hidden = !models.length;
    field.setAttribute("aria-expanded", String(models.length > 0));
    field.removeAttribute("aria-activedescendant");
  }
  function moveTo(place) {
    active = (place + list.children.length) % list.children.length;
    options().forEach((option, i) => option.setAttribute("aria-selected", String(i === active)));
    field.setAttribute("aria-activedescendant", options()[active].id);
    options()[active].scrollIntoView({ block: "nearest" });
  }
  function take(id) {
    field.value = id;
    close();
  }
  function takeTyped() {
    const model = oneModel(field.value);
    if (model && model !== modelCalled(field.value)) field.value = model.id;
    return model !== null;
  }
  field.addEventListener("input", (event) => {
    event.stopPropagation(); // what is half typed is no question yet
    open(found());
    if (modelCalled(field.value) && field.form) answerSoon();
  });
  field.addEventListener("click", () => {
    field.select();
    open(modelCalled(field.value) ? FACTS.models : found());
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") close();
    if (step) {
      event.preventDefault();
      if (list.hidden) open(found());
      if (list.children.length) moveTo(active < 0 && step < 0 ? -1 : active + step);
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (!list.hidden && active >= 0) take(options()[active].dataset.model);
    else if (takeTyped()) close();
    else open(found());
    taken();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    take(option.dataset.model);
    if (field.form) taken();
  });
  // The list stays while a press lasts: what is below it would move away under the finger.
  field.addEventListener("blur", () => {
    takeTyped();
    setTimeout(() => document.activeElement !== field && close(), PRESS);
    if (field.form) changed();
  });
}

let typing = 0;
function answerSoon() {
  clearTimeout(typing);
  typing = setTimeout(changed, 150);
}
form.addEventListener("input", answerSoon);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  changed();
});
addEventListener("hashchange", () => {
  tellCompared(""); // what was typed for another question
  readAddress();
});
document.addEventListener("DOMContentLoaded", () => {
  setUp();
  readAddress();
});
