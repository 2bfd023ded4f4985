"""Amounts as people write them, read back in every way of writing them."""

from __future__ import annotations

import random

import pytest

from sheetgen.catalog.prices.amounts import AmountError, currency_in, decimal_sign, read_amount

GROUPED = {"us": (",", "."), "de": (".", ","), "ch": ("'", "."), "fr": ("\u202f", ","), "nbsp": ("\u00a0", ",")}


def written(value: float, style: str, places: int) -> str:
    grouping, decimal = GROUPED[style]
    return f"{value:,.{places}f}".replace(",", "\0").replace(".", decimal).replace("\0", grouping)


@pytest.mark.parametrize("style", GROUPED)
def test_an_amount_is_read_as_it_was_written(style: str) -> None:
    """With thousands and without, in every style, beside signs and words; an ambiguous one only beside others."""
    draw = random.Random(f"amounts {style}")
    n_ambiguous = 0
    for _ in range(400):
        value, places = draw.choice((1, 1e2, 1e4, 1e6)) * draw.random(), draw.choice((0, 1, 2, 3, 4))
        text = written(value, style, places)
        if not any(c in "123456789" for c in text):
            continue
        around = draw.choice(
            ("{}", "$ {}", "{} €", "CHF {}", "{}/h", "{} EUR per GPU-hour", "{} pro Stunde zzgl. MwSt.")
        )
        expected = round(value, places)
        amount = read_amount(around.format(text), decimal=GROUPED[style][1])
        assert amount is not None and amount.value == pytest.approx(expected, rel=1e-12), text
        try:
            alone = read_amount(text)
        except AmountError as error:
            n_ambiguous += 1
            assert "clear about its thousands" in str(error)
        else:  # what is read alone is never another number
            assert alone is not None and alone.value == pytest.approx(expected, rel=1e-12), text
    assert n_ambiguous > 3


def test_a_sign_is_shown_by_others() -> None:
    assert decimal_sign(["2,49", "1.234", "12"]) == "," and decimal_sign(["2.49", "1,234"]) == "."
    assert decimal_sign(["1.234,50", "3"]) == "," and decimal_sign(["1.234", "12"]) == ""
    assert decimal_sign(["2,49", "2.49"]) == "" and decimal_sign(["1'200.50 CHF"]) == "."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("€", "EUR"), ("Preis in EUR", "EUR"), ("US$", "USD"), ("C$", "CAD"), ("£/h", "GBP"), ("per hour", ""),
        ("$/GPU/hr", "USD"), ("price_in_chf", "CHF"), ("kWh", ""),
    ],
)  # fmt: skip
def test_currencies(text: str, code: str) -> None:
    assert currency_in(text.replace("_", " ")) == code


@pytest.mark.parametrize(
    "text",
    ["-1", "1-2", "=1+1", "1_0", "٣", "1,23,4", "1.2.3", "2 USD 3", "¥120", "12 kr", "1e999", "2.49q", "38.5x", "1 2"],
)
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(AmountError):
        read_amount(text, ".")


@pytest.mark.parametrize("text", ["", "-", "on request", "auf Anfrage", "n/a", "unavailable"])
def test_what_is_no_price(text: str) -> None:
    assert read_amount(text) is None
