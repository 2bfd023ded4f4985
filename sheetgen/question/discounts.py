"""Discounts of contracts on rental prices beside the one on all of them: by provider, by purchase class, by both."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.formula import Quantity, formula, is_number, where
from sheetgen.question import parse
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.parse import Raw, name_part
from sheetgen.units import EXACT_PERCENT, PURCHASES

OPTION = "discount_fraction"
CELL = "discount_of_"  # prefix of the names of their cells
Key = tuple[str, str]  # a provider and a purchase class; "" stands for every one
Discounts = Mapping[Key, float]


@formula("Discount in force", EXACT_PERCENT)
def discount_in_force(
    of_provider_and_class: Quantity, of_provider: Quantity, of_class: Quantity, in_general: Quantity
) -> Quantity:
    """Discount of a contract on the prices of a provider in a purchase class, as a share: the most specific that is
    stated.

    Source: definition; blank is not stated, and 0 takes nothing off.
    """
    otherwise = where(is_number(of_provider), of_provider, where(is_number(of_class), of_class, in_general))
    return where(is_number(of_provider_and_class), of_provider_and_class, otherwise)


def in_general(value: Raw) -> Raw:
    """The part of the option that holds for all prices; None where it has none."""
    if value is None or "=" not in str(value):
        return value
    return ",".join(part for part in parse.words(str(value)) if "=" not in part) or None


def discounts_of(value: object, providers: Collection[str]) -> Discounts:
    """The parts of the option that are by provider or purchase class: `aws=0.1,reserved-3yr=0.05,azure:spot=0.2`.

    Raises ScenarioError with every problem.
    """
    problems, discounts = Problems(), dict[Key, float]()
    for part in parse.words("" if value is None else str(value)):
        name, equals, figure = (word.strip() for word in part.rpartition("="))
        if equals and (key := problems.attempt(_key, name, providers)):
            if key in discounts:
                problems.append(f"{OPTION} names {words_of(key)} twice. Keep one.")
            discounts[key] = float(problems.attempt(BY_NAME[OPTION].parse, figure, f"{OPTION} of {shown(name)}") or 0)
    if problems:
        raise ScenarioError(*problems)
    return discounts


def _key(name: str, providers: Collection[str]) -> Key:
    colon = ":" in name
    provider, purchase = (word.strip() for word in key_of(name.lower()))
    if not colon and provider and provider not in providers:
        near = did_you_mean(provider, (*providers, *PURCHASES))
        raise ScenarioError(
            f"{OPTION} names {shown(name)!r}, which is no provider and no purchase class. Write aws=0.1, "
            f"reserved-1yr=0.2, or both as azure:reserved-1yr=0.2.{near}"
        )
    for word, kind, words in ((provider, "provider", providers), (purchase, "purchase class", tuple(PURCHASES))):
        if colon and word not in words:
            allowed = f" Allowed: {', '.join(words)}.{did_you_mean(word, words)}"
            raise ScenarioError(f"{OPTION} of {shown(name)!r}: {shown(word)!r} is no {kind}.{allowed}")
    if not (provider or purchase):
        raise ScenarioError(f"{OPTION} has a part without a name before the =. Write aws=0.1.")
    return provider, purchase


def words_of(key: Key) -> str:
    """A provider, a purchase class or both as the option names them: azure:reserved-1yr."""
    return ":".join(filter(None, key))


def in_force(discounts: Discounts, general: float, provider: str, purchase: str) -> float:
    """The discount on the prices of a provider in a purchase class, as a share."""
    if not discounts:
        return float(general)
    provider = provider.lower()  # a spreadsheet's look-up ignores capital letters
    stated = (discounts.get(key, math.nan) for key in ((provider, purchase), (provider, ""), ("", purchase)))
    return float(discount_in_force(*stated, general))


def key_of(words: str) -> Key:
    """The provider, the purchase class or both that these words name."""
    provider, colon, purchase = words.partition(":")
    return ("", provider) if not colon and provider in PURCHASES else (provider, purchase)


def option_text(general: float, discounts: Discounts) -> str:
    """The text of the option that states all of these discounts."""
    every = {"": general, **{f"{words_of(key)}=": value for key, value in discounts.items()}}
    return ",".join(f"{name}{int(value) if value == int(value) else value}" for name, value in every.items())


def cell_name(key: Key) -> str:
    """The name of a discount's cell, which without in_ is also that of the setting in a comparison."""
    return CELL + "_".join(name_part(word) for word in key if word)


def cell_names(providers: Iterable[str]) -> Iterator[tuple[str, Key]]:
    """The discount cells of a sheet with these providers: each class for every provider, then each provider and its
    classes."""
    for provider in ("", *providers):
        for purchase in ("", *PURCHASES):
            if provider or purchase:
                yield cell_name((provider, purchase)), (provider, purchase)
