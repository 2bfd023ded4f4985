"""What a claim says: from options and from its text, checked; options win."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.scenario import parse
from sheetgen.scenario.parse import LEAST, Kind
from sheetgen.units import listed

GPUS_OF_A_NODE = 8  # of the HGX and DGX boards that claims name
MOST_GPUS, MOST_REQUESTS, MOST_TOKENS_PER_SECOND = 10_000, 1_000_000, 1_000_000_000
OF_GPUS = ("model", "gpu", "weight_dtype", "kv_cache_dtype", "engine", "engine_version", "gpu_memory_utilization")
SHORT = {"context": "context_tokens", "gpus": "n_gpus"}
OPTIONS = (
    *OF_GPUS,
    "n_gpus",
    "tokens_per_second",
    "concurrency",
    "per_gpu",
    "claim",
    "input_tokens",
    "output_tokens",
    "tensor_parallel_size",
    "context_tokens",
    "users",
)
NEEDED = {
    "tokens_per_second": ("tokens per second", "12,000 tok/s"), "concurrency": ("concurrency", "at concurrency 512"),
    "n_gpus": ("number of GPUs", "on 8x H100"), "gpu": ("kind of GPU", "on 8x H100"),
}  # fmt: skip
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
_DTYPE = r"(bf16|fp16|fp8|nvfp4|mxfp4|fp4|int8|int4)"
_WORDS = {
    "kv_cache_dtype": re.compile(
        rf"\bKV(?:[\s-]*cache)?(?:\s+in|\s*[=:])?\s*{_DTYPE}\b|\b{_DTYPE}[\s-]+KV(?:[\s-]*cache)?\b", re.I
    ),
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
        rf"{_WHOLE}[\s-]*(?:concurrent(?:\s+(?:requests?|users?|sessions?|streams?|sequences?))?|users?"
        r"|concurrency|(?:requests?\s+)?in[\s-]flight|parallel\s+requests?)\b",
        re.I,
    ),
)


@dataclass(frozen=True)
class Claim:
    """A rate of all GPUs at a number of requests at once, and what was said beside it; None where nothing was.

    inputs: what is named alike in `size`, as typed. read: what the text said and no option replaced.
    """

    inputs: dict[str, Any]
    n_gpus: int
    stated_tokens_per_second: float
    per: str
    tokens_per_second: float
    concurrency: int
    input_tokens: int | None
    output_tokens: int | None
    tensor_parallel_size: int | None
    context_tokens: int | None
    users: int | None
    text: str | None
    read: dict[str, str]

    @property
    def states_lengths(self) -> bool:
        return self.input_tokens is not None and self.output_tokens is not None


def read_claim(options: Mapping[str, Any], gpu_words: tuple[str, ...]) -> Claim:
    """The claim in `options`, of which OPTIONS are known; its text may name the GPUs of `gpu_words`.

    Raises ScenarioError with everything that is missing, unclear or no number.
    """
    given = _known(options)
    text = given.pop("claim", None)
    if text is not None and not isinstance(text, str):
        raise ScenarioError(f"claim is {shown(repr(text))}. It must be text.")
    stated = Statements("") if text is None else statements_of(text, gpu_words)
    per_gpu = given.pop("per_gpu", None)
    if per_gpu is not None and not isinstance(per_gpu, bool):
        raise ScenarioError(f"per_gpu is {shown(repr(per_gpu))}. It must be true or false.")
    per = "gpu" if per_gpu else ""
    if "tokens_per_second" not in given and per_gpu is None:
        per = next((kind for kind in ("gpu", "node", "user") if f"per_{kind}" in stated.said), "")
    read = {name: value for name, value in stated.found.items() if name in OPTIONS and name not in given}
    read.pop("per_gpu", None)
    said: dict[str, Any] = {**read, **given}
    problems = Problems(_unsaid(said, stated, text))

    def number(name: str, make: Callable[..., Any], *arguments: Any) -> Any:
        return problems.attempt(make, said[name], name, *arguments) if name in said else None

    rate = number("tokens_per_second", Kind(low=LEAST, high=MOST_TOKENS_PER_SECOND).parse)
    concurrency = number("concurrency", parse.whole, 1, MOST_REQUESTS)
    n_gpus = number("n_gpus", parse.whole, 1, MOST_GPUS)
    size = number("tensor_parallel_size", parse.whole, 1, MOST_GPUS)
    lengths = ("input_tokens", "output_tokens", "context_tokens")
    prompt, answer, context = (number(name, parse.tokens) for name in lengths)
    users = number("users", parse.whole, 1, MOST_REQUESTS)
    if users is not None and context is None and "context_tokens" not in said:
        problems.append("users is given without context_tokens. Say what a request of yours is long, such as 16k.")
    if per == "node" and n_gpus is not None and n_gpus > GPUS_OF_A_NODE and n_gpus % GPUS_OF_A_NODE:
        problems.append(f"claim is of a node, and {n_gpus:,} GPUs are no whole nodes of 8. Give the rate of all GPUs.")
    if problems:
        raise ScenarioError(*problems)
    nodes = max(1, n_gpus // GPUS_OF_A_NODE)
    total = rate * {"": 1, "gpu": n_gpus, "node": nodes, "user": concurrency}[per]
    inputs = {name: said[name] for name in OF_GPUS if name in said}
    return Claim(
        inputs,
        n_gpus,
        rate,
        per,
        total,
        concurrency,
        prompt,
        answer,
        size,
        context,
        users,
        text,
        {**read, **({"per": per} if per and not per_gpu else {})},
    )


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options under their long names."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        long = SHORT.get(name, name)
        if long not in OPTIONS:
            raise ScenarioError(f"unknown option {shown(name)!r}.{did_you_mean(name, (*OPTIONS, *SHORT))}")
        if value is not None and long in found:
            raise ScenarioError(f"{long} is given twice, as {long} and by its short spelling. Keep one.")
        if value is not None:
            found[long] = value
    return found


def _unsaid(said: Mapping[str, Any], stated: Statements, text: str | None) -> list[str]:
    """One line for what the text says in two ways, and one for what neither it nor an option says."""
    problems = [
        f"claim gives {name} as {shown(values)}. Say which: {_flag(name)}."
        for name, values in stated.unclear.items()
        if name in OPTIONS and name not in said
    ]
    missing = [name for name in NEEDED if name not in said and name not in stated.unclear]
    if missing:
        flags = " ".join(map(_flag, missing))
        if text is None:
            are = "are" if missing[1:] else "is"
            problems.append(f"{listed(missing)} {are} missing. Give {flags}, or a --claim with it.")
        else:
            lacks = listed([f"no {NEEDED[name][0]}" for name in missing])
            example = " ".join(dict.fromkeys(NEEDED[name][1] for name in missing))
            problems.append(f"claim says {lacks}: {shown(text)!r}. Write it as in '{example}', or give {flags}.")
    return problems


def _flag(name: str) -> str:
    return "--gpus" if name == "n_gpus" else "--" + name.replace("_", "-")


@functools.lru_cache(maxsize=8)
def _of_gpus(words: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    spellings = (word.replace("-", r"[\s-]") for word in sorted(words, key=len, reverse=True))
    name = "|".join((*spellings, *_UNKNOWN))
    rate = (
        rf"{_RATE_NUMBER}\s*([kM](?![a-z]))?\s*(?:(?:output|generated|decode|total|aggregate|input)\s+)*"
        r"(?:tps|t/s|tok(?:en)?s?(?:\s*/\s*(?P<inside>gpu|user))?\s*(?:/|per\b|an?\b|p(?=s))\s*s(?:ec(?:ond)?s?)?)(?![a-z])"
        r"(?:\s+(?:output|total|aggregate|throughput))*"
        rf"(?:\s*(?:/|per|each|an?)\s*(?P<per>gpu|accelerator|card|chip|{name}|user|request|stream|node|server)s?\b)?"
    )
    patterns = {
        "rate": rate,
        "board": rf"(?:(?<![\w.,\-])([0-9]+)\s*[x×*]?\s*)?{_MAKER}\b(?:DGX|HGX)[\s-]+({name})s?\b",
        "times": rf"{_COUNT_NUMBER}\s*[x×*]\s*{_MAKER}((?:{name})(?=s?(?![\w-]))|[a-z][\w-]*)",
        "count_of": rf"{_WHOLE}\s+{_MAKER}({name}|gpu|accelerator)s?\b",
        "one": rf"\b(single|one|an?)\s+{_MAKER}({name}|gpu)\b",
        "bare": rf"\b({name})s?\b",
    }
    return {kind: re.compile(pattern, re.I) for kind, pattern in patterns.items()}


@dataclass
class Statements:
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

    def add(self, name: str, value: str) -> None:
        self.said.setdefault(name, {})[value.replace(",", "").lower()] = None

    @property
    def unclear(self) -> dict[str, str]:
        """By name what was said in several ways, or can be read in two."""
        return {name: " and ".join(said) for name, said in self.said.items() if len(said) > 1} | self.doubtful

    @property
    def found(self) -> dict[str, str]:
        """By name what was said once and clearly."""
        return {name: next(iter(said)) for name, said in self.said.items() if name not in self.unclear}


def statements_of(claim: str, gpu_words: tuple[str, ...]) -> Statements:
    """The numbers of a claim; `gpu_words` are the GPUs that it may name.

    Nothing is guessed: what is said in two ways is reported as unclear.

    Raises ScenarioError for a text that is blank or too long.
    """
    if not claim.strip():
        raise ScenarioError("claim is blank. Write it, such as '12,000 tok/s at concurrency 512 on 8x H100'.")
    if len(claim) > LONGEST:
        raise ScenarioError(f"claim has {len(claim):,} characters. Write at most {LONGEST:,}: its numbers are enough.")
    stated = Statements(claim)
    of_gpus = _of_gpus(gpu_words)
    _rates(stated, of_gpus["rate"])
    for one in stated.take(of_gpus["board"]):
        stated.add("n_gpus", str(GPUS_OF_A_NODE * int(one[1] or 1)))
        stated.add("gpu", one[2])
    for pattern in (of_gpus["times"], of_gpus["count_of"], of_gpus["one"]):
        for one in stated.take(pattern):
            stated.add("n_gpus", "1" if pattern is of_gpus["one"] else one[1])
            if one[2].lower().rstrip("s") not in ("gpu", "accelerator"):
                stated.add("gpu", one[2])
    for one in stated.take(of_gpus["bare"]):
        stated.add("gpu", one[1])
    for name, pattern in _WORDS.items():
        for one in stated.take(pattern):
            word = (one[1] or one[2]).lower()  # by the name that the catalogs have for it
            is_trt = word.startswith(("tensorrt", "trt"))
            stated.add(name, "tensorrt-llm" if is_trt else {"fp4": "nvfp4"}.get(word, word))
    # Tokens of prompt and answer: 1k/1k, ISL 1024 OSL 1024, 1,024 in and 1,024 out.
    names = ("input_tokens", "output_tokens")
    for one in stated.take(_PAIR):
        for name, value in zip(names, one.groups(), strict=True):
            stated.add(name, value)
    before, after = ([p.search(stated.rest) for p in patterns] for patterns in (_BEFORE, _AFTER))
    for name, pattern in zip(names, _BEFORE if all(before) or not any(after) else _AFTER, strict=True):
        for one in stated.take(pattern):
            stated.add(name, one[1])
    for one in (found for pattern in _CONCURRENCY for found in pattern.finditer(stated.rest)):
        stated.add("concurrency", one[1])
    return stated


def _rates(stated: Statements, pattern: re.Pattern[str]) -> None:
    """Tokens a second of all GPUs; where only that is said, of one GPU, of a node or of a user."""
    rates: dict[str, list[str]] = {"": [], "per_gpu": [], "per_node": [], "per_user": []}
    for one in stated.take(pattern):
        scale = {"": 1, "k": 1_000, "m": 1_000_000}[(one[2] or "").lower()]
        if scale == 1 and re.fullmatch(r"[0-9]{1,3}\.[0-9]{3}", one[1]):
            stated.doubtful["tokens_per_second"] = f"{one[1]}, thousands or a fraction"
        if re.fullmatch(r"[0-9]{3}", one[1]) and (group := re.search(r"[0-9]+\s$", one.string[: one.start()])):
            stated.doubtful["tokens_per_second"] = f"{group[0]}{one[1]}, one number or two"
        per = (one["per"] or one["inside"] or "").lower()
        rates[_PER.get(per, "per_gpu") if per else ""].append(f"{float(one[1].replace(',', '')) * scale:.15g}")
    kind = next((kind for kind, said in rates.items() if said), "")
    for rate in rates[kind]:
        stated.add("tokens_per_second", rate)
    if kind:
        stated.add(kind, "1")
