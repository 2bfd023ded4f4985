"""All sheets of What-if: its page, and the workings of a load once more for what the page's dropdowns choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sheetgen.formula import Expr
from sheetgen.recommend import Solution
from sheetgen.sheet.block import Along, along
from sheetgen.sheet.book.candidates import build_candidates
from sheetgen.sheet.book.choices import add_choices
from sheetgen.sheet.book.every_engine import build_every_engine
from sheetgen.sheet.book.every_model import build_every_model
from sheetgen.sheet.book.longest_context import add_longest_context
from sheetgen.sheet.book.matrix import Head, matrix
from sheetgen.sheet.book.profiles import build_profiles
from sheetgen.sheet.book.speed import build_latency
from sheetgen.sheet.book.what_if import Chosen, Machine, WhatIfPage
from sheetgen.sheet.book.what_if_data import build_data
from sheetgen.sheet.book.what_if_words import on_hardware
from sheetgen.sheet.book.wiring import Wiring, name_all
from sheetgen.sheet.book.words import prompt_tokens
from sheetgen.sheet.book.workings import build_loads
from sheetgen.sheet.model import Cell, Found, Range, Ref, Sheet, Source, found, place_of
from sheetgen.sheet.what_if import AUTO, BASE, CASES, WhatIf
from sheetgen.units import PLAIN, TEXT, UNIT_NAMES, WHOLE

OF_SHARD = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer", "kv_budget_bytes_per_gpu", "layer_budget_bytes",
    "paid_layer_bytes",
)  # fmt: skip


def build_what_if(solved: Solution, one: WhatIf, of: Wiring, of_workbook: Head) -> tuple[list[Sheet], list[Sheet]]:
    """The page, and the sheets behind it. of: the workbook's own wiring, whose names it adds to.
    of_workbook: the head of Candidates."""
    page, wiring = WhatIfPage(one, of), Wiring(prefix="wi_")
    page.choices()
    catalog, every_model = build_every_model(solved, one, of)
    engines, every = build_every_engine(solved, one, of)
    data = build_data(one, page.picked, every_model, every, of, wiring)
    hardware = [*every.of_gpu["gpu"].refs, *of.tables["instances"].columns["instance"]]
    of.names |= {
        "list_whatif_model": every_model["model"],
        "list_whatif_engine": every.constants["engine"],
        "list_whatif_tp": _sizes(data, _below(data), of),
    }
    model = wiring.tables["models"].columns
    wiring.lists |= page.cases(model["max_context_tokens"][0])
    _lines(data, _below(data), page, wiring)
    for sheet in (data, page.sheet):
        name_all(wiring, sheet.name)
    contexts = build_latency(one.solved, wiring, "What-if contexts")
    loads = build_loads(one.solved, wiring, "What-if loads")
    profiles = build_profiles(one.solved, wiring, "What-if profiles")
    candidates, monthly, head = build_candidates(one.solved, wiring, "What-if candidates", of_workbook)
    heads = {name: (head if name in head.columns else of_workbook).range(name) for name in of_workbook.columns}
    add_choices(one.solved, wiring, monthly, heads, alone=True)
    on_it, rented = _on_hardware(one, page, wiring, monthly, candidates, head, heads)
    machine = Machine(wiring, _hardware_gpus(data, _below(data), page, of), rented)
    unit = UNIT_NAMES[solved.question.settings.units]
    chosen = page.bills(of.lists["tp"].refs, machine, unit, data, _below(data))
    page.answer(chosen, machine, wiring, _longest(data, page, chosen, machine))
    page.results(wiring)
    of.names["list_whatif_hardware"] = _listed(data, _below(data), "GPU or instance", hardware)
    for sheet in (data, contexts, loads, profiles, candidates, on_it):
        for cell in sheet.cells.values():
            cell.note = ""  # the same as on the workbook's own sheets
    return [page.sheet], [catalog, engines, data, contexts, loads, profiles, candidates, on_it]


def _on_hardware(
    one: WhatIf, page: WhatIfPage, wiring: Wiring, monthly: Sequence[Range], candidates: Sheet,
    head: Head, heads: Mapping[str, Range],
) -> tuple[Sheet, dict[str, Ref]]:  # fmt: skip
    """The base load once more, with the candidates that are of the chosen hardware alone: a sheet with its row."""
    cells, question = wiring.tables["cells"].columns, one.solved.question
    env: dict[str, Source | Along] = {
        **{name: along(head.columns[name]) for name in ("instance", "gpu", "tp")},
        "monthly_usd": along(monthly[BASE].refs),
        **{name: page.picked[name] for name in ("hardware", "tensor_parallel_size")},
    }
    labels = ([cells["model"][BASE]], [cells["load_words"][BASE]])

    top = max(row.row for row in candidates.rows) + 2
    row = matrix(candidates, top, on_hardware, labels[0], head.n_columns, lambda r: env, loads=labels[1])[0]
    apart = replace(wiring, prefix="wh_", tables=dict(wiring.tables))
    base = replace(one.solved, question=replace(question, loads=(question.loads[BASE],)))
    sheet = build_loads(base, apart, "What-if hardware")
    add_choices(base, apart, [Range(row, lock="columns")], heads, alone=True)
    return sheet, apart.tables["cells"].row(0)


def _below(sheet: Sheet) -> int:
    """The row after all that stands on a sheet, and a blank one."""
    return 2 + max(row for row, _ in sheet.cells)


def _listed(sheet: Sheet, row: int, label: str, refs: list[Ref]) -> Range:
    """A list for a dropdown: cells of other sheets, one under the other."""
    sheet.text(row, 0, label, "section")
    return Range(tuple(sheet.link(row + 1 + i, 0, ref, TEXT) for i, ref in enumerate(refs)))


def _sizes(sheet: Sheet, row: int, of: Wiring) -> Range:
    """The tensor-parallel sizes, and the word that leaves the choice to the workbook."""
    sheet.text(row, 0, "Tensor-parallel size", "section")
    first = sheet.put(row + 1, 0, Cell(AUTO, "label"))
    sizes = [sheet.link(row + 2 + i, 0, ref, PLAIN) for i, ref in enumerate(of.lists["tp"].refs)]
    return Range((first, *sizes))


def _lines(sheet: Sheet, row: int, page: WhatIfPage, wiring: Wiring) -> None:
    """By case its prompt and answer, and the targets: what the workings read beside context and requests."""
    sheet.text(row, 0, "By case", "section")
    for k, case in enumerate(CASES):
        sheet.text(row, 1 + k, case, "head")
    none = Found(0, lambda here: Expr("0"))
    lines: tuple[tuple[str, str, Source], ...] = (
        ("answers", "Answer, tokens", page.picked["answer_tokens"]),
        ("tpot_targets", "Target: time per token, ms", page.picked["tpot_ms"]),
        ("ttft_targets", "Target: first token, ms", none),
    )
    for i, (name, label, what) in enumerate(lines, 1):
        sheet.text(row + i, 0, label, "label")
        value = what.value or 0
        wiring.lists[name] = Range(tuple(
            sheet.formula(row + i, 1 + k, value, what.expr(sheet.name), WHOLE) for k in range(len(CASES))
        ))  # fmt: skip
    sheet.text(row + 4, 0, "Prompt, tokens", "label")
    wiring.lists["prompts"] = Range(tuple(
        sheet.compute(row + 4, 1 + k, prompt_tokens,
                      {"context_tokens": page.contexts[k], "answer_tokens": page.picked["answer_tokens"]})
        for k in range(len(CASES))
    ))  # fmt: skip


def _hardware_gpus(sheet: Sheet, row: int, page: WhatIfPage, of: Wiring) -> Ref:
    """GPUs of the chosen instance; the largest TP where a GPU was chosen."""
    instances, asked, most = of.tables["instances"], page.picked["hardware"], of.inputs["max_tensor_parallel_size"]
    here, names, counts = sheet.name, instances.range("instance"), instances.range("gpu_count")
    listed = place_of(names, asked.value)
    value = most.value if listed is None else counts.refs[listed - 1].value or 0
    sheet.text(row, 0, "GPUs of the chosen instance", "label")
    at = f"INDEX({counts.expr(here).text},MATCH({asked.expr(here).text},{names.expr(here).text},0))"
    return sheet.formula(row, 1, value, Expr(f"IFERROR({at},{most.expr(here).text})"), PLAIN)


def _longest(sheet: Sheet, page: WhatIfPage, chosen: Chosen, machine: Machine) -> Ref:
    """The longest context at which one replica of the chosen size holds all users."""
    of_model, tables = machine.wiring.of_model, machine.wiring.tables
    n = len(chosen.sizes.refs)
    env: dict[str, Source] = {
        **machine.inputs,
        **{name: refs[0] for name, refs in tables["models"].columns.items()},
        **{name: found(Range(tuple(of_model[name][0][:n])), chosen.place) for name in OF_SHARD},
        "pipeline_stages": found(machine.first("pipeline_stages"), chosen.place),
        "max_num_batched_tokens": tables["profiles"].columns["max_num_batched_tokens"][0],
        "load_requests": machine.at(0)["load_requests"],
    }
    limit = tables["models"].columns["max_context_tokens"][0]
    zero = Found(0, lambda here: Expr("0"))
    return add_longest_context(sheet, _below(sheet), env, page.picked["answer_tokens"], zero, limit)
