"""The request for approval: the sentence, the options, the inputs that move the cost, ways to pay less, the served load
and the risks. Page, mail and Markdown share these sentences. They are for budget owners: no layout, no precision."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sheetgen.answer.answer_record import (
    AtConfidence,
    CellRecord,
    ChosenRecord,
    MoveRecord,
    NotAskedRecord,
    PayLess,
    Record,
    RunnerUp,
    SmallerModel,
    SureRental,
    SurvivorRental,
)
from sheetgen.answer.confidences import ABOUT, Rental, is_same_rental, said_steps
from sheetgen.answer.levers.changes import at_context
from sheetgen.answer.moves import EVERYTHING, LOAD_AND_CONTEXT
from sheetgen.answer.pay_less import MONTHS, committed_usd
from sheetgen.answer.solution import short_tokens
from sheetgen.formula import both, either, is_text, round_nearest, same_money
from sheetgen.question.sheet_question import Question
from sheetgen.report import notes, sentences, wording
from sheetgen.report.headline_table import (
    TERMS_OF_US,
    even_answer,
    hour_of,
    load_asked,
    owning_unpriced,
    terms_of_us,
    way_row,
)
from sheetgen.report.host_words import priced_for
from sheetgen.report.in_currency import LONGEST, more_than
from sheetgen.report.page import (
    NONE,
    THE_SAME,
    Card,
    Cell,
    Mover,
    Option,
    Request,
    Text,
    Total,
    WayRow,
    age_in_words,
    capital,
    day_of,
    joined,
    words,
)
from sheetgen.report.pay_less_words import CLASSES, MONTHS_IN_A_YEAR, TERMS, plain_words
from sheetgen.report.templates import Template, q, template
from sheetgen.report.wait_words import replicas_of_machine, slow_values, sure_words, target_values
from sheetgen.report.wording import (
    MARGIN,
    full_money,
    money,
    plural,
    provider_of,
    rate_number,
    rent,
    seconds,
    sure,
)
from sheetgen.sizing import cost
from sheetgen.units import (
    CAPACITY_BLOCK,
    EVEN,
    ON_DEMAND,
    ONE_DECIMAL,
    PERCENT,
    PURCHASES,
    SPOT,
    WHOLE,
    listed,
)

NOT_LOOSENED: Mapping[str, object] = {
    **dict.fromkeys(("first_target", "pace_target"), NONE),
    **dict.fromkeys(("aimed", "paced", "both", "loosened"), False),
}
Moved: TypeAlias = tuple[str, Cell, tuple[Cell, Cell]]  # a mover's name, its span, its two ends

_WORK = template(
    "{people}[measured?, {measure}]",
    people=sentences.of_people,
    measured=is_text(q.measure),
)
_WHAT = template("{models} for {work}")
_RUN = template("Run {what}: {month}[less? or perhaps {even}] a month", less=is_text(q.even))
_SUBJECT = template("For approval: {month} a month to run {models}")
_CHOOSE = template("Choose one of {what}; do not add their costs")
_NOTHING = template("Nothing to approve yet: {what}, {verdict}")
_YEAR = template(
    "{year} a year[free?, cancel any day][bound?, a {term} commitment[longer?: {binds} in all]]"
    "[taken?, taken away at any time][ahead?, paid ahead for a block that ends]."
    "[raised? Rent {rent}, {contingency}.]",
    free=q.purchase == ON_DEMAND,
    bound=is_text(q.term),
    longer=is_text(q.binds),
    taken=q.purchase == SPOT,
    ahead=q.purchase == CAPACITY_BLOCK,
    raised=is_text(q.contingency),
)
_SURE = template(
    "{sure}[brief?| to be [short?large and ]fast enough][tested?, tested on day one].",
    brief=q.is_brief == 1,
    short=q.is_short == 1,
    tested=q.is_tested == 1,
)
_WHY = template(
    "[near?Within {near:percent} of the cheapest|Cheapest] of {providers}, [even?an even chance|at least "
    "{confidence:percent} sure]",
    near=q.is_near == 1,
    even=q.is_even == 1,
)
# Of machines other than the answer's, where one may fail: said where the answer would do otherwise.
_FATE = template(f"[alone?{sentences.LOST_WITH_IT}|the others go on if one fails]", alone=q.n_instances == 1)
_BESIDE = template(
    "[lower?Clearly cheaper, {usd}, is {sure}[other?; next|]|Next type:][other? {place}, {costs}[failing?; {fate}]].",
    failing=is_text(q.fate),
    lower=is_text(q.usd),
    other=is_text(q.costs),
)
_SMALLER = template(
    "[named?{models}; quality not compared|Quality of smaller models is not compared].", named=is_text(q.models)
)
_COSTS = template("{model} costs {usd}[alone?, {fate}]", alone=is_text(q.fate))
_LESS_ONLY = template("If allowed: {conditions}.")
_ALONE, _SURVIVES = template("Nothing served if it fails."), template("Survives a failed machine.")
_UNMEASURED = template("{place}, unmeasured")
_SURE_APART = "How sure each model's machines are stands below."
_NO_MARGIN = template("Nothing that we can rent is {sure}.")
_TEST = template(
    "{run}.[falls? {chance} that {cheaper} is enough.]",
    run=sentences.measure_run,
    falls=is_text(q.cheaper),
)
_SPAN = template(
    "{low} to {high}[paged? pages][loosened? (target[both?s]: [aimed?[both?|first word ]{first_target} s][both?, ]"
    "[paced?{pace_target} tokens/s])][compared?, now {now}]",
    loosened=either(is_text(q.first_target), is_text(q.pace_target)),
    compared=is_text(q.now),
    both=both(is_text(q.first_target), is_text(q.pace_target)),
    aimed=is_text(q.first_target),
    paced=is_text(q.pace_target),
    paged=q.is_paged == 1,
)
_PRICES = template("−{less} to +{more}")
_TOGETHER = template(
    "[brief?All high ends[priced?, {more} prices]: |High ends together: first two [served?{load}|nothing serves]; "
    "all[priced?, with {more} prices,] ][carried?{every}|nothing serves].",
    brief=q.is_brief == 1,
    priced=is_text(q.more),
    served=q.served == 1,
    carried=q.carried == 1,
)
_ASKING = template(
    "Each asks {times} times a day: {per_hour} an hour at peak; serves {enough}.",
    enough=sentences.enough_for_people,
)
_ENOUGH = template(
    "At least {users:grouped} {users:person|people} who ask {times} times a day: {per_hour} an hour at the peak."
)
_SPEED = template(
    f"First word{sentences.BEYOND} {{wait}}[waited? {{slow}}]",
    wait=sentences.wait,
    slow=sentences.slow,
    waited=is_text(q.mean_wait),
    beyond=sentences.is_beyond,
)
_PER_PERSON = template("{usd} a person a month.")
_SURVIVOR = "{rent}, {usd}, {before}[alike?|, {after} after failure]"
_FAILS = template(
    "[several?One machine fails: [counted?{left} of {asked} served|[short?[grows?requests queue, {cleared} of "
    "{per_hour} an hour sure|more wait for a place, longer]|the others serve all]]|"
    "The machine fails: nothing is served]"
    f"[margin?; the margin survives, {{after}} sure|[told?[apart?; surviving: {{usd}}|]|; "
    f"surviving: {_SURVIVOR}]].",
    apart=q.is_apart == 1,
    margin=q.is_margin == 1,
    told=q.is_told == 1,
    alike=q.is_alike == 1,
    several=q.n_instances > 1,
    counted=q.counted == 1,
    short=q.is_short == 1,
    grows=is_text(q.cleared),
)
_SURVIVES_TOO = template(f"Also survives: {_SURVIVOR}.", alike=q.is_alike == 1)
_TOO_SLOW = template("Too [short?small or ]slow: the margin, {usd} more, lowers that.", short=q.is_short == 1)
_SURVIVED = template("A {lost} fails: its spare is in the price.")
_AT_THE_SAME_MOMENT = template(
    "All {users} at once: [waits?last answer after about {last}; without waits ]{usd}.",
    waits=is_text(q.last),
)
_QUALITY = template(
    "Compression may cost quality: uncompressed[served? {usd} more|, nothing serves it].",
    served=is_text(q.usd),
)
_NEVER_MEASURED = template(
    "[same?This layout|This GPU]'s speed is unmeasured; [other?a measured one costs {usd}[named? on {rent}]|"
    "a day of measuring costs {usd}].",
    same=q.is_same_gpu == 1,
    other=q.is_other == 1,
    named=is_text(q.rent),
)
_RESERVE = template("{machines} must be reserved first: we may not get them.")
_BOUND = template("We stop early: up to {usd} stay due.")
_OLDEST = template(
    "Prices, {prices}[known?, [several?since|of] {day}][listed?, from {lists}][others?; others since {oldest}]."
    "[exchanged? {exchange}.]",
    known=is_text(q.day),
    several=q.is_several == 1,
    listed=is_text(q.lists),
    others=is_text(q.oldest),
    exchanged=is_text(q.exchange),
)
_BASIS = template(
    "Prices, {prices}: {lists}[others?; others since {oldest}]."
    "[sold? In Europe ({region}[old?, old price]): {europe}.][exchanged? {exchange}.]",
    others=is_text(q.oldest),
    sold=is_text(q.region),
    old=q.is_old == 1,
    exchanged=is_text(q.exchange),
)
# Sentences of a request that the live page has, too.
SENTENCES: dict[str, Template] = {
    "work": _WORK, "what": _WHAT, "run": _RUN, "year": _YEAR, "sure": _SURE, "no_margin": _NO_MARGIN, "alone": _ALONE,
    "test": _TEST, "survives": _SURVIVES, "unmeasured": _UNMEASURED,
    "asking": _ASKING, "enough": _ENOUGH, "speed": _SPEED, "per_person": _PER_PERSON,
    "too_slow": _TOO_SLOW, "fails": _FAILS, "survives_too": _SURVIVES_TOO, "same_moment": _AT_THE_SAME_MOMENT,
    "quality": _QUALITY,
    "reserve": _RESERVE, "bound": _BOUND, "never_measured": _NEVER_MEASURED,
    "excluded": template("Not in the price: {costs}."),
}  # fmt: skip
_LIST_PRICES = "List prices"
_NUMBER = re.compile(r"\d[\d.,]*")
_UNIT = re.compile(r":| (?:at|a|each)\b")  # the unit of a mover follows it


def request_of(record: Record, question: Question, cards: Sequence[Card], total: Total | None) -> Request:
    """The request of a sheet: for one model where one is asked for, all together, or one of several."""
    asked = 0 if len(cards) == 1 else question.ask
    if total is not None:
        return _together(record, question, cards, total)
    if asked is None:
        return _choice(record, question, cards)
    return _request(record, question, cards, asked)


def _request(record: Record, question: Question, cards: Sequence[Card], asked: int) -> Request:
    cell, name = record.headline_cells[asked], cards[asked].model
    work = _WHAT.fill(models=name, work=work_of(question, cell))
    if cell.chosen is None:
        return _nothing(work, cell.verdict)
    month = _approved(question, cell.answer.monthly_usd)
    movers = tuple(_movers(question, cell))
    margin, options = _margin(cell), tuple(_options(question, cell))
    even, uncertainty = _even_month(question, cell), _uncertainty(question, cell, movers)
    rentals, without_europe = [rental.instance for rental in _beside(question, cell)], replace(cell, in_europe=None)
    request = Request(
        what=work,
        sentence=_RUN.fill(what=work, month=month, even=even, less=bool(even)),
        subject=_SUBJECT.fill(models=name, month=month),
        options=options,
        sure_of=sure_words(question, [cell]),
        certain=sure_words(question, [cell], is_tested=_is_tested(question, cell), is_brief=True),
        sure=_certainty(question, cell, cell.answer, wording.is_short(cell.answer)),
        why=_why(record, question, cell),
        reasons=tuple(_reasons(record, question, cell, cards)),
        less_only=_less_only(question, cell),
        owning=_unpriced(question, cell),
        enough=sentences.enough_for_people.fill(**enough_values(question, cell)) if cell.more_people else NONE,
        warnings=() if even else tuple(wording.measure_words(cell, question.settings.confidence))[:1],
        sized=full_money(cell.answer.monthly_usd),
        margin=full_money(margin.monthly_usd) if margin else NONE,
        uncertainty=uncertainty,
        finding=sentences.finding_of_bars.fill(uncertainty=uncertainty, moved=bool(uncertainty)) if movers else NONE,
        movers=movers,
        together=_moved_together(cell) if movers else NONE,
        ways=(
            *_said_once(_way(question, cell, way) for way in _ways(cell) if not _is_measured(cell, way)),
            *_classes(question, cell),
        ),
        failure=_failure(question, cell, is_apart=True),
        serves=tuple(_serves(question, cell)),
        per_person=_per_person(question, cell),
        risks=tuple(_risks(question, cell)),
        excluded=_excluded(record, question, cell),
        basis=_basis(question, [cell], rentals, month, _other_dates(question, cell)),
        prices=_basis(question, [cell], rentals, month, _other_dates(question, without_europe), is_short=True),
    )
    signed = [str(question.options.get(name) or "") for name in ("owner", "approver")]
    signed += ["prices valid to 31 December 2026"] if question.options.get("valid_until") else []
    return _shortened(request, question, cell, month, signed)


def _shortened(request: Request, question: Question, cell: CellRecord, month: Text, signed: Sequence[str]) -> Request:
    """A request without what its reader needs least, as far as it has too many words or numbers: the cost in Europe,
    other classes of the same machines, that models that are not on the sheet are not compared, dates of suppliers
    beside the first, what the margin costs more, what can be owned, that prompts so long are unmeasured (as the sheet
    says), the bar of list prices where the price is not old, the error of the prediction beside its slow case, hours,
    a term's year, tokens and two inputs together that the sheet has, the next cheapest, the bar of an old price, all
    inputs together."""
    without_europe, margin = replace(cell, in_europe=None), _margin(cell)
    dates = [*_other_dates(question, without_europe)]
    named = [rental.instance for rental in _beside(question, cell)]
    fewer = [margin.instance] if margin else []
    own = tuple(way for way in request.ways if way.kind not in CLASSES)
    of_named = [question.instances[instance].price_as_of or "" for instance in named]
    compared = tuple(reason for reason in request.reasons if reason != _smaller_models())
    risks = tuple(risk for risk in request.risks if risk != _too_slow(question, cell))
    beside_next = _failure(question, cell, is_beside_next=True)
    short, together = tuple(_movers(question, cell, is_brief=True)), _moved_together(cell, is_priced=True)
    price = question.instances[cell.answer.instance]
    is_old = notes.is_old(price, question, question.reference.assumption("stale_after_days"))
    for changes in (
        {"basis": _basis(question, [without_europe], named, month, dates)},
        {"ways": own},
        {"reasons": compared},
        {"basis": _basis(question, [without_europe], fewer, month, [*dates, *of_named])},
        {"risks": risks},
        {"owning": owning_unpriced(question, [cell], is_short=True)},
        {"serves": tuple(_serves(question, cell, is_short=True))},
        {} if is_old else {"movers": _without_list_prices(request.movers), "together": together},
        {"serves": tuple(_serves(question, cell, is_short=True, is_ranged=False))},
        {
            "movers": short if is_old else _without_list_prices(short),
            "together": _moved_together(cell, is_priced=not is_old, is_brief=True),
            "ways": tuple(replace(way, is_brief=True) for way in own),
        },
        {
            "reasons": compared[1:],
            "risks": tuple(_failure(question, cell) if risk == beside_next else risk for risk in risks),
        },
        {
            "movers": _without_list_prices(short),
            "together": _moved_together(cell, is_priced=True, is_brief=True),
        },
        {"together": NONE},
    ):
        if not _is_long(request, signed):
            break
        request = replace(request, **changes)
    return request


def _without_list_prices(movers: Sequence[Mover]) -> tuple[Mover, ...]:
    return tuple(mover for mover in movers if mover.name != _LIST_PRICES or len(movers) < _FEW_MOVERS)


_FEW_MOVERS = 3
MOST_WORDS, MOST_NUMBERS = 400, 100  # of a request
_OF_HEADINGS = 41, 3  # words and numbers of them in its headings and its date


def _is_long(request: Request, signed: Sequence[str]) -> bool:
    """True where a request has too many words or numbers for its reader. signed: who asks and approves, and until when
    the prices are valid."""
    texts: list[Text] = [
        request.sentence,
        request.sure_of,
        request.why,
        *request.reasons,
        request.less_only,
        *request.warnings,
        *signed,
    ]
    texts += [
        request.finding,
        request.together,
        request.owning,
        *request.serves,
        *request.risks,
        request.excluded,
        request.basis,
    ]
    for option in request.options:
        texts += [option.name, option.price, option.per, *option.told, option.rent]
    for mover in request.movers:
        texts += [mover.name, mover.span, mover.low, mover.high]
    for way in request.ways:
        texts += [] if way.is_elsewhere else [way.change, way.monthly, way.commits, way.pays_after, way.lost]
    text = " ".join(str(part) for part in texts if part)
    words, numbers = _OF_HEADINGS
    return len(text.split()) > MOST_WORDS - words or len(_NUMBER.findall(text)) > MOST_NUMBERS - numbers


def _choice(record: Record, question: Question, cards: Sequence[Card]) -> Request:
    """The request to choose one of several models: an option each."""
    cells = record.headline_cells
    options = [_of_model(question, cell, card) for cell, card in zip(cells, cards, strict=True) if cell.chosen]
    work = _WHAT.fill(models=plural(len(options) or len(cards), "model"), work=work_of(question, _fewest(cells)))
    if not options:
        return _nothing(work, cells[0].verdict)
    return Request(
        what=work,
        sentence=_CHOOSE.fill(what=work),
        options=tuple(options),
        sure_of=sure_words(question, cells),
        risks=(_smaller_models(),),
        excluded=listed(record.not_in_price),
        basis=_basis(question, [cell for cell in cells if cell.chosen], is_one_of=True),
    )


def _together(record: Record, question: Question, cards: Sequence[Card], total: Total) -> Request:
    """The request for all models together: one option, and the share of each model."""
    cells = record.headline_cells
    names = total.model
    work = _WHAT.fill(models=names, work=work_of(question, _fewest(cells)))
    if not total.monthly:
        return _nothing(work, next(cell.verdict for cell in cells if cell.chosen is None))
    month, year = total.approve or (total.monthly, total.per_year)
    options = [_of_model(question, cell, card) for cell, card in zip(cells, cards, strict=True)]
    return Request(
        what=work,
        sentence=_RUN.fill(what=work, month=month, even=NONE, less=False),
        subject=_SUBJECT.fill(models=names, month=month),
        options=(Option("Approve", "approved", month, "a month", (words("{}.", year), _SURE_APART)),),
        sure_of=sure_words(question, cells),
        serves=tuple(words("{}: {} a month. {}", option.name, option.price, option.facts[-1]) for option in options),
        excluded=listed(record.not_in_price),
        basis=_basis(question, cells, month=month),
    )


def _nothing(work: Text, verdict: str) -> Request:
    sentence = _NOTHING.fill(what=work, verdict=verdict)
    return Request(what=work, sentence=sentence, subject=sentence)


def _of_model(question: Question, cell: CellRecord, card: Card) -> Option:
    """The option of one model among several, chosen by its name."""
    return _as_sized(question, cell)._replace(name=card.model, reply=card.model)


def _fewest(cells: Sequence[CellRecord]) -> CellRecord:
    """The model whose machines are enough for the fewest people."""
    return min(cells, key=lambda cell: cell.users if cell.users >= 1 else math.inf)


def work_of(question: Question, cell: CellRecord) -> Cell:
    """The work to be served: 640 people's document questions; 460 people's document questions, 32 at once."""
    stated = question.loads[cell.row].users
    users = stated or (cell.users if cell.users >= 1 else 0)
    if not users:
        return load_asked(question)
    measure: Text = ""
    if not stated:
        measure = (
            words("{} a second", rate_number(cell.requests_per_second))
            if cell.is_rate
            else words("{} at once", wording.whole(cell.requests))
        )
    return _WORK.fill(users=int(users), name=_requests(question, cell), measure=measure, measured=bool(measure))


def _requests(question: Question, cell: CellRecord) -> str:
    return f"{question.workload_of(cell.row).request_name}s"


def _with_contingency(question: Question, usd: float) -> float:
    fraction = question.settings.contingency_fraction
    return float(cost.total_usd(usd, cost.contingency_usd(usd, fraction))) if fraction else usd


def _approved(question: Question, usd: float) -> Cell:
    """The amount to approve for a rent: with contingency, where there is one."""
    return money(_with_contingency(question, usd))


def _shown(question: Question, usd: float) -> Cell:
    """The amount to approve in its short form, inside a sentence."""
    return full_money(_with_contingency(question, usd))


def _more(question: Question, amount: Cell, other: Cell) -> Cell:
    """How much one amount of the page is above another, both as they are printed."""
    return full_money(more_than(amount, other, question.settings, LONGEST))


def _margin(cell: CellRecord) -> AtConfidence | None:
    """The answer at higher confidence; None where there is none, or where the answer is as sure for its price."""
    margin = cell.at_level(MARGIN)
    return None if margin is None or _is_sure(cell, margin) else margin


def _next_step(question: Question, cell: CellRecord) -> AtConfidence | None:
    """The surer answer that may follow this one; None too where this one binds."""
    return None if question.settings.purchase in TERMS else _margin(cell)


def _is_sure(cell: CellRecord, margin: AtConfidence | None) -> bool:
    """True where the answer needs no margin: it is sure itself, or the surer one rents the same machines in another
    layout."""
    is_same = margin is not None and margin.monthly_usd <= cell.answer.monthly_usd * ABOUT
    return cell.answer.chance >= MARGIN or is_same


def _is_measured(cell: CellRecord, way: PayLess) -> bool:
    """True for the way that the option to measure first covers: the month that may prove enough."""
    decider = cell.measure.decider if cell.measure else None
    is_one = decider is not None and same_money(decider.monthly_usd, way.monthly_usd)
    return way.kind == "less_sure" and is_one and not way.commits_usd


def _even_month(question: Question, cell: CellRecord) -> Text:
    """The month of an even chance, where one should measure first and it costs less; NONE elsewhere."""
    even = even_answer(cell)
    is_less = even is not None and even.monthly_usd < cell.answer.monthly_usd
    return _shown(question, even.monthly_usd) if even and is_less else NONE


def _why(record: Record, question: Question, cell: CellRecord) -> Cell:
    """The rule by which the answer is taken: the cheapest offer at the confidence, or one near it."""
    providers = dict.fromkeys(wording.provider_name(candidate.provider) for candidate in record.candidates)
    cheapest, settings = cell.cheapest, question.settings
    is_near = cheapest is not None and not same_money(cheapest.monthly_usd, cell.answer.monthly_usd)
    return _WHY.fill(
        near=settings.near_tie_fraction,
        is_near=int(is_near),
        providers=listed(list(providers))
        if len(providers) <= wording.SHOWN_PROVIDERS
        else f"{len(providers)} suppliers",
        is_even=int("impossible" in cell.measure_first),
        confidence=settings.confidence,
    )


def _reasons(record: Record, question: Question, cell: CellRecord, cards: Sequence[Card]) -> Iterator[Cell]:
    """The price of what was not taken: less certainty, another GPU or supplier, and cheaper models, the cheapest and
    the next below."""
    lower = next((way for way in cell.pay_less if way.kind == "less_sure" and not _is_measured(cell, way)), None)
    other = cell.runner_up
    if lower or other:
        fate = _fate(question, cell, other) if other else NONE
        yield _BESIDE.fill(
            usd=_shown(question, lower.monthly_usd) if lower else NONE,
            sure=str(sure(lower.chance if lower and lower.chance is not None else EVEN)),
            lower=lower is not None,
            place=_place(other, other.measured) if other else NONE,
            costs=_shown(question, other.monthly_usd) if other else NONE,
            fate=fate,
            failing=bool(fate),
            other=other is not None,
        )
    beside = zip(cards, record.headline_cells, strict=True)
    priced: list[tuple[float, str, ChosenRecord | SmallerModel]] = [
        (chosen.monthly_usd, card.model, chosen) for card, other_cell in beside if (chosen := other_cell.chosen)
    ]
    if smaller := cell.smaller_model:
        priced.append((smaller.monthly_usd, smaller.name, smaller))
    cheaper = sorted((row for row in priced if row[0] < cell.answer.monthly_usd), key=lambda row: row[:2])
    yield _smaller_models(
        [
            _COSTS.fill(model=model, usd=_shown(question, month), fate=_fate_alone(question, cell, rental))
            for month, model, rental in (*cheaper[:1], *cheaper[1:][-1:])
        ]
    )


def _smaller_models(shown: Sequence[Cell] = ()) -> Cell:
    """Cheaper models with what they cost, and that their quality is not compared."""
    return _SMALLER.fill(models=joined(", ", [*shown]), named=bool(shown))


def _less_only(question: Question, cell: CellRecord) -> Text:
    """The conditions under which other hardware costs less; NONE where there is none."""
    conditions: list[Cell] = []
    for way in cell.pay_less:
        worded = plain_words(way, question, cell)
        if worded.only_if:
            conditions.append(_condition(question, cell, worded.only_if, way))
        if way.further is not None:
            conditions.append(_condition(question, cell, worded.further_if, way.further))
    return _LESS_ONLY.fill(conditions=joined("; ", conditions)) if conditions else NONE


def _condition(question: Question, cell: CellRecord, only_if: str, rental: PayLess | NotAskedRecord) -> Cell:
    """A condition with what it costs then, and that one machine serves alone in the place of several."""
    parts = only_if, full_money(rental.monthly_usd), _fate_alone(question, cell, rental)
    return joined(", ", [part for part in parts if part])


def _fate_alone(question: Question, cell: CellRecord, rental: Rental | PayLess) -> str:
    """That one machine takes the place of several and nothing is served if it fails; "" of others, and where a loss is
    survived."""
    is_alone = rental.n_instances == 1 < cell.answer.n_instances and not question.settings.survive
    return str(_FATE.fill(alone=True)) if is_alone else ""


def _excluded(record: Record, question: Question, cell: CellRecord) -> str:
    """The costs that are not in the price; the spare machine, which is the last, where the margin has it."""
    margin = _margin(cell)
    has_spare = margin is not None and not question.settings.survive and _is_survivor(cell, margin)
    return f"{listed(record.not_in_price)}{' (as sized)' if has_spare else ''}"


def _unpriced(question: Question, cell: CellRecord) -> Text:
    """That no price to own the answer's GPUs is known; NONE where one is."""
    return owning_unpriced(question, [cell], is_named=False)


def _is_tested(question: Question, cell: CellRecord) -> bool:
    """True where the first day on the answer's own machines, which bind to nothing, can show that fewer of them are
    enough."""
    is_free = question.settings.purchase == ON_DEMAND
    even = cell.at_level(EVEN) if is_free and cell.measure and cell.measure.decider else None
    return even is not None and even.instance == cell.answer.instance and even.n_instances < cell.answer.n_instances


def _options(question: Question, cell: CellRecord) -> Iterator[Option]:
    """The options: as sized, with a margin where that costs more, measure first."""
    answer, margin, even = cell.answer, cell.at_level(MARGIN), cell.at_level(EVEN)
    yield _as_sized(question, cell, is_stated=True)
    if margin is None:
        yield Option("Approve with a margin", "", NONE, "", (_NO_MARGIN.fill(sure=sure(MARGIN)),))
    elif not _is_sure(cell, margin):
        yearly = float(cost.annual_usd(margin.monthly_usd, cost.CONSTANTS["months_in_a_year"]))
        step = NONE
        if (survivor := cell.survives_machine) and not question.settings.survive and _survives_too(cell):
            step = _SURVIVES_TOO.fill(**_survivor_values(question, cell, survivor))
        is_short, is_alone = margin.limit == wording.MEMORY, margin.n_instances == 1 < answer.n_instances
        name, reply = "Approve with a margin", "with margin"
        option = _rental(question, cell, margin, name, reply, is_short, yearly, is_stated=True, is_alone=is_alone)
        yield option._replace(step=step)
    if cell.measure is not None and cell.measure.is_worth_it:
        run, cheaper = cell.measure.run, cell.measure.decider
        is_same = run.instance == answer.instance
        facts = _TEST.fill(
            **measure_values(question, cell),
            machines=str(plural(run.n_instances, "machine")) if is_same else "",
            cheaper=_shown(question, cheaper.monthly_usd) if cheaper else NONE,
            chance=str(sure(even.chance if cheaper and even else answer.chance)),
            falls=cheaper is not None,
        )
        rented: Text = "" if is_same else _place(run, cheaper is None or cheaper.measured)
        is_advised = "impossible" in cell.measure_first
        less, more = cell.measure.passed_saves_usd, cell.measure.failed_costs_usd
        decided = sentences.measure_stakes.fill(
            is_alone=1,
            less=_more(question, _approved(question, answer.monthly_usd), _shown(question, cheaper.monthly_usd))
            if cheaper
            else NONE,
            level=str(sure(MARGIN)),
            moved=bool(less or more or more is None),
            falls=less > 0,
            rises=bool(more),
            priced=False,  # among the risks
            more=NONE,
            nothing=more is None,
        )
        yield Option("Measure first", "measure", money(run.usd), "once", (facts, decided), rented, NONE, is_advised)


def measure_values(question: Question, cell: CellRecord) -> dict[str, object]:
    """The load that a measurement sends to its machines, their share of what would be rented or all of it, and what
    passes."""
    workload = question.workload_of(cell.row)
    measure, whole = cell.measure, cell.requests_per_hour if cell.is_rate else float(cell.requests)
    assert measure is not None, "only a measurement has a run"
    tried = cell.at_level(EVEN) if measure.decider else None
    share = min(1.0, measure.run.n_instances / (tried or cell.answer).n_instances)
    part = round_nearest(whole * share) if cell.is_rate else math.ceil(whole * share)
    at_once = cell.answer.sure_at.requests * replicas_of_machine(cell)
    is_short, aimed = (tried or cell.answer).limit == wording.MEMORY, target_values(question, workload)
    return {
        **aimed,
        "places": str(wording.whole(at_once)) if measure.decider is None else "",
        "part": wording.whole(part),
        "per_second": wording.rate_number(part / cost.CONSTANTS["seconds_in_an_hour"]),
        "whole": max(1, round_nearest(whole)),
        "shared": share < 1,
        "rate": cell.is_rate,
        "is_short": int(is_short),
        "short": is_short,
        "both": bool(aimed["aimed"] and aimed["paced"]),
        "passes": bool(is_short or aimed["aimed"] or aimed["paced"]),
    }


def _as_sized(question: Question, cell: CellRecord, is_stated: bool = False) -> Option:
    """The option of the answer."""
    is_short, year = wording.is_short(cell.answer), cell.units.annual_usd
    return _rental(question, cell, cell.answer, "Approve as sized", "approved", is_short, year, is_stated)


def _certainty(
    question: Question, cell: CellRecord, rental: AtConfidence | ChosenRecord, is_short: bool, is_stated: bool = False
) -> Cell:
    """How sure a rental is. is_stated: the targets that this is of stand beside it."""
    is_like_answer = is_short == wording.is_short(cell.answer)
    return _SURE.fill(
        sure=capital(str(sure(rental.chance))),
        is_short=int(is_short),
        is_tested=int(rental is cell.answer and _is_tested(question, cell)),
        is_brief=int(is_stated and is_like_answer),
    )


def _rental(
    question: Question,
    cell: CellRecord,
    rental: AtConfidence | ChosenRecord,
    name: str,
    reply: str,
    is_short: bool,
    year_usd: float,
    is_stated: bool = False,
    is_alone: bool = False,
) -> Option:
    """is_stated: the targets of its certainty stand beside it. is_alone: whether one machine takes the place of
    several, and nothing says so elsewhere."""
    usd, purchase = rental.monthly_usd, question.settings.purchase
    contingency = wording.contingency_words(question.settings.contingency_fraction)
    year = _YEAR.fill(
        year=_approved(question, year_usd),
        term=TERMS.get(purchase, ""),
        binds=full_money(committed_usd(purchase, usd)) if MONTHS.get(purchase, 0) > MONTHS_IN_A_YEAR else NONE,
        rent=full_money(usd),
        contingency=contingency,
        purchase=purchase if rental is cell.answer else "",
        bound=purchase in TERMS,
        longer=MONTHS.get(purchase, 0) > MONTHS_IN_A_YEAR,
        raised=bool(contingency),
    )
    is_survivor = isinstance(rental, AtConfidence) and not question.settings.survive and _is_survivor(cell, rental)
    failing = (_ALONE.fill(),) if is_alone else (_SURVIVES.fill(),) if is_survivor else ()
    certainty = _certainty(question, cell, rental, is_short, is_stated)
    price = _approved(question, usd)
    place = _place_beside(cell, rental) if isinstance(rental, AtConfidence) else _place(rental)
    return Option(name, reply, price, "a month", (year, *failing, certainty), place)


def _place(rental: Rental, measured: bool = True) -> Cell:
    """The machines of a rental and their provider, and that no runs were measured on them."""
    place = words("{}, {}", rent(rental.n_instances, rental.instance), provider_of(rental.instance))
    return place if measured else _UNMEASURED.fill(place=place)


def _place_beside(cell: CellRecord, rental: AtConfidence | SureRental, is_beside_next: bool = False) -> Cell:
    """The same of a rental beside the answer; of the answer's own machines how many, as of the next cheapest."""
    if rental.instance == cell.answer.instance:
        return words("{} of these", rental.n_instances)
    if is_beside_next and cell.runner_up and rental.instance == cell.runner_up.instance:
        return words("{} of the next", rental.n_instances)
    return _place(rental, rental.measured)


def _fate(question: Question, cell: CellRecord, rental: RunnerUp) -> Text:
    """The effect of a failed machine of the next cheapest, where that of the answer's is another; NONE where it
    is the same, or where a loss is survived."""
    is_other = (rental.n_instances == 1) != (cell.answer.n_instances == 1)
    return _FATE.fill(n_instances=rental.n_instances) if is_other and not question.settings.survive else NONE


def _is_survivor(cell: CellRecord, rental: AtConfidence) -> bool:
    """True where a rental is sure to serve as much as the answer after the loss of a machine: what is left of it is
    the answer, or it is the survivor."""
    survivor, answer = cell.survives_machine, cell.answer
    if survivor is None:
        return False
    is_more = rental.instance == answer.instance and rental.n_instances > answer.n_instances
    return is_more or (rental.instance == survivor.instance and rental.n_instances >= survivor.n_instances)


def _movers(question: Question, cell: CellRecord, is_brief: bool = False) -> Iterator[Mover]:
    """The inputs that move the month, each with its low and high end. is_brief: lengths in pages alone."""
    for move in cell.moves:
        if move.input not in _MOVES:
            continue
        name, span, ends = _MOVES[move.input](question, cell, move, is_brief)
        yield Mover(name, span, full_money(move.low_usd), full_money(move.high_usd), ends)


def _rate_moved(question: Question, cell: CellRecord, move: MoveRecord, is_brief: bool) -> Moved:
    people = question.loads[cell.row].users
    if not people:
        name = f"{_requests(question, cell).capitalize()} a second"
        return _moved(name, rate_number, (move.low, move.high), "{} a second")
    people_per_rate = people / cell.requests_per_second
    return _moved("People", wording.whole, (people_per_rate * move.low, people_per_rate * move.high), "{} people")


def _requests_moved(question: Question, cell: CellRecord, move: MoveRecord, is_brief: bool) -> Moved:
    name = f"{_requests(question, cell).capitalize()} at once"
    return _moved(name, wording.whole, (move.low, move.high), "{} at once")


def _length_moved(question: Question, cell: CellRecord, move: MoveRecord, is_brief: bool) -> Moved:
    a_page = question.reference.assumption("tokens_per_page")
    is_short = move.low < a_page
    amounts = tuple(tokens / (1 if is_short else a_page) for tokens in (move.low, move.high, cell.context_tokens))
    length = "Length" if is_brief else f"Length: {short_tokens(cell.context_tokens)} tokens"
    unit = "tokens" if is_short else "pages"
    name = "Tokens each" if is_short else length
    loosened = _loosened_values(question, cell, int(move.high))
    return _moved(name, wording.whole, amounts, f"{{}} {unit}", is_paged=not is_short, loosened=loosened)


def _loosened_values(question: Question, cell: CellRecord, context_tokens: int) -> dict[str, object]:
    """The targets of a load at another context, as far as a reader sees them differ there."""
    workload = at_context(question, question.workload_of(cell.row), context_tokens)
    now, looser = target_values(question, question.workload_of(cell.row)), target_values(question, workload)
    shown = {"aimed": "first_target", "paced": "pace_target"}
    moved = {flag: bool(looser[flag]) and str(looser[name]) != str(now[name]) for flag, name in shown.items()}
    return looser | moved | {"both": all(moved.values()), "loosened": any(moved.values())}


def _speed_moved(question: Question, cell: CellRecord, move: MoveRecord, is_brief: bool) -> Moved:
    ends = sure(move.low), sure(move.high)
    return "Speed", words("{} to {}", str(ends[0]).removesuffix(" sure"), ends[1]), ends


def _prices_moved(question: Question, cell: CellRecord, move: MoveRecord, is_brief: bool) -> Moved:
    less, more = (Cell(abs(1 - factor), PERCENT) for factor in (move.low, move.high))
    return _LIST_PRICES, _PRICES.fill(less=less, more=more), (words("{} less", less), words("{} more", more))


def _moved(
    name: str,
    shown: Callable[[float], Cell],
    amounts: Sequence[float],
    pattern: str,
    is_paged: bool = False,
    loosened: Mapping[str, object] = NOT_LOOSENED,
) -> Moved:
    """A numeric input that moves the month: its low and high end, and its present value where the title does not give
    it. is_paged: in pages. loosened: the targets of its high end, where they are others."""
    low, high, *now = map(shown, amounts)
    span = _SPAN.fill(low=low, high=high, now=str(now[0]) if now else "", is_paged=int(is_paged), **loosened)
    return name, span, (words(pattern, low), words(pattern, high))


_MOVES: dict[str, Callable[[Question, CellRecord, MoveRecord, bool], Moved]] = {
    "requests_per_second": _rate_moved,
    "concurrent_requests": _requests_moved,
    "context_tokens": _length_moved,
    "confidence": _speed_moved,
    "price_factor": _prices_moved,
}


def _moved_together(cell: CellRecord, is_priced: bool = False, is_brief: bool = False) -> Text:
    """The month at the load's high ends together, and at all high ends at once. is_priced: with that of prices, where
    these have no bar. is_brief: of all alone."""
    by_input = {move.input: move for move in cell.moves}
    prices = by_input.get("price_factor") if is_priced else None
    load, everything = (by_input.get(name) for name in (LOAD_AND_CONTEXT, EVERYTHING))
    if load is None or everything is None:
        return NONE
    months = [full_money(move.high_usd) if move.high_usd is not None else NONE for move in (load, everything)]
    return _TOGETHER.fill(
        load=months[0],
        every=months[1],
        is_brief=int(is_brief),
        more=f"+{Cell(prices.high - 1, PERCENT)}" if prices else "",
        served=load.high_usd is not None,
        carried=everything.high_usd is not None,
    )


def _uncertainty(question: Question, cell: CellRecord, movers: Sequence[Mover]) -> Cell:
    """The input that moves the month most, with how far it falls and rises, as the ends of its bar are printed: the
    widest bar, of equals the one that rises most; those that tie are all named. NONE where nothing moves it."""
    sized = full_money(cell.answer.monthly_usd)

    def halves(mover: Mover) -> tuple[float, float]:
        """The most by which the month falls and rises; infinite where nothing serves the higher end."""
        ends = [more_than(end, sized, question.settings, LONGEST) for end in (mover.low, mover.high) if end]
        return max([0.0, *(-more for more in ends)]), max([0.0, *ends]) if mover.high else math.inf

    def width(mover: Mover) -> tuple[float, float]:
        less, more = halves(mover)
        return less + more, more

    widest = max(movers, key=width, default=None)
    if widest is None or width(widest)[0] <= 0:
        return NONE
    names = [_UNIT.split(mover.name)[0] for mover in movers if all(map(same_money, halves(mover), halves(widest)))]
    less, more = halves(widest)
    return sentences.uncertain.fill(
        names=listed([name[:1].lower() + name[1:] for name in names], " or "),
        end=NONE if math.isfinite(more) else widest.ends[1],
        open=not math.isfinite(more),
        change=sentences.change_of_month.fill(
            less=full_money(less),
            more=full_money(more) if math.isfinite(more) else NONE,
            falls=less > 0,
            rises=more > 0,
            both=less > 0 and more > 0,
            even=same_money(less, more),
        ),
    )


def _ways(cell: CellRecord) -> Iterator[PayLess]:
    """The ways to pay less, and beside the best term the others that save, the shortest first; beside a way that is
    less sure than the answer the one of its kind that is as sure."""
    for way in cell.pay_less:
        others = cell.other_terms if way.kind == "term" else ()
        alike = [way, *others, *(surer for surer in cell.as_sure if surer.kind == way.kind)]
        yield from sorted(alike, key=lambda term: MONTHS.get(term.detail, 0))


def _way(question: Question, cell: CellRecord, way: PayLess) -> WayRow:
    row, plain = way_row(question, cell, way), plain_words(way, question, cell)
    loses = plain.loses
    rented: Text = priced_for(question, cell) if way.kind == "hosted" else row.rent
    if way.instance == cell.answer.instance:
        is_as_sized = way.n_instances == cell.answer.n_instances
        rented = "as sized" if is_as_sized else words("{} of these", wording.whole(way.n_instances or 0))
    if way.kind == "own" and cell.owned:
        of_us = listed([TERMS_OF_US[name][0] for name in terms_of_us(question)])
        old = ["old price"] if notes.is_capex_old(question, cell.owned.gpu) else []
        loses = "; ".join([loses, *old, *([f"US {of_us}"] if of_us else [])])
    loses = "; ".join(filter(None, (loses, _fate_alone(question, cell, way))))
    months: Text = ""
    if way.pays_after_months:
        months = Cell(way.pays_after_months, ONE_DECIMAL if way.kind == "term" else WHOLE)
    is_long_term = MONTHS.get(way.detail, 0) > MONTHS_IN_A_YEAR
    is_there = way.kind == "term" and way.instance and way.instance != cell.answer.instance
    return replace(
        row,
        year=words("{} a year", full_money(MONTHS_IN_A_YEAR * way.monthly_usd)) if is_long_term else "",
        place=f"at {provider_of(way.instance)}" if is_there and way.instance else "",
        change=f"{plain.change}, over {question.owning.values['owned_years']:g} years"
        if way.kind == "own"
        else plain.change,
        rent=rented,
        loses=loses,
        needs=plain.needs,
        pays_after=months,
        pays_off=plain.pays_off,
    )


def _classes(question: Question, cell: CellRecord) -> Iterator[WayRow]:
    """The same machines in a class without a term, where they cost enough less there."""
    most = (1 - question.reference.assumption("least_saving_fraction")) * cell.answer.monthly_usd
    for paid in cell.purchase_classes:
        if paid.purchase in CLASSES and paid.purchase != cell.answer.purchase and (paid.monthly_usd or most) < most:
            change, loses = CLASSES[paid.purchase]
            monthly = full_money(paid.monthly_usd)
            commits = "the block" if PURCHASES[paid.purchase].prepaid else "nothing"
            yield WayRow(capital(change), "as sized", monthly, commits, loses, kind=paid.purchase)


def _said_once(rows: Iterable[WayRow]) -> Iterator[WayRow]:
    """The rows, of which one that loses the same as the one before it says so."""
    before = ""
    for row in rows:
        yield replace(row, loses=THE_SAME) if row.loses == before and row.place else row
        before = row.loses


def _serves(question: Question, cell: CellRecord, is_short: bool = False, is_ranged: bool = True) -> Iterator[Cell]:
    """The load, its speed, and the cost per person. is_short: without that prompts so long are unmeasured. is_ranged:
    with the error of the prediction."""
    answer, workload = cell.answer, question.workload_of(cell.row)
    users, times = question.loads[cell.row].users or cell.users, f"{workload.requests_per_user_per_day:g}"
    if users >= 1:
        yield (_ASKING if question.loads[cell.row].users else _ENOUGH).fill(
            users=int(users),
            times=times,
            per_hour=wording.whole(hour_of(question, workload, int(users))),
            **enough_values(question, cell),
        )
    if workload.output_tokens > 1:
        slow = slow_values(question, cell)
        yield _SPEED.fill(
            first=seconds(answer.ttft_seconds),
            low=seconds(answer.ttft_seconds_low),
            high=seconds(answer.ttft_seconds_high),
            ranged=is_ranged and not slow["mean_wait"],  # beside the slow case it says little
            is_mean=int(cell.is_rate),
            pace=wording.pace(1 / answer.tpot_seconds),
            is_beyond=not is_short and question.speed.is_beyond(cell.input_tokens),
            aimed=False,  # beside the certainty
            paced=False,
            **(slow | {"limit": ""}),  # which the sheet says
        )
    if per_person := _per_person(question, cell):
        yield per_person


def _per_person(question: Question, cell: CellRecord) -> Cell:
    """The cost of a person, where there are people."""
    users = question.loads[cell.row].users or cell.users
    if not users >= 1:  # not a number where nobody asks
        return NONE
    return _PER_PERSON.fill(usd=wording.dollars(cell.answer.monthly_usd / users, question.settings.fx_rate))


def enough_values(question: Question, cell: CellRecord) -> dict[str, object]:
    """How many people the machines serve within the targets, and the month of one more; the machines where that costs
    no more than now."""
    if (more := cell.more_people) is None:
        return {}
    usd, instance = more.monthly_usd, more.instance
    is_other = usd is not None and usd <= cell.answer.monthly_usd * ABOUT
    return {
        "most": more.most_users,
        "more": more.most_users + 1,
        "usd": _shown(question, usd) if usd is not None else NONE,
        "served": usd is not None,
        "other": bool(is_other),
        "rent": rent(more.n_instances or 0, instance) if is_other and instance else NONE,
    }


def _risks(question: Question, cell: CellRecord) -> Iterator[Cell]:
    """Risks, each with its cost."""
    answer, usd = cell.answer, cell.answer.monthly_usd
    if too_slow := _too_slow(question, cell):
        yield too_slow
    if failure := _failure(question, cell, is_beside_next=True):
        yield failure
    if (every := cell.all_at_once) and every.monthly_usd > usd:
        together = cell.waits.same_moment if cell.waits else None
        last = together.last_answer_seconds if together else None
        yield _AT_THE_SAME_MOMENT.fill(
            users=wording.whole(every.concurrent_requests),
            usd=_shown(question, every.monthly_usd),
            last=wording.span(last or 0),
            waits=last is not None,
        )
    if (published := cell.as_published) and (published.monthly_usd is None or published.monthly_usd > usd):
        shown = [_shown(question, month) for month in (published.monthly_usd or 0, usd)]
        more = _more(question, *shown) if published.monthly_usd else NONE
        yield _QUALITY.fill(usd=more, served=published.monthly_usd is not None)
    own = [deployment for deployment in question.measurements.deployments if deployment.served.gpu == answer.gpu]
    if not answer.measured and cell.measure is not None and not any(deployment.runs for deployment in own):
        other = cell.measured_hardware
        price = _shown(question, other.monthly_usd) if other else money(cell.measure.usd)
        is_same_gpu = other is not None and question.instances[other.instance].gpu.id == answer.gpu
        yield _NEVER_MEASURED.fill(usd=price, other=other is not None, named=False, is_same_gpu=int(is_same_gpu))
    if question.settings.purchase in TERMS:
        yield _BOUND.fill(usd=full_money(committed_usd(question.settings.purchase, usd)))
    if cell.needs_reservation:
        yield _RESERVE.fill(machines=plural(answer.n_instances, "machine"))


def _too_slow(question: Question, cell: CellRecord) -> Cell:
    """The price of the margin above the answer, if that proves too slow; NONE where no margin may follow it."""
    surer = _next_step(question, cell)
    if surer is None:
        return NONE
    return _TOO_SLOW.fill(usd=_margin_more(question, cell, surer), is_short=int(wording.is_short(cell.answer)))


def _margin_more(question: Question, cell: CellRecord, margin: AtConfidence) -> Cell:
    """How much more the margin takes than the answer, as both are to be approved."""
    return _more(question, _approved(question, margin.monthly_usd), _approved(question, cell.answer.monthly_usd))


def _failure(question: Question, cell: CellRecord, is_beside_next: bool = False, is_apart: bool = False) -> Cell:
    """The load that is served when a machine fails, and the machines that survive that, unless they stand with the
    option that has a margin; NONE where none do. is_beside_next: beside what is next cheapest, which has named its
    machines. is_apart: in a mail, whose options do not name them."""
    answer, survivor = cell.answer, cell.survives_machine
    if question.settings.survive:
        return _SURVIVED.fill(lost=wording.lost(question))
    if survivor is None:
        return NONE
    left, asked = _served_without_one(cell), cell.requests_per_second if cell.is_rate else cell.requests
    return _FAILS.fill(
        **_survivor_values(question, cell, survivor, is_beside_next),
        margin=_is_margin(cell, survivor),
        told=_survives_too(cell),
        is_apart=int(is_apart),
        left=wording.whole(math.floor(left)),
        asked=wording.whole(cell.requests),
        several=answer.n_instances > 1,
        counted=not cell.is_rate and left < asked,
        short=left < asked,
        **_queue_values(cell),
    )


def _queue_values(cell: CellRecord) -> dict[str, object]:
    """The requests of the peak's hour and how many of them the other machines clear when one fails; "" where they clear
    all."""
    cleared = cell.waits.cleared_per_hour_less_machine if cell.waits else None
    return {
        "cleared": "" if cleared is None or cleared >= cell.requests_per_hour else str(wording.whole(cleared)),
        "per_hour": wording.whole(cell.requests_per_hour),
    }


def _survivor_values(
    question: Question, cell: CellRecord, survivor: SurvivorRental, is_beside_next: bool = False
) -> dict[str, object]:
    return {
        "usd": _shown(question, survivor.monthly_usd),
        "rent": _place_beside(cell, survivor, is_beside_next),
        "before": str(sure(survivor.chance_before)),
        "after": str(sure(survivor.chance)).removesuffix(" sure"),
        "alike": str(sure(survivor.chance)) == str(sure(survivor.chance_before)),
    }


def _survives_too(cell: CellRecord) -> bool:
    """True where the machines that survive a loss cost less than the option with a margin, which survives it too."""
    survivor, margin = cell.survives_machine, _margin(cell)
    if survivor is None or margin is None or survivor.monthly_usd >= margin.monthly_usd:
        return False
    return not _is_margin(cell, survivor) and _is_survivor(cell, margin)


def _is_margin(cell: CellRecord, rental: SurvivorRental) -> bool:
    """True where a rental is what the option with a margin rents."""
    margin = _margin(cell)
    return (
        margin is not None
        and is_same_rental(rental, margin)
        and same_money(rental.monthly_usd, margin.monthly_usd)
        and said_steps(rental.chance_before) == said_steps(margin.chance)
    )


def _served_without_one(cell: CellRecord) -> float:
    """The load that the other machines serve within the targets when one fails, in requests at once, or per second at
    most."""
    answer = cell.answer
    lost = answer.n_instances / answer.n_replicas if answer.spans_machines else 1
    return answer.served_at_target * (answer.n_instances - lost) / answer.n_instances


def _basis(
    question: Question,
    cells: Sequence[CellRecord],
    more: Sequence[str] = (),
    month: Text = NONE,
    others: Iterable[str] = (),
    is_one_of: bool = False,
    is_short: bool = False,
) -> Cell:
    """The basis of the prices: their class and dates, the oldest date of other prices on the page, the cost of the
    same machines in Europe, and dollars beside another currency. more: instances of another option. others: the dates
    of other prices. is_one_of: one of the cells is to be chosen. is_short: for a mail, the oldest dates alone: of the
    cells, and of all other prices where that is older."""
    settings, most_days = question.settings, question.reference.assumption("stale_after_days")
    own = dict.fromkeys(cell.answer.instance for cell in cells)
    rented = [question.instances[instance] for instance in dict.fromkeys((*own, *more))]

    def marked(date: str) -> str:
        is_old = notes.is_stale(date, question.as_of, most_days)
        return f"{date}, {age_in_words(date, question.as_of)}" if is_old else date

    def oldest_of(dates: Iterable[str]) -> str:
        return min(((day, date) for date in dates if (day := day_of(date))), default=(None, ""))[1]

    days: dict[str, list[str]] = {}
    for candidate in rented:
        where = " ".join(filter(None, (wording.provider_name(candidate.provider), candidate.region)))
        listed_in = f" ({notes.own_list(candidate)})" if candidate.brought else ""
        days.setdefault(where, []).append(marked(notes.price_date(candidate)) + listed_in)
    named = [notes.price_date(candidate) for candidate in rented if candidate.instance in own or not is_short]
    day = oldest_of(named)
    oldest = oldest_of([day, *others, *map(notes.price_date, rented)])
    oldest = "" if day_of(oldest) == day_of(day) else oldest
    exchange = ""
    if settings.currency != "USD":
        rate = f"{wording.plain(settings.fx_rate)} {settings.currency}"
        beside = f"{month} at {rate}{' a dollar' * (not is_short)}"  # stays in dollars
        exchange = beside if month else f"1 US dollar is {rate}"
    sold_as = wording.discounted(TERMS.get(settings.purchase, settings.purchase), question)
    if is_short:
        return _OLDEST.fill(
            prices=sold_as,
            day=marked(day),
            known=bool(day),
            is_several=int(len({*named}) > 1),
            lists=(lists := " and ".join(dict.fromkeys(notes.own_list(c) for c in rented if c.brought))),
            listed=bool(lists),
            oldest=marked(oldest),
            others=bool(oldest),
            exchange=exchange,
            exchanged=bool(exchange),
        )
    return _BASIS.fill(
        prices=sold_as,
        lists=", ".join(f"{provider} {' and '.join(dict.fromkeys(dates))}" for provider, dates in days.items()),
        oldest=marked(oldest),
        others=bool(oldest),
        **_in_europe(question, cells, is_one_of),
        exchange=exchange,
        exchanged=bool(exchange),
    )


def _beside(question: Question, cell: CellRecord) -> list[Rental]:
    """The rentals that the request names beside the answer, at prices of its class."""
    decider = cell.measure.decider if cell.measure else None
    measured = decider if decider and decider.purchase == question.settings.purchase else None
    return [rental for rental in (_margin(cell), measured, cell.runner_up, cell.survives_machine) if rental]


def _other_dates(question: Question, cell: CellRecord) -> Iterator[str]:
    """The dates of the prices beside those of the rentals that are named with their machines."""
    settings, decider = question.settings, cell.measure.decider if cell.measure else None
    rented = [(decider.instance, decider.purchase)] if decider and decider.purchase != settings.purchase else []
    for way in _ways(cell):
        paid = way.detail if way.kind == "term" else settings.purchase
        rented += [(rental.instance, paid) for rental in (way, way.other, way.further) if rental and rental.instance]
        if way.kind == "own" and cell.owned:
            yield notes.capex_as_of(question, cell.owned.gpu) or ""
        if way.kind == "hosted":
            yield cell.hosted[0].read_on
    rented += [(cell.answer.instance, way.kind) for way in _classes(question, cell)]
    for instance, paid in rented:
        candidate = question.instances.get(instance)
        if candidate and (priced := candidate.in_class(paid)):
            yield notes.price_date(priced)
    if cell.in_europe and cell.in_europe.price_as_of:
        yield cell.in_europe.price_as_of


def _in_europe(question: Question, cells: Sequence[CellRecord], is_one_of: bool) -> dict[str, object]:
    """The cost of the machines of all cells in Europe, and the region; nothing where one of several models is to be
    chosen, or where prices of a region were requested or are of Europe already."""
    priced = [cell.in_europe for cell in cells if cell.in_europe is not None]
    is_there = all(cell.in_europe and cell.in_europe.region == cell.answer.region for cell in cells)
    if len(priced) < len(cells) or is_there or (is_one_of and len(cells) > 1):
        return {"sold": False, "europe": NONE, "region": "", "is_old": 0}
    months = [europe.monthly_usd for europe in priced if europe.monthly_usd is not None]
    places = dict.fromkeys(europe.region or "" for europe in priced)
    whole = _approved(question, math.fsum(months)) if len(months) == len(cells) else NONE
    most_days = question.reference.assumption("stale_after_days")
    is_old = any(notes.is_stale(europe.price_as_of, question.as_of, most_days) for europe in priced)
    return {"sold": bool(whole), "europe": whole, "region": ", ".join(places), "is_old": int(is_old)}
