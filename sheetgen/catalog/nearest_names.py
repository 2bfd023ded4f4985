"""The names of the catalogs that an unknown name is nearest to: by its words and numbers. One digit makes another model
or card, so names that only look alike by their letters are not near."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping

ENOUGH = 0.5  # the share of two names' words that must agree for one to be a hint for the other
AS_NEAR = 0.85  # of the nearest one's agreement: others that are named beside it
LIKE = 0.75  # of two words by their letters: a slip of the keyboard
RELEASE = 0.5  # of two releases of one version
NUMBER, WORD = 1.5, 1.0  # what a part of a name weighs: numbers tell models of a family apart
MOST_NAMED = 8


def model_parts(name: str) -> list[str]:
    """The words and numbers of a model's name: `Qwen2.5-Coder-32B` is qwen, 2.5, coder, 32b."""
    return re.findall(r"[a-z]+|[0-9]+(?:\.[0-9]+)*[a-z]*", name.lower().rsplit("/", 1)[-1])


def nearest(name: str, names: Mapping[str, str], parts: Callable[[str], Collection[str]]) -> list[str]:
    """The entries that `names` leads to and that are near `name`, the nearest first: those that have all its parts,
    else those that agree with it most and share a word that says more than a letter or two."""
    asked = parts(name)
    telling = [part for part in asked if len(part) > 2 and not _has_digit(part)]
    near: dict[str, tuple[bool, float, float, str]] = {}
    for other, ids in names.items():
        known = parts(other)
        agrees, has_all = agreement(asked, known), set(asked) <= set(known)
        shares = not telling or any(_likeness(part, known_part) for part in telling for known_part in known)
        if asked and shares and (has_all or agrees >= ENOUGH):
            letters = difflib.SequenceMatcher(None, name, other).ratio()
            for one in ids.split():
                near[one] = max(near.get(one, (False, 0.0, 0.0, "")), (has_all, agrees, letters, other))
    best = max(near.values(), default=(False, 0.0, 0.0, ""))
    ranked = sorted(near, key=lambda one: near[one], reverse=True)
    kept = [one for one in ranked if near[one][0] or (not best[0] and near[one][1] >= AS_NEAR * best[1])]

    def named(one: str) -> str:
        """An id, or the name of other weights of it that has more of what was asked for."""
        other = near[one][3]
        return one if set(asked) & set(parts(other)) <= set(parts(one)) else other.rsplit("/", 1)[-1]

    return list(dict.fromkeys(map(named, kept)))


def hint(ids: list[str]) -> str:
    """A sentence that names what was meant, with a space before it; nothing where nothing is near."""
    if len(ids) > 1:
        return f" It could be {', '.join(ids[:MOST_NAMED])}{' and others' if len(ids) > MOST_NAMED else ''}."
    return f" Did you mean {ids[0]}?" if ids else ""


def agreement(asked: Iterable[str], known: Iterable[str]) -> float:
    """How much of two names' words and numbers is the same, from 0 to 1."""
    asked, left = list(asked), list(known)
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
    """1 for the same part, less for a number with one character more (40, 40b), another release of a version (5.1, 5.2)
    and a word with a slip in it."""
    if part == other:
        return 1.0
    if _has_digit(part) or _has_digit(other):
        shorter, longer = sorted((part, other), key=len)
        if longer.startswith(shorter) and len(longer) == len(shorter) + 1:
            return LIKE
        return RELEASE if "." in longer and shorter.split(".")[0] == longer.split(".")[0] else 0.0
    ratio = difflib.SequenceMatcher(None, part, other).ratio()
    return ratio if ratio >= LIKE else 0.0
