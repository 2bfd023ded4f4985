"""How one number came about: its formula with names, the same with values, and where every input is from.

The formula's text is the formula function itself, read with the inputs' names and then with their values
(`Expr`), so it is the text that the workbook has, and nothing is written down twice.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen import cost, estimate, provenance
from sheetgen.api import Sized
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.formula import Expr, Formula, literal
from sheetgen.provenance import Origin
from sheetgen.recommend import Solution
from sheetgen.scenario.deployment import Resolved
from sheetgen.scenario.inputs import OF_A_POINT, OF_SETTINGS
from sheetgen.sizing import kv_cache, parallelism, speed, weights


def _formulas_of(*modules: Any) -> list[Formula]:
    return [f for module in modules for f in vars(module).values() if isinstance(f, Formula)]


# What the formulas of speed are written with can be explained, too; the ends of bands have names of their own.
SPEED = tuple(dict.fromkeys((*estimate.SPEED, *(f for f in _formulas_of(speed) if f is not speed.at_speed_band))))
_OF_A_POINT = (*estimate.POINT, kv_cache.kv_bytes_per_sequence_steady, kv_cache.draft_bytes_per_token, *SPEED)
QUANTITIES: dict[str, Formula] = {f.name: f for f in _OF_A_POINT}
# Both ends of the bands of speed: what was predicted, and its factor.
SPEED_BANDS = {
    f"{name}_{end}": (name, f"{figure}_band_{end}")
    for figure, name in provenance.SPEED_FIGURES.items()
    for end in ("low", "high")
}
# Quantities that are another formula read once more, under other circumstances: its name, and which reading.
READ_AGAIN = {
    "unsharded_kv_blocks_per_sequence": ("kv_blocks_per_sequence", "whole"),
    "unsharded_kv_block_bytes": ("kv_block_bytes", "whole"),
    "full_kv_blocks_per_sequence": ("kv_blocks_per_sequence", "longest"),
    "filled_kv_blocks_per_sequence": ("kv_blocks_per_sequence", "filled"),
}
# Quantities of the model before division over GPUs; all that they read is read so, too.
WHOLE = ("kv_bytes_per_token", "state_bytes_per_sequence", "kv_bytes_per_sequence_steady")
# Results that no formula gives: the catalogs and the engine do.
GIVEN = ("n_params", "n_params_active", "gpu_memory_bytes", "cuda_graph_bytes_per_gpu")
# Results of which a sentence of `provenance` says how they follow.
DESCRIBED = ("output_tokens_per_second_per_gpu", "speed_scope", "queue")
TEXTS = ("speed_scope", "queue")
_PACE_NAMES = frozenset(f.name for f in estimate.PACE)
# What has no end where requests arrive faster than they are served.
AT_AN_END = ("ttft_seconds", "ttft_seconds_low", "ttft_seconds_high", "bound_by")
ENDLESS = " (Of the requests in flight: with those that arrive their queue grows without bound, see `grows`.)"
CIRCUMSTANCES = {
    "point": "",
    "whole": "read for one undivided GPU (tensor_parallel_size 1)",
    "longest": "read at charged_tokens = max_model_len",
    "filled": "read at charged_tokens = filled_tokens",
    "full": "read at running_requests = full_house",
}


# What can be explained of a recommendation, in the order in which it comes about.
CHOICE_QUANTITIES = (
    "load_requests", "charge_bytes", "pipeline_stages", "sequences", "n_replicas", "replicas_per_instance",
    "n_instances", "paid_hours_per_month", "hourly_usd", "monthly_usd", "annual_usd", "three_year_usd",
    "usd_per_user_per_month", "headroom_fraction", "sure_headroom_fraction",
)  # fmt: skip
CHOICE_FORMULAS = QUANTITIES | {f.name: f for f in _formulas_of(weights, kv_cache, parallelism, cost)}
del CHOICE_FORMULAS["batch_limit"]  # it is found by trying
# Before it is known how many stages a replica has, a rank's weights are read without stages and draft.
READ_AS = {
    "loaded_weights_bytes_per_gpu": "rank_weights_bytes",
    "activation_bytes_per_gpu": "profile_peak_bytes",
    "non_torch_bytes_per_gpu": "non_torch_bytes_per_tp",
}
# Where the other inputs of a choice are from that stand in no file.
OF_A_CHOICE = {
    "tensor_parallel_size": Origin("computed", "the one whose instances cost least"),
    "batch_limit": Origin("computed", "the largest batch that meets the targets of speed, found by trying"),
    "stage_overhead_bytes": Origin("computed", "activations and memory outside torch on a pipeline stage"),
    **dict.fromkeys(cost.CONSTANTS, Origin("default", "what it is counted in")),
    "is_committed": Origin("computed", "1 where the purchase class is reserved, else 0"),
    "max_tensor_parallel_size": Origin("default", "a rule of sheetgen"),
    "max_pipeline_parallel_size": Origin("default", "a rule of sheetgen"),
    "concurrent_requests": Origin("computed", "users x active_fraction, rounded up"),
}
_OF_A_SHEET = tuple(one.name for one in OF_SETTINGS if one not in OF_A_POINT)


@dataclass(frozen=True)
class Step:
    """One quantity of a derivation. `origin` is computed, given, default, catalog, assumption or search; `file` is
    where a number stands that no formula gives."""

    name: str
    label: str
    value: Any
    unit: str
    origin: str
    about: str = ""
    reading: str = ""
    formula: str = ""
    with_values: str = ""
    source: str = ""
    inputs: list[Step] = field(default_factory=list)
    file: str = ""


def _given(name: str, value: Any, origin: Origin, inputs: Iterable[Step] = ()) -> Step:
    """A quantity that no formula gives."""
    label, unit = name.replace("_", " "), unit_of(name)
    return Step(name, label, value, unit, origin.kind, origin.about, "", "", "", origin.source, [*inputs], origin.file)


def _computed(
    name: str, formula: Formula, value: Any, reads: Iterable[str], inputs: list[Step], shown: Iterable[Any],
    about: str = "", reading: str = "",
) -> Step:  # fmt: skip
    """A quantity by its formula, whose text is that of its function, of the names that it reads and of the values that
    are `shown` for them."""
    names, values = (spaced(formula.function(*of).text) for of in (map(Expr, reads), map(literal, shown)))
    about = formula.summary + about
    return Step(
        name, formula.label, value, unit_of(name), "computed", about, reading, names, values, formula.source, inputs
    )


class Derivation:
    """All readings of one sized deployment. `step(name, reading="point")` is the derivation of a quantity, down to what
    the catalogs and the question gave."""

    def __init__(self, sized: Sized, overrides: Mapping[str, Any]) -> None:
        values = sized.points.values
        alone = {**values, "tensor_parallel_size": 1 + 0 * values["tensor_parallel_size"]}
        known = sized.known
        self.readings: dict[str, Mapping[str, Any]] = {
            "point": known,
            "whole": estimate.point(alone),
            "longest": _again(estimate.CHARGE, known, charged_tokens=known["max_model_len"]),
            "filled": _again(estimate.CHARGE, known, charged_tokens=known["filled_tokens"]),
            "full": _again(estimate.PACE, known, running_requests=speed.full_house.of(known)),
        }
        self.before_draft = values
        self.texts = {name: sized.results[name][0] for name in TEXTS}
        self.grows = bool(known["grows"][0] == 1)
        names, scope = sized.points.names[0], self.texts["speed_scope"]
        self.origins = provenance.Origins(names, overrides, sized.points.reference, scope, sized.anchored)
        self.step = functools.cache(self._step)

    def value(self, name: str, reading: str = "point") -> Any:
        known = self.readings[reading]
        if name in self.texts:
            return self.texts[name]
        source = known if name in known and name != "draft_layers" else self.before_draft
        number = source[name]
        number = number.reshape(-1)[0] if hasattr(number, "reshape") else number
        return str(number) if isinstance(number, str) else _plain(number)

    def _step(self, name: str, reading: str = "point") -> Step:
        if again := READ_AGAIN.get(name):
            of, circumstance = again
            inner = self.step(of, circumstance)
            about = f"{of}, {CIRCUMSTANCES[circumstance]}"
            return Step(name, inner.label, inner.value, inner.unit, "computed", about, inputs=[inner])
        if name in WHOLE:
            reading = "whole"
        if name in provenance.ADDED_BY_DRAFT and self.origins.names.draft is not None:
            added = provenance.ADDED_BY_DRAFT[name]
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
        inputs = [self._input(i, name, reading) for i in reads]
        values = [one.value for one in inputs]
        value = self.value(name, reading) if name in self.readings[reading] else formula.function(*values)
        about = ENDLESS if self.grows and name in AT_AN_END else ""
        return _computed(name, formula, value, reads, inputs, values, about, CIRCUMSTANCES[reading])

    def _input(self, name: str, of: str, reading: str) -> Step:
        if reading == "full" and name not in _PACE_NAMES:
            return self.step("full_house" if name == "running_requests" else name)
        if of == "kv_bytes_per_sequence_steady" and name == "shard_windowed_bytes_per_token":
            reading = "whole"
        if reading == "longest" and name == "charged_tokens":
            value = self.value(name, reading)
            return Step(name, "Tokens charged per sequence", value, "tokens", "computed", "max_model_len")
        if reading == "filled" and name == "charged_tokens":
            return self.step("filled_tokens")
        return self.step(name, reading)


class ChoiceDerivation:
    """How a recommendation's numbers came about: replicas, instances and money of the chosen instance, of the one cell
    of `recommend`; `overrides` holds what the user gave."""

    def __init__(self, solved: Solution, overrides: Mapping[str, Any]) -> None:
        question, offer = solved.question, solved.choices[0].offer
        if offer is None:
            raise ScenarioError(f"{solved.choices[0].verdict}: there is no recommendation to explain.")
        self.candidate = solved.candidate(offer)
        self.overrides = overrides
        self.reference = question.reference
        model = question.models[question.loads[0].model]
        names = Resolved(
            model.model, self.candidate.gpu, question.engine, model.weight_dtype, model.kv_cache_dtype, None,
            question.speed,
        )  # fmt: skip
        self.origins = provenance.Origins(names, overrides, self.reference)
        discounted = {"price_usd_per_hour": "discounted_usd_per_hour"} if question.settings.discount_fraction else {}
        self.read_as = READ_AS | discounted
        self.values = {name: _number_or_none(one[0]) for name, one in solved.at(0, offer=offer).items()}
        self.step = functools.cache(self._step)

    def _step(self, name: str) -> Step:
        read_as = self.read_as.get(name, name)
        formula = CHOICE_FORMULAS.get(read_as)
        if formula is None or any(i not in self.values for i in formula.inputs):
            origin = Origin("computed", formula.summary) if formula else self._origin(read_as)
            return _given(name, self.values[name], origin)
        inputs = [self.step(i) for i in formula.inputs]
        if name in self.values:
            value = self.values[name]
        else:
            value = _number_or_none(formula.function(*(math.nan if i.value is None else i.value for i in inputs)))
        return _computed(name, formula, value, formula.inputs, inputs, [_as_shown(one.value) for one in inputs])

    def _origin(self, name: str) -> Origin:
        one = self.candidate
        if name in ("price_usd_per_hour", "listed_usd_per_hour", "gpu_count"):
            file = f"catalogs/instances/{one.provider}.yaml"
            price = f", {one.purchase}, read {one.price_as_of or 'on no stated date'}" if name != "gpu_count" else ""
            return Origin("catalog", f"{file}, {one.instance}{price}", (), one.source, file)
        if name in ("runs_weights", "runs_kv"):
            return self.origins.of_gpu(("weights_run" if name == "runs_weights" else "kv_run",))
        if name in OF_A_CHOICE:
            return OF_A_CHOICE[name]
        if self.overrides.get(name) is not None:
            return Origin("given", f"typed: {self.overrides[name]}")
        return Origin("default", "the default of sheetgen") if name in _OF_A_SHEET else self.origins.of(name)


def _again(formulas: Iterable[Formula], known: Mapping[str, Any], **other: Any) -> dict[str, Any]:
    """The same formulas with another value of some quantity."""
    return estimate.evaluate(formulas, {**known, **other})


def _plain(number: Any) -> float:
    """A whole number as int, any other as float."""
    return float(number) if not math.isfinite(number) or number != int(number) else int(number)


def _number_or_none(number: Any) -> float | None:
    return None if number != number else _plain(number)


def _as_shown(value: Any) -> Any:
    """A value as a spreadsheet shows it: 15 digits of a number, a dash for none."""
    if value is None:
        return "-"
    return float(f"{value:.15g}") if isinstance(value, float) else value


def find(name: str) -> str:
    """The quantity called `name`. Raises ScenarioError with the nearest one."""
    key = name.strip().lower().replace("-", "_")
    known = (*QUANTITIES, *READ_AGAIN, *provenance.SEARCHED, *SPEED_BANDS, *GIVEN, *DESCRIBED, *CHOICE_QUANTITIES)
    if key not in known:
        raise ScenarioError(
            f"quantity {shown(name)!r} is not known.{did_you_mean(key, known)} `sheetgen explain` lists all."
        )
    return key


_UNITS = (
    ("band", ""), ("fraction", ""), ("seconds", "seconds"), ("blocks", "blocks"), ("tokens", "tokens"),
    ("bytes", "bytes"), ("requests", "requests"), ("steps", "steps"), ("prompts", "prompts"),
)  # fmt: skip
_REQUESTS = ("max_concurrency", "running_capacity", "full_house")


def unit_of(name: str) -> str:
    """The unit that a quantity's name says."""
    words = name.split("_")
    if "band" not in words and "per_second" in name:
        return f"{name.split('_per_second')[0].split('_')[-1]} per second"
    if "flops" in words:
        return "operations per second" if name.startswith("peak") else "operations"
    for word, unit in _UNITS:
        if word in words and not (word == "tokens" and "bytes" in words):
            return unit
    return "requests" if name in _REQUESTS else "GPUs" if name == "min_gpus" else ""


_OPERATOR = re.compile(r'("[^"]*")|(,)|(<=|>=|<>|[+*/=<>]|(?<=[^(,+*/=<>-])-)')  # no minus before a number


def spaced(text: str) -> str:
    """Formula text with room around its operators; what is quoted stays."""
    return _OPERATOR.sub(lambda found: found[1] or (", " if found[2] else f" {found[3]} "), text)


def quantities() -> list[tuple[str, str, str]]:
    """Name, label and summary of everything that can be explained, in the order in which it comes about."""
    rows = [(f.name, f.label, f.summary) for f in QUANTITIES.values()]
    others = {name: about for name, (about, _) in provenance.SEARCHED.items()}
    for of, _ in SPEED_BANDS.values():
        others |= {f"{of}_{end}": f"The {end} end of the 80 % band of {of}." for end in ("low", "high")}
    for name in DESCRIBED:
        about = provenance.DERIVED[name][0]
        others[name] = f"{about[0].upper()}{about[1:]}."
    rows += [(name, name.replace("_", " "), about) for name, about in others.items()]
    chosen = (CHOICE_FORMULAS[name] for name in CHOICE_QUANTITIES)
    return [*rows, *((f.name, f.label, f.summary) for f in chosen)]
