"""The facts by which two sheets are compared: from the record, and from a workbook's yellow cells."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sheetgen.book.carried import compared_part, results_beside_loads
from sheetgen.catalog import Catalog
from sheetgen.errors import Problems
from sheetgen.question.discounts import CELL, Discounts, cell_name, in_force, key_of
from sheetgen.question.inputs import BY_NAME, BY_WORKLOAD
from sheetgen.question.overrides import class_columns
from sheetgen.question.parse import Raw, name_part
from sheetgen.question.sheet_question import ASKED
from sheetgen.question.stated_load import RATE
from sheetgen.readback.file_cells import is_number
from sheetgen.readback.package import WorkbookError, naming, read_file
from sheetgen.readback.pulled import ask_anew
from sheetgen.readback.read_book import NamedCell, Snapshot, Table, read_workbook_bytes
from sheetgen.readback.read_record import Candidate, Document, Inputs, read_document
from sheetgen.report.page import day_of
from sheetgen.units import PURCHASES

LoadKey = tuple[str, str, int]  # model id, workload's key, number of the tier from 1
# Options of `build` that stand in no cell of the workbook: what may be rented, and in which class.
OF_MARKET = ("providers", "vendors", "gpus", "instances", "region", "purchase")
OF_PRICES = (*OF_MARKET, "discount_fraction")  # with an input: what moves prices other than their lists
OF_SERVING = ("engine", "engine_version", "draft_model")  # and what serves
BUILT_WITH = (*OF_SERVING, *OF_MARKET)
MORE_OF_ANSWER = {  # figures of an answer that JSON has and a workbook's names do not
    "tensor_parallel_size": "TP", "pipeline_parallel_size": "PP", "n_replicas": "replicas", "n_gpus": "GPUs",
    "sized_by": "size set by",
}  # fmt: skip
OF_MODELS = {"weights_bytes": "weights, bytes", "weight_dtype": "weights' precision", "kv_cache_dtype": "KV precision"}
# Results beside the loads, whose own row on the sheet says only part of what they are.
_LABELS = {
    "decision_monthly_usd": "$ per month of the cheapest hardware", "decision_instance": "cheapest hardware",
    "decision_n_instances": "how many of the cheapest hardware", "decision_chance": "how sure it is",
}  # fmt: skip
_OF_CASES = {"users": "requests at once", "context": "tokens of each", "price": "prices"}
_LABELS |= {  # inputs are case_users_low, results case_users_low_monthly_usd
    f"case_{name}_{end}{figure}": f"{words} at their {end} end, {label}"
    for name, words in _OF_CASES.items()
    for end in ("low", "high")
    for figure, label in (("", "factor"), ("_monthly_usd", "$ per month"))
}
_LABELS |= {
    f"case_speed_{end}_monthly_usd": f"machines {words} than predicted, $ per month"
    for end, words in (("low", "faster"), ("high", "slower"))
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def moves_prices(name: str) -> bool:
    """True where an input moves prices other than their lists."""
    return name in OF_PRICES or name.startswith(CELL)


@dataclass(frozen=True)
class Setting:
    """An input: its value, the words for it, and how it is shown (number, percent, text, date)."""

    value: Raw
    label: str
    shown_as: str = "number"
    built_with: bool = False  # an option of the build, None where its default held


@dataclass(frozen=True)
class WorkloadFacts:
    """A kind of request."""

    name: str
    context_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class Price:
    """Dollars an hour of one purchase class, and the day they were read."""

    usd_per_hour: float
    date: datetime.date | None


@dataclass(frozen=True)
class Offer:
    """An instance as it can be rented."""

    gpu: str | None
    gpu_count: Raw
    prices: Mapping[str, Price]


@dataclass(frozen=True)
class Answer:
    """The answer of a load; no instance where nothing holds it, and `verdict` then says why."""

    instance: str | None
    n_instances: Raw
    monthly_usd: float | None
    verdict: str = ""
    more: Mapping[str, Raw] = field(default_factory=dict)


@dataclass(frozen=True)
class SheetFacts:
    """One sheet. Workloads stand under their key (an id with underscores), tiers in order.

    tables: models, GPUs and precisions, as far as the file carries them. options: those of `build`, for solving the
    sheet again.
    """

    path: str
    kind: str  # workbook or JSON
    version: str
    catalog_sha256: str
    as_of: datetime.date | None
    models: Mapping[str, str]  # of the loads: id and name
    workloads: Mapping[str, WorkloadFacts]
    tiers: tuple[Raw, ...]
    headline: tuple[str, int] | None  # workload's key, number of the tier
    settings: Mapping[str, Setting]
    tables: Mapping[str, Table]
    offers: Mapping[str, Offer]
    purchase: str
    answers: Mapping[LoadKey, Answer]
    options: Mapping[str, Raw]
    other_results: Mapping[str, Setting] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def is_cheapest(self, key: str) -> bool:
        """True where no other instance of its provider with the same GPUs is cheaper in the class in use."""
        offer = self.offers[key]
        shape, paid = (key.partition("/")[0], offer.gpu, offer.gpu_count), offer.prices.get(self.purchase)
        same_shape = (o for k, o in self.offers.items() if (k.partition("/")[0], o.gpu, o.gpu_count) == shape)
        usd = [o.prices[self.purchase].usd_per_hour for o in same_shape if self.purchase in o.prices]
        return paid is not None and paid.usd_per_hour == min(usd)

    @property
    def classes(self) -> set[str]:
        return {purchase for offer in self.offers.values() for purchase in offer.prices}


def same(a: Raw, b: Raw) -> bool:
    """True where two values are equal; numbers to 1e-9 of themselves."""
    if is_number(a) and is_number(b):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return bool(a == b)


def load_words(side: SheetFacts, workload: str, tier: int) -> str:
    """`RAG at 32`."""
    requests = side.tiers[tier - 1]
    return (
        f"{side.workloads[workload].name} at {tier_words(requests)}" if requests is not None else f"tier {tier}, blank"
    )


def tier_words(requests: Raw) -> str:
    """A tier's requests at once in words; or that it is a rate."""
    return f"a {RATE}" if requests == RATE else f"{requests:,}"


def model_name(model: str, *sides: SheetFacts) -> str:
    """The model's name, where a sheet has a name other than its id."""
    return next((s.models[model] for s in sides if s.models.get(model, model) != model), model)


@dataclass(frozen=True)
class Pairing:
    """The tiers, workloads and models of one sheet paired with those of the other, by name and number, never by place
    alone.

    Pairs (of A, of B); what stands alone is in neither.
    """

    tiers: tuple[tuple[int, int], ...]
    workloads: tuple[tuple[str, str], ...]
    models: tuple[str, ...]

    def loads(self) -> list[tuple[LoadKey, LoadKey]]:
        """Every load that both sheets have, in B's order."""
        pairs = [(w, t) for w in self.workloads for t in self.tiers]
        return [((m, wa, ta), (m, wb, tb)) for m in self.models for (wa, wb), (ta, tb) in pairs]

    def in_a(self, workload: str, tier: int) -> tuple[str, int] | None:
        """A's names for a workload and tier of B."""
        wa = next((a for a, b in self.workloads if b == workload), None)
        ta = next((a for a, b in self.tiers if b == tier), None)
        return (wa, ta) if wa is not None and ta is not None else None


def pair(a: SheetFacts, b: SheetFacts) -> Pairing:
    """Pair two sheets: tiers with the same number of requests are the same; of the others, those of the same rank."""
    return Pairing(_tiers(a, b), _workloads(a, b), tuple(m for m in b.models if m in a.models))


def _tiers(a: SheetFacts, b: SheetFacts) -> tuple[tuple[int, int], ...]:
    left = {i: n for i, n in enumerate(b.tiers, 1)}
    pairs: list[tuple[int, int]] = []
    alone: list[int] = []
    for i, requests in enumerate(a.tiers, 1):
        tier_of_b = next((k for k, n in left.items() if same(n, requests)), None)
        if tier_of_b is None:
            alone.append(i)
        else:
            pairs.append((i, tier_of_b))
            del left[tier_of_b]
    pairs += [(i, i) for i in alone if i in left]
    return tuple(sorted(pairs, key=lambda tier_pair: tier_pair[1]))


def _workloads(a: SheetFacts, b: SheetFacts) -> tuple[tuple[str, str], ...]:
    """Workloads paired by id; the one load of `recommend` is the other sheet's workload of the same context and
    answer."""
    pairs = [(key, key) for key in b.workloads if key in a.workloads]
    left_b = [k for k in b.workloads if k not in a.workloads]
    for wa in (k for k in a.workloads if k not in b.workloads):
        for wb in left_b:
            lengths = [(w.context_tokens, w.output_tokens) for w in (a.workloads[wa], b.workloads[wb])]
            if ASKED in (wa, wb) and lengths[0] == lengths[1]:
                pairs.append((wa, wb))
                left_b.remove(wb)
                break
    return tuple(pairs)


def read_sheet(path: Path | str, catalog: Catalog) -> SheetFacts:
    """The facts of a workbook, or of the JSON of one: its first bytes tell which. Raises WorkbookError, and
    ScenarioError or CatalogError where an edited workbook cannot be worked out."""
    data = read_file(Path(path))
    if data[:1000].removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
        with naming(path):
            return facts_of_record(read_document(data), str(path))
    return facts_now(read_workbook_bytes(data, str(path)), catalog)


def read_sheets(catalog: Catalog, *paths: Path | str) -> list[SheetFacts]:
    """The facts of several files; the problems of all of them are reported together."""
    problems = Problems()
    facts = [problems.attempt(read_sheet, path, catalog) for path in paths]
    if problems:
        raise WorkbookError(*dict.fromkeys(problems))
    return facts


def facts_now(snapshot: Snapshot, catalog: Catalog) -> SheetFacts:
    """The facts of a workbook: its record as built; where yellow cells were changed since, the record of its question
    now."""
    if not snapshot.is_edited:
        return facts_of_workbook(snapshot)
    asked = ask_anew(snapshot, catalog)
    record = snapshot.record.model_copy(
        update={
            "answer": Document.model_validate(compared_part(asked.after.record)),
            "beside_loads": results_beside_loads(asked.after.book.names),
        }
    )
    return facts_of_workbook(replace(snapshot, record=record, notes=asked.notes))


def facts_of_workbook(snapshot: Snapshot) -> SheetFacts:
    """The record's answers, with everything else as the yellow cells have it, in the words of the workbook."""
    of_record = facts_of_record(snapshot.record.answer, snapshot.path)
    inputs, tables, models = snapshot.inputs, snapshot.tables, snapshot.tables["models"]
    workloads = {
        key: WorkloadFacts(snapshot.cells[f"in_context_{key}"].label, inputs[f"context_{key}"], inputs[f"output_{key}"])
        for key in of_record.workloads
    }
    of_load = {
        *("headline_workload", "headline_tier"),
        *(f"tier_{i}" for i, _ in enumerate(of_record.tiers, 1)),
        *(f"{length}_{key}" for length in ("context", "output") for key in workloads),
    }
    beside = {name: snapshot.cells[f"rec_{name}"] for name in snapshot.results if name in snapshot.record.beside_loads}
    settings = dict(_settings(snapshot, of_load))
    return replace(
        of_record,
        kind="workbook",
        version=snapshot.record.version,
        models={model: models.names.get(model, model) for model in of_record.models},
        workloads=workloads,
        settings={"active_fraction": of_record.settings["active_fraction"]} | settings,
        tables=tables,
        offers={key: _offer(row) for key, row in tables["instances"].items()},
        answers={load: replace(answer, more={}) for load, answer in of_record.answers.items()},
        options=snapshot.options,
        other_results={
            name: _setting(replace(cell, value=snapshot.record.beside_loads[name]), _label(name, cell, ""))
            for name, cell in beside.items()
        },
        notes=snapshot.notes,
    )


def _settings(snapshot: Snapshot, of_load: Collection[str]) -> Iterator[tuple[str, Setting]]:
    """The inputs apart from those that make the load, and what the build was given besides."""
    usual = snapshot.cells["in_kv_cache_dtype"].place.sheet
    blank = {name for name, value in snapshot.inputs.items() if value is None and name.startswith(CELL)}
    names = (name for name in snapshot.inputs if name not in of_load and name not in blank)
    cells = {name: snapshot.cells[f"in_{name}"] for name in names}
    labels = {name: _label(name, cell, usual) for name, cell in cells.items()}
    taken = Counter(labels.values())
    for name, label in labels.items():
        yield name, _setting(cells[name], label if taken[label] == 1 else f"{label} ({name.replace('_', ' ')})")
    for name in (option for option in BUILT_WITH if option not in cells):
        yield name, Setting(snapshot.options.get(name), f"{name.replace('_', ' ')} (as built)", "text", True)


def _label(name: str, cell: NamedCell, usual: str) -> str:
    """The words before a cell, and its sheet where that is not the one of inputs."""
    sheet, label = cell.place.sheet.removesuffix(" loads"), cell.label  # of a sheet of workings: its visible sheet
    if name in _LABELS:
        return f"{sheet}, {_LABELS[name]}"
    return label if sheet == usual or not label or label.startswith(f"{sheet}, ") else f"{sheet}, {label}"


def _setting(cell: NamedCell, label: str) -> Setting:
    kinds = {str: "text", datetime.date: "date"}
    return Setting(cell.value, label, kinds.get(type(cell.value), "percent" if "%" in cell.number_format else "number"))


def _offer(row: Mapping[str, Raw]) -> Offer:
    columns = {purchase: class_columns(purchase) for purchase in PURCHASES}
    prices = {
        purchase: Price(row[of_class["price"]], row.get(of_class["date"]))
        for purchase, of_class in columns.items()
        if row.get(of_class["price"]) is not None
    }
    return Offer(row.get("instance_gpu"), row.get("gpu_count"), prices)


def facts_of_record(record: Document, path: str) -> SheetFacts:
    """The facts of a record alone."""
    inputs = record.inputs
    keys = {w.id: name_part(w.id) for w in inputs.workloads}
    listed = tuple(dict.fromkeys((*inputs.tiers, *(c.tier for c in record.cells))))
    tiers = {requests: i for i, requests in reversed([*enumerate(listed, 1)])}
    workload, _, tier = inputs.headline.rpartition(":")
    headline, asked = None, None if tier == RATE else int(tier) if tier.isdecimal() else 0
    if workload in keys and asked in tiers:
        headline = keys[workload], tiers[asked]
    models = {c.model: {fact: getattr(c, fact) for fact in OF_MODELS} for c in record.cells}
    answers = {
        (c.model, keys[c.workload], tiers[c.tier]): Answer(
            c.instance, c.n_instances, c.monthly_usd, c.verdict, {name: getattr(c, name) for name in MORE_OF_ANSWER}
        )
        for c in record.cells
        if c.workload in keys and c.tier in tiers
    }
    given = {**(inputs.model_extra or {}), "purchase": inputs.purchase, "models": inputs.models}
    options = {name: given[name] for name in (*BUILT_WITH, "models") if given.get(name)}
    return SheetFacts(
        path,
        "JSON",
        "",
        inputs.catalog_sha256,
        _day(record.as_of),
        {m: m for m in inputs.models},
        {keys[w.id]: WorkloadFacts(w.id, w.context_tokens, w.output_tokens) for w in inputs.workloads},
        tuple(RATE if n is None else n for n in listed),
        headline,
        dict(_settings_of_record(record)),
        {"models": Table("models", models, {}, {}, heads=OF_MODELS)},
        {
            c.instance: Offer(c.gpu, c.gpu_count, {c.purchase: Price(_list_price(c, inputs), _day(c.price_as_of))})
            for c in record.candidates
        },
        inputs.purchase,
        answers,
        {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in options.items()},
    )


def _day(text: str | None) -> datetime.date | None:
    try:
        return day_of(text)
    except (ValueError, OverflowError):
        return None


def _list_price(candidate: Candidate, inputs: Inputs) -> float:
    """The price before the discount, as the file has what is paid; to 12 digits, as the paid price is rounded."""
    provider = candidate.instance.partition("/")[0]
    less = in_force(_discounts(inputs), inputs.discount_fraction, provider, candidate.purchase)
    return float(f"{candidate.hourly_usd / (1 - less):.12g}") if less else candidate.hourly_usd


def _discounts(inputs: Inputs) -> Discounts:
    """The discounts by provider and purchase class."""
    return {key_of(words): value for words, value in inputs.discounts.items()}


def _settings_of_record(record: Document) -> Iterator[tuple[str, Setting]]:
    """Every input under the name that it has in a workbook."""
    inputs = record.inputs
    extra = inputs.model_extra or {}
    flat = {name: value for name, value in extra.items() if name in BY_NAME and name != "paper"} | {
        "purchase": inputs.purchase,
        "discount_fraction": inputs.discount_fraction,
        "kv_reserved": extra.get("kv_allocation") == "reserved",
        **inputs.money,
        **inputs.owning,
        "as_of": _day(record.as_of),
    }
    of_providers = {cell_name(key): value for key, value in _discounts(inputs).items()}
    flat |= of_providers
    for w in inputs.workloads:
        key = name_part(w.id)
        of_workload = w.tpot_target_ms, w.ttft_target_ms, w.requests_per_user_per_day, w.history_hit_fraction
        flat |= {f"{option}_{key}": value for option, value in zip(BY_WORKLOAD, of_workload, strict=True)}
    for name, value in flat.items():
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, (list, dict)):
            value = json.dumps(value, ensure_ascii=False)[1:-1].replace('"', "") or None
        if name == "fx_date":
            value = _day(str(value))
        row = BY_NAME[name].row if name in BY_NAME else None
        percent = name in of_providers or (row is not None and row.display.percent)
        shown_as = "text" if isinstance(value, str) else "percent" if percent else "number"
        yield name, Setting(value, name.replace("_", " "), shown_as, name in BUILT_WITH)
