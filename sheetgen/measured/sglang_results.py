"""SGLang's `bench_serving`: one JSON object per run, each on a line (--output-file).

Keys: python/sglang/bench_serving.py. Older versions without `server_info` state the backend, but not the model; until
2025 they wrote medians alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from sheetgen.catalog.base import RawRecord
from sheetgen.errors import ScenarioError
from sheetgen.measured.measured_point import MILLISECONDS_PER_SECOND, Reading, by_rate, point_of, unsteady
from sheetgen.measured.result_schema import Name, Number, Positive, Rate, Result, Size, StatedDeployment

OWN_KEYS = ("backend", "dataset_name", "total_output_tokens_retokenized", "output_throughput")
ENGINES = {"sglang": "sglang", "vllm": "vllm", "lmdeploy": "lmdeploy", "trt": "tensorrt-llm"}


class ServerInfo(Result):
    """The server's own information on what it serves."""

    model: Name = Field(None, validation_alias="model_path")
    tensor_parallel_size: Size = Field(None, validation_alias="tp_size")
    data_parallel_size: Size = Field(None, validation_alias="dp_size")
    pipeline_parallel_size: Size = Field(None, validation_alias="pp_size")


class SglangResult(StatedDeployment):
    """The result of one run. max_concurrency: the limit on concurrent requests; concurrency: their mean number."""

    backend: Name = None
    server_info: ServerInfo | None = None
    completed: Positive
    duration: Positive
    total_input_tokens: Positive
    total_output_tokens: Positive
    mean_e2e_latency_ms: Positive
    mean_ttft_ms: Number = None
    median_ttft_ms: Number = None
    mean_tpot_ms: Number = None
    output_throughput: Number = None
    max_concurrency: Number = None
    concurrency: Number = None
    request_rate: Rate = None

    @property
    def server(self) -> RawRecord:
        """The deployment that the result states: the engine by its backend, and the server's own information."""
        backend = (self.backend or "").split("-")[0]
        engine = {"engine": ENGINES[backend]} if backend in ENGINES else {}
        told = self.server_info.model_dump(exclude_none=True) if self.server_info else {}
        return engine | told | self.deployment


def sglang_points(result: SglangResult, source: str) -> Iterator[Reading]:
    """The point of one run."""
    prompt, answer = result.total_input_tokens / result.completed, result.total_output_tokens / result.completed
    whole = result.mean_e2e_latency_ms / MILLISECONDS_PER_SECOND
    first = result.mean_ttft_ms or result.median_ttft_ms
    if not first:
        raise ScenarioError(f"{source}: has neither mean_ttft_ms nor median_ttft_ms, the time to the first token.")
    ttft, tpot = first / MILLISECONDS_PER_SECOND, result.mean_tpot_ms
    at_once, answered = result.max_concurrency, result.completed / result.duration
    if why := unsteady(source, at_once, result.request_rate, answered):
        yield why
        return
    if at_once is None or result.request_rate is not None:
        at_once = result.concurrency or by_rate(answered, whole)
    yield point_of(
        source,
        result.server,
        concurrent_requests=max(1.0, at_once),
        input_tokens=prompt,
        output_tokens=answer,
        tpot_seconds=tpot / MILLISECONDS_PER_SECOND if tpot else (whole - ttft) / max(1, answer - 1),
        ttft_seconds=ttft,
        output_tokens_per_second=result.output_throughput,
    )
