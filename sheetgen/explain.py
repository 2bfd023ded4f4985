"""How one number came about: its formula with names, the same with values, and where every input is from: given, a
default, a catalog file, an assumption, or other inputs.

The formula's text is the formula function itself, read with the inputs' names and then with their values
(`Expr`), so it is the text that the workbook has, and nothing is written down twice.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import cast

from sheetgen.answer.solution import Solution
from sheetgen.api import Sized
from sheetgen.catalog.engines import CONSTANTS, Figure, Scope, SpeedConstants, SpeedFile
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.formula import Formula
from sheetgen.program.declared import by_name
from sheetgen.program.grid import Column
from sheetgen.program.quantities import BANDS_OF, OF_RUNNING, POINT, TOKENS, speed_ends
from sheetgen.program.quantities import SPEED as SPEED_OF_A_POINT
from sheetgen.program.row_program import DEPLOYMENT, ROW, evaluate_deployments
from sheetgen.program.sheet_program import BESIDE_DRAFT, counted
from sheetgen.question.deployment import (
    ASSUMED_FLOPS_PER_BYTE,
    DEFAULTS,
    DEFINITIONS,
    KERNELS,
    RATES,
    UNMEASURED_POOL,
    Reference,
    Resolved,
    model_kind,
)
from sheetgen.question.inputs import OF_A_POINT, OF_SETTINGS
from sheetgen.question.measurements import MeasuredDeployment
from sheetgen.question.parse import Options, Raw
from sheetgen.shipped import shipped_table
from sheetgen.sizing import certainty, cost, draft, kv_cache, parallelism, rates, speed, verdicts, weights
from sheetgen.units import AUTO, DTYPES, ENDS, GIB, PUBLISHED


@dataclass(frozen=True)
class Origin:
    """The origin of a number.

    kind: given, default, catalog, assumption, computed or search. about: a sentence, or the place in a file. inputs:
    the quantities that it follows from. source: the one stated at that place. file: the file of that place.
    """

    kind: str
    about: str
    inputs: tuple[str, ...] = ()
    source: str = ""
    file: str = ""


_BAND_FACTORS = {f"{figure}_band_{end}": figure for figure in BANDS_OF for end in ENDS}
# Factors that measured points set, and the figure that sets each.
_FACTORS = {"measured_tpot_factor": "tpot", "measured_ttft_factor": "ttft", "measured_request_factor": "tpot"}
_OF_LOGS = tuple(UNMEASURED_POOL)  # what start-up logs set
_WORDS = shipped_table("explain.toml")
_OF_ALL_SPEED = {**_WORDS["of_all_speed"], **dict.fromkeys(KERNELS, "kernels_source")}  # the field with the source
_RATES = ("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second")
_PEAKS = ("peak_flops", "peak_flops_16_bit")
_RESIDUALS = ("tpot_of_kind", "tpot_of_dtype", "ttft_of_kind", "ttft_of_dtype")
# The peak that weights of a precision are multiplied at where the GPU has it.
_PEAK_OF = {"fp8": "fp8", "fp8_e5m2": "fp8", "int8": "int8", "nvfp4": "fp4", "mxfp4": "fp8"}
_WIDER_PEAKS = (("bf16", 1), ("fp16", 1), ("fp8", 2), ("fp4", 2), ("fp8", 4), ("fp4", 4))
_PARTS = {1: "", 2: "half of ", 4: "a quarter of "}
# Quantities that neither a formula nor a file gives, and those that are searched for: a sentence, and the inputs.
DERIVED, SEARCHED = (
    {name: (follows["about"], tuple(follows["inputs"])) for name, follows in _WORDS[part].items()}
    for part in ("derived", "searched")
)
SEARCHED |= {
    f"{name}_{end}": (f"The {end} end of the 80 % error band of {name}.", (name, f"{error}_{end}"))
    for name, error in _WORDS["band_ends"].items()
    for end in ENDS
}
ADDED_BY_DRAFT = {"other_bytes_per_token": "draft_bytes_per_token", "n_other_layers": "draft_layers"}
_FIELDS = {name: tuple(place.split(".")) for name, place in _WORDS["fields"].items()}  # in the model's file
# By column, the field of the engine's file that names its source.
_ENGINE = {constant.column: constant.source for constant in CONSTANTS}
_FITTED = ("activation_source", "cuda_graph_source")  # measured on some machines, assumed on others


@dataclass(frozen=True)
class Origins:
    """The origins of one deployment's inputs."""

    names: Resolved
    overrides: Options  # what the user gave, under the long names
    reference: Reference
    scope: str = "other"  # which runs the bands of speed are from
    measured: MeasuredDeployment | None = None

    def of(self, name: str) -> Origin:
        names, engine = self.names, self.names.engine
        if name in SEARCHED:
            return Origin("search", *SEARCHED[name])
        if name in DEFAULTS:
            return self._of_input(name)
        if figure := _FACTORS.get(name):
            return self._measured(figure)
        if name in _OF_LOGS:
            return self._of_logs(name)
        if name in DERIVED:
            about, inputs = DERIVED[name]
            if name == "non_torch_bytes_per_tp":
                return self._of_engine(f", {about}", engine.non_torch_source, "assumption", inputs)
            return Origin("computed", about, inputs)
        if column := _WORDS["precision"].get(name):
            option, precision = column["option"], column["about"]
            dtype, kind = getattr(names, option), "given"
            why = f"{option} {dtype}"
            if str(self.overrides.get(option) or AUTO) in (AUTO, PUBLISHED):
                kind, why = "default", f"{why}, the checkpoint's own"
            return Origin(kind, f"{precision} in {DTYPES[dtype].about} ({why})")
        if name in _ENGINE:
            kind = "assumption" if _ENGINE[name] in _FITTED else "catalog"
            return self._of_engine("", getattr(engine, _ENGINE[name]), kind)
        if "_error_" in name:
            return self._of_engine(", bands", engine.bands_source or "", "assumption")
        if name == "gpu_memory_bytes":
            memory = names.gpu.memory
            kind = "assumption" if memory.basis == "assumed" else "catalog"
            return self._in_file(f"gpus/{names.gpu.entry_id}.yaml", ("memory", "engine_bytes"), "", memory.source, kind)
        if name == "checkpoint_bytes":
            return self._checkpoint()
        if name.startswith("draft_"):
            if names.draft is None:
                return Origin("default", "no draft model")
            return self._in_file(f"models/{names.draft.entry_id}.yaml", None, "", names.draft.source)
        return self._of_speed_or_model(name)

    def _in_file(
        self,
        relative: str,
        loc: tuple[str | int, ...] | None,
        words: str,
        source: str,
        kind: str = "catalog",
        inputs: tuple[str, ...] = (),
    ) -> Origin:
        """A number in a file of the catalogs: at `loc`, or without a line."""
        document = self.reference.catalog.read_document(relative)
        place = document.where if loc is None else document.at(loc)
        return Origin(kind, place + words, inputs, source, document.where)

    def _of_engine(self, words: str, source: str, kind: str, inputs: tuple[str, ...] = ()) -> Origin:
        return self._in_file(f"engines/{self.names.engine.engine}.yaml", None, words, source, kind, inputs)

    def of_gpu(self, loc: tuple[str, ...], words: str = "", kind: str = "catalog") -> Origin:
        gpu = self.names.gpu
        return self._in_file(f"gpus/{gpu.entry_id}.yaml", loc, words, gpu.source, kind)

    def _of_input(self, name: str) -> Origin:
        if self.overrides.get(name) is not None:
            return Origin("given", f"typed: {self.overrides[name]}")
        if name == "concurrent_requests":
            if self.overrides.get("active_fraction") is not None:
                return Origin("computed", ACTIVE_USERS)
            if any(self.overrides.get(name) is not None for name in RATES):
                return Origin("computed", "as many as are answered as fast as they arrive, whole requests")
            return Origin("default", "one request")
        if DEFAULTS[name] is not None:
            return Origin("default", "the default of sheetgen")
        if name in ("max_model_len", "input_tokens", "output_tokens"):
            return Origin("default", "follows from context_tokens", ("context_tokens",))
        source = self.names.engine.batch_defaults_source if name.startswith("max_num") else ""
        return self._of_engine(", the engine's own", source, "default")

    def _measured(self, figure: str) -> Origin:
        """The runs of this deployment that set a figure's times; 0 where none was given."""
        runs = [
            f"{1000 * measured:,.6g} ms measured over {1000 * getattr(run, f'predicted_{figure}_seconds'):,.6g} ms"
            f" predicted, {run.point.load_words} ({run.point.source})"
            for run in (self.measured.runs if self.measured else ())
            if (measured := getattr(run.point, f"{figure}_seconds")) is not None
        ]
        return Origin("given", f"measured: {'; '.join(runs)}") if runs else Origin("default", "0: not measured")

    def _of_logs(self, name: str) -> Origin:
        """The start-up logs of this deployment that set its pool; 0 where none was given."""
        starts = [
            f"{start.kv_pool_bytes / GIB:,.2f} GiB printed, {start.predicted_kv_pool_bytes / GIB:,.2f} GiB predicted"
            f" ({start.pool.source})"
            for start in (self.measured.starts if self.measured else ())
        ]
        if not starts:
            return Origin("default", "0: not measured")
        if name == "measured_pool_error_bytes":
            return Origin("assumption", "the band of start-up logs", source="catalogs/assumptions.yaml")
        return Origin("given", f"measured: {'; '.join(starts)}")

    def _checkpoint(self) -> Origin:
        model, dtype = self.names.model, self.names.weight_dtype
        file, size = f"models/{model.entry_id}.yaml", model.checkpoint_bytes(dtype)
        for i, checkpoint in enumerate(model.checkpoints):
            if size and checkpoint.weight_dtype == dtype and checkpoint.size_bytes == size:
                words = f", {checkpoint.hf_id or checkpoint.format}"
                return self._in_file(file, ("checkpoints", i, "size_bytes"), words, checkpoint.source)
        return self._in_file(file, ("checkpoints",), ", no checkpoint of this precision is known", "")

    def _of_speed_or_model(self, name: str) -> Origin:
        """The origin of a catalog's number that speed reads; any other number is in the model's file."""
        gpu, speed, model = self.names.gpu, self.names.speed, self.names.model
        if name in SpeedConstants.model_fields:
            return self._constant(name)
        if name in _RESIDUALS:
            return self._residual(name)
        if source := _OF_ALL_SPEED.get(name):
            return self._in_file(SpeedFile.file_name, (name,), "", getattr(speed, source))
        if name in DEFINITIONS:
            return Origin("default", "a definition: " + name.replace("_", " "))
        if name in _RATES:
            if getattr(gpu, name) is None:
                return self.of_gpu((name,), ", none is published: that of PCIe 4 x16 is assumed", "assumption")
            return self.of_gpu((name,), f", {gpu.interconnect}" if name.startswith("interconnect") else "")
        if name == "pair_link_bytes_per_second":
            return self.of_gpu(("interconnect",), f", {gpu.interconnect}")
        if name in _PEAKS:
            return self._peak(self.names.weight_dtype if name == "peak_flops" else "bf16")
        if figure := _BAND_FACTORS.get(name):
            engine = self.names.engine.engine
            end = name.rsplit("_", 1)[-1]
            band = speed.band(cast(Figure, figure), end, cast(Scope, self.scope), model_kind(model), engine, gpu)
            band_of = band.gpu or " ".join(filter(None, (band.generation, band.engine, band.kind)))
            words = f", 80 % of {band.n_rows:,} runs ({band.scope}, {band_of})"
            return self._in_file(SpeedFile.file_name, ("bands", speed.bands.index(band)), words, speed.bands_source)
        if "_share_of_" in name:  # of the layers on a stage
            name = "layers_in_order"
        loc = _FIELDS.get(name) or ((name,) if hasattr(model, name) else ("attention",))
        return self._in_file(f"models/{model.entry_id}.yaml", loc, "", model.source)

    def _constant(self, name: str) -> Origin:
        """The cell of the engine on this generation of GPUs, or the constants of all where it has none."""
        speed, engine, gpu = self.names.speed, self.names.engine, self.names.gpu
        cell = speed.cell(engine.engine, gpu)
        if cell is None:
            words = f", default: no runs of {engine.name} on {gpu.architecture}"
            return self._in_file(SpeedFile.file_name, ("default", name), words, speed.default_source)
        alike = "" if cell.engine == engine.engine else f", which stand in for {engine.name} ({speed.same_as_source})"
        words = f", fitted on {cell.n_rows:,} runs of {cell.engine} on {cell.generation}{alike}"
        loc = ("cells", speed.cells.index(cell), "constants", name)
        return self._in_file(SpeedFile.file_name, loc, words, speed.source)

    def _residual(self, name: str) -> Origin:
        """The engine's factor for a kind of model or a precision; 1 where nothing was measured."""
        speed, engine, gpu = self.names.speed, self.names.engine, self.names.gpu
        cell = speed.cell(engine.engine, gpu)
        figure, _, kind_or_dtype = name.partition("_")
        subject = model_kind(self.names.model) if kind_or_dtype == "of_kind" else self.names.weight_dtype
        if cell is None or subject not in getattr(cell, kind_or_dtype):
            return self._in_file(SpeedFile.file_name, ("cells",), f", 1: no runs of {subject} here", speed.source)
        words = f", {subject}: pooled over runs of {cell.engine} on {cell.generation}"
        loc = ("cells", speed.cells.index(cell), kind_or_dtype, subject, figure)
        return self._in_file(SpeedFile.file_name, loc, words, speed.source)

    def _peak(self, weight_dtype: str) -> Origin:
        """The published peak of the GPU at which weights of this precision are multiplied."""
        gpu = self.names.gpu
        peaks, flops = gpu.peak_dense_flops, gpu.peak_flops_for(weight_dtype)
        own = _PEAK_OF.get(weight_dtype)
        for peak, parts in (*([(own, 1)] if own else []), *_WIDER_PEAKS):
            if flops is not None and (getattr(peaks, peak) or 0) // parts == flops:
                other = ": no other is published" if parts > 1 else ""
                words = f", {_PARTS[parts]}the dense {peak} peak, for {weight_dtype} weights{other}"
                return self.of_gpu(("peak_dense_flops", peak), words)
        assumed = f"{ASSUMED_FLOPS_PER_BYTE} operations a byte of its bandwidth are assumed, as of the A100"
        return self.of_gpu(("peak_dense_flops",), f", no peak is published: {assumed}", "assumption")


def _formulas_of(*modules: ModuleType) -> list[Formula]:
    return [f for module in modules for f in vars(module).values() if isinstance(f, Formula)]


# Formulas of sizing.speed that `explain` does not list; both ends of a band are listed under names of their own.
_NOT_OF_SIZE = (
    speed.at_speed_band,
    speed.band_of_scope,
    speed.scope_of_factor,
    speed.of_measurements,
    speed.waiting_requests,
    speed.output_tokens_per_second_per_gpu,  # of DESCRIBED
    speed.network_bytes_per_second,  # one network for all; here --network-gbps
)
SPEED = tuple(dict.fromkeys((*SPEED_OF_A_POINT, *(f for f in _formulas_of(speed) if f not in _NOT_OF_SIZE))))
_OF_A_POINT = (*POINT, verdicts.chance, draft.draft_bytes_per_token, *SPEED)
QUANTITIES: dict[str, Formula] = {f.name: f for f in _OF_A_POINT}
# Both ends of the bands of speed: what was predicted, and its factor.
SPEED_BANDS = {name: at_end.inputs for name, at_end in by_name(speed_ends())}
# Quantities of the model before division over GPUs; all that they read is read so, too.
WHOLE = ("kv_bytes_per_token", "state_bytes_per_sequence")
# Results that no formula gives: the catalogs and the engine do.
GIVEN = ("n_params", "n_params_active", "gpu_memory_bytes")
# Results of which a sentence of DERIVED says how they follow.
DESCRIBED = ("output_tokens_per_second_per_gpu", "speed_scope", "queue")
TEXTS = ("speed_scope", "queue")
_PACE_NAMES = frozenset(f.name for f in OF_RUNNING)
# Results that are infinite where requests arrive faster than they are served.
AT_AN_END = ("ttft_seconds", "ttft_seconds_low", "ttft_seconds_high", "bound_by")
ENDLESS = " (Of the requests at once: with those that arrive their queue grows without bound, see `grows`.)"
READ_AGAIN: Mapping[str, Mapping[str, str]] = _WORDS["read_again"]
CIRCUMSTANCES: Mapping[str, str] = _WORDS["circumstances"]
CIRCUMSTANCES_AGAIN = ("longest", "filled", "full")


ACTIVE_USERS = "users x active_fraction, rounded up"
# Quantities of a recommendation that can be explained, in the order in which they come about.
CHOICE_QUANTITIES = (
    "load_requests", "charge_bytes", "steady_bytes", "pipeline_stages", "sequences", "paced_requests", "n_replicas",
    "replicas_per_instance", "n_instances", "served_at_target", "memory_holds", "paid_hours_per_month", "hourly_usd",
    "monthly_usd", "annual_usd", "three_year_usd", "usd_per_user_per_month", "headroom_fraction",
)  # fmt: skip
CHOICE_FORMULAS = QUANTITIES | {
    f.name: counted(f) for f in _formulas_of(weights, kv_cache, parallelism, certainty, rates, cost)
}
for _name in (
    "batch_limit",
    "full_batch_requests",
    "full_turn_seconds",
    "held_inside",
):  # found by trying, or as long as a page
    del CHOICE_FORMULAS[_name]
# Before it is known how many stages a replica has, a rank's weights are read without stages, and without a draft.
READ_AS = {
    "loaded_weights_bytes_per_gpu": "rank_weights_bytes",
    "activation_bytes_per_gpu": "profile_peak_bytes",
    "non_torch_bytes_per_gpu": "non_torch_bytes_per_tp",
}
# The same quantities where the load is a rate.
OF_A_RATE = {"load_requests": "places", "served_at_target": "served_requests_per_second"}
# Origins of the other inputs of a choice, which are in no file.
OF_A_CHOICE = {
    **{name: Origin(kind, about) for kind, inputs in _WORDS["of_a_choice"].items() for name, about in inputs.items()},
    **dict.fromkeys(cost.CONSTANTS, Origin("default", "what it is counted in")),
}
_PRICES = ("price_usd_per_hour", "listed_usd_per_hour")
_OF_INSTANCE = ("gpu_count", "network_gbps", "nvlink_domain_gpus")
_OF_A_SHEET = tuple(setting.name for setting in OF_SETTINGS if setting not in OF_A_POINT)


@dataclass(frozen=True)
class Step:
    """One quantity of a derivation. `origin` is computed, given, default, catalog, assumption or search; `file` is the
    file of a number that no formula gives."""

    name: str
    label: str
    value: Raw
    unit: str
    origin: str
    about: str = ""
    reading: str = ""
    formula: str = ""
    with_values: str = ""
    source: str = ""
    inputs: list[Step] = field(default_factory=list)
    file: str = ""


def _given(name: str, value: Raw, origin: Origin, inputs: Iterable[Step] = ()) -> Step:
    """A quantity that no formula gives."""
    label, unit = name.replace("_", " "), unit_of(name)
    return Step(name, label, value, unit, origin.kind, origin.about, "", "", "", origin.source, [*inputs], origin.file)


def _computed(
    name: str,
    formula: Formula,
    value: Raw,
    reads: Iterable[str],
    inputs: list[Step],
    shown: Iterable[Raw],
    about: str = "",
    reading: str = "",
) -> Step:
    """A quantity by its formula, whose text is shown with the function's names, with the names that it reads and with
    the `shown` values."""
    names, values = spaced(formula.text_of_names(reads)), spaced(formula.text_of_values(shown))
    about = formula.summary + about
    return Step(
        name, formula.label, value, unit_of(name), "computed", about, reading, names, values, formula.source, inputs
    )


class Derivation:
    """All readings of one sized deployment. `step(name, reading="point")` is the derivation of a quantity, down to the
    inputs from catalogs and question."""

    def __init__(self, sized: Sized, overrides: Options) -> None:
        known_quantities, undivided = sized.known, sized.points.grid.again({"tensor_parallel_size": 1})
        evaluate_deployments(undivided)
        again = {name: sized.grid.read_again(DEPLOYMENT.again(name), DEPLOYMENT) for name in CIRCUMSTANCES_AGAIN}
        self.readings: dict[str, Mapping[str, Column]] = {
            "point": known_quantities,
            "whole": undivided.table(*ROW),
            **{name: grid.table(*ROW) for name, grid in again.items()},
        }
        self.before_draft = sized.points.values
        self.readings["undrafted"] = {**known_quantities, **{name: self.before_draft[name] for name in ADDED_BY_DRAFT}}
        self.texts = {name: sized.results[name][0] for name in TEXTS}
        self.grows = bool(known_quantities["grows"][0] == 1)
        names, scope = sized.points.names[0], self.texts["speed_scope"]
        self.origins = Origins(
            names, overrides, sized.points.reference, scope, next(iter(sized.measured.deployments), None)
        )
        self.step = functools.cache(self._step)

    def value(self, name: str, reading: str = "point") -> Raw:
        values = self.readings[reading]
        if name in self.texts:
            return self.texts[name]
        source = values if name in values and name != "draft_layers" else self.before_draft
        number = source[name]
        number = number.reshape(-1)[0] if hasattr(number, "reshape") else number
        return str(number) if isinstance(number, str) else _plain(number)

    def _step(self, name: str, reading: str = "point") -> Step:
        if again := READ_AGAIN.get(name):
            quantity, circumstance = again["quantity"], again["circumstance"]
            inner = self.step(quantity, circumstance)
            about = f"{quantity}, {CIRCUMSTANCES[circumstance]}"
            return Step(name, inner.label, inner.value, inner.unit, "computed", about, inputs=[inner])
        if name in WHOLE:
            reading = "whole"
        if name == "speed_kind" and self.origins.names.draft is not None:
            reading = "undrafted"
        if name in ADDED_BY_DRAFT and self.origins.names.draft is not None and reading != "undrafted":
            added = ADDED_BY_DRAFT[name]
            own = int(self.origins.names.model.shape()[name])
            origin = Origin("computed", f"the model's own {own:,} and the draft model's {added}")
            return _given(name, self.value(name, reading), origin, [self.step(added, reading)])
        if name == "max_requests_per_second":
            reading = "full"
        formula = speed.at_speed_band if name in SPEED_BANDS else QUANTITIES.get(name)
        if formula is None:
            origin = self.origins.of(name)
            if name == "tensor_parallel_size" and reading == "whole":
                origin = Origin("computed", "1, as for one undivided GPU")
            return _given(name, self.value(name, reading), origin, [self.step(i, reading) for i in origin.inputs])
        reads = SPEED_BANDS.get(name, formula.inputs)
        inputs = [self._input(i, reading) for i in reads]
        values = [step.value for step in inputs]
        value = self.value(name, reading) if name in self.readings[reading] else formula.function(*values)
        if any(value != value for value in values):  # no band is known: none follows from it
            return _given(name, _number_or_none(value), Origin("computed", formula.summary), inputs)
        about = ENDLESS if self.grows and name in AT_AN_END else ""
        return _computed(name, formula, value, reads, inputs, values, about, CIRCUMSTANCES[reading])

    def _input(self, name: str, reading: str) -> Step:
        if reading == "full" and name not in _PACE_NAMES:
            return self.step("full_house" if name == "running_requests" else name)
        tokens = {formula.name: formula.label for formula in TOKENS}
        if reading == "longest" and name in tokens:
            return Step(name, tokens[name], self.value(name, reading), "tokens", "computed", "max_model_len")
        if reading == "filled" and name in tokens:
            return self.step("filled_tokens")
        return self.step(name, reading)


class ChoiceDerivation:
    """How a recommendation's numbers came about: replicas, instances and money of the chosen instance, of the one cell
    of `recommend`; `overrides` holds what the user gave."""

    def __init__(self, solved: Solution, overrides: Options) -> None:
        question, offer = solved.question, solved.choices[0].offer
        if offer is None:
            raise ScenarioError(f"{solved.choices[0].verdict}: there is no recommendation to explain.")
        self.candidate = solved.candidate(offer)
        self.overrides = overrides
        model = question.models[question.loads[0].model]
        names = Resolved(
            model.model,
            self.candidate.gpu,
            question.engine,
            model.weight_dtype,
            model.kv_cache_dtype,
            question.draft,
            question.speed,
        )
        self.origins = Origins(names, overrides, question.reference)
        less = question.discount(self.candidate.provider, self.candidate.purchase)
        discounted = {"price_usd_per_hour": "discounted_usd_per_hour"} if less else {}
        of_rate = OF_A_RATE if question.loads[0].requests_per_second else {}
        self.read_as, self.formulas = READ_AS | discounted | of_rate, CHOICE_FORMULAS
        if question.draft is not None:
            of_draft = {formula.name: formula for formulas in BESIDE_DRAFT.values() for formula in formulas}
            self.formulas = CHOICE_FORMULAS | of_draft
            self.read_as = {name: read for name, read in self.read_as.items() if name not in of_draft}
        self.values = {name: _number_or_none(column[0]) for name, column in solved.at(0, offer=offer).items()}
        self.step = functools.cache(self._step)

    def _step(self, name: str) -> Step:
        read_as = self.read_as.get(name, name)
        formula = self.formulas.get(read_as)
        if formula is None or any(i not in self.values for i in formula.inputs):
            origin = Origin("computed", formula.summary) if formula else self._origin(read_as)
            return _given(name, self.values[name], origin)
        inputs = [self.step(i) for i in formula.inputs]
        if name in self.values:
            value = self.values[name]
        else:
            value = _number_or_none(formula.function(*(math.nan if i.value is None else i.value for i in inputs)))
        return _computed(name, formula, value, formula.inputs, inputs, [_as_shown(step.value) for step in inputs])

    def _origin(self, name: str) -> Origin:
        candidate = self.candidate
        if name in (*_PRICES, *_OF_INSTANCE):
            rows = self.origins.reference.catalog.instances()
            own = {row.region for row in rows if candidate.instance in (row.id, f"{row.id} x{candidate.gpu_count}")}
            is_elsewhere = name in _PRICES and bool(own) and candidate.region not in own
            file = f"catalogs/{'regions' if is_elsewhere else 'instances'}/{candidate.provider}.yaml"
            more = f", in {candidate.region}" if is_elsewhere else ""
            if name in _PRICES:
                more += f", {candidate.purchase}, read {candidate.price_as_of or 'on no stated date'}"
            stated = {"network_gbps": candidate.network_gbps, "nvlink_domain_gpus": candidate.nvlink_domain_gpus}
            more += "" if stated.get(name, True) else ", none is stated"
            return Origin("catalog", f"{file}, {candidate.instance}{more}", (), candidate.source, file)
        if name in ("runs_weights", "runs_kv"):
            return self.origins.of_gpu(("weights_run" if name == "runs_weights" else "kv_run",))
        if name in OF_A_CHOICE:
            return OF_A_CHOICE[name]
        if self.overrides.get(name) is not None:
            return Origin("given", f"typed: {self.overrides[name]}")
        return Origin("default", "the default of sheetgen") if name in _OF_A_SHEET else self.origins.of(name)


def _plain(number: Column) -> float:
    """A whole number as int, any other as float."""
    return float(number) if not math.isfinite(number) or number != int(number) else int(number)


def _number_or_none(number: Column) -> float | None:
    return None if number != number else _plain(number)


def _as_shown(value: Raw) -> Raw:
    """A value as a spreadsheet shows it: 15 digits of a number, a dash for none."""
    if value is None:
        return "-"
    return float(f"{value:.15g}") if isinstance(value, float) else value


def find(name: str) -> str:
    """The quantity called `name`. Raises ScenarioError with the nearest one."""
    key = name.strip().lower().replace("-", "_")
    quantity_names = (*QUANTITIES, *READ_AGAIN, *SEARCHED, *SPEED_BANDS, *GIVEN, *DESCRIBED, *CHOICE_QUANTITIES)
    if key not in quantity_names:
        near = did_you_mean(key, quantity_names)
        raise ScenarioError(f"quantity {shown(name)!r} is not known.{near} `sheetgen explain` lists all.")
    return key


def elsewhere(name: str) -> frozenset[str]:
    """The quantities at which a derivation stops: those of memory, under a quantity of speed."""
    of_speed = name in (*(f.name for f in SPEED), *SPEED_BANDS, *DESCRIBED)
    return frozenset((*(f.name for f in POINT), *READ_AGAIN)) if of_speed else frozenset()


_UNITS = (
    ("band", ""), ("fraction", ""), ("seconds", "seconds"), ("blocks", "blocks"), ("tokens", "tokens"),
    ("bytes", "bytes"), ("requests", "requests"), ("steps", "steps"), ("prompts", "prompts"),
)  # fmt: skip
_REQUESTS = ("max_concurrency", "running_capacity", "full_house")


def unit_of(name: str) -> str:
    """The unit that a quantity's name states."""
    words = name.split("_")
    if "band" not in words and "per_second" in name:
        return f"{name.split('_per_second')[0].split('_')[-1]} per second"
    if "flops" in words:
        return "operations per second" if name.startswith("peak") else "operations"
    for word, unit in _UNITS:
        if word in words and not (word == "tokens" and "bytes" in words):
            return unit
    return "requests" if name in _REQUESTS else "GPUs" if name == "min_gpus" else ""


_OPERATOR = re.compile(r'("[^"]*")|(,)|(<=|>=|<>|[+*/=<>]|(?<=[^(,+*/=<>-])-)')  # not a minus sign before a number


def spaced(text: str) -> str:
    """Formula text with spaces around its operators; quoted text stays."""
    return _OPERATOR.sub(lambda match: match[1] or (", " if match[2] else f" {match[3]} "), text)


def quantities() -> list[tuple[str, str, str]]:
    """Name, label and summary of everything that can be explained, in the order in which it comes about."""
    rows = [(f.name, f.label, f.summary) for f in QUANTITIES.values()]
    others = {name: about for name, (about, _) in SEARCHED.items()}
    for predicted, _ in SPEED_BANDS.values():
        others |= {f"{predicted}_{end}": f"The {end} end of the 80 % band of {predicted}." for end in ENDS}
    for name in DESCRIBED:
        about = DERIVED[name][0]
        others[name] = f"{about[0].upper()}{about[1:]}."
    rows += [(name, name.replace("_", " "), about) for name, about in others.items()]
    chosen = (CHOICE_FORMULAS[name] for name in CHOICE_QUANTITIES)
    return [*rows, *((f.name, f.label, f.summary) for f in chosen)]
