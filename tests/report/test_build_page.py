"""The page from real answers: every row is there, and every word says what the answer says."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from answers import document, page_for, record_for
from solved_pages import FIVE, MEMORY, THREE, answered, page

from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.question.overrides import BY_READER
from sheetgen.report import notes, wording
from sheetgen.report.page import Bar, Page, formatted
from sheetgen.report.sentences import ttft_words

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
    """The bar of the load answered, for each model."""
    return [next(bar for bar in bars if bar.headline) for bars in page.bars]


@pytest.mark.some(1)
@pytest.mark.parametrize("models", [THREE, FIVE])
def test_every_row_is_there(models: str) -> None:
    n, drawn = len(models.split(",")), page(models)
    assert len(drawn.cards) == len(drawn.models) == len(drawn.bars) == n
    assert len(drawn.matrix) == 3 and all(len(b.rows) == 4 for b in drawn.matrix)
    assert all(len(r.cells) == n for b in drawn.matrix for r in b.rows)
    assert [(b.workload, r.tier) for b in drawn.matrix for r in b.rows if r.headline] == [("RAG", "32")]
    assert len(drawn.fingerprints) == 7
    assert len(drawn.levers) == max(3, n)  # the best of each model
    assert all(t.strip() == t and "nan" not in t.lower().split() and "None" not in t for t in texts(drawn))


@pytest.mark.parametrize("models", [THREE, FIVE])
def test_matrix_says_what_the_answer_says(models: str) -> None:
    solved, drawn = answered(models), page(models)
    values = page_for(solved)
    for row, cell in enumerate(solved.question.loads):
        shown, known = (one.matrix[cell.workload].rows[cell.tier].cells[cell.model] for one in (drawn, values))
        choice = solved.choices[row]
        assert shown.status in STATUSES and known.monthly.value == choice.monthly_usd
        assert shown.status == "fits"
        n_bytes = known.kv.value
        assert n_bytes == solved.loads["kv_bytes"][row]
        gib, places = n_bytes / 2**30, 0 if n_bytes >= 100 * 2**30 else 1  # whole from a hundred on
        assert shown.kv == f"{gib:,.{places}f}" or gib * 10**places % 1 == 0.5
        assert shown.rent.startswith(f"{choice.n_instances:,} × ")
        gpus = choice.n_instances * solved.candidate(choice.offer or 0).gpu_count
        assert shown.hardware.startswith(f"{gpus:,}× ")


def test_card_of_the_headline() -> None:
    solved = answered(THREE, gpus="h100", providers="aws")
    row = headline_rows(solved)[1]
    choice, card = solved.choices[row], page(THREE, gpus="h100", providers="aws").cards[1]
    assert card.model == "Llama 3.1 70B" and card.fits
    assert card.rent == "1 × p5.48xlarge" and card.provider == "AWS, us-east-1"
    assert card.monthly == f"${choice.monthly_usd:,.0f}"
    assert card.hardware == "8× H100 SXM, TP 4, 2 replicas"
    assert card.memory == "2 × 131.4 GiB weights + 160.0 GiB KV cache"
    held = choice.n_replicas * choice.sequences_per_replica
    served = choice.served_at_target
    assert 32 <= served <= held
    assert card.headroom == f"serves {served} within the targets; memory for {held} at once"
    assert re.fullmatch(r"next cheapest: \d+ × \S+ on AWS, \$[\d,]+ \(\+\d+%\)", card.runner_up) or card.runner_up == (
        "no other GPU or provider holds it"
    )


@pytest.mark.long
def test_runner_up_costs_more_and_stages_are_said() -> None:
    drawn, memory = page(THREE), page(THREE, **MEMORY)
    assert not any("PP" in c.hardware for c in (*drawn.cards, *memory.cards)), "one machine holds each replica"
    (staged,) = page("405b", gpus="h100", **MEMORY).cards
    assert "TP 8, PP 2, 1 replica" in staged.hardware, "no H100 machine holds 756 GiB"
    for c in (*drawn.cards, *memory.cards):
        assert re.search(r", \$[\d,]+ \(\+\d+%\)$", c.runner_up)


@pytest.mark.parametrize("asked", [MEMORY, {}], ids=str)
def test_bars_hold_what_is_on_the_gpus(asked: dict[str, str]) -> None:
    solved, drawn = answered(FIVE, **asked), page(FIVE, **asked)
    for row, bar in zip(headline_rows(solved), headline_bars(drawn), strict=True):
        needed = bar.weights_bytes + bar.kv_bytes + bar.overhead_bytes
        assert bar.capacity_bytes is not None and 0.4 * bar.capacity_bytes < needed < bar.capacity_bytes
        replicas = solved.choices[row].n_replicas
        weights = solved.models["weights_bytes"][solved.question.loads[row].model]
        assert bar.weights_bytes == replicas * weights
        assert (f"{replicas} × " in bar.weights) == (replicas > 1)
        fit = Fit.of(solved, row)
        assert fit is not None and bar.capacity.endswith(f" GiB on {fit.gpus_used}× {fit.candidate.gpu.short_name}")
        engine_may_use = 0.92 * fit.gpus_used * fit.candidate.gpu.memory.engine_bytes
        assert bar.capacity_bytes == pytest.approx(engine_may_use, abs=fit.gpus_used)
    assert headline_bars(drawn)[1].capacity == "349.6 GiB on 4× RTX PRO 6000" or not asked


@pytest.mark.some(1)
@pytest.mark.parametrize("asked", [MEMORY, {}], ids=str)
def test_an_mla_cache_is_copied_to_every_rank(asked: dict[str, str]) -> None:
    drawn = page("deepseek-v3", **asked)
    (bar,) = headline_bars(drawn)
    ranks = int(re.findall(r"TP (\d)", drawn.cards[0].hardware)[0])
    assert bar.kv == (f"{ranks} × 34.3" if ranks > 1 else "34.3") and bar.kv_bytes == ranks * 32 * 16384 * 70272
    assert drawn.models[0].attention == "MLA, 576 wide" and drawn.models[0].full_attention_per_token == "–"


@pytest.mark.long
def test_units_are_named_and_differ() -> None:
    gib, gb = page("70b", **MEMORY), page("70b", units="gb", **MEMORY)
    assert (gib.unit, gb.unit) == ("GiB", "GB")
    assert gib.models[0].weights_bf16 == "131.4" and gb.models[0].weights_bf16 == "141.1"
    assert gib.models[0].kv_per_token == "320.0 KiB" and gb.models[0].kv_per_token == "327.7 kB"
    assert gib.cards[0].memory == "131.4 GiB weights + 160.0 GiB KV cache"
    assert gb.cards[0].memory == "141.1 GB weights + 171.8 GB KV cache"
    assert gib.matrix[1].rows[1].cells[0].kv == "160" and gb.matrix[1].rows[1].cells[0].kv == "172"
    constants = ("B a logit", "GiB a GPU")  # the engine's, as its file has them
    shown = [t for t in texts(gb) if re.search(r"\d (GiB|MiB|KiB)", t)]
    assert not [t for t in shown if not any(c in t for c in constants)]


def test_money_is_whole_below_a_million() -> None:
    drawn = page(THREE)
    months = [c.monthly for b in drawn.matrix for r in b.rows for c in r.cells]
    assert all(re.fullmatch(r"\$(\d{1,3}(,\d{3})?|\d+\.\d\dM)", m) for m in months)
    assert all(re.fullmatch(r"\$\d{1,3}(,\d{3})*", c.monthly) for c in drawn.cards)


@pytest.mark.long
def test_families_say_their_attention() -> None:
    drawn = page("8b,qwen3.6-27b,gpt-oss-120b,llama-2-7b,llama-4-scout-17b-16e,falcon-7b")
    assert [m.attention for m in drawn.models] == [
        "GQA, 8 of 32 heads",
        "16 of 64 layers grow, 48 keep a state",
        "18 of 36 layers windowed (128)",
        "MHA, 32 heads",
        "36 of 48 layers chunked (8k)",
        "MQA, 1 of 71 heads",
    ]
    assert [m.ratio for m in drawn.models][:4] == ["4.0× less", "24.0× less", "16.0× less", "the same"]
    assert drawn.models[1].note == "and 147 MiB of state a request"
    assert drawn.models[2].note == "and 36.0 KiB a token inside the window"
    assert [m.weights_used for m in drawn.models][2] == "mxfp4"


@pytest.mark.long
def test_a_context_over_the_limit_says_so() -> None:
    drawn = page("llama-2-7b,8b")
    cells = [r.cells[0] for b in drawn.matrix for r in b.rows]
    assert [c.status == "over" for c in cells] == [False] * 4 + [True] * 8
    over = cells[-1]
    assert (over.word, over.kv, over.rent, over.monthly) == ("over 4k", "–", "–", "–")
    assert not page_for(answered("llama-2-7b,8b")).matrix[-1].rows[-1].cells[0].monthly
    card = drawn.cards[0]
    assert not card.fits and card.rent == "over the model's 4k" and card.hardware == "16k requested, 4k allowed"
    assert card.monthly == "–" and headline_bars(drawn)[0].capacity_bytes is None
    assert {lever.model for lever in drawn.levers} == {"Llama 3.1 8B"}


def test_nothing_fits_is_said_and_has_no_price() -> None:
    drawn = page("qwen3.8-2.4t-a95b", gpus="l4")
    assert {c.status for b in drawn.matrix for r in b.rows for c in r.cells} == {"none"}
    card = drawn.cards[0]
    assert not card.fits and (card.rent, card.monthly) == ("nothing fits", "–")
    assert card.hardware == "no candidate holds weights and one request"
    assert drawn.instances == () and headline_bars(drawn)[0].capacity == "nothing fits"
    assert [f.here for f in drawn.fingerprints] == [""] * 7
    assert all(lever.saving in ("no change", "now fits") for lever in drawn.levers)


def test_a_precision_that_no_candidate_runs_is_the_reason() -> None:
    drawn = page("70b", kv_cache_dtype="fp8", gpus="t4")
    assert drawn.cards[0].hardware == "no candidate runs bf16 weights with a fp8 KV cache"


def test_levers_are_the_answer_of_each_model_that_saves_most() -> None:
    drawn, every = page(THREE), levers_of_sheet(answered(THREE))
    rows = headline_rows(answered(THREE))
    most = {
        card.model: max(lever.saved_usd or 0 for lever in every[row] if lever.family != "model" and not lever.further)
        for card, row in zip(drawn.cards, rows, strict=True)
    }
    assert {line.model: line.saving for line in drawn.levers} == {name: f"${usd:,.0f}" for name, usd in most.items()}
    words = {one.cost for row in rows for one in every[row]}
    assert all(line.cost in words for line in drawn.levers)
    saved = [float(line.saving[1:].replace(",", "")) for line in drawn.levers]
    assert saved == sorted(saved, reverse=True)
    assert len({(line.model, line.change) for line in drawn.levers}) == 3
    base = {c.model: float(c.monthly[1:].replace(",", "")) for c in drawn.cards}
    for line, usd in zip(drawn.levers, saved, strict=True):
        after = float(line.monthly[1:].replace(",", ""))
        assert abs(base[line.model] - after - usd) <= 1  # dollars, each rounded
        assert line.share == f"{usd / base[line.model]:.0%}"


def test_a_lever_of_the_page_is_the_answer_with_that_option() -> None:
    (line,) = [v for v in page("8b", gpus="l40s").levers if v.change.startswith("FP8")]
    options = {
        "FP8 KV cache": {"kv_cache_dtype": "fp8"},
        "FP8 weights": {"weight_dtype": "fp8"},
        "FP8 weights and KV cache": {"weight_dtype": "fp8", "kv_cache_dtype": "fp8"},
    }[line.change]
    assert page("8b", gpus="l40s", **options).cards[0].monthly == line.monthly
    assert page("8b", gpus="l40s", **options).cards[0].rent == line.rent


@pytest.mark.long
def test_eight_bits_are_no_lever_where_they_are_in_use() -> None:
    drawn = page("70b", weight_dtype="fp8", kv_cache_dtype="fp8")
    assert drawn.levers and not [line for line in drawn.levers if "FP8" in line.change]


@pytest.mark.parametrize("asked", [MEMORY, {}], ids=str)
def test_instances_are_those_recommended_with_their_prices(asked: dict[str, str]) -> None:
    solved, drawn = answered(THREE, **asked), page(THREE, **asked)
    used = {solved.candidate(c.offer).instance for c in solved.choices if c.offer is not None}
    assert {i.instance for i in drawn.instances} == used
    loads = [int(i.used_for.split()[0]) if i.used_for.endswith(("load", "loads")) else 1 for i in drawn.instances]
    assert sum(loads) == 36
    first = drawn.instances[0]
    one = next(c for c in solved.question.candidates if c.instance == first.instance)
    total = one.gpu_count * one.gpu.memory.engine_bytes
    assert (first.hourly, first.memory) == (f"${one.usd_per_hour:,.2f}", f"{total / 2**30:,.1f} GiB")
    assert first.instance in {
        solved.candidate(solved.choices[row].offer or 0).instance for row in headline_rows(solved)
    }
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", first.price_date)


@pytest.mark.parametrize("day,stale", [("2027-01-16", False), ("2027-01-17", True)])
def test_prices_are_stale_after_180_days(day: str, stale: bool) -> None:
    row = next(i for i in page("8b", as_of=day).instances if i.price_date == "2026-07-20")
    assert row.stale is stale


@pytest.mark.long
def test_the_banner_has_the_oldest_date_of_all_candidates() -> None:
    drawn = page(THREE, providers="aws")
    assert drawn.price_banner == "on-demand prices, the oldest of 2026-07-20"
    assert page(THREE, providers="aws", as_of="2027-06-01").price_banner.endswith("older than 180 days")
    assert page(THREE).as_of == "2026-11-20"


def test_prices_that_hardly_can_be_are_named() -> None:
    question = answered(THREE).question
    low = [dataclasses.replace(one, usd_per_hour=one.usd_per_hour / 1000) for one in question.candidates[:3]]
    several = dataclasses.replace(question, candidates=(*low, *question.candidates[3:5]))
    named = f"; 3 far from what providers take: {low[0].instance}, {low[1].instance} and others"
    assert notes.price_banner(several, 180).endswith(named)


def test_a_price_without_a_date_is_told_as_that_and_not_as_old() -> None:
    """One typed in, one of the catalog's without a day, one that is old: each is counted by its own words."""
    solved = answered(THREE)
    first = solved.question.candidates[:3]
    changed = ({"source": BY_READER, "price_as_of": None}, {"price_as_of": None}, {"price_as_of": "2026-01-02"})
    candidates = [dataclasses.replace(one, **more) for one, more in zip(first, changed, strict=True)]
    several = dataclasses.replace(solved.question, candidates=(*candidates, candidates[0]))
    assert notes.price_banner(several, 180) == (
        "on-demand prices, the oldest of 2026-01-02; 2 prices typed in without a date; "
        "one price without a date; 1 of 4 older than 180 days"
    )
    only = dataclasses.replace(solved.question, candidates=tuple(candidates[:1]))
    assert notes.price_banner(only, 180) == "on-demand prices; one price typed in without a date"
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
def test_assumptions_have_the_values_in_use() -> None:
    usual = " ".join(page("70b").assumptions)
    for words in ("vLLM 0.33.0", "utilization 0.92", "blocks of 16", "730 hours", "charged 100%", "hits: 0%"):
        assert words in usual
    other = " ".join(
        page(
            "70b",
            peak_hour_share=0.25,
            average_context_fraction=0.5,
            hours_per_month=744,
            survive="replica",
            prefix_cache_hit_fraction=0.125,
            gpu_memory_utilization=0.85,
            kv_allocation="reserved",
        ).assumptions
    )
    for words in (
        "utilization 0.85",
        "744 hours",
        "busiest hour: 25%",
        "charged 50%",
        "hits: 12.5%",
        "Loss to survive: replica",
        "reserved at",
    ):
        assert words in other


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
    again: Solution = answered.__wrapped__(THREE)
    assert again is not solved and page_for(again) == page_for(solved)
    assert formatted(page_for(again)) == page(THREE)


@pytest.mark.some(1)
@pytest.mark.parametrize("headline", ["rag:32", "rag:1024"])
def test_a_card_has_what_the_json_has(headline: str) -> None:
    """How sure it is, FP8, each class and who took no part: amounts and counts as the record of the load."""
    solved = answered(headline=headline)
    every_lever, rows = levers_of_sheet(solved), headline_rows(solved)
    cells = document(solved, levers=every_lever)["cells"]
    drawn = page_for(solved, every_lever)
    for row, card in zip(rows, drawn.cards, strict=True):
        cell = cells[row]
        assert abs(card.chance.parts[0].value - cell["chance"]) <= 0.05
        assert (card.fp8_monthly.value, card.fp8_rent.parts[0].value) == (
            cell["fp8"]["monthly_usd"],
            cell["fp8"]["n_instances"],
        )
        assert card.fp8_is_large == cell["needs_reservation"] == (cell["n_instances"] > 8)
        classes = list(notes.price_classes(solved.question))
        for purchase, usd, rented in zip(classes, card.classes, card.class_rents, strict=True):
            found = cell["by_purchase"][purchase]
            assert usd.value == (found and found["monthly_usd"])
            assert not rented or rented.parts[0].value == found["n_instances"]
        others = sorted(one["monthly_usd"] for one in cell["not_asked"])
        assert [part.parts[1].value for part in card.not_asked.parts] == others
    assert any(card.fp8_is_large for card in drawn.cards) == (headline == "rag:1024")


def test_other_hardware_is_named_once_and_only_where_it_differs() -> None:
    drawn = page()
    for card in drawn.cards:
        for rented in card.class_rents:
            assert rented in ("–", card.rent) or f" {rented}" in str(drawn.rented_otherwise)
    assert "of AWS, GCP and Azure, with GPUs of NVIDIA" in drawn.left_out


def test_what_is_cheaper_but_passed_over_is_called_a_near_tie() -> None:
    """The answer may cost up to 5 % more for fewer machines: the cheaper one is not the next cheapest."""
    card = page("gpt-oss-120b").cards[0]
    assert re.fullmatch(r"within the near tie: \d+ × \S+ on AWS, \$[\d,]+ \(−\d+%\)", str(card.runner_up))


def test_few_tokens_a_second_show_digits() -> None:
    """A load that asks for so few never reads 0; the workbook's words are rounded as the page's."""
    assert [str(wording.pace(rate)) for rate in (0.04, 0.31, 0.996, 1.0, 640.4)] == ["0.04", "0.31", "1.00", "1", "640"]
    assert ttft_words(1, 2.04, 0.31) == "first token 2 s, indicative; 0.31 tokens/s in all"
    assert ttft_words(1, 2.04, 640.4) == "first token 2 s, indicative; 640 tokens/s in all"


@pytest.mark.parametrize("region", ["eu", "uk", "frankfurt"])
def test_the_region_that_was_requested_stands_where_prices_are_named(region: str) -> None:
    drawn = page("8b", region=region)
    assert drawn.price_banner.startswith(f"on-demand prices in {region}, the oldest of ")
    assert any(str(line).startswith(f"Prices on demand in {region}, 730 hours") for line in drawn.assumed)
    assert " in " not in page("8b").price_banner
