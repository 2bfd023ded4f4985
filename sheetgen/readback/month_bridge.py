"""The bridge from one sheet's dollars a month to the other's, for each model at the headline's load.

A cause gets a figure only where that figure is known: where it is the only one, or where the sheets can be solved
again, cause by cause, and solving each as it stands gives its own figures. Else what changed is named, without figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.question.discounts import cell_names, option_text
from sheetgen.question.inputs import BY_WORKLOAD, OF_SETTINGS
from sheetgen.question.overrides import BANDS, ENGINE, SHOWN, TABLES, class_columns
from sheetgen.question.overrides import SETTINGS as SETTING_KINDS
from sheetgen.question.parse import Raw, name_part
from sheetgen.question.sheet_question import ASKED, TARGETS, Question, ask
from sheetgen.question.stated_load import RATE, STATED, stated_kind
from sheetgen.readback import compared_facts
from sheetgen.readback.compare import Comparison, changed_load, headline_loads, usd
from sheetgen.readback.compared_facts import LoadKey, SheetFacts, same
from sheetgen.readback.pulled import row_keys
from sheetgen.readback.read_book import input_that_follows

PRICES, LOAD, SETTINGS = "prices", "load", "facts and settings"
OF_BUDGET = ("contingency_fraction", "currency", "fx_rate")  # they move no answer, only what finance reads in it
NO_EFFECT = {"as_of", "fx_date", *SHOWN, *OF_BUDGET}
# Options that have a cell of their name; prices have their own side, and requests at once are given as they are.
ASKED_BY_CELLS = tuple(
    setting
    for setting in OF_SETTINGS
    if setting.row
    and setting.option
    and setting.option.group in ("precision", "engine", "headroom", "billing", "factors")
    and setting.name not in (*compared_facts.OF_PRICES, "active_fraction")
)
OF_RATE = (*STATED, "peak_hour_share", "burst_factor", "max_wait_fraction", "max_prefill_utilization")
_CLOSE = 1e-6  # relative: the digits that a file keeps of a sum of floats


@dataclass(frozen=True)
class Step:
    """The effect of one cause on a month's cost."""

    cause: str
    usd: float


@dataclass(frozen=True)
class Bridge:
    """The steps of a model's cost a month from one sheet to the other, at one load.

    how: `solved again` (each cause by itself, in the order of `steps`), `one cause`, `unchanged`, or `not separated`,
    and then `steps` is empty and `causes` says what changed at once.
    """

    model: str
    name: str
    load: str
    before_usd: float | None
    after_usd: float | None
    how: str
    why: str
    steps: tuple[Step, ...]
    causes: tuple[str, ...]


def bridges(comparison: Comparison, catalog: Catalog) -> tuple[Bridge, ...]:
    """A bridge for each model that both sheets answer at the headline's load."""
    a, b = comparison.a, comparison.b
    again: list[dict[str, float | None]] | str | None = None
    made = []
    for la, lb in headline_loads(a, b, comparison.pairing):
        if la not in a.answers or lb not in b.answers:
            continue
        before, after = a.answers[la].monthly_usd, b.answers[lb].monthly_usd
        causes = tuple(_causes(comparison, la, lb))
        steps: tuple[Step, ...] = ()
        how, why = "not separated", ""
        if before is None or after is None:
            why = "nothing fits on one of the sheets"
        elif same(before, after) and not causes:
            how = "unchanged"
        elif len(causes) == 1:
            how, steps = "one cause", (Step(causes[0], after - before),)
        else:
            again = again or _solved_again(a, b, la[1:], lb[1:], catalog)
            steps, why = _steps(again, lb[0], before, after)
            how = "solved again" if steps else how
        load = changed_load(a, b, la, lb)
        made.append(Bridge(lb[0], compared_facts.model_name(lb[0], a, b), load, before, after, how, why, steps, causes))
    return tuple(made)


def _causes(comparison: Comparison, la: LoadKey, lb: LoadKey) -> Iterator[str]:
    """The causes that changed and that can move this model's cost at this load."""
    a, b, sections = comparison.a, comparison.b, comparison.sections
    was, now = a.workloads[la[1]], b.workloads[lb[1]]
    offers = [c for c in sections["prices"] if c.more.get("what") != "date"]
    in_use = [c for c in offers if c.more.get("purchase", b.purchase) == b.purchase]
    if in_use or any(compared_facts.moves_prices(c.name) for c in sections["inputs"]):
        yield PRICES
    lengths = (was.context_tokens, now.context_tokens), (was.output_tokens, now.output_tokens)
    tiers = a.tiers[la[2] - 1], b.tiers[lb[2] - 1]
    rates = [c.name for c in sections["inputs"] if c.name in OF_RATE] if RATE in tiers else []
    if rates or not all(same(*pair) for pair in (*lengths, tiers)):
        yield LOAD
    others = {f"{option}_{w}" for option in BY_WORKLOAD for w in b.workloads if w != lb[1]}
    both = {f"{option}_{lb[1]}" for option in TARGETS if _follows(a, option, la[1]) and _follows(b, option, lb[1])}
    no_setting = {*NO_EFFECT, *OF_RATE, *others, *both}
    settings = [c for c in sections["inputs"] if c.name not in no_setting and not compared_facts.moves_prices(c.name)]
    models = [c for c in sections["models"] if c.more.get("row") == lb[0]]
    if settings or models or sections["gpus"] or sections["precisions"]:
        yield SETTINGS
    if a.version != b.version and a.version and b.version:
        yield "sheetgen's version"
    if a.catalog_sha256 != b.catalog_sha256 and (comparison.not_compared or "JSON" in (a.kind, b.kind)):
        yield "facts of the catalog that the files do not carry"


def _solved_again(
    a: SheetFacts, b: SheetFacts, at_a: tuple[str, int], at_b: tuple[str, int], catalog: Catalog
) -> list[dict[str, float | None]] | str:
    """Dollars a month of A, of two sheets that never existed (B's prices on A, and B's load too), and of B; or the
    reason why not."""
    cases = (a, a, at_a, a), (b, a, at_a, a), (b, b, at_b, a), (b, b, at_b, b)
    try:
        return [_monthly_usd(catalog, prices, load, load_at, settings) for prices, load, load_at, settings in cases]
    except SheetgenError as error:
        return f"the sheets cannot be solved again: {error.problems[0]}"


def _steps(
    solved: list[dict[str, float | None]] | str, model: str, before: float, after: float
) -> tuple[tuple[Step, ...], str]:
    """The steps between two figures, or the reason why there are none."""
    if isinstance(solved, str):
        return (), solved
    points = [point.get(model) for point in solved]
    for name, solved_usd, stated in (("A", points[0], before), ("B", points[-1], after)):
        if solved_usd is None or abs(solved_usd - stated) > _CLOSE * max(abs(solved_usd), abs(stated)):
            gives = "finds nothing that fits" if solved_usd is None else f"gives {usd(solved_usd)}"
            changed = "a formula was changed in it, or rows were moved, or the catalog"
            return (), f"{name} solved again {gives}: {changed}"
    solved_points = [point for point in points if point is not None]
    if len(solved_points) < len(points):
        return (), "between the two there is a step at which nothing fits"
    changes = (after - before for before, after in pairwise(solved_points))
    return tuple(Step(cause, change) for cause, change in zip((PRICES, LOAD, SETTINGS), changes, strict=True)), ""


def _monthly_usd(
    catalog: Catalog, prices: SheetFacts, load: SheetFacts, load_at: tuple[str, int], settings: SheetFacts
) -> dict[str, float | None]:
    """Dollars a month of each model at one load: a workload's key and a tier of `load`. None where nothing fits.

    Raises SheetgenError where the question cannot be put: a model that is in no catalog, a value out of range.
    """
    workload, tier = load_at
    lengths, requests = load.workloads[workload], load.tiers[tier - 1]
    options: dict[str, Raw] = {"models": ",".join(load.models)}
    if requests == RATE:
        kind = stated_kind({name: _value(load, name) for name in STATED})
        options |= {name: _value(load, name) for name in OF_RATE if name == kind or name not in STATED}
    if workload == ASKED:
        prompt = _value(load, f"prompt_{ASKED}")
        options |= {"context_tokens": lengths.context_tokens, "output_tokens": lengths.output_tokens}
        options |= {} if prompt is None else {"input_tokens": prompt}
        options |= {} if requests == RATE else {"concurrent_requests": requests}
    else:
        name = next((w.id for w in catalog.workloads() if name_part(w.id) == workload), workload)
        options |= {"workloads": name, "contexts": f"{name}={lengths.context_tokens}"}
        options |= {} if requests == RATE else {"tiers": str(requests)}
    options |= {name: prices.options[name] for name in compared_facts.OF_MARKET if prices.options.get(name)}
    options |= {name: settings.options[name] for name in compared_facts.OF_SERVING if settings.options.get(name)}
    cells = cell_names(dict.fromkeys(name.partition("/")[0] for name in prices.offers))
    discounts = {key: value for name, key in cells if (value := _value(prices, name)) is not None}
    options["discount_fraction"] = option_text(_value(prices, "discount_fraction") or 0, discounts)
    for cell in ASKED_BY_CELLS:
        value = _value(settings, cell.name)
        options[cell.asked_as] = cell.words[int(value)] if cell.words and value is not None else value
    for figure in BY_WORKLOAD:
        side = settings if f"{figure}_{workload}" in settings.settings else load
        if figure in TARGETS and _follows(side, figure, workload):
            continue  # not stated: it follows from the load
        if (target := side.settings.get(f"{figure}_{workload}")) is not None:
            options[figure] = "off" if target.value is None else str(target.value)
    if settings.as_of is not None:
        options["as_of"] = settings.as_of.isoformat()
    options = {name: value for name, value in options.items() if value is not None}
    overrides = _overrides(ask(catalog, options), prices, load, workload, settings)
    solved = solve(ask(catalog, {**options, "typed": overrides}))
    ids = (solved.question.models[answered.model].model.id for answered in solved.question.loads)
    usd_per_month = (None if choice.offer is None else choice.monthly_usd for choice in solved.choices)
    return dict(zip(ids, usd_per_month, strict=True))


def _follows(side: SheetFacts, target: str, workload: str) -> bool:
    """True where a workload's target is the default for its lengths, as far as the sheet tells."""
    name, asked_lengths = f"{target}_{workload}", side.workloads.get(workload)
    if asked_lengths is None or name not in side.settings:
        return False
    inputs = {name: setting.value for name, setting in side.settings.items()}
    lengths = {f"context_{workload}": asked_lengths.context_tokens, f"output_{workload}": asked_lengths.output_tokens}
    try:
        return same(input_that_follows(name, {**inputs, **lengths}, {}), inputs[name])
    except (KeyError, TypeError):  # the JSON does not have the inputs of defaults
        return False


def _value(side: SheetFacts, name: str) -> Raw:
    return side.settings[name].value if name in side.settings else None


def _overrides(
    base: Question, prices: SheetFacts, load: SheetFacts, workload: str, settings: SheetFacts
) -> dict[str, Raw]:
    """All cells of a sheet as overrides, so that the present catalog makes no difference."""
    names = (*ENGINE, *SETTING_KINDS, *BANDS)
    inputs = {name: settings.settings[name].value for name in names if name in settings.settings}
    answer = load.workloads[workload].output_tokens
    if workload != ASKED and answer is not None:
        inputs[f"output_{workload}"] = answer
    tables = {}
    for name, keys in row_keys(base).items():
        typed: Mapping[str, Mapping[str, Raw]] = settings.tables.get(name, {})
        rows = {key: {c: v for c, v in typed[key].items() if c in TABLES[name]} for key in keys if key in typed}
        tables[name] = {key: row for key, row in rows.items() if row}
    # The instances of the sheet and no others, at its prices.
    column = class_columns(prices.purchase)["price"]
    listed: dict[str, dict[str, Raw]] = {candidate.instance: {column: None} for candidate in base.rows}
    own = []
    for key, offer in prices.offers.items():
        price = offer.prices.get(prices.purchase)
        usd_per_hour = price.usd_per_hour if price else None
        row = {"instance_gpu": offer.gpu, "gpu_count": offer.gpu_count, column: usd_per_hour}
        provider, _, kind = key.partition("/")
        if key in listed:
            listed[key] = row
        elif price and provider and kind:
            own.append({"provider": provider, "type": kind, **row})
    return {"inputs": inputs, **tables, "instances": listed, "own_instances": own}
