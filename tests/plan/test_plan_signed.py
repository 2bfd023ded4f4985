"""Whether what is signed can be placed and believed: regions, what ends on its day, one rounding, and words that hold
of the class, the number and the day that they speak of."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from test_plan_orders import NC40, NC80, SERVICE, whole_plan

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.cli.diff_text import plan_changes_since
from sheetgen.errors import ScenarioError
from sheetgen.plan.bridge import Bridge, Calendar, Steps
from sheetgen.plan.decisions import Unserved
from sheetgen.plan.findings import Findings
from sheetgen.plan.pages import PlanPage, _changed, _shed, decision_words, plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.schema import Head
from sheetgen.report.sentences import BLOCK_ENDS, SPOT_TAKEN

CATALOG = Catalog()
P5 = "aws/p5.4xlarge"
ROWS = {row.id: row for row in CATALOG.instances()}
BUSINESS = SERVICE | {"profile": "business"}


def texts(page: PlanPage) -> list[str]:
    """All lines and rows of the document."""
    lines = [str(line) for section in page.sections for line in section.lines]
    rows = [section.table.rows for section in page.sections if section.table]
    return lines + [" | ".join(map(str, row)) for table in rows for row in table]


def in_the_book(whole: Findings) -> list[str]:
    """The words of the workbook's sheet of decisions."""
    ways = [(way, i > 0) for decision in whole.decisions for i, way in enumerate(decision.ways)]
    return [str(decision_words(whole.answer, *way)) for way in ways]


@pytest.mark.parametrize(("buy", "told", "other"), [("capacity-block", BLOCK_ENDS, SPOT_TAKEN), ("on-demand", "", "")])
def test_of_a_capacity_block_it_is_told_that_it_ends(buy: str, told: str, other: str) -> None:
    """Five quarters of blocks had no word about it, where spot has one."""
    supply = {"allowed": {"instances": ["aws/p5.48xlarge"]}}
    whole = whole_plan([SERVICE | {"demand": {"at_once": 2000}}], 2, policy={"buy": buy}, supply=supply)
    orders = [decision for decision in record_of(whole)["decisions"] if decision["what"] == "order"]
    assert orders and {decision["purchase"] for decision in orders} == {buy}
    assert all((BLOCK_ENDS in decision["cautions"]) == bool(told) for decision in orders)
    shown = texts(plan_page(whole))
    assert any("order" in line and BLOCK_ENDS in line.partition("commit")[0] for line in shown) == bool(told)
    assert not other or not any(other in line for line in shown)
    # The lever that buys them says it too.
    levers = {lever.change.name: lever.change.gives_up for lever in whole.cheaper}
    assert told or BLOCK_ENDS in levers["buy: capacity-block"]


def test_every_machine_that_is_signed_has_its_region() -> None:
    """An order named no region on paper, and a plan of two clouds was said to be of one."""
    services = [
        SERVICE | {"id": "one", "allowed": {"instances": [NC40]}},
        SERVICE | {"id": "two", "allowed": {"instances": [P5]}},
    ]
    committed = [{"id": "cud", "type": NC80, "count": 1, "purchase": "reserved-1yr", "until": "2027-09-30"}]
    whole = whole_plan(services, 2, supply={"allowed": {}, "committed": committed})
    page = plan_page(whole)
    regions = {name: f"{ROWS[name].provider} {ROWS[name].region}" for name in (NC40, P5, NC80)}
    assert len({regions[NC40], regions[P5]}) == 2 and all(" " in region.strip() for region in regions.values())
    orders = [decision for decision in whole.decisions if decision.what == "order"]
    assert {order.instance for order in orders} >= {P5}
    shown = texts(page)
    for order in orders:
        assert any("order" in line and regions[order.instance] in line for line in shown), order
    book = in_the_book(whole)
    assert sum(any(region in text for region in regions.values()) for text in book) == len(book)
    (first,) = (str(text) for label, text in page.brief.points if label == "First")  # of the mail
    assert regions[P5] in first or regions[NC40] in first
    # What is committed stands with what is rented, on paper and in the workbook.
    (line,) = (line for line in shown if line.startswith("Regions: "))
    rows = {str(row[1]): f"{row[0]} {row[2]}" for row in page.book["regions"].rows}
    assert rows[NC80] == regions[NC80] and "NC80adis" in line
    assert any(re.search(f"in {len({*rows.values()})} regions of 2 providers", line) for line in shown)
    alone = texts(plan_page(whole_plan([services[1]], 2, supply={"allowed": {"instances": [P5]}})))
    assert not any("regions" in line for line in alone)


@pytest.mark.parametrize("change", [0, -0.3])
def test_the_hours_save_of_what_is_rented_alone(change: float) -> None:
    """Late orders of a term, and their falling prices, made it $4,184 more with the hours than without them; and an
    order that is paid all month was told to be by the hour."""
    services = [BUSINESS | {"growth": 0.4, "demand": {"at_once": 4000}}, BUSINESS | {"id": "two", "buy": "on-demand"}]
    policy, prices = {"buy": "reserved-1yr", "approval_days": 60}, {"expected_change_per_year": change}
    whole = whole_plan(services, 4, policy=policy, prices=prices)
    rows = record_of(whole)["supply"]
    of_term = [row for row in rows if row["instance"] == NC40]
    assert of_term and not any(row["saves_usd"] for row in of_term)
    (line,) = (line for line in texts(plan_page(whole)) if line.startswith("Machines are rented for the hours"))
    (less,) = re.findall(r": \$([\d,]+) less than with", line)
    assert int(less.replace(",", "")) == pytest.approx(sum(row["saves_usd"] for row in rows), abs=1)
    orders = [decision for decision in whole.decisions if decision.what == "order"]
    assert {order.purchase for order in orders} == {"reserved-1yr", "on-demand"}
    assert all(("by the hour" in order.about) == (order.purchase == "on-demand") for order in orders)


def test_the_hours_of_days_before_an_order_is_there_save_nothing() -> None:
    """Two thirds of the days of one of four: the days on which none was there yet were counted, too."""
    services = [BUSINESS | {"profile": [1] * 24}, SERVICE | {"id": "two", "profile": "night", "demand": {"at_once": 1}}]
    whole = whole_plan(services, 1, policy={"approval_days": 60, "start_minutes": 0})
    (order,) = [decision for decision in whole.decisions if decision.what == "order"]
    assert order.late and order.n_instances == 4
    (row,) = record_of(whole)["supply"]  # three machines all day, and one from 22 to 6
    assert row["saves_usd"] == pytest.approx(row["held_usd"] / 4 * 16 / 24)


def test_a_decision_names_its_own_class() -> None:
    """A commitment for three years was "NC80adis (on-demand), reserved-3yr"."""
    supply = {"allowed": {"instances": [NC40]}}
    services = [SERVICE | {"buy": "on-demand"}]
    whole = whole_plan(services, 12, policy={"buy": "reserved-1yr"}, supply=supply)
    offered = [way for decision in whole.decisions for way in decision.ways if way.what == "commit"]
    assert offered and all(way.instance.endswith("(on-demand)") for way in offered)
    ways = [line for line in texts(plan_page(whole)) if "commit" in line]
    assert ways
    for line in ways:
        for words in re.findall(r"commit \d+ x [^:|]*", line):
            assert len(re.findall(r"on-demand|reserved-\dyr|capacity-block", words)) == 1, words


@pytest.mark.parametrize(("owned", "what"), [("l40s", "let end"), ("h100-nvl-94gb", "replace owned")])
def test_a_pool_that_nothing_needs_is_let_end(owned: str, what: str) -> None:
    """A pool that stood idle in all quarters was to be replaced, and had a row among what would change our mind."""
    pool = {"id": "old", "gpu": owned, "count": 2, "until": "2027-05-31", "gpus_per_machine": 1}
    whole = whole_plan([SERVICE], 4, supply={"allowed": {"instances": [NC40]}, "owned": [pool]})
    ways = [way for decision in whole.decisions for way in decision.ways]
    of_pool = [way for way in ways if "pool old" in way.about]
    assert [way.what for way in of_pool] == [what] and not of_pool[0].late
    minds = [line for line in texts(plan_page(whole)) if "let end" in line and "2027-Q2 |" in line]
    assert not minds and (of_pool[0].break_even is None) == (what == "let end")


def test_a_day_is_one_day() -> None:
    """It was late by 1 days, and four services were not served from a day to the same day, each in a line."""
    services = [SERVICE | {"id": f"s{i}"} for i in range(4)]
    whole = whole_plan(services, 2, as_of="2026-12-02", policy={"approval_days": 31})
    shown = [*texts(plan_page(whole)), *(check.failing for check in whole.checks), *record_of(whole)["warnings"]]
    text = "\n".join(shown)
    assert "late by 1 day:" in text and "on 2027-01-01" in text
    assert not re.search(r"\b1 days", text) and not re.search(r"from (\d{4}-\d\d-\d\d) to \1", text)
    late = next(decision for decision in whole.decisions if decision.late)
    day = datetime.date(2027, 1, 1)
    gaps = tuple(Unserved(s, 0, NC40, day, day, 1.0, "machines") for s in range(4))
    words = " ".join(map(str, _shed(whole.answer, replace(late, shed=gaps))))
    assert words.count("nothing else") == 1 and all(name in words for name in ("s0", "s1", "s2"))


@pytest.mark.parametrize(("currency", "rate"), [("USD", 1.0), ("EUR", 0.92)])
def test_the_bridge_is_the_same_in_the_mail_and_on_the_page(currency: str, rate: float) -> None:
    """The page bent parts so that they add up, and the mail did not: they differed by a dollar."""
    parts = {("users", "a"): 1.3, ("users", "b"): 1.3, ("price", None): 0.4}
    steps = Steps(1000.0, 1003.0, {key: usd / rate for key, usd in parts.items()})
    steps = Steps(1000.0 / rate, 1003.0 / rate, steps.of_services)
    bridge = Bridge(steps, steps, Calendar((), (), (), (), ()))
    head = Head.model_validate(
        {"start": "2027-Q1", "quarters": 1, "currency": currency, "fx_rate": rate}, by_alias=True, strict=False
    )
    data = {"plan": {"start": "2027-Q1", "quarters": 1, "currency": currency, "fx_rate": rate}, "services": [SERVICE]}
    plan = plan_of(Document("plan.yaml", data, {}), CATALOG)
    table = Counter[str]()
    for factor, _, asked, _ in _changed(plan, bridge).rows[1:-1]:
        table[str(factor)] += round(float(re.sub(r"[^\d.-]", "", str(asked))) * rate)
    for money in plan_changes_since("q1.json", "2026-11-26", bridge, head).money:
        told = {name: int(usd) for name, usd in re.findall(r"(\w+) \+?[$€](\d+)", str(money))}
        assert told == dict(table) and sum(told.values()) == 3


@pytest.mark.parametrize(
    ("allowed", "told"),
    [
        ({"purchase": ["on-demand"]}, "purchase is of the whole plan: write it in supply.allowed"),
        ({"exclude": ["spot"]}, "exclude is of the whole plan: write it in supply.allowed"),
        ({"gpus": ["l40s"]}, "Owned GPUs (old)"),
    ],
)
def test_what_a_service_cannot_be_held_on_is_refused_with_its_reason(allowed: dict[str, Any], told: str) -> None:
    """Of a class it was an unknown field, and of owned GPUs that no provider rents them, without a word of the pool."""
    pool = {"id": "old", "gpu": "l40s", "count": 8}
    supply = {"allowed": {"providers": ["azure", "gcp"]}, "owned": [pool]}
    with pytest.raises(ScenarioError, match=re.escape(told)):
        whole_plan([SERVICE | {"allowed": allowed}], 2, supply=supply)
