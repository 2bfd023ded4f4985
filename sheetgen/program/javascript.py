"""Formulas and tables of them as JavaScript, for a browser: `runtime.js` has what the printed functions call.

A function is printed of a formula's tree, operation by operation; its parameters are the formula's inputs. Names of the
runtime have a capital letter in them, inputs have none, so that neither hides the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from sheetgen.formula import Expr, Formula
from sheetgen.formula.tree import CONSTANT, INPUT
from sheetgen.units import TEXT

RUNTIME = Path(__file__).with_name("runtime.js")
CELL = "$"  # the place of a row that an operation has come to


class TableOfFormulas(NamedTuple):
    """Formulas by the names that their results go by, and the axes that they are worked out over."""

    axes: tuple[str, ...]
    columns: tuple[tuple[str, Formula], ...]
    rows: str = ""  # the axis that the rows run along which its formulas read, if any do


def print_tree(tree: Expr, rows: Iterable[str] = (), cell: str = "") -> str:
    """A tree as a JavaScript expression. rows: inputs that are whole rows; cell: the place in them that is read."""
    operation = tree.operation
    if operation is CONSTANT:
        return json.dumps(tree.arguments[0])
    if operation is INPUT:
        name: str = tree.arguments[0]
        return f"{name}[{cell}]" if cell and name in rows else name
    if operation.rows:
        return _print_row_operation(tree, rows, cell)
    parts = [print_tree(part, rows, cell) for part in tree.parts]
    sign = operation.javascript
    if not sign:
        return parts[0]
    if sign in ("===", "!=="):  # which tell true from 1
        parts = [f"+{text}" if _is_condition(part) else text for text, part in zip(parts, tree.parts, strict=True)]
    if sign == "?":
        condition, then, otherwise = (*parts, "NaN")[:3]  # without another, none
        return f"({condition}?{then}:{otherwise})"
    if sign in ("&&", "||"):
        parts = [text if _is_condition(part) else f"!!{text}" for text, part in zip(parts, tree.parts, strict=True)]
    if sign[0].isalpha():
        return f"{sign}({','.join(parts)})"
    return f"({sign}{parts[0]})" if len(parts) == 1 else f"({sign.join(parts)})"


def _is_condition(tree: Expr) -> bool:
    """Whether what a tree gives is true or false, and no number."""
    return tree.operation.javascript.startswith(("is", "===", "!==", "<", ">", "&&", "||"))


def _print_row_operation(tree: Expr, rows: Iterable[str], cell: str) -> str:
    """A function of the runtime, called with the length of the rows, with what holds for all of a row, and with
    functions of a place in it: of the values, and of all conditions together."""
    read = {part.arguments[0] for part in tree.walk() if part.operation is INPUT}
    length = f"{next(name for name in rows if name in read)}.length"
    options = (print_tree(option, rows, cell) for option in tree.options.values())
    cells = [print_tree(part, rows, CELL) for part in tree.arguments]
    values, conditions = cells[: tree.operation.n_values], cells[tree.operation.n_values :]
    of_cells = [f"{CELL}=>{text}" for text in (*values, *(["&&".join(conditions)] if conditions else []))]
    return f"{tree.operation.javascript}({','.join((length, *options, *of_cells))})"


def print_function(formula: Formula) -> str:
    """A formula as a JavaScript function of its inputs."""
    return f"({','.join(formula.inputs)})=>{print_tree(formula.tree, formula.rows)}"


def print_functions(formulas: Iterable[Formula]) -> str:
    """A JavaScript array of formulas: their inputs, which of these are rows, whether they give text, the function."""
    entries = (
        f"{{inputs:{_json(formula.inputs)},rows:{_json(formula.rows)},"
        f"isText:{_json(formula.display is TEXT)},value:{print_function(formula)}}}"
        for formula in formulas
    )
    return "[\n" + ",\n".join(entries) + "\n]"


def print_tables(tables: Mapping[str, TableOfFormulas]) -> str:
    """Statements that declare TABLES, by name, as the runtime evaluates them; a formula of several stands once."""
    columns = [column for table in tables.values() for column in table.columns]
    formulas = {print_function(formula): formula for _, formula in columns}
    places = {text: place for place, text in enumerate(formulas)}
    entries = (
        f"{_json(name)}:{{axes:{_json(table.axes)},rows:{_json(table.rows)},columns:["
        + ",".join(f"[{_json(key)},FUNCTIONS[{places[print_function(one)]}]]" for key, one in table.columns)
        + "]}"
        for name, table in tables.items()
    )
    declared = ",\n".join(entries)
    return f"const FUNCTIONS={print_functions(formulas.values())};\nconst TABLES={{\n{declared}\n}};\n"


def runtime() -> str:
    """The text of the runtime."""
    return RUNTIME.read_text(encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
