"""Lines on measurements: measured values beside their predictions, the reasons why other files were not used, and what
no run covered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sheetgen.answer.answer_record import CellRecord
from sheetgen.catalog.engines import SpeedFile
from sheetgen.catalog.hardware import Gpu
from sheetgen.formula import Value
from sheetgen.measured.measured_point import Unusable
from sheetgen.question.measurements import MeasuredDeployment, Measurements, Served
from sheetgen.units import GIB, rate_places


def measured_lines(measurements: Measurements, answers: Sequence[CellRecord] = ()) -> Iterator[str]:
    """Points and start-up logs of each deployment beside their predictions, the factors that they set, and files that
    were not used. answers: where none of them rents a measured deployment, the line says so."""
    for measured in measurements.deployments:
        is_rented = not answers or any(_is_of(measured.served, cell) for cell in answers)
        aside = "" if is_rented else ", which no answer here rents,"
        yield from _of_runs(measured, aside)
        yield from _of_starts(measured, aside)
    yield from unused_lines(measurements.unused)


def _is_of(served: Served, cell: CellRecord) -> bool:
    """True where an answer rents the deployment that was measured."""
    answer, sizes = cell.answer, ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    rented = {"model": cell.model, "gpu": answer.gpu, "weight_dtype": cell.weight_dtype}
    rented |= {size: getattr(answer, size) for size in sizes}
    return all(getattr(served, name) == value for name, value in rented.items())


def unused_lines(unused: Iterable[Unusable]) -> Iterator[str]:
    """The files that were read and set nothing, each with its reason."""
    for measurement in unused:
        yield f"Read and not used, {measurement.source}: {measurement.reason}."


def beyond_measured(
    sized: Mapping[str, Value], gpu: Gpu, weight_dtype: str, has_draft: bool, speed: SpeedFile
) -> Iterator[str]:
    """The conditions of a sized deployment that its figures leave out, or that no measured run had."""
    if gpu.peak_flops_for(weight_dtype) is None:
        yield f"No peak of arithmetic of {gpu.name} is published: assumed from its bandwidth."
    n_linked = sized["tensor_parallel_size"] * sized["data_parallel_size"]
    if gpu.interconnect_bytes_per_second is None and n_linked > 1:
        yield f"No rate of the links between GPUs of {gpu.name} is published: a slow one is assumed."
    if has_draft:
        yield "What a draft model gains and costs in time is not counted."
    if speed.is_beyond(sized["input_tokens"]):
        above = f"prompts above {speed.longest_prompt_tokens:,} tokens"
        yield f"Beyond what was measured: {above}; the time to the first token may be off by more."
    beyond = {
        "pipeline stages": sized["pipeline_parallel_size"] > 1,
        f"more than {sized['nvlink_gpus']:.0f} GPUs": n_linked > sized["nvlink_gpus"],
        "prefix-cache hits": sized["prefix_cache_hit_fraction"] > 0,
    }
    if unmeasured := [name for name, is_there in beyond.items() if is_there]:
        yield f"Beyond what was measured: no run had {' or '.join(unmeasured)}."


def _of_runs(measured: MeasuredDeployment, aside: str) -> Iterator[str]:
    for run in measured.runs:
        times = ", ".join(
            f"{figure} {_time(seconds)} measured, {_time(predicted)} predicted"
            for figure, seconds, predicted in (
                ("TPOT", run.point.tpot_seconds, run.predicted_tpot_seconds),
                ("TTFT", run.point.ttft_seconds, run.predicted_ttft_seconds),
            )
            if seconds is not None
        )
        waits = f"; {run.waiting_requests:,.0f} of them wait, by the prediction" if run.waiting_requests else ""
        yield f"Measured, {run.point.source}: {run.point.load_words}{waits}: {times}."
    if measured.runs:
        factors = [f"TPOT x {measured.tpot_factor:,.4g}"]
        factors += [f"what each request adds x {measured.request_factor:,.4g} more"] if measured.request_factor else []
        factors += [f"TTFT x {measured.ttft_factor:,.4g}"] if measured.ttft_factor else []
        yield f"Times of {_deployment(measured)}{aside} are as measured there: {', '.join(factors)}."


def _of_starts(measured: MeasuredDeployment, aside: str) -> Iterator[str]:
    for start in measured.starts:
        pool, predicted = (f"{size / GIB:,.2f} GiB" for size in (start.kv_pool_bytes, start.predicted_kv_pool_bytes))
        tokens = f" ({start.pool.kv_tokens:,} tokens)" if start.pool.kv_tokens else ""
        yield f"Measured, {start.pool.source}: KV pool of a GPU {pool}{tokens} measured, {predicted} predicted."
    if measured.starts:
        band = f", within {measured.pool_error_bytes / GIB:.2g} either way" if measured.pool_error_bytes else ""
        more = f"{measured.pool_more_bytes / GIB:+,.2f} GiB a GPU"
        yield f"Memory of {_deployment(measured)}{aside} is as measured there: KV pool {more}{band}."


def _deployment(measured: MeasuredDeployment) -> str:
    served = measured.served
    n_gpus = served.tensor_parallel_size * served.pipeline_parallel_size * served.data_parallel_size
    return f"{served.model} ({served.weight_dtype}) on {n_gpus}x {served.gpu}, {served.engine}"


def _time(seconds: float) -> str:
    """A time in the unit that suits it: milliseconds below a second."""
    unit, amount = ("ms", 1000 * seconds) if seconds < 0.9995 else ("s", seconds)
    return f"{amount:,.{rate_places(amount)}f} {unit}"
