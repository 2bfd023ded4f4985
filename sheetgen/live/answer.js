// A question answered from FACTS by PROGRAMS, as `sheetgen recommend` answers it. FACTS are those of
// sheetgen/live/live_facts.py.

const ON_DEMAND = "on-demand";
const CHANCES = ["memory", "tpot", "ttft"];
const BY_DEFAULT = 0,
  NAMED = 1,
  WHOLE = 2,
  OTHER_VENDORS = 3,
  OTHER_GPUS = 4; // the lists of a region and class
const fromJson = (x) => (x === null ? NaN : x);
const isTexts = (values) => typeof values[0] === "string";
function asColumn(value) {
  const values = Array.isArray(value) ? value : [value];
  return isTexts(values) ? values : Float64Array.from(values, fromJson);
}
const [MACHINE, USD, REGION, READ_ON, SOURCE, DISCOUNT, ON_DEMAND_USD] = [0, 1, 2, 3, 4, 5, 6]; // of an offer of the market
const [INSTANCE, PROVIDER, GPU, GPU_COUNT, NETWORK, DOMAIN, LAYOUTS, ASSUMED] = [0, 1, 2, 3, 4, 5, 6, 7]; // of a machine

const COLUMNS = FACTS.columns.map(([axes, name, value]) => ({ axes, name, data: asColumn(value) }));
const VARIANTS = FACTS.variants.map(
  (columns) => new Map(columns.map(([axes, name, value]) => [`${axes} ${name}`, asColumn(value)])),
);
const CONSTANTS = Object.fromEntries(
  COLUMNS.filter(({ axes }) => !axes.length).map(({ name, data }) => [name, data[0]]),
);
const MARKET = FACTS.market;
const machineOf = (offer) => MARKET.machines[MARKET.offers[offer][MACHINE]];

// Why a question is none; of: the input that is wrong, "" where no single one is; problems: each, where there are several.
class QuestionError extends Error {
  constructor(message, of, problems) {
    super(message);
    Object.assign(this, { of, problems: problems ?? [this] });
  }
}

const refuse = (name, values, of = "") => {
  throw new QuestionError(say(name, values), of);
};

const MOST_PROBLEMS = 20; // of a question: an address may have thousands

// What is wrong with a question, all of it said at once.
class Problems {
  errors = [];

  attempt(act) {
    if (this.errors.length >= MOST_PROBLEMS) return;
    try {
      act();
    } catch (error) {
      if (!(error instanceof QuestionError)) throw error;
      this.errors.push(...error.problems);
    }
  }

  throwAll() {
    if (this.errors.length) throw new QuestionError(this.errors.map(({ message }) => message).join(" "), "", this.errors);
  }
}

// Models by every name, in lower case -------------------------------------------------------------------------------

const MODELS = new Map();
const modelKey = (name) => String(name).toLowerCase().trim().replaceAll(/[\s_]+/g, "-");
FACTS.models.forEach((model, place) => {
  Object.assign(model, { place, hosts: FACTS.hosted.filter((price) => price.place === place) });
  for (const name of [model.id, model.name, ...model.names]) {
    const key = modelKey(name);
    if (!MODELS.has(key)) MODELS.set(key, model);
  }
});
const modelCalled = (text) => MODELS.get(modelKey(text));

const partsOf = (text) => text.toLowerCase().split(/[^a-z0-9.]+/).filter(Boolean);
const namesOf = (model) => [model.id, model.name, ...model.names].join(" ").toLowerCase();

// The models whose names have every part of a text: the one called just so, those whose id begins with the first part,
// those whose id has all, and others.
function modelsWith(text) {
  const parts = partsOf(text),
    named = modelCalled(text);
  const rank = (model) =>
    [model === named, model.id.startsWith(parts[0]), parts.every((part) => model.id.includes(part)), true].indexOf(true);
  return FACTS.models
    .filter((model) => model === named || parts.every((part) => namesOf(model).includes(part)))
    .sort((one, other) => rank(one) - rank(other));
}

const MOST_NEAR = 5;

// The model of a name. Throws QuestionError with those whose names have all of its words, else the most of them.
function modelOf(name) {
  const text = String(name),
    found = modelCalled(text);
  if (found) return found;
  const parts = partsOf(text),
    idsOf = (models) => models.slice(0, MOST_NEAR).map(({ id }) => id).join(", ");
  const models = parts.length ? modelsWith(text) : [];
  if (models.length) return refuse("not_one_model", { near: idsOf(models), more: Number(models.length > MOST_NEAR) }, "model");
  const shared = (model) => parts.filter((part) => namesOf(model).includes(part)).length;
  const near = FACTS.models.filter(shared).sort((one, other) => shared(other) - shared(one));
  return refuse("no_model", { name: text.toLowerCase().trim().slice(0, 80), near: idsOf(near) }, "model");
}

// Tables of one load alone: what a program makes of quantities by name.
function workOutCase(program, values) {
  const grid = new Grid({ case: 1 });
  for (const [name, value] of Object.entries({ ...CONSTANTS, ...values })) grid.put([], name, [fromJson(value)]);
  grid.workOut(program);
  return (name) => grid.latest(name).data[0];
}

// Requests a second at the peak.
const peakOf = (stated) => workOutCase(PROGRAMS.rate, stated)("peak_requests_per_second");

// The question with its defaults: the load, the targets, the precisions. Throws QuestionError.
function completed(asked) {
  const model = modelOf(asked.model);
  const input = asked.input_tokens,
    output = asked.output_tokens,
    context = asked.context_tokens ?? input + output;
  const lengths = asked.context_tokens === undefined ? "input_tokens" : "context_tokens";
  if (context < input + output) refuse("short", { context: count(context), both: count(input + output) }, lengths);
  if (context > model.limit)
    refuse("over", { model: model.name, limit: count(model.limit), context: count(context) }, lengths);
  const asks = asked.requests_per_user_per_day ?? FACTS.asks;
  const workload = {
    context_tokens: context,
    input_tokens: input,
    output_tokens: output,
    requests_per_user_per_day: asks,
  };
  const history = asked.history_hit_fraction ?? 0;
  const targetOf = workOutCase(PROGRAMS.targets, { ...FACTS.judged, ...workload, history_hit_fraction: history });
  const target = (name) => asked[`${name}_ms`] ?? targetOf(`default_${name}_target_ms`);
  const ofDay = {
    users: asked.users ?? 0,
    requests_per_second: asked.requests_per_second ?? 0,
    requests_per_day: 0,
    tokens_per_day: 0,
  };
  const rate = peakOf({ ...workload, ...ofDay });
  return {
    ...asked,
    model,
    workload: {
      ...workload,
      max_model_len: context,
      history_hit_fraction: history,
      tpot_target_ms: target("tpot"),
      ttft_target_ms: target("ttft"),
    },
    users: asked.users ?? 0,
    isRate: !asked.concurrent_requests,
    rate,
    concurrent_requests: asked.concurrent_requests ?? 0,
    purchase: asked.purchase ?? ON_DEMAND,
    region: asked.region ?? "",
    providers: asked.providers ?? [],
    confidence: asked.confidence ?? FACTS.confidence,
    cached_fraction: targetOf("cached_fraction"),
    kv: asked.kv_cache_dtype === undefined || asked.kv_cache_dtype === "auto" ? model.kv : asked.kv_cache_dtype,
  };
}

// Who may be rented -------------------------------------------------------------------------------------------------

const listOf = (place, providers) => {
  const list = MARKET.lists[place];
  return providers.length ? list.filter((offer) => providers.includes(machineOf(offer)[PROVIDER])) : list;
};

// The offers of a question in a purchase class, of those of the class asked for and of the others as they stand there.
function offersIn(question, purchase) {
  const lists = MARKET.regions[question.region][question.purchase];
  return listOf(lists[question.providers.length ? NAMED : BY_DEFAULT][purchase], question.providers);
}

// By kind of FACTS.beyond the offers that nobody asked for; isUnbound: of a question on demand beside a class that binds
// those of others alone.
function offersBeyond(question, isUnbound) {
  const lists = MARKET.regions[question.region][question.purchase];
  const asked = question.providers.length ? question.providers : FACTS.default_providers;
  const elsewhere = listOf(lists[WHOLE], []).filter((offer) => !asked.includes(machineOf(offer)[PROVIDER]));
  const isCloud = (offer) => FACTS.default_providers.includes(machineOf(offer)[PROVIDER]);
  if (isUnbound) return { [FACTS.unbound]: elsewhere };
  return {
    vendor: listOf(lists[OTHER_VENDORS], asked),
    cloud: elsewhere.filter(isCloud),
    provider: elsewhere.filter((offer) => !isCloud(offer)),
    gpu: listOf(lists[OTHER_GPUS], question.providers.length ? question.providers : FACTS.default_providers),
  };
}

// The weights that a precision stands for: recommended, published, or itself.
function weightsOf(question, offers) {
  const { model } = question,
    asked = question.weight_dtype ?? "recommended";
  if (asked !== "recommended") return asked === "published" ? model.weights : asked;
  const { lower } = FACTS;
  const runs = offers.some((offer) => FACTS.gpus[machineOf(offer)[GPU]].deploys);
  return lower.deploys && model.deploys && runs ? lower.deployed : model.weights;
}

// The grid ----------------------------------------------------------------------------------------------------------

const PLAIN_PLACES = [...FACTS.layouts.keys()].filter((place) => FACTS.layouts[place][1] === 1);

// The columns of a variant with these GPUs alone; those of the questions before are kept.
const sliced = new Map();
function columnsOf(variant, gpus) {
  const key = `${VARIANTS.indexOf(variant)} ${gpus}`;
  if (sliced.has(key)) return sliced.get(key);
  if (sliced.size > 20) sliced.clear();
  const columns = COLUMNS.map(({ axes, name, data: usual }) => {
    const whole = variant.get(`${axes} ${name}`) ?? usual;
    if (axes[0] !== "gpu") return { axes, name, data: whole };
    const width = whole.length / FACTS.gpus.length,
      data = gpus.flatMap((gpu) => [...whole.slice(gpu * width, (gpu + 1) * width)]);
    return { axes, name, data: asColumn(data) };
  });
  sliced.set(key, columns);
  return columns;
}

// The facts of a question on their axes, with the GPUs of these offers: nothing is worked out yet.
function gridOf(question, offers) {
  const { model, workload, weights, kv, isRate } = question;
  const gpus = [...new Set(offers.map((offer) => machineOf(offer)[GPU]))];
  const layouts = model.experts ? [...FACTS.layouts.keys()] : PLAIN_PLACES;
  const widths = [0, 1].map((side) => [...new Set(layouts.map((place) => FACTS.layouts[place][side]))]);
  const variant = VARIANTS[model.variants[kv === model.kv ? 0 : 1]];
  const steps = COLUMNS.find(({ name }) => name === "steps").data.length;
  let grid = new Grid({
    weight_dtype: FACTS.precisions.length,
    kv_dtype: FACTS.precisions.length,
    kind: FACTS.kinds.length,
    gpu: gpus.length,
    tp: widths[0].length,
    dp: widths[1].length,
    workload: 1,
    step: steps,
    measurement: FACTS.n_measurements,
  });
  grid = grid.along("model", 1, {
    weight_dtype: [FACTS.precisions.indexOf(weights)],
    kv_dtype: [FACTS.precisions.indexOf(kv)],
    kind: [model.kind],
  });
  grid = grid.along("layout", layouts.length, {
    tp: layouts.map((place) => widths[0].indexOf(FACTS.layouts[place][0])),
    dp: layouts.map((place) => widths[1].indexOf(FACTS.layouts[place][1])),
  });
  const profiles = gpus.flatMap((_, gpu) => layouts.map((_, layout) => [gpu, layout]));
  grid = grid.along("profile", profiles.length, {
    gpu: profiles.map(([gpu]) => gpu),
    layout: profiles.map(([, one]) => one),
  });
  grid = grid.along("pace", 1, { model: [0], workload: [0] }).along("load", 1, { pace: [0] });
  const { columns, by_weights } = FACTS.of_models;
  const ofWeights = Object.entries(by_weights).map(([name, byDtype]) => [name, byDtype[weights]]);
  for (const [name, values] of [...Object.entries(columns), ...ofWeights])
    grid.put(["model"], name, asColumn(Array.isArray(values) ? values[model.place] : values));
  for (const { axes, name, data } of columnsOf(variant, gpus)) grid.put(axes, name, data);
  const settings = {
    confidence: question.confidence,
    utilization: question.users ? FACTS.mean_over_peak : FACTS.utilization,
    is_committed: FACTS.purchases[question.purchase].is_committed,
    closed_loop: isRate ? 0 : 1,
  };
  for (const [name, value] of Object.entries(settings)) grid.put([], name, [value]);
  for (const [name, value] of Object.entries(workload)) grid.put(["workload"], name, [value]);
  grid.put(["load"], "concurrent_requests", [question.concurrent_requests]);
  grid.put(["load"], "stated_users", [question.users]);
  if (isRate) grid.put(["load"], "requests_per_second", [question.rate]);
  return Object.assign(grid, { gpus, layouts });
}

// The grid with these offers, each at every layout that it has the GPUs and the links for; places: which offer and
// layout each position of the axis is.
function withOffers(grid, gpus, layouts, offers) {
  const machines = offers.map(machineOf);
  grid = grid.along("instance", offers.length, {});
  grid.put(
    ["instance"],
    "gpu_count",
    machines.map((machine) => machine[GPU_COUNT]),
  );
  grid.put(
    ["instance"],
    "network_gbps",
    machines.map((machine) => machine[NETWORK]),
  );
  grid.put(
    ["instance"],
    "nvlink_domain_gpus",
    machines.map((machine) => machine[DOMAIN]),
  );
  grid.put(
    ["instance"],
    "listed_usd_per_hour",
    offers.map((offer) => MARKET.offers[offer][USD]),
  );
  grid.put(
    ["instance"],
    "discount_fraction",
    offers.map((offer) => MARKET.offers[offer][DISCOUNT]),
  );
  const places = machines.flatMap((machine, i) =>
    layouts.flatMap((place, layout) =>
      machine[LAYOUTS].includes(place)
        ? [{ offer: offers[i], instance: i, profile: gpus.indexOf(machine[GPU]) * layouts.length + layout }]
        : [],
    ),
  );
  grid = grid.along("offer", places.length, {
    instance: places.map((one) => one.instance),
    profile: places.map((one) => one.profile),
  });
  return Object.assign(grid, { gpus, layouts, offers: places });
}

function readAgain(grid, name, under) {
  const { under: declared, tables } = PROGRAMS.again.tables[name];
  const copy = Object.assign(grid.again({ ...declared, ...under }), {
    gpus: grid.gpus,
    layouts: grid.layouts,
    offers: grid.offers,
  });
  copy.workOut(PROGRAMS.again, tables);
  return copy;
}

const isServed = (grid) => grid.values("monthly_usd", ["load", "offer"]).some((usd) => usd > 0);

// Every offer worked out, at an even chance where nothing serves the load at the confidence asked for.
function tablesOf(question, offers, gpusOf = offers) {
  const facts = gridOf(question, gpusOf);
  const grid = withOffers(facts, facts.gpus, facts.layouts, offers);
  grid.workOut(PROGRAMS.sheet);
  grid.isEven = false;
  if (question.confidence <= FACTS.levels.even || isServed(grid) || !isServed(readAgain(grid, "at_even_chance")))
    return grid;
  grid.put(["pace"], "level_z", [0]);
  return Object.assign(readAgain(grid, "at_levels"), { isEven: true });
}

// The chosen offer of a load and the very cheapest, each with how many instances and $ a month; null where none is.
function pick(grid, among) {
  const copy = Object.assign(grid.again(), { offers: grid.offers });
  if (among) copy.put(["offer"], "among", among);
  copy.workOut(PROGRAMS.choice);
  return picked(copy);
}

function picked(grid) {
  const read = (name) => grid.values(name, ["load"])[0];
  const usd = read("chosen_usd");
  if (usd !== usd) return null;
  const least = read("cheapest_position") - 1,
    months = grid.values("instance_month_usd", ["offer"]);
  return {
    ...rentalOf(grid, read("chosen_position") - 1, read("fewest_instances"), usd),
    cheapest: rentalOf(grid, least, Math.round(read("cheapest_usd") / months[least]), read("cheapest_usd")),
  };
}

function rentalOf(grid, position, n_instances, monthly_usd) {
  const { offer } = grid.offers[position];
  return { position, offer, instance: machineOf(offer)[INSTANCE], n_instances, monthly_usd };
}

// A load on what was chosen for it.
function along(grid, position, load = 0) {
  return grid.along("chosen", 1, { load: [load], offer: [position] });
}

const readChosen = (chosen, name) => chosen.values(name, ["chosen"])[0];

function paced(grid, position, load = 0) {
  const chosen = along(grid, position, load);
  chosen.workOut(PROGRAMS.chosen);
  return (name) => readChosen(chosen, name);
}

// The answer --------------------------------------------------------------------------------------------------------

// A question of one purchase class: its tables, and what is chosen.
function solve(question) {
  const offers = offersIn(question, question.purchase);
  if (!offers.length) refuse("nobody", {});
  const whole = { ...question, weights: weightsOf(question, offers) };
  const grid = tablesOf(whole, offers);
  return { question: whole, grid, best: pick(grid) };
}

// The tables with the load at so many standard deviations, up to the choice.
const atLevel = (grid, level_z) => withTimesOf(grid, ["pace"], "level_z", level_z);

// The tables up to the choice with another value of what its times hang on.
function withTimesOf(grid, axes, name, value) {
  const other = Object.assign(grid.again(), { gpus: grid.gpus, layouts: grid.layouts, offers: grid.offers });
  other.put(axes, name, [value]);
  return readAgain(other, "at_levels");
}

// By purchase class what would be rented by the same rule: what binds money at the confidence asked for, or not at all.
function heldByPurchase(solved) {
  const { question, grid, best } = solved,
    known = onGpusOfClasses(solved);
  const asked = grid.isEven ? atLevel(known, levelZ(question.confidence)) : known;
  return Object.fromEntries(
    Object.entries(FACTS.purchases).map(([purchase, { binds }]) => [
      purchase,
      purchase === question.purchase ? surelyRented(grid, best) : rentedIn(question, binds ? asked : known, purchase),
    ]),
  );
}

// The grid with the GPUs of every purchase class: one may have GPUs that the class shown has no price for.
function onGpusOfClasses({ question, grid }) {
  const offers = Object.keys(FACTS.purchases).flatMap((purchase) => offersIn(question, purchase));
  const isKnown = offers.every((offer) => grid.gpus.includes(machineOf(offer)[GPU]));
  return isKnown ? grid : tablesOf(question, offersIn(question, question.purchase), offers);
}

// What is rented in a purchase class at the level of a grid; null where nothing is.
function rentedIn(question, grid, purchase) {
  const offers = offersIn(question, purchase);
  if (!offers.length) return null;
  const priced = withOffers(grid.again(), grid.gpus, grid.layouts, offers);
  priced.put([], "is_committed", [FACTS.purchases[purchase].is_committed]);
  const there = readAgain(priced, "at_other_prices");
  return surelyRented(there, picked(there));
}

// The same without the commitments that save nothing on demand at the same confidence.
function byPurchase(solved, rented = heldByPurchase(solved)) {
  const { question, grid } = solved,
    usual = grid.isEven ? null : rented[ON_DEMAND];
  const isIdle = ([purchase, rental]) =>
    purchase !== question.purchase && FACTS.purchases[purchase].is_committed && rental && usual && !(rental.monthly_usd < usual.monthly_usd);
  return Object.fromEntries(Object.entries(rented).map((one) => [one[0], isIdle(one) ? null : one[1]]));
}

const isSameRental = (one, other) => one.instance === other.instance && one.n_instances === other.n_instances;
const rentalOnly = ({ offer, instance, n_instances, monthly_usd }) => ({ offer, instance, n_instances, monthly_usd });

// The answer in the class that was requested; or, where that class is no answer, on demand.
function recommended(question) {
  const { purchase } = question,
    isSold = offersIn(question, purchase).length > 0;
  const onDemand = { ...question, purchase: ON_DEMAND };
  if (!isSold && offersIn(onDemand, ON_DEMAND).length) {
    return { ...solve(onDemand), declined: { purchase, reason: "unsold", monthly_usd: null } };
  }
  const solved = solve(question);
  if (purchase === ON_DEMAND || !offersIn(question, ON_DEMAND).length) return solved;
  const rented = byPurchase(solved),
    reason = reasonToDecline(solved, rented, onDemand);
  if (!reason) return solved;
  const answered = solve(onDemand);
  const declined = { purchase, reason, monthly_usd: rented[purchase]?.monthly_usd ?? null };
  return answered.best ? { ...answered, declined } : solved;
}

// Why the answer in a class is none; null where it stands.
function reasonToDecline({ question, grid }, rented, onDemand) {
  const { [question.purchase]: own, [ON_DEMAND]: usual } = rented;
  const costsNoMore = (rental) => (rental && rental.monthly_usd <= own.monthly_usd ? "no_saving" : null);
  if (!own) return "not_held";
  if (grid.isEven) return FACTS.purchases[question.purchase].binds ? "even_chance" : costsNoMore(solve(onDemand).best);
  return usual && own.monthly_usd >= usual.monthly_usd ? "no_saving" : null;
}

// The steps as which a chance is said, of which one more is over the last; whether a chance is said to be less; and the
// lowest confidence at which an answer is said to be as sure as one with this chance.
function saidSteps(chance) {
  const most = Math.round(1 / FACTS.chance_step);
  return chance > 1 - FACTS.chance_step ? most : Math.min(most - 1, Math.floor(Math.round((chance / FACTS.chance_step) * 100) / 100));
}
const isBelow = (chance, other) => saidSteps(chance) < saidSteps(other);
const leastLevel = (chance) => stepped(Math.min(saidSteps(chance), Math.round(1 / FACTS.chance_step) - 1));

const stepped = (step) => Math.round(step * FACTS.chance_step * 100) / 100;
const levelZ = (confidence) => workOutCase(PROGRAMS.level, { confidence })("confidence_z");

// By confidence the very cheapest, with how sure it is in fact, in the layout that the choice takes of it; null where
// nothing is.
function byConfidence({ question, grid, best }) {
  const { even, sure } = FACTS.levels,
    asked = question.confidence;
  return [...new Set([even, asked, sure])]
    .sort((one, other) => one - other)
    .map((confidence) => {
      const isAsked = confidence === asked;
      if (isAsked && (grid.isEven || !best)) return null;
      const tables = isAsked ? "at_lowest_price" : confidence === even ? "at_even_chance" : "at_sure_chance";
      const level = readAgain(grid, tables),
        rental = picked(level);
      return rental && surely(level, confidence, rental);
    });
}

// What is least sure: memory or a time; the rate, where each alone is surer than all together.
function limitOf(read) {
  const least = CHANCES.reduce((found, name) => (read(`${name}_chance`) < read(`${found}_chance`) ? name : found));
  return read(`${least}_chance`) <= read("chance") + FACTS.of_search ? least : "rate";
}
const gpusOfReplica = (read) =>
  read("tensor_parallel_size") * read("data_parallel_size") * read("pipeline_stages");

// What is cheapest at a confidence, with how sure it is in fact.
function surely(grid, confidence, rental) {
  const read = paced(grid, rental.position);
  const measured = wasMeasured(grid, rental.position);
  return { confidence, ...rentalOnly(rental), measured, chance: read("chance"), gpus_per_replica: gpusOfReplica(read), limit: limitOf(read) };
}

// Whether the speed of an offer was measured: by the fit of the speed, or of this deployment itself.
const wasMeasured = (grid, position) =>
  grid.values("measured_scope", ["load", "offer"])[position] === FACTS.own_runs || readChosen(along(grid, position), "measured_tpot_factor") > 0;

// What is cheapest at the surest level below the confidence asked for at which the month is clearly less; where it is
// at none, at an even chance; null where no more was asked for, or nothing is served at what was.
function lessSure({ solved: { question, grid }, by_confidence, monthly_usd }) {
  const { levels, chance_step, judged, measure_first } = FACTS;
  const even = by_confidence.find((level) => level?.confidence === levels.even);
  if (!even || grid.isEven || !(levels.even < question.confidence)) return null;
  const isClear = (level) =>
    level.monthly_usd <= (1 - judged.clear_saving_of_chance_fraction) * monthly_usd * measure_first.about;
  if (!isClear(even)) return even;
  for (
    let step = Math.ceil(question.confidence / chance_step - 1e-9) - 1;
    step > Math.round(levels.even / chance_step);
    step--
  ) {
    const level = readAgain(atLevel(grid, levelZ(stepped(step))), "at_lowest_price"),
      rental = picked(level);
    const found = rental && surely(level, stepped(step), rental);
    if (found && isClear(found)) return found;
  }
  return even;
}

// What is rented with the chance of the same machines in a surer layout, where one was looked for.
function asSureAs(level, surer) {
  return surer && isSameRental(surer, level) ? { ...level, chance: Math.max(level.chance, surer.chance) } : level;
}

function verdictWithout({ grid }) {
  const isSlow = grid.values("n_instances", ["load", "offer"]).some((n) => n === 0);
  return isSlow ? FACTS.verdicts.slow : FACTS.verdicts.none;
}

// What would be rented in other precisions, at the confidence in force there, and how sure it is.
function inPrecision({ question }, precisions) {
  const grid = tablesOf({ ...question, ...precisions }, offersIn(question, question.purchase));
  return surelyRented(grid, pick(grid));
}

const surelyRented = (grid, rental, load = 0) =>
  rental && { ...rentalOnly(rental), chance: paced(grid, rental.position, load)("chance") };

// What would be rented so that a machine may fail; null where a loss is survived already.
function survivesMachine({ solved: { grid } }) {
  if (CONSTANTS.survive) return null;
  const after = readAgain(grid, "with_loss"),
    best = picked(after),
    chance_before = best && surelyRented(after.again({ survive: 0 }), best).chance; // the same machines, none of them lost
  return best && { ...surelyRented(after, best), chance_before, measured: wasMeasured(grid, best.position) };
}

// The whole answer but what is rented otherwise: see `waysToPayLess`.
function answer(asked) {
  const solved = recommended(completed(asked));
  const { question, grid, best } = solved;
  const record = {
    solved,
    question,
    model: question.model.id,
    weight_dtype: question.weights,
    kv_cache_dtype: question.kv,
    purchase: question.purchase,
    declined: solved.declined ?? null,
    by_confidence: byConfidence(solved),
    is_even: grid.isEven,
    tpot_target_seconds: question.workload.tpot_target_ms / CONSTANTS.milliseconds_per_second || null, // 0 is off
    ttft_target_seconds: question.workload.ttft_target_ms / CONSTANTS.milliseconds_per_second || null,
  };
  if (!best) return { ...record, verdict: verdictWithout(solved), chosen: null };
  const chosen = along(grid, best.position);
  chosen.workOut(PROGRAMS.answered);
  const rented = grid.again();
  rented.put(["load"], "read_per_second", [readChosen(chosen, "read_per_second")]);
  rented.workOut(PROGRAMS.peopleRead);
  const ofLoad = (name) => rented.values(name, ["load"])[0];
  const read = paced(grid, best.position);
  const isRate = question.isRate;
  const sizes = { tensor_parallel_size: read("tensor_parallel_size"), data_parallel_size: read("data_parallel_size") };
  const stages = read("pipeline_stages"),
    replicas = read("n_replicas");
  const gpus = replicas * sizes.tensor_parallel_size * sizes.data_parallel_size * stages;
  const atOnce = isRate ? read("in_flight_at_peak") : question.concurrent_requests;
  const [, usd, region, readOn] = MARKET.offers[best.offer],
    machine = machineOf(best.offer);
  const units = workOutCase(PROGRAMS.units, {
    ...question.workload,
    utilization: question.users ? FACTS.mean_over_peak : FACTS.utilization,
    users: ofLoad("users"),
    monthly_usd: best.monthly_usd,
    prefill_fraction: read("prefill_fraction"),
    output_tokens_per_second: read("load_tokens_per_second"),
  });
  return {
    ...record,
    verdict: "fits",
    chosen: best,
    ...rentalOnly(best),
    provider: machine[PROVIDER],
    region,
    price_as_of: readOn,
    hourly_usd: readChosen(chosen, "hourly_usd"),
    gpu: FACTS.gpus[machine[GPU]].id,
    gpu_name: FACTS.gpus[machine[GPU]].name,
    ...sizes,
    pipeline_parallel_size: stages,
    n_replicas: replicas,
    replicas_held: stages > 1 ? replicas : Math.round(best.n_instances * readChosen(chosen, "replicas_per_instance")),
    n_gpus: gpus,
    users: ofLoad("users"),
    requests_per_second: ofLoad("load_requests_per_second"),
    requests_per_hour: ofLoad("requests_per_hour"),
    concurrent_requests: atOnce,
    annual_usd: units("annual_usd"),
    units,
    chance: read("chance"),
    chance_of: Object.fromEntries(CHANCES.map((name) => [name, read(`${name}_chance`)])),
    sure_at: {
      requests: isRate
        ? read("rank_requests") * sizes.data_parallel_size
        : Math.min(read("rank_requests") * sizes.data_parallel_size, read("requests_per_replica")),
      ttft_seconds: read("fullest_ttft_seconds"),
      tpot_seconds: read("fullest_tpot_seconds"),
    },
    tpot_seconds: read("tpot_seconds"),
    ttft_seconds: read("ttft_seconds"),
    ttft_seconds_low: read("ttft_seconds_low"),
    ttft_seconds_high: read("ttft_seconds_high"),
    output_tokens_per_second: read("load_tokens_per_second"),
    bound_by: read("bound_by"),
    requests_per_replica: read("requests_per_replica"),
    gpus_per_replica: gpusOfReplica(read),
    limit: limitOf(read),
    chosenGrid: chosen,
    served_at_target: isRate
      ? readChosen(chosen, "served_requests_per_second")
      : readChosen(chosen, "served_at_target"),
    memory_holds: readChosen(chosen, "memory_holds"),
    cheapest: rentalOnly(best.cheapest),
    memory: {
      weights_bytes: read("weights_bytes") * replicas,
      kv_bytes: read("steady_bytes") * sizes.tensor_parallel_size * atOnce,
      overhead_bytes: (read("overhead_bytes_per_gpu") + read("loaded_weights_bytes_per_gpu") - read("weights_bytes_per_gpu")) * gpus,
      limit_bytes: read("memory_budget_bytes") * gpus,
    },
  };
}

// Ways to pay less --------------------------------------------------------------------------------------------------

// What would be rented for the published weights; null where these are in use.
const asPublished = (record) => (record.published === undefined ? (record.published = inPublished(record)) : record.published);

function inPublished({ solved }) {
  const { question } = solved,
    dtype = question.model.weights;
  if (question.weights === dtype) return null;
  const grid = tablesOf({ ...question, weights: dtype }, offersIn(question, question.purchase)),
    rental = surelyRented(grid, pick(grid));
  if (!rental) return { weight_dtype: dtype, instance: null, n_instances: null, monthly_usd: null };
  const chosen = along(grid, pick(grid).position);
  chosen.workOut(PROGRAMS.answered);
  const served_at_target = readChosen(chosen, question.isRate ? "served_requests_per_second" : "served_at_target");
  return { weight_dtype: dtype, ...rentalOnly(rental), chance: rental.chance, served_at_target };
}

// The best of each group that nobody asked for, and of what is sold on demand where the answer's class binds, where it
// costs clearly less than the answer or nothing was found; where that is less sure than the answer, after it the best that
// is as sure, or in its place where it rents the same.
function notAsked(record) {
  const { question } = record.solved,
    { binds } = FACTS.purchases[question.purchase];
  return [...ofGroups(record, question), ...(binds ? ofGroups(record, { ...question, purchase: ON_DEMAND }, true) : [])];
}

function ofGroups(record, question, isUnbound = false) {
  const { chance } = record,
    groups = offersBeyond(question, isUnbound);
  const offers = Object.values(groups).flat();
  if (!offers.length) return [];
  const others = tablesOf(question, offers),
    cheapest = cheaperAmong(record, others, groups);
  const kinds = cheapest.filter((other) => isBelow(other.chance, chance)).map(({ kind }) => kind);
  if (!kinds.length) return cheapest;
  const surer = cheaperAmong(record, atLevel(others, levelZ(leastLevel(chance))), groups)
    .filter((other) => kinds.includes(other.kind) && !isBelow(other.chance, chance));
  return [...cheapest.filter((one) => !surer.some((other) => isSameRental(one, other))), ...surer]; // the same in another layout
}

function cheaperAmong({ solved: { grid }, monthly_usd, n_instances }, others, groups) {
  const maySpan = grid.values("held_inside", ["load"])[0] === 0;
  const stages = others.values("pipeline_stages", ["load", "offer"]);
  const counts = others.values("n_instances", ["load", "offer"]);
  const most = Math.max(FACTS.judged.many_instances, n_instances ?? 0);
  const starts = Object.values(groups).map((group) => group.length);
  const firsts = starts.map((_, i) => starts.slice(0, i).reduce((sum, n) => sum + n, 0));
  return Object.keys(groups).flatMap((kind, i) => {
    const isIn = ({ instance }) => instance >= firsts[i] && instance < firsts[i] + starts[i];
    const clearly = (1 - FACTS.judged.clearly_cheaper_fraction) * monthly_usd;
    const pickOf = (n_machines) =>
      pick(
        others,
        others.offers.map((one, k) => Number(isIn(one) && (maySpan || stages[k] === 1) && counts[k] <= n_machines)),
      );
    const every = pickOf(Infinity);
    // Of very many machines only where fewer save nothing.
    const picks = every?.n_instances > most ? [pickOf(most), every] : [every];
    const best = picks.find((picked) => picked && (monthly_usd === undefined || picked.monthly_usd < clearly));
    return best
      ? [
          {
            kind,
            vendor: FACTS.gpus[machineOf(best.offer)[GPU]].vendor,
            gpu_name: FACTS.gpus[machineOf(best.offer)[GPU]].name,
            region: machineOf(best.offer)[ASSUMED] ? MARKET.offers[best.offer][REGION] : "",
            ...rentalOnly(best),
            chance: paced(others, best.position)("chance"),
          },
        ]
      : [];
  });
}

// What owning the GPUs of the answer takes, at the base price.
function owned({ solved, chosen, n_gpus, monthly_usd }) {
  const [capex, isModule, kilowatts, watts, isItPower, together] = FACTS.gpus[machineOf(chosen.offer)[GPU]].own;
  return workOutCase(PROGRAMS.owning, {
    ...FACTS.owning,
    n_gpus,
    utilization: solved.question.users ? FACTS.mean_over_peak : FACTS.utilization,
    capex_usd_per_gpu: capex,
    is_module_price: isModule,
    stated_kw_per_gpu: kilowatts,
    rated_watts: watts,
    is_it_power: isItPower,
    sold_together: together,
    on_demand_hourly_usd: NaN,
    monthly_usd,
  });
}

// The tokens that a host is paid for in a month.
const hostedTokens = ({ question, units, users }) =>
  workOutCase(PROGRAMS.hostedTokens, {
    ...question.workload,
    requests_per_second: question.isRate ? question.rate : 0,
    users,
    million_output_tokens_per_month: units("million_output_tokens_per_month"),
  });

// The hosts of the model that accept the prompt, each at its lowest price for a month's tokens, the cheapest first.
function hostsOf(record) {
  const { question } = record,
    tokens = hostedTokens(record),
    best = new Map();
  for (const price of question.model.hosts) {
    const read = workOutCase(PROGRAMS.hosted, {
      hosted_million_input_tokens: tokens("hosted_million_input_tokens"),
      hosted_million_output_tokens: tokens("hosted_million_output_tokens"),
      input_tokens: question.workload.input_tokens,
      cached_fraction: question.cached_fraction,
      input_usd_per_million: price.input_usd_per_million,
      cached_usd_per_million: price.cached_usd_per_million,
      output_usd_per_million: price.output_usd_per_million,
      max_input_tokens: price.max_input_tokens,
    });
    const monthly_usd = read("hosted_monthly_usd"),
      cents = read("hosted_monthly_cents"),
      { host } = price;
    if (monthly_usd === monthly_usd && !(best.has(host) && best.get(host).cents <= cents))
      best.set(host, { ...price, monthly_usd, cents });
  }
  return [...best.values()].sort((one, other) => one.cents - other.cents || (one.host < other.host ? -1 : 1));
}

// The hosts that are named, found once for a record.
const hostsTold = (record) => (record.hosted ??= hostsOf(record).slice(0, FACTS.hosts_told));

// FP8 weights, an FP8 KV cache, and weights in 4 bits where such a checkpoint is known.
function* lowerPrecisions(record) {
  const { solved } = record,
    { question } = solved,
    { lower, precisions } = FACTS,
    { checkpoints } = question.model;
  const bytesOf = (name, dtype) => COLUMNS.find((column) => column.name === name).data[precisions.indexOf(dtype)];
  const isFewer = (name, used, dtype) => bytesOf(name, dtype) < bytesOf(name, used);
  const weightsIn = (dtype) =>
    lower.weights.includes(dtype) && isFewer("linear_bytes", question.weights, dtype)
      ? inPrecision(solved, { weights: dtype })
      : null;
  const atFp8 = weightsIn(lower.fp8);
  if (atFp8) yield { kind: "fp8_weights", ...atFp8, detail: checkpoints[lower.fp8] ?? "" };
  const kept =
    lower.kv.includes(lower.fp8) && isFewer("kv_dtype_bytes", question.kv, lower.fp8)
      ? inPrecision(solved, { kv: lower.fp8 })
      : null;
  if (kept) yield { kind: "kv_fp8", ...kept, detail: "" };
  const held = Object.keys(checkpoints).find((dtype) => bytesOf("linear_bytes", dtype) < 1);
  if (!held) return;
  const [least] = lower.fp4
    .map(weightsIn)
    .filter(Boolean)
    .sort((one, other) => one.monthly_usd - other.monthly_usd);
  if (least) yield { kind: "four_bits", ...least, detail: checkpoints[held] };
}

// What is rented in the other purchase classes, found once for a record: in all that hold the load, and in those that
// save.
const heldOf = (record) => (record.held ??= heldByPurchase(record.solved));
const classesOf = (record) => (record.classes ??= inSurerLayouts(record, byPurchase(record.solved, heldOf(record))));

// The same where a commitment that is less sure than the answer rents the same machines in a surer layout; surerTerms,
// of the record: by such a class what is rented there that is as sure.
function inSurerLayouts(record, classes) {
  const { question } = record.solved,
    { chance } = record,
    doubted = Object.keys(classes).filter((name) => FACTS.purchases[name].months && classes[name] && isBelow(classes[name].chance, chance));
  record.surerTerms = {};
  if (!doubted.length) return classes;
  const level = atLevel(onGpusOfClasses(record.solved), levelZ(leastLevel(chance)));
  for (const name of doubted) {
    const rental = rentedIn(question, level, name);
    if (rental && !isBelow(rental.chance, chance)) record.surerTerms[name] = rental;
  }
  const surely = ([name, rental]) => (record.surerTerms[name] && isSameRental(rental, record.surerTerms[name]) ? record.surerTerms[name] : rental);
  return Object.fromEntries(Object.entries(classes).map((one) => [one[0], surely(one)]));
}

// Every way to pay less for the same load, the mildest first.
function* everyWay(record) {
  const { solved, purchase } = record,
    { judged, purchases } = FACTS;
  const less = lessSure(record);
  record.by_confidence = record.by_confidence.map((level) => level && asSureAs(level, less));
  if (less) yield { kind: "less_sure", ...less, detail: "" };
  yield* lowerPrecisions(record);
  const { offer, instance, n_instances } = record.chosen,
    { chance } = record;
  const classes = classesOf(record),
    isUsual = purchase === ON_DEMAND;
  const usual = isUsual ? { offer, instance, n_instances, monthly_usd: record.monthly_usd, chance } : classes[ON_DEMAND];
  if (usual)
    yield {
      kind: "hours",
      ...usual,
      monthly_usd: (usual.monthly_usd * judged.working_hours_per_month) / CONSTANTS.hours_per_month,
      detail: isUsual ? "" : ON_DEMAND,
    };
  const [term] = Object.entries(classes)
    .filter(([name, rental]) => rental && purchases[name].months)
    .sort(([, one], [, other]) => one.monthly_usd - other.monthly_usd);
  if (term) yield termOf(record, ...term);
  for (const kind of FACTS.not_requested) {
    const others = othersOf(record, kind);
    if (others.length) yield fromOthers(kind, others);
  }
  const own = owned(record);
  yield {
    kind: "own",
    monthly_usd: own("monthly_owned_usd"),
    commits_usd: own("owned_capex_usd"),
    hardware_usd: own("owned_hardware_usd"),
    pays_after_months: own("owning_pays_off_month"),
    detail: `${own("n_owned_gpus")} ${record.gpu}`,
  };
  const [host] = hostsTold(record);
  if (host) yield { kind: "hosted", monthly_usd: host.monthly_usd, detail: host.host, host: host.name };
}

// A commitment: what it binds, and how many months on demand cost as much.
function termOf(record, name, rental) {
  const commits_usd = FACTS.purchases[name].months * rental.monthly_usd,
    usual = record.purchase === ON_DEMAND ? record : (classesOf(record)[ON_DEMAND] ?? record);
  return { kind: "term", ...rental, commits_usd, pays_after_months: commits_usd / usual.monthly_usd, detail: name };
}

// What nobody asked for, found once for a record; and the way that it is: the cheapest near what was asked for, and
// what is cheaper still.
const elsewhereOf = (record) => (record.elsewhere ??= notAsked(record));
const othersOf = (record, kind) => elsewhereOf(record).filter((one) => (one.kind === FACTS.unbound) === (kind === FACTS.unbound));
function fromOthers(way, others) {
  const [least, ...more] = [...others].sort((one, other) => one.monthly_usd - other.monthly_usd),
    other = [least, ...more].find(({ kind }) => FACTS.near.includes(kind)) ?? least;
  return { ...other, kind: way, detail: other.kind, other, further: other === least ? null : least };
}

// The money that a way binds where it is rented in the answer's class.
function boundAs(record, way) {
  const { months } = FACTS.purchases[record.purchase];
  return months && FACTS.sold_as_answer.includes(way.kind) ? { ...way, commits_usd: months * way.monthly_usd } : way;
}

// Those that save, none that rents the same as another; tried, of the record: by kind that was worked out why it is none.
function waysToPayLess(record) {
  record.tried = new Map();
  const rentalKey = ({ instance, n_instances, monthly_usd }) => `${instance} ${n_instances} ${monthly_usd.toFixed(2)}`;
  const ways = [],
    taken = new Set([rentalKey(record)]);
  for (const way of [...everyWay(record)].map((one) => boundAs(record, one))) {
    const least = FACTS.judged[way.kind === "less_sure" ? "least_saving_of_chance_fraction" : "least_saving_fraction"];
    const key = rentalKey(way),
      isSaving = way.monthly_usd <= (1 - least) * record.monthly_usd;
    const reason = isSaving ? "no_other" : reasonAgainst(way, record);
    if (way.monthly_usd === way.monthly_usd) record.tried.set(way.kind, { reason, way });
    if (ways[0]?.kind === "less_sure" && way.kind === "fp8_weights" && key === rentalKey(ways[0])) ways[0] = way;
    else if (!taken.has(key) && isSaving) {
      taken.add(key);
      ways.push(way);
    }
  }
  return ways;
}

// Why a way that saves too little is none.
const reasonAgainst = ({ kind, monthly_usd, chance }, record) =>
  isBelow(record.chance, chance) && monthly_usd - record.monthly_usd < CENT
    ? "surer"
    : monthly_usd >= record.monthly_usd ? "costs_more" : kind === "less_sure" ? "no_less_sure" : "no_less";

// Beside the best term the other ones, and spot, where they save as a way to pay less does.
function otherClasses(record, ways) {
  const { purchases, judged } = FACTS,
    most = (1 - judged.least_saving_fraction) * record.monthly_usd,
    classes = classesOf(record),
    best = ways.find(({ kind }) => kind === "term");
  return Object.entries(classes)
    .filter(([name, rental]) => rental && name !== record.purchase && name !== best?.detail && rental.monthly_usd <= most)
    .filter(([name]) => name === SPOT || (purchases[name].months && best))
    .map(([name, rental]) => (name === SPOT ? { kind: SPOT, ...rental, detail: name } : termOf(record, name, rental)));
}

// For the term and for what nobody asked for, where no way of that kind is as sure as the answer, the cheapest that is.
function asSureWays(record, ways) {
  const most = (1 - FACTS.judged.least_saving_fraction) * record.monthly_usd,
    isAsSure = (one) => !isBelow(one.chance, record.chance),
    terms = [...ways, ...otherClasses(record, ways)].filter(({ kind }) => kind === "term"),
    surer = [];
  if (terms.length && !terms.some(isAsSure)) {
    const [term] = Object.entries(record.surerTerms)
      .filter(([, rental]) => rental.monthly_usd <= most)
      .sort(([, one], [, other]) => one.monthly_usd - other.monthly_usd);
    if (term) surer.push(termOf(record, ...term));
  }
  for (const way of ways.filter(({ kind }) => FACTS.not_requested.includes(kind))) {
    const others = othersOf(record, way.kind).filter(isAsSure);
    if (others.length && ![way.other, way.further].some((one) => one && isAsSure(one))) surer.push(boundAs(record, fromOthers(way.kind, others)));
  }
  return surer;
}

// The cheapest way with the same answers, as sure, at all hours, on machines that are kept and that were requested: a
// commitment; null where none is. rows: of the table.
function cheapestSame(record, rows) {
  const same = rows.filter(({ kind, chance }) => kind === "term" && !isBelow(chance, record.chance));
  return same.sort((one, other) => one.monthly_usd - other.monthly_usd)[0] ?? null;
}

// Every way to pay less as a table has them, the cheapest first: with the other terms, and spot.
const rowsOfWays = (record, ways) =>
  [...ways, ...otherClasses(record, ways), ...asSureWays(record, ways)].sort((one, other) => one.monthly_usd - other.monthly_usd);

// The ways that are no rows, with the reason why: their kinds, or purchase classes; rental: of a class what is rented
// there for no less.
function* absentWays(record, rows) {
  const { question, purchase } = record,
    { lower, precisions, terms } = FACTS;
  const bytesOf = (name, dtype) => COLUMNS.find((column) => column.name === name).data[precisions.indexOf(dtype)];
  const whyNot = (name, used, dtype) => (used === dtype ? "in_use" : bytesOf(name, dtype) < bytesOf(name, used) ? "not_held" : "as_few");
  const isHeldIn4Bits = Object.keys(question.model.checkpoints).some((dtype) => bytesOf("linear_bytes", dtype) < 1);
  const untried = {
    less_sure: "at_even",
    fp8_weights: whyNot("linear_bytes", question.weights, lower.fp8),
    kv_fp8: whyNot("kv_dtype_bytes", question.kv, lower.fp8),
    four_bits: bytesOf("linear_bytes", question.weights) < 1 ? "in_use" : isHeldIn4Bits ? "not_held" : "no_checkpoint",
    hours: "no_price",
    provider: "not_clearly",
    unbound: FACTS.purchases[purchase].binds ? "not_clearly" : "",
    own: "no_purchase_price",
    hosted: "no_host",
  };
  for (const [kind, why] of Object.entries(untried))
    if (why && !rows.some((row) => row.kind === kind)) {
      const { reason, way } = record.tried.get(kind) ?? { reason: why };
      yield { kind, reason, rental: way };
    }
  for (const kind of [...Object.keys(terms), SPOT]) {
    if (kind === purchase || rows.some((row) => row.kind === kind || row.detail === kind)) continue;
    const offers = offersIn(question, kind),
      rental = heldOf(record)[kind],
      isSold = offers.some((offer) => machineOf(offer)[INSTANCE] === record.instance);
    if (!offers.length) yield { kind, reason: "no_price" };
    else if (!rental) yield { kind, reason: "not_held" };
    else yield { kind, reason: isSold ? reasonAgainst({ kind, ...rental }, record) : "dearer", rental };
  }
}

// The same in words, those of one reason together; nothing where every way is a row.
function absentWords(record, rows) {
  const { question } = record,
    { judged, absent_names: names, purchases, gpus } = FACTS,
    byReason = new Map(),
    gpuOf = ({ offer }) => gpus[machineOf(offer)[GPU]],
    ownable = rows.find((row) => row.kind === "term" && gpuOf(row).own[0] !== null);
  for (const { kind, reason, rental } of absentWays(record, rows)) {
    const words = say(`absent_${reason}`, {
      least: judged.least_saving_fraction,
      least_sure: judged.least_saving_of_chance_fraction,
      clearly: judged.clearly_cheaper_fraction,
      area: areaWords(question.region),
      providers: question.providers.map((id) => MARKET.providers[id]).join(", "),
      machine: rentWords({ ...record, n_instances: 1 }).replace(/^1 . /, ""),
      gpu: record.gpu_name,
      other_gpu: ownable ? gpuOf(ownable).name : "",
      term: ownable ? FACTS.terms[ownable.detail] : "",
      rent: rental?.instance ? rentWords(rental) : "",
      month: rental ? dollars(rental.monthly_usd) : "",
      sure: rental?.chance === undefined ? "" : sureWords(rental.chance),
    });
    byReason.set(words, [...(byReason.get(words) ?? []), names[kind] ?? purchases[kind].words]);
  }
  return [...byReason].map(([reason, kinds]) => capital(say("absent", { names: kinds.join(", "), reason })));
}

// The name of an area, or of a region itself; of none the default's.
const areaWords = (region) => FACTS.areas[region || FACTS.default_area] ?? region;

// Whether something less sure gives up certainty: that which was asked for, as far as the answer has it.
const givesUpCertainty = (chance, record) => isBelow(chance, Math.min(record.question.confidence, record.chance));

// What a way keeps of the answer's quality and certainty, in words.
function keepsWords(way, record) {
  const { kind, chance } = way,
    { model, weights } = record.question,
    own = record.chance;
  return say("keeps", {
    changed: FACTS.changed_by[kind] ?? "",
    precision: kind === "hosted" ? (hostsTold(record)[0].precision?.toUpperCase() ?? "") : "",
    weights: weightsName(model, weights),
    is_hosted: Number(kind === "hosted"),
    sure: chance === undefined || (!isBelow(chance, own) && !isBelow(own, chance)) ? "" : sureWords(chance),
    is_less: Number(chance !== undefined && givesUpCertainty(chance, record)),
  });
}

// What a way commits to, in words.
function commitsWords({ kind, commits_usd, detail }, { purchase }) {
  const months = FACTS.purchases[kind === "term" ? detail : purchase].months,
    isTerm = kind === "term" || FACTS.sold_as_answer.includes(kind);
  return say("commits", {
    usd: commits_usd ? dollars(commits_usd) : "",
    months: isTerm ? months : 0,
    years: kind === "own" ? String(FACTS.owning.owned_years) : "",
  });
}

// What is tried first of looser targets, as `recommend` tries them: those of the token, of the first word, of both.
const LOOSER = [["slower-tokens", ["tpot"]], ["later-first-token", ["ttft"]], ["slower-and-later", ["tpot", "ttft"]]];

// A time as somebody would promise it: 7,144 ms is 7,200.
function toTwoFigures(ms) {
  const unit = Math.max(1, 10 ** (Math.floor(Math.log10(ms)) - 1));
  return Math.ceil(ms / unit - 1e-12) * unit;
}

// Where nothing serves the targets, the tightest ones that anything serves: the first kind that is any help, and what
// is rented then; null where no looser target helps.
function fastestOf({ question, chosen }) {
  if (chosen) return null;
  const { tried_targets: tried } = FACTS,
    now = { tpot: question.workload.tpot_target_ms, ttft: question.workload.ttft_target_ms };
  const served = (targets) => {
    const asked = { ...question, model: question.model.id };
    for (const [name, ms] of Object.entries(targets)) asked[`${name}_ms`] = ms;
    const solved = solve(completed(asked));
    return solved.best && { solved, targets, best: solved.best };
  };
  for (const [lever, [first, second]] of LOOSER) {
    if (!(now[first] && (!second || now[second]))) continue;
    const withOther = (ms) => (second ? { [second]: tried[second].find((one) => one * now[first] >= now[second] * ms) } : {});
    const steps = tried[first].map((ms) => ({ [first]: ms, ...withOther(ms) })).filter((one) => one[first] > now[first] && (!second || one[second]));
    if (!steps.length || !served(steps.at(-1))) continue;
    let found = null;
    for (const step of steps) if ((found = served(step))) break;
    const before = Math.max(now[first], ...tried[first].filter((ms) => ms < found.targets[first]));
    const finer = [];
    for (let ms = toTwoFigures(before * (1 + 1e-9)); ms <= found.targets[first]; ms = toTwoFigures(ms * (1 + 1e-9)))
      finer.push({ [first]: ms, ...(second ? { [second]: toTwoFigures((now[second] * ms) / now[first]) } : {}) });
    if (!second) finer.pop();
    finer.push(found.targets);
    let [low, high] = [0, finer.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1,
        one = served(finer[middle]);
      if (one && !isLess(found.best, one.best)) [high, found] = [middle, one];
      else low = middle + 1;
    }
    const { solved, best, targets } = found;
    return { lever, targets, now, ...surelyRented(solved.grid, best) };
  }
  return null;
}

// Whether a choice costs less than another, and the very cheapest does, too.
const isLess = (one, other) => [[one, other], [one.cheapest, other.cheapest]].every(([x, y]) => y.monthly_usd - x.monthly_usd > CENT / 2);
const CENT = 0.01;

// The tightest targets that anything serves in words: what is taken, and what is rented then.
function fastestWords(fastest) {
  if (!fastest) return null;
  const { lever, targets, now } = fastest;
  const time = (ms) => (ms === undefined ? "" : ms < 1000 ? `${fixed(ms, 0)} ms` : `${secondsWords(ms / 1000)} s`);
  const changed = say(lever.replaceAll("-", "_"), {
    pace: String(targets.tpot ?? ""),
    pace_now: String(now.tpot),
    first: time(targets.ttft),
    first_now: time(now.ttft),
  });
  return {
    fastest: say("fastest", {
      changed,
      rent: rentWords(fastest),
      provider: providerOf(fastest.instance),
      month: dollars(fastest.monthly_usd),
      sure: sureWords(fastest.chance),
    }),
    take_target: say("take_target", { changed }),
    targets,
  };
}

// Whether the speed of the answer's hardware was measured; and of what was not the cheapest that was, null where none is.
function measuredHardware({ solved: { grid }, chosen, by_confidence }) {
  const hasRuns = grid.values("measured_scope", ["load", "offer"]).map((scope) => scope === FACTS.own_runs);
  const measured = wasMeasured(grid, chosen.position);
  const other = measured ? null : pick(grid, hasRuns.map(Number))?.cheapest;
  const isOther = other && !(other.instance === chosen.instance && other.n_instances === chosen.n_instances);
  return { measured, other: isOther ? by_confidence.filter(Boolean).reduce(asSureAs, surelyRented(grid, other)) : null };
}

// Why one should measure before renting, by the names of the sentences that say so.
function measureFirst(record) {
  if (!record.chosen) return [];
  const { measure_first: most, levels } = FACTS,
    { about } = most,
    asked = record.question.confidence;
  const usd = (confidence) => record.by_confidence.find((level) => level?.confidence === confidence)?.monthly_usd;
  const even = usd(levels.even),
    sure = usd(levels.sure);
  const reasons = {
    impossible: record.is_even,
    asked_dear: usd(asked) > most.asked * even * about,
    one_each:
      record.n_instances > most.machines && record.requests_per_replica <= 1 && asked > levels.even && !record.is_even,
    sure_impossible: sure === undefined,
    sure_dear: sure > most.sure * even * about,
  };
  return Object.keys(reasons).filter((reason) => reasons[reason]);
}

// In words ----------------------------------------------------------------------------------------------------------

const count = (number) => number.toLocaleString("en-US");
const dollars = (usd) => FACTS.currency.prefix + groupedText(usd * FACTS.currency.rate);

// How much one sum is above another as both are shown, in US dollars.
function moreThan(usd, other) {
  const { rate } = FACTS.currency,
    inWhole = (one) => Number(wholeText(one * rate));
  return (inWhole(usd) - inWhole(other)) / rate;
}
const fixed = (number, decimals) =>
  number.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

// Numbers as texts that add up to their sum as it is shown: the one in the place `rest` is what the others leave of it.
function addingUp(numbers, decimals, rest) {
  const unit = 10 ** -decimals,
    inUnits = (number) => Math.round(number / unit),
    others = numbers.reduce((sum, number, i) => sum + (i === rest ? 0 : inUnits(number)), 0),
    left = inUnits(numbers.reduce((sum, number) => sum + number, 0)) - others;
  return numbers.map((number, i) => fixed((i === rest ? Math.max(0, left) : inUnits(number)) * unit, decimals));
}

// A sentence with these values; what is not given is none.
function say(name, values) {
  const { inputs, say: sentence } = SENTENCES[name];
  return sentence(...inputs.map((input) => values[input] ?? NaN));
}

const sureWords = (chance) => say("sure", { chance, chance_step: FACTS.chance_step });
const roundedWords = (chance) => say("rounded_chance", { chance, chance_step: FACTS.chance_step });
function rentWords({ instance, n_instances }) {
  const type = instance.slice(instance.indexOf("/") + 1);
  return say("rent", { n_instances, instance: /^[0-9]+x /.test(type) ? `(${type})` : type });
}
const providerOf = (instance) => MARKET.providers[instance.slice(0, instance.indexOf("/"))];

// A precision of a model's weights as it is said: FP8; of a checkpoint that mixes two, FP4 experts, FP8 rest.
const weightsName = (model, dtype) => model.weights_names[dtype] ?? dtype.toUpperCase();

// What nobody requested: H100 NVL at Azure, or of another vendor AMD MI300X at Azure; where its machine is assumed its
// region, too.
const otherWords = ({ kind, vendor, gpu_name, instance, region }) => {
  const provider = providerOf(instance);
  return say("other", { vendor: kind === "vendor" ? FACTS.vendors[vendor] : "", gpu_name, provider, region });
};

// Which way is the best where nothing but the way to pay may change. rows: of the table.
function cheapestWords(record, rows) {
  const best = cheapestSame(record, rows),
    hours = rows.find(({ kind }) => kind === "hours"),
    other = cheaperElsewhere(record, rows, best);
  return say("cheapest_same", {
    ...(best ? wayWords(best, record) : { what: "", gives_up: "" }),
    month: best ? dollars(best.monthly_usd) : "",
    rent: best ? placeWords(best) : "",
    hours_month: hours ? dollars(hours.monthly_usd) : "",
    hours_sure: hours && sureWords(hours.chance) !== sureWords(record.chance) ? sureWords(hours.chance) : "",
    is_both: Number(Boolean(best && hours)),
    other_provider: other ? providerOf(other.instance) : "",
    other_month: other ? dollars(other.monthly_usd) : "",
    other_sure: other ? sureWords(other.chance) : "",
    purchase: other?.kind === FACTS.unbound ? "" : record.purchase,
    is_free: Number(other?.kind === FACTS.unbound || !FACTS.purchases[record.purchase].binds),
  });
}

// The cheapest at a provider that was not requested, at least as sure as the answer, where it costs less than the best
// way at those that were.
function cheaperElsewhere(record, rows, best) {
  const ways = rows.filter(({ kind }) => FACTS.not_requested.includes(kind)),
    { monthly_usd: most } = best ?? record;
  return ways
    .flatMap(({ other, further }) => [other, further])
    .filter((one) => one && FACTS.of_suppliers.includes(one.kind) && !isBelow(one.chance, record.chance) && one.monthly_usd < most)
    .sort((one, other) => one.monthly_usd - other.monthly_usd)[0];
}

// A way to pay less: what it is, and what it gives up.
function wayWords(way, record) {
  const { judged, gpus } = FACTS;
  const { confidence } = record.question;
  const sure = record.by_confidence.find((level) => level?.confidence === FACTS.levels.sure);
  // Its certainty where it, or the answer's, is below what was requested, where it is below the answer's, and where it
  // is surer than the answer for less than what is sure costs.
  const told = ({ chance, monthly_usd }) => {
    if (chance === undefined) return "";
    const isSurer = isBelow(record.chance, chance) && !(sure && monthly_usd >= sure.monthly_usd);
    const isShort = isBelow(record.chance, confidence) || isBelow(chance, Math.max(confidence, record.chance));
    return way.kind === "less_sure" || isSurer || isShort ? sureWords(chance) : "";
  };
  const gpu = gpus.find(({ id }) => id === record.gpu);
  const values = {
    detail: way.detail,
    sure: told(way),
    is_less_sure: Number(givesUpCertainty(way.chance, record)),
    owned_gpus: `${way.detail.split(" ")[0]}x ${gpu.name}`,
    term: FACTS.terms[way.detail] ?? "",
    other_class: way.kind === "hours" ? way.detail : "",
    other: way.other ? otherWords(way.other) : "",
    further: way.further ? otherWords(way.further) : "",
    further_usd: way.further ? dollars(way.further.monthly_usd) : "",
    further_sure: way.further ? told(way.further) : "",
    host: way.host ?? "",
    hours: String(CONSTANTS.hours_per_month),
    commits_usd: dollars(way.commits_usd ?? 0),
    hardware: dollars(way.hardware_usd ?? 0),
    running: dollars(moreThan(way.monthly_usd, way.hardware_usd ?? 0)),
    owned_years: String(FACTS.owning.owned_years),
    months: fixed(way.pays_after_months ?? 0, way.kind === "own" ? 0 : 1),
    working_hours: String(judged.working_hours_per_month),
    start_minutes: String(judged.start_minutes),
  };
  return { what: say(`way_${way.kind}`, values), gives_up: say(`gives_up_${way.kind}`, values) };
}

// $ per million tokens: 0.13, 1.00, 0.0375; of what is worked out no more than it is known by.
function perMillion(usd, most = 4) {
  const { prefix, rate } = FACTS.currency;
  return prefix + (usd * rate).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: most });
}

// A host in words: texts by the names of the columns that show them.
function hostWords({ name, precision, deprecation_date, monthly_usd, read_on, source, ...price }) {
  const cached = price.cached_usd_per_million;
  return {
    host: name,
    month: dollars(monthly_usd),
    prompt: say("host_prompt", { usd: perMillion(price.input_usd_per_million), cached: cached === null ? "" : perMillion(cached) }),
    answer: perMillion(price.output_usd_per_million),
    precision: say("host_precision", { precision: precision?.toUpperCase() ?? "", until: deprecation_date ?? "" }),
    day: read_on,
    source: source ?? "",
  };
}
const HOST_HEADS = ["Host", "A month", "Prompt, 1M tokens", "Answer, 1M tokens", "Precision", "Price read", "Source"];

// Above the hosts: what they take is for, and what one gives up; or that there is none.
function hostedWords(record) {
  const { question, users } = record,
    tokens = hostedTokens(record),
    millions = (side) => rateWords(tokens(`hosted_million_${side}_tokens`));
  return say("hosted", {
    gives_up: hostsTold(record).length ? say("gives_up_hosted", {}) : "",
    origin: FACTS.hosted_origin,
    day: hostsTold(record)[0]?.read_on ?? "",
    people: users >= 1 && (question.users || !question.isRate) ? count(users) : "",
    times: String(question.workload.requests_per_user_per_day),
    is_at_once: Number(!question.isRate),
    at_once: question.isRate ? "" : count(question.concurrent_requests),
    prompts: millions("input"),
    answers: millions("output"),
    usd: question.users ? perMillion(record.units("usd_per_million_tokens"), 2) : "",
  });
}

// The level of confidence that a reason to measure first names, in words.
function levelWords(record, reason) {
  const levels = record.by_confidence.filter(Boolean),
    level = reason === "sure_dear" ? levels.at(-1) : levels[0];
  return level ? { usd: dollars(level.monthly_usd), rent: rentWords(level), sure: sureWords(level.chance) } : {};
}

// A time: 53, 1.9, 0.48. Tokens a second: 640, 0.31. A rate: three digits, 4.5.
const secondsWords = (seconds) => fixed(seconds, seconds >= 10 ? 0 : seconds >= 1 ? 1 : 2);
const paceWords = (pace) => fixed(pace, pace >= 1 ? 0 : 2);
const rateWords = (rate) =>
  rate.toLocaleString("en-US", { maximumFractionDigits: rate >= 99.95 ? 0 : rate >= 9.995 ? 1 : rate >= 0.1 ? 2 : 4 });

const waitValues = ({ question, ttft_seconds, tpot_seconds, ttft_target_seconds: ttft, tpot_target_seconds: tpot }) => ({
  low: "", // the request alone says how far it ranges
  high: "",
  is_peak: Number(question.isRate),
  is_mean: 0,
  first: secondsWords(ttft_seconds),
  pace: paceWords(1 / tpot_seconds),
  first_target: ttft ? secondsWords(ttft) : "",
  pace_target: tpot ? paceWords(1 / tpot) : "",
});

// The first word of a request alone, times with every place taken, and when the last of all people has the first word and
// the answer who ask at the same moment and take each place that becomes free.
function waitsOf(record) {
  const {
    solved: { question, grid },
    chosen,
  } = record;
  const full = along(grid, chosen.position);
  full.workOut(PROGRAMS.chosen);
  full.workOut(PROGRAMS.answered);
  const alone = readAgain(full, "prompts_alone"),
    together = full.again({ closed_loop: 1 });
  full.workOut(PROGRAMS.waits);
  together.workOut(PROGRAMS.waits);
  const places = readChosen(full, "served_at_target"),
    people = question.users,
    last = people > places ? readChosen(together, "last_ttft_seconds") : null,
    ttft_full_seconds = readChosen(full, "full_ttft_seconds"),
    turn_seconds = turnSeconds(full, question);
  return {
    ttft_alone_seconds: readChosen(alone, "service_ttft_seconds"),
    ttft_full_seconds,
    tpot_full_seconds: readChosen(full, "full_tpot_seconds"),
    places,
    same_moment: people ? { people, turn_seconds, last_ttft_seconds: last, last_answer_seconds: last === null ? null : last - ttft_full_seconds + turn_seconds } : null,
    ...(question.isRate ? chanceWaits(full, record) : NO_WAITS),
  };
}

// How long a request keeps its place with every place taken.
const turnSeconds = (full, { workload }) =>
  readChosen(full, "full_ttft_seconds") + Math.max(0, workload.output_tokens - 1) * readChosen(full, "full_tpot_seconds");

const NO_WAITS = { wait_fraction: null, mean_wait_seconds: null, late_ttft_seconds: null, p99_ttft_seconds: null, cleared_per_hour_less_machine: null };

// The share of requests that find every place taken, and how long they wait on average, null where more is offered than
// there are places; the first word of 99 in 100; and what the other machines clear when one fails.
function chanceWaits(grid, { replicas_held, n_replicas, n_instances, pipeline_parallel_size: stages }) {
  const [load, paced_requests, offered_requests, full_turn_seconds, replica_prefill_seconds] = [
    "load_requests",
    "paced_requests",
    "offered_requests",
    "full_turn_seconds",
    "replica_prefill_seconds",
  ].map((name) => readChosen(grid, name));
  const n_places = Math.ceil(load / paced_requests) * paced_requests,
    wait_fraction = waitFraction(n_places, offered_requests),
    late = readChosen(grid, "full_ttft_seconds") * readChosen(grid, "ttft_level_factor");
  const clearing_replicas = stages > 1 ? n_replicas - 1 : (replicas_held * (n_instances - 1)) / n_instances,
    cleared = workOutCase(PROGRAMS.cleared, { clearing_replicas, paced_requests, full_turn_seconds, replica_prefill_seconds })("cleared_per_second"),
    cleared_per_hour_less_machine = cleared * CONSTANTS.seconds_in_an_hour;
  if (!(n_places > offered_requests)) return { ...NO_WAITS, wait_fraction, cleared_per_hour_less_machine };
  const few_fraction = FACTS.few_fraction,
    read = workOutCase(PROGRAMS.chanceWaits, { full_turn_seconds, n_places, offered_requests, wait_fraction, few_fraction }),
    mean_wait_seconds = read("mean_wait_seconds");
  return {
    wait_fraction,
    mean_wait_seconds,
    late_ttft_seconds: mean_wait_seconds + late,
    p99_ttft_seconds: read("few_wait_seconds") + late,
    cleared_per_hour_less_machine,
  };
}

// By Erlang-C: see `exact_wait_fraction`.
function waitFraction(places, offered) {
  if (!(offered > 0)) return 0;
  if (places <= offered) return 1;
  let [term, inverse] = [1, 1];
  for (let left = places; left > 0; left--) {
    term *= left / offered;
    inverse += term;
    if (left < offered && term < 1e-17 * inverse) break;
    if (inverse > 1e300) return 0;
  }
  return 1 / inverse / (1 - (offered / places) * (1 - 1 / inverse));
}

const LEAST_WAIT = 1e-4; // a share of the requests; one below it is not said in digits
const shareWords = (share) => (share < LEAST_WAIT ? `under ${100 * LEAST_WAIT}%` : `${Number((100 * share).toPrecision(2))}%`);

// First words at the confidence with every place taken, and the wait before them; without a time where the load is no
// rate.
function slowValues(record) {
  const { wait_fraction: share, mean_wait_seconds: mean, late_ttft_seconds: late, p99_ttft_seconds: p99 } = waitsOf(record);
  if (late === null) return { mean_wait: "" };
  const most = CONSTANTS.max_wait_fraction;
  return {
    confidence: confidenceOf(record),
    full: secondsWords(late - mean),
    share: shareWords(share),
    limit: share > most && shareWords(share) !== shareWords(most) ? shareWords(most) : "",
    mean_wait: secondsWords(mean),
    all_but_few: share > FACTS.few_fraction ? secondsWords(p99) : "",
  };
}

// The level at which an answer is worked out.
const confidenceOf = (record) => (record.is_even ? FACTS.levels.even : record.question.confidence);

// A length of time in the largest unit of which it has two.
function spanWords(seconds) {
  const [name, of] = [["days", 86_400], ["hours", 3600], ["minutes", 60], ["seconds", 1]].find(([, of]) => seconds >= 2 * of || of === 1);
  return `${fixed(seconds / of, 0)} ${name}`;
}

function waitWords(record) {
  const waits = waitsOf(record),
    { question, chance_of } = record,
    { output_tokens } = question.workload,
    together = waits.same_moment;
  return {
    waits: say("waits", {
      output_tokens,
      alone: secondsWords(waits.ttft_alone_seconds),
      full: secondsWords(waits.ttft_full_seconds),
      pace: paceWords(1 / waits.tpot_full_seconds),
      first_target: waitValues(record).first_target,
      sure: sureWords(chance_of.ttft),
      share: waits.wait_fraction === null ? "" : shareWords(waits.wait_fraction),
      mean_wait: waits.mean_wait_seconds === null ? "" : secondsWords(waits.mean_wait_seconds),
      is_placed: Number(!question.isRate),
    }),
    same_moment:
      together && together.people > 1
        ? say("same_moment", {
            output_tokens,
            ...waits,
            people: together.people,
            last: together.last_ttft_seconds === null ? "" : spanWords(together.last_ttft_seconds),
          })
        : "",
  };
}

// All that the page shows of an answer, in words: texts by the names of its places.
function answerWords(record) {
  const { question, purchase } = record,
    isShown = record.chosen !== null;
  const declined = record.declined
    ? say("declined", {
        reason: record.declined.reason,
        term: capital(FACTS.purchases[record.declined.purchase].words),
        month: record.declined.monthly_usd ? dollars(record.declined.monthly_usd) : "",
      })
    : "";
  if (!isShown) return { month: record.verdict, a_month: "", rent: "", year: declined, ...fastestWords(fastestOf(record)) };
  const months = FACTS.purchases[purchase].months,
    gib = (bytes) => fixed(bytes / FACTS.gib, 1);
  const sure = record.by_confidence.find((level) => level?.confidence === FACTS.levels.sure);
  const gpu = FACTS.gpus.find(({ id }) => id === record.gpu),
    parts = Object.entries(partsOfGpu(record, gpu)),
    free = parts.findIndex(([part]) => part === "free"),
    sizes = addingUp(parts.map(([, bytes]) => bytes / FACTS.gib), 1, free);
  return {
    month: dollars(record.monthly_usd),
    a_month: "a month",
    rent: say("rented", { rent: rentWords(record), provider: providerOf(record.instance) }),
    year:
      say("year", {
        year: dollars(record.annual_usd),
        term: months ? FACTS.terms[purchase] : "",
        binds: dollars(months * record.monthly_usd),
        purchase,
      }) + (declined && `. ${declined}`),
    quality: qualityWords(record),
    weights_of: weightsWords(record),
    longest: say("longest", {
      context: count(question.workload.context_tokens),
      both: isLonger(question) ? count(bothOf(question)) : "",
      limit: question.model.limit > question.workload.context_tokens ? count(question.model.limit) : "",
    }),
    spare: [...spareWords(record)].join(" "),
    load_words: say("load", {
      per_hour: question.isRate ? count(Math.round(record.requests_per_hour)) : "",
      is_counted: Number(question.users > 0),
      share: CONSTANTS.peak_hour_share,
      burst: String(CONSTANTS.burst_factor),
      at_once: atOnceWords(record),
      people: record.users >= 1 && !question.users ? count(record.users) : "",
      times: String(question.workload.requests_per_user_per_day),
    }),
    certainty: certaintyWords(record),
    sure: say("fast_enough", { sure: capital(sureWords(record.chance)) }),
    margin: sureOfWords(record),
    wait: say(question.workload.output_tokens > 1 ? "wait" : "wait_alone", waitValues(record)),
    least_sure: say("least_sure", {
      limit: FACTS.of_limit[record.limit],
      ...fullLoad(record, question.isRate && !["memory", "rate"].includes(record.limit)),
    }),
    scale: scaleWords(record, sure),
    memory_words: say("memory", { free: sizes[free], limit: gib(gpu.memory_bytes), n_gpus: gpusHeld(record), n_needed: record.n_gpus }),
    memory: parts.map(([part, bytes], i) => ({
      part,
      share: bytes / gpu.memory_bytes,
      words: say("part", { part: FACTS.parts[part], gib: sizes[i], percent: part === "outside" ? 1 - readChosen(record.chosenGrid, "utilization_on_gpu") : 0 }),
    })),
    hardware: say("hardware", {
      hardware: say("hardware_words", {
        n_instances: record.n_instances,
        n_gpus: gpusHeld(record),
        gpu_name: record.gpu_name,
        n_replicas: record.replicas_held,
        tensor_parallel_size: record.tensor_parallel_size,
        data_parallel_size: record.data_parallel_size,
        pipeline_stages: record.pipeline_parallel_size,
      }),
      held: record.replicas_held,
      needed: record.n_replicas,
      weights: weightsName(record.question.model, record.weight_dtype),
      region: record.region || "",
      day: record.price_as_of ?? "",
      age: isDay(record.price_as_of ?? "") ? String(daysOld(record.price_as_of)) : "",
    }),
    chance: record.chance,
    asked: question.confidence,
  };
}

// What is said of an answer after its ways to pay less, which tell how sure the same machines are in a surer layout:
// whether to measure first, what measured hardware costs, and its other waits.
const laterWords = (record) =>
  record.chosen
    ? {
        certainty: certaintyWords(record, { usual: heldOf(record)[ON_DEMAND] }),
        measure: measureWords(record),
        never_measured: neverMeasuredWords(record, (other) => `${rentWords(other)}, ${sureWords(other.chance)}`),
        ...waitWords(record),
      }
    : {};

// How sure an answer is; and where the same on demand, or in the usual area, is surer, how sure that is. others: the other
// questions, where they are answered.
function certaintyWords(record, { usual = null, others = [] } = {}) {
  const home = others.find(({ kind, changes }) => kind === "in_area" && changes.region === ""),
    surer = (one) => (one && !one.message && isBelow(record.chance, one.chance) ? sureWords(one.chance).replace(/ sure$/, "") : "");
  return say("certainty", {
    sure: sureWords(record.chance),
    usual: record.purchase === ON_DEMAND ? "" : surer(usual),
    area: areaWords(""),
    elsewhere: surer(home),
  });
}

// The GPUs of all replicas that fit on what is rented: more than the load needs, where a machine has more.
const gpusHeld = ({ replicas_held, gpus_per_replica }) => replicas_held * gpus_per_replica;

// The memory of one GPU by its parts, in bytes, with what the engine may not take: the weights as they are loaded, of a
// replica with stages, whose GPUs differ, the mean of all.
function partsOfGpu({ memory, n_gpus, pipeline_parallel_size: stages, chosenGrid }, { memory_bytes }) {
  const [mean, kv, other, limit] = ["weights", "kv", "overhead", "limit"].map((part) => memory[`${part}_bytes`] / n_gpus),
    weights = stages > 1 ? mean : readChosen(chosenGrid, "loaded_weights_bytes_per_gpu");
  return { weights, kv, other, free: Math.max(0, limit - weights - kv - other), outside: Math.max(0, memory_bytes - limit) };
}

// The requests at once that all replicas of the machines serve within the targets, of a rate too.
const servedPlaces = ({ chosenGrid }) => readChosen(chosenGrid, "served_at_target");

// How many run at once: of a rate on average, and the places that it is sized for.
const atOnceWords = (record) =>
  say("at_once", {
    n: record.question.isRate ? rateWords(record.concurrent_requests) : count(record.concurrent_requests),
    places: servedPlaces(record),
    is_average: Number(record.question.isRate),
  });

// What was asked for, what was found, and what is surer costs, on one scale.
function scaleWords({ question, chance }, sure) {
  return say("scale", {
    asked: question.confidence,
    found: roundedWords(chance),
    level: chance < FACTS.levels.sure ? sureWords(FACTS.levels.sure) : "",
    month: sure ? dollars(sure.monthly_usd) : "",
    rent: sure ? rentWords(sure) : "",
  });
}

// Of weights below the published ones that their answers are to be compared, and what those cost.
function qualityWords(record) {
  const published = asPublished(record);
  if (!published) return "";
  const { model } = record.question,
    isHeld = published.monthly_usd !== null,
    more = moreThan(published.monthly_usd, record.monthly_usd),
    usual = asRecommended(record),
    usualMore = usual ? moreThan(usual.monthly_usd, record.monthly_usd) : 0;
  return say("paid_quality", {
    ...checkpointValues(record),
    usual: usual ? weightsName(model, usual.weights) : "",
    usual_usd: dollars(Math.abs(usualMore)),
    is_as_usual: Number(usualMore === 0),
    is_usual_saved: Number(usualMore > 0),
    dtype: weightsName(model, record.weight_dtype),
    published: weightsName(model, published.weight_dtype),
    month: isHeld ? dollars(published.monthly_usd) : "",
    rent: isHeld ? rentWords(published) : "",
    usd: dollars(Math.abs(more)),
    is_same: Number(more === 0),
    is_saved: Number(more > 0),
    gains: isHeld ? gainsWords(record, published) : "",
  });
}

// What would be rented in the recommended weights, where others below the published ones were named; null elsewhere.
function asRecommended({ solved, question }) {
  const offers = offersIn(question, question.purchase),
    weights = weightsOf({ ...question, weight_dtype: "recommended" }, offers);
  if ([question.weights, question.model.weights].includes(weights)) return null;
  const rental = inPrecision(solved, { weights });
  return rental && { ...rental, weights };
}

// What the answer's weights buy beside the published ones in requests and certainty; "" where nothing.
function gainsWords({ question, served_at_target, chance }, published) {
  const [own, other] = [served_at_target, published.served_at_target].map(question.isRate ? rateWords : count),
    isSurer = isBelow(published.chance, chance);
  return say("weights_gains", {
    own: served_at_target > published.served_at_target && own !== other ? own : "",
    other,
    is_rate: Number(question.isRate),
    sure: isSurer ? sureWords(chance) : "",
    other_sure: sureWords(published.chance),
  });
}

// The checkpoint in use with its licence; how one comes by one where none is known; "" of a shape that is no real model.
function weightsWords(record) {
  const { model, weights } = record.question,
    isPublished = weights === model.weights;
  const checkpoint = isPublished ? (model.is_named ? model.names.at(-1) : "") : (model.checkpoints[weights] ?? "");
  return say("weights_of", {
    checkpoint,
    license: model.licenses[weights] ?? "",
    dtype: weightsName(model, weights),
    ...checkpointValues(record),
  });
}

// Whether no checkpoint in the weights of an answer is known, and how one comes by one.
function checkpointValues({ question: { model, weights } }) {
  const isWide = BITS_16.includes(weights),
    fromWide = BITS_16.includes(model.weights),
    isKnown = weights === model.weights || weights in model.checkpoints || (isWide && fromWide);
  return {
    is_unknown: Number(!isKnown && !model.is_reference),
    is_wide: Number(isWide),
    is_loaded: Number(fromWide && weights === FACTS.lower.deployed),
  };
}

// What a failed machine does, with the price of a spare; that many machines are to be reserved; and the price a person.
function* spareWords(record) {
  if (!CONSTANTS.survive) yield failsWords(record);
  yield* reserveWords(record);
  const [usd] = usdPerPerson(record),
    { question } = record;
  if (usd)
    yield say("per_person", {
      usd,
      people: count(question.users || record.users),
      times: String(question.workload.requests_per_user_per_day),
      is_enough: Number(!question.users),
    });
}

const DAY = 86_400_000; // milliseconds
const isDay = (text) => /^\d{4}-\d\d-\d\d$/.test(text); // and not a year or month alone
const daysOld = (day) => Math.round((Date.parse(FACTS.as_of) - Date.parse(day)) / DAY);

// What measured hardware costs, of an answer on hardware that never was; "" of other answers. rented: what is said of it.
function neverMeasuredWords(record, rented = () => "") {
  const { measured, other } = measuredHardware(record),
    day = measureOf(record);
  if (measured || !day || FACTS.measured_gpus[record.gpu]) return "";
  return say("request_never_measured", {
    usd: other ? lessOf(other.monthly_usd) : dollars(day.usd),
    rent: other ? rented(other) : "",
    is_other: Number(other !== null),
    is_same_gpu: Number(other !== null && machineOf(other.offer)[GPU] === machineOf(record.chosen.offer)[GPU]),
  });
}

// Where the price of an offer was read.
const sourceOf = (offer) =>
  MARKET.sources[MARKET.offers[offer][SOURCE]].map((part) => MARKET.parts_of_sources[part]).join(FACTS.between_sources);

// Prompt and answer together; and whether the context is longer.
const bothOf = ({ workload }) => workload.input_tokens + workload.output_tokens;
const isLonger = (question) => question.workload.context_tokens > bothOf(question);

// What is asked, in a sentence.
function askedWords({ question, weight_dtype, declined }) {
  const { workload, model, kv } = question;
  return say("asked", {
    model: model.name,
    weights: weightsName(model, weight_dtype),
    kv: kv === model.kv ? "" : kv.toUpperCase(),
    prompt: count(workload.input_tokens),
    answer: count(workload.output_tokens),
    context: isLonger(question) ? count(workload.context_tokens) : "",
    times: question.users ? String(workload.requests_per_user_per_day) : "",
    region: question.region,
    providers: question.providers.map((id) => MARKET.providers[id]).join(", "),
    purchase: FACTS.purchases[declined?.purchase ?? question.purchase].words,
    confidence: question.confidence,
  });
}
