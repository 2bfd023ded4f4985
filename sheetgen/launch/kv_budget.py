"""The KV cache that settings of trtllm-build or NIM allow, and a verdict: does it fit a GPU beside the weights?"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sheetgen.catalog.base import RawMapping, RawRecord, RawValue, is_file, read_text, with_home
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import Setting, StackFile
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.importer.config_reader import read_bytes
from sheetgen.input_files import read_bounded
from sheetgen.launch.flag_check import Trial, sequences_in_tokens, trials
from sheetgen.question import parse
from sheetgen.question.deployment import served_model
from sheetgen.question.parse import SHARE_ABOVE_0, Kind
from sheetgen.question.stated_load import A_LOAD
from sheetgen.shipped import shipped_table
from sheetgen.sizing.memory import kv_needed_bytes_per_gpu
from sheetgen.startup.printed_arguments import DTYPES, RENAMED, command_flags
from sheetgen.units import GIB, count

_OF_BUILD = shipped_table("arguments.toml")["trtllm-build"]
CACHES: Mapping[str, str] = DTYPES | _OF_BUILD["caches"]
WEIGHTS: Mapping[str, str] = _OF_BUILD["weights"]
MAX_BYTES, MAX_TEXT, MAX_PAIRS = 1_000_000, 20_000, 5_000
_ENV = re.compile(r"\s*(?:export\s+|-e\s+|--env\s+|ENV\s+)?([A-Za-z_][A-Za-z0-9_]{0,80})\s*=\s*(.*?)\s*\\?\s*")
_ITEM = re.compile(r"-{0,2}([A-Za-z_][A-Za-z0-9_-]{0,80})\s*=(.*)", re.DOTALL)
PASSED = "NIM_PASSTHROUGH_ARGS"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_TOKENS = ("max_model_len", "max_num_batched_tokens", "input_tokens")


@dataclass
class Settings:
    """The settings of one engine.

    read: each under its own name. inputs: the sheetgen inputs that they set. beams, max_tokens, sequence_lengths and
    host_kv_bytes correspond to no input. n_layers: of the model in the file.
    """

    engine: str
    read: RawRecord = field(default_factory=dict)
    inputs: RawRecord = field(default_factory=dict)
    beams: int = 1
    max_tokens: int | None = None
    sequence_lengths: float | None = None
    host_kv_bytes: int | None = None
    n_layers: int | None = None
    notes: list[str] = field(default_factory=list)


def read_settings(text: str, file: StackFile) -> Settings:
    """The settings in a text such as `max_batch_size=8,max_seq_len=4096`, or in the engine's config.json, YAML or env
    file at that path.

    Raises ScenarioError with every setting that is unknown, given twice, or has an invalid value.
    """
    bare = text.strip()
    if not bare:
        raise ScenarioError("kv_budget is blank. Give settings such as max_batch_size=8,max_seq_len=4096, or a file.")
    in_words = "=" in bare and not is_file(bare)
    stated = Stated("kv_budget", tuple(_inline_pairs(bare))) if in_words else _from_file(bare)
    by_name = {name.lower(): setting for setting in file.settings for name in setting.names}
    problems, notes = Problems(), []
    pairs: list[tuple[str, Setting, str]] = []
    for name, value in stated.pairs:
        setting = by_name.get(name.lower().lstrip("-").replace("-", "_"))
        if setting is None:
            near = did_you_mean(name, (other for setting in file.settings for other in setting.names))
            if in_words:
                problems.append(f"kv_budget has {shown(name)!r}, which is no setting of trtllm-build or NIM.{near}")
            elif name.startswith("NIM_") and near:  # other names in a file are ignored
                notes.append(f"{shown(name)} is not read.{near}")
        elif value.strip():
            pairs.append((name.lstrip("-"), setting, value.strip()))
    engines = list(dict.fromkeys(setting.engine for _, setting, _ in pairs))
    if len(engines) > 1:
        problems.append(f"kv_budget mixes settings of {' and '.join(engines)}. Give those of one.")
    if not pairs and not problems:
        problems.append(f"{stated.where}: holds no setting of trtllm-build or NIM, such as max_batch_size.")
    settings = Settings(engines[0] if engines else "tensorrt-llm", n_layers=stated.n_layers, notes=notes)
    for name, setting, value in pairs:
        settings.read[PASSED if setting.name == PASSED else name] = value
        problems.attempt(_apply_setting, settings, name, setting, value)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    inputs = settings.inputs
    prompt, answer = inputs.get("input_tokens"), inputs.pop("output_tokens", None)
    if inputs.get("max_model_len") is None and prompt is not None and answer is not None:
        inputs["max_model_len"] = prompt + answer
    length = inputs.get("max_model_len")
    if prompt is not None and length is not None and prompt > length:
        raise ScenarioError(f"max_input_len is {prompt:,}, over the {length:,} tokens of max_seq_len.")
    return settings


def _set_input(settings: Settings, name: str, into: str, value: str) -> None:
    """Set the input `into` from a setting or an argument called `name`. Raises ScenarioError for an invalid value."""
    label = shown(name)
    number: int | float | str | None
    if into == "kv_cache_dtype":
        number = CACHES.get(value.lower().removeprefix("torch."))
        if number is None:
            raise ScenarioError(f"{label} is {shown(value)!r}. Known: {', '.join(sorted(set(CACHES.values())))}.")
    elif into == "enable_prefix_caching":
        if value.lower() not in (*_TRUE, *_FALSE):
            raise ScenarioError(f"{label} is {shown(value)!r}. It must be true or false.")
        number = int(value.lower() in _TRUE)
    elif into == "gpu_memory_utilization":
        number = SHARE_ABOVE_0.parse(value, label)
    else:
        number = parse.tokens(value, label) if into in _TOKENS else parse.whole(value, label)
    before = settings.inputs.setdefault(into, number)
    if before != number:
        raise ScenarioError(f"kv_budget sets {into} twice, to {before} and by {label} to {number}. Keep one.")


def _apply_setting(settings: Settings, name: str, setting: Setting, value: str) -> None:
    """Apply a setting to the inputs, or to the other fields of `settings`."""
    label = shown(name)
    if setting.name == PASSED:  # arguments of `vllm serve`, which override variables of the same meaning
        for argument, given in command_flags(value).items():
            into = argument if argument == "kv_cache_dtype" else RENAMED["vllm"].get(argument)
            if into is None and argument in ("enable_prefix_caching", "no_enable_prefix_caching"):
                settings.inputs["enable_prefix_caching"] = int(argument.startswith("enable"))
            elif into is not None:
                settings.inputs.pop(into, None)
                _set_input(settings, argument, into, str(given))
    elif setting.input is not None:
        _set_input(settings, name, setting.input, value)
    elif setting.name == "max_beam_width":
        settings.beams = parse.whole(value, label, most=1024)
    elif setting.name == "max_output_len":
        settings.inputs["output_tokens"] = parse.tokens(value, label)
    elif setting.name == "max_tokens_in_paged_kv_cache":
        settings.max_tokens = parse.whole(value, label, most=10**12)
    elif setting.name == "host_cache_size":
        settings.host_kv_bytes = parse.whole(value, label, least=0, most=2**50) or None
    elif setting.name == "NIM_NUM_KV_CACHE_SEQ_LENS":
        settings.sequence_lengths = float(Kind(high=10**6).parse(value, label))
        settings.notes.append(f"{name} works beside NIM_RELAX_MEM_CONSTRAINTS=1 alone")
    elif setting.name == "kv_cache_type":
        word = parse.one_of(value.rsplit(".", 1)[-1], label, ("paged", "continuous", "disabled"))
        if word == "disabled":
            raise ScenarioError("kv_cache_type is disabled: such an engine keeps no cache, and only reads prompts.")
        settings.inputs["kv_allocation"] = "reserved" if word == "continuous" else "paged"
    elif setting.name == "quant_algo":
        if value.lower() in WEIGHTS:
            settings.inputs["weight_dtype"] = WEIGHTS[value.lower()]
        elif value.lower() not in ("none", "null", "no_quant"):
            settings.notes.append(f"{name} is {shown(value)}, which is not known here: name it as --weight-dtype")
    else:
        settings.notes.append(f"{name} is {setting.about}")


@dataclass(frozen=True)
class Stated:
    """Names and values in their order; `where` is their source in messages; n_layers is that of a file's model."""

    where: str
    pairs: tuple[tuple[str, str], ...]
    n_layers: int | None = None


def _inline_pairs(text: str) -> Iterator[tuple[str, str]]:
    if len(text) > MAX_TEXT:
        raise ScenarioError(f"kv_budget has {len(text):,} characters; {MAX_TEXT:,} are the most. Put it in a file.")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ",; \t\r\n", True, ""
    try:
        words = list(lexer)
    except ValueError:
        raise ScenarioError(f"kv_budget is {shown(text)!r}: a quote is not closed.") from None
    for word in words:
        match = _ITEM.fullmatch(word)
        if match is None:
            raise ScenarioError(f"kv_budget has {shown(word)!r}. Write name=value, such as max_batch_size=8.")
        yield match[1].replace("-", "_"), match[2]


def _from_file(name: str) -> Stated:
    where = shown(name, 200)
    try:
        raw = read_bounded(with_home(name), MAX_BYTES, "Name the config.json, YAML or env file itself", pipes=True)
    except ValueError as error:
        hint = " Settings are written name=value." if str(error).startswith("cannot") and "=" not in name else ""
        raise ScenarioError(f"{where}: {error}.{hint}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{where}: is not UTF-8 text.") from None
    if text.lstrip().startswith("{"):
        return _settings_in(read_bytes(raw, where), where)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    matches = [_ENV.fullmatch(line) for line in lines]
    if lines and all(matches):
        return Stated(where, tuple((m[1], _unquoted(m[2])) for m in matches[:MAX_PAIRS] if m))
    data = read_text(text, where).data
    if not isinstance(data, dict):
        raise ScenarioError(f"{where}: is neither an engine's config.json, nor YAML options, nor lines of NAME=value.")
    return _settings_in(data, where)


def _unquoted(value: str) -> str:
    """A value of an env file, without the quotes around it."""
    if len(value) >= 2 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1]
    return value.split(" #", 1)[0].strip()


def _settings_in(data: RawMapping, where: str) -> Stated:
    """The scalars in the parts of a file that have settings; where several parts have a name, the first one's."""
    values: dict[str, str] = {}
    for part in _OF_BUILD["parts"]:
        inside: RawValue = data
        for key in part:
            inside = inside.get(key) if isinstance(inside, dict) else None
        for name, value in (inside if isinstance(inside, dict) else {}).items():
            plain = "kv_cache_dtype" if part[-1:] == ["kv_cache_config"] and name == "dtype" else str(name)
            if isinstance(value, (str, int, float)) and plain not in values:
                values[plain] = json.dumps(value) if isinstance(value, bool) else str(value)
    pretrained = data.get("pretrained_config")
    layers = pretrained.get("num_hidden_layers") if isinstance(pretrained, dict) else None
    return Stated(where, tuple(values.items()), layers if type(layers) is int else None)


@dataclass(frozen=True)
class KvBudget:
    """The KV cache that the settings allow, and the verdict.

    trial: the point with every sequence at its full length. budget_tokens, budget_bytes: the largest cache under the
    limits. full_sequences: the sequences that fit the pool. is_pool: only a share of the memory is set, so the budget
    is the resulting pool, without a load that it must hold.
    """

    settings: Settings
    trial: Trial
    n_sequences: int
    budget_tokens: int
    budget_bytes: int
    full_sequences: int
    holds: bool
    verdict: str
    is_pool: bool


def inputs_of(text: str, requested: RawMapping, catalog: Catalog) -> tuple[Settings, RawRecord]:
    """The settings, and the inputs of the point that they and the typed options describe; typed options take
    precedence.

    Context and requests that were not typed are those of the limits. Raises ScenarioError or CatalogError.
    """
    settings = read_settings(text, catalog.file(StackFile))
    typed = {name: value for name, value in requested.items() if value is not None}
    given = {"engine": settings.engine, **settings.inputs, **typed}
    settings.notes += [
        f"{name} {typed[name]} was typed, and wins over {value}"
        for name, value in settings.inputs.items()
        if name in typed and str(typed[name]) != str(value)
    ]
    model, _ = served_model(given.get("model"), catalog)
    if settings.n_layers is not None and settings.n_layers != model.n_layers:
        raise ScenarioError(
            f"the engine of kv_budget has {settings.n_layers:,} layers, {model.id} has {model.n_layers:,}."
            " Name the model that it was built for."
        )
    if "max_model_len" not in given:
        given["max_model_len"] = model.max_context_tokens
        longest = f"{model.max_context_tokens:,}"
        settings.notes.append(f"the full length is not stated: the model's {longest} tokens were taken")
    if "max_num_seqs" not in given and not _is_pool(settings, given):
        settings.notes.append("the number of sequences is not stated: the engine's default was taken")
    elif "max_num_seqs" in given:
        given["max_num_seqs"] = parse.whole(given["max_num_seqs"], "max_num_seqs") * settings.beams
        if all(given.get(name) is None for name in A_LOAD):
            given["concurrent_requests"] = given["max_num_seqs"]
    given.setdefault("context_tokens", given["max_model_len"])
    return settings, given


def _is_pool(settings: Settings, given: RawMapping) -> bool:
    """True if the settings state the pool's share of memory, but no number of sequences or tokens that it must hold."""
    states_load = "max_num_seqs" in given or settings.max_tokens is not None or settings.sequence_lengths is not None
    return "gpu_memory_utilization" in settings.inputs and not states_load


def budget(settings: Settings, given: RawMapping, point: RawMapping, catalog: Catalog) -> KvBudget:
    """The budget and verdict for the inputs of `inputs_of` (`given`) and their record (`point`)."""
    launcher = catalog.file(StackFile).launcher(str(point["engine"]))
    n = point["max_num_seqs"] * (1 if "max_num_seqs" in given else settings.beams)
    length = point["max_model_len"]
    full = {
        **given,
        **dict.fromkeys(A_LOAD),
        "max_num_seqs": n,
        "concurrent_requests": n * point["data_parallel_size"],
        "context_tokens": length,
        "max_model_len": length,
        "input_tokens": None,
        "output_tokens": None,
        "prefix_cache_hit_fraction": 0,
        "average_context_fraction": 1,
    }
    trial = trials([full], [launcher], catalog)[0]
    assert trial is not None
    limit = settings.max_tokens
    if settings.sequence_lengths is not None:
        limit = max(length, int(settings.sequence_lengths * length))
    quantities = {**trial.quantities, "n_sequences": n * point["data_parallel_size"], "max_model_len": length}
    held = int(quantities["sequences_in_pool"] * point["data_parallel_size"])
    tokens, holds = quantities["n_sequences"] * length, trial.fits
    needed = kv_needed_bytes_per_gpu.of({**quantities, "requests_per_rank": n})
    if limit is not None and limit < tokens:
        tokens = limit
        within = int(sequences_in_tokens.of({**quantities, "limit_tokens": limit}))
        held = min(held, within)
        needed = tokens * quantities["kv_bytes_per_token_per_gpu"]
        holds = trial.runs and needed <= quantities["kv_budget_bytes_per_gpu"] and within >= 1
    is_pool = _is_pool(settings, given)
    if is_pool:
        quantities["n_sequences"], tokens = held, trial.answer["kv_tokens"] * point["data_parallel_size"]
        holds = trial.runs and held >= 1
    # Before any division over GPUs, without windows, states and the rounding to whole blocks.
    ceiling = tokens * quantities["kv_bytes_per_token"]
    full_length = f"{length:,} tokens"
    pool, weights = quantities["kv_pool_bytes_per_gpu"] / GIB, quantities["loaded_weights_bytes_per_gpu"] / GIB
    beside = f"beside {weights:,.2f} GiB of weights"
    left = f"{pool:,.2f} GiB are left on it {beside}"
    fit = f"{count(held, 'full sequence')} of {full_length} fit{'s' if held == 1 else ''}."
    if not trial.runs:
        verdict = trial.verdict
    elif is_pool and holds:
        verdict = f"a pool to fill: {pool:,.2f} GiB of each GPU, {beside}; {fit}"
    elif is_pool:
        verdict = (
            f"does not hold: the pool has {pool:,.2f} GiB of each GPU, {beside}; one sequence of {full_length} takes"
            " more, and the engine does not start."
        )
    elif limit is not None and limit < length:
        verdict = (
            f"does not hold: the pool is to take {limit:,} tokens, less than one sequence of {full_length}; the engine"
            " does not start."
        )
    elif holds:
        verdict = f"holds: {needed / GIB:,.2f} GiB of each GPU, and {left}; {fit}"
    else:
        verdict = f"does not hold: {needed / GIB:,.2f} GiB of each GPU are requested, and {left}; {fit}"
    return KvBudget(
        settings, trial, int(quantities["n_sequences"]), int(tokens), int(ceiling), held, holds, verdict, is_pool
    )


def budget_record(budgeted: KvBudget) -> RawRecord:
    """The budget as JSON; bytes are whole."""
    answer = budgeted.trial.answer
    sized = {name: answer[name] for name in ("kv_bytes", "weights_bytes_per_gpu", "kv_pool_bytes_per_gpu")}
    return {
        "engine": answer["engine"],
        "engine_version": answer["engine_version"],
        "settings": budgeted.settings.read,
        "max_num_seqs": answer["max_num_seqs"] // budgeted.settings.beams,
        "max_beam_width": budgeted.settings.beams,
        "max_model_len": answer["max_model_len"],
        "n_sequences": budgeted.n_sequences,
        "kv_cache_dtype": answer["kv_cache_dtype"],
        "kv_bytes_per_token": answer["kv_bytes_per_token"],
        "budget_tokens": budgeted.budget_tokens,
        "budget_bytes": budgeted.budget_bytes,
        **sized,
        "holds": budgeted.holds,
        "is_pool": budgeted.is_pool,
        "full_sequences_that_fit": budgeted.full_sequences,
        "verdict": budgeted.verdict,
        "notes": budgeted.settings.notes,
    }
