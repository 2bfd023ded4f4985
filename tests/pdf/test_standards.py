"""Every PDF is a PDF/UA-1 and a PDF/A-3a: judged by veraPDF, which finds each fault put in."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pydyf
import pypdf
import pytest
from amounts import IN_LONG, amount
from click.testing import CliRunner
from sheets import DEFAULT, EIGHT, FIVE, TEMPLATES, TWO, page_of, pdf_of
from verapdf import FEWEST_CHECKS, PROFILES, Report, validate

from sheetgen.cli import main
from sheetgen.writers import pdf as pdf_writer
from sheetgen.writers.formats import Archive
from sheetgen.writers.pdf import Layout, lay_out

WORKBOOK = b"PK, as a workbook begins"
Damage = Callable[[Any], None]


def _elements(pdf: pydyf.PDF, *kinds: str) -> list[Any]:
    return [element for element in pdf.objects if isinstance(element, dict) and element.get("S") in kinds]


def _no_alternative(pdf: pydyf.PDF) -> None:
    del _elements(pdf, "/Figure")[0]["Alt"]


def _no_scope(pdf: pydyf.PDF) -> None:
    for element in _elements(pdf, "/TH"):
        del element["A"]["Scope"]
    for element in _elements(pdf, "/TD"):
        element["A"].pop("Headers", None)


def _no_language(pdf: pydyf.PDF) -> None:
    del pdf.catalog["Lang"]


def _file_name_shown(pdf: pydyf.PDF) -> None:
    del pdf.catalog["ViewerPreferences"]


def _heading_left_out(pdf: pydyf.PDF) -> None:
    _elements(pdf, "/H2")[0]["S"] = "/H4"


def _cell_outside_a_row(pdf: pydyf.PDF) -> None:
    _elements(pdf, "/TR")[1]["S"] = "/Div"


def _not_marked(pdf: pydyf.PDF) -> None:
    pdf.catalog["MarkInfo"]["Marked"] = "false"


def _link_without_words(pdf: pydyf.PDF) -> None:
    link = next(element for element in pdf.objects if isinstance(element, dict) and element.get("Subtype") == "/Link")
    link.pop("Contents", None)
    del link["StructParent"]


def _untagged(pdf: pydyf.PDF) -> None:
    del pdf.catalog["StructTreeRoot"]


def _metadata_lost(pdf: pydyf.PDF) -> None:
    del pdf.catalog["Metadata"]


def _font_left_out(pdf: pydyf.PDF) -> None:
    font = next(
        element for element in pdf.objects if isinstance(element, dict) and element.get("Type") == "/FontDescriptor"
    )
    del font["FontFile3"]


def _glyphs_without_characters(pdf: pydyf.PDF) -> None:
    font = next(element for element in pdf.objects if isinstance(element, dict) and "ToUnicode" in element)
    del font["ToUnicode"]


def _no_profile_of_colours(pdf: pydyf.PDF) -> None:
    del pdf.catalog["OutputIntents"]


def _unrelated_file(pdf: pydyf.PDF) -> None:
    del pdf.catalog["AF"]


def _opened_by_script(pdf: pydyf.PDF) -> None:
    import pydyf

    action = {"Type": "/Action", "S": "/JavaScript", "JS": pydyf.String("app.alert(1)")}
    pdf.catalog["OpenAction"] = pydyf.Dictionary(action)


ACCESS: tuple[tuple[Damage, str], ...] = (
    (_no_alternative, "7.3-1"),
    (_no_scope, "7.5-1"),
    (_no_language, "7.2-34"),
    (_file_name_shown, "7.1-10"),
    (_heading_left_out, "7.4.2-1"),
    (_cell_outside_a_row, "7.2-37"),
    (_not_marked, "6.2-1"),
    (_link_without_words, "7.18.5-1"),
    (_untagged, "7.1-11"),
    (_metadata_lost, "7.1-8"),
    (_font_left_out, "7.21.4.1-1"),
)
ARCHIVE: tuple[tuple[Damage, str], ...] = (
    (_metadata_lost, "6.6.2.1-1"),
    (_font_left_out, "6.2.11.4.1-1"),
    (_glyphs_without_characters, "6.2.11.7.2-1"),
    (_no_profile_of_colours, "6.2.4.3-2"),
    (_unrelated_file, "6.8-4"),
    (_opened_by_script, "6.5.1-1"),
    (_not_marked, "6.7.2.2-1"),
)


EVERY = amount(12, 1)  # of the faults: each is a PDF of its own
FAULTS = (
    ("PDFUA-1", ACCESS[::EVERY], Archive()),
    ("PDFA-3A", ARCHIVE[::EVERY], Archive("sheet.xlsx", WORKBOOK)),
)
# In the gate the command's page of two models, which has every kind of element; more models are more of the same.
MORE = ((TWO, "letter", "8b"), ("8b", "a4"), (DEFAULT, "a4"), (DEFAULT, "letter"), (FIVE, "letter"), (EIGHT, "a4"))
AS_BUILT = ("as built",)
SHEETS: tuple[tuple[str, ...], ...] = (AS_BUILT, *(MORE if IN_LONG else ()))
ARCHIVES = {
    **({"alone": Archive()} if IN_LONG else {}),  # in the gate the page of two
    "with a workbook": Archive("sheet.xlsx", WORKBOOK, "ab" * 32),
}


@cache
def _carrying(name: str) -> bytes:
    return _laid().pdf(ARCHIVES[name])


@cache
def _laid() -> Layout:
    return lay_out(page_of("8b"), templates=TEMPLATES)


def _damaged(damages: tuple[tuple[Damage, str], ...], archive: Archive) -> Iterator[tuple[str, bytes]]:
    """The same page once for each damage, done to the PDF just before it is written."""
    whole = pdf_writer.finish
    layout = _laid()
    for damage, _ in damages:

        def finish(document: Any, pdf: pydyf.PDF, damage: Damage = damage) -> None:
            whole(document, pdf)
            damage(pdf)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pdf_writer, "finish", finish)
            yield damage.__name__, layout.pdf(archive)


def _built(folder: Path) -> bytes:
    """A PDF/A with its workbook inside, as the command makes it."""
    options = ("--models", TWO, "--paper", "letter", "--ask", "8b", "--as-of", "2026-11-20", "--format", "pdf")
    assert CliRunner().invoke(main, ["build", *options, "--attach", "--out", str(folder)]).exit_code == 0
    (file,) = folder.iterdir()
    assert file.name == "sizing-sheet.pdf"
    return file.read_bytes()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[object, ...], Report]:
    """Each file with its profile judged, in one run of Java."""
    judged: dict[tuple[object, ...], bytes] = {
        (profile, sheet): pdf_of(*sheet) for profile in PROFILES for sheet in SHEETS if sheet != AS_BUILT
    }
    if IN_LONG:
        judged |= {(profile, name): _carrying(name) for profile in PROFILES for name in ARCHIVES}
    for profile, damages, archive in FAULTS:
        judged |= {(profile, name): pdf for name, pdf in _damaged(damages, archive)}
    built = _built(tmp_path_factory.mktemp("built"))
    judged |= {(profile, AS_BUILT): built for profile in PROFILES}
    reports = validate([(str(profile), pdf) for (profile, *_), pdf in judged.items()])
    return dict(zip(judged, reports, strict=True))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("sheet", SHEETS, ids=str)
def test_every_page_is_accessible_and_an_archive(
    profile: str, sheet: tuple[str, ...], reports: dict[tuple[object, ...], Report]
) -> None:
    report = reports[profile, sheet]
    assert report.failed == []
    assert report.compliant and report.checks > FEWEST_CHECKS


@pytest.mark.parametrize("name", ARCHIVES)
def test_it_is_what_it_says_and_holds_what_it_carries(name: str, reports: dict[tuple[object, ...], Report]) -> None:
    attached = pypdf.PdfReader(io.BytesIO(_carrying(name))).attachments
    assert attached == ({"sheet.xlsx": [WORKBOOK]} if ARCHIVES[name].name else {})
    for profile in PROFILES if IN_LONG else ():  # in the gate the one with a real workbook is judged
        report = reports[profile, name]
        assert report.failed == [], profile
        assert report.compliant and report.checks > FEWEST_CHECKS


@pytest.mark.parametrize(("profile", "damages", "archive"), FAULTS, ids=[profile for profile, *_ in FAULTS])
def test_each_fault_is_found(
    profile: str, damages: tuple[tuple[Damage, str], ...], archive: Archive, reports: dict[tuple[object, ...], Report]
) -> None:
    failed = {damage.__name__: reports[profile, damage.__name__].failed_rules() for damage, _ in damages}
    missed = {damage.__name__: rule for damage, rule in damages if rule not in failed[damage.__name__]}
    assert missed == {}, failed
