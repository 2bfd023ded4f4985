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

// What can run out, with the numbers of one GPU of the answer as it is started: rows of words by what they are.
function deathsOf(record) {
  const log = logOf(record),
    of = (name) => readChosen(record.chosenGrid, name),
    gib = (bytes) => fixed(bytes / FACTS.gib, 2);
  if (!log) return FACTS.deaths.map(({ words }) => [...words, ""]);
  const seqs = seqsOfRank(record) * record.data_parallel_size,
    batched = of("max_num_batched_tokens"),
    context = count(record.question.workload.max_model_len);
  const held = say("here_held", { held: Math.floor(record.memory_holds / record.n_replicas), context, seqs });
  const step = say("here_step", { batched, activation: gib(of("activation_bytes_per_gpu")) });
  const here = {
    long_completion: held,
    concurrency_spike: held,
    prefill_long_prompt: step,
    "startup_workspace_or_cuda_graph profile": step,
    startup_weights_do_not_fit: say("here_weights", { weights: gib(of("loaded_weights_bytes_per_gpu")), limit: gib(of("memory_budget_bytes")) }),
    startup_kv_pool_too_small: say("here_request", { context, charge: gib(of("steady_bytes")), pool: gib(log.kv_pool_bytes_per_gpu) }),
    startup_workspace_or_cuda_graph: say("here_graphs", { graphs: gib(of("cuda_graph_bytes_per_gpu")) }),
    sampler_logits_peak: say("here_sampler", { seqs: seqsOfRank(record), sampler: gib(log.sampler_bytes) }),
  };
  // A limit that the start command is below is nothing to lower it to.
  const inUse = { max_num_seqs: seqsOfRank(record), max_num_batched_tokens: batched };
  const isHelp = (fix) => {
    const [name, , value] = fix.split(" ");
    return !(value && inUse[name] <= Number(value));
  };
  return FACTS.deaths.map(({ of: kind, words: [where, bill, looks, change] }) => [where, bill, looks, change.split(" \u00b7 ").filter(isHelp).join(" \u00b7 "), here[kind] ?? ""]);
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
    share: String(CONSTANTS.gpu_memory_utilization),
    cache: isOurs ? FACTS.starts.wide : (FACTS.starts.kv[kv] ?? "auto"),
  });
}

// The pool of a replica's log beside the one that is counted on, and what is kept back between them.
function poolWords(record) {
  const log = logOf(record),
    of = (name) => readChosen(record.chosenGrid, name),
    gib = (bytes) => fixed(bytes / FACTS.gib, 2);
  const [derived, counted] = ["kv_budget_bytes_per_gpu", "counted_kv_budget_bytes"].map(of);
  const isMore = log && log.kv_pool_bytes_per_gpu > derived;
  return say("pool_kept", {
    pool: isMore ? gib(log.kv_pool_bytes_per_gpu) : "",
    flags: isMore ? gib(log.kv_pool_bytes_per_gpu - derived) : "",
    default_seqs: of("max_num_seqs"),
    doubt: derived > counted ? gib(derived - counted) : "",
    confidence: record.is_even ? FACTS.levels.even : record.question.confidence,
    counted: gib(counted),
    held: record.memory_holds,
  });
}

// For engineers in words: texts by the names of their places.
function engineerWords(record) {
  const log = logOf(record),
    gib = (bytes, decimals) => fixed(bytes / FACTS.gib, decimals);
  const command = startCommand(record);
  return {
    replicas: say("replicas", {
      n: record.n_replicas,
      gpus: `${record.gpus_per_replica} \u00d7 ${record.gpu_name}`,
      at_once: atOnceWords(record),
      held: record.memory_holds,
    }),
    start: command,
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
