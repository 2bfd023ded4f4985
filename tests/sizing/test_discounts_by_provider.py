"""Discounts by provider and purchase class: what the option takes, which of them holds, and what is paid then."""

from __future__ import annotations

import pytest
from answers import record_for

from sheetgen.answer import ways_to_pay
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.question.discounts import option_text
from sheetgen.question.sheet_question import ask
from sheetgen.report import notes, wording

CATALOG = Catalog()
ONE = {"models": "70b", "workloads": "rag", "tiers": "32", "as_of": "2026-11-20"}
SOME = "0.02,aws=0.1,azure:reserved-1yr=0.2,reserved-1yr=0.05,aws:spot=0"


@pytest.mark.parametrize(
    ("provider", "purchase", "fraction"),
    [
        ("gcp", "on-demand", 0.02),  # all
        ("gcp", "reserved-1yr", 0.05),  # the class over all
        ("aws", "reserved-1yr", 0.1),  # the provider over the class
        ("azure", "reserved-1yr", 0.2),  # both over either
        ("azure", "reserved-3yr", 0.02),
        ("AWS", "spot", 0),  # 0 is stated, and takes nothing off
        ("a provider of one's own", "reserved-1yr", 0.05),
    ],
)
def test_the_most_specific_holds(provider: str, purchase: str, fraction: float) -> None:
    assert ask(CATALOG, {**ONE, "discount_fraction": SOME}).discount(provider, purchase) == fraction


def test_the_option_is_read_as_it_is_written() -> None:
    question = ask(CATALOG, {**ONE, "discount_fraction": SOME})
    assert question.settings.discount_fraction == 0.02
    again = ask(CATALOG, {**ONE, "discount_fraction": option_text(0.02, question.discounts)})
    assert again.discounts == question.discounts
    assert not ask(CATALOG, {**ONE, "discount_fraction": "0.2"}).discounts
    assert ask(CATALOG, {**ONE, "discount_fraction": "aws=0.2"}).settings.discount_fraction == 0


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("asw=0.1", "discount_fraction names 'asw', which is no provider .* Did you mean aws?"),
        ("reserved-2yr=0.1", r"names 'reserved-2yr', .* Did you mean reserved-\dyr?"),
        (
            "azure:reserved-1y=0.1",
            "discount_fraction of 'azure:reserved-1y': 'reserved-1y' is no purchase class. "
            ".* Did you mean reserved-1yr?",
        ),
        ("azur:spot=0.1", "'azur' is no provider. .* Did you mean azure?"),
        (
            "aws=1.5",
            r"discount_fraction of aws is '1\.5'\. .*to 0\.99\. Write 0\.015 or 1\.5%\.",
        ),
        ("aws=", "discount_fraction of aws is ''"),
        ("=0.1", "has a part without a name before the ="),
        ("aws=0.1,AWS=0.2", "discount_fraction names aws twice"),
        ("0.1,0.2,aws=0.3", "discount_fraction is '0.1,0.2'"),
    ],
)
def test_what_is_no_discount_is_refused_by_name(value: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        ask(CATALOG, {**ONE, "discount_fraction": value})


def test_every_price_is_less_by_the_discount_of_its_provider_and_class() -> None:
    listed, less = (
        solve(ask(CATALOG, {**ONE, "discount_fraction": d})) for d in (None, "aws=0.3,aws:reserved-3yr=0.5")
    )
    choice = less.choices[0]
    assert choice.offer is not None
    candidate = less.candidate(choice.offer)
    taken_off = {"aws": 0.3}.get(candidate.provider, 0)
    assert choice.hourly_usd == pytest.approx(choice.n_instances * candidate.usd_per_hour * (1 - taken_off))
    for before, after in zip(ways_to_pay.providers(listed)[0], ways_to_pay.providers(less)[0], strict=True):
        factor = 0.7 if after.provider == "aws" else 1
        assert after.monthly_usd == pytest.approx(factor * before.monthly_usd)
    for of_class in ways_to_pay.purchase_classes(less, 0):
        price = candidate.class_price(of_class.purchase)
        taken_off = {"aws": 0.5 if of_class.purchase == "reserved-3yr" else 0.3}.get(candidate.provider, 0)
        if price:
            hourly = choice.n_instances * price.usd_per_hour * (1 - taken_off)
            assert of_class.hourly_usd == pytest.approx(hourly)
    assert less.by_purchase["reserved-3yr"][0] is not None


def test_a_discount_may_move_the_choice_to_its_provider() -> None:
    chosen = [solve(ask(CATALOG, {**ONE, "discount_fraction": f"{p}=0.9"})) for p in ("aws", "azure", "gcp")]
    providers = [log.candidate(log.choices[0].offer or 0).provider for log in chosen]
    assert providers == ["aws", "azure", "gcp"]


def test_the_page_says_them_in_words() -> None:
    solved = solve(ask(CATALOG, {**ONE, "discount_fraction": "0.02,aws=0.1,azure:reserved-1yr=0.2"}))
    question = solved.question
    words = "10% with AWS, 20% on Azure's reserved-1yr prices and 2% on all others"
    assert wording.discount_words(question) == words
    assert notes.price_banner(question, 180, "2026-06-18").startswith(f"on-demand prices less {words}, the oldest")
    assert notes.discounted(question).endswith(f"contracts take off {words}.")
    assert any(
        line.startswith(f"Prices on demand less {words}, ") for line in notes.most_assumed(record_for(solved), question)
    )
