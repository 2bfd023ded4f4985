"""The files of a sheet or plan: where they go, in which formats, drawn and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from sheetgen.cli.output import say, step, write_files
from sheetgen.errors import MissingLibraryError, ScenarioError, did_you_mean, shown
from sheetgen.writers.formats import FORMATS, Archive, Options, write_each

if TYPE_CHECKING:
    from sheetgen.api import Answer
    from sheetgen.brand import Brand
    from sheetgen.catalog import Catalog
    from sheetgen.launch.recommended import Launch

PULL_SCHEMA = 1  # of the JSON of `pull`


def write_drawn(targets: Mapping[Path, bytes], missing: Sequence[str], spared: Path | None = None) -> None:
    """Write what could be drawn, and say what could not. Raises MissingLibraryError where nothing could be drawn,
    ScenarioError where a file would replace the edited workbook (`spared`)."""
    if not targets:
        raise MissingLibraryError(*missing)
    for target in targets:
        if spared is not None and target.resolve() == spared.resolve():
            raise ScenarioError(f"{shown(target, 200)}: is the edited workbook. Choose another --out or --name.")
    write_files(targets)
    for line in missing:
        say(line, err=True)


def place_of(folder: str | None, name: str | None) -> Path:
    """The path of the files without their extensions. Refuses a name that would be no file, a hidden one, one that
    commands take for an option, or one that cannot be typed."""
    name = "sizing-sheet" if name is None else name
    for is_wrong, rule in (
        (not name.isprintable(), "not hold control characters"),
        (not name.strip() or name != name.strip(), "not be blank, nor begin or end with a space"),
        (name in (".", "..") or set(name) & set("/\\"), "be a file's name without a folder"),
        (name.startswith((".", "-")), "not begin with a dot or a dash"),
    ):
        if is_wrong:
            raise ScenarioError(f"name is {shown(name)!r}. It must {rule}.")
    return Path("output" if folder is None else folder) / name


def formats_named(text: str | None, allowed: Collection[str] = tuple(FORMATS)) -> tuple[str, ...]:
    """The formats asked for, in order; empty where the default holds."""
    from sheetgen.question.parse import words

    formats = words(None if text is None else text.lower())
    wrong = [w for w in formats if w not in allowed]
    if wrong or (text is not None and not formats):
        name = wrong[0] if wrong else text or ""
        raise ScenarioError(f"format is {shown(name)!r}. Allowed: {', '.join(allowed)}.{did_you_mean(name, allowed)}")
    return tuple(dict.fromkeys(formats))


def archive_of(attach: object, formats: Sequence[str], name: str) -> Archive:
    """The attachment of the PDF. Raises ScenarioError where there can be none."""
    word = "false" if attach is None else str(attach).strip().lower()
    if word not in ("true", "false"):
        raise ScenarioError(f"attach is {shown(attach)!r}. Write true or false.")
    attached = word == "true"
    if attached and "pdf" not in formats:
        raise ScenarioError(f"attach is for the PDF, and format is {','.join(formats)}. Add pdf to it.")
    return Archive(f"{name}.xlsx" if attached else "")


def draw(
    answer: Answer,
    formats: Sequence[str],
    catalog: Catalog,
    brand: Brand | None = None,
    archive: Archive = Archive(),  # noqa: B008  # it is frozen
    launched: Mapping[int, Launch] = MappingProxyType({}),
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The bytes of each format, and a line for each optional format that had to be left out."""
    step(f"drawing {', '.join(formats)}")
    from sheetgen.launch.recommended import with_launch_rows
    from sheetgen.live.live_facts import facts_of_sheet
    from sheetgen.report.build_page import build_page
    from sheetgen.writers.apart import pdf_apart

    question, record = answer.question, answer.record
    archive = replace(archive, catalog_sha256=question.catalog_sha256)
    with pdf_apart(formats, archive) as process:
        page = with_launch_rows(build_page(record, question), record, question, launched, catalog)
        if process:
            process.send(page, brand, archive)
        drawn: dict[str, Callable[[], object]] = {
            "page": lambda: page,
            "record": lambda: record,
            "book": lambda: answer.book(page),
            "facts": lambda: facts_of_sheet(question),
        }

        @cache
        def file(ending: str) -> bytes:
            if process and ending == "pdf" and (data := process.fetch()) is not None:
                return data
            return FORMATS[ending].write(drawn[FORMATS[ending].draws](), options)

        options = Options(brand=brand, archive=archive, file=file)
        return write_each(formats, FORMATS, file)


def brand_of(path: str | None) -> Brand | None:
    """The company's template in a file, if one is named."""
    if path is None:
        return None
    from sheetgen.brand import read_brand

    return read_brand(path)
