"""`--measured FILE[,key=value...]`: the points of a benchmark's file, whose tool is recognized by its keys, or the KV
pool of a start-up log.

Values that the file lacks are given beside it: `result.json,gpu=h100,tp=2`. A point without a file is written out:
`gpu=h100,tp=2,concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic

from pydantic import AfterValidator, BaseModel, PlainValidator, ValidationError

from sheetgen.catalog.base import RawRecord, RawValue, every_fault, is_file, with_home
from sheetgen.catalog.load import Catalog
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown, shown_key
from sheetgen.input_files import beside, read_bounded
from sheetgen.measured import guidellm_results, sglang_results, vllm_results
from sheetgen.measured.aiperf_results import OWN_PATHS, AiperfExport, aiperf_points
from sheetgen.measured.guidellm_results import GuidellmReport, guidellm_points
from sheetgen.measured.measured_point import (
    EXAMPLE,
    KEYS,
    KEYS_OF,
    SPELLINGS,
    UNITS,
    MeasuredPoint,
    MeasuredPool,
    Reading,
    Unusable,
    at_path,
    field_of,
    with_stated,
)
from sheetgen.measured.result_schema import R, checked_result, positive_number, whole_number
from sheetgen.measured.sglang_results import SglangResult, sglang_points
from sheetgen.measured.startup_pool import OF_POOL, called, pool_of_log, startup_log_at
from sheetgen.measured.vllm_results import VllmResult, vllm_points

MOST_BYTES = 64 * 2**20  # enough for a report of GuideLLM with all its requests
MOST_LINES = 1000  # runs in a file
MOST_FILES = 100
GIVEN = "the point given"
NEEDED = ("concurrent_requests", "input_tokens", "output_tokens", "tpot_ms")
POINT = "concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4"


@dataclass(frozen=True)
class Tool(Generic[R]):
    """A benchmark tool, whose results have something at all of `own_paths`; `points` makes points of a result."""

    name: str
    own_paths: Sequence[Sequence[str | int]]
    schema: type[R]
    points: Callable[[R, str], Iterator[Reading]]

    def wrote(self, document: RawValue) -> bool:
        holders = [at_path(document, *path[:-1]) for path in self.own_paths]
        return all(
            isinstance(holder, Mapping) and path[-1] in holder
            for holder, path in zip(holders, self.own_paths, strict=True)
        )

    def read(self, document: RawValue, source: str) -> Iterator[Reading]:
        """The points of a result. Raises ScenarioError for a value that no result has."""
        return self.points(checked_result(document, self.schema, source), source)


TOOLS: tuple[Tool[Any], ...] = (
    Tool("vllm bench serve", [(key,) for key in vllm_results.OWN_KEYS], VllmResult, vllm_points),
    Tool("SGLang's bench_serving", [(key,) for key in sglang_results.OWN_KEYS], SglangResult, sglang_points),
    Tool("GuideLLM", [guidellm_results.OWN_PATH], GuidellmReport, guidellm_points),
    Tool("AIPerf", OWN_PATHS, AiperfExport, aiperf_points),
)
READ = "results of vllm bench serve, SGLang's bench_serving, GuideLLM and AIPerf, and start-up logs"


def _stated_text(text: str) -> str:
    """Raises ValueError where it is blank."""
    if not text:
        raise ValueError("is blank. Give a value, or leave it out")
    return text


def _stated_tokens(text: str) -> int:
    """A whole number above 0, of which 1k is 1024. Raises ValueError."""
    in_k = text[-1:].lower() == "k"
    return whole_number(1024 * positive_number(text[:-1])) if in_k else whole_number(text)


def _flag(text: str) -> int:
    """Raises ValueError for any other text than 0 and 1."""
    if text not in ("0", "1"):
        raise ValueError("must be 0 or 1")
    return int(text)


Text = Annotated[str | None, PlainValidator(_stated_text)]
Decimal = Annotated[float | None, PlainValidator(positive_number)]
Whole = Annotated[int | None, PlainValidator(whole_number)]
Tokens = Annotated[int | None, PlainValidator(_stated_tokens)]
Flag = Annotated[int | None, PlainValidator(_flag)]


class StatedMeasurement(BaseModel):
    """A point or a pool as an option writes it, by its keys."""

    source: Annotated[Text, AfterValidator(lambda text: text.replace(";", ","))] = None
    model: Text = None
    gpu: Text = None
    engine: Text = None
    weight_dtype: Text = None
    tensor_parallel_size: Whole = None
    pipeline_parallel_size: Whole = None
    data_parallel_size: Whole = None
    concurrent_requests: Decimal = None
    input_tokens: Tokens = None
    output_tokens: Tokens = None
    tpot_ms: Decimal = None
    ttft_ms: Decimal = None
    output_tokens_per_second: Decimal = None
    kv_pool_gib: Decimal = None
    kv_tokens: Tokens = None
    weights_gib: Decimal = None
    gpu_memory_gib: Decimal = None
    engine_version: Text = None
    kv_cache_dtype: Text = None
    gpu_memory_utilization: Decimal = None
    max_model_len: Whole = None
    max_num_seqs: Whole = None
    max_num_batched_tokens: Tokens = None
    block_size: Whole = None
    expert_parallel_size: Whole = None
    enable_prefix_caching: Flag = None
    hybrid_kv_manager: Flag = None
    skip_mm_profiling: Flag = None


def read_measured(options: Iterable[object] | str | None, catalog: Catalog) -> list[Reading]:
    """The points of every `--measured`. Raises ScenarioError with all problems."""
    texts = [options] if isinstance(options, (str, Path)) else list(options or ())
    if len(texts) > MOST_FILES:
        raise ScenarioError(f"measured names {len(texts):,} files. Give {MOST_FILES} at most.")
    problems, points = Problems(), list[Reading]()
    for text in texts:
        points += problems.attempt(lambda text=text: list(_points(text, catalog))) or ()
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    return points


def measured_beside(file: Path, option: str) -> str:
    """An option that `file` states, with its path made one from here; a point that is written out is unchanged."""
    first, comma, rest = option.strip().partition(",")
    return option if "=" in first or not first.strip() else f"{beside(file, first.strip())}{comma}{rest}"


def written_out(readings: Iterable[Reading]) -> list[str]:
    """The usable points, each written out as an option."""
    return [reading.stated for reading in readings if not isinstance(reading, Unusable)]


def _points(option: object, catalog: Catalog) -> Iterator[Reading]:
    if not isinstance(option, (str, Path)):
        raise ScenarioError(f"measured is {shown(repr(option))}. It must be a file, such as result.json,{EXAMPLE}.")
    text = str(option).strip()
    if not text:
        raise ScenarioError(f"measured is blank. Name a file, such as result.json,{EXAMPLE}, or leave it out.")
    parts = [text] if is_file(text) else text.split(",")
    first = next((i for i, part in enumerate(parts) if "=" in part and (i or len(parts) > 1)), len(parts))
    file, stated = ",".join(parts[:first]).strip(), _stated(parts[first:])
    if file:
        yield from with_stated(_of_file(with_home(file), catalog), stated)
        return
    if any(name in stated for name in OF_POOL):
        yield from with_stated([MeasuredPool(source=GIVEN)], stated)
        return
    if missing := [key for key in NEEDED if field_of(key) not in stated]:
        lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise ScenarioError(f"measured: {lacks}. Name a file, or write the whole point, such as {POINT}.")
    if stated["output_tokens"] < 2:
        raise ScenarioError("measured: output_tokens is 1. There is a time between tokens from 2 on.")
    if others := [key for key in KEYS if key not in KEYS_OF[MeasuredPoint] and field_of(key) in stated]:
        raise ScenarioError(f"measured: {', '.join(others)} goes with kv_pool_gib or kv_tokens, which a start prints.")
    yield MeasuredPoint(**{"source": GIVEN, **stated})


def _stated(parts: Iterable[str]) -> RawRecord:
    """The fields of deployment and load in `key=value` parts. Raises ScenarioError with all problems."""
    texts, problems = dict[str, str](), Problems()
    for part in filter(str.strip, parts):
        name, equals, value = (word.strip() for word in part.partition("="))
        key = SPELLINGS.get(name.replace("-", "_"), name.replace("-", "_"))
        if not equals:
            problems.append(f"measured has {shown(part)!r}. Write key=value after the file, such as {EXAMPLE}.")
        elif key not in KEYS:
            problems.append(f"measured: unknown key {shown_key(name)!r}.{did_you_mean(key, KEYS)}")
        elif key in texts:
            problems.append(f"measured: {key} is given twice. Keep one.")
        else:
            texts[key] = value
    try:
        stated = StatedMeasurement.model_validate(texts).model_dump(exclude_none=True)
    except ValidationError as error:
        problems.extend(f"measured: {fault}" for fault in every_fault(error, StatedMeasurement))
    if problems:
        raise ScenarioError(*problems)
    return {field_of(key): value / UNITS[key][1] if key in UNITS else value for key, value in stated.items()}


def _of_file(path: Path, catalog: Catalog) -> list[Reading]:
    """The points of one benchmark's file, or the pool of a start-up log."""
    try:
        return list(_of_results(path))
    except ScenarioError:
        log = startup_log_at(path, catalog)
        if log is None:
            raise
        return [pool_of_log(log, f"{shown(path, 200)} ({called(log)})", catalog)]


def _of_results(path: Path) -> Iterator[Reading]:
    """The points of a benchmark's file."""
    name = shown(path, 200)
    try:
        raw = read_bounded(path, MOST_BYTES, f"Name a file: {READ} are read.", pipes=True)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{name}: is not UTF-8 text: {READ} are read.") from None
    except ValueError as error:
        raise ScenarioError(f"{name}: {str(error).rstrip('.')}.") from None
    documents = list(_documents(text, name))
    for i, document in enumerate(documents, 1):
        source = f"{name}:{i}" if len(documents) > 1 else name
        tool = next((tool for tool in TOOLS if tool.wrote(document)), None)
        if tool is None:
            raise ScenarioError(f"{source}: its keys are of no benchmark that is read: {READ} are.")
        yield from tool.read(document, f"{source} ({tool.name})")


def _documents(text: str, name: str) -> Iterator[RawValue]:
    """The JSON documents of a file: a single one, or one per line."""
    try:
        yield _parsed(text)
        return
    except ValueError as error:
        whole = error
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MOST_LINES:
        raise ScenarioError(f"{name}: holds {len(lines):,} lines. A file of runs may have {MOST_LINES:,}.")
    if len(lines) < 2 or not lines[0][1].rstrip().endswith("}"):
        hint = "Is it cut off? A start-up log has lines of vLLM, SGLang or TensorRT-LLM as they start."
        raise ScenarioError(f"{name}: is not valid JSON ({shown(whole, 100)}). {hint}")
    for i, line in lines:
        try:
            yield _parsed(line)
        except ValueError as error:
            raise ScenarioError(f"{name}:{i}: is not valid JSON ({shown(error, 100)}). Is it cut off?") from None


def _parsed(text: str) -> RawValue:
    """A JSON document. Raises ValueError, also for a document nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
