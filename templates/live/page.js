// The form, the address and the answer on the page; texts are put in as text alone.

const $ = (id) => document.getElementById(id);
const form = $("question");
const LOADS = ["users", "concurrent_requests", "requests_per_second"];
const CHOICES = ["weight_dtype", "purchase", "region", "kv_cache_dtype"];
const NUMBERS = Object.keys(FACTS.inputs);
const OFF = ["tpot_ms", "ttft_ms"]; // which may be off
const OPTIONAL = [...OFF, "context_tokens", "history_hit_fraction"]; // which follow where they are empty
const PLACES = [
  "month",
  "a_month",
  "rent",
  "year",
  "load_words",
  "sure",
  "measure",
  "margin",
  "wait",
  "memory_words",
  "hardware",
  "message",
];
const first = FACTS.workloads.find(({ id }) => id === "rag") ?? FACTS.workloads[0];
const USUAL = {
  model: "",
  load: "users",
  users: "640",
  requests_per_user_per_day: String(FACTS.asks),
  concurrent_requests: "32",
  requests_per_second: "1",
  input_tokens: count(first.input_tokens),
  output_tokens: count(first.output_tokens),
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
  $("models").replaceChildren(
    ...FACTS.models.map((model) => element("option", [model.name, ...model.names].join(", "), { value: model.id })),
  );
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
    Object.keys(MARKET.regions).map((area) => [area, area || "US (default)"]),
  );
  for (const { id, name, input_tokens, output_tokens, asks } of FACTS.workloads) {
    const button = element("button", name, { type: "button", "data-workload": id });
    button.addEventListener("click", () => {
      form.elements.input_tokens.value = count(input_tokens);
      form.elements.output_tokens.value = count(output_tokens);
      if (asks) form.elements.requests_per_user_per_day.value = String(asks);
      changed();
    });
    $("workloads").append(button);
  }
  for (const [id, name] of Object.entries(MARKET.providers)) {
    const label = element("label"),
      box = element("input", "", { type: "checkbox", name: "provider", value: id });
    label.append(box, name);
    $("providers").append(label);
  }
  fill($("compare_weights"), [...form.elements.weight_dtype.options].map(({ value, textContent }) => [value, textContent]));
  fill($("derived"), DERIVED_ROOTS.map((name) => [name, EXPLAINED[name][0]]));
  $("deaths").replaceChildren(...FACTS.deaths.map((cells) => rowOf(cells)));
  $("about").textContent = aboutWords();
}

function rowOf([head, ...cells], scope = "row") {
  const row = element("tr"),
    name = scope === "col" ? "th" : "td";
  row.append(element("th", head, { scope }), ...cells.map((text) => element(name, text, scope === "col" ? { scope } : {})));
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

// The question of texts. Throws QuestionError for what is none.
function questionOf(texts) {
  const question = { model: texts.model };
  const names = [texts.load, "requests_per_user_per_day", "input_tokens", "output_tokens", "confidence", ...OPTIONAL];
  for (const name of names) {
    const text = texts[name].toLowerCase(),
      field = form.elements[name];
    if (OPTIONAL.includes(name) && text === "") continue;
    const { low, high, is_whole, words } = FACTS.inputs[name];
    const match = /^([0-9][0-9,]*\.?[0-9]*|\.[0-9]+)([km]?)$/.exec(text),
      isTokens = name.endsWith("_tokens");
    const scale = { "": 1, k: isTokens ? 1024 : 1000, m: isTokens ? 1024 ** 2 : 1000 ** 2 }[match?.[2] ?? ""];
    const isOff = OFF.includes(name) && text === "off";
    const number = isOff ? 0 : match ? Number(plain(match[1])) * scale : NaN;
    const isAbove = number > 0 || (low === 0 && name.endsWith("_fraction"));
    const isRight = isOff || (number >= low && number <= high && isAbove && !(is_whole && number % 1));
    field.setAttribute("aria-invalid", String(!isRight));
    if (!isRight) refuse("wrong", { label: labelOf(field), value: `"${texts[name].slice(0, 60)}"`, kind: words });
    question[name] = number;
  }
  for (const name of CHOICES) question[name] = texts[name];
  return { ...question, providers: texts.providers };
}

const plain = (text) => text.replaceAll(",", "");
const labelOf = (field) => field.closest("label").firstChild.textContent.trim();

// The address ---------------------------------------------------------------------------------------------------------

// The texts of an address; what it does not have is as usual. Throws QuestionError for what it may not have.
function addressTexts(hash) {
  const given = [...new URLSearchParams(hash.replace(/^#/, ""))],
    texts = { ...USUAL };
  for (const [name, value] of given.length ? given : OPENED) {
    if (name === "load" || !Object.hasOwn(USUAL, name)) refuse("unknown", { name: `"${name.slice(0, 60)}"` });
    texts[name] = name === "providers" ? value.split(",").filter(Boolean) : value;
    if (LOADS.includes(name)) texts.load = name;
    const known = CHOICES.includes(name)
      ? [...form.elements[name].options].map((option) => option.value)
      : Object.keys(MARKET.providers);
    const isKnown = CHOICES.includes(name)
      ? known.includes(value)
      : name !== "providers" || texts.providers.every((one) => known.includes(one));
    if (!isKnown)
      refuse("wrong", {
        label: name,
        value: `"${value.slice(0, 60)}"`,
        kind: `one of ${known.filter(Boolean).join(", ")}`,
      });
  }
  return texts;
}

// The part of the address that says what is asked and is not as usual.
function addressOf(texts) {
  const said = new URLSearchParams();
  const isSaid = (name) =>
    ["model", "input_tokens", "output_tokens", texts.load].includes(name) ||
    (!LOADS.includes(name) && String(texts[name]) !== String(USUAL[name]));
  for (const name of Object.keys(USUAL)) {
    const text = String(texts[name]);
    if (name !== "load" && isSaid(name)) said.set(name, Object.hasOwn(FACTS.inputs, name) ? plain(text) : text);
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
let shown = null; // the answer that stands there, and its words

function show(words) {
  for (const place of PLACES) $(place).textContent = words[place] ?? "";
  $("figure").classList.toggle("none", !words.rent);
  $("rest").hidden = !words.rent;
  for (const button of document.querySelectorAll(".answer .how")) button.hidden = !words.rent;
  if (!words.rent) return;
  $("chance").style.width = `${100 * words.chance}%`;
  $("memory").replaceChildren(...words.memory.map(({ part, words: text }) => element("li", text, { class: part })));
  for (const { part, share } of words.memory)
    document.querySelector(`.bar .${part}`).style.width = `${100 * Math.min(1, share)}%`;
}

function showWays(record) {
  const ways = record.chosen ? waysToPayLess(record) : [];
  $("ways").replaceChildren(
    ...ways.map((way) => {
      const { what, gives_up } = wayWords(way, record),
        row = element("tr"),
        head = element("th", what, { scope: "row" });
      const rented = way.instance ? `${rentWords(way)}, ${providerOf(way.instance)}; ` : "";
      head.append(element("small", `${rented}gives up ${gives_up}`));
      row.append(head, element("td", dollars(way.monthly_usd)));
      return row;
    }),
  );
  $("no_ways").textContent = ways.length ? "" : say("no_ways", {});
  const published = publishedWords(asPublished(record), record.question.model);
  $("published").textContent = published;
  $("published_part").hidden = !published;
  return ways;
}

function answerTexts(texts) {
  clearTimeout(later);
  for (const label of form.querySelectorAll(".of_load")) label.hidden = label.dataset.load !== texts.load;
  const ofProviders = texts.providers.length ? texts.providers : FACTS.default_providers;
  $("providers_words").textContent = ofProviders.map((id) => MARKET.providers[id] ?? id).join(", ");
  for (const button of $("workloads").children) {
    const { input_tokens, output_tokens } = FACTS.workloads.find(({ id }) => id === button.dataset.workload);
    const isChosen =
      plain(texts.input_tokens) === String(input_tokens) && plain(texts.output_tokens) === String(output_tokens);
    button.setAttribute("aria-pressed", String(isChosen));
  }
  try {
    const start = performance.now(),
      question = questionOf(texts);
    form.elements.model.setAttribute("aria-invalid", "true");
    $("model_name").textContent = "";
    $("model_name").textContent = modelOf(question.model).name;
    form.elements.model.setAttribute("aria-invalid", "false");
    const record = answer(question),
      words = answerWords(record);
    show(words);
    const address = addressOf(texts);
    $("command").value = commandOf(address);
    document.documentElement.dataset.answered = String(performance.now() - start);
    shown = { record, words, texts, ways: [] };
    later = setTimeout(() => {
      const begun = performance.now();
      shown.ways = showWays(record);
      document.documentElement.dataset.ways = String(performance.now() - begun);
      later = setTimeout(() => {
        if (record.chosen) showBeside(shown);
        document.documentElement.dataset.complete = String(performance.now() - start);
      });
    });
    return address;
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error;
    show({ message: error.message });
    document.documentElement.dataset.complete = "refused";
    return null;
  }
}

function changed() {
  const address = answerTexts(formTexts());
  if (address) history.replaceState(null, "", address);
}

function readAddress() {
  try {
    const texts = addressTexts(location.hash);
    for (const name of ["users", "concurrent_requests", "input_tokens", "output_tokens"])
      if (/^[0-9]{4,9}$/.test(texts[name])) texts[name] = count(Number(texts[name]));
    putTexts(texts);
    if (!texts.model) form.elements.model.value = FACTS.first;
    answerTexts(formTexts());
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error;
    putTexts({ ...USUAL, model: FACTS.first });
    answerTexts(formTexts());
    show({ message: error.message });
    clearTimeout(later);
    document.documentElement.dataset.complete = "refused";
  }
}

let typing = 0;
form.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(changed, 150);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  changed();
});
addEventListener("hashchange", readAddress);
document.addEventListener("DOMContentLoaded", () => {
  setUp();
  readAddress();
});
