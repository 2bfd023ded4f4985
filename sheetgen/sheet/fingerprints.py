"""Where a deployment dies, with the numbers of this sheet: for the page, the workbook and the JSON.

The numbers are those of one model at the headline load: the largest one whose replica needs no pipeline
stages, because its GPUs can be read one by one; the largest of all where every replica has stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog import guidance
from sheetgen.recommend import Solution, short_tokens
from sheetgen.scenario.question import Question
from sheetgen.sheet import one_page
from sheetgen.sheet.death_numbers import FEWER_SEQUENCES, FEWER_TOKENS, fewer, left_out, numbers_of, subject
from sheetgen.sheet.wording import NONE, named_size, plural_does
from sheetgen.units import DTYPES

_ARROWS = {"raise": "↑", "lower": "↓"}
_WORTH_SAYING = 0.9  # of a bill: a smaller step that frees less than a tenth of it is not said
_SHOWN_CHANGE = 52  # characters: two lines of the page


@dataclass(frozen=True)
class Fix:
    """One change in the words of this sheet's engine."""

    flag: str  # "--max-model-len"; what to change in words where the engine has no flag for it
    direction: str  # raise | lower | set | unset | free
    value: str | None
    reason: str
    cost: str

    @property
    def short(self) -> str:
        """max_model_len ↓: the name as the engine's Python has it, which does not break at a line's end."""
        name = guidance.bare(self.flag)
        if self.direction == "unset":
            return f"without {name}"
        value = self.value if self.direction == "set" or (self.value or "").isdigit() else None
        return " ".join(filter(None, (name, _ARROWS.get(self.direction), value)))


@dataclass(frozen=True)
class Fingerprint:
    """One way to die. `here` says it with this sheet's numbers; `numbers` has them raw (bytes, tokens)."""

    label: str
    where: str
    bill: str
    looks_like: str
    symptom: str
    log_lines: tuple[str, ...]
    fixes: tuple[Fix, ...]
    leave_alone: str
    here: str
    numbers: dict[str, float | int | str]
    sources: tuple[one_page.Source, ...]

    @property
    def change(self) -> str:
        """The first fixes, as many as two lines of the page hold."""
        shown: list[str] = []
        for fix in self.fixes:
            if shown and len(" · ".join((*shown, fix.short))) > _SHOWN_CHANGE:
                break
            shown.append(fix.short)
        return " · ".join(shown)

    def on_page(self, named: bool) -> one_page.Fingerprint:
        """The row of the page; only the first one has the model `named`."""
        here = self.here if named else self.here.removeprefix(f"{self.numbers.get('model_name')}: ")
        return one_page.Fingerprint(self.where, self.bill, self.looks_like or NONE, self.change or NONE, here)


def fingerprints_for(solved: Solution) -> tuple[Fingerprint, ...]:
    """Every fingerprint of the catalogs, for the engine and with the numbers of this sheet."""
    question = solved.question
    engine = question.engine.engine
    fit = subject(solved)
    numbers = numbers_of(fit) if fit else {}
    share = question.reference.assumptions.get("gpu_memory_utilization")
    shared = {"gpu_memory_utilization": share.flags} if share else {}
    known = question.reference.fingerprints
    words = _sentences(numbers, question, _limits(known, engine)) if fit else {}
    return tuple(
        Fingerprint(
            label=one.label,
            where=one.where,
            bill=one.bill,
            looks_like=one.words(engine).looks_like or "",
            symptom=one.words(engine).symptom or "",
            log_lines=tuple(one.log_lines.get(engine, ())),
            fixes=_fixes(one, question, numbers, shared),
            leave_alone=one.words(engine).leave_alone or "",
            here=words.get(one.label, ""),
            numbers=numbers,
            sources=tuple(one_page.Source(s.text, s.url) for s in one.sources),
        )
        for one in known
    )


def _fixes(
    one: guidance.Fingerprint,
    question: Question,
    numbers: dict[str, Any],
    shared: Mapping[str, guidance.EngineFlags],
) -> tuple[Fix, ...]:
    """The fixes that this engine has and that are not met already, in the words of the engine."""
    engine = question.engine.engine
    found: list[Fix] = []
    for fix in one.fixes:
        flag = fix.flags.get(engine) or shared.get(fix.setting or "", {}).get(engine)
        if fix.engines and engine not in fix.engines:
            continue
        if fix.setting and not _helps(fix, fix.setting, flag, question, numbers):
            continue
        value = fix.values.get(engine, fix.value)
        if value and value.isdigit() and fix.setting and fix.direction == "lower":
            value = str(fewer(_in_use(fix.setting, question, numbers), int(value)))
        found.append(Fix(flag or fix.what, fix.direction, value, fix.reason, fix.cost))
    return tuple(found)


def _limits(known: tuple[guidance.Fingerprint, ...], engine: str) -> dict[str, str]:
    """By label, the engine's flag for the requests in flight; nothing where it has none."""
    flags = {one.label: fix.flags.get(engine) for one in known for fix in one.fixes if fix.setting == "max_num_seqs"}
    return {label: guidance.bare(flag) for label, flag in flags.items() if flag}


def _helps(
    fix: guidance.Fix, setting: guidance.Setting, flag: str | None, question: Question, numbers: dict[str, Any]
) -> bool:
    """Whether there is something to turn, and turning it that way changes anything."""
    if setting == "gpu_memory_utilization":
        has_share = flag is not None or question.engine.gpu_memory_utilization < 1
        return has_share and (fix.direction != "raise" or question.settings.gpu_memory_utilization < 1)
    if setting == "cuda_graphs":
        return question.engine.cuda_graph_gib > 0
    if setting in ("kv_cache_dtype", "weight_dtype"):
        asked = DTYPES.get(fix.value or "")
        models = [m for m in question.models if m.model.id == numbers.get("model", m.model.id)]
        used = [DTYPES[getattr(m, setting)] for m in models]
        if setting == "kv_cache_dtype":
            return asked is None or any(d.kv_bytes > asked.kv_bytes for d in used)
        return asked is None or any(d.linear_bytes > asked.linear_bytes for d in used)
    if not (fix.value and fix.value.isdigit()):
        return True
    if fix.direction == "raise":
        return _in_use(setting, question, numbers) < int(fix.value)
    if setting == "max_num_seqs" and numbers and not _sampler_shrinks(numbers):
        return False
    return _in_use(setting, question, numbers) > 1


def _sampler_shrinks(numbers: dict[str, Any]) -> bool:
    """Whether fewer requests free enough of the sampler's memory to be worth saying."""
    return bool(numbers["sampler_bytes_at_fewer_sequences"] < _WORTH_SAYING * numbers["sampler_bytes"])


def _in_use(setting: guidance.Setting, question: Question, numbers: dict[str, Any]) -> int:
    """The batch limit of the subject; the engine's largest one where nothing fits."""
    return int(numbers.get(setting) or max(getattr(row, setting) for row in question.engine.batch_defaults))


def _sentences(n: dict[str, Any], question: Question, limits: Mapping[str, str]) -> dict[str, str]:
    """By label, the fingerprint in this sheet's numbers. `limits` has the engine's flag for requests in flight."""
    units, engine = question.settings.units, question.engine
    name, context = n["model_name"], short_tokens(n["context_tokens"])
    gpus = f"{n['n_gpus_per_replica']}× {n['gpu']}"
    requests, limit = n["requests_per_replica"], short_tokens(n["max_context_tokens"])

    sizes = {key: named_size(value, units) for key, value in n.items() if "bytes" in key}
    outside = named_size(left_out(n, engine.fraction_of_free), units)
    charge, activation = sizes["kv_bytes_per_sequence_per_gpu"], sizes["activation_bytes_per_gpu"]

    if n["longest_tokens_at_load"] >= n["max_context_tokens"]:
        growing = f"{plural_does(requests, 'request', 'fit')} even at the model's {limit} each"
    else:
        growing = f"{plural_does(requests, 'request', 'fill')} the pool at {n['longest_tokens_at_load']:,} tokens each"
    capped = n["sequences_held"] == n["max_num_seqs"]
    hold = "holds" if n["n_gpus_per_replica"] == 1 else "hold"
    spike = f"at {context} {gpus} {hold} {n['sequences_held']:,}; request {n['next_request']:,} "
    cap = limits.get("concurrency_spike", f"{n['max_num_seqs']:,} at most")
    spike += f"waits ({cap})" if capped else "does not fit"
    prefill = f"{n['max_num_batched_tokens']:,} tokens a step: activations {activation} a GPU"
    if n["activation_bytes_at_fewer_tokens"] < _WORTH_SAYING * n["activation_bytes_per_gpu"]:
        prefill += f", {sizes['activation_bytes_at_fewer_tokens']} at "
        prefill += f"{fewer(n['max_num_batched_tokens'], FEWER_TOKENS):,}"
    pool = f"a {context} request takes {charge} of {sizes['kv_pool_bytes_per_gpu']} a GPU"
    if n["max_context_tokens"] > n["context_tokens"]:
        pool += f", a {limit} one {sizes['kv_bytes_per_sequence_per_gpu_at_limit']}"
    graphs = f"graphs take about {sizes['cuda_graph_bytes_per_gpu']} a GPU, "
    if n["graphs_in_budget"]:
        graphs += "before the pool takes its share" if engine.fraction_of_free else "inside the pool's share"
    else:
        graphs += f"of the {outside} left out"
    weights = f"{sizes['weights_bytes']} in {n['weight_dtype']}, {sizes['weights_bytes_per_gpu']} "
    weights += f"of each GPU's {sizes['gpu_memory_bytes' if engine.fraction_of_free else 'memory_budget_bytes']}"
    sampler = f"logits take {sizes['sampler_bytes']} a GPU"
    if _sampler_shrinks(n):
        step = fewer(n["max_num_seqs"], FEWER_SEQUENCES)
        sampler = f"{n['max_num_seqs']:,} requests take {sizes['sampler_bytes']} a GPU, "
        sampler += f"{step:,} take {sizes['sampler_bytes_at_fewer_sequences']}"
    said = {
        "long_completion": growing,
        "concurrency_spike": spike,
        "prefill_long_prompt": prefill,
        "startup_weights_do_not_fit": weights,
        "startup_kv_pool_too_small": pool,
        "startup_workspace_or_cuda_graph": graphs if n["cuda_graph_bytes_per_gpu"] else "",
        "sampler_logits_peak": sampler,
    }
    return {label: f"{name}: {text}" for label, text in said.items() if text}
