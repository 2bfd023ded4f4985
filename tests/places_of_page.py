"""From which cells of the workbook each text and number of the page may come."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from statistics import NormalDist

from numbers_shown import Book, Place
from workbook_cells import PRICES_SHEET

from sheetgen.answer.answer_record import CellRecord, Record, as_json
from sheetgen.answer.hosts import SHOWN_HOSTS
from sheetgen.answer.solution import Solution
from sheetgen.report.notes import price_classes
from sheetgen.report.page import Page
from sheetgen.report.wording import instance_name
from sheetgen.sizing.cost import HOURS_IN_A_MONTH
from sheetgen.units import GIB, ON_DEMAND, PURCHASES

# Fields of a load's answer, and the columns of Workings that they come from, where its whole row would hold too many
# small numbers to tell a wrong one.
FROM = {
    "rent": ("Instances",), 
    "load": ("At once", "Users"), "spare": ("At once", "Room in words"),
    "held": ("Room in words",), "headroom": ("Room in words",),
    "monthly": ("$ per month",), "monthly_usd": ("$ per month",), "kv": ("KV in the page's unit",),
    "kv_bytes": ("KV for all requests",), "tier": ("At once",), "requests": ("At once",),
    "first_token": ("Time to first token", "ttft, low", "ttft, high"), "context_tokens": ("Context",),
    "token_time": ("tpot ms", "tpot low ms", "tpot high ms"),
    "word": ("Model's limit in words",),
    "throughput": ("Output tokens per second", "output tokens per second, low", "output tokens per second, high"),
}  # fmt: skip

# What is worked out for the page alone: the JSON has it.
AT_FP8, NOT_ASKED = ("at_fp8", "fp8_rent", "fp8_monthly"), ("not_asked", "cheapest_not_asked")
# By the first words of a line of assumptions, which lines of Inputs and Constants it puts into words.
ASSUMED = {
    "Activations": "Sampler, beside.*|Non-torch memory at TP.*|CUDA graphs|of each layer and batch size beside it",
    "Size set": ".*: time per output token|.*: time to first token|Band end z",
    "Memory's low end": "Band end z",
    "People": ".*: requests of a person a day", "Of a day": "Busiest hour's share of a day",
    "Every request": "Average fill of the context", "Prefix-cache": "Prefix cache hits", "A month": "Hours per month",
    "Tensor parallel": "Layout [0-9]*: TP", "Prices older": "Days until a price is old",
}  # fmt: skip
OF_THE_ENGINE = "GPU memory utilization|KV block size"  # its first line begins with its name


@dataclass(frozen=True, repr=False)
class Built:
    """One sheet in every format."""

    solved: Solution
    record: Record
    page: Page  # in dollars, as the workbook is
    shown: Page  # in the budget's currency
    files: dict[str, bytes]
    book: Book
    money: list[list[Place]]  # the rows of the Money sheet, with each model chosen there
    texts: set[str]  # of all the workbook's cells
    names: re.Pattern[str]

    def headline(self, model: int) -> int:
        """The load of a model that is answered above all."""
        cells = self.solved.question.loads
        return next(
            i for i, c in enumerate(cells) if (c.model, (c.workload, c.tier)) == (model, self.solved.question.headline)
        )

    def load(self, model: int, workload: int, tier: int) -> int:
        question = self.solved.question
        return (model * len(question.workloads) + workload) * len(question.tiers) + tier


def place_on_page(built: Built, path: tuple[str | int, ...]) -> Place:
    """The cells that a text or number of the page may come from."""
    book, question = built.book, built.solved.question
    part, *rest = path
    numbers = [n for n in rest if isinstance(n, int)]
    field = str(rest[-1]) if rest else ""
    if part == "load_note":
        return _load_note(built)
    if part == "finding":
        months = (book.cells("Workings", built.headline(m), "$ per month") for m in range(len(question.models)))
        return sum(months, book.cells("Workings", built.headline(0), "At once"))
    if part == "cards" and "row" in rest:
        return _of_row(built, built.headline(numbers[0]), str(rest[2]))
    if part == "cards" and "ways" in rest:
        row = built.headline(numbers[0])
        return _gpus_of_way(built, row, numbers[1]) if field == "gpus" else _of_way(built, row, numbers[1])
    if part == "level":
        return Place((built.solved.question.settings.confidence,))
    if part == "matrix" and field in ("load", "people"):
        row = built.load(0, *numbers[:2])
        if field == "load":
            return book.cells("Workings", row, "At once")
        return Place((min(_people(built, built.load(m, *numbers[:2])) for m in range(len(question.models))),))
    if part == "matrix" and field in ("even", "published", "published_rent"):
        w, t, m = numbers
        cell = built.record.cells[built.load(m, w, t)]
        return _published(cell) if field != "even" else _at_confidence(cell)
    if part == "models" and field == "weights_in":
        return book.row("Models", numbers[0])
    if part in ("cards", "matrix"):
        m, w, t = (numbers[0], *question.headline) if part == "cards" else (*numbers, 0, 0)[:3][::-1]
        w, t = (w, t) if part == "cards" else (numbers[0], (*numbers, 0)[1])
        if field == "chance":  # printed to a twentieth
            chances = book.cells("Workings", built.load(m, w, t), "Chance").numbers
            return Place(tuple(min(0.95, max(0.05, math.floor(chance / 0.05 + 0.5) * 0.05)) for chance in chances))
        if field in FROM:
            return book.cells("Workings", built.load(m, w, t), *FROM[field])
        if field == "hardware":
            row = built.load(m, w, t)
            told = book.cells("Workings", row, "Hardware in words", "Model's limit in words")
            return _rented(built, row) + (told if part == "cards" else Place())
    if part == "cards" and field in ("owned", "break_even"):
        return _paid(built, numbers[0])[field]
    if part == "cards" and "class_years" in rest:
        return Place(tuple(12 * month for month in _of_class(built, numbers[0], numbers[1], True).numbers))
    if part == "cards" and field == "spare_machine":
        month, count = book.cells("Workings", built.headline(numbers[0]), "$ per month", "Instances").numbers
        return Place((month / count,))
    if part == "fp8_quality":
        return book.sheet("Sources and checks")
    if part == "assumed":
        n = built.solved.question.numbers[question.headline[1]]
        return Place((10.0 * n,) if n else ()) + book.sheet("Sources and checks", "Inputs", "Sizing sheet", "Contexts")
    if part == "cards" and ("classes" in rest or "class_rents" in rest):
        return _of_class(built, numbers[0], numbers[1], "classes" in rest)
    if part == "cards" and field in ("hosted", "hosted_monthly", "hosts", "hosts_rent"):
        return _hosted(built, numbers[0])
    if part == "hosted_for":
        return sum((p for p in book.places["Inputs"] if p.texts and p.texts[0] == "Utilization"), Place())
    if part == "cards" and field == "sized_by":
        tpot_seconds = built.solved.choices[built.headline(numbers[0])].without_targets_tpot_seconds
        alone = _rented_otherwise(built, str(getattr(built.page.cards[numbers[0]], field)))
        return alone + Place((1000 * tpot_seconds,))
    if part == "cards" and field in (*AT_FP8, *NOT_ASKED):
        return _of_record(built.record.cells[built.headline(numbers[0])], field)
    if part == "weights_note":
        cells = (built.record.cells[built.headline(m)] for m in range(len(question.models)))
        return sum((_published(cell) for cell in cells), Place())
    if part == "assumptions":
        return _assumed(built, numbers[0])
    if part == "cards":
        row = built.headline(numbers[0])
        place = load_cells(built, row) + book.row("Models", numbers[0])
        if field == "runner_up":  # other hardware
            place += book.sheet("Candidates", "Contexts", PRICES_SHEET, "GPUs")
        if field == "per_million_tokens":
            named = (p for p in book.places["Inputs"] if p.texts and p.texts[0] == "Utilization")
            return sum((*named, *built.money[numbers[0]]), place)
        of_money = sum(built.money[numbers[0]], book.sheet("Inputs"))
        return place + (of_money if field in ("per_year", "budget") else Place())
    if part == "matrix":
        w, t, m = (*numbers, 0, 0)[:3]
        if "cells" in rest:
            return load_cells(built, built.load(m, w, t))
        return book.row("Workings", built.load(0, w, t)) + book.row("Contexts", w)
    if part == "models" and field in ("full_attention_per_token", "full_attention_bytes", "ratio"):
        one = book.rows["Models"][4 + numbers[0]]
        full = one["Layers"] * one["Query heads"] * one["Key + value width"] * one["Bytes, KV element"]
        return Place((full / one["KV per token"] if field == "ratio" else float(full),))
    if part == "price_banner":
        priced = [row for row in book.rows[PRICES_SHEET][4:] if isinstance(row.get("Price age"), str)]
        days = [row["Price date"] for row in priced if isinstance(row.get("Price date"), datetime.datetime)]
        counts = [float([row["Price age"] for row in priced].count(age)) for age in ("old", "ok")]
        discount = question.settings.discount_fraction
        return Place((float(len(priced)), *counts, float(min(days).year), 180.0, discount))
    if part == "models":
        return book.row("Models", numbers[0])
    if part == "bars":
        m, w = numbers
        row = built.load(m, w, question.headline[1])
        return _breaks_of(built, row) + (
            _rented(built, row) + book.cells("Workings", row, "GPUs of the replicas")
            if field == "capacity"
            else Place()
        )
    if part == "breaks":
        row = built.headline(numbers[0])
        head = {"context_tokens": "Context", "requests": "At once"}.get(field)
        return _breaks_of(built, row) + book.cells("Workings", row, *([head] if head else ()))
    if part == "levers":
        lever = built.page.levers[numbers[0]]
        n = next(
            n
            for n, r in enumerate(book.rows["Levers"][4:])
            if r.get("Model") == lever.model
            and (r["Lever"] == lever.change or ("save nothing" in r["Lever"] and lever.change in r["What changes"]))
            and r["Load"] == book.rows["Workings"][4 + built.headline(0)]["Load in words"]
        )
        heads = {
            "monthly": "$ per month then", "saving": "Saves, $ per month", "share": "Saves",
            "cost": "What it costs, or why it does not apply",
        }  # fmt: skip
        return book.cells("Levers", n, heads.get(field, "Then rent"))
    if part == "instances":
        shown = built.page.instances[numbers[0]]
        gpu = next(c.gpu.id for c in question.candidates if c.instance == shown.instance)
        every = book.rows["Workings"][4 : 4 + len(question.loads)]  # below them the load on the first sheet once more
        loads = [row for row in every if row.get("Instance") == shown.instance]
        n_loads = Place((float(len(loads)),))  # what a reader counts
        memory = next(row["Memory, GiB"] for row in book.rows["GPUs"] if row.get("GPU") == gpu)
        of_it = book.where(PRICES_SHEET, Instance=shown.instance)
        count = next(r["GPUs"] for r in book.rows[PRICES_SHEET] if r.get("Instance") == shown.instance)
        whole = Place((memory * count,))  # of all its GPUs
        narrow = {
            "used_for": n_loads if len(loads) > 1 else book.sheet("Sizing sheet"),
            "memory": whole,
            "gpus": Place((float(count),)),
        }
        return narrow.get(field, of_it)
    if part in ("question", "precision_line"):
        row = built.headline(0)
        return book.cells("Workings", row, "At once", "Context in words") + Place(_targets(book))
    return book.sheet("Sources and checks", "Inputs", "Sizing sheet", "Contexts")


def _people(built: Built, row: int) -> float:
    (people,) = built.book.cells("Workings", row, "People").numbers
    return people


def _load_note(built: Built) -> Place:
    """The people and the requests an hour of the case, of the model that serves fewest, and the days of measuring."""
    rows = [built.headline(m) for m in range(len(built.solved.question.models))]
    hours = (built.book.cells("Workings", row, "Requests per hour").numbers for row in rows)
    days = [measure.usd for row in rows if (measure := built.record.cells[row].measure)]
    times = built.solved.question.workloads[built.solved.question.headline[0]].requests_per_user_per_day
    people = min(_people(built, row) for row in rows)
    return Place((people, math.floor(min(n for of_row in hours for n in of_row)), times, min(days), max(days)))


def _of_row(built: Built, row: int, field: str) -> Place:
    """A model's row of the first table."""
    book, cell = built.book, built.record.cells[row]
    if field == "year":
        return Place(tuple(12 * month for month in book.cells("Workings", row, "$ per month").numbers))
    if field == "sure":
        return Place(tuple(_twentieth(chance) for chance in book.cells("Workings", row, "Chance").numbers))
    if field in ("at_margin", "measure_first"):
        return _at_confidence(cell)
    if field == "as_published":
        return _published(cell)
    if field == "pace":
        return Place(tuple(1 / s for s in book.cells("Workings", row, "Time per output token").numbers))
    head = {"people": "People", "first_word": "Time to first token", "hourly": "$ per hour"}[field]
    return book.cells("Workings", row, head)


def _twentieth(chance: float) -> float:
    return min(0.95, max(0.05, math.floor(round(chance / 0.05, 2)) * 0.05))


def _at_confidence(cell: CellRecord) -> Place:
    """What the JSON has of an answer at other confidences: months, machines, chances, the levels asked for."""
    levels = [level for level in cell.by_confidence if level]
    numbers = [n for one in levels for n in (one.monthly_usd, float(one.n_instances), _twentieth(one.chance))]
    return Place((*numbers, 0.5, 0.9))


def _published(cell: CellRecord) -> Place:
    """What the JSON has of the answer with the published weights."""
    one = cell.as_published
    return Place((one.monthly_usd or 0.0, float(one.n_instances or 0))) if one else Place()


def _assumed(built: Built, n: int) -> Place:
    """The cells that a line of assumptions puts into words: a band's ends as the share between them; and how much
    smaller the KV pool is at a band's low end, which the engine's file has."""
    book, line = built.book, built.page.assumptions[n]
    labels = next((labels for start, labels in ASSUMED.items() if line.startswith(start)), OF_THE_ENGINE)
    rows = [row for sheet in ("Inputs", "Constants") for row in book.places[sheet] if row.texts]
    named = [row for row in rows if re.fullmatch(labels, row.texts[0])]
    shares = [2 * NormalDist().cdf(row.numbers[0]) - 1 for row in named if row.texts[0] == "Band end z"]
    pools = [-band.low for band in built.solved.question.engine.bands if band.figure == "kv_pool"]
    in_gib = [number / GIB for row in named for number in row.numbers if line.startswith("Activations")]
    return sum(named, Place((*shares, *in_gib, *(pools if line.startswith("Memory's low end") else ()))))


def _of_record(cell: CellRecord, field: str) -> Place:
    """What the JSON has of an answer at FP8, or of hardware that was not requested and is cheaper."""
    rentals = cell.not_asked if field in NOT_ASKED else [rental for rental in (cell.fp8,) if rental]
    return Place(tuple(number for one in rentals for number in (one.monthly_usd, float(one.n_instances))))


def _of_way(built: Built, row: int, n: int) -> Place:
    """What the JSON has of a way to pay less."""
    way = built.record.cells[row].pay_less[n]
    numbers = [float(v) for v in as_json(way).values() if isinstance(v, int | float)]
    numbers += [_twentieth(way.chance)] if way.chance is not None else []
    figures = (float(f.replace(",", "")) for f in re.findall(r"\d[\d,.]*\d|\d", way.what + way.gives_up))
    return Place((*numbers, *figures), tuple(one.gpu_name for one in (way.other, way.further) if one))


def _gpus_of_way(built: Built, row: int, n: int) -> Place:
    """How many GPUs a way rents, and the figures of their name."""
    way = built.record.cells[row].pay_less[n]
    if way.instance is None:  # a host, or GPUs of one's own
        return Place()
    candidate = built.solved.question.instances[way.instance]
    return Place((candidate.gpu_count * float(way.n_instances or 0),), (candidate.gpu.short_name,))


def _targets(book: Book) -> tuple[float, ...]:
    """The targets of every workload: of a token in milliseconds, of the first one in milliseconds and seconds."""
    units = (("TPOT target, ms", 1), ("TTFT target, ms", 1), ("TTFT target, ms", 1000))
    return tuple(float(r[head]) / unit for r in book.rows["Contexts"][4:] for head, unit in units if head in r)


def _rented_otherwise(built: Built, text: str) -> Place:
    """What memory alone would rent, which no load of the workbook does: that many of a priced instance; the
    targets."""
    settings, book = built.solved.question.settings, built.book
    told = re.search(r"([\d,]+) × (.+?), \$", text)
    if not told:
        return Place(_targets(book))
    count = float(told[1].replace(",", ""))
    names = {str(row.get("Type")).removeprefix("Standard_").replace("_", " "): row for row in book.rows[PRICES_SHEET]}
    hourly = names[told[2]]["$ per hour in use"] * (1 - settings.discount_fraction)
    return Place((*_targets(book), count, count * hourly * settings.hours_per_month))


def _of_class(built: Built, model: int, n: int, money: bool) -> Place:
    """A purchase class answered anew, which no load of the workbook does: so many of an instance at its price there.
    The money is held to the number of instances, and this to the money."""
    card, settings = built.page.cards[model], built.solved.question.settings
    purchase = list(price_classes(built.solved.question))[n]
    count, _, name = str(card.class_rents[n]).partition(" × ")
    if not name:  # nothing has a price in it and holds the load
        return Place()
    head = "$ per hour" if purchase == ON_DEMAND else f"$ per hour, {purchase}"
    rows = built.book.rows[PRICES_SHEET]
    listed = [r[head] for r in rows if str(r.get("Type")).removeprefix("Standard_").replace("_", " ") == name]
    # What has a price in another class alone is on no sheet.
    others = built.solved.question.others.get(purchase, ())
    (hourly,) = listed or [one.usd_per_hour for one in others if instance_name(one.instance) == name]
    hours = HOURS_IN_A_MONTH if PURCHASES[purchase].committed else settings.hours_per_month
    month = hourly * (1 - settings.discount_fraction) * hours
    if money:
        return Place((float(count.replace(",", "")) * month,))
    paid = float(str(card.classes[n]).replace(",", "").removeprefix("$"))
    return Place((float(round(paid / month)),))


def _hosted(built: Built, model: int) -> Place:
    """A model's hosts on the Money sheet; each purchase class, answered anew, against the first of them."""
    rows, utilization = built.money[model], built.solved.question.settings.utilization
    top = next(n for n, place in enumerate(rows) if place.texts and place.texts[0] == "Hosted instead")
    bills = [place.numbers[1] for place in rows[top + 1 : top + 1 + SHOWN_HOSTS] if len(place.numbers) > 4]
    rents = [of[built.headline(model)] for of in built.solved.by_purchase.values()]
    shares = [rent.monthly_usd * utilization / bills[0] for rent in rents if rent and bills]
    solved, row = built.solved, built.headline(model)
    model_of, question = solved.model_of(row).model, solved.question
    lists = (question.live_hosts(model_of), question.reference.hosted.of(model_of.hosted_id))
    n_hosts = [float(len({price.host for price in prices})) for prices in lists]
    most_days = question.reference.assumption("stale_host_after_days")
    return Place((*bills, *shares, 1.0, utilization, *n_hosts, most_days))  # 1: "at 100%"


def _paid(built: Built, model: int) -> dict[str, Place]:
    """A model's cells on the Money sheet: the GPUs owned, and when that pays."""
    rows = built.money[model]
    of_row = {place.texts[0]: place for place in rows if place.texts}
    ends = [of_row[end].numbers for end in ("low price", "base", "high price")]
    owning = next(place for place in rows if place.texts and place.texts[0] == "GPU")
    gpus = rows[rows.index(owning) + 1].texts[0]
    return {
        "owned": Place(tuple(one[1] for one in ends[::2] if len(one) > 4), (gpus,)),
        "break_even": Place(tuple(one[4] for one in ends if len(one) > 4)),
    }


def load_cells(built: Built, row: int) -> Place:
    """A load, and the hardware chosen for it."""
    book = built.book
    load = book.rows["Workings"][4 + row]
    chosen = book.where(PRICES_SHEET, Instance=load["Instance"])
    return book.row("Workings", row) + chosen + _rented(built, row)


def _rented(built: Built, row: int) -> Place:
    """The GPUs rented for a load, those that stay idle among them, and how many those are."""
    load, rows = built.book.rows["Workings"][4 + row], built.book.rows[PRICES_SHEET]
    found = [load["Instances"] * one["GPUs"] for one in rows if one.get("Instance") == load["Instance"]]
    return Place(tuple(float(n) for one in found for n in (one, one - load["GPUs of the replicas"]) if n))


def _breaks_of(built: Built, row: int) -> Place:
    """The line of a load on the OOM guide that tells where it breaks."""
    words = built.book.rows["Workings"][4 + row]
    places = built.book.places["OOM guide"]
    return sum((p for p in places if words["Model"] in p.texts and words["Load in words"] in p.texts), Place())


def names_of(book: Book) -> re.Pattern[str]:
    """The names of models, GPUs, instances, regions and contexts, in which figures are no figures."""
    heads = {
        "Models": ("Model", "Catalog id"),
        "GPUs": ("GPU", "Short name"),
        PRICES_SHEET: ("Type", "Instance", "Region", "Class"),
        "Workings": ("Context in words", "Model's limit in words"),
    }
    texts = (r.get(h) for sheet, names in heads.items() for r in book.rows[sheet] for h in names)
    found = {text for text in texts if isinstance(text, str) and re.search(r"\d?[A-Za-z]", text)}
    found |= {name.removeprefix("Standard_").replace("_", " ") for name in found}
    return re.compile("|".join(rf"(?<![\w.]){re.escape(n)}(?![\w.])" for n in sorted(found, key=len, reverse=True)))
