"""The clause that says why an instance that costs no more than the answer lost: the rule of near ties that decided."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.answer.answer_record import CellRecord, NotChosen, PassedOver, Record
from sheetgen.formula import same_money
from sheetgen.report.templates import q, template
from sheetgen.units import PERCENT, USD, rate_text

_MOST_PLACES = 9
_LOST_BY = {
    "gpus": template("{has} GPUs, not {answer_has}"),
    "machines": template("{has} instances, not {answer_has}"),
    "precision": template("does not compute in {dtype}"),
    "ranks": template("some of its data-parallel ranks would have no request"),
    "served": template(
        "serves [told?{has} [rate?requests a second|at once], not {answer_has}|a little less]",
        told=q.is_told == 1,
        rate=q.is_rate == 1,
    ),
    "tp": template("TP {has}, not {answer_has}"),
    "dp": template("DP {has}, not {answer_has}"),
    "order": template("later in the list"),
}
_LESS = template(
    "[same?the same price|[little?less than 1%|{share}] less]", same=q.is_same == 1, little=q.is_little == 1
)
_CLAUSE = template("{less}: {lost_by}")
_REASON = template("[same?same price|{usd} a month, {less}], but {lost_by}", same=q.is_same == 1)


def near_tie_words(cell: CellRecord, instance: str) -> str:
    """The amount by which an instance is cheaper than the answer, and the rule that it lost by; "" for one that costs
    more."""
    other = next((other for other in cell.passed_over if other.instance == instance), None)
    return str(_CLAUSE.fill(less=_less(cell, other), lost_by=_lost_by(cell, other))) if other else ""


def with_reasons(record: Record) -> Record:
    """The record with the reasons, in words, why instances that cost no more were not chosen."""
    return replace(record, cells=tuple(map(_worded, record.cells)))


def _worded(cell: CellRecord) -> CellRecord:
    return replace(cell, why_not=tuple(_reason(cell, other) for other in cell.why_not))


def _reason(cell: CellRecord, other: NotChosen) -> NotChosen:
    if (passed_over := other.why.passed_over) is None:
        return other
    less, lost_by = _less(cell, passed_over), _lost_by(cell, passed_over)
    slots = {"same": other.why.kind == "as_dear", "usd": USD.text(passed_over.monthly_usd)}
    return replace(other, reason=str(_REASON.fill(less=less, lost_by=lost_by, **slots)))


def _less(cell: CellRecord, other: PassedOver) -> str:
    share = 1 - other.monthly_usd / cell.answer.monthly_usd
    is_same = bool(same_money(other.monthly_usd, cell.answer.monthly_usd))
    return str(_LESS.fill(same=is_same, little=share < 0.005, share=PERCENT.text(share)))


def _lost_by(cell: CellRecord, other: PassedOver) -> str:
    texts = _apart(other.has or 0, other.answer_has or 0)
    slots = {"dtype": cell.weight_dtype.upper(), "told": texts[0] != texts[1], "rate": cell.is_rate}
    return str(_LOST_BY[other.lost_by].fill(has=texts[0], answer_has=texts[1], **slots))


def _apart(less: float, more: float) -> tuple[str, str]:
    """Two figures in three digits, or as many as it takes to tell them apart."""
    texts = rate_text(less), rate_text(more)
    for places in range(_MOST_PLACES):
        if texts[0] != texts[1]:
            break
        texts = f"{less:,.{places}f}", f"{more:,.{places}f}"
    return texts
