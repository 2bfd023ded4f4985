"""A sized deployment as a person reads it: bill by bill, in GiB with the bytes beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.api import Sized, record
from sheetgen.calibration import Anchored
from sheetgen.cli.output import table
from sheetgen.scenario.deployment import Resolved
from sheetgen.units import GIB
from sheetgen.verdict import obstacle

DOCS = "docs/speed.md"


def pace(sized: Sized, answer: Mapping[str, Any]) -> str:
    """The section of speed for the one deployment of `sized`; `answer` is its record."""
    known = {name: column.reshape(-1)[0] for name, column in sized.known.items() if hasattr(column, "reshape")}
    names = sized.points.names[0]
    lines = [table([("SPEED", "", "80 % band", ""), *_rows(answer)], right=(1,)), ""]
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
        ("  time per output token", *_times(tpot), ""), _ttft(answer),
        ("  output tokens/s, the replica", *_figures(rates), ""),
        ("  output tokens/s, each GPU", *_figures([rate / n_gpus for rate in rates]), ""),
        ("  tokens/s of one user", *_figures([1 / tpot[0], 1 / tpot[2], 1 / tpot[1]]), ""),
        ("  bound by", answer["bound_by"], "", ""), ("  requests running", f"{running:,} of {asked:,}", "", ""),
        ("  most requests/s", _rate(most), f"{_rate(arriving)} arrive" if arriving else "", ""),
    ]  # fmt: skip


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
        first = float(found.predicted_tpot_seconds[0])
        measured, predicted = (_times([one] * 3)[0] for one in (found.anchor.tpot_seconds, first))
        yield f"Set right by one measured point: {found.anchor.words},"
        yield f"TPOT {measured} measured, {predicted} predicted: {factors}."
        if waiting := found.waiting_requests[0]:
            yield f"Of that point's own requests {waiting:,.0f} wait for their turn, by the prediction."
    yield f"Bands: of runs set right by one point of their configuration ({DOCS})."
    if answer["ttft_factor"] == 1:
        yield "No time to first token was measured: its band may be wider."


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
    beyond = {
        "pipeline stages": answer["pipeline_parallel_size"] > 1,
        f"more than {known['nvlink_gpus']:.0f} GPUs": n_linked > known["nvlink_gpus"],
        "prefix-cache hits": answer["prefix_cache_hit_fraction"] > 0,
    }
    if unmeasured := [what for what, is_there in beyond.items() if is_there]:
        yield f"Beyond what was measured: no run had {' or '.join(unmeasured)}."


KIB = 1024
PER_GPU = (
    ("memory that the engine sees", "gpu_memory_bytes"), ("the engine may use", "memory_budget_bytes"),
    ("weights", "weights_bytes_per_gpu"), ("draft model's weights", "draft_weights_bytes_per_gpu"),
    ("activations", "activation_bytes_per_gpu"), ("non-torch (NCCL, CUDA)", "non_torch_bytes_per_gpu"),
    ("CUDA graphs", "cuda_graph_bytes_per_gpu"), ("left for the KV pool", "kv_pool_bytes_per_gpu"),
)  # fmt: skip
BAND_WORDS = {
    "calibrated": "Four of five models measured on this GPU, engine version and up to this TP lay within such bands,\n"
    "each predicted by constants that were set without it (docs/fidelity.md).",
    "other": "Four of five models in public logs of other GPUs and versions lay within such bands; this GPU,\n"
    "version, TP or draft is not among the runs that the constants were set on (docs/fidelity.md).",
}
NO_BAND = "No error band: too few measured runs of this engine were seen (docs/fidelity.md)."
WHOLE = (
    ("weights", "weights_bytes"), ("KV per token", "kv_bytes_per_token"),
    ("state per sequence", "state_bytes_per_sequence"), ("KV per request, as admitted", "kv_bytes_per_sequence"),
    ("KV per request, while decoding", "kv_bytes_per_sequence_steady"), ("KV of all requests", "kv_bytes"),
)  # fmt: skip


def bills(sized: Sized) -> str:
    """The text of `sheetgen size` for the one deployment of `sized`."""
    answer = record(sized)
    names = sized.points.names[0]
    known = {k: v[0] for k, v in sized.known.items() if getattr(v, "ndim", 0)}
    numbers = {**known, **{k: v for k, v in answer.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}}
    parallel = [
        f"{short} {answer[f'{long}_parallel_size']}"
        for short, long in (("TP", "tensor"), ("PP", "pipeline"), ("DP", "data"))
        if short == "TP" or answer[f"{long}_parallel_size"] > 1
    ]
    n_gpus = answer["tensor_parallel_size"] * answer["pipeline_parallel_size"] * answer["data_parallel_size"]
    shape = f"{n_gpus}x {names.gpu.name} ({', '.join(parallel)})"
    lengths = f"{answer['input_tokens']:,} in + {answer['output_tokens']:,} out"
    head = [
        f"{names.model.name} on {shape}, {names.engine.name} {answer['engine_version']}",
        f"weights {names.weight_dtype}, KV cache {names.kv_cache_dtype}; {answer['concurrent_requests']:,} in flight at"
        f" {answer['context_tokens']:,} tokens ({lengths})", "", answer["verdict"], "",
    ]  # fmt: skip
    inside = bool(numbers["graphs_in_budget"])
    scope = answer["band_scope"]
    rows: list[tuple[str, ...]] = [("EACH GPU", "GiB", "bytes", "80 % band, GiB" if scope else "")]
    rows += [
        _row("  " + label + _remark(name, numbers, inside), numbers[name], _band(name, answer))
        for label, name in PER_GPU
        if name != "draft_weights_bytes_per_gpu" or numbers[name]
    ]
    needed = numbers["kv_bytes_per_sequence_per_gpu"] * numbers["requests_per_rank"]
    rows.append(_row("  KV that these requests take", needed))
    rows += [("", "", "", ""), ("THE REPLICA, BEFORE DIVISION", "GiB", "bytes", "")]
    rows += [
        _row("  " + label, numbers[name])
        for label, name in WHOLE
        if name != "state_bytes_per_sequence" or numbers[name]
    ]
    bands = f"\n{BAND_WORDS[scope] if scope else NO_BAND}\n"
    memory = table(rows, right=(1, 2)) + "\n" + bands + "\n" + _limits(answer)
    return "\n".join(head) + "\n" + memory + "\n\n" + pace(sized, answer)


def _remark(name: str, numbers: dict[str, float], inside: bool) -> str:
    if name == "memory_budget_bytes":
        return f" ({100 * numbers['gpu_memory_utilization']:.4g}%)" if numbers["gpu_memory_utilization"] else ""
    if name == "cuda_graph_bytes_per_gpu":
        return "" if inside else ", outside the budget"
    return ""


def _row(label: str, count: float, band: str = "") -> tuple[str, ...]:
    gib = count / GIB
    size = f"{gib:,.2f}"
    if 0 < gib < 0.01:  # a token's share: no reader counts zeros
        size = f"{count / KIB:,.1f} KiB" if count < KIB * KIB else f"{count / KIB / KIB:,.1f} MiB"
    return label, size, f"{count:,.0f}", band


def _band(name: str, answer: dict[str, Any]) -> str:
    """Both ends of a figure's error band, where one is known."""
    low, high = answer.get(f"{name}_low"), answer.get(f"{name}_high")
    return "" if low is None or high is None else f"{low / GIB:,.2f} to {high / GIB:,.2f}"


def _limits(answer: dict[str, Any]) -> str:
    rows = [
        ("KV cache size that the engine prints", f"{answer['kv_tokens']:,} tokens"),
        (f"maximum concurrency at {answer['max_model_len']:,} tokens", f"{answer['max_concurrency']:,.2f}"),
        (f"longest context for {_requests(answer)}", f"{answer['max_context_tokens_that_fit']:,} tokens"),
        ("fewest of these GPUs that hold it", "none" if answer["min_gpus"] is None else f"{answer['min_gpus']:,}"),
    ]
    return table(rows)


def _requests(answer: dict[str, Any]) -> str:
    count = answer["concurrent_requests"]
    return f"{count:,} request{'' if count == 1 else 's'}"
