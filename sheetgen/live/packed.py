"""Facts with what repeats in them written once, as `unpacked` of packed.js reads them in full.

A list stands in the shortest of several forms: as it is, as columns where its items have the same keys or lengths, as
distinct values and their places, as one usual value and what differs from it, as runs of whole numbers.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

Value: TypeAlias = "Mapping[str, Value] | Sequence[Value] | str | float | int | bool | None"
MARK = "$"  # which begins the name of a form, and no key of facts
UNPACK = Path(__file__).with_name("packed.js")


def as_text(value: Value) -> str:
    """A value as JSON that may stand in a script of a page."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def packed(value: Value) -> Value:
    """The shortest form of a value.

    Raises ValueError where a key could be taken for the name of a form.
    """
    return _Packing().packed(value)


class _Packing:
    """Forms of the values of the same facts. Half of the lists in them, and in their forms, are there several times."""

    def __init__(self) -> None:
        self._known: dict[str, Value] = {}  # by what a list says

    def packed(self, value: Value) -> Value:
        if value is None or isinstance(value, (str, int, float)):
            return value
        if isinstance(value, Mapping):
            if marked := [key for key in value if key.startswith(MARK)]:
                raise ValueError(
                    f"{marked[0]} is a key of the facts, and begins with {MARK} as the name of a form does"
                )
            return {key: self.packed(part) for key, part in value.items()}
        text = repr(value)
        if text not in self._known:
            self._known[text] = min(self._forms(value), key=lambda form: len(as_text(form)))
        return self._known[text]

    def _forms(self, values: Sequence[Value]) -> Iterator[Value]:
        yield [self.packed(value) for value in values]
        first = values[0] if len(values) > 1 else None
        if isinstance(first, Mapping) and first:
            rows = [value for value in values if isinstance(value, Mapping) and [*value] == [*first]]
            if len(rows) == len(values):
                yield {"$rows": [[*first], [self.packed([row[name] for row in rows]) for name in first]]}
        elif isinstance(first, Sequence) and first and not isinstance(first, str):
            lists = [value for value in values if isinstance(value, Sequence) and len(value) == len(first)]
            if len(lists) == len(values):
                yield {"$table": [self.packed(column) for column in zip(*lists, strict=True)]}
        yield from self._forms_of_repeated(values)
        numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
        if values and len(numbers) == len(values):
            yield {"$runs": list(_runs(numbers))}

    def _forms_of_repeated(self, values: Sequence[Value]) -> Iterator[Value]:
        """The distinct values with the place of each among them; and the most frequent with the others and theirs."""
        texts = [repr(value) for value in values]
        distinct = dict(zip(texts, values, strict=True))
        if len(distinct) == len(values):
            return
        places = {text: place for place, text in enumerate(distinct)}
        yield {"$words": [[self.packed(value) for value in distinct.values()], [places[text] for text in texts]]}
        [(usual, _)] = Counter(texts).most_common(1)
        others = [place for place, text in enumerate(texts) if text != usual]
        rest = [values[place] for place in others]
        yield {"$most": [len(values), self.packed(distinct[usual]), self.packed(others), self.packed(rest)]}


def _runs(numbers: Sequence[int]) -> Iterator[int]:
    """Of whole numbers that follow one another the first and how many."""
    for _, run in itertools.groupby(enumerate(numbers), lambda numbered: numbered[1] - numbered[0]):
        (_, first), *others = run
        yield from (first, 1 + len(others))
