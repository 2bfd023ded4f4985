"""The sentences of the live page: those of every answer, and its own."""

from __future__ import annotations

from collections.abc import Mapping

from sheetgen.report import sentences
from sheetgen.report.pay_less_words import WAYS
from sheetgen.report.templates import Template

SENTENCES: Mapping[str, Template] = {
    "sure": sentences.sure,
    "rent": sentences.rent,
    **{f"measure_{name}": sentence for name, sentence in sentences.MEASURE_FIRST.items()},
    **{f"way_{kind}": what for kind, (what, _) in WAYS.items()},
    **{f"gives_up_{kind}": lost for kind, (_, lost) in WAYS.items()},
}
