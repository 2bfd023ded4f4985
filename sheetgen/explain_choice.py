"""How a recommendation's numbers came about: replicas, instances and money of the chosen instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen import cost, provenance
from sheetgen.errors import ScenarioError
from sheetgen.explain import QUANTITIES, Step, spaced, unit_of
from sheetgen.formula import Expr, Formula, literal
from sheetgen.recommend import Solution
from sheetgen.scenario.deployment import Resolved
from sheetgen.scenario.inputs import OF_A_POINT, OF_SETTINGS
from sheetgen.sizing import kv_cache, parallelism, weights

FORMULAS: dict[str, Formula] = QUANTITIES | {
    f.name: f
    for module in (weights, kv_cache, parallelism, cost)
    for f in vars(module).values()
    if isinstance(f, Formula) and f is not parallelism.batch_limit  # which is found by trying
}
# What can be explained of a recommendation, in the order in which it comes about.
CHOICE_QUANTITIES = (
    "load_requests", "charge_bytes", "pipeline_stages", "sequences", "n_replicas", "replicas_per_instance",
    "n_instances", "paid_hours_per_month", "hourly_usd", "monthly_usd", "annual_usd", "three_year_usd",
    "usd_per_user_per_month", "headroom_fraction", "sure_headroom_fraction",
)  # fmt: skip
# Before it is known how many stages a replica has, a rank's weights are read without stages and draft.
READ_AS = {
    "loaded_weights_bytes_per_gpu": "rank_weights_bytes",
    "activation_bytes_per_gpu": "profile_peak_bytes",
    "non_torch_bytes_per_gpu": "non_torch_bytes_per_tp",
}
OF_SHEET = tuple(one.name for one in OF_SETTINGS if one not in OF_A_POINT)
RULES = ("max_tensor_parallel_size", "max_pipeline_parallel_size")


class ChoiceDerivation:
    """The derivation of the one cell of `recommend`; `typed` holds what the user gave."""

    def __init__(self, solved: Solution, overrides: Mapping[str, Any]) -> None:
        offer = solved.choices[0].offer
        if offer is None:
            raise ScenarioError(f"{solved.choices[0].verdict}: there is no recommendation to explain.")
        self.candidate = solved.candidate(offer)
        self.overrides = overrides
        self.reference = solved.question.reference
        model = solved.question.models[solved.question.loads[0].model]
        names = Resolved(
            model.model, self.candidate.gpu, solved.question.engine, model.weight_dtype, model.kv_cache_dtype, None,
            solved.question.speed,
        )  # fmt: skip
        self.origins = provenance.Origins(names, overrides, self.reference)
        discount = solved.question.settings.discount_fraction
        self.read_as = READ_AS | ({"price_usd_per_hour": "discounted_usd_per_hour"} if discount else {})
        self.values = {name: _plain(one[0]) for name, one in solved.at(0, offer=offer).items()}
        self.steps: dict[str, Step] = {}

    def step(self, name: str) -> Step:
        """The derivation of `name`, down to what the catalogs and the question gave."""
        if name not in self.steps:
            self.steps[name] = self._step(name)
        return self.steps[name]

    def _step(self, name: str) -> Step:
        read_as = self.read_as.get(name, name)
        formula = FORMULAS.get(read_as)
        if formula is None or any(i not in self.values for i in formula.inputs):
            origin = provenance.Origin("computed", formula.summary) if formula else self._origin(read_as)
            label, value = name.replace("_", " "), self.values[name]
            return Step(name, label, value, unit_of(name), origin.kind, origin.about, source=origin.source)
        inputs = [self.step(i) for i in formula.inputs]
        values = [float("nan") if i.value is None else i.value for i in inputs]
        return Step(
            name,
            formula.label,
            self.values[name] if name in self.values else _plain(formula.function(*values)),
            unit_of(name),
            "computed",
            formula.summary,
            "",
            spaced(formula.function(*(Expr(i) for i in formula.inputs)).text),
            spaced(formula.function(*(literal(_as_shown(i.value)) for i in inputs)).text),
            formula.source,
            inputs,
        )

    def _origin(self, name: str) -> provenance.Origin:
        one = self.candidate
        if name in ("price_usd_per_hour", "listed_usd_per_hour", "gpu_count"):
            where = f"catalogs/instances/{one.provider}.yaml, {one.instance}"
            price = f", {one.purchase}, read {one.price_as_of or 'on no stated date'}" if name != "gpu_count" else ""
            return provenance.Origin("catalog", where + price, source=one.source)
        if name in ("runs_weights", "runs_kv"):
            key = "weights_run" if name == "runs_weights" else "kv_run"
            where = self.reference.document(f"gpus/{one.gpu.id}.yaml").at((key,))
            return provenance.Origin("catalog", where, source=one.gpu.source)
        if name == "tensor_parallel_size":
            return provenance.Origin("computed", "the one whose instances cost least")
        if name == "batch_limit":
            return provenance.Origin("computed", "the largest batch that meets the targets of speed, found by trying")
        if name == "stage_overhead_bytes":
            return provenance.Origin("computed", "activations and memory outside torch on a pipeline stage")
        if name in cost.CONSTANTS:
            return provenance.Origin("default", "what it is counted in")
        if name == "is_committed":
            return provenance.Origin("computed", "1 where the purchase class is reserved, else 0")
        if name in RULES:
            return provenance.Origin("default", "a rule of sheetgen")
        if name == "concurrent_requests":
            return provenance.Origin("computed", "users x active_fraction, rounded up")
        if self.overrides.get(name) is not None:
            return provenance.Origin("given", f"typed: {self.overrides[name]}")
        if name in OF_SHEET:
            return provenance.Origin("default", "the default of sheetgen")
        return self.origins.of(name)


def _plain(value: Any) -> Any:
    """A number as int or float; nothing where there is none."""
    number = float(value)
    return None if number != number else int(number) if number == int(number) else number


def _as_shown(value: Any) -> Any:
    """A value as a spreadsheet shows it: 15 digits of a number, a dash for none."""
    if value is None:
        return "-"
    return float(f"{value:.15g}") if isinstance(value, float) else value
