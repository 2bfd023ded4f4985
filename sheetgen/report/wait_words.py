"""The waits of an answer in words: a request alone, every place taken, all people at the same moment."""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.answer.answer_record import CellRecord
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.page import Cell
from sheetgen.report.wording import pace, seconds, span, sure


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
