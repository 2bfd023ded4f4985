"""Blocks below the checks: what stands on two sheets and must agree, and what begun rows of one's own still lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.formula import Expr, both, either, formula, is_number, where
from sheetgen.sheet.book.wiring import Wiring
from sheetgen.sheet.model import Cell, Lookup, Range, Ref, Sheet, Source, lookup, pick, worked_out
from sheetgen.sheet.what_if import case_requests
from sheetgen.sheet.what_if_state import model_lacks, own_instance_state, own_model_state
from sheetgen.units import FACTOR, PLAIN, TEXT, USD_CENTS, Display

Pair = tuple[str, Ref, Ref | Lookup]  # what it is, here and there


@formula("The same", PLAIN)
def same_amount(amount: Any, other: Any, tolerance: Any) -> Any:
    """1 where two amounts are the same but for rounding, or neither is known.

    Source: the tolerance below the checks.
    """
    gap = amount - other
    near = where(gap * gap <= tolerance * other * (tolerance * other), 1, 0)
    apart = where(either(is_number(amount), is_number(other)), 0, 1)
    return where(both(is_number(amount), is_number(other)), near, apart)


@formula("The same", PLAIN)
def same_value(value: Any, other: Any) -> Any:
    """1 where two cells hold the same.

    Source: definition.
    """
    return where(value == other, 1, 0)


@formula("What-if agrees", PLAIN)
def what_if_agrees(n_same: Any, n_choices: Any, same_cost: Any) -> Any:
    """1 where What-if has the cost that Workings has, or its choices ask for another load.

    Source: the choices compared above.
    """
    return where(n_same == n_choices, same_cost, 1)


class Pairs:
    """Blocks of two columns that are compared row by row; `row` is the next free one."""

    def __init__(self, sheet: Sheet, row: int, left: int, tolerance: Ref) -> None:
        self.sheet, self.row, self.left, self.tolerance = sheet, row, left, tolerance

    def block(self, heads: tuple[str, str, str], pairs: Sequence[Pair], display: Display, rounded: bool) -> Range:
        """A block; gives the column that says 1 where both are the same."""
        sheet, left = self.sheet, self.left
        for k, head in enumerate((*heads, "Same")):
            sheet.text(self.row, left + k, head, "head")
        same = []
        for label, here, there in pairs:
            self.row += 1
            sheet.text(self.row, left, label, "label")
            a, b = (self._shown(1 + k, ref, display) for k, ref in enumerate((here, there)))
            env: dict[str, Source] = {"value": a, "other": b}
            one = same_value
            if rounded:
                one, env = same_amount, {"amount": a, "other": b, "tolerance": self.tolerance}
            same.append(sheet.compute(self.row, left + 3, one, env))
        self.row += 2
        return Range(tuple(same))

    def _shown(self, column: int, ref: Ref | Lookup, display: Display) -> Ref:
        """What the cell holds; 0 for a blank one, as its look-up is."""
        value = 0 if ref.value is None else ref.value
        shown = TEXT if isinstance(value, str) else display
        return self.sheet.formula(self.row, self.left + column, value, ref.expr(self.sheet.name), shown)


def what_if_pairs(wiring: Wiring, sheet: Sheet, row: int, left: int) -> list[Pair]:
    """What-if's choices beside what the first model's headline on the first sheet is asked with.

    What no cell of either sheet holds stands in the two rows from `row`.
    """

    def cell(name: str) -> Ref:
        ref = wiring.names[name]
        assert isinstance(ref, Ref)
        return ref

    def picked(name: str) -> Ref:
        return cell(f"in_whatif_{name}")

    sheet.text(row, left, "No target, no factor", "label")
    nothing = sheet.put(row, left + 1, Cell(0, "fixed", PLAIN))
    one = sheet.put(row, left + 2, Cell(1, "fixed", PLAIN))
    sheet.text(row + 1, left, "Requests in flight on What-if; the headline's workload and tier", "label")
    env = {**wiring.inputs, "users": picked("users"), "case_factor": cell("in_case_users_base")}
    requests = sheet.compute(row + 1, left + 1, case_requests, env)
    load, cells = wiring.lists["headline_rows"].refs[0], wiring.tables["cells"]
    w, t = (
        sheet.formula(row + 1, left + 2 + k, *pick(cells.range(name), load, sheet.name), PLAIN)
        for k, name in enumerate(("workload_row", "tier_row"))
    )

    def asked(name: str, at: Ref) -> Lookup:
        return lookup(wiring.lists[name], at)

    return [("Model", picked("model"), wiring.tables["models"].columns["model"][0]), ("Context",
             picked("context_tokens"), asked("contexts", w)), ("Context of the base case, times",
             cell("in_case_context_base"), one), ("Answer", picked("answer_tokens"), asked("answers", w)),
             ("Requests in flight", requests, asked("tiers", t)), ("Weights' precision", picked("weight_dtype"),
             wiring.inputs["asked_weight_dtype"]), ("KV cache precision", picked("kv_cache_dtype"),
             wiring.inputs["asked_kv_dtype"]), ("Time per token, ms", picked("tpot_ms"), asked("tpot_targets", w)),
             ("Time to first token, ms", nothing, asked("ttft_targets", w))]  # fmt: skip


def add_what_if(pairs: Pairs, wiring: Wiring) -> Ref:
    """The block, and below it the cost of both; gives the cell that says 1 where they agree."""
    sheet, left = pairs.sheet, pairs.left
    load, cells = wiring.lists["headline_rows"].refs[0], wiring.tables["cells"]
    asked = what_if_pairs(wiring, sheet, pairs.row, left)
    pairs.row += 3
    cost = wiring.names["rec_whatif_monthly_usd"]
    assert isinstance(cost, Ref)
    same = pairs.block(("What-if asks", "What-if", "First sheet"), asked, FACTOR, rounded=False)
    monthly = [("$ per month", cost, lookup(cells.range("monthly_usd"), load))]
    costs = pairs.block(("What-if answers", "What-if", "Workings"), monthly, USD_CENTS, rounded=True)
    area = same.expr(sheet.name).text
    sheet.text(pairs.row, left, "Asked the same, they agree", "label")
    env: dict[str, Source] = {
        "n_same": Lookup(sum(r.value for r in same.refs), lambda here: Expr(f"SUM({area})")),
        "n_choices": Lookup(len(same.refs), lambda here: Expr(f"COUNT({area})")),
        "same_cost": costs.refs[0],
    }
    agrees = sheet.compute(pairs.row, left + 3, what_if_agrees, env)
    pairs.row += 2
    return agrees


OF_INSTANCE = ("type", "provider", "instance_gpu", "gpu_count", "price_usd_per_hour")  # side by side


def own_models(sheet: Sheet, row: int, wiring: Wiring) -> list[Ref]:
    """A line for each spare row of Models, below its head at `row`; gives what is said of them."""
    spare = wiring.tables["models"].spare
    columns = sorted(spare.values(), key=lambda refs: refs[0].column)
    sheet.text(row, 0, "Rows of your own on Models", "head")
    listed = wiring.names.get("list_whatif_model")  # the catalog's, too
    if not isinstance(listed, Range):
        listed = Range((wiring.tables["models"].columns["model"][0], spare["model"][-1]))
    found = []
    for k, name in enumerate(spare["model"]):
        given = {n: _zero(spare[n][k]) for n in model_lacks.inputs}
        sheet.text(row + 1 + k, 0, f"Row {name.row + 1}", "label")
        env: dict[str, Source] = {"model": name, "n_filled": _filled([refs[k] for refs in columns]),
                                  "facts": worked_out(model_lacks, given), "n_named": _named(listed, name)}  # fmt: skip
        found.append(sheet.compute(row + 1 + k, 1, own_model_state, env, display=TEXT))
    return found


def own_instances(sheet: Sheet, row: int, wiring: Wiring, first: int) -> list[Ref]:
    """The same of Instances, whose spare rows begin after `first` others."""
    columns = wiring.tables["instances"].columns
    row += len(wiring.tables["models"].spare["model"]) + 2
    sheet.text(row, 0, "Rows of your own on Instances", "head")
    listed = wiring.tables["instances"].range("instance")
    gpus = [str(ref.value).lower() for ref in wiring.tables["gpus"].columns["gpu"]]
    found = []
    for k in range(len(columns["type"]) - first):
        cells = {name: columns[name][first + k] for name in OF_INSTANCE}
        gpu = cells["instance_gpu"]
        sheet.text(row + 1 + k, 0, f"Row {gpu.row + 1}", "label")

        def known(here: str, gpu: Ref = gpu) -> Expr:
            asked = gpu.expr(here).text
            return Expr(f"IFERROR(1*(INDEX(list_gpu,MATCH({asked},list_gpu,0))={asked}),0)")

        env: dict[str, Source] = {
            **cells, "gpu_known": Lookup(int(str(gpu.value).lower() in gpus), known),
            "n_filled": _filled(list(cells.values())), "n_named": _named(listed, columns["instance"][first + k]),
        }  # fmt: skip
        found.append(sheet.compute(row + 1 + k, 1, own_instance_state, env, display=TEXT))
    return found


def _zero(ref: Ref) -> Ref:
    """A blank cell counts as 0."""
    return ref._replace(value=ref.value or 0)


def _filled(refs: Sequence[Ref]) -> Lookup:
    """How many cells of a row are filled."""
    area = Range((refs[0], refs[-1]))
    return Lookup(sum(ref.value is not None for ref in refs), lambda here: Expr(f"COUNTA({area.expr(here).text})"))


def _named(listed: Range, name: Ref) -> Lookup:
    """How many of a list have this name; spreadsheets do not tell capitals apart."""
    same = sum(str(ref.value).lower() == str(name.value).lower() for ref in listed.refs)
    return Lookup(same, lambda here: Expr(f"SUMPRODUCT(1*({listed.expr(here).text}={name.expr(here).text}))"))
