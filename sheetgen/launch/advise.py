"""One line on the stack that suits a point's KV pattern, with its numbers, its reason and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sheetgen.catalog.stacks import Rule, StackFile
from sheetgen.launch.check import Checked, Trial
from sheetgen.units import GIB, MIB

CAVEAT = "Whether a stack knows the model's architecture is not checked here: read its list of models."
Facts = dict[str, float | str]
_AS_SIZED = (
    "context_tokens", "input_tokens", "concurrent_requests", "prefix_cache_hit_fraction", "n_layers", "n_full_layers",
    "n_windowed_layers", "window_tokens", "n_mla_layers", "n_state_layers", "kv_bytes_per_token",
)  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """engine is None where no stack can serve the point. held: sequences that each stack's flags hold at once."""

    engine: str | None
    rule: Rule | None
    line: str
    held: Mapping[str, int]


def advise(checked: Mapping[str, Checked], stacks: StackFile) -> Advice:
    """The first rule that holds for the point and one of whose stacks can serve it.

    checked: every launcher's check of the same point. Of a rule's stacks its first is named where that can serve at
    all, else one that holds all requests, else the one that holds most; about as many stay in the rule's order.
    """
    facts = facts_of(next(iter(checked.values())).asked)
    held = {
        engine: int(one.printed.known["sequences_in_pool"] * one.printed.known["data_parallel_size"])
        for engine, one in checked.items()
        if one.printed is not None
    }
    for rule in stacks.rules:
        able = [engine for engine in rule.suits if engine in held]
        if not able or not all(one.holds(facts) for one in rule.when):
            continue
        most, first = max(held[engine] for engine in able), rule.first
        behind = {e: 0 if held[e] >= most * (1 - stacks.room_tie_fraction) else most - held[e] for e in able}
        able.sort(key=lambda engine: (engine != first, not checked[engine].fits, behind[engine]))
        sentence = rule.says.format(**shown_facts(facts))
        return Advice(able[0], rule, _line(able, sentence, held, checked), held)
    return Advice(None, None, "no stack: under none of them would the engine start. See what each one lacks.", held)


def _line(able: list[str], sentence: str, held: Mapping[str, int], checked: Mapping[str, Checked]) -> str:
    first, *others = able
    point = checked[first].asked.answer
    name = {engine: checked[engine].asked.names.engine.name for engine in able}
    all_of = "" if checked[first].fits else f" of the {point['concurrent_requests']:,} asked for"
    pool = f"its pool holds {held[first]:,} requests of {point['context_tokens']:,} tokens{all_of}"
    others.sort(key=lambda engine: -held[engine])
    beside = ", ".join(f"{held[engine]:,} {name[engine]}" for engine in others)
    return f"{name[first]}: {sentence}; {pool}{f' ({beside})' if beside else ''}."


def facts_of(trial: Trial) -> Facts:
    """Every fact of a sized point, under the names that `catalog.stacks.FACTS` lists."""
    point, known, names = trial.answer, trial.known, trial.names
    return {name: known[name] for name in _AS_SIZED} | {
        "vendor": names.gpu.vendor,
        "gpu": names.gpu.short_name,
        "data_center": int(names.gpu.data_center),
        "gpu_memory_gib": known["gpu_memory_bytes"] / GIB,
        "n_gpus": trial.n_gpus,
        "tensor_parallel_size": point["tensor_parallel_size"],
        "data_parallel_size": point["data_parallel_size"],
        "prefix_tokens": known["prefix_cache_hit_fraction"] * known["input_tokens"],
        "context_beyond_window": max(0, known["context_tokens"] - known["window_tokens"]),
        "windows_freed": point["hybrid_kv_manager"],
        "state_mib_per_sequence": known["state_bytes_per_sequence"] / MIB,
        "is_moe": int(known["n_params_routed"] > 0),
        "has_draft": int(names.draft is not None),
        "weight_dtype": names.weight_dtype,
        "kv_cache_dtype": names.kv_cache_dtype,
    }


def shown_facts(facts: Mapping[str, float | str]) -> dict[str, str]:
    """The same as a sentence has them: whole numbers with commas, shares in percent."""
    return {name: value if isinstance(value, str) else _shown(name, value) for name, value in facts.items()}


def _shown(name: str, value: float) -> str:
    if name.endswith("_fraction"):
        return f"{100 * value:.4g}%"
    return f"{value:,.1f}" if name.endswith(("_gib", "_mib_per_sequence")) else f"{value:,.0f}"
