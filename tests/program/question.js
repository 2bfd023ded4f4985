// node question.js source.js given.json: questions answered by the runtime, of tables and columns of facts.
const fs = require("fs");
const [source, given] = [2, 3].map((i) => fs.readFileSync(process.argv[i], "utf8"));
const { Grid, TABLES } = (0, eval)(`(() => {${source}; return { Grid, TABLES }})()`);
const TOLERANCE = 1e-12;

const fromJson = (x) => (x === null || typeof x !== "object" ? x : x.infinite ? x.infinite * Infinity : NaN);
const isSame = (x, y) => Object.is(x, y) || x === y || Math.abs(x - y) <= TOLERANCE * Math.abs(y);

function gridOf(facts) {
  const places = new Map();
  for (const [near, far, where] of facts.places) {
    if (!places.has(near)) places.set(near, new Map());
    places.get(near).set(far, Int32Array.from(where));
  }
  const grid = new Grid(facts.sizes, places);
  for (const { name, axes, sides, data } of facts.columns) grid.put(axes, name, Float64Array.from(data, fromJson), sides);
  return grid;
}

// A column under another name, too.
function alias(grid, name, other) {
  const { axes, data, sides } = grid.columns.get(other).at(-1);
  grid.put(axes, name, data, sides);
}

// The shares of the experts that batches of 1, 2 ... 64 requests leave alone, or of so many times 64.
function putBatches(grid) {
  const steps = Float64Array.from({ length: grid.sizes.step }, (_, k) => k + 1);
  grid.put(["step"], "steps", steps);
  for (const [name, size] of [["untouched_by_request", 1], ["untouched_by_stride", grid.sizes.step]]) {
    const batches = grid.along("of_batches", 0, {});
    batches.put(["step"], "batch_requests", steps.map((n) => n * size));
    batches.evaluate(TABLES.untouched);
    const { axes, data, sides } = batches.columns.get("untouched_fraction").at(-1);
    grid.put(axes, name, data, sides);
  }
}

function evaluateTables(grid, facts) {
  const isRate = grid.has("requests_per_second", ["load"]);
  for (const name of ["models", "shards", "profiles", "pools", "paces", "stages"]) grid.evaluate(TABLES[name]);
  alias(grid, "pipeline_parallel_size", "pipeline_stages");
  putBatches(grid);
  for (const name of ["steps", "limits", "loads", "sequences"]) grid.evaluate(TABLES[name]);
  if (isRate) grid.evaluate(TABLES.rates);
  grid.evaluate(TABLES.offers);
  for (const [name, other] of Object.entries(facts.held)) alias(grid, name, other);
  grid.evaluate(TABLES.held);
  grid.evaluate(TABLES.costs);
  if (isRate) grid.evaluate(TABLES.ranks);
}

// By load the chosen offer, how many of its instances and $ a month; among: which offers take part.
function pick(grid, facts, among) {
  const known = grid.along("picked", 0, {});
  for (const [name, other] of Object.entries(facts.rows)) known.columns.set(name, [...grid.columns.get(other)]);
  if (among) known.put(["load", "offer"], "among", among);
  else known.put([], "among", [1]);
  known.evaluate(TABLES.choice);
  const [usd, position, count] = ["usd", "position", "n_instances"].map((name) => known.values(name, ["load"]));
  return usd.map((month, i) =>
    month === month ? { offer: position[i] - 1, n_instances: count[i], monthly_usd: month } : null);
}

// Times on what was chosen: `rows` of loads on `offers`.
function pace(grid, facts, rows, offers) {
  const chosen = ["chosen"], at = grid.along("chosen", rows.length, { load: rows, offer: offers });
  const put = (on, name, values) => on.put(chosen, name, values);
  put(at, "pipeline_parallel_size", at.values("pipeline_stages", chosen));
  at.evaluate(TABLES.per_replica);
  const each = at.values("requests_per_replica", chosen);
  for (const name of ["running_requests", "concurrent_requests"]) put(at, name, each);
  at.evaluate(TABLES.pace);
  const names = ["tpot_seconds", "ttft_seconds", "bound_by"];
  const stated = names.map((name) => at.values(name, chosen));
  const inFlight = grid.values("concurrent_requests", ["load"]);
  const result = { in_flight: rows.map((row) => inFlight[row]) };
  names.forEach((name, i) => (result[name] = stated[i]));
  if (!grid.has("requests_per_second", ["load"])) return result;
  const known = at.along("again", 0, {});
  known.evaluate(TABLES.replica_rate);
  const follows = (values) => {
    put(known, "in_flight", values);
    known.evaluate(TABLES.next);
    return known.values("next_in_flight", chosen);
  };
  let before = known.values("paced_requests", chosen), beforeNext = follows(before), now = beforeNext;
  for (let step = 0; step < facts.secants; step++) {
    const next = follows(now);
    put(known, "in_flight", before);
    put(known, "next_in_flight", beforeNext);
    put(known, "later_in_flight", now);
    put(known, "next_later_in_flight", next);
    known.evaluate(TABLES.secant);
    [before, beforeNext, now] = [now, next, known.values("secant_in_flight", chosen)];
  }
  for (const name of ["in_flight", "running_requests", "concurrent_requests"]) put(known, name, now);
  known.evaluate(TABLES.rate);
  const isRate = known.values("requests_per_second", chosen).map((rate) => rate > 0);
  const choose = (values, otherwise) => values.map((value, i) => (isRate[i] ? value : otherwise[i]));
  names.forEach((name, i) => (result[name] = choose(known.values(name, chosen), stated[i])));
  result.in_flight = choose(known.values("in_flight_at_peak", chosen), result.in_flight);
  return result;
}

function answers(grid, facts) {
  const picks = pick(grid, facts), n = facts.sizes.offer;
  const among = new Float64Array(facts.sizes.load * n);
  picks.forEach((best, i) => {
    const mine = best?.offer ?? 0;
    for (let k = 0; k < n; k++)
      among[i * n + k] = facts.gpu[k] !== facts.gpu[mine] || facts.provider[k] !== facts.provider[mine] ? 1 : 0;
  });
  const others = pick(grid, facts, among);
  const all = picks.map((best, i) => (best && !facts.over[i] ? { ...best, runner_up: others[i]?.offer ?? null } : null));
  const rows = [...all.keys()].filter((i) => all[i]);
  if (!rows.length) return all;
  const times = pace(grid, facts, rows, rows.map((i) => all[i].offer));
  rows.forEach((row, i) => Object.keys(times).forEach((name) => (all[row][name] = times[name][i])));
  return all;
}

const results = JSON.parse(given).map((facts) => {
  const wrong = [], start = performance.now();
  const grid = gridOf(facts);
  evaluateTables(grid, facts);
  const found = answers(grid, facts), milliseconds = performance.now() - start;
  let cells = 0, compared = 0;
  const compare = (what, got, want) => isSame(got, want) || wrong.length > 20 || wrong.push([what, String(got), String(want)]);
  for (const { name, axes, data } of facts.cells) {
    const got = grid.values(name, axes);
    data.forEach((want, i) => compare(`${name}[${i}]`, got[i], fromJson(want)));
    cells += data.length;
  }
  facts.answers.forEach((want, i) => {
    if (!want || !found[i]) return compare(`answer ${i}`, Boolean(found[i]), Boolean(want));
    for (const [name, value] of Object.entries(want)) {
      compare(`${name} of ${i}`, found[i][name], fromJson(value));
      compared++;
    }
  });
  return { cells, answers: compared, milliseconds: Math.round(milliseconds), wrong };
});
console.log(JSON.stringify(results));
