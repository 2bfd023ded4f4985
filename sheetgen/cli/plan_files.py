"""Plans in files: read as they were built or as they are now, worked out, drawn; a workbook carried back by `pull`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sheetgen.cli.output import print_json, say, step
from sheetgen.errors import MissingLibraryError, Problems, ScenarioError, did_you_mean, shown
from sheetgen.units import count

if TYPE_CHECKING:
    from sheetgen.brand import Brand
    from sheetgen.catalog import Catalog
    from sheetgen.plan.answer import Answer
    from sheetgen.plan.bridge import Last
    from sheetgen.plan.findings import Findings
    from sheetgen.plan.pages import PlanPage
    from sheetgen.plan.read import Plan
    from sheetgen.writers.formats import Archive

PULL_SCHEMA = 1
FORMATS, DEFAULT_FORMATS = ("xlsx", "pdf", "docx", "html", "json", "md", "csv"), "json"
WORKBOOK = ".xlsx"


def record_of_file(path: Path) -> Mapping[str, Any]:
    """A plan as JSON has it: of its JSON, or as its workbook was built, whatever was typed into it since."""
    from sheetgen.plan.bridge import read_record
    from sheetgen.workbook.plan_book import read_plan_book

    return read_plan_book(path).record if path.suffix.lower() == WORKBOOK else read_record(path)


def record_now(path: Path, catalog: Catalog) -> Mapping[str, Any]:
    """A plan as JSON has it: of its JSON, or of its workbook with what was typed since, worked out anew."""
    from sheetgen.pull.plan import pull_plan

    if path.suffix.lower() != WORKBOOK:
        return record_of_file(path)
    pulled = pull_plan(str(path), catalog)
    return pulled.record_as_built or solved_of(pulled.plan).record


@dataclass(frozen=True)
class Since:
    """The last plan that a plan was compared with: its file, and what that holds."""

    file: str
    record: Mapping[str, Any]

    def last(self, catalog: Catalog) -> Last:
        from sheetgen.plan.bridge import last_of

        return last_of(self.record, shown(self.file, 200), catalog)


@dataclass(frozen=True)
class Solved:
    """A plan that was worked out: what is found in it, its page and its record."""

    whole: Findings
    page: PlanPage
    record: dict[str, Any]
    since: Since | None

    @property
    def answer(self) -> Answer:
        return self.whole.answer


def solved_file(file: str, catalog: Catalog, since: str | None = None, paper: str = "a4") -> Solved:
    """The plan in a file, worked out: YAML, the JSON that was written of one, or its workbook with what was typed
    since."""
    from sheetgen.plan.bridge import plan_of_record
    from sheetgen.plan.read import read_plan

    built: Mapping[str, Any] | None = None
    match Path(file).suffix.lower():
        case ".json":
            built = record_of_file(Path(file))
            read = plan_of_record(built, shown(file, 200), catalog)
        case ".xlsx":
            from sheetgen.pull.plan import pull_plan

            pulled = pull_plan(file, catalog)
            read, built = pulled.plan, pulled.record_as_built
        case _:
            read = read_plan(Path(file), catalog)
    if since is None and read.head.since is not None:
        since = str(Path(file).parent / read.head.since)
    solved = solved_of(read, None if since is None else Since(since, record_of_file(Path(since))), paper)
    if built is not None and solved.record["money"] != built["money"]:
        raise ScenarioError(f"{shown(file, 200)}: the catalogs of today give other money than it says. Name its "
                            "plan.yaml, and build it anew.")  # fmt: skip
    return solved


def solved_of(read: Plan, since: Since | None = None, paper: str = "a4") -> Solved:
    from sheetgen.plan.findings import findings
    from sheetgen.plan.pages import plan_page
    from sheetgen.plan.record import record_of
    from sheetgen.plan.solve import solved_plan

    step(f"working out {count(len(read.services), 'service')}, {count(len(read.quarters), 'quarter')}")
    whole = findings(solved_plan(read), None if since is None else since.last(read.catalog))
    return Solved(whole, plan_page(whole, paper), record_of(whole), since)


def draw_plan(
    formats: Sequence[str], place: Path, solved: Solved, brand: Brand | None, archive: Archive | None = None,
    sheets: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[Path, bytes], Problems]:  # fmt: skip
    """The plan's files, and what is missing to draw the others. sheets: see `drawn`."""
    written, problems = dict[Path, bytes](), Problems()
    for one in formats:
        step(f"drawing {one}")
        try:
            written[Path(f"{place}.{one}")] = drawn(one, solved, brand, archive, sheets)
        except MissingLibraryError as error:
            problems.extend(error.problems)
    return written, problems


def drawn(
    name: str, solved: Solved, brand: Brand | None, archive: Archive | None = None,
    sheets: Mapping[str, str] = MappingProxyType({}),
) -> bytes:  # fmt: skip
    """The plan in a format. sheets: by service the workbook beside it that is its sizing sheet."""
    from sheetgen.writers import plan as texts
    from sheetgen.writers.formats import Archive, Options, gc_paused, json_text

    page, found = solved.page, solved.record
    sha256 = solved.answer.plan.catalog.catalog_sha256()
    options = Options(brand=brand, archive=replace(archive or Archive(), catalog_sha256=sha256))
    match name:
        case "xlsx":
            from sheetgen.plan.book import build_plan_book
            from sheetgen.writers.xlsx import write_xlsx

            with gc_paused():
                return write_xlsx(build_plan_book(solved.whole, page, found, sheets), options)
        case "pdf" | "html":
            from sheetgen.writers import plan_page as pages

            return (pages.write_plan_pdf if name == "pdf" else pages.write_plan_html)(page, options)
        case "docx":
            from sheetgen.writers.docx import write_plan_docx

            return write_plan_docx(page, options)
        case "md":
            return texts.plan_markdown(page)
        case "csv":
            return texts.plan_csv(found)
    return json_text(found).encode()


def formats_of_plan(text: str | None) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(one.strip().lower() for one in (text or DEFAULT_FORMATS).split(",") if one.strip()))
    for one in names:
        if one not in FORMATS:
            near = did_you_mean(one, FORMATS)
            raise ScenarioError(f"format {shown(one)!r} is unknown. Allowed: {', '.join(FORMATS)}.{near}")
    return names


def pull_book(
    edited: str, formats: str | None, out: str | None, name: str | None, brand: str | None, as_json: bool,
    catalog: Catalog, quiet: bool,
) -> None:  # fmt: skip
    """Carry an edited plan's workbook back to a plan.yaml and new documents."""
    from sheetgen import __version__
    from sheetgen.cli.build import brand_of, place_of, write_drawn
    from sheetgen.cli.plan import summary
    from sheetgen.pull.plan import data, lines, plan_text, pull_plan

    named = formats_of_plan(formats or "pdf")
    place, drawn_with = place_of(out, Path(edited).stem if name is None else name), brand_of(brand)
    step(f"reading {shown(edited)}, and working it out anew")
    pulled = pull_plan(edited, catalog)
    solved = solved_of(pulled.plan)
    found = solved.record
    written, problems = draw_plan(named, place, solved, drawn_with)
    written[Path(f"{place}.plan.yaml")] = plan_text(pulled, __version__).encode()
    for target in written:  # the workbook itself is spared
        if target.resolve() == Path(edited).resolve():
            raise ScenarioError(f"{shown(target, 200)}: is the edited workbook. Choose another --out or --name.")
    write_drawn(written, problems)
    if as_json:
        print_json({"schema_version": PULL_SCHEMA, **data(pulled), "files": list(map(str, written)), "plan": found})
    elif not quiet:
        usd = {name: sum(one[f"{name}_usd"] for one in found["money"]) for name in ("p50", "p90")}
        said = [*lines(pulled, usd), *(f"wrote {target}" for target in written), "", *summary(found)]
        say("\n".join(said))
    if problems:
        raise SystemExit(1)
