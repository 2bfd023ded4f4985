"""A row's source, where some of its prices came from price lists.

`price list a.csv (on-demand, spot); ...`: the list of every price that came from one, and beside it what the row
was made from, which still holds for its shape and its other prices.
"""

from __future__ import annotations

import re

_LIST = re.compile(r"price list ([^;()]+) \(([a-z0-9, -]+)\)")


def list_of(source: str, purchase: str) -> str | None:
    """The list that the price in that class came from; nothing where it came with the row."""
    lists, _ = _taken_apart(source)
    return next((f"price list {name}" for name, classes in lists.items() if purchase in classes), None)


def with_list(source: str, name: str, purchase: str) -> str:
    """`source` when the price in that class came from the list `name`.

    The sheet cites what stands first: a list of on-demand prices, else what the row was made from.
    """
    lists, rest = _taken_apart(source)
    for classes in lists.values():
        if purchase in classes:
            classes.remove(purchase)
    lists.setdefault(name, []).append(purchase)
    told = {one: f"price list {one} ({', '.join(classes)})" for one, classes in lists.items() if classes}
    first = [text for one, text in told.items() if "on-demand" in lists[one]]
    last = [text for one, text in told.items() if "on-demand" not in lists[one]]
    return "; ".join(filter(None, [*first, rest, *last]))


def without_lists(source: str) -> str:
    """What the row was made from."""
    return _taken_apart(source)[1]


def _taken_apart(source: str) -> tuple[dict[str, list[str]], str]:
    lists: dict[str, list[str]] = {}
    rest: list[str] = []
    for part in source.split("; "):
        if match := _LIST.fullmatch(part):
            lists.setdefault(match[1], []).extend(match[2].split(", "))
        else:
            rest.append(part)
    return lists, "; ".join(rest)
