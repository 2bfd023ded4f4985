"""`sheetgen.build`: the sheet in files, as the command writes it, for a program or a notebook."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from sheetgen.answer.answer_record import Record, as_json
from sheetgen.api import SHORT_SPELLINGS, Answer, Catalogs, answered, catalog_of, check_types, with_options
from sheetgen.errors import MissingLibraryError, ScenarioError, did_you_mean, shown
from sheetgen.question.parse import Raw
from sheetgen.question.sheet_question import OF_ASKED, OPTIONS, SHEET_OPTIONS, Question
from sheetgen.report.answer_lines import answer_words, question_words
from sheetgen.sheet_files import OF_FILES, Order, draw, launched_answer, order_of, question_of_sheet
from sheetgen.writers.safe_files import write_files

NAMES = (*SHEET_OPTIONS, *OPTIONS, *OF_ASKED, *SHORT_SPELLINGS, *OF_FILES)


class Built(dict[str, Any]):
    """The record of a sheet, as `build --format json` writes it; `paths` are its files by format, `left_out` a line
    for each that could not be drawn; `kept` are the files that were there and changed by hand, by path, under their new
    names. A notebook shows the answers, and links to the files; `print` prints them."""

    def __init__(
        self, order: Order, answer: Answer, files: Collection[str], left_out: Sequence[str], kept: Mapping[Path, Path]
    ) -> None:
        super().__init__(as_json(answer.record))
        self.paths = {ending: order.path(ending) for ending in files}
        self.left_out, self.kept = tuple(left_out), dict(kept)
        self._question, self._record = answer.question, answer.record

    def __str__(self) -> str:
        answers = (line for words in _headlines(self._question, self._record) for line in words)
        return "\n".join((*answers, *map(str, self.paths.values()), *self.left_out))

    def _repr_html_(self) -> str:
        """A line for each model's answer at the headline load, and the files, escaped."""
        rows = "".join(
            f"<tr><th>{escape(asked)}</th><td>{escape(answer)}</td></tr>"
            for asked, answer in _headlines(self._question, self._record)
        )
        files = ", ".join(
            f'<a href="{escape(str(path), quote=True)}">{escape(path.name)}</a>' for path in self.paths.values()
        )
        return f"<table>{rows}</table><p>{files}</p>{''.join(f'<p>{escape(line)}</p>' for line in self.left_out)}"


def _headlines(question: Question, record: Record) -> list[tuple[str, str]]:
    """Of each model the question at the headline load, and the answer."""
    return [(question_words(question, cell), answer_words(question, cell)) for cell in record.headline_cells]


@with_options(*NAMES)
def build(*, catalogs: Catalogs = (), **options: Any) -> Built:
    """The sizing sheet in files: `build(models="8b,70b", workloads="rag", format="xlsx,json", out="sheets")`.

    Takes the options of the command `build` by their names with underscores; what is a list there may be a list here.
    Writes output/sizing-sheet.xlsx and .pdf where `out`, `name` and `format` name nothing else, all of them or none,
    and returns the record, with the paths.

    Raises ScenarioError or CatalogError with every problem found, and MissingLibraryError where a format that was named
    cannot be drawn here; the others are written then.
    """
    given: dict[str, Raw] = {}
    for name, value in options.items():
        if name not in NAMES:
            raise ScenarioError(f"unknown option {shown(name)!r}.{did_you_mean(name, NAMES)}")
        if value is not None:
            given[SHORT_SPELLINGS.get(name, name)] = _as_typed(value)
    catalog, order = catalog_of(catalogs), order_of(given)
    check_types(order.asked)
    answer, launched = launched_answer(answered(question_of_sheet(order, catalog)), order.flags, catalog)
    files, left_out = draw(answer, order.formats, catalog, order.brand, order.archive, launched)
    kept = write_files(order.targets(files))
    if left_out and (order.is_named or not files):
        raise MissingLibraryError(*left_out)
    return Built(order, answer, files, left_out, kept)


def _as_typed(value: Any) -> Any:
    """A list as the command takes it, and a path as text."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value) if isinstance(value, Path) else value
