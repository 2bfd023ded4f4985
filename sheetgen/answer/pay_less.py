"""Ways to pay less for the same load, the mildest first: never a smaller question, and no two alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from sheetgen.answer.answer_record import (
    AtConfidence,
    CellRecord,
    ChosenRecord,
    LeverRecord,
    NotAskedRecord,
    PayLess,
    RentalRecord,
)
from sheetgen.answer.confidences import is_below
from sheetgen.question.market import UNBOUND
from sheetgen.units import DTYPES, ON_DEMAND

# By lever, the kind of way that it is; for weights both where the published ones have 16 bits.
OF_LEVERS = {"fp8-weights": "fp8_weights", "fp8-kv-cache": "kv_fp8", "fp4-weights": "four_bits"}
SOLD_AS_ANSWER = ("less_sure", "fp8_weights", "kv_fp8", "four_bits", "provider")  # in the same purchase class
MORE = "more-of-memory"  # the lever that is no way to pay less, as the engine runs closer to its limit
MONTHS = {"reserved-1yr": 12, "reserved-3yr": 36}
JUDGED = ("least_saving_fraction", "least_saving_of_chance_fraction", "working_hours_per_month")

# Of what was not asked for: GPUs of another vendor or others at the providers asked for, or at the clouds that take
# part by default.
NEAR = ("vendor", "cloud", "gpu")
NOT_REQUESTED = ("provider", UNBOUND)  # the kinds of ways whose hardware nobody asked for

Rented = tuple[str | None, int | None, float]  # instance, number, $ a month to the cent


def ways_to_pay_less(
    cell: CellRecord, less_sure: AtConfidence | None, checkpoints: Mapping[str, str], judged: Mapping[str, float]
) -> tuple[PayLess, ...]:
    """The ways for a cell that something holds, each with what is rented, $ a month and what it gives up.

    less_sure: the answer at a lower confidence. checkpoints: by precision of weights, a checkpoint that the
    catalog knows. judged: the assumptions in JUDGED.
    """
    answer = cell.answer
    ways = list[PayLess]()
    taken: set[Rented] = {(answer.instance, answer.n_instances, round(answer.monthly_usd, 2))}
    for way in (_bound_as(answer, way) for way in _all_ways(cell, less_sure, checkpoints, judged)):
        key = "least_saving_of_chance_fraction" if way.kind == "less_sure" else "least_saving_fraction"
        same = _rental(way)
        # The month of an unknown cost is NaN, which is below nothing.
        if ways and ways[0].kind == "less_sure" and way.kind == "fp8_weights" and same == _rental(ways[0]):
            ways[0] = way  # the same machines, as sure as the answer
        elif same not in taken and way.monthly_usd <= (1 - judged[key]) * answer.monthly_usd:
            taken.add(same)
            ways.append(way)
    return tuple(ways)


def _bound_as(answer: ChosenRecord, way: PayLess) -> PayLess:
    """A way with the money that it binds where it is rented in the answer's class."""
    binds = committed_usd(answer.purchase, way.monthly_usd) if way.kind in SOLD_AS_ANSWER else 0
    return replace(way, commits_usd=binds) if binds else way


def _rental(way: PayLess) -> Rented:
    return way.instance, way.n_instances, round(way.monthly_usd, 2)


def _all_ways(
    cell: CellRecord, less_sure: AtConfidence | None, checkpoints: Mapping[str, str], judged: Mapping[str, float]
) -> Iterator[PayLess]:
    answer = cell.answer
    if less_sure is not None:
        yield _rented("less_sure", less_sure)
    yield from _lower_precisions(cell.levers, checkpoints)
    usual = _on_demand(cell)
    if usual is not None:
        usd = usual.monthly_usd * judged["working_hours_per_month"] / judged["hours_per_month"]
        other_class = "" if usual is answer else ON_DEMAND
        yield PayLess("hours", usd, usual.instance, usual.n_instances, chance=usual.chance, detail=other_class)
    if terms := tuple(_terms(cell)):
        yield min(terms, key=lambda term: term.monthly_usd)
    for kind in NOT_REQUESTED:
        if others := _others(cell, kind):
            yield _from_others(kind, others)
    if cell.owned is not None:
        own = cell.owned.base
        yield PayLess(
            "own",
            own["monthly_owned_usd"],
            commits_usd=own["owned_capex_usd"],
            pays_after_months=own["owning_pays_off_month"],
            detail=f"{cell.owned.n_gpus} {cell.owned.gpu}",
        )
    if cell.hosted:
        yield PayLess("hosted", cell.hosted[0].monthly_usd, detail=cell.hosted[0].host)


def _on_demand(cell: CellRecord) -> ChosenRecord | RentalRecord | None:
    """The rental on demand: the answer, or its equivalent in that class."""
    return cell.answer if cell.answer.purchase == ON_DEMAND else cell.by_purchase.get(ON_DEMAND)


def _terms(cell: CellRecord) -> Iterator[PayLess]:
    """The load in every class that commits for months, the shortest first: the commitment, and how many months on
    demand cost as much."""
    for purchase in MONTHS:
        if rental := cell.by_purchase.get(purchase):
            yield _term(cell, purchase, rental)


def _term(cell: CellRecord, purchase: str, rental: RentalRecord) -> PayLess:
    usual = _on_demand(cell) or cell.answer
    commits_usd = committed_usd(purchase, rental.monthly_usd)
    return _rented("term", rental, commits_usd, commits_usd / usual.monthly_usd, detail=purchase)


def other_terms(cell: CellRecord, ways: Collection[PayLess], judged: Mapping[str, float]) -> tuple[PayLess, ...]:
    """The other terms that cost enough less than the answer, where the best term is a way to pay less."""
    most = (1 - judged["least_saving_fraction"]) * cell.answer.monthly_usd
    best = [way.detail for way in ways if way.kind == "term"]
    return tuple(term for term in _terms(cell) if best and term.detail not in best and term.monthly_usd <= most)


def as_sure_ways(
    cell: CellRecord,
    ways: Collection[PayLess],
    terms: Mapping[str, RentalRecord],
    judged: Mapping[str, float],
) -> tuple[PayLess, ...]:
    """For the term and for what nobody asked for, where no way of that kind is as sure as the answer, the cheapest that
    is.

    terms: by class that commits for months, the rental that is as sure, where the class's own is not.
    """
    most = (1 - judged["least_saving_fraction"]) * cell.answer.monthly_usd
    own, sure_ways = cell.answer.chance, list[PayLess]()

    def is_as_sure(chance: float | None) -> bool:
        return chance is not None and not is_below(chance, own)

    of_terms = [way for way in (*ways, *cell.other_terms) if way.kind == "term"]
    if of_terms and not any(is_as_sure(way.chance) for way in of_terms):
        surer = [_term(cell, purchase, rental) for purchase, rental in terms.items() if rental.monthly_usd <= most]
        sure_ways += [min(surer, key=lambda term: term.monthly_usd)] if surer else []
    for way in ways:
        if way.kind in NOT_REQUESTED and not any(
            is_as_sure(rental.chance) for rental in (way.other, way.further) if rental
        ):
            surer_others = [other for other in _others(cell, way.kind) if is_as_sure(other.chance)]
            sure_ways += [_bound_as(cell.answer, _from_others(way.kind, surer_others))] if surer_others else []
    return tuple(sure_ways)


def cheapest_same(cell: CellRecord) -> PayLess | None:
    """The cheapest way with the same answers, as sure, at all hours, on machines that are kept and that were requested:
    a commitment; None where none is."""
    every = (*cell.pay_less, *cell.other_terms, *cell.as_sure)
    same = [way for way in every if way.kind == "term" and not is_below(way.chance or 0, cell.answer.chance)]
    return min(same, key=lambda way: way.monthly_usd, default=None)


def committed_usd(purchase: str, monthly_usd: float) -> float:
    """Money that a commitment in that class binds to its end, in US dollars; 0 for a class without commitment."""
    return MONTHS.get(purchase, 0) * monthly_usd


def _others(cell: CellRecord, kind: str) -> list[NotAskedRecord]:
    """Hardware that nobody asked for, for a way of this kind: in the answer's class, or bound to nothing."""
    return [other for other in cell.not_asked if (other.kind == UNBOUND) == (kind == UNBOUND)]


def _from_others(kind: str, not_asked: Collection[NotAskedRecord]) -> PayLess:
    """The cheapest that nobody asked for: first at the providers of the answer and the clouds that take part by
    default, as these are bought from as the answer is, and beside it what is cheaper still."""
    cheapest = min(not_asked, key=lambda rental: rental.monthly_usd)
    near = [rental for rental in not_asked if rental.kind in NEAR]
    other = min(near, key=lambda rental: rental.monthly_usd) if near else cheapest
    further = None if other is cheapest else cheapest
    return PayLess(
        kind,
        other.monthly_usd,
        other.instance,
        other.n_instances,
        chance=other.chance,
        detail=other.kind,
        other=other,
        further=further,
    )


def _lower_precisions(levers: Iterable[LeverRecord], checkpoints: Mapping[str, str]) -> Iterator[PayLess]:
    """FP8 weights, an FP8 KV cache, and weights in 4 bits where the catalog knows such a checkpoint."""
    by_kind = {OF_LEVERS[lever.lever]: lever for lever in levers if lever.lever in OF_LEVERS and not lever.further}
    for kind in OF_LEVERS.values():
        lever = by_kind.get(kind)
        if lever is None:
            continue
        checkpoint = ""
        if kind == "fp8_weights":
            checkpoint = checkpoints.get("fp8", "")
        elif kind == "four_bits":
            held = [dtype for dtype in checkpoints if DTYPES[dtype].linear_bytes < 1]
            if not held:
                continue
            checkpoint = checkpoints[held[0]]
        yield PayLess(
            kind, lever.monthly_usd, lever.instance, lever.n_instances, chance=lever.chance, detail=checkpoint
        )


def _rented(
    kind: str,
    rental: RentalRecord | AtConfidence,
    commits_usd: float | None = None,
    pays_after_months: float | None = None,
    detail: str = "",
) -> PayLess:
    """A way to pay less that rents something else."""
    return PayLess(
        kind,
        rental.monthly_usd,
        rental.instance,
        rental.n_instances,
        commits_usd,
        pays_after_months,
        chance=rental.chance,
        detail=detail,
    )
