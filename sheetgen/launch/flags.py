"""The launch flags of one point for the requested engines: commands, checks, and both as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import MTP
from sheetgen.catalog.stacks import Launcher, Remark, Rule, StackFile
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.launch.commands import (
    SIXTEEN_BITS,
    WRITERS,
    Checkpoint,
    Plan,
    Written,
    checkpoint_for,
    command,
    here_document,
)
from sheetgen.launch.flag_check import ENGINES_OWN, Checked, Remedy, Trial, checks
from sheetgen.launch.manifests import MANIFESTS
from sheetgen.report.wording import small_size
from sheetgen.units import GIB, MIB, UNQUANTIZED

CAVEAT = "Whether a stack knows the model's architecture is not checked here: read its list of models."
Facts = dict[str, float | str]
_AS_SIZED = (
    "context_tokens", "input_tokens", "concurrent_requests", "prefix_cache_hit_fraction", "n_layers", "n_full_layers",
    "n_windowed_layers", "window_tokens", "n_mla_layers", "n_state_layers", "kv_bytes_per_token",
)  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """The engine that suits a point best; None where none can serve it.

    held: the sequences that each engine's flags hold at once. remarks: sentences on the engine the point was sized for.
    """

    engine: str | None
    rule: Rule | None
    line: str
    held: Mapping[str, int]
    remarks: tuple[str, ...] = ()


def advise(checked: Mapping[str, Checked], stacks: StackFile) -> Advice:
    """The advice by the first rule that holds for the point and has an engine that can serve it.

    checked: every launcher's check of the same point. The rule's `first` engine is named if it can serve at all, else
    one that holds all requests, else the one that holds most; near ties keep the rule's order.
    """
    facts = facts_of(next(iter(checked.values())).requested)
    held = {
        engine: int(check.printed.quantities["sequences_in_pool"] * check.printed.quantities["data_parallel_size"])
        for engine, check in checked.items()
        if check.printed is not None
    }
    for rule in stacks.rules:
        able = [engine for engine in rule.suits if engine in held]
        if not able or not all(condition.holds(facts) for condition in rule.when):
            continue
        most = max(held[engine] for engine in able)
        behind = {e: 0 if held[e] >= most * (1 - stacks.room_tie_fraction) else most - held[e] for e in able}
        able.sort(key=lambda engine: (engine != rule.first, not checked[engine].fits, behind[engine]))
        point, (first, *others) = checked[able[0]].requested.answer, able
        name = {engine: checked[engine].requested.names.engine.name for engine in able}
        all_of = "" if checked[first].fits else f" of the {point['concurrent_requests']:,} requested"
        n_started = int(checked[first].requested.quantities["max_num_seqs"] * point["data_parallel_size"])
        pool = f"started for {n_started:,} at once its pool holds {held[first]:,} requests"
        pool += f" of {point['context_tokens']:,} tokens{all_of}"
        others.sort(key=lambda engine: -held[engine])
        beside = ", ".join(f"{held[engine]:,} {name[engine]}" for engine in others)
        sentence = rule.says.format(**shown_facts(facts))
        line = f"{name[first]}: {sentence}; {pool}{f' ({beside})' if beside else ''}."
        return Advice(first, rule, line, held)
    return Advice(None, None, "no stack: under none of them would the engine start. See what each one lacks.", held)


def facts_of(trial: Trial) -> Facts:
    """Every fact of a sized point, under the names that `catalog.stacks.FACTS` lists."""
    point, quantities, names = trial.answer, trial.quantities, trial.names
    return {name: quantities[name] for name in _AS_SIZED} | {
        "vendor": names.gpu.vendor,
        "gpu": names.gpu.short_name,
        "architecture": names.gpu.architecture,
        "data_center": int(names.gpu.data_center),
        "gpu_memory_gib": quantities["gpu_memory_bytes"] / GIB,
        "n_gpus": trial.n_gpus,
        "tensor_parallel_size": point["tensor_parallel_size"],
        "data_parallel_size": point["data_parallel_size"],
        "prefix_tokens": quantities["prefix_cache_hit_fraction"] * quantities["input_tokens"],
        "context_beyond_window": max(0, quantities["context_tokens"] - quantities["window_tokens"]),
        "windows_freed": point["hybrid_kv_manager"],
        "state_mib_per_sequence": quantities["state_bytes_per_sequence"] / MIB,
        "is_moe": int(quantities["n_params_routed"] > 0),
        "has_draft": int(names.draft is not None),
        "weight_dtype": names.weight_dtype,
        "kv_cache_dtype": names.kv_cache_dtype,
        "engine_version": point["engine_version"],
    }


def shown_facts(facts: Mapping[str, float | str]) -> dict[str, str]:
    """The facts as text for a sentence: whole numbers with commas, shares in percent."""

    def text(name: str, value: float | str) -> str:
        if isinstance(value, str):
            return value
        if name.endswith("_fraction"):
            return f"{100 * value:.4g}%"
        if name == "kv_bytes_per_token":
            return str(small_size(value, "gib"))
        return f"{value:,.1f}" if name.endswith(("_gib", "_mib_per_sequence")) else f"{value:,.0f}"

    return {name: text(name, value) for name, value in facts.items()}


_INPUTS = (
    "engine", "engine_version", "model_id", "gpu_id", "weight_dtype", "kv_cache_dtype", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "expert_parallel_size", "gpu_memory_utilization", "max_model_len",
    "max_num_seqs", "max_num_batched_tokens", "block_size", "context_tokens", "concurrent_requests", "input_tokens",
    "output_tokens", "prefix_cache_hit_fraction", "average_context_fraction", "draft_model", "kv_cache_memory_bytes",
    "kv_allocation",
    "hybrid_kv_manager", "enable_prefix_caching",
)  # fmt: skip


@dataclass(frozen=True)
class Flags:
    """One engine's flags for a point; `written` is None where no command would start."""

    launcher: Launcher
    checked: Checked
    checkpoint: Checkpoint
    written: Written | None
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        engine = self.checked.requested.names.engine
        return f"{engine.name} {engine.default_version}"

    def text(self, written: Written) -> str:
        """The text for a shell: the files that the command reads, and the command."""
        files = [here_document(name, text) for name, text in written.files.items()]
        return "\n".join([*files, command(written.groups)])

    def flag(self, remedy: Remedy) -> str:
        """The engine's flag and value for a remedy."""
        if remedy.trial is None:
            return "more GPUs"
        if remedy.setting == "weight_dtype":
            return f"{remedy.value} weights"
        name = next(flag for setting, flag in self.launcher.flags.items() if setting == remedy.setting)
        plan = Plan(remedy.trial, self.launcher, self.checkpoint, None, 1)
        return f"{name} {WRITERS[self.launcher.engine](plan).settings[name]}"


def engines_asked(text: str, catalog: Catalog) -> tuple[str, ...]:
    """The engines in `vllm,sglang` or `all`. Raises ScenarioError for an engine without a launcher."""
    engines = [launcher.engine for launcher in catalog.file(StackFile).launchers if launcher.engine in WRITERS]
    wanted = [word.strip().lower() for word in text.split(",") if word.strip()]
    if not wanted:
        raise ScenarioError(f"flags is blank. Name an engine: {', '.join(engines)}, or all.")
    if "all" in wanted:
        return tuple(engines)
    kept = f"{', '.join(engines)}, or all; of recommend also {', '.join(MANIFESTS)}"
    problems = [
        f"flags has {word!r}, which starts all replicas of an answer: ask `sheetgen recommend`."
        if word in MANIFESTS
        else f"flags has {shown(word)!r}. They are kept for {kept}." + did_you_mean(word, [*engines, *MANIFESTS])
        for word in wanted
        if word not in engines
    ]
    if problems:
        raise ScenarioError(*problems)
    return tuple(dict.fromkeys(wanted))


def flags_for(
    engines: tuple[str, ...],
    points: Sequence[tuple[RawMapping, RawMapping]],
    catalog: Catalog,
    is_advised: bool = True,
) -> list[tuple[dict[str, Flags], Advice | None]]:
    """The flags by engine and the advice for each point, given as the typed inputs and their record by `sheetgen size`.

    is_advised: the advice is asked for, which compares all launchers; else it is None, and only those of these engines
    are checked.
    """
    file = catalog.file(StackFile)
    launchers = {
        launcher.engine: launcher
        for launcher in file.launchers
        if launcher.engine in WRITERS and (is_advised or launcher.engine in engines)
    }
    tried = iter(checks([(*point, launcher) for point in points for launcher in launchers.values()], catalog))
    answers = []
    for requested, point in points:
        checked = dict(zip(launchers, tried, strict=False))
        flags = {e: _flags_of_engine(launchers[e], checked[e], requested, point, catalog, file) for e in engines}
        advice = None
        if is_advised:
            own = launchers.get(str(point["engine"]))
            remarks = remarks_of(own, checked[own.engine].requested) if own else ()
            advice = replace(advise(checked, file), remarks=remarks)
        answers.append((flags, advice))
    return answers


def _flags_of_engine(
    launcher: Launcher,
    checked: Checked,
    requested: RawMapping,
    point: RawMapping,
    catalog: Catalog,
    file: StackFile,
) -> Flags:
    trial = checked.requested if checked.printed is None else checked.printed
    model = checkpoint_for(str(requested["model"]), trial.names, launcher, catalog, checked.loads_unquantized)
    notes: list[str] = []
    if launcher.engine != point["engine"] and requested.get("engine") is not None:
        notes += [
            f"{name} {requested[name]} was typed for {point['engine']}; here it is {trial.answer[name]}"
            for name in ENGINES_OWN
            if requested.get(name) is not None and name != "engine_version"
        ]
    wanted, held = (int(variant.quantities["max_num_seqs"]) for variant in (checked.requested, trial))
    if checked.requested.fits and held < wanted:
        notes.append(f"the pool holds {held:,} of max_num_seqs {wanted:,} at full length")
    notes += model.notes
    written = None
    if checked.printed is not None:
        draft = _draft(requested, trial, launcher, catalog)
        needed = tuple(word for remark in _remarks_that_hold(launcher, trial) for word in remark.flags)
        written = WRITERS[launcher.engine](Plan(trial, launcher, model, draft, file.speculative_tokens, needed))
        notes += [*(draft.notes if draft else ()), *written.notes, *_reservations(trial)]
        published = trial.names.model
        # Somebody quantized such a checkpoint after the model was published.
        is_by_others = trial.names.weight_dtype not in (*UNQUANTIZED, published.weight_dtype)
        is_set = model.is_ours and launcher.kv_cache_16_bits is not None
        if is_by_others and not is_set and model.word != published.hf_id and trial.names.kv_cache_dtype in SIXTEEN_BITS:
            notes.append("auto follows the checkpoint: one with scales for an FP8 cache keeps FP8, and holds more")
        if draft is not None:
            notes.append(f"{file.speculative_tokens} tokens drafted ahead are an example's: tune them on your prompts")
    notes += remarks_of(launcher, trial)
    return Flags(launcher, checked, model, written, tuple(dict.fromkeys(notes)))


def remarks_of(launcher: Launcher, trial: Trial) -> tuple[str, ...]:
    """The sentences of the launcher's remarks that hold for a point."""
    return tuple(remark.says for remark in _remarks_that_hold(launcher, trial))


def _remarks_that_hold(launcher: Launcher, trial: Trial) -> list[Remark]:
    """The launcher's remarks that hold for a point."""
    facts = facts_of(trial)
    return [remark for remark in launcher.remarks if all(c.holds(facts) for c in remark.when)]


def _draft(requested: RawMapping, trial: Trial, launcher: Launcher, catalog: Catalog) -> Checkpoint | None:
    """The draft model's checkpoint; None without a draft."""
    draft = trial.names.draft
    if draft is None:
        return None
    typed = str(requested["draft_model"])
    if draft.id == MTP:
        return Checkpoint(MTP)
    if draft.hf_id is None and "/" not in typed:
        blank = f"CHECKPOINT-OF-{draft.id}".upper()
        why = f"the draft {draft.id} has no id here: put one in place of {blank}"
        return Checkpoint(blank, is_known=False, notes=(why,))
    as_target = replace(trial.names, model=draft, weight_dtype=draft.weight_dtype, draft=None)
    return checkpoint_for(typed, as_target, launcher, catalog)


def _reservations(trial: Trial) -> list[str]:
    """Notes on the assumptions of the prediction."""
    point, notes = trial.answer, []
    if point["prefix_cache_hit_fraction"] > 0 or point["average_context_fraction"] < 1:
        notes.append(
            "the count leans on prefix hits or contexts that are not full: without them requests wait or are preempted"
        )
    if point["prefix_cache_hit_fraction"] > 0 and not point["enable_prefix_caching"]:
        notes.append("prefix hits were counted, but prefixes are not kept: leave out --enable-prefix-caching 0")
    if point["kv_allocation"] == "reserved":
        notes.append("no flag makes a paged engine reserve whole contexts; counted so, it holds at least this many")
    if not trial.has_place_outside:
        left, needed = trial.left_outside_bytes / GIB, trial.needed_outside_bytes / GIB
        notes.append(
            f"beside the pool {left:,.1f} GiB of each GPU are left, and activations, graphs and context are counted"
            f" {needed:,.1f}: lower the share if it dies while it captures graphs"
        )
    return notes


def flags_record(flags: Mapping[str, Flags]) -> RawRecord:
    """The flags as JSON: by engine its command, settings, files, environment, check and notes."""
    records: RawRecord = {}
    for engine, flags_of_engine in flags.items():
        written = flags_of_engine.written or Written([], {})
        records[engine] = {
            "command": command(written.groups, " ") if flags_of_engine.written else None,
            "settings": written.settings,
            "files": written.files,
            "env": written.env,
            "checked": _check_record(flags_of_engine),
            "notes": list(flags_of_engine.notes),
            "other_commands": {
                name: {
                    "command": command(other.groups, " "),
                    "settings": other.settings,
                    "files": other.files,
                    "notes": other.notes,
                }
                for name, other in written.other.items()
            },
        }
    return records


def _check_record(flags: Flags) -> RawRecord:
    """The prediction beside the flags as JSON; figures of the command are null where there is none."""
    checked, printed = flags.checked, flags.checked.printed
    answer = printed.answer if printed else None
    quantities = printed.quantities if printed else {}
    engine = checked.requested.names.engine
    return {
        "engine": engine.engine,
        "engine_version": engine.default_version,
        "fits": checked.fits,
        "verdict": checked.verdict,
        "holds": printed is not None,
        "inputs": None if answer is None else {n: answer[n] for n in _INPUTS},
        **{n: answer and answer[n] for n in ("kv_pool_bytes_per_gpu", "kv_tokens", "max_num_seqs")},
        "sequences_in_pool": int(quantities["sequences_in_pool"]) if quantities else None,
        "max_concurrency": answer and answer["max_concurrency"],
        "left_outside_bytes_per_gpu": round(printed.left_outside_bytes) if printed else None,
        "needed_outside_bytes_per_gpu": round(printed.needed_outside_bytes) if printed else None,
        "would_fit": [
            {"setting": r.setting, "value": r.value, "flag": flags.flag(r), "holds": r.says} for r in checked.remedies
        ],
    }


def advice_record(advice: Advice) -> RawRecord:
    """The advice as JSON."""
    rule = advice.rule
    return {
        "engine": advice.engine,
        "line": advice.line,
        "rule": rule and rule.id,
        "suits": list(rule.suits) if rule else [],
        "reason": rule and rule.reason,
        "sources": list(rule.sources) if rule else [],
        "runs": [run.model_dump() for run in rule.runs] if rule else [],
        "sequences_held": dict(advice.held),
        "caveat": CAVEAT,
    }
