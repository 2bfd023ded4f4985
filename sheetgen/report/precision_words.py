"""The weights of an answer in words: their precision and publisher, and the answer with the weights as published."""

from __future__ import annotations

from sheetgen.answer.answer_record import CellRecord
from sheetgen.answer.confidences import is_below
from sheetgen.catalog.model import Model
from sheetgen.question.precision import DEPLOYED, has_deployed
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.in_currency import amounts_of, more_than
from sheetgen.report.page import NONE, Cell, Text
from sheetgen.report.wording import money, rent, shape_words, sure, weights_name
from sheetgen.units import RECOMMENDED, UNQUANTIZED, rate_text


def sized_as_words(model: Model) -> str:
    """The entry that other weights of its architecture are sized as, in a sentence, or that a shape is no real model;
    nothing for the entry's own."""
    if model.is_reference_shape:
        return f"{model.name} is {shape_words(model)}."
    if model.sized_as is None:
        return ""
    return str(sentences.sized_as.fill(model=model.name, entry=model.sized_as, is_listed=int(model.is_listed)))


def checkpoint_words(question: Question, cell: CellRecord) -> Cell:
    """The checkpoint in use, with its publisher and licence."""
    return sentences.checkpoint_words.fill(**_of_checkpoint(question, cell))


def unknown_checkpoint_words(question: Question, cell: CellRecord) -> str:
    """A warning that no checkpoint of the precision in use is known, and how to make one; "" for published weights, for
    those with a checkpoint, and for a reference shape."""
    model, dtype = question.model_of(cell.row), cell.weight_dtype
    from_wide, is_wide = model.auto_weight_dtype in UNQUANTIZED, dtype in UNQUANTIZED
    is_known = model.as_published is None or model.served_as is not None or (from_wide and is_wide)
    if is_known or model.model.is_reference_shape:
        return ""
    return str(sentences.unknown_checkpoint.fill(wide=is_wide, loaded=from_wide and dtype == DEPLOYED))


def published_words(cell: CellRecord, rented: Text | None = None) -> Cell:
    """The instances to rent for the published weights; `rented` names them in other words than a page."""
    facts = _of_published(cell)
    return sentences.published_words.fill(**facts | ({"rented": rented} if rented is not None else {}))


def is_passed_over(question: Question, cell: CellRecord) -> bool:
    """True where an FP8 checkpoint is known and was recommended, but no GPU that takes part runs it."""
    model = question.model_of(cell.row)
    published = model.weight_dtype == model.auto_weight_dtype and model.checkpoint_named is None
    asked = question.settings.weight_dtype == RECOMMENDED
    return published and asked and has_deployed(model.model, model.auto_weight_dtype)


def weights_gains(cell: CellRecord) -> str:
    """The gain of the answer's weights beside the published ones in requests and certainty; "" where nothing."""
    published, answer = cell.as_published, cell.answer
    if published is None or published.served_at_target is None or published.chance is None:
        return ""
    number_text = rate_text if cell.is_rate else "{:,.0f}".format
    own, other = (number_text(served) for served in (answer.served_at_target, published.served_at_target))
    is_more, is_surer = answer.served_at_target > published.served_at_target, is_below(published.chance, answer.chance)
    return str(
        sentences.weights_gains.fill(
            own=own if is_more and own != other else "",
            other=other,
            is_rate=int(cell.is_rate),
            sure=str(sure(answer.chance)) if is_surer else "",
            other_sure=str(sure(published.chance)),
        )
    )


def weights_reason(question: Question, cell: CellRecord) -> str:
    """Why the answer has weights in a lower precision than the published ones; "" where it has those."""
    published, amount = cell.as_published, amounts_of(question.settings)
    if published is None or cell.chosen is None:
        return ""
    model = question.model_of(cell.row).model
    more = more_than(money(published.monthly_usd or 0), money(cell.answer.monthly_usd), question.settings)
    return str(
        sentences.weights_reason.fill(
            dtype=weights_name(model, cell.weight_dtype),
            published=weights_name(model, published.weight_dtype),
            month="" if published.monthly_usd is None else amount(published.monthly_usd),
            rent=rent(published.n_instances or 0, published.instance or ""),
            usd=amount(abs(more)),
            is_same=int(more == 0),
            is_saved=int(more > 0),
            gains=weights_gains(cell),
        )
    )


def _of_checkpoint(question: Question, cell: CellRecord) -> dict[str, object]:
    model, checkpoint = question.model_of(cell.row).model, question.model_of(cell.row).checkpoint
    return {
        "hf_id": cell.checkpoint or NONE,
        "publisher": cell.checkpoint.split("/")[0] if cell.checkpoint else NONE,
        "license": (model.license_of(checkpoint) if checkpoint else None) or NONE,
    }


def _of_published(cell: CellRecord) -> dict[str, object]:
    published = cell.as_published
    if published is None or published.instance is None or published.n_instances is None:
        is_held = published is not None and published.is_held
        return {"n_instances": float("nan"), "rented": NONE, "usd": NONE, "is_held": int(is_held)}
    return {
        "is_held": 1,
        "n_instances": published.n_instances,
        "rented": rent(published.n_instances, published.instance),
        "usd": money(published.monthly_usd),
    }
