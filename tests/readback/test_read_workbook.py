"""A workbook read back says what stands in it, wherever its rows have gone."""

from __future__ import annotations

import datetime
import hashlib
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import books
import openpyxl
import pytest
from option_values import OptionValue
from packages import TINY, area_of, cell_of, name_of, part_of, replaced, rewritten, with_cell
from recalculation import edit
from workbook_cells import PRICES_SHEET, values

from sheetgen import __version__
from sheetgen.answer.solve import solve
from sheetgen.book.change_log import SCHEMA
from sheetgen.catalog import Catalog
from sheetgen.question.overrides import TABLES
from sheetgen.question.sheet_question import ask
from sheetgen.readback import package
from sheetgen.readback.package import WorkbookError
from sheetgen.readback.read_book import REQUIRED, Snapshot, read_workbook, required_columns, required_names


@pytest.fixture(scope="module")
def snapshot(book: Path) -> Snapshot:
    return read_workbook(book)


def test_every_name_is_read_with_the_value_that_stands_there(book: Path, snapshot: Snapshot) -> None:
    """Against the plain reader of the tests, cell by cell: inputs, columns, results."""
    values_, n = values(book), 0
    for name, cell in snapshot.cells.items():
        want = values_[name]
        got = (cell.value - datetime.date(1899, 12, 30)).days if isinstance(cell.value, datetime.date) else cell.value
        assert got == want, name
        assert values_.get((cell.place.sheet, str(cell.place).rpartition("!")[2])) == want
        n += 1
    for table in snapshot.tables.values():
        for key, row in table.items():
            for column, value in row.items():
                place = table.place(key, column)
                want = values_.get((place.sheet, str(place).rpartition("!")[2]))
                got = (value - datetime.date(1899, 12, 30)).days if isinstance(value, datetime.date) else value
                assert got == want, (table.name, key, column)
                n += 1
    assert n > 800
    assert snapshot.inputs["as_of"] == datetime.date.fromisoformat(books.AS_OF)
    solved = solve(ask(Catalog(), snapshot.options))
    (chosen,) = (
        choice
        for load, choice in zip(solved.question.loads, solved.choices, strict=True)
        if (load.model, load.workload, load.tier) == (0, 0, 1)
    )
    assert snapshot.inputs["tier_2"] == 32
    assert snapshot.results["llama_3_1_8b_chat_2_n_instances"] == chosen.n_instances > 0
    assert snapshot.notes == () and not snapshot.is_edited
    assert str(snapshot.cells["in_headline_workload"].place).startswith("'Sizing sheet'!")


def test_every_name_of_ours_in_the_file_is_read(book: Path, snapshot: Snapshot) -> None:
    names = set(openpyxl.load_workbook(book, read_only=True).defined_names)
    ours = {n for n in names if n.startswith(("in_", "rec_"))}
    assert ours == set(snapshot.cells)
    columns = {f"cat_{t.name}_{c}" for t in snapshot.tables.values() for c in t.areas}
    assert columns == {n for n in names if n.startswith("cat_")}
    assert {f"in_{n}" for n in REQUIRED} | set(required_columns()) <= names


def test_rows_stand_under_their_keys_and_blank_ones_are_left_out(snapshot: Snapshot) -> None:
    question = ask(Catalog(), snapshot.options)
    assert list(snapshot.tables["models"]) == [m.model.id for m in question.models]
    assert list(snapshot.tables["gpus"]) == [g.id for g in question.gpus]
    assert list(snapshot.tables["instances"]) == [c.instance for c in question.candidates]
    for candidate in question.candidates:
        assert snapshot.tables["instances"][candidate.instance]["price_usd_per_hour"] == candidate.usd_per_hour
    model = question.models[1].model.shape()
    row = snapshot.tables["models"][question.models[1].model.id]
    assert {c: row[c] for c in model if c in row} == {c: v for c, v in model.items() if c in row}
    assert set(TABLES["models"]) <= set(row)
    assert snapshot.tables["precisions"]["int4"]["linear_bytes"] == 0.51953125
    assert snapshot.catalog_sha256 == question.catalog_sha256


def test_the_words_beside_a_cell_are_its_label(snapshot: Snapshot) -> None:
    assert snapshot.cells["in_gpu_memory_utilization"].label == "GPU memory utilization"
    assert (snapshot.cells["in_context_chat"].label, snapshot.cells["in_context_chat"].unit) == ("Chat", "tokens")
    assert snapshot.tables["models"].heads["full_kv_heads"] == "KV heads (full)"
    assert snapshot.tables["models"].names["llama-3.1-70b"] == "Llama 3.1 70B"
    assert snapshot.tables["gpus"].names["nvidia-h100-sxm5-80gb"] == "H100 SXM"


# Rows that moved --------------------------------------------------------------------------------------------


def moved(path: Path, out: Path, sheet: str, row: int, by: int) -> Path:
    """Rows inserted into a sheet before row `at`: its cells and all names move as a spreadsheet moves them."""

    def lower(text: str, pattern: str) -> str:
        return re.sub(pattern, lambda m: m[1] + str(int(m[2]) + (by if int(m[2]) >= row else 0)) + m[3], text)

    def rows(data: bytes) -> bytes:
        return lower(lower(data.decode(), r'(<row r=")(\d+)(")'), r'(<c r="[A-Z]+)(\d+)(")').encode()

    def names(data: bytes) -> bytes:
        def one(match: re.Match[str]) -> str:
            return match[1] + lower(match[2], r"(\$[A-Z]+\$)(\d+)(\b)") + match[3]

        quoted = re.escape(f"'{sheet}'" if " " in sheet else sheet)
        return re.sub(rf"(<definedName [^>]*>)({quoted}![^<]*)(</definedName>)", one, data.decode()).encode()

    return rewritten(path, out, {part_of(path, sheet): rows, "xl/workbook.xml": names})


@pytest.mark.parametrize(
    ("sheet", "row"), [("Inputs", 1), ("Inputs", 11), (PRICES_SHEET, 1), (PRICES_SHEET, 9), ("Models", 5), ("GPUs", 6)]
)
def test_rows_inserted_above_or_inside_change_nothing(
    sheet: str, row: int, book: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    got = read_workbook(moved(book, tmp_path / "moved.xlsx", sheet, row, 3))
    assert got.inputs == snapshot.inputs and got.record == snapshot.record and not got.is_edited
    assert {n: dict(t) for n, t in got.tables.items()} == {n: dict(t) for n, t in snapshot.tables.items()}
    assert {n: (dict(t.heads), dict(t.names)) for n, t in got.tables.items()} == {
        n: (dict(t.heads), dict(t.names)) for n, t in snapshot.tables.items()
    }
    if sheet == "Inputs":
        place = snapshot.cells["in_block_size"].place
        assert got.cells["in_block_size"].place.row == place.row + 3


def test_a_row_that_was_typed_into_a_spare_one_is_read(book: Path, snapshot: Snapshot, tmp_path: Path) -> None:
    row = len(snapshot.tables["instances"])
    typed = {
        "type": "box.1",
        "provider": "acme",
        "instance_gpu": "nvidia-l4-24gb",
        "gpu_count": 2,
        "price_usd_per_hour": 3.25,
        "price_date": 46000,
    }
    places = {area_of(book, f"cat_instances_{column}")[row]: value for column, value in typed.items()}
    got = read_workbook(edit(book, tmp_path / "own.xlsx", places))
    assert [k for k in got.tables["instances"] if k not in snapshot.tables["instances"]] == ["acme/box.1"]
    own = got.tables["instances"]["acme/box.1"]
    assert own["price_date"] == datetime.date(2025, 12, 9)
    assert {k: own[k] for k in typed if k != "price_date"} == {k: v for k, v in typed.items() if k != "price_date"}


def test_a_row_without_a_name_and_two_of_one_name_are_kept_apart(book: Path, tmp_path: Path) -> None:
    types = area_of(book, "cat_instances_type")
    got = read_workbook(edit(book, tmp_path / "names.xlsx", {types[1]: "g6.12xlarge", types[3]: None}))
    keys = list(got.tables["instances"])
    assert keys[:2] == ["aws/g6.12xlarge", "aws/g6.12xlarge (row 2 of this name)"]
    assert "(no name)" in keys and len(set(keys)) == len(TINY["instances"].split(","))


def test_an_instance_typed_under_the_table_is_told(book: Path, tmp_path: Path) -> None:
    sheet, last = area_of(book, "cat_instances_type")[-1]
    below = f"A{int(last[1:]) + 1}"
    xml = f'<row r="{below[1:]}"><c r="{below}" t="str"><v>box.1</v></c></row></sheetData>'
    path = rewritten(book, tmp_path / "below.xlsx", {part_of(book, sheet): replaced("</sheetData>", xml)})
    (note,) = read_workbook(path).notes
    assert note.startswith(f"'Prices and hardware'!{below} ")


# Cells that are unusual -------------------------------------------------------------------------------------


def test_a_formula_in_an_input_has_its_value_and_a_note_says_so(book: Path, tmp_path: Path) -> None:
    path = with_cell(book, tmp_path / "formula.xlsx", "in_tier_1", '<c r="{r}"><f>B11*2</f><v>64</v></c>')
    got = read_workbook(path)
    sheet, cell = cell_of(book, "in_tier_1")
    assert got.inputs["tier_1"] == 64 and got.cells["in_tier_1"].is_formula
    assert [note.partition(":")[0] for note in got.notes] == [f"in_tier_1 ({sheet}!{cell}) holds a formula"]


def test_shared_and_array_formulas_are_seen_as_formulas(book: Path, tmp_path: Path) -> None:
    for xml in ('<f t="shared" si="0" ref="B10:B11">1+1</f>', '<f t="shared" si="0"/>', '<f t="array" ref="B10">1</f>'):
        path = with_cell(book, tmp_path / "formula.xlsx", "in_tier_1", f'<c r="{{r}}">{xml}<v>2</v></c>')
        assert read_workbook(path).cells["in_tier_1"].is_formula


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("name", "xml", "want"),
    [
        ("in_as_of", '<c r="{r}" t="str"><v>2026-10-01</v></c>', datetime.date(2026, 10, 1)),
        ("in_as_of", '<c r="{r}"><v>46000</v></c>', datetime.date(2025, 12, 9)),  # its format was lost
        ("in_as_of", '<c r="{r}" t="d"><v>2026-10-01</v></c>', datetime.date(2026, 10, 1)),
        ("in_tier_1", '<c r="{r}"/>', None),
        ("in_tier_1", '<c r="{r}" t="str"><v>  </v></c>', None),
        ("in_tier_1", '<c r="{r}" t="inlineStr"><is><t/></is></c>', None),
        ("in_tier_1", '<c r="{r}"><v>1.5</v></c>', 1.5),
        ("in_currency", '<c r="{r}" t="inlineStr"><is><r><t>E</t></r><r><t>UR</t></r></is></c>', "EUR"),
        ("in_currency", '<c r="{r}" t="str"><v>_x0045_UR</v></c>', "EUR"),
        ("in_currency", '<c r="{r}"><v>7</v></c>', "7"),
        ("in_currency", '<c r="{r}" t="str"><v>=1+1</v></c>', "=1+1"),
    ],
)
def test_a_cell_as_other_programs_write_it(name: str, xml: str, want: object, book: Path, tmp_path: Path) -> None:
    got = read_workbook(with_cell(book, tmp_path / "cell.xlsx", name, xml))
    assert got.inputs[name.removeprefix("in_")] == want


def test_days_that_are_counted_from_1904(book: Path, tmp_path: Path) -> None:
    late = replaced("<workbookPr ", '<workbookPr date1904="1" ')
    got = read_workbook(rewritten(book, tmp_path / "mac.xlsx", {"xl/workbook.xml": late}))
    assert got.inputs["as_of"] == datetime.date.fromisoformat(books.AS_OF) + datetime.timedelta(1462)


@pytest.mark.long
def test_a_file_whose_formulas_nobody_calculated_still_has_its_inputs(book: Path, tmp_path: Path) -> None:
    """As openpyxl saves it: no value beside any formula."""
    path = tmp_path / "openpyxl.xlsx"
    openpyxl.load_workbook(book).save(path)
    got, want = read_workbook(path), read_workbook(book)
    assert got.inputs == want.inputs and got.record == want.record and not got.is_edited
    assert list(got.tables["instances"]) == list(want.tables["instances"])


def test_a_name_in_capitals_and_properties_that_were_dropped(book: Path, tmp_path: Path) -> None:
    """Spreadsheets do not tell capitals apart in names, and some tools drop a file's properties."""
    changes: Mapping[str, OptionValue] = {
        "xl/workbook.xml": replaced('name="in_tier_1"', 'name="IN_TIER_1"'),
        "docProps/custom.xml": lambda _: None,
    }
    assert read_workbook(rewritten(book, tmp_path / "caps.xlsx", changes)).inputs == read_workbook(book).inputs


def test_names_keep_their_cells_when_a_sheet_is_called_otherwise(book: Path, tmp_path: Path) -> None:
    where = name_of(book, "in_tier_1")
    assert where.startswith("Inputs!")
    rename = lambda data: data.replace(b'name="Inputs"', b'name="It&apos;s ours"').replace(  # noqa: E731
        b">Inputs!", b">'It''s ours'!"
    )
    got = read_workbook(rewritten(book, tmp_path / "named.xlsx", {"xl/workbook.xml": rename}))
    assert got.inputs == read_workbook(book).inputs and got.cells["in_tier_1"].place.sheet == "It's ours"


def test_a_sheet_may_be_larger_than_what_is_read_at_once(
    book: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LibreOffice writes out every formula that its neighbours share: a part has no size that is too large."""
    with zipfile.ZipFile(book) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    others = max(size for name, size in sizes.items() if not name.startswith("xl/worksheets/sheet"))
    assert max(sizes.values()) > others
    monkeypatch.setattr(package, "MOST_PART_BYTES", others)
    monkeypatch.setattr(package, "_CHUNK", 997)  # where pieces end is nothing to a cell
    assert read_workbook(book) == snapshot


def test_a_workbook_of_an_older_layout_says_how_to_build_it_anew(book: Path, tmp_path: Path) -> None:
    """Of the scenario beside it; else of the options, which layouts up to 3 have in a cell of their own."""

    def said(path: Path) -> str:
        with pytest.raises(WorkbookError) as caught:
            read_workbook(path)
        (line,) = caught.value.problems
        return line.removeprefix(f"{path}: ")

    older = replaced(f">{SCHEMA}<", ">3<")
    path = rewritten(book, tmp_path / "old.xlsx", {"docProps/custom.xml": older})
    layout = (
        f"has the layout 3 of an older sheetgen ({__version__}); this one reads {SCHEMA}. Build it anew: sheetgen build"
    )
    assert said(path) == f"{layout}."
    options = '{"models": "8b,70b", "typed": {"inputs": {}}, "tpot_ms": "chat=40; ls", "quiet": true}'
    named = replaced('"meta_version"', '"meta_options"')
    cell = f'<c r="{{r}}" t="str"><v>{options.replace(chr(34), "&quot;")}</v></c>'
    with_options = with_cell(
        rewritten(path, tmp_path / "named.xlsx", {"xl/workbook.xml": named}), tmp_path / "o.xlsx", "meta_options", cell
    )
    assert said(with_options) == f"{layout} --models 8b,70b --tpot-ms 'chat=40; ls', and type anew what was typed over."
    scenario = tmp_path / "o.scenario.yaml"
    scenario.write_text("models: 8b")
    assert said(with_options) == f"{layout} --scenario {scenario}."


def test_the_layout_has_a_new_number_with_each_new_name() -> None:
    names = hashlib.sha256("\n".join(sorted(required_names(["chat"], 2))).encode()).hexdigest()[:12]
    assert (SCHEMA, names) == (17, "e3b0706751f0"), "raise SCHEMA, and write its names' hash here"


def test_a_changed_cell_is_an_edit_wherever_it_stands(book: Path, tmp_path: Path) -> None:
    """An input, a fact, a price, a note in the change log; and a spare row."""
    gpus, prices = area_of(book, "cat_gpus_gpu_memory_bytes"), area_of(book, "cat_instances_price_spot")
    for place, value in (
        (cell_of(book, "in_tier_2"), 33),
        (cell_of(book, "in_log_1_what"), "asked by finance"),
        (gpus[0], 7e10),
        (prices[-1], 1.5),
    ):
        assert read_workbook(edit(book, tmp_path / "edited.xlsx", {place: value})).is_edited, place
    same = {cell_of(book, "in_tier_2"): 32, cell_of(book, "in_gpu_memory_utilization"): 0.92 * (1 + 1e-14)}
    assert not read_workbook(edit(book, tmp_path / "same.xlsx", same)).is_edited
