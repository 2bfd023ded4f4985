"""The speed of a sized deployment as a person reads it: times and rates with their bands, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.api import Sized
from sheetgen.calibration import Anchored
from sheetgen.cli.output import table
from sheetgen.scenario.deployment import Resolved
from sheetgen.verdict import obstacle

DOCS = "docs/speed.md"


def pace(sized: Sized, answer: Mapping[str, Any]) -> str:
    """The section of speed for the one deployment of `sized`; `answer` is its record."""
    known = {name: column.reshape(-1)[0] for name, column in sized.known.items() if hasattr(column, "reshape")}
    names = sized.points.names[0]
    lines = [table(("SPEED", "", "80 % band", ""), _rows(answer), right=(1,)), ""]
    lines += [f"{answer['queue'][0].upper()}{answer['queue'][1:]}."] if answer["queue"] else []
    lines += [*_scope(answer, names, sized.anchored), *_beyond(answer, known, names)]
    return "\n".join(lines)


def _rows(answer: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    tpot = [answer[f"tpot_seconds{end}"] for end in ("", "_low", "_high")]
    rates = [answer[f"output_tokens_per_second{end}"] for end in ("", "_low", "_high")]
    n_gpus = answer["tensor_parallel_size"] * answer["pipeline_parallel_size"] * answer["data_parallel_size"]
    asked, running = answer["concurrent_requests"], answer["running_requests"]
    arriving, most = answer["requests_per_second"], answer["max_requests_per_second"]
    return [
        ("  time per output token", *_times(tpot), ""),
        _ttft(answer),
        ("  output tokens/s, the replica", *_figures(rates), ""),
        ("  output tokens/s, each GPU", *_figures([rate / n_gpus for rate in rates]), ""),
        ("  tokens/s of one user", *_figures([1 / tpot[0], 1 / tpot[2], 1 / tpot[1]]), ""),
        ("  bound by", answer["bound_by"], "", ""),
        ("  requests running", f"{running:,} of {asked:,}", "", ""),
        ("  most requests/s", _rate(most), f"{_rate(arriving)} arrive" if arriving else "", ""),
    ]


def _ttft(answer: Mapping[str, Any]) -> tuple[str, str, str, str]:
    if answer["ttft_seconds"] is None:
        return "  time to first token", "no end", "", "the queue grows"
    ends = [answer[f"ttft_seconds{end}"] for end in ("", "_low", "_high")]
    remark = "indicative under load" if answer["concurrent_requests"] > 1 else ""
    return ("  time to first token", *_times(ends), remark)


def _times(seconds: list[float]) -> tuple[str, str]:
    """A time and its band, all in the unit of the time: milliseconds below a second."""
    unit, each = ("ms", 1000) if seconds[0] < 0.9995 else ("s", 1)
    middle, band = _figures([each * one for one in seconds])
    return f"{middle} {unit}", f"{band} {unit}"


def _figures(figures: list[float]) -> tuple[str, str]:
    """A figure, and both ends of its band."""
    middle, low, high = map(_rate, figures)
    return middle, f"{low} to {high}"


def _rate(figure: float) -> str:
    """Three digits, and all of a whole number: more would promise more than the band does."""
    places = 0 if figure >= 99.95 else 1 if figure >= 9.995 else 2 if figure >= 0.1 else 4
    return f"{figure:,.{places}f}"


def _scope(answer: Mapping[str, Any], names: Resolved, found: Anchored | None) -> Iterator[str]:
    """Which runs the bands are from."""
    engine, cell = names.engine, names.speed.cell(names.engine.engine, names.gpu)
    if answer["speed_scope"] == "anchored":
        yield from _set_right(answer, found)
    elif answer["speed_scope"] == "fitted" and cell:
        yield f"Bands: of {cell.n_rows:,} runs of {engine.name} on {cell.generation} GPUs, this one among them, each"
        yield f"predicted by constants set without its configuration ({DOCS})."
    else:
        here = names.speed.scope(engine.engine, names.gpu) == "fitted"
        unlike = "like this one" if here else f"of {engine.name} on {names.gpu.short_name}"
        yield f"Bands: wider, as of engines and GPUs without runs: none {unlike} was measured ({DOCS})."


def _set_right(answer: Mapping[str, Any], found: Anchored | None) -> Iterator[str]:
    factors = f"TPOT x {answer['speed_factor']:,.4g}, TTFT x {answer['ttft_factor']:,.4g}"
    if found is None:
        yield f"Set right by the factors given: {factors}."
    else:
        measured, predicted = (_times([one] * 3)[0] for one in (found.anchor.tpot_seconds, _first(found)))
        yield f"Set right by one measured point: {found.anchor.words},"
        yield f"TPOT {measured} measured, {predicted} predicted: {factors}."
        if waiting := found.waiting_requests[0]:
            yield f"Of that point's own requests {waiting:,.0f} wait for their turn, by the prediction."
    yield f"Bands: of runs set right by one point of their configuration ({DOCS})."
    if answer["ttft_factor"] == 1:
        yield "No time to first token was measured: its band may be wider."


def _first(found: Anchored) -> float:
    return float(found.predicted_tpot_seconds[0])


def _beyond(answer: Mapping[str, Any], known: Mapping[str, Any], names: Resolved) -> Iterator[str]:
    """What the figures leave out, or what no measured run had."""
    if why := obstacle(names):
        yield f"Speed as if it ran: {why}"
    elif not answer["fits"] and known["running_capacity"] < 1:
        yield "It does not fit: speed as on GPUs with enough memory."
    elif not answer["fits"] and not answer["queue"]:
        filled = f"{known['filled_tokens']:,.0f} tokens"
        yield f"Not all fit at full length: speed as they run at their average of {filled}, while none is preempted."
    if names.gpu.peak_flops_for(names.weight_dtype) is None:
        yield f"No peak of arithmetic of {names.gpu.name} is published: assumed from its bandwidth."
    n_linked = answer["tensor_parallel_size"] * answer["data_parallel_size"]
    if names.gpu.interconnect_bytes_per_second is None and n_linked > 1:
        yield f"No rate of the links between GPUs of {names.gpu.name} is published: a slow one is assumed."
    if names.draft is not None:
        yield "What a draft model gains and costs in time is not counted."
    unmeasured = [
        what
        for what, there in (
            ("pipeline stages", answer["pipeline_parallel_size"] > 1),
            (f"more than {known['nvlink_gpus']:.0f} GPUs", n_linked > known["nvlink_gpus"]),
            ("prefix-cache hits", answer["prefix_cache_hit_fraction"] > 0),
        )
        if there
    ]
    if unmeasured:
        yield f"Beyond what was measured: no run had {' or '.join(unmeasured)}."
