"""From which cells of the workbook each text and number of the page may come."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass

from numbers_shown import Book, Place
from workbook_cells import PRICES_SHEET

from sheetgen.answer.answer_record import CellRecord, Record, as_json
from sheetgen.answer.solution import Solution
from sheetgen.report.page import Page
from sheetgen.report.wording import instance_name

# Fields of a load's answer, and the columns of Workings that they come from, where its whole row would hold too many
# small numbers to tell a wrong one.
FROM = {
    "rent": ("Instances",), "load": ("At once", "Users"), "spare": ("At once", "Room in words"),
    "monthly": ("$ per month",), "kv": ("KV in the page's unit",), "tier": ("At once",), "requests": ("At once",),
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Built:
    """One sheet in every format."""

    solved: Solution
    record: Record
    page: Page  # in dollars, as the workbook's hidden sheets are
    shown: Page  # in the budget's currency
    files: dict[str, bytes]
    book: Book
    money: list[list[Place]]  # the rows of the Money sheet, and its dollars, with each model chosen there
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
    if part in ("cards", "matrix"):
        m, w, t = (numbers[0], *question.headline) if part == "cards" else (*numbers, 0, 0)[:3][::-1]
        w, t = (w, t) if part == "cards" else (numbers[0], (*numbers, 0)[1])
        if field in FROM:
            return book.cells("Workings", built.load(m, w, t), *FROM[field])
        if part == "cards" and field in ("gpus", "why"):
            row = built.load(m, w, t)
            return _rented(built, row) + book.cells("Workings", row, "Model's limit in words")
    if part == "cards" and field == "spare_machine":
        month, count = book.cells("Workings", built.headline(numbers[0]), "$ per month", "Instances").numbers
        return Place((month / count,))
    if part == "assumed":
        n = built.solved.question.numbers[question.headline[1]]
        return Place((10.0 * n,) if n else ()) + book.sheet("Sources and checks", "Inputs", "Sizing sheet", "Contexts")
    if part == "cards":
        row = built.headline(numbers[0])
        place = load_cells(built, row) + book.row("Models", numbers[0])
        return place + (sum(built.money[numbers[0]], book.sheet("Inputs")) if field == "per_year" else Place())
    if part == "matrix":
        w, t, m = (*numbers, 0, 0)[:3]
        if "cells" in rest:
            return load_cells(built, built.load(m, w, t))
        return book.row("Workings", built.load(0, w, t)) + book.row("Contexts", w)
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
        return _breaks_of(built, row)
    if part == "longest_fits":
        return _breaks_of(built, built.headline(numbers[0]))
    if part == "instances":
        shown = built.page.instances[numbers[0]]
        instance = next(c.instance for c in question.candidates if instance_name(c.instance) == shown.name)
        of_it = book.where(PRICES_SHEET, Instance=instance)
        count = next(r["GPUs"] for r in book.rows[PRICES_SHEET] if r.get("Instance") == instance)
        return Place((float(count),)) if field == "gpus" else of_it
    if part == "question":
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
    return Place((people, math.floor(min(n for of_row in hours for n in of_row) + 0.5), times, min(days), max(days)))


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
    """The JSON of an answer at other confidences: months, machines, chances, the levels asked for."""
    levels = [level for level in cell.by_confidence if level]
    numbers = [n for level in levels for n in (level.monthly_usd, float(level.n_instances), _twentieth(level.chance))]
    return Place((*numbers, 0.5, 0.9))


def _published(cell: CellRecord) -> Place:
    """The JSON of the answer with the published weights."""
    as_published = cell.as_published
    return Place((as_published.monthly_usd or 0.0, float(as_published.n_instances or 0))) if as_published else Place()


def _of_way(built: Built, row: int, n: int) -> Place:
    """The JSON of a way to pay less."""
    way = built.record.cells[row].pay_less[n]
    numbers = [float(v) for name, v in as_json(way).items() if isinstance(v, int | float) and name != "chance"]
    numbers += [_twentieth(way.chance)] if way.chance is not None else []
    figures = (float(f.replace(",", "")) for f in re.findall(r"\d[\d,.]*\d|\d", way.what + way.gives_up))
    return Place((*numbers, *figures), tuple(rental.gpu_name for rental in (way.other, way.further) if rental))


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


def load_cells(built: Built, row: int) -> Place:
    """A load, and the hardware chosen for it."""
    book = built.book
    load = book.rows["Workings"][4 + row]
    chosen = book.where(PRICES_SHEET, Instance=load["Instance"])
    return book.row("Workings", row) + chosen + _rented(built, row)


def _rented(built: Built, row: int) -> Place:
    """The GPUs rented for a load, those that stay idle among them, and how many those are."""
    load, rows = built.book.rows["Workings"][4 + row], built.book.rows[PRICES_SHEET]
    gpus = [load["Instances"] * row["GPUs"] for row in rows if row.get("Instance") == load["Instance"]]
    return Place(tuple(float(n) for count in gpus for n in (count, count - load["GPUs of the replicas"]) if n))


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
    words = {text for text in texts if isinstance(text, str) and re.search(r"\d?[A-Za-z]", text)}
    words |= {name.removeprefix("Standard_").replace("_", " ") for name in words}
    return re.compile("|".join(rf"(?<![\w.]){re.escape(n)}(?![\w.])" for n in sorted(words, key=len, reverse=True)))
