"""A sheet in files: which formats, where they go, how they are drawn; for the commands and for `sheetgen.build`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.writers.formats import DEFAULT_FORMATS, FORMATS, Archive, Options, write_each
from sheetgen.writers.safe_files import check_places

if TYPE_CHECKING:
    from sheetgen.api import Answer
    from sheetgen.brand import Brand
    from sheetgen.catalog import Catalog
    from sheetgen.launch.recommended import Launch
    from sheetgen.question import parse
    from sheetgen.question.sheet_question import Question

FOLDER, NAME = "output", "sizing-sheet"
PULL_SCHEMA = 1  # of the JSON of `pull`
OF_OUTPUT = ("format", "out", "name", "attach")  # options of where a sheet goes, and as what
OF_FILES = (*OF_OUTPUT, "brand", "flags")  # options that are no part of the question
NO_LAUNCHES: Mapping[int, Launch] = MappingProxyType({})


def place_of(folder: str | None, name: str | None) -> Path:
    """The path of the files without their extensions. Refuses a name that would be no file, a hidden one, one that
    commands take for an option, or one that cannot be typed."""
    name = NAME if name is None else name
    for is_wrong, rule in (
        (not name.isprintable(), "not hold control characters"),
        (not name.strip() or name != name.strip(), "not be blank, nor begin or end with a space"),
        (name in (".", "..") or set(name) & set("/\\"), "be a file's name without a folder"),
        (name.startswith((".", "-")), "not begin with a dot or a dash"),
    ):
        if is_wrong:
            raise ScenarioError(f"name is {shown(name)!r}. It must {rule}.")
    return Path(FOLDER if folder is None else folder) / name


def formats_named(text: str | None, allowed: Collection[str] = tuple(FORMATS)) -> tuple[str, ...]:
    """The formats asked for, in order; empty where the default holds."""
    from sheetgen.question.parse import words

    formats = words(None if text is None else text.lower())
    wrong = [w for w in formats if w not in allowed]
    if wrong or (text is not None and not formats):
        name = wrong[0] if wrong else text or ""
        raise ScenarioError(f"format is {shown(name)!r}. Allowed: {', '.join(allowed)}.{did_you_mean(name, allowed)}")
    return tuple(dict.fromkeys(formats))


def _archive_of(attach: object, formats: Sequence[str], name: str) -> Archive:
    """The attachment of the PDF. Raises ScenarioError where there can be none."""
    word = "false" if attach is None else str(attach).strip().lower()
    if word not in ("true", "false"):
        raise ScenarioError(f"attach is {shown(attach)!r}. Write true or false.")
    attached = word == "true"
    if attached and "pdf" not in formats:
        raise ScenarioError(f"attach is for the PDF, and format is {','.join(formats)}. Add pdf to it.")
    return Archive(f"{name}.xlsx" if attached else "")


def brand_of(path: str | None) -> Brand | None:
    """The company's template in a file, if one is named."""
    if path is None:
        return None
    from sheetgen.brand import read_brand

    return read_brand(path)


class Order(NamedTuple):
    """The options of `build`: the files that are wanted, and the question that they answer."""

    formats: tuple[str, ...]
    is_named: bool  # the formats were named, and each of them is wanted
    place: Path  # the files without their extensions
    brand: Brand | None
    archive: Archive
    flags: str | None  # engines whose start commands are wanted
    asked: dict[str, parse.Raw]

    def targets(self, files: Mapping[str, bytes]) -> dict[Path, bytes]:
        """The drawn files by their paths."""
        return {self.path(ending): data for ending, data in files.items()}

    def path(self, ending: str) -> Path:
        return Path(f"{self.place}.{ending}")


def order_of(options: parse.Options) -> Order:
    """The order that options of `build` state. Raises ScenarioError for a format, a name or a brand that cannot be."""
    asked = dict(options)
    given = {name: asked.pop(name, None) for name in OF_FILES}
    named = formats_named(given["format"])
    formats, place = named or DEFAULT_FORMATS, place_of(given["out"], given["name"])
    brand = brand_of(given["brand"])
    archive = _archive_of(given["attach"], formats, place.name)
    order = Order(formats, bool(named), place, brand, archive, given["flags"], asked)
    check_places(map(order.path, formats))
    return order


def with_tiers(given: Mapping[str, parse.Raw], catalog: Catalog) -> Mapping[str, parse.Raw]:
    """The options of a sheet, with the catalog's tiers where a load of one's own states no number of requests."""
    from sheetgen.question.stated_load import RATES

    if not given.get("context_tokens") or any(given.get(name) is not None for name in ("tiers", *RATES)):
        return given
    return {**given, "tiers": ",".join(str(tier.requests) for tier in catalog.tiers())}


def question_of_sheet(order: Order, catalog: Catalog) -> Question:
    """The question that the sheet's options ask."""
    from sheetgen.launch.flags import engines_asked
    from sheetgen.question.sheet_question import ask

    if order.flags is not None:
        engines_asked(order.flags, catalog)  # an unknown engine is refused before the work
    return ask(catalog, with_tiers(order.asked, catalog))


def launched_answer(answer: Answer, flags: str | None, catalog: Catalog) -> tuple[Answer, Mapping[int, Launch]]:
    """The answer with its start commands for these engines, and the commands by row; none where no engine is named."""
    from sheetgen.launch.flags import engines_asked
    from sheetgen.launch.recommended import launches, with_launches

    if flags is None:
        return answer, NO_LAUNCHES
    launched = launches(answer.record, answer.question, engines_asked(flags, catalog), catalog)
    return answer._replace(record=with_launches(answer.record, launched)), launched


def draw(
    answer: Answer,
    formats: Sequence[str],
    catalog: Catalog,
    brand: Brand | None = None,
    archive: Archive = Archive(),  # noqa: B008  # it is frozen
    launched: Mapping[int, Launch] = NO_LAUNCHES,
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The bytes of each format, and a line for each optional format that had to be left out."""
    from sheetgen.launch.recommended import with_launch_rows
    from sheetgen.report.build_page import build_page
    from sheetgen.writers.apart import pdf_apart

    question, record = answer.question, answer.record
    archive = replace(archive, catalog_sha256=question.catalog_sha256)

    def facts() -> object:
        from sheetgen.live.live_facts import facts_of_sheet

        return facts_of_sheet(question)

    with pdf_apart(formats, archive) as process:
        page = with_launch_rows(build_page(record, question), record, question, launched, catalog)
        if process:
            process.send(page, brand, archive)
        drawn: dict[str, Callable[[], object]] = {
            "page": lambda: page,
            "record": lambda: record,
            "book": lambda: answer.book(page),
            "facts": facts,
        }

        @cache
        def file(ending: str) -> bytes:
            if process and ending == "pdf" and (data := process.fetch()) is not None:
                return data
            return FORMATS[ending].write(drawn[FORMATS[ending].draws](), options)

        options = Options(brand=brand, archive=archive, file=file)
        return write_each(formats, FORMATS, file)
