"""Hostile strings become text or a clear error: never a formula, a link, a fetch or a broken name."""

from __future__ import annotations

import dataclasses
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import books
import pytest
from amounts import amount
from recalculation import compare, recalculate_with_formualizer
from workbook_cells import PRICES_SHEET, cells, formulas

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog, default_folder
from sheetgen.errors import PageError, SheetgenError
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ask

HOSTILE = (
    "=cmd()", "=1+1", "+1", "-1", "@x", "{=1}", "=cmd|' /C calc'!A0", "<script>alert(1)</script>",
    "file:///etc/passwd", "javascript:alert(1)", "\\\\server\\share", "a\tb", "a\nb", "a\x0bb", "a\x00b", "_x0041_",
    "#N/A", "internal:Inputs!A1", "mailto:a@b.c", "'quoted", '"; =cmd(); "', "]]>&amp;<f>1</f>", "&L&8 &[Path]",
    "A" * 10_000, "\u202egpj.exe",
)  # fmt: skip
CONTROL = tuple(t for t in HOSTILE if "\x00" in t or "\x0b" in t)
PRINTED = tuple(t for t in HOSTILE if t not in (*CONTROL, "_x0041_"))  # formualizer refuses the last one
MARKS = (
    "cmd",
    "script&",
    "script>",
    "passwd",
    "alert",
    "AAAA",
    "/C calc",
    "server",
    "Path]",
    "x0041",
    "mailto",
    "script:",
)
ONE = {"models": "8b", "workloads": "chat", "tiers": "1", "headline": "chat:1", "gpus": "h100", "as_of": books.AS_OF}
ASKED = {**ONE, "providers": "acme,aws"}
ROW = """  - type: {type}
    gpu: h100
    gpu_count: 1
    unit: instance
    region: {region}
    prices:
      - {{purchase: on-demand, usd_per_hour: 0.01, as_of: '2026-11'}}
    source: {source}
    confidence: high
    checked_on: 2026-11-20
    notes: [{notes}]
"""
MODEL = "models/llama-3.1-8b.yaml"
OF_THE_MODEL = {  # by field what stands there and what is written instead
    "name": ("name: Llama 3.1 8B", "name: {}"),
    "model source": (r"(?m)^source: .*$", "source: {}"),
    "model notes": (r"notes: \[\]", "notes: [{}]"),
}
FIELDS = ("type", "region", "source", "notes", *OF_THE_MODEL)


def quoted(text: str) -> str:
    """`text` as a YAML string."""
    escapes = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\x00": "\\0", "\x0b": "\\v"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def assert_harmless(path: Path) -> None:
    """Nothing in the package calculates, links to, or fetches what a catalog's string says."""
    with zipfile.ZipFile(path) as package:
        names = package.namelist()
        for part in ("externalLinks", "vbaProject", "connections", "queryTables", "embeddings", "activeX", "customXml"):
            assert not [n for n in names if part in n]
        for name in names:
            if not name.endswith((".xml", ".rels", ".vml")):
                continue
            root = ElementTree.fromstring(package.read(name))  # well formed
            if name.endswith(".rels"):
                outside = [r.get("Target", "") for r in root if r.get("TargetMode") == "External"]
                assert all(t.startswith(("https://", "http://")) for t in outside), f"{name} links to {outside}"
            if name.startswith("docProps/") or name == "xl/workbook.xml":
                text = ElementTree.tostring(root, encoding="unicode")
                assert not [m for m in MARKS if m in text], f"{name} carries a catalog's string"
        sheets = [n for n in names if n.startswith("xl/worksheets/sheet")]
        for name in sheets:
            xml = package.read(name).decode()
            written = re.findall(r"<(?:f|formula[12]?|oddFooter|oddHeader)\b[^>]*>([^<]*)<", xml)
            assert not [t for t in written if any(m in t for m in MARKS)], f"{name} calculates a catalog's string"
    for formula in formulas(path):
        assert not re.search(r"DDE|HYPERLINK|WEBSERVICE|INDIRECT|\[\d+\]", re.sub(r'"[^"]*"', "", formula.formula))


def catalog_with(folder: Path, rows: Sequence[dict[str, str]]) -> Catalog:
    """The shipped catalog with these texts in its fields: of one instance and one model for each row of texts."""
    files, instances = {}, []
    original = (default_folder() / MODEL).read_text()
    for i, texts in enumerate(rows):
        row = {"type": f"one-{i}", "region": "here", "source": "a list", "notes": "none"}
        instances.append(ROW.format(**row | {f: quoted(t) for f, t in texts.items() if f in row}))
        model = original
        for field, (pattern, line) in OF_THE_MODEL.items():
            if field in texts:
                before, after = re.split(pattern, model, maxsplit=1)
                model = before + line.format(quoted(texts[field])) + after
        if model != original:
            files[MODEL if i == 0 else f"models/copy-{i}.yaml"] = _copy(model, i) if i else model
    files["instances/acme.yaml"] = "provider: acme\ninstances:\n" + "".join(instances)
    return books.overlay(folder, files)


def _copy(model: str, i: int) -> str:
    """The model under another id, without the names that lead to the first."""
    own = re.sub(r"(?ms)^(hf_id|aliases|same_architecture):.*?(?=^\w)", "", model)
    return re.sub(r"(?m)^id: .*$", f"id: copy-{i}", own)


def test_a_hostile_catalog_is_an_error_or_text(tmp_path: Path) -> None:
    """Each text in each field (in the gate every second); what no field refuses is written, eight texts at a time into
    one workbook."""
    refused: Counter[str] = Counter()
    taken: list[dict[str, str]] = []
    for i, text in enumerate(HOSTILE[:: amount(2, 1)]):
        fields: dict[str, str] = {}
        for field in FIELDS:
            try:
                ask(catalog_with(tmp_path / f"{i}-{field}", [{field: text}]), ASKED)
                fields[field] = text
            except SheetgenError as error:
                refused[field] += 1
                for line in error.problems:
                    assert "\n" not in line and len(line) < 600 and line.isprintable(), repr(line)
                    assert re.match(r".*\.yaml(:\d+)*: ", line), f"no place in {line!r}"
        if fields:
            taken.append(fields)
    assert len(taken) > amount(5, 10)
    for start in range(0, len(taken), 8):
        rows = taken[start : start + 8]
        models = ["8b", *(f"copy-{i}" for i, row in enumerate(rows) if i and row.keys() & OF_THE_MODEL.keys())]
        question = ask(catalog_with(tmp_path / f"book-{start}", rows), {**ASKED, "models": ",".join(models)})
        path = tmp_path / f"{start}.xlsx"
        path.write_bytes(books.book_bytes(solve(question)))
        assert_harmless(path)
        written = {c.value for c in cells(path)}
        for row in rows:
            assert row.get("type") is None or any(row["type"].strip() in str(v) for v in written), row
    print(f"of {len(HOSTILE)} texts refused: {refused}")
    assert set(refused) == set(FIELDS) and min(refused.values()) >= amount(4, 8)


@pytest.fixture(scope="module")
def hostile_book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A workbook whose every string from outside is hostile, past the catalog's own refusals."""
    question = ask(
        books.catalog(), {**books.SMALL, "models": "8b", "workloads": "chat", "tiers": "32", "headline": "chat:32"}
    )
    hostile_texts: set[str] = set()
    texts = iter(PRINTED * 40)

    def evil() -> str:
        text = next(texts)
        hostile_texts.add(text)
        return text

    def gpu(entry: Any) -> Any:
        memory = entry.memory.model_copy(update={"source": evil()})
        return entry.model_copy(update={"short_name": evil(), "memory": memory})

    gpus = {g.id: gpu(g) for g in question.gpus}
    candidates = tuple(
        dataclasses.replace(c, instance=f"aws/{evil()}", region=evil(), source=evil(), gpu=gpus[c.gpu.id])
        for c in question.candidates
    )
    old = question.models[0]
    question = dataclasses.replace(
        question,
        models=(dataclasses.replace(old, model=old.model.model_copy(update={"name": evil(), "source": evil()})),),
        workloads=tuple(w.model_copy(update={"name": evil(), "about": evil()}) for w in question.workloads),
        gpus=tuple(gpus.values()),
        candidates=candidates,
        rows=candidates,
    )
    path = tmp_path_factory.mktemp("hostile") / "hostile.xlsx"
    path.write_bytes(books.book_bytes(solve(question)))
    return path, hostile_texts


def test_the_writer_makes_text_of_anything(hostile_book: tuple[Path, set[str]], tmp_path: Path) -> None:
    path, hostile_texts = hostile_book
    assert hostile_texts == set(PRINTED)
    assert_harmless(path)
    book = books.opened(path)
    texts = {c.value for sheet in book for row in sheet.iter_rows() for c in row if c.data_type == "s"}
    assert hostile_texts <= texts, hostile_texts - texts
    result = compare(path, recalculate_with_formualizer(path, tmp_path / "out.xlsx"))
    assert result.n_compared == result.n_formulas and not result.mismatches, str(result)


@pytest.mark.some(2)
@pytest.mark.parametrize("text", (*CONTROL, "a\x1fb", "a\x7fb"))
def test_a_control_character_is_a_clear_error(text: str) -> None:
    question = ask(books.catalog(), ONE)
    model = question.models[0].model.model_copy(update={"name": text})
    models = (dataclasses.replace(question.models[0], model=model),)
    with pytest.raises(PageError, match=r"\w+!\w+: the text .* holds a control character"):
        books.book_bytes(solve(dataclasses.replace(question, models=models)))


@pytest.fixture(scope="module")
def one_model_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all workloads and tiers, as small as their names allow."""
    options = {"models": "8b", "instances": "aws/p5.4xlarge", "as_of": books.AS_OF}
    return books.build(tmp_path_factory.mktemp("one-model"), "one-model", options)[0]


def test_links_go_to_the_web_or_to_the_workbooks_own_sheets(one_model_book: Path) -> None:
    book = books.opened(one_model_book)
    links = [c.hyperlink for sheet in book for row in sheet.iter_rows() for c in row if c.hyperlink]
    away, own = [x.target for x in links if x.target], [x.location for x in links if not x.target]
    assert away and all(target.startswith("https://") for target in away)
    assert own and all(book[place.rpartition("!")[0].strip("'")] for place in own)


# The names and sheets that other programs rely on ------------------------------------------------------------

SHEETS = (
    "Sizing sheet",
    "Inputs",
    PRICES_SHEET,
    "Sources and checks",
    "Models",
    "GPUs",
    "Workings",
    "OOM guide",
)
INPUTS = (
    "in_context_chat", "in_context_rag", "in_context_long_doc", "in_tier_1", "in_tier_2", "in_tier_3", "in_tier_4",
    "in_weight_dtype", "in_kv_cache_dtype", "in_gpu_memory_utilization", "in_hours_per_month", "in_peak_hour_share",
    "in_as_of", "in_headline_workload", "in_headline_tier", "in_block_size", "in_average_context_fraction",
)  # fmt: skip


OF_DECISION = ("rec_decision_", "rec_case_")


@pytest.mark.parametrize(
    ("which", "models"),
    [
        ("one_model_book", "8b"),
        pytest.param("default_book", books.DEFAULT, marks=pytest.mark.long),
        pytest.param("families_book", books.FAMILIES, marks=pytest.mark.long),
    ],
)
def test_the_contract_of_sheets_and_names(which: str, models: str, request: pytest.FixtureRequest) -> None:
    book = books.opened(request.getfixturevalue(which))
    kept = [name for name in book.sheetnames if name in SHEETS]
    assert tuple(kept) == SHEETS and book.sheetnames[0] == "Sizing sheet"
    names = set(book.defined_names)
    assert set(INPUTS) <= names
    question = ask(books.catalog(), {"models": models, "as_of": books.AS_OF})
    above = {f"rec_{name_part(model.model.id)}_headline" for model in question.models}  # the load typed there
    results = {f"{stem}_{end}" for stem in (*books.stems(question), *above) for end in books.RESULTS}
    assert {n for n in names if n.startswith("rec_") and not n.startswith(OF_DECISION)} == results
    for name in names:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,254}", name), name
        assert not re.fullmatch(r"[A-Za-z]{1,3}[0-9]{1,7}|[RrCc]|[Rr][0-9]*[Cc][0-9]*", name), f"{name} is a cell"
    assert len({n.lower() for n in names}) == len(names)
    for name in (*INPUTS, *results):
        (sheet, cell), *more = book.defined_names[name].destinations
        assert not more and book[sheet][cell.replace("$", "")].value is not None, name
    for name in INPUTS:
        (sheet, cell), *_ = book.defined_names[name].destinations
        assert book[sheet][cell.replace("$", "")].protection.locked is False, f"{name} cannot be typed into"


def test_the_file_says_what_it_was_made_of(one_model_book: Path) -> None:
    book = books.opened(one_model_book)
    properties = {p.name: p.value for p in book.custom_doc_props.props}
    assert (
        properties["sheetgen.catalog_sha256"] == Catalog().catalog_sha256()
    )  # the shared one knows models that tests imported
    assert properties["sheetgen.schema"] and properties["sheetgen.version"]
    assert all(bool(sheet.protection.sheet) is (sheet.title != "Inputs") for sheet in book)  # which has a fold
    assert not any(sheet.protection.password for sheet in book)
