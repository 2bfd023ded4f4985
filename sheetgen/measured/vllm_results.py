"""`vllm bench serve --save-result`: one JSON object per run, or one per line with --append-result.

Keys: vllm/benchmarks/serve.py. Keys that the user adds by --metadata, such as gpu=h100 tp=2, are read too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.measured.measured_point import MILLISECONDS_PER_SECOND, Reading, by_rate, point_of, unsteady
from sheetgen.measured.result_schema import Name, Number, Positive, Rate, StatedDeployment

# Keys that it writes for a generative model, and no other tool does.
OWN_KEYS = ("model_id", "num_prompts", "total_output_tokens", "mean_ttft_ms")


class VllmResult(StatedDeployment):
    """The result of one run. request_rate: None where requests are sent as fast as the limit lets them."""

    model_id: Name = None
    completed: Positive
    total_input_tokens: Positive
    total_output_tokens: Positive
    mean_tpot_ms: Positive
    mean_ttft_ms: Positive
    mean_e2el_ms: Number = None
    request_throughput: Positive
    output_throughput: Number = None
    max_concurrency: Number = None
    request_rate: Rate = None


def vllm_points(result: VllmResult, source: str) -> Iterator[Reading]:
    """The point of one result."""
    tpot, ttft = result.mean_tpot_ms / MILLISECONDS_PER_SECOND, result.mean_ttft_ms / MILLISECONDS_PER_SECOND
    prompt, answer = result.total_input_tokens / result.completed, result.total_output_tokens / result.completed
    at_once, answered = result.max_concurrency, result.request_throughput
    if why := unsteady(source, at_once, result.request_rate, answered):
        yield why
        return
    if at_once is None or result.request_rate is not None:
        whole = result.mean_e2el_ms
        seconds = ttft + (answer - 1) * tpot if whole is None else whole / MILLISECONDS_PER_SECOND
        at_once = by_rate(answered, seconds)
    yield point_of(
        source,
        {"model": result.model_id, "engine": "vllm", **result.deployment},
        concurrent_requests=max(1.0, at_once),
        input_tokens=prompt,
        output_tokens=answer,
        tpot_seconds=tpot,
        ttft_seconds=ttft,
        output_tokens_per_second=result.output_throughput,
    )
