// By serve.js: questions, and rows of deployments, answered by the runtime of their facts.
const { Grid, PROGRAMS } = (0, eval)(`(() => {${source}; return { Grid, PROGRAMS }})()`);
const TOLERANCE = 1e-12, NO_BATCH_LIMIT = 1e9, AFTER_LIMIT = ["sequences", "rates", "costs", "ranks"];

const fromJson = (x) => (x === null || typeof x !== "object" ? x : x.infinite ? x.infinite * Infinity : NaN);
const isSame = (x, y) => Object.is(x, y) || x === y || (isFinite(y) && Math.abs(x - y) <= TOLERANCE * Math.abs(y));

function gridOf(facts) {
  const places = new Map();
  for (const [near, far, where] of facts.places) {
    if (!places.has(near)) places.set(near, new Map());
    places.get(near).set(far, Int32Array.from(where));
  }
  const grid = new Grid(facts.sizes, places);
  for (const { name, axes, data } of facts.columns) grid.put(axes, name, Float64Array.from(data, fromJson));
  return grid;
}

// By load the chosen offer, how many of its instances and $ a month; among: which offers take part.
function pick(grid, axes = [], among = [1]) {
  const known = grid.again();
  known.put(axes, "among", among);
  known.workOut(PROGRAMS.choice);
  const names = ["chosen_usd", "chosen_position", "fewest_instances"];
  const [usd, position, count] = names.map((name) => known.values(name, ["load"]));
  return usd.map((month, i) =>
    month === month ? { offer: position[i] - 1, n_instances: count[i], monthly_usd: month } : null);
}

// The best of other GPUs or providers than the chosen.
function pickOthers(grid, facts, picks) {
  const mine = picks.map((best) => best?.offer ?? 0);
  const isOther = (k, i) => facts.gpu[k] !== facts.gpu[i] || facts.provider[k] !== facts.provider[i];
  return pick(grid, ["load", "offer"], mine.flatMap((i) => facts.gpu.map((_, k) => Number(isOther(k, i)))));
}

// What users get of loads on the offers that were chosen for them.
function putTimes(grid, answers) {
  const rows = [...answers.keys()].filter((i) => "offer" in answers[i]);
  if (!rows.length) return;
  const paced = grid.along("chosen", rows.length, { load: rows, offer: rows.map((i) => answers[i].offer) });
  paced.workOut(PROGRAMS.chosen);
  const read = (name) => paced.values(name, ["chosen"]);
  const times = Object.fromEntries(["tpot_seconds", "ttft_seconds", "bound_by", "chance"].map((name) => [name, read(name)]));
  times.in_flight = read("concurrent_requests");
  if (paced.has("requests_per_second", ["chosen"])) {
    const peak = read("in_flight_at_peak");
    read("requests_per_second").forEach((rate, n) => rate > 0 && (times.in_flight[n] = peak[n]));
  }
  rows.forEach((i, n) => Object.keys(times).forEach((name) => (answers[i][name] = times[name][n])));
}

// By load all that is answered; nothing but what there would be without targets where nothing holds it.
function answer(grid, facts) {
  const picks = pick(grid), others = pickOthers(grid, facts, picks);
  const answers = picks.map((best, i) => (best && !facts.over[i] ? { ...best, runner_up: others[i]?.offer ?? null } : {}));
  putTimes(grid, answers);
  if (!facts.has_targets) return answers;
  const untargeted = grid.again({ batch_limit: NO_BATCH_LIMIT });
  untargeted.workOut(PROGRAMS.sheet, AFTER_LIMIT);
  pick(untargeted).forEach((best, i) => {
    if (best && !(best.monthly_usd >= answers[i].monthly_usd * (1 - TOLERANCE)))
      for (const [name, value] of Object.entries(best)) answers[i][`without_targets_${name}`] = value;
  });
  return answers;
}

function compared(facts) {
  const wrong = [], start = performance.now();
  const grid = gridOf(facts);
  grid.workOut(PROGRAMS[facts.program]);
  const answers = facts.answers ? answer(grid, facts) : [], milliseconds = performance.now() - start;
  let cells = 0, n_answers = 0;
  const compare = (what, got, want) => isSame(got, want) || wrong.length > 20 || wrong.push([what, String(got), String(want)]);
  for (const { name, axes, data } of facts.cells) {
    const got = grid.values(name, axes);
    data.forEach((want, i) => compare(`${name}[${i}]`, got[i], fromJson(want)));
    cells += data.length;
  }
  answers.forEach((got, i) => {
    for (const name of new Set([...Object.keys(got), ...Object.keys(facts.answers[i])])) {
      compare(`${name} of ${i}`, got[name], fromJson(facts.answers[i][name]));
      n_answers++;
    }
  });
  return { cells, answers: n_answers, milliseconds: Math.round(milliseconds), wrong };
}

module.exports = (questions) => questions.map(compared);
