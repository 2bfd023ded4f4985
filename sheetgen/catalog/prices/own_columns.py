"""The columns of a price list of any form, by what they are called: whose machine it is, its GPUs, its prices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sheetgen.catalog.prices.amounts import HOURS_OF_A_LISTED_MONTH, AmountError, currency_in
from sheetgen.catalog.prices.known_columns import NAMES, PLAIN
from sheetgen.errors import CatalogError, shown
from sheetgen.units import ON_DEMAND

OF_WINDOWS = ("product name", "meter name", "sku name", "name", "price description")  # may name another product
_HOURS_OF = {  # what a price is for, and the words that say so
    1.0: "hour hours hr hrs h hourly stunde stunden std stündlich stundenpreis heure dph",
    3 * HOURS_OF_A_LISTED_MONTH: "quarter quarters quarterly quartal",
    24.0: "day daily tag",
    168.0: "week weekly woche",
    HOURS_OF_A_LISTED_MONTH: "month months monthly mo mth monat monatlich monatliche monatlicher mtl monatspreis mois",
    12 * HOURS_OF_A_LISTED_MONTH: "year yearly annual annually jahr",
    1 / 60: "minute min",
    1 / 3600: "second sec",
}
PERIODS = {word: hours for hours, words in _HOURS_OF.items() for word in words.split()}
_PRICE = re.compile(
    r"\b(price|prices|pricing|cost|costs|rate|preis|preise|kosten|prix|tarif|demand|spot|reserved|dph|hourly|monthly|"
    r"priceperunit|usd|eur|gbp|chf|stundenpreis|monatspreis|payg|miete|mietpreis)\b|[$€£]"
)
_NO_PRICE = re.compile(  # columns of money that is not for the machine and its time
    r"\b(windows|rhel|suse|dedicated|storage|speicher|disk|egress|traffic|setup|einrichtung|upfront|deposit|vcpu|ram|"
    r"old|vorher|discount|rabatt|savings|saving|brutto|gross|incl|inkl|ttc|id|code|type|date|currency|model|change|"
    r"with vat|mit mwst|mit ust|limit|exchange|description|source|emr|elasticache|opensearch|per tflop|token|tokens|"
    r"million|sold)\b"
)
_GERMAN = re.compile(r"\b(preis|stunde|stündlich|std|monat|anbieter|standort|anzahl|stundenpreis|monatspreis)\b")
PURCHASE_WORDS: tuple[tuple[str, str], ...] = (
    (r"spot|preemptible|interruptible|low priority|minimum bid", "spot"),
    (r"capacity block", "capacity-block"),
    (r"\b((3|three|drei) ?(y|yrs?|years?|jahre?)|36 ?m\w*)\b", "reserved-3yr"),
    (r"\b((1|one|ein) ?(y|yrs?|years?|jahr)|12 ?m\w*)\b", "reserved-1yr"),
)
_COMMITMENT = r"reserv|commit|\bcud\b|\b([0-9]+|two|zwei|five|fünf) ?(y|yrs?|years?|jahre?|months?|monate?|m)\b"
PER_GPU = re.compile(
    r"\b(per|je|pro|par) (gpu|card|accelerator|karte)\b|^gpu\b(?! server| node| instance)|[$€£] gpu\b|"
    r"\b(gpu|card|accelerator) (h|hrs?|hours?|stunden?|std|months?|mo|monat|price|preis|cost)\b|\bgpu$"
)


@dataclass(frozen=True)
class PriceColumn:
    """A column of prices: of which class, for how many hours (0: the header does not say), of one GPU or of the whole,
    in which currency, and the part of it that its numbers are in (0.01: cents)."""

    column: str
    purchase: str
    hours: float
    per_gpu: bool
    currency: str
    scale: float


@dataclass(frozen=True)
class OwnColumns:
    """The columns of a list, by role; `plain` has those that tell another product."""

    of: Mapping[str, str]
    prices: tuple[PriceColumn, ...]
    others: tuple[PriceColumn, ...]  # of a class that another column is read for
    plain: Mapping[str, tuple[str, ...]]
    of_windows: tuple[str, ...]
    is_german: bool


def plain(header: str) -> str:
    """A column's name in lower-case words: `InstanceType` and `instance_type` are `instance type`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", " ", header)
    return " ".join(re.sub(r"[_\-/()\[\].:#*,&]+", " ", parted).lower().split())


def own_columns(header: Sequence[str]) -> OwnColumns | None:
    """What the columns of a header are, where it names a machine or a GPU and a price; else nothing.

    Raises CatalogError, without the place, where two columns could be the price of one class.
    """
    by_plain: dict[str, str] = {}
    for name in header:
        by_plain.setdefault(plain(name), name.lower())
    prices = [one for name in header if name and (one := _price(name))]
    taken = {one.column for one in prices}
    of: dict[str, str] = {}
    for role, names in NAMES.items():
        free = (by_plain[name] for name in names if name in by_plain and by_plain[name] not in taken)
        if (found := next(free, None)) is not None:
            of[role] = found
            taken.add(found)
    if "gpu_count" in of and "gpu" not in of and plain(of["gpu_count"]) == "gpus":  # `8x H100` in one column
        of["gpu"] = of["gpu_count"]
    if not prices or not {"name", "gpu"} & of.keys():
        return None
    read = _one_of_each(prices)
    return OwnColumns(
        of,
        tuple(read),
        tuple(one for one in prices if one not in read),
        {by_plain[name]: allowed for name, allowed in PLAIN.items() if name in by_plain},
        tuple(by_plain[name] for name in OF_WINDOWS if name in by_plain),
        bool(_GERMAN.search(" ".join(by_plain))),
    )


def _price(name: str) -> PriceColumn | None:
    """The column of that name as one of prices, or nothing where it is none."""
    words = plain(name)
    if not _PRICE.search(words) or _NO_PRICE.search(words) or words in NAMES["spot"] + NAMES["unit"]:
        return None
    purchase = purchase_in(words)
    if purchase is None:
        return None
    try:
        marks = re.findall(r"[a-zà-ž]*[$€£₹₩¥]|[a-zà-ž]+|[^\w\s]", words.replace("dollar", "usd"))
        currency = currency_in(" ".join(marks))
    except AmountError as error:
        raise CatalogError(f"column {shown(name)}: its prices must be {error}") from error
    periods = [PERIODS[word] for word in re.findall(r"[^\W\d_]+", words) if word in PERIODS]
    if purchase.startswith("reserved"):  # `1 year` is the term
        periods = [hours for hours in periods if hours <= HOURS_OF_A_LISTED_MONTH]
    hours = sum(hours * how_many(words, hours) for hours in periods[:1])
    scale = 0.01 if re.search(r"\b(cents?|cts?)\b", words) else 1.0
    return PriceColumn(name.lower(), purchase, hours, bool(PER_GPU.search(words)), currency, scale)


def how_many(words: str, period_hours: float) -> float:
    """The 10 of `10 hours`, for a period of that many hours; 1 where no number stands before it."""
    names = "|".join(word for word, hours in PERIODS.items() if hours == period_hours)
    counted = re.search(rf"\b([1-9][0-9]*) ?({names})\b", words.lower())
    return float(counted[1]) if counted else 1.0


def purchase_in(words: str) -> str | None:
    """The purchase class that words name, on demand where they name none; None for a commitment without its term."""
    low = words.lower()
    for pattern, purchase in PURCHASE_WORDS:
        if re.search(pattern, low):
            return purchase
    return None if re.search(_COMMITMENT, low) else ON_DEMAND


def _one_of_each(prices: Sequence[PriceColumn]) -> list[PriceColumn]:
    """One column of each class: in dollars before others, by the hour before others, of the machine before the GPU."""

    def rank(one: PriceColumn) -> tuple[bool, bool, bool, bool]:
        is_other_currency, is_unit_price = one.currency not in ("", "USD"), one.column in ("unitprice", "unit_price")
        return is_other_currency, one.hours != 1, one.per_gpu, is_unit_price

    best: dict[str, PriceColumn] = {}
    for one in sorted(prices, key=rank):
        before = best.setdefault(one.purchase, one)
        if before is not one and rank(before) == rank(one):
            both = f"{shown(before.column)} and {shown(one.column)}"
            what = f"columns {both} could both be the {one.purchase} price"
            raise CatalogError(f"{what}. Take one out, or name its class, such as spot price")
    return [one for one in prices if best[one.purchase] is one]
