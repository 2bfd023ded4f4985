"""The bridge from one sheet's dollars a month to the other's, per model at the headline's load.

A cause gets a figure only where that figure is known: where it is the only one, or where the sheets can be solved
again, cause by cause, and solving each as it stands gives its own figures. Else what changed is named, without figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sheetgen.catalog import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.recommend import solve
from sheetgen.scenario.inputs import OF_SETTINGS
from sheetgen.scenario.overrides import BANDS, ENGINE, TABLES
from sheetgen.scenario.overrides import SETTINGS as SETTING_KINDS
from sheetgen.scenario.parse import name_part
from sheetgen.scenario.question import Question, ask
from sheetgen.units import DTYPES
from sheetgen.workbook import facts
from sheetgen.workbook.compare import Comparison, headline_loads, usd

PRICES, LOAD, SETTINGS = "prices", "load", "facts and settings"
NO_EFFECT = {
    "as_of", "stale_after_days", "tight_below", "speed_pace", "speed_requests", "contingency_fraction", "currency",
    "fx_rate", "fx_date",
}  # fmt: skip
ASIDE = ("whatif_", "case_", "log_")  # inputs of pages beside the loads
# Those that a cell of their name says; prices have their own side, and requests in flight are given as they are.
ASKED_BY_CELLS = tuple(
    one for one in OF_SETTINGS
    if one.row and one.option and one.option.group in ("precision", "engine", "headroom", "billing", "factors")
    and one.name not in (*facts.OF_PRICES, "active_fraction")
)  # fmt: skip
_CLOSE = 1e-6  # of a figure: what a file keeps of a sum of floats


@dataclass(frozen=True)
class Step:
    """What one cause did to a month's cost."""

    cause: str
    usd: float


@dataclass(frozen=True)
class Bridge:
    """How a model's cost a month went from one sheet to the other, at one load.

    how: `solved again` (each cause by itself, in the order of `steps`), `one cause`, `unchanged`, or `not separated`,
    and then `steps` is empty and `causes` says what changed at once.
    """

    model: str
    name: str
    load: str
    before_usd: float | None
    after_usd: float | None
    steps: tuple[Step, ...]
    causes: tuple[str, ...]
    how: str
    why: str = ""

    def data(self) -> dict[str, Any]:
        """The bridge as JSON has it."""
        return {**{k: v for k, v in vars(self).items() if k not in ("steps", "causes")},
                "steps": [vars(step) for step in self.steps], "causes": list(self.causes)}  # fmt: skip


def bridges(found: Comparison, catalog: Catalog) -> tuple[Bridge, ...]:
    """A bridge for each model that both sheets answer at the headline's load."""
    a, b = found.a, found.b
    if not (a.is_calculated and b.is_calculated):
        return ()
    again: list[dict[str, float | None]] | str | None = None
    made = []
    for la, lb in headline_loads(a, b, found.pairing):
        if la not in a.answers or lb not in b.answers:
            continue
        before, after = a.answers[la].monthly_usd, b.answers[lb].monthly_usd
        causes = _causes(found, la, lb)
        steps: tuple[Step, ...] = ()
        how, why = "not separated", ""
        if before is None or after is None:
            why = "nothing fits on one of the sheets"
        elif facts.same(before, after) and not causes:
            how = "unchanged"
        elif len(causes) == 1:
            how, steps = "one cause", (Step(causes[0], after - before),)
        else:
            again = again or _solved_again(a, b, la[1:], lb[1:], catalog)
            steps, why = _steps(again, lb[0], before, after)
            how = "solved again" if steps else how
        load = facts.load_words(b, *lb[1:])
        if not facts.same(a.tiers[la[2] - 1], b.tiers[lb[2] - 1]):
            load = f"{facts.load_words(a, *la[1:])} -> {b.tiers[lb[2] - 1]:,}"
        made.append(Bridge(lb[0], facts.model_name(lb[0], a, b), load, before, after, steps, causes, how, why))
    return tuple(made)


def _causes(found: Comparison, la: facts.LoadKey, lb: facts.LoadKey) -> tuple[str, ...]:
    """What changed that can move this model's cost at this load."""
    a, b, sections = found.a, found.b, found.sections
    wa, wb = a.workloads[la[1]], b.workloads[lb[1]]
    causes = []
    offers = [c for c in sections["prices"] if c.more.get("what") != "date"]
    in_use = [c for c in offers if c.more.get("purchase", b.purchase) == b.purchase]
    if in_use or any(c.name in facts.OF_PRICES for c in sections["inputs"]):
        causes.append(PRICES)
    lengths = ((wa.context_tokens, wb.context_tokens), (wa.output_tokens, wb.output_tokens))
    if not all(facts.same(*pair) for pair in (*lengths, (a.tiers[la[2] - 1], b.tiers[lb[2] - 1]))):
        causes.append(LOAD)
    others = {f"{figure}_{w}" for figure in ("tpot_ms", "ttft_ms") for w in b.workloads if w != lb[1]}
    apart = {*NO_EFFECT, *facts.OF_PRICES, *others}
    settings = [c for c in sections["inputs"] if c.name not in apart and not c.name.startswith(ASIDE)]
    models = [c for c in sections["models"] if c.more.get("row") == lb[0]]
    if settings or models or sections["gpus"] or sections["precisions"]:
        causes.append(SETTINGS)
    if a.version != b.version and a.version and b.version:
        causes.append("sheetgen's version")
    unseen = found.not_compared or "JSON" in (a.kind, b.kind)
    if a.catalog_sha256 != b.catalog_sha256 and unseen:
        causes.append("facts of the catalog that the files do not carry")
    return tuple(causes)


def _solved_again(
    a: facts.SheetFacts, b: facts.SheetFacts, at_a: tuple[str, int], at_b: tuple[str, int], catalog: Catalog
) -> list[dict[str, float | None]] | str:
    """Dollars a month of A, of two sheets that never were (B's prices on A, and B's load too), and of B; or why not."""
    cases = (a, a, at_a, a), (b, a, at_a, a), (b, b, at_b, a), (b, b, at_b, b)
    try:
        return [_monthly_usd(catalog, prices, load, at, settings) for prices, load, at, settings in cases]
    except SheetgenError as error:
        return f"the sheets cannot be solved again: {error.problems[0]}"


def _steps(
    solved: list[dict[str, float | None]] | str, model: str, before: float, after: float
) -> tuple[tuple[Step, ...], str]:
    """The steps between two figures, or why there are none."""
    if isinstance(solved, str):
        return (), solved
    points = [point.get(model) for point in solved]
    for name, found, stated in (("A", points[0], before), ("B", points[-1], after)):
        if found is None or abs(found - stated) > _CLOSE * max(abs(found), abs(stated)):
            gives = "finds nothing that fits" if found is None else f"gives {usd(found)}"
            changed = "a formula was changed in it, or rows were moved, or the catalog"
            return (), f"{name} solved again {gives}: {changed}"
    known = [one for one in points if one is not None]
    if len(known) < len(points):
        return (), "between the two there is a step at which nothing fits"
    changes = (after - before for before, after in pairwise(known))
    return tuple(Step(cause, change) for cause, change in zip((PRICES, LOAD, SETTINGS), changes, strict=True)), ""


def _monthly_usd(
    catalog: Catalog, prices: facts.SheetFacts, load: facts.SheetFacts, at: tuple[str, int], settings: facts.SheetFacts
) -> dict[str, float | None]:
    """Dollars a month of each model at one load: a workload's key and a tier of `load`. None where nothing fits.

    Raises SheetgenError where the question cannot be put: a model that is in no catalog, a value out of range.
    """
    options = dict(_options(catalog, prices, load, at, settings))
    base = ask(catalog, options)
    solved = solve(ask(catalog, {**options, "typed": _overrides(base, prices, load, at[0], settings)}))
    ids = (solved.question.models[one.model].model.id for one in solved.question.loads)
    usd = (None if choice.offer is None else choice.monthly_usd for choice in solved.choices)
    return dict(zip(ids, usd, strict=True))


def _options(
    catalog: Catalog, prices: facts.SheetFacts, load: facts.SheetFacts, at: tuple[str, int], settings: facts.SheetFacts
) -> Iterator[tuple[str, Any]]:
    workload, tier = at
    one, requests = load.workloads[workload], load.tiers[tier - 1]
    yield "models", ",".join(load.models)
    if workload == facts.ASKED:
        yield "context_tokens", one.context_tokens
        yield "output_tokens", one.output_tokens
        yield "users", requests
    else:
        ids = {name_part(w.id): w.id for w in catalog.workloads()}
        yield "workloads", ids.get(workload, workload)
        yield "contexts", f"{ids.get(workload, workload)}={one.context_tokens}"
        yield "tiers", str(requests)
    for name in facts.OF_MARKET:
        if prices.options.get(name):
            yield name, prices.options[name]
    if (discount := prices.settings.get("discount_fraction")) and discount.value is not None:
        yield "discount_fraction", discount.value
    for name in ("engine", "engine_version"):
        if settings.options.get(name):
            yield name, settings.options[name]
    given = {name: one.value for name, one in settings.settings.items() if one.value is not None}
    for cell in ASKED_BY_CELLS:
        if cell.name in given:
            yield cell.asked_as, cell.words[bool(given[cell.name])] if cell.words else given[cell.name]
    for figure in ("tpot_ms", "ttft_ms"):
        side = settings if f"{figure}_{workload}" in settings.settings else load
        if (target := side.settings.get(f"{figure}_{workload}")) is not None:
            yield figure, "off" if target.value is None else str(target.value)
    if settings.as_of is not None:
        yield "as_of", settings.as_of.isoformat()


def _overrides(
    base: Question, prices: facts.SheetFacts, load: facts.SheetFacts, workload: str, settings: facts.SheetFacts
) -> dict[str, Any]:
    """All cells of a sheet as overrides: what the catalog says now is of no account."""
    names = (*ENGINE, *SETTING_KINDS, *BANDS)
    inputs = {n: settings.settings[n].value for n in names if n in settings.settings}
    answer = load.workloads[workload].output_tokens
    if workload != facts.ASKED and answer is not None:
        inputs[f"output_{workload}"] = answer
    tables: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in row_keys(base)}
    for name, key in ((name, key) for name, keys in row_keys(base).items() for key in keys):
        row = settings.tables.get(name, {}).get(key, {})
        if kept := {column: value for column, value in row.items() if column in TABLES[name]}:
            tables[name][key] = kept
    return {"inputs": inputs, **tables, **_instances(base, prices)}


def row_keys(question: Question) -> dict[str, list[str]]:
    """By table, the keys under which the overrides have its rows, in the order of the sheet."""
    models, gpus = [m.model.id for m in question.models], [g.id for g in question.gpus]
    return {"models": models, "gpus": gpus, "precisions": list(DTYPES)}


def _instances(base: Question, prices: facts.SheetFacts) -> dict[str, Any]:
    """The instances of the sheet and no others, at its prices."""
    listed: dict[str, Any] = {}
    for one in base.candidates:
        offer = prices.offers.get(one.instance)
        price = offer.prices.get(prices.purchase) if offer else None
        listed[one.instance] = {"price_usd_per_hour": price.usd_per_hour if price else None}
        if offer:
            listed[one.instance] |= {"instance_gpu": offer.gpu, "gpu_count": offer.gpu_count}
    own = []
    for key, offer in prices.offers.items():
        price = offer.prices.get(prices.purchase)
        provider, _, kind = key.partition("/")
        if key not in listed and price and provider and kind:
            own.append({"provider": provider, "type": kind, "instance_gpu": offer.gpu, "gpu_count": offer.gpu_count,
                        "price_usd_per_hour": price.usd_per_hour})  # fmt: skip
    return {"instances": listed, "own_instances": own}
