"""The page from real answers: every row is there, and every word says what the answer says."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
from answers import page_for, record_for
from solved_pages import AS_OF, CENTRAL, FIVE, MEMORY, THREE, answered, catalog, page

from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.answer.solve import solve
from sheetgen.question.overrides import BY_READER
from sheetgen.question.sheet_question import ask
from sheetgen.report import notes, wording
from sheetgen.report.page import Bar, Page, formatted

STATUSES = {"fits", "none", "over"}


def texts(value: Any) -> list[str]:
    """Every text on a page."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [t for v in value for t in texts(v)]
    if dataclasses.is_dataclass(value):
        return [t for f in dataclasses.fields(value) for t in texts(getattr(value, f.name))]
    return []


def headline_bars(page: Page) -> list[Bar]:
    """The bar of the load answered, which is the second workload, for each model."""
    return [bars[1] for bars in page.bars]


@pytest.mark.some(1)
@pytest.mark.parametrize("models", [THREE, FIVE])
def test_every_row_is_there(models: str) -> None:
    n, drawn = len(models.split(",")), page(models)
    assert len(drawn.cards) == len(drawn.models) == len(drawn.bars) == n
    assert len(drawn.matrix) == 3 and all(len(b.rows) == 4 for b in drawn.matrix)
    assert all(len(r.cells) == n for b in drawn.matrix for r in b.rows)
    assert [(b.workload, r.tier) for b in drawn.matrix for r in b.rows if r.headline] == [("RAG", "32")]
    assert len(drawn.fingerprints) == 8
    assert all(t.strip() == t and "nan" not in t.lower().split() and "None" not in t for t in texts(drawn))


@pytest.mark.parametrize("models", [THREE, FIVE])
def test_matrix_says_what_the_answer_says(models: str) -> None:
    solved, drawn = answered(models), page(models)
    values = page_for(solved)
    for row, cell in enumerate(solved.question.loads):
        shown, stated = (drawing.matrix[cell.workload].rows[cell.tier].cells[cell.model] for drawing in (drawn, values))
        choice = solved.choices[row]
        assert shown.status in STATUSES and stated.monthly.value == choice.monthly_usd
        assert shown.status == "fits"
        n_bytes = stated.kv.value
        assert n_bytes == solved.loads["kv_bytes"][row]
        gib, places = n_bytes / 2**30, 0 if n_bytes >= 100 * 2**30 else 1  # whole from a hundred on
        assert shown.kv == f"{gib:,.{places}f}" or gib * 10**places % 1 == 0.5
        assert shown.rent.startswith(f"{choice.n_instances:,} × ")


def test_card_of_the_headline() -> None:
    solved = answered(THREE, gpus="h100", providers="aws")
    row = headline_rows(solved)[1]
    choice, card = solved.choices[row], page(THREE, gpus="h100", providers="aws").cards[1]
    assert card.model == "Llama 3.1 70B" and card.fits
    assert card.rent == "1 × p5.48xlarge" and card.provider == "AWS, us-east-1"
    assert card.monthly == f"${choice.monthly_usd:,.0f}"
    assert card.gpus == "8× H100 SXM"


@pytest.mark.parametrize("asked", [MEMORY, {}], ids=str)
def test_bars_hold_what_is_on_the_gpus(asked: dict[str, str]) -> None:
    solved, drawn = answered(FIVE, **asked), page_for(answered(FIVE, **asked))
    for row, bar in zip(headline_rows(solved), headline_bars(drawn), strict=True):
        replicas = solved.choices[row].n_replicas
        limit, overhead, *weights = bar.limit.value, bar.overhead.value, *(part.value for part in bar.weights.parts)
        assert weights == ([replicas, *weights[1:]] if replicas > 1 else [])
        model_bytes = solved.models["weights_bytes"][solved.question.loads[row].model]
        assert (weights[1] if replicas > 1 else bar.weights.value) == model_bytes
        kv_bytes = math.prod(part.value for part in bar.kv.parts) if bar.kv.parts else bar.kv.value
        assert 0.4 * limit < replicas * model_bytes + kv_bytes + overhead < limit
        fit = Fit.of(solved, row)
        assert fit is not None
        engine_may_use = 0.92 * fit.gpus_used * fit.candidate.gpu.memory.engine_bytes
        assert limit == pytest.approx(engine_may_use, abs=fit.gpus_used)


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", [MEMORY, {}], ids=str)
def test_an_mla_cache_is_copied_to_every_rank(asked: dict[str, str]) -> None:
    drawn = page("deepseek-v3", **asked)
    (bar,) = headline_bars(drawn)
    solved = answered("deepseek-v3", **asked)
    fit = Fit.of(solved, headline_rows(solved)[0])
    assert fit is not None
    ranks = fit.layout.tensor_parallel_size
    assert bar.kv == (f"{ranks} × 34.3" if ranks > 1 else "34.3")  # 32 x 16,384 x 70,272 bytes


@pytest.mark.long
def test_units_are_named_and_differ() -> None:
    gib, gb = page("70b", **MEMORY), page("70b", units="gb", **MEMORY)
    assert (gib.unit, gb.unit) == ("GiB", "GB")
    assert "131.4 GiB in BF16" in gib.models[0].weights_in and "141.1 GB in BF16" in gb.models[0].weights_in
    assert gib.models[0].kv_per_token == "320.0 KiB" and gb.models[0].kv_per_token == "327.7 kB"
    assert gib.matrix[1].rows[1].cells[0].kv == "160" and gb.matrix[1].rows[1].cells[0].kv == "172"
    assert not [t for t in texts(gb) if re.search(r"\d (GiB|MiB|KiB)", t)]


def test_money_is_whole_below_a_million() -> None:
    drawn = page(THREE)
    months = [c.monthly for b in drawn.matrix for r in b.rows for c in r.cells]
    assert all(re.fullmatch(r"\$(\d{1,3}(,\d{3})?|\d+\.\d\dM)", m) for m in months)
    assert all(re.fullmatch(r"\$\d{1,3}(,\d{3})*", c.monthly) for c in drawn.cards)


@pytest.mark.long
def test_what_a_request_keeps_beside_its_tokens_is_noted() -> None:
    drawn = page("qwen3.6-27b,gpt-oss-120b")
    assert "147 MiB" in drawn.models[0].note
    assert "36.0 KiB" in drawn.models[1].note


@pytest.mark.long
def test_a_context_over_the_limit_says_so() -> None:
    drawn = page("llama-2-7b,8b")
    cells = [r.cells[0] for b in drawn.matrix for r in b.rows]
    assert [c.status == "over" for c in cells] == [False] * 4 + [True] * 8
    over = cells[-1]
    assert (over.word, over.kv, over.rent, over.monthly) == ("over 4k", "–", "–", "–")
    assert not page_for(answered("llama-2-7b,8b")).matrix[-1].rows[-1].cells[0].monthly
    card = drawn.cards[0]
    assert not card.fits and card.rent == "over the model's 4k" and card.why == "16k requested, 4k allowed"
    assert card.monthly == "–" and headline_bars(drawn)[0].limit == "–"


def test_nothing_fits_is_said_and_has_no_price() -> None:
    drawn = page("qwen3.8-2.4t-a95b", gpus="l4")
    assert {c.status for b in drawn.matrix for r in b.rows for c in r.cells} == {"none"}
    card = drawn.cards[0]
    assert not card.fits and (card.rent, card.monthly) == ("nothing fits", "–")
    assert card.why
    assert drawn.instances == () and headline_bars(drawn)[0].limit == "–"
    assert [f.here for f in drawn.fingerprints] == [""] * 8


def test_a_precision_that_no_candidate_runs_is_the_reason() -> None:
    drawn = page("70b", kv_cache_dtype="fp8", gpus="t4")
    assert "bf16 weights with a fp8" in drawn.cards[0].why


@pytest.mark.parametrize("asked", [MEMORY, {}], ids=str)
def test_instances_are_those_recommended_with_their_prices(asked: dict[str, str]) -> None:
    solved, drawn = answered(THREE, **asked), page(THREE, **asked)
    used = {solved.candidate(c.offer).instance for c in solved.choices if c.offer is not None}
    assert {i.name for i in drawn.instances} == set(map(wording.instance_name, used))
    first = drawn.instances[0]
    candidate = next(c for c in solved.question.candidates if wording.instance_name(c.instance) == first.name)
    assert first.hourly == f"${candidate.usd_per_hour:,.2f}"
    assert candidate.instance in {
        solved.candidate(solved.choices[row].offer or 0).instance for row in headline_rows(solved)
    }
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", first.price_date)


@pytest.mark.parametrize("day,stale", [("2027-01-16", False), ("2027-01-17", True)])
def test_prices_are_stale_after_180_days(day: str, stale: bool) -> None:
    row = next(i for i in page("8b", as_of=day).instances if i.price_date == "2026-07-20")
    assert row.stale is stale


@pytest.mark.long
def test_the_banner_has_the_oldest_date_of_the_answers() -> None:
    drawn = page(THREE, providers="aws")
    assert drawn.price_banner.endswith(" 2026-07-20")
    assert page(THREE, providers="aws", as_of="2027-06-01").price_banner.endswith("older than 180 days")
    assert page(THREE).as_of == "2026-11-20"


def test_prices_that_hardly_can_be_are_named() -> None:
    question = answered(THREE).question
    low = [
        dataclasses.replace(candidate, usd_per_hour=candidate.usd_per_hour / 1000)
        for candidate in question.candidates[:3]
    ]
    several = dataclasses.replace(question, candidates=(*low, *question.candidates[3:5]))
    named = f"; 3 far from what providers take: {low[0].instance}, {low[1].instance} and others"
    assert notes.price_banner(several, 180, "2026-06-18").endswith(named)


def test_a_price_without_a_date_is_told_as_that_and_not_as_old() -> None:
    """One typed in, one of the catalog's without a day, one that is old: each is counted by its own words."""
    solved = answered(THREE)
    first = solved.question.candidates[:3]
    changed = ({"source": BY_READER, "price_as_of": None}, {"price_as_of": None}, {"price_as_of": "2026-01-02"})
    candidates = [dataclasses.replace(candidate, **more) for candidate, more in zip(first, changed, strict=True)]
    several = dataclasses.replace(solved.question, candidates=(*candidates, candidates[0]))
    assert notes.price_banner(several, 180, "2026-01-02") == (
        "on-demand prices, the oldest in use of 2026-01-02; 2 prices typed in without a date; "
        "one price without a date; 1 of 4 older than 180 days"
    )
    only = dataclasses.replace(solved.question, candidates=tuple(candidates[:1]))
    assert notes.price_banner(only, 180, None) == "on-demand prices; one price typed in without a date"
    for day in (None, "2026-01-02"):  # beside a price typed over, the date is still the listed one's
        candidates = [dataclasses.replace(c, source=BY_READER, price_as_of=day) for c in solved.question.candidates]
        typed = dataclasses.replace(solved.question, candidates=tuple(candidates))
        rows = notes.instance_rows(record_for(solved, ()), typed, 180)
        assert rows and {(i.price_date, i.stale) for i in rows} == {("typed in", False)}


def test_left_out_adds_up() -> None:
    question = answered(THREE).question
    sentence = page(THREE).left_out
    total, kept, out, *numbers = (int(n) for n in re.findall(r"(?:^|: |, |; )(\d+) ", sentence))
    assert sum(numbers) == out == sum(count for _, count in question.left_out)
    assert total == kept + out
    assert f": {len(question.candidates)} candidates" in sentence


@pytest.mark.long
def test_sources_link_only_to_the_web() -> None:
    drawn = page("8b,c4ai-command-r7b-12-2024")
    links = [s.url for s in drawn.sources if s.url]
    assert links and all(link.startswith("https://") for link in links)
    assert any("huggingface.co" in link for link in links)
    assert any("AWS prices: " in s.text for s in drawn.sources)


@pytest.mark.long
def test_the_same_answer_gives_the_same_page() -> None:
    solved: Solution = answered(THREE)
    again: Solution = solve(ask(catalog(), {**CENTRAL, "as_of": AS_OF, "models": THREE}))  # in another order
    assert again is not solved and page_for(again) == page_for(solved)
    assert formatted(page_for(again)) == page(THREE)


def test_few_tokens_a_second_show_digits() -> None:
    """A load that asks for so few never reads 0."""
    assert [str(wording.pace(rate)) for rate in (0.04, 0.31, 0.996, 1.0, 640.4)] == ["0.04", "0.31", "1.00", "1", "640"]


@pytest.mark.parametrize(
    ("region", "name"), [("eu", "Europe"), ("uk", "the United Kingdom"), ("frankfurt", "frankfurt")]
)
def test_the_region_that_was_requested_stands_where_prices_are_named(region: str, name: str) -> None:
    drawn = page("8b", region=region)
    assert drawn.price_banner.startswith(f"on-demand prices in {name}, the oldest in use of ")
    assert any(str(line).startswith(f"Prices on demand in {name}, 730 hours") for line in drawn.assumed)
    assert page("8b").price_banner.startswith("on-demand prices, the oldest in use of ")
