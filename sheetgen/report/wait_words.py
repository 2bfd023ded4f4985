"""The waits of an answer in words: a request alone, every place taken, all people at the same moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sheetgen.answer.answer_record import CellRecord
from sheetgen.catalog.hardware import Workload
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.page import Cell, capital
from sheetgen.report.wording import is_short, pace, seconds, span, sure, whole
from sheetgen.sizing.rates import FEW_FRACTION
from sheetgen.units import EVEN, rate_text

WAIT_TOLD = FEW_FRACTION  # where a smaller share waits for a place, a short answer does not say so
LEAST_WAIT = 1e-4  # a share of the requests; one below it is not said in digits


def share_words(share: float) -> str:
    """A share of the requests that wait for a place."""
    return f"{100 * share:.2g}%" if share >= LEAST_WAIT else f"under {100 * LEAST_WAIT:g}%"


def _limit_words(question: Question, share: float) -> str:
    """The share that may wait, in words, where more do and the two shares do not read the same; else empty."""
    most = question.settings.max_wait_fraction
    return share_words(most) if share > most and share_words(share) != share_words(most) else ""


def late_values(question: Question, cell: CellRecord, is_shown: bool = True) -> dict[str, Cell | str | bool]:
    """The values of a short answer's sentence on waits: the share of the requests that wait for a place, and for how
    long; empty where hardly any does. limit: the share that may wait, where more do."""
    mean, share = cell.waits.mean_wait_seconds if cell.waits else None, cell.wait_fraction or 0
    is_told = is_shown and mean is not None and share >= WAIT_TOLD
    return {
        "share": share_words(share) if is_told else "",
        "mean_wait": seconds(mean or 0) if is_told else "",
        "limit": _limit_words(question, share) if is_told else "",
    }


def slow_values(question: Question, cell: CellRecord) -> dict[str, Cell | str | float]:
    """The values of the sentence on the time to the first word, at the confidence, with every place taken, and on the
    wait before it; mean_wait alone, empty, where the load is no rate."""
    waits, share, is_even = cell.waits, cell.wait_fraction or 0, "impossible" in cell.measure_first
    if waits is None or waits.mean_wait_seconds is None or waits.late_ttft_seconds is None:
        return {"mean_wait": ""}
    full, is_shared = waits.late_ttft_seconds - waits.mean_wait_seconds, share > FEW_FRACTION
    return {
        "confidence": EVEN if is_even else question.settings.confidence,
        "full": seconds(full),
        "share": share_words(share),
        "limit": _limit_words(question, share),
        "mean_wait": str(seconds(waits.mean_wait_seconds)),
        "all_but_few": str(seconds(waits.p99_ttft_seconds or 0)) if is_shared else "",
    }


def target_values(question: Question, workload: Workload) -> dict[str, object]:
    """The targets of a load in a reader's words: seconds to the first word, tokens a second."""
    is_aimed = question.settings.speed_targets
    first, paced = workload.ttft_target_ms, workload.tpot_target_ms
    return {
        "first_target": seconds((first or 0) / 1000),
        "pace_target": pace(1000 / (paced or 1000)),
        "aimed": bool(first and is_aimed),
        "paced": bool(paced and is_aimed),
    }


def sure_words(
    question: Question, cells: Sequence[CellRecord], is_tested: bool = False, is_brief: bool = False
) -> Cell:
    """The sentence that names the targets to which the chances of answers refer, for a single answer to a rate with the
    load of a machine. is_tested: it adds that the first day tests this. is_brief: it leaves out which limits the
    chances do not cover."""
    is_size = any(is_short(cell.answer) for cell in cells if cell.chosen)
    return sentences.sure_of.fill(
        is_short=int(is_size),
        is_tested=int(is_tested),
        is_brief=int(is_brief),
        **_kept_values(question, cells),
    )


def replicas_of_machine(cell: CellRecord) -> int:
    """The replicas on one machine; 1 where a replica spans several machines."""
    return max(1, cell.answer.replicas_held // cell.answer.n_instances)


def _kept_values(question: Question, cells: Sequence[CellRecord]) -> dict[str, object]:
    cell, aimed = cells[0], target_values(question, question.workload_of(cells[0].row))
    values = {
        **aimed,
        "both": bool(aimed["aimed"] and aimed["paced"]),
        "targeted": bool(aimed["aimed"] or aimed["paced"]),
        "single": len(cells) == 1 and cell.chosen is not None,
        "sure": "",
        **_at_once_values(cell if len(cells) == 1 else None),
    }
    return values | {"sure": capital(str(sure(cell.answer.chance)))} if values["single"] else values


def _at_once_values(cell: CellRecord | None) -> dict[str, str | int]:
    """The requests at once of an answer to a rate: the mean at its peak, and those that the chance is of on a machine,
    or on a replica that spans several."""
    if cell is None or cell.chosen is None or not cell.is_rate:
        return {"mean": "", "places": "", "n_loaded": 0, "spans_machines": 0}
    answer = cell.answer
    return {
        "mean": rate_text(cell.concurrent_requests or 0),
        "places": str(whole(answer.sure_at.requests * replicas_of_machine(cell))),
        "n_loaded": answer.n_replicas if answer.spans_machines else answer.n_instances,
        "spans_machines": int(answer.spans_machines),
    }


def at_once_words(cell: CellRecord) -> str:
    """The requests at once of a rate: 3.07 at once on average, up to 12; "" where nothing serves it."""
    return str(sentences.at_once_of_rate.fill(**_at_once_values(cell))) if cell.chosen and cell.is_rate else ""


def full_words(cell: CellRecord) -> str:
    """The load of an answer's machine that its chance is of, of a rate: 12 at once."""
    return str(sentences.at_full.fill(**_at_once_values(cell)))


def wait_words(question: Question, cell: CellRecord) -> Iterator[Cell]:
    """The times of a request alone and with every place taken, and who waits longer; then those of all people who ask
    at the same moment."""
    if (waits := cell.waits) is None:
        return
    target = cell.ttft_target_seconds
    yield sentences.waits.fill(
        output_tokens=cell.output_tokens,
        alone=seconds(waits.ttft_alone_seconds),
        full=seconds(waits.ttft_full_seconds),
        pace=pace(1 / waits.tpot_full_seconds),
        first_target=seconds(target or 0),
        sure=sure(cell.answer.chance_of["ttft"]),
        aimed=target is not None,
        known=False,  # the share that waits longer has a line of its own
        is_placed=int(not cell.is_rate),
    )
    if (together := waits.same_moment) and together.people > 1:
        yield sentences.same_moment.fill(
            output_tokens=cell.output_tokens,
            people=together.people,
            places=waits.places,
            last=span(together.last_ttft_seconds or 0),
            waits=together.last_ttft_seconds is not None,
        )
