"""Discounts by provider and purchase class: a table of yellow cells below the prices, and the discounts in force."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.answer.solution import Solution
from sheetgen.book.inputs_sheet import NOTE
from sheetgen.book.lookups import ONE, call, element, position_in, written
from sheetgen.book.sheets import Cell, Lookup, Range, Ref, Sheet, Source, Validation, derived, lookup
from sheetgen.book.wiring import Wiring, named
from sheetgen.formula import number_or_none
from sheetgen.question.discounts import cell_name, discount_in_force
from sheetgen.question.inputs import BY_NAME
from sheetgen.units import EXACT_PERCENT, PLAIN, PURCHASES

TITLE = "Discounts of your contracts: blank takes the next more general one"
IN_FORCE = "In force"
COUNTED = "Discounts by provider or purchase class"
ALL_OTHERS = "all other providers"  # the first row; a provider of one's own is one of them
NAMES, BLOCK = "list_discount_providers", "discounts"
LEFT = 4  # the first column: prices begin in the next one


def build_discounts(solved: Solution, wiring: Wiring, sheet: Sheet, top: int) -> None:
    """The table from row `top` on: yellow cells for all classes and for each, and below them the discounts in force."""
    question = solved.question
    general = BY_NAME["discount_fraction"]
    kind = replace(general.kind, blank=True)
    providers = list(dict.fromkeys(row.provider for row in question.rows))
    rows = {"": ALL_OTHERS, **{name: name for name in providers}}
    columns = ("", *PURCHASES)
    note = wiring.inputs_sheet.cells[wiring.inputs["discount_fraction"].row, NOTE]
    note.role, note.url = "remark_link", f"internal:'{sheet.name}'!A{top + 1}"
    sheet.texts(top, 0, (TITLE, *[""] * (LEFT - 1), "all classes", *PURCHASES), "section")
    typed: dict[tuple[str, str], Ref] = {}
    names = []
    for row, (provider, words) in enumerate(rows.items(), top + 1):
        names.append(sheet.text(row, 0, words, "label"))
        for column, purchase in enumerate(columns, LEFT):
            key = provider, purchase
            if not any(key):
                typed[key] = sheet.link(row, column, wiring.inputs["discount_fraction"], EXACT_PERCENT)
                continue
            check = Validation.of(kind, "Discount", "0.2 is 20 %. Blank: the next more general one.")
            cell = Cell(question.discounts.get(key), "input", EXACT_PERCENT, validation=check)
            name = f"in_{cell_name(key)}"
            typed[key] = wiring.names[name] = sheet.put(row, column, cell, name)
    wiring.names[NAMES] = Range(tuple(names), name=NAMES)
    top += len(rows) + 1
    sheet.text(top, 0, IN_FORCE, "section", note=discount_in_force.documentation)
    sheet.texts(top, 1, (*[""] * LEFT, *PURCHASES), "section")
    in_force: dict[str, list[Ref]] = {purchase: [] for purchase in PURCHASES}
    for row, (provider, words) in enumerate(rows.items(), top + 1):
        sheet.text(row, 0, words, "label")
        for column, purchase in enumerate(PURCHASES, LEFT + 1):
            env: dict[str, Source] = {
                "of_provider_and_class": typed[provider, purchase]._replace(lock="none", name=None),
                "of_provider": typed[provider, ""]._replace(lock="column", name=None),
                "of_class": typed["", purchase]._replace(lock="row", name=None),
                "in_general": typed["", ""]._replace(name=None),
            }
            in_force[purchase].append(sheet.compute(row, column, discount_in_force, env))
    for purchase, refs in in_force.items():
        wiring.lists[f"{BLOCK}_{purchase}"] = named(wiring.names, f"tbl_{BLOCK}_{purchase.replace('-', '_')}", refs)
    # How many there are stands among the assumptions of the first sheet, which shows the one on Inputs alone.
    label = sheet.text(top + len(rows) + 1, 0, COUNTED, "label")
    of_all = Range([typed["", purchase] for purchase in PURCHASES])
    of_each = Range((typed[providers[0], ""], typed[providers[-1], columns[-1]]))
    n_typed = sum(question.discounts.get(key) is not None for key in typed)
    n = written(n_typed, call("COUNT"), of_all, of_each)
    counted = sheet.link(label.row, LEFT, n, PLAIN, "computed")
    wiring.assumptions.append((label, counted, PLAIN))
    first, *_, last = in_force.values()
    named(wiring.names, f"tbl_{BLOCK}", (first[0], last[-1]))


def _row_of(wiring: Wiring, provider: Ref | Lookup) -> Lookup:
    """A provider's row of the table: the first one where it has none of its own."""
    names = wiring.area(NAMES)
    return position_in(names, provider, ONE)


def of_class(wiring: Wiring, provider: Ref | Lookup, purchase: str, class_row: Ref | None = None) -> Lookup:
    """The discount in force of a provider in that purchase class; or in the class of that row, which is that one as
    built, none where the row names no class."""
    refs, row = wiring.lists[f"{BLOCK}_{purchase}"], _row_of(wiring, provider)
    if class_row is None:
        return lookup(refs, row)
    return derived(number_or_none, element(lookup(refs, row).value, Range((), name=f"tbl_{BLOCK}"), row, class_row))
