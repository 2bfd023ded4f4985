"""The columns of a price list of any form, recognized by their names: provider, machine, GPUs, prices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sheetgen.catalog.prices.amounts import HOURS_OF_A_LISTED_MONTH, AmountError, currency_in
from sheetgen.catalog.prices.known_columns import NAMES, PLAIN
from sheetgen.errors import CatalogError, shown
from sheetgen.units import ON_DEMAND

OF_WINDOWS = ("product name", "meter name", "sku name", "name", "price description")  # may name another product
_HOURS_OF = {  # by the hours of a price, the words for its period
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
_NO_PRICE = re.compile(  # columns of amounts that are not the price of the machine's time
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
    """A column of prices: purchase class, hours of a price (0: not stated), per GPU or per machine, currency (empty:
    not stated), and the scale of its numbers (0.01: cents)."""

    name: str
    purchase: str
    hours: float
    per_gpu: bool
    currency: str
    scale: float


@dataclass(frozen=True)
class OwnColumns:
    """The columns of a list: by role, of prices, and those that reveal another product.

    plain: by column the values of a plain machine; any other value is another product.
    """

    roles: Mapping[str, str]
    prices: tuple[PriceColumn, ...]
    others: tuple[PriceColumn, ...]  # of a class for which another column is read
    plain: Mapping[str, tuple[str, ...]]
    of_windows: tuple[str, ...]
    is_german: bool


def plain(header: str) -> str:
    """A column's name as lower-case words: `InstanceType` and `instance_type` are `instance type`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", " ", header)
    return " ".join(re.sub(r"[_\-/()\[\].:#*,&]+", " ", parted).lower().split())


def own_columns(header: Sequence[str]) -> OwnColumns | None:
    """The columns of a header by role; None unless it has a machine or GPU and a price.

    Raises CatalogError, without the location, where two columns could be the price of one class.
    """
    by_plain: dict[str, str] = {}
    for name in header:
        by_plain.setdefault(plain(name), name.lower())
    prices = [price for name in header if name and (price := _price(name))]
    taken = {price.name for price in prices}
    roles: dict[str, str] = {}
    for role, names in NAMES.items():
        free = (by_plain[name] for name in names if name in by_plain and by_plain[name] not in taken)
        if (column := next(free, None)) is not None:
            roles[role] = column
            taken.add(column)
    if "gpu_count" in roles and "gpu" not in roles and plain(roles["gpu_count"]) == "gpus":  # `8x H100` in one column
        roles["gpu"] = roles["gpu_count"]
    if not prices or not {"name", "gpu"} & roles.keys():
        return None
    read = _one_of_each(prices)
    return OwnColumns(
        roles,
        tuple(read),
        tuple(price for price in prices if price not in read),
        {by_plain[name]: allowed for name, allowed in PLAIN.items() if name in by_plain},
        tuple(by_plain[name] for name in OF_WINDOWS if name in by_plain),
        bool(_GERMAN.search(" ".join(by_plain))),
    )


def _price(name: str) -> PriceColumn | None:
    """The price column of that name; None if it is no price column."""
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
    if purchase.startswith("reserved"):  # `1 year` is the term, not the period
        periods = [hours for hours in periods if hours <= HOURS_OF_A_LISTED_MONTH]
    hours = sum(hours * how_many(words, hours) for hours in periods[:1])
    scale = 0.01 if re.search(r"\b(cents?|cts?)\b", words) else 1.0
    return PriceColumn(name.lower(), purchase, hours, bool(PER_GPU.search(words)), currency, scale)


def how_many(words: str, period_hours: float) -> float:
    """The number before a period of `period_hours`: 10 in `10 hours`; 1 where there is none."""
    names = "|".join(word for word, hours in PERIODS.items() if hours == period_hours)
    counted = re.search(rf"\b([1-9][0-9]*) ?({names})\b", words.lower())
    return float(counted[1]) if counted else 1.0


def purchase_in(words: str) -> str | None:
    """The purchase class that words name: on demand if they name none, None for a commitment of another term."""
    low = words.lower()
    for pattern, purchase in PURCHASE_WORDS:
        if re.search(pattern, low):
            return purchase
    return None if re.search(_COMMITMENT, low) else ON_DEMAND


def _one_of_each(prices: Sequence[PriceColumn]) -> list[PriceColumn]:
    """One column of each class, preferring dollars, then prices per hour, then per machine to those per GPU.

    Raises CatalogError where two columns of a class are equally good.
    """

    def rank(price: PriceColumn) -> tuple[bool, bool, bool, bool]:
        is_unit_price = price.name in ("unitprice", "unit_price")
        return price.currency not in ("", "USD"), price.hours != 1, price.per_gpu, is_unit_price

    best: dict[str, PriceColumn] = {}
    for price in sorted(prices, key=rank):
        before = best.setdefault(price.purchase, price)
        if before is not price and rank(before) == rank(price):
            both = f"{shown(before.name)} and {shown(price.name)}"
            problem = f"columns {both} could both be the {price.purchase} price"
            raise CatalogError(f"{problem}. Take one out, or name its class, such as spot price")
    return [price for price in prices if best[price.purchase] is price]
