"""The reverse question: what a sum a month or machines of one's own serve, held against the question itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import sheetgen
from sheetgen.api import question_of, recommended
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.recommend.reverse import machines_of, with_machines, within_budget

QUESTIONS: list[dict[str, Any]] = [
    {"model": "70b", "context": "16k"}, {"model": "8b", "context": "4k"}, {"model": "405b", "context": "16k"},
    {"model": "deepseek-v3", "context": "16k"}, {"model": "gpt-oss-120b", "context": "32k"},
    {"model": "70b", "context": "128k", "survive": "machine"}, {"model": "70b", "context": "16k", "providers": "aws"},
    {"model": "8b", "context": "16k", "purchase": "spot", "extra_headroom_fraction": 0.2},
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: " ".join(map(str, q.values())))
@pytest.mark.parametrize("usd", [6_000.0, 50_000.0, 400_000.0])
def test_a_budget_is_the_question_the_other_way_round(question: dict[str, Any], usd: float) -> None:
    """What it serves costs no more than it at the very cheapest; one request more costs more."""
    catalog = Catalog()
    most = within_budget(question_of(question, catalog), usd)

    def cheapest(n: int) -> float | None:
        choice = recommended({**question, "concurrent_requests": n}, catalog).choices[0]
        return choice.cheapest.usd if choice.cheapest else None

    served = most.served_at_target if most else 0
    if most:
        assert most.monthly_usd is not None and most.monthly_usd <= usd
        held = cheapest(served)
        assert held is not None and held <= usd
    more = cheapest(served + 1)
    assert more is None or more > usd


def test_machines_serve_what_the_same_ones_serve_when_rented() -> None:
    catalog = Catalog()
    ((_, most),) = with_machines(question_of(QUESTIONS[0], catalog), machines_of("h100:16", catalog))
    assert most is not None and most.n_instances == 2 and most.monthly_usd is None
    choice = recommended(
        {**QUESTIONS[0], "instances": "aws/p5.48xlarge", "concurrent_requests": most.served_at_target}, catalog
    ).choices[0]
    assert (choice.n_instances, choice.served_at_target) == (2, most.served_at_target)
    assert most.tpot_seconds == pytest.approx(choice.tpot_seconds) and most.memory_holds == choice.memory_holds
    alone = sheetgen.size(
        **QUESTIONS[0], gpu="h100", tensor_parallel_size=most.layout.tensor_parallel_size,
        concurrent_requests=most.served_at_target // most.n_replicas,
    )  # fmt: skip
    assert most.ttft_seconds == pytest.approx(alone["ttft_seconds"]) and alone["fits"]
    assert most.of_one_more == 3 * most.served_at_target // 2


@pytest.mark.parametrize(("text", "shape"), [
    ("h100:16", [(8, 2)]), ("h100:4", [(4, 1)]), ("h100:20", [(8, 2), (4, 1)]), ("l40s:8x4", [(4, 8)]),
    ("h100:8,l40s:2", [(8, 1), (2, 1)]),
])  # fmt: skip
def test_machines_as_they_are_written(text: str, shape: list[tuple[int, int]]) -> None:
    assert [(size, count) for _, size, count in machines_of(text, Catalog())] == shape


@pytest.mark.parametrize("text", ["h100", "h100:", "h100:0", "h100:8x", "h100:-8", "h100:8;l40s:2", "h100:999999x9"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(ScenarioError, match="have is"):
        machines_of(text, Catalog())


def test_the_command() -> None:
    words = ["recommend", "--model", "70b", "--context", "16k"]
    said = CliRunner().invoke(main, [*words, "--budget-usd", "50k"])
    assert said.exit_code == 0 and "$50,000 a month: serves" in said.stdout and "one more in flight" in said.stdout
    record = json.loads(CliRunner().invoke(main, [*words, "--have", "h100:16,l40s:8x4", "--json"]).stdout)
    assert record["served_at_target"] == sum(one["served_at_target"] for one in record["answers"]) > 0
    assert "8 machines of 4x L40S: nothing" in CliRunner().invoke(main, [*words, "--have", "l40s:8x4"]).stdout
    for wrong in (["--budget-usd", "1", "--have", "h100:8"], ["--budget-usd", "1", "--users", "3"]):
        assert CliRunner().invoke(main, [*words, *wrong]).exit_code == 2
    assert CliRunner().invoke(main, [*words, "--budget-usd", "much"]).exit_code == 1
