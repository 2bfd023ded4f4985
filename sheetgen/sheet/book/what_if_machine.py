"""What-if in three steps: its choices, before sizing; the choice of its loads, after; and then its page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sheetgen.formula import Expr, formula, largest, round_up, where
from sheetgen.recommend import Solution
from sheetgen.sheet.book.choices import add_choices
from sheetgen.sheet.book.speed import build_latency
from sheetgen.sheet.book.what_if import Chosen, Machine, WhatIfPage
from sheetgen.sheet.book.what_if_data import build_data, build_lists
from sheetgen.sheet.book.what_if_words import all_fit
from sheetgen.sheet.book.wiring import Wiring, name_all
from sheetgen.sheet.book.words import prompt_tokens
from sheetgen.sheet.book.workings import build_loads
from sheetgen.sheet.model import Cell, Lookup, Range, Ref, Sheet, Source, lookup, place_of
from sheetgen.sheet.what_if import AUTO, BASE, CASES, LOADS, WhatIf
from sheetgen.sizing import admission
from sheetgen.units import PLAIN, UNIT_NAMES, WHOLE

STEPS = 25  # halvings: 2^24 tokens is beyond every model's context
HEADS = ("Fits up to", "Not beyond", "Tried", "Prompt", "Charged", "In windows", "Blocks", "Charged, alone",
         "In windows, alone", "Blocks, alone", "Fits (0 or 1)", "Fits up to then", "Not beyond then")  # fmt: skip


@formula("Tried")
def middle_tokens(low: Any, high: Any, halves: Any) -> Any:
    """The context half-way between what fits and what may not.

    Source: bisection.
    """
    return round_up((low + high) / halves)


@formula("Fits up to")
def next_low(fits: Any, tried: Any, low: Any) -> Any:
    """The longest context that is known to fit.

    Source: bisection.
    """
    return where(fits == 1, tried, low)


@formula("Not beyond")
def next_high(fits: Any, tried: Any, low: Any, high: Any) -> Any:
    """The longest context that may fit.

    Source: bisection.
    """
    return where(fits == 1, high, largest(tried - 1, low))


@formula("Charged, alone")
def at_least_one(tried: Any) -> Any:
    """A request of the whole length, 1 token at least.

    Source: the engine starts only where one request of its longest context fits.
    """
    return largest(tried, 1)


def add_longest_context(
    sheet: Sheet, row: int, env: Mapping[str, Source], answer_tokens: Ref, zero: Source, limit: Source
) -> Ref:
    """The steps below `row`; gives the last one's cell. `env` has what the charge of a sequence reads."""
    for column, head in enumerate(HEADS, 1):
        sheet.text(row, column, head, "head")
    sheet.text(row, 0, "Longest context for all users, by halving", "section")
    sheet.text(row, len(HEADS) + 1, "Halves", "head")
    halves = sheet.put(row + 1, len(HEADS) + 1, Cell(2, "fixed", PLAIN))
    env = _beside(sheet, row, len(HEADS) + 2, env)
    low: Source = zero
    high: Source = limit
    put = partial(sheet.compute, lock="column")
    for step in range(STEPS):
        r = row + 1 + step
        a = sheet.formula(r, 1, low.value, low.expr(sheet.name), WHOLE, lock="column")
        b = sheet.formula(r, 2, high.value, high.expr(sheet.name), WHOLE, lock="column")
        tried = put(r, 3, middle_tokens, {"low": a, "high": b, "halves": halves})
        prompt = put(r, 4, prompt_tokens, {"context_tokens": tried, "answer_tokens": answer_tokens})
        asked = {**env, "context_tokens": tried, "max_model_len": tried, "input_tokens": prompt}
        charged = put(r, 5, admission.charged_tokens, asked)
        asked |= {"charged_tokens": charged}
        asked |= {"windowed_tokens": put(r, 6, admission.windowed_tokens, asked)}
        blocks = put(r, 7, admission.kv_blocks_per_sequence, asked)
        alone = {**env, "charged_tokens": put(r, 8, at_least_one, {"tried": tried})}
        alone |= {"windowed_tokens": put(r, 9, admission.windowed_tokens, alone)}
        alone_blocks = put(r, 10, admission.kv_blocks_per_sequence, alone)
        fits = put(r, 11, all_fit, {**env, "charged": blocks, "alone": alone_blocks})
        state = {"fits": fits, "tried": tried, "low": a, "high": b}
        low = put(r, 12, next_low, state)
        high = put(r, 13, next_high, state)
    assert isinstance(low, Ref)
    return low


def _beside(sheet: Sheet, row: int, column: int, env: Mapping[str, Source]) -> dict[str, Source]:
    """`env` with what has no name of its own brought into cells beside the steps: these then share their formulas."""
    read = {name for one in (admission.charged_tokens, admission.windowed_tokens, admission.kv_blocks_per_sequence,
                             all_fit) for name in one.inputs}  # fmt: skip
    apart = sorted(name for name in read & env.keys() if not getattr(env[name], "name", None))
    sheet.text(row, column, "Read by all steps", "head")
    sheet.text(row, column + 1, "", "head")
    found = dict(env)
    for r, name in enumerate(apart, row + 1):
        sheet.text(r, column, name.replace("_", " ").capitalize(), "label")
        found[name] = sheet.formula(r, column + 1, env[name].value, env[name].expr(sheet.name), WHOLE)
    return found


OF_SHARD = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer", "kv_budget_bytes_per_gpu", "layer_budget_bytes",
    "paid_layer_bytes",
)  # fmt: skip
ON_HARDWARE = "base, on the hardware chosen"  # the last load: the base again, with the candidates of that hardware


class WhatIfSheets:
    """The page, and the sheets behind it. of: the workbook's own wiring, whose names it adds to.

    What is sized for it stands in rows of its own below those of the workbook's models and loads, on Profiles and
    Candidates; and its GPU in a row below the others on GPUs.
    """

    def __init__(self, solved: Solution, one: WhatIf, of: Wiring) -> None:
        self.of, self.wiring, self.page = of, Wiring(prefix="wi_"), WhatIfPage(one, of)
        self.n_profiles, self.unit = len(solved.profiles), UNIT_NAMES[solved.question.settings.units]
        page, wiring = self.page, self.wiring
        page.choices()
        catalog = build_lists(solved, one, of)
        self.data = data = build_data(page.picked, of, wiring)
        of.names["list_whatif_tp"] = _sizes(data, _below(data), of)
        wiring.lists |= page.cases(wiring.tables["models"].columns["max_context_tokens"][0])
        _lines(data, _below(data), page, wiring)
        for sheet in (data, page.sheet):
            name_all(wiring, sheet.name)
        contexts = build_latency(wiring, CASES, "What-if contexts")
        loads = [(0, *load) for load in (*LOADS, LOADS[BASE])]
        names = [CASES[w] for _, w, _ in loads[:-1]] + [ON_HARDWARE]
        workings = build_loads(wiring, CASES, loads, "What-if loads", names)
        self.behind = [catalog, data, contexts, workings]

    def answer(self, heads: Mapping[str, Range]) -> None:
        """The choices of its loads, once Profiles and Candidates stand, and the rest of its page."""
        page, data, wiring = self.page, self.data, self.wiring
        self.of.names |= page.inputs
        add_choices(wiring, heads, alone=True)
        gpus = _hardware_gpus(data, _below(data), page, self.of)
        machine = Machine(wiring, gpus, self.n_profiles, wiring.tables["cells"].row(len(LOADS)))
        chosen = page.bills(self.of.lists["tp"].refs, machine, self.unit, data, _below(data))
        page.answer(chosen, machine, wiring, _longest(data, page, chosen, machine))
        page.results(wiring)
        for sheet in self.behind[1:]:
            for cell in sheet.cells.values():
                cell.note = ""  # the same as on the workbook's own sheets


def _below(sheet: Sheet) -> int:
    """The row after all that stands on a sheet, and a blank one."""
    return 2 + max(row for row, _ in sheet.cells)


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
    none = Lookup(0, lambda here: Expr("0"))
    lines: tuple[tuple[str, str, Source], ...] = (("answers", "Answer, tokens", page.picked["answer_tokens"]),
                 ("tpot_targets", "Target: time per token, ms", page.picked["tpot_ms"]), ("ttft_targets",
                 "Target: first token, ms", none))  # fmt: skip
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
    of_model, tables = machine.wiring.blocks, machine.wiring.tables
    env: dict[str, Source] = {
        **machine.inputs,
        **{name: refs[0] for name, refs in tables["models"].columns.items()},
        **{name: lookup(Range(machine.of_sizes(of_model[name][0])), chosen.place) for name in OF_SHARD},
        "pipeline_stages": lookup(machine.first("pipeline_stages"), chosen.place),
        "max_num_batched_tokens": tables["gpus"].below["max_num_batched_tokens"],
        "load_requests": machine.at(0)["load_requests"],
    }
    limit = tables["models"].columns["max_context_tokens"][0]
    zero = Lookup(0, lambda here: Expr("0"))
    return add_longest_context(sheet, _below(sheet), env, page.picked["answer_tokens"], zero, limit)
