// What stands beside an answer: the steps of cost, other models, what engineers need, and the request that is printed.

// The same question with twice or half of one thing, each to be asked by its button.
function showOthers(now) {
  now.others = otherAnswers(now.record).map((other) => ({ ...other, link: linkOf(textsWith(now.texts, other.changes)) }));
  $("certainty").textContent = certaintyWords(now.record, { usual: heldOf(now.record)[ON_DEMAND], others: now.others });
  $("others_head").replaceChildren(headOf([...OTHER_HEADS, "Ask"]));
  $("others").replaceChildren(
    ...now.others.map((other) => {
      const cells = askedOtherwise(now.record, other),
        row = rowOf(cells, OTHER_HEADS),
        last = element("td"),
        button = element("button", say("ask_this", {}), { type: "button", "aria-label": `${say("ask_this", {})}: ${cells[0]}` });
      button.addEventListener("click", () => {
        putTexts(asTyped(textsWith(now.texts, other.changes)));
        history.pushState(null, "", location.href); // so that Back leads to this answer
        changed();
      });
      if (!other.message) last.append(button);
      row.append(last);
      return row;
    }),
  );
}

// The texts of a question with these changes.
function textsWith(asked, changes) {
  const texts = { ...asked };
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    texts[name] = addressText(name, String(value));
    if (LOADS.includes(name)) texts.load = name;
  }
  return texts;
}

// The curve is drawn anew where its width is another, so that its texts keep their size.
let drawCurve = () => {};
let drawnWidth = 0;
new ResizeObserver(() => {
  if ($("curve").clientWidth && $("curve").clientWidth !== drawnWidth) drawCurve();
}).observe($("curve"));

const SVG = "http://www.w3.org/2000/svg";
function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function showSteps(record) {
  const { amount, points, upTo, next } = stepsOf(record),
    kind = loadName(record.question),
    unit = UNITS[kind];
  const amountText = (x) => amountWords(kind, x);
  $("steps_words").textContent = say("steps", {
    month: dollars(record.monthly_usd),
    confidence: record.is_even ? FACTS.levels.even : record.question.confidence,
    up_to: upTo === null ? "" : upToWords(kind, upTo),
    most: amountText(points.at(-1).amount),
    unit: unitOf(kind, upTo ?? points.at(-1).amount),
    next: next ? dollars(next.monthly_usd) : "",
  });
  const begins = next
    ? say("next_step", { rent: placeWords(next), sure: sureWords(next.chance), amount: fromWords(kind, next.amount), unit: unitOf(kind, next.amount) })
    : "";
  $("next_step").textContent = [begins, nearTieWords(record)].filter(Boolean).join(" ");
  const draw = () => $("curve").replaceChildren(curveOf(record.monthly_usd, amount, points, unit, amountText));
  draw();
  drawCurve = draw;
  if ($("steps_list").open) showStepList(record);
}

// Every step up to four times the load.
function showStepList(record) {
  const kind = loadName(record.question),
    steps = everyStep(record);
  const words = steps.map(({ amount, monthly_usd, is_exact, is_point }, i) => {
    const before = steps[i - 1] ?? { amount: 0, is_exact: true },
      isNone = monthly_usd === null;
    return say(isNone ? "no_step" : is_point ? "month_at" : "step", {
      month: dollars(monthly_usd ?? 0),
      up_to: upToWords(kind, amount),
      above: upToWords(kind, before.amount),
      unit: unitOf(kind, isNone ? before.amount : amount),
      is_last: Number(i === steps.length - 1),
      is_rough: Number(!(isNone ? before : { is_exact }).is_exact),
    });
  });
  $("steps").replaceChildren(...itemsOf([...words, fallWords(steps)].filter(Boolean)));
}

const [HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [230, 60, 26, 14, 12]; // of the curve, and of what is around it
const NARROW = 500; // a curve whose last mark stands without its unit
const moneyMark = (amount) => FACTS.currency.prefix + amount.toLocaleString("en-US", { notation: "compact", maximumFractionDigits: 1 });

// The distance of rules: 1, 2 or 5 of a power of ten, so that there are at most five.
function distanceOfRules(most) {
  const power = 10 ** Math.floor(Math.log10(most / 5));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => most / step <= 5);
}

// Months by the load, a step where they change, nothing where nothing carries it; a dot where the answer is.
function curveOf(month, amount, points, unit, amountText) {
  const { rate } = FACTS.currency,
    most = points.at(-1).amount,
    width = $("curve").clientWidth; // so that a text has its size on every screen
  drawnWidth = width;
  const dearest = rate * Math.max(month, ...points.map(({ monthly_usd }) => monthly_usd ?? 0));
  const rule = distanceOfRules(dearest),
    top = Math.ceil(dearest / rule) * rule;
  const x = (of) => LEFT + (of / most) * (width - LEFT - RIGHT),
    y = (money) => HEIGHT - BOTTOM - (money / top) * (HEIGHT - BOTTOM - TOP);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": $("steps_words").textContent, class: "curve" });
  for (let money = 0; money <= top * 1.001; money += rule) {
    svg.append(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: y(money), y2: y(money), class: "rule" }));
    svg.append(drawn("text", { x: LEFT - 8, y: y(money) + 5, "text-anchor": "end" }, moneyMark(money)));
  }
  const isTight = x(most / 4) - LEFT < 8 * amountText(most / 2).length; // by the width of a digit
  for (const part of isTight ? [1, 4] : [1, 2, 4]) {
    const text = amountText((most * part) / 4) + (part === 4 && width > NARROW ? ` ${unit}` : "");
    svg.append(drawn("text", { x: x((most * part) / 4), y: HEIGHT - 6, "text-anchor": part === 4 ? "end" : "middle" }, text));
  }
  let [from, isDrawn, path] = [0, false, ""];
  for (const { amount: up, monthly_usd } of points) {
    if (monthly_usd !== null) path += `${isDrawn ? "L" : "M"}${x(from).toFixed(1)} ${y(monthly_usd * rate).toFixed(1)}H${x(up).toFixed(1)}`;
    [from, isDrawn] = [up, monthly_usd !== null];
  }
  svg.append(drawn("path", { d: path, class: "step" }));
  svg.append(drawn("circle", { cx: x(amount), cy: y(month * rate), r: 6, class: "here" }));
  return svg;
}

function showEngineers({ record, words }) {
  const told = engineerWords(record);
  for (const place of ["replicas", "start_times", "why_seqs", "start_note", "log"]) $(place).textContent = told[place];
  $("start").replaceChildren(...unbrokenOptions(told.start));
  $("start").hidden = $("copy_start").hidden = !told.start;
  $("parts_words").textContent = words.memory.map((part) => part.words).join("; ");
  $("loads_words").textContent = say("loads", { model: record.question.model.name });
  const sources = FACTS.sources.map(([text, url]) => {
    const item = element("li");
    item.append(url ? linkTo(url, text) : text);
    return item;
  });
  $("sources").replaceChildren(...itemsOf([priceWords(record), FACTS.sources_of_models[record.question.model.source]]), ...sources);
  if ($("out_of_memory").open) showDeaths(record);
  if ($("loads").open) showLoads(record);
  if ($("derivation").open) showDerived(record);
}

// A command whose lines break between its options alone; its text is the command.
function unbrokenOptions(command) {
  const options = command.split(/ (?=--)/).map((text) => element("span", text, { class: "unbroken" }));
  return options.flatMap((option, i) => (i ? [" ", option] : [option]));
}

// What can run out, and what each change buys.
function showDeaths(record) {
  const { deaths, changes } = deathsOf(record);
  $("deaths_head").replaceChildren(headOf(DEATH_HEADS));
  $("deaths").replaceChildren(...deaths.map(({ words, here, changes: names }) => rowOf([...words, here, names], DEATH_HEADS)));
  $("changes_part").hidden = !changes.length;
  $("changes_head").replaceChildren(headOf(CHANGE_HEADS));
  $("changes").replaceChildren(...changes.map(({ change, buys, holds, costs }) => rowOf([change, buys, holds, costs], CHANGE_HEADS)));
}
const DEATH_HEADS = ["It stops", "Ran out", "The log says", "In this answer", "What to change, in this order"];

// The hosts of the model, each with its price a token and where that was read.
function showHosts(record) {
  const hosts = hostsTold(record);
  $("hosted_words").textContent = hostedWords(record);
  $("hosts_table").hidden = !hosts.length;
  $("hosts_head").replaceChildren(headOf(HOST_HEADS));
  $("hosts").replaceChildren(
    ...hosts.map((host) => {
      const { source, ...cells } = hostWords(host),
        row = rowOf([...Object.values(cells), ""], HOST_HEADS);
      row.lastChild.append(linkTo(source));
      return row;
    }),
  );
}

// An address as a link that is called by its place; any other text as it is.
const linkTo = (text, name = ADDRESS.test(text) ? new URL(text).hostname : text) =>
  ADDRESS.test(text) ? element("a", name, { href: text, rel: "noreferrer" }) : name;

function showLoads(record) {
  const cell = (one) => (one ? `${dollars(one.monthly_usd)}: ${rentWords(one)}` : FACTS.verdicts.none);
  const heads = ["Load", ...FACTS.tiers.map((n) => `${count(n)} at once`)];
  $("loads_head").replaceChildren(headOf(heads));
  $("loads_body").replaceChildren(
    ...gridOfLoads(record.solved).map(({ name, context, rented }) =>
      rowOf([`${name}, ${count(context)} tokens`, ...rented.map(cell)], heads),
    ),
  );
}

// How a number came about; each that it reads is a button, which shows the same of it below.
function showDerived(record) {
  const valueOf = everyQuantity(record);
  $("derived_steps").replaceChildren(derivedStep($("derived").value, valueOf));
}

// Where the price of the answer was read.
function priceWords(record) {
  const rent = placeWords({ ...record, n_instances: 1 });
  return say("price_read", { rent, day: record.price_as_of ?? "", source: sourceOf(record.offer) });
}

// What is not worked out.
const givenWords = (name, value) =>
  name === "listed_usd_per_hour" ? `${name} = ${value}. ${priceWords(shown.record)}` : say("given", { name, value });

function derivedStep(name, valueOf) {
  const step = stepOf(name, valueOf),
    box = element("div", "", { class: "step_of" });
  if (!EXPLAINED[name]) {
    box.append(element("p", givenWords(name, step.measured)));
    return box;
  }
  box.append(element("p", `${step.label}: ${step.summary}`));
  if (name === "ttft_seconds") box.append(...partsOfTime(firstByParts(valueOf)));
  const share = valueOf(name),
    lineOf = (text) => {
      const line = element("p");
      line.append(element("code", text));
      return line;
    };
  box.append(lineOf(`= ${name.endsWith("chance") ? roundedWords(share) : step.measured}`));
  if (step.text) {
    const formula = element("details");
    formula.append(element("summary", "The formula"), lineOf(`${name} = ${step.text}`), lineOf(`= ${step.withValues}`));
    box.append(formula);
  }
  if (step.source) box.append(element("p", step.source, { class: "soft" }));
  if (name === "kv_budget_bytes_per_gpu") box.append(element("p", poolWords(shown.record)));
  const buttons = element("p", "", { class: "buttons" });
  for (const input of step.inputs) {
    const button = element("button", input.replaceAll("_", " "), { type: "button", "aria-expanded": "false" });
    let below = null;
    button.addEventListener("click", () => {
      if (below) below.remove();
      below = below ? null : derivedStep(input, valueOf);
      if (below) box.append(below);
      button.setAttribute("aria-expanded", String(Boolean(below)));
    });
    buttons.append(button);
  }
  if (step.inputs.length) box.append(buttons);
  return box;
}

// A bar of a time by its parts, and what each is known by.
function partsOfTime(parts) {
  const bar = element("div", "", { class: "bar", "aria-hidden": "true" }),
    keys = element("ul", "", { class: "keys" }),
    all = parts.reduce((sum, { seconds }) => sum + seconds, 0);
  for (const { part, seconds, basis } of parts) {
    const piece = element("i", "", { class: part });
    piece.style.width = `${(100 * seconds) / all}%`;
    bar.append(piece);
    const words = say("part_of_time", { part: FACTS.parts_of_time[part], seconds: fixed(seconds, 3), basis: FACTS.bases[basis] });
    keys.append(element("li", words, { class: part }));
  }
  return [bar, keys];
}

const MOST_COMPARED = 8;
const comparedIn = (text) => text.split(",").filter(Boolean).slice(0, MOST_COMPARED);

// The answers of other models and precisions to the same question; of one that is refused its message.
function comparedWith(texts) {
  return comparedIn(texts.compare).map((entry) => {
    const [model, weights = "recommended"] = entry.split(":");
    try {
      const known = [...form.elements.weight_dtype.options].map(({ value }) => value);
      if (!known.includes(weights)) refuse("wrong", { label: "Weights", value: inQuotes(weights), kind: `one of ${known.join(", ")}`, near: nearestTo(weights, known) });
      return { entry, model, weights, record: answer({ ...questionOf(texts), model, weight_dtype: weights }) };
    } catch (error) {
      if (!(error instanceof QuestionError)) throw error;
      return { entry, model, weights, record: null, message: error.message };
    }
  });
}

function showCompared({ record, compared, texts }) {
  const rows = [{ record }, ...compared].map((one) => {
    const row = rowOf(comparedWords(one, record), COMPARED_HEADS),
      last = element("td");
    if (one.entry) {
      const button = element("button", "Remove", { type: "button", "aria-label": `Remove ${one.model}, ${one.weights}` });
      button.addEventListener("click", () => {
        form.elements.compare.value = comparedIn(texts.compare).filter((entry) => entry !== one.entry).join(",");
        tellCompared("");
        changed();
      });
      last.append(button);
    }
    row.append(last);
    return row;
  });
  $("compared_heads").replaceChildren(headOf([...COMPARED_HEADS, "Remove"]));
  $("compared").replaceChildren(...rows);
}

// Beside the answer one more model; beside the field why not.
function addCompared() {
  const field = $("compare_model"),
    weights = $("compare_weights");
  const model = comparedModel();
  if (!model) return;
  const entries = comparedIn(form.elements.compare.value),
    own = shown && { entry: "", model: shown.record.model, weights: shown.record.weight_dtype };
  const asDeployed = (id, dtype) => (dtype === "published" ? modelOf(id).weights : dtype === "recommended" ? deployedOf(id) : dtype);
  const used = [own, ...entries.map((entry) => ({ model: entry.split(":")[0], weights: entry.split(":")[1] }))].filter(Boolean);
  const isThere = used.some((one) => modelCalled(one.model) === model && asDeployed(model.id, one.weights ?? "recommended") === asDeployed(model.id, weights.value));
  const problem = isThere
    ? say("compared_twice", { model: model.name, weights: weightsName(model, asDeployed(model.id, weights.value)) })
    : entries.length >= MOST_COMPARED
      ? say("compared_full", { most: String(MOST_COMPARED) })
      : "";
  tellCompared(problem);
  if (problem) return;
  form.elements.compare.value = [...entries, `${model.id}:${weights.value}`].join(",");
  field.value = "";
  weights.selectedIndex = 0;
  changed();
}

// The weights that are recommended for a model, as the answer's question would have them.
function deployedOf(id) {
  const { question } = shown.record;
  return weightsOf({ ...question, model: modelOf(id), weight_dtype: "recommended" }, offersIn(question, question.purchase));
}

function tellCompared(problem) {
  $("compare_model").setAttribute("aria-invalid", String(problem !== ""));
  $("compare_problem").textContent = problem;
}

// The model in the field of what is compared; beside it why it is none.
function comparedModel() {
  const { value } = $("compare_model"),
    wrong = new Problems();
  let model = value.trim() ? oneModel(value) : null;
  wrong.attempt(() => (model ??= value.trim() ? modelOf(value) : refuse("type_first", {})));
  tellCompared(wrong.errors.map(({ message }) => message).join(" "));
  return model;
}

// Enter in the field goes on to the weights, which are chosen before anything is added.
const weightsNext = () => comparedModel() && $("compare_weights").focus();

function showBeside(now) {
  now.compared = comparedWith(now.texts);
  $("about").textContent = aboutWords(now.record, now.ways);
  showOthers(now);
  showHosts(now.record);
  showSteps(now.record);
  showEngineers(now);
  showCompared(now);
}

const OTHERS_PRINTED = ["more_load", "more_prompt"];

// The request for approval, as it is printed.
function showRequest({ record, ways, compared, others }) {
  const request = requestWords(record);
  const options = request.options.map(({ name, price, rent, facts }) => {
    const box = element("div", "", { class: "option" });
    box.append(element("b", `\u2610 ${name}`), element("span", price, { class: "price" }), element("p", facts.join(" ")), element("p", rent, { class: "soft" }));
    return box;
  });
  const paid = ways.map((way) => {
    const { what, gives_up } = wayWords(way, record),
      rented = way.instance ? `${placeWords(way)}; ` : "";
    return `${dollars(way.monthly_usd)} a month: ${what}; ${rented}gives up ${gives_up}`;
  });
  $("request_day").textContent = say("for_approval", { day: FACTS.as_of, asked: askedWords(record) });
  $("request_sentence").textContent = `${request.sentence}.`;
  $("request_options").replaceChildren(...options);
  $("request_sure_of").textContent = request.sure_of;
  $("request_ways").replaceChildren(...itemsOf(paid));
  $("request_hosts").replaceChildren(...itemsOf(hostsTold(record).map(hostWords).map((host) => say("host", { ...host, source: host.source.replace(/^https?:\/\//, "") }))));
  $("request_hosts_part").hidden = !hostsTold(record).length;
  const more = others.filter(({ kind, message }) => OTHERS_PRINTED.includes(kind) && !message).map((other) => askedOtherwise(record, other));
  const lines = more.map(([what, month]) => say("request_more", { what, month }));
  $("request_serves").replaceChildren(...itemsOf([...request.serves, ...lines]));
  $("request_risks").replaceChildren(...itemsOf(request.risks));
  $("request_compared_part").hidden = !compared.length;
  const beside = compared.map((one) => {
    const [head, month, , rent] = comparedWords(one, record);
    return [head, rent ? `${month} a month; ${rent}` : month].filter(Boolean).join(": ");
  });
  $("request_compared").replaceChildren(...itemsOf(beside));
  $("request_about").textContent = `${aboutWords(record, ways)} ${linkOf()}`;
}

// Buttons ---------------------------------------------------------------------------------------------------------------

// Below the button that was pressed what came of it, where the reader looks.
function tell(button, text, isAlarm = false) {
  const place = $("taken");
  button.after(place);
  place.textContent = text;
  place.classList.toggle("alarm", isAlarm);
  place.scrollIntoView({ block: "nearest" });
}

async function take(button, text, isLink = false) {
  const isFile = isLink && location.protocol === "file:";
  try {
    await navigator.clipboard.writeText(text);
    tell(button, say("copied", { is_file: Number(isFile) }), isFile);
  } catch {
    tell(button, say("not_copied", {}), true);
  }
}

const linkOf = (texts = shown.texts) => location.href.replace(/#.*/, "") + addressOf(texts);
function whenPressed(id, act) {
  $(id).addEventListener("click", () => act($(id)));
}
whenPressed("copy", (button) => take(button, linkOf(), true));
whenPressed("copy_start", (button) => take(button, $("start").textContent));
whenPressed("copy_markdown", (button) => take(button, asMarkdown(shown.record, shown.ways, linkOf(), shown.compared, shown.others)));
whenPressed("csv", () => {
  const file = new Blob([asCsv(shown.record, shown.ways, linkOf(), shown.compared, shown.others)], { type: "text/csv" });
  element("a", "", { href: URL.createObjectURL(file), download: `${shown.record.model}.csv` }).click();
});
whenPressed("print", () => print());
whenPressed("compare_add", addCompared);
$("compare_model").addEventListener("input", () => tellCompared(""));
whenPressed("take_target", () => {
  for (const [name, ms] of Object.entries(shown.words.targets)) form.elements[`${name}_ms`].value = String(ms);
  changed();
});
addEventListener("beforeprint", () => {
  if (!shown?.record.chosen) return;
  showRequest(shown);
  $("request").hidden = false;
});
addEventListener("afterprint", () => ($("request").hidden = true));
for (const [id, show] of [["steps_list", showStepList], ["loads", showLoads], ["derivation", showDerived], ["out_of_memory", showDeaths]])
  $(id).addEventListener("toggle", () => $(id).open && shown?.record.chosen && show(shown.record));
for (const button of document.querySelectorAll("[data-derives]"))
  button.addEventListener("click", () => {
    $("derived").value = button.dataset.derives;
    $("derivation").open = true;
    showDerived(shown.record);
    $("derived").focus();
  });
$("derived").addEventListener("change", () => showDerived(shown.record));
