"""`Expr` speaks correct Excel: 2,000 random expressions, and rows with ties and gaps, recalculated.

Each expression is built twice at once, by the same call: a Python value and its Excel text. Knife edges are
drawn again: LibreOffice snaps a difference, a comparison or a rounding that hangs on the last bits (its
INT(3-4.4E-16) is 3), Excel on other ones, Python on none. No text could make them agree there, and no
quantity of ours may hang on them. Text is compared in lower case, for Excel does not tell case apart.
"""

import math
import random
from typing import NamedTuple

import numpy
import pytest
import xlsxwriter
from recalculation import (
    ALLOWED_FUNCTIONS,
    assert_recalculates,
    compare,
    edit,
    functions_used,
    needs_libreoffice,
    poison,
    recalculate,
    recalculate_with_formualizer,
    tamper,
)
from workbook_cells import formulas, values

from sheetgen.formula import (
    Expr,
    at_most,
    both,
    either,
    excel,
    first_where,
    greatest_where,
    largest,
    least_number,
    least_where,
    literal,
    power,
    ratio,
    remainder,
    round_down,
    round_up,
    smallest,
    where,
)

N_EXPRESSIONS = 2_000
N_ROWS = 200


class Pair(NamedTuple):
    value: object
    text: Expr


class KnifeEdge(Exception):
    """The last bits would decide: draw again."""


def near(x: float, y: float) -> bool:
    return x != y and abs(x - y) < 1e-6 * max(1, abs(x), abs(y))


def both_ways(operation, *pairs: Pair) -> Pair:
    value = operation(*(p.value for p in pairs))
    if not isinstance(value, (str, bool)) and not (value == 0 or 1e-6 < abs(value) < 1e12):
        raise KnifeEdge
    return Pair(value, operation(*(p.text for p in pairs)))


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        # Eighths have an exact binary form; a few are 0, for ratio() and for ties.
        self.numbers = [self.random.choice([1, -1]) * self.random.randint(0, 800) / 8 for _ in range(20)] + [0]
        self.words = ["auto", "bf16", "fp8", "auto", 'a 24" rack']
        self.cells = [Pair(x, Expr(f"Values!$A${i}")) for i, x in enumerate(self.numbers, 1)]
        self.texts = [Pair(x, Expr(f"Values!$B${i}")) for i, x in enumerate(self.words, 1)]

    def expressions(self, n: int) -> list[Pair]:
        kinds = [self.number] * 8 + [self.condition, self.word]
        return [self.again(lambda: self.random.choice(kinds)(4)) for _ in range(n)]

    def again(self, draw) -> Pair:
        while True:
            try:
                return draw()
            except (KnifeEdge, ZeroDivisionError):
                continue

    def number(self, depth: int) -> Pair:
        if depth == 0 or self.random.random() < 0.1:
            constant = self.random.choice([1, 2, -1, 0.125, -2.5, 730])
            return self.random.choice([*self.cells, Pair(constant, literal(constant))])
        return self.again(lambda: self.random.choice(self.operations())(depth - 1))

    def operations(self) -> list:
        signs = [self.plus, self.minus, self.times, self.over, self.negative]
        return signs * 3 + [self.choice, self.extreme, self.whole, self.ratio, self.remainder, self.power]

    def plus(self, depth: int) -> Pair:
        x, y = self.number(depth), self.number(depth)
        if near(x.value, -y.value):
            raise KnifeEdge
        return both_ways(lambda a, b: a + b, x, y)

    def minus(self, depth: int) -> Pair:
        x, y = self.number(depth), self.number(depth)
        if near(x.value, y.value):
            raise KnifeEdge
        return both_ways(lambda a, b: a - b, x, y)

    def times(self, depth: int) -> Pair:
        return both_ways(lambda a, b: a * b, self.number(depth), self.number(depth))

    def over(self, depth: int) -> Pair:
        return both_ways(lambda a, b: a / b, self.number(depth), self.number(depth))

    def negative(self, depth: int) -> Pair:
        return both_ways(lambda a: -a, self.number(depth))

    def choice(self, depth: int) -> Pair:
        return both_ways(where, self.condition(depth), self.number(depth), self.number(depth))

    def extreme(self, depth: int) -> Pair:
        n = self.random.randint(2, 3)
        return both_ways(self.random.choice([smallest, largest]), *(self.number(depth) for _ in range(n)))

    def whole(self, depth: int) -> Pair:
        x = self.number(depth)
        if near(x.value, round(x.value)):
            raise KnifeEdge
        if self.random.random() < 0.5:
            return both_ways(round_down, x)
        return both_ways(lambda a: round_up(largest(a, 0)), x)  # ROUNDUP moves away from zero

    def ratio(self, depth: int) -> Pair:
        return both_ways(ratio, self.number(depth), self.number(depth), self.number(0))

    def remainder(self, depth: int) -> Pair:
        x, n = both_ways(lambda a: largest(a, -a), self.number(depth)), self.random.choice([1, 2, 3, 8, 16])
        if near(x.value / n, round(x.value / n)):
            raise KnifeEdge
        return both_ways(remainder, x, Pair(n, literal(n)))

    def power(self, depth: int) -> Pair:
        base = both_ways(lambda a: largest(a, 0.125), self.number(depth))
        exponent = self.random.choice([-1, 0.5, 2, 3])
        return both_ways(power, base, Pair(exponent, literal(exponent)))

    def condition(self, depth: int) -> Pair:
        kind = self.random.random()
        if depth > 0 and kind < 0.3:
            join = self.random.choice([both, either])
            return both_ways(join, self.condition(depth - 1), self.condition(depth - 1))
        if kind < 0.5:
            word = self.random.choice(self.words)
            x, y = self.random.choice(self.texts), Pair(word, literal(word))
            return both_ways(self.random.choice([lambda a, b: a == b, lambda a, b: a != b]), x, y)
        x, y = self.number(depth), self.number(depth)
        if near(x.value, y.value):
            raise KnifeEdge
        compare = [
            *(lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b),
            *(lambda a, b: a == b, lambda a, b: a != b),
        ]
        return both_ways(self.random.choice(compare), x, y)

    def word(self, depth: int) -> Pair:
        yes, no = self.random.choice(self.texts), Pair("over", literal("over"))
        return both_ways(where, self.condition(depth), yes, no)


def write_expressions(path, seed: int = 1) -> list[Pair]:
    generator = Generator(seed)
    pairs = generator.expressions(N_EXPRESSIONS)
    with xlsxwriter.Workbook(path) as book:
        sheet, values = book.add_worksheet("Expressions"), book.add_worksheet("Values")
        for i, (x, word) in enumerate(zip(generator.numbers, generator.words * 5, strict=False)):
            values.write_number(i, 0, x)
            values.write_string(i, 1, word)
        for i, (value, text) in enumerate(pairs):
            sheet.write_formula(i, 0, f"={text.text}", None, value)
    return pairs


def write_rows(path) -> None:
    """Rows of eight costs with gaps and ties, some with none, and sizes; each range helper over them."""
    draw = random.Random(2)
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("Rows")
        for i in range(N_ROWS):
            gaps = draw.choice([0, 0.3, 0.9, 1])
            costs = numpy.array([math.nan if draw.random() < gaps else draw.randint(1, 4) / 4 for _ in range(8)])
            sizes = numpy.array([draw.randint(1, 4) for _ in range(8)])
            need = draw.randint(1, 5)
            for j in range(8):
                sheet.write(i, j, "-" if math.isnan(costs[j]) else costs[j])
                sheet.write(i, 8 + j, sizes[j])
            sheet.write(i, 16, need)
            row = i + 1
            python = costs, sizes, need
            excel = Expr(f"A{row}:H{row}"), Expr(f"I{row}:P{row}"), Expr(f"Q{row}")
            for j, helper in enumerate(RANGES):
                value, expr = helper(*python), helper(*excel)
                value = value.item() if hasattr(value, "item") else value
                value = "-" if value != value else value  # no number: a dash in a workbook
                write = sheet.write_array_formula if expr.array else sheet.write_formula
                place = (i, 17 + j, i, 17 + j) if expr.array else (i, 17 + j)
                write(*place, f"={expr.text}", None, value)


RANGES = [
    lambda costs, sizes, need: least_number(costs, otherwise="-"),
    lambda costs, sizes, need: least_number(costs, otherwise=0) + 1,
    lambda costs, sizes, need: least_where(costs, sizes >= need),
    lambda costs, sizes, need: least_where(costs, sizes >= need, otherwise="-"),
    lambda costs, sizes, need: least_where(sizes, costs <= 0.5, otherwise=need) * 2,
    lambda costs, sizes, need: least_where(
        sizes, at_most(costs, least_number(costs, otherwise=0) * (1 + 1 / 3)), costs > 0
    ),
    lambda costs, sizes, need: greatest_where(sizes, at_most(costs, 0.5), sizes < need),
    lambda costs, sizes, need: first_where(costs == least_number(costs, otherwise=0)),
    lambda costs, sizes, need: first_where(sizes == need),
    lambda costs, sizes, need: first_where(costs == 0.5, sizes >= need, otherwise="none fits"),
    lambda costs, sizes, need: where(least_number(costs, otherwise=0) == 0, "-", first_where(costs <= 0.5) - 1),
]


@pytest.mark.long  # in the gate formualizer has them
@needs_libreoffice
def test_random_expressions_in_libreoffice(tmp_path):
    path = tmp_path / "expressions.xlsx"
    write_expressions(path)
    assert assert_recalculates(path, tmp_path).n_compared == N_EXPRESSIONS


def test_random_expressions_in_formualizer(tmp_path):
    path = tmp_path / "expressions.xlsx"
    pairs = write_expressions(path)
    assert poison(path, tmp_path / "poisoned.xlsx") == N_EXPRESSIONS
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == result.n_formulas == N_EXPRESSIONS

    # The two thousand are varied: every word of the vocabulary, all three types of answer, many answers.
    assert functions_used(path) == {"IF", "AND", "OR", "MIN", "MAX", "ROUNDUP", "INT", "MOD", "POWER"}
    assert functions_used(path) <= ALLOWED_FUNCTIONS
    kinds = [type(cell.value) for cell in formulas(path)]
    assert all(kinds.count(kind) > 100 for kind in (float, str, bool))
    assert len({p.value for p in pairs}) > N_EXPRESSIONS / 3


@pytest.mark.some(1)
@pytest.mark.parametrize("sign", ["-", "/"])
@needs_libreoffice
def test_a_broken_precedence_rule_is_seen(tmp_path, monkeypatch, sign):
    """The twin that must fail: the right operand of one sign is no longer bracketed."""
    right = excel.infix

    def wrong(left, operator, other, binding):
        part = excel.piece(other)
        if operator == sign and part.binding == binding:
            other = excel.Text(part.text)
        return right(left, operator, other, binding)

    monkeypatch.setattr(excel, "infix", wrong)
    path = tmp_path / "broken.xlsx"
    write_expressions(path)
    result = compare(path, recalculate(path, tmp_path))
    print(f"right operand of {sign} not bracketed: {len(result.mismatches)} mismatches of {result.n_compared}")
    assert result.n_compared == N_EXPRESSIONS
    assert len(result.mismatches) > 20


@pytest.mark.long
@needs_libreoffice
def test_ranges_in_libreoffice(tmp_path):
    path = tmp_path / "rows.xlsx"
    write_rows(path)
    assert assert_recalculates(path, tmp_path).n_compared == N_ROWS * len(RANGES)
    with pytest.raises(AssertionError, match="1 mismatches"):
        tamper(path, tmp_path / "tampered.xlsx")
        assert_recalculates(tmp_path / "tampered.xlsx", tmp_path)


def test_ranges_in_formualizer(tmp_path):
    path = tmp_path / "rows.xlsx"
    write_rows(path)
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == result.n_formulas == N_ROWS * len(RANGES)
    assert functions_used(path) <= ALLOWED_FUNCTIONS


# The referee itself


def write_small(path) -> None:
    with xlsxwriter.Workbook(path) as book:
        sheet, answers = book.add_worksheet("It's in"), book.add_worksheet("Out")
        blue = book.add_format({"font_color": "blue"})
        sheet.write_row(0, 0, [8, "bf16 & more", True], blue)
        sheet.write_blank(0, 3, None, blue)
        book.define_name("in_heads", "='It''s in'!$A$1")
        book.define_name("in_dtype", "='It''s in'!$B$1")
        answers.write_formula("A1", "=in_heads*2", None, 16)
        answers.write_formula("A2", '=IF(in_dtype="fp8","eight & <","sixteen")', None, "sixteen")
        answers.write_formula("A3", "=AND('It''s in'!C1,in_heads>4)", None, True)
        answers.write_array_formula("A4:A4", "{=SUM(1*('It''s in'!A1:D1=\"spare\"))}", None, 0)


def test_an_edit_is_what_a_reader_types(tmp_path):
    path, edited = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    write_small(path)
    edit(path, edited, {"in_heads": 4, "in_dtype": "fp8", ("It's in", "D1"): "spare", ("It's in", "C1"): None})
    by_place = values(recalculate_with_formualizer(edited, tmp_path / "c.xlsx"))
    assert [by_place["Out", f"A{i}"] for i in (1, 2, 3, 4)] == [8, "eight & <", False, 1]
    assert (by_place["in_heads"], by_place["in_dtype"]) == (4, "fp8")
    for wrong in ({("Out", "A1"): 1}, {("Out", "Z9"): 1}):
        with pytest.raises(AssertionError):
            edit(path, edited, wrong)
    with pytest.raises(KeyError, match="in_head"):
        edit(path, edited, {"in_head": 1})


@pytest.mark.long
@needs_libreoffice
def test_an_edit_recalculates_in_libreoffice(tmp_path):
    path, edited = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    write_small(path)
    edit(path, edited, {"in_heads": 4, "in_dtype": "fp8", ("It's in", "D1"): "spare"})
    by_place = values(recalculate(edited, tmp_path))
    assert [by_place["Out", f"A{i}"] for i in (1, 2, 3, 4)] == [8, "eight & <", False, 1]


def test_poison_tamper_and_wrong_types_are_seen(tmp_path):
    path, other = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    write_small(path)
    assert not compare(path, path).mismatches
    assert poison(path, other) == 4
    poisoned = compare(path, other)
    assert (len(poisoned.mismatches), poisoned.n_poisoned, poisoned.n_compared) == (4, 3, 4)
    assert tamper(path, other) == ("Out", "A1", "in_heads*2", "in_heads+2")
    tampered = compare(other, recalculate_with_formualizer(other, tmp_path / "c.xlsx"))
    assert [(m.cell, m.expected, m.got) for m in tampered.mismatches] == [("A1", 16, 10)]
    assert functions_used(path) == {"IF", "AND", "SUM"}

    def function(value) -> None:
        with xlsxwriter.Workbook(other) as book:
            book.add_worksheet("Out").write_formula("A1", "=1", None, value)

    wrote = {}
    for value in (1, 1 + 1e-8, "1", True, "#N/A"):
        function(value)
        wrote[repr(value)] = other.rename(tmp_path / f"{len(wrote)}.xlsx")
    same = [(x, y) for x in wrote for y in wrote if not compare(wrote[x], wrote[y]).mismatches]
    assert same == [(x, x) for x in wrote if "N/A" not in x]
