"""All formulas of the package: those that stand in its modules, alone or in a table."""

import importlib
import pkgutil
from collections.abc import Iterator

import sheetgen
from sheetgen.formula import Formula


def every_formula() -> list[Formula]:
    """Each `@formula` once, and each that is made of others."""
    by_id: dict[int, Formula] = {}
    for module in pkgutil.walk_packages(sheetgen.__path__, "sheetgen."):
        if not module.name.endswith("__main__"):
            values = vars(importlib.import_module(module.name)).values()
            by_id |= {id(formula): formula for value in values for formula in _formulas_in(value)}
    return list(by_id.values())


def _formulas_in(value: object, depth: int = 0) -> Iterator[Formula]:
    if isinstance(value, Formula):
        yield value
    elif isinstance(value, (tuple, list, dict)) and depth < 4:
        for part in value.values() if isinstance(value, dict) else value:
            yield from _formulas_in(part, depth + 1)
