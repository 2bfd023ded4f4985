"""The record of a sheet: the JSON of `build --format json`, in a file of its own or carried by a workbook."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.book.carried import RECORD, unpacked
from sheetgen.catalog.base import first_fault
from sheetgen.errors import shown
from sheetgen.readback.package import MB, Area, WorkbookError

MOST_JSON_BYTES = 10 * MB
SCHEMA_VERSION = 1
LOST = "Start from a fresh build."
T = TypeVar("T")
_PART = re.compile(rf"{RECORD}(\d+)")


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class Workload(_Part):
    id: str
    context_tokens: int
    output_tokens: int
    tpot_target_ms: float | None = None
    ttft_target_ms: float | None = None
    requests_per_user_per_day: float | None = None
    history_hit_fraction: float | None = None


class Inputs(_Part):
    model_config = ConfigDict(extra="allow")
    models: list[str] = Field(max_length=100)
    workloads: list[Workload] = Field(max_length=100)
    tiers: list[int] = Field(max_length=100)
    headline: str
    catalog_sha256: str
    purchase: str
    discount_fraction: float = Field(0, ge=0, lt=1)
    discounts: dict[str, Annotated[float, Field(ge=0, lt=1)]] = {}
    money: dict[str, int | float | str | None]
    owning: dict[str, float | dict[str, float]]


class Candidate(_Part):
    instance: str
    gpu: str
    gpu_count: int
    purchase: str
    hourly_usd: float
    price_as_of: str | None


class Cell(_Part):
    model: str
    workload: str
    tier: int | None  # none where it is the rate
    verdict: str
    instance: str | None
    n_instances: int | None
    monthly_usd: int | float | None
    weights_bytes: int
    weight_dtype: str
    kv_cache_dtype: str
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    n_replicas: int | None
    n_gpus: int | None
    sized_by: str | None = None


class Document(_Part):
    as_of: str
    inputs: Inputs
    candidates: list[Candidate]
    cells: list[Cell]


class Carried(_Part):
    """The record in a workbook: the answer as built, results beside it, and the options from which it was built."""

    version: str
    options: dict[str, Any]
    answer: Document
    beside_loads: dict[str, int | float | str | None]
    yellow_sha256: str
    formulas: dict[str, str]
    n_formulas: dict[str, int]


def read_parts(places: Mapping[str, Area], value_at: Callable[[Area], object], check: Callable[[Any], T]) -> T:
    """The record that a workbook carries, as `check` returns it. Raises WorkbookError where it is missing or
    damaged."""
    parts = sorted((int(match[1]), area) for name, area in places.items() if (match := _PART.fullmatch(name)))
    if not parts:
        raise WorkbookError(f"carries no record of what it was built with. {LOST}")
    try:
        return check(unpacked(str(value_at(area) or "") for _, area in parts))
    except (ValueError, KeyError, TypeError) as error:
        why = first_fault(error, Carried) if isinstance(error, ValidationError) else error
        raise WorkbookError(f"the record that it carries is damaged ({shown(why, 120).rstrip('.')}). {LOST}") from None


def read_document(data: bytes) -> Document:
    """The JSON of `build --format json` or `recommend --json`. Raises WorkbookError where it is none."""
    if len(data) > MOST_JSON_BYTES:
        size = f"{len(data) / MB:,.0f} MB of JSON; {MOST_JSON_BYTES // MB} MB are the most"
        raise WorkbookError(f"has {size}. Give what `sheetgen build --format json` wrote.")
    try:
        data_read = json.loads(data, parse_constant=_finite, parse_int=_whole, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise WorkbookError(f"is no JSON that can be read ({shown(error)}). Write it anew.") from error
    if not isinstance(data_read, dict) or not {"schema_version", "inputs", "cells"} <= data_read.keys():
        raise WorkbookError("is no JSON of a sheet. Give what `sheetgen build --format json` wrote.")
    version = data_read["schema_version"]
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        problem = f"schema_version is {shown(version)!r}; this sheetgen reads {SCHEMA_VERSION}"
        raise WorkbookError(f"{problem}. {'Update sheetgen.' if newer else 'Write it anew.'}")
    try:
        return Document.model_validate(data_read)
    except ValidationError as error:
        raise WorkbookError(f"{first_fault(error, Document)} Write it anew with `sheetgen build`.") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shown(text)} is no number")
    return number


def _whole(text: str) -> int | float:
    return int(text) if len(text) < 19 else _finite(text)
