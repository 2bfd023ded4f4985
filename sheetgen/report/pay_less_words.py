"""The words of each way to pay less, and of what it gives up."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sheetgen.answer.answer_record import CellRecord, NotAskedRecord, PayLess, Record
from sheetgen.answer.confidences import is_below
from sheetgen.answer.pay_less import NOT_REQUESTED
from sheetgen.formula import either, is_text
from sheetgen.question.market import UNBOUND, vendor_name
from sheetgen.question.sheet_question import Question
from sheetgen.report.in_currency import amounts_of, more_than
from sheetgen.report.page import Cell
from sheetgen.report.sentences import MADE_BY_ONESELF, OWN_LOSES, OWN_PAYS_OFF, PAYS_OFF, host_lacks, hours_lost
from sheetgen.report.templates import Template, q, template
from sheetgen.report.wording import MARGIN, money, provider_of, rent, sure
from sheetgen.sizing import cost
from sheetgen.units import CAPACITY_BLOCK, PURCHASES, SPOT

_KNOWN = is_text(q.detail)
_DOUBTED = "[doubted?, {sure}]"  # where its certainty is told
TEST_QUALITY = "test the quality on your own questions"


class Way(NamedTuple):
    """The words of one kind of way: its name, its losses and its short form; then, for budget owners, the change, the
    losses, the steps needed first, the condition under which another vendor takes less, and when it pays off."""

    what: Template
    gives_up: Template
    short: Template
    change: Template
    loses: Template
    needs: Template = template("")
    only_if: Template = template("")
    further_if: Template = template("")
    pays_off: Template = template("")


# Of the same machines in classes without a term: the change, and the losses.
CLASSES = {
    SPOT: ("spot machines", "keeping them: they may be taken away at any time"),
    CAPACITY_BLOCK: ("capacity block", "paid ahead; it ends"),
}


class PlainWords(NamedTuple):
    """A way in a budget owner's words: the change, the losses, the steps needed first, the condition under which
    another vendor takes less, and when it pays off; "" where there is none."""

    change: str
    loses: str
    needs: str
    only_if: str
    further_if: str
    pays_off: str


_SOME_QUALITY = template("quality: test it first")
_LESS_CERTAIN = template("[less_sure?certainty: {few}, not {many}]", less_sure=q.is_less_sure == 1)
WAYS: dict[str, Way] = {
    "less_sure": Way(
        template("being only {sure}"),
        template("certainty: measure one machine first"),
        template("{sure}"),
        template("only {own}"),
        template("certainty"),
    ),
    "fp8_weights": Way(
        template(f"FP8 weights[known?, {{detail}}]{_DOUBTED}", known=_KNOWN, doubted=is_text(q.sure)),
        template(f"some quality[known?: | and a ready checkpoint: {MADE_BY_ONESELF}; ]{TEST_QUALITY}", known=_KNOWN),
        template(f"FP8 weights{_DOUBTED}", doubted=is_text(q.sure)),
        template("the model in 8 bits"),
        _SOME_QUALITY,
    ),
    "kv_fp8": Way(
        template(f"an FP8 KV cache{_DOUBTED}", doubted=is_text(q.sure)),
        template(f"a little quality: calibrate its scales, and {TEST_QUALITY}"),
        template(f"FP8 KV cache{_DOUBTED}", doubted=is_text(q.sure)),
        template("conversations in 8 bits"),
        _SOME_QUALITY,
    ),
    "four_bits": Way(
        template(f"weights in 4 bits[known?, {{detail}}]{_DOUBTED}", known=_KNOWN, doubted=is_text(q.sure)),
        template(f"more quality than 8 bits: {TEST_QUALITY}"),
        template(f"4 bits{_DOUBTED}", doubted=is_text(q.sure)),
        template("the model in 4 bits"),
        template("more quality: test it first"),
    ),
    "hours": Way(
        template(
            f"working hours only ({{working_hours}} of {{hours}} hours)[other_class?, on demand]{_DOUBTED}",
            other_class=is_text(q.other_class),
            doubted=is_text(q.sure),
        ),
        template("nights and weekends; every start takes some {start_minutes} minutes"),
        template(f"working hours ({{working_hours}} of {{hours}}){_DOUBTED}", doubted=is_text(q.sure)),
        template("working hours only"),
        hours_lost,
    ),
    "term": Way(
        template(f"a {{term}} commitment to {{commits_usd}}{_DOUBTED}", doubted=is_text(q.sure)),
        template("cancelling: it pays after {pays_after_months:tenths} months of what on demand would rent"),
        template(f"{{term}} term{_DOUBTED}", doubted=is_text(q.sure)),
        template("{term} term"),
        template(
            "cancelling[elsewhere?, on {elsewhere}][surer?; {own}]",
            elsewhere=is_text(q.elsewhere),
            surer=q.is_surer == 1,
        ),
        pays_off=template(PAYS_OFF),
    ),
    "provider": Way(
        template(f"{{other}}, not requested{_DOUBTED}", doubted=is_text(q.sure)),
        template(
            "[less_sure?certainty, and ][vendor?the vendor requested: test your software there|[gpu?the GPUs requested|"
            "the providers requested: buying there must be allowed]][cheaper_still?; {further} costs {further_usd}"
            "[further_doubted?, {further_sure}]]",
            less_sure=q.is_less_sure == 1,
            vendor=q.detail == "vendor",
            gpu=q.detail == "gpu",
            cheaper_still=is_text(q.further),
            further_doubted=is_text(q.further_sure),
        ),
        template("{other}"),
        template("{other}"),
        _LESS_CERTAIN,
        template(
            "[less_sure?|[is_vendor?its software to test|[is_gpu?GPUs not requested|a supplier to approve]]]"
            "[told?; {own}][cheaper_still?; {further_provider}: {further_usd}]",
            less_sure=q.is_less_sure == 1,
            is_vendor=q.beyond == "vendor",
            is_gpu=q.beyond == "gpu",
            told=either(q.is_surer == 1, q.is_lower == 1),
            cheaper_still=is_text(q.further),
        ),
        template(
            "[is_vendor?our software on {other}|[is_gpu?other GPUs, {other}|{other}]][unlike? ({few} sure)]",
            is_vendor=q.beyond == "vendor",
            is_gpu=q.beyond == "gpu",
            unlike=either(q.is_lower == 1, q.is_higher == 1),
        ),
        template("{further}[further_doubted? ({further_sure})]", further_doubted=is_text(q.further_sure)),
    ),
    UNBOUND: Way(
        template(f"{{other}} on demand, not requested{_DOUBTED}", doubted=is_text(q.sure)),
        template(
            "[less_sure?certainty, and ]the providers requested: buying there must be allowed",
            less_sure=q.is_less_sure == 1,
        ),
        template("{other} on demand"),
        template("{other} on demand"),
        _LESS_CERTAIN,
        template(
            "[less_sure?|a supplier to approve][told?; {own}]",
            less_sure=q.is_less_sure == 1,
            told=either(q.is_surer == 1, q.is_lower == 1),
        ),
        template(
            "{other} on demand[unlike? ({few} sure)]",
            unlike=either(q.is_lower == 1, q.is_higher == 1),
        ),
    ),
    "own": Way(
        template("owning {owned_gpus}"),
        template(
            "{commits_usd} up front, which is {hardware} of the month over {owned_years} years, capital paid; "
            f"{{running}} are support, power and site; staff and network are yours; {OWN_PAYS_OFF}"
        ),
        template("owned"),
        template("owning"),
        template(OWN_LOSES),
        pays_off=template(OWN_PAYS_OFF),
    ),
    "hosted": Way(
        template("the hosted API of {host}"),
        template("keeping your data in the company; the precision is theirs"),
        template("hosted by {host}"),
        template("hosted by {host}"),
        template(
            "data in house[told?; {host_lacks}]",
            told=either(is_text(q.region), q.is_unknown == 1),
            host_lacks=host_lacks,
        ),
        only_if=template(
            "data hosted at {host}[told?, {host_lacks}]",
            told=either(is_text(q.region), q.is_unknown == 1),
            host_lacks=host_lacks,
        ),
    ),
}
OF_CHECKPOINTS = ("fp8_weights", "four_bits")  # their words name a checkpoint
OF_SUPPLIERS = ("cloud", "provider", UNBOUND)  # groups that nobody requested, by who sells them
OF_CERTAINTY = ("less_sure", *NOT_REQUESTED)  # their words for budget owners give their certainty
MONTHS_IN_A_YEAR = cost.CONSTANTS["months_in_a_year"]
JUDGED = {"working_hours": "working_hours_per_month", "start_minutes": "start_minutes"}
OTHER = template(
    "[foreign?{vendor} ]{gpu_name} at {provider}[assumed?, {region}, priced per GPU]",
    foreign=is_text(q.vendor),
    assumed=is_text(q.region),
)
# The cheapest way that changes nothing but the payment, and that savings do not add up.
_SAME = (
    "the same answers, within the same targets, at least as sure, at all hours, on machines that stay, of the "
    "providers requested"
)
CHEAPEST_SAME = template(
    f"[any?Cheapest with {_SAME}: {{what}}, {{month}} a month, {{rent}}; gives up {{gives_up}}|"
    f"No cheaper way has {_SAME}]."
    "[allowed? If renting at {other_provider} is allowed: {other_month} a month, {other_sure}"
    "[spot?, on spot machines: they may be taken away at any time|[free?, bound to nothing]].]"
    "[hours? Without nights and weekends: working hours only, {hours_month} a month[unlike?, "
    "{hours_sure}], bound to nothing.] "
    "Savings do not add up: each is of its way alone[both?, and a commitment is paid in every hour].",
    any=is_text(q.what),
    hours=is_text(q.hours_month),
    unlike=is_text(q.hours_sure),
    both=q.is_both == 1,
    allowed=is_text(q.other_month),
    free=q.is_free == 1,
    spot=q.purchase == SPOT,
)
TERMS = {"reserved-1yr": "one-year", "reserved-3yr": "three-year"}


def with_pay_less(record: Record, question: Question) -> Record:
    """The record with the ways to pay less in words."""

    def worded(cell: CellRecord) -> CellRecord:
        ways, terms, sure_ways = (
            tuple(_worded(way, question, cell) for way in part)
            for part in (cell.pay_less, cell.other_terms, cell.as_sure)
        )
        best = cell.cheapest_same and _worded(cell.cheapest_same, question, cell)
        return replace(cell, pay_less=ways, other_terms=terms, as_sure=sure_ways, cheapest_same=best)

    return replace(record, cells=tuple(map(worded, record.cells)))


def other_words(other: NotAskedRecord) -> str:
    """The hardware of a cheaper answer that nobody requested: H100 NVL at Azure, or of another vendor AMD MI300X at
    Azure; where its machine is assumed its region, too."""
    vendor = vendor_name(other.vendor) if other.kind == "vendor" else ""
    provider = provider_of(other.instance)
    return str(OTHER.fill(vendor=vendor, gpu_name=other.gpu_name, provider=provider, region=other.region))


def is_told(chance: float, monthly_usd: float, asked: float, cell: CellRecord) -> bool:
    """True where the certainty of something cheaper is shown: where it, or the answer's, is below the requested one,
    where it is below the answer's, and where it is surer than the answer for less than the sure answer costs."""
    own, sure_level = cell.answer.chance, cell.at_level(MARGIN)
    is_surer = is_below(own, chance) and (sure_level is None or monthly_usd < sure_level.monthly_usd)
    return is_surer or is_below(own, asked) or is_below(chance, max(asked, own))


def cheapest_words(question: Question, cell: CellRecord) -> Cell:
    """The sentence on the cheapest way that changes nothing but the payment, for a cell."""
    best, amount = cell.cheapest_same, amounts_of(question.settings)
    hours = next((way for way in cell.pay_less if way.kind == "hours"), None)
    other = _cheaper_elsewhere(cell)
    is_unbound = other is not None and other.kind == UNBOUND
    hours_sure = str(sure(hours.chance)) if hours and hours.chance is not None else ""
    hours_sure = "" if hours_sure == str(sure(cell.answer.chance)) else hours_sure
    return CHEAPEST_SAME.fill(
        what=best.what if best else "",
        gives_up=best.gives_up if best else "",
        month=amount(best.monthly_usd) if best else "",
        rent=f"{rent(best.n_instances or 0, best.instance or '')}, {provider_of(best.instance or '')}" if best else "",
        any=best is not None,
        hours_month=amount(hours.monthly_usd) if hours else "",
        hours=hours is not None,
        hours_sure=hours_sure,
        unlike=bool(hours_sure),
        both=best is not None and hours is not None,
        other_provider=provider_of(other.instance) if other else "",
        other_month=amount(other.monthly_usd) if other else "",
        other_sure=str(sure(other.chance)) if other else "",
        allowed=other is not None,
        purchase="" if is_unbound else question.settings.purchase,
        spot=not is_unbound and question.settings.purchase == SPOT,
        is_free=int(is_unbound or not PURCHASES[question.settings.purchase].binds),
    )


def _cheaper_elsewhere(cell: CellRecord) -> NotAskedRecord | None:
    """The cheapest at a provider that was not requested, at least as sure as the answer, where it costs less than the
    best way at those that were."""
    ways = [way for way in (*cell.pay_less, *cell.as_sure) if way.kind in NOT_REQUESTED]
    others = [
        other
        for way in ways
        for other in (way.other, way.further)
        if other and other.kind in OF_SUPPLIERS and not is_below(other.chance, cell.answer.chance)
    ]
    most_usd = (cell.cheapest_same or cell.answer).monthly_usd
    return min(
        (other for other in others if other.monthly_usd < most_usd), key=lambda other: other.monthly_usd, default=None
    )


def way_words(way: PayLess, question: Question, cell: CellRecord) -> tuple[Cell, Cell, Cell]:
    """The words of a way, with its certainty where that is shown, its losses, and its short form."""
    slots = _slots(way, question, cell)
    words, gives_up, short, *_ = (sentence.fill(**slots) for sentence in WAYS[way.kind])
    return words, gives_up, short


def plain_words(way: PayLess, question: Question, cell: CellRecord) -> PlainWords:
    """A way in a budget owner's words, with its certainty where that is below the answer's."""
    slots = _slots(way, question, cell)
    change, loses, *others = (str(sentence.fill(**slots)) for sentence in WAYS[way.kind][3:])
    if slots["is_lower"] and way.kind not in OF_CERTAINTY:
        loses = f"{loses}; {slots['own']}"
    return PlainWords(change, loses, *others)


def _slots(way: PayLess, question: Question, cell: CellRecord) -> dict[str, object]:
    """The values of the named slots in the words of a way; "" or 0 for those that its kind does not have."""
    n_gpus, _, gpu = way.detail.partition(" ")
    gpus = {gpu.id: gpu for gpu in question.gpus}
    amount, asked = amounts_of(question.settings), question.settings.confidence
    answer = cell.answer.chance
    own = answer if way.chance is None else way.chance

    def told(rental: PayLess | NotAskedRecord | None) -> str:
        if rental is None or rental.chance is None:
            return ""
        is_shown = way.kind == "less_sure" or is_told(rental.chance, rental.monthly_usd, asked, cell)
        return str(sure(rental.chance)) if is_shown else ""

    return {
        "known": bool(way.detail),
        "detail": way.detail,
        "sure": told(way),
        "own": str(sure(own)),
        "few": _percent(own),
        "many": _percent(answer),
        "is_less_sure": int(is_below(own, min(asked, answer))),
        "is_lower": int(is_below(own, answer)),
        "is_higher": int(is_below(answer, own)),
        "is_surer": int(is_below(answer, own) and is_told(own, way.monthly_usd, asked, cell)),
        "owned_gpus": f"{n_gpus}x {gpus[gpu].short_name if gpu in gpus else gpu}",
        "term": TERMS.get(way.detail, PURCHASES[way.detail].words if way.detail in PURCHASES else ""),
        "other": other_words(way.other) if way.other else "",
        "other_provider": provider_of(way.other.instance) if way.other else "",
        "beyond": way.other.kind if way.other else "",
        "further": other_words(way.further) if way.further else "",
        "further_provider": provider_of(way.further.instance) if way.further else "",
        "further_usd": amount(way.further.monthly_usd) if way.further else "",
        "further_sure": told(way.further),
        "region": question.filters.region or "",
        "host": question.reference.hosted.host_name(way.detail) if way.kind == "hosted" else "",
        "is_unknown": int(bool(cell.hosted) and cell.hosted[0].precision is None),
        "other_class": way.detail if way.kind == "hours" else "",
        "hours": f"{question.settings.hours_per_month:g}",
        "commits_usd": amount(way.commits_usd or 0),
        **_owning(way, question, cell),
        "elsewhere": _elsewhere(way, question, cell),
        "pays_after_months": way.pays_after_months or 0,
        **{name: f"{question.reference.assumption(key):g}" for name, key in JUDGED.items()},
    }


def _elsewhere(way: PayLess, question: Question, cell: CellRecord) -> str:
    """The GPUs and the supplier of a way that rents other machines than the answer: H200 SXM at Azure; "" of these."""
    if not way.instance or way.instance == cell.answer.instance or way.instance not in question.instances:
        return ""
    gpu_name = question.instances[way.instance].gpu.short_name
    return str(OTHER.fill(vendor="", gpu_name=gpu_name, provider=provider_of(way.instance), region=""))


def _owning(way: PayLess, question: Question, cell: CellRecord) -> dict[str, str]:
    """The parts of the month of owning."""
    if way.kind != "own" or cell.owned is None:
        return {}
    amount, hardware = amounts_of(question.settings), cell.owned.base["owned_hardware_usd"]
    running = more_than(money(way.monthly_usd), money(hardware), question.settings)
    years = f"{question.owning.values['owned_years']:g}"
    return {"hardware": amount(hardware), "running": amount(running), "owned_years": years}


def _percent(chance: float) -> str:
    return str(sure(chance)).removesuffix(" sure")


def short_words(way: PayLess, question: Question, cell: CellRecord) -> Cell:
    """The short form of a way."""
    _, _, short = way_words(way, question, cell)
    return short


def _worded(way: PayLess, question: Question, cell: CellRecord) -> PayLess:
    words, gives_up, _ = way_words(way, question, cell)
    return replace(way, what=str(words), gives_up=str(gives_up))
