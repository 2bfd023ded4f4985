"""The functions that programs call: size one deployment, size a frame of them, recommend an instance."""

from __future__ import annotations

import datetime
import functools
import inspect
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy

from sheetgen.answer.verdict import judge, quantities_of
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.formula import round_up
from sheetgen.program.grid import Column, Columns, Grid, View
from sheetgen.program.row_program import ROW, evaluate_deployments, requests_at_rate
from sheetgen.question import parse
from sheetgen.question.deployment import DEFAULTS, NAMES, NO_TEXT, NamedRows, Points, complete, is_blank, objects
from sheetgen.question.inputs import INPUTS, OPTION_GROUPS, asked_in
from sheetgen.question.measurements import (
    NOTHING_MEASURED,
    Measurements,
    asked_of,
    measurements_of,
    put_measured,
    refuse_factors,
    with_measured,
)
from sheetgen.question.parse import Options, Raw
from sheetgen.shipped import shipped_table
from sheetgen.sizing.rates import in_flight_at_peak
from sheetgen.units import ON_DEMAND

if TYPE_CHECKING:
    import pandas

    from sheetgen.answer.answer_record import Json, Record
    from sheetgen.answer.levers import EveryLever
    from sheetgen.answer.reverse import Reverse
    from sheetgen.answer.solution import Solution
    from sheetgen.book.sheets import Book
    from sheetgen.measured.measured_point import Reading
    from sheetgen.question.sheet_question import Question
    from sheetgen.report.answer_lines import Line
    from sheetgen.report.page import Page

Catalogs = str | Path | Sequence[str | Path] | Catalog
ROWS_AT_ONCE = 65_536  # rows of a frame at a time: longer columns do not fit in a processor's cache

SHORT_SPELLINGS = {"context": "context_tokens"}
KINDS: Mapping[str, str] = shipped_table("results.toml")
RESOLVED = ("model_id", "sized_as", "gpu_id")  # what the names of a row stand for
RESULTS = tuple(name for name in KINDS if name not in RESOLVED)
TEXTS = tuple(name for name, kind in KINDS.items() if kind == "text")
FRACTIONS = (  # results and inputs; all others are whole numbers
    *(name for name, kind in KINDS.items() if kind == "fraction"),
    "gpu_memory_utilization",
    "requests_per_second",
    "requests_per_day",
    "burst_factor",
    "peak_hour_share",
    "speed_factor",
    "ttft_factor",
)
_MOST = 308
_POWERS = 10.0 ** numpy.arange(-_MOST, _MOST + 1)
NAME_LISTS = ("model", "gpus", "providers", "vendors", "instances")  # options that may be a list of names
WORDS = tuple(item.asked_as or item.name for item in INPUTS if item.words or not item.kind.is_number)
ONE_LOAD = ("model", "context_tokens", "context", "users", "concurrent_requests", "input_tokens", "output_tokens")


@dataclass(frozen=True)
class Sized:
    """Deployments with their completed inputs and results, as columns; `grid` has every quantity."""

    points: Points
    grid: Grid
    inputs: Columns
    results: Columns
    measured: Measurements = NOTHING_MEASURED
    follows: tuple[str, ...] = ()  # inputs that follow from a rate, in some row

    @property
    def known(self) -> View:
        """Every quantity, as columns of the rows that can be sized."""
        return self.grid.table(*ROW)


def size_columns(
    given: Mapping[str, Column],
    n_rows: int,
    catalog: Catalog,
    named: NamedRows | None = None,
    measured: Sequence[Reading] = (),
    longest: bool = True,
    wanted: Collection[str] | None = None,
) -> Sized:
    """Size `n_rows` deployments, given as columns by input name. A row that cannot be sized has its `error`.

    `named` are the rows of a frame by their names, see `complete`. `measured`: points that set the times of the rows
    whose deployment they are of. longest: whether the longest context that fits is searched for. wanted: the results
    that are read beside `error`, by default all; only quantities that these depend on are evaluated.
    """
    points = complete(given, n_rows, catalog, named)
    measurements = _measurements(measured, given, points, catalog)
    inputs, results = dict(points.inputs), Columns()
    good = points.good if len(points.good) < n_rows else slice(None)
    made_of = None if wanted is None else quantities_of(wanted)
    grid, in_flight = _at_rates(points.grid, longest, made_of) if len(points.good) else (points.grid, None)
    if in_flight is not None:
        inputs["concurrent_requests"] = numpy.array(inputs["concurrent_requests"], float)
        inputs["concurrent_requests"][good] = in_flight
    answered = grid.again({})  # with words and verdicts in place of numbers
    if len(points.good):
        judge(answered, points.distinct, points.axis, RESULTS if wanted is None else wanted)
        _put_names(answered, points)
        for name in ("weight_dtype", "kv_cache_dtype"):  # show what "auto" stood for
            inputs[name] = numpy.array(inputs[name], object)
            inputs[name][good] = answered.spread(name, ROW)
    for name in (*RESOLVED, *RESULTS):
        if wanted is not None and name not in wanted and name != "error":
            continue
        results[name] = numpy.full(n_rows, None if name in TEXTS else numpy.nan, object if name in TEXTS else float)
        if len(points.good) and name in answered.columns:
            answered.combine(name, functools.partial(_as_result, name), (name,), ROW)
            results[name][good] = answered.spread(name, ROW)
    failed = numpy.flatnonzero(numpy.not_equal(points.errors, NO_TEXT))
    results["error"][failed] = [" ".join(error.splitlines()) for error in points.errors[failed]]
    follows = () if in_flight is None else ("concurrent_requests",)
    return Sized(points, grid, inputs, results, measurements, follows)


# Inputs of a deployment that bear on how fast it runs a given load, beside its names and sizes.
OF_PACE = (
    "engine_version", "kv_cache_dtype", "gpu_memory_utilization", "max_model_len", "max_num_seqs",
    "max_num_batched_tokens", "block_size", "draft_model", "kv_cache_memory_bytes", "kv_allocation",
    "hybrid_kv_manager", "enable_prefix_caching", "enforce_eager", "skip_mm_profiling", "network_gbps",
)  # fmt: skip


def _measurements(
    measured: Sequence[Reading], given: Mapping[str, Column], points: Points, catalog: Catalog
) -> Measurements:
    """The measurements of the rows, whose factors are put into the grid."""
    if not measured:
        return NOTHING_MEASURED
    refuse_factors(given, measured)
    columns = {name: points.inputs[name][points.good].tolist() for name in OF_PACE}
    settings = {
        name: column[0]
        for name, column in columns.items()
        if column and all(value == column[0] for value in column) and not is_blank(column[0])
    }
    return put_measured(points, measurements_of(measured, asked_of(points), settings, catalog))


def _put_names(grid: Grid, points: Points) -> None:
    """Put the catalog's ids and precisions that the names of rows stand for into the grid."""
    for name, resolved_name in (
        ("model_id", attrgetter("model.id")),
        ("sized_as", attrgetter("model.sized_as")),
        ("gpu_id", attrgetter("gpu.id")),
        ("weight_dtype", attrgetter("weight_dtype")),
        ("kv_cache_dtype", attrgetter("kv_cache_dtype")),
    ):
        grid.put((points.axis,), {name: objects(names and resolved_name(names) for names in points.distinct)})


def _at_rates(facts: Grid, longest: bool, wanted: Collection[str] | None) -> tuple[Grid, Column | None]:
    """The quantities of deployments; and, where some have only a rate, how many requests all have at once.

    Memory and times are those of whole requests, the next ones above; where they queue without bound, as many as memory
    holds.
    """
    grid = facts.again({})
    asked = numpy.asarray(facts.spread("concurrent_requests", ROW), float)
    follows = numpy.isnan(asked)
    if not follows.any():
        evaluate_deployments(grid, wanted, longest)
        return grid, None
    grid.put(ROW, {"closed_loop": (~follows).astype(float)})
    whole = asked.copy()
    whole[follows] = requests_at_rate(grid.restricted({"row": numpy.flatnonzero(follows)}))
    grid.put(ROW, {"concurrent_requests": whole})
    if wanted is not None:
        wanted = {*wanted, "grows", *in_flight_at_peak.inputs}
    evaluate_deployments(grid, wanted, longest)
    grid.evaluate((in_flight_at_peak,), ROW)
    on_average = _as_result("requests_per_second", grid.spread("in_flight_at_peak", ROW))
    in_flight = numpy.where(follows & (grid.spread("grows", ROW) == 0), on_average, whole)
    for name in [n for n in grid.columns if n.startswith("output_tokens_per_second") and "band" not in n]:
        grid.put(ROW, {name: grid.spread(name, ROW) * (in_flight / whole)})
    return grid, in_flight


def _as_result(name: str, column: Column) -> Column:
    """Whole numbers rounded up, times and rates to 12 digits, other numbers and texts unchanged."""
    if name in TEXTS:
        return column
    if name not in FRACTIONS:
        return round_up(numpy.asarray(column, float))
    if "_second" not in name:
        return column
    column = numpy.asarray(column, float)  # more digits would be noise, and differ from machine to machine
    size = numpy.where(numpy.isfinite(column) & (column != 0), numpy.abs(column), 1)
    scale = _POWERS.take((11 - numpy.floor(numpy.log10(size))).astype(int) + _MOST, mode="clip")
    return numpy.round(column * scale) / scale


Function = TypeVar("Function", bound=Callable[..., object])


def with_options(*names: str, **defaults: Raw) -> Callable[[Function], Function]:
    """Names the options of a function in its signature, so that a notebook completes them."""

    def named(function: Function) -> Function:
        own = inspect.signature(function).parameters.values()
        kept = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        options = {**dict.fromkeys(names), **defaults}
        for parameter in kept:
            options.pop(parameter.name, None)
        asked = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=options[name]) for name in options]
        function.__signature__ = inspect.Signature([*kept, *asked])  # type: ignore[attr-defined]
        return function

    return named


@with_options(**DEFAULTS)
def size(*, catalogs: Catalogs = (), measured: Any = None, **inputs: Any) -> dict[str, Any]:
    """One deployment, part by part: every input with the defaults used, and every result that `sheetgen explain` lists.

    `context` is the short spelling of context_tokens. The load is `concurrent_requests`, a rate, or `users`: people who
    ask `requests_per_user_per_day` each, or of whom `active_fraction` ask at once. From a rate and from people the
    requests at once follow. What does not fit is a verdict, not an error. `measured` is a benchmark's file, or a list
    of them, as `--measured` takes it: its points set the times where they are of this deployment. Raises ScenarioError
    or CatalogError with every problem found.
    """
    sized = sized_point({**inputs, "measured": measured}, catalog_of(catalogs))
    return with_measured(record(sized), sized.measured)


def catalog_of(catalogs: Catalogs) -> Catalog:
    """The shipped catalogs with one folder or several laid over them; catalogs that are open already are returned
    unchanged."""
    if isinstance(catalogs, Catalog):
        return catalogs
    folders = (catalogs,) if isinstance(catalogs, (str, Path)) else catalogs
    if not isinstance(folders, Sequence) or not all(isinstance(folder, (str, Path)) for folder in folders):
        raise ScenarioError(f"catalogs is {shown(repr(catalogs))}. It must be a folder, or a list of folders.")
    return Catalog(*folders)


def check_types(given: Options) -> None:
    """Refuse values of a type that no input has, and blanks where a value is meant."""
    problems = []
    for name, value in given.items():
        if isinstance(value, str):
            if not value.strip():
                problems.append(f"{name} is blank. Give a value, or leave it out for its default.")
        elif name == "measured":
            continue
        elif name in WORDS and not (name == "as_of" and isinstance(value, datetime.date)):
            allowed = "text, or a list of texts" if name in NAME_LISTS and name not in NAMES else "text"
            problems.append(f"{name} is {shown(repr(value))}. It must be {allowed}.")
        elif name not in WORDS and not isinstance(value, numbers.Number):
            problems.append(f"{name} is {shown(repr(value))}. It must be a number.")
    if problems:
        raise ScenarioError(*problems)


def _readings(measured: Raw, catalog: Catalog) -> list[Reading]:
    """The measured points; what reads them is loaded only where some are given."""
    if measured is None:
        return []
    from sheetgen.measured.read_measured import read_measured

    return read_measured(measured, catalog)


def sized_point(inputs: Options, catalog: Catalog) -> Sized:
    """One deployment as `Sized`; raises where it cannot be sized."""
    named: dict[str, Raw] = {}
    for name, value in inputs.items():
        long = SHORT_SPELLINGS.get(name, name)
        if name != "measured" and long not in DEFAULTS:
            raise ScenarioError(f"unknown input {shown(name)!r}.{did_you_mean(name, (*DEFAULTS, *SHORT_SPELLINGS))}")
        if named.get(long) is not None and value is not None:
            raise ScenarioError(f"{long} is given twice, as {long} and by its short spelling. Keep one.")
        if value is not None:
            named[long] = value
    measured = _readings(named.pop("measured", None), catalog)
    check_types(named)
    sized = size_columns({name: [value] for name, value in named.items()}, 1, catalog, measured=measured)
    if (error := sized.points.errors[0]) is not None:
        raise ScenarioError(*error.splitlines())
    return sized


def record(sized: Sized, row: int = 0) -> dict[str, Any]:
    """One row as plain values: whole numbers as int, what does not apply as None."""
    return {name: _plain(name, column[row]) for name, column in {**sized.inputs, **sized.results}.items()}


def _plain(name: str, value: Raw) -> Raw:
    if value is None or name in TEXTS or name in NAMES:
        return value
    if value != value:
        return None
    is_whole = name not in FRACTIONS and not name.endswith("_fraction") and value == int(value)
    return int(value) if is_whole else float(value)


def size_frame(
    frame: pandas.DataFrame,
    *,
    columns: str | Sequence[str] | None = None,
    catalogs: Catalogs = (),
    measured: Any = None,
) -> pandas.DataFrame:
    """Size every row of `frame`, all rows at once.

    Returns its columns, completed with the defaults used, and all results, in the same order and with the
    same index: numbers as float64 with NaN for null, texts (and `fits`) as object. Unknown columns stay as
    they are; `context` is read where the long name is missing. A row that cannot be sized has
    its reason in `error`. `measured` as in `size`: points set the times of the rows whose deployment they are of.
    `columns` are the only ones to be returned, in this order, of the frame, the inputs and the results: what they do
    not depend on is not worked out.
    """
    import pandas

    if not isinstance(frame, pandas.DataFrame):
        raise ScenarioError(f"size_frame takes a pandas DataFrame, not {shown(type(frame).__name__)}.")
    if twice := sorted({str(c) for c in frame.columns[frame.columns.duplicated()]}):
        raise ScenarioError(*(f"column {shown(name)} stands twice in the frame. Keep one." for name in twice))
    short = {long: name for name, long in SHORT_SPELLINGS.items() if name in frame and long not in frame}
    given = {name: frame[short.get(name, name)].to_numpy() for name in DEFAULTS if short.get(name, name) in frame}
    catalog = catalog_of(catalogs)
    points = _readings(measured, catalog)
    wanted = None if columns is None else _columns_of(frame, columns)
    whole: Columns = {}
    named: NamedRows = {}
    for start in range(0, max(1, len(frame)), ROWS_AT_ONCE):
        stop = min(len(frame), start + ROWS_AT_ONCE)
        part = {name: column[start:stop] for name, column in given.items()}
        sized = size_columns(part, stop - start, catalog, named, points, wanted=wanted)
        for name, column in {**sized.inputs, **sized.results}.items():
            if wanted is not None and name not in wanted:
                continue
            if not start:
                whole[name] = numpy.empty(len(frame), object if name in NAMES or name in TEXTS else float)
            whole[name][start:stop] = column
    made: dict[Any, Column] = {
        name: pandas.Series(column, index=frame.index, dtype=column.dtype, copy=False) for name, column in whole.items()
    }
    names = dict.fromkeys((*frame.columns, *made)) if wanted is None else wanted
    values = {name: made[name] if name in made else frame[name] for name in names}
    return pandas.DataFrame(values, index=frame.index, copy=False)


def _columns_of(frame: pandas.DataFrame, columns: str | Sequence[str]) -> list[str]:
    """The columns that are asked for, each once. Raises ScenarioError with every name that no column has."""
    asked = list(dict.fromkeys(parse.words(columns) if isinstance(columns, str) else columns))
    named = (*frame.columns, *DEFAULTS, *RESOLVED, *RESULTS)
    wrong = [name for name in asked if name not in named]
    if wrong or not asked:
        unknown = [f"unknown column {shown(name)!r}.{did_you_mean(str(name), map(str, named))}" for name in wrong]
        raise ScenarioError(*unknown or ["columns is blank. Name columns, or leave it out."])
    return asked


class Answered(dict[str, Any]):
    """An answer as `recommend --json` has it; a notebook shows it, and print() prints it, as `recommend` does."""

    def __init__(self, document: Mapping[str, Any], question: Question, record: Record) -> None:
        super().__init__(document)
        self._question, self._cell = question, record.cells[0]

    def _lines(self) -> tuple[str, str, list[Line]]:
        """The question, the answer, and labelled lines."""
        from sheetgen.report.answer_lines import Shown, answer_lines, answer_words, question_words

        stated = (self._question, self._cell)
        lines = answer_lines(*stated, Shown()) if self._cell.chosen else ()
        return question_words(*stated), answer_words(*stated), list(lines)

    def __str__(self) -> str:
        asked, answer, lines = self._lines()
        return "\n".join((asked, answer, *(f"{label:10} {text}" for label, text in lines)))

    def _repr_html_(self) -> str:
        """The same as HTML, escaped."""
        from html import escape

        asked, answer, lines = self._lines()
        rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(line)}</td></tr>" for label, line in lines)
        return f"<p>{escape(asked)}</p><p><b>{escape(answer)}</b></p><table>{rows}</table>"


REVERSE = ("budget_usd", "have")


@with_options(*ONE_LOAD, *(asked.asked_as for asked in asked_in(*OPTION_GROUPS)), *REVERSE)
def recommend(*, catalogs: Catalogs = (), **options: Any) -> dict[str, Any]:
    """The cheapest instances that hold one load: `recommend(model="70b", context="16k", users=200)`.

    Takes the options of `build`, but one model, one context and one load (users, concurrent_requests, or a rate)
    instead of workloads and tiers; model, gpus, providers, vendors and instances may be lists of text. Returns the
    record of `build --format json` with that one cell, whose keys stand at the top as well.

    The reverse question: with budget_usd (US dollars a month) or have (one's own machines, `h100:16`, `l40s:8x4`; what
    is between them is taken to be as fast as where they are rented) and no load it returns what these serve at most
    within the targets, as `recommend --json` does: served_at_target (requests at once), requests_per_second,
    answers and answers_per_second (layouts for each), and next_step. With survive it is what is left after one loss.

    Raises ScenarioError or CatalogError with every problem found.
    """
    catalog, reverse = catalog_of(catalogs), {name: options.pop(name, None) for name in REVERSE}
    if any(value is not None for value in reverse.values()):
        return reversed_question(options, catalog, **reverse).record()
    solved = recommended(options, catalog)
    record = sheet_record(solved)
    return Answered(recommend_document(record, solved.question), solved.question, record)


def reversed_question(options: Options, catalog: Catalog, budget_usd: float | str | None, have: str | None) -> Reverse:
    """The load that so many US dollars a month, or one's own machines, serve at most, and the cost of the next step.

    Raises ScenarioError where both are given, or a load, which is what they ask for.
    """
    from sheetgen.answer.reverse import with_machines, within_budget
    from sheetgen.question.stated_load import A_LOAD

    given = [name for name in A_LOAD if options.get(name) is not None]
    if given or (budget_usd is not None and have is not None):
        beside = f", not with {' and '.join(given)}" if given else ""
        raise ScenarioError(f"budget_usd and have ask for the load. Give one of them{beside}.")
    question = question_of(options, catalog)
    if budget_usd is not None:
        dollars = parse.Kind(low=0.01, high=1e12, decimal=True)
        as_text = isinstance(budget_usd, str)
        usd = dollars.parse(budget_usd, "budget_usd") if as_text else dollars.read(budget_usd, "budget_usd")
        reversed_answer = within_budget(question, usd)
    else:
        if not isinstance(have, str):
            raise ScenarioError(f"have is {shown(repr(have))}. It must be text, such as h100:16.")
        reversed_answer = with_machines(question, have, catalog)
    # With a budget, the next step is everything that serves one more request; beside one's own machines, what is
    # rented for that request alone.
    more = 1 if reversed_answer.machines else reversed_answer.served_at_target + 1
    return reversed_answer.with_step(recommended({**options, "concurrent_requests": more}, catalog))


def recommend_document(record: Record, question: Question) -> dict[str, Any]:
    """The answer of `recommend` as JSON has it: the keys of its one cell stand at the top as well."""
    from sheetgen.answer.answer_record import as_json

    answer: Json = as_json(record)
    answer["inputs"]["users"] = question.loads[0].users
    return {**answer, **answer["cells"][0]}


def sheet_record(solved: Solution, levers: EveryLever | None = None) -> Record:
    """The record of an answer, with the fingerprints of its deployments' failures. levers: those of every load,
    evaluated where None."""
    from sheetgen.answer.levers import levers_of_sheet
    from sheetgen.answer.recording import record_of
    from sheetgen.report.fingerprints import with_fingerprints
    from sheetgen.report.near_ties import with_reasons
    from sheetgen.report.pay_less_words import with_pay_less

    levers = levers_of_sheet(solved) if levers is None else levers
    question = solved.question
    record = with_reasons(record_of(solved, levers))
    return with_fingerprints(with_pay_less(record, question), question)


class Answer(NamedTuple):
    """A sheet's question answered: the record, the question, and a function that makes the workbook beside a page."""

    record: Record
    question: Question
    book: Callable[[Page], Book]


def answered(question: Question) -> Answer:
    """The answer of a sheet."""
    from sheetgen.answer.solve import solve

    return answer_of(solve(question))


def answer_of(solved: Solution) -> Answer:
    """The answer of a sheet whose question is solved."""
    from sheetgen.answer.levers import levers_of_sheet
    from sheetgen.answer.smaller_model import with_smaller_model
    from sheetgen.answer.ways_to_pay import with_europe

    levers = levers_of_sheet(solved)
    record = with_smaller_model(with_europe(sheet_record(solved, levers), solved), solved)

    def book(page: Page) -> Book:
        from sheetgen.book import build_book
        from sheetgen.book.decision_choices import decision

        return build_book(solved, record, page, levers, decision(solved))

    return Answer(record, solved.question, book)


def recommended(options: Options, catalog: Catalog) -> Solution:
    """The solved question of one load, as `recommend` asks it; on demand where the class that was requested is no
    answer."""
    from sheetgen.answer.declined_class import in_class_or_on_demand
    from sheetgen.answer.solve import solve

    def on_demand() -> Question:
        return question_of({**options, "purchase": ON_DEMAND}, catalog)

    return in_class_or_on_demand(solve(question_of(options, catalog, on_demand_where_unsold=True)), on_demand)


def _context_of(asked: Options) -> Raw:
    """The context where none is stated: prompt and answer together where both are, else the default."""
    lengths = [asked.get(name) for name in ("input_tokens", "output_tokens")]
    if any(length is None for length in lengths):
        return DEFAULTS["context_tokens"]
    return sum(0 if str(length).strip() == "0" else parse.tokens(length, "context") for length in lengths)


def question_of(options: Options, catalog: Catalog, on_demand_where_unsold: bool = False) -> Question:
    """The question of one load, as `recommend` asks it. on_demand_where_unsold: as `ask` has it."""
    from sheetgen.question.sheet_question import OPTIONS, ask

    asked = {name: value for name, value in options.items() if value is not None}
    for name, value in asked.items():
        if name not in ONE_LOAD and name not in OPTIONS:
            raise ScenarioError(f"unknown option {shown(name)!r}.{did_you_mean(name, (*ONE_LOAD, *OPTIONS))}")
        if name in NAME_LISTS and isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value):
            asked[name] = ",".join(value)
    check_types(asked)
    if "context" in asked and "context_tokens" in asked:
        raise ScenarioError("context_tokens is given twice, as context_tokens and by its short spelling. Keep one.")
    model = asked.pop("model", "")
    if len(parse.words(model)) != 1:
        raise ScenarioError(f"model is {shown(model)!r}. Name one, such as 70b; `build` takes several.")
    load = {"context_tokens": asked.pop("context", _context_of(asked))}
    return ask(catalog, {"models": model, **load, **asked}, on_demand_where_unsold)
