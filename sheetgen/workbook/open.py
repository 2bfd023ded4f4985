"""A sheet's facts out of a file, be it a workbook or JSON: what it is, is seen by its first bytes."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sheetgen.errors import SheetgenError, shown
from sheetgen.scenario.kinds import name_part
from sheetgen.units import ON_DEMAND, PURCHASES
from sheetgen.workbook import sheet_facts as facts
from sheetgen.workbook.package import WorkbookError, read_file
from sheetgen.workbook.read import NOT_A_LOAD, RESULTS, NamedCell, Snapshot, Table, read_workbook_bytes

COMPARED_TABLES = ("models", "gpus", "precisions")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Results beside the loads, whose own row on the sheet says only part of what they are.
_RESULTS_ASIDE = {
    "whatif_hardware_monthly_usd": "$ per month on the hardware chosen",
    "whatif_hardware_gpus": "GPUs for all users on the hardware chosen",
    "whatif_monthly_usd": "$ per month of the cheapest hardware", "whatif_instance": "cheapest hardware",
    "whatif_n_instances": "how many of the cheapest hardware",
}  # fmt: skip
_TIMES = {"users": "users, times", "context": "context, times", "price": "prices, times"}
_OF_CASES = _TIMES | {"monthly_usd": "$ per month"}
_ASIDE = _RESULTS_ASIDE | {  # inputs are case_users_low, results case_low_monthly_usd
    name: f"{case} case, {label}"
    for case in ("low", "base", "high")
    for what, label in _OF_CASES.items()
    for name in (f"case_{what}_{case}", f"case_{case}_{what}")
}


def read_sheet(path: Path | str) -> facts.SheetFacts:
    """What a workbook, or the JSON of one, says. Raises WorkbookError."""
    where, data = shown(path, 200), read_file(Path(path))
    if data[:1000].removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
        from sheetgen.workbook.from_json import facts_of_json

        return facts_of_json(data, str(path), where)
    return facts_of_workbook(read_workbook_bytes(data, str(path), where))


def read_sheets(*paths: Path | str) -> list[facts.SheetFacts]:
    """Several; what is wrong with any of them is reported in one go."""
    found: list[facts.SheetFacts] = []
    problems: list[str] = []
    for path in paths:
        try:
            found.append(read_sheet(path))
        except SheetgenError as error:
            problems += error.problems
    if problems:
        raise WorkbookError(*dict.fromkeys(problems))
    return found


def facts_of_workbook(snapshot: Snapshot) -> facts.SheetFacts:
    """What a workbook says, in the form in which sheets are compared."""
    inputs = snapshot.inputs
    keys = [n.removeprefix("context_") for n in inputs if n.startswith("context_") and n != NOT_A_LOAD]
    names = {key: snapshot.cells[f"in_context_{key}"].label for key in keys}
    workloads = {
        key: facts.WorkloadFacts(name, inputs[f"context_{key}"], inputs.get(f"output_{key}"))
        for key, name in names.items()
    }
    numbers = itertools.takewhile(lambda n: f"tier_{n}" in inputs, itertools.count(1))
    tiers = tuple(inputs[f"tier_{n}"] for n in numbers)
    models = snapshot.tables["models"]
    answers = dict(_answers(snapshot, models, workloads, len(tiers)))
    in_loads = {load[0] for load in answers}
    used = {f"{_stem(load)}_{what}" for load in answers for what in RESULTS}
    results = {name: snapshot.cells[f"rec_{name}"] for name in snapshot.results}
    purchase = str(snapshot.options.get("purchase") or ON_DEMAND)
    return facts.SheetFacts(
        snapshot.path, "workbook", snapshot.version, snapshot.catalog_sha256, inputs["as_of"],
        {m: models.names[m] for m in models if m in in_loads}, workloads, tiers,
        _headline(inputs, workloads, tiers), dict(_settings(snapshot)),
        {name: snapshot.tables[name] for name in COMPARED_TABLES},
        {name: snapshot.tables[name].names for name in COMPARED_TABLES},
        {name: snapshot.tables[name].heads for name in COMPARED_TABLES},
        {key: _offer(row, purchase) for key, row in snapshot.tables["instances"].items()}, purchase, answers,
        {n: _setting(c, _label(n, c, "")) for n, c in results.items() if n not in used},
        snapshot.options, snapshot.notes, snapshot.is_calculated,
    )  # fmt: skip


def _settings(snapshot: Snapshot) -> Iterator[tuple[str, facts.Setting]]:
    """Inputs but those that make the load, and what the build was given beside them."""
    names = [n for n in snapshot.inputs if n == NOT_A_LOAD or n.partition("_")[0] not in facts.OF_LOAD or "band" in n]
    usual = snapshot.cells["in_kv_cache_dtype"].place.sheet
    cells = {name: snapshot.cells[f"in_{name}"] for name in names}
    labels = {name: _label(name, c, usual) for name, c in cells.items()}
    taken = Counter(labels.values())
    for name in names:
        label = labels[name] if taken[labels[name]] == 1 else f"{labels[name]} ({name.replace('_', ' ')})"
        yield name, _setting(snapshot.cells[f"in_{name}"], label)
    for name, value in facts.HELD_BEFORE.items():
        if name not in names:
            yield name, facts.Setting(value, name.replace("_", " "), "percent")
    for name in facts.BUILT_WITH:
        yield name, facts.Setting(snapshot.options.get(name), f"{name.replace('_', ' ')} (as built)", "text", "", True)


def _label(name: str, cell: NamedCell, usual: str) -> str:
    """The words before a cell, and its sheet where that is not the one of inputs."""
    sheet, label = cell.place.sheet, cell.label
    if name in _ASIDE:
        return f"{sheet.removesuffix(' loads')}, {_ASIDE[name]}"
    return label if sheet == usual or not label or label.startswith(f"{sheet}, ") else f"{sheet}, {label}"


def _setting(cell: NamedCell, label: str) -> facts.Setting:
    shown_as = "percent" if "%" in cell.number_format else "number"
    if isinstance(cell.value, datetime.date):
        shown_as = "date"
    return facts.Setting(cell.value, label, "text" if isinstance(cell.value, str) else shown_as, cell.unit)


def _headline(
    inputs: Mapping[str, Any], workloads: Mapping[str, facts.WorkloadFacts], tiers: tuple[Any, ...]
) -> tuple[str, int] | None:
    """The load of the two dropdowns; none where they name no load of the sheet (any more)."""
    workload = next((key for key, w in workloads.items() if w.name == inputs["headline_workload"]), None)
    tier = inputs["headline_tier"]
    return (workload, tiers.index(tier) + 1) if workload and tier in tiers else None


def _offer(row: Mapping[str, Any], purchase: str) -> facts.Offer:
    columns = {p: (f"price_{name_part(p)}", f"date_{name_part(p)}") for p in PURCHASES}
    columns[purchase] = ("price_usd_per_hour", "price_date")
    prices = {p: facts.Price(row[usd], row.get(date)) for p, (usd, date) in columns.items() if row.get(usd) is not None}
    return facts.Offer(row.get("instance_gpu"), row.get("gpu_count"), prices)


def _stem(load: facts.LoadKey) -> str:
    return f"{name_part(load[0])}_{load[1]}_{load[2]}"


def _answers(
    snapshot: Snapshot, models: Table, workloads: Mapping[str, facts.WorkloadFacts], n_tiers: int
) -> Iterator[tuple[facts.LoadKey, facts.Answer]]:
    """Each load that the workbook has a result for."""
    for load in ((m, w, t) for m in models for w in workloads for t in range(1, n_tiers + 1)):
        stem = _stem(load)
        if f"{stem}_instance" in snapshot.results:
            instance, count, usd = (snapshot.results.get(f"{stem}_{what}") for what in RESULTS)
            if isinstance(usd, (int, float)):
                yield load, facts.Answer(str(instance), count, usd)
            else:
                yield load, facts.Answer(None, None, None, str(instance))
