"""What a benchmark measured of one deployment under one load, or a start-up log of its memory, and how files say it.

Text of a file is untrusted: what is read of it is numbers within bounds, and names that the catalogs must know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sheetgen.errors import ScenarioError, shown
from sheetgen.units import GIB, count

MOST_NAME = 200  # characters of a name that a file states
CACHED = re.compile(r"models--([^/]+?)--([^/]+)")
MOST = 1e12  # of any number
SPELLINGS = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "gpu_name": "gpu",
}
MILLISECONDS_PER_SECOND = 1000
# By key of an option: the field that it sets, and how many of the key's unit are one of the field's.
UNITS: dict[str, tuple[str, float]] = {
    "tpot_ms": ("tpot_seconds", MILLISECONDS_PER_SECOND),
    "ttft_ms": ("ttft_seconds", MILLISECONDS_PER_SECOND),
    "kv_pool_gib": ("kv_pool_bytes_per_gpu", 1 / GIB),
    "weights_gib": ("weights_bytes_per_gpu", 1 / GIB),
    "gpu_memory_gib": ("gpu_memory_bytes", 1 / GIB),
}
KEY_OF = {field: (key, unit) for key, (field, unit) in UNITS.items()}


def field_of(key: str) -> str:
    """The field that a key of an option sets."""
    return UNITS.get(key, (key, 1))[0]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What was measured of a deployment, and what served (None where nobody said).

    source: the file and what made it, as a person reads it.
    """

    source: str
    model: str | None = None
    gpu: str | None = None
    engine: str | None = None
    weight_dtype: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None

    @property
    def stated(self) -> str:
        """It as an option states it: what a sheet carries, whose reader may not have the file."""
        parts = []
        for name, value in vars(self).items():
            if value is None:
                continue
            key, unit = KEY_OF.get(name, (name, 1))
            plain = f"{unit * value:.12g}" if isinstance(value, float) else str(value)
            parts.append(f"{key}={plain.replace(',', ';')}")
        return ",".join(parts)


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint(Measurement):
    """A run: the load that a deployment was under, and the mean times."""

    concurrent_requests: float
    input_tokens: int
    output_tokens: int
    tpot_seconds: float
    ttft_seconds: float | None = None
    output_tokens_per_second: float | None = None

    @property
    def load_words(self) -> str:
        """Its load, as a person reads it."""
        requests = count(math.ceil(self.concurrent_requests), "request")
        return f"{requests} of {self.input_tokens:,} + {self.output_tokens:,} tokens at once"


@dataclass(frozen=True, kw_only=True)
class MeasuredPool(Measurement):
    """The memory that an engine printed as it started, each figure of one GPU, and what it was told of it (None: the
    engine's default)."""

    kv_pool_bytes_per_gpu: float | None = None
    kv_tokens: int | None = None
    weights_bytes_per_gpu: float | None = None
    gpu_memory_bytes: float | None = None
    engine_version: str | None = None
    kv_cache_dtype: str | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    expert_parallel_size: int | None = None
    enable_prefix_caching: int | None = None
    hybrid_kv_manager: int | None = None
    skip_mm_profiling: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What the engine was told, by our inputs' names."""
        told = {name: getattr(self, name) for name in OF_START}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Unusable:
    """A run or a start that was read and sets nothing, and why."""

    source: str
    reason: str


Reading = MeasuredPoint | MeasuredPool | Unusable
NAMES = ("model", "gpu", "engine", "weight_dtype")
SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
OF_LOAD = ("concurrent_requests", "input_tokens", "output_tokens")
OF_MEMORY = ("kv_pool_bytes_per_gpu", "kv_tokens", "weights_bytes_per_gpu", "gpu_memory_bytes")
OF_START = tuple(one.name for one in fields(MeasuredPool) if one.name not in ("source", *NAMES, *SIZES, *OF_MEMORY))
FLAGS = ("enable_prefix_caching", "hybrid_kv_manager", "skip_mm_profiling")  # 0 or 1
KEYS_OF = {
    kind: tuple(KEY_OF.get(one.name, (one.name,))[0] for one in fields(kind)) for kind in (MeasuredPoint, MeasuredPool)
}
KEYS = tuple(dict.fromkeys(key for keys in KEYS_OF.values() for key in keys))
EXAMPLE = "gpu=h100,tp=2"


def at_path(document: Any, *path: str | int) -> Any:
    """What stands at a path of keys; None where there is nothing."""
    for key in path:
        if isinstance(key, int):
            document = document[key] if isinstance(document, list) and -len(document) <= key < len(document) else None
        else:
            document = document.get(key) if isinstance(document, Mapping) else None
    return document


def number_at(document: Any, *path: str | int) -> float | None:
    """The finite number of at least 0 at a path; None where there is none, or another kind of value."""
    value = at_path(document, *path)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= MOST else None


def name_at(document: Any, *path: str | int) -> str | None:
    """The name at a path; None where there is none, or another kind of value. A folder of Hugging Face's cache is
    called by its id: models--org--name is org/name."""
    value = at_path(document, *path)
    if not isinstance(value, str) or not value.strip():
        return None
    cached = CACHED.search(value[:MOST_NAME])
    return f"{cached[1]}/{cached[2]}" if cached else value.strip()[:MOST_NAME]


def needed_number(document: Any, source: str, of: str, *path: str | int) -> float:
    """The number above 0 at a path that every file of a tool has. Raises ScenarioError where there is none."""
    found = number_at(document, *path)
    if not found:
        key = ".".join(map(str, path))
        raise ScenarioError(f"{source}: {shown(key)} is missing or no number above 0, which {of} writes.")
    return found


def of_deployment(document: Any) -> dict[str, Any]:
    """What a file's own keys say of the deployment: those that --metadata of `vllm bench serve` adds."""
    found: dict[str, Any] = {}
    for key, value in document.items() if isinstance(document, Mapping) else ():
        name = SPELLINGS.get(key, key)
        if name in SIZES:
            try:
                found[name] = int(str(value))
            except ValueError:
                continue
        elif name in NAMES and isinstance(value, str):
            found[name] = value.strip()[:MOST_NAME]
    return found


def point_of(source: str, stated: Mapping[str, Any], **measured: Any) -> Reading:
    """The point of what a file measured, less what `stated` says beside it; unusable where it has no time between
    tokens."""
    values = {**measured, **stated}
    for name in ("input_tokens", "output_tokens"):
        values[name] = max(1, round(values[name]))
    if values["output_tokens"] < 2:
        return Unusable(source, "its answers have one token, and no time between tokens")
    return MeasuredPoint(source=source, **values)


def by_rate(requests_per_second: float, request_seconds: float) -> float:
    """Requests at once, on average, of so many a second that each take so long (Little's law)."""
    return requests_per_second * request_seconds


STEADY = 0.9  # of the rate at which requests were sent: below, the run was too short, or its queue grew


def unsteady(source: str, at_once: float | None, sent: float | None, answered: float) -> Unusable | None:
    """Why a run is of no steady load: sent all at once, or faster than it was answered."""
    if at_once is None and sent is None:
        return Unusable(source, "all its requests were sent at the same moment; give it --max-concurrency")
    if at_once is None and sent is not None and answered < STEADY * sent:
        rates = f"{answered:,.3g} of {sent:,.3g} requests a second were answered"
        return Unusable(source, f"{rates}: its load was not steady; run it for longer, or with --max-concurrency")
    return None


def with_stated(points: Iterable[Reading], stated: Mapping[str, Any]) -> Iterator[Reading]:
    """The points with what was said beside their file in place of their own. Raises ScenarioError for what they do not
    have."""
    for reading in points:
        if isinstance(reading, Unusable):
            yield reading
            continue
        own = {field.name for field in fields(reading)}
        if others := [KEY_OF.get(name, (name,))[0] for name in stated if name not in own]:
            kind = "a benchmark's result" if isinstance(reading, MeasuredPoint) else "a start-up log"
            raise ScenarioError(f"{reading.source}: {', '.join(others)} does not go with {kind}.")
        yield replace(reading, **stated)
