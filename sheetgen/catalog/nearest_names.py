"""The names of the catalogs nearest to an unknown name, by words and numbers. A single digit makes another model or
card, so names with similar letters alone are not near."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

ENOUGH = 0.5  # the least agreement of two names for one to be a hint for the other
AS_NEAR = 0.85  # other hints have at least this share of the best agreement
LIKE = 0.75  # the least likeness of two words by their letters: a typing error
RELEASE = 0.5  # the likeness of two releases of one version
NUMBER, WORD = 1.5, 1.0  # weights of a name's parts: numbers tell the models of a family apart
MOST_NAMED = 8


def model_parts(name: str) -> list[str]:
    """The words and numbers of a model's name: `Qwen2.5-Coder-32B` is qwen, 2.5, coder, 32b."""
    return re.findall(r"[a-z]+|[0-9]+(?:\.[0-9]+)*[a-z]*", name.lower().rsplit("/", 1)[-1])


_Nearness: TypeAlias = tuple[bool, float, float, tuple[float, ...], str]
_FAR: _Nearness = (False, 0.0, 0.0, (), "")


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]+", " ", name.lower())


def _version(entry_id: str) -> tuple[float, ...]:
    """The numbers of a model's id that are no sizes: of llama-3.3-70b 3.3."""
    return tuple(float(part) for part in model_parts(entry_id) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", part))


def nearest(name: str, names: Mapping[str, str], parts: Callable[[str], Collection[str]]) -> list[str]:
    """The entries of `names` (name to ids) near `name`, the nearest first, and of a family the newest: those that have
    all its parts, else those with the highest agreement that share a word of more than two letters with it."""
    asked = parts(name)
    telling = [part for part in asked if len(part) > 2 and not _has_digit(part)]
    near: dict[str, _Nearness] = {}
    for other, ids in names.items():
        other_parts = parts(other)
        agrees, has_all = agreement(asked, other_parts), set(asked) <= set(other_parts)
        shares = not telling or any(_likeness(part, known_part) for part in telling for known_part in other_parts)
        if asked and shares and (has_all or agrees >= ENOUGH):
            letters = difflib.SequenceMatcher(None, _letters(name), _letters(other)).ratio()
            for entry_id in ids.split():
                nearness = (has_all, round(agrees, 9), letters, _version(entry_id), other)
                near[entry_id] = max(near.get(entry_id, _FAR), nearness)
    has_complete, most, *_ = max(near.values(), default=_FAR)
    ranked = sorted(near.items(), key=lambda entry: entry[1], reverse=True)
    kept = [
        entry_id
        for entry_id, (has_all, agrees, *_) in ranked
        if has_all or (not has_complete and agrees >= AS_NEAR * most)
    ]

    def named(entry_id: str) -> str:
        """The id, or the matching name of the entry's other weights if that shares more parts with `name`."""
        other = near[entry_id][-1]
        return entry_id if set(asked) & set(parts(other)) <= set(parts(entry_id)) else other.rsplit("/", 1)[-1]

    return list(dict.fromkeys(map(named, kept)))


def hint(ids: list[str]) -> str:
    """A sentence that suggests these ids, with a leading space; empty without ids."""
    if len(ids) > 1:
        return f" It could be {', '.join(ids[:MOST_NAMED])}{' and others' if len(ids) > MOST_NAMED else ''}."
    return f" Did you mean {ids[0]}?" if ids else ""


def agreement(asked: Iterable[str], other: Iterable[str]) -> float:
    """The share of two names' words and numbers that is the same, from 0 to 1, by weight."""
    asked, left = list(asked), list(other)
    total = sum(map(_weight, [*asked, *left]))
    same = 0.0
    for part in asked:
        likeness = {other: _likeness(part, other) for other in left}
        best = max(left, key=lambda other: likeness[other], default=None)
        if best is not None and likeness[best]:
            same += likeness[best] * min(_weight(part), _weight(best))
            left.remove(best)
    return 2 * same / (total or 1)


def _has_digit(part: str) -> bool:
    return any(map(str.isdigit, part))


def _weight(part: str) -> float:
    return NUMBER if _has_digit(part) else WORD


@functools.lru_cache(65_536)  # names of a catalog share most of their words
def _likeness(part: str, other: str) -> float:
    """1 for equal parts, less for a number with one more character (40, 40b) or another unit (8c, 8b), another release
    of a version (5.1, 5.2) and a word with a typing error; else 0."""
    if part == other:
        return 1.0
    if _has_digit(part) or _has_digit(other):
        shorter, longer = sorted((part, other), key=len)
        if longer.startswith(shorter) and len(longer) == len(shorter) + 1:
            return LIKE
        sizes = [re.fullmatch(r"([0-9.]+)[a-z]", size) for size in (part, other)]
        if all(sizes) and len({size[1] for size in sizes if size}) == 1:
            return LIKE
        return RELEASE if "." in longer and shorter.split(".")[0] == longer.split(".")[0] else 0.0
    ratio = difflib.SequenceMatcher(None, part, other).ratio()
    return ratio if ratio >= LIKE else 0.0
