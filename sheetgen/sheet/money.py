"""Money in words, of a load: for the page and for `recommend`."""

from __future__ import annotations

from sheetgen.cost import contingency_usd, in_currency, total_usd
from sheetgen.recommend import Solution
from sheetgen.recommend import money as figures
from sheetgen.sheet.fit import Fit
from sheetgen.sheet.notes import is_stale
from sheetgen.sheet.page import NONE, Cell, MoneyFacts, words
from sheetgen.sheet.wording import dollars, gpus, money, plain, share, whole
from sheetgen.units import PERCENT


def facts_of(solved: Solution, row: int) -> MoneyFacts:
    """The money of one load; nothing where nothing holds it."""
    question = solved.question
    name, fit = question.models[question.loads[row].model].model.name, Fit.of(solved, row)
    if fit is None:
        return MoneyFacts(model=name)
    units, known = figures.unit_costs(solved, row), question.owning.gpus.get(fit.candidate.gpu.id)
    quoted = known is None or known.capex_usd is None or known.capex_as_of is None
    stale_after_days = question.reference.assumption("stale_after_days")
    old = known is not None and is_stale(known.capex_as_of, question.as_of, stale_after_days)
    prompt, answer = (units[f"usd_per_million_{kind}_tokens"] for kind in ("input", "output"))
    spent = "{} prompt, {} answer per million tokens at {} utilization"
    tokens = (dollars(prompt), dollars(answer), share(question.settings.utilization))
    return MoneyFacts(
        model=name, per_year=words("{} a year", money(units["annual_usd"])),
        per_user=words("{} per user", dollars(units["usd_per_user_per_month"])),
        per_million_tokens=words(spent, *tokens) if answer == answer else NONE, owned=_owned(fit),
        break_even=_break_even(fit), budget=_budget(solved, row), capex_is_old=not quoted and old, is_quoted=quoted,
    )  # fmt: skip


def class_costs(solved: Solution, row: int) -> dict[str, Cell]:
    """What a month costs in each purchase class; nothing where nothing holds the load."""
    return {one.purchase: dollars(one.monthly_usd) for one in figures.purchase_classes(solved, row)}


def _owned(fit: Fit) -> Cell:
    """What the GPUs of the replicas cost a month when owned, from the low to the high price."""
    ends = figures.owned(fit.solved, fit.row)
    if ends is None or ends["base"]["monthly_owned_usd"] != ends["base"]["monthly_owned_usd"]:
        return NONE
    low, high = (dollars(ends[end]["monthly_owned_usd"]) for end in ("low", "high"))
    span = low if low == high else words("{} to {}", low, high)
    return words("{}: {}", gpus(fit.gpus_used, fit.candidate), span)


def _break_even(fit: Fit) -> Cell:
    """The share of the hours above which owning is cheaper than renting on demand, or that it never is."""
    ends = figures.owned(fit.solved, fit.row)
    found = {end: one["break_even_utilization"] for end, one in ends.items()} if ends else {}
    if not found or found["base"] != found["base"]:
        return NONE
    low, base, high = (Cell(found[end], PERCENT) for end in figures.ENDS)
    if found["base"] > 1:
        return words("{}", words("renting on demand is cheaper at any use (owning costs {} of it)", base))
    if found["high"] > 1:
        high = Cell("never")
    hours = words("above {} of the hours", base)
    span = hours if low == high else words("{} ({} to {})", hours, low, high)
    return words("cheaper than renting on demand {}", span)


def _budget(solved: Solution, row: int) -> Cell:
    """The month and the year with contingency in the budget's currency, where these say anything new."""
    settings, found = solved.question.settings, figures.budget(solved, row)
    between, terms = _terms(settings.currency, settings.fx_rate, settings.contingency_fraction)
    if found is None or not terms:
        return NONE
    month, year = (words("{} {}", settings.currency, whole(one[2])) for one in (found.monthly, found.annual))
    return words(f"{{}} a month, {{}} a year{between}{{}}", month, year, terms)


def _terms(code: str, fx_rate: float, contingency_fraction: float) -> tuple[str, str]:
    """What a sum in the budget's currency rests on, and what stands before that; nothing where these are dollars."""
    rate = [] if code == "USD" else [f"(1 USD = {plain(fx_rate)} {code})"]
    extra = [f"with {share(contingency_fraction)} contingency"] if contingency_fraction else []
    return ", " if extra else " ", " ".join(extra + rate)


def month_as_budgeted(usd: float, code: str, fx_rate: float, contingency_fraction: float) -> str:
    """A month's dollars with contingency in the budget's currency: `EUR 40,554, with 10% contingency (1 USD = ...)`;
    nothing where that says nothing new."""
    between, terms = _terms(code, fx_rate, contingency_fraction)
    if not terms:
        return ""
    total = in_currency(total_usd(usd, contingency_usd(usd, contingency_fraction)), fx_rate)
    return f"{code} {whole(float(total))}{between}{terms}"
