"""Options that several commands share. All values stay text here: `scenario` reads them and says what is wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
Row = tuple[str, str, str]  # long name, metavar, help

# Groups of options, as the table of inputs calls them; every command that takes one takes it with the same words.
MARKET = ("market", "headroom", "billing")
PACE = ("pace", "factors")
DEPLOYMENT = ("gpu", "precision", "parallel", "engine", "limits", "split", "caches", *PACE)
ANSWER = ("precision", "targets", "factors", *MARKET, "money", "engine")  # of what is recommended
OF_ENGINE = (("engine",), ("engine_version",), ("gpu_memory_utilization",))  # where not all of the engine's are taken
SHORT = {"context_tokens": "--context", "concurrent_requests": "--users"}


class Command(click.Command):
    """A command that makes its shared options when they are first read: the list of all commands needs none."""

    _made: list[Any]

    @property
    def params(self) -> list[click.Parameter]:
        """Its parameters, in the order of its help."""
        self._made = [one for many in self._made for one in ([many] if isinstance(many, click.Parameter) else many())]
        return self._made

    @params.setter
    def params(self, params: list[Any]) -> None:
        self._made = params


command = functools.partial(click.command, cls=Command)


def rows_of(*groups: str, in_size: bool = False) -> list[Row]:
    """The options of these groups, by the table of inputs; in `size` some have other help."""
    from sheetgen.scenario.inputs import asked_in

    found = [(one.asked_as, one.option) for one in asked_in(*groups) if one.option]
    return [(name, o.metavar, (in_size and o.in_size) or o.help) for name, o in found]


def _row(name: str, *words: str) -> Row:
    """An option by its name, with the table's words where none are given."""
    if words:
        return name, *words  # type: ignore[return-value]
    from sheetgen.scenario.inputs import BY_OPTION

    option = BY_OPTION[name].option
    assert option is not None
    return name, option.metavar, option.help


def _later(function: F, make: Callable[[], Iterable[click.Option]]) -> F:
    """`function` with options that its Command makes by `make`."""
    known = getattr(function, "__click_params__", [])
    function.__click_params__ = [*known, make]  # type: ignore[attr-defined]
    return function


def _option(name: str, metavar: str, about: str, *short: str) -> click.Option:
    return click.Option([f"--{name.replace('_', '-')}", *short, name], metavar=metavar, help=about)


def text_options(*parts: str | Row | tuple[str], without: str = "") -> Callable[[F], F]:
    """`--long-name METAVAR` for each option of a group, for one of the table by its name alone, or for a row."""

    def make() -> Iterator[click.Option]:
        in_size = "pace" in parts
        for part in parts:
            rows = rows_of(part, in_size=in_size) if isinstance(part, str) else [_row(*part)]
            yield from (_option(*row) for row in rows if row[0] != without)

    return lambda function: _later(function, make)


def load_options(function: F) -> F:
    """The load of one point: context and requests, each with its short spelling."""
    return _later(function, lambda: [_option(*row, SHORT[row[0]]) for row in rows_of("load")])


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
