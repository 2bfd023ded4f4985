"""A load's answer in words, for `recommend` and `build`: machines, memory, money, and what changes save."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sheetgen.answer.answer_record import (
    DOUBTED,
    CellRecord,
    LeverRecord,
    NotAskedRecord,
    NotChosen,
    RentalRecord,
    RunnerUp,
)
from sheetgen.answer.levers import best
from sheetgen.cli.output import folded, table
from sheetgen.program.sheet_program import OF_CHANCE
from sheetgen.question.sheet_question import Question
from sheetgen.report.answer_lines import SHOWN_WAYS, Shown, answer_lines, answer_words, question_words, way_words
from sheetgen.report.build_page import facts_of
from sheetgen.report.host_words import hosted_facts, hosted_rate
from sheetgen.report.in_currency import amount_in, amounts_of
from sheetgen.report.page import Cell, Text
from sheetgen.report.pay_less_words import cheapest_words, other_words
from sheetgen.report.precision_words import (
    checkpoint_words,
    is_passed_over,
    published_words,
    sized_as_words,
    weights_reason,
)
from sheetgen.report.sentences import not_deployed, rounded_chance, worked_out
from sheetgen.report.wait_words import share_words, wait_words
from sheetgen.report.wording import (
    DRAFT_COUNTED,
    month_as_budgeted,
    saving,
    seconds,
    sure,
    throughput,
    took_part,
    weights_name,
)
from sheetgen.units import CHANCE_STEP, GIB, ON_DEMAND, PURCHASES, USD, count, rate_text

if TYPE_CHECKING:
    from sheetgen.launch.flags import Advice

# Of an answer without details the lines at that width: what it tells is the same on any terminal.
MOST_LINES, WIDTH_OF_LINES = 18, 100
# Lines that are shown as far as MOST_LINES hold them, the first of these first; the rest of an answer always is.
LEAST_SHOWN = Shown(0, *(False for _ in Shown._fields[1:]))
_FIRST = (
    *("has_anew", "has_kept", "has_reread", "has_as_sure", "has_survivor", "has_survivor_rent"),
    *("has_target", "has_fewer", "has_measured", "has_step", "has_doubt", "has_near_tie", "has_run"),
    *("has_ways_in_full", "has_best", "has_gains"),
)
_LAST = ("has_host_facts", "has_routing", "has_gap", "has_late", "has_full", "has_rent", "has_known", "has_no_host")
ALSO_SHOWN: tuple[dict[str, Any], ...] = (
    *({name: True} for name in _FIRST),
    *({"n_ways": n} for n in range(2, SHOWN_WAYS + 3)),
    *({name: True} for name in _LAST),
)
# Lines that change a purchase: that of --details gives way to them.
BEFORE_MORE = {"has_survivor", "has_measured", "has_near_tie", "has_ways_in_full"}
SHOWN_LEVERS = 3
SHOWN_REASONS = 8  # reasons against others; --all shows every one
NEVER_MEASURED = "never measured by us"
CONTEXT = "context"  # a family of levers
SHOWN_CHEAPER = 3
MORE = "--details: every lever, class and host, owning, why not the others"
Row = tuple[str, str]  # a label, or "" where the line above has it; and a line


def recommendation(
    question: Question, cell: CellRecord, details: bool, show_all: bool, stack: Advice | None = None
) -> str:
    """The question, its answer, and labelled lines with what it rests on; with `details` everything else, under
    headings."""
    entry = sized_as_words(question.model_of(cell.row).model)
    asked = [question_words(question, cell), *([entry] if entry else [])]
    more = [] if details or show_all else [("more", MORE)]
    if cell.chosen is None:
        lines_of_answer = [*asked, "", answer_words(question, cell), table([*_no_hardware(question, cell), *more])]
    else:

        def drawn(shown: Shown, width: int | None = None) -> list[str]:
            rows = table([*answer_lines(question, cell, shown), *more], width=width)
            return [*asked, *([""] if shown.has_gap else []), answer_words(question, cell), rows]

        shown = LEAST_SHOWN if more else Shown()
        if more and n_lines(drawn(shown, WIDTH_OF_LINES)) > MOST_LINES:
            more.clear()  # the last to give way
            return "\n".join(drawn(shown))
        for also in ALSO_SHOWN if more else ():
            fuller = shown._replace(**also)
            n_over = n_lines(drawn(fuller, WIDTH_OF_LINES)) - MOST_LINES
            if n_over > (len(more) if also.keys() <= BEFORE_MORE else 0):
                continue
            shown = fuller
            if n_over > 0:
                more.clear()
        lines_of_answer = drawn(shown)
    if details or show_all:
        for heading, lines in _details(question, cell, show_all, stack):
            if lines := list(lines):
                every = (line for text in lines for line in text.split("\n"))
                lines_of_answer += ["", heading, *(line if line[0] == " " else f"  {line}" for line in every)]
    return "\n".join(lines_of_answer)


def n_lines(texts: Iterable[str]) -> int:
    """The number of lines that texts take at the width by which an answer's parts are chosen."""
    lines = (line for text in texts for line in text.split("\n"))
    return sum(folded(line, WIDTH_OF_LINES).count("\n") + 1 if line else 1 for line in lines)


def _pace(question: Question, cell: CellRecord) -> Iterator[str]:
    """The requests a second of a load at once; of a rate the number of requests that wait, and for how long."""
    if cell.chosen is None:
        return
    if not cell.is_rate:
        answer = question.workload_of(cell.row).output_tokens
        if not answer:
            return
        per_second = cell.chosen.output_tokens_per_second / answer
        yield f"That is {rate_text(per_second)} requests/s; shorter answers bring more prompts and can cost more."
        return
    wait, allowed = cell.wait_fraction or 0.0, question.settings.max_wait_fraction
    above = f", above the {100 * allowed:.3g} % requested: the square-root rule is not exact" if wait > allowed else ""
    mean_wait = cell.waits.mean_wait_seconds if cell.waits else None
    mean = "" if mean_wait is None else f", {seconds(mean_wait)} s on average"
    yield (
        f"{cell.n_places:,} requests can run at once within the targets. If all replicas were as slow as full ones, "
        f"{rate_text(cell.chosen.offered_requests)} would run on average at peak, and "
        f"{share_words(wait)} of the requests would wait for one to "
        f"end{mean}{above}. "
        "The times above are those of the replicas as busy as they are on average, from the place that a request has."
    )


def _load(cell: CellRecord) -> Iterator[str]:
    """The assumption behind the lines of `_pace`."""
    if cell.is_rate:
        yield "how many wait: by exact Erlang-C"
    else:
        yield (
            "so many run at every moment, each answer followed by the next request: a shorter answer brings "
            "the next prompt sooner, which can raise the price; of a rate (--requests-per-second) it lowers it"
        )


def headline(question: Question, cell: CellRecord) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month, 70% sure`, or the reason why there is none; with the budgeted amount where
    that differs."""
    if (chosen := cell.chosen) is None:
        return cell.verdict
    return f"{budgeted_words(chosen.n_instances, chosen.instance, chosen.monthly_usd, question)}, {sure(chosen.chance)}"


def budgeted_words(n_instances: int, instance: str, usd: float, question: Question) -> str:
    """The rental and its month's cost without contingency, and the budgeted amount where that differs."""
    rented, settings = rented_words(n_instances, instance, USD.text(usd)), question.settings
    budget = month_as_budgeted(usd, settings.currency, settings.fx_rate, settings.contingency_fraction)
    return f"{rented}, as budgeted {budget}" if budget else rented


def rented_words(n_instances: int, instance: str, month: str) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`."""
    return f"{n_instances:,}x {instance}, {month} a month"


def _rented(question: Question, rental: RentalRecord | LeverRecord | NotAskedRecord | RunnerUp) -> str:
    """The same for a rental, in the budget's currency."""
    return rented_words(rental.n_instances, rental.instance, amounts_of(question.settings)(rental.monthly_usd))


def _in_budget(question: Question, text: Text) -> str:
    """A text with its amounts in the budget's currency."""
    settings = question.settings
    return str(amount_in(text, settings.currency, settings.fx_rate) if isinstance(text, Cell) else text)


def dearer(share: float) -> str:
    """How much more something costs: `+12%`, or words where that would round to 0."""
    if share == 0:
        return "the same price"
    return f"less than 1% {'more' if share > 0 else 'less'}" if abs(share) < 0.005 else f"{share:+.0%}"


def _labelled(label: str, lines: Iterable[str]) -> Iterator[Row]:
    """Lines with a label before the first one."""
    yield from ((label if i == 0 else "", line) for i, line in enumerate(lines))


def _no_hardware(question: Question, cell: CellRecord) -> Iterator[Row]:
    """Labelled lines where there is no answer: the nearest candidate, and the changes with which something holds it."""
    for nearest in [nearest for nearest in _reasons(cell) if nearest.why.kind != DOUBTED][:1]:
        yield "why", f"the nearest, {nearest.instance}: {nearest.reason}"
    fitting = [lever for lever in cell.levers if not lever.further]
    fastest = [lever for lever in fitting if lever.family == "speed"][:1]
    yield from _labelled("fastest", (_helpful_change(question, lever) for lever in fastest))
    helping = sorted((lever for lever in fitting if lever not in fastest), key=lambda lever: lever.monthly_usd)
    yield from _labelled("helps", (_helpful_change(question, lever) for lever in helping[:SHOWN_CHEAPER]))
    if alone := cell.without_targets:
        certainty = f", {sure(question.settings.confidence)}" if any(lever.is_even_chance for lever in fitting) else ""
        yield "memory", f"alone would take {_rented(question, alone)}{certainty}"
    yield from _labelled("weights", _weights(question, cell))
    yield from _labelled("elsewhere", _not_asked(question, cell))
    if question.filters.region:
        yield "regions", ", ".join(sorted({candidate.region for candidate in question.candidates})) + ", by --region"
    yield "searched", _took_part(question)


def _helpful_change(question: Question, lever: LeverRecord) -> str:
    """A change with which something holds the load, and what that is; marked as an even chance where nothing is
    surer."""
    same_targets = " and the same targets" if lever.family == CONTEXT else ""
    certainty = ", an even chance" if lever.is_even_chance else ""
    return f"{lever.words}{same_targets}: {_rented(question, lever)}{certainty}"


def _weights(question: Question, cell: CellRecord) -> Iterator[str]:
    """The checkpoint of the answer, and the answer with the weights as published; nothing where the answer is for
    these."""
    model = question.model_of(cell.row).model
    if (published := cell.as_published) is not None:
        yield f"{weights_name(model, cell.weight_dtype)}: {checkpoint_words(question, cell)}"
        as_published = _in_budget(question, as_published_words(cell))
        yield f"as published in {weights_name(model, published.weight_dtype)}: {as_published}"
        yield weights_reason(question, cell)
    elif is_passed_over(question, cell):
        yield f"{weights_name(model, cell.weight_dtype)} as published: {not_deployed.fill()}"


def as_published_words(cell: CellRecord) -> Cell:
    """`1x aws/p5.48xlarge, $40,179 a month` for the published weights, or that nothing holds them."""
    published = cell.as_published
    rented = f"{published.n_instances:,}x {published.instance}" if published and published.instance else None
    return published_words(cell, rented)


def _best_commitment(cell: CellRecord) -> tuple[str, RentalRecord] | None:
    """The committed purchase class whose answer costs least; None where none has an answer."""
    committed = {p: rental for p, rental in cell.by_purchase.items() if rental and PURCHASES[p].committed}
    return min(committed.items(), key=lambda pair: pair[1].monthly_usd, default=None)


def _next_cheapest(question: Question, cell: CellRecord) -> Iterator[str]:
    """The next cheapest with another GPU or from another provider."""
    if second := cell.runner_up:
        yield f"{_rented(question, second)} ({dearer(second.monthly_usd / cell.answer.monthly_usd - 1)})"
    else:
        yield "no other GPU or provider that took part holds it at a like price"


def _reason(question: Question, other: NotChosen) -> str:
    """Why a candidate was not chosen, with the cost of its month in the budget's currency."""
    usd = other.why.amount
    return other.reason.replace(f"{USD.text(usd)} a month", f"{amounts_of(question.settings)(usd)} a month")


def _reasons(cell: CellRecord) -> list[NotChosen]:
    """The candidates that were not chosen, the nearest first: by price, else by time, then by memory."""
    return sorted(cell.why_not, key=lambda other: other.why.distance)


def _details(
    question: Question, cell: CellRecord, show_all: bool, stack: Advice | None
) -> Iterator[tuple[str, Iterable[str]]]:
    """The sections of --details: heading and lines."""
    is_served = cell.chosen is not None
    if is_served:
        yield "CERTAINTY", _certainty(cell)
        yield (
            "LOAD AND SPEED",
            (
                *_pace(question, cell),
                *map(str, wait_words(question, cell)),
                *_load(cell),
                *_memory(question, cell),
            ),
        )
        every = (*cell.pay_less, *cell.other_terms, *cell.as_sure)
        cheapest = (str(cheapest_words(question, cell)),) if every else ()
        yield "EVERY WAY TO PAY LESS", (*(way_words(question, cell, way) for way in every), *cheapest)
        yield "NEXT CHEAPEST", _next_cheapest(question, cell)
        yield "WEIGHTS", _weights(question, cell)
    yield "WHAT ONE CHANGE BUYS", _changes(question, cell)
    if is_served:
        yield "NOT REQUESTED", _not_asked(question, cell)
        yield "OTHER WAYS TO PAY", _money(question, cell)
        yield "OWNING", _owning(question, cell)
        yield "HOSTED", _hosted(question, cell)
    reasons = _reasons(cell)
    shown = reasons if show_all else reasons[:SHOWN_REASONS]
    rest = [f"and {len(reasons) - len(shown)} more: --all shows them"] if len(shown) < len(reasons) else []
    told = table(("  " + other.instance, _reason(question, other)) for other in shown) or "there is no other candidate"
    yield f"WHY NOT{' THE OTHERS' if is_served else ''}", (told, *rest)
    if stack:
        yield "STACK", (stack.line, *(f"{remark}." for remark in stack.remarks))
    left_out = "; ".join(f"{number} {reason}" for reason, number in question.left_out)
    yield (
        "WHO TOOK PART",
        (
            *([_took_part(question)] if is_served else []),
            *([f"Catalog rows left out: {left_out}."] if left_out else []),
        ),
    )


def _certainty(cell: CellRecord) -> Iterator[str]:
    """The chance of an answer and of each of its parts, and how chances are rounded."""
    parts = {OF_CHANCE[name]: chance for name, chance in cell.answer.chance_of.items()}
    told = ", ".join(
        f"{words} {worked_out.fill(chance=chance, chance_step=CHANCE_STEP)}" for words, chance in parts.items()
    )
    yield str(rounded_chance.fill(chance=cell.answer.chance, chance_step=CHANCE_STEP))
    yield f"of its parts alone: {told}"


def _memory(question: Question, cell: CellRecord) -> Iterator[str]:
    """The parts of memory, what bounds the speed, and what other rules would choose."""
    weights, kv = cell.weights_bytes / GIB, cell.kv_bytes / GIB
    yield f"{weights:,.1f} GiB of weights a replica, {kv:,.1f} GiB of KV cache in all"
    yield f"{throughput(cell)}; every speed is indicative; bound by {cell.answer.bound_by}"
    if question.draft is not None:
        yield DRAFT_COUNTED
    if cell.without_ttft and cell.answer.monthly_usd >= 1.5 * cell.without_ttft.monthly_usd:
        yield f"without the target of the first token: {_rented(question, cell.without_ttft)}"


def _not_asked(question: Question, cell: CellRecord) -> Iterator[str]:
    """Machines that were not requested and are clearly cheaper, or hold a load that nothing else does."""
    for other in cell.not_asked:
        yield f"{other_words(other)}: {_rented(question, other)}{'' if other.measured else f', {NEVER_MEASURED}'}"


def _took_part(question: Question) -> str:
    """The sentence that says which providers' instances were compared, with which vendors' GPUs, and in which class if
    not on demand."""
    purchase = "" if question.settings.purchase == ON_DEMAND else f" {question.settings.purchase}"
    return f"{count(len(question.candidates), 'instance')} took part{purchase}, {took_part(question.candidates)}."


def _money(question: Question, cell: CellRecord) -> Iterator[str]:
    """Purchase classes, a user, a million tokens and the budget; what is not known is said in one word or left out."""
    facts = facts_of(question, cell)
    for purchase, rental in cell.by_purchase.items():
        if rental and purchase != question.settings.purchase:
            yield f"{purchase}: {_rented(question, rental)}"
    unpriced = [purchase for purchase, rental in cell.by_purchase.items() if rental is None]
    if unpriced:
        yield f"no price, or none that holds it: {', '.join(unpriced)}"
    tokens = f"; {_in_budget(question, facts.per_million_tokens)}" if facts.per_million_tokens else ""
    yield f"{_in_budget(question, facts.per_user)} and month{tokens}"
    if facts.budget:
        yield f"budget: {facts.budget}"


def _hosted(question: Question, cell: CellRecord) -> Iterator[str]:
    """The cost of the same tokens at hosts of the model."""
    facts = hosted_facts(question, cell)
    yield _in_budget(question, facts.hosts)
    if facts.hosts_rent:
        rate = hosted_rate(question, cell)
        yield f"{facts.hosts_rent}{f'; {rate}' if rate else ''}"
    if facts.not_given:
        yield f"a host does not give: {facts.not_given}"


def _owning(question: Question, cell: CellRecord) -> Iterator[str]:
    """Cost of owning, beside the best committed price, its cash in three years, and what is not in it."""
    facts, amount = facts_of(question, cell), amounts_of(question.settings)
    if not facts.owned or cell.owned is None:
        yield "own: no street price of this GPU is known; give yours with --capex-usd-per-gpu"
        return
    old, even = ", an old price" if facts.capex_is_old else "", f"; {facts.break_even}" if facts.break_even else ""
    yield f"own {_in_budget(question, facts.owned)} a month{old}{even}"
    base = cell.owned.base
    if committed := _best_commitment(cell):
        purchase, rental = committed
        word = "less" if base["monthly_owned_usd"] < rental.monthly_usd else "more"
        yield f"{word} than the best commitment, {purchase} at {amount(rental.monthly_usd)} a month, used in every hour"
    cash = f"cash in the first 3 years {amount(base['owned_three_year_cash_usd'])}: purchase, support, power and site"
    yield f"{cash}; not in it: staff, network between servers, cost of capital"


def _changes(question: Question, cell: CellRecord) -> Iterator[str]:
    """The three best levers of the load, then looser targets of speed, the smallest saving first; then another model
    with a leaner KV cache, and FP8 where it rents something else. Only what saves money or makes the load fit."""
    useful = [lever for lever in cell.levers if lever.saved_usd is None or lever.saved_usd > 0]
    shown = [lever for _, lever in best({0: useful}, SHOWN_LEVERS)]
    if shown:
        yield table([_lever(question, lever) for lever in shown])
    steps = [lever for lever in reversed(useful) if lever.family == "speed" and lever not in shown]
    if steps:
        yield "other targets of speed:"
        yield table([_lever(question, lever) for lever in steps[:SHOWN_LEVERS]])
    for lever in useful:
        if lever.family == "model":
            words, *cells, cost = _lever(question, lever)
            yield f"{cost}: {', '.join((words.strip(), *cells))}"
    fp8, now = cell.fp8, cell.chosen
    if fp8 and (now is None or (fp8.instance, fp8.n_instances) != (now.instance, now.n_instances)):
        yield f"FP8 weights and KV cache: {_rented(question, fp8)}"


def _lever(question: Question, lever: LeverRecord) -> tuple[str, ...]:
    """A lever as the columns of one line."""
    saves, month = _in_budget(question, saving(lever)), amounts_of(question.settings)(lever.monthly_usd)
    rented = f"{lever.n_instances:,}x {lever.instance}", f"{month} a month"
    return f"  {lever.words}", *rented, f"saves {saves}" if (lever.saved_usd or 0) > 0 else saves, lever.cost
