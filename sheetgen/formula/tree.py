"""`Expr`: a formula as a tree of operations, of which Excel text and JavaScript are readings.

An operation is registered once, by `@operation`, with its three readings: the decorated function computes with numbers
and numpy arrays; `excel` writes the text of the operation of its arguments' texts; `javascript` names what a browser
does. The operation of arguments of which one is an `Expr` is a tree.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy

from sheetgen.formula import excel
from sheetgen.formula.excel import ADD, ATOM, COMPARE, MULTIPLY, Text

# A quantity as a formula reads and returns it: a number, a column of numbers, or a tree that is to be written.
Quantity: TypeAlias = "float | numpy.ndarray[Any, Any] | Expr"
# What an operation reads and returns: a quantity, a text or a column of texts. No narrower type has the arithmetic of
# all of them.
Value: TypeAlias = Any
Function = TypeVar("Function", bound=Callable[..., Value])


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation and its readings.

    javascript: an operator that stands between arguments, or before one; a function of the runtime's; `?`, a choice;
    or nothing where it gives its argument. rows: it goes through the cells of rows: its arguments, of which the first
    `n_values` are values and all others conditions, are of a cell, its options (`otherwise`) of a whole row.
    compute: what works it out, or makes a tree of it; leaves have none.
    """

    name: str
    excel: Callable[..., Text]
    javascript: str
    rows: bool = False
    n_values: int = 0
    compute: Callable[..., Value] | None = None


OPERATIONS: dict[str, Operation] = {}
ANSWER_ONCE = ("both", "either")  # True where Excel works it out once for a whole row, not cell by cell


def _register(entry: Operation) -> Operation:
    if entry.name in OPERATIONS:
        raise ValueError(f"operation {entry.name!r} is registered twice")
    return OPERATIONS.setdefault(entry.name, entry)


# The leaves of a tree.
INPUT = _register(Operation("input", lambda name: Text(f"{{{name}}}"), ""))  # an input of a formula, by name
CONSTANT = _register(Operation("constant", excel.constant, ""))
REFERENCE = _register(Operation("reference", Text, ""))  # Excel text as it is: cells and look-ups of a workbook
LEAVES = (INPUT, CONSTANT, REFERENCE)


def _infix(name: str, sign: str, binding: int, compute: Callable[..., Value], javascript: str = "") -> Operation:
    """Register an operation that is a sign between two arguments."""

    def written(left: Text, right: Text) -> Text:
        return excel.infix(left, sign, right, binding)

    return _register(Operation(name, written, javascript or sign, compute=compute))


NEGATIVE = _register(Operation("negative", excel.negative, "-", compute=operator.neg))
PLUS, MINUS = _infix("plus", "+", ADD, operator.add), _infix("minus", "-", ADD, operator.sub)
TIMES, OVER = _infix("times", "*", MULTIPLY, operator.mul), _infix("over", "/", MULTIPLY, operator.truediv)
EQUAL, UNEQUAL = _infix("equal", "=", COMPARE, operator.eq, "==="), _infix("unequal", "<>", COMPARE, operator.ne, "!==")
LESS, LESS_OR_EQUAL = _infix("less", "<", COMPARE, operator.lt), _infix("less_or_equal", "<=", COMPARE, operator.le)
GREATER = _infix("greater", ">", COMPARE, operator.gt)
GREATER_OR_EQUAL = _infix("greater_or_equal", ">=", COMPARE, operator.ge)


def _left(operation: Operation) -> Callable[[Expr, object], Expr]:
    return lambda left, right: Expr.tree(operation, (left, right))


def _reflected(operation: Operation) -> Callable[[Expr, object], Expr]:
    return lambda right, left: Expr.tree(operation, (left, right))


NO_OPTIONS: dict[str, Expr] = {}


class Expr:
    """An operation and its arguments. `Expr(text)` is a reference: Excel text as it is."""

    __slots__ = ("_printed", "arguments", "operation", "options")
    __array_ufunc__ = None  # numpy arrays leave the operator to us
    __hash__ = None  # type: ignore[assignment]

    operation: Operation
    arguments: tuple[Value, ...]  # trees; of a leaf its name, value or text
    options: dict[str, Expr]
    _printed: Text | None

    def __init__(self, text: str, binding: int = ATOM, array: bool = False) -> None:
        self.arguments = self._printed = Text(text, binding, array)
        self.operation, self.options = REFERENCE, NO_OPTIONS

    @classmethod
    def leaf(cls, operation: Operation, value: object) -> Expr:
        expr = cls.__new__(cls)
        expr.operation, expr.arguments, expr.options = operation, (value,), {}
        expr._printed = operation.excel(value)
        return expr

    @classmethod
    def tree(cls, operation: Operation, arguments: Iterable[object], options: dict[str, object] | None = None) -> Expr:
        """An operation of trees, or of constants."""
        expr = cls.__new__(cls)
        expr.operation, expr.arguments = operation, tuple(map(literal, arguments))
        expr.options = {name: literal(value) for name, value in options.items()} if options else {}
        expr._printed = None
        return expr

    @property
    def printed(self) -> Text:
        """The tree's Excel text, and how tightly it binds."""
        if self._printed is None:
            options = {name: value.printed for name, value in self.options.items()}
            self._printed = self.operation.excel(*(argument.printed for argument in self.arguments), **options)
        return self._printed

    @property
    def text(self) -> str:
        return self.printed.text

    @property
    def binding(self) -> int:
        return self.printed.binding

    @property
    def array(self) -> bool:
        """True where its text is an array formula's, which is written as `{=...}`."""
        return self.printed.array

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The trees among the operation's arguments."""
        return () if self.operation in LEAVES else (*self.arguments, *self.options.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the tree's inputs, each once."""
        return tuple(dict.fromkeys(part.arguments[0] for part in self.walk() if part.operation is INPUT))

    def read(self, values: Mapping[str, Value]) -> Value:
        """The formula worked out on `values`, its inputs by name: a value, or a tree where the inputs are trees."""
        if self.operation is INPUT:
            return values[self.arguments[0]]
        if self.operation.compute is None:
            return self.arguments[0] if self.operation is CONSTANT else self
        options = {name: option.read(values) for name, option in self.options.items()}
        return self.operation.compute(*(argument.read(values) for argument in self.arguments), **options)

    def walk(self) -> Iterator[Expr]:
        """This tree and all trees in it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def __bool__(self) -> bool:
        raise TypeError(f"a formula cannot branch on {self.text!r} with if, and, or, min, max: use where()")

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"

    def __neg__(self) -> Expr:
        return Expr.tree(NEGATIVE, (self,))

    __add__, __radd__ = _left(PLUS), _reflected(PLUS)
    __sub__, __rsub__ = _left(MINUS), _reflected(MINUS)
    __mul__, __rmul__ = _left(TIMES), _reflected(TIMES)
    __truediv__, __rtruediv__ = _left(OVER), _reflected(OVER)
    __eq__ = _left(EQUAL)  # type: ignore[assignment]
    __ne__ = _left(UNEQUAL)  # type: ignore[assignment]
    __lt__, __le__ = _left(LESS), _left(LESS_OR_EQUAL)
    __gt__, __ge__ = _left(GREATER), _left(GREATER_OR_EQUAL)


class Later(Expr):
    """A reference whose text is made when it is read: for most books only the values are asked for."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Expr]) -> None:
        self.operation, self.arguments, self.options = REFERENCE, (), NO_OPTIONS
        self._printed, self.make = None, make

    @property
    def printed(self) -> Text:
        if self._printed is None:
            self._printed = self.make().printed
        return self._printed


def literal(value: object) -> Expr:
    """A constant as a tree; a tree is returned unchanged."""
    return value if isinstance(value, Expr) else Expr.leaf(CONSTANT, value)


def is_written(values: Iterable[object]) -> bool:
    """True where at least one value is a tree, so that an operation on the values is one."""
    return Expr in map(type, values)


def operation(
    printed: Callable[..., Text], javascript: str, *, rows: bool = False, n_values: int = 0
) -> Callable[[Function], Function]:
    """Register an operation: the decorated function computes it, `printed` writes it from its arguments' texts."""

    def register(compute: Function) -> Function:
        signature = inspect.signature(compute)
        kinds = [parameter.kind for parameter in signature.parameters.values()]
        takes_all = kinds == [inspect.Parameter.VAR_POSITIONAL]
        n_plain = len(kinds) if set(kinds) == {inspect.Parameter.POSITIONAL_OR_KEYWORD} else None

        @functools.wraps(compute)
        def read(*arguments: Value, **options: Value) -> Value:
            if Expr not in map(type, arguments) and not (options and Expr in map(type, options.values())):
                return compute(*arguments, **options)
            if options or (not takes_all and len(arguments) != n_plain):
                bound = signature.bind(*arguments, **options)
                bound.apply_defaults()
                arguments, options = bound.args, bound.kwargs
            tree = Expr.tree(entry, arguments, options)
            once = [part for part in tree.arguments if part.operation.name in ANSWER_ONCE]
            if rows and once:
                raise TypeError(f"{once[0].text!r} answers once for a whole row: give its conditions one by one")
            return tree

        entry = _register(Operation(compute.__name__, printed, javascript, rows, n_values, read))
        return read  # type: ignore[return-value]

    return register


def function(name: str, *arguments: object) -> Expr:
    """One of Excel's functions that is no operation of formulas: for what only a workbook needs, such as COUNT."""
    written = excel.call(name, *(literal(argument).printed for argument in arguments))
    return Expr(*written)
