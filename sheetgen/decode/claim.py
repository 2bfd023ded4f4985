"""What a claim says: from options and from its text, checked; options win."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.decode.readings import GPUS_OF_A_NODE
from sheetgen.decode.text import Heard, hear
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.scenario import parse
from sheetgen.scenario.kinds import LEAST, Kind

MOST_GPUS, MOST_REQUESTS, MOST_TOKENS_PER_SECOND = 10_000, 1_000_000, 1_000_000_000
OF_GPUS = ("model", "gpu", "weight_dtype", "kv_cache_dtype", "engine", "engine_version", "gpu_memory_utilization")
SHORT = {"context": "context_tokens", "gpus": "n_gpus"}
OPTIONS = (
    *OF_GPUS, "n_gpus", "tokens_per_second", "concurrency", "per_gpu", "claim", "input_tokens", "output_tokens",
    "tensor_parallel_size", "context_tokens", "users",
)  # fmt: skip
NEEDED = {
    "tokens_per_second": ("tokens per second", "12,000 tok/s"),
    "concurrency": ("concurrency", "at concurrency 512"),
    "n_gpus": ("number of GPUs", "on 8x H100"),
    "gpu": ("kind of GPU", "on 8x H100"),
}


@dataclass(frozen=True)
class Claim:
    """A rate of all GPUs at a number of requests in flight, and what was said beside it; None where nothing was.

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
    def tokens_per_second_of_a_user(self) -> float:
        return self.tokens_per_second / self.concurrency

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
    heard = Heard("") if text is None else hear(text, gpu_words)
    per_gpu = given.pop("per_gpu", None)
    if per_gpu is not None and not isinstance(per_gpu, bool):
        raise ScenarioError(f"per_gpu is {shown(repr(per_gpu))}. It must be true or false.")
    per = "gpu" if per_gpu else ""
    if "tokens_per_second" not in given and per_gpu is None:
        per = next((kind for kind in ("gpu", "node", "user") if f"per_{kind}" in heard.said), "")
    read = {name: value for name, value in heard.found.items() if name in OPTIONS and name not in given}
    read.pop("per_gpu", None)
    said: dict[str, Any] = {**read, **given}
    problems = list(_unsaid(said, heard, text))

    def number(name: str, make: Callable[..., Any], *arguments: Any) -> Any:
        if name not in said:
            return None
        try:
            return make(said[name], name, *arguments)
        except ScenarioError as error:
            problems.extend(error.problems)
            return None

    rate = number("tokens_per_second", Kind(low=LEAST, high=MOST_TOKENS_PER_SECOND).parse)
    concurrency = number("concurrency", parse.whole, 1, MOST_REQUESTS)
    n_gpus = number("n_gpus", parse.whole, 1, MOST_GPUS)
    size = number("tensor_parallel_size", parse.whole, 1, MOST_GPUS)
    prompt, answer, context = (
        number(name, parse.tokens) for name in ("input_tokens", "output_tokens", "context_tokens")
    )
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
        inputs, n_gpus, rate, per, total, concurrency, prompt, answer, size, context, users, text,
        {**read, **({"per": per} if per and not per_gpu else {})},
    )  # fmt: skip


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options under their long names, without those left out."""
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


def _unsaid(said: Mapping[str, Any], heard: Heard, text: str | None) -> list[str]:
    """One line for what the text says in two ways, and one for what neither it nor an option says."""
    problems = [
        f"claim gives {name} as {shown(values)}. Say which: {_flag(name)}."
        for name, values in heard.unclear.items()
        if name in OPTIONS and name not in said
    ]
    missing = [name for name in NEEDED if name not in said and name not in heard.unclear]
    if missing:
        flags = " ".join(map(_flag, missing))
        if text is None:
            are = "are" if missing[1:] else "is"
            problems.append(f"{_and(missing)} {are} missing. Give {flags}, or a --claim with it.")
        else:
            lacks = _and([f"no {NEEDED[name][0]}" for name in missing])
            example = " ".join(dict.fromkeys(NEEDED[name][1] for name in missing))
            problems.append(f"claim says {lacks}: {shown(text)!r}. Write it as in '{example}', or give {flags}.")
    return problems


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def _flag(name: str) -> str:
    return "--gpus" if name == "n_gpus" else "--" + name.replace("_", "-")
