"""The first table of the sizing sheet and what stands around it: the title that states the finding, the row of each
model, the load in people, the weights in use, and the ways to pay less."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sheetgen.answer.answer_record import AtConfidence, CellRecord, PayLess, Record
from sheetgen.answer.pay_less import NOT_REQUESTED
from sheetgen.catalog.hardware import Workload
from sheetgen.formula import same_money
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.sheet_question import Question
from sheetgen.question.stated_load import Rate
from sheetgen.report import sentences, wording
from sheetgen.report.page import NONE, THE_SAME, Card, Cell, HeadlineRow, Text, WayRow, joined, words
from sheetgen.report.pay_less_words import short_words
from sheetgen.report.wait_words import at_once_words
from sheetgen.report.wording import money, plural, rent, rented_gpus
from sheetgen.sizing import cost
from sheetgen.units import EVEN, USD_CENTS, listed

TERMS_OF_US = {"usd_per_kwh": ("power", "power at {} a kWh"), "colo_usd_per_kw_month": ("space", "space at {} a kW")}
_SEVERAL = 2  # models, from which on a title has a range


def finding(question: Question, cards: Sequence[Card], total: Text | None) -> Cell:
    """The title: the load and its monthly cost."""
    load = load_asked(question)
    months = sorted((card.monthly for card in cards if card.fits), key=lambda cell: cell.value)  # type: ignore[union-attr]
    if total is not None:
        return sentences.finding_together.fill(load=load, usd=total)
    return sentences.finding.fill(
        load=load,
        model=cards[0].model,
        low=months[0] if months else NONE,
        high=months[-1] if months else NONE,
        single=len(cards) == 1,
        served=bool(months),
        several=len(months) >= _SEVERAL and months[0] != months[-1],
    )


def load_asked(question: Question) -> Cell:
    """The headline's load in the words of its workload: 32 document questions at once; 200 people's document
    questions; 4.5 document questions a second."""
    workload, tier = question.workloads[question.headline[0]], question.numbers[question.headline[1]]
    if tier is not None:
        return words("{} at once", plural(tier, workload.request_name))
    assert question.rate is not None, "only a rate has no requests at once of its own"
    if question.rate.users:
        return sentences.of_people.fill(users=question.rate.users, name=f"{workload.request_name}s")
    rate = wording.rate_number(question.rate.at_peak(question.settings, workload))
    return words("{} {} a second", rate, f"{workload.request_name}s")


def headline_row(question: Question, cell: CellRecord) -> HeadlineRow:
    """The row of a model; None where no hardware holds its load."""
    if cell.chosen is None:
        return HeadlineRow()
    answer, first = cell.chosen, cell.measure_first
    return HeadlineRow(
        people=_people_of(cell),
        year=wording.full_money(cell.units.annual_usd),
        sure=str(wording.sure(answer.chance)).removesuffix(" sure"),
        at_margin=_at_margin(cell),
        is_margin_open="sure_dear" in first or "sure_impossible" in first or "impossible" in first,
        as_published=as_published(cell)[0],
        first_word=words("{} s", wording.seconds(answer.ttft_seconds)),
        pace=wording.pace(1 / answer.tpot_seconds) if cell.output_tokens > 1 else NONE,
        hourly=Cell(answer.hourly_usd, USD_CENTS),
        measure_first=tuple(wording.measure_words(cell, question.settings.confidence)),
    )


def _people_of(cell: CellRecord) -> Text:
    """The people whom the machines serve: at most, of a load of people; for whom a load at once is enough."""
    if cell.more_people:
        return sentences.for_people.fill(users=cell.more_people.most_users, most=True)
    return sentences.for_people.fill(users=int(cell.users), most=False) if not cell.is_rate and cell.users >= 1 else ""


def _at_margin(cell: CellRecord) -> Text:
    """The monthly cost of the cheapest hardware that is 90 % sure."""
    at_sure = cell.at_level(wording.MARGIN)
    if at_sure is None:
        return NONE
    is_same = cell.answer.chance >= wording.MARGIN or same_money(at_sure.monthly_usd, cell.answer.monthly_usd)
    return THE_SAME if is_same else wording.full_money(at_sure.monthly_usd)


def even_answer(cell: CellRecord) -> AtConfidence | None:
    """The answer at an even chance, where that stands beside the answer because one should measure first."""
    is_told = {"impossible", "asked_dear", "one_each"}.intersection(cell.measure_first)
    return cell.at_level(EVEN) if is_told else None


def even_month(cell: CellRecord) -> Text:
    """The month of an even chance; NONE where it is not shown."""
    even = even_answer(cell)
    return NONE if even is None else wording.full_money(even.monthly_usd)


def as_published(cell: CellRecord) -> tuple[Cell, Text]:
    """The month with the published weights, and the instances to rent then; NONE where these are in use or nothing
    serves."""
    published = cell.as_published
    if published is None or published.instance is None or published.n_instances is None:
        return NONE, NONE
    return wording.full_money(published.monthly_usd), rent(published.n_instances, published.instance)


def published_dtype(record: Record, question: Question) -> str:
    """The precision of the published weights of all models that use others; "" where it differs among them."""
    dtypes = {
        wording.weights_name(question.model_of(cell.row).model, cell.as_published.weight_dtype)
        for cell in record.headline_cells
        if cell.as_published
    }
    return dtypes.pop() if len(dtypes) == 1 else ""


def load_note(record: Record, question: Question) -> tuple[Text, ...]:
    """The headline's load in people and an hour, and what a day of measuring costs."""
    cells = [cell for cell in record.headline_cells if cell.chosen]
    if not cells:
        return ()
    times = f"{question.workloads[question.headline[0]].requests_per_user_per_day:g}"
    lines: list[Text] = []
    users, per_hour = (least(getattr(cell, name) for cell in cells) for name in ("users", "requests_per_hour"))
    if not cells[0].is_rate and users >= 1:
        of_people = hour_of(question, question.workloads[question.headline[0]], users)
        lines.append(sentences.hour_of_people.fill(users=int(users), times=times, per_hour=of_people))
    elif cells[0].is_rate and per_hour == per_hour:
        at_once = at_once_words(cells[0]) if len(record.headline_cells) == 1 else ""  # which follow from the machines
        lines.append(sentences.hour_of_rate.fill(per_hour=per_hour, at_once=at_once))
    lines += _days_of_measuring(question, cells)
    if question.speed.is_beyond(cells[0].input_tokens):
        lines.append(sentences.word_beyond.fill())
    if unpriced := owning_unpriced(question, cells):
        lines.append(unpriced)
    if any(way.kind == "own" for cell in cells for way in cell.pay_less) and (abroad := terms_of_us(question)):
        prices = [words(TERMS_OF_US[name][1], Cell(question.owning.values[name], USD_CENTS)) for name in abroad]
        labels = {name: row.label for name in abroad if (row := BY_NAME[name].row)}
        options = listed([f"{name} ({labels[name]})" for name in abroad])
        lines.append(sentences.owning_abroad.fill(prices=joined(" and ", prices), options=options))
    return tuple(lines)


def _days_of_measuring(question: Question, cells: Sequence[CellRecord]) -> Iterator[Cell]:
    """The cost of a day of measuring: on machines that are rented from the lowest to the highest, and of each model on
    another one, which may prove cheaper than what is rented."""
    own, others = list[float](), dict[str, Cell]()
    for cell in cells:
        if cell.measure and cell.measure.run.instance == cell.answer.instance:
            own.append(cell.measure.run.usd)
        elif cell.measure:
            run, cheaper = cell.measure.run, cell.measure.decider
            others[cell.model] = sentences.day_elsewhere.fill(
                model=question.model_of(cell.row).model.name,
                usd=money(run.usd),
                machine=wording.instance_name(run.instance),
                month=wording.full_money(cheaper.monthly_usd) if cheaper else NONE,
                priced=cheaper is not None,
            )
    days = [joined(" to ", [money(usd) for usd in dict.fromkeys((min(own), max(own)))])] if own else []
    days += others.values()
    if days:
        yield words("A day of measuring costs {}.", joined("; ", days))


def terms_of_us(question: Question) -> tuple[str, ...]:
    """The terms of owning that are prices of the United States and that no reader set, where machines are rented
    elsewhere."""
    region = (question.filters.region or "").lower()
    if not region or region.startswith("us"):
        return ()
    return tuple(name for name in TERMS_OF_US if question.options.get(name) is None)


def owning_unpriced(
    question: Question, cells: Sequence[CellRecord], is_short: bool = False, is_named: bool = True
) -> Cell:
    """That nobody states a price to own the GPUs of the answers, and a GPU of the same family for rent that has one;
    NONE where all are priced. is_short: without that one. is_named: with the option to ask for it."""
    models: dict[str, list[str]] = {}  # by GPU without a price
    for cell in cells:
        if cell.owned and math.isnan(cell.owned.base["monthly_owned_usd"]):
            models.setdefault(cell.owned.gpu, []).append(question.model_of(cell.row).model.name)
    unpriced = [gpu for gpu in question.gpus if gpu.id in models]
    asked = cells[question.ask] if question.ask is not None and len(cells) > 1 else None
    is_of_others = asked is not None and asked.owned is not None and asked.owned.gpu not in models
    if not unpriced:
        return NONE
    rented = {candidate.gpu.id for candidate in question.instances.values()}
    families = {gpu.short_name.split(" ")[0] for gpu in unpriced}
    others = (
        gpu
        for gpu in question.gpus
        if gpu.id in rented
        and gpu.short_name.split(" ")[0] in families
        and (own := question.owning.gpus.get(gpu.id)) is not None
        and own.capex_usd is not None
    )
    other = None if is_short else next(others, None)
    capex = question.owning.gpus[other.id].capex_usd if other else None
    return sentences.owning_unpriced.fill(
        gpus=listed(
            [gpu.short_name + (f" (for {listed(models[gpu.id])})" if is_of_others else "") for gpu in unpriced]
        ),
        other=other.short_name if other else "",
        usd=money(capex[1]) if capex else NONE,
        option=min(other.aliases or (other.id,), key=len) if other and is_named else "",
    )


def hour_of(question: Question, workload: Workload, users: float) -> float:
    """Requests in the peak hour of a number of people; where that is rounded down, fewer than the load's."""
    return Rate(users=users).at_peak(question.settings, workload) * cost.CONSTANTS["seconds_in_an_hour"]


def least(amounts: Iterable[float]) -> float:
    """The least amount that is known; NaN where none is."""
    return min((amount for amount in amounts if not math.isnan(amount)), default=math.nan)


def weights_in_short(record: Record, question: Question) -> Text:
    """The precisions in use, each with its models, publisher and licence; "" where all weights are as published, in one
    precision."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for cell in record.headline_cells:
        model, checkpoint = question.model_of(cell.row).model, question.model_of(cell.row).checkpoint
        named = cell.as_published is not None and cell.checkpoint
        publisher = cell.checkpoint.split("/")[0] if cell.checkpoint and named else ""
        license_name = (model.license_of(checkpoint) if checkpoint and named else None) or ""
        groups.setdefault((wording.weights_name(model, cell.weight_dtype), publisher, license_name), []).append(
            model.name
        )
    if len(groups) == 1 and not next(iter(groups))[1]:
        return ""
    most = max(groups.values(), key=len)
    has_others = len(groups) > 1 and len(most) > 1
    parts = [
        sentences.weights_of_group.fill(
            models="all others" if has_others and names is most else ", ".join(names) if len(groups) > 1 else "",
            dtype=dtype,
            publisher=publisher,
            license=license_name,
            several=len(groups) > 1,
            published=bool(publisher),
            licensed=bool(license_name),
        )
        for (dtype, publisher, license_name), names in sorted(groups.items(), key=lambda group: group[1] is most)
    ]
    return words("Weights: {}.", joined("; ", parts))


def way_rows(question: Question, cell: CellRecord) -> tuple[WayRow, ...]:
    """The ways to pay less, mildest first."""
    return tuple(way_row(question, cell, way) for way in cell.pay_less)


def way_row(question: Question, cell: CellRecord, way: PayLess) -> WayRow:
    """The row of a way to pay less, in an engineer's words."""
    short = short_words(way, question, cell)
    candidate = question.instances.get(way.instance or "")
    rented = rent(way.n_instances, way.instance) if way.instance and way.n_instances else NONE
    gpus = rented_gpus(way.n_instances, candidate) if candidate and way.n_instances else NONE
    commits = wording.full_money(way.commits_usd) if way.commits_usd else "nothing"
    monthly = wording.full_money(way.monthly_usd)
    return WayRow(
        f"{way.what[:1].upper()}{way.what[1:]}",
        rented,
        monthly,
        commits,
        way.gives_up,
        gpus=gpus,
        short=words("{} {}", monthly, short),
        kind=way.kind,
        is_elsewhere=way.kind in (*NOT_REQUESTED, "hosted"),
    )
