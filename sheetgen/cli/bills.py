"""A sized deployment as a person reads it: part by part, in GiB with the bytes beside, then its speed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sheetgen.answer.answer_record import Json
from sheetgen.answer.verdict import obstacle
from sheetgen.api import Sized
from sheetgen.catalog.engines import Engine
from sheetgen.cli.output import table
from sheetgen.program.grid import Columns
from sheetgen.question.deployment import Resolved, model_kind
from sheetgen.question.measurements import Measurements
from sheetgen.question.stated_load import load_words
from sheetgen.report.measured_words import beyond_measured, measured_lines
from sheetgen.report.precision_words import sized_as_words
from sheetgen.report.wording import sure, weights_name
from sheetgen.units import GIB, MIB, Layout, count, rate_places

DOCS = "docs/speed.md"
AS_IF_IT_FITTED = "It does not fit: speed as on GPUs with enough memory."
KINDS = {
    "dense": "dense models", "moe": "models with experts", "windowed": "models with windows",
    "linear": "models with recurrent states", "sparse": "models with sparse attention",
}  # fmt: skip
KIB = 1024
PER_GPU = (
    ("memory that the engine sees", "gpu_memory_bytes"), ("the engine may use", "memory_budget_bytes"),
    ("weights", "weights_bytes_per_gpu"), ("draft model's weights", "draft_weights_bytes_per_gpu"),
    ("activations", "activation_bytes_per_gpu"), ("non-torch (NCCL, CUDA)", "non_torch_bytes_per_gpu"),
    ("CUDA graphs", "cuda_graph_bytes_per_gpu"), ("left for the KV pool", "kv_pool_bytes_per_gpu"),
)  # fmt: skip
WHOLE = (
    ("weights", "weights_bytes"), ("KV per token", "kv_bytes_per_token"),
    ("state per sequence", "state_bytes_per_sequence"), ("KV per request, as admitted", "kv_bytes_per_sequence"),
    ("KV per request, while decoding", "kv_bytes_per_sequence_steady"), ("KV of all requests", "kv_bytes"),
)  # fmt: skip
ONLY_IF_ANY = ("draft_weights_bytes_per_gpu", "state_bytes_per_sequence")
BAND_WORDS = {
    "calibrated": "Four of five models measured on this GPU, engine version and up to this TP lay within such bands, "
    "each predicted by constants that were set without it (docs/fidelity.md).",
    "other": "Four of five of {n} start-ups of {releases} in public logs lay within such bands, judged without logs "
    "of their own source; this GPU, version, TP or draft is not among the runs that the constants were set on "
    "(docs/fidelity.md).",
    "shared": "Four of five of {n} start-ups of {releases} on GPUs whose memory is the host's, too, lay within such "
    "bands, judged without logs of their own source (docs/fidelity.md).",
    "cards": "Four of five of {n} start-ups of {releases} on GPUs without HBM in public logs lay within such bands, "
    "judged without logs of their own source (docs/fidelity.md).",
    None: "No error band: too few measured runs of this engine were seen (docs/fidelity.md).",
}


def bills(sized: Sized, answer: Json) -> str:
    """The text of `sheetgen size` for the one deployment of `sized`; `answer` is its record."""
    names = sized.points.names[0]
    numbers = numbers_of(sized)
    tensor, stages, data = (answer[f"{kind}_parallel_size"] for kind in ("tensor", "pipeline", "data"))
    n_gpus, shape = tensor * stages * data, Layout(tensor, data).words(stages)
    follows = "concurrent_requests" in sized.follows
    return "\n".join(
        [
            f"{names.model.name} on {n_gpus}x {names.gpu.name} ({shape}), {names.engine.name} "
            f"{answer['engine_version']}",
            *([sized_as_words(names.model)] if names.model.sized_as else []),
            f"weights {weights_name(names.model, names.weight_dtype)}, KV cache {names.kv_cache_dtype}",
            f"{load_words({**answer, 'concurrent_follows': follows})}, at {answer['context_tokens']:,} tokens "
            f"({answer['input_tokens']:,} in + {answer['output_tokens']:,} out)",
            "",
            answer["verdict"],
            *([f"{sure(answer['chance'])}: memory holds these requests"] if answer["chance"] is not None else []),
            "",
            table(_memory(numbers, answer, names), right=(1, 2)),
            "",
            _band_words(answer["band_scope"], names.engine, bool(numbers["measured_pool_error_bytes"])),
            "",
            table(
                [
                    ("KV cache size that the engine prints", f"{answer['kv_tokens']:,} tokens"),
                    (f"maximum concurrency at {answer['max_model_len']:,} tokens", f"{answer['max_concurrency']:,.2f}"),
                    (
                        f"longest context for {count(math.ceil(answer['concurrent_requests']), 'request')}",
                        f"{answer['max_context_tokens_that_fit']:,} tokens",
                    ),
                    ("fewest of these GPUs that hold it", _fewest(answer, numbers, n_gpus, shape)),
                ]
            ),
            "",
            *_caveats_of_speed(answer, numbers, names),
            table([("SPEED", "", "80 % band", ""), *_speed(answer, n_gpus, follows)], right=(1,)),
            "",
            *([f"{answer['queue'][0].upper()}{answer['queue'][1:]}."] if answer["queue"] else []),
            *_scope(answer, names, sized.measured),
            *beyond_measured(
                {**numbers, **answer}, names.gpu, names.weight_dtype, names.draft is not None, names.speed
            ),
            *measured_lines(sized.measured),
        ]
    )


def numbers_of(sized: Sized) -> Columns:
    """Every quantity of the one deployment."""
    return {name: column.reshape(-1)[0] for name, column in sized.known.items() if hasattr(column, "reshape")}


def _fewest(answer: Json, numbers: Columns, n_gpus: int, shape: str) -> str:
    """The fewest GPUs as a layout that the engine takes: 5 are TP 1 and PP 5, as no heads divide by 5."""
    fewest = answer["min_gpus"]
    if fewest is None:
        return "none"
    if fewest != numbers["min_gpus"]:  # fewer than the search found: those of the point itself
        return f"{n_gpus:,} ({shape})"
    layout = Layout(int(numbers["min_gpus_tensor_parallel_size"]), answer["data_parallel_size"])
    return f"{fewest:,} ({layout.words(fewest // layout.n_gpus)})"


def _band_words(scope: str | None, engine: Engine, is_measured: bool) -> str:
    """The runs that the bands of memory come from; is_measured: True where a start-up log set the KV pool's."""
    band = engine.band("kv_pool", scope) if scope else None
    releases = f"{engine.name} {band.releases}" if band else ""
    words = BAND_WORDS[scope].format(n=band.n_rows if band else 0, releases=releases)
    return f"{words} The KV pool's is that of start-up logs (docs/how-to/measure-it.md)." if is_measured else words


def _memory(quantities: Columns, answer: Json, names: Resolved) -> Iterator[tuple[str, ...]]:
    """Each GPU's bills with their bands, then the replica's before they are divided."""
    numbers = {**quantities, **{name: value for name, value in answer.items() if not isinstance(value, str | None)}}
    is_limit, set_to = quantities["set_pool_is_limit"] == 1, answer["kv_cache_memory_bytes"]
    is_set = set_to > 0 and not is_limit
    at_limit = 0 < set_to == answer["kv_pool_bytes_per_gpu"]
    share = f" {100 * answer['gpu_memory_utilization']:.4g}%" if answer["gpu_memory_utilization"] else ""
    of_free = names.engine.fraction_of_free
    outside = "" if quantities["graphs_reserved"] else ", outside the budget"
    wider = ", run in 16 bits" if names.gpu.weights_run.get(names.weight_dtype) == "weight_only" else ""
    remarks = {
        "weights_bytes_per_gpu": f" ({names.weight_dtype}{wider})",
        "memory_budget_bytes": "" if is_set or not share else f" ({share[1:]})",
        "kv_pool_bytes_per_gpu": ", set outright"
        if is_set
        else ", as limited"
        if at_limit
        else f",{share} of what is free"
        if of_free
        else ", as measured"
        if quantities["measured_pool_more_bytes"] != quantities["measured_pool_less_bytes"]
        else "",
        "cuda_graph_bytes_per_gpu": outside,
    }

    def row(label: str, size: float, band: str = "") -> tuple[str, ...]:
        gib = f"{size / GIB:,.2f}"
        if 0 < size / GIB < 0.01:  # a token's share, as readers do not count zeros
            gib = f"{size / KIB:,.1f} KiB" if size < MIB else f"{size / MIB:,.1f} MiB"
        return f"  {label}", gib, f"{size:,.0f}", band

    yield "EACH GPU", "GiB", "bytes", "80 % band, GiB" if answer["band_scope"] else ""
    for label, name in PER_GPU:
        if (name not in ONLY_IF_ANY or numbers[name]) and not (of_free and name == "memory_budget_bytes"):
            low, high = answer.get(f"{name}_low"), answer.get(f"{name}_high")
            band = "" if low is None or high is None else f"{low / GIB:,.2f} to {high / GIB:,.2f}"
            yield row(label + remarks.get(name, ""), numbers[name], band)
    yield row("KV that these requests take", quantities["kv_needed_bytes_per_gpu"])
    yield "", "", "", ""
    yield "THE REPLICA, BEFORE DIVISION", "GiB", "bytes", ""
    yield from (row(label, numbers[name]) for label, name in WHOLE if name not in ONLY_IF_ANY or numbers[name])


def _speed(answer: Json, n_gpus: int, follows: bool) -> Iterator[tuple[str, str, str, str]]:
    """Lines of a deployment's speed. follows: whether the requests at once follow from a rate; then so do the tokens a
    second, whatever the speed, unless the queue grows."""
    tpot, rates, ttft = (
        [answer[f"{name}{end}"] for end in ("", "_low", "_high")]
        for name in ("tpot_seconds", "output_tokens_per_second", "ttft_seconds")
    )
    requests, arriving = answer["concurrent_requests"], answer["requests_per_second"]
    yield "  time per output token", *_times(tpot), ""
    if answer["ttft_seconds"] is None:
        yield "  time to first token", "no end", "", "the queue grows"
    else:
        yield "  time to first token", *_times(ttft), "indicative under load" if requests > 1 else ""
    is_known = follows and answer["ttft_seconds"] is not None
    for label, n in (("the replica", 1), ("each GPU", n_gpus)):
        figure, band = _figures([rate / n for rate in rates])
        yield f"  output tokens/s, {label}", figure, *(("", "of the rate") if is_known else (band, ""))
    yield "  tokens/s of one user", *_figures([1 / tpot[0], 1 / tpot[2], 1 / tpot[1]]), ""
    yield "  bound by", answer["bound_by"], "", ""
    yield "  requests running", f"{answer['running_requests']:,} of {math.ceil(requests):,}", "", ""
    arrive = f"{_rate(arriving)} arrive" if arriving else ""
    yield "  most requests/s", _rate(answer["max_requests_per_second"]), arrive, ""


def _times(seconds: list[float]) -> tuple[str, str]:
    """A time and its band, all in the unit of the time: milliseconds below a second."""
    unit, per_second = ("ms", 1000) if seconds[0] < 0.9995 else ("s", 1)
    middle, band = _figures([per_second * second for second in seconds])
    return f"{middle} {unit}", f"{band} {unit}"


def _figures(figures: list[float]) -> tuple[str, str]:
    """A figure, and both ends of its band."""
    middle, low, high = map(_rate, figures)
    return middle, f"{low} to {high}"


def _rate(figure: float) -> str:
    """A rate in three digits, or all digits of a whole number: more would promise more than the band does."""
    return f"{figure:,.{rate_places(figure)}f}"


def _scope(answer: Json, names: Resolved, measurements: Measurements) -> Iterator[str]:
    """Sentences that say which measured runs the bands come from."""
    engine = names.engine
    if answer["speed_scope"] == "anchored":
        measured = next((deployment for deployment in measurements.deployments if deployment.runs), None)
        if measured is None:
            factors = f"TPOT x {answer['speed_factor']:,.4g}, TTFT x {answer['ttft_factor']:,.4g}"
            yield f"Set right by the factors given: {factors}."
        yield f"Bands: of runs set right by one point of their configuration ({DOCS})."
        if measured and not measured.ttft_factor:
            yield "No time to first token was measured: its band may be wider."
    elif answer["speed_scope"] == "ranks":
        runs = names.speed.band("tpot", "high", "ranks", model_kind(names.model), engine.engine, names.gpu).n_rows
        yield f"Bands: of {runs:,} runs with data-parallel attention, of three models ({DOCS})."
    elif answer["speed_scope"] == "stages":
        yield f"Bands: the widest of all; no run had pipeline stages, or more GPUs than a node ({DOCS})."
    elif answer["speed_scope"] == "fitted":
        runs = names.speed.band("tpot", "high", "fitted", model_kind(names.model), engine.engine, names.gpu).n_rows
        runs_of = f"{runs:,} runs on {names.gpu.short_name}"
        yield f"Bands: of {runs_of}, each predicted by constants set without its configuration ({DOCS})."
    else:
        here = names.draft is None and names.speed.measured_kinds(engine.engine, names.gpu)
        with_kind = f" with {KINDS[model_kind(names.model)]}" if here else ""
        unlike = f"of {engine.name} on {names.gpu.short_name}{with_kind}"
        yield f"Bands: wider, as of engines and GPUs without runs: none {unlike} was measured ({DOCS})."


def _caveats_of_speed(answer: Json, numbers: Columns, names: Resolved) -> Iterator[str]:
    """Caveats printed before any speed of a deployment that does not fit: what that speed assumes."""
    if why := obstacle(names):
        yield f"Speed as if it ran: {why}"
    elif not answer["fits"] and numbers["running_capacity"] < 1:
        yield AS_IF_IT_FITTED
    elif not answer["fits"] and not answer["queue"]:
        filled = f"{numbers['filled_tokens']:,.0f} tokens"
        yield f"Not all fit at full length: speed as they run at their average of {filled}, while none is preempted."
