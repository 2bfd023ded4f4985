"""The waits of an answer in words: a request alone, every place taken, all people at the same moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sheetgen.answer.answer_record import CellRecord
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.page import NONE, Cell
from sheetgen.report.wording import is_short, pace, seconds, span, sure

WAIT_TOLD = 0.01  # a share of the requests: where fewer wait for a place, a short answer does not say so


def late_values(
    question: Question, cell: CellRecord, is_shown: bool = True, is_then: bool = False
) -> dict[str, Cell | str | bool]:
    """The share of the requests that wait for a place and for how long, of a short answer; "" where hardly any does.
    limit: the share that may, where more do. is_then: the time of their first word then is said, too."""
    mean, share = cell.waits.mean_wait_seconds if cell.waits else None, cell.wait_fraction or 0
    is_told = is_shown and mean is not None and share >= WAIT_TOLD
    words, most = _share(share), _share(question.settings.max_wait_fraction)
    is_over = is_told and share > question.settings.max_wait_fraction and words != most
    return {
        "share": words if is_told else "",
        "mean_wait": seconds(mean or 0) if is_told else "",
        "limit": most if is_over else "",
        "over": is_over,
        "after": str(seconds(cell.waits.ttft_full_seconds)) if is_told and is_then and cell.waits else "",
    }


def sure_words(cells: Sequence[CellRecord]) -> Cell:
    """What the chances of answers are of; of one answer to a rate with its times with every place taken, as each of
    the chances is of a replica with all of its places taken."""
    is_size = any(is_short(cell.answer) for cell in cells if cell.chosen)
    return sentences.sure_of.fill(is_short=int(is_size), **_at_full(cells))


def full_words(cells: Sequence[CellRecord]) -> Cell:
    """The times of an answer to a rate with every place taken; NONE of others."""
    times = _at_full(cells)
    return sentences.at_full.fill(**times) if times["full"] else NONE


def _at_full(cells: Sequence[CellRecord]) -> dict[str, str | int]:
    cell = cells[0]
    if len(cells) > 1 or not cell.is_rate or cell.waits is None:
        return {"full": "", "full_pace": "", "output_tokens": 0}
    times = seconds(cell.waits.ttft_full_seconds), pace(1 / cell.waits.tpot_full_seconds)
    return {"full": str(times[0]), "full_pace": str(times[1]), "output_tokens": cell.output_tokens}


def _share(share: float) -> str:
    return f"{100 * share:.2g}%"


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
