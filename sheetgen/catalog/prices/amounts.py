"""Amounts as people write them: `1.234,56 €`, `$98.32/hr`, `CHF 1'200.-`, `8`; and the currencies of price lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

USD = "USD"
HOURS_OF_A_LISTED_MONTH = 730  # lists compute monthly prices from hourly ones with this number
_SYMBOLS = {
    "us$": USD, "usd$": USD, "c$": "CAD", "ca$": "CAD", "a$": "AUD", "au$": "AUD", "s$": "SGD", "hk$": "HKD",
    "r$": "BRL", "nz$": "NZD", "nt$": "TWD", "mx$": "MXN", "rmb": "CNY",
    "$": USD, "€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "zł": "PLN", "euro": "EUR", "euros": "EUR",
    "dollar": USD, "dollars": USD,
}  # fmt: skip
CURRENCIES = {
    "AED", "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY",
    "KRW", "MXN", "MYR", "NOK", "NZD", "PLN", "RON", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "USD", "ZAR",
}  # fmt: skip
_AMBIGUOUS = {"¥": "JPY or CNY", "kr": "SEK, NOK or DKK", "kr.": "SEK, NOK or DKK"}
_BLANKS = "\u00a0\u2007\u2009\u202f "
_NUMBER = re.compile(rf"[0-9](?:[0-9.,'’{_BLANKS}]*[0-9])?(?:[eE][+-]?[0-9]{{1,3}})?|\.[0-9]+")
# Words that may stand around a number: the unit and the period of the price.
_AROUND = re.compile(
    r"(?:per|pro|par|je|/|from|ab|hourly|hours?|hrs?|h|stunden?|std|stdl|heures?|monthly|months?|mo|mth|"
    r"monate?|mtl|mois|yearly|years?|yr|annually|jahre?|days?|tage?|gpus?|instances?|nodes?|servers?|gib|gb|netto|net|"
    r"excl|exkl|ex|zzgl|vat|ust|mwst|[.,;:()*-])"
)
MOST_LENGTH = 80


class AmountError(ValueError):
    """A text that is no valid amount; the message says what it must be, to follow `It must be`."""


@dataclass(frozen=True)
class Amount:
    """A number, and the currency beside it (empty for none)."""

    value: float
    currency: str = ""


def read_amount(text: str, decimal: str = "") -> Amount | None:
    """The amount that a text states; None if it has no digit, such as `on request`.

    decimal: the decimal sign, for numbers whose one separator could also group thousands; empty if unknown.
    Raises AmountError for text that is no amount of 0 or more, or is ambiguous.
    """
    if not any(c.isdigit() for c in text):
        return None
    is_plain = re.sub(rf"[{_BLANKS}]", " ", text).isprintable() and len(text) <= MOST_LENGTH
    number = _NUMBER.search(text) if is_plain else None
    if number is None or text[: number.start()].rstrip().endswith(("-", "=", "@")):
        raise AmountError("a plain number of 0 or more")
    around = f"{text[: number.start()]} {text[number.end() :]}"
    return Amount(_number(number[0], decimal), currency_in(around, is_all=True))


def currency_in(text: str, is_all: bool = False) -> str:
    """The currency that a text names by sign or code; empty for none.

    is_all: the text may hold nothing else but words such as `per hour`. Raises AmountError for other text then, and for
    a sign of several currencies or several currencies.
    """
    currency = ""
    for word in re.findall(r"[A-Za-zÀ-ž]*[$€£₹₩¥]|[^\W\d_]+\.?|\S", text):
        low = word.lower()
        if low in _AMBIGUOUS:
            raise AmountError(f"in one currency: {word} is {_AMBIGUOUS[low]}. Write its code")
        code = _SYMBOLS.get(low) or (word.upper() if word.upper() in CURRENCIES else "")
        if code and currency in ("", code):
            currency = code
        elif code:
            raise AmountError(f"in one currency, not {currency} and {code}")
        elif low.endswith("$"):
            raise AmountError(f"in a currency by its code: {word} is not known")
        elif is_all and not _AROUND.fullmatch(low.rstrip(".") or low):
            raise AmountError("a plain number, such as 2.49")
    return currency


def _number(text: str, decimal: str) -> float:
    """The value of a number with any separators. Raises AmountError where these are wrong or ambiguous."""
    blanks = re.sub(rf"[{_BLANKS}]", " ", text)
    if " " in blanks and not re.fullmatch("[0-9]{1,3}( [0-9]{3})+([.,][0-9]+)?", blanks):
        raise AmountError("one number")
    bare = re.sub("[ '’]", "", blanks)
    fraction = _fraction_sign(bare) or decimal
    if _is_ambiguous(bare) and not fraction:
        whole, rest = re.split("[.,]", bare)
        raise AmountError(f"clear about its thousands: write {whole}.{rest}0 or {whole}{rest}.00")
    grouping = {".": ",", ",": "."}.get(fraction, "")
    in_thousands = rf"[0-9]{{1,3}}(\{grouping}[0-9]{{3}})+(\{fraction}[0-9]+)?"
    if grouping and grouping in bare and not re.fullmatch(in_thousands, bare):
        raise AmountError("a plain number, such as 2.49")
    value = float(bare.replace(grouping, "").replace(fraction, ".") if fraction else bare)
    if value == float("inf"):
        raise AmountError("a plain number of 0 or more")
    return value


def _is_ambiguous(bare: str) -> bool:
    """True for a number whose one separator could group thousands or precede a fraction of three digits."""
    return bool(re.fullmatch("[1-9][0-9]{0,2}[.,][0-9]{3}", bare))


def _fraction_sign(bare: str) -> str:
    """The decimal sign where the number itself shows it, else ""."""
    if _is_ambiguous(bare) or not (signs := re.findall("[.,]", bare)):
        return ""
    if len(signs) > 1 and len({*signs}) == 1:  # it groups thousands
        return "," if signs[0] == "." else "."
    return str(signs[-1])


def decimal_sign(texts: Iterable[str]) -> str:
    """The decimal sign of these amounts; empty where none of them shows it or they differ."""
    numbers = (re.sub("[ '’]", "", number[0]) for text in texts for number in [_NUMBER.search(text)] if number)
    signs = {sign for sign in map(_fraction_sign, numbers) if sign}
    return signs.pop() if len(signs) == 1 else ""
