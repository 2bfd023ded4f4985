"""The bridge from one sheet's dollars a month to the other's, per model at the headline's load.

A cause gets a figure only where that figure is known: where it is the only one, or where the sheets can be solved
again, cause by cause, and solving each as it stands gives its own figures. Else what changed is named, without figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from sheetgen.catalog import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.workbook import words
from sheetgen.workbook.change import Bridge, Step
from sheetgen.workbook.compare import Comparison
from sheetgen.workbook.compare_money import headline_loads
from sheetgen.workbook.sheet_facts import OF_PRICES, Load, SheetFacts, load_words, model_name, same

PRICES, LOAD, SETTINGS = "prices", "load", "facts and settings"
NO_EFFECT = {
    "as_of",
    "stale_after_days",
    "tight_below",
    "speed_pace",
    "speed_requests",
    "contingency_fraction",
    "currency",
    "fx_rate",
    "fx_date",
}
ASIDE = ("whatif_", "case_", "log_")  # inputs of pages beside the loads
_CLOSE = 1e-6  # of a figure: what a file keeps of a sum of floats


def bridges(found: Comparison, catalog: Catalog) -> tuple[Bridge, ...]:
    """A bridge for each model that both sheets answer at the headline's load."""
    a, b = found.a, found.b
    if not (a.is_calculated and b.is_calculated):
        return ()
    again: _Again | None = None
    made = []
    for la, lb in headline_loads(a, b, found.pairing):
        before, after = a.answers.get(la), b.answers.get(lb)
        if before is None or after is None:
            continue
        causes = _causes(found, la, lb)
        steps: tuple[Step, ...] = ()
        how, why = "not separated", ""
        if before.monthly_usd is None or after.monthly_usd is None:
            why = "nothing fits on one of the sheets"
        elif same(before.monthly_usd, after.monthly_usd) and not causes:
            how = "unchanged"
        elif len(causes) == 1:
            how, steps = "one cause", (Step(causes[0], after.monthly_usd - before.monthly_usd),)
        else:
            again = again or _Again(a, b, (la[1], la[2]), (lb[1], lb[2]), catalog)
            steps, why = again.steps(lb[0], before.monthly_usd, after.monthly_usd)
            how = "solved again" if steps else how
        made.append(
            Bridge(lb[0], model_name(lb[0], a, b), _load(a, b, la, lb), before.monthly_usd, after.monthly_usd,
                   steps, causes, how, why)
        )  # fmt: skip
    return tuple(made)


def _load(a: SheetFacts, b: SheetFacts, la: Load, lb: Load) -> str:
    before, after = load_words(a, la[1], la[2]), load_words(b, lb[1], lb[2])
    requests = a.tiers[la[2] - 1], b.tiers[lb[2] - 1]
    return after if same(*requests) else f"{before} -> {requests[1]:,}"


def _causes(found: Comparison, la: Load, lb: Load) -> tuple[str, ...]:
    """What changed that can move this model's cost at this load."""
    a, b, sections = found.a, found.b, found.sections
    wa, wb = a.workloads[la[1]], b.workloads[lb[1]]
    causes = []
    offers = (c for c in sections["prices"] if c.more.get("what") != "date")
    if any(c.more.get("purchase", b.purchase) == b.purchase for c in offers) or any(
        c.name in OF_PRICES for c in sections["inputs"]
    ):
        causes.append(PRICES)
    lengths = ((wa.context_tokens, wb.context_tokens), (wa.output_tokens, wb.output_tokens))
    if not all(same(*pair) for pair in (*lengths, (a.tiers[la[2] - 1], b.tiers[lb[2] - 1]))):
        causes.append(LOAD)
    told = (*NO_EFFECT, *OF_PRICES)
    inputs = (c for c in sections["inputs"] if c.name not in told and not c.name.startswith(ASIDE))
    settings = [c for c in inputs if not _of_another(c.name, lb[1], b)]
    models = [c for c in sections["models"] if c.more.get("row") == lb[0]]
    if settings or models or sections["gpus"] or sections["precisions"]:
        causes.append(SETTINGS)
    if a.version != b.version and a.version and b.version:
        causes.append("sheetgen's version")
    unseen = found.not_compared or "JSON" in (a.kind, b.kind)
    if a.catalog_sha256 != b.catalog_sha256 and unseen:
        causes.append("facts of the catalog that the files do not carry")
    return tuple(causes)


def _of_another(name: str, workload: str, b: SheetFacts) -> bool:
    """Whether an input is a target of another workload."""
    return any(name == f"{figure}_{w}" for figure in ("tpot_ms", "ttft_ms") for w in b.workloads if w != workload)


class _Again:
    """Both sheets solved again, and two that never were: B's prices on A, and B's load too."""

    def __init__(
        self, a: SheetFacts, b: SheetFacts, at_a: tuple[str, int], at_b: tuple[str, int], catalog: Catalog
    ) -> None:
        from sheetgen.workbook.ask_again import monthly_usd

        self.points: list[dict[str, float | None]] = []
        self.why = ""
        try:
            for prices, load, at, settings in ((a, a, at_a, a), (b, a, at_a, a), (b, b, at_b, a), (b, b, at_b, b)):
                self.points.append(monthly_usd(catalog, prices, load, at, settings))
        except SheetgenError as error:
            self.why = f"the sheets cannot be solved again: {error.problems[0]}"

    def steps(self, model: str, before: float, after: float) -> tuple[tuple[Step, ...], str]:
        """The steps between two figures, or why there are none."""
        if self.why:
            return (), self.why
        usd = [point.get(model) for point in self.points]
        for name, found, said in (("A", usd[0], before), ("B", usd[-1], after)):
            if not _close(found, said):
                gives = "finds nothing that fits" if found is None else f"gives {words.usd(found)}"
                return (
                    (),
                    f"{name} solved again {gives}: a formula was changed in it, or rows were moved, or the catalog",
                )
        if any(one is None for one in usd):
            return (), "between the two there is a step at which nothing fits"
        return _differences([one for one in usd if one is not None]), ""


def _differences(usd: Sequence[float]) -> tuple[Step, ...]:
    return tuple(Step(cause, usd[i + 1] - usd[i]) for i, cause in enumerate((PRICES, LOAD, SETTINGS)))


def _close(found: float | None, said: float) -> bool:
    return found is not None and abs(found - said) <= _CLOSE * max(abs(found), abs(said))
