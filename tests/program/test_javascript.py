"""Formulas and operations as JavaScript: random calls give in node what they give in Python."""

import itertools
import random
import re
from pathlib import Path

import numpy
import pytest
from every_formula import every_formula
from node import run
from random_calls import as_json, calls_of, computed

from sheetgen import formula as vocabulary
from sheetgen.formula import OPERATIONS, Formula
from sheetgen.formula.tree import INPUT
from sheetgen.program.javascript import print_entry, print_function, runtime
from sheetgen.units import PLAIN

CALLER = Path(__file__).with_name("random_calls.js")
OF_COLUMNS = "// Columns over axes"  # where the runtime's operations end
N_FAULTS = 100
EDGES = [0.0, 1.0, 2.0, 0.5, 2.5, 3.0000000000000004, 2.9999999999999996, 1e-13, 0.1 + 0.2, 0.3, 1e15, 123456.789]
TEXTS = ["", "-", "auto", "bf16"]
# Operations by the arguments that they are tried on: numbers, signed ones, small ones, texts.
OF_NUMBERS = {
    "where": 3, "number_where": 2, "number_or_none": 1, "smallest": 3, "largest": 3, "round_up": 1, "round_down": 1,
    "round_nearest": 1, "ratio": 3, "remainder": 2, "same_money": 2, "at_most": 2, "is_number": 1, "is_blank": 1,
    "join_text": 2, "percent_text": 1, "whole_text": 1, "grouped_text": 1, "both": 2, "either": 2,
    "hundredths_text": 1,
}  # fmt: skip
OF_SIGNED = {
    "normal_share": 1,
    "normal_density": 1,
    "exponential": 1,
    "percent_text": 1,
    "whole_text": 1,
    "grouped_text": 1,
    "hundredths_text": 1,
}
OF_SHARES = {"power": 2, "fading": 2, "natural_log": 1}
OF_TEXTS = {
    "is_text": 1,
    "join_text": 2,
    "where": 3,
    "percent_text": 1,
    "whole_text": 1,
    "grouped_text": 1,
    "hundredths_text": 1,
}
OF_ROWS = {
    "least_number": lambda f: (("row",), lambda row: f(row, otherwise=-1)),
    "least_where": lambda f: (("row", "other", "x"), lambda row, other, x: f(row, row >= x, other < x)),
    "greatest_where": lambda f: (("row", "other", "x"), lambda row, other, x: f(row, row >= x, other < x)),
    "first_where": lambda f: (("row", "other", "x"), lambda row, other, x: f(row == x, other < x, otherwise="-")),
    "count_where": lambda f: (("row", "x"), lambda row, x: f(row >= x)),
    "is_number_in_row": lambda f: (("row",), lambda row: vocabulary.first_where(f(row))),
}
OPERATORS = {
    "plus": lambda x, y: x + y, "minus": lambda x, y: x - y, "times": lambda x, y: x * y, "over": lambda x, y: x / y,
    "equal": lambda x, y: x == y, "unequal": lambda x, y: x != y, "less": lambda x, y: x < y,
    "less_or_equal": lambda x, y: x <= y, "greater": lambda x, y: x > y, "greater_or_equal": lambda x, y: x >= y,
}  # fmt: skip


def helper(name):
    return getattr(vocabulary, name, None) or getattr(vocabulary.operations, name)


def of_inputs(name, function, inputs, rows=()):
    return Formula(name, name, PLAIN, tuple(inputs), function, tuple(rows))


def operations_to_try(draw):
    """Formulas of one operation, each with lists of arguments."""
    signed = [*EDGES[:8], -0.5, -4.0, 8.0, -8.5]
    groups = (
        (OF_NUMBERS, EDGES),
        (OF_SIGNED, signed),
        (OF_SHARES, EDGES[1:9]),
        (OF_TEXTS, TEXTS),
    )
    for names, drawn in groups:
        for name, n in names.items():
            values = list(itertools.product(drawn, repeat=n))
            yield of_inputs(name, helper(name), "xyz"[:n]), map(list, draw.sample(values, min(len(values), 300)))
    for name, function in OPERATORS.items():
        yield of_inputs(name, function, "xy"), map(list, itertools.product([*EDGES, -1.5], repeat=2))
    yield of_inputs("remainder", vocabulary.remainder, "xy"), [[x, y] for x in signed for y in (2.0, -3.0, 0.3)]
    shares = [[x] for x in (0.5, *(draw.uniform(0, 1) for _ in range(100)), 1e-3, 1e-12, 0.925, 0.075, 0.999)]
    yield of_inputs("normal_quantile", vocabulary.normal_quantile, "x"), shares
    yield of_inputs("negative", lambda x: -x, "x"), [[x] for x in EDGES]
    yield of_inputs("replace_text", lambda x: vocabulary.replace_text(x, "a", "-"), "x"), [[text] for text in TEXTS]
    yield of_inputs("round_nearest", lambda x: vocabulary.round_nearest(x, 2), "x"), [[x] for x in EDGES]
    for name, make in OF_ROWS.items():
        inputs, function = make(helper(name))
        rows = [name for name in inputs if name != "x"]
        arguments = [
            [[draw.choice(cells) for _ in range(4)] if n in rows else draw.choice([1.0, 2.0, 3.0]) for n in inputs]
            for cells in ([1.0, 2.0, 2.0, 3.0], [numpy.nan, 1.0, 2.0, 3.0], [numpy.nan, numpy.nan, 2.0])
            for _ in range(100)
        ]
        yield of_inputs(name, function, inputs, rows), arguments


def operation_calls():
    """Formulas of one operation, and calls of them."""
    tried = [(formula, list(every)) for formula, every in operations_to_try(random.Random(1))]
    values = [computed(formula, every) for formula, every in tried]
    calls = [
        (place, as_json(given), as_json(value))
        for place, (_, every) in enumerate(tried)
        for given, value in zip(every, values[place], strict=True)
        if value is not None
    ]
    return [formula for formula, _ in tried], calls


def test_every_operation():
    tried, calls = operation_calls()
    wrong = run(CALLER, source_of(tried), {"calls": calls})
    assert [(tried[place].name, *rest) for place, *rest in wrong] == []
    assert len(calls) > 5_000
    names = {part.operation.name for formula in tried for part in formula.tree.walk()}
    assert set(OPERATIONS) - names == {"reference"}


def source_of(formulas):
    return f"const FUNCTIONS=[{','.join(map(print_entry, formulas))}];"


def test_every_formula():
    formulas = every_formula()
    calls = list(calls_of(formulas, 50))
    wrong = run(CALLER, source_of(formulas), {"calls": calls})
    assert [(formulas[place].name, *rest) for place, *rest in wrong] == []
    n_calls = [sum(place == call[0] for call in calls) for place in range(len(formulas))]
    assert min(n_calls) >= 5
    assert len(calls) > 20_000


# What is put in place of a sign, a number or a function: a fault of the printer or of the runtime.
FAULTS = {
    "+": "-", "-": "+", "*": "+", "/": "*", "<": "<=", ">": ">=", "<=": "<", ">=": ">", "===": "!==", "&&": "||",
    "||": "&&", "?": "&&0?", "1": "2", "0": "1", "min": "max", "max": "min", "floor": "ceil", "roundUp": "Math.floor",
}  # fmt: skip
SIGN = re.compile(r"(?<=[\w)\] ])(?:[-+*/?]|<=|>=|===|&&|\|\||[<>])(?=[\w($! -])")
WORD = re.compile(r"\b(?:min|max|floor|roundUp)(?=\()|(?<=[(,:?<>=*+-])[01](?=[),:?<>=*+-])")


@pytest.mark.long
def test_planted_faults_are_noticed():
    """One sign, number or function of the runtime's operations or of a printed function is another: calls tell."""
    formulas, (tried, calls) = every_formula(), operation_calls()
    printed = source_of([*tried, *formulas])
    calls += [(len(tried) + place, *rest) for place, *rest in calls_of(formulas, 300)]
    operations = re.sub(r"//.*|-Infinity", lambda left: " " * len(left[0]), runtime().partition(OF_COLUMNS)[0])
    start = runtime().index(OF_COLUMNS)
    code = operations + " " * (len(runtime()) - start) + printed
    places = [(match.start(), match[0]) for match in itertools.chain(SIGN.finditer(code), WORD.finditer(code))]
    drawn = random.Random(1)
    chosen = drawn.sample([place for place in places if place[0] < start], N_FAULTS // 4)
    chosen += drawn.sample(places, N_FAULTS - len(chosen))
    faults = [(position, old, FAULTS[old]) for position, old in chosen]
    noticed = run(CALLER, printed, {"calls": calls, "faults": faults})
    print(f"{sum(noticed)} of {N_FAULTS} planted faults noticed, of {len(places):,} places; these were not:")
    for (position, old, other), seen in zip(faults, noticed, strict=True):
        if not seen:
            before, after = code[max(0, position - 60) : position], code[position + len(old) : position + 40]
            print(f"  {before}[{old} -> {other}]{after}".replace("\n", " "))
    assert sum(noticed) >= 80


def test_names_of_the_runtime_hide_no_input():
    text = runtime()
    for operation in OPERATIONS.values():
        if operation.javascript[:1].isalpha() and not operation.javascript.startswith("Math."):
            assert re.search(rf"\b(function|const) {operation.javascript}\b", text), operation.javascript
            assert operation.javascript != operation.javascript.lower()
    inputs = {name for formula in every_formula() for name in formula.inputs}
    assert all(name == name.lower() for name in inputs)
    assert not inputs & {"in", "for", "if", "with", "new", "do", "case", "default", "var", "this", "class", "typeof"}


def test_a_function_as_it_is_printed():
    ratio = of_inputs("share", lambda x, n: vocabulary.where(n > 0, vocabulary.ratio(x, n), "none"), "xn")
    assert print_function(ratio) == '(x,n)=>((n>0)?ratioOr(x,n,0):"none")'
    first = of_inputs("place", lambda row, x: vocabulary.first_where(row == x, row > 1), ("row", "x"), ("row",))
    assert print_function(first) == "(row,x)=>firstWhere(row.length,0,$=>(row[$]===x)&&(row[$]>1))"
    assert first.tree.parts[0].parts[0].operation is INPUT
