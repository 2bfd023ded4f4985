"""How one number came about: its formula with names, the same with values, and where every input is from.

The formula's text is the formula function itself, read with the inputs' names and then with their values
(`Expr`), so it is the text that the workbook has, and nothing is written down twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen import estimate, provenance
from sheetgen.api import Sized
from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.formula import Expr, Formula, literal
from sheetgen.sizing import speed
from sheetgen.sizing.kv_cache import draft_bytes_per_token, kv_bytes_per_sequence_steady

# What the formulas of speed are written with can be explained, too; the ends of bands have names of their own.
_WITH = (f for f in vars(speed).values() if isinstance(f, Formula))
SPEED = tuple(dict.fromkeys((*estimate.SPEED, *(f for f in _WITH if f is not speed.at_speed_band))))
QUANTITIES: dict[str, Formula] = {
    f.name: f for f in (*estimate.POINT, kv_bytes_per_sequence_steady, draft_bytes_per_token, *SPEED)
}
# Both ends of the bands of speed: what was predicted, and its factor.
SPEED_BANDS = {
    f"{name}_{end}": (name, f"{figure}_band_{end}")
    for name, figure in (
        ("tpot_seconds", "tpot"),
        ("ttft_seconds", "ttft"),
        ("output_tokens_per_second", "output_tokens_per_second"),
    )
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
GIVEN = (
    "n_params", "n_params_active", "gpu_memory_bytes", "cuda_graph_bytes_per_gpu",
)  # fmt: skip
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


@dataclass(frozen=True)
class Step:
    """One quantity of a derivation. `origin` is computed, given, default, catalog, assumption or search."""

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


class Derivation:
    """All readings of one sized deployment."""

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
        self.steps: dict[tuple[str, str], Step] = {}
        names, scope = sized.points.names[0], self.texts["speed_scope"]
        self.origins = provenance.Origins(names, overrides, sized.points.reference, scope, sized.anchored)

    def value(self, name: str, reading: str = "point") -> Any:
        known = self.readings[reading]
        if name in self.texts:
            return self.texts[name]
        source = known if name in known and name != "draft_layers" else self.before_draft
        number = source[name]
        number = number.reshape(-1)[0] if hasattr(number, "reshape") else number
        if isinstance(number, str):
            return str(number)
        return float(number) if not math.isfinite(number) or number != int(number) else int(number)

    def step(self, name: str, reading: str = "point") -> Step:
        """The derivation of `name`, down to what the catalogs and the question gave."""
        if (name, reading) not in self.steps:
            self.steps[name, reading] = self._step(name, reading)
        return self.steps[name, reading]

    def _step(self, name: str, reading: str) -> Step:
        again = READ_AGAIN.get(name)
        if again:
            inner = self.step(again[0], again[1])
            about = f"{again[0]}, {CIRCUMSTANCES[again[1]]}"
            return Step(name, inner.label, inner.value, inner.unit, "computed", about, inputs=[inner])
        if name in WHOLE:
            reading = "whole"
        if name in provenance.ADDED_BY_DRAFT and self.origins.has_draft:
            return self._with_draft(name, reading)
        if name == "max_requests_per_second":
            reading = "full"
        formula = speed.at_speed_band if name in SPEED_BANDS else QUANTITIES.get(name)
        if formula is None:
            return self._leaf(name, reading)
        reads = SPEED_BANDS.get(name, formula.inputs)
        inputs = [self._input(i, name, reading) for i in reads]
        values = [i.value for i in inputs]
        return Step(
            name,
            formula.label,
            self.value(name, reading) if name in self.readings[reading] else formula.function(*values),
            unit_of(name),
            "computed",
            formula.summary + (ENDLESS if self.grows and name in AT_AN_END else ""),
            CIRCUMSTANCES[reading],
            spaced(formula.function(*(Expr(i) for i in reads)).text),
            spaced(formula.function(*(literal(v) for v in values)).text),
            formula.source,
            inputs,
        )

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

    def _leaf(self, name: str, reading: str) -> Step:
        origin = self.origins.of(name)
        if name == "tensor_parallel_size" and reading == "whole":
            origin = provenance.Origin("computed", "1, as for one undivided GPU")
        inputs = [self.step(i, reading) for i in origin.inputs]
        label = name.replace("_", " ")
        value, unit = self.value(name, reading), unit_of(name)
        return Step(name, label, value, unit, origin.kind, origin.about, source=origin.source, inputs=inputs)

    def _with_draft(self, name: str, reading: str) -> Step:
        """A column of the model to which the draft model adds its own."""
        value, added = self.value(name, reading), provenance.ADDED_BY_DRAFT[name]
        about = f"the model's own {self.origins.before(name):,} and the draft model's {added}"
        return Step(
            name, name.replace("_", " "), value, unit_of(name), "computed", about, inputs=[self.step(added, reading)]
        )


def _again(formulas: Iterable[Formula], known: Mapping[str, Any], **other: Any) -> dict[str, Any]:
    """The same formulas with another value of some quantity."""
    return estimate.evaluate(formulas, {**known, **other})


def find(name: str, also: Iterable[str] = ()) -> str:
    """The quantity called `name`. Raises ScenarioError with the nearest one."""
    key = name.strip().lower().replace("-", "_")
    known = (*QUANTITIES, *READ_AGAIN, *provenance.SEARCHED, *SPEED_BANDS, *GIVEN, *DESCRIBED, *also)
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


def spaced(text: str) -> str:
    """Formula text with room around its operators."""
    out: list[str] = []
    quoted = False
    for i, c in enumerate(text):
        quoted ^= c == '"'
        before = text[i - 1] if i else "("
        if quoted or c == '"' or c not in "+-*/=<>,":
            out.append(c)
        elif c == ",":
            out.append(", ")
        elif c == "-" and before in "(,+-*/=<>":
            out.append(c)
        elif c in "=>" and before in "<>":  # the second half of <=, >= and <>
            out[-1] = out[-1].rstrip() + c + " "
        else:
            out.append(f" {c} ")
    return "".join(out)


def quantities() -> list[tuple[str, str, str]]:
    """Name, label and summary of everything that can be explained, in the order in which it comes about."""
    rows = [(f.name, f.label, f.summary) for f in QUANTITIES.values()]
    others = [(name, about) for name, (about, _) in provenance.SEARCHED.items()]
    ends = ((name, name.rsplit("_", 1)[1], of) for name, (of, _) in SPEED_BANDS.items())
    others += [(name, f"The {end} end of the 80 % band of {of}.") for name, end, of in ends]
    described = ((name, provenance.DERIVED[name][0]) for name in DESCRIBED)
    others += [(name, f"{about[0].upper()}{about[1:]}.") for name, about in described]
    return rows + [(name, name.replace("_", " "), about) for name, about in others]
