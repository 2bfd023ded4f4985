"""A benchmark claim as people write it, read for its numbers: "12,000 tok/s at concurrency 512 on 8x H100"."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from sheetgen.decode.readings import GPUS_OF_A_NODE
from sheetgen.errors import ScenarioError

LONGEST = 2_000  # characters of a claim

_DIGITS = r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+"
_RATE_NUMBER = rf"(?<![\w.,\-])(-?(?:{_DIGITS})(?:\.[0-9]+)?)"
_COUNT_NUMBER = rf"(?<![\w.,\-])({_DIGITS})(?!\.?[0-9])"
_WHOLE = rf"{_COUNT_NUMBER}(?!\w|,[0-9])"
_LENGTH = rf"(?<![\w.,])((?:{_DIGITS})(?:\.[0-9]+)?k?)(?!\w|[.,][0-9])"
_UNKNOWN = ("B100", "A16", "MI[0-9]{3}X")  # GPUs that are sold and may be in no catalog: the answer then says so
_MAKER = r"(?:(?:nvidia|amd|intel)\s+)?"
_OF = r"\s*(?:of|is|at|=|:)?\s*"

_PER = {"node": "per_node", "server": "per_node", "user": "per_user", "request": "per_user", "stream": "per_user"}
_COUNT = re.compile(rf"{_COUNT_NUMBER}\s*[x×*]\s*{_MAKER}([a-z][\w-]*)", re.I)
_DTYPE = r"(bf16|fp16|fp8|nvfp4|mxfp4|fp4|int8|int4)"
_KV = re.compile(rf"\bKV(?:[\s-]*cache)?(?:\s+in|\s*[=:])?\s*{_DTYPE}\b|\b{_DTYPE}[\s-]+KV(?:[\s-]*cache)?\b", re.I)
_WORDS = {
    "tensor_parallel_size": re.compile(r"\bTP\s*=?\s*([0-9]{1,4})\b", re.I),
    "engine": re.compile(r"\b(vllm|sglang|tensorrt-?llm|trt-?llm|nim|tgi|lmdeploy)\b", re.I),
    "weight_dtype": re.compile(rf"\b{_DTYPE}\b", re.I),
}
_PAIR = re.compile(rf"{_LENGTH}\s*/\s*{_LENGTH}", re.I)
_KIND = r"s?(?:\s+(?:sequence\s+length|length|len|tokens?))?"
_BEFORE = (
    re.compile(rf"\b(?:ISL|(?:input|prompt){_KIND}){_OF}{_LENGTH}", re.I),
    re.compile(rf"\b(?:OSL|(?:output|answer|completion){_KIND}){_OF}{_LENGTH}", re.I),
)
_AFTER = (
    re.compile(rf"{_LENGTH}[\s-]*(?:tokens?\s+)?(?:input|prompt|in\b(?![\s-]*flight))", re.I),
    re.compile(rf"{_LENGTH}[\s-]*(?:tokens?\s+)?(?:output|answer|completion|out\b)", re.I),
)
_CONCURRENCY = (
    re.compile(
        r"(?:\b(?:concurrency|concurrent\s+(?:requests|users)|batch(?:[\s-]*size)?|bs|users|in[\s-]flight)|@)"
        rf"{_OF}{_WHOLE}",
        re.I,
    ),
    re.compile(
        rf"{_WHOLE}[\s-]*(?:concurrent\s+(?:requests?|users?|sessions?|streams?|sequences?)|users?|concurrency"
        r"|(?:requests?\s+)?in[\s-]flight|parallel\s+requests?)\b",
        re.I,
    ),
)


@dataclass(frozen=True)
class _OfGpus:
    """The patterns that hold the names of GPUs."""

    rate: re.Pattern[str]
    board: re.Pattern[str]
    count_of: re.Pattern[str]
    one: re.Pattern[str]
    bare: re.Pattern[str]


@functools.lru_cache(maxsize=8)
def _of_gpus(words: tuple[str, ...]) -> _OfGpus:
    name = "|".join((*sorted(words, key=len, reverse=True), *_UNKNOWN))
    rate = (
        rf"{_RATE_NUMBER}\s*([kM](?![a-z]))?\s*(?:(?:output|generated|decode|total|aggregate|input)\s+)*"
        r"(?:tps|t/s|tok(?:en)?s?(?:\s*/\s*(?P<inside>gpu|user))?\s*(?:/|per\b|an?\b|p(?=s))\s*s(?:ec(?:ond)?s?)?)(?![a-z])"
        r"(?:\s+(?:output|total|aggregate|throughput))*"
        rf"(?:\s*(?:/|per|each|an?)\s*(?P<per>gpu|accelerator|card|chip|{name}|user|request|stream|node|server)s?\b)?"
    )
    return _OfGpus(
        re.compile(rate, re.I),
        re.compile(rf"(?:(?<![\w.,\-])([0-9]+)\s*[x×*]?\s*)?{_MAKER}\b(?:DGX|HGX)[\s-]+({name})s?\b", re.I),
        re.compile(rf"{_WHOLE}\s+{_MAKER}({name}|gpu|accelerator)s?\b", re.I),
        re.compile(rf"\b(single|one|an?)\s+{_MAKER}({name}|gpu)\b", re.I),
        re.compile(rf"\b({name})s?\b", re.I),
    )


@dataclass
class Heard:
    """What a text said: under the names of the options what is clear, as text, and what was said in two ways."""

    rest: str
    said: dict[str, dict[str, None]] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)

    def take(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """What matches, taken out of the text, so that no number is read twice."""
        found = list(pattern.finditer(self.rest))
        for one in reversed(found):
            self.rest = f"{self.rest[: one.start()]} ; {self.rest[one.end() :]}"
        return found

    def hear(self, name: str, value: str) -> None:
        self.said.setdefault(name, {})[value.replace(",", "").lower()] = None

    @property
    def unclear(self) -> dict[str, str]:
        """By name what was said in several ways, or can be read in two."""
        return {name: " and ".join(said) for name, said in self.said.items() if len(said) > 1} | self.doubtful

    @property
    def found(self) -> dict[str, str]:
        """By name what was said once and clearly."""
        return {name: next(iter(said)) for name, said in self.said.items() if name not in self.unclear}


def hear(claim: str, gpu_words: tuple[str, ...]) -> Heard:
    """The numbers of a claim; `gpu_words` are the GPUs that it may name in one word.

    Nothing is guessed: what is said in two ways is reported as unclear.

    Raises ScenarioError for a text that is blank or too long.
    """
    if not claim.strip():
        raise ScenarioError("claim is blank. Write it, such as '12,000 tok/s at concurrency 512 on 8x H100'.")
    if len(claim) > LONGEST:
        raise ScenarioError(f"claim has {len(claim):,} characters. Write at most {LONGEST:,}: its numbers are enough.")
    heard = Heard(claim)
    of_gpus = _of_gpus(gpu_words)
    _rates(heard, of_gpus.rate)
    _hardware(heard, of_gpus)
    for one in heard.take(_KV):
        heard.hear("kv_cache_dtype", _word(one[1] or one[2]))
    for name, pattern in _WORDS.items():
        for one in heard.take(pattern):
            heard.hear(name, _word(one[1]))
    _lengths(heard)
    for one in (found for pattern in _CONCURRENCY for found in pattern.finditer(heard.rest)):
        heard.hear("concurrency", one[1])
    return heard


def _rates(heard: Heard, pattern: re.Pattern[str]) -> None:
    """Tokens a second of all GPUs; where only that is said, of one GPU, of a node or of a user."""
    rates: dict[str, list[str]] = {"": [], "per_gpu": [], "per_node": [], "per_user": []}
    for one in heard.take(pattern):
        scale = {"": 1, "k": 1_000, "m": 1_000_000}[(one[2] or "").lower()]
        if scale == 1 and re.fullmatch(r"[0-9]{1,3}\.[0-9]{3}", one[1]):
            heard.doubtful["tokens_per_second"] = f"{one[1]}, thousands or a fraction"
        if re.fullmatch(r"[0-9]{3}", one[1]) and (group := re.search(r"[0-9]+\s$", one.string[: one.start()])):
            heard.doubtful["tokens_per_second"] = f"{group[0]}{one[1]}, one number or two"
        per = (one["per"] or one["inside"] or "").lower()
        rates[_PER.get(per, "per_gpu") if per else ""].append(f"{float(one[1].replace(',', '')) * scale:.15g}")
    for kind, said in rates.items():
        if said:
            for rate in said:
                heard.hear("tokens_per_second", rate)
            if kind:
                heard.hear(kind, "1")
            return


def _hardware(heard: Heard, of_gpus: _OfGpus) -> None:
    """How many GPUs, of which kind."""
    for one in heard.take(of_gpus.board):
        heard.hear("n_gpus", str(GPUS_OF_A_NODE * int(one[1] or 1)))
        heard.hear("gpu", one[2])
    for pattern in (_COUNT, of_gpus.count_of, of_gpus.one):
        for one in heard.take(pattern):
            heard.hear("n_gpus", "1" if pattern is of_gpus.one else one[1])
            if one[2].lower().rstrip("s") not in ("gpu", "accelerator"):
                heard.hear("gpu", one[2])
    for one in heard.take(of_gpus.bare):
        heard.hear("gpu", one[1])


def _lengths(heard: Heard) -> None:
    """Tokens of prompt and answer: 1k/1k, ISL 1024 OSL 1024, 1,024 in and 1,024 out."""
    names = ("input_tokens", "output_tokens")
    for one in heard.take(_PAIR):
        for name, value in zip(names, one.groups(), strict=True):
            heard.hear(name, value)
    before, after = ([p.search(heard.rest) for p in patterns] for patterns in (_BEFORE, _AFTER))
    for name, pattern in zip(names, _BEFORE if all(before) or not any(after) else _AFTER, strict=True):
        for one in heard.take(pattern):
            heard.hear(name, one[1])


def _word(text: str) -> str:
    """A precision or an engine by the name that the catalogs have for it."""
    low = text.lower()
    return "tensorrt-llm" if low.startswith(("tensorrt", "trt")) else {"fp4": "nvfp4"}.get(low, low)
