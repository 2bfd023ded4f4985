"""Measurements of one deployment: a benchmark under one load, or the memory in a start-up log.

Files are untrusted: only bounded numbers and names are read, and the catalogs must know the names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from sheetgen.catalog.base import RawMapping, RawRecord, RawValue
from sheetgen.errors import ScenarioError
from sheetgen.units import GIB, count

SPELLINGS = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "gpu_name": "gpu",
}
MILLISECONDS_PER_SECOND = 1000
# By key of an option: the field that it sets, and the number of the key's units in one of the field's.
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
    """A measurement and the deployment that was measured (None: not stated).

    source: the file and its tool, in words.
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
        """The measurement as an option `key=value,...`, for a sheet whose reader may lack the file."""
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
    """A benchmark run: the load, and the mean times."""

    concurrent_requests: float
    input_tokens: int
    output_tokens: int
    tpot_seconds: float
    ttft_seconds: float | None = None
    output_tokens_per_second: float | None = None

    @property
    def load_words(self) -> str:
        """The load in words."""
        requests = count(math.ceil(self.concurrent_requests), "request")
        return f"{requests} of {self.input_tokens:,} + {self.output_tokens:,} tokens at once"


@dataclass(frozen=True, kw_only=True)
class MeasuredPool(Measurement):
    """The memory per GPU that an engine printed at its start, and its settings (None: the engine's default)."""

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
    def settings(self) -> RawRecord:
        """The engine's settings that the log states, by the names of our inputs."""
        told = {name: getattr(self, name) for name in OF_START}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Unusable:
    """A run or a start that was read and cannot be used, and the reason."""

    source: str
    reason: str


Reading = MeasuredPoint | MeasuredPool | Unusable
NAMES = ("model", "gpu", "engine", "weight_dtype")
SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
OF_LOAD = ("concurrent_requests", "input_tokens", "output_tokens")
OF_MEMORY = ("kv_pool_bytes_per_gpu", "kv_tokens", "weights_bytes_per_gpu", "gpu_memory_bytes")
OF_START = tuple(
    column.name for column in fields(MeasuredPool) if column.name not in ("source", *NAMES, *SIZES, *OF_MEMORY)
)
KEYS_OF = {
    kind: tuple(KEY_OF.get(column.name, (column.name,))[0] for column in fields(kind))
    for kind in (MeasuredPoint, MeasuredPool)
}
KEYS = tuple(dict.fromkeys(key for keys in KEYS_OF.values() for key in keys))
EXAMPLE = "gpu=h100,tp=2"


def at_path(document: RawValue, *path: str | int) -> RawValue:
    """The value at a path of keys; None for none."""
    for key in path:
        if isinstance(key, int):
            document = document[key] if isinstance(document, list) and -len(document) <= key < len(document) else None
        else:
            document = document.get(key) if isinstance(document, Mapping) else None
    return document


def point_of(source: str, stated: RawMapping, **measured: float | None) -> Reading:
    """The point of a file's measurements and the deployment that it states; Unusable if its answers have one token."""
    values = {**measured, **stated}
    for name in ("input_tokens", "output_tokens"):
        values[name] = max(1, round(values[name]))
    if values["output_tokens"] < 2:
        return Unusable(source, "its answers have one token, and no time between tokens")
    return MeasuredPoint(source=source, **values)


def by_rate(requests_per_second: float, request_seconds: float) -> float:
    """The mean number of concurrent requests from their rate and their mean duration (Little's law)."""
    return requests_per_second * request_seconds


STEADY = 0.9  # answered per sent request; a lower share means a run that was too short, or a growing queue


def unsteady(source: str, at_once: float | None, sent: float | None, answered: float) -> Unusable | None:
    """The reason why a run's load was not steady (sent all at once, or faster than answered); None if it was.

    at_once: the limit on concurrent requests. sent, answered: requests per second.
    """
    if at_once is None and sent is None:
        return Unusable(source, "all its requests were sent at the same moment; give it --max-concurrency")
    if at_once is None and sent is not None and answered < STEADY * sent:
        rates = f"{answered:,.3g} of {sent:,.3g} requests a second were answered"
        return Unusable(source, f"{rates}: its load was not steady; run it for longer, or with --max-concurrency")
    return None


def with_stated(points: Iterable[Reading], stated: RawMapping) -> Iterator[Reading]:
    """The points with the values stated beside their file, which override their own. Raises ScenarioError for fields
    that they do not have."""
    for reading in points:
        if isinstance(reading, Unusable):
            yield reading
            continue
        own = {field.name for field in fields(reading)}
        if others := [KEY_OF.get(name, (name,))[0] for name in stated if name not in own]:
            kind = "a benchmark's result" if isinstance(reading, MeasuredPoint) else "a start-up log"
            raise ScenarioError(f"{reading.source}: {', '.join(others)} does not go with {kind}.")
        yield replace(reading, **stated)
