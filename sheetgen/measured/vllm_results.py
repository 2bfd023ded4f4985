"""`vllm bench serve --save-result`: one JSON object per run, or one per line with --append-result.

Keys: vllm/benchmarks/serve.py. Keys that the user adds by --metadata, such as gpu=h100 tp=2, are read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sheetgen.catalog.base import RawMapping, RawValue
from sheetgen.measured.measured_point import (
    MILLISECONDS_PER_SECOND,
    Reading,
    by_rate,
    deployment_stated,
    name_at,
    needed_number,
    number_at,
    point_of,
    unsteady,
)

TOOL = "`vllm bench serve`"
# Keys that it writes for a generative model, and no other tool does.
OWN_KEYS = ("model_id", "num_prompts", "total_output_tokens", "mean_ttft_ms")


def is_vllm_result(document: RawValue) -> bool:
    return isinstance(document, Mapping) and all(key in document for key in OWN_KEYS)


def vllm_points(document: RawMapping, source: str) -> Iterator[Reading]:
    """The point of one result."""

    def needed(key: str) -> float:
        return needed_number(document, source, TOOL, key)

    completed = needed("completed")
    tpot, ttft = needed("mean_tpot_ms") / MILLISECONDS_PER_SECOND, needed("mean_ttft_ms") / MILLISECONDS_PER_SECOND
    prompt, answer = needed("total_input_tokens") / completed, needed("total_output_tokens") / completed
    at_once, answered = number_at(document, "max_concurrency"), needed("request_throughput")
    sent = number_at(document, "request_rate")  # "inf": as fast as the limit lets them
    if why := unsteady(source, at_once, sent, answered):
        yield why
        return
    if at_once is None or sent is not None:
        whole = number_at(document, "mean_e2el_ms")
        seconds = ttft + (answer - 1) * tpot if whole is None else whole / MILLISECONDS_PER_SECOND
        at_once = by_rate(answered, seconds)
    yield point_of(
        source,
        {"model": name_at(document, "model_id"), "engine": "vllm", **deployment_stated(document)},
        concurrent_requests=max(1.0, at_once),
        input_tokens=prompt,
        output_tokens=answer,
        tpot_seconds=tpot,
        ttft_seconds=ttft,
        output_tokens_per_second=number_at(document, "output_throughput"),
    )
