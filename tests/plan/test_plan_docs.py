"""The pages on the plan are true: the commands of the walk through a quarter run as they are written, and the table of
places is what the functions give."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path

import pytest
from amounts import IN_LONG, amount
from click.testing import CliRunner

from sheetgen.cli import main
from sheetgen.sizing.rates import exact_wait_fraction, z_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE, WALK = ((DOCS / name).read_text(encoding="utf-8") for name in ("plan.md", "how-to/plan-a-quarter.md"))
LOADS, SHARE = (1, 2, 5, 10, 50, 200, 1_000), 0.05
DRAWN = ("docx", "pdf")
MOST_OFF = 1  # place; 1.74 standard deviations are for many places


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", WALK, flags=re.DOTALL)


@pytest.mark.long
def test_every_command_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, in a folder that is empty but for what stands in the page. In the gate no PDF and no Word file is
    drawn, and of two drafts that are mailed one (test_plan_documents, pull/test_pull_plan)."""
    monkeypatch.chdir(tmp_path)
    Path("plans").mkdir()
    for kind, file in (("yaml", "q1.yaml"), ("csv", "spent.csv")):  # the reader's own
        (written,) = blocks(kind)
        (Path("plans") / file).write_text(written)
    lines = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) >= 11
    printed = []
    for program, *arguments in lines:
        assert program == "./run"
        if not IN_LONG and arguments[:2] == ["mail", "plans/plan.yaml"]:
            continue
        if not IN_LONG and "--format" in arguments:
            arguments = [re.sub(r"^pdf,(docx,)?", "", argument) for argument in arguments]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, (arguments, result.output)
        printed.append(result.output)
    assert sorted(path.name for path in Path("plans").glob("q1.*")) == [
        f"q1.{ending}" for ending in ("docx", "json", "pdf", "xlsx", "yaml") if IN_LONG or ending not in DRAWN
    ]
    # The next plan starts with the machines that this one ordered, on which its services stay.
    following = json.loads(Path("plans/q2.json").read_text())
    assert [order["services"] for order in following["inputs"]["supply"]["ordered"]][-2:] == [["search"], ["contracts"]]
    assert not [decision for decision in following["decisions"] if decision["what"] in ("release", "move")]
    assert any("10 replicas served 62 requests" in text for text in printed)
    assert sum("PLEASE REPLY" in text for text in printed) == amount(1, 2)


def least_places(offered: float) -> int:
    """The fewest of which exact Erlang-C finds all taken by at most that share of the requests."""
    return next(
        n
        for n in range(math.floor(offered) + 1, 2 * math.ceil(offered) + 20)
        if exact_wait_fraction(n, offered) <= SHARE
    )


def by_rule(offered: float) -> int:
    return math.ceil(offered + z_of(SHARE) * math.sqrt(offered))


def table() -> str:
    """Places that a load takes so that 5 % wait: by the rule, and by exact Erlang-C."""
    rows = ["| Offered load, erlangs | By the rule | Exactly | Off by | Wait at the rule's |", "|" + " ---: |" * 5]
    for load in LOADS:
        n, exact = by_rule(load), least_places(load)
        off = f"{n - exact:+d}" if n != exact else "0"
        rows.append(f"| {load:,} | {n:,} | {exact:,} | {off} | {100 * exact_wait_fraction(n, load):.1f} % |")
    return "\n".join(rows)


def test_the_table_of_places() -> None:
    assert table() in PAGE, f"docs/plan.md should have this table:\n{table()}"
    assert all(abs(by_rule(load) - least_places(load)) <= MOST_OFF for load in LOADS)
