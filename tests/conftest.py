"""The option --long, the order of the files, and what every test's file may rely on.

Lets the helpers explain a failed assert (pyproject.toml puts their folders on the path); says what tests counted.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import gc
import os
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies
from option_values import OptionValue
from xdist.scheduler import LoadFileScheduling

from sheetgen import api
from sheetgen.answer import declined_class, levers, recording
from sheetgen.answer import solve as solving
from sheetgen.answer.answer_record import Record
from sheetgen.answer.solution import Solution
from sheetgen.brand import Brand
from sheetgen.catalog import Catalog, base, default_folder, load
from sheetgen.catalog.engines import Engine
from sheetgen.live import live_facts, live_page
from sheetgen.plan import bridge, cheaper, findings, read_plan, solve_plan, stated_plan
from sheetgen.plan.bridge import Last
from sheetgen.plan.cheaper import Closing, Lever, Trials
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import Answer
from sheetgen.question import sheet_question
from sheetgen.question.market import Candidate, Filters, OfMarket, _RunsOn
from sheetgen.question.overrides import Written
from sheetgen.question.sheet_question import Question
from sheetgen.readback import compared_facts, month_bridge, pulled, pulled_plan
from sheetgen.writers import pdf, plan_page, xlsx_library
from sheetgen.writers.layout import Spacing

pytest.register_assert_rewrite("recalculation", "books", "money_cells", "agreement")

# What a test holds is seldom garbage, and to look for it as often as Python does takes a fifth of the time; at a tenth
# of this threshold it still took a twenty-fifth.
gc.set_threshold(500_000, 10, 10)

# Thousands of tests open the shipped catalogs anew: what a file of them says is worked out once a process.
_read_text = base.read_text
_kept_text = functools.lru_cache(512)(_read_text)
base.read_text = lambda text, where, repeated=None: (
    _kept_text(text, where) if repeated is None else _read_text(text, where, repeated)
)


@functools.lru_cache(512)
def _entry(document: ById, schema: type[base.Entry]) -> base.Entry:
    return base.validate(document.it, schema)


class ById:
    """An object as the key of a cache: two are the same where they are one object."""

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


load.validate = lambda document, schema: _entry(ById(document), schema)

# The fingerprint of the shipped catalogs, which each of these tests' questions has, reads all their files.
_sha256 = Catalog.catalog_sha256
_shipped = functools.cache(Catalog)
_sha256_shipped = functools.cache(lambda: _sha256(Catalog()))


def _is_shipped(catalog: Catalog) -> bool:
    return [folder.path for folder in catalog.folders] == [default_folder()] and not catalog._imported


Catalog.catalog_sha256 = lambda catalog: _sha256_shipped() if _is_shipped(catalog) else _sha256(catalog)

# Most workbooks that tests pull and compare were built as one that another test reads, and an edited one is read for
# each form of output: what `build` makes of its options is kept.
_build_anew = pulled._build_anew


class Asked:
    """The question of a build as the key of a cache: two are the same where they say the same of one catalog, wherever
    it was written."""

    def __init__(self, catalog: Catalog, options: Mapping[str, OptionValue], *more: Any) -> None:
        plain = {name: value.data if isinstance(value, Written) else value for name, value in options.items()}
        self.it, self.key = (catalog, options, *more), (id(catalog), repr((plain, more)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asked) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


_kept_build = functools.lru_cache(12)(lambda asked: _build_anew(*asked.it))


def _build_once(catalog: Catalog, options: Mapping[str, OptionValue], *more: Any) -> pulled.Built:
    if _shipped()._imported:  # by a build with a model of its own: that catalog is no longer the shipped one
        _shipped.cache_clear()
    return _kept_build(Asked(_shipped() if _is_shipped(catalog) else catalog, options, *more))


pulled._build_anew = _build_once

# Many tests put the same question, in a command, in a file or by themselves: it is asked and solved once.
_ask, _solve = sheet_question.ask, solving.solve
_kept_question = functools.lru_cache(48)(lambda asked, day, unsold: _ask(asked.it[0], asked.it[1], unsold))
_kept_solution = functools.lru_cache(32)(lambda question: _solve(question.it))


def _names_a_file(options: Mapping[str, OptionValue]) -> bool:
    """True where a file that may be another one by now is among the options."""
    texts = (value if isinstance(value, list | tuple) else [value] for value in options.values())
    words = (word for of_option in texts for text in of_option if isinstance(text, str) for word in text.split(","))
    return any(("/" in word or "." in word) and Path(word).exists() for word in words)


def _ask_once(
    catalog: Catalog,
    options: Mapping[str, OptionValue],
    on_demand_where_unsold: bool = False,
    there: Sequence[Candidate] = (),
) -> Question:
    if not _is_shipped(catalog) or _shipped()._imported or _names_a_file(options) or there:
        return _ask(catalog, options, on_demand_where_unsold, there)
    day = os.environ.get("SOURCE_DATE_EPOCH") or datetime.date.today()
    return _kept_question(Asked(_shipped(), options), day, on_demand_where_unsold)


sheet_question.ask = pulled.ask = month_bridge.ask = read_plan.ask = stated_plan.ask = _ask_once
solving.solve = pulled.solve = month_bridge.solve = declined_class.solve = lambda question: _kept_solution(
    ById(question)
)

# Of one solution commands say the same: `mail` of a workbook that is sent again and again.
_answer_of = api.answer_of
_kept_answer = functools.lru_cache(8)(lambda solved: _answer_of(solved.it))
api.answer_of = lambda solved: _kept_answer(ById(solved))

# Of one solution the levers and the record are the same, whichever test of a file, page or workbook reads them.
_levers_of, _record_of = levers.levers_of_sheet, recording.record_of
_kept_levers = functools.lru_cache(32)(lambda solved, rows: _levers_of(solved.it, rows))
_kept_record = functools.lru_cache(32)(lambda solved, levers: _record_of(solved.it, levers.it))
_no_levers = functools.cache(lambda n: ((),) * n)  # one object for each number of loads


def _levers_once(solved: Solution, rows: Iterable[int] | None = None) -> levers.EveryLever:
    return _kept_levers(ById(solved), None if rows is None else tuple(rows))


def _record_once(solved: Solution, levers: levers.EveryLever = ()) -> Record:
    return _kept_record(ById(solved), ById(levers if any(levers) else _no_levers(len(levers))))


levers.levers_of_sheet = _levers_once
recording.record_of = _record_once

# Of a plan that says the same of one catalog the answer, and all that follows from it, are the same, too.
_solved_plan, _findings = solve_plan.solved_plan, findings.findings
_kept_plan = functools.lru_cache(24)(lambda asked, timed: _solved_plan(asked.it, timed))
_kept_findings = functools.lru_cache(24)(lambda answer: _findings(answer.it))


class AskedPlan(Asked):
    """A plan as the key of a cache, by all that was read of it."""

    def __init__(self, plan: Plan) -> None:
        parts = (getattr(plan, part.name) for part in dataclasses.fields(plan) if part.repr)
        self.it, self.key = plan, repr(tuple(parts))


def _plan_once(plan: Plan, timed: bool = True, *how: Any, **named: OptionValue) -> Answer:
    if how or named or not _is_shipped(plan.catalog):
        return _solved_plan(plan, timed, *how, **named)
    return _kept_plan(AskedPlan(plan), timed)


@functools.wraps(_findings)
def _findings_once(answer: Answer, last: Last | None = None) -> findings.Findings:
    return _kept_findings(ById(answer)) if last is None else _findings(answer, last)


solve_plan.solved_plan = pulled_plan.solved_plan = bridge.solved_plan = cheaper.solved_plan = _plan_once
findings.findings = pulled_plan.findings = _findings_once

# And so is what would cost less, whatever plan it is compared with.
_cheaper, _closing = findings.cheaper, findings.closing


class OfAnswer(ById):
    """Trials as the key of a cache: two are the same where they change the same answer."""

    def __init__(self, trials: Trials) -> None:
        super().__init__(trials.answer)
        self.trials = trials


@functools.lru_cache(24)
def _levers_of_plan(key: OfAnswer) -> tuple[tuple[Lever, ...], Closing | None]:
    levers = _cheaper(key.trials)
    return levers, _closing(key.trials, levers)


def _closing_once(trials: Trials, levers: Sequence[Lever]) -> Closing | None:
    kept, closing = _levers_of_plan(OfAnswer(trials)) if levers else ((), None)
    return closing if levers is kept else _closing(trials, levers)


findings.cheaper = lambda trials: _levers_of_plan(OfAnswer(trials))[0]
findings.closing = _closing_once

# The facts of a live page of the same models are gathered once, and packed once.
_facts_of_catalog, _packed = live_facts.facts_of_catalog, live_page.packed
_kept_facts = functools.lru_cache(4)(lambda names, as_of, day: _facts_of_catalog(_shipped(), names, as_of))
_kept_packed = functools.lru_cache(4)(lambda facts: _packed(facts.it))


def _facts_once(catalog: Catalog, names: Sequence[str], as_of: str | None = None) -> live_facts.Json:
    if not _is_shipped(catalog) or _shipped()._imported:
        return _facts_of_catalog(catalog, names, as_of)
    return _kept_facts(tuple(names), as_of, os.environ.get("SOURCE_DATE_EPOCH") or datetime.date.today())


class KeptMarket:
    """The instances that may be rented, worked out when first asked for."""

    def __init__(self, market: OfMarket) -> None:
        self.it = market

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.it, name)
        setattr(self, name, value)
        return value


_kept_market = functools.lru_cache(400)(lambda engine, filters: KeptMarket(OfMarket(_shipped(), engine, filters)))


def _market_once(catalog: Catalog, engine: Engine, filters: Filters) -> OfMarket | KeptMarket:
    if not _is_shipped(catalog) or _shipped()._imported:
        return OfMarket(catalog, engine, filters)
    return _kept_market(_RunsOn.of(engine), filters)


live_facts.facts_of_catalog, live_facts.OfMarket = _facts_once, _market_once
live_page.packed = lambda facts: _kept_packed(ById(facts))

# A page with the same words is laid out once.
_laid_out = pdf.laid_out
_kept_layout = functools.lru_cache(12)(_laid_out)


def _laid_out_once(html: str, templates: Path, spacing: Spacing, brand: Brand | None) -> pdf.Layout:
    return _kept_layout(html, templates, spacing, None) if brand is None else _laid_out(html, templates, spacing, brand)


pdf.laid_out = plan_page.laid_out = _laid_out_once

# Workbooks are packed in an eighth of the time, and a fifth larger.
SHIPPED_LEVEL, xlsx_library.LEVEL = xlsx_library.LEVEL, 1

# Neither the processes of a run nor the commands that they start compile the sources each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# `diff` reads the workbook that all tests of a file edit again and again, and an edited one for each form of output.
compared_facts.read_workbook_bytes = functools.lru_cache(8)(compared_facts.read_workbook_bytes)

# With one file after the other on each of two processes, those that take more than ten seconds come first, the longest
# first, or one process waits at the end.
OF_THE_EXAMPLE = (
    "plan/test_plan_documents.py", "plan/test_plan_json.py", "plan/test_plan_compared.py", "readback/test_pull_plan.py",
    "test_schemas.py", "plan/test_plan_arithmetic.py", "plan/test_plan_workbook.py", "plan/test_plan_by_hand.py",
)  # fmt: skip  # files of one process, in which the template's plan is worked out once
LONGEST_FIRST = (
    *OF_THE_EXAMPLE,
    "book/test_decision.py", "plan/test_plan_levers.py", "test_docs.py", "test_choice_brute_force.py",
    "readback/test_pull_workbook.py", "readback/test_diff_command.py", "writers/test_pdf_page.py",
    "report/test_approval.py", "book/test_book_currency.py", "book/test_recalculates.py", "plan/test_plan_orders.py",
    "mail/test_mail_command.py", "plan/test_plan_reckoned_again.py", "fuzz/test_fuzz.py", "book/test_edits.py",
    "live/test_live_beside.py", "live/test_live_page.py", "live/test_live_answers.py", "test_api.py",
    "writers/test_request_page.py", "cli/test_price_files.py", "cli/test_market.py", "test_every_number.py",
    "book/test_money_sheet.py", "book/test_refuses.py", "readback/test_pull_libreoffice.py", "opens/test_readers.py",
    "pdf/test_standards.py", "book/test_rates_in_workbook.py", "book/test_hostile.py", "catalog/test_regions.py",
)  # fmt: skip
PLACES = {Path(__file__).parent / name: i for i, name in enumerate(LONGEST_FIRST)}


class FilesTogether(LoadFileScheduling):
    """A file of tests runs in one process, and so do those of the example of a plan."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return OF_THE_EXAMPLE[0] if file.partition("/")[2] in OF_THE_EXAMPLE else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also more seeds, books and edits of what is tested without")


def pytest_configure(config: pytest.Config) -> None:
    in_long = config.getoption("--long")
    if in_long:
        os.environ["SHEETGEN_TESTS"] = "long"
    settings.register_profile("gate", max_examples=10, derandomize=True, database=None, deadline=None)
    settings.register_profile("long", max_examples=500, deadline=None, print_blob=True)
    settings.load_profile("long" if in_long else "gate")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Hypothesis collects garbage before its first example, which takes seconds once tests hold much: here little is
    held."""
    given(strategies.none())(lambda _: None)()


def pytest_unconfigure() -> None:
    """pytest collects garbage several times at its end, which takes seconds where tests hold much: nothing of that."""
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")] + list(_more_of_some(items))
        left = set(left_out)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: PLACES.get(item.path, len(PLACES)))


def _more_of_some(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of a test marked `some(n)` all cases but n, drawn by its name: always the same."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") and not item.get_closest_marker("long"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, of_it in cases.items():
        (n,) = of_it[0].get_closest_marker("some").args
        drawn = _drawn([_values(item) for item in of_it], n, random.Random(name))
        yield from (item for i, item in enumerate(of_it) if i not in drawn)


def _values(item: pytest.Item) -> set[tuple[str, int]]:
    """The values of a case's parameters: cases with the same one have the same object. pytest's `indices` number cases,
    not values."""
    return {(name, id(value)) for name, value in item.callspec.params.items()}


def _drawn(values: Sequence[set[tuple[str, int]]], n: int, draw: random.Random) -> set[int]:
    """The places of n cases that together have as many values of each parameter as n cases can."""
    n = min(n, len(values))
    first = draw.sample(range(len(values)), n)
    left = [*first, *(i for i in draw.sample(range(len(values)), len(values)) if i not in first)]
    drawn: set[int] = set()
    had: set[tuple[str, int]] = set()
    while len(drawn) < n:
        best = max(left, key=lambda i: len(values[i] - had))
        left.remove(best)
        drawn.add(best)
        had |= values[best]
    return drawn


@pytest.fixture(scope="session", autouse=True)
def shared_books(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The workbooks that one process of a run has built are there for the other."""
    import books  # which reads what is patched above

    if "PYTEST_XDIST_WORKER" in os.environ:
        books.SHARED = tmp_path_factory.getbasetemp().parent


@pytest.fixture
def packed_as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of the bytes of a workbook, or of its size."""
    monkeypatch.setattr(xlsx_library, "LEVEL", SHIPPED_LEVEL)


@pytest.fixture
def nothing_is_kept() -> Iterator[None]:
    """For a test that what is worked out twice is the same, or that works it out by another rule."""
    _keep_nothing()
    yield
    _keep_nothing()


def _keep_nothing() -> None:
    of_sheets = (_kept_question, _kept_solution, _kept_build, _kept_answer, _kept_levers, _kept_record)
    of_plans = (_kept_plan, _kept_findings, _levers_of_plan)
    for kept in (*of_sheets, *of_plans, _kept_market, _kept_facts, _kept_packed, _kept_layout):
        kept.cache_clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """End the run with what tests recorded as `counted`, from every process of it."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "counted":
                terminalreporter.write_line(text)
