"""The inputs that hold for a whole sheet, read from the options of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.catalog.engines import Engine
from sheetgen.errors import Problems, ScenarioError
from sheetgen.scenario.inputs import OF_SETTINGS, Input, Settings
from sheetgen.scenario.override_kinds import SETTINGS


def engine_defaults(engine: Engine) -> dict[str, Any]:
    """The inputs whose default is the engine's own, by name; flags as 0 or 1."""
    found = {one.name: getattr(engine, one.engine) for one in OF_SETTINGS if one.engine}
    return {name: int(value) if isinstance(value, bool) else value for name, value in found.items()}


def settings_of(options: Mapping[str, Any], engine: Engine | None) -> Settings:
    """The settings behind the options of `build`; what is not given takes the engine's default or ours.

    Raises ScenarioError for the first that is wrong; of those about money with every problem.
    """

    of_engine = engine_defaults(engine) if engine else {}

    def read(one: Input) -> Any:
        try:
            found = one.parse(None if one.name in SETTINGS else options.get(one.asked_as))
        except ScenarioError as error:
            raise ScenarioError(
                *(f"{line}{one.option.hint if one.option else ''}" for line in error.problems)
            ) from None
        return of_engine.get(one.name) if found is None else found

    money = [one for one in OF_SETTINGS if one.option and one.option.group == "money"]
    values = {one.name: read(one) for one in OF_SETTINGS if one not in money}
    problems = Problems()
    for one in money:
        value = problems.attempt(read, one)
        values[one.name] = one.default if value is None else value
    found = Settings(**values)
    problems += _of_currency(found, options.get("fx_rate") is not None)
    if problems:
        raise ScenarioError(*problems)
    return found


def _of_currency(settings: Settings, has_rate: bool) -> list[str]:
    """What is wrong with a currency other than US dollars without its rate, and with a rate without a currency."""
    if settings.currency != "USD" and not has_rate:
        return [
            f"currency is {settings.currency!r}, but no fx_rate is given. "
            "Add --fx-rate, such as 0.92: how many of it one USD is."
        ]
    if has_rate and settings.currency == "USD" and settings.fx_rate != 1:
        return [f"fx_rate is {settings.fx_rate:g}, but currency is USD, whose rate is 1. Name the currency."]
    return []
