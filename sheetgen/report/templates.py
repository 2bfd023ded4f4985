"""Sentences as templates with named slots and conditions: the page fills them, a workbook and JavaScript print them.

In a template `{n}` is a slot for the quantity `n`, `{n:kind}` says it as one of KINDS, and `{n:request|requests}` is a
word by its number. `[many? of {n}|none]` is said where the condition `many` holds, and what follows `|` where it does
not. A slot's name may also be that of a part: another template, or what is worked out of quantities.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sheetgen.formula import (
    Expr,
    Formula,
    Value,
    grouped_text,
    hundredths_text,
    join_text,
    percent_text,
    replace_text,
    round_nearest,
    where,
    whole_text,
)
from sheetgen.formula.tree import INPUT
from sheetgen.report.page import NONE, Cell
from sheetgen.units import ONE_DECIMAL, PERCENT, TEXT, TWO_DECIMALS, USD, USD_CENTS, WHOLE, Display

NO_VALUE = "-"  # shown in a workbook where the page has NONE
FX_RATE = "fx_rate"  # the quantity by which amounts of another currency than dollars are multiplied


def _same(value: Value) -> Value:
    return value


def short_type(instance: Value) -> Value:
    """A type as the page names it: Standard_ND96isr_H200_v5 is ND96isr H200 v5."""
    return replace_text(replace_text(instance, "Standard_", ""), "_", " ")


def _three_digits(value: Value) -> Value:
    """A number in three digits, as `rate_text` writes it."""
    fraction = where(value < 9.995, round_nearest(value, 2), round_nearest(value, 1))
    return where(value >= 99.95, grouped_text(value), fraction)


@dataclass(frozen=True)
class Kind:
    """The form of a slot's quantity. change: the value that takes its place. printed: that as text of a workbook.
    display: that on the page, where it is a number.

    change: what is said in its place. printed: that as a workbook's text. display: that on the page, where it is a
    number.
    """

    change: Callable[[Value], Value] = _same
    printed: Callable[[Value], Value] = _same
    display: Display = WHOLE


KINDS = {
    "": Kind(),
    "whole": Kind(printed=whole_text),
    "tenths": Kind(printed=lambda value: round_nearest(value, 1), display=ONE_DECIMAL),
    "hundredths": Kind(printed=hundredths_text, display=TWO_DECIMALS),
    "digits": Kind(printed=_three_digits),
    "grouped": Kind(printed=grouped_text),
    "usd": Kind(printed=grouped_text, display=USD),
    "cents": Kind(printed=hundredths_text, display=USD_CENTS),
    "percent": Kind(printed=percent_text, display=PERCENT),
    "next": Kind(lambda value: value + 1),
    "type": Kind(short_type),
}


def _kind(name: str) -> Kind:
    singular, is_plural, plural = name.partition("|")
    return Kind(lambda count: where(count == 1, singular, plural)) if is_plural else KINDS[name]


class _Quantities:
    """Quantities by name, for conditions and what is worked out: `q.n_instances > 1`."""

    def __getattr__(self, name: str) -> Expr:
        return Expr.leaf(INPUT, name)


q = _Quantities()


@dataclass(frozen=True, eq=False)
class Unless:
    """A case of `first_of` that applies where a condition does not hold."""

    condition: Expr


@dataclass(frozen=True)
class Slot:
    """A place of a template for a quantity or a part."""

    name: str
    kind: Kind

    @property
    def is_money(self) -> bool:
        return self.kind.display.prefix == USD.prefix


@dataclass(frozen=True, eq=False)
class Template:
    """A sentence, or a part of one: `pieces` where the condition holds, else the other one. name: of the condition."""

    pieces: tuple[Piece, ...]
    condition: Expr | None = None
    otherwise: Template | None = None  # None: that nothing is known
    parts: Mapping[str, Template] = field(default_factory=dict)
    figures: Mapping[str, Expr] = field(default_factory=dict)
    name: str = ""

    def saying(self, **parts: bool | str | Template) -> Template:
        """The same with other parts; where a condition of that name holds always, or never."""
        pieces = list[Piece]()
        for piece in self.pieces:
            chosen = parts.get(piece.name) if isinstance(piece, Template) else None
            if isinstance(piece, Template) and isinstance(chosen, bool):
                pieces += (piece if chosen else piece.otherwise or NOTHING).pieces
            else:
                pieces.append(piece)
        others = {name: template(part) for name, part in parts.items() if not isinstance(part, bool)}
        return replace(self, pieces=tuple(pieces), parts={**self.parts, **others})

    def fill(self, *in_order: Value, **values: Value) -> Cell:
        """The sentence on the page: numbers keep their displays, and are formatted last. What a part says, or whether
        a condition holds, may be given by its name. in_order: what the first slots say."""
        slots = (piece.name for piece in self.pieces if isinstance(piece, Slot))
        filled = self._filled({**dict(zip(slots, in_order, strict=False)), **values})
        return NONE if filled is None else Cell(filled[0], parts=tuple(filled[1]))

    def _filled(self, values: Mapping[str, Value]) -> tuple[str, list[Value]] | None:
        values = self._with_figures(values)
        if not self._holds(values):
            return None if self.otherwise is None else self.otherwise._filled(values)
        pattern, cells = "", list[Value]()
        for piece in self.pieces:
            if isinstance(piece, Slot) and piece.name in self.parts and piece.name not in values:
                piece = self.parts[piece.name]
            if isinstance(piece, Template):
                inside = piece._filled(values) or ("{}", [NONE])
                pattern, cells = pattern + inside[0], cells + inside[1]
            elif isinstance(piece, Slot):
                value = values[piece.name]
                value = value if isinstance(value, Cell) else piece.kind.change(value)
                pattern += "{}"
                cells.append(value if isinstance(value, Cell | str) else Cell(value, piece.kind.display))
            else:
                pattern += piece
        return pattern, cells

    def _holds(self, values: Mapping[str, Value]) -> bool:
        given = values.get(self.name)
        if self.condition is None or isinstance(given, bool):
            return given is not False
        return bool(self.condition.read(values))

    def _with_figures(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        return {**{name: figure.read(values) for name, figure in self.figures.items() if name not in values}, **values}

    def printed(self, values: Mapping[str, Value], prefix: str = USD.prefix) -> Value:
        """The sentence as a workbook's text: of values, or as the tree of its operations. prefix: of amounts; those of
        another currency than dollars are at the rate `fx_rate`."""
        values = self._with_figures(values)
        pieces = [self._print(piece, values, prefix) for piece in self.pieces]
        text = "" if not pieces else pieces[0] if len(pieces) == 1 else join_text(*pieces)
        if self.condition is None:
            return text
        otherwise = NO_VALUE if self.otherwise is None else self.otherwise.printed(values, prefix)
        return where(self.condition.read(values), text, otherwise)

    def _print(self, piece: Piece, values: Mapping[str, Value], prefix: str) -> Value:
        if isinstance(piece, Slot) and piece.name not in self.parts:
            value = piece.kind.change(values[piece.name])
            if not piece.is_money:
                return piece.kind.printed(value)
            there = value if prefix == USD.prefix else value * values[FX_RATE]
            return join_text(prefix, piece.kind.printed(there))
        part = self.parts[piece.name] if isinstance(piece, Slot) else piece
        return part.printed(values, prefix) if isinstance(part, Template) else part

    def _names(self, prefix: str) -> Iterator[str]:
        """The quantities that the sentence reads, in reading order."""
        read = [] if self.condition is None else [*self.condition.inputs]
        for piece in self.pieces:
            part = self.parts.get(piece.name, piece) if isinstance(piece, Slot) else piece
            if isinstance(part, Template):
                read += part._names(prefix)
            elif isinstance(part, Slot):
                read += [part.name, FX_RATE] if part.is_money and prefix != USD.prefix else [part.name]
        read += self.otherwise._names(prefix) if self.otherwise else ()
        for name in read:
            yield from self.figures[name].inputs if name in self.figures else (name,)

    def formula(self, name: str, label: str, about: str = "", source: str = "") -> Sentence:
        """The sentence as a formula of the quantities that it reads. about, source: its documentation."""
        return self._formula(name, label, f"{about}\n\nSource: {source}" if source else about, USD.prefix)

    def _formula(self, name: str, label: str, documentation: str, prefix: str) -> Sentence:
        inputs = tuple(dict.fromkeys(self._names(prefix)))

        def function(*values: Value) -> Value:
            return self.printed(dict(zip(inputs, values, strict=True)), prefix)

        function.__doc__ = documentation
        return Sentence(name, label, TEXT, inputs, function, template=self)


@dataclass(frozen=True)
class Sentence(Formula):
    """A sentence as a formula, with its template."""

    template: Template = field(kw_only=True)

    def in_currency(self, prefix: str) -> Sentence:
        """The same with its amounts in another currency, by its prefix and at the rate `fx_rate`, which it reads."""
        return self.template._formula(self.name, self.label, self.documentation, prefix)


NOTHING = Template(())
Piece: TypeAlias = str | Slot | Template
Part: TypeAlias = "str | Template | Expr"
Case: TypeAlias = "tuple[Expr | Unless, str | Template]"
_TOKEN = re.compile(r"\{(?P<slot>\w+):?(?P<kind>[^}]*)\}|\[(?P<condition>\w+)\?|(?P<end>[|\]])|(?P<text>[^{}[\]|]+)")


def template(
    text: str | Template, when: Expr | None = None, otherwise: str | Template | None = "", **parts: Part
) -> Template:
    """A sentence, said where the condition holds.

    otherwise: what is said where it does not; None, that nothing is known. parts: by name the conditions of `[name?`
    and what slots stand for that are no quantities: templates, and what is worked out.
    """
    if isinstance(text, Template):
        return text
    named = {name: template(part) if isinstance(part, str) else part for name, part in parts.items()}
    texts = {name: part for name, part in named.items() if isinstance(part, Template)}
    conditions = {name: part for name, part in named.items() if not isinstance(part, Template)}
    pieces, _ = _parse(_TOKEN.finditer(text), conditions, texts)
    figures = {name: part for name, part in conditions.items() if f"[{name}?" not in text}
    others = None if when is None or otherwise is None else template(otherwise)
    return Template(pieces, when, others, texts, figures)


def _parse(
    tokens: Iterator[re.Match[str]], conditions: Mapping[str, Expr], parts: Mapping[str, Template]
) -> tuple[tuple[Piece, ...], str]:
    """The pieces up to the end of a text, or of a choice in it, and what ends it: `|` or `]`."""
    pieces = list[Piece]()
    for token in tokens:
        if token["end"]:
            return tuple(pieces), token["end"]
        if name := token["condition"]:
            taken, end = _parse(tokens, conditions, parts)
            others, _ = _parse(tokens, conditions, parts) if end == "|" else ((), "")
            pieces.append(Template(taken, conditions[name], Template(others, parts=parts), parts, name=name))
        else:
            pieces.append(Slot(token["slot"], _kind(token["kind"])) if token["slot"] else token["text"])
    return tuple(pieces), ""


def first_of(*cases: Case, otherwise: str | Template) -> Template:
    """The first of sentences whose condition holds."""
    sentence = template(otherwise)
    for condition, text in reversed(cases):
        if isinstance(condition, Unless):
            sentence = template("{others}", condition.condition, text, others=sentence)
        else:
            sentence = template("{case}", condition, sentence, case=text)
    return sentence
