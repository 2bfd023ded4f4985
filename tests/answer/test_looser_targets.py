"""Looser targets of speed as levers: each step is the answer to a question with that target, and none is missed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from asked import alone, answered, catalog, every, load, of_load, same
from option_values import Options

from sheetgen.answer.levers import Lever, levers_of_sheet
from sheetgen.answer.levers.lever import Rented, is_less, saved_usd
from sheetgen.answer.solve import solve
from sheetgen.catalog.stacks import LeverFile
from sheetgen.question.sheet_question import ask

MS = {"ms": 1, "s": 1000}
OFF = {"inputs": {"speed_targets": 0}}  # as typed in a workbook
CHANGED = {"time a token": "tpot_ms", "time to the first token": "ttft_ms"}
LOADS: list[tuple[str, str, int, dict[str, Any]]] = [
    ("405b", "16k", 32, {}), ("405b", "16k", 32, {"ttft_ms": "off"}), ("8b", "16k", 1024, {}), ("70b", "16k", 32, {}),
    ("gpt-oss-120b", "4k", 256, {"tpot_ms": 12}), ("405b", "128k", 32, {}), ("70b", "4k", 200, {"ttft_ms": 600}),
    ("8b", "4k", 1, {"instances": "aws/g6.xlarge"}), ("405b", "16k", 64, {"near_tie_fraction": 0}),
]  # fmt: skip


def targets_of(lever: Lever) -> dict[str, float]:
    """The options that ask for what the lever changes: `time a token 50 ms to 60 ms`."""
    rented_at = {}
    for part in lever.changed.split(", "):
        before, after = part.split(" to ") if "first" not in part else part.rsplit(" to ", 1)
        name = next(name for name in CHANGED if before.startswith(f"{name} ") and before[len(name) + 1].isdigit())
        number, unit = after.split()
        rented_at[CHANGED[name]] = float(number.replace(",", "")) * MS[unit]
    return rented_at


def steps(model: str, context: str, users: int, options: Options) -> list[Lever]:
    return [lever for lever in levers_of_sheet(load(model, context, users, **options))[0] if lever.family == "speed"]


@pytest.mark.some(1)
@pytest.mark.parametrize("model,context,users,options", LOADS)
def test_a_step_is_the_answer_with_that_target(model: str, context: str, users: int, options: Options) -> None:
    tokens = {"4k": 4096, "16k": 16384, "128k": 131072}[context]
    priced = [step for step in steps(model, context, users, options) if step.after is not None]
    assert priced
    for rental in priced:
        asked = {"model": model, "context": tokens, "concurrent_requests": users, **options, **targets_of(rental)}
        assert same(rental, alone(**asked)), rental.words
        assert rental.now_fits or (rental.saved_usd or 0) > 0


@pytest.mark.some(1)
@pytest.mark.parametrize("model,context,users,options", LOADS[:4])
def test_no_target_that_is_tried_is_cheaper_than_its_step(
    model: str, context: str, users: int, options: Options
) -> None:
    """By asking at each target anew: the first that is cheaper is a step; all others are a tenth cheaper than the one
    before, and nothing between two steps is. A step is at the tightest target in two figures that leads to it."""
    solved = load(model, context, users, **options)
    now = solved.question.workloads[0].tpot_target_ms or 0
    told = {
        targets_of(step)["tpot_ms"]: step.after
        for step in steps(model, context, users, options)
        if step.id == "slower-tokens" and step.after is not None
    }
    usual = least = Rented.of(solved, 0)
    rented_at: dict[float, Rented] = {}
    last = now

    def rented_for(ms: float) -> Rented | None:
        return Rented.of(load(model, context, users, **{**options, "tpot_ms": ms}), 0)

    for ms in catalog().file(LeverFile).tried_targets.tpot_ms:
        if ms <= now:
            continue
        after = rented_for(ms)
        is_step = is_less(least, after) and (
            not rented_at or (least and after and saved_usd(least, after) >= 0.1 * least.monthly_usd)
        )
        if after and is_step:
            least = after
            between = (float(n) for n in range(math.floor(last) + 1, ms) if n < 100 or n % 10 == 0)
            asked = ((n, rented_for(n)) for n in between)
            tight = (
                (n, rental) for n, rental in asked if is_less(usual, rental) and rental and not is_less(rental, after)
            )
            n, rental = next(tight, (float(ms), after))
            rented_at[n] = rental
        last = ms
    assert told == rented_at


def test_the_known_steps_of_405b() -> None:
    """RAG at 32 at once without a target of the first token: 50 ms costs $332,684."""
    rented_at = {
        targets_of(step)["tpot_ms"]: round(step.after.monthly_usd)
        for step in steps("405b", "16k", 32, {"ttft_ms": "off"})
        if step.after
    }
    assert rented_at == {60: 184_824, 61: 166_342, 71: 138_618, 88: 92_412, 97: 83_171}
    of_both = of_load("405b", ttft_ms=5000)  # where the first token has its 5 s, it soon sets the size instead
    assert of_both["slower-tokens"].words == "61 ms a token, not 50 ms"
    assert of_both["slower-and-later"].words.startswith("71 ms a token")


@pytest.mark.long
def test_the_best_step_saves_most_for_each_percent_of_speed() -> None:
    for model, context, users, options in LOADS:
        alone_ = [step for step in steps(model, context, users, options) if step.id == "slower-tokens" and step.after]
        if not alone_ or alone_[0].now_fits:
            continue
        now = load(model, context, users, **options).question.workloads[0].tpot_target_ms or 0
        gains = {lever.words: (lever.saved_usd or 0) / (targets_of(lever)["tpot_ms"] / now - 1) for lever in alone_}
        assert [lever.words for lever in alone_ if not lever.further] == [max(gains, key=lambda words: gains[words])]


def test_what_a_step_costs_in_words() -> None:
    levers = of_load("405b", ttft_ms=5000)
    assert levers["slower-tokens"].cost.endswith(": 16 a second, not 20")
    assert levers["slower-and-later"].cost.endswith(": 14 tokens a second, not 20")
    close = of_load("405b", "16k", 64, tpot_ms=80, ttft_ms="off")["slower-tokens"]
    assert close.after is not None and close.cost.startswith("tokens come slower: ")
    for lever in (
        lever for levers in every() for lever in levers if lever.id == "slower-tokens" and lever.after is not None
    ):
        then, now = lever.cost.removeprefix("tokens come slower: ").split(" a second, not ")
        assert float(then) < float(now)


@pytest.mark.parametrize("options", [{"tpot_ms": "off", "ttft_ms": "off"}, {"typed": OFF}])
def test_without_a_target_none_is_loosened(options: Options) -> None:
    solved = solve(ask(catalog(), {"models": "405b", "workloads": "rag", "tiers": "32", **options}))
    speed_levers = [lever for lever in levers_of_sheet(solved)[0] if lever.family == "speed"]
    assert [lever.why_not for lever in speed_levers] == ["no such target is set"] * 3


def test_a_near_tie_is_no_saving_and_no_loss() -> None:
    """A lever that tips the choice within the tie while the very cheapest stays, or moves the other way, has saved
    nothing and costs no more."""
    usual = Rented.of(answered(), 0)
    assert usual is not None

    def rented_for(usd: float, cheapest: float) -> Rented:
        return Rented(usual.candidate, 1, 1, usd, cheapest)

    assert (
        saved_usd(rented_for(104, 100), rented_for(100, 100))
        == 0
        == saved_usd(rented_for(100, 100), rented_for(104, 100))
    )
    assert saved_usd(rented_for(100, 100), rented_for(101, 98)) == 0  # cheaper to have, dearer as chosen
    assert (
        saved_usd(rented_for(104, 100), rented_for(98, 98)) == 6
        and saved_usd(rented_for(98, 98), rented_for(104, 100)) == -6
    )
    ties = [lever for levers in every() for lever in levers if lever.is_near_tie]
    assert ties and all(tie.saved_usd == 0 for tie in ties)
