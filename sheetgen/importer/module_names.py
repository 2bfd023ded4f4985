"""The modules that a quantization's lists mean: names, wildcards and regular expressions, matched to a model's
matrices.

A regular expression of a config is parsed here and never run as a whole: its alternatives are written out, and the
pieces between `.*` are searched one after the other, so that no pattern can take exponential time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from sheetgen.shipped import shipped_table

MAX_PATTERN, MAX_BRANCHES = 1_000, 256

_NAMES = shipped_table("modules.toml")
_ALIASES: Mapping[str, list[str]] = _NAMES["aliases"]
_LAYERS = ("model.layers", "layers")
_LAYERS_BY_WORD: Mapping[str, list[str]] = _NAMES["layers"]
HEADS = ("lm_head", "head", "output", "embed_out", "model.lm_head", "language_model.lm_head")
# Parts of names of modules that are never quantized, so that it does not matter if a list names them.
_NEVER_QUANTIZED = re.compile(
    r"norm|gate|router|embed|conv|vis|image|img|patch|audio|speech|projector|connector|mtp|head|bias|rope|rotary"
    r"|weights_proj|indexers_proj|in_proj_(a|b|ba)$|A_log|^D$|dt_|sink|scale|compressor|hyper|mhc|hc_|eh_proj|wte|wpe"
    r"|pre_mlp|altup|laurel|router|switch|^score|classifier|merger|adapter|mm_|multi_modal|perceive|resampler|draft|eagle"
)


@dataclass(frozen=True)
class Pattern:
    """One item of a list.

    branches: for a wildcard or a regular expression, alternative sequences of pieces that a name must contain.
    forbidden: patterns that it must not begin with. A plain name has neither, and means itself and everything in it.
    """

    text: str
    branches: tuple[Pieces, ...] = ()
    forbidden: tuple[Pattern, ...] = ()

    def matches(self, name: str) -> bool:
        is_forbidden = any(pattern.matches(name) for pattern in self.forbidden)
        return not is_forbidden and any(_follow_each_other(pieces, name) for pieces in self.branches)


Pieces = tuple[re.Pattern[str], ...]


def _follow_each_other(pieces: Pieces, name: str) -> bool:
    end = 0
    for piece in pieces:
        place = piece.search(name, end)
        if place is None:
            return False
        end = place.end()
    return True


def plain(text: str) -> Pattern:
    return Pattern(text)


def wildcard(text: str) -> Pattern:
    """The pattern of a name with `*` for anything; it means the modules and everything in them."""
    if "*" not in text:
        return plain(text)
    first, *between, last = map(re.escape, text.split("*"))
    starts, ends = (r"(?:^|(?<=\.))" if first else ""), (r"(?=\.|$)" if last else "")
    return Pattern(text, (tuple(map(re.compile, [starts + first, *between, last + ends])),))


def regular(text: str) -> Pattern | None:
    """The pattern of a regular expression for `re.match`; None for expressions that are not supported here."""
    if len(text) > MAX_PATTERN:
        return None
    try:
        return _Reader(text).read()
    except (_NotRead, IndexError, ValueError, re.error):
        return None


class _NotRead(Exception):
    pass


Branch = list[str]  # units of one alternative; GAP means anything
GAP = ".*"


class _Reader:
    """A parser of one regular expression, which writes out its alternatives."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0

    def read(self) -> Pattern:
        forbidden: list[Pattern] = []
        self.skip("^")
        while self.skip("(?!"):
            forbidden.append(self._pattern(self.alternatives()))
            if not self.skip(")"):
                raise _NotRead
        branches = self.alternatives()
        if self.position < len(self.text):
            raise _NotRead
        made = self._pattern(branches)
        return Pattern(self.text, made.branches, tuple(forbidden))

    def _pattern(self, branches: list[Branch]) -> Pattern:
        compiled = []
        for branch in branches:
            pieces = [""]
            for unit in branch:
                if unit == GAP:
                    pieces.append("")
                else:
                    pieces[-1] += unit
            if any(len(re.findall(r"(?<!\\)[*+]", piece)) > 4 for piece in pieces):
                raise _NotRead
            compiled.append(tuple(map(re.compile, ["^(?:" + pieces[0] + ")", *pieces[1:]])))
        return Pattern(self.text, tuple(compiled))

    def skip(self, word: str) -> bool:
        if self.text.startswith(word, self.position):
            self.position += len(word)
            return True
        return False

    def alternatives(self) -> list[Branch]:
        branches = self.sequence()
        while self.skip("|"):
            branches = branches + self.sequence()
        return branches

    def sequence(self) -> list[Branch]:
        branches: list[Branch] = [[]]
        while self.position < len(self.text) and self.text[self.position] not in "|)":
            options = self.unit()
            branches = [left + right for left, right in product(branches, options)]
            if len(branches) > MAX_BRANCHES:
                raise _NotRead
        return branches

    def unit(self) -> list[Branch]:
        """The alternatives of one character, class or group with its quantifier."""
        if self.skip("("):
            if self.text.startswith("?", self.position) and not self.skip("?:"):
                raise _NotRead
            inside = self.alternatives()
            if not self.skip(")"):
                raise _NotRead
            if self.skip("?"):
                return [*inside, []]
            if self.position < len(self.text) and self.text[self.position] in "*+{":
                raise _NotRead
            return inside
        if self.skip("^"):
            return [[]]
        character = self._character()
        often = self._often()
        if character == "." and often in ("*", "*?", "+", "+?"):
            return [[".", GAP]] if often[0] == "+" else [[GAP]]
        return [[character + often]]

    def _character(self) -> str:
        start, character = self.position, self.text[self.position]
        self.position += 1
        if character == "\\":
            if self.text[self.position] not in "dw.-_/[]()|+*?^$\\":
                raise _NotRead
            self.position += 1
        elif character == "[":
            self.position = self.text.index("]", self.position + 1) + 1
        elif character in "*+?{})":
            raise _NotRead
        return self.text[start : self.position]

    def _often(self) -> str:
        match = re.compile(r"[*+?]\??|\{\d{1,2}(,\d{0,2})?\}").match(self.text, self.position)
        if match is None:
            return ""
        self.position = match.end()
        return match[0]


_NUMBERED = re.compile(r"(?:layers|h)\\?\.(\d+)(?:\\?\.|$)")
_WORDS = re.compile(r"[A-Za-z_]\w*")


class ModuleList:
    """The items of a quantization's lists in order; finds the first one that means a module."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.patterns = list(patterns)
        self.is_used = [False] * len(self.patterns)
        self._plain: dict[str, int] = {}
        self._first_words: set[str] = set()
        self._general: list[int] = []
        self._of_layer: dict[int, list[int]] = {}
        self.words: set[str] = set()
        self.names_experts = False  # single experts by number
        for i, pattern in enumerate(self.patterns):
            self.words.update(_WORDS.findall(pattern.text))
            self.names_experts |= bool(re.search(r"experts\W{1,3}\d", pattern.text))
            if not pattern.branches:
                self._plain.setdefault(pattern.text, i)
                self._first_words.add(pattern.text.split(".")[0])
            elif len(numbers := _NUMBERED.findall(pattern.text)) == 1:
                self._of_layer.setdefault(int(numbers[0]), []).append(i)
            else:
                self._general.append(i)

    def first(self, names: Iterable[str], layers: Sequence[int] = ()) -> int | None:
        """The index of the first item that means a module with these names in a layer with these numbers; None for
        none."""
        best = None
        others = [*self._general, *(i for layer in layers for i in self._of_layer.get(layer, ()))]
        for name in names:
            hits = [self._plain[run] for run in self._runs(name) if run in self._plain]
            hits += [i for i in others if self.patterns[i].matches(name)]
            for i in hits:
                self.is_used[i] = True
            if hits and (best is None or min(hits) < best):
                best = min(hits)
        return best

    def _runs(self, name: str) -> Iterator[str]:
        """Runs of a name's parts that may be a plain item: `mlp.gate` in `model.layers.0.mlp.gate`."""
        parts = name.split(".")
        for i, part in enumerate(parts):
            if part in self._first_words:
                run = ""
                for other in parts[i:]:
                    run = f"{run}.{other}" if run else other
                    yield run

    def unknown(self, n_layers: int) -> list[str]:
        """The items that mean no module, except those for modules that stay in 16 bits anyway."""
        return [
            pattern.text
            for pattern, is_used in zip(self.patterns, self.is_used, strict=True)
            if not is_used and not _is_harmless(pattern.text, n_layers)
        ]


def _is_harmless(text: str, n_layers: int) -> bool:
    if any(int(number) >= n_layers for number in _NUMBERED.findall(text)):
        return True  # a layer of multi-token prediction
    words = [word for word in _WORDS.findall(text.removeprefix("re:")) if word not in ("re", "d", "w")]
    return any(_NEVER_QUANTIZED.search(word) for word in words) or all(_is_known(word) for word in words)


@lru_cache(maxsize=4096)
def _is_known(word: str) -> bool:
    """True for a part of a module name of any family."""
    words = {*_ALIASES, *(name for names in _ALIASES.values() for name in names), *_LAYERS_BY_WORD, *HEADS}
    words |= {"model", "layers", "experts", "indexer", "linear_attn", "in_proj", "out_proj", "Linear", "h", "proj"}
    return any(word.strip("_") in name for name in words)


def names_inside(name: str, words: set[str]) -> list[str]:
    """The possible names of a module inside its layer, given the `words` of the lists."""
    options = [(part, *(a for a in _ALIASES.get(part, ()) if a in words)) for part in name.split(".")]
    return [".".join(parts) for parts in product(*options)]


def prefixes(words: set[str]) -> tuple[str, ...]:
    """The possible prefixes of a layer's number, given the `words` of the lists."""
    return (*_LAYERS, *(name for word, names in _LAYERS_BY_WORD.items() if word in words for name in names))


def with_expert(names: Iterable[str], expert: int) -> Iterator[str]:
    """The names of an expert's matrix, with its number and as part of a fused matrix of all experts."""
    for name in names:
        yield re.sub(r"(^|\.)experts\.", rf"\1experts.{expert}.", name, count=1)
        yield name
