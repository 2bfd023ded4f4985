"""A documented sizing quantity: what `@formula` makes of a function."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.formula.expr import ATOM, Expr
from sheetgen.units import WHOLE, Display


@dataclass(frozen=True)
class Formula:
    """A documented sizing quantity: a function, and what a reader needs to know of its result."""

    name: str
    label: str
    display: Display
    inputs: tuple[str, ...]
    function: Callable[..., Any]
    documented: Callable[..., Any] | None = None  # whose docstring holds, where the function is made of another

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def of(self, values: Mapping[str, Any]) -> Any:
        """This formula read with `values`, which hold its inputs by name (numbers, columns or `Expr`)."""
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise KeyError(f"formula {self.name!r} reads {missing[0]!r}, which nothing provides")
        return self.function(*(values[name] for name in self.inputs))

    @functools.cached_property
    def _template(self) -> Expr:
        """The Excel text with each input's name in braces: the same for every cell, so written once."""
        text: Expr = self.function(*(Expr(f"{{{name}}}") for name in self.inputs))
        return text

    def written(self, texts: Mapping[str, Expr]) -> Expr:
        """The Excel text with `texts` put in for the inputs."""
        inside = {name: e.text if e.binding == ATOM else f"({e.text})" for name, e in texts.items()}
        return Expr(self._template.text.format_map(inside), self._template.binding, self._template.array)

    @property
    def documentation(self) -> str:
        """The docstring, for header notes and `explain`."""
        return textwrap.dedent(inspect.getdoc(self.documented or self.function) or "").strip()

    @property
    def summary(self) -> str:
        """The docstring's first sentence."""
        return self.documentation.split("\n\n")[0].replace("\n", " ")

    @property
    def source(self) -> str:
        """What the docstring names as its source."""
        lines = self.documentation.replace("\n    ", " ").splitlines()
        return next((x.removeprefix("Source:").strip() for x in lines if x.startswith("Source:")), "")


def formula(label: str, display: Display = WHOLE) -> Callable[[Callable[..., Any]], Formula]:
    """Make a function a `Formula`: its name is the column's name, its parameters' names are its inputs."""

    def wrap(function: Callable[..., Any]) -> Formula:
        inputs = tuple(inspect.signature(function).parameters)
        return Formula(function.__name__, label, display, inputs, function)

    return wrap
