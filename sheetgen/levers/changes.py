"""Every lever of every load of a sheet: planned load by load, solved together.

Levers that ask for less (fewer bits, a shared prefix, fewer tokens, fewer users, and the next step down of both),
levers of hardware (bigger GPUs, weights in host memory), and a model of like size that keeps less of each request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy

from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.model import Model
from sheetgen.estimate import evaluate
from sheetgen.formula import round_down, same_money
from sheetgen.levers.lever import Lever, Offload, Rented
from sheetgen.levers.plan import Change, Facts, Loads, Planned, finished, work_out
from sheetgen.recommend import Solution, short_tokens
from sheetgen.scenario.deployment import model_columns
from sheetgen.scenario.inputs import Settings
from sheetgen.scenario.question import SheetModel
from sheetgen.sizing import kv_cache
from sheetgen.units import DTYPES, GB, GIB, ONE_DECIMAL, PERCENT, TENSOR_PARALLEL_SIZES


def levers_of(solved: Solution, row: int) -> tuple[Lever, ...]:
    """Every lever of one load, in the catalog's order: with its answer, or with the reason why it does not apply."""
    return levers_of_sheet(solved, (row,))[row]


def levers_of_sheet(solved: Solution, rows: Iterable[int] | None = None) -> tuple[tuple[Lever, ...], ...]:
    """The same for every load, or for `rows` alone; nothing for the others, and for a load over its model's limit."""
    question = solved.question
    requested = range(len(question.loads)) if rows is None else rows
    open_rows = [row for row in requested if not question.loads[row].over_limit]
    if not open_rows:
        return ((),) * len(question.loads)
    facts = Facts.of(question)
    loads = Loads(solved)
    planned = list(_every_plan(loads, open_rows, facts))
    found: dict[int, list[Lever]] = {row: [] for row in open_rows}
    for one, lever in zip(planned, work_out(loads, planned, facts), strict=True):
        found[one.row].append(lever)
    place = {one.id: i for i, one in enumerate(facts.file.levers)}
    for row, levers in found.items():
        found[row] = sorted(_finished(solved, row, levers, facts), key=lambda one: place[one.id])  # type: ignore[index]
    return tuple(tuple(found.get(row, ())) for row in range(len(question.loads)))


def _every_plan(loads: Loads, rows: Sequence[int], facts: Facts) -> Iterable[Planned]:
    solved = loads.solved
    for row in rows:
        yield from precisions(solved, row, facts)
        yield from smaller_loads(solved, row, facts)
        yield bigger_gpus(solved, row)
    yield from next_steps(loads, rows)
    yield from leaner_models(solved, rows, facts)


def _finished(solved: Solution, row: int, levers: Sequence[Lever], facts: Facts) -> Iterable[Lever]:
    """The levers of a load with what only their answers tell: the better FP4, the bigger GPU, the host's memory."""
    four_bits = [one for one in levers if one.id == "fp4-weights"]
    yield one_fp4(*four_bits)
    for one in levers:
        if one.id != "fp4-weights":
            yield named(one) if one.id == "bigger-gpus" else one
    yield host_memory(solved, row, facts)


FP8 = "fp8"
FP4 = ("nvfp4", "mxfp4")  # the first wins where both cost the same
KV, WEIGHTS = "KV cache", "weights"


def precisions(solved: Solution, row: int, facts: Facts) -> Iterator[Planned]:
    """The levers of a load that lower a precision; both FP4 formats are tried, and `one_fp4` keeps the better."""
    question = solved.question
    model = question.models[question.loads[row].model]
    kv = _why_not_kv(solved, model, FP8, facts)
    weights = _why_not_weights(solved, model, FP8, facts)
    yield _planned("fp8-kv-cache", row, model, kv, kv_cache_dtype=FP8)
    yield _planned("fp8-weights", row, model, weights, weight_dtype=FP8)
    yield _planned("fp8-both", row, model, kv or weights, kv_cache_dtype=FP8, weight_dtype=FP8)
    for dtype in FP4:
        why_not = _why_not_weights(solved, model, dtype, facts)
        yield _planned("fp4-weights", row, model, why_not, weight_dtype=dtype)


def _planned(lever: str, row: int, model: SheetModel, why_not: str, **dtypes: str) -> Planned:
    other = replace(model, **dtypes)  # type: ignore[arg-type]
    changed = [
        f"{what} {before} to {after}"
        for what, before, after in (
            (WEIGHTS, model.weight_dtype, other.weight_dtype),
            (KV, model.kv_cache_dtype, other.kv_cache_dtype),
        )
        if before != after
    ]
    words = f"{dtypes['weight_dtype'].upper()} weights" if lever == "fp4-weights" else ""
    if why_not:
        return Planned(lever, row, words=words, why_not=why_not)
    return Planned(lever, row, Change(row, model=other), words=words, changed=", ".join(changed))


def _why_not_kv(solved: Solution, model: SheetModel, dtype: str, facts: Facts) -> str:
    if DTYPES[model.kv_cache_dtype].kv_bytes <= DTYPES[dtype].kv_bytes:
        return f"the KV cache is {model.kv_cache_dtype} already"
    if lacks := facts.engine_lacks(solved.question.engine, KV, dtype):
        return lacks
    runs = any(dtype in gpu.kv_run for gpu in solved.question.gpus)
    return "" if runs else f"no candidate's GPU keeps a KV cache in {dtype}"


def _why_not_weights(solved: Solution, model: SheetModel, dtype: str, facts: Facts) -> str:
    if DTYPES[model.weight_dtype].linear_bytes <= DTYPES[dtype].linear_bytes:
        return f"the weights are {model.weight_dtype} already"
    if lacks := facts.engine_lacks(solved.question.engine, WEIGHTS, dtype):
        return lacks
    runs = any(dtype in gpu.weights_run for gpu in solved.question.gpus)
    return "" if runs else f"no candidate's GPU runs {dtype} weights"


def one_fp4(first: Lever, second: Lever) -> Lever:
    """The better of two FP4 formats; the first where they tie, or where neither applies."""
    if second.after is None or first.after is None:
        return second if first.after is None and second.after is not None else first
    return second if second.after.monthly_usd < first.after.monthly_usd else first


LEAST_CONTEXT = 2  # tokens: one of the prompt, one of the answer


def smaller_loads(solved: Solution, row: int, facts: Facts) -> Iterator[Planned]:
    """The levers of a load that ask for less by a stated share."""
    yield _prefix(solved, row, facts)
    cell = solved.question.loads[row]
    workload = solved.question.workloads[cell.workload]
    shorter = int(round_down(workload.context_tokens * facts.context_fraction))
    if shorter < LEAST_CONTEXT:
        yield Planned("half-context", row, why_not="no shorter context has room for a prompt and an answer")
    else:
        yield at_context("half-context", row, workload, shorter)
    fewer = int(round_down(cell.concurrent_requests * (1 - facts.fewer_users_fraction)))
    if fewer < 1:
        yield Planned("fewer-users", row, why_not="one request in flight is the least")
    else:
        yield at_requests("fewer-users", row, cell.concurrent_requests, fewer)


def _prefix(solved: Solution, row: int, facts: Facts) -> Planned:
    settings, share = solved.question.settings, facts.prefix_hit_fraction
    words = f"prefix cache, {PERCENT.text(share)} hits"
    if settings.prefix_cache_hit_fraction >= share:
        why_not = f"{PERCENT.text(settings.prefix_cache_hit_fraction)} hits are counted already"
    elif settings.kv_reserved:
        why_not = "reserved KV keeps the longest context of each request, whatever they share"
    elif facts.not_run is not None and not facts.not_run.shared_prefix:
        why_not = f"requests share no cache on {solved.question.engine.name}: {facts.not_run.instead}"
    else:
        before = PERCENT.text(settings.prefix_cache_hit_fraction)
        changed = f"prompt tokens found in the prefix cache {before} to {PERCENT.text(share)}"
        other = replace(settings, prefix_cache_hit_fraction=share)
        return Planned("prefix-cache", row, Change(row, settings=other), words=words, changed=changed)
    return Planned("prefix-cache", row, words=words, why_not=why_not)


def with_context(workload: Workload, context_tokens: int) -> Workload:
    """A workload at another context: the answer's length stays, the prompt takes the rest, as `--contexts` has it."""
    answer = workload.output_tokens if context_tokens > workload.output_tokens else context_tokens // 2
    prompt = min(workload.input_tokens, context_tokens - answer)
    sizes = {"input_tokens": prompt, "output_tokens": answer}
    if "context" in type(workload).model_fields:  # a load of the user's own, which may leave a part of it unused
        sizes["context"] = context_tokens
    return workload.model_copy(update=sizes)


def at_context(lever: str, row: int, workload: Workload, context_tokens: int) -> Planned:
    """The lever of a load at a shorter context."""
    before, after = _tokens(workload.context_tokens, context_tokens)
    return Planned(
        lever,
        row,
        Change(row, workload=with_context(workload, context_tokens)),
        words=f"context {after}, not {before}",
        changed=f"context {workload.context_tokens:,} to {context_tokens:,} tokens",
    )


def at_requests(lever: str, row: int, before: int, requests: int) -> Planned:
    """The lever of a load with fewer requests in flight than `before`."""
    return Planned(
        lever,
        row,
        Change(row, requests=requests),
        words=f"{requests:,} in flight, not {before:,}",
        changed=f"requests in flight {before:,} to {requests:,} ({PERCENT.text(1 - requests / before)} fewer)",
    )


def _tokens(*counts: int) -> list[str]:
    """128k where all are so many k, else 131,072."""
    short = [short_tokens(count) for count in counts]
    return short if all(one.endswith("k") for one in short) else [f"{count:,}" for count in counts]


CONTEXT_STEPS = 128  # a context is sought in steps of this part of it, in whole blocks: within 0.8 %


def next_steps(loads: Loads, rows: Sequence[int]) -> Iterator[Planned]:
    """Both levers of each load, found by halving: all loads are worked out together in each round."""
    searches = [search for row in rows for search in (_Context(loads.solved, row), _Requests(loads.solved, row))]
    first = [one for one in searches if one.high > 1]
    loads.work_out([one.change(n) for one in first for n in (1, (1 + one.high) // 2)])  # two rounds in one
    _ask(loads, first, [1] * len(first))
    while open_ones := [one for one in searches if one.low and one.high - one.low > 1]:
        _ask(loads, open_ones, [(one.low + one.high) // 2 for one in open_ones])
    for one in searches:
        yield one.planned()


class _Search:
    """A number of steps: `low` of them cost less than the load as it is (0: none was found), `high` do not."""

    lever = ""

    def __init__(self, solved: Solution, row: int, step: int, now: int) -> None:
        self.row, self.step = row, step
        before = Rented.of(solved, row)
        self.monthly_usd = inf if before is None else before.monthly_usd
        self.low, self.high = 0, -(-now // step)  # the first multiple of the step that is not below the load as it is

    def change(self, steps: int) -> Change:
        """The load with so many steps."""
        raise NotImplementedError

    def planned(self) -> Planned:
        raise NotImplementedError


class _Context(_Search):
    lever = "shorter-context"

    def __init__(self, solved: Solution, row: int) -> None:
        question = solved.question
        self.workload = question.workloads[question.loads[row].workload]
        context, block = self.workload.context_tokens, max(LEAST_CONTEXT, question.settings.block_size)
        super().__init__(solved, row, max(block, context // CONTEXT_STEPS // block * block), context)

    def change(self, steps: int) -> Change:
        return Change(self.row, workload=with_context(self.workload, self.step * steps))

    def planned(self) -> Planned:
        if not self.low:
            return Planned(self.lever, self.row, why_not="no shorter context costs less")
        return at_context(self.lever, self.row, self.workload, self.step * self.low)


class _Requests(_Search):
    lever = "users-for-less"

    def __init__(self, solved: Solution, row: int) -> None:
        self.now = solved.question.loads[row].concurrent_requests
        super().__init__(solved, row, 1, self.now)

    def change(self, steps: int) -> Change:
        return Change(self.row, requests=steps)

    def planned(self) -> Planned:
        if not self.low:
            return Planned(self.lever, self.row, why_not="no smaller number of requests costs less")
        return at_requests(self.lever, self.row, self.now, self.low)


def _ask(loads: Loads, searches: Sequence[_Search], steps: Sequence[int]) -> None:
    """Narrow the bounds of each search by what a load of so many steps takes."""
    answers = loads.ask([one.change(n) for one, n in zip(searches, steps, strict=True)])
    after = numpy.array([inf if one is None else one.monthly_usd for one in answers])
    before = numpy.array([one.monthly_usd for one in searches])
    for one, n, is_less in zip(searches, steps, (after < before) & ~same_money(after, before), strict=True):
        if is_less:
            one.low = n
        else:
            one.high = n


def bigger_gpus(solved: Solution, row: int) -> Planned:
    """The lever of a load; what is bigger is known when it is worked out, see `named`."""
    offer = solved.choices[row].offer
    if offer is None:
        return Planned("bigger-gpus", row, why_not="no GPU is chosen to be bigger than")
    gpu = solved.candidate(offer).gpu
    if not any(one.memory.engine_bytes > gpu.memory.engine_bytes for one in solved.question.gpus):
        return Planned("bigger-gpus", row, why_not=f"no candidate's GPU has more memory than the {gpu.short_name}")
    return Planned("bigger-gpus", row, Change(row, memory_above=gpu.memory.engine_bytes))


def named(lever: Lever) -> Lever:
    """The lever with the names of both GPUs and their memory."""
    if lever.before is None or lever.after is None:
        return lever
    old, new = lever.before.candidate.gpu, lever.after.candidate.gpu
    memory = [f"{one.short_name} ({ONE_DECIMAL.text(one.memory.engine_bytes / GIB)} GiB)" for one in (old, new)]
    return replace(lever, words=f"bigger GPUs: {new.short_name}", changed=f"{memory[0]} to {memory[1]}")


ID = "host-memory"


def host_memory(solved: Solution, row: int, facts: Facts) -> Lever:
    """The lever of a load: one replica fewer, else one pipeline stage, else half the tensor-parallel size."""
    found = _smaller(solved, row, facts)
    if isinstance(found, str):
        return finished(solved, Planned(ID, row, why_not=found), None, facts)
    lever = finished(solved, Planned(ID, row, changed=_changed(found)), None, facts)
    return replace(lever, why_not="", offload=found, note=f"{_note(found, facts)}. {lever.note}")


def _smaller(solved: Solution, row: int, facts: Facts) -> Offload | str:
    """What the smaller deployment would read from the host, or why there is none."""
    choice = solved.choices[row]
    if choice.offer is None:
        return "nothing is chosen to make smaller"
    profile = solved.offers[choice.offer].profile
    size, stages, replicas = (
        solved.tensor_parallel_size(choice.offer),
        choice.pipeline_parallel_size,
        choice.n_replicas,
    )
    if replicas > 1:
        replicas -= 1
    elif stages > 1:
        stages -= 1
    elif size > 1:
        size //= 2
        profile -= TENSOR_PARALLEL_SIZES.index(2 * size) - TENSOR_PARALLEL_SIZES.index(size)
    else:
        return "one GPU is the least"
    cell = solved.question.loads[row]
    gpu = solved.candidate(choice.offer).gpu
    link = facts.file.link(gpu.id)
    if link is None:
        return f"the {gpu.short_name}'s link to its host is not known here"

    at = solved.at(row, profile)

    def of(name: str) -> float:
        return float(at[name][0])

    if of("runs") != 1:
        return f"the heads do not divide over {size} GPUs"
    requests = -(-int(solved.loads["load_requests"][row]) // replicas)
    layers = solved.question.models[cell.model].model.n_layers
    share = -(-layers // stages) / layers
    parked = of("charge_bytes") * share
    weights = of("paid_layer_bytes") * share
    if stages == 1:
        short = requests * parked - of("kv_budget_bytes_per_gpu")
    else:
        short = requests * parked + weights - of("layer_budget_bytes")
    if short > weights:
        return f"{replicas * size * stages:,} GPUs would lack {short / GIB:,.1f} GiB each, more than their layers weigh"
    if short <= 0:
        return "it is not memory that asks for the last replica"
    return Offload(
        n_gpus=replicas * size * stages,
        bytes_per_gpu=short,
        link=link.name,
        link_bytes_per_second=link.bytes_per_second,
        seconds_per_token=short / link.bytes_per_second,
        nvme_seconds_per_token=short / facts.file.nvme_bytes_per_second,
        parked_kv_bytes_per_gpu=parked,
        parked_kv_seconds=parked / link.bytes_per_second,
    )


def _changed(found: Offload) -> str:
    gpus = f"{found.n_gpus:,} GPU{'' if found.n_gpus == 1 else 's'}"
    return f"{gpus}, {found.bytes_per_gpu / GIB:,.1f} GiB of weights of each in host memory"


def _note(found: Offload, facts: Facts) -> str:
    speed = f"{found.link}, {ONE_DECIMAL.text(found.link_bytes_per_second / GB)} GB/s one way"
    drive = f"{ONE_DECIMAL.text(facts.file.nvme_bytes_per_second / GB)} GB/s"
    return (
        f"Every token reads {found.bytes_per_gpu / GB:,.1f} GB over the host link ({speed}) on each GPU and waits at "
        f"least {_time(found.seconds_per_token)} more; from an NVMe drive ({drive}) "
        f"{_time(found.nvme_seconds_per_token)}. The KV cache of a parked request, "
        f"{found.parked_kv_bytes_per_gpu / GIB:,.2f} GiB a GPU, is back in {_time(found.parked_kv_seconds)}"
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


KNOWN_WELL = ("sourced", "partly_derived")  # entries whose shape was read
NO_CHAT = "embedding"  # part of the ids of models that answer nothing
# What a decoding request keeps, whole (TP 1): its growing layers, its windows, its states.
KEPT = (
    kv_cache.windowed_kv_heads_per_gpu, kv_cache.kv_bytes_per_token, kv_cache.shard_windowed_bytes_per_token,
    kv_cache.state_bytes_per_sequence, kv_cache.kv_bytes_per_sequence_steady,
)  # fmt: skip


def leaner_models(solved: Solution, rows: Sequence[int], facts: Facts) -> Iterator[Planned]:
    """The lever of each load: of the models whose total parameters are alike, the one that keeps least of it."""
    question = solved.question
    every = [m for m in question.reference.models if m.kind == "model" and m.confidence in KNOWN_WELL]
    every = [m for m in every if NO_CHAT not in m.id]  # that answer
    answers: dict[tuple[int, int], Planned] = {}
    for row in rows:
        cell = question.loads[row]
        key = (cell.model, cell.context_tokens)
        if key not in answers:
            alike = _alike(question.models[cell.model].model, every, facts.like_size_fraction, cell.context_tokens)
            answers[key] = _leanest(question.models[cell.model], alike, cell.context_tokens, question.settings)
        found = answers[key]
        change = found.change and Change(row, model=found.change.model)
        yield replace(found, row=row, change=change)


def _alike(model: Model, every: Sequence[Model], share: float, context_tokens: int) -> list[Model]:
    """Other models of like size (total parameters, which decide the weights) that take the context."""
    total = model.params.total
    return [
        m
        for m in every
        if m.id != model.id
        and abs(m.params.total / total - 1) <= share
        and (m.max_context_tokens or 0) >= context_tokens
    ]


def _leanest(model: SheetModel, alike: Sequence[Model], context_tokens: int, settings: Settings) -> Planned:
    others = [_on_sheet(m, settings) for m in alike]
    kept = kept_bytes([model, *others], context_tokens, settings)
    if not others or kept[1:].min() >= kept[0]:
        return Planned("leaner-model", 0, why_not="no model of like size in the catalog keeps less of a request")
    at = int(kept[1:].argmin())
    other = others[at]
    changed = f"{_described(model, kept[0])} to {_described(other, kept[1 + at])}"
    words = f"{other.model.name} instead"
    return Planned("leaner-model", 0, Change(0, model=other), words=words, changed=changed)


def _on_sheet(model: Model, settings: Settings) -> SheetModel:
    """A model with the precisions that the sheet asks for."""
    weight, kv = settings.weight_dtype, settings.kv_cache_dtype
    return SheetModel(
        model,
        model.weight_dtype if weight == "auto" else weight,
        model.kv_cache_dtype if kv == "auto" else kv,
        model.weight_dtype,
        model.kv_cache_dtype,
    )


def kept_bytes(models: Sequence[SheetModel], context_tokens: int, settings: Settings) -> numpy.ndarray:
    """Bytes of cache that a request of this context keeps while it is answered, by model."""
    rows = [model_columns(m.model, m.weight_dtype, m.kv_cache_dtype) for m in models]
    values: dict[str, Any] = {k: numpy.array([r[k] for r in rows], float) for k in rows[0]}
    values |= {
        "tensor_parallel_size": 1.0,
        "charged_tokens": float(context_tokens),
        "block_size": float(settings.block_size),
        "hybrid_kv_manager": float(settings.hybrid_kv_manager),
    }
    return numpy.asarray(evaluate(KEPT, values)["kv_bytes_per_sequence_steady"], float)


def _described(model: SheetModel, kept: float) -> str:
    """A model by its own numbers: parameters (10^9), and what a request keeps."""
    params = model.model.params
    active = f", {ONE_DECIMAL.text(params.active / 1e9)} B active" if params.active < params.total else ""
    size = f"{ONE_DECIMAL.text(params.total / 1e9)} B{active}"
    kv_per_request = f"{kept / GIB:,.2f} GiB of KV a request"
    return f"{model.model.name} ({size}; {model.weight_dtype} weights, {kv_per_request})"
