"""The launch command of each engine for one point that it can serve, as text for a shell, and the checkpoint in it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from sheetgen.catalog.base import RawRecord, RawValue
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import MTP, Model
from sheetgen.catalog.stacks import Input, Launcher
from sheetgen.errors import ScenarioError, shown
from sheetgen.importer.model_names import is_path
from sheetgen.launch.flag_check import Trial, known_checkpoint
from sheetgen.question.deployment import Resolved
from sheetgen.units import UNQUANTIZED, count

SIXTEEN_BITS = ("bf16", "fp16")
DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


class Expanded(str):
    """A word with a shell variable to expand; it is put in double quotes."""

    __slots__ = ()


def quoted(word: str) -> str:
    """`word` as one word of a POSIX shell.

    Raises ScenarioError for a word with an invisible character: pasted, it could be another command.
    """
    if isinstance(word, Expanded):
        return f'"{word}"'
    if not word.isprintable():
        raise ScenarioError(f"{shown(word, 200)!r} holds a control character, which no command can show. Rename it.")
    return shlex.quote(word)


def command(groups: Iterable[Iterable[str]], between: str = " \\\n  ") -> str:
    """Groups of words as a command, one line per group; `between` separates the lines."""
    return between.join(" ".join(quoted(word) for word in group) for group in groups)


def here_document(name: str, text: str) -> str:
    """Shell lines that write `text` unchanged into the file `name`."""
    return f"cat > {quoted(name)} <<'EOF'\n{text.rstrip()}\nEOF"


def flag_groups(flags: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Flags with their values as groups of words; a flag whose value is True stands alone."""
    return [(flag,) if value is True else (flag, str(value)) for flag, value in flags.items()]


@dataclass(frozen=True)
class Checkpoint:
    """The model in a command.

    word: a Hugging Face id, a folder, or a placeholder in capitals where no checkpoint of the precision is known.
    words: flags needed beside it. dtype: the precision in which 16- or 32-bit weights are to be loaded, if not their
    own. is_ours: chosen here by its precision, not named by the user, so that it does not decide on the KV cache.
    """

    word: str
    is_folder: bool = False
    is_known: bool = True
    is_ours: bool = False
    words: tuple[str, ...] = ()
    dtype: str | None = None
    notes: tuple[str, ...] = ()


def checkpoint_for(
    typed: str, names: Resolved, launcher: Launcher, catalog: Catalog, loads_unquantized: bool = False
) -> Checkpoint:
    """The checkpoint for `typed`, the model as the user named it.

    loads_unquantized: the 16-bit weights fit the GPUs, as an engine that quantizes while loading needs.
    Raises ScenarioError for a name or path with invisible characters.
    """
    quoted(typed.strip())
    model, dtype = names.model, names.weight_dtype
    words = launcher.weight_dtypes.get(dtype, ())
    if is_path(typed) and not catalog.lists_model(typed):
        return _folder(typed, model, dtype, words)
    own = typed.strip() if "/" in typed else None  # a Hugging Face id, in its catalog spelling where it has one
    if own is not None:
        spelled = (model.hf_id, *model.same_architecture, *(c.hf_id for c in model.checkpoints))
        own = next((name for name in spelled if name and name.lower() == own.lower()), own)
    base = own or model.hf_id
    named = catalog.resolve_model(typed)[1] if own else None
    if base and dtype == (named or model.weight_dtype):
        return Checkpoint(base, words=words)
    if base and named is None and dtype in UNQUANTIZED and model.weight_dtype in UNQUANTIZED:
        return Checkpoint(base, words=words, dtype=DTYPE_NAMES[dtype])
    is_own = own in (None, model.hf_id)  # no checkpoints are known for a copy under another name
    if named is None and is_own and (hf_id := known_checkpoint(model, dtype)):
        return Checkpoint(hf_id, is_ours=True, words=words)
    while_loading = launcher.quantizes_while_loading.get(dtype)
    if base and named is None and while_loading and model.weight_dtype in UNQUANTIZED and loads_unquantized:
        note = (
            f"no checkpoint of {base} in {dtype} is known here, so the engine makes one while it loads:"
            " slower to start, and the 16-bit weights pass through the GPU"
        )
        return Checkpoint(base, words=while_loading, notes=(note,))
    blank = f"{dtype.upper()}-CHECKPOINT-OF-{(base or model.id).rsplit('/', 1)[-1]}"
    why = f"no checkpoint of {base or model.name} in {dtype} is known here: put its id or folder in place of {blank}"
    return Checkpoint(blank, is_known=False, words=words, notes=(why,))


def _folder(typed: str, model: Model, dtype: str, words: tuple[str, ...]) -> Checkpoint:
    """The checkpoint in the folder of a config on disk, which the engine loads in its own precision."""
    path = Path(typed).expanduser()
    folder = path if path.is_dir() else path.parent
    word = str(folder) if str(folder) not in ("", ".") else "./"
    word = word if word.startswith(("/", ".")) else f"./{word}"  # neither a flag nor an id
    notes = ["the weights are expected beside the config in that folder"]
    if dtype != model.weight_dtype:
        notes.append(f"sized with {dtype} weights; the config says {model.weight_dtype}, and the engine loads that")
    return Checkpoint(word, is_folder=True, words=words if dtype == model.weight_dtype else (), notes=tuple(notes))


PARALLEL: tuple[Input, ...] = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
MOUNTED, IMAGE = "/opt/model", "${NIM_LLM_MODEL_FREE_IMAGE}"
# Flags with a variable of their own in NIM; all others are arguments of the vLLM inside.
NIM_VARIABLES = {
    "--tensor-parallel-size": "NIM_TENSOR_PARALLEL_SIZE",
    "--pipeline-parallel-size": "NIM_PIPELINE_PARALLEL_SIZE",
    "--max-model-len": "NIM_MAX_MODEL_LEN",
}
NIM_SHARE = "NIM_KVCACHE_PERCENT"  # read by 1.x; in 2.x the arguments override it
TRTLLM_OPTIONS, TRTLLM_CHECKPOINT, TRTLLM_ENGINE = "llm_api_options.yaml", "trtllm_checkpoint", "trtllm_engine"


@dataclass(frozen=True)
class Plan:
    """A command to be written: a point that one engine can serve, its checkpoints, and other flags that it needs."""

    trial: Trial
    launcher: Launcher
    checkpoint: Checkpoint
    draft: Checkpoint | None
    speculative_tokens: int
    needed: tuple[str, ...] = ()

    def value(self, name: str) -> RawValue:
        """An input or result of the sized point."""
        return self.trial.answer[name]

    @property
    def shares_experts(self) -> bool:
        """True if data-parallel ranks share the experts, which needs a model with experts."""
        return self.value("data_parallel_size") > 1 and self.trial.quantities["n_params_routed"] > 0

    @property
    def splits_scale_blocks(self) -> bool:
        """True if tensor parallelism would split blocks of the experts' weights that share a scale, which vLLM refuses
        to load ("is not divisible by weight quantization block_n = 128", vllm-project/vllm#17569)."""
        names, size = self.trial.names, self.value("tensor_parallel_size")
        return names.model.splits_scale_blocks(self.checkpoint.word, names.weight_dtype, size)

    @property
    def has_own_block_size(self) -> bool:
        return bool(self.value("block_size") != self.trial.names.engine.block_size)

    @property
    def cache_word(self) -> str:
        """The engine's word for the KV cache's precision; 16 bits explicitly if the checkpoint was chosen here, whose
        own precision `auto` would follow."""
        dtype, plain = self.value("kv_cache_dtype"), self.launcher.kv_cache_16_bits
        if plain and self.checkpoint.is_ours and dtype in SIXTEEN_BITS:
            return plain
        return self.launcher.kv_cache_dtypes.get(dtype, "auto")

    @property
    def caches_prefixes(self) -> bool:
        return bool(self.value("enable_prefix_caching"))

    @property
    def needs_chunks(self) -> bool:
        """True if a prompt may be longer than a step."""
        return bool(self.value("max_model_len") > self.value("max_num_batched_tokens"))

    def flags(self, *names: Input) -> RawRecord:
        """The engine's flags with the point's values for these inputs, without sizes of 1 and default block sizes."""
        flags: RawRecord = {}
        for name in names:
            value = self.value(name)
            if name == "block_size" and not self.has_own_block_size:
                continue
            if name.endswith("parallel_size") and value == 1 and name != "tensor_parallel_size":
                continue
            flags[self.launcher.flags[name]] = round(value, 4) if isinstance(value, float) else value
        return flags

    def checkpoint_flags(self, words: Iterable[str] | None = None) -> RawRecord:
        """The flags for the checkpoint: the precision of 16- or 32-bit weights if not their own, and the words of the
        launcher (`--quantization fp8`) and its remarks."""
        flags: RawRecord = {}
        if self.checkpoint.dtype:
            flags[self.launcher.flags["dtype"]] = self.checkpoint.dtype
        flag = ""
        for word in (*(self.checkpoint.words if words is None else words), *self.needed):
            if word.startswith("--"):
                flag, flags[word] = word, True
            else:
                flags[flag] = word
        return flags

    def draft_method(self, eagle: str, model: str, own: str) -> str:
        """The engine's word for the kind of draft: an EAGLE head, another model, or the target's own layers."""
        draft = self.trial.names.draft
        if self.drafts_itself:
            return own
        return eagle if draft is not None and "eagle" in draft.id else model

    @property
    def drafts_itself(self) -> bool:
        """True if the model's own layers draft."""
        return self.trial.names.draft is not None and self.trial.names.draft.id == MTP

    def copies(self) -> list[str]:
        """A note for data parallelism of a model without experts, which is several servers with all weights each."""
        ranks, n = self.value("data_parallel_size"), self.trial.n_gpus // self.value("data_parallel_size")
        places = f"each on its own {count(n, 'GPU')} and port, behind a balancer"
        return [f"start it {ranks:,} times, {places}"] if ranks > 1 else []


@dataclass
class Written:
    """A command and its parts.

    groups: words by line. settings: every flag with its value, including files and environment. files: texts by name.
    other: further commands by name.
    """

    groups: list[tuple[str, ...]]
    settings: RawRecord
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    other: dict[str, Written] = field(default_factory=dict)


def vllm(plan: Plan) -> Written:
    """`vllm serve`, with every argument that affects the memory of the point."""
    names, quantities = plan.launcher.flags, plan.trial.quantities
    flags = plan.flags(*PARALLEL)
    if plan.value("expert_parallel_size") > 1 or plan.shares_experts or plan.splits_scale_blocks:
        flags[names["expert_parallel_size"]] = True
    flags |= plan.flags("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization")
    if plan.value("kv_cache_memory_bytes"):
        flags |= plan.flags("kv_cache_memory_bytes")
    # `auto`, unless the engine itself would choose FP8, as it does for sparse attention over a latent cache.
    resolved = plan.trial.names
    keeps_fp8 = resolved.engine.keeps_fp8(resolved.model.entry_id, resolved.gpu.architecture)
    chooses_fp8 = quantities["mla_fp8_entry_bytes"] > 0 or keeps_fp8
    says_16_bits = chooses_fp8 and plan.value("kv_cache_dtype") in SIXTEEN_BITS
    flags[names["kv_cache_dtype"]] = plan.launcher.kv_cache_16_bits if says_16_bits else plan.cache_word
    flags |= plan.flags("block_size")
    caching = names["enable_prefix_caching"]
    flags[caching if plan.caches_prefixes else caching.replace("--", "--no-", 1)] = True
    has_kinds = quantities["n_windowed_layers"] + quantities["n_state_layers"] > 0  # that a KV manager could keep apart
    if not plan.value("hybrid_kv_manager") and plan.trial.names.engine.frees_windows and has_kinds:
        flags[names["hybrid_kv_manager"]] = True
    flags |= plan.checkpoint_flags()
    if plan.draft is not None:
        drafting: RawRecord = {"method": plan.draft_method("eagle3", "draft_model", MTP)}
        drafting |= {} if plan.drafts_itself else {"model": plan.draft.word}
        drafting["num_speculative_tokens"] = plan.speculative_tokens
        flags[names["draft_model"]] = json.dumps(drafting)
    size, notes = plan.value("expert_parallel_size"), []
    ranks = plan.value("tensor_parallel_size") * plan.value("data_parallel_size")
    if size > 1 and size != ranks:
        has_no_flag = f"expert_parallel_size {size:,} has no flag of its own"
        notes.append(f"vLLM spreads experts over all {ranks:,} ranks; {has_no_flag}")
    return Written([("vllm", "serve", plan.checkpoint.word), *flag_groups(flags)], flags, notes=notes)


def sglang(plan: Plan) -> Written:
    """`python -m sglang.launch_server`."""
    names = plan.launcher.flags
    size, ranks = plan.value("tensor_parallel_size"), plan.value("data_parallel_size")
    flags = plan.flags(*PARALLEL, "expert_parallel_size")
    limits = plan.flags("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization")
    notes = []
    if plan.shares_experts:  # TP counts all ranks, of which attention uses TP / DP; the limit is that of all ranks
        flags[names["tensor_parallel_size"]] = size * ranks
        flags["--enable-dp-attention"] = True
        limits[names["max_num_seqs"]] = plan.value("max_num_seqs") * ranks
        notes.append(f"DP attention: --tp-size counts all {size * ranks:,} ranks, {size:,} in each attention group")
    if plan.value("kv_cache_memory_bytes"):
        limits[names["kv_cache_memory_bytes"]] = plan.value("kv_tokens")
    flags |= limits | {names["kv_cache_dtype"]: plan.cache_word} | plan.flags("block_size")
    if not plan.caches_prefixes:
        flags[names["enable_prefix_caching"]] = True
    flags |= plan.checkpoint_flags()
    if plan.draft is not None:
        flags["--speculative-algorithm"] = plan.draft_method("EAGLE3", "STANDALONE", "NEXTN")
        flags |= {} if plan.drafts_itself else {names["draft_model"]: plan.draft.word}
        flags |= {
            "--speculative-num-steps": plan.speculative_tokens,
            "--speculative-eagle-topk": 1,  # a chain of drafted tokens, as other engines use
            "--speculative-num-draft-tokens": plan.speculative_tokens + 1,
        }
    groups = [("python", "-m", "sglang.launch_server"), ("--model-path", plan.checkpoint.word), *flag_groups(flags)]
    return Written(groups, flags, notes=notes)


def lmdeploy(plan: Plan) -> Written:
    """`lmdeploy serve api_server`, on TurboMind."""
    names = plan.launcher.flags
    flags: RawRecord = {"--backend": "turbomind"} | plan.flags(
        "tensor_parallel_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"
    )
    if plan.value("kv_cache_memory_bytes"):  # a whole number in place of the share is a number of blocks
        flags[names["gpu_memory_utilization"]] = plan.value("kv_tokens") // plan.value("block_size")
    flags |= {names["kv_cache_dtype"]: plan.cache_word} | plan.flags("block_size")
    if plan.caches_prefixes:
        flags[names["enable_prefix_caching"]] = True
    # 4-bit integers have different words for AWQ and GPTQ.
    hf_id = known_checkpoint(plan.trial.names.model, plan.value("weight_dtype"))
    is_gptq = "gptq" in (plan.checkpoint.word if plan.checkpoint.is_known else hf_id or "").lower()
    flags |= plan.checkpoint_flags("gptq" if word == "awq" and is_gptq else word for word in plan.checkpoint.words)
    groups = [("lmdeploy", "serve", "api_server", plan.checkpoint.word), *flag_groups(flags)]
    return Written(groups, flags, notes=plan.copies())


def nim(plan: Plan) -> Written:
    """`docker run` of an NVIDIA NIM (2.x, vLLM inside): environment, and vLLM's arguments in one of its variables."""
    of_variable = {name: flag for flag, name in NIM_VARIABLES.items()}
    names = {setting: of_variable.get(flag, flag) for setting, flag in plan.launcher.flags.items()}
    of_vllm = vllm(replace(plan, launcher=plan.launcher.model_copy(update={"flags": names})))
    flags = of_vllm.settings
    inner = {flag: value for flag, value in flags.items() if flag not in NIM_VARIABLES}
    mount: list[tuple[str, ...]] = []
    env = {"NIM_MODEL_PATH": f"hf://{plan.checkpoint.word}"}
    if plan.checkpoint.is_folder:
        source = f"source={Path(plan.checkpoint.word).absolute()}"
        as_field = '"' + source.replace('"', '""') + '"' if {",", '"'} & set(source) else source
        mount = [("--mount", f"type=bind,{as_field},target={MOUNTED},readonly")]
        env = {"NIM_MODEL_PATH": MOUNTED}
    env |= {NIM_VARIABLES[flag]: str(value) for flag, value in flags.items() if flag in NIM_VARIABLES}
    env[NIM_SHARE] = str(flags["--gpu-memory-utilization"])
    env["NIM_PASSTHROUGH_ARGS"] = shlex.join([word for group in flag_groups(inner) for word in group])
    groups = [
        ("docker", "run", "--rm"),
        ("--gpus", str(plan.trial.n_gpus)),
        ("--shm-size", "16GB"),
        ("-p", "8000:8000"),
        ("-e", "NGC_API_KEY"),
        ("-e", "HF_TOKEN"),
        *mount,
        *(("-e", f"{name}={value}") for name, value in env.items()),
        (Expanded(f"{IMAGE}:{plan.trial.names.engine.default_version}"),),
    ]
    notes = [
        *of_vllm.notes,
        f"{IMAGE} is the image without a model from build.nvidia.com; a container that brings its model needs no"
        " NIM_MODEL_PATH",
        f"NIM 1.x takes the share from {NIM_SHARE}, 2.x from NIM_PASSTHROUGH_ARGS, which win over other variables",
    ]
    return Written(groups, {**env, **inner}, env, notes=notes)


def tensorrt_llm(plan: Plan) -> Written:
    """`trtllm-serve` with its YAML (PyTorch backend), and `trtllm-build` for a compiled engine."""
    names = plan.launcher.flags
    sizes = plan.flags("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size")
    notes = [] if plan.shares_experts else plan.copies()
    options = _trtllm_options(plan)
    if plan.shares_experts:
        sizes[names["tensor_parallel_size"]] = plan.value("data_parallel_size")
        sizes.setdefault(names["expert_parallel_size"], plan.value("data_parallel_size"))
        options[names["data_parallel_size"]] = True
        notes.append("attention DP: every rank of --tp_size serves requests of its own; --max_batch_size is one rank's")
    flags = {"--backend": "pytorch"} | sizes | plan.flags("max_num_seqs", "max_num_batched_tokens", "max_model_len")
    flags["--config"] = TRTLLM_OPTIONS
    groups = [("trtllm-serve", plan.checkpoint.word), *flag_groups(flags)]
    files = {TRTLLM_OPTIONS: yaml.safe_dump(options, sort_keys=False, allow_unicode=True, width=10_000)}
    is_mxfp4 = plan.value("weight_dtype") == "mxfp4"
    hinders = "attention DP" if plan.shares_experts else "MXFP4 weights" if is_mxfp4 else ""
    if hinders:
        notes.append(f"no trtllm-build: a compiled engine knows no {hinders}")
    other = {} if hinders else {"trtllm-build": _trtllm_build(plan)}
    return Written(groups, flags | _flat(options), files=files, notes=notes, other=other)


def _trtllm_options(plan: Plan) -> RawRecord:
    """The YAML options of trtllm-serve, which override its flags."""
    cache: RawRecord = {
        "free_gpu_memory_fraction": round(plan.value("gpu_memory_utilization"), 4),
        "dtype": plan.cache_word,
        "enable_block_reuse": plan.caches_prefixes,
    }
    if plan.value("kv_cache_memory_bytes"):
        cache["max_gpu_total_bytes"] = plan.value("kv_cache_memory_bytes")
    if plan.has_own_block_size:
        cache["tokens_per_block"] = plan.value("block_size")
    # Without chunks a prompt longer than max_num_tokens is refused.
    options: RawRecord = {"kv_cache_config": cache, "enable_chunked_prefill": plan.needs_chunks}
    if plan.checkpoint.dtype:
        options["dtype"] = plan.checkpoint.dtype
    if plan.draft is not None:
        method = plan.draft_method("Eagle", "DraftTarget", "MTP")  # Eagle reads EAGLE 3 heads in all of 1.x
        of_another = {"max_draft_len": plan.speculative_tokens, "speculative_model_dir": plan.draft.word}
        own = {"num_nextn_predict_layers": plan.speculative_tokens}
        options["speculative_config"] = {"decoding_type": method, **(own if plan.drafts_itself else of_another)}
    return options


def _trtllm_build(plan: Plan) -> Written:
    """`trtllm-build` with the same limits; the memory share is set when the engine is served."""
    size, stages = plan.value("tensor_parallel_size"), plan.value("pipeline_parallel_size")
    flags: RawRecord = {
        "--checkpoint_dir": TRTLLM_CHECKPOINT,
        "--output_dir": TRTLLM_ENGINE,
        "--max_batch_size": plan.value("max_num_seqs"),
        "--max_seq_len": plan.value("max_model_len"),
        "--max_num_tokens": plan.value("max_num_batched_tokens"),
        "--max_beam_width": 1,
        "--kv_cache_type": "paged",
        "--remove_input_padding": "enable",
        "--gemm_plugin": "auto",
        "--workers": size * stages,
    }
    is_fp8 = plan.value("kv_cache_dtype") == "fp8"
    in_fp8 = is_fp8 and plan.value("weight_dtype") == "fp8"
    if in_fp8 or (not is_fp8 and (plan.caches_prefixes or plan.needs_chunks)):
        flags["--use_paged_context_fmha"] = "enable"  # reuse and chunks read paged blocks
    if in_fp8:
        flags["--use_fp8_context_fmha"] = "enable"
    if plan.has_own_block_size:
        flags["--tokens_per_block"] = plan.value("block_size")
    kept = "--kv_cache_dtype fp8 " if is_fp8 else ""
    notes = [
        f"{TRTLLM_CHECKPOINT} is {plan.checkpoint.word} converted for TP {size}, PP {stages}"
        f" (examples/quantization/quantize.py {kept}or the model's convert_checkpoint.py), which fixes weights, cache"
        " precision and ranks",
        f"serve it with kv_cache_free_gpu_memory_fraction {round(plan.value('gpu_memory_utilization'), 4):g}; decoder"
        " and runtime buffers grow with max_batch_size x max_seq_len and were counted as the PyTorch backend's",
    ]
    if plan.value("kv_cache_memory_bytes"):
        notes.append("a compiled engine knows no max_gpu_total_bytes: limit its cache by max_tokens_in_paged_kv_cache")
    if is_fp8 and not in_fp8:
        notes.append(
            "FP8 context attention needs FP8 weights: this engine reuses no blocks, and takes prompts of up to"
            " max_num_tokens"
        )
    if plan.draft is not None:
        notes.append("without the draft: a compiled engine is built with its own --speculative_decoding_mode")
    return Written([("trtllm-build",), *flag_groups(flags)], flags, notes=notes)


def _flat(options: RawRecord, above: str = "") -> RawRecord:
    """Nested options under dotted names."""
    flat: RawRecord = {}
    for name, value in options.items():
        flat |= _flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return flat


WRITERS: dict[str, Callable[[Plan], Written]] = {
    "vllm": vllm,
    "sglang": sglang,
    "tensorrt-llm": tensorrt_llm,
    "nim": nim,
    "lmdeploy": lmdeploy,
}
