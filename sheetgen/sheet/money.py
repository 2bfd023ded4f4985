"""Money in words, per model at the headline load: for the page and for `recommend`. Plain texts, no numbers."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.cost import contingency_usd, in_currency, total_usd
from sheetgen.recommend import Solution
from sheetgen.recommend import money as figures
from sheetgen.sheet.fit import Fit, headline_rows
from sheetgen.sheet.notes import is_stale
from sheetgen.sheet.wording import NONE, money, plain, share
from sheetgen.units import PERCENT, USD_CENTS, WHOLE

CENTS_BELOW = 100  # dollars: smaller sums are shown with cents


@dataclass(frozen=True)
class MoneyFacts:
    """One model's money at the headline load; `NONE` where something is not known."""

    model: str
    classes: tuple[tuple[str, str], ...]  # ("reserved-3yr", "$17,108"), a month, in the order of the classes
    per_year: str  # "$480,872 a year"
    per_user: str  # "$1,252 per user and month"
    per_million_tokens: str  # "$0.21 prompt, $3.40 answer per million tokens at 70% utilization"
    owned: str  # "own 16× A100 80GB SXM: $6,549 to $9,424 a month"
    break_even: str  # "cheaper above 20% of the hours (16% to 24%)"
    budget: str  # "EUR 40,554 a month, EUR 486,643 a year, with 10% contingency"; NONE where it says nothing new
    capex_is_old: bool
    is_quoted: bool = False  # owning is at the reader's own price, not at street prices


def money_facts(solved: Solution, stale_after_days: float) -> tuple[MoneyFacts, ...]:
    """The money of every model at the headline load, in their order."""
    return tuple(facts_of(solved, row, stale_after_days) for row in headline_rows(solved))


def facts_of(solved: Solution, row: int, stale_after_days: float = 180) -> MoneyFacts:
    """The money of one load; all NONE where nothing holds it."""
    name = solved.question.models[solved.question.loads[row].model].model.name
    fit = Fit.of(solved, row)
    if fit is None:
        return MoneyFacts(name, (), NONE, NONE, NONE, NONE, NONE, NONE, False)
    units = figures.unit_costs(solved, row)
    known = solved.question.owning.gpus.get(fit.candidate.gpu.id)
    quoted = known is None or known.capex_usd is None or known.capex_as_of is None
    return MoneyFacts(
        model=name,
        classes=tuple((one.purchase, _dollars(one.monthly_usd)) for one in figures.purchase_classes(solved, row)),
        per_year=f"{money(units['annual_usd'])} a year",
        per_user=f"{_dollars(units['usd_per_user_per_month'])} per user and month",
        per_million_tokens=_tokens(units, solved.question.settings.utilization),
        owned=_owned(fit),
        break_even=_break_even(fit),
        budget=_budget(solved, row),
        capex_is_old=not quoted
        and known is not None
        and is_stale(known.capex_as_of, solved.question.as_of, stale_after_days),
        is_quoted=quoted,
    )


def _dollars(usd: float) -> str:
    """Whole dollars, cents below a hundred; NONE where no price is known."""
    if usd != usd:
        return NONE
    return USD_CENTS.text(usd) if usd < CENTS_BELOW else money(usd)


def _tokens(units: dict[str, float], utilization: float) -> str:
    prompt, answer = units["usd_per_million_input_tokens"], units["usd_per_million_output_tokens"]
    if answer != answer:
        return NONE
    at = f"at {share(utilization)} utilization"
    return f"{_dollars(prompt)} prompt, {_dollars(answer)} answer per million tokens {at}"


def _owned(fit: Fit) -> str:
    """What the GPUs of the replicas cost a month when owned, from the low to the high price."""
    ends = figures.owned(fit.solved, fit.row)
    if ends is None or ends["base"]["monthly_owned_usd"] != ends["base"]["monthly_owned_usd"]:
        return NONE
    low, high = (_dollars(ends[end]["monthly_owned_usd"]) for end in ("low", "high"))
    span = low if low == high else f"{low} to {high}"
    return f"own {fit.gpus_used:,}× {fit.candidate.gpu.short_name}: {span} a month"


def _break_even(fit: Fit) -> str:
    """The share of the hours above which owning is cheaper than renting on demand."""
    ends = figures.owned(fit.solved, fit.row)
    found = {end: one["break_even_utilization"] for end, one in ends.items()} if ends else {}
    if not found or found["base"] != found["base"]:
        return NONE
    low, base, high = (PERCENT.text(found[end]) for end in figures.ENDS)
    if found["base"] > 1:
        return f"renting on demand is cheaper at any use (owning costs {base} of it)"
    if found["high"] > 1:
        high = "never"
    span = "" if low == high else f" ({low} to {high})"
    return f"cheaper than renting on demand above {base} of the hours{span}"


def _budget(solved: Solution, row: int) -> str:
    """The month and the year with contingency in the budget's currency, where these say anything new."""
    settings, found = solved.question.settings, figures.budget(solved, row)
    if found is None or (settings.contingency_fraction == 0 and settings.currency == "USD"):
        return NONE
    code = settings.currency
    month, year = (f"{code} {WHOLE.text(one[2])}" for one in (found.monthly, found.annual))
    return f"{month} a month, {year} a year{_terms(code, settings.fx_rate, settings.contingency_fraction)}"


def _terms(code: str, fx_rate: float, contingency_fraction: float) -> str:
    rate = "" if code == "USD" else f" (1 USD = {plain(fx_rate)} {code})"
    return (f", with {share(contingency_fraction)} contingency" if contingency_fraction else "") + rate


def month_as_budgeted(usd: float, code: str, fx_rate: float, contingency_fraction: float) -> str:
    """A month's dollars with contingency in the budget's currency: `EUR 40,554, with 10% contingency (1 USD = ...)`;
    nothing where that says nothing new."""
    if contingency_fraction == 0 and code == "USD":
        return ""
    total = in_currency(total_usd(usd, contingency_usd(usd, contingency_fraction)), fx_rate)
    return f"{code} {WHOLE.text(float(total))}{_terms(code, fx_rate, contingency_fraction)}"
