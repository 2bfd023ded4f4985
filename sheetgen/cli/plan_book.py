"""A plan's workbook on the command line: as the last plan, as the plan behind actuals, as one of two that `diff`
compares, and carried back by `pull`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sheetgen.cli.output import note, print_json, say, write_files
from sheetgen.errors import ScenarioError, shown

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog
    from sheetgen.plan.bridge import Last

PULL_SCHEMA = 1


def record_of_file(path: Path) -> Mapping[str, Any]:
    """A plan as JSON has it: of its JSON, or as its workbook was built."""
    from sheetgen.plan.bridge import read_record
    from sheetgen.workbook.plan_book import is_plan_book, read_plan_book

    return read_plan_book(path).record if is_plan_book(path) else read_record(path)


def record_now(path: Path, catalog: Catalog) -> Mapping[str, Any]:
    """A plan as JSON has it: of its JSON, or of its workbook with what was typed since, worked out anew."""
    from sheetgen.cli.plan import solved_of
    from sheetgen.plan.bridge import read_record
    from sheetgen.pull.plan import pull_plan
    from sheetgen.workbook.plan_book import is_plan_book

    if not is_plan_book(path):
        return read_record(path)
    pulled = pull_plan(str(path), catalog)
    return solved_of(pulled.plan).record if pulled.edits else pulled.book.record


def last_plan(path: Path, catalog: Catalog) -> Last:
    """The last plan: its JSON, or its workbook as built, whatever was typed into it since."""
    from sheetgen.plan.bridge import last_of

    return last_of(record_of_file(path), shown(path, 200), catalog)


def pull_book(
    edited: str, formats: str | None, out: str | None, name: str | None, brand: str | None, as_json: bool,
    catalog: Catalog, quiet: bool,
) -> None:  # fmt: skip
    """Carry an edited plan's workbook back to a plan.yaml and new documents."""
    from sheetgen import __version__
    from sheetgen.cli.build import brand_of, place_of
    from sheetgen.cli.plan import drawn, formats_of_plan, solved_of, summary
    from sheetgen.pull.plan import data, lines, plan_text, pull_plan

    named = formats_of_plan(formats or "pdf")
    place, drawn_with = place_of(out, Path(edited).stem if name is None else name), brand_of(brand)
    note(f"reading {shown(edited)}, and working it out anew ...", quiet)
    pulled = pull_plan(edited, catalog)
    solved = solved_of(pulled.plan)
    found = solved.record
    written = {Path(f"{place}.{one}"): drawn(one, solved, drawn_with) for one in named}
    written[Path(f"{place}.plan.yaml")] = plan_text(pulled, __version__).encode()
    for target in written:  # the workbook itself is spared
        if target.resolve() == Path(edited).resolve():
            raise ScenarioError(f"{shown(target, 200)}: is the edited workbook. Choose another --out or --name.")
    write_files(written)
    if as_json:
        print_json({"schema_version": PULL_SCHEMA, **data(pulled), "files": list(map(str, written)), "plan": found})
    elif not quiet:
        usd = {name: sum(one[f"{name}_usd"] for one in found["money"]) for name in ("p50", "p90")}
        said = [*lines(pulled, usd), *(f"wrote {target}" for target in written), "", *summary(found)]
        say("\n".join(said))
