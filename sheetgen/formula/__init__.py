"""One formula, two readings: the same Python function computes a number or writes Excel text.

A sizing quantity is one function under `@formula`. Its name is the column's name, its parameters' names are
the quantities that it reads. Called with numbers or numpy arrays it computes; called with `Expr` objects
(cell references) its operators build the text of an Excel formula. The helpers below exist in both readings
and stay inside the Excel 2007 vocabulary.
"""

from sheetgen.formula.documented import Formula, formula
from sheetgen.formula.expr import Expr, Quantity, literal
from sheetgen.formula.vocabulary import (
    both,
    cheapest,
    count_steps,
    either,
    fading,
    first_where,
    greatest_where,
    is_number,
    is_text,
    join_text,
    largest,
    least_above_zero,
    least_where,
    number_or_none,
    number_where,
    percent_text,
    power,
    ratio,
    remainder,
    round_down,
    round_nearest,
    round_up,
    same_money,
    smallest,
    where,
    whole_text,
)

__all__ = [
    "Expr", "Formula", "Quantity", "both", "cheapest", "count_steps", "either", "fading", "first_where", "formula",
    "greatest_where", "is_number", "is_text", "join_text", "largest", "least_above_zero", "least_where", "literal",
    "number_or_none", "number_where", "percent_text", "power", "ratio", "remainder", "round_down", "round_nearest",
    "round_up", "same_money", "smallest", "where", "whole_text",
]  # fmt: skip
