"""One deployment a row: names and sizes as given, completed with defaults, turned into columns of numbers.

All rows are worked on together: names are resolved once per distinct combination, numbers are checked and
completed as columns, so that a million rows take seconds. A row that cannot be computed gets its reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy

from sheetgen.catalog.engines import (
    MODEL_KINDS,
    SPEED_FIGURES,
    Engine,
    ModelKind,
    Scope,
    SpeedFile,
    band_names,
    load_engine,
)
from sheetgen.catalog.hardware import Gpu, Workload
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import MTP, Model
from sheetgen.catalog.plausible import Plausible, plausible_of
from sheetgen.errors import Problems, ScenarioError, shown
from sheetgen.formula import round_up
from sheetgen.importer.model_names import resolve_model
from sheetgen.program.grid import Column, Columns, Grid, View
from sheetgen.program.row_program import ROW
from sheetgen.question import parse
from sheetgen.question.inputs import OF_A_POINT, OF_SETTINGS
from sheetgen.question.parse import Options, Raw
from sheetgen.question.precision import recommended_weights
from sheetgen.sizing import people, rates
from sheetgen.sizing.parallelism import heads_divide
from sheetgen.sizing.speed import speed_kind
from sheetgen.units import AUTO, DTYPES, ENDS, GBPS, GIB, PUBLISHED, RECOMMENDED, STAGES_IN_ORDER

# The schemas of files that one deployment does not need are loaded where such a file is read.
if TYPE_CHECKING:
    from sheetgen.catalog.guidance import Assumption, Fingerprint
    from sheetgen.catalog.hosted import HostedFile
    from sheetgen.catalog.stacks import Launcher

NO_TEXT: Column = None  # a blank in a column of texts


def engine_defaults(engine: Engine) -> dict[str, Raw]:
    """The inputs whose default is the engine's own, by name; flags as 0 or 1."""
    defaults = {setting.name: getattr(engine, setting.engine) for setting in OF_SETTINGS if setting.engine}
    return {name: int(value) if isinstance(value, bool) else value for name, value in defaults.items()}


# Every input of one deployment and its default; None is worked out from the other inputs.
DEFAULTS: dict[str, Raw] = {
    setting.asked_as or setting.name: setting.words[setting.default] if setting.words else setting.default
    for setting in OF_A_POINT
} | {"weight_dtype": PUBLISHED}
_KINDS = {setting.name: setting.kind for setting in OF_A_POINT if setting.kind.is_number and setting.name in DEFAULTS}
NUMBERS = tuple(_KINDS)
NAMES = tuple(name for name in DEFAULTS if name not in NUMBERS)
OWN = "default_"  # prefix of the column with the engine's own value of an input
SECONDS_PER_HOUR = 3600
RATES = ("users", "requests_per_second", "requests_per_day", "tokens_per_day")  # loads by what arrives
OUTPUT_TOKENS = 1024  # the default split: the context less 1,024, and 1,024; half and half below 2,048


def default_answer(context: Column, workloads: Sequence[Workload]) -> Column:
    """Tokens of the answer where neither prompt nor answer is given, for a context or a column of contexts: those of
    the workload with that context, else 1,024, or half of a small context."""
    answer = numpy.fmin(OUTPUT_TOKENS, numpy.floor(context / 2))
    for workload in reversed(workloads):
        answer = numpy.where(context == workload.context_tokens, workload.output_tokens, answer)
    return answer


def is_blank(value: object) -> bool:
    """True for None, blank text, NaN and pandas.NA; a blank takes the default."""
    if value is None or isinstance(value, str):
        return value is None or not value.strip()
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA, which is not comparable
        return True
    except ValueError:  # a whole array in a cell
        return False


def _default(name: str) -> float:
    return math.nan if DEFAULTS[name] is None else float(DEFAULTS[name])


def number_column(name: str, given: Column, errors: Column) -> Column:
    """The column as floats, the default where blank; NaN, and reported in `errors`, where it is no number."""
    is_numeric = getattr(getattr(given, "dtype", None), "kind", "O") in "fiu"
    values = numpy.asarray(given, float) if is_numeric else list(given)
    if is_numeric:
        column = numpy.array(values, float)
    elif all(type(value) is str for value in values):  # as in a file: each text is read once
        code, texts = factorized(given)
        column = numpy.array([_number(name, text) for text in texts], float)[code]
    else:
        column = numpy.array([_number(name, value) for value in values], float)
    hint = " Write a number of tokens, such as 16k or 16384." if _KINDS[name].what == "tokens" else ""
    for row in numpy.flatnonzero(numpy.isinf(column)):
        cure = parse.plainly(values[row]) if _KINDS[name].is_whole else ""
        wrong = f". {cure}" if cure else f", which is not a number.{hint}"
        _report(errors, int(row), f"{name} is {shown(values[row])!r}{wrong}")
    return numpy.select([numpy.isnan(column), numpy.isinf(column)], [_default(name), numpy.nan], column)


def _number(name: str, value: object) -> float:
    """NaN where blank, infinity where it is no number."""
    if is_blank(value):
        return math.nan
    text, kind = str(value).strip(), _KINDS[name]
    if kind.is_whole and parse.plainly(value):
        return math.inf
    if kind.what == "tokens" and text[-1:] in "kKmM":
        number = Problems().attempt(parse.tokens, text, name)
    else:
        number = kind.number(text)
    return number if number is not None and math.isfinite(number) else math.inf


def _report(errors: Column, row: int, problem: str) -> None:
    """Add a line to the problems of a row."""
    before = errors[row]
    errors[row] = problem if before is None else f"{before}\n{problem}"


def check_bounds(numbers: Columns, errors: Column) -> None:
    """Report in `errors` which numbers, as given, are out of bounds. Beside a rate the requests at once may be a
    fraction: so `size` writes those that follow from it, and reads them back."""
    rates_given = [numbers[name] > 0 for name in RATES if name in numbers]
    has_rate = numpy.any(rates_given, axis=0)
    for name, column in numbers.items():
        kind = _KINDS[name]
        is_mean = has_rate & (name == "concurrent_requests")
        bad = numpy.where(is_mean, column <= 0, column < kind.low) | (column > kind.high)
        if kind.is_whole:
            bad |= ~is_mean & (column > numpy.floor(column))
        for i in numpy.flatnonzero(bad):
            _report(errors, int(i), f"{name} is {column[i]:,.10g}. It must be {kind}.")


def wrong_values(given: Options, catalog: Catalog) -> tuple[str, ...]:
    """A line for each problem with the values of one deployment, whatever its model and GPU are."""
    problems, errors = Problems(), numpy.full(1, None, object)
    numbers = {name: number_column(name, [given[name]], errors) for name in NUMBERS if name in given}
    check_bounds(numbers, errors)
    for name in ("weight_dtype", "kv_cache_dtype"):
        if name in given:
            problems.attempt(parse.dtype, given[name], name)
    if "engine_version" in given:
        problems.attempt(load_engine, catalog, str(DEFAULTS["engine"]), given["engine_version"])
    return (*problems, *str(errors[0] or "").splitlines())


def fill(grid: Grid, own: Iterable[str], workloads: Sequence[Workload]) -> None:
    """Fill the blanks whose default follows from the names or from the other numbers; requests at once that follow
    from a rate are left blank. own: the inputs whose default is the engine's."""
    blank, choose = numpy.isnan, numpy.where

    def put(name: str, function: Callable[..., Column], *reads: str) -> None:
        grid.combine(name, function, reads, ROW)

    for name in own:
        put(name, lambda given, default: choose(blank(given), default, given), name, OWN + name)
        del grid.columns[OWN + name]
    context = "context_tokens"
    put("max_model_len", lambda length, most: choose(blank(length), most, length), "max_model_len", context)

    def answer(prompt: Column, answer: Column, context: Column) -> Column:
        rest = choose(blank(prompt), default_answer(context, workloads), context - prompt)
        return choose(blank(answer), rest, answer)

    put("output_tokens", answer, "input_tokens", "output_tokens", context)
    tokens = ("input_tokens", "output_tokens", context)
    put("input_tokens", lambda prompt, answer, context: choose(blank(prompt), context - answer, prompt), *tokens)
    # Where the load was stated as people or a rate, requests at once follow from the speed, which is not known yet.
    asking = {"users": "asking_users"}  # people of whom a share waits at the same moment are no rate
    put(asking["users"], lambda users, active: choose(blank(active), users, numpy.nan), "users", "active_fraction")
    grid.evaluate((people.day_requests.reading(**asking), rates.peak_requests_per_second), ROW)
    put(
        "requests_per_second",
        lambda stated, peak: choose((stated > 0) & (stated != peak), numpy.nan, peak),
        "requests_per_second",
        "peak_requests_per_second",
    )

    def at_once(users: Column, active: Column, asked: Column, peak: Column) -> Column:
        active_users = round_up(users * active)
        is_mean = asked > numpy.floor(asked)  # a fraction is what `size` writes for a rate: it is worked out anew
        follows = (blank(asked) | is_mean) & (peak > 0)
        return numpy.select([follows, ~blank(asked), blank(active_users)], [numpy.nan, asked, 1], active_users)

    stated = ("users", "active_fraction", "concurrent_requests", "peak_requests_per_second")
    put("concurrent_requests", at_once, *stated)


def check(grid: Grid, model_id: Callable[[int], str], errors: Column) -> None:
    """Report in `errors` what cannot go together in rows that have no error yet."""
    sound, trial = numpy.equal(errors, NO_TEXT), grid.again({})

    def refuse(bad: Callable[..., Column], reads: Sequence[str], reason: Callable[..., str]) -> None:
        """Refuse rows by a condition on some columns; the reason reads the row's number and the same columns."""
        trial.combine("is_refused", bad, reads, ROW)
        if not numpy.any(trial.columns["is_refused"][-1][1]):
            return
        rows = numpy.flatnonzero(trial.spread("is_refused", ROW) & sound)
        columns = [grid.spread(name, ROW) for name in reads]
        for row in rows:
            _report(errors, int(row), reason(row, *(column[row] for column in columns)))

    refuse(
        lambda context, limit: context > limit,
        ("context_tokens", "max_context_tokens"),
        lambda row, context, limit: (
            f"context_tokens is {context:,.0f}, over the {limit:,.0f} that {model_id(row)} allows."
            f" Use {limit:.0f} or less."
        ),
    )
    refuse(
        lambda length, context, limit: (length > limit) & (context <= limit),
        ("max_model_len", "context_tokens", "max_context_tokens"),
        lambda row, length, context, limit: (
            f"max_model_len is {length:,.0f}, over the {limit:,.0f} that {model_id(row)} allows."
        ),
    )
    refuse(
        lambda length, context: length < context,
        ("max_model_len", "context_tokens"),
        lambda row, length, context: f"max_model_len is {length:,.0f}, below the context of {context:,.0f} tokens.",
    )
    refuse(
        numpy.isnan,
        ("requests_per_second",),
        lambda row, rate: "the load is given twice, by the second and by the day. Keep one.",
    )
    refuse(
        lambda *stated: numpy.sum(numpy.asarray(stated) > 0, axis=0) > 1,
        ("users", "requests_per_day", "tokens_per_day"),
        lambda row, *stated: "users, requests_per_day and tokens_per_day are given together. Keep one.",
    )
    refuse(
        lambda users, active: numpy.isnan(users) & ~numpy.isnan(active),
        ("users", "active_fraction"),
        lambda row, users, active: "active_fraction is of users, who are not given. Give them, or leave it out.",
    )
    refuse(
        lambda people, active, asked: (people > 0) & (asked != round_up(people * active)) & ~numpy.isnan(active),
        ("users", "active_fraction", "concurrent_requests"),
        lambda row, people, active, asked: (
            f"users is {people:,.0f}, {active:.6g} of them active, and concurrent_requests {asked:,.10g}. Keep one."
        ),
    )
    refuse(
        lambda prompt, answer, context: (prompt < 0) | (answer < 0) | (prompt + answer > context),
        ("input_tokens", "output_tokens", "context_tokens"),
        lambda row, prompt, answer, context: (
            f"input_tokens and output_tokens do not fit in the context of {context:,.0f} tokens."
        ),
    )

    def is_uneven(heads: Column, size: Column) -> Column:
        return numpy.mod(heads, numpy.maximum(size, 1)) > 0

    refuse(
        is_uneven,
        ("n_heads", "tensor_parallel_size"),
        lambda row, heads, size: (
            f"tensor_parallel_size is {size:.0f}, which does not divide the {heads:.0f} heads of {model_id(row)}."
        ),
    )
    refuse(
        lambda heads, full, windowed, size: (
            ~is_uneven(heads, size) & numpy.equal(heads_divide(heads, full, windowed, size), 0)
        ),
        ("n_heads", "full_kv_heads", "windowed_kv_heads", "tensor_parallel_size"),
        lambda row, heads, full, windowed, size: (
            f"tensor_parallel_size is {size:.0f}, over which the KV heads of {model_id(row)}"
            f" ({' and '.join(f'{count:.0f}' for count in (full, windowed) if count)}) cannot be shared:"
            " engines refuse it."
        ),
    )
    refuse(
        lambda stages, layers: stages > layers,
        ("pipeline_parallel_size", "n_layers"),
        lambda row, stages, layers: (
            f"pipeline_parallel_size is {stages:.0f}, more than the {layers:.0f} layers of {model_id(row)}."
        ),
    )


_ALL_MODELS: dict[str, tuple[Model, ...]] = {}  # by the catalogs' hash, the last one only, as reading them takes long


class Reference:
    """The catalogs that a question was put to. Every part is read when it is first needed, and once.

    Each raises CatalogError where its file is missing or wrong.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @cached_property
    def sha256(self) -> str:
        return self.catalog.catalog_sha256()

    @cached_property
    def assumptions(self) -> Mapping[str, Assumption]:
        from sheetgen.catalog.guidance import assumptions

        return assumptions(self.catalog)

    def assumption(self, name: str) -> float:
        """The value of an assumption that is a number."""
        from sheetgen.catalog.guidance import number

        return number(dict(self.assumptions), name)

    @cached_property
    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Fingerprints of the catalogs, as the page shows them."""
        from sheetgen.catalog.guidance import fingerprints

        return fingerprints(self.catalog)

    @cached_property
    def launchers(self) -> Mapping[str, Launcher]:
        """How engines are launched, by engine."""
        from sheetgen.catalog.stacks import StackFile

        return {launcher.engine: launcher for launcher in self.catalog.file(StackFile).launchers}

    @cached_property
    def hosted(self) -> HostedFile:
        """Prices that hosts ask for a million tokens, by model."""
        from sheetgen.catalog.hosted import hosted_file

        return hosted_file(self.catalog)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """Every model that can serve: drafts of others are left out."""
        if self.sha256 not in _ALL_MODELS:
            _ALL_MODELS.clear()
            _ALL_MODELS[self.sha256] = tuple(m for m in self.catalog.models() if m.kind != "draft")
        return _ALL_MODELS[self.sha256]

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """Every GPU whose memory is known."""
        return tuple(g for g in self.catalog.gpus() if g.memory.engine_bytes)

    @cached_property
    def plausible(self) -> Plausible:
        """Bounds that a price is held against."""
        return plausible_of(self.catalog)


@dataclass(frozen=True)
class Resolved:
    """The catalog entries that the names of one row stand for, and its precisions."""

    model: Model
    gpu: Gpu
    engine: Engine
    weight_dtype: str
    kv_cache_dtype: str
    draft: Model | None
    speed: SpeedFile


def resolve(row: Options, catalog: Catalog) -> Resolved:
    """The catalog entries that the names of one row stand for, and the precisions that `auto` stands for.

    Raises ScenarioError with every name that the catalogs do not know.
    """
    problems = Problems()
    attempt = problems.attempt
    model, named_dtype = attempt(served_model, row["model"], catalog) or (None, None)
    weight = attempt(parse.dtype, row["weight_dtype"], "weight_dtype")
    kv = attempt(parse.dtype, row["kv_cache_dtype"], "kv_cache_dtype")
    gpu = attempt(catalog.gpu, str(row["gpu"]))
    engine = attempt(load_engine, catalog, str(row["engine"]), row["engine_version"])
    targets = [] if model is None else [model]
    draft = attempt(draft_model, str(row["draft_model"]), targets, catalog) if row["draft_model"] else None
    attempt(parse.one_of, row["kv_allocation"], "kv_allocation", ("paged", "reserved"))
    speed = attempt(catalog.file, SpeedFile)
    if problems or model is None:
        raise ScenarioError(*dict.fromkeys(problems))
    published = named_dtype or model.weight_dtype
    if weight == RECOMMENDED:
        weight = recommended_weights(model, published, engine, (gpu,), catalog)
    weight = published if weight == PUBLISHED else weight
    kv = engine.auto_kv_dtype(model.kv_cache_dtype) if kv == AUTO else kv
    engine = engine.for_models([model.entry_id])
    if draft is not None:
        from sheetgen.catalog.stacks import StackFile

        engine, draft = engine.drafting(catalog.file(StackFile).speculative_tokens), at_weights(draft, weight)
    return Resolved(engine.as_kept(model), gpu, engine, weight, kv, draft, speed)


def served_model(name: object, catalog: Catalog) -> tuple[Model, str | None]:
    """The model of that name and the precision that the name states. Raises ScenarioError for a draft of another."""
    if name is None:
        raise ScenarioError("model is missing. Name one, such as 70b or meta-llama/Llama-3.1-70B-Instruct.")
    model, dtype = resolve_model(str(name), catalog)
    if model.kind == "draft":
        raise ScenarioError(f"model {model.id} is a draft of another model: name it as draft_model.")
    return model, dtype


def draft_model(name: str, targets: Sequence[Model], catalog: Catalog) -> Model | None:
    """A draft that can serve these models and whose whole cache `draft_columns` counts: one with full attention in
    every layer that has a cache.

    Raises CatalogError for a name that stands for nothing, ScenarioError with each model that it cannot serve.
    """
    if name.strip().lower() == MTP:
        if len(targets) > 1:
            raise ScenarioError(f"draft_model {MTP} is of one model. Name one model, or no draft.")
        return targets[0].own_draft() if targets else None
    draft = resolve_model(name, catalog)[0]
    shape = draft.shape()
    other = sum(shape[k] for k in ("n_windowed_layers", "n_mla_layers", "n_other_layers", "n_state_layers"))
    if other:
        has = f"draft_model {draft.id} has {other:.0f} layers with a window, a latent or a state"
        raise ScenarioError(f"{has}; only drafts with full attention throughout can be sized.")
    problems = [
        f"draft_model {draft.id} cannot serve {target.id}: {why}. Name another draft, or none."
        for target in targets
        if (why := why_no_draft(draft, target))
    ]
    if problems:
        raise ScenarioError(*problems)
    return draft


def at_weights(draft: Model, weight_dtype: str) -> Model:
    """A model's own layer as a draft, in the precision of the model's weights: 4-bit checkpoints leave that layer in 16
    bits. Another draft is returned unchanged."""
    if draft.id != MTP:
        return draft
    return draft.model_copy(update={"weight_dtype": weight_dtype if DTYPES[weight_dtype].linear_bytes >= 1 else "bf16"})


def why_no_draft(draft: Model, target: Model) -> str:
    """The reason why a model cannot be the draft of another; "" where it can. A draft proposes tokens of the target's
    vocabulary, and a head (EAGLE) reads the target's hidden states."""
    if draft.entry_id == target.entry_id:
        return "it is the model itself"
    if draft.vocab_size != target.vocab_size:
        return f"its vocabulary has {draft.vocab_size:,} tokens, the model's {target.vocab_size:,}"
    if draft.kind == "draft" and draft.hidden_size != target.hidden_size:
        return f"it reads hidden states of {draft.hidden_size:,} elements, the model's have {target.hidden_size:,}"
    if draft.params.total >= target.params.total:
        return f"it has {draft.params.total:,} parameters, the model {target.params.total:,}"
    return ""


def model_columns(model: Model, weight_dtype: str, kv_cache_dtype: str) -> Columns:
    """The numbers that a model and its precisions contribute."""
    weight, kv = DTYPES[weight_dtype], DTYPES[kv_cache_dtype]
    return {
        **model.shape(),
        **model.stage_shares(),
        "is_mixture": int(model.experts is not None),
        "checkpoint_bytes": model.checkpoint_bytes(weight_dtype),
        "linear_bytes": weight.linear_bytes,
        "other_bytes": weight.other_bytes,
        "activation_copy_bytes": weight.activation_copy_bytes,
        "kv_dtype_bytes": kv.kv_bytes,
        "kv_scale_bytes": kv.kv_scale_bytes,
        "plain_fp8_latent": 0,  # until a GPU is named
    }


# For the few GPUs without published peaks (RTX PRO 4500, Trainium): the least ratio of arithmetic to bandwidth among
# data-centre GPUs since Ampere (A100: 312 TFLOPS over 2.0 TB/s), and a PCIe 4 x16 link.
ASSUMED_FLOPS_PER_BYTE = 150
ASSUMED_LINK_BYTES_PER_SECOND = 32_000_000_000


SPEED_SCOPES: tuple[Scope, ...] = ("fitted", "other", "ranks", "stages", "anchored")  # as `measured_scope` counts
# Constants of formulas by definition: none is judged or fitted.
DEFINITIONS = {
    "operations_per_parameter": 2,  # a multiplication and an addition
    "activation_element_bytes": 2,  # 16 bits, whatever the weights have
    "ring_passes": 2,  # a ring all-reduce scatters and gathers
    "state_passes": 2,  # a recurrent state is read and written
    "average_answer_share": 0.5,  # of an answer, written on average
    "kinds_base": 2,  # of measured_kinds: each kind a digit
    "n_model_kinds": len(MODEL_KINDS),  # as speed_kind counts them
    "anchored_scope": SPEED_SCOPES.index("anchored"),
    "largest_graph": 512,  # requests in the largest batch that vLLM captures a CUDA graph of
    "largest_dense_graph": 256,  # up to which graphs are a step apart; twice that above
    "graph_step": 8,
    "most_z": 2.4,  # standard deviations up to which a chance is searched: 99 %
    "band_end_z": 1.2816,  # standard deviations to an end of an 80 % band
    **STAGES_IN_ORDER,
}
# Corrections that runs and start-up logs of a deployment set; 0 where none was given.
UNMEASURED_POOL = {"measured_pool_more_bytes": 0, "measured_pool_less_bytes": 0, "measured_pool_error_bytes": 0}
UNMEASURED = {
    "measured_tpot_factor": 0, "measured_ttft_factor": 0, "measured_request_factor": 0, **UNMEASURED_POOL,
}  # fmt: skip


KERNELS = ("expert_kernels", "state_kernels", "sparse_kernels")
OF_EVERY_SPEED = (
    "nvlink_gpus", "all_reduce_growth", "chunks_power", *KERNELS, "least_step_seconds", "network_hop_seconds",
)  # fmt: skip


def speed_columns(speed: SpeedFile, engine: Engine, gpu: Gpu, weight_dtype: str) -> Columns:
    """The numbers that an engine on a GPU contributes to speed; assumptions where the GPU's own are not published."""
    link = gpu.interconnect_bytes_per_second
    return {
        **speed.constants(engine.engine, gpu).model_dump(),
        **{name: getattr(speed, name) for name in OF_EVERY_SPEED},
        **DEFINITIONS,
        "eager_seconds_per_layer": speed.eager_seconds_per_layer,
        "memory_bandwidth_bytes_per_second": gpu.memory_bandwidth_bytes_per_second,
        "interconnect_bytes_per_second": link or ASSUMED_LINK_BYTES_PER_SECOND,
        "pair_link_bytes_per_second": gpu.pair_link_bytes_per_second or 0,
        "peak_flops": peak_flops(gpu, weight_dtype),
        "peak_flops_16_bit": peak_flops(gpu, "bf16"),
    }


def peak_flops(gpu: Gpu, weight_dtype: str) -> float:
    """The operations a second that a GPU's maker publishes for a precision of weights; an assumption where none are
    published."""
    return gpu.peak_flops_for(weight_dtype) or ASSUMED_FLOPS_PER_BYTE * gpu.memory_bandwidth_bytes_per_second


BAND_FIGURES = ("weights", "activation", "non_torch", "kv_pool")


def band_columns(engine: Engine, scope: str) -> Columns:
    """The errors of predictions of memory in a scope of measurements; NaN where no band is known."""
    columns: Columns = {}
    for figure in BAND_FIGURES:
        band, unit = engine.band(figure, scope), 1 if figure == "weights" else GIB
        name = f"{figure}_error_share" if figure == "weights" else f"{figure}_error_bytes"
        columns[f"{name}_low"] = band.low * unit if band else numpy.nan
        columns[f"{name}_high"] = band.high * unit if band else numpy.nan
    return columns


def model_kind(model: Model) -> ModelKind:
    """The kind of a model, as the bands of speed distinguish them."""
    return MODEL_KINDS[int(speed_kind.of(model.shape() | DEFINITIONS)) - 1]


def residual_columns(residuals: Mapping[str, float], kind: ModelKind, weight_dtype: str) -> Columns:
    """The factors of `SpeedFile.residuals` for a model's kind and precision, under the names that formulas read."""
    values = {"kind": kind, "dtype": weight_dtype}
    names = {
        f"{time}_of_{part}": f"{time}_of_{part}_{value}" for part, value in values.items() for time in ("tpot", "ttft")
    }
    return {name: residuals[source] for name, source in names.items()}


def speed_band_columns(speed: SpeedFile, scope: Scope, kind: ModelKind, engine: str, gpu: Gpu) -> Columns:
    """Both ends of the bands of speed in a scope, as factors on the prediction, under names such as
    `tpot_band_low_fitted`."""
    of_ends = itertools.product(SPEED_FIGURES, ENDS)
    ends = [getattr(speed.band(figure, end, scope, kind, engine, gpu), end) for figure, end in of_ends]
    return dict(zip(band_names(scope), ends, strict=True))


def band_columns_of_any_kind(speed: SpeedFile, scope: Scope) -> Columns:
    """The same for a scope whose bands are the same for all kinds of models and GPUs."""
    of_ends = itertools.product(SPEED_FIGURES, ENDS)
    return {
        name: speed.band_of_any_kind(figure, end, scope)
        for name, (figure, end) in zip(band_names(scope), of_ends, strict=True)
    }


def draft_columns(draft: Model | None) -> Columns:
    """The numbers that a speculative-decoding draft contributes: its own weights, its own KV per token."""
    shape = draft.shape() if draft else {}
    return {
        "draft_layers": shape.get("n_full_layers", 0),
        "draft_kv_heads": shape.get("full_kv_heads", 0),
        "draft_kv_width": shape.get("full_kv_width", 0),
        "draft_weights_bytes": draft_bytes(draft) if draft else 0,
    }


def draft_bytes(draft: Model) -> float:
    """Bytes of a draft's weights, from its checkpoint where one is known."""
    sized = draft.checkpoint_bytes(draft.weight_dtype)
    return sized or math.ceil(DTYPES[draft.weight_dtype].linear_bytes * draft.params.total)


@dataclass(frozen=True)
class Points:
    """Deployments as rows of a grid.

    inputs: every input, completed with the defaults used, as columns. errors: the reason why a row cannot be computed,
    or None. good: positions of the rows without error, which alone are in the grid. distinct: the entries that the
    rows' names stand for, along `axis`: `row`, or `names` where rows of a frame share them. reference: the catalogs.
    """

    inputs: Columns
    errors: Column
    good: Column
    grid: Grid
    axis: str
    distinct: Sequence[Resolved | None]
    reference: Reference

    @property
    def values(self) -> View:
        """The quantities that the formulas read, as columns of the rows."""
        return self.grid.table(*ROW)

    @property
    def names(self) -> list[Resolved]:
        """The catalog entries that the names of each row stand for."""
        if self.axis == "row":
            return list(self.distinct)  # type: ignore[arg-type]
        return [self.distinct[place] for place in self.grid.places["row", "names"]]


# By the names of a row: what they stand for (or why they cannot), and the numbers that they contribute.
NamedRows = dict[tuple[str, ...], tuple[Resolved | None, str | None, Columns | None]]
# Constants of the formulas, which every row has besides its inputs.
CONSTANTS = {
    "closed_loop": 1,  # 0 in rows that have a rate alone
    "seconds_in_an_hour": SECONDS_PER_HOUR,
    "bytes_per_gigabit": GBPS,
    **UNMEASURED,
}


def complete(given: Mapping[str, Column], n_rows: int, catalog: Catalog, by_names: NamedRows | None = None) -> Points:
    """Check and complete `given` (columns by input name; a missing column or a blank takes the default).

    by_names: the rows of one frame by their names, which are looked up once for all parts of the frame; what rows have
    in common then stands once in the grid.
    """
    texts, code, keys = _texts(given, n_rows)
    is_frame, by_names = by_names is not None, {} if by_names is None else by_names
    for key in keys:
        if key not in by_names:
            row, problems = dict(zip(NAMES, key, strict=True)), Problems()
            if names := problems.attempt(resolve, row, catalog):
                own = {**_named_columns(names), "kv_reserved": int(row["kv_allocation"] == "reserved")}
                by_names[key] = names, None, own
            else:
                by_names[key] = None, "\n".join(problems), None
    rows = [by_names[key] for key in keys]
    resolved = objects(names for names, _, _ in rows)
    errors = objects(error for _, error, _ in rows)[code]
    numbers = {name: number_column(name, given[name], errors) for name in NUMBERS if given.get(name) is not None}
    check_bounds(numbers, errors)
    stand_in = next((columns for _, _, columns in by_names.values() if columns), None)  # for names that are wrong
    named: Columns = {}
    if stand_in is not None:
        table = numpy.array([list((columns or stand_in).values()) for _, _, columns in rows], float)
        named = dict(zip(stand_in, table.T, strict=True))
    grid = _grid_of_groups(code, numbers, named) if is_frame else _grid_of_rows(code, numbers, named, n_rows)
    if named:
        fill(grid, [name.removeprefix(OWN) for name in named if name.startswith(OWN)], catalog.workloads())
        check(grid, lambda i: resolved[code[i]].model.id, errors)
    check_slices(resolved, code, numbers, errors)
    good = numpy.flatnonzero(numpy.equal(errors, NO_TEXT))
    at_version = NAMES.index("engine_version")
    versions = [names.engine.default_version if names else None for names in resolved]
    texts["engine_version"] = objects(v or key[at_version] for v, key in zip(versions, keys, strict=True))[code]
    inputs = {name: texts[name] if name in texts else grid.spread(name, ROW) for name in DEFAULTS}
    distinct = resolved if is_frame else resolved[code]
    if len(good) < n_rows:
        kept = {"row": good}
        if is_frame:
            kept["group"] = numpy.unique(grid.places["row", "group"][good])
        else:
            distinct = distinct[good]
        grid = grid.restricted(kept)
    return Points(inputs, errors, good, grid, "names" if is_frame else "row", distinct.tolist(), Reference(catalog))


def check_slices(resolved: Column, code: Column, numbers: Columns, errors: Column) -> None:
    """Report in `errors` each row that splits a replica over MIG slices, which reach no other GPU."""
    slices = numpy.array([bool(names and names.gpu.is_slice) for names in resolved], bool)
    for name in ("tensor_parallel_size", "pipeline_parallel_size"):
        if slices.any() and name in numbers:
            for i in numpy.flatnonzero(slices[code] & (numbers[name] > 1) & numpy.equal(errors, NO_TEXT)):
                gpu = resolved[code[i]].gpu.name
                errors[i] = f"{name} is {numbers[name][i]:.0f}, but {gpu} reaches no other GPU: a replica is one slice."


def _grid_of_rows(code: Column, numbers: Columns, named: Columns, n_rows: int) -> Grid:
    """A grid for rows that have nothing in common. code: for each row, which of the distinct combinations of names it
    has; their numbers are in `named`."""
    grid = Grid.over(row=n_rows)
    grid.put((), CONSTANTS)
    grid.put(ROW, {name: column[code] for name, column in named.items()})
    grid.put(ROW, {name: numpy.full(n_rows, _default(name)) for name in NUMBERS if name not in numbers})
    grid.put(ROW, numbers)
    return grid


def _grid_of_groups(code: Column, numbers: Columns, named: Columns) -> Grid:
    """A grid for rows in groups that share their names and the numbers that take few values."""
    group, first_row, few = _groups(code, numbers)
    grid = Grid.over(names=int(code.max(initial=-1)) + 1)
    grid = grid.along("group", {"names": code[first_row]}).along("row", {"group": group})
    grid.put((), CONSTANTS | {name: _default(name) for name in NUMBERS if name not in numbers})
    same = {name: column[0] for name, column in named.items() if (column == column[0]).all()}
    grid.put((), same)
    grid.put(("names",), {name: column for name, column in named.items() if name not in same})
    grid.put(("group",), {name: numbers[name][first_row] for name in few})
    grid.put(ROW, {name: column for name, column in numbers.items() if name not in few})
    return grid


ROWS_OF_A_GROUP = 4  # least average: with fewer rows, a group takes hardly less work than its rows


def _groups(code: Column, numbers: Columns) -> tuple[Column, Column, list[str]]:
    """Rows grouped by their names (`code`) and by the numbers that take few values. Returns the group of each row, one
    row of each group, and which numbers these are."""
    group, n_rows, few = code, len(code), list[str]()
    for name, column in numbers.items():
        sample = column[:: max(1, n_rows // 1024)]
        if 2 * len(set(sample.tolist())) <= len(sample):
            own, values = factorized(column.view(numpy.int64))
            both, pairs = factorized(group * len(values) + own)
            if len(pairs) * ROWS_OF_A_GROUP <= n_rows:
                group, few = both, [*few, name]
    one_row = numpy.zeros(group.max(initial=-1) + 1, int)
    one_row[group] = numpy.arange(n_rows)
    return group, one_row, few


MANY_ROWS = 1000  # from this many rows on it pays to import pandas


def factorized(column: Column) -> tuple[Column, Column]:
    """For each row the position of its value among the column's distinct values, and these values in order of
    appearance."""
    if len(column) > MANY_ROWS and getattr(column, "dtype", None) in (object, int):
        import pandas

        return pandas.factorize(column, use_na_sentinel=False)
    column = column.tolist() if isinstance(column, numpy.ndarray) else list(column)
    places = {value: i for i, value in enumerate(dict.fromkeys(column))}
    return numpy.fromiter(map(places.__getitem__, column), int, len(column)), list(places)


def objects(values: Iterable[object]) -> Column:
    """A numpy column of objects, whatever their type."""
    listed = list(values)
    column = numpy.empty(len(listed), object)
    column[:] = listed
    return column


def _texts(given: Mapping[str, Column], n_rows: int) -> tuple[Columns, Column, list[tuple[str, ...]]]:
    """The names of the rows as columns of text; for each row which combination of names it has; and all
    combinations."""
    codes, choices = zip(*(_distinct(given.get(name), n_rows, DEFAULTS[name]) for name in NAMES), strict=True)
    columns = {name: objects(texts)[code] for name, code, texts in zip(NAMES, codes, choices, strict=True)}
    sizes = list(map(len, choices))
    if not n_rows:
        return columns, numpy.zeros(0, int), []
    code, every = factorized(numpy.ravel_multi_index(codes, sizes))
    places = zip(*(positions.tolist() for positions in numpy.unravel_index(every, sizes)), strict=True)
    return columns, code, [tuple(texts[i] for texts, i in zip(choices, row, strict=True)) for row in places]


def _distinct(given: Column, n_rows: int, default: str) -> tuple[Column, list[str]]:
    """For each row the position of its text among the column's distinct texts, and these texts; the default where
    blank."""
    if given is None:
        return numpy.zeros(n_rows, int), [default]
    try:
        code, values = factorized(given)
    except TypeError:  # what cannot be hashed is read as text
        code, values = factorized([v if v.__hash__ else str(v) for v in given])
    texts = [default if is_blank(v) else str(v).strip() for v in values]
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return numpy.array([places[text] for text in texts], int)[code], list(places) or [default]


def _named_columns(names: Resolved) -> Columns:
    """All numbers that the names of a row contribute, the engine's defaults among them.

    Bands of memory have names that end in _here where the constants were set on this GPU and version, up to the largest
    TP among the runs, and in _elsewhere; bands of speed end in their scope.
    """
    engine, gpu, kind = names.engine, names.gpu, model_kind(names.model)
    memory = gpu.memory.engine_bytes
    here = engine.band_scope(gpu)
    measured = here == "calibrated" and names.draft is None
    of_gpu = memory / GIB, gpu.architecture
    own = {
        **engine_defaults(engine),
        **dict(zip(("max_num_seqs", "max_num_batched_tokens"), engine.batch_limits(*of_gpu), strict=True)),
        "gpu_memory_utilization": engine.utilization_on(*of_gpu),
    }
    return {
        **model_columns(names.model, names.weight_dtype, names.kv_cache_dtype),
        **engine.columns(),
        **{f"{k}_here": v for k, v in band_columns(engine, here).items()},
        **{f"{k}_elsewhere": v for k, v in band_columns(engine, engine.scope_elsewhere(gpu)).items()},
        "calibrated_tensor_parallel_size": engine.calibrated_tensor_parallel_size if measured else 0,
        **draft_columns(names.draft),
        **speed_columns(names.speed, engine, gpu, names.weight_dtype),
        **residual_columns(names.speed.residuals(engine.engine, gpu), kind, names.weight_dtype),
        **{
            name: end
            for scope in SPEED_SCOPES
            for name, end in speed_band_columns(names.speed, scope, kind, engine.engine, gpu).items()
        },
        "speed_kind": MODEL_KINDS.index(kind) + 1,
        "gpu_memory_bytes": memory,
        "measured_kinds": 0 if names.draft else names.speed.measured_kinds(engine.engine, gpu),
        "is_older_gpu": int(engine.is_older(gpu.architecture)),
        "has_heavier_graphs": int(engine.has_heavier_graphs(gpu.architecture)),
        "shares_host_memory": int(gpu.memory.shared_with_host),
        "runs_sparse_attention": int(engine.runs_sparse_attention(gpu.architecture)),
        "plain_fp8_latent": int(engine.keeps_plain_fp8_latents(gpu.architecture)),
        **{OWN + name: value for name, value in own.items()},
    }
