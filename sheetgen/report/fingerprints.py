"""Fingerprints of failures, and the limits of each recommendation, with the numbers of this sheet.

The numbers of the fingerprints are those of one model at the headline load: the one to be approved, else the largest
whose replica needs no pipeline stages, because its GPUs can be read one by one; the largest of all where every
replica has stages. Where a recommendation breaks is said of every model: the requests that its hardware holds at every
context, by memory alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from sheetgen.answer.answer_record import SERVES, CellRecord, Json, Record
from sheetgen.answer.replica_bills import FEWER_SEQUENCES, FEWER_TOKENS, fewer
from sheetgen.answer.solution import short_tokens
from sheetgen.catalog import guidance
from sheetgen.question.market import Candidate
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.in_currency import amounts_of
from sheetgen.report.page import NONE, FingerprintRow, Source, Text, words
from sheetgen.report.wording import named_size, provider_of
from sheetgen.units import DTYPES, GIB

_ARROWS = {"raise": "↑", "lower": "↓"}
Numbers: TypeAlias = dict[str, Any]  # of a replica, by name: numbers, and a few texts
_WORTH_SAYING = 0.9  # of a bill: a smaller step that frees less than a tenth is not mentioned
_SHOWN_BYTES = 0.1 * GIB  # the precision of shown sizes: a step that frees less is not mentioned either
_SAMPLER = ("sampler_bytes", "sampler_bytes_at_fewer_sequences")
_MORE_GPUS = "give each replica more GPUs"
_BELOW = "below "
_SHOWN_CHANGE = 52  # characters: two lines of the page


@dataclass(frozen=True)
class Fix:
    """One change in the words of this sheet's engine."""

    flag: str  # "--max-model-len"; the change in words where the engine has no flag for it
    direction: str  # raise | lower | set | unset | free; add | rent for hardware, which is no setting of the engine
    value: str | None
    reason: str
    cost: str
    lasting: str = ""  # the fix without the numbers and machines of this sheet, true whatever is edited in a workbook

    @property
    def below(self) -> str:
        """The amount below which a setting is to be lowered; "" where it is another one."""
        return (self.value or "").removeprefix(_BELOW) if (self.value or "").startswith(_BELOW) else ""

    @property
    def short(self) -> str:
        """max_model_len ↓: the name as the engine's Python has it, which does not break at a line's end."""
        name = guidance.bare(self.flag)
        if self.direction == "unset":
            return f"without {name}"
        if self.below:
            return f"{name} < {self.below}"
        value = self.value if self.direction == "set" or (self.value or "").isdigit() else None
        return " ".join(filter(None, (name, _ARROWS.get(self.direction), value)))

    @property
    def in_words(self) -> str:
        """lower max_num_batched_tokens to 2048; set kv_cache_dtype fp8."""
        if self.direction == "unset":
            return self.short
        value = self.value if self.direction == "set" or (self.value or "").isdigit() or self.below else None
        to = "to" if value and self.direction != "set" and not self.below else ""
        return " ".join(filter(None, (self.direction, guidance.bare(self.flag), to, value)))


_FURTHER_REPLICA = Fix(
    "a further replica",
    "add",
    None,
    "The limit of requests binds, not memory: the next request waits, and more on this replica would be too slow",
    "Its machines",
    "add a further replica",
)


@dataclass(frozen=True)
class Fingerprint:
    """One kind of failure. `said` is its sentence with this sheet's numbers; `numbers` are the raw values (bytes,
    tokens)."""

    label: str
    where: str
    bill: str
    looks_like: str
    symptom: str
    log_lines: tuple[str, ...]
    fixes: tuple[Fix, ...]
    leave_alone: str
    said: str
    numbers: dict[str, float | int | str]
    sources: tuple[Source, ...]
    case: str = ""  # of a label whose forms have rows of their own

    @property
    def change(self) -> str:
        """The first fixes, as many as two lines of the page hold."""
        shown: list[str] = []
        for fix in self.fixes:
            if shown and len(" · ".join((*shown, fix.short))) > _SHOWN_CHANGE:
                break
            shown.append(fix.short)
        return " · ".join(shown)

    @property
    def first_change(self) -> str:
        """The first fix in words: lower max_model_len."""
        return self.fixes[0].in_words if self.fixes else ""

    @property
    def here(self) -> str:
        """The fingerprint with this sheet's numbers, and the model that has them; nothing where nothing fits."""
        return f"{self.numbers['model_name']}: {self.said}" if self.said else ""

    def record(self) -> Json:
        """The fingerprint as the JSON has it."""
        values = {"here" if name == "said" else name: value for name, value in asdict(self).items()}
        for fix in values["fixes"]:
            del fix["lasting"]
        return {**values, "here": self.here, "change": self.change}

    def on_page(self, named: bool) -> FingerprintRow:
        """The row of the page; only the first one has the model `named`."""
        here = words("{}: {}", self.numbers["model_name"], self.said) if named and self.said else self.said
        lasting = self.fixes[0].lasting if self.fixes else ""
        changes = (self.change or NONE, here, self.label, self.first_change, lasting)
        return FingerprintRow(self.where, self.bill, self.looks_like or NONE, *changes)


def with_fingerprints(record: Record, question: Question) -> Record:
    """The record with its fingerprints: how its deployments fail."""
    return replace(
        record, fingerprints=tuple(fingerprint.record() for fingerprint in fingerprints_of(record, question))
    )


def fingerprints_of(record: Record, question: Question) -> tuple[Fingerprint, ...]:
    """Every fingerprint of the catalogs, for the engine and with the numbers of this sheet."""
    model = record.of_replica.get("model")
    cell = next((cell for cell in record.headline_cells if cell.chosen and cell.model == model), None)
    return fingerprints_with(record.of_replica, question, cell)


def fingerprints_with(
    of_replica: Mapping[str, float | int | str], question: Question, cell: CellRecord | None = None
) -> tuple[Fingerprint, ...]:
    """The same with the numbers of a replica of a cell, or without any."""
    engine, numbers = question.engine.engine, dict(of_replica)
    share = question.reference.assumptions.get("gpu_memory_utilization")
    shared = {"gpu_memory_utilization": share.flags} if share else {}
    prints, fingerprints = question.reference.fingerprints, []
    here = _sentences(numbers, question, prints) if numbers else {}
    for fingerprint in prints:
        case = fingerprint.case if isinstance(fingerprint, guidance.Form) else ""
        if case and engine not in fingerprint.own:
            continue
        own, sources = fingerprint.words(engine), tuple(Source(s.text, s.url) for s in fingerprint.sources)
        fixes = _fixes(fingerprint, question, numbers, shared, cell)
        lines = tuple(fingerprint.log_lines.get(engine, ()))
        fingerprints.append(
            Fingerprint(
                fingerprint.label,
                fingerprint.where,
                fingerprint.bill,
                own.looks_like or "",
                own.symptom or "",
                lines,
                fixes,
                own.leave_alone or "",
                here.get((fingerprint.label, case), ""),
                numbers,
                sources,
                case,
            )
        )
    return tuple(fingerprints)


def _fixes(
    fingerprint: guidance.Fingerprint,
    question: Question,
    numbers: Numbers,
    shared: Mapping[str, guidance.EngineFlags],
    cell: CellRecord | None,
) -> tuple[Fix, ...]:
    """The fixes that this engine has and that are not met already, in the words of the engine."""
    engine = question.engine.engine
    if fingerprint.label == "concurrency_spike" and numbers and _is_capped(numbers):
        return (_FURTHER_REPLICA,)
    fixes: list[Fix] = []
    for fix in fingerprint.fixes:
        flag = fix.flags.get(engine) or shared.get(fix.setting or "", {}).get(engine)
        if fix.engines and engine not in fix.engines:
            continue
        if fix.setting == "tensor_parallel_size" and numbers and not _has_gpus_left(question, numbers):
            fixes.extend(_larger_machine(fix, question, cell))
            continue
        if fix.setting and not _helps(fix, fix.setting, flag, question, numbers):
            continue
        value, direction = fix.values.get(engine, fix.value), fix.direction
        lasting = f"{direction} {guidance.bare(flag or fix.what)}"
        if value and direction == "set":
            lasting += f" {value}"
        if fix.setting == "tensor_parallel_size":
            lasting = _MORE_GPUS
        if fix.setting == "max_model_len" and numbers and direction == "lower":
            value = f"{_BELOW}{numbers['context_tokens']:.0f}"  # as it is started here
        elif value and value.isdigit() and fix.setting and fix.direction == "lower":
            value = str(fewer(_in_use(fix.setting, question, numbers), int(value)))
        fixes.append(Fix(flag or fix.what, direction, value, fix.reason, fix.cost, lasting))
    return tuple(fixes)


def _is_capped(n: Numbers) -> bool:
    """True where the limit of requests is reached before the pool is full: the next request waits, and memory stays
    free."""
    return bool(n["sequences_held"] >= n["max_num_seqs"] * n["data_parallel_size"])


def _is_cut_off(n: Numbers) -> bool:
    """True where the replica's length limit keeps every request shorter than the length at which the load would fill
    the pool."""
    return bool(n["context_tokens"] <= n["longest_tokens_at_load"])


def _has_gpus_left(question: Question, n: Numbers) -> bool:
    """True where the machine has GPUs that the replica's ranks do not use yet."""
    return bool(n["tensor_parallel_size"] < question.instances[n["instance"]].linked_gpus)


def _larger_machine(fix: guidance.Fix, question: Question, cell: CellRecord | None) -> Iterator[Fix]:
    """The machine of `larger_than` in place of the rented one; nothing where there is none."""
    larger = larger_than(question, cell) if cell else None
    if larger is None:
        return
    usd, machine = larger
    price = amounts_of(question.settings)(usd)
    words = f"{machine.gpu_count}× {machine.gpu.short_name}, {provider_of(machine.instance)}: {price} a month"
    yield Fix(words, "rent", None, fix.reason, fix.cost, _MORE_GPUS)


def larger_than(question: Question, cell: CellRecord) -> tuple[float, Candidate] | None:
    """The cheapest machine that serves the load within its targets and has more memory in all than the answer's, with
    the $ a month of as many as the load takes; None where there is none."""
    rented = question.instances[cell.answer.instance]
    larger = [
        (other.why.amount, machine)
        for other in cell.why_not
        if other.why.kind in SERVES and _memory(machine := question.instances[other.instance]) > _memory(rented)
    ]
    return min(larger, key=lambda offer: offer[0], default=None)


def _memory(machine: Candidate) -> float:
    """Bytes of all its GPUs."""
    return machine.gpu_count * machine.gpu.memory.engine_bytes


def _helps(
    fix: guidance.Fix, setting: guidance.Setting, flag: str | None, question: Question, numbers: Numbers
) -> bool:
    """True where the engine has the setting, and moving it in that direction changes anything."""
    if setting == "gpu_memory_utilization":
        has_share = flag is not None or question.engine.gpu_memory_utilization < 1
        return has_share and (fix.direction != "raise" or question.settings.gpu_memory_utilization < 1)
    if setting == "cuda_graphs":
        return question.engine.keeps_graphs
    if setting == "max_model_len":
        return not numbers or bool(numbers["context_tokens"] < numbers["max_context_tokens"])
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
    if setting == "max_num_seqs" and numbers and not _shrinks(numbers, *_SAMPLER):
        return False
    return _in_use(setting, question, numbers) > 1


def _shrinks(numbers: Numbers, bill: str, fewer_bill: str) -> bool:
    """True where a smaller step frees enough of a bill to be worth a sentence."""
    return bool(numbers[fewer_bill] < min(_WORTH_SAYING * numbers[bill], numbers[bill] - _SHOWN_BYTES))


def _in_use(setting: guidance.Setting, question: Question, numbers: Numbers) -> int:
    """The batch limit of the subject; the engine's largest one where nothing fits."""
    return int(numbers.get(setting) or max(getattr(row, setting) for row in question.engine.batch_defaults))


def _sentences(n: Numbers, question: Question, prints: Sequence[guidance.Fingerprint]) -> dict[tuple[str, str], str]:
    """The sentence of each fingerprint with this sheet's numbers, by label and form."""
    units, engine = question.settings.units, question.engine
    context = short_tokens(n["context_tokens"])
    gpus = f"{n['n_gpus_per_replica']}× {n['gpu']}"
    requests, limit = n["requests_per_replica"], short_tokens(n["max_context_tokens"])

    sizes = {key: named_size(value, units) for key, value in n.items() if "bytes" in key}
    outside = named_size(left_out(n, engine.fraction_of_free), units)
    charge, activation = sizes["kv_bytes_per_sequence_per_gpu"], sizes["activation_bytes_per_gpu"]

    longest = {"tokens": n["longest_tokens_at_load"], "limit_tokens": n["max_context_tokens"]}
    growing = str(sentences.growing.fill(requests, limit=limit, **longest))
    if _is_cut_off(n) and n["longest_tokens_at_load"] < n["max_context_tokens"]:
        growing = f"refused over {context}; {growing}"
    admitted = n["max_num_seqs"] * n["data_parallel_size"]
    capped = _is_capped(n)
    hold = "holds" if n["n_gpus_per_replica"] == 1 else "hold"
    spike = f"at {context} {gpus} {hold} {n['sequences_held']:,}; request {min(n['sequences_held'], admitted) + 1:,} "
    fixes = (fix for fingerprint in prints if fingerprint.label == "concurrency_spike" for fix in fingerprint.fixes)
    flags = [fix.flags[engine.engine] for fix in fixes if fix.setting == "max_num_seqs" and engine.engine in fix.flags]
    cap = guidance.bare(flags[-1]) if flags else f"{n['max_num_seqs']:,} at most"
    spike += f"waits ({cap})" if capped else "does not fit"
    prefill = profile = f"{n['max_num_batched_tokens']:,} tokens a step: {activation} a GPU"
    profile += f" beside {sizes['weights_bytes_per_gpu']} of weights"
    if _shrinks(n, "activation_bytes_per_gpu", "activation_bytes_at_fewer_tokens"):
        prefill += f"; {fewer(n['max_num_batched_tokens'], FEWER_TOKENS):,}: "
        prefill += str(sizes["activation_bytes_at_fewer_tokens"])
    pool = f"{context} tokens: {charge} of {sizes['kv_pool_bytes_per_gpu']} a GPU"
    if n["max_context_tokens"] > n["context_tokens"]:
        pool += f"; {limit}: {sizes['kv_bytes_per_sequence_per_gpu_at_limit']}"
    graphs = f"graphs take about {sizes['cuda_graph_bytes_per_gpu']} a GPU, "
    if n["graphs_reserved"]:
        graphs += "before the pool takes its share" if engine.fraction_of_free else "inside the pool's share"
    else:
        graphs += f"of the {outside} left out"
    weights = f"{sizes['weights_bytes']} in {n['weight_dtype']}, {sizes['weights_bytes_per_gpu']} "
    weights += f"of each GPU's {sizes['gpu_memory_bytes' if engine.fraction_of_free else 'memory_budget_bytes']}"
    sampler = f"logits take {sizes['sampler_bytes']} a GPU"
    if _shrinks(n, *_SAMPLER):
        step = fewer(n["max_num_seqs"], FEWER_SEQUENCES)
        sampler = f"{n['max_num_seqs']:,} requests take {sizes['sampler_bytes']} a GPU, "
        sampler += f"{step:,} take {sizes['sampler_bytes_at_fewer_sequences']}"
    elif n["engines_max_num_seqs"] > n["max_num_seqs"]:
        sampler = f"{n['max_num_seqs']:,} requests: {sizes['sampler_bytes']} a GPU; "
        sampler += f"{n['engines_max_num_seqs']:,} by default: {sizes['sampler_bytes_at_engines']}"
    by_label = {
        "long_completion": growing,
        "concurrency_spike": spike,
        "prefill_long_prompt": prefill,
        "startup_weights_do_not_fit": weights,
        "startup_kv_pool_too_small": pool,
        "startup_workspace_or_cuda_graph": graphs if n["cuda_graph_bytes_per_gpu"] else "",
        "sampler_logits_peak": sampler,
    }
    by_form = {(label, ""): text for label, text in by_label.items()}
    by_form["startup_workspace_or_cuda_graph", "profile"] = profile
    return {form: text for form, text in by_form.items() if text}


def left_out(n: Numbers, fraction_of_free: bool) -> float:
    """The bytes of a GPU outside the engine's share: of all its memory, or of what the bills leave free."""
    if fraction_of_free:
        return float(n["kv_pool_bytes_per_gpu"] * (1 / n["gpu_memory_utilization"] - 1))
    return float(n["gpu_memory_bytes"] - n["memory_budget_bytes"])


def longest_fit(question: Question, cell: CellRecord) -> Text:
    """The longest context at which the hardware of a headline's answer holds its requests; NONE where none does."""
    if cell.longest_context is None:
        return NONE
    limit = int(question.model_of(cell.row).model.max_context_tokens or cell.context_tokens)
    tokens = {"tokens": cell.longest_context, "limit_tokens": limit, "limit": short_tokens(limit)}
    return sentences.longest_fit.fill(cell.requests, **tokens)
