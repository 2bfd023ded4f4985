"""`@formula`: a documented sizing quantity, one function that computes it and of which its tree is made."""

from __future__ import annotations

import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from sheetgen.formula.excel import ATOM
from sheetgen.formula.tree import INPUT, Expr, Value, literal
from sheetgen.units import WHOLE, Display


@dataclass(frozen=True)
class Formula:
    """A documented sizing quantity: a function, and what a reader needs to know of its result."""

    name: str
    label: str
    display: Display
    inputs: tuple[str, ...]
    function: Callable[..., Value]
    rows: tuple[str, ...] = ()  # inputs that it reads as whole rows

    def __call__(self, *args: Value, **kwargs: Value) -> Value:
        return self.function(*args, **kwargs)

    def of(self, values: Mapping[str, Value]) -> Value:
        """This formula read with `values`, which hold its inputs by name (numbers, columns or `Expr`)."""
        try:
            arguments = [values[name] for name in self.inputs]
        except KeyError as error:
            missing = next(name for name in self.inputs if name not in values)
            raise KeyError(f"formula {self.name!r} reads {missing!r}, which nothing provides") from error
        return self.function(*arguments)

    def at(self, places: Mapping[str, int]) -> Callable[[Sequence[Value]], Value]:
        """This formula as a function of a sequence of values; `places`: the position of each input in it."""
        own, function = [places[name] for name in self.inputs], self.function
        return lambda values: function(*[values[place] for place in own])

    def as_function_of(self, *names: str) -> CalledFormula:
        """This formula as a part of another one, which calls it, by name, with values of its own for `names`."""
        return CalledFormula(self, names)

    def with_parts(self, parts: Iterable[Formula | CalledFormula], first: bool = False) -> Formula:
        """The same formula with those of `parts` that it reads worked out within it: it reads their inputs, in the
        places of the parts or, where `first`, before all others."""
        inner = {part.name: part for part in parts if part.name in self.inputs}
        if not inner:
            return self
        own = dict.fromkeys((*inner, *self.inputs) if first else self.inputs)
        read = (inner[name].inputs if name in inner else (name,) for name in own)
        inputs = tuple(dict.fromkeys(itertools.chain.from_iterable(read)))
        rows = {*self.rows, *itertools.chain.from_iterable(part.rows for part in inner.values())}

        places = {name: i for i, name in enumerate(inputs)}
        arguments = [inner[name].at(places) if name in inner else itemgetter(places[name]) for name in self.inputs]

        @functools.wraps(self.function)
        def function(*args: Value) -> Value:
            return self.function(*[argument(args) for argument in arguments])

        return replace(self, inputs=inputs, function=function, rows=tuple(name for name in inputs if name in rows))

    def reading(self, **quantities: str) -> Formula:
        """The same formula reading other quantities: by the name of an input, the quantity read in its place."""
        unknown = quantities.keys() - set(self.inputs)
        if unknown:
            raise KeyError(f"formula {self.name!r} does not read {', '.join(sorted(unknown))}")
        inputs, rows = (tuple(quantities.get(name, name) for name in names) for names in (self.inputs, self.rows))
        return replace(self, inputs=inputs, rows=rows)

    @functools.cached_property
    def tree(self) -> Expr:
        """The tree of operations on the formula's inputs, by name."""
        return literal(self.function(*(Expr.leaf(INPUT, name) for name in self.inputs)))

    def written(self, texts: Mapping[str, Expr]) -> Expr:
        """The Excel text with `texts` put in for the inputs."""
        template = self.tree.printed  # the same for every cell, so written once
        inside = {
            name: part.text if (part := expr.printed).binding == ATOM else f"({part.text})"
            for name, expr in texts.items()
        }
        return Expr(template.text.format_map(inside), template.binding, template.array)

    def text_of_names(self, names: Iterable[str]) -> str:
        """The Excel text with other names for the inputs."""
        text: str = self.function(*map(Expr, names)).text
        return text

    def text_of_values(self, values: Iterable[object]) -> str:
        """The Excel text with the inputs' values."""
        text: str = self.function(*map(literal, values)).text
        return text

    @property
    def documentation(self) -> str:
        """The docstring, for header notes and `explain`."""
        return textwrap.dedent(inspect.getdoc(self.function) or "").strip()

    @property
    def summary(self) -> str:
        """The docstring's first paragraph, on one line."""
        return self.documentation.split("\n\n")[0].replace("\n", " ")

    @property
    def source(self) -> str:
        """The source that the docstring names."""
        lines = self.documentation.replace("\n    ", " ").splitlines()
        return next((x.removeprefix("Source:").strip() for x in lines if x.startswith("Source:")), "")


@dataclass(frozen=True)
class CalledFormula:
    """A formula that another one calls with values of its own for some inputs; the others are inputs of both."""

    formula: Formula
    own: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.formula.name

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(name for name in self.formula.rows if name not in self.own)

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.formula.inputs if name not in self.own)

    def at(self, places: Mapping[str, int]) -> Callable[[Sequence[Value]], Callable[..., Value]]:
        """The function that the other formula calls, from a sequence of values; `places`: the position of each input in
        it."""
        of_caller = {**places, **dict.fromkeys(self.own)}
        read, function = [(name, of_caller[name]) for name in self.formula.inputs], self.formula.function
        return lambda values: (
            lambda **own: function(*[own[name] if place is None else values[place] for name, place in read])
        )


def _of(function: Callable[..., Value], label: str, display: Display) -> Formula:
    code = function.__code__
    return Formula(function.__name__, label, display, code.co_varnames[: code.co_argcount], function)


def called_with(*names: str) -> Callable[[Callable[..., Value]], CalledFormula]:
    """Make a function of quantities a part of formulas that call it, by name, with values of their own for `names`."""
    return lambda function: _of(function, "", WHOLE).as_function_of(*names)


def formula(
    label: str,
    display: Display = WHOLE,
    *,
    within: Iterable[Callable[..., Value] | CalledFormula] = (),
    rows: Collection[str] = (),
) -> Callable[[Callable[..., Value]], Formula]:
    """Make a function a `Formula`: its name is the column's name, its parameters' names are its inputs.

    within: formulas, or functions of quantities, that it works out within itself, where it or another of them reads
    them.
    rows: inputs of which it reads whole rows.
    """

    def wrap(function: Callable[..., Value]) -> Formula:
        parts = [part if isinstance(part, Formula | CalledFormula) else _of(part, "", WHOLE) for part in within]
        whole = _of(function, label, display)
        while (deeper := whole.with_parts(parts)) is not whole:
            whole = deeper
        return replace(whole, rows=tuple(name for name in whole.inputs if name in (*rows, *whole.rows)))

    return wrap
