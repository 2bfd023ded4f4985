// The request for approval in words, and the answer as Markdown and CSV.

const lessOf = (usd) => (usd >= 1e6 ? `${FACTS.currency.prefix}${fixed((usd * FACTS.currency.rate) / 1e6, 2)}M` : dollars(usd));
const machinesWords = (n) => `${count(n)} ${n === 1 ? "machine" : "machines"}`;
const placeBeside = (record, rental) =>
  rental.instance === record.chosen.instance ? `${count(rental.n_instances)} of these` : placeWords(rental);
function placeWords(rental) {
  const place = say("rented", { rent: rentWords(rental), provider: providerOf(rental.instance) });
  return rental.measured === false ? say("request_unmeasured", { place }) : place;
}
const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

// What people call the requests of a question: of a usual workload its word, else requests.
function requestsWord({ workload }) {
  const isOf = (one) => one.input_tokens === workload.input_tokens && one.output_tokens === workload.output_tokens;
  return `${FACTS.workloads.find(isOf)?.called ?? "request"}s`;
}

function workWords(record) {
  const { question } = record,
    stated = question.users,
    users = stated || (record.users >= 1 ? record.users : 0);
  const requests = requestsWord(question);
  const measure = question.isRate
    ? `${rateWords(record.requests_per_second)} a second`
    : `${count(record.concurrent_requests)} at once`;
  const n = record.concurrent_requests;
  if (!users && question.isRate) return say("load_a_second", { rate: rateWords(record.requests_per_second), requests });
  if (!users) return say("load_at_once", { n: count(n), requests: n === 1 ? requests.slice(0, -1) : requests });
  return say("request_work", { users, name: requests, measure: stated ? "" : measure });
}

const SIZED = "Approve as sized";

// A box to tick: its name, $ a month, what is rented, and what is said of it.
function optionOf(record, name, rental, { isShort, alone = "", isTested = false }) {
  const { purchase } = record,
    month = rental.monthly_usd;
  const year = say("request_year", {
    year: dollars(12 * month),
    purchase: name === SIZED ? purchase : "",
    term: FACTS.terms[purchase] ?? "",
    binds: FACTS.purchases[purchase].months > 12 ? lessOf(FACTS.purchases[purchase].months * month) : "",
    contingency: "",
    rent: "",
  });
  const sure = capital(
    say("request_sure", {
      sure: sureWords(rental.chance),
      is_short: Number(isShort),
      is_tested: Number(isTested),
      is_brief: Number(isShort === isShortOf(record)),
    }),
  );
  const rent = name === SIZED ? placeWords(rental) : placeBeside(record, rental);
  return { name, price: `${dollars(month)} a month`, rent, facts: [year, alone, sure].filter(Boolean) };
}

const evenOf = (record) => record.by_confidence.find((level) => level?.confidence === FACTS.levels.even);

// Whether the answer's own machines show on their first day that fewer of them are enough.
function isTestedAtFirst(record, measure) {
  const even = measure?.decider && record.purchase === "on-demand" ? evenOf(record) : undefined;
  return Boolean(even) && even.instance === record.chosen.instance && even.n_instances < record.chosen.n_instances;
}

// What an even chance costs, where one should measure first and it costs less.
function evenWords(record) {
  const even = evenOf(record);
  const isTold = measureFirst(record).some((reason) => ["impossible", "asked_dear", "one_each"].includes(reason));
  return isTold && even && even.monthly_usd < record.monthly_usd ? lessOf(even.monthly_usd) : "";
}

// Whether an answer that is not sure is least sure of its memory, and not of a time.
const isShortOf = (record) => record.limit === "memory" && record.chance < FACTS.levels.sure;

// Whether what is left of a rental after the loss of a machine serves as much as the answer, at its certainty.
function isSurvivor(record, rental) {
  const survivor = survivesMachine(record);
  const isEnough = (other, n) => rental.instance === other.instance && rental.n_instances >= n;
  return survivor !== null && (isEnough(record.chosen, record.n_instances + 1) || isEnough(survivor, survivor.n_instances));
}

function* optionsOf(record, margin, isSure, measure) {
  const sized = { ...record.chosen, chance: record.chance };
  yield optionOf(record, SIZED, sized, { isShort: isShortOf(record), isTested: isTestedAtFirst(record, measure) });
  if (!margin) yield { name: "Approve with a margin", price: "", rent: "", facts: [say("request_no_margin", { sure: sureWords(FACTS.levels.sure) })] };
  else if (!isSure) {
    const isAlone = margin.n_instances === 1 && record.n_instances > 1;
    const alone = isAlone ? say("request_alone", {}) : isSurvivor(record, margin) ? say("request_survives", {}) : "";
    const option = optionOf(record, "Approve with a margin", margin, { isShort: margin.limit === "memory", alone });
    const survivor = CONSTANTS.survive ? null : survivesMachine(record);
    if (survivor && survivesToo(record, survivor)) option.facts.push(say("request_survives_too", survivorValues(record, survivor)));
    yield option;
  }
  if (!measure?.is_worth_it) return;
  const run = { ...(measure.decider ?? measure), measured: measure.decider ? evenOf(record)?.measured : undefined };
  const worth = worthValues(record, measure); // what failing costs more stands among the risks
  const isSame = run.instance === record.chosen.instance,
    rent = isSame ? "" : placeWords(run),
    machines = isSame ? machinesWords(run.n_instances) : "";
  yield { name: "Measure first", price: `${dollars(run.usd)} once`, rent, facts: [testWords(record, measure, machines), say("measure_stakes", { ...worth, more: "", is_dearer: Number(Boolean(worth.more)), is_alone: 1 })] };
}

function worthValues(record, { decider, failed_costs_usd: more }) {
  const { monthly_usd: usd } = record,
    less = decider ? moreThan(usd, decider.monthly_usd) : 0;
  return {
    less: less ? lessOf(less) : "",
    more: more ? lessOf(moreThan(marginOf(record).margin.monthly_usd, usd)) : "",
    level: more === null ? sureWords(FACTS.levels.sure) : "",
    is_dearer: 0,
    is_alone: 0,
  };
}

// The part of the load that is sent to the machines of a measurement: their share of what would be rented.
function sharedLoad({ question, requests_per_hour, concurrent_requests, n_instances }, { n_instances: n_measured }, rental) {
  const whole = question.isRate ? requests_per_hour : concurrent_requests,
    share = Math.min(1, n_measured / (rental?.n_instances ?? n_instances)),
    rounded = question.isRate ? Math.round : Math.ceil,
    n_whole = Math.max(1, Math.round(whole));
  return { part: share < 1 ? count(rounded(whole * share)) : "", whole: n_whole, is_rate: Number(question.isRate) };
}

// What a day of measuring is, and what hangs on it.
function testWords(record, measure, machines = "") {
  const run = measure.decider ?? measure,
    even = evenOf(record),
    tried = measure.decider ? even : null,
    { first_target, pace_target } = waitValues(record);
  return say("request_test", {
    places: measure.decider ? "" : placesOfMachine(record),
    ...sharedLoad(record, run, tried),
    first_target,
    pace_target,
    machines,
    is_short: Number((tried ?? record).limit === "memory"),
    cheaper: measure.decider ? lessOf(measure.decider.monthly_usd) : "",
    chance: measure.decider && even ? sureWords(even.chance) : "",
  });
}

// What is surer than the answer, and whether the answer needs none of it.
function marginOf(record) {
  const margin = record.by_confidence.find((level) => level?.confidence === FACTS.levels.sure);
  const isSame = margin && margin.monthly_usd <= record.monthly_usd * FACTS.measure_first.about;
  return { margin, isSure: record.chance >= FACTS.levels.sure || Boolean(isSame) };
}

// Whether one should measure before renting, and why; what a day of it costs, and what hangs on it. Of a shape that
// nobody can measure the reason alone.
function measureWords(record) {
  const [reason] = measureFirst(record),
    measure = measureOf(record),
    run = measure?.decider ?? measure,
    { confidence } = record.question;
  if (!run) return reason ? say(`measure_${reason}`, { confidence, ...levelWords(record, reason) }) : "";
  const { margin, isSure } = marginOf(record);
  return say("measure", {
    ...worthValues(record, measure),
    is_worth_it: Number(measure.is_worth_it),
    is_saving: Number(Boolean(measure.decider)),
    is_impossible: Number(reason === "impossible"),
    is_one_each: Number(reason === "one_each"),
    confidence,
    usd: dollars(run.usd),
    rent: placeWords(run),
    test: testWords(record, measure),
  });
}

// What is served, and how fast.
function* servedOf(record) {
  const { question } = record;
  const values = {
    users: question.users || record.users,
    times: String(question.workload.requests_per_user_per_day),
    per_hour: count(Math.round((question.users || record.users) * question.workload.requests_per_user_per_day * CONSTANTS.peak_hour_share * CONSTANTS.burst_factor)),
    ...enoughValues(record),
  };
  const slow = slowValues(record),
    ends = slow.mean_wait ? {} : { low: secondsWords(record.ttft_seconds_low), high: secondsWords(record.ttft_seconds_high) };
  if (values.users >= 1) yield say(question.users ? "request_asking" : "request_enough", values);
  if (question.workload.output_tokens > 1) yield say("request_speed", { ...waitValues(record), first_target: "", pace_target: "", low: "", high: "", ...ends, ...slow, limit: "", is_mean: Number(question.isRate), is_beyond: Number(question.workload.input_tokens > FACTS.longest_prompt_tokens) });
  for (const usd of usdPerPerson(record)) yield say("request_per_person", { usd });
}

// How many people the machines serve within the targets, and the month of one more; the machines where that costs no more.
function enoughValues({ question, solved, served_at_target, requests_per_second, monthly_usd }) {
  if (!question.users) return {};
  const most = Math.floor(served_at_target * (question.users / requests_per_second)),
    [next] = atLoads(solved, [most + 1]);
  return {
    most,
    more: most + 1,
    usd: next ? lessOf(next.monthly_usd) : "",
    rent: next && next.monthly_usd <= monthly_usd * FACTS.measure_first.about ? rentWords(next) : "",
  };
}

// $ a person, where there are people.
function* usdPerPerson({ question, users, monthly_usd }) {
  const people = question.users || users;
  if (!(people >= 1)) return; // or none
  const { prefix, rate } = FACTS.currency,
    each = (monthly_usd * rate) / people;
  yield prefix + fixed(each, each < 100 ? 2 : 0);
}

// The targets that the chance is of; of a rate with the load of a machine.
function sureOfWords(record) {
  const { question, chance } = record,
    { first_target, pace_target } = waitValues(record);
  return say("sure_of", {
    sure: capital(sureWords(chance)),
    first_target,
    pace_target,
    is_short: Number(isShortOf(record)),
    ...fullLoad(record, question.isRate),
    is_tested: 0,
    is_brief: 0,
  });
}

// The load that the chance is of, of a machine or of a replica that spans several; without a number where it is not told.
const fullLoad = (record, isTold) => ({
  places: isTold ? placesOfMachine(record) : "",
  n_loaded: record.pipeline_parallel_size > 1 ? record.n_replicas : record.n_instances,
  spans_machines: Number(record.pipeline_parallel_size > 1),
});

// The requests at once of a machine that the chance is of.
const placesOfMachine = ({ sure_at, replicas_held, n_instances }) => count(sure_at.requests * Math.max(1, Math.floor(replicas_held / n_instances)));

// What a failed machine does, and what survives it.
function failsWords(record) {
  const { question, n_instances, n_replicas, pipeline_parallel_size: stages, served_at_target: served, concurrent_requests, requests_per_second } = record;
  const lost = stages > 1 ? Math.max(1, n_instances / n_replicas) : 1,
    left = (served * (n_instances - lost)) / n_instances,
    asked = question.isRate ? requests_per_second : concurrent_requests,
    survivor = survivesMachine(record),
    { cleared_per_hour_less_machine: cleared } = waitsOf(record);
  return say("request_fails", {
    ...survivorValues(record, survivor),
    is_margin: Number(isMargin(record, survivor)),
    is_told: Number(survivesToo(record, survivor)),
    is_apart: 0,
    n_instances,
    left: count(Math.floor(left)),
    asked: count(Math.round(asked)),
    counted: Number(!question.isRate && left < asked),
    is_short: Number(left < asked),
    cleared: cleared === null || cleared >= record.requests_per_hour ? "" : count(Math.round(cleared)),
    per_hour: count(Math.round(record.requests_per_hour)),
  });
}

function survivorValues(record, survivor) {
  const [before, after] = [survivor.chance_before, survivor.chance].map(sureWords);
  return {
    usd: lessOf(survivor.monthly_usd),
    rent: placeBeside(record, survivor),
    before,
    after: after.replace(/ sure$/, ""),
    is_alike: Number(before === after),
  };
}

// Whether the machines that survive a loss cost less than the option with a margin, which survives it too.
function survivesToo(record, survivor) {
  const { margin, isSure } = marginOf(record);
  if (!margin || isSure || !(survivor.monthly_usd < margin.monthly_usd)) return false;
  return !isMargin(record, survivor) && isSurvivor(record, margin);
}

// Whether a rental is what the option with a margin rents.
function isMargin(record, rental) {
  const { margin, isSure } = marginOf(record);
  return Boolean(margin) && !isSure && isSameRental(rental, margin) && sureWords(rental.chance_before) === sureWords(margin.chance);
}

// That so many machines are to be reserved first.
function* reserveWords({ n_instances }) {
  if (n_instances > FACTS.reserved_above) yield say("request_reserve", { machines: machinesWords(n_instances) });
}

// Risks, each with what it costs.
function* risksOf(record) {
  const { question, n_instances, monthly_usd: usd, purchase } = record;
  const { margin, isSure } = marginOf(record);
  if (margin && !isSure && !FACTS.terms[purchase])
    yield say("request_too_slow", { usd: lessOf(moreThan(margin.monthly_usd, usd)), is_short: Number(isShortOf(record)) });
  if (!CONSTANTS.survive) yield failsWords(record);
  if (question.users && question.users <= FACTS.most_at_once) {
    const [every] = atLoads(record.solved, [question.users], { kind: "concurrent_requests" });
    const { last_answer_seconds: last } = waitsOf(record).same_moment;
    if (every?.monthly_usd > usd)
      yield say("request_same_moment", { users: count(question.users), usd: lessOf(every.monthly_usd), last: last === null ? "" : spanWords(last) });
  }
  const published = asPublished(record);
  if (published && !(published.monthly_usd !== null && published.monthly_usd <= usd))
    yield say("request_quality", { usd: published.monthly_usd === null ? "" : lessOf(moreThan(published.monthly_usd, usd)) });
  const unmeasured = neverMeasuredWords(record);
  if (unmeasured) yield unmeasured;
  const months = FACTS.purchases[purchase].months;
  if (months) yield say("request_bound", { usd: lessOf(months * usd) });
  yield* reserveWords(record);
  const hasSpare = margin && !isSure && isSurvivor(record, margin);
  yield say("request_excluded", { costs: `${FACTS.not_in_price}${hasSpare ? " (as sized)" : ""}` });
}

// The request for approval of an answer: texts by its parts.
function requestWords(record) {
  const { margin, isSure } = marginOf(record);
  const what = say("request_what", { models: record.question.model.name, work: workWords(record) });
  return {
    sentence: say("request_run", { what, month: dollars(record.monthly_usd), even: evenWords(record) }),
    options: [...optionsOf(record, margin, isSure, measureOf(record))],
    sure_of: sureOfWords(record),
    serves: [...servedOf(record)],
    risks: [...risksOf(record)],
  };
}

const COMPARED_HEADS = ["Model and weights", "A month", "Beside this answer", "Rent", "How fast"];

// The answer for a model and weights beside the page's own, in the words under these heads; what is refused with why.
function comparedWords({ record, model, weights, message }, own) {
  if (!record) return [`${model}, ${weights}: ${message}`, "", "", "", ""];
  const words = answerWords(record);
  const head = say("compared", { model: record.question.model.name, weights: weightsName(record.question.model, record.weight_dtype) });
  const rented = record.chosen
    ? say("compare_facts", { rent: rentWords(record), provider: providerOf(record.instance), sure: sureWords(record.chance) })
    : "";
  const beside = record !== own && record.chosen && own.chosen ? differenceWords(record.monthly_usd, own.monthly_usd) : "";
  return [head, words.month, beside, rented, words.wait ?? ""];
}

// Text on one line of Markdown that shows just that; an address as the link that it is.
const plainMarkdown = (text) =>
  text
    .replaceAll(/\s+/g, " ")
    .replaceAll(/([\\`*[\]|~_]|&(?=#?[A-Za-z0-9]+;)|<(?=[A-Za-z/!?]))/g, "\\$1")
    .replace(/^>/, "\\>");
const ADDRESS = /^https?:\/\/[^\s<>|\\`]+$/;
const linkedMarkdown = (text) => (ADDRESS.test(text) ? `<${text}>` : plainMarkdown(text));
const markdownTable = (heads, rows, asText = plainMarkdown) =>
  [heads, heads.map(() => "---"), ...rows.map((row) => row.map(asText))].map((row) => `| ${row.join(" | ")} |`).join("\n");

// The answer for a planning document: the request's sentences, what may be approved, ways to pay less.
function asMarkdown(record, ways, link, compared = [], others = []) {
  const request = requestWords(record);
  const options = request.options.map(({ name, price, rent, facts }) => [name, price, facts.join(" "), rent]);
  const paid = ways.map((way) => {
    const { what, gives_up } = wayWords(way, record);
    return [capital(what), way.instance ? placeWords(way) : "", dollars(way.monthly_usd), keepsWords(way, record), gives_up];
  });
  const hosts = hostsTold(record).map((host) => Object.values(hostWords(host))),
    absent = absentWords(record, ways);
  const parts = [
    `**${plainMarkdown(request.sentence)}.**`,
    plainMarkdown(askedWords(record)),
    markdownTable(["To approve", "Price", "What that is", "Rent"], options),
    plainMarkdown(request.sure_of),
    paid.length ? markdownTable(["To pay less", "Rent", "A month", "Answers and certainty", "What we give up"], paid) : "",
    paid.length ? plainMarkdown(cheapestWords(record, ways)) : "",
    absent.length ? plainMarkdown(say("absent_ways", {})) : "",
    absent.map((text) => `- ${plainMarkdown(text)}`).join("\n"),
    plainMarkdown(hostedWords(record)),
    hosts.length ? markdownTable(HOST_HEADS, hosts, linkedMarkdown) : "",
    others.length ? markdownTable(OTHER_HEADS, others.map((other) => askedOtherwise(record, other))) : "",
    compared.length ? markdownTable(COMPARED_HEADS, [{ record }, ...compared].map((one) => comparedWords(one, record))) : "",
    [...request.serves, ...request.risks].map((text) => `- ${plainMarkdown(text)}`).join("\n"),
    plainMarkdown(aboutWords(record, ways)),
    `<${link}>`,
  ];
  return parts.filter(Boolean).join("\n\n") + "\n";
}

// By provider, in which regions and of which days the prices of these offers are, and the oldest day; "" where none has
// a day.
function priceLists(offers) {
  const days = new Map(),
    regions = new Map();
  for (const offer of offers) {
    const [, , region, readOn] = MARKET.offers[offer],
      provider = providerOf(machineOf(offer)[INSTANCE]);
    days.set(provider, [...(days.get(provider) ?? []), readOn || ""]);
    regions.set(provider, new Set([...(regions.get(provider) ?? []), region]));
  }
  const lists = [...days].map(([provider, all]) => {
    const known = [...new Set(all.filter(Boolean))].sort(),
      [oldest = "", newest = ""] = known.filter(isDay).filter((_, i, sorted) => i === 0 || i === sorted.length - 1);
    const places = [...regions.get(provider)].filter(Boolean);
    const rough = known.filter((day) => !isDay(day)).join(" and ");
    return say("price_list", { provider, regions: places.length <= MOST_REGIONS ? places.join(" and ") : "", oldest, newest, rough });
  });
  const [oldest = ""] = [...days.values()].flat().filter(Boolean).sort();
  return { lists: lists.join(", "), oldest };
}

const MOST_REGIONS = 2; // of a provider whose regions are named

// What the answer and the ways to pay less rest on: the engine, and the days of the prices of all that was compared.
function aboutWords(record, ways) {
  const { question } = record,
    others = [...ways, ...ways.map(({ further }) => further)].map((one) => one?.offer).filter((offer) => offer !== undefined);
  const { lists, oldest } = priceLists(new Set([...offersIn(question, question.purchase), ...others])),
    terms = priceLists(new Set(ways.filter(({ kind }) => kind === "term").map(({ offer }) => offer))).lists;
  return say("about", {
    engine: FACTS.engine,
    version: FACTS.engine_version,
    day: FACTS.as_of,
    lists,
    terms,
    age: oldest && String(daysOld(oldest)),
    costs: FACTS.not_in_price,
    hours: String(CONSTANTS.hours_per_month),
  });
}

const CSV_DIGITS = 12; // of a number: more are the traces of arithmetic

// What a spreadsheet reads as a formula is text to it behind an apostrophe.
const csvField = (value) => {
  const isNumber = typeof value === "number",
    text = value === null || value === undefined || value !== value ? "" : String(isNumber ? Number(value.toPrecision(CSV_DIGITS)) : value);
  const safe = typeof value === "string" && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csvLine = (values) => values.map(csvField).join(",") + "\r\n";
// As the JSON of `build` has them; what is served within the targets in requests at once, and of a rate also a second.
const OF_CSV = ["model", "users", "requests_per_second", "requests_per_hour", "concurrent_requests", "weight_dtype", "kv_cache_dtype",
  "verdict", "instance", "region", "gpu", "purchase", "price_as_of", "n_instances", "n_gpus", "tensor_parallel_size",
  "pipeline_parallel_size", "data_parallel_size", "n_replicas", "served_requests_at_once", "served_requests_per_second",
  "memory_holds", "hourly_usd", "monthly_usd", "annual_usd", "chance", "tpot_seconds", "ttft_seconds"];
const OF_WAYS = ["commits_usd", "keeps", "gives_up"]; // the last two in words
const OF_HOSTS = ["host", "input_usd_per_million", "cached_usd_per_million", "output_usd_per_million", "price_source"];

// What is rented instead, as a line of CSV has it: on which GPUs, and in which class, a term or the answer's own.
function ofRental({ kind, detail, offer, instance, n_instances, monthly_usd, chance }, { purchase }) {
  const [, , region, price_as_of] = MARKET.offers[offer],
    machine = machineOf(offer);
  const paid = kind === "term" || kind === SPOT ? detail : kind === "hours" || kind === FACTS.unbound ? ON_DEMAND : purchase;
  const gpus = { gpu: FACTS.gpus[machine[GPU]].id, n_gpus: n_instances * machine[GPU_COUNT], purchase: paid };
  const price = { monthly_usd, annual_usd: 12 * monthly_usd, price_as_of, price_source: sourceOf(offer) };
  return { verdict: "fits", instance, n_instances, chance, region, ...price, ...gpus };
}
const ofRecord = (record) =>
  record.chosen
    ? {
        ...record,
        served_requests_at_once: servedPlaces(record),
        served_requests_per_second: record.question.isRate ? record.served_at_target : null,
        price_source: sourceOf(record.offer),
      }
    : record;

// What owning the GPUs of an answer costs, and what a host of the model takes, as a line of CSV has it.
const ofOwning = ({ monthly_usd }, { gpu, n_gpus }) => ({ monthly_usd, annual_usd: 12 * monthly_usd, gpu, n_gpus });
const ofHost = ({ name, precision, monthly_usd, read_on, source, ...price }) => ({
  ...price,
  host: name,
  weight_dtype: precision,
  monthly_usd,
  annual_usd: 12 * monthly_usd,
  price_as_of: read_on,
  price_source: source,
});

const ofWay = (way, record) => ({ commits_usd: way.commits_usd, keeps: keepsWords(way, record), gives_up: wayWords(way, record).gives_up });

// What is rented for another question, as a line of CSV has it, with what is other in it.
function ofOther({ kind, question, link = "", ...rental }) {
  const { workload, model, weights, kv } = question,
    name = loadName(question),
    of = (length) => workload[`${length}_tokens`];
  return {
    model: model.id,
    weight_dtype: weights,
    kv_cache_dtype: kv,
    [name]: amountOf(question),
    requests_per_user_per_day: workload.requests_per_user_per_day,
    context_tokens: of("context"),
    input_tokens: of("input"),
    output_tokens: of("output"),
    ...ofRental(rental, question),
    way: `if_${kind}`,
    link,
  };
}

// The answer as a line of CSV; and as one each what 90 % sure costs, what survives the loss of a machine, a day of
// measuring (once_usd), each way to pay less, each host that is named, each answer beside it, and each other question. The
// question stands in each: confidence, area and providers asked for, the link.
function asCsv(record, ways, link, compared = [], others = []) {
  const { question } = record,
    { workload } = question,
    { margin } = marginOf(record),
    measure = record.chosen && measureOf(record),
    survivor = record.chosen && survivesMachine(record);
  const asked = {
    context_tokens: workload.context_tokens,
    input_tokens: workload.input_tokens,
    output_tokens: workload.output_tokens,
    requests_per_user_per_day: workload.requests_per_user_per_day,
    confidence: question.confidence,
    area: question.region,
    providers: question.providers.join(" "),
    link,
  };
  const names = ["way", ...Object.keys(asked), ...OF_CSV, "once_usd", ...OF_WAYS, ...OF_HOSTS];
  const lineOf = (way, values) => csvLine(names.map((name) => ({ ...values, ...asked, way })[name]));
  const load = { ...Object.fromEntries(OF_CSV.slice(0, 5).map((name) => [name, record[name]])) };
  const paidFor = (way, of) => lineOf(way, { ...load, ...of });
  const run = measure && (measure.decider ?? measure);
  return [
    csvLine(names),
    lineOf("answer", ofRecord(record)),
    margin ? paidFor("sure", ofRental(margin, record)) : "",
    survivor ? paidFor("survives_machine", ofRental(survivor, record)) : "",
    run ? paidFor("measure_first", { verdict: "fits", instance: run.instance, n_instances: run.n_instances, once_usd: run.usd }) : "",
    ...ways
      .filter(({ kind }) => kind !== "hosted")
      .map((way) => paidFor(way.kind, { ...(way.kind === "own" ? ofOwning(way, record) : ofRental(way, record)), ...ofWay(way, record) })),
    ...hostsTold(record).map((host) => paidFor("hosted", ofHost(host))),
    ...compared.filter((one) => one.record).map((one) => lineOf("compared", ofRecord(one.record))),
    ...others.filter((other) => !other.message).map((other) => csvLine(names.map((name) => ({ ...asked, ...ofOther(other) })[name]))),
  ].join("");
}
