"""`sheetgen plan`: the quarterly capacity plan; `plan init` writes an example, `plan check` reports what is wrong.

A plan is read from its YAML, its JSON, or its workbook (as built or edited), solved, and drawn. `pull` turns an edited
workbook into a plan.yaml again.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import Group, brand_option, common, text_options
from sheetgen.cli.output import as_called, folded, note, print_json, say, step, table, write_drawn
from sheetgen.errors import ScenarioError, did_you_mean, escaped, shown
from sheetgen.input_files import beside, ending_of
from sheetgen.sheet_files import PULL_SCHEMA, brand_of, formats_named, place_of
from sheetgen.units import count, number_text, today
from sheetgen.writers.formats import DEFAULT_OF_PLAN, PLAN_FORMATS, Archive, Options, write_each
from sheetgen.writers.safe_files import check_places, may_be_written, write_files

if TYPE_CHECKING:
    from sheetgen.answer.answer_record import Json
    from sheetgen.book.sheets import Book
    from sheetgen.brand import Brand
    from sheetgen.catalog import Catalog
    from sheetgen.plan.findings import Findings
    from sheetgen.plan.pages import PlanPage
    from sheetgen.plan.stated_plan import Plan
    from sheetgen.question.parse import Raw

EXAMPLE = "plan.yaml"
ACTUALS_SCHEMA = 1
WORKBOOK = ".xlsx"


class Plans(Group):
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
      sheetgen pull plans/q1.xlsx
      sheetgen plan actuals focus.csv --plan plans/q1.json
    """


@plan.command()
@click.option("--out", metavar="DIR", default=".", help="Folder to write to. Default: this one.")
@click.option(
    "--from",
    "sheet",
    metavar="SHEET",
    help="A plan of that sheet's model: its workbook, or its JSON; or the plan of a plan's workbook, with what was "
    "typed into it; or of a plan's JSON the next plan, with what that had to sign as commitments and orders.",
)
@text_options(
    (
        "models",
        "NAMES",
        "Of a sheet of several, which are alternatives for one load: the model that is to serve it, or several, each "
        "of which serves all of it. Default: the one that the sheet asks to approve, or all where it adds them up.",
    )
)
@click.option("--force", is_flag=True, help="Write over a plan that is there.")
@common
def init(
    out: str, sheet: str | None, models: str | None, force: bool, as_json: bool, catalog: Catalog, quiet: bool
) -> None:
    """Write a commented example, plan.yaml, that runs; or one of a sheet's model, load, targets and prices.

    \b
    Examples:
      sheetgen plan init --out .
      sheetgen plan init --from output/sizing-sheet.xlsx --models 70b --out plans
    """
    from sheetgen.readback.plan_book import is_plan
    from sheetgen.readback.pulled_words import yaml_text
    from sheetgen.writers.formats import templates_folder

    target, remarks, other = Path(out) / EXAMPLE, list[str](), ""
    is_sheet = sheet is not None and not is_plan(sheet)
    if models is not None and not is_sheet:
        raise click.UsageError("--models goes with --from SHEET, a sizing sheet's workbook or JSON.")
    if sheet is None:
        example = (templates_folder() / EXAMPLE).read_text(encoding="utf-8")
        text = re.sub(r"(?<=as_of: )\S+", today().isoformat(), example)
    elif is_sheet:
        head, data, remarks, other = _first_plan(sheet, models, out, catalog)
        text = f"{head}{yaml_text(data)}"
    elif ending_of(Path(sheet)) == WORKBOOK:
        from sheetgen import __version__
        from sheetgen.readback import pulled_plan as pulled

        text = pulled.plan_text(pulled.pull_plan(sheet, catalog), __version__)
    else:
        head, data = _following_plan(Path(sheet), target.parent)
        text = f"{head}{yaml_text(data)}"
    if not (force or may_be_written(target, text.encode())):
        problem = f"{shown(target, 200)} is there already, and other"
        raise ScenarioError(f"{problem}. Name another folder with --out, or add --force.")
    write_files({target: text.encode()})
    if as_json:
        print_json({"file": str(target), "remarks": remarks})
    elif not quiet:
        say("\n".join([f"wrote {target}", *remarks]))
        if other:
            say(f"For another, or several after commas:\n  {other}", verbatim=True)


def _following_plan(file: Path, folder: Path) -> tuple[str, Json]:
    """The first lines and the content of the plan that follows the one in a JSON, to be written into `folder`."""
    from sheetgen.plan.bridge import read_record
    from sheetgen.plan.next_plan import next_plan

    head = f"# The plan after {escaped(file.name)}: what it had to sign now stands in supply, as if it was signed.\n"
    return head, next_plan(read_record(file), os.path.relpath(file, folder), today())


def _first_plan(file: str, models: str | None, out: str, catalog: Catalog) -> tuple[str, Json, list[str], str]:
    """The first lines and the content of a plan of a sheet's models, the remarks on these, and the command for another
    model, if there is one. The sheet is its JSON, or its workbook as it is now."""
    from sheetgen.plan import from_sheet
    from sheetgen.question import parse

    if ending_of(Path(file)) == WORKBOOK:
        from sheetgen.answer.answer_record import as_json
        from sheetgen.api import sheet_record
        from sheetgen.readback.pulled import pull

        sheet: Json = as_json(sheet_record(pull(file, catalog, None).solved, ()))
    else:
        sheet = from_sheet.read_sheet(Path(file))

    def command(names: Iterable[str], *options: str) -> str:
        place = () if out == "." else ("--out", out)
        own = itertools.chain(*(("--catalogs", str(folder)) for folder in catalog.folders[1:]))
        words = "plan", "init", "--from", file, "--models", ",".join(names), *place, *own, *options
        return f"sheetgen {shlex.join(words)}"

    rented = from_sheet.rented(sheet)
    taken = from_sheet.models_named(sheet, parse.words(models), catalog) or from_sheet.models_to_serve(sheet)
    if not taken:
        problem = (
            f"{shown(file, 200)}: its {len(rented)} models are alternatives for one load, and it asks to approve none"
        )
        choices = (f"  {command([model])}  # {machines}" for model, machines in rented.items())
        several = f"  {command(rented)}  # {len(rented)} times the load"
        raise click.UsageError(
            "\n".join([f"{problem}. Name the one that is to serve it, or several:", *choices, several])
        )
    left_out = [model for model in rented if model not in taken]
    other = as_called(command(left_out[:1], "--force")) if left_out else ""
    head, data = from_sheet.plan_of_sheet(sheet, escaped(Path(file).name), taken)
    return head, data, from_sheet.remarks_on_models(sheet, taken), other


@plan.command()
@click.argument("file", metavar="PLAN.yaml")
@common
def check(file: str, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """Say everything that is wrong with a plan, each with its line.

    \b
    Example:
      sheetgen plan check plan.yaml
    """
    from sheetgen.plan.read_plan import read_plan

    plan_read = read_plan(Path(file), catalog)
    if as_json:
        print_json(
            {"file": file, "services": len(plan_read.services), "quarters": len(plan_read.quarters), "problems": []}
        )
    elif not quiet:
        say(f"{file}: {len(plan_read.services)} services, {len(plan_read.quarters)} quarters, nothing wrong.")


@plan.command()
@click.argument("file", metavar="PLAN.yaml")
@click.option(
    "--format",
    "formats",
    metavar="NAMES",
    help=f"Any of {','.join(PLAN_FORMATS)}. Default {','.join(DEFAULT_OF_PLAN)}.",
)
@click.option("--out", metavar="DIR", help="Folder to write to. Default output.")
@click.option("--name", metavar="NAME", help="Name of the files, without an ending. Default capacity-plan.")
@click.option(
    "--since",
    metavar="LAST",
    help="Say what changed since that plan: its JSON, or its workbook as built. Default: plan.since of the file.",
)
@click.option(
    "--actuals",
    metavar="FILE.csv",
    help="What was really spent, as `plan actuals` reads it: beside what the last plan said, in the JSON's variance.",
)
@click.option("--paper", type=click.Choice(["a4", "letter"]), default="a4", help="Of PDF and docx. Default a4.")
@text_options("measured")
@brand_option
@common
def build(
    file: str,
    formats: str | None,
    out: str | None,
    name: str | None,
    since: str | None,
    actuals: str | None,
    paper: str,
    measured: list[str] | None,
    brand: str | None,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """Work a plan out and write it; `plan PLAN.yaml` does the same.

    The workbook holds values of the plan's day, and live money: a yellow price moves it at once; after another demand
    or count its cells say "run pull", and `sheetgen pull` works all out anew.

    \b
    Example:
      sheetgen plan build plan.yaml --out plans
    """
    from sheetgen.plan.record import NAME
    from sheetgen.report.measured_words import unused_lines

    named = formats_named(formats, PLAN_FORMATS) or DEFAULT_OF_PLAN
    place = place_of(out, NAME if name is None else name)
    check_places(Path(f"{place}.{ending}") for ending in named)
    brand_read = brand_of(brand)
    solved = solved_file(file, catalog, since, paper, measured or (), actuals)
    answer, record = solved.whole.answer, solved.record
    files, missing = draw_plan(named, solved, brand_read)
    written = {Path(f"{place}.{ending}"): data for ending, data in files.items()}
    write_drawn(written, missing)
    if as_json:
        print_json(record)
    elif not quiet:
        unused = list(unused_lines(answer.plan.unused))
        lines = ["", *unused] if unused else []
        say("\n".join([*(f"wrote {target}" for target in written), "", *summary(record), *lines]))
    note(f"{len(answer.plan.services)} services, {len(answer.plan.quarters)} quarters", quiet)
    if missing:
        raise SystemExit(1)


@plan.command()
@click.argument("file", metavar="FILE.csv")
@click.option("--plan", "of_plan", metavar="PLAN", help="Compare with what that plan said: its JSON, or its workbook.")
@common
def actuals(file: str, of_plan: str | None, as_json: bool, catalog: Catalog, quiet: bool) -> None:
    """What was really spent, by quarter: a CSV in FOCUS columns (ChargePeriodStart, EffectiveCost, ...) or in our own.

    Our own columns: quarter, and any of from, until, service, instance, purchase (owned, too), usd, n_instances,
    in_flight_peak, replicas. A part of a quarter is compared with as many of its days.

    \b
    Example:
      sheetgen plan actuals focus.csv --plan plans/q1.json
    """
    from sheetgen.plan import actuals as real
    from sheetgen.plan.actuals import UNTAGGED
    from sheetgen.plan.plan_currency import IN_DOLLARS, currency_of
    from sheetgen.report.wording import sign_of
    from sheetgen.sizing.cost import in_currency

    planned = None if of_plan is None else record_of_file(Path(of_plan))
    currency = IN_DOLLARS if planned is None else currency_of(planned)
    starts = 1 if planned is None else planned["inputs"]["plan"].get("fiscal_year_starts", 1)
    spent = real.read_actuals(Path(file), starts, currency)
    compared, parts = [], []
    if planned is not None:
        compared, parts = list(real.against(planned, spent)), list(real.variance(planned, spent))
    quarters, measured = list(real.by_quarter(spent)), list(real.measured(spent))
    if as_json:
        print_json(
            {
                "schema_version": ACTUALS_SCHEMA,
                "lines": len(spent.lines),
                "left_out": spent.left_out,
                "quarters": quarters,
                "measured": measured,
                "against": compared,
                "variance": parts,
            }
        )
        return
    sign = sign_of(currency.code)

    def amount(usd: float) -> str:
        return f"{in_currency(usd, currency.per_usd):,.0f}"

    rows = [("quarter", "days", sign, f"of it unused {sign}")]
    for quarter in quarters:
        days = f"{quarter['days']} of {quarter['of_days']}"
        rows.append((quarter["quarter"], days, amount(quarter["usd"]), amount(quarter["unused_usd"])))
    say(table(rows, right=(2, 3)))
    if planned is not None and (others := real.not_in_plan(planned, spent)):
        say(f"\nnot in the plan, so nothing is planned beside them: {', '.join(others)}")
    if compared:
        heads = (f"plan p50 {sign}", f"p90 {sign}", f"spent {sign}", "plan / spent - 1", f"owned: plan {sign}")
        against = [("of the same days", *heads, f"spent {sign}")]
        for quarter in compared:
            error = "-" if quarter["error_fraction"] is None else f"{quarter['error_fraction']:+.1%}"
            usd = [amount(quarter[name]) for name in ("p50_usd", "p90_usd", "actual_usd")]
            owned = (amount(quarter[f"owned_{name}_usd"]) for name in ("planned", "actual"))
            against.append((quarter["quarter"], *usd, error, *owned))
        has_owned = any(quarter["owned_planned_usd"] or quarter["owned_actual_usd"] for quarter in compared)
        say("\n" + table([row if has_owned else row[:5] for row in against], right=range(1, 7)))
        by_part = [("quarter", "by", "", *(f"{head} {sign}" for head in ("plan p50", "spent", "more")))]
        # What the file states of its charges.
        split_by = {part["by"] for part in parts if part["name"] and part["actual_usd"]}
        for part in (part for part in parts if part["by"] in split_by):
            unnamed = {"service": UNTAGGED, "purchase": "no class"}
            name = part["name"] or unnamed.get(part["by"], "others")
            amounts = (amount(part[f"{which}_usd"]) for which in ("planned", "actual", "difference"))
            by_part.append((part["quarter"], part["by"].replace("purchase", "class"), name, *amounts))
        if split_by:
            say("\n" + table(by_part, right=range(3, 6)))
    for service in measured:
        say(
            f"{service['id']} in {service['quarter']}: {number_text(service['replicas'])} replicas served "
            f"{number_text(service['in_flight_peak'])} requests at once at its peak"
        )


def summary(record: Json) -> list[str]:
    """Money by quarter against the budget, and the next decisions, in the plan's currency."""
    from sheetgen.plan.plan_currency import currency_of
    from sheetgen.plan.whole_amounts import quarters_in_whole
    from sheetgen.report.wording import prefix_of, sign_of
    from sheetgen.sizing.cost import in_currency

    currency = currency_of(record)
    sign = sign_of(currency.code)

    def in_its_currency(usd: float) -> float:
        return float(in_currency(usd, currency.per_usd))

    rows = [
        ("US $" if sign == "$" else sign, "", "p50, with", "Budget", "p90, with", "Budget", "Budget"),
        ("Quarter", "Budget", "contingency", "left", "contingency", "left", "holds"),
    ]
    money = record["money"]
    budgets = [math.nan if quarter["budget_usd"] is None else quarter["budget_usd"] for quarter in money]
    middle, high = (
        quarters_in_whole(currency.per_usd, budgets, *([quarter[name] for quarter in money] for name in names))
        for names in (("p50_usd", "contingency_p50_usd"), ("p90_usd", "contingency_p90_usd"))
    )
    for q, quarter in enumerate(money):
        of_cases = ((whole.spend[q] + whole.reserve[q], whole.left[q]) for whole in (middle, high))
        amounts = (middle.budget[q], *itertools.chain(*of_cases))
        texts = ("-" if math.isnan(usd) else f"{in_its_currency(usd):,.0f}" for usd in amounts)
        rows.append((quarter["quarter"], *texts, quarter["verdict"]))
    orders = [("by", "what", "instance", "n", "from", "")]
    for decision in record["decisions"]:
        saved, other = decision["expected_saving_usd"], decision["or"]
        amount = f"{prefix_of(sign)}{in_its_currency(abs(saved or 0)):,.0f}"
        saves = "" if saved is None else f"expected to {'save' if saved >= 0 else 'cost more, by'} {amount}"
        others = ""
        while other:
            others += f" or {other['what']} {number_text(other['n_instances'])} by {other['order_by']}"
            other = other["or"]
        about = ", ".join(filter(None, (decision["about"], saves, others.strip())))
        n, remark = number_text(decision["n_instances"]), "late" if decision["late"] else about
        orders.append(
            (decision["order_by"], decision["what"], decision["instance"], n, decision["needed_from"], remark)
        )
    paragraphs = [table(rows, right=range(1, 6)), "", table(orders, right=(3,))]
    if record["warnings"]:
        paragraphs = [*map(folded, record["warnings"]), "", *paragraphs]
    if record["since"]:
        parts = [("since the last plan", "service", f"to approve {sign}", f"p50 {sign}")]
        parts += [
            (
                step["factor"],
                step["service"] or "all together",
                *(f"{in_its_currency(step[name]):+,.2f}" for name in ("asked_usd", "usd")),
            )
            for step in record["bridge"]
        ]
        paragraphs += ["", table(parts, right=(2, 3))]
    return paragraphs


def record_of_file(path: Path) -> Mapping[str, Raw]:
    """The record of a plan: its JSON, or the one in its workbook, without edits made since it was built."""
    from sheetgen.plan.bridge import read_record
    from sheetgen.readback.plan_book import read_plan_book

    return read_plan_book(path).record if ending_of(path) == WORKBOOK else read_record(path)


@dataclass(frozen=True)
class Since:
    """The last plan, with which a plan is compared: its file, its record, and the file of actual spending, or what a
    built plan says of that."""

    file: str
    record: Mapping[str, Raw]
    actuals: str | None = None
    variance: tuple[Mapping[str, Raw], ...] = ()


@dataclass(frozen=True)
class Solved:
    """A solved plan: its findings, its page, its record, and the last plan."""

    whole: Findings
    page: PlanPage
    record: Json
    since: Since | None


def solved_file(
    file: str,
    catalog: Catalog,
    since: str | None = None,
    paper: str = "a4",
    measured: Sequence[str] = (),
    actuals: str | None = None,
) -> Solved:
    """The plan in a file, solved. The file is its YAML, its JSON, or its workbook with edits. measured: results of
    benchmarks for a plan in YAML; actuals: the CSV of spending since the last plan."""
    from sheetgen.plan.bridge import plan_of_record
    from sheetgen.plan.read_plan import read_plan

    ending = ending_of(Path(file))
    if measured and ending in (".json", ".xlsx"):
        raise ScenarioError(f"{shown(file, 200)}: --measured goes with the plan's YAML, which carries it from then on.")
    built: Mapping[str, Raw] | None = None
    match ending:
        case ".json":
            built = record_of_file(Path(file))
            read = plan_of_record(built, shown(file, 200), catalog)
        case ".xlsx":
            from sheetgen.readback.pulled_plan import pull_plan

            pulled = pull_plan(file, catalog)
            read, built = pulled.plan, pulled.record_as_built
        case _:
            read = read_plan(Path(file), catalog, measured)
    if since is None and read.head.since is not None:
        since = beside(Path(file), read.head.since)
    if actuals is not None and since is None:
        raise ScenarioError(f"{shown(actuals, 200)}: spent beside no plan. Name the last plan with --since.")
    spent = tuple(built["variance"]) if built and built.get("variance") and ending == ".json" else ()
    last = None if since is None else Since(since, record_of_file(Path(since)), actuals, spent)
    solved = solved_of(read, last, paper)
    if built is not None and solved.record["money"] != built["money"]:
        raise ScenarioError(
            f"{shown(file, 200)}: the catalogs of today give other money than it says. Name its "
            "plan.yaml, and build it anew."
        )
    return solved


def solved_of(read: Plan, since: Since | None = None, paper: str = "a4") -> Solved:
    """A plan solved, and compared with the last one if there is one."""
    from sheetgen.plan.actuals import of_services, read_actuals
    from sheetgen.plan.bridge import last_of
    from sheetgen.plan.findings import findings
    from sheetgen.plan.pages import plan_page
    from sheetgen.plan.plan_currency import currency_of
    from sheetgen.plan.record import record_of
    from sheetgen.plan.solve_plan import solved_plan

    step(f"working out {count(len(read.services), 'service')}, {count(len(read.quarters), 'quarter')}")
    last = last_of(since.record, shown(since.file, 200), read.catalog) if since else None
    if last is not None and since is not None and since.actuals is not None:
        spent = read_actuals(Path(since.actuals), last.plan.head.fiscal_year_starts, currency_of(since.record))
        last = replace(last, variance=tuple(of_services(since.record, spent)))
    elif last is not None and since is not None:
        last = replace(last, variance=since.variance)
    whole = findings(solved_plan(read), last)
    return Solved(whole, plan_page(whole, paper), record_of(whole), since)


def draw_plan(
    formats: Sequence[str],
    solved: Solved,
    brand: Brand | None,
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The bytes of each format, and a line for each format that cannot be drawn here."""
    step(f"drawing {', '.join(formats)}")
    page, record = solved.page, solved.record

    def book() -> Book:
        from sheetgen.plan.flat_book import build_plan_book

        return build_plan_book(solved.whole, page, record)

    drawn: dict[str, Callable[[], object]] = {"page": lambda: page, "record": lambda: record, "book": book}
    sha256 = solved.whole.answer.plan.catalog.catalog_sha256()
    options = Options(brand=brand, archive=Archive(catalog_sha256=sha256))
    return write_each(
        formats, PLAN_FORMATS, lambda ending: PLAN_FORMATS[ending].write(drawn[PLAN_FORMATS[ending].draws](), options)
    )


def pull_book(
    edited: str,
    formats: str | None,
    out: str | None,
    name: str | None,
    brand: str | None,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
) -> None:
    """Carry an edited plan's workbook back to a plan.yaml and new documents."""
    from sheetgen import __version__
    from sheetgen.readback.pulled_plan import data, lines, plan_text, pull_plan

    named = formats_named(formats, PLAN_FORMATS) or ("pdf",)
    place, drawn_with = place_of(out, Path(edited).stem if name is None else name), brand_of(brand)
    check_places(Path(f"{place}.{ending}") for ending in (*named, EXAMPLE))
    step(f"reading {shown(edited)}, and working it out anew")
    pulled = pull_plan(edited, catalog)
    solved = solved_of(pulled.plan)
    record = solved.record
    files, missing = draw_plan(named, solved, drawn_with)
    files[EXAMPLE] = plan_text(pulled, __version__).encode()
    written = {Path(f"{place}.{ending}"): data for ending, data in files.items()}
    write_drawn(written, missing, spared=Path(edited))
    if as_json:
        print_json({"schema_version": PULL_SCHEMA, **data(pulled), "files": list(map(str, written)), "plan": record})
    elif not quiet:
        usd = {name: sum(quarter[f"{name}_usd"] for quarter in record["money"]) for name in ("p50", "p90")}
        report = [*lines(pulled, usd), *(f"wrote {target}" for target in written), "", *summary(record)]
        say("\n".join(report))
    if missing:
        raise SystemExit(1)
