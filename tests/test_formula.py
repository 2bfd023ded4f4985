"""One function, two readings: what `Expr` writes, what it refuses, and that columns compute as numbers do."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.formula import (
    Expr,
    at_most,
    both,
    count_of_places,
    count_steps,
    either,
    first_where,
    formula,
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
from sheetgen.units import ONE_DECIMAL, WHOLE

A, B, C = Expr("A1"), Expr("B1"), Expr("C1")
ROW, SIZES = Expr("A1:H1"), Expr("A2:H2")


# What Expr writes


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A + B * C, "A1+B1*C1"),
        ((A + B) * C, "(A1+B1)*C1"),
        (A - B - C, "A1-B1-C1"),
        (A - (B - C), "A1-(B1-C1)"),
        (A / B / C, "A1/B1/C1"),
        (A / (B / C), "A1/(B1/C1)"),
        (A / (B * C), "A1/(B1*C1)"),
        (A * (B / C), "A1*(B1/C1)"),
        (1 - A, "1-A1"),
        (2 / A, "2/A1"),
        (2 * A + 1, "2*A1+1"),
        (-A, "-A1"),
        (-(A + B), "-(A1+B1)"),
        (-literal(-A), "-(-A1)"),
        (-A * B, "-A1*B1"),
        (-(A * B), "-(A1*B1)"),
        (A - (-B), "A1--B1"),  # every spreadsheet reads it as A1-(-B1): the 2,000 expressions prove it
        (A - (-1), "A1--1"),
        (A * -1.5, "A1*-1.5"),
        (literal(-1) - A, "-1-A1"),
        (-literal(-1), "-(-1)"),
        (A == B, "A1=B1"),
        (A != 2, "A1<>2"),
        (A >= B, "A1>=B1"),
        (A + 1 <= B * 2, "A1+1<=B1*2"),
        ((A > B) == (B > C), "(A1>B1)=(B1>C1)"),
        ((A > B) * C, "(A1>B1)*C1"),
        (A == "auto", 'A1="auto"'),
        (where(A == 0, "none", B), 'IF(A1=0,"none",B1)'),
        (smallest(A, B + 1, 2), "MIN(A1,B1+1,2)"),
        (largest(A, 0) - B, "MAX(A1,0)-B1"),
        (both(A > 1, B < 2), "AND(A1>1,B1<2)"),
        (either(A > 1, B), "OR(A1>1,B1)"),
        (round_up(A / B), "ROUNDUP(A1/B1,0)"),
        (round_down(A / B), "INT(A1/B1)"),
        (remainder(A, B), "MOD(A1,B1)"),
        (power(1 - A, B), "POWER(1-A1,B1)"),
        (ratio(A + 1, B - C), "IF(B1-C1=0,0,(A1+1)/(B1-C1))"),
        (ratio(1, B, "-"), 'IF(B1=0,"-",1/B1)'),
        (least_number(ROW, otherwise="-"), 'IF(COUNT(A1:H1)=0,"-",MIN(A1:H1))'),
        (least_where(ROW, SIZES >= A), "MIN(IF(A2:H2>=A1,A1:H1))"),
        (least_where(ROW, ROW < A, otherwise="-"), 'IF(COUNT(IF(A1:H1<A1,A1:H1))=0,"-",MIN(IF(A1:H1<A1,A1:H1)))'),
        (first_where(ROW == A), "IFERROR(MATCH(1,1*(A1:H1=A1),0),0)"),
        (
            first_where(ROW == A, SIZES >= B, otherwise="-"),
            'IFERROR(MATCH(1,1*(A1:H1=A1)*(A2:H2>=B1),0),"-")',
        ),
    ],
)
def test_the_text(expr, text):
    assert isinstance(expr, Expr)
    assert expr.text == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2, "2"),
        (-3, "-3"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (2.5e-12, "0.0000000000025"),
        (1e22, "10000000000000000000000"),
        (1 / 3, "0.3333333333333333"),
        (10**18, "1000000000000000000"),
        (numpy.float64(0.1), "0.1"),
        (True, "TRUE"),
        (False, "FALSE"),
        ("auto", '"auto"'),
        ('a 24" rack', '"a 24"" rack"'),
        ("=1+1", '"=1+1"'),
    ],
)
def test_literals(value, text):
    assert literal(value).text == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_literal_is_the_number_without_an_exponent(x):
    text = literal(x).text
    assert float(text) == x
    assert "e" not in text.lower()


@pytest.mark.parametrize("value", [math.nan, math.inf, None, [1], numpy.arange(3), numpy.int64(3), object()])
def test_what_cannot_stand_in_a_formula(value):
    with pytest.raises(TypeError, match="cannot stand in a formula"):
        literal(value)


def test_array_formulas_stay_marked():
    assert least_where(ROW, ROW > 0).array
    assert (2 * first_where(ROW == A) + 1).array
    assert where(A > 0, -least_where(ROW, ROW > 0), 0).array
    assert not least_number(ROW, otherwise=0).array
    assert not (A + B).array


# What Expr refuses


@pytest.mark.parametrize(
    "branch",
    [
        lambda: 1 if A > 2 else 0,
        lambda: A and B,
        lambda: A or B,
        lambda: not A,
        lambda: min(A, B),
        lambda: max(A, 1),
        lambda: 0 < A < 2,
        lambda: A in (B, C),
        lambda: numpy.where(A > 1, 1, 2),
    ],
)
def test_a_formula_cannot_branch(branch):
    with pytest.raises(TypeError, match=r"use where\(\)"):
        branch()


@pytest.mark.parametrize(
    "mix",
    [
        lambda: A**2,
        lambda: A // 2,
        lambda: A % 2,
        lambda: A & B,
        lambda: math.ceil(A),
        lambda: float(A),
        lambda: hash(A),
        lambda: numpy.arange(3) * A,
        lambda: A * numpy.arange(3),
        lambda: numpy.arange(3) == A,
        lambda: numpy.float64(2) + A * numpy.arange(2),
        lambda: numpy.minimum(A, 1),
        lambda: numpy.ceil(A),
        lambda: where(A > 1, numpy.arange(3), 0),
        lambda: smallest(A, numpy.arange(3)),
        lambda: least_where(ROW, both(ROW > 1, ROW < 2)),
        lambda: first_where(either(ROW > 1, ROW < 2)),
    ],
)
def test_what_has_no_text_is_refused(mix):
    with pytest.raises(TypeError):
        mix()


def test_numpy_numbers_defer_to_expr():
    assert (numpy.float64(2) * A).text == "2*A1"


# Formulas


@formula(label="KV cache per token", display=ONE_DECIMAL)
def kv_bytes_per_token(n_layers, n_kv_heads, head_dim, kv_dtype_bytes):
    """Keys and values that one token of context keeps in GPU memory,
    all layers together.

    Before division by TP.

    Source: arXiv:2305.13245,
        table 1.
    """
    return 2 * n_layers * n_kv_heads * head_dim * kv_dtype_bytes


@formula(label="Bare")
def bare(n_layers):
    return n_layers + 1


def test_a_formula_knows_itself():
    f = kv_bytes_per_token
    assert (f.name, f.label, f.display) == ("kv_bytes_per_token", "KV cache per token", ONE_DECIMAL)
    assert f.inputs == ("n_layers", "n_kv_heads", "head_dim", "kv_dtype_bytes")
    assert f.summary == ("Keys and values that one token of context keeps in GPU memory, all layers together.")
    assert f.source == "arXiv:2305.13245, table 1."
    assert f.documentation.splitlines()[3] == "Before division by TP."
    assert (bare.summary, bare.source, bare.documentation, bare.display) == ("", "", "", WHOLE)


def test_a_formula_reads_numbers_columns_and_cells():
    shape = {"n_layers": 80, "n_kv_heads": 8, "head_dim": 128, "kv_dtype_bytes": 2, "more": 1}
    assert kv_bytes_per_token(80, 8, 128, 2) == kv_bytes_per_token.of(shape) == 327_680
    column = kv_bytes_per_token.of({**shape, "n_layers": numpy.array([80, 32])})
    assert column.tolist() == [327_680, 131_072]
    assert kv_bytes_per_token.of({name: Expr(name) for name in shape}).text == (
        "2*n_layers*n_kv_heads*head_dim*kv_dtype_bytes"
    )


def test_a_missing_input_is_named():
    with pytest.raises(KeyError, match=r"'kv_bytes_per_token' reads 'n_kv_heads', which nothing provides"):
        kv_bytes_per_token.of({"n_layers": 80})


# Numbers


def test_ratio_is_lazy_and_where_is_eager():
    assert ratio(1, 0) == 0
    assert ratio(1, 0, "-") == "-"
    with numpy.errstate(all="raise"):
        assert ratio(numpy.array([1.0, 6.0]), numpy.array([0, 2])).tolist() == [0, 3]
        assert ratio(6, numpy.array([0, 2]), "-").tolist() == ["-", 3]
    with pytest.raises(ZeroDivisionError):
        where(True, 0, 1 / 0)


def test_numbers_beside_a_text_stay_numbers():
    """numpy.where alone makes the text '1.5' of 1.5."""
    assert where(numpy.array([True, False]), numpy.array([1.5, 2]), "-").tolist() == [1.5, "-"]
    assert least_number(numpy.array([[2.0, math.nan], [1.5, math.nan]]), otherwise="-").tolist() == [1.5, "-"]
    assert where(numpy.array([True, False]), "fits", "over").tolist() == ["fits", "over"]


def test_rows_with_nothing_there():
    costs = numpy.array([3.0, math.nan, 1.0, 1.0, 2.0])
    nothing = numpy.full(5, math.nan)
    sizes = numpy.array([8, 8, 2, 4, 8])
    assert least_number(costs, otherwise="-") == 1
    assert least_number(nothing, otherwise="-") == "-"
    assert least_where(costs, sizes >= 8) == 2  # the NaN among them does not spread
    assert least_where(costs, sizes > 8) == 0  # as MIN of nothing
    assert math.isnan(least_where(costs, sizes > 8, otherwise="-"))  # no number, so that columns stay columns
    assert first_where(costs == 1) == 3  # the first of two
    assert first_where(costs == 1, sizes >= 4) == 4
    assert first_where(costs == 9) == 0
    assert first_where(costs == 9, otherwise="-") == "-"
    table = numpy.vstack([costs, nothing]).T
    assert first_where(table == 1).tolist() == [3, 0]
    assert least_where(table, table > 1).tolist() == [2, 0]
    assert greatest_where(costs, sizes >= 4) == 3
    assert greatest_where(table, table < 1).tolist() == [0, 0]  # as MAX of nothing


def test_at_most_takes_what_is_the_same_in_some_15_digits():
    assert at_most(numpy.array([0.3, 0.1 + 0.2, 0.31, math.nan]), 0.3).tolist() == [True, True, False, False]
    assert at_most(Expr("A1:C1"), Expr("D1")).text == "1*(A1:C1<D1)+1*(A1:C1=D1)>0"  # no OR: it answers once for a row


numbers = st.integers(-1000, 1000).map(lambda n: n / 8)
positive = st.integers(1, 1000).map(lambda n: n / 8)
HELPERS = {
    "where": (lambda x, y, z: where(x > y, z, x), (numbers, numbers, numbers)),
    "where text": (lambda x, y: where(x > y, x, "-"), (numbers, numbers)),
    "smallest": (smallest, (numbers, numbers, numbers)),
    "largest": (largest, (numbers, numbers, numbers)),
    "both": (lambda x, y: both(x > 0, y > 0), (numbers, numbers)),
    "either": (lambda x, y: either(x > 0, y > 0), (numbers, numbers)),
    "round_up": (round_up, (positive,)),
    "round_down": (round_down, (numbers,)),
    "ratio": (lambda x, n: ratio(x, n, -1), (numbers, numbers)),
    "remainder": (remainder, (positive, positive)),
    "power": (power, (positive, st.sampled_from([-2, -1, 0, 0.5, 1, 3]))),
    "power of whole numbers": (power, (st.integers(1, 9), st.integers(-3, 3))),
}


def agree(column, plain):
    for x, y in zip(column.tolist(), plain, strict=True):
        assert x == y or math.isclose(x, y, rel_tol=1e-15)  # pow differs in the last bit


@pytest.mark.parametrize("name", HELPERS)
@given(data=st.data())
def test_a_column_computes_as_its_numbers_do(name, data):
    helper, kinds = HELPERS[name]
    rows = data.draw(st.lists(st.tuples(*kinds), min_size=1, max_size=20))
    columns = [numpy.array(column) for column in zip(*rows, strict=True)]
    agree(helper(*columns), [helper(*row) for row in rows])
    one_fixed = helper(columns[0], *rows[0][1:])  # a column beside plain numbers
    agree(one_fixed, [helper(x, *rows[0][1:]) for x, *_ in rows])


@given(st.integers(1, 70), st.lists(st.integers(-1, 71), min_size=1, max_size=5), st.booleans())
def test_steps_are_counted_as_all_places_are(n_places: int, limits: list[int], is_single: bool) -> None:
    places = numpy.arange(1.0, n_places + 1)
    shifts = numpy.tile(numpy.arange(3.0), (n_places, 1))  # a row that differs along another axis
    limit = float(limits[0]) if is_single else numpy.array(limits, float)[:, None]
    rows = (places,) if is_single else (places, shifts)

    def holds(place: object, shift: object = 0.0) -> object:
        return place + shift <= limit  # type: ignore[operator]

    assert numpy.array_equal(count_steps(holds, *rows), count_of_places(holds, *rows))
