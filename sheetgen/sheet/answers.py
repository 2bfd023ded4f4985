"""The answers of the page: a card for each model at the headline load, every load in a matrix, what its memory goes to
as bars, and the changes that would save most."""

from __future__ import annotations

import math

from sheetgen.catalog.hardware import Workload
from sheetgen.levers import EveryLever, Lever, best
from sheetgen.recommend import TOO_SLOW, Solution, short_tokens
from sheetgen.sheet import wording
from sheetgen.sheet.fit import Fit, at, headline_rows
from sheetgen.sheet.money import class_costs, facts_of
from sheetgen.sheet.notes import price_classes
from sheetgen.sheet.page import NONE, Bar, Card, Cell, LeverRow, MatrixBlock, MatrixCell, MatrixRow, Text, joined, words
from sheetgen.sheet.wording import money, named_size, plural, rent, rented_gpus, size, whole
from sheetgen.units import PERCENT

MOST_LEVERS = 3


def cards(solved: Solution) -> tuple[Card, ...]:
    return tuple(_card(solved, row) for row in headline_rows(solved))


def _card(solved: Solution, row: int) -> Card:
    question, choice = solved.question, solved.choices[row]
    load, units = question.loads[row], question.settings.units
    name, users = question.models[load.model].model.name, whole(solved.cells["users"][row])
    bills = solved.models["weights_bytes"][load.model], solved.cells["kv_bytes"][row]
    memory = words("{} weights + {} KV cache", *(named_size(bytes_, units) for bytes_ in bills))
    fit = Fit.of(solved, row)
    if fit is None:
        return Card(model=name, fits=False, rent=choice.verdict, monthly=NONE, provider="–",
                    hardware=_why_nothing(solved, row), memory=memory, users=users)  # fmt: skip
    one, stages, idle = fit.candidate, choice.pipeline_parallel_size, fit.gpus_rented - fit.gpus_used
    held, classes = choice.n_replicas * choice.sequences_per_replica, class_costs(solved, row)
    hardware = (
        rented_gpus(choice.n_instances, one), f"TP {fit.tensor_parallel_size}",
        *([f"PP {stages}"] if stages > 1 else []), plural(choice.n_replicas, "replica"),
        *([words("{} idle", plural(idle, "GPU"))] if idle else []),
    )  # fmt: skip
    free = Cell(choice.sure_headroom_fraction, PERCENT)
    return Card(
        **vars(facts_of(solved, row)), fits=True, rent=rent(choice.n_instances, one), monthly=money(choice.monthly_usd),
        provider=", ".join(filter(None, (wording.provider_name(one.provider), one.region))),
        hardware=joined(", ", hardware),
        memory=words("{} × {}", whole(choice.n_replicas), memory) if choice.n_replicas > 1 else memory, users=users,
        headroom=words("room for {}, {} surely free", plural(held, "request"), free),
        token_time=wording.token_time(solved, row), throughput=wording.throughput(solved, row),
        first_token=wording.first_token(solved, row), sized_by=wording.sized_by(solved, row),
        runner_up=_runner_up(solved, row), held=words("room for {}", whole(held)),
        classes=tuple(classes[purchase] for purchase in price_classes(question)),
    )  # fmt: skip


def _runner_up(solved: Solution, row: int) -> Text:
    choice = solved.choices[row]
    second, usd = choice.runner_up, choice.runner_up_monthly_usd
    if second is None or usd is None:
        return "no other GPU or provider holds it"
    one = solved.candidate(second)
    gpus = rented_gpus(round(at(solved.costs, "n_instances", row, second)), one)
    dearer = "the same" if usd == choice.monthly_usd else wording.change(choice.monthly_usd, usd)
    return words("then {} on {}: {} ({})", gpus, wording.provider_name(one.provider), money(usd), dearer)


def _why_nothing(solved: Solution, row: int) -> Text:
    load, choice = solved.question.loads[row], solved.choices[row]
    model = solved.question.models[load.model]
    if load.over_limit:
        limit = short_tokens(int(model.model.max_context_tokens or 0))
        return words("{} asked, {} allowed", short_tokens(load.context_tokens), limit)
    if choice.verdict == TOO_SLOW:
        target = wording.target_words(solved.question, row)
        return words("a lone request misses {} on every candidate that holds it", target)
    if not (solved.pools["runs"][load.model] == 1).any():
        return f"no candidate runs {model.weight_dtype} weights with a {model.kv_cache_dtype} KV cache"
    return "no candidate holds weights and one request"


def matrix(solved: Solution, tight_below: float) -> tuple[MatrixBlock, ...]:
    question = solved.question
    rows = {(c.workload, c.tier, c.model): i for i, c in enumerate(question.loads)}

    def row(w: int, t: int, requests: int) -> MatrixRow:
        cells = tuple(_cell(solved, rows[w, t, m], tight_below) for m in range(len(question.models)))
        return MatrixRow(whole(requests), (w, t) == question.headline, cells)

    def block(w: int, of: Workload) -> MatrixBlock:
        split = words("{} in + {} out", whole(of.input_tokens), whole(of.output_tokens))
        tiers = tuple(row(w, t, requests) for t, requests in enumerate(question.tiers))
        return MatrixBlock(of.name, short_tokens(of.context_tokens), split, tiers, of.context_tokens)

    return tuple(block(w, workload) for w, workload in enumerate(question.workloads))


def _cell(solved: Solution, row: int, tight_below: float) -> MatrixCell:
    question, choice = solved.question, solved.choices[row]
    load = question.loads[row]
    if load.over_limit:
        limit = short_tokens(int(question.models[load.model].model.max_context_tokens or 0))
        return MatrixCell("over", f"over {limit}")
    kv, fit = size(float(solved.cells["kv_bytes"][row]), question.settings.units), Fit.of(solved, row)
    if fit is None:
        return MatrixCell("none", choice.verdict, kv)
    status = "tight" if choice.sure_headroom_fraction < tight_below else "fits"
    hardware, rented = (of(choice.n_instances, fit.candidate) for of in (rented_gpus, rent))
    usd = wording.short_money(choice.monthly_usd)
    return MatrixCell(status, status, kv, hardware, rented, usd, choice.sized_by == "speed")


def bars(solved: Solution) -> tuple[tuple[Bar, ...], ...]:
    """By model, a bar for each workload at the requests of the headline."""
    question = solved.question
    found: dict[int, list[Bar]] = {m: [] for m in range(len(question.models))}
    for row, load in enumerate(question.loads):
        if load.tier == question.headline[1]:
            found[load.model].append(_bar(solved, row))
    return tuple(tuple(one) for one in found.values())


def _bar(solved: Solution, row: int) -> Bar:
    """What the GPUs hold: the weights on each replica, and the KV cache as often as ranks keep it."""
    question = solved.question
    load, units = question.loads[row], question.settings.units
    of_load = (
        question.models[load.model].model.name, question.workloads[load.workload].name,
        short_tokens(load.context_tokens), load.workload == question.headline[0],
    )  # fmt: skip
    weights, kv = float(solved.models["weights_bytes"][load.model]), float(solved.cells["kv_bytes"][row])
    fit = Fit.of(solved, row)
    if fit is None:
        verdict = solved.choices[row].verdict
        return Bar(*of_load, weights, kv, size(weights, units), size(kv, units), capacity=verdict)
    overhead, capacity = (fit.pool(name) * fit.gpus_used for name in ("overhead_bytes_per_gpu", "memory_budget_bytes"))
    held = fit.load("charge_bytes") * fit.tensor_parallel_size * load.concurrent_requests
    return Bar(
        *of_load, weights_bytes=weights * fit.choice.n_replicas, kv_bytes=held, overhead_bytes=overhead,
        capacity_bytes=capacity, weights=_times(fit.choice.n_replicas, weights, units), kv=_copies(held, kv, units),
        overhead=size(overhead, units), limit=size(capacity, units),
        capacity=words("{} on {}", named_size(capacity, units), wording.gpus(fit.gpus_used, fit.candidate)),
    )  # fmt: skip


def _times(count: int, n_bytes: float, units: str) -> Cell:
    return size(n_bytes, units) if count == 1 else words("{} × {}", whole(count), size(n_bytes, units))


def _copies(held: float, kv: float, units: str) -> Cell:
    """KV on all ranks: a whole number of copies is said as one (an MLA cache is kept by every rank)."""
    copies = held / kv if kv else 1.0
    is_whole = math.isclose(copies, round(copies), rel_tol=0.01)
    return _times(round(copies), kv, units) if is_whole else size(held, units)


def lever_rows(solved: Solution, every_lever: EveryLever) -> tuple[LeverRow, ...]:
    """The changes that save most at the headline load, over all models, the best first; none where none has a price."""
    chosen = best({row: every_lever[row] for row in headline_rows(solved)}, MOST_LEVERS)
    return tuple(_lever(solved, row, lever) for row, lever in chosen)


def _lever(solved: Solution, row: int, lever: Lever) -> LeverRow:
    name, after = solved.question.models[solved.question.loads[row].model].model.name, lever.after
    saving = wording.saved_money(lever)
    if after is None:
        return LeverRow(name, lever.words, NONE, NONE, saving)
    then = rent(after.n_instances, after.candidate), money(after.monthly_usd)
    return LeverRow(name, lever.words, *then, saving, wording.saved_share(lever))
