"""A load's answer in words, for `recommend` and `build`: what to rent, its memory, its money, what a change buys."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from sheetgen.answer import (
    Fit,
    Pick,
    Reason,
    Rental,
    Solution,
    hosts_of,
    needs_reservation,
    not_asked,
    was_measured,
    why_not,
)
from sheetgen.answer.levers import Lever, Rented, at_fp8, best, in_order, is_less, levers_of
from sheetgen.answer.ways_to_pay import owned
from sheetgen.cli.output import table
from sheetgen.launch.flags import Advice
from sheetgen.question.market import Candidate, vendor_name
from sheetgen.question.sheet_question import Load, Question
from sheetgen.question.stated_load import load_words
from sheetgen.report.build_page import facts_of
from sheetgen.report.host_words import hosted_facts, hosted_rate
from sheetgen.report.notes import doubt, is_old
from sheetgen.report.wording import (
    DRAFT_COUNTED,
    first_token,
    is_cheaper_pick,
    money_band,
    month_as_budgeted,
    price_class,
    saving,
    served,
    sized_by,
    throughput,
    token_time,
    took_part,
)
from sheetgen.units import GIB, PERCENT, PURCHASES, count, rate_text

SHOWN_LEVERS = 3
SHOWN_REASONS = 8  # against others; --all shows every one
NEVER_MEASURED = "never measured by us"
STALE = "stale_after_days"
LEAST_WAIT = 1e-4  # a share of the requests; one below it is not said in digits
SHOWN_CHEAPER = 3
AT_FP8 = "FP8 weights and KV cache"
MORE = "--details: every lever, class and host, owning, why not the others"
Row = tuple[str, str]  # a label, or nothing where it stands above; and a line


def recommendation(solved: Solution, details: bool, show_all: bool, stack: Advice | None = None) -> str:
    """The question, its answer, and five labelled lines of what it rests on; with `details` everything else, under
    headings."""
    found = solved.choices[0].offer is not None
    levers = levers_of(solved, 0)
    said = [f"{_question(solved)}.", *_pace(solved), "", headline(solved, 0), ""]
    rows = _hardware(solved, levers) if found else _no_hardware(solved, levers)
    said.append(table(list(rows) + ([] if details or show_all else [("more", MORE)])))
    if details or show_all:
        for heading, lines in _details(solved, levers, show_all, stack):
            if lines := list(lines):
                every = (line for text in lines for line in text.split("\n"))
                said += ["", heading, *(line if line[0] == " " else f"  {line}" for line in every)]
    return "\n".join(said)


def _question(solved: Solution) -> str:
    """The question as it was understood."""
    question, model = solved.question, solved.question.models[0]
    load, workload = question.loads[0], question.workloads[0]
    return (
        f"{model.model.name} (weights {model.weight_dtype}, KV cache {model.kv_cache_dtype}): "
        f"{load_of(question, load)}, at {load.context_tokens:,} tokens "
        f"({workload.input_tokens:,} prompt + {workload.output_tokens:,} answer)"
    )


def load_of(question: Question, load: Load) -> str:
    """A load as it was stated, and the requests at once that this means."""
    return load_words(
        {
            **vars(question.settings),
            **vars(load),
            "requests_per_day": question.rate.requests_per_day if question.rate else 0,
        }
    )


def _pace(solved: Solution) -> Iterator[str]:
    """How prompt and answer set the price: by the requests that the load means in a second; and of a rate, the room for
    chance."""
    choice, load, question = solved.choices[0], solved.question.loads[0], solved.question
    if choice.offer is None:
        return
    if not load.requests_per_second:
        answer = question.workloads[0].output_tokens
        if not answer:
            return
        per_second = choice.output_tokens_per_second / answer
        yield f"That is {rate_text(per_second)} requests/s; shorter answers bring more prompts and can cost more."
        return
    wait, allowed = choice.wait_fraction or 0.0, question.settings.max_wait_fraction
    above = f", above the {100 * allowed:.3g} % requested: the square-root rule is not exact" if wait > allowed else ""
    full = float(solved.at(0, offer=choice.offer)["offered_requests"][0])
    rare = f"below {100 * LEAST_WAIT:g} %"  # what nobody will ever see
    yield (
        f"{choice.n_places:,} places, sized as if every replica were as slow as a full one: {rate_text(full)} taken, "
        f"{f'{100 * wait:.2g} %' if wait >= LEAST_WAIT else rare} of the requests find none free{above}."
    )


def _load(solved: Solution) -> Iterator[str]:
    """What the line about prompt and answer rests on."""
    if solved.question.loads[0].requests_per_second:
        yield "who finds no place free: by exact Erlang-C"
    else:
        yield (
            "so many run at every moment, each answer followed by the next request: a shorter answer brings "
            "the next prompt sooner, which can raise the price; of a rate (--requests-per-second) it lowers it"
        )


def headline(solved: Solution, row: int) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`, or why there is none; with what is budgeted for it where that differs."""
    choice = solved.choices[row]
    if choice.offer is None:
        return choice.verdict
    return budgeted_words(choice.n_instances, solved.candidate(choice.offer), choice.monthly_usd, solved.question)


def budgeted_words(n_instances: int, candidate: Candidate, usd: float, question: Question) -> str:
    """What is rented and its month, which has no contingency in it, and what is budgeted for it where that differs."""
    rented, settings = rented_words(n_instances, candidate, usd), question.settings
    budget = month_as_budgeted(usd, settings.currency, settings.fx_rate, settings.contingency_fraction)
    return f"{rented}, as budgeted {budget}" if budget else rented


def rented_words(n_instances: int, candidate: Candidate, usd: float) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`."""
    return f"{n_instances:,}x {candidate.instance}, ${usd:,.0f} a month"


def _picked(solved: Solution, one: Pick) -> str:
    """What another rule would take."""
    return rented_words(one.n_instances, solved.candidate(one.offer), one.usd)


def dearer(share: float) -> str:
    """How much more something costs: `+12%`, or words where that would round to nothing."""
    if share == 0:
        return "the same price"
    return f"less than 1% {'more' if share > 0 else 'less'}" if abs(share) < 0.005 else f"{share:+.0%}"


def _labelled(label: str, lines: Iterable[str]) -> Iterator[Row]:
    """Lines of which the first one has the label."""
    yield from ((label if i == 0 else "", line) for i, line in enumerate(lines))


def _hardware(solved: Solution, levers: Sequence[Lever]) -> Iterator[Row]:
    """What the answer rests on: the hardware, what it serves, its price, what is cheaper, and what comes instead."""
    for label, lines in (
        ("hardware", _replicas(solved)),
        ("serves", _serves(solved)),
        ("price", _price(solved)),
        ("cheaper", _cheaper(solved, levers)),
        ("instead", _instead(solved)),
        ("hosted", _host(solved)),
    ):
        yield from _labelled(label, lines)


def _no_hardware(solved: Solution, levers: Sequence[Lever]) -> Iterator[Row]:
    """Why there is no answer, and what would help."""
    question, choice = solved.question, solved.choices[0]
    for instance, reason in _reasons(solved)[:1]:
        yield "why", f"the nearest, {instance}: {reason.words}"
    fitting = [lever for lever in levers if lever.after and not lever.further]
    fastest = [lever for lever in fitting if lever.family == "speed"][:1]
    yield from _labelled("fastest", map(_helps, fastest))
    helping = sorted(
        (lever for lever in fitting if lever not in fastest), key=lambda one: one.after.monthly_usd if one.after else 0
    )
    yield from _labelled("helps", map(_helps, helping[:SHOWN_CHEAPER]))
    if alone := choice.without_targets:
        yield "memory", f"alone would take {_picked(solved, alone)}"
    yield from _labelled("elsewhere", _not_asked(solved))
    if question.filters.region:
        yield "regions", ", ".join(sorted({one.region for one in question.candidates})) + ", by --region"
    yield "searched", _took_part(solved)


def _helps(lever: Lever) -> str:
    """A change with which something holds the load, and what."""
    assert lever.after is not None, "levers without a price help nobody"
    return f"{lever.words}: {rented_words(lever.after.n_instances, lever.after.candidate, lever.after.monthly_usd)}"


def _replicas(solved: Solution) -> Iterator[str]:
    """How the load sits on what is rented, and whether that is to be had and was measured."""
    choice, fit, draft = solved.choices[0], Fit.of(solved, 0), solved.question.draft
    assert fit is not None and choice.offer is not None, "of an answer alone"
    stages, gpu = choice.pipeline_parallel_size, fit.candidate.gpu
    each, shape = fit.layout.n_gpus * stages, fit.layout.words(stages)
    rented = choice.n_instances * fit.candidate.gpu_count
    held = int(fit["replicas_per_instance"] * choice.n_instances) if stages == 1 else choice.n_replicas
    more = f"; {held:,} of them fit on what is rented, and all serve" if held > choice.n_replicas else ""
    yield (
        f"{count(choice.n_replicas, 'replica')} of {each}x {gpu.short_name} ({shape}){' needed' if more else ''}: "
        f"{count(fit.gpus_used, 'GPU')}{'' if more else ' at work'} of {rented:,} rented{more}"
    )
    if needs_reservation(solved, 0):
        yield f"{choice.n_instances:,} machines at once: needs a reservation, ask for capacity"
    if draft is not None:
        yield f"{NEVER_MEASURED}: speculative draft, {draft.name}"
    elif not was_measured(solved, 0, choice.offer):
        yield f"{NEVER_MEASURED}: no runs of this kind in the fit of the speed"


def _serves(solved: Solution) -> Iterator[str]:
    yield str(served(solved, 0)).removeprefix("serves ")
    yield f"{token_time(solved, 0)}, {first_token(solved, 0)}"
    yield str(sized_by(solved, 0)).replace(" × ", "x ")


def _price(solved: Solution) -> Iterator[str]:
    choice, question = solved.choices[0], solved.question
    assert choice.offer is not None, "of an answer alone"
    candidate = solved.candidate(choice.offer)
    allowed = question.overrides.input(STALE, question.reference.assumption(STALE))
    less = question.discount(candidate.provider, candidate.purchase)
    old = f" (older than {allowed:g} days)" if is_old(candidate, question, allowed) else ""
    why = doubt(candidate, question)
    yield (
        f"${choice.hourly_usd:,.2f} an hour, {price_class(candidate.purchase, less)} in "
        f"{candidate.region or 'no stated region'}, price of {candidate.price_as_of or 'no stated date'}{old}"
        f"{', assumed shape' if candidate.assumed_shape else ''}{f'; an implausible price, {why}' if why else ''}"
    )
    band = money_band(choice)
    yield f"{facts_of(solved, 0).per_year}{f'; {band}' if band else ''}"


def _cheaper(solved: Solution, levers: Sequence[Lever]) -> Iterator[str]:
    """The two or three of all other answers that save most, each with what it gives up."""
    choice, fp8 = solved.choices[0], at_fp8(levers)
    found: list[tuple[str, Candidate, int, float]] = []
    saving = (one for _, one in best({0: levers}, len(levers)) if one.after is not fp8 and (one.saved_usd or 0) > 0)
    for what, after in ((AT_FP8, fp8), *((one.words, one.after) for one in itertools.islice(saving, 1))):
        if after:
            found.append((what, after.candidate, after.n_instances, after.monthly_usd))
    if committed := _best_commitment(solved):
        purchase, rental = committed
        found.append((purchase, *rental[:3]))
    if near := choice.cheapest:
        found.append(("the very cheapest, a near tie", solved.candidate(near.offer), near.n_instances, near.usd))
    vendors = {one.gpu.vendor for one in solved.question.candidates}
    for one in not_asked(solved)[0]:
        vendor = one.candidate.gpu.vendor
        whose = "provider" if vendor in vendors else vendor_name(vendor)
        said = f"{whose} not requested{'' if one.measured else ', never measured'}"
        found.append((said, one.candidate, one.n_instances, one.monthly_usd))
    less = sorted((option for option in found if option[3] < choice.monthly_usd), key=lambda option: option[3])
    for what, candidate, n_instances, usd in less[:SHOWN_CHEAPER]:
        yield f"${usd:,.0f}: {n_instances:,}x {candidate.instance}, {what}"
    if not less:
        yield "no single change, commitment or other provider that was tried"


def _best_commitment(solved: Solution) -> tuple[str, Rental] | None:
    """The committed purchase class whose answer costs least, where one has an answer."""
    committed = {p: one for p, (one,) in solved.by_purchase.items() if one and PURCHASES[p].committed}
    return min(committed.items(), key=lambda pair: pair[1].usd, default=None)


def _instead(solved: Solution) -> Iterator[str]:
    """The next cheapest with another GPU or from another provider."""
    choice = solved.choices[0]
    if choice.runner_up is None or choice.runner_up_monthly_usd is None:
        yield "no other GPU or provider that took part holds it"
    else:
        second, usd = solved.candidate(choice.runner_up), choice.runner_up_monthly_usd
        rented = rented_words(int(solved.costs["n_instances"][0, choice.runner_up]), second, usd)
        yield f"{rented} ({dearer(usd / choice.monthly_usd - 1)})"


def _host(solved: Solution) -> Iterator[str]:
    """The cheapest host of the same model."""
    question = solved.question
    if hosts := hosts_of(solved, 0).cheapest:
        above = hosts[0].cheaper_above.get(question.settings.purchase)
        even = f"machines are cheaper above {PERCENT.text(above)}" if above else "machines are never cheaper"
        used = f"a month for the same tokens at {PERCENT.text(question.settings.utilization)} utilization"
        used += f", read {question.reference.hosted.read_on}"
        precision = hosts[0].price.precision or "precision unknown"
        yield f"{hosts[0].host_name} ({precision}), ${hosts[0].monthly_usd:,.0f} {used}; {even}"
    else:
        yield str(hosted_facts(solved, 0).hosts)


def _reasons(solved: Solution) -> list[tuple[str, Reason]]:
    """Why not the others, the nearest first: by price, else by time, then memory."""
    return sorted(why_not(solved, 0), key=lambda pair: pair[1].distance)


def _details(
    solved: Solution, levers: Sequence[Lever], show_all: bool, stack: Advice | None
) -> Iterator[tuple[str, Iterable[str]]]:
    """Under headings, what the answer and its five lines leave out."""
    found = solved.choices[0].offer is not None
    if found:
        yield "LOAD AND SPEED", (*_load(solved), *_memory(solved))
    yield "WHAT ONE CHANGE BUYS", _changes(solved, levers)
    if found:
        yield "NOT REQUESTED", _not_asked(solved)
        yield "OTHER WAYS TO PAY", _money(solved)
        yield "OWNING", _owning(solved)
        yield "HOSTED", _hosted(solved)
    reasons = _reasons(solved)
    shown = reasons if show_all else reasons[:SHOWN_REASONS]
    rest = [f"and {len(reasons) - len(shown)} more: --all shows them"] if len(shown) < len(reasons) else []
    told = table(("  " + instance, reason.words) for instance, reason in shown) or "there is no other candidate"
    yield f"WHY NOT{' THE OTHERS' if found else ''}", (told, *rest)
    if stack:
        yield "STACK", (stack.line, *(f"{remark}." for remark in stack.remarks))
    left_out = "; ".join(f"{number} {reason}" for reason, number in solved.question.left_out)
    yield (
        "WHO TOOK PART",
        (
            *([_took_part(solved)] if found else []),
            *([f"Catalog rows left out: {left_out}."] if left_out else []),
        ),
    )


def _memory(solved: Solution) -> Iterator[str]:
    """The parts of memory, what bounds the speed, and what other rules would take."""
    choice = solved.choices[0]
    weights, kv = solved.models["weights_bytes"][solved.question.loads[0].model], solved.loads["kv_bytes"][0]
    yield f"{weights / GIB:,.1f} GiB of weights a replica, {kv / GIB:,.1f} GiB of KV cache in all"
    yield f"{throughput(solved, 0)}; every speed is indicative; bound by {choice.bound_by}"
    if solved.question.draft is not None:
        yield DRAFT_COUNTED
    if choice.without_ttft and choice.monthly_usd >= 1.5 * choice.without_ttft.usd:
        yield f"without the target of the first token: {_picked(solved, choice.without_ttft)}"
    if choice.cheapest and is_cheaper_pick(solved, choice):
        yield f"the very cheapest: {_picked(solved, choice.cheapest)}"


def _not_asked(solved: Solution) -> Iterator[str]:
    """What was not requested and is clearly cheaper, or holds what nothing else does."""
    for one in not_asked(solved)[0]:
        measured = "" if one.measured else f", {NEVER_MEASURED}"
        rented = rented_words(one.n_instances, one.candidate, one.monthly_usd)
        yield f"{vendor_name(one.candidate.gpu.vendor)}: {rented}{measured}"


def _took_part(solved: Solution) -> str:
    """Whose instances were compared, with whose GPUs."""
    candidates = solved.question.candidates
    return f"{count(len(candidates), 'instance')} took part, {took_part(candidates)}."


def _money(solved: Solution) -> Iterator[str]:
    """Purchase classes, a user, a million tokens and the budget; what is not known is said in one word or left out."""
    facts = facts_of(solved, 0)
    for purchase, (one,) in solved.by_purchase.items():
        if one and purchase != solved.question.settings.purchase:
            yield f"{purchase}: {rented_words(one.n_instances, one.candidate, one.usd)}"
    unpriced = [purchase for purchase, (one,) in solved.by_purchase.items() if one is None]
    if unpriced:
        yield f"no price, or none that holds it: {', '.join(unpriced)}"
    yield f"{facts.per_user} and month{f'; {facts.per_million_tokens}' if facts.per_million_tokens else ''}"
    if facts.budget:
        yield f"budget: {facts.budget}"


def _hosted(solved: Solution) -> Iterator[str]:
    """The same tokens at hosts of the model."""
    found = hosted_facts(solved, 0)
    yield str(found.hosts)
    if found.hosts_rent:
        rate = hosted_rate(solved, 0)
        yield f"{found.hosts_rent}{f'; {rate}' if rate else ''}"
    if found.not_given:
        yield f"a host does not give: {found.not_given}"


def _owning(solved: Solution) -> Iterator[str]:
    """What owning takes, beside the best committed price, its cash in three years, and what is not in it."""
    facts, ends = facts_of(solved, 0), owned(solved, 0)
    if not facts.owned or ends is None:
        yield "own: no street price of this GPU is known; give yours with --capex-usd-per-gpu"
        return
    old, even = ", an old price" if facts.capex_is_old else "", f"; {facts.break_even}" if facts.break_even else ""
    yield f"own {facts.owned} a month{old}{even}"
    base = ends["base"]
    if committed := _best_commitment(solved):
        purchase, one = committed
        word = "less" if base["monthly_owned_usd"] < one.usd else "more"
        yield f"{word} than the best commitment, {purchase} at ${one.usd:,.0f} a month, used in every hour"
    cash = f"cash in the first 3 years ${base['owned_three_year_cash_usd']:,.0f}: purchase, power and site"
    yield f"{cash}; not in it: staff, network between servers, support, cost of capital"


def _changes(solved: Solution, levers: Sequence[Lever]) -> Iterator[str]:
    """The three best levers of the load, what else looser targets of speed would save, the least of it first; then
    another model with a leaner KV cache, and FP8 where it rents something else. All where they save something, or make
    the load fit."""
    useful = [lever for lever in levers if is_less(lever.before, lever.after)]
    shown = [lever for _, lever in best({0: useful}, SHOWN_LEVERS)]
    if shown:
        yield table([_lever(lever) for lever in shown])
    steps = [one for one in reversed(in_order(useful)) if one.family == "speed" and one not in shown]
    if steps:
        yield "other targets of speed:"
        yield table([_lever(lever) for lever in steps[:SHOWN_LEVERS]])
    for lever in useful:
        if lever.family == "model":
            words, *cells, cost = _lever(lever)
            yield f"{cost}: {', '.join((words.strip(), *cells))}"
    fp8, now = at_fp8(levers), Rented.of(solved, 0)
    if fp8 and (now is None or (fp8.candidate, fp8.n_instances) != (now.candidate, now.n_instances)):
        yield f"{AT_FP8}: {rented_words(fp8.n_instances, fp8.candidate, fp8.monthly_usd)}"


def _lever(lever: Lever) -> tuple[str, ...]:
    """A lever that has a price as the columns of a line."""
    after = lever.after
    assert after is not None, "levers without a price are not shown"
    saves = saving(lever)
    rented = f"{after.n_instances:,}x {after.candidate.instance}", f"${after.monthly_usd:,.0f} a month"
    return f"  {lever.words}", *rented, f"saves {saves}" if (lever.saved_usd or 0) > 0 else saves, lever.cost
