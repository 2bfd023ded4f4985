// How a number came about, by the formulas' own texts: what `sheetgen explain` says of them.

const DERIVED_ROOTS = ["monthly_usd", "n_instances", "n_replicas", "paced_requests", "tpot_seconds", "ttft_seconds", "chance",
  "weights_bytes", "kv_budget_bytes_per_gpu", "kv_bytes_per_token", "served_at_target", "users"];

// Every quantity of an answer on its hardware.
function everyQuantity({ solved, chosen }) {
  const grid = along(solved.grid, chosen.position);
  grid.workOut(PROGRAMS.chosen);
  grid.workOut(PROGRAMS.answered);
  return (name) => {
    const column = grid.find(name, ["chosen"]);
    return column && readChosen(grid, name);
  };
}

const NAME = /\b[a-z][a-z0-9_]*\b/g; // of a quantity, in a formula
const valueWords = (value) =>
  typeof value !== "number" ? String(value ?? "\u2013") : value !== value ? "\u2013" : value.toLocaleString("en-US", { maximumSignificantDigits: Math.abs(value) >= 1e6 ? 12 : 6 });

// A value with the unit that its name says, bytes in GiB beside, as `sheetgen explain` prints it.
function measuredWords(name, value) {
  const unit = UNIT_OF[name] ?? "",
    gib = unit === "bytes" && value >= 2 ** 20 ? ` (${fixed(value / FACTS.gib, 2)} GiB)` : "";
  return [valueWords(value), value === 1 ? unit.replace(/^([A-Za-z]+)s\b/, "$1") : unit].filter(Boolean).join(" ") + gib;
}

// The time to the first word by its parts, in seconds, each with what it is known by: the formula with the other parts
// left out.
function firstByParts(valueOf) {
  const [, , , text] = EXPLAINED.service_ttft_seconds,
    inputs = [...new Set(text.match(NAME))].filter((name) => valueOf(name) !== undefined);
  const given = Object.fromEntries(inputs.map((name) => [name, valueOf(name)]));
  const without = (...names) => {
    const none = Object.fromEntries(names.map((name) => [name, 0]));
    return workOutCase(PROGRAMS.first, { ...given, ...none })("service_ttft_seconds");
  };
  const waits = ["wait_factor", "closed_loop"],
    prompts = [...waits, "prefill_seconds", "shared_prefill_seconds"],
    steps = ["fixed_step_seconds", "running_step_seconds", "expert_seconds"];
  const [all, unwaited, promptless, overhead] = [without(), without(...waits), without(...prompts), without(...prompts, ...steps)];
  const ofGpu = valueOf("measured_ttft_factor") > 0 ? "measured" : valueOf("measured_scope") === FACTS.own_runs ? "fitted" : "assumed";
  return [
    { part: "prompt", seconds: unwaited - promptless, basis: ofGpu },
    { part: "behind", seconds: all - unwaited, basis: "engine" },
    { part: "steps", seconds: promptless - overhead, basis: ofGpu },
    { part: "overhead", seconds: overhead, basis: "engine" },
    { part: "queue", seconds: valueOf("queue_seconds"), basis: "worked_out" },
  ].filter(({ seconds }) => seconds > 0);
}

// One step: its name and value, formula with names and with values, meaning, source, and what it reads.
function stepOf(name, valueOf) {
  const [label, summary, source, text] = EXPLAINED[name] ?? ["", "", "", ""];
  const inputs = [...new Set(text.match(NAME))].filter((word) => valueOf(word) !== undefined);
  const withValues = text.replaceAll(NAME, (word) => (inputs.includes(word) ? valueWords(valueOf(word)) : word));
  const value = valueOf(name);
  return { name, label, summary, source, text, withValues, value: valueWords(value), measured: measuredWords(name, value), inputs };
}
