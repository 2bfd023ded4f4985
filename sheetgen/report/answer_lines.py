"""The answer to one load in whole sentences, each with a label: for the terminal, and the text of a mail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from sheetgen.answer.answer_record import RATE, AllAtOnceRecord, AskingRecord, CellRecord, PayLess
from sheetgen.answer.confidences import ABOUT, is_below
from sheetgen.answer.pay_less import MORE, NOT_REQUESTED, committed_usd
from sheetgen.formula import is_text, same_money
from sheetgen.question.inputs import ASKS, BY_NAME
from sheetgen.question.market import ALL
from sheetgen.question.parse import words as words_of
from sheetgen.question.sheet_question import Question
from sheetgen.question.stated_load import people_words, stated_words
from sheetgen.report import sentences, wording
from sheetgen.report.host_words import hosted_facts, priced_for
from sheetgen.report.in_currency import amount_in, amounts_of
from sheetgen.report.near_ties import near_tie_words
from sheetgen.report.notes import doubt, is_old, own_list
from sheetgen.report.page import NOT_SURE_OF, THE_SAME, capital
from sheetgen.report.pay_less_words import OF_CHECKPOINTS, TERMS, other_words, short_words
from sheetgen.report.precision_words import unknown_checkpoint_words, weights_gains
from sheetgen.report.templates import q, template
from sheetgen.report.wait_words import at_once_words, full_words, late_values
from sheetgen.report.wording import MARGIN, MEMORY, OF_LIMIT
from sheetgen.units import CAPACITY_BLOCK, EVEN, ON_DEMAND, PERCENT, SPOT, Layout, count, rate_text

SHOWN_WAYS = 3
EXPERT_PARALLEL = "expert parallel"
STALE = "stale_after_days"
IS_TOLD = {"asked_dear", "one_each"}  # reasons to measure first that give the cost of an even chance
OF_MARGIN = {"sure_impossible", "sure_dear"}  # those that give the cost of 0.9, or say that nothing is so sure
IMPOSSIBLE = "impossible"  # of the reasons to measure first: nothing serves the load at the confidence requested
# Requested filters beside the load, in the order of the sentence.
_FILTERS = {
    "region": "in {}",
    "providers": "from {}",
    "vendors": "GPUs of {}",
    "gpus": "on {}",
    "instances": "on {}",
    "kv_cache_dtype": "KV cache {}",
    "engine": "{}",
}
# Typed options of a load that move its answer, in words, where they are not at their defaults.
_TYPED = {
    "history_hit_fraction": template("{value:percent} of each prompt its own history"),
    "prefix_cache_hit_fraction": template("{value:percent} of each prompt in the shared cache"),
    "average_context_fraction": template("contexts {value:percent} full on average"),
    "extra_headroom_fraction": template("{value:percent} headroom"),
    "gpu_memory_utilization": template("{value:percent} of GPU memory"),
    "max_wait_fraction": template("at most {value:percent} waiting"),
    "max_prefill_utilization": template("at most {value:percent} of the time in prompts"),
    "peak_hour_share": template("{value:percent} of a day in its busiest hour"),
    "burst_factor": template("bursts of {value:tenths} times"),
    "speed_factor": template("times {value:tenths} of those predicted"),
}

_QUESTION = template(
    "{model} [mixed?({weights})|in {weights}][unknown? ({checkpoint})] for {load}, of {context} tokens ({prompt} + "
    "{answer}), at least {asked}[narrowed?, {filters}]:",
    narrowed=is_text(q.filters),
    unknown=is_text(q.checkpoint),
    mixed=q.is_mixed == 1,
)
_AT_ONCE = template(
    "[is_stated?{stated}, ]{at_once} at once[many?, enough for at least {people}]",
    is_stated=is_text(q.stated),
    many=is_text(q.people),
)
_ARRIVING = template(
    "[is_stated?{stated} ({rate} a second at peak{so})|{rate} requests a second at peak{so}]",
    is_stated=is_text(q.stated),
    so=template("[served?, {at_once}]", served=is_text(q.at_once)),
)
_MONTH = template(
    "{rent}, {month} a month, {year} a year[differs?{budget}][bound?; commits to {binds}]",
    differs=is_text(q.budget),
    bound=is_text(q.binds),
)
_SURE = template(
    f"{{chance}} that these machines are [short?large and ]fast enough for this load; {NOT_SURE_OF}."
    "[doubted? Least sure: {doubt}.][measured? {reason}]"
    "[priced? {level} costs {month}[elsewhere?, {rent}].][nothing? Nothing is {level}.]",
    short=q.is_short == 1,
    doubted=is_text(q.doubt),
    measured=is_text(q.reason),
    priced=is_text(q.month),
    elsewhere=is_text(q.rent),
    nothing=q.is_nothing == 1,
)
_STEP = template("{chance}: {month}.")
_SERVES = template(
    "up to {most}[routed? by least-busy routing][alone?, one at a time on each replica]"
    "[stepped?, {more} [served?for {month}|by nothing]]; memory for {memory} at once.",
    routed=q.is_routed,
    alone=q.is_alone == 1,
    stepped=is_text(q.more),
    served=is_text(q.month),
)
_HISTORY = template(
    "[timed?kept for {kept} in GPU memory, asked again after {asked}[explained? on average: then it is read anew, or "
    "comes from a KV store]; |lost by the next question; ]read anew: "
    "[served?[same?the same machines|{month}, {rent}][paced?, [worded?first word|answer] after {first} s, {sure}]|"
    "nothing serves it].",
    explained=q.is_explained,
    timed=is_text(q.kept),
    served=is_text(q.month),
    same=q.is_same == 1,
    worded=q.output_tokens > 1,
    paced=is_text(q.first),
)
_WITHOUT_TARGET = template("without [first?the first token's target|targets] {month}: {rent}.", first=q.is_first == 1)
_MORE = template("at {share} {month}, {chance}: {rent}.")
MUCH_LESS = 1.5  # times the cost of a load without a target: then the target sets its price
_WAIT = template(
    f"[worded?First word|Answer]{sentences.BEYOND} after "
    "{first} s[aimed? (target {first_target})][worded?, then {pace} tokens/s"
    "[paced? (target {pace_target})]][mean? on average][some?, with {needed} of the {held} replicas busy]"
    "[filled?; with every place taken after {full} s][waited?; {late}].",
    filled=is_text(q.full),
    late=sentences.late,
    waited=is_text(q.share),
    worded=q.output_tokens > 1,
    mean=q.is_mean == 1,
    some=q.is_some == 1,
    aimed=is_text(q.first_target),
    paced=is_text(q.pace_target),
    beyond=sentences.is_beyond,
)
_HARDWARE = template(
    "{replicas}[spare? ({needed} {needed:is|are} enough)] of {gpus} "
    "({layout}), {prices}, {region}[assumed?, assumed shape]"
    ", {day}[old? (old)][brought?, from {origin}][doubted?; {doubt}].",
    old=q.is_old,
    assumed=q.is_assumed,
    spare=q.needed > 0,
    brought=is_text(q.origin),
    doubted=is_text(q.doubt),
)
_RESERVE = template(f"{capital(sentences.ASK_CAPACITY)}.[fewer? On {{rent}} it is {{month}}.]", fewer=is_text(q.rent))
_RECOMMENDED = template("{month} in {dtype}, as recommended, {chance}: {rent}.")
_NEVER_MEASURED = template(
    "[same_gpu?This layout was never|Never] measured by us[drafted?: {what}][other?; the cheapest that was: "
    "{month}, {rent}, {chance}[passed_over?, {near_tie}]].",
    drafted=is_text(q.what),
    other=is_text(q.rent),
    same_gpu=q.is_same_gpu == 1,
    passed_over=is_text(q.near_tie),
)
_CHEAPEST = template("The cheapest, {month}: {rent}, {near_tie}.")
_INTERRUPTED = template(
    f"[ahead?Paid ahead for fixed days; then the block ends.|{capital(sentences.SPOT_TAKEN)}.]"
    "[usual? On demand it is {month}.]",
    ahead=q.purchase == CAPACITY_BLOCK,
    usual=is_text(q.month),
)
_WAY = template(
    "{month}: {what}[best? (same service)][rented?, {rent}][cheaper_still?; {further_month}: {further}, not requested]",
    cheaper_still=is_text(q.further),
    rented=is_text(q.rent),
    best=q.is_best == 1,
)
_SURER_THERE = template(" ({month}, {sure})")
_GIVES_UP = template("{way}; gives up {gives_up}")
_LONGER = template(
    "At {context} tokens {month}: {rent}, as default targets grow with the context; {targets} allow the same here."
)
_PUBLISHED = template(
    f"[served?[same?the same machines in {{dtype}}|{{month}} in {{dtype}}: {{rent}}][surer?, {{sure}}]|in {{dtype}} "
    f"[held?{sentences.TOO_LATE}|{sentences.NOT_HELD}]][told?; {{own}} [gained?{{gains}}|buys nothing here]].",
    served=is_text(q.month),
    same=q.is_same == 1,
    surer=is_text(q.sure),
    held=q.is_held > 0,
    told=q.is_told == 1,
    gained=is_text(q.gains),
)
_ALL_AT_ONCE = template("all {people} at once: {month}")
_ASKING = template("{times}[first? times a day]: {month}", first=q.is_first == 1)
_SURVIVES = template("a machine may fail: {month}[rented?, {rent}], then {sure}", rented=is_text(q.rent))
_MEASURE = template(
    "[worth?yes|no]: {rent} for a day, {usd}[bound? ({sold_as})]: "
    "[decided?[falls?if {holds}, now {sure}, {cheaper} a month[rises?; if not up to {higher}]|"
    "unless {holds}, [rises?{higher} a month|nothing is {level}]]|"
    "no money hangs on it].",
    worth=q.is_worth_it == 1,
    decided=q.is_decided == 1,
    falls=is_text(q.cheaper),
    rises=is_text(q.higher),
    bound=is_text(q.sold_as),
    holds=template("[short?its start-up log shows that the load fits|it meets the targets]", short=q.limit == MEMORY),
)
_HOSTED = template(
    "{usd} a month[shared? {load}] by {host}[dated?, {precision}, {day}].",
    shared=is_text(q.load),
    dated=is_text(q.day),
)
_DECLINED_REASONS = {kind: template(reason) for kind, reason in sentences.DECLINED_REASONS.items()}
_DECLINED = template(f"{sentences.DECLINED}{{reason}}; {{unpriced}} of {{instances}} types lack that price.")
_UNSOLD = template("{term} was requested: none of {instances} machines has a price of that class. This is on demand.")


class Line(NamedTuple):
    """A sentence and the label before it; "" where it continues the line above."""

    label: str
    text: str


class Rental(Protocol):
    """The number and the name of rented instances."""

    @property
    def instance(self) -> str: ...
    @property
    def n_instances(self) -> int: ...


def rented(rental: Rental) -> str:
    """The instances to rent: 2x aws/p5.48xlarge."""
    return f"{rental.n_instances:,}x {rental.instance}"


def question_words(question: Question, cell: CellRecord) -> str:
    """The question as it was understood, in people, a rate and requests at once."""
    model, workload = question.model_of(cell.row), question.workload_of(cell.row)
    checkpoint = unknown_checkpoint_words(question, cell)
    weights = wording.weights_name(model.model, model.weight_dtype)
    sentence = _QUESTION.fill(
        model=model.model.name,
        weights=weights,
        mixed=weights != model.weight_dtype.upper(),
        unknown=bool(checkpoint),
        checkpoint=checkpoint,
        load=load_of(question, cell),
        context=f"{cell.context_tokens:,}",
        prompt=f"{workload.input_tokens:,}",
        answer=f"{workload.output_tokens:,}",
        asked=str(wording.sure(EVEN if IMPOSSIBLE in cell.measure_first else question.settings.confidence)),
        filters=", ".join(
            filter(None, (*_typed(question, cell), filters_of(question), *_unmet_survival(question, cell)))
        ),
    )
    return str(sentence)


def _typed(question: Question, cell: CellRecord) -> Iterator[str]:
    """The options of a load that were typed beside its size."""
    values = {**vars(question.settings), **dict(question.workload_of(cell.row))}
    for name, words in _TYPED.items():
        if question.options.get(name) is not None and values[name] != BY_NAME[name].default:
            yield str(words.fill(value=values[name]))


def _unmet_survival(question: Question, cell: CellRecord) -> Iterator[str]:
    """The loss that must be survived, for a load that nothing serves; otherwise the line on what is served names it."""
    if cell.chosen is None and question.settings.survive:
        yield f"after the loss of a {wording.lost(question)}"


def filters_of(question: Question) -> str:
    """The hardware filters that were requested; "" where all are at their defaults. Vendors count only where no GPU and
    no instance is named."""
    options = question.options
    requested = {name: words for name, words in _FILTERS.items() if options.get(name) not in (None, "", (), [])}
    if not requested.keys().isdisjoint(("gpus", "instances")):
        requested.pop("vendors", None)
    called = {name: gpu.short_name for gpu in question.gpus for names in gpu.names() for name in names}
    return ", ".join(words.format(_stated(options[name], called)) for name, words in requested.items())


def _stated(value: object, called: Mapping[str, str]) -> str:
    """A list of names in words; of `called` GPUs their short names, which say which form of h100 it is."""
    words = words_of(value) if isinstance(value, str) else tuple(map(str, value))  # type: ignore[call-overload]
    return "anybody" if words == (ALL,) else ", ".join(called.get(word.lower(), word) for word in words)


def load_of(question: Question, cell: CellRecord) -> str:
    """A load as it was stated, with its rate and its requests at once, as far as they follow."""
    stated = stated_words(
        {
            **vars(question.settings),
            **(vars(question.rate) if question.rate else {"requests_per_day": 0, "tokens_per_day": 0}),
            **dict(question.workload_of(cell.row)),
            "users": question.loads[cell.row].users,
        }
    )
    if cell.is_rate:
        rate, at_once = rate_text(cell.requests_per_second), at_once_words(cell)
        return str(_ARRIVING.fill(stated=stated, rate=rate, at_once=at_once, is_stated=bool(stated)))
    at_once = count(cell.requests, "request")
    people = "" if stated or not cell.users >= 1 else people_words(cell.users)
    return str(_AT_ONCE.fill(stated=stated, at_once=at_once, people=people, is_stated=bool(stated), many=bool(people)))


def answer_words(question: Question, cell: CellRecord) -> str:
    """The instances to rent, their cost a month and a year, and the budgeted amount where it differs; or the reason why
    there are none."""
    if cell.chosen is None:
        return cell.verdict
    usd, settings = cell.answer.monthly_usd, question.settings
    purchase, amount = question.instances[cell.answer.instance].purchase, amounts_of(settings)
    terms = settings.currency, settings.fx_rate, settings.contingency_fraction
    if settings.contingency_fraction:
        budget = f"; as budgeted {wording.month_as_budgeted(usd, *terms)}"
    else:  # the month above is in the budget's currency
        budget = wording.both_ways("".join(wording.budget_terms(*terms)), *terms[:2]).rstrip()
    sentence = _MONTH.fill(
        rent=rented(cell.answer),
        month=amount(usd),
        year=amount(cell.units.annual_usd),
        budget=budget,
        differs=bool(budget),
        binds=amount(committed_usd(purchase, usd)) if purchase in TERMS else "",
    )
    return str(sentence)


class Shown(NamedTuple):
    """The optional parts of an answer."""

    n_ways: int = SHOWN_WAYS  # ways to pay less
    has_anew: bool = True  # the gain of a history that is read anew
    has_kept: bool = True  # how long a history is kept
    has_reread: bool = True  # the meaning of reading it anew
    has_fewer: bool = True  # the cost of far fewer machines
    has_measured: bool = True  # the cheapest hardware that was measured
    has_step: bool = True  # the step between two chances
    has_near_tie: bool = True  # cheaper hardware within the near tie
    has_doubt: bool = True  # the limit that the answer is least sure of
    has_run: bool = True  # the answer's own machines, where they are measured
    has_survivor: bool = True  # the cost of surviving the loss of a machine
    has_survivor_rent: bool = True  # what is rented for it
    has_target: bool = True  # the target that sets the price
    has_ways_in_full: bool = True  # ways in more than their short form
    has_as_sure: bool = True  # beside a way that is less sure than the answer one that is as sure
    has_gains: bool = True  # what the recommended weights buy at the same price
    has_best: bool = True  # the cheapest way with the same answers, at all hours
    has_host_facts: bool = True  # facts of the cheapest host
    has_routing: bool = True  # that replicas share the requests, and times are averages
    has_late: bool = True  # who waits for a place, and for how long
    has_full: bool = True  # the times of a rate with every place taken
    has_gap: bool = True  # an empty line below the question
    has_rent: bool = True  # the instances that each way rents
    has_known: bool = True  # the basis of people's habits
    has_no_host: bool = True  # that no host is to be named


def answer_lines(question: Question, cell: CellRecord, shown: Shown) -> Iterator[Line]:
    """The lines that support an answer: certainty, served load, hardware, ways to pay less, the answer as published,
    measurement, cheapest hosted API."""
    for label, texts in (
        ("sure", _sure(question, cell, shown)),
        ("serves", _serves(question, cell, shown)),
        ("history", _history(question, cell, shown)),
        ("hardware", _hardware(question, cell, shown)),
        ("class", _class(question, cell)),
        ("pay less", _pay_less(question, cell, shown)),
        ("memory", _more_of_memory(question, cell)),
        ("target", _target(question, cell) if shown.has_target else ()),
        ("longer", _longer(question, cell)),
        ("weights", _recommended(question, cell)),
        ("published", _published(question, cell, shown.has_gains)),
        ("if", _otherwise(question, cell, shown)),
        ("measure", _measure(question, cell, shown.has_run)),
        ("hosted", _hosted(question, cell, shown.has_host_facts) if cell.hosted or shown.has_no_host else ()),
    ):
        yield from (Line("" if i else label, text) for i, text in enumerate(texts))


def _sure(question: Question, cell: CellRecord, shown: Shown) -> Iterator[str]:
    """How sure the answer is, why to measure first, and what 0.9 costs."""
    answer, margin, settings = cell.answer, cell.at_level(MARGIN), question.settings
    reasons = [
        str(amount_in(words, settings.currency, settings.fx_rate)).replace(" × ", "x ")
        for words in wording.measure_words(cell, settings.confidence, _day_beside(question, cell))
    ]
    is_open = answer.chance < MARGIN and OF_MARGIN.isdisjoint(cell.measure_first[:1])
    costs_no_more = margin is not None and margin.monthly_usd <= answer.monthly_usd * ABOUT
    reason = " ".join(filter(None, (*reasons[:1], _step(question, cell) if shown.has_step else "")))
    sentence = _SURE.fill(
        chance=str(wording.sure(answer.chance)),
        short=answer.limit == MEMORY,
        doubted=shown.has_doubt,
        doubt=_doubt(cell),
        measured=bool(reason),
        reason=reason,
        level=str(wording.sure(MARGIN)),
        priced=is_open and margin is not None,
        month=amounts_of(settings)(margin.monthly_usd) if margin else "",
        elsewhere=costs_no_more,
        rent=rented(margin) if margin else "",
        nothing=is_open and margin is None,
    )
    yield str(sentence)


def _doubt(cell: CellRecord) -> str:
    """The limit that an answer is least sure of; for the times of a rate with the load that the chance is of."""
    limit = cell.answer.limit
    is_timed = cell.is_rate and limit not in (MEMORY, RATE)
    return f"{OF_LIMIT[limit]} with {full_words(cell)}" if is_timed else OF_LIMIT[limit]


def _serves(question: Question, cell: CellRecord, shown: Shown) -> Iterator[str]:
    answer, workload = cell.answer, question.workload_of(cell.row)
    settings, waits, has_routing = question.settings, cell.waits, shown.has_routing
    unit = "requests a second" if cell.is_rate else "at once"
    most = f"{rate_text(answer.served_at_target) if cell.is_rate else f'{answer.served_at_target:,.0f}'} {unit}"
    if more := cell.more_people:
        most = people_words(more.most_users)
    if settings.extra_headroom_fraction:
        most += f" with {PERCENT.text(settings.extra_headroom_fraction)} kept free"
    if settings.survive:
        most += f" after the loss of a {wording.lost(question)}"
    capacity = str(
        _SERVES.fill(
            most=most,
            memory=f"{answer.memory_holds:,}",
            is_routed=has_routing and cell.is_rate and answer.n_replicas > 1,
            is_alone=int(cell.is_rate and cell.n_places == answer.n_replicas),
            more=f"{more.most_users + 1:,}" if more else "",
            month=amounts_of(settings)(more.monthly_usd) if more and more.monthly_usd is not None else "",
            stepped=more is not None,
            served=more is not None and more.monthly_usd is not None,
        )
    )
    first, pace = workload.ttft_target_ms, workload.tpot_target_ms
    wait = _WAIT.fill(
        mean=has_routing and cell.is_rate,
        output_tokens=workload.output_tokens,
        is_beyond=question.speed.is_beyond(cell.input_tokens),
        first=f"{answer.ttft_seconds:.1f}",
        first_target=f"{(first or 0) / 1000:.1f}",
        pace=f"{1 / answer.tpot_seconds:.0f}",
        pace_target=f"{1000 / pace:.0f}" if pace else "",
        aimed=bool(first and settings.speed_targets),
        paced=bool(pace and settings.speed_targets),
        some=answer.replicas_held > answer.n_replicas,
        needed=answer.n_replicas,
        held=answer.replicas_held,
        full=f"{waits.ttft_full_seconds:.1f}" if waits and cell.is_rate and shown.has_full else "",
        **late_values(question, cell, shown.has_late),
    )
    yield f"{capacity} {wait}"


def _history(question: Question, cell: CellRecord, shown: Shown) -> Iterator[str]:
    """How long GPU memory keeps a history, when the people of a load return only after it is gone, and the resources
    that the load takes then."""
    if (history := cell.history) is None:
        return
    other, answer = history.read_anew, cell.answer
    sentence = _HISTORY.fill(
        kept=wording.span(history.kept_seconds) if shown.has_kept else "",
        asked=wording.span(history.asks_again_seconds),
        month=amounts_of(question.settings)(other.monthly_usd) if other else "",
        rent=rented(other) if other else "",
        is_explained=shown.has_reread,
        is_same=int(other is not None and rented(other) == rented(answer)),
        first=f"{other.ttft_seconds:.1f}" if other and shown.has_anew else "",
        output_tokens=cell.output_tokens,
        sure=str(wording.sure(other.chance)) if other else "",
    )
    yield str(sentence)


def _hardware(question: Question, cell: CellRecord, shown: Shown) -> Iterator[str]:
    answer, candidate = cell.answer, question.instances[cell.answer.instance]
    allowed = question.overrides.input(STALE, question.reference.assumption(STALE))
    less = question.discount(candidate.provider, candidate.purchase)
    reason = doubt(candidate, question)
    sentence = _HARDWARE.fill(
        replicas=count(answer.replicas_held, "replica"),
        needed=answer.n_replicas if answer.replicas_held > answer.n_replicas else 0,
        gpus=f"{answer.gpus_per_replica}x {candidate.gpu.short_name}",
        layout=_layout(question, cell),
        prices=wording.price_class(candidate.purchase, less),
        region=candidate.region or "no stated region",
        day=candidate.price_as_of or "no stated date",
        is_assumed=candidate.assumed_shape,
        old=is_old(candidate, question, allowed),
        doubt=f"an implausible price, {reason}" if reason else "",
        doubted=bool(reason),
        brought=candidate.brought,
        origin=own_list(candidate) if candidate.brought else "",
    )
    told = [str(sentence)]
    if cell.needs_reservation:
        fewer, machines = cell.fewer_machines if shown.has_fewer else None, f"{answer.n_instances:,} machines"
        rent, month = (rented(fewer), amounts_of(question.settings)(fewer.monthly_usd)) if fewer else ("", "")
        told.append(str(_RESERVE.fill(machines=machines, rent=rent, month=month, fewer=fewer is not None)))
    if candidate.purchase in (SPOT, CAPACITY_BLOCK):
        usual = cell.by_purchase.get(ON_DEMAND)
        month = amounts_of(question.settings)(usual.monthly_usd) if usual else ""
        told.append(str(_INTERRUPTED.fill(purchase=candidate.purchase, month=month)))
    told_of = ""
    if question.draft is not None:
        draft = f"{question.draft.name} as a draft, whose speed-up is not counted"
        told.append(str(_NEVER_MEASURED.fill(what=draft, drafted=True, other=False, is_same_gpu=0)))
    elif not answer.measured:
        other = cell.measured_hardware if shown.has_measured else None
        told_of = other.instance if other else ""
        near_tie = near_tie_words(cell, told_of)
        sentence = _NEVER_MEASURED.fill(
            drafted=False,
            is_same_gpu=int(other is not None and question.instances[other.instance].gpu.id == candidate.gpu.id),
            rent=rented(other) if other else "",
            month=amounts_of(question.settings)(other.monthly_usd) if other else "",
            chance=str(wording.sure(other.chance)) if other else "",
            other=other is not None,
            near_tie=near_tie,
            passed_over=bool(near_tie),
        )
        told.append(str(sentence))
    least = cell.cheapest
    is_told = least is None or not shown.has_near_tie or least.instance in (answer.instance, told_of)
    if least and not is_told and least.monthly_usd < answer.monthly_usd:
        month, near_tie = amounts_of(question.settings)(least.monthly_usd), near_tie_words(cell, least.instance)
        told.append(str(_CHEAPEST.fill(month=month, rent=rented(least), near_tie=near_tie)))
    yield " ".join(told)


def _layout(question: Question, cell: CellRecord) -> str:
    """The layout: TP 8, and whether experts are dealt out whole, as the start command says: among data-parallel ranks,
    or where tensor parallelism would split a group that shares a scale."""
    answer, model = cell.answer, question.model_of(cell.row).model
    layout = Layout(answer.tensor_parallel_size, answer.data_parallel_size)
    is_whole = layout.data_parallel_size > 1 or model.splits_scale_blocks(
        cell.checkpoint, cell.weight_dtype, layout.tensor_parallel_size
    )
    words = layout.words(answer.pipeline_parallel_size)
    launcher = question.reference.launchers.get(question.engine.engine)
    return f"{words}, {EXPERT_PARALLEL}" if is_whole and launcher and launcher.switches_experts_whole else words


def _class(question: Question, cell: CellRecord) -> Iterator[str]:
    """The reason why the requested purchase class is not the answer's."""
    month = amounts_of(question.settings)
    if declined := cell.declined:
        usd, reason = declined["monthly_usd"], _DECLINED_REASONS.get(declined["reason"])
        slots = {name: f"{declined[name]:,}" for name in ("unpriced", "instances")} | {"term": declined["purchase"]}
        why = str(reason.fill(month=month(usd) if usd else "")) if reason else ""
        yield str(_DECLINED.fill(reason=why, **slots) if reason else _UNSOLD.fill(**slots))


def _is_said_beside(cell: CellRecord) -> bool:
    """True where the cost of an even chance stands beside the certainty, as a reason to measure first."""
    return not IS_TOLD.isdisjoint(cell.measure_first[:1])


def _day_beside(question: Question, cell: CellRecord) -> str:
    """The price of a day's measurement of the hardware at an even chance, where that is named beside the certainty."""
    even, run = cell.at_level(EVEN), cell.measure and cell.measure.decider
    if not (_is_said_beside(cell) and even and run and even.instance == run.instance):
        return ""
    return amounts_of(question.settings)(run.usd) if even.monthly_usd == run.monthly_usd else ""


def _step(question: Question, cell: CellRecord) -> str:
    """The surest level at which the month is clearly less, where an even chance is said beside the certainty."""
    even = cell.at_level(EVEN)
    for way in cell.pay_less:
        if way.kind == "less_sure" and _is_said_beside(cell) and even and even.monthly_usd != way.monthly_usd:
            month = amounts_of(question.settings)(way.monthly_usd)
            return str(_STEP.fill(chance=str(wording.sure(way.chance or 0)), month=month))
    return ""


def _pay_less(question: Question, cell: CellRecord, shown: Shown) -> Iterator[str]:
    """Ways to pay less, the mildest first: a line each with the instances to rent, or all in one line. A short answer
    still has the mildest way on the requested hardware, the commitment that saves most, and the way on hardware that
    was not requested, as a filter hides nothing; for spot, which is no commitment either, every commitment that costs
    less."""
    decider = cell.measure.decider if cell.measure else None
    is_said = _is_said_beside(cell) or any(  # beside the certainty, or where it is measured
        decider is not None and way.kind == "less_sure" and way.monthly_usd == decider.monthly_usd
        for way in cell.pay_less
    )
    apart = (*NOT_REQUESTED, "hosted", "less_sure" if is_said else "")  # hosted APIs have a line of their own
    is_spot = question.instances[cell.answer.instance].purchase == SPOT
    every = [way for way in (*(cell.other_terms if is_spot else ()), *cell.pay_less) if way.kind not in apart]
    as_sure = cell.as_sure if shown.has_as_sure else ()
    elsewhere = [way for way in (*cell.pay_less, *as_sure) if way.kind in NOT_REQUESTED]
    every += [way for way in as_sure if way.kind == "term"]
    first = [*every[:1], *(way for way in every if way.kind == "term"), *elsewhere]
    told = list(dict.fromkeys((*first, *every)))[: max(shown.n_ways, len(first))]
    listed = [way for way in (*every, *elsewhere) if way in told]
    ways = [
        f"{_way(question, cell, way, shown)}{_surer_there(question, way, listed)}"
        for way in listed
        if not _lesser_there(way, listed)
    ]
    if shown.has_rent:
        yield from ways
    elif ways:
        yield f"{'; '.join(ways)}."


def _lesser_there(way: PayLess, ways: Sequence[PayLess]) -> PayLess | None:
    """The less sure way of the same GPU and provider, after which one that is surer stands in brackets."""
    if way.kind not in NOT_REQUESTED or way.other is None or way.chance is None:
        return None
    same = (
        lesser
        for lesser in ways
        if lesser.kind == way.kind and lesser.other and other_words(lesser.other) == other_words(way.other)
    )
    return next((lesser for lesser in same if is_below(lesser.chance or 0, way.chance)), None)


def _surer_there(question: Question, way: PayLess, ways: Sequence[PayLess]) -> str:
    """The price and the certainty of the surer way of the same GPU and provider; "" where there is none."""
    all_surer = [surer for surer in ways if _lesser_there(surer, ways) is way]
    amount = amounts_of(question.settings)
    return "".join(
        str(_SURER_THERE.fill(month=amount(surer.monthly_usd), sure=str(wording.sure(surer.chance or 0))))
        for surer in all_surer
    )


def _way(question: Question, cell: CellRecord, way: PayLess, shown: Shown) -> str:
    """A way in a line, with the instances to rent, without them, or in its short form. Very many machines, and those of
    a commitment that differ from the answer's, are named where there is space."""
    n_instances, further = way.n_instances or 0, way.further if shown.has_ways_in_full else None
    is_other = way.kind == "term" and way.instance != cell.answer.instance
    is_many = n_instances > question.reference.assumption("many_instances")
    is_named = shown.has_rent or (shown.has_ways_in_full and (is_other or is_many))
    is_short = not shown.has_rent and (way.kind in OF_CHECKPOINTS or not shown.has_ways_in_full)
    amount, best = amounts_of(question.settings), cell.cheapest_same
    is_best = best is not None and (way.kind, way.detail, way.instance) == (best.kind, best.detail, best.instance)
    sentence = _WAY.fill(
        month=amount(way.monthly_usd),
        what=short_words(way, question, cell) if is_short and way.kind not in NOT_REQUESTED else way.what,
        rent=f"{n_instances:,}x {way.instance}",
        rented=bool(way.instance) and is_named,
        further=other_words(further) if further else "",
        further_month=amount(further.monthly_usd) if further else "",
        cheaper_still=further is not None,
        is_best=int(shown.has_best and is_best),
    )
    return str(sentence)


def way_words(question: Question, cell: CellRecord, way: PayLess) -> str:
    """A way to pay less in a sentence, with what it gives up."""
    return str(_GIVES_UP.fill(way=_way(question, cell, way, Shown()), gives_up=way.gives_up))


def _more_of_memory(question: Question, cell: CellRecord) -> Iterator[str]:
    """The instances to rent where the engine takes more of each GPU's memory, if that saves clearly."""
    clearly = question.reference.assumption("clearly_cheaper_fraction")
    for lever in cell.levers:
        if lever.lever == MORE and (lever.saved_fraction or 0) > clearly:
            chance, month = str(wording.sure(lever.chance or 0)), amounts_of(question.settings)(lever.monthly_usd)
            yield str(_MORE.fill(share=lever.words, month=month, rent=rented(lever), chance=chance))


def _longer(question: Question, cell: CellRecord) -> Iterator[str]:
    """The nearest longer context that costs less, with its targets."""
    if longer := cell.cheaper_longer:
        allowed = {"--tpot-ms": longer.tpot_target_ms, "--ttft-ms": longer.ttft_target_ms}
        sentence = _LONGER.fill(
            context=f"{longer.context_tokens:,}",
            month=amounts_of(question.settings)(longer.monthly_usd),
            rent=rented(longer),
            targets=" ".join(f"{option} {math.ceil(ms) if ms else 'off'}" for option, ms in allowed.items()),
        )
        yield str(sentence)


def _target(question: Question, cell: CellRecord) -> Iterator[str]:
    """The price of the load without the target of the first token, where that sets the price, or without both targets;
    only where it is much less."""
    without_ttft = cell.without_ttft if cell.answer.sized_by == "ttft" else None
    for other, is_first in ((without_ttft, 1), (cell.without_targets, 0)):
        if other and cell.answer.monthly_usd >= MUCH_LESS * other.monthly_usd:
            month = amounts_of(question.settings)(other.monthly_usd)
            yield str(_WITHOUT_TARGET.fill(month=month, rent=rented(other), is_first=is_first))
            return


def _recommended(question: Question, cell: CellRecord) -> Iterator[str]:
    """The cost with the recommended weights, where others were named and these are cheaper or surer."""
    if other := cell.as_recommended:
        chance, month = str(wording.sure(other.chance)), amounts_of(question.settings)(other.monthly_usd)
        dtype = wording.weights_name(question.model_of(cell.row).model, other.weight_dtype)
        yield str(_RECOMMENDED.fill(dtype=dtype, chance=chance, month=month, rent=rented(other)))


def _published(question: Question, cell: CellRecord, has_gains: bool) -> Iterator[str]:
    other, published = cell.as_recommended, cell.as_published
    is_said = other and published and (other.instance, other.n_instances) == (published.instance, published.n_instances)
    if published and not is_said:
        answer, confidence, chance = cell.answer, question.settings.confidence, published.chance or 0
        is_same = (published.instance, published.n_instances) == (answer.instance, answer.n_instances)
        as_asked = (chance >= confidence) == (answer.chance >= confidence)
        sentence = _PUBLISHED.fill(
            dtype=wording.weights_name(question.model_of(cell.row).model, published.weight_dtype),
            month=amounts_of(question.settings)(published.monthly_usd or 0),
            is_same=int(is_same),
            sure="" if as_asked else str(wording.sure(chance)),
            surer=not as_asked,
            rent=f"{published.n_instances or 0:,}x {published.instance}",
            served=published.instance is not None,
            held=published.is_held,
            is_told=int(has_gains and same_money(published.monthly_usd or 0, answer.monthly_usd)),
            own=wording.weights_name(question.model_of(cell.row).model, cell.weight_dtype),
            gains=weights_gains(cell),
        )
        yield str(sentence)


def _otherwise(question: Question, cell: CellRecord, shown: Shown) -> Iterator[str]:
    """The month where people ask otherwise, and of machines of which one may fail."""
    by_month: dict[str, list[str]] = {}
    for asking in cell.by_requests_per_day:
        by_month.setdefault(_month_of(question, cell, asking), []).append(f"{asking.requests_per_user_per_day:g}")
    loads = [
        str(_ASKING.fill(times=" or ".join(times), month=month, is_first=int(i == 0)))
        for i, (month, times) in enumerate(by_month.items())
    ]
    every = cell.all_at_once
    if every and every.concurrent_requests > 1:
        month = _month_of(question, cell, every)
        loads.append(str(_ALL_AT_ONCE.fill(people=f"{every.concurrent_requests:,}", month=month)))
    is_default = bool(loads) and question.options.get(ASKS) is None and cell.is_rate
    if shown.has_survivor and (survivor := cell.survives_machine):
        month, chance = amounts_of(question.settings)(survivor.monthly_usd), str(wording.sure(survivor.chance))
        rent = rented(survivor) if shown.has_survivor_rent else ""
        loads.append(str(_SURVIVES.fill(month=month, rent=rent, sure=chance)))
    if loads:
        basis = f" {sentences.known_asks.fill()}" if is_default and shown.has_known else ""
        yield f"{'; '.join(loads)}.{basis}"


def _month_of(question: Question, cell: CellRecord, other: AskingRecord | AllAtOnceRecord) -> str:
    """The month under other habits, or the words that it is the same."""
    same = other.monthly_usd == cell.answer.monthly_usd
    return THE_SAME if same else amounts_of(question.settings)(other.monthly_usd)


def _hosted(question: Question, cell: CellRecord, has_facts: bool) -> Iterator[str]:
    if not cell.hosted:
        yield f"{hosted_facts(question, cell).hosts}."
        return
    host, settings = cell.hosted[0], question.settings
    sentence = _HOSTED.fill(
        host=question.reference.hosted.host_name(host.host),
        precision=host.precision or "precision unknown",
        usd=amounts_of(settings)(host.monthly_usd),
        dated=has_facts,
        day=host.read_on,
        load="" if cell.users >= 1 else str(priced_for(question, cell)),  # of people the question says how many
    )
    yield str(sentence)


def _of_these(n_instances: int) -> str:
    """A number of the answer's own machines."""
    return "one" if n_instances == 1 else f"{n_instances:,} of these"


def _measure(question: Question, cell: CellRecord, has_run: bool) -> Iterator[str]:
    """The hardware to measure, and the month that the run decides: of cheaper hardware where the month would fall, else
    of the answer; nothing where that stands beside the certainty. has_run: name the answer's own machines."""
    if (measure := cell.measure) is None or _day_beside(question, cell):
        return
    run, cheaper, margin = measure.run, measure.decider, cell.at_level(MARGIN)
    even = cell.at_level(EVEN)
    amount = amounts_of(question.settings)
    higher = amount(margin.monthly_usd) if margin and margin.monthly_usd > cell.answer.monthly_usd else ""
    sentence = _MEASURE.fill(
        rent=rented(run) if has_run or run.instance != cell.answer.instance else _of_these(run.n_instances),
        usd=amount(run.usd),
        is_worth_it=int(measure.is_worth_it),
        sold_as=run.purchase,
        bound=run.purchase != ON_DEMAND,
        decided=cheaper is not None or margin is None or bool(higher),
        short=(cheaper or cell.answer).limit == MEMORY,
        month=amount(cell.answer.monthly_usd),
        falls=cheaper is not None,
        cheaper=amount(cheaper.monthly_usd) if cheaper else "",
        sure=str(wording.sure(even.chance)) if cheaper and even else "",
        higher=higher,
        rises=bool(higher),
        level=str(wording.sure(MARGIN)),
    )
    yield str(sentence)
