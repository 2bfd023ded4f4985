"""A measured point as somebody types it: `name=value,name=value`, a mapping, or a JSON or YAML file of one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sheetgen.catalog import read_document
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.scenario import parse
from sheetgen.scenario.kinds import SHARE

NEEDED = ("concurrent_requests", "input_tokens", "output_tokens", "tpot_ms")
KEYS = (*NEEDED, "ttft_ms", "prefix_cache_hit_fraction")
EXAMPLE = "concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4"


@dataclass(frozen=True)
class Anchor:
    """A measured point: requests in flight on the replica, tokens of each, mean seconds. TTFT where it was measured."""

    concurrent_requests: int
    input_tokens: int
    output_tokens: int
    tpot_seconds: float
    ttft_seconds: float | None = None
    prefix_cache_hit_fraction: float = 0.0

    @property
    def words(self) -> str:
        """The load of the point."""
        count = self.concurrent_requests
        each = f"{self.input_tokens:,} + {self.output_tokens:,} tokens"
        return f"{count:,} request{'' if count == 1 else 's'} of {each}"


def read_anchor(value: Any) -> Anchor:
    """A point as a mapping of KEYS, as `name=value,name=value`, or in a JSON or YAML file.

    Raises ScenarioError with every key that is unknown, missing, given twice or out of bounds.
    """
    found: dict[str, Any] = {}
    problems: list[str] = []
    for place, name, given in _pairs(value):
        key = {"users": "concurrent_requests"}.get(name, name)
        if given is None and key in KEYS and key not in NEEDED:
            continue
        if key not in KEYS:
            problems.append(f"{place}: unknown key {shown(name)!r}.{did_you_mean(name, KEYS)}")
        elif key in found:
            problems.append(f"{place}: {key} is given twice. Keep one.")
        else:
            try:
                found[key] = _read(key, given)
            except ScenarioError as error:
                found[key] = None
                problems += (f"{place}: {problem}" for problem in error.problems)
    missing = [name for name in NEEDED if name not in found]
    if missing and not problems:
        lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        problems.append(f"anchor: {lacks}. Write the whole point, such as {EXAMPLE}.")
    if problems:
        raise ScenarioError(*problems)
    return Anchor(
        found["concurrent_requests"],
        found["input_tokens"],
        found["output_tokens"],
        found["tpot_ms"] / 1000,
        found["ttft_ms"] / 1000 if "ttft_ms" in found else None,
        found.get("prefix_cache_hit_fraction", 0.0),
    )


def _pairs(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Where it stands, name and value of everything that the point states."""
    if isinstance(value, Mapping):
        yield from (("anchor", str(name).replace("-", "_"), given) for name, given in value.items())
        return
    if not isinstance(value, (str, Path)):
        raise ScenarioError(f"anchor is {shown(repr(value))}. Give a mapping such as {EXAMPLE}, or a file of one.")
    text = str(value).strip()
    if "=" in text and not _is_file(text):
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, equals, given = item.partition("=")
            if not equals:
                raise ScenarioError(f"anchor has {shown(item)!r}. Write name=value, such as {EXAMPLE}.")
            yield "anchor", name.strip().replace("-", "_"), given.strip()
        return
    if not _is_file(text):
        raise ScenarioError(f"anchor is {shown(text)!r}, which is no file. Write a point such as {EXAMPLE}.")
    document = read_document(Path(text).expanduser())
    if not isinstance(document.data, dict):
        raise ScenarioError(f"{document.at(())}: holds no point. Write lines such as tpot_ms: 22.4.")
    for key, given in document.data.items():
        yield document.at((key,)), key.replace("-", "_"), given


def _is_file(name: str) -> bool:
    try:
        return Path(name).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have
        return False


def _read(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        raise ScenarioError(f"{key} is {shown(repr(value))}. It must be a number.")
    if key == "concurrent_requests":
        return parse.whole(value, key)
    if key == "prefix_cache_hit_fraction":
        return SHARE.parse(value, key)
    if key.endswith("_tokens"):
        count = parse.tokens(value, key)
        if key == "output_tokens" and count < 2:
            raise ScenarioError(f"{key} is {shown(value)!r}. There is a time between tokens from 2 on.")
        return count
    milliseconds = parse.number(value)
    if not 0 < milliseconds < math.inf:
        raise ScenarioError(f"{key} is {shown(value)!r}. It must be a number of milliseconds above 0.")
    return milliseconds
