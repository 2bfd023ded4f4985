"""Options that several commands share. All values stay text here: `scenario` reads them and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sheetgen.scenario.inputs import asked_in

F = TypeVar("F", bound=Callable[..., Any])

Rows = tuple[tuple[str, str, str], ...]  # long name, metavar, help


def _rows(*groups: str, in_size: bool = False) -> Rows:
    """The options of these groups; every command that takes one of them takes it with the same words."""
    found = [(one.asked_as, one.option) for one in asked_in(*groups) if one.option]
    return tuple((name, o.metavar, (in_size and o.in_size) or o.help) for name, o in found)


PRECISION, ENGINE, SPLIT, MONEY, SHEET = map(_rows, ("precision", "engine", "split", "money", "sheet"))
MARKET = _rows("market", "headroom", "billing")
TARGETS = _rows("targets", "factors")
PACE = _rows("pace", "factors", in_size=True)
DEPLOYMENT = (
    *_rows("gpu"), *PRECISION, *_rows("parallel"), *ENGINE, *_rows("limits"), *SPLIT, *_rows("caches"), *PACE,
)  # fmt: skip


def text_options(*rows: tuple[str, str, str]) -> Callable[[F], F]:
    """`--long-name METAVAR` for each row."""

    def wrap(function: F) -> F:
        for name, metavar, about in reversed(rows):
            flag = "--" + name.replace("_", "-")
            function = click.option(flag, name, metavar=metavar, help=about)(function)
        return function

    return wrap


def load_options(function: F) -> F:
    """The load of one point: context and requests, each with its short spelling."""
    short = {"context_tokens": "--context", "concurrent_requests": "--users"}
    for name, metavar, about in reversed(_rows("load")):
        function = click.option(f"--{name.replace('_', '-')}", short[name], name, metavar=metavar, help=about)(function)
    return function


def brand_option(function: F) -> F:
    """A company's template, for the commands that draw a workbook or a PDF."""
    about = "Your company's name, logo, colours and footer line, for workbook and PDF; see templates/brand/."
    return click.option("--brand", metavar="FILE.yaml", help=about)(function)


def common(function: F) -> F:
    """What every command takes."""
    function = click.option("--quiet", "-q", is_flag=True, help="No notes, only the result.")(function)
    function = click.option(
        "--catalogs", multiple=True, metavar="DIR", help="A folder that adds to the catalogs or overrides them."
    )(function)
    return click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout.")(function)
