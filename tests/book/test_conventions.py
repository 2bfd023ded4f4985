"""Finance's conventions, read from the file: one formula a column, inputs that look like inputs and accept only what
they say, nothing said by colour alone or too pale to read, every picture described."""

from __future__ import annotations

import functools
import itertools
import re
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import books
import pytest
from openpyxl.cell import MergedCell
from openpyxl.utils import column_index_from_string, range_boundaries
from test_looks import TABS_PRINTED
from workbook_cells import cells

from sheetgen.question.sheet_question import Question

_REFERENCE = re.compile(r"(?<![\w.])(\$?)([A-Z]{1,3})(\$?)(\d+)(?![\w(.])")
# Tables that run down: a row of heads, then one formula a column. (Matrices run along; see below.)
TABLES = ("Workings", "Contexts", "Prices and hardware", "Models", "GPUs", "Decision loads", "Decision contexts")
MATRICES = ("Profiles", "Candidates")
ON_FIRST_SHEET = r"'Sizing sheet'!C[A-Z]+R\d+"  # which load a model shows there, a column a model
HEAD_ROW, MATRIX_LEFT = 4, 23  # a table's head; a matrix's first column
KINDS = ("Input", "Workings", "Output", "Control")
READABLE = 4.5  # contrast of text: WCAG 2.1, 1.4.3 (AA)


@pytest.fixture(scope="module")
def book(small_book: tuple[Path, Question]) -> Any:
    return books.opened(small_book[0])


def relative(formula: str, row: int, column: int) -> str:
    """A formula as it reads in every cell that it was copied to."""

    def without_number(match: re.Match[str]) -> str:
        fixed_column, letters, fixed_row, digits = match.groups()
        c = letters if fixed_column else f"[{column_index_from_string(letters) - column}]"
        r = digits if fixed_row else f"[{int(digits) - row}]"
        return f"C{c}R{r}"

    return _REFERENCE.sub(without_number, formula)


@functools.lru_cache(1)
def formulas(path: Path) -> dict[str, dict[tuple[int, int], str]]:
    notes: dict[str, dict[tuple[int, int], str]] = defaultdict(dict)
    for cell in cells(path):
        if cell.formula:
            left, top, *_ = range_boundaries(cell.cell)
            notes[cell.sheet][top, left] = relative(cell.formula, top, left)
    return notes


_ROW_OF_CANDIDATES = re.compile(r"Candidates!C[A-Z]+R(\[-?\d+\]):C[A-Z]+R\1")
_ONE_OF_ROWS = re.compile(r"CHOOSE\(CBR\[-?\d+\](?:,Candidates!row)+\)")  # by the workload's place


def test_a_column_of_a_table_has_one_formula(small_book: tuple[Path, Question]) -> None:
    by_sheet = formulas(small_book[0])
    several: list[str] = []
    n = 0
    for sheet in TABLES:
        cells = by_sheet[sheet]
        rows = sorted({row for row, _ in cells if row > HEAD_ROW})
        # Below a gap another table begins: on Workings the steps of the allowance for chance below the loads and each
        # provider's best below those, below the prices the discount on Inputs, above those that may be typed, and which
        # are in force.
        table_of = dict(
            zip(rows, itertools.accumulate(b - a > 1 for a, b in itertools.pairwise([0, *rows])), strict=True)
        )
        assert len(set(table_of.values())) == {"Workings": 4, "Prices and hardware": 3, "Decision loads": 2}.get(
            sheet, 1
        ), sheet
        columns: dict[tuple[int, int], set[str]] = defaultdict(set)
        for (row, column), text in cells.items():
            if row > HEAD_ROW and not re.fullmatch(ON_FIRST_SHEET, text):
                # The choice reads the row of its load, of its workload or of its model by place (of the load on the
                # first sheet, that of one of its model's workloads): Gnumeric has no INDEX(matrix, row, 0).
                by_place = _ROW_OF_CANDIDATES.sub("Candidates!row", text)
                if (sheet, table_of[row]) in (("Decision loads", 2), ("Workings", 3)):
                    continue  # a purchase class in each row, at the prices of its own
                if sheet == "Decision contexts" and re.fullmatch(r"wi_own_\w+_z", text):
                    continue  # the level at which a row is answered: as asked, an even chance, 90 %
                if "in_max_wait_fraction" in by_place and table_of[row] == 2:
                    continue  # the steps of the allowance for chance: each reads the one before, at its address
                columns[table_of[row], column].add(_ONE_OF_ROWS.sub("Candidates!row", by_place))
        n += len(columns)
        several += [f"{sheet} column {c}: {sorted(texts)[:2]}" for c, texts in columns.items() if len(texts) > 1]
    assert n > 150 and not several, several[:5]


def test_a_row_of_a_matrix_has_one_formula(small_book: tuple[Path, Question]) -> None:
    by_sheet = formulas(small_book[0])
    several: list[str] = []
    n = 0
    for sheet in MATRICES:
        rows: dict[int, set[str]] = defaultdict(set)
        for (row, column), text in by_sheet[sheet].items():
            if column >= MATRIX_LEFT:
                rows[row].add(text)
        n += len(rows)
        several += [f"{sheet} row {r}: {sorted(texts)[:2]}" for r, texts in rows.items() if len(texts) > 1]
    assert n > 150 and not several, several[:5]


_AREA = re.compile(r"(?:('(?:[^']|'')+'|[A-Za-z_][\w.]*)!)?\$?([A-Z]{1,3}\$?\d+)(?::(\$?[A-Z]{1,3}\$?\d+))?(?![\w(])")
_PASSED_ON = re.compile(r"IF\(COUNT\(.*\)>=0,\$?[A-Z]+\$?\d+\)")


def test_nobody_but_the_cell_beside_it_reads_an_array_formula(small_book: tuple[Path, Question], book: Any) -> None:
    """LibreOffice does not pass on what an array formula gives: a plain cell does (Sheet.pass_on)."""
    arrays: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f" and not isinstance(cell.value, str):
                    arrays[sheet.title].add((cell.row, cell.column))

    @functools.cache
    def holds(sheet: str, area: str) -> bool:
        left, top, right, bottom = range_boundaries(area)
        return any(top <= r <= bottom and left <= c <= right for r, c in arrays[sheet])

    with_arrays = re.compile("|".join(map(re.escape, arrays)))

    def reads(text: str, here: str) -> bool:
        if here not in arrays and not with_arrays.search(text):
            return False
        for match in _AREA.finditer(re.sub(r'"[^"]*"', "", text)):
            sheet = (match[1] or here).strip("'").replace("''", "'")
            if sheet in arrays and holds(sheet, f"{match[2]}:{match[3] or match[2]}".replace("$", "")):
                return True
        return False

    names = {
        name
        for name, defined_name in book.defined_names.items()
        if not name.startswith("_") and reads(defined_name.attr_text, "")
    }
    wrong, passed_on = [], 0
    for cell in cells(small_book[0]):
        if not cell.formula or not (
            reads(cell.formula, cell.sheet) or names & set(re.findall(r"[A-Za-z_][\w.]*", cell.formula))
        ):
            continue
        if _PASSED_ON.fullmatch(cell.formula):
            passed_on += 1
        else:
            wrong.append((cell.sheet, cell.cell, cell.formula[:80]))
    assert not wrong[:5], len(wrong)
    assert passed_on == sum(map(len, arrays.values())) > 50


def colour(color: Any, otherwise: str) -> str:
    return str(color.rgb)[-6:] if color is not None and color.type == "rgb" else otherwise


def contrast(a: str, b: str) -> float:
    def light(code: str) -> float:
        parts = [int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        r, g, bl = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * bl

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def looks(book: Any) -> Counter[tuple[str, str, bool]]:
    """Ink, ground and whether it can be typed into, of every cell, and how often."""
    drawn: Counter[tuple[str, str, bool]] = Counter()
    for sheet in book.worksheets:
        for cell in itertools.chain.from_iterable(sheet.iter_rows()):
            if cell.has_style and not isinstance(cell, MergedCell):
                ground = colour(cell.fill.fgColor, "FFFFFF") if cell.fill.fill_type == "solid" else "FFFFFF"
                drawn[colour(cell.font.color, "000000"), ground, not cell.protection.locked] += 1
    return drawn


def test_every_text_can_be_read(book: Any) -> None:
    pale = {(ink, ground): n for (ink, ground, _), n in looks(book).items() if contrast(ink, ground) < READABLE}
    assert contrast("6B7280", "FFFFFF") > READABLE > contrast("9CA3AF", "FFFFFF")
    assert not pale


def test_what_can_be_typed_into_is_blue_on_yellow_and_nothing_else_is(book: Any) -> None:
    drawn = looks(book)
    inputs = {(ink, ground) for ink, ground, open_ in drawn if open_}
    others = {(ink, ground) for ink, ground, open_ in drawn if not open_}
    assert len(inputs) == 1 and not inputs & others
    ((ink, ground),) = inputs
    r, g, b = (int(ink[i : i + 2], 16) for i in (0, 2, 4))
    assert b > 2 * g > 2 * r, f"{ink} is not blue"
    r, g, b = (int(ground[i : i + 2], 16) for i in (0, 2, 4))
    assert r >= g > b, f"{ground} is not yellow"


FREE_TEXTS = {"Change log"}  # what people write there is theirs


def test_every_input_says_what_it_takes_and_refuses_the_rest(book: Any) -> None:
    silent: list[str] = []
    n = 0
    for sheet in book.worksheets:
        told = set()
        for check in sheet.data_validations.dataValidation:
            assert check.type is None or (check.showErrorMessage and (check.error or check.errorTitle)), sheet.title
            if check.promptTitle and check.prompt and check.showInputMessage:
                for area in check.sqref.ranges:
                    told |= set(
                        itertools.product(range(area.min_row, area.max_row + 1), range(area.min_col, area.max_col + 1))
                    )
        for cell in itertools.chain.from_iterable(sheet.iter_rows()):
            if cell.has_style and not cell.protection.locked and not isinstance(cell, MergedCell):
                n += 1
                if (cell.row, cell.column) not in told and sheet.title not in FREE_TEXTS:
                    silent.append(f"{sheet.title}!{cell.coordinate}")
    assert n > 500 and not silent, (len(silent), silent[:10])


def test_every_sheet_but_one_with_a_fold_is_protected_without_a_password_and_can_be_printed(book: Any) -> None:
    for sheet in book.worksheets:
        # No spreadsheet opens a fold of a protected sheet.
        folded = any(row.outlineLevel for row in sheet.row_dimensions.values())
        assert sheet.protection.sheet is not folded and not sheet.protection.password, sheet.title
        assert sheet.print_area and (sheet.oddFooter.center.text or sheet.oddFooter.right.text), sheet.title
        assert sheet.sheet_properties.tabColor is not None, sheet.title
        assert str(sheet["A1"].value or "").strip(), f"{sheet.title} has no title"
        assert str(sheet["A2"].value or "").split(".")[0] in KINDS, (
            f"{sheet.title} does not say what kind of sheet it is: {sheet['A2'].value!r}"
        )
    decision = book["Decision"]
    assert (decision.page_setup.fitToWidth or 1, decision.page_setup.fitToHeight or 1) == (1, 1)
    assert decision.sheet_properties.pageSetUpPr.fitToPage


def test_the_file_says_what_it_is(book: Any) -> None:
    told = book.properties
    assert told.title and told.subject and told.creator and told.keywords


def test_every_picture_is_described_and_every_chart_has_its_data(small_book: tuple[Path, Question]) -> None:
    with zipfile.ZipFile(small_book[0]) as package:
        drawings = [package.read(n).decode() for n in package.namelist() if re.match(r"xl/drawings/drawing\d", n)]
        charts = [package.read(n).decode() for n in package.namelist() if n.startswith("xl/charts/chart")]
    frames = [frame for text in drawings for frame in re.findall(r"<xdr:cNvPr [^>]*>", text)]
    assert len(frames) >= len(charts) >= 3
    for frame in frames:
        assert len(re.search(r'descr="([^"]*)"', frame)[1]) > 20, frame  # type: ignore[index]
    for chart in charts:
        caches = re.findall(r"<c:(?:num|str)Cache>.*?</c:(?:num|str)Cache>", chart, re.S)
        asked = re.findall(r"<c:f>", chart)
        assert len(caches) == len(asked) > 0 and all("<c:v>" in cache for cache in caches)


def test_no_text_is_long_and_none_reads_a_row_by_its_number(small_book: tuple[Path, Question]) -> None:
    """Gnumeric reads INDEX(area,0,column) as one cell; a text of more than 5,000 characters nobody reads."""
    texts = [cell.formula for cell in cells(small_book[0]) if cell.is_formula]
    assert 3_000 < max(map(len, texts)) <= 5_000
    assert not [text for text in texts if re.search(r"INDEX\([^()]*,0,|INDEX\([^()]*,[^(),]*,0\)", text)]


def test_a_head_of_workings_explains_its_column(small_book: tuple[Path, Question], book: Any) -> None:
    sheet, by_place = book["Workings"], formulas(small_book[0])["Workings"]
    computed = {column for (row, column) in by_place if row == HEAD_ROW + 1}
    noted = {c.column for c in sheet[HEAD_ROW] if c.comment is not None}
    assert len(noted & computed) > 60  # look-ups say by their head what they are; what is worked out says how
    for cell in sheet[HEAD_ROW]:
        if cell.comment is not None:
            assert len(cell.comment.text) > 20, cell.value


def test_sources_are_links(book: Any) -> None:
    n = sum(1 for sheet in book.worksheets for c in itertools.chain.from_iterable(sheet.iter_rows()) if c.hyperlink)
    assert n > 20


def test_six_tabs_are_shown_and_the_last_lists_the_others(book: Any) -> None:
    shown = [sheet.title for sheet in book if sheet.sheet_state == "visible"]
    assert shown == [*TABS_PRINTED, "Prices and hardware", "Sources and checks"]
    hidden = [sheet.title for sheet in book if sheet.sheet_state == "hidden"]
    assert sorted([*shown, *hidden]) == sorted(book.sheetnames)
    notes = book["Sources and checks"]
    links = ((cell, row[0].value) for row in notes.iter_rows() for cell in row if cell.hyperlink)
    listed = {cell.value: words for cell, words in links}
    for name in hidden:
        assert len(listed[name]) > len(f"{name}: ") and listed[name].startswith(f"{name}: ")
