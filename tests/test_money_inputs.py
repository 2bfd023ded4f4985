"""Typed inputs of money: read strictly, each problem in one line; quotes and terms in place of the catalog's."""

from __future__ import annotations

import pytest

from sheetgen.catalog import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.question.inputs import asked_in
from sheetgen.question.sheet_question import Question, ask
from sheetgen.units import OWNING_TERMS as TERMS

H100, H200, L4 = "nvidia-h100-sxm5-80gb", "nvidia-h200-sxm5-141gb", "nvidia-l4-24gb"


def question(**options: object) -> Question:
    return ask(Catalog(), {"models": "8b", "as_of": "2026-11-20", **options})


BAD = {
    "currency without a rate": ({"currency": "EUR"}, "currency is 'EUR', but no fx_rate is given"),
    "rate without a currency": ({"fx_rate": "0.92"}, "fx_rate is 0.92, but currency is USD"),
    "currency of four letters": ({"currency": "EURO", "fx_rate": 1}, "currency is 'EURO'. Write its three letters"),
    "currency as a sign": ({"currency": "€", "fx_rate": 1}, "Write its three letters"),
    "currency as a formula": ({"currency": "=A1", "fx_rate": 1}, "Write its three letters"),
    "rate of 0": ({"currency": "EUR", "fx_rate": "0"}, "fx_rate is '0'. It must be a number above 0"),
    "negative rate": ({"currency": "EUR", "fx_rate": "-0.9"}, "fx_rate is '-0.9'"),
    "infinite rate": ({"currency": "EUR", "fx_rate": "inf"}, "fx_rate is 'inf'"),
    "rate with a comma": ({"currency": "EUR", "fx_rate": "0,92"}, "fx_rate is '0,92'"),
    "day of the rate": ({"fx_date": "yesterday"}, "fx_date is 'yesterday'. Write a date"),
    "day too early": ({"fx_date": "1999-12-31"}, "from 2000-01-01 to 2100-01-01"),
    "utilization of 0": ({"utilization": "0"}, "utilization is '0'. It must be a number from 0.01 to 1."),
    "utilization of 2": ({"utilization": "2"}, "utilization is '2'"),
    "utilization nan": ({"utilization": "nan"}, "utilization is 'nan'"),
    "utilization as a factor": ({"utilization": "1.7"}, "Write 0.017 or 1.7%"),
    "negative contingency": ({"contingency_fraction": "-0.1"}, "contingency_fraction is '-0.1'"),
    "contingency over all": ({"contingency_fraction": "110%"}, "contingency_fraction is '110%'"),
    "negative quote": ({"capex_usd_per_gpu": "-1"}, "capex_usd_per_gpu is '-1'. It must be a number above 0"),
    "free GPUs": ({"capex_usd_per_gpu": "0"}, "capex_usd_per_gpu is '0'"),
    "endless quote": ({"capex_usd_per_gpu": "inf"}, "capex_usd_per_gpu is 'inf'"),
    "quote of an unknown GPU": ({"capex_usd_per_gpu": "h1000=5"}, "Did you mean h100?"),
    "two quotes": ({"capex_usd_per_gpu": "h100=5,h100=6"}, f"capex_usd_per_gpu names {H100} twice"),
    "a quote without a name": ({"capex_usd_per_gpu": "h100=5,6"}, "capex_usd_per_gpu has '6'"),
    "power": ({"kw_per_gpu": "h100=nan"}, "kw_per_gpu of h100 is 'nan'"),
    "no years": ({"owned_years": "0"}, "owned_years is '0'. It must be a number from 1 to 20."),
    "PUE below 1": ({"pue": "0.9"}, "pue is '0.9'. It must be a number from 1 to 5."),
    "negative electricity": ({"usd_per_kwh": "-0.1"}, "usd_per_kwh is '-0.1'"),
    "negative site": ({"colo_usd_per_kw_month": "-1"}, "colo_usd_per_kw_month is '-1'"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_line_with_the_name_the_value_and_what_is_allowed(case: str) -> None:
    options, words = BAD[case]
    with pytest.raises(SheetgenError) as caught:
        question(**options)
    (line,) = caught.value.problems
    assert words in line and "\n" not in line


@pytest.mark.some(40)
@pytest.mark.parametrize(
    "name", [setting.name for setting in asked_in("money") if setting.name not in ("currency", "fx_date")]
)
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-inf", "x", "", "1e99"])
def test_no_number_is_negative_or_endless(name: str, value: str) -> None:
    more = {"currency": "EUR"} if name == "fx_rate" else {}
    with pytest.raises(SheetgenError, match=name):
        question(**{**more, name: value})


def test_all_problems_in_one_run() -> None:
    with pytest.raises(SheetgenError) as caught:
        question(utilization=3, contingency_fraction=-1, currency="EURO", pue=0, owned_years="x")
    assert len(caught.value.problems) == 5


def test_defaults_are_the_catalogs() -> None:
    asked = question()
    assert asked.settings.currency == "USD" and asked.settings.fx_rate == 1
    assert dict(asked.owning.values) == {name: term.value for name, term in asked.owning.terms.items()}
    assert set(asked.owning.values) == set(TERMS)
    h100 = asked.owning.gpus[H100]
    assert h100.capex_usd == (25_000, 30_000, 40_000) and h100.is_module_price == 1 and h100.capex_as_of == "2026-06"


def test_a_quote_is_of_an_installed_gpu() -> None:
    every = question(capex_usd_per_gpu="39,375").owning.gpus
    assert {owned.capex_usd for owned in every.values()} == {(39_375,) * 3}
    assert {owned.is_module_price for owned in every.values()} == {0}
    some = question(capex_usd_per_gpu="h200=39375, l4=3e3", kw_per_gpu="h200=1.5").owning.gpus
    assert some[H200].capex_usd == (39_375,) * 3 and some[H200].capex_source == "your quote"
    assert some[H200].stated_kw_per_gpu == 1.5 and some[H200].is_it_power == 0
    assert some[L4].capex_usd == (3000,) * 3 and some[H100] == question().owning.gpus[H100]


def test_terms_given_win() -> None:
    asked = question(owned_years=3, usd_per_kwh="0.2", pue=1.2, currency="eur", fx_rate=0.92, fx_date="2026-11-01")
    assert asked.owning.values["owned_years"] == 3 and asked.owning.values["usd_per_kwh"] == 0.2
    assert asked.owning.values["pue"] == 1.2 and asked.settings.currency == "EUR"
    assert (asked.settings.fx_rate, asked.settings.fx_date) == (0.92, "2026-11-01")
