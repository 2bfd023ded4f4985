"""A load's answer in words, for `recommend` and `build`: what to rent, its memory, its money, what a change buys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from sheetgen.cli.output import count, table
from sheetgen.launch.flags import Advice
from sheetgen.levers import Lever, Rented, at_fp8, best, in_order, is_less, levers_of
from sheetgen.recommend import Fit, Solution, needs_reservation, not_asked, was_measured, why_not
from sheetgen.recommend.money import owned
from sheetgen.scenario.demand import load_words
from sheetgen.scenario.market import vendor_name
from sheetgen.scenario.question import Load, Question
from sheetgen.sheet.build_page import facts_of
from sheetgen.sheet.hosted import hosted_facts
from sheetgen.sheet.notes import is_old
from sheetgen.sheet.wording import (
    DRAFT_COUNTED,
    first_token,
    layout_words,
    money_band,
    month_as_budgeted,
    picked,
    price_class,
    provider_name,
    saving,
    served,
    sized_by,
    throughput,
    token_time,
)
from sheetgen.units import GIB, PURCHASES, rate_text

SHOWN_LEVERS = 3
SHOWN_REASONS = 8  # against others; --all shows every one
SHOWN_PROVIDERS = 6
NEVER_MEASURED = "never measured by us"
COLUMNS = 80  # of a sentence
STALE = "stale_after_days"


def answer(solved: Solution, show_all: bool, stack: Advice | None = None) -> str:
    """The answer, what changes would buy, then the alternatives: by price, else by time, then memory; the stack that
    suits."""
    question, offer = solved.question, solved.choices[0].offer
    cell, model, workload = question.loads[0], question.models[0], question.workloads[0]
    lines = [
        f"{model.model.name} (weights {model.weight_dtype}, KV cache {model.kv_cache_dtype})",
        f"{load_of(question, cell)}, at {cell.context_tokens:,} tokens "
        f"({workload.input_tokens:,} in + {workload.output_tokens:,} out)",
        *_pace(solved), "",
        headline(solved, 0, with_budget=False),
    ]  # fmt: skip
    levers = levers_of(solved, 0)
    fp8, now = at_fp8(levers), Rented.of(solved, 0)
    if fp8 and (now is None or (fp8.candidate, fp8.n_instances) != (now.candidate, now.n_instances)):
        rented = f"{fp8.n_instances:,}x {fp8.candidate.instance}, ${fp8.monthly_usd:,.0f} a month"
        lines.append(f"{rented}, at FP8 weights and an FP8 KV cache")
    if offer is not None:
        said = (*_memory(solved, offer), *_not_asked(solved), *_money(solved), *_hosted(solved))
        lines += map(sentence, said)
    else:
        lines += map(sentence, _not_asked(solved))
    lines.append("")
    if changes := list(_changes(levers)):
        lines += ["WHAT ONE CHANGE BUYS", *changes, ""]
    reasons = sorted(why_not(solved, 0), key=lambda pair: pair[1].distance)
    shown = reasons if show_all else reasons[:SHOWN_REASONS]
    lines.append("WHY NOT" + ("" if offer is None else " THE OTHERS"))
    rows = [("  " + instance, reason.words) for instance, reason in shown]
    lines.append(table(rows) if rows else "  there is no other candidate")
    if len(shown) < len(reasons):
        lines.append(f"  and {len(reasons) - len(shown)} more: --all shows them")
    advised = [f"Stack: {stack.line}", *(f"{remark}." for remark in stack.remarks)] if stack else []
    lines += ["", *map(sentence, (*advised, _took_part(solved)))]
    if left_out := "; ".join(f"{number} {reason}" for reason, number in question.left_out):
        lines.append(sentence(f"Catalog rows left out: {left_out}."))
    return "\n".join(lines)


def load_of(question: Question, load: Load) -> str:
    """A load as it was stated, and the requests in flight that this means."""
    return load_words({
        **vars(question.settings), **vars(load),
        "requests_per_day": question.rate.requests_per_day if question.rate else 0,
    })  # fmt: skip


def _pace(solved: Solution) -> Iterator[str]:
    """How prompt and answer set the price: by the requests that the load means in a second; and of a rate, the room for
    chance."""
    choice, load, question, fit = solved.choices[0], solved.question.loads[0], solved.question, Fit.of(solved, 0)
    if fit is None:
        return
    if not load.requests_per_second:
        answer = question.workloads[0].output_tokens
        per_second = choice.output_tokens_per_second / answer if answer else 0.0
        yield sentence(
            f"So many in flight at every moment, each answer followed by the next request: {rate_text(per_second)} "
            "requests/s. A shorter answer brings the next prompt sooner, which can raise the price; at a rate "
            "(--requests-per-second) the prompts stay as many."
        )
        return
    wait, allowed = choice.wait_fraction or 0.0, question.settings.max_wait_fraction
    above = f", above the {100 * allowed:.3g} % asked for: the square-root rule is not exact" if wait > allowed else ""
    yield sentence(
        f"{choice.n_places:,} places, of which {rate_text(choice.in_flight)} are taken on average; "
        f"{100 * wait:.2g} % of the requests find none free were all replicas as slow as full ones (exact Erlang-C)"
        f"{above}."
    )


def headline(solved: Solution, row: int, *, with_budget: bool = True) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`, or why there is none; with what is budgeted for it where that differs."""
    choice = solved.choices[row]
    if choice.offer is None:
        return choice.verdict
    rented = f"{choice.n_instances:,}x {solved.candidate(choice.offer).instance}, ${choice.monthly_usd:,.0f} a month"
    settings = solved.question.settings
    budget = month_as_budgeted(choice.monthly_usd, settings.currency, settings.fx_rate, settings.contingency_fraction)
    return f"{rented}, as budgeted {budget}" if budget and with_budget else rented


def dearer(share: float) -> str:
    """How much more something costs: `+12%`, or words where that would round to nothing."""
    if share == 0:
        return "the same price"
    return f"less than 1% {'more' if share > 0 else 'less'}" if abs(share) < 0.005 else f"{share:+.0%}"


def _memory(solved: Solution, offer: int) -> Iterator[str]:
    """How the load sits on the recommended instances, and what comes second."""
    choice, candidate = solved.choices[0], solved.candidate(offer)
    layout, stages = solved.layout(offer), choice.pipeline_parallel_size
    weights, kv = solved.models["weights_bytes"][solved.question.loads[0].model], solved.loads["kv_bytes"][0]
    discount = solved.question.settings.discount_fraction
    each, shape = layout.n_gpus * stages, layout_words(layout, stages)
    yield (
        f"{count(choice.n_replicas, 'replica')} of {each}x {candidate.gpu.short_name} ({shape}): "
        f"{count(choice.n_replicas * each, 'GPU')} at work of {choice.n_instances * candidate.gpu_count:,} rented"
    )
    if needs_reservation(solved, 0):
        yield f"{choice.n_instances:,} machines at once: needs a reservation, ask for capacity"
    held = served(solved, 0)
    yield f"{weights / GIB:,.1f} GiB of weights a replica, {kv / GIB:,.1f} GiB of KV cache in all; {held}"
    times = f"{token_time(solved, 0)}, {throughput(solved, 0)}, {first_token(solved, 0)}"
    yield f"{times}, indicative; bound by {choice.bound_by}"
    if solved.question.draft is not None:
        yield f"{NEVER_MEASURED}: speculative draft, {solved.question.draft.name}"
        yield sentence(DRAFT_COUNTED)
    elif not was_measured(solved, 0, offer, stages):
        yield f"{NEVER_MEASURED}: no runs of this kind took part in the fit of the speed"
    yield str(sized_by(solved, 0))
    if band := money_band(choice):
        yield f"{band}, a month"
    if choice.without_ttft and choice.monthly_usd >= 1.5 * choice.without_ttft.usd:
        yield f"without the target of the first token: {picked(solved, choice.without_ttft)}"
    if choice.cheapest and choice.cheapest.offer != choice.offer:
        yield f"the very cheapest: {picked(solved, choice.cheapest)}"
    allowed = solved.question.overrides.input(STALE, solved.question.reference.assumption(STALE))
    old = f" (older than {allowed:g} days)" if is_old(candidate, solved.question, allowed) else ""
    yield (
        f"${choice.hourly_usd:,.2f} an hour, {price_class(candidate.purchase, discount)} in "
        f"{candidate.region or 'no stated region'}, "
        f"price of {candidate.price_as_of or 'no stated date'}{old}"
        f"{', assumed shape' if candidate.assumed_shape else ''}"
    )
    if choice.runner_up is not None and choice.runner_up_monthly_usd is not None:
        second = solved.candidate(choice.runner_up)
        more = choice.runner_up_monthly_usd / choice.monthly_usd - 1
        yield (
            f"runner-up: {int(solved.costs['n_instances'][0, choice.runner_up]):,}x {second.instance} "
            f"({second.gpu_count}x {second.gpu.short_name} each), "
            f"${choice.runner_up_monthly_usd:,.0f} a month ({dearer(more)})"
        )


def sentence(words: str) -> str:
    """A sentence in lines of 80 columns; no name is broken."""
    return textwrap.fill(words, COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _not_asked(solved: Solution) -> Iterator[str]:
    """What nobody asked for and is clearly cheaper."""
    for one in not_asked(solved)[0]:
        rented = f"{one.n_instances:,}x {one.candidate.instance}, {vendor_name(one.candidate.gpu.vendor)}"
        measured = "" if one.measured else f", {NEVER_MEASURED}"
        yield f"not asked: {rented}, ${one.monthly_usd:,.0f} a month{measured}"


def _took_part(solved: Solution) -> str:
    """Whose instances were compared, with whose GPUs."""
    candidates = solved.question.candidates
    providers = list(dict.fromkeys(provider_name(one.provider) for one in candidates))
    vendors = list(dict.fromkeys(vendor_name(one.gpu.vendor) for one in candidates))
    if others := len(providers[SHOWN_PROVIDERS:]):
        providers[SHOWN_PROVIDERS:] = [count(others, "other provider")]
    said = f"{_and(providers)}, with GPUs of {_and(vendors)}"
    return f"{count(len(candidates), 'instance')} took part, of {said}."


def _and(names: Sequence[str]) -> str:
    """AWS, Azure and GCP."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _money(solved: Solution) -> Iterator[str]:
    """Purchase classes, a user, a million tokens, owning; what is not known is said in one word or left out."""
    facts = facts_of(solved, 0)
    for purchase, (one,) in solved.by_purchase.items():
        if one and purchase != solved.question.settings.purchase:
            yield f"{purchase}: {one.n_instances:,}x {one.candidate.instance}, ${one.usd:,.0f} a month"
    unpriced = [purchase for purchase, (one,) in solved.by_purchase.items() if one is None]
    if unpriced:
        yield f"no price, or none that holds it: {', '.join(unpriced)}"
    tokens = f"; {facts.per_million_tokens}" if facts.per_million_tokens else ""
    yield f"{facts.per_year}; {facts.per_user} and month{tokens}"
    if facts.budget:
        yield f"budget: {facts.budget}"
    if facts.owned:
        old, even = ", an old price" if facts.capex_is_old else "", f"; {facts.break_even}" if facts.break_even else ""
        yield f"own {facts.owned} a month{old}{even}"
        yield from _owning(solved)
    else:
        yield "own: no street price of this GPU is known; give yours with --capex-usd-per-gpu"


def _hosted(solved: Solution) -> Iterator[str]:
    """The same tokens at hosts of the model."""
    found = hosted_facts(solved, 0)
    yield sentence(f"hosted: {found.hosts}")
    if found.renting:
        yield sentence(f"  {found.renting}{f'; {found.rate}' if found.rate else ''}")
    if found.not_given:
        yield sentence(f"  a host does not give: {found.not_given}")


def _owning(solved: Solution) -> Iterator[str]:
    """Owning beside the best committed price, its cash in three years, and what is not in it."""
    ends = owned(solved, 0)
    committed = {p: one for p, (one,) in solved.by_purchase.items() if one and PURCHASES[p].committed}
    if ends is None or ends["base"]["monthly_owned_usd"] != ends["base"]["monthly_owned_usd"]:
        return
    base = ends["base"]
    if committed:
        purchase = min(committed, key=lambda p: committed[p].usd)
        usd = committed[purchase].usd
        word = "less" if base["monthly_owned_usd"] < usd else "more"
        yield f"  {word} than the best commitment, {purchase} at ${usd:,.0f} a month, used in every hour"
    cash = f"  cash in the first 3 years ${base['owned_three_year_cash_usd']:,.0f}: purchase, power and site"
    yield f"{cash}; not in it: staff, network between servers, support, cost of capital"


def _changes(levers: Sequence[Lever]) -> Iterator[str]:
    """The three best levers of the load, what else looser targets of speed would save, the least of it first; then
    another model with a leaner KV cache. All where they save something, or make the load fit."""
    levers = [lever for lever in levers if is_less(lever.before, lever.after)]
    shown = [lever for _, lever in best({0: levers}, SHOWN_LEVERS)]
    if shown:
        yield table([_lever(lever) for lever in shown])
    steps = [one for one in reversed(in_order(levers)) if one.family == "speed" and one not in shown]
    if steps:
        yield "  other targets of speed:"
        yield table([_lever(lever) for lever in steps[:SHOWN_LEVERS]])
    for lever in levers:
        if lever.family == "model":
            words, *cells, cost = _lever(lever)
            yield sentence(f"  {cost}: {', '.join((words.strip(), *cells))}")


def _lever(lever: Lever) -> tuple[str, ...]:
    """A lever that has a price as the columns of a line."""
    after = lever.after
    assert after is not None, "levers without a price are not shown"
    saves = saving(lever)
    rented = f"{after.n_instances:,}x {after.candidate.instance}", f"${after.monthly_usd:,.0f} a month"
    return f"  {lever.words}", *rented, f"saves {saves}" if (lever.saved_usd or 0) > 0 else saves, lever.cost
