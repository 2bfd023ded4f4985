"""Formulas and programs of them as JavaScript, for a browser: `runtime.js` has what the printed functions call.

A function is printed of a formula's tree, operation by operation; its parameters are the formula's inputs. Names of the
runtime have a capital letter in them, inputs have none, so that neither hides the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from sheetgen.formula import Expr, Formula
from sheetgen.formula.tree import CONSTANT, INPUT
from sheetgen.program.declared import Again, Declared, Named, Program, Repeat, by_name
from sheetgen.units import TEXT

RUNTIME = Path(__file__).with_name("runtime.js")
MOST_INPUTS = 40  # the inputs of a program's formula
CELL = "$"  # the place in a row that an operation has reached


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
    if sign in ("===", "!=="):  # they distinguish true from 1
        parts = [f"+{text}" if _is_condition(part) else text for text, part in zip(parts, tree.parts, strict=True)]
    if sign == "?":
        condition, then, otherwise = (*parts, "NaN")[:3]  # NaN where there is no third part
        return f"({_condition(tree.parts[0], condition)}?{then}:{otherwise})"
    if sign in ("&&", "||"):
        parts = [_condition(part, text) for text, part in zip(parts, tree.parts, strict=True)]
    if sign[0].isalpha():
        return f"{sign}({','.join(parts)})"
    return f"({sign}{parts[0]})" if len(parts) == 1 else f"({sign.join(parts)})"


def _is_condition(tree: Expr) -> bool:
    """True where a tree gives true or false rather than a number."""
    return tree.operation.javascript.startswith(("is", "===", "!==", "<", ">", "&&", "||"))


def _condition(tree: Expr, text: str) -> str:
    """A tree as true or false; NaN is true, as in numpy."""
    return text if _is_condition(tree) else f"({text}!=0)"


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
    return f"({','.join(_inputs(formula))})=>{print_tree(formula.tree, formula.rows)}"


def _inputs(formula: Formula) -> tuple[str, ...]:
    """The quantities that a formula reads, each once: `reading` may put one quantity in place of two."""
    return tuple(dict.fromkeys(formula.inputs))


def print_entry(formula: Formula) -> str:
    """A formula as a JavaScript object: its inputs, which of them are rows, whether it gives text, and the function."""
    return (
        f"{{inputs:{_json(_inputs(formula))},rows:{_json(formula.rows)},"
        f"isText:{_json(formula.display is TEXT)},value:{print_function(formula)}}}"
    )


def print_programs(programs: Mapping[str, Program]) -> str:
    """Statements that declare PROGRAMS by name, as the runtime works them out; a formula in several tables is printed
    once.

    Of a program: its tables by name, with those that are only read again, and the names of the others in their order.
    """
    functions: dict[str, int] = {}  # the printed formula, and its position

    def columns(quantities: Iterable[Named]) -> str:
        entries = (
            (name, functions.setdefault(print_entry(formula), len(functions))) for name, formula in by_name(quantities)
        )
        return "[" + ",".join(f"[{_json(name)},FUNCTIONS[{place}]]" for name, place in entries) + "]"

    def table(declared: Declared) -> str:
        if isinstance(declared, Again):
            entries = {name: _json(getattr(declared, name)) for name in ("under", "tables", "keeps")}
        elif isinstance(declared, Repeat):
            entries = {name: _json(getattr(declared, name)) for name in ("axes", "where", "rows", "times", "carry")}
            entries |= {"start": columns(declared.start), "step": columns(declared.step)}
        else:
            entries = {name: _json(getattr(declared, name)) for name in ("axes", "where", "rows")}
            entries["columns"] = columns(declared.quantities)
        return ",".join(f"{name}:{text}" for name, text in entries.items() if text != "null")

    printed = [
        f"{_json(name)}:{{order:{_json([table.name for table in program.tables])},tables:{{\n"
        + ",\n".join(f"{_json(entry.name)}:{{{table(entry)}}}" for entry in (*program.tables, *program.parts))
        + "\n}}"
        for name, program in programs.items()
    ]
    together = ",\n".join(functions)
    return f"{_print_kernels()}const FUNCTIONS=[\n{together}\n];\nconst PROGRAMS={{\n" + ",\n".join(printed) + "\n};\n"


def _print_kernels() -> str:
    """A statement that declares KERNELS, by how many columns a function reads: loops that call it with a value of each,
    found by its places. A strict policy of a page lets no code be made there."""

    def kernel(n: int) -> str:
        data, places = (",".join(f"{letter}{i}" for i in range(n)) for letter in "dp")
        cells = ",".join(f"d{i}[p{i}[k]]" for i in range(n))
        return f"(out,value,[{data}],[{places}])=>{{for(let k=0;k<out.length;k++)out[k]=value({cells})}}"

    return "const KERNELS=[\n" + ",\n".join(map(kernel, range(MOST_INPUTS + 1))) + "\n];\n"


def runtime() -> str:
    """The text of the runtime."""
    return RUNTIME.read_text(encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
