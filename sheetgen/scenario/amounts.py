"""The amounts of deployments, as columns: read as given, held against their bounds, completed with defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from sheetgen.errors import ScenarioError, shown
from sheetgen.scenario import parse
from sheetgen.scenario.inputs import OF_A_POINT
from sheetgen.sizing.parallelism import heads_divide

Columns = dict[str, Any]
NO_TEXT: Any = None  # in a column of texts

# Every input of one deployment and its default; None is worked out from the other inputs.
DEFAULTS: dict[str, Any] = {
    one.asked_as or one.name: one.words[one.default] if one.words else one.default for one in OF_A_POINT
}
_KINDS = {one.name: one.kind for one in OF_A_POINT if one.kind.is_number and one.name in DEFAULTS}
NUMBERS = tuple(_KINDS)
NAMES = tuple(name for name in DEFAULTS if name not in NUMBERS)
OWN = "default_"  # how the engine's own value of an input is called among the columns
OUTPUT_TOKENS = 1024  # the default split: the context less 1,024, and 1,024; half and half below 2,048
_TOKENS = tuple(name for name, kind in _KINDS.items() if kind.what == "tokens")


def is_blank(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value is None or not value.strip()
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA, which is neither itself nor another
        return True
    except ValueError:  # a whole array in a cell
        return False


def number_column(name: str, given: Any, n_rows: int, errors: Any) -> Any:
    """The column as floats, the default where blank; NaN, and reported in `errors`, where it is no number."""
    default = numpy.nan if DEFAULTS[name] is None else float(DEFAULTS[name])
    if given is None:
        return numpy.full(n_rows, default)
    kind = getattr(getattr(given, "dtype", None), "kind", "O")
    if kind in "fiu":
        column = numpy.asarray(given, float)
        for row in numpy.flatnonzero(numpy.isinf(column)):
            _refuse(name, column[row], int(row), errors)
        return numpy.select([numpy.isnan(column), numpy.isinf(column)], [default, numpy.nan], column)
    return numpy.array([_number(name, v, i, default, errors) for i, v in enumerate(given)], float)


def _number(name: str, value: Any, row: int, default: float, errors: Any) -> float:
    if is_blank(value):
        return default
    text = str(value).strip()
    try:
        found = parse.tokens(text, name) if name in _TOKENS and text[-1:] in "kKmM" else parse.number(text)
    except ScenarioError:
        found = numpy.nan
    if not math.isfinite(found):
        _refuse(name, value, row, errors)
        return numpy.nan
    return found


def _refuse(name: str, value: Any, row: int, errors: Any) -> None:
    hint = " Write a number of tokens, such as 16k or 16384." if name in _TOKENS else ""
    _report(errors, row, f"{name} is {shown(value)!r}, which is not a number.{hint}")


def _report(errors: Any, row: int, problem: str) -> None:
    """Add a line to what is wrong with a row."""
    before = errors[row]
    errors[row] = problem if before is None else f"{before}\n{problem}"


def check_bounds(numbers: Columns, errors: Any) -> None:
    """Report in `errors` which numbers, as given, are out of bounds."""
    for name in NUMBERS:
        kind, column = _KINDS[name], numbers[name]
        bad = (column < kind.low) | (column > kind.high)
        if kind.is_whole:
            bad |= column > numpy.floor(column)
        for i in numpy.flatnonzero(bad):
            _report(errors, int(i), f"{name} is {column[i]:,.10g}. It must be {kind}.")


def fill(numbers: Columns, columns: Columns) -> None:
    """Fill the blanks whose default follows from the names or from the other numbers."""
    blank = numpy.isnan
    for name in [name.removeprefix(OWN) for name in columns if name.startswith(OWN)]:
        numbers[name] = numpy.where(blank(numbers[name]), columns.pop(OWN + name), numbers[name])
    context = numbers["context_tokens"]
    numbers["max_model_len"] = numpy.where(blank(numbers["max_model_len"]), context, numbers["max_model_len"])
    prompt, answer = numbers["input_tokens"], numbers["output_tokens"]
    split = numpy.where(context < 2 * OUTPUT_TOKENS, numpy.floor(context / 2), OUTPUT_TOKENS)
    output = numpy.where(blank(answer), numpy.where(blank(prompt), split, context - prompt), answer)
    numbers["output_tokens"] = output
    numbers["input_tokens"] = numpy.where(blank(prompt), context - output, prompt)


def check(numbers: Columns, columns: Columns, model_id: Callable[[Any], str], errors: Any) -> None:
    """Report in `errors` what cannot go together in rows that have no error yet."""
    sound = numpy.equal(errors, NO_TEXT)

    def refuse(bad: Any, reason: Callable[[Any], str]) -> None:
        for i in numpy.flatnonzero(bad & sound):
            _report(errors, int(i), reason(i))

    limit, size = columns["max_context_tokens"], numbers["tensor_parallel_size"]
    context, length = numbers["context_tokens"], numbers["max_model_len"]

    # fmt: off
    refuse(context > limit, lambda i:
           f"context_tokens is {context[i]:,.0f}, over the {limit[i]:,.0f} that {model_id(i)} allows."
           f" Use {limit[i]:.0f} or less.")
    refuse((length > limit) & (context <= limit), lambda i:
           f"max_model_len is {length[i]:,.0f}, over the {limit[i]:,.0f} that {model_id(i)} allows.")
    refuse(length < context, lambda i:
           f"max_model_len is {length[i]:,.0f}, below the context of {context[i]:,.0f} tokens.")
    prompt, answer = numbers["input_tokens"], numbers["output_tokens"]
    refuse((prompt < 0) | (answer < 0) | (prompt + answer > context), lambda i:
           f"input_tokens and output_tokens do not fit in the context of {context[i]:,.0f} tokens.")
    heads, layers = columns["n_heads"], columns["n_layers"]
    uneven = numpy.mod(heads, numpy.maximum(size, 1)) > 0
    refuse(uneven, lambda i:
           f"tensor_parallel_size is {size[i]:.0f}, which does not divide the {heads[i]:.0f} heads of {model_id(i)}.")
    kv = columns["full_kv_heads"], columns["windowed_kv_heads"]
    refuse(~uneven & (heads_divide(heads, *kv, size) == 0), lambda i:
           f"tensor_parallel_size is {size[i]:.0f}, over which the KV heads of {model_id(i)}"
           f" ({' and '.join(f'{k[i]:.0f}' for k in kv if k[i])}) cannot be shared: engines refuse it.")
    stages = numbers["pipeline_parallel_size"]
    refuse(stages > layers, lambda i:
           f"pipeline_parallel_size is {stages[i]:.0f}, more than the {layers[i]:.0f} layers of {model_id(i)}.")
    # fmt: on
