"""The cost of a user and of a million tokens."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.sizing import cost

SECONDS, MILLION = cost.CONSTANTS["seconds_in_an_hour"], cost.CONSTANTS["tokens_in_a_million"]
LOADS = {
    "usd": st.floats(10, 1e6),
    "speed": st.floats(1, 1e5),
    "prefill": st.floats(0, 1),
    "tokens": st.tuples(st.integers(1, 130_000), st.integers(1, 8_000)),
    "utilization": st.floats(0.01, 0.5),
    "hours": st.floats(1, 744),
}


def millions(speed: float, utilization: float, hours: float, prompt: int, answer: int) -> tuple[float, float]:
    written = cost.million_output_tokens_per_month(speed, utilization, hours, SECONDS, MILLION)
    return cost.million_input_tokens_per_month(written, prompt, answer), written


def test_by_hand() -> None:
    """$730 a month is $1 an hour; 1,000 tokens a second at half the hours are 1.8 million an hour, 1,314 a month."""
    read, written = millions(1000, 0.5, 730, 3072, 1024)
    assert written == pytest.approx(1314) and read == pytest.approx(3 * 1314)
    assert cost.usd_per_million_output_tokens(730, 0.25, written) == pytest.approx(0.75 / 1.8)
    assert cost.usd_per_million_input_tokens(730, 0.25, read) == pytest.approx(0.25 / 5.4)
    assert cost.usd_per_million_tokens(730, read, written) == pytest.approx(1 / 7.2)
    assert cost.usd_per_user_per_month(730, 200) == 3.65


@given(**LOADS)
def test_prompts_and_answers_add_up_to_the_bill(
    usd: float, speed: float, prefill: float, tokens: tuple[int, int], utilization: float, hours: float
) -> None:
    read, written = millions(speed, utilization, hours, *tokens)
    prompts = cost.usd_per_million_input_tokens(usd, prefill, read) * read
    answers = cost.usd_per_million_output_tokens(usd, prefill, written) * written
    assert prompts + answers == pytest.approx(usd)
    assert cost.usd_per_million_tokens(usd, read, written) * (read + written) == pytest.approx(usd)


@given(**LOADS)
def test_twice_as_busy_is_half_the_price(
    usd: float, speed: float, prefill: float, tokens: tuple[int, int], utilization: float, hours: float
) -> None:
    (read, written), (read_2, written_2) = (millions(speed, u, hours, *tokens) for u in (utilization, 2 * utilization))
    for rate, once, twice in (
        (cost.usd_per_million_input_tokens, (usd, prefill, read), (usd, prefill, read_2)),
        (cost.usd_per_million_output_tokens, (usd, prefill, written), (usd, prefill, written_2)),
        (cost.usd_per_million_tokens, (usd, read, written), (usd, read_2, written_2)),
    ):
        assert rate(*twice) == pytest.approx(rate(*once) / 2)


def test_what_is_not_known_is_none() -> None:
    none = math.nan
    for value in (
        cost.usd_per_user_per_month(none, 3),
        cost.usd_per_user_per_month(5.0, 0),
        cost.usd_per_million_tokens(730, none, 1.0),
        cost.usd_per_million_output_tokens(730, none, 1.0),
        cost.usd_per_million_output_tokens(730, 0.5, 0.0),
        cost.usd_per_million_input_tokens(none, 0.5, 1.0),
        cost.million_output_tokens_per_month(none, 0.5, 730, SECONDS, MILLION),
        cost.million_input_tokens_per_month(3.0, 1024, 0),
    ):
        assert math.isnan(value)
    read, written = millions(100, 0.7, 730, 0, 1024)  # no prompt: nothing to sell, and answers carry it all
    assert math.isnan(cost.usd_per_million_input_tokens(730, 0.0, read))
    assert cost.usd_per_million_output_tokens(730, 0.0, written) == pytest.approx(730 / written)


def test_a_host_by_hand() -> None:
    """10 million prompt tokens of which 30 % are cached, at $2 and $0.5, and 4 million answered at $6."""
    asked = {
        "hosted_million_input_tokens": 10, "hosted_million_output_tokens": 4, "input_tokens": 3072,
        "cached_fraction": 0.3, "input_usd_per_million": 2, "cached_usd_per_million": 0.5,
        "output_usd_per_million": 6, "max_input_tokens": 3072,
    }  # fmt: skip
    assert cost.hosted_monthly_usd(**asked) == pytest.approx(10 * (0.7 * 2 + 0.3 * 0.5) + 4 * 6)
    unstated = {**asked, "cached_usd_per_million": math.nan, "max_input_tokens": math.nan}
    assert cost.hosted_monthly_usd(**unstated) == pytest.approx(10 * 2 + 4 * 6)
    assert math.isnan(cost.hosted_monthly_usd(**{**asked, "max_input_tokens": 3071}))
