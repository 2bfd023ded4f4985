"""What measured points say beside their predictions, and why others say nothing, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.question.measured_speed import MeasuredSpeed, Measurements
from sheetgen.units import rate_places


def measured_lines(found: Measurements) -> Iterator[str]:
    """The points of each deployment beside their predictions, what they set, and which set nothing."""
    for speed in found.speeds:
        yield from _lines(speed)
    for one in found.unused:
        yield f"Read and not used, {one.source}: {one.reason}."


def _lines(speed: MeasuredSpeed) -> Iterator[str]:
    for run in speed.runs:
        times = ", ".join(
            f"{figure} {_time(measured)} measured, {_time(predicted)} predicted"
            for figure, measured, predicted in (
                ("TPOT", run.point.tpot_seconds, run.predicted_tpot_seconds),
                ("TTFT", run.point.ttft_seconds, run.predicted_ttft_seconds),
            )
            if measured is not None
        )
        waits = f"; {run.waiting_requests:,.0f} of them wait, by the prediction" if run.waiting_requests else ""
        yield f"Measured, {run.point.source}: {run.point.load_words}{waits}: {times}."
    served = speed.served
    n_gpus = served.tensor_parallel_size * served.pipeline_parallel_size * served.data_parallel_size
    factors = [f"TPOT x {speed.tpot_factor:,.4g}"]
    factors += [f"what each request adds x {speed.request_factor:,.4g} more"] if speed.request_factor else []
    factors += [f"TTFT x {speed.ttft_factor:,.4g}"] if speed.ttft_factor else []
    deployment = f"{served.model} ({served.weight_dtype}) on {n_gpus}x {served.gpu}, {served.engine}"
    yield f"Times of {deployment} are as measured there: {', '.join(factors)}."


def _time(seconds: float) -> str:
    """A time in the unit that it is said in: milliseconds below a second."""
    unit, amount = ("ms", 1000 * seconds) if seconds < 0.9995 else ("s", seconds)
    return f"{amount:,.{rate_places(amount)}f} {unit}"
