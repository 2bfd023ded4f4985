// For engineers: what the log of a replica says, and the command that starts it; nothing where the page does not know.

// The most requests of a rank within the targets, for which a replica is started.
const seqsOfRank = ({ chosenGrid, data_parallel_size }) => readChosen(chosenGrid, "paced_requests") / data_parallel_size;

// What the engine prints of its pool, started for the requests of a rank alone, each sequence charged all its tokens.
function logOf(record) {
  const { solved, chosen } = record;
  if (record.pipeline_parallel_size > 1) return null;
  const started = solved.grid.again({ max_num_seqs: seqsOfRank(record) });
  started.workOut(PROGRAMS.sheet, ["pools"]);
  const length = solved.question.workload.max_model_len;
  const full = along(started, chosen.position).again(Object.fromEntries(FACTS.tokens.map((name) => [name, length])));
  full.put([], "stage_fraction", [1]);
  full.workOut(PROGRAMS.started, ["full"]);
  full.add("full_kv_blocks_per_sequence", full.latest("kv_blocks_per_sequence"));
  full.workOut(PROGRAMS.started, ["printed"]);
  const read = (name) => readChosen(full, name);
  return {
    kv_pool_bytes_per_gpu: read("kv_pool_bytes_per_gpu"),
    kv_tokens: read("kv_tokens"),
    max_concurrency: read("max_concurrency"),
    sampler_bytes: read("sampler_bytes"),
  };
}

// What can run out, with the numbers of one GPU of the answer as it is started, and the changes that help; and of each
// change what it buys. Of a replica with stages the words alone.
function deathsOf(record) {
  if (record.pipeline_parallel_size > 1) return { deaths: FACTS.deaths.map(({ words }) => ({ words, here: "", changes: "" })), changes: [] };
  const now = replicaWith(record, {}),
    seqs = seqsOfRank(record) * record.data_parallel_size,
    batched = readChosen(record.chosenGrid, "max_num_batched_tokens"),
    context = count(record.question.workload.max_model_len);
  const held = { held: now.held, context, seqs },
    step = say("here_step", { batched, activation: gibWords(now.activation_bytes_per_gpu) });
  const here = {
    long_completion: say("here_held", held),
    concurrency_spike: say("here_spike", held),
    prefill_long_prompt: step,
    "startup_workspace_or_cuda_graph profile": step,
    startup_weights_do_not_fit: say("here_weights", {
      weights: gibWords(now.loaded_weights_bytes_per_gpu),
      limit: gibWords(now.memory_budget_bytes),
    }),
    startup_kv_pool_too_small: say("here_request", { context, charge: gibWords(now.steady_bytes), pool: gibWords(now.kv_budget_bytes_per_gpu) }),
    startup_workspace_or_cuda_graph: say("here_graphs", { graphs: gibWords(now.cuda_graph_bytes_per_gpu) }),
    sampler_logits_peak: say("here_sampler", { seqs: seqsOfRank(record), sampler: gibWords(now.sampler_bytes) }),
  };
  const changes = changesOf(record, now),
    helps = (kind, [name, direction]) => (name !== "max_num_seqs" || kind === OF_REQUESTS) && changes.get(`${name}_${direction}`);
  const deaths = FACTS.deaths.map(({ of: kind, words, fixes }) => {
    const every = [...(kind === "concurrency_spike" ? [A_REPLICA] : []), ...fixes].map((fix) => helps(kind, fix)).filter(Boolean);
    return { words, here: here[kind] ?? "", changes: every.map(({ change }) => change).join(" \u00b7 ") };
  });
  return { deaths, changes: [...changes.values()].filter(Boolean) };
}

const A_REPLICA = ["replica", "add"];
const OF_REQUESTS = "sampler_logits_peak"; // where fewer requests free memory, of what is started for few enough already
const gibWords = (bytes) => fixed(bytes / FACTS.gib, 2);
const OF_REPLICA = ["kv_budget_bytes_per_gpu", "steady_bytes", "loaded_weights_bytes_per_gpu", "memory_budget_bytes", "activation_bytes_per_gpu",
  "cuda_graph_bytes_per_gpu", "sampler_bytes"];
const UNCAPPED = 1e9; // requests: more than any memory holds

// What one GPU keeps of a replica as it is started, and the requests that the replica's memory holds, where settings are
// others, or it is in another position, or its cache in another precision.
function replicaWith(record, under, { position = record.chosen.position, kv = null } = {}) {
  const { solved } = record,
    { question } = solved;
  const usual = kv === null ? solved.grid : tablesOf({ ...question, kv }, offersIn(question, question.purchase));
  const started = usual.again({ max_num_seqs: seqsOfRank(record), ...under });
  started.workOut(PROGRAMS.sheet, ["profiles", "pools", "paces", "stages"]);
  const held = started.again({ max_num_seqs: UNCAPPED, counted_kv_budget_bytes: "kv_budget_bytes_per_gpu" });
  held.workOut(PROGRAMS.sheet, ["sequences"]);
  const chosen = along(held, position),
    read = (name) => readChosen(chosen, name);
  return { held: read("sequences") * read("data_parallel_size"), ...Object.fromEntries(OF_REPLICA.map((name) => [name, read(name)])) };
}

// The position of an answer's machine with twice the GPUs a replica; none where it has no more.
function widerThan({ solved: { grid }, chosen, tensor_parallel_size, data_parallel_size }) {
  const layoutOf = ({ profile }) => FACTS.layouts[grid.layouts[profile % grid.layouts.length]];
  return grid.offers.findIndex(
    (place) => place.offer === chosen.offer && layoutOf(place)[0] === 2 * tensor_parallel_size && layoutOf(place)[1] === data_parallel_size,
  );
}

// The cheapest machine that serves the load within its targets and has more memory in all its GPUs than the answer's,
// with the dollars a month of as many as the load takes; none where there is none.
function largerThan({ solved: { grid }, chosen }) {
  const memoryOf = (machine) => machine[GPU_COUNT] * FACTS.gpus[machine[GPU]].memory_bytes,
    own = machineOf(chosen.offer),
    months = grid.values("monthly_usd", ["load", "offer"]),
    counts = grid.values("n_instances", ["load", "offer"]);
  return grid.offers
    .map(({ offer }, position) => ({ machine: machineOf(offer), n_instances: counts[position], monthly_usd: months[position] }))
    .filter(({ machine, monthly_usd }) => monthly_usd > 0 && memoryOf(machine) > memoryOf(own))
    .sort((one, other) => one.monthly_usd - other.monthly_usd)[0];
}

const WORTH_SAYING = 0.1; // GiB: what frees less is not told
const A_STEP = 0.01; // of the GPU's memory: the change of the engine's share that is told

const CHANGE_HEADS = ["Change", "Memory of one GPU", "A replica's pool, as its log has it, holds", "It costs"];

// By setting and direction what a change buys, in the words under these heads; nothing of one that buys nothing.
function changesOf(record, now) {
  const { tensor_parallel_size, monthly_usd, n_instances } = record,
    { lower } = FACTS,
    batched = readChosen(record.chosenGrid, "max_num_batched_tokens"),
    seqs = seqsOfRank(record),
    fewer = (used, proposed) => (proposed < used ? proposed : Math.max(1, Math.floor(used / 2)));
  const isSeen = (bytes) => bytes >= WORTH_SAYING * FACTS.gib;
  const holds = (held) => say("change_holds", { held, now: now.held });
  const change = (name, to, buys, found) => ({ change: [name, to].filter(Boolean).join(" "), buys, holds: found ? holds(found.held) : "" });
  const request = (found) => say("change_request", { bytes: gibWords(found.steady_bytes), now: gibWords(now.steady_bytes) });
  function share(more) {
    const to = Math.round(100 * (readChosen(record.chosenGrid, "utilization_on_gpu") + more)) / 100;
    if (to >= 1) return null;
    const found = replicaWith(record, { utilization_on_gpu: to }),
      bytes = gibWords(Math.abs(found.kv_budget_bytes_per_gpu - now.kv_budget_bytes_per_gpu));
    return change("gpu_memory_utilization", String(to), say(more > 0 ? "change_more_pool" : "change_less_pool", { bytes }), found);
  }
  // Not max_model_len: the start command has the load's own length, and a shorter limit would refuse its requests.
  const worked = {
    replica_add: () => ({
      ...change("a further replica", "", ""),
      holds: say("change_replica", { seqs: seqs * record.data_parallel_size }),
      costs: say("change_machine", { usd: dollars(monthly_usd / n_instances) }),
    }),
    kv_cache_dtype_set() {
      if (!lower.kv.includes(lower.fp8) || record.kv_cache_dtype === lower.fp8) return null;
      const found = replicaWith(record, {}, { kv: lower.fp8 });
      return found.steady_bytes < now.steady_bytes ? change("kv_cache_dtype", lower.fp8, request(found), found) : null;
    },
    gpu_memory_utilization_raise: () => share(A_STEP),
    gpu_memory_utilization_lower: () => share(-A_STEP),
    max_num_batched_tokens_lower() {
      const to = fewer(batched, FACTS.fewer_tokens),
        found = replicaWith(record, { max_num_batched_tokens: to }),
        freed = now.activation_bytes_per_gpu - found.activation_bytes_per_gpu;
      return isSeen(freed) ? change("max_num_batched_tokens", String(to), say("change_more_pool", { bytes: gibWords(freed) }), found) : null;
    },
    max_num_seqs_lower() {
      const to = fewer(seqs, FACTS.fewer_sequences),
        freed = now.sampler_bytes - replicaWith(record, { max_num_seqs: to }).sampler_bytes;
      return isSeen(freed) ? change("max_num_seqs", String(to), say("change_freed", { bytes: gibWords(freed) })) : null;
    },
    tensor_parallel_size_raise() {
      const position = widerThan(record),
        larger = position < 0 ? largerThan(record) : null;
      if (position >= 0) {
        const found = replicaWith(record, {}, { position }),
          weights = say("change_weights", { bytes: gibWords(found.loaded_weights_bytes_per_gpu), now: gibWords(now.loaded_weights_bytes_per_gpu) });
        return change("tensor_parallel_size", String(2 * tensor_parallel_size), weights, found);
      }
      if (!larger) return null;
      const rent = rentWords({ instance: larger.machine[INSTANCE], n_instances: larger.n_instances });
      return { ...change(say("change_larger", { gpus: larger.machine[GPU_COUNT], gpu: FACTS.gpus[larger.machine[GPU]].name, rent }), "", ""), costs: say("change_machines", { usd: dollars(larger.monthly_usd) }) };
    },
    cpu_offload_gb_raise: () => change("cpu_offload_gb", "1", say("change_offload", {})),
    cudagraph_capture_sizes_lower: () =>
      change(say("change_graphs", {}), "", say("change_freed_at_most", { bytes: gibWords(now.cuda_graph_bytes_per_gpu) })),
  };
  const costs = new Map([[A_REPLICA.join("_"), ""]]);
  for (const [name, direction, cost] of FACTS.deaths.flatMap(({ fixes }) => fixes)) {
    const key = `${name}_${direction}`;
    if (cost.length > (costs.get(key) ?? "").length) costs.set(key, cost); // of several the one that says most
  }
  return new Map(
    [...costs].map(([key, cost]) => {
      const found = worked[key]?.();
      return [key, found ? { costs: cost, ...found } : null];
    }),
  );
}

const BITS_16 = ["bf16", "fp16"];

// The command of one replica under vLLM; nothing under another engine, or where a flag hangs on what the page lacks.
function startCommand(record) {
  const { question, chosenGrid } = record,
    { model, weights, kv, workload } = question;
  const isPublished = weights === model.weights,
    checkpoint = isPublished ? model.is_named && model.names.at(-1) : model.checkpoints[weights];
  if (!FACTS.starts || FACTS.has_draft || !checkpoint || record.pipeline_parallel_size > 1) return "";
  const isPlain = FACTS.started_unless.every((name) => !(readChosen(chosenGrid, name) > 0));
  const { architecture } = FACTS.gpus.find(({ id }) => id === record.gpu);
  const isRemarked = FACTS.starts.remarked.includes(architecture) && [weights, kv].some((dtype) => dtype.startsWith("fp8"));
  if (!isPlain || isRemarked || (BITS_16.includes(weights) && !isPublished)) return "";
  const isOurs = !isPublished && BITS_16.includes(kv);
  return say("start_vllm", {
    checkpoint,
    tp: record.tensor_parallel_size,
    dp: record.data_parallel_size,
    is_whole: Number(record.data_parallel_size > 1 || (model.blocks[weights] ?? 0) % (record.tensor_parallel_size * FACTS.scale_block) > 0),
    max_model_len: workload.max_model_len,
    seqs: seqsOfRank(record),
    batched: readChosen(chosenGrid, "max_num_batched_tokens"),
    share: String(readChosen(chosenGrid, "utilization_on_gpu")),
    cache: isOurs ? FACTS.starts.wide : (FACTS.starts.kv[kv] ?? "auto"),
  });
}

// The pool of a replica's log beside the one that is counted on, and what is kept back between them.
function poolWords(record) {
  const log = logOf(record),
    of = (name) => readChosen(record.chosenGrid, name);
  const [derived, counted] = ["kv_budget_bytes_per_gpu", "counted_kv_budget_bytes"].map(of);
  const isMore = log && log.kv_pool_bytes_per_gpu > derived,
    parts = [isMore ? log.kv_pool_bytes_per_gpu - derived : 0, derived - counted, counted].map((bytes) => bytes / FACTS.gib);
  const [flags, doubt, held] = addingUp(parts, 2, derived > counted ? 1 : 0);
  return say("pool_kept", {
    pool: isMore ? fixed(log.kv_pool_bytes_per_gpu / FACTS.gib, 2) : "",
    flags: isMore ? flags : "",
    default_seqs: of("max_num_seqs"),
    doubt: derived > counted ? doubt : "",
    confidence: record.is_even ? FACTS.levels.even : record.question.confidence,
    derived: fixed((derived - counted) / FACTS.gib > 0 ? Number(doubt) + Number(held) : derived / FACTS.gib, 2),
    counted: held,
    held: record.memory_holds,
    each: Math.floor(record.memory_holds / record.replicas_held),
  });
}

// The number of replicas on one machine.
const replicasOfMachine = ({ offer, gpus_per_replica, replicas_held }) =>
  Math.max(1, Math.min(Math.floor(machineOf(offer)[GPU_COUNT] / gpus_per_replica), replicas_held));

// For engineers in words: texts by the names of their places.
function engineerWords(record) {
  const log = logOf(record),
    gib = (bytes, decimals) => fixed(bytes / FACTS.gib, decimals);
  const command = startCommand(record);
  const { replicas_held, n_instances } = record,
    on_one = replicasOfMachine(record);
  return {
    replicas: say("replicas", {
      n: replicas_held,
      needed: record.n_replicas,
      gpus: `${record.gpus_per_replica} \u00d7 ${record.gpu_name}`,
      at_once: atOnceWords(record),
      held: record.memory_holds,
    }),
    start: command,
    start_times: command && replicas_held > 1 ? say("start_times", { n: replicas_held, on_one, n_instances }) : "",
    why_seqs: command ? say("why_seqs", { seqs: seqsOfRank(record), dp: record.data_parallel_size }) : "",
    start_note: command ? "" : say("no_command", {}),
    log: log
      ? say("log", {
          pool: gib(log.kv_pool_bytes_per_gpu, 2),
          tokens: count(log.kv_tokens),
          context: count(record.question.workload.max_model_len),
          concurrency: fixed(log.max_concurrency, 2),
          kept: poolWords(record),
        })
      : "",
  };
}
