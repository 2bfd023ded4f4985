"""The weights of an answer in words: their precision and publisher, and the answer with the weights as published."""

from __future__ import annotations

from sheetgen.answer.answer_record import CellRecord
from sheetgen.catalog.model import Model
from sheetgen.question.precision import DEPLOYED, has_deployed
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.page import NONE, Cell, Text
from sheetgen.report.wording import money, rent, shape_words
from sheetgen.units import RECOMMENDED, UNQUANTIZED


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
