"""Memory settings of trtllm-build and NIM, as text or from a file, read into inputs of ours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sheetgen.catalog.stacks import Setting, StackFile
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.launch.files import Stated, stated
from sheetgen.scenario import parse
from sheetgen.startup.literals import command_flags
from sheetgen.startup.words import DTYPES, RENAMED

CACHES = DTYPES | {"half": "fp16", "fp8_e4m3fn": "fp8", "none": "auto", "null": "auto", "fp32": "fp32", "int4": "int4"}
WEIGHTS = {  # quant_algo of a TensorRT-LLM checkpoint -> precision of ours
    "fp8": "fp8", "fp8_block_scales": "fp8", "fp8_per_channel_per_token": "fp8", "nvfp4": "nvfp4", "w4a16": "int4",
    "w4a16_awq": "int4", "w4a16_gptq": "int4", "w8a16": "int8", "w8a8_sq_per_channel": "int8", "w4a16_mxfp4": "mxfp4",
}  # fmt: skip
PASSED = "NIM_PASSTHROUGH_ARGS"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_SHARES, _FLAGS = ("gpu_memory_utilization",), ("enable_prefix_caching",)
_TOKENS = ("max_model_len", "max_num_batched_tokens", "input_tokens")


@dataclass
class Settings:
    """engine: whose settings they are. read: each under its own name. inputs: what they set of ours. beams and
    max_tokens are what no input of ours says; n_layers is the model's in the file."""

    engine: str
    read: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    beams: int = 1
    max_tokens: int | None = None
    sequence_lengths: float | None = None
    n_layers: int | None = None
    notes: list[str] = field(default_factory=list)


def read_settings(text: str, file: StackFile) -> Settings:
    """`max_batch_size=8,max_seq_len=4096`, or the path of an engine's config.json, of a YAML or of an env file.

    Raises ScenarioError with every setting that is unknown, given twice, or no number of its kind.
    """
    found = stated(text)
    known = {name.lower(): one for one in file.settings for name in one.names}
    problems: list[str] = []
    pairs: list[tuple[str, Setting, str]] = []
    notes: list[str] = []
    for name, value in found.pairs:
        setting = known.get(name.lower().lstrip("-").replace("-", "_"))
        if setting is None:
            _unknown(name, found, known, problems, notes)
        elif value.strip():
            pairs.append((name, setting, value.strip()))
    engines = list(dict.fromkeys(one.engine for _, one, _ in pairs))
    if len(engines) > 1:
        problems.append(f"kv_budget mixes settings of {' and '.join(engines)}. Give those of one.")
    if not pairs and not problems:
        problems.append(f"{found.where}: holds no setting of trtllm-build or NIM, such as max_batch_size.")
    settings = Settings(engines[0] if engines else "tensorrt-llm", n_layers=found.n_layers, notes=notes)
    for name, setting, value in pairs:
        try:
            _take(settings, name.lstrip("-"), setting, value)
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    _lengths(settings)
    return settings


def _unknown(name: str, found: Stated, known: Iterable[str], problems: list[str], notes: list[str]) -> None:
    """A name that is no setting: an error where it was typed, a remark where a file has it and it looks like one."""
    spelled = {one: one.upper() if one.startswith("nim_") else one for one in known}
    near = did_you_mean(name, spelled)
    for low, right in spelled.items():
        near = near.replace(f" {low}?", f" {right}?")
    if not found.is_file:
        problems.append(f"kv_budget has {shown(name)!r}, which is no setting of trtllm-build or NIM.{near}")
    elif name.startswith("NIM_") and near:
        notes.append(f"{shown(name)} is not read.{near}")


def _take(settings: Settings, name: str, setting: Setting, value: str) -> None:
    if setting.name == PASSED:
        _passed(settings, value)
        return
    if setting.input is not None:
        _put(settings, name, setting.input, value)
    else:
        _rest(settings, name, setting, value)
    settings.read[name] = value


def _put(settings: Settings, name: str, into: str, value: str) -> None:
    """One of our inputs, from a setting or an argument called `name`."""
    number = _read(name, into, value)
    before = settings.inputs.get(into)
    if before is not None and before != number:
        raise ScenarioError(f"kv_budget sets {into} twice, to {before} and by {shown(name)} to {number}. Keep one.")
    settings.inputs[into] = number


def _read(name: str, into: str, value: str) -> Any:
    label = shown(name)
    if into == "kv_cache_dtype":
        dtype = CACHES.get(value.lower().removeprefix("torch."))
        if dtype is None:
            raise ScenarioError(f"{label} is {shown(value)!r}. Known: {', '.join(sorted(set(CACHES.values())))}.")
        return dtype
    if into in _FLAGS:
        return int(_switch(label, value))
    if into in _SHARES:
        return parse.fraction(value, label)
    if into in _TOKENS:
        return parse.tokens(value, label)
    return parse.whole(value, label)


def _switch(label: str, value: str) -> bool:
    if value.lower() not in (*_TRUE, *_FALSE):
        raise ScenarioError(f"{label} is {shown(value)!r}. It must be true or false.")
    return value.lower() in _TRUE


def _rest(settings: Settings, name: str, setting: Setting, value: str) -> None:
    """A setting that none of our inputs stands for."""
    label = shown(name)
    if setting.name == "max_beam_width":
        settings.beams = parse.whole(value, label, most=1024)
    elif setting.name == "max_output_len":
        settings.inputs["output_tokens"] = parse.tokens(value, label)
    elif setting.name == "max_tokens_in_paged_kv_cache":
        settings.max_tokens = parse.whole(value, label, most=10**12)
    elif setting.name == "NIM_NUM_KV_CACHE_SEQ_LENS":
        settings.sequence_lengths = float(parse.amount(value, label, 0, 10**6))
        settings.notes.append(f"{name} works beside NIM_RELAX_MEM_CONSTRAINTS=1 alone")
    elif setting.name == "kv_cache_type":
        _allocation(settings, parse.one_of(value.rsplit(".", 1)[-1], label, ("paged", "continuous", "disabled")))
    elif setting.name == "quant_algo":
        if value.lower() in WEIGHTS:
            settings.inputs["weight_dtype"] = WEIGHTS[value.lower()]
        elif value.lower() not in ("none", "null", "no_quant"):
            settings.notes.append(f"{name} is {shown(value)}, which is not known here: name it as --weight-dtype")
    else:
        settings.notes.append(f"{name} is {setting.about}")


def _allocation(settings: Settings, word: str) -> None:
    if word == "disabled":
        raise ScenarioError("kv_cache_type is disabled: such an engine keeps no cache, and only reads prompts.")
    settings.inputs["kv_allocation"] = "reserved" if word == "continuous" else "paged"


def _passed(settings: Settings, value: str) -> None:
    """Arguments of `vllm serve` in NIM's variable, which win over the variables of the same meaning."""
    settings.read[PASSED] = value
    for argument, given in command_flags(value).items():
        into = RENAMED["vllm"].get(argument)
        if argument == "kv_cache_dtype":
            into = argument
        if into is None and argument in ("enable_prefix_caching", "no_enable_prefix_caching"):
            settings.inputs["enable_prefix_caching"] = int(argument.startswith("enable"))
        elif into is not None:
            settings.inputs.pop(into, None)
            _put(settings, argument, into, _plain(given))


def _plain(given: object) -> str:
    return f"{given:g}" if isinstance(given, float) and not math.isfinite(given) else str(given)


def _lengths(settings: Settings) -> None:
    """The full length where only its parts were stated, and the parts held against it."""
    prompt, answer = settings.inputs.get("input_tokens"), settings.inputs.pop("output_tokens", None)
    if settings.inputs.get("max_model_len") is None and prompt is not None and answer is not None:
        settings.inputs["max_model_len"] = prompt + answer
    length = settings.inputs.get("max_model_len")
    if prompt is not None and length is not None and prompt > length:
        raise ScenarioError(f"max_input_len is {prompt:,}, over the {length:,} tokens of max_seq_len.")
