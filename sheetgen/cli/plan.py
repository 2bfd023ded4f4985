"""`sheetgen plan`: the quarterly capacity plan; `plan init` writes an example, `plan check` says what is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.build import archive_of, brand_of, formats_named, place_of, write_drawn
from sheetgen.cli.options import brand_option, common
from sheetgen.cli.output import note, print_json, say, table, write_files
from sheetgen.cli.plan_files import (
    DEFAULT_FORMATS,
    FORMATS,
    draw_plan,
    draw_sheets,
    record_of_file,
    sheet_names,
    solved_file,
)
from sheetgen.errors import ScenarioError, did_you_mean, escaped, shown
from sheetgen.units import today

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

EXAMPLE = "plan.yaml"
ACTUALS_SCHEMA = 1


class Plans(click.Group):
    """A group whose name may be followed by a file: `plan FILE` is `plan build FILE`."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            if (near := did_you_mean(args[0], self.commands)) and not Path(args[0]).exists():
                raise click.UsageError(f"No such file or command {args[0]!r}.{near}", ctx)
            return super().resolve_command(ctx, ["build", *args])
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):  # options before the file
            args = ["build", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Plans)
def plan() -> None:
    """The quarterly capacity plan: what to buy, by which date, for how much, and what if demand is higher.

    \b
    Examples:
      sheetgen plan init --out .
      sheetgen plan check plan.yaml
      sheetgen plan plan.yaml --out plans --name q1
      sheetgen plan plan.yaml --since plans/q4.json --format pdf,docx,json
      sheetgen plan actuals focus.csv --plan plans/q1.json
    """


@plan.command()
@click.option("--out", metavar="DIR", default=".", help="Folder to write to. Default: this one.")
@click.option("--from", "sheet", metavar="SHEET", help="A plan of that sheet's models: its "
              "workbook, or its JSON; or the plan of a plan's workbook, with what was typed into it.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over a plan that is there.")
@common
def init(out: str, sheet: str | None, force: bool, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """Write a commented example, plan.yaml, that runs; or one of a sheet's models, loads, targets and prices.

    \b
    Example:
      sheetgen plan init --out .
    """
    from sheetgen.workbook.plan_book import is_plan_book
    from sheetgen.writers.formats import templates_folder

    target = Path(out) / EXAMPLE
    if target.exists() and not force:
        raise ScenarioError(f"{shown(target, 200)} is there already. Name another folder with --out, or add --force.")
    if sheet is None:
        example = (templates_folder() / EXAMPLE).read_text(encoding="utf-8")
        text = re.sub(r"(?<=as_of: )\S+", today().isoformat(), example).encode()
    elif is_plan_book(sheet):
        from sheetgen import __version__
        from sheetgen.pull import plan as pulled

        text = pulled.plan_text(pulled.pull_plan(sheet, catalog), __version__).encode()
    else:
        from sheetgen.plan.from_sheet import plan_text

        text = plan_text(_sheet(Path(sheet), catalog), escaped(Path(sheet).name)).encode()
    write_files({target: text})
    if as_json:
        print_json({"file": str(target)})
    elif not quiet:
        say(f"wrote {target}")


def _sheet(path: Path, catalog: Catalog) -> dict[str, Any]:
    """The record of a sheet: its JSON, or that of its workbook as it is now."""
    from sheetgen.plan.from_sheet import read_sheet

    if path.suffix.lower() != ".xlsx":
        return read_sheet(path)
    from sheetgen.api import sheet_record
    from sheetgen.pull.pulled import pull

    return sheet_record(pull(str(path), catalog, None).solved, ())


@plan.command()
@click.argument("file", metavar="PLAN.yaml")
@common
def check(file: str, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """Say everything that is wrong with a plan, each with its line.

    \b
    Example:
      sheetgen plan check plan.yaml
    """
    from sheetgen.plan.read import read_plan

    found = read_plan(Path(file), catalog)
    if as_json:
        print_json({"file": file, "services": len(found.services), "quarters": len(found.quarters), "problems": []})
    elif not quiet:
        say(f"{file}: {len(found.services)} services, {len(found.quarters)} quarters, nothing wrong.")


@plan.command()
@click.argument("file", metavar="PLAN.yaml")
@click.option("--format", "formats", metavar="NAMES", help=f"Any of {','.join(FORMATS)}. Default {DEFAULT_FORMATS}.")
@click.option("--out", metavar="DIR", help="Folder to write to. Default output.")
@click.option("--name", metavar="NAME", help="Name of the files, without an ending. Default capacity-plan.")
@click.option("--since", metavar="LAST", help="Say what changed since that plan: its JSON, or its workbook as built. "
              "Default: plan.since of the file.")  # fmt: skip
@click.option("--paper", type=click.Choice(["a4", "letter"]), default="a4", help="Of PDF and docx. Default a4.")
@click.option("--pdf-variant", metavar="NAME", help="Standard of the PDF, as `sheetgen build` has it.")
@click.option("--sheets", is_flag=True, help="Also the sizing sheet of each service in its first quarter, workbook and "
              "PDF, to which the plan's workbook links.")  # fmt: skip
@brand_option
@common
def build(
    file: str, formats: str | None, out: str | None, name: str | None, since: str | None, paper: str,
    pdf_variant: str | None, sheets: bool, brand: str | None, as_json: bool, catalog: Catalog, quiet: bool,
) -> None:  # fmt: skip
    """Work a plan out and write it; `plan PLAN.yaml` does the same.

    \b
    Example:
      sheetgen plan build plan.yaml --out plans
    """
    from sheetgen.plan.record import NAME

    named = formats_named(formats, FORMATS) or (DEFAULT_FORMATS,)
    place = place_of(out, NAME if name is None else name)
    archive, brand_read = archive_of(pdf_variant, None, named, place.name), brand_of(brand)
    solved = solved_file(file, catalog, since, paper)
    linked = sheet_names(solved.answer, place) if sheets else {}
    written, problems = draw_plan(named, place, solved, brand_read, archive, linked)
    if sheets:
        written |= draw_sheets(solved.answer, place, linked, brand_read, archive, problems)
    write_drawn(written, problems)
    plan, found = solved.answer.plan, solved.record
    if as_json:
        print_json(found)
    elif not quiet:
        say("\n".join([*(f"wrote {target}" for target in written), "", *summary(found)]))
    note(f"{len(plan.services)} services, {len(plan.quarters)} quarters", quiet)
    if problems:
        raise SystemExit(1)


@plan.command()
@click.argument("file", metavar="FILE.csv")
@click.option("--plan", "of_plan", metavar="PLAN", help="Compare with what that plan said: its JSON, or its workbook.")
@common
def actuals(file: str, of_plan: str | None, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """What was really spent, by quarter: a CSV in FOCUS columns (ChargePeriodStart, EffectiveCost, ...) or in our own.

    Our own columns: quarter, and any of service, instance, purchase, usd, n_instances, in_flight_peak, replicas.

    \b
    Example:
      sheetgen plan actuals focus.csv --plan plans/q1.json
    """
    from sheetgen.plan import actuals as real

    said = None if of_plan is None else record_of_file(Path(of_plan))
    starts = 1 if said is None else said["inputs"]["plan"].get("fiscal_year_starts", 1)
    found = real.read_actuals(Path(file), starts)
    compared = [] if said is None else list(real.against(said, found))
    quarters, measured = list(real.by_quarter(found)), list(real.measured(found))
    if as_json:
        print_json({
            "schema_version": ACTUALS_SCHEMA, "lines": len(found.lines), "left_out": found.left_out,
            "quarters": quarters, "measured": measured, "against": compared,
        })  # fmt: skip
        return
    rows = [("quarter", "$", "of it unused $")]
    rows += [(one["quarter"], f"{one['usd']:,.0f}", f"{one['unused_usd']:,.0f}") for one in quarters]
    say(table(rows, right=(1, 2)))
    if compared:
        against = [("quarter", "plan p50 $", "p90 $", "spent $", "plan / spent - 1")]
        for one in compared:
            error = "-" if one["error_fraction"] is None else f"{one['error_fraction']:+.1%}"
            usd = (f"{one[name]:,.0f}" for name in ("p50_usd", "p90_usd", "actual_usd"))
            against.append((one["quarter"], *usd, error))
        say("\n" + table(against, right=(1, 2, 3, 4)))
    for one in measured:
        say(f"{one['id']}: calibrate: {{quarter: {one['quarter']}, in_flight_peak: {one['in_flight_peak']:g}, "
            f"replicas: {one['replicas']:g}}}")  # fmt: skip


def summary(found: dict[str, Any]) -> list[str]:
    """Money by quarter against the budget, and the next decisions."""
    from sheetgen.plan.spending import budget_left_usd

    rows = [("US $", "", "", "", "Contingency", "Budget left", "Budget"),
            ("Quarter", "Budget", "p50", "p90", "at p90", "at p90", "holds")]  # fmt: skip
    for one in found["money"]:
        budget, spent = one["budget_usd"], (one["p50_usd"], one["p90_usd"], one["contingency_p90_usd"])
        left = None if budget is None else budget_left_usd(budget, *spent[1:])
        usd = ("-" if amount is None else f"{amount:,.0f}" for amount in (budget, *spent, left))
        rows.append((one["quarter"], *usd, one["verdict"]))
    orders = [("by", "what", "instance", "n", "from", "")]
    for one in found["decisions"]:
        saved, other = one["expected_saving_usd"], one["in_place_of_order"]
        saves = "" if saved is None else f"expected to {'save' if saved >= 0 else 'cost more, by'} ${abs(saved):,.0f}"
        either = f"in place of the order by {other}" if other else ""
        about = ", ".join(filter(None, (one["about"], saves, either)))
        count, said = f"{one['n_instances']:g}", "late" if one["late"] else about
        orders.append((one["order_by"], one["what"], one["instance"], count, one["needed_from"], said))
    words = [table(rows, right=range(1, 6), optional=(2,)), "", table(orders, right=(3,))]
    if found["since"]:
        parts = [("since the last plan", "p50 $"), *((one["factor"], f"{one['usd']:+,.2f}") for one in found["bridge"])]
        words += ["", table(parts, right=(1,))]
    return words
