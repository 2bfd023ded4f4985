"""The request: its figures are the record's, an option that cannot be had has no box, and a title is a finding."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace
from datetime import date
from unittest.mock import patch

import pytest
from answers import printed_page, record_for
from option_values import OptionValue

from sheetgen.answer.answer_record import CellRecord
from sheetgen.answer.moves import EVERYTHING, LOAD_AND_CONTEXT
from sheetgen.answer.smaller_model import with_smaller_model
from sheetgen.answer.solve import solve
from sheetgen.answer.ways_to_pay import with_europe
from sheetgen.api import recommend
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.report import approval, notes, pay_less_words, sentences
from sheetgen.report.answer_lines import question_words
from sheetgen.report.build_page import build_page
from sheetgen.report.headline_table import owning_unpriced
from sheetgen.report.page import Cell, Request, WayRow, capital
from sheetgen.report.wording import full_money, instance_name, provider_of, sure
from sheetgen.units import rate_text

ASKED = {"models": "8b,70b", "workloads": "rag", "tiers": "1,32", "as_of": "2026-11-20", "ask": "70b"}


@functools.cache
def requested(**more: OptionValue) -> tuple[Request, CellRecord]:
    """The request with all that it may say, and the load of the record that it is made from."""
    question = ask(Catalog(), {name: value for name, value in (ASKED | more).items() if value})
    solved = solve(question)
    record = with_europe(record_for(solved), solved)
    with patch.multiple(approval, MOST_WORDS=math.inf, MOST_NUMBERS=math.inf):
        return build_page(record, question).request, record.headline_cells[question.ask or 0]


def amount(text: object) -> float:
    assert isinstance(text, Cell) and isinstance(text.value, int | float)
    return float(text.value)


LOADS: dict[str, dict[str, str]] = {
    "at once": {},
    "people": {"users": "640", "tiers": ""},
    "a rate": {"requests_per_second": "4", "tiers": ""},
    "a commitment": {"purchase": "reserved-1yr"},
    "uncertain": {"tpot_ms": "8"},
}


@pytest.mark.some(1)
@pytest.mark.parametrize("load", LOADS)
def test_every_price_is_the_records(load: str) -> None:
    asked, cell = requested(**LOADS[load])
    options = {option.name: option for option in asked.options}
    assert amount(options["Approve as sized"].price) == cell.answer.monthly_usd
    assert amount(options["Measure first"].price) == (cell.measure.decider or cell.measure).usd  # type: ignore[union-attr]
    margin, at_margin = options.get("Approve with a margin"), cell.at_level(0.9)
    if at_margin is None:
        assert margin is not None and not margin.price and not margin.reply  # no box to tick
    elif margin is not None:
        assert amount(margin.price) == at_margin.monthly_usd > cell.answer.monthly_usd
    else:
        assert cell.answer.chance >= 0.9 or at_margin.monthly_usd == pytest.approx(cell.answer.monthly_usd)
    terms = [way for way in asked.ways if " term" in way.change]
    months = [amount(way.monthly) for way in asked.ways if way not in terms]
    decider = cell.measure.decider if cell.measure else None
    told = [decider.monthly_usd] if decider else []  # the box to measure first has it
    listed = [way for way in cell.pay_less if way.commits_usd or way.kind != "less_sure" or way.monthly_usd not in told]
    listed = [row for way in listed for row in (way, *(surer for surer in cell.as_sure if surer.kind == way.kind))]
    same = [paid.monthly_usd for paid in cell.purchase_classes if paid.purchase in pay_less_words.CLASSES]
    in_class = [
        usd for usd in same if usd and usd < 0.98 * cell.answer.monthly_usd
    ]  # the same machines, without a term
    assert months == pytest.approx([*(way.monthly_usd for way in listed if way.kind != "term"), *in_class])
    of_record = [way for way in cell.pay_less if way.kind == "term"]
    by_usd = {way.monthly_usd: way for way in (*of_record, *cell.other_terms)}
    assert sorted(map(amount, (way.monthly for way in terms))) == pytest.approx(sorted(by_usd))
    for way in terms:
        term = min(by_usd.values(), key=lambda stated: abs(stated.monthly_usd - amount(way.monthly)))
        assert amount(way.commits) == pytest.approx(term.commits_usd)
        assert str(way.pays_after) == f"{term.pays_after_months:.1f}" and way.pays_off in way.gives_up
        a_year = f"${12 * term.monthly_usd:,.0f} a year"
        assert (a_year in way.gives_up) == (term.commits_usd > 12.5 * term.monthly_usd), (
            "else it is what one commits to"
        )
    together = {LOAD_AND_CONTEXT, EVERYTHING}
    assert [(mover.low.value, mover.high.value) for mover in asked.movers] == [
        (move.low_usd, move.high_usd) for move in cell.moves if move.input not in together
    ]
    ends = [move.high_usd for move in cell.moves if move.input in together]
    assert len(ends) == 2
    for usd in ends:
        assert ("nothing serves" if usd is None else str(full_money(usd))) in str(asked.together)


def test_who_takes_less_stands_by_the_boxes_with_its_condition_and_an_even_chance_in_the_title() -> None:
    asked, cell = requested(users="200", tiers="")
    others = {way.kind: way for way in cell.pay_less if way.kind in ("provider", "hosted")}
    assert len(others) == 2 and all(str(full_money(way.monthly_usd)) in str(asked.less_only) for way in others.values())
    even = cell.at_level(0.5)
    assert even is not None and "asked_dear" in cell.measure_first
    assert str(full_money(even.monthly_usd)) in str(asked.sentence) and asked.warnings == ()
    assert "day one" in str(asked.options[0].facts[-1]) and even.instance == cell.answer.instance
    bound, _ = requested(users="200", tiers="", purchase="reserved-1yr")
    assert "day one" not in str(bound.options[0].facts[-1])  # whose machines cannot be given back
    nobody, _ = requested(providers="all", models="405b", ask="405b", users="200", tiers="")
    assert "renting" not in str(nobody.less_only)


def test_what_goes_wrong_costs_what_the_record_says() -> None:
    asked, cell = requested()
    risks = " ".join(map(str, asked.risks))
    assert cell.as_published is not None and cell.as_published.monthly_usd is not None
    usd = cell.answer.monthly_usd
    survivor = cell.survives_machine
    assert survivor is not None and usd < survivor.monthly_usd <= 1.05 * (usd + usd / cell.answer.n_instances)
    for shown in (survivor.monthly_usd, cell.as_published.monthly_usd - usd):
        assert f"${shown:,.0f}" in risks
    left = math.floor(cell.answer.served_at_target * (cell.answer.n_instances - 1) / cell.answer.n_instances)
    assert left < cell.requests and f"{left} of {cell.requests:.0f} served" in risks
    assert str(full_money(survivor.monthly_usd)) in str(asked.failure) and asked.failure in asked.risks
    margin = cell.at_level(0.9)
    assert margin is not None
    alone = margin.n_instances == 1 < cell.answer.n_instances
    of_margin = next(option for option in asked.options if option.reply == "with margin")
    assert alone == any("fails" in str(fact) for fact in of_margin.facts)
    survived = " ".join(map(str, requested(survive="machine")[0].risks))
    assert "a spare:" not in survived and "its spare is in the price" in survived
    bound = requested(purchase="reserved-1yr")
    assert f"up to ${12 * bound[1].answer.monthly_usd:,.0f} stay due" in " ".join(map(str, bound[0].risks))


def test_the_hour_is_that_of_the_people_beside_it() -> None:
    asked, cell = requested()
    hour = int(cell.users) * 20 * 0.12 * 1.3
    assert f"{hour:,.0f}" in str(asked.serves[0]) and hour <= cell.requests_per_hour


def test_the_title_of_the_bars_is_the_largest_uncertainty_with_how_far_it_goes() -> None:
    for more in LOADS.values():
        asked, cell = requested(**more)
        usd = round(cell.answer.monthly_usd)
        ends = {m.name: [round(amount(end)) - usd for end in (m.low, m.high)] for m in asked.movers if m.high and m.low}
        swings = {name: (max(0, *ends[name]) - min(0, *ends[name]), max(0, *ends[name])) for name in ends}
        widest = max(swings, key=lambda name: swings[name])
        named = {name for name, swing in swings.items() if swing == swings[widest]}
        told = str(asked.uncertainty)
        assert all((re.split("[ :]", name)[0].lower() in told.lower()) == (name in named) for name in ends)
        halves = [abs(half) for half in (min(0, *ends[widest]), max(0, *ends[widest])) if half]
        assert [str(full_money(half)) for half in dict.fromkeys(halves)] == re.findall(r"\$[\d,.]+M?", told)
        assert told in str(asked.finding) and "largest uncertainty" in str(asked.finding).lower()


def test_contingency_is_in_what_is_approved_and_the_rent_stands_beside() -> None:
    (rent, cell), (asked, _) = requested(), requested(contingency_fraction="0.1", currency="EUR", fx_rate="0.5")
    for before, after in zip(rent.options[:2], asked.options[:2], strict=True):
        assert amount(after.price) == pytest.approx(0.55 * amount(before.price))
        assert f"€{amount(before.price) / 2:,.0f}, with 10%" in str(after.facts[0])
    assert amount(asked.options[2].price) == pytest.approx(0.5 * amount(rent.options[2].price))  # a day is a rent
    assert f" ${1.1 * cell.answer.monthly_usd:,.0f} at 0.5 EUR a dollar." in str(asked.basis)
    assert str(asked.sentence).endswith(f": {asked.options[0].price} a month")


def test_people_stand_in_the_sentence_as_they_were_stated() -> None:
    people, _ = requested(**LOADS["people"])
    assert " for 640 people" in str(people.what)
    at_once, cell = requested()
    assert re.search(rf" for {cell.users:.0f} people.*, 32 at once$", str(at_once.what))
    rate, cell = requested(**LOADS["a rate"])
    assert re.search(rf" for {cell.users:,.0f} people.*, 4 a second$", str(rate.what))
    targetless, _ = requested(tpot_ms="off", ttft_ms="off")  # which says nothing of people
    assert " for 32 document questions" in str(targetless.what)


def test_several_models_are_a_choice_and_together_a_sum() -> None:
    choice, _ = requested(ask="")
    assert [option.reply for option in choice.options] == ["Llama 3.1 8B", "Llama 3.1 70B"] and not choice.subject
    total, _ = requested(ask="", together="yes")
    (only,) = total.options
    assert amount(only.price) == pytest.approx(sum(amount(option.price) for option in choice.options))
    assert str(only.price) in str(total.sentence) and str(only.price) not in str(choice.sentence)


def test_where_nothing_serves_it_nothing_is_to_be_approved() -> None:
    asked, _ = requested(gpus="l4", models="405b", ask="405b")
    assert ": Llama 3.1 405B for " in str(asked.sentence) and not asked.options


def test_measuring_is_advised_where_nothing_is_as_sure_as_was_asked() -> None:
    asked, cell = requested(models="405b", ask="405b", confidence="0.97", tpot_ms="20")
    assert "impossible" in cell.measure_first
    assert [option.name for option in asked.options if option.is_advised] == ["Measure first"]
    assert not any(option.is_advised for option in requested()[0].options)


def test_what_a_measurement_may_bring_has_its_chance_and_what_follows_if_it_fails() -> None:
    asked, cell = requested()
    (option,) = (option for option in asked.options if option.name == "Measure first")
    even, margin, decider = cell.at_level(0.5), cell.at_level(0.9), cell.measure and cell.measure.decider
    assert even is not None and margin is not None and decider is not None
    fact = str(option.facts[0])
    assert fact.index(str(sure(even.chance))) < fact.index(str(full_money(decider.monthly_usd)))
    assert fact.count("sure") == 1  # no chance that counts those before it, too
    stakes = [cell.answer.monthly_usd - decider.monthly_usd, margin.monthly_usd - cell.answer.monthly_usd]
    assert [cell.measure.passed_saves_usd, cell.measure.failed_costs_usd] == pytest.approx(stakes)
    less, more = (
        f"${round(first) - round(later):,}"
        for first, later in (
            (cell.answer.monthly_usd, decider.monthly_usd),
            (margin.monthly_usd, cell.answer.monthly_usd),
        )
    )
    assert less in str(option.facts[1]) and more not in str(option.facts[1]) and "margin" in str(option.facts[1])
    assert more in str(asked.risks[0])  # which the margin lowers


def test_the_same_machines_are_priced_in_europe() -> None:
    asked, cell = requested()
    european = recommend(
        model="70b", context="16k", concurrent_requests=32, region="eu", instances=cell.answer.instance,
        as_of="2026-11-20",
    )  # fmt: skip
    in_europe = cell.in_europe
    assert in_europe is not None and (in_europe.region, in_europe.monthly_usd) == (
        european["region"],
        european["monthly_usd"],
    )
    assert f"In Europe ({in_europe.region}): {full_money(european['monthly_usd'])}." in str(asked.basis)
    own = {"instances": "aws/p5.48xlarge", "models": "70b"}
    later, cell = requested(users="400", requests_per_user_per_day="40", tiers="", **own)
    assert cell.in_europe is not None and cell.in_europe.price_as_of == "2026-01-21"  # more than 180 days before
    assert f"In Europe ({cell.in_europe.region}, old price): " in str(later.basis)
    assert "since 2026-01-21" in str(later.basis)
    asked, cell = requested(region="eu")
    assert cell.in_europe is None and "Europe" not in str(asked.basis)
    asked, cell = requested(instances="gcp/g4-standard-48", models="8b", ask="8b", tiers="1")
    assert cell.in_europe is not None
    assert ("In Europe" in str(asked.basis)) == (cell.in_europe.monthly_usd is not None)


def test_what_costs_less_in_a_class_that_binds_commits_too() -> None:
    asked, cell = requested(purchase="reserved-1yr")
    binds = {way.kind: way.commits_usd for way in cell.pay_less}
    (less_sure,) = (way for way in cell.pay_less if way.kind == "less_sure")
    assert binds["less_sure"] == pytest.approx(12 * less_sure.monthly_usd)
    rows = {row.kind: row for row in asked.ways}
    assert rows["less_sure"].binds and not rows["hours"].binds


def test_a_test_names_what_is_to_be_approved() -> None:
    """With contingency, as the boxes beside it have."""
    asked, cell = requested(contingency_fraction="0.1")
    _, _, test = asked.options
    decider = cell.measure and cell.measure.decider
    assert decider and str(full_money(1.1 * decider.monthly_usd)) in str(test.facts[0])


def test_nothing_is_cut_off_or_looked_up_in_the_words_of_a_way() -> None:
    """The price of a way and the work before it stand apart, so that a mail says either as it is."""
    asked, cell = requested()
    rows = {row.kind: row for row in reversed(asked.ways)}  # of each kind the first
    other_provider = next(way.other for way in cell.pay_less if way.kind == "provider")
    assert other_provider is not None and other_provider.kind == "provider"
    loses, needs = rows["provider"].loses, rows["provider"].needs
    assert 0.7 < other_provider.chance < cell.answer.chance  # which is all that was requested
    way = next(way for way in cell.pay_less if way.kind == "provider")
    assert ("nothing served" in loses) == (way.n_instances == 1 < cell.answer.n_instances)
    assert "supplier" in needs and str(sure(other_provider.chance)) in needs  # the condition is by the boxes, too
    condition = f"{other_provider.gpu_name} at {provider_of(other_provider.instance)} ({sure(other_provider.chance)}), "
    assert condition in str(asked.less_only)
    assert rows["hours"].loses == rows["hours"].gives_up and not rows["hours"].needs


def test_longer_requests_may_be_slower_unless_their_targets_are_stated() -> None:
    def spans(**more: str) -> dict[str, str]:
        return {mover.name.partition(":")[0]: str(mover.span) for mover in requested(**more)[0].movers}

    name = "Length"
    assert "(targets: 14 s, " in spans()[name]  # twice what 16k tokens may take
    assert "(target: first word 14 s)" in spans(tpot_ms="50")[name]
    assert "16 tokens/s" in spans()[name] and "16 tokens/s" not in spans(tpot_ms="50")[name]
    assert "target" not in spans(ttft_ms="7000", tpot_ms="50")[name]
    assert "target" not in spans(ttft_ms="off", tpot_ms="off")[name]


def test_a_host_whose_precision_nobody_knows_says_so_and_the_terms_have_their_day() -> None:
    asked, cell = requested()
    [hosted] = [way for way in asked.ways if way.kind == "hosted"]
    assert ("precision unknown" in hosted.gives_up) == (cell.hosted[0].precision is None)
    assert "; others since 20" in str(asked.basis)


def test_what_is_rented_stands_with_its_region() -> None:
    asked, _ = requested()
    assert "Azure eastus 20" in str(asked.basis)


def test_what_costs_less_says_so_where_it_is_surer() -> None:
    """B200 at Lambda is surer than the answer, and costs less than what is 90 % sure; no other way is surer."""
    asked, cell = requested(**(LOADS["people"] | {"workloads": "chat"}))
    [other_provider] = [way for way in cell.pay_less if way.kind == "provider"]
    margin = cell.at_level(0.9)
    assert other_provider.chance is not None and other_provider.chance > cell.answer.chance + 0.05
    assert margin is not None and other_provider.monthly_usd < margin.monthly_usd
    [row] = [way for way in asked.ways if way.kind == "provider"]
    assert "sure" in row.gives_up
    assert not any("sure" in way.gives_up for way in asked.ways if way is not row)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_what_lower_precision_gives_up_is_a_thing(has_checkpoint: bool) -> None:
    """It stands after "gives up", and says where the weights come from."""
    given_up = str(pay_less_words.WAYS["fp8_weights"].gives_up.fill(known=has_checkpoint))
    assert given_up.startswith("some quality") and ("quantize the model" in given_up) == (not has_checkpoint)


def test_the_price_is_defended_by_what_was_not_taken() -> None:
    asked, cell = requested(users="640", tiers="")
    lower = next(way for way in cell.pay_less if way.kind == "less_sure")
    assert cell.runner_up is not None and lower.chance is not None
    beside, quality = map(str, asked.reasons)
    measured = str(next(option for option in asked.options if option.reply == "measure").facts[0])
    for told in (full_money(lower.monthly_usd), sure(lower.chance)):
        assert str(told) in measured and str(told) not in beside  # said once
    assert str(full_money(cell.runner_up.monthly_usd)) in beside
    own = requested(users="640", tiers="", ask="8b")[1]  # the cheaper model of the sheet
    assert "not compared" in quality and str(full_money(own.answer.monthly_usd)) in quality
    alone, _ = requested(users="640", tiers="", models="70b")
    assert "not compared" in str(alone.reasons[-1]) and "$" not in str(alone.reasons[-1])
    assert "70% sure" in str(asked.why) and "90% sure" in str(requested(users="640", tiers="", confidence="0.9")[0].why)
    choice, _ = requested(ask="")
    assert any("not compared" in str(risk) for risk in choice.risks)


def test_being_too_slow_has_its_price() -> None:
    asked, cell = requested()
    margin = cell.at_level(0.9)
    assert margin is not None and cell.answer.chance < 0.9
    more = full_money(margin.monthly_usd - cell.answer.monthly_usd)
    assert str(asked.risks[0]).startswith("Too slow") and str(more) in str(asked.risks[0])
    assert "%" not in str(asked.risks[0])  # how sure it is stands in its box
    bound, _ = requested(purchase="reserved-1yr")
    assert not any("Too slow" in str(risk) for risk in bound.risks)  # whose machines cannot be given back


def test_the_last_of_all_waits_behind_those_who_are_served() -> None:
    """A turn after another: everyone beyond the places waits for as many turns as there are others before."""
    asked, cell = requested(users="400", requests_per_user_per_day="40", tiers="")
    assert cell.waits is not None and cell.waits.same_moment is not None
    [risk] = [str(risk) for risk in asked.risks if str(risk).startswith("All ")]
    turn = cell.waits.ttft_full_seconds + (cell.output_tokens - 1) * cell.waits.tpot_full_seconds
    turns = math.ceil(400 / cell.waits.places) - 1
    last = cell.waits.same_moment.last_ttft_seconds
    assert cell.waits.same_moment.turn_seconds == pytest.approx(turn)
    assert last == pytest.approx(turns * turn + cell.waits.ttft_full_seconds, rel=0.1)
    answered = cell.waits.same_moment.last_answer_seconds
    assert answered is not None and answered - last == pytest.approx(turn - cell.waits.ttft_full_seconds)
    assert re.findall(r"\d[\d,]*", risk)[:2] == ["400", f"{answered / 60:.0f}"]  # when all have their answer


def test_what_is_paid_ahead_commits_and_an_old_price_to_own_is_marked() -> None:
    def rows(as_of: str) -> dict[str, WayRow]:
        asked, _ = requested(users="640", requests_per_user_per_day="20", tiers="", as_of=as_of)
        return {way.kind: way for way in asked.ways}

    fresh, old = rows("2026-11-20"), rows("2026-12-15")  # the price of an H100 is of 2026-06
    assert str(old["capacity-block"].commits) == "the block" and str(old["hours"].commits) == "nothing"
    assert "old price" in old["own"].loses and "old price" not in fresh["own"].loses


def test_targets_at_a_rate_are_met_on_average_and_its_row_names_the_model() -> None:
    def finding(**load: str) -> str:
        return str(printed_page(solve(ask(Catalog(), ASKED | load))).findings[1])

    assert "average" in finding(users="400", tiers="") and "average" not in finding(tiers="32")
    shape = {"users": 400, "stated_users": 400, "concurrent_requests": 9.9, "n_instances": 4, "model": "Llama 3.1 8B"}
    row = sentences.people_in_numbers.of(dict.fromkeys(sentences.people_in_numbers.inputs, 1) | shape)
    assert "Llama 3.1 8B" in str(row)


def test_what_a_loss_does_is_said_of_the_margin_and_of_the_next() -> None:
    asked, cell = requested(users="200", tiers="")
    margin, survivor = cell.at_level(0.9), cell.survives_machine
    assert margin is not None and survivor is not None and margin.instance == cell.answer.instance == survivor.instance
    assert margin.n_instances >= survivor.n_instances > cell.answer.n_instances
    of_margin = next(option for option in asked.options if option.reply == "with margin")
    assert any("Survives" in str(fact) for fact in of_margin.facts)
    crowded, cell = requested(users="400", requests_per_user_per_day="40", tiers="")
    assert cell.answer.n_instances == 1 and cell.runner_up is not None and cell.runner_up.n_instances > 1
    assert "the others go on if one fails" in str(crowded.reasons[0])
    safe, _ = requested(users="400", requests_per_user_per_day="40", tiers="", survive="machine")
    assert "fails" not in str(safe.reasons[0])


def test_owning_pays_off_in_the_month_of_money_and_a_way_elsewhere_has_its_gpus_supplier_and_certainty() -> None:
    asked, cell = requested(users="400", requests_per_user_per_day="40", tiers="")
    assert cell.owned is not None
    rows = {way.kind: way for way in asked.ways}
    own, base = rows["own"], cell.owned.base
    saved = cell.answer.monthly_usd - base["owned_energy_usd"] - base["owned_site_usd"]
    assert (
        str(own.pays_after) == str(math.ceil(base["owned_capex_usd"] / saved)) and str(own.pays_after) in own.pays_off
    )
    elsewhere = next(way for way in cell.other_terms if way.instance != cell.answer.instance)
    assert elsewhere.chance is not None and elsewhere.chance > cell.answer.chance + 0.05
    [row] = [row for row in asked.ways if row.kind == "term" and row.place]
    assert amount(row.monthly) == elsewhere.monthly_usd and "Azure" in row.place and "H200" in row.loses
    assert str(sure(elsewhere.chance)) in row.loses


def test_less_certainty_that_saves_nothing_is_not_offered() -> None:
    """The bar of speed has its month."""
    asked, cell = requested(users="300", tiers="")
    even = cell.at_level(0.5)
    assert even is not None and even.monthly_usd == pytest.approx(cell.answer.monthly_usd)
    assert cell.runner_up is not None and str(full_money(cell.runner_up.monthly_usd)) in str(asked.reasons[0])
    [speed] = [mover for mover in asked.movers if mover.name == "Speed"]
    assert amount(speed.low) == cell.answer.monthly_usd and "50% to 90% sure" in str(speed.span)


def test_people_of_each_workload_ask_as_often_as_it_is_sized_for() -> None:
    question = ask(Catalog(), {"models": "8b", "users": "200", "as_of": "2026-11-20"})
    [asks] = [
        line for line in notes.most_assumed(record_for(solve(question)), question) if line.startswith("People ask")
    ]
    assert [workload.requests_per_user_per_day for workload in question.workloads] == [20, 20, 5]
    assert "20 times a day (Long document 5)" in asks


def test_how_many_people_the_machines_are_enough_for_is_said() -> None:
    """At the rate that they serve: one more person takes more of them, and what that costs stands beside."""
    asked, cell = requested(users="300", tiers="")
    assert cell.more_people is not None
    most = math.floor(300 * cell.answer.served_at_target / cell.requests_per_second)
    assert cell.more_people.most_users == most >= 300
    answers = [requested(users=str(users), tiers="")[1].answer for users in (most, most + 1)]
    assert answers[0].monthly_usd == cell.answer.monthly_usd < answers[1].monthly_usd
    more = cell.more_people.instance, cell.more_people.n_instances, cell.more_people.monthly_usd
    assert more == (answers[1].instance, answers[1].n_instances, pytest.approx(answers[1].monthly_usd))
    told = str(asked.serves[0])
    assert f"serves {most:,} people; {most + 1:,} need {full_money(answers[1].monthly_usd)}" in told
    assert str(asked.enough) in told


def test_a_share_who_wait_has_its_next_step_in_whole_requests() -> None:
    """Of 204 people of whom a twentieth waits, 11 are at once, as of 220."""
    load = {"users": "204", "active_fraction": "0.05", "tiers": ""}
    _, cell = requested(**load)
    assert cell.more_people is not None and cell.requests == 11
    most = cell.more_people.most_users
    assert most == 20 * cell.answer.served_at_target
    _, last = requested(**load | {"users": str(most)})
    assert last.answer.monthly_usd == cell.answer.monthly_usd < (cell.more_people.monthly_usd or 0)


def test_a_survivor_is_surer_while_all_of_its_machines_run() -> None:
    """As sure as so many machines are for the load where none fails."""
    asked, cell = requested(users="300", tiers="")
    survivor, margin = cell.survives_machine, cell.at_level(0.9)
    assert survivor is not None and margin is not None
    assert (survivor.instance, survivor.n_instances) == (margin.instance, margin.n_instances)
    assert survivor.chance_before == pytest.approx(margin.chance, abs=0.01) and survivor.chance_before > survivor.chance
    assert "margin survives" in str(asked.failure) and str(sure(survivor.chance)) in str(asked.failure)
    assert asked.excluded.endswith("a spare machine (as sized)")
    apart, cell = requested(**EUROPEAN)
    survivor, margin = cell.survives_machine, cell.at_level(0.9)
    assert survivor is not None and margin is not None and survivor.n_instances < margin.n_instances
    before, after = (str(sure(chance)) for chance in (survivor.chance_before, survivor.chance))
    assert before != after
    [risk] = [str(risk) for risk in apart.risks if str(risk).startswith("One machine fails")]
    assert str(full_money(survivor.monthly_usd)) in str(apart.failure) and "% sure" not in risk  # a mail has no step
    [told] = [str(fact) for fact in apart.options[1].told if str(full_money(survivor.monthly_usd)) in str(fact)]
    assert f"{before}, {after.removesuffix(' sure')} after" in told  # beside the margin, which costs more


EUROPEAN = {"users": "500", "models": "gpt-oss-120b", "ask": "", "tiers": "", "region": "eu"}


def test_a_measurement_says_its_load_and_what_passes() -> None:
    """The averages with every place taken, which its certainty is of."""

    def measured(**more: str) -> tuple[str, CellRecord]:
        asked, cell = requested(users="300", tiers="", **more)
        (option,) = (box for box in asked.options if box.name == "Measure first")
        return str(option.facts[0]), cell

    told, cell = measured()
    assert cell.answer.n_instances == 2 and cell.measure is not None and cell.measure.n_instances == 1
    assert f"averages meet targets with {cell.answer.sure_at.requests} at once" in told
    without, _ = measured(ttft_ms="off", tpot_ms="off")
    assert "passes" not in without


def test_of_owning_it_says_that_no_price_is_known_or_that_prices_are_of_the_us() -> None:
    asked, cell = requested(users="300", tiers="")
    assert cell.owned is not None and math.isnan(cell.owned.base["monthly_owned_usd"])
    assert "H100 NVL" in str(asked.owning)
    question = ask(Catalog(), ASKED | {"users": "300", "tiers": ""})
    capex = question.owning.gpus["nvidia-h100-sxm5-80gb"].capex_usd
    told = str(owning_unpriced(question, [cell]))
    assert capex and str(full_money(capex[1])) in told  # of another that can be owned
    for more, told in (({}, "US power and space"), ({"usd_per_kwh": "0.2"}, "US space"), ({"region": "us"}, "")):
        asked, _ = requested(**EUROPEAN | more)
        [own] = [way.loses for way in asked.ways if way.kind == "own"]
        assert not asked.owning and (told in own if told else "US" not in own), more


def test_a_term_on_a_lone_machine_says_what_happens_when_it_fails() -> None:
    """Of two rows that give up the same, the second says so."""
    asked, cell = requested(**EUROPEAN)
    terms = [way for way in asked.ways if way.kind == "term"]
    lone = {way.detail: way.n_instances for way in (*cell.pay_less, *cell.other_terms) if way.kind == "term"}
    assert cell.answer.n_instances == 2 and [*lone.values()] == [1, 1]
    assert "cancelling" in terms[0].loses and "nothing served if it fails" in terms[0].loses
    assert terms[1].loses == "the same"


def test_a_request_that_is_too_long_keeps_what_several_inputs_cost_together() -> None:
    """And where the next cheapest goes, what survives a loss is named in full."""
    load = {"users": "400", "requests_per_user_per_day": "40", "tiers": ""}
    question = ask(Catalog(), {**ASKED, **load})
    solved = solve(question)
    short = build_page(with_europe(record_for(solved), solved), question).request
    full, cell = requested(**load)
    high = [str(full_money(move.high_usd)) for move in cell.moves[-2:] if move.high_usd]
    assert len(high) == 2 and all(usd in str(full.together) for usd in high) and high[1] in str(short.together)
    assert "prices" in str(short.together) and "prices" not in str(full.together)  # whose bar is there
    assert short.reasons != full.reasons
    assert any("of the next" in str(risk) for risk in full.risks)
    assert not any("of the next" in str(risk) for risk in short.risks)


def test_a_price_of_a_year_alone_is_of_that_year_and_old() -> None:
    asked, cell = requested(**EUROPEAN)
    assert cell.answer.price_as_of == "2026"
    for text in (asked.prices, asked.basis):
        assert "2026, up to 323 days old" in str(text) and "2026-01-01" not in str(text)
    asked, cell = requested(users="300", tiers="")
    assert f"of {cell.answer.price_as_of}; others since 2026-06-15." in str(asked.prices)  # terms are older


def test_engineers_are_told_what_the_log_counts_and_the_load_to_drive_with() -> None:
    """A model with windows keeps less of a request once its prompt is read: its pool holds more than the log says."""
    solved = solve(ask(Catalog(), {"models": "qwen3-32b,gpt-oss-120b", "ask": "gpt-oss-120b", **PEOPLE}))
    page, cells = printed_page(solved), record_for(solved).headline_cells
    plain, windowed = page.replicas
    assert not plain.log_note and float(str(plain.max_concurrency)) >= plain.held
    assert f"holds {windowed.held}" in str(windowed.log_note) and float(str(windowed.max_concurrency)) < windowed.held
    for cell in cells:
        assert f"{cell.answer.memory_holds}" in str(page.memory_note)
    (command,) = page.bench
    assert f"--max-concurrency {cells[1].answer.sure_at.requests} " in command
    for name, tokens in (("input", cells[1].input_tokens), ("output", cells[1].output_tokens)):
        assert f"--random-{name}-len {tokens} " in command
    for seconds, unit in ((cells[1].ttft_target_seconds, 1), (cells[1].tpot_target_seconds, 1000)):
        assert f"at most {seconds * unit:.3g} " in str(page.drive)
    assert f" {cells[1].requests_per_hour / cells[1].answer.n_instances:,.0f} requests an hour" in str(page.drive)


PEOPLE = {"users": "500", "workloads": "rag", "region": "eu", "as_of": "2026-11-20"}


def test_the_age_of_a_price_of_a_year_alone_is_at_most_so_many_days() -> None:
    page = build_page(
        record_for(solved := solve(ask(Catalog(), {"models": "gpt-oss-120b", **PEOPLE}))), solved.question
    )
    days = (date.fromisoformat(PEOPLE["as_of"]) - date(2026, 1, 1)).days
    assert page.oldest_price == "2026" and f"the oldest up to {days} days old" in page.price_lists
    dated = build_page(record_for(solved := solve(ask(Catalog(), ASKED))), solved.question)
    assert "days old" in dated.price_lists and "up to" not in dated.price_lists


def test_a_full_page_of_an_old_price_keeps_all_high_ends_together() -> None:
    """At most 400 words; that prices are among them is said where their bar gave way."""
    budget = {"currency": "EUR", "fx_rate": "0.92"}
    question = ask(Catalog(), {"models": "qwen3-32b,gpt-oss-120b", "ask": "gpt-oss-120b", **PEOPLE, **budget})
    solved = solve(question)
    record = with_smaller_model(record_for(solved), solved)
    asked = build_page(record, question).request
    every = record.headline_cells[1].moves[-1].high_usd
    assert every and f"€{every * 0.92:,.0f}" in str(asked.together) and "days old" in str(asked.basis)
    assert ("prices" in str(asked.together)) is ("List prices" not in [mover.name for mover in asked.movers])


def test_a_smaller_model_of_the_series_is_priced_where_the_sheet_has_none_that_costs_less() -> None:
    """A dearer model of the sheet is no way to pay less."""
    load = {"users": "500", "workloads": "rag", "tiers": "", "region": "eu", "as_of": "2026-11-20"}
    question = ask(Catalog(), {"models": "qwen3-32b,gpt-oss-120b", "ask": "gpt-oss-120b", **load})
    solved = solve(question)
    record = with_smaller_model(record_for(solved), solved)
    dearer, cell = record.headline_cells
    assert dearer.smaller_model is None and dearer.answer.monthly_usd > cell.answer.monthly_usd
    smaller = cell.smaller_model
    assert smaller is not None and smaller.model == "gpt-oss-20b"
    alone = recommend(model="gpt-oss-20b", users=500, context="16k", region="eu", as_of="2026-11-20")
    names = ("instance", "n_instances", "monthly_usd", "chance")
    assert [getattr(smaller, name) for name in names] == [pytest.approx(alone[name]) for name in names]
    told = " ".join(map(str, build_page(record, question).request.reasons))
    assert f"gpt-oss-20b costs {full_money(smaller.monthly_usd)}" in told and "not compared" in told
    assert "Qwen3" not in told
    assert smaller.n_instances == 1 < cell.answer.n_instances and "nothing served if it fails; quality" in told
    solved = solve(ask(Catalog(), {**ASKED, "users": "300", "tiers": ""}))
    assert {cell.smaller_model for cell in with_smaller_model(record_for(solved), solved).cells} == {None}


def test_a_price_of_ones_own_is_no_list_price() -> None:
    """It moves with nothing, and its list is named."""
    question = ask(Catalog(), {**ASKED, "users": "300", "tiers": ""})
    _, cell = requested(users="300", tiers="")
    own = [
        replace(candidate, brought=True, source="price list mine.csv (on-demand)")
        if candidate.instance == cell.answer.instance
        else candidate
        for candidate in question.candidates
    ]
    solved = solve(replace(question, candidates=tuple(own)))
    record = record_for(solved)
    moves = {move.input: move for move in record.headline_cells[1].moves}
    others = {move.input: move for move in cell.moves}
    assert "price_factor" in others and "price_factor" not in moves
    assert 1.25 * moves[EVERYTHING].high_usd == pytest.approx(others[EVERYTHING].high_usd)  # type: ignore[operator]
    asked = build_page(record, solved.question).request
    assert "price list mine.csv" in str(asked.basis) and "List prices" not in [mover.name for mover in asked.movers]


def test_an_old_price_keeps_its_bar() -> None:
    question = ask(Catalog(), EUROPEAN | {"as_of": "2026-11-20", "ask": "gpt-oss-120b"})
    solved = solve(replace(question, headline=(1, 0)))
    asked = build_page(record_for(solved), solved.question).request
    assert "days old" in str(asked.basis) and "List prices" in [mover.name for mover in asked.movers]


def test_a_day_of_measuring_on_a_machine_that_is_not_rented_is_named() -> None:
    question = ask(Catalog(), {"models": "qwen3-32b,gpt-oss-120b", "ask": "gpt-oss-120b", **PEOPLE})
    record = record_for(solve(question))
    other, own = (cell.measure for cell in record.headline_cells)
    assert other is not None and other.decider is not None and own is not None and own.decider is None
    [told] = [str(line) for line in build_page(record, question).load_note if "day of measuring" in str(line)]
    cheaper = f"{full_money(other.decider.usd)} for Qwen3 32B on {instance_name(other.decider.instance)}, "
    assert f"costs {full_money(own.usd)}; {cheaper}" in told and f" {full_money(other.decider.monthly_usd)} a " in told


def test_the_certainty_is_of_the_targets_and_not_of_the_times_that_are_expected() -> None:
    for more in ({}, {"ttft_ms": "9000"}):
        asked, cell = requested(users="300", tiers="", **more)
        at, first, paced = cell.answer.sure_at, cell.ttft_target_seconds or 0, cell.tpot_target_seconds or math.nan
        targets = f"{first:.1f} s and {1 / paced:.0f} tokens a second on average, with up to {at.requests} at once"
        assert capital(str(sure(cell.answer.chance))) in str(asked.sure_of) and targets in str(asked.sure_of)
        assert str(asked.sure_of).startswith(str(asked.certain).rstrip("."))
        expected = {f"{at.ttft_seconds:.1f}", f"{1 / at.tpot_seconds:.0f}"} - {f"{1 / paced:.0f}", f"{first:.1f}"}
        assert len(expected) == 2 and not expected.intersection(re.findall(r"[\d.]+", str(asked.sure_of)))
    unaimed, _ = requested(users="300", tiers="", ttft_ms="off", tpot_ms="off")
    assert "first words" not in str(unaimed.sure_of) and "tokens a second" not in str(unaimed.sure_of)


@pytest.mark.parametrize("users", ["200", "900", "20000"])
def test_requests_at_once_have_one_name_and_number_on_page_and_terminal(users: str) -> None:
    """The mean at peak, and the most that the certainty is of: terminal and sheet name both, the request the most."""
    asked, cell = requested(users=users, tiers="", models="70b")
    question = ask(Catalog(), {**ASKED, "users": users, "models": "70b"} | {"tiers": None})
    sheet = build_page(record_for(solve(question)), question)
    mean, most = "([\\d.,]+) at once on average", "up to ([\\d,]+)"
    told = re.findall(f"{mean}, {most}( a machine)?", question_words(question, cell))
    assert told == [(rate_text(cell.concurrent_requests or 0), told[0][1], told[0][2])]
    assert re.findall(f"with {most} at once( a machine)?", str(asked.sure_of)) == [told[0][1:]]
    assert re.findall(f"{mean}, {most}( a machine)?", " ".join(map(str, sheet.load_note))) == told
    assert bool(told[0][2]) == (cell.answer.n_instances > 1)


@pytest.mark.parametrize("load", LOADS)
def test_every_sentence_of_a_request_begins_with_a_capital(load: str) -> None:
    """Or with a number."""
    asked, _ = requested(**LOADS[load])
    texts = [asked.sentence, asked.finding, asked.why, *asked.reasons, asked.less_only, asked.sure_of, asked.together]
    texts += [*asked.serves, *asked.risks, *asked.warnings, asked.owning, asked.basis]
    texts += [fact for option in asked.options for fact in option.facts]
    told = [str(text) for text in texts if text]
    assert len(told) > 15 and [text for text in told if re.search(r"(^|[.!?] )[a-z]", text)] == []


def test_a_failed_machine_says_what_the_others_do_at_the_peak() -> None:
    """They queue the requests that they do not clear; where they clear all, but not within the targets, more wait."""
    told, lengths = set[str](), {"users": "200", "tiers": ""}
    for more in ({"users": "300"}, {"users": "640"}, {"users": "600", "confidence": "0.9"}, {"users": "900"}):
        asked, cell = requested(**lengths | more)
        n, waits = cell.answer.n_instances, cell.waits
        assert waits is not None and waits.cleared_per_hour_less_machine is not None
        served = cell.answer.served_at_target * (n - 1) / n >= cell.requests_per_second
        grows = waits.cleared_per_hour_less_machine < cell.requests_per_hour
        figures = f"{waits.cleared_per_hour_less_machine:,.0f} of {cell.requests_per_hour:,.0f} an hour"
        assert (figures in str(asked.failure)) is (grows and n > 1), more
        told |= {"alone" if n == 1 else "all" if served else "queue" if grows else "waits"}
        assert ("more wait" in str(asked.failure)) is (n > 1 and not served and not grows)
    assert {"queue"} < told


def test_more_that_wait_than_planned_stand_beside_the_plan() -> None:
    shares = []
    for more in (EUROPEAN, {"users": "300", "tiers": ""}):
        asked, cell = requested(**more)
        [speed] = [str(text) for text in asked.serves if str(text).startswith("First word")]
        shares.append(cell.wait_fraction or 0)
        assert f"; {100 * shares[-1]:.2g}% queue first" in speed
        assert "Worst" not in speed and "99% within" in speed
    assert min(shares) < 0.05 < max(shares)
