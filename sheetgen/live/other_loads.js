// The same question at other loads: the months of many of them at once, where the next step is, the grid of the usual
// ones; and what a day of measuring costs.

const OF_LOADS = PROGRAMS.sheet.order.filter((name) => PROGRAMS.sheet.tables[name].axes?.includes("load"));

// What a load is called in a question, and its amount.
const loadName = (question) => (question.users ? "users" : question.isRate ? "requests_per_second" : "concurrent_requests");
const amountOf = (question) => question[question.users || !question.isRate ? loadName(question) : "rate"];

// What would be rented at each of these amounts of a question's load, in its class and at the confidence in force; isSure:
// and how sure that is.
function atLoads({ question, grid }, amounts, { kind = loadName(question), isSure = false } = {}) {
  const none = { users: 0, requests_per_second: 0, requests_per_day: 0, tokens_per_day: 0 };
  const rates = amounts.map((amount) =>
    kind === "concurrent_requests" ? 0 : peakOf({ ...question.workload, ...none, [kind]: amount }),
  );
  const places = amounts.map(() => 0);
  const timed = kind === "concurrent_requests" ? inClosedLoop(grid) : grid;
  const wide = Object.assign(timed.along("load", amounts.length, { pace: places }), { offers: grid.offers });
  const isKind = (name) => amounts.map((amount) => (kind === name ? amount : 0));
  wide.put(["load"], "concurrent_requests", isKind("concurrent_requests"));
  wide.put(["load"], "stated_users", isKind("users"));
  if (kind === "concurrent_requests") wide.columns.delete("requests_per_second");
  else wide.put(["load"], "requests_per_second", rates);
  wide.workOut(PROGRAMS.sheet, OF_LOADS);
  wide.workOut(PROGRAMS.choice);
  const read = (name) => wide.values(name, ["load"]);
  const [usd, positions, n_instances] = ["chosen_usd", "chosen_position", "fewest_instances"].map(read);
  const rentals = amounts.map((_, i) => (usd[i] === usd[i] ? rentalOf(wide, positions[i] - 1, n_instances[i], usd[i]) : null));
  return isSure ? rentals.map((rental, i) => surelyRented(wide, rental, i)) : rentals.map((rental) => rental && rentalOnly(rental));
}

// The grid with the times of requests at once, which differ from those of a rate where answers are short.
const inClosedLoop = (grid) => (grid.values("closed_loop", [])[0] === 1 ? grid : withTimesOf(grid, [], "closed_loop", 1));

const WIDER = 4; // times the load: how far the curve goes
const POINTS = 64; // of the curve
const DOUBLES = 10; // of its end, how far a step is sought
const TRIED = 16; // amounts between two, of which the step is between two
const isSame = (one, other) => one?.monthly_usd === other?.monthly_usd;

// The months up to four times the load, and up to which amount the month stays, be that beyond; next: what is rented
// from where on, and how sure that is there.
function stepsOf({ solved, chosen }) {
  const { question } = solved,
    amount = amountOf(question),
    isWhole = loadName(question) !== "requests_per_second";
  const most = amount * WIDER,
    rounded = (x) => (isWhole ? Math.round(x) : x);
  const amounts = [...new Set(Array.from({ length: POINTS }, (_, i) => Math.max(rounded((most * (i + 1)) / POINTS), isWhole ? 1 : 0)))];
  const rented = atLoads(solved, amounts);
  const points = amounts.map((x, i) => ({ amount: x, monthly_usd: rented[i]?.monthly_usd ?? null }));
  // Beyond the curve in doubles, where the month stays all along it.
  const isOther = (x, i, all) => x > amount && !isSame(all[i], chosen);
  const far = amounts.some((x, i) => isOther(x, i, rented)) ? [] : Array.from({ length: DOUBLES }, (_, k) => rounded(most * 2 ** (k + 1)));
  const tries = [...amounts, ...far],
    found = [...rented, ...(far.length ? atLoads(solved, far) : [])],
    first = tries.findIndex((x, i) => isOther(x, i, found));
  if (first < 0) return { amount, points, upTo: null, next: null };
  let [low, high] = [Math.max(amount, tries[first - 1] ?? 0), tries[first]];
  while (isWhole ? high - low > 1 : high - low > low / 1000) {
    const step = (high - low) / TRIED;
    const tried = [...new Set(Array.from({ length: TRIED - 1 }, (_, i) => rounded(low + step * (i + 1))))].filter((x) => x > low && x < high);
    const between = atLoads(solved, tried),
      k = between.findIndex((one) => !isSame(one, chosen));
    if (k >= 0) high = tried[k];
    if (k !== 0) low = k < 0 ? tried.at(-1) : tried[k - 1];
  }
  const [next] = atLoads(solved, [high], { isSure: true });
  return { amount, points, upTo: low, next: next && { ...next, amount: high } };
}

const nearRule = () => say("near_rule", { near: CONSTANTS.near_tie_fraction });

// The very cheapest of a load, where the answer costs more as a near tie of it; "" where it is the cheapest.
function nearTieWords({ solved, chosen, monthly_usd }) {
  const { cheapest } = chosen;
  if (monthly_usd - cheapest.monthly_usd < CENT) return "";
  const { chance } = surelyRented(solved.grid, cheapest);
  return say("near_tie", { rent: placeWords(cheapest), month: dollars(cheapest.monthly_usd), sure: sureWords(chance), rule: nearRule() });
}

// Why a step costs less than the one before; "" where none does.
const fallWords = (steps) =>
  steps.some(({ monthly_usd }, i) => i && monthly_usd !== null && monthly_usd < steps[i - 1].monthly_usd - CENT) ? say("falls", { rule: nearRule() }) : "";

const MOST_TRIED = 600; // amounts that the list of steps is sought with
const MOST_STEPS = POINTS / 2; // of the curve: where there are more, the list has the month at some of its points
const LISTED_POINTS = 16;

// Every step up to four times the load: up to which amount each month holds, nothing where no machine does; is_exact:
// whether it changes with the next person or request, or to a thousandth of a rate. Where there are too many, the months at
// some amounts: is_point.
function everyStep({ solved, chosen }) {
  const { points } = stepsOf({ solved, chosen }),
    isWhole = loadName(solved.question) !== "requests_per_second";
  if (points.filter(({ monthly_usd }, i) => monthly_usd !== points[i - 1]?.monthly_usd).length > MOST_STEPS)
    return points.filter((_, i) => (i + 1) % (POINTS / LISTED_POINTS) === 0).map((point) => ({ ...point, is_point: true }));
  const least = isWhole ? 1 : points[0].amount / POINTS,
    isFar = (low, high) => (isWhole ? high - low > 1 : high - low > low / 1000);
  const monthAt = new Map(points.map(({ amount, monthly_usd }) => [amount, monthly_usd]));
  let left = MOST_TRIED,
    tried = monthAt.has(least) ? [] : [least];
  const between = () => {
    const amounts = [...monthAt.keys()].sort((one, other) => one - other);
    return amounts.slice(1).flatMap((high, i) => {
      const low = amounts[i];
      if (monthAt.get(low) === monthAt.get(high) || !isFar(low, high)) return [];
      const parts = Array.from({ length: 3 }, (_, k) => low + ((high - low) * (k + 1)) / 4);
      return parts.map((x) => (isWhole ? Math.round(x) : x)).filter((x) => x > low && x < high);
    });
  };
  do {
    const rented = tried.length ? atLoads(solved, tried) : [];
    tried.forEach((x, i) => monthAt.set(x, rented[i]?.monthly_usd ?? null));
    left -= tried.length;
    tried = [...new Set(between())];
  } while (tried.length && tried.length <= left);
  const steps = [...monthAt].sort(([one], [other]) => one - other).map(([amount, monthly_usd]) => ({ amount, monthly_usd }));
  return steps.flatMap((step, i) => {
    const next = steps[i + 1];
    if (next && next.monthly_usd === step.monthly_usd) return [];
    return [{ ...step, is_exact: !next || !isFar(step.amount, next.amount) }];
  });
}

// The months of the usual workloads at the usual numbers of requests at once: rows by workload.
function gridOfLoads({ question }) {
  return FACTS.workloads.flatMap((workload) => {
    const { id, name, input_tokens, output_tokens } = workload;
    try {
      const asked = { ...question, model: question.model.id, input_tokens, output_tokens, context_tokens: undefined, users: undefined };
      const solved = solve(completed({ ...asked, requests_per_second: undefined, concurrent_requests: 1 }));
      return [{ id, name, context: input_tokens + output_tokens, rented: atLoads(solved, FACTS.tiers) }];
    } catch (error) {
      if (!(error instanceof QuestionError)) throw error;
      return []; // longer than the model reads
    }
  });
}

const twice = (n) => 2 * n,
  half = (n) => Math.max(1, Math.round(n / 2));

// The same question with twice or half of one thing, all people at the same moment, or the prices of the US or Europe where
// others were asked for: what is other, each with its kind.
function otherQuestions({ question }) {
  const { workload, users } = question,
    name = loadName(question),
    amount = amountOf(question),
    prompt = workload.input_tokens,
    areaOf = (region) => region || FACTS.default_area,
    elsewhere = ["", FACTS.other_area].filter((area) => area in MARKET.regions && areaOf(area) !== areaOf(question.region)),
    halfOf = name === "requests_per_second" ? (n) => n / 2 : half;
  const lengths = (input_tokens, output_tokens = workload.output_tokens) => ({
    input_tokens,
    output_tokens,
    ...(question.context_tokens === undefined ? {} : { context_tokens: Math.max(question.context_tokens, input_tokens + output_tokens) }),
  });
  const others = {
    more_load: { [name]: twice(amount) },
    more_prompt: lengths(twice(prompt)),
    more_of_both: { [name]: twice(amount), ...lengths(twice(prompt)) },
    more_answer: workload.output_tokens > 1 ? lengths(prompt, twice(workload.output_tokens)) : null,
    less_load: halfOf(amount) < amount ? { [name]: halfOf(amount) } : null,
    less_answer: half(workload.output_tokens) < workload.output_tokens ? lengths(prompt, half(workload.output_tokens)) : null,
    less_prompt: half(prompt) < prompt ? lengths(half(prompt)) : null,
    usual_asks: users && workload.requests_per_user_per_day !== FACTS.enterprise_asks ? { requests_per_user_per_day: FACTS.enterprise_asks } : null,
    same_moment: users > 1 ? { users: undefined, concurrent_requests: users } : null,
  };
  return [...Object.entries(others), ...elsewhere.map((region) => ["in_area", { region }])].filter(([, changes]) => changes);
}

// What would be rented for each of them, in the class that was asked for; message: where it is refused.
function otherAnswers(record) {
  const { question, declined } = record,
    asked = { ...question, model: question.model.id, purchase: declined?.purchase ?? question.purchase };
  return otherQuestions(record).map(([kind, changes]) => {
    try {
      const solved = recommended(completed({ ...asked, ...changes })),
        { best, grid } = solved;
      const one = { kind, changes, question: solved.question };
      if (!best) return { ...one, message: verdictWithout(solved) };
      return { ...one, ...surelyRented(grid, best), ttft_seconds: paced(grid, best.position)("ttft_seconds") };
    } catch (error) {
      if (!(error instanceof QuestionError)) throw error;
      return { kind, changes, message: error.message };
    }
  });
}

const OTHER_HEADS = ["If", "A month", "Beside the answer", "Rent", "Sure", "First word, s (target)"];
const UNITS = { users: "people", concurrent_requests: "requests at once", requests_per_second: "requests a second" };
const UNITS_OF_ONE = { users: "person", concurrent_requests: "request at once", requests_per_second: "request a second" };
const unitOf = (kind, amount) => (amount === 1 ? UNITS_OF_ONE : UNITS)[kind];
const amountWords = (kind, x) => (kind === "requests_per_second" ? rateWords(Math.floor(x * 1000) / 1000) : count(x));

// An end of a step: of a rate in three digits, rounded so that it lies inside the step.
const upToWords = (kind, x) => (kind === "requests_per_second" ? digitsWords(x, Math.floor) : count(x));
const fromWords = (kind, x) => (kind === "requests_per_second" ? digitsWords(x, Math.ceil) : count(x));
function digitsWords(x, rounded) {
  if (!(x > 0)) return "0";
  const places = 2 - Math.floor(Math.log10(x)),
    unit = 10 ** -places;
  return (rounded(Number((x / unit).toPrecision(12))) * unit).toLocaleString("en-US", { maximumFractionDigits: Math.max(0, places) });
}

// What a month costs more or less than the answer's.
function differenceWords(usd, own) {
  const more = moreThan(usd, own);
  return say("other_difference", { usd: more ? dollars(Math.abs(more)) : "", is_less: Number(more < 0) });
}

// One of them in the words under these heads.
function askedOtherwise(record, { kind, changes, question, message, ttft_seconds, ...rental }) {
  const name = loadName(record.question);
  const what = say(`other_${kind}`, {
    unit: UNITS[name],
    load: amountWords(name, changes[name] ?? 0),
    prompt: count(changes.input_tokens ?? 0),
    answer: count(changes.output_tokens ?? 0),
    people: count(changes.concurrent_requests ?? 0),
    times: String(changes.requests_per_user_per_day ?? ""),
    is_people: Number(name === "users"),
    area: areaWords(changes.region ?? ""),
    is_default: Number(changes.region === ""),
  });
  if (message) return [what, "", message, "", "", ""];
  const { purchase } = question,
    ofClass = purchase === record.purchase ? "" : `, ${FACTS.purchases[purchase].words}`,
    target = question.workload.ttft_target_ms;
  return [
    what,
    dollars(rental.monthly_usd),
    differenceWords(rental.monthly_usd, record.monthly_usd),
    `${placeWords(rental)}${ofClass}`,
    sureWords(rental.chance).replace(/ sure$/, ""),
    say("other_first", { first: secondsWords(ttft_seconds), target: target ? secondsWords(target / 1000) : "" }),
  ];
}

// A day on the machines of one replica; and where an even chance rents for less than any near tie with the answer, what
// it would rent; the month's money that it decides, in all and beside the answer, and whether it comes before the
// machines. Nothing of a shape of which no checkpoint exists.
function measureOf(record) {
  const { question, chosen, gpus_per_replica, monthly_usd, by_confidence } = record;
  if (question.model.is_reference) return null;
  const monthAt = (confidence) => by_confidence.find((level) => level?.confidence === confidence)?.monthly_usd;
  const even = evenOf(record),
    decides_usd = even ? (monthAt(FACTS.levels.sure) ?? monthly_usd) - even.monthly_usd : null;
  const aDayOn = (rental, n_gpus) => {
    const { usd, instance } = byTheDay(question, rental.offer);
    const n_instances = Math.ceil(n_gpus / machineOf(rental.offer)[GPU_COUNT]);
    return { instance, n_instances, usd: FACTS.measured_hours * n_instances * usd };
  };
  const isCheaper = even && even.monthly_usd * (1 + CONSTANTS.near_tie_fraction) < monthly_usd;
  const own = aDayOn(chosen, gpus_per_replica),
    decider = isCheaper ? { ...aDayOn(even, even.gpus_per_replica), monthly_usd: even.monthly_usd } : null;
  const { margin, isSure } = marginOf(record),
    passed_saves_usd = decider ? monthly_usd - decider.monthly_usd : 0,
    failed_costs_usd = isSure ? 0 : margin ? margin.monthly_usd - monthly_usd : null;
  return { ...own, decider, decides_usd, passed_saves_usd, failed_costs_usd, is_worth_it: measureFirst(record).length > 0 || (decides_usd ?? 0) > (decider ?? own).usd };
}

const SPOT = "spot";

// The machine to measure on and $ an hour of it: what is rented, on demand or spot; where it is sold by the day in
// neither the cheapest with as many of the same GPUs that is; else what is rented, in its class.
function byTheDay(question, rented) {
  const machine = machineOf(rented);
  const isOwn = (offer) => machineOf(offer)[INSTANCE] === machine[INSTANCE];
  const isAlike = (offer) => machineOf(offer)[GPU] === machine[GPU] && machineOf(offer)[GPU_COUNT] === machine[GPU_COUNT];
  const priced = (offer, usd) => ({ usd, instance: machineOf(offer)[INSTANCE] });
  const paid = (offer) => priced(offer, MARKET.offers[offer][USD] * (1 - MARKET.offers[offer][DISCOUNT]));
  const plain = MARKET.offers[rented][ON_DEMAND_USD];
  if (plain) return priced(rented, plain);
  const [onDemand, spot] = [ON_DEMAND, SPOT].map((purchase) => offersIn(question, purchase));
  const lists = [onDemand.filter(isOwn), spot.filter(isOwn), onDemand.filter(isAlike), spot.filter(isAlike), [rented]];
  const [least] = lists.find((list) => list.length).map(paid).sort((one, other) => one.usd - other.usd || (one.instance < other.instance ? -1 : 1));
  return least;
}
