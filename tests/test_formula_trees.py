"""Every formula of the package is a tree of registered operations on its inputs, and says which of them are rows."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from every_formula import every_formula

import sheetgen
from sheetgen.formula import OPERATIONS, Expr, first_where, formula, largest
from sheetgen.formula.tree import CONSTANT, INPUT, LEAVES

SOURCES = Path(sheetgen.__file__).parent
# Only these write Excel text: the formula module, and what lays workbooks out.
WRITERS = ("formula/", "book/", "plan/flat_book.py")


def leaves(tree: Expr, name: str) -> set[str]:
    return {part.arguments[0] for part in tree.walk() if part.operation is OPERATIONS[name]}


def outside_rows(tree: Expr) -> set[str]:
    """Inputs that are read elsewhere than in the cells that an operation on rows goes through."""
    if tree.operation is INPUT:
        return {tree.arguments[0]}
    parts = tree.options.values() if tree.operation.rows else tree.parts
    return set().union(*map(outside_rows, parts))


def faults(quantity) -> list[str]:
    """The faults of a formula's tree."""
    wrong = []
    operations = [part for part in quantity.tree.walk() if part.operation not in LEAVES]
    if leaves(quantity.tree, "reference"):
        wrong.append("it holds Excel text")
    if leaves(quantity.tree, "input") != set(quantity.inputs):
        wrong.append(f"inputs {quantity.inputs}, read {sorted(leaves(quantity.tree, 'input'))}")
    if any(OPERATIONS.get(part.operation.name) is not part.operation for part in operations):
        wrong.append("an operation is not registered")
    over_rows = [part for part in operations if part.operation.rows]
    if not all(set(quantity.rows) & leaves(part, "input") for part in over_rows):
        wrong.append("an operation on rows reads none that is declared")
    if set(quantity.rows) & outside_rows(quantity.tree):
        wrong.append("a row is read as a number")
    if set(quantity.rows) - set(quantity.inputs) or (quantity.rows and not over_rows):
        wrong.append(f"rows {quantity.rows} are not read")
    return wrong


def test_every_formula_is_a_tree_of_operations_on_its_inputs():
    formulas = every_formula()
    wrong = {f"{quantity.function.__module__}.{quantity.name}": faults(quantity) for quantity in formulas}
    assert {name: fault for name, fault in wrong.items() if fault} == {}
    assert len(formulas) > 400
    assert sum(bool(quantity.rows) for quantity in formulas) == 22


def test_every_operation_is_used_or_stands_for_a_helper():
    """In a formula, or in a cell of its own that a sheet writes."""
    used = {part.operation.name for quantity in every_formula() for part in quantity.tree.walk()}
    outside = [path.read_text("utf-8") for path in SOURCES.rglob("*.py") if path.parent.name != "formula"]
    called = {name for text in outside for name in re.findall(r"\b(\w+)\(", text)}
    assert set(OPERATIONS) - used - called == {"reference"}


@formula("Without its row")
def without_row(costs, usd):
    return first_where(costs == usd)


@formula("A row as a number", rows=["costs"])
def row_as_number(costs, usd):
    return first_where(costs == usd) + costs


@formula("Excel text")
def excel_text(costs):
    return largest(costs, Expr("A1"))


@formula("Not read")
def not_read(costs, usd):
    return costs + 1


@pytest.mark.parametrize(
    "quantity", [without_row, row_as_number, excel_text, not_read], ids=lambda quantity: quantity.name
)
def test_a_wrong_formula_is_seen(quantity):
    assert len(faults(quantity)) == 1


def test_only_what_writes_workbooks_holds_excel_text():
    wrong = []
    for path in SOURCES.rglob("*.py"):
        name = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called == "Expr" and not name.startswith(WRITERS):
                wrong.append(f"{name}:{node.lineno}: Excel text")
            if called == "isinstance" and "Expr" in ast.unparse(node) and not name.startswith("formula/"):
                wrong.append(f"{name}:{node.lineno}: a branch on what it computes with")
    assert wrong == []


def test_names_of_modules_are_unique():
    names = Counter(path.stem for path in SOURCES.rglob("*.py") if not path.stem.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_an_operation_is_registered_once():
    with pytest.raises(ValueError, match="'largest' is registered twice"):
        from sheetgen.formula.tree import operation

        operation(lambda: None, "")(largest)


def test_a_tree_holds_its_constants_and_options():
    tree = first_where(Expr.leaf(INPUT, "costs") == 2, otherwise="-")
    assert (tree.operation.name, tree.options["otherwise"].operation) == ("first_where", CONSTANT)
    assert [part.operation.name for part in tree.walk()] == ["first_where", "equal", "input", "constant", "constant"]
