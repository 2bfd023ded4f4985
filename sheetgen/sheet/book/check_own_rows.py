"""Rows of one's own on Models and Instances: what each that is begun still lacks, as blocks of the Checks sheet."""

from __future__ import annotations

from collections.abc import Sequence

from sheetgen.formula import Expr
from sheetgen.sheet.book.wiring import Wiring
from sheetgen.sheet.model import Found, Range, Ref, Sheet, Source
from sheetgen.sheet.what_if_state import model_lacks, own_instance_state, own_model_state
from sheetgen.units import TEXT

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
        facts = Found(
            model_lacks.of({n: ref.value for n, ref in given.items()}),
            lambda here, given=given: model_lacks.written({n: ref.expr(here) for n, ref in given.items()}),  # type: ignore[misc]
        )
        env: dict[str, Source] = {"model": name, "n_filled": _filled([refs[k] for refs in columns]), "facts": facts,
                                  "n_named": _named(listed, name)}  # fmt: skip
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
            **cells, "gpu_known": Found(int(str(gpu.value).lower() in gpus), known),
            "n_filled": _filled(list(cells.values())), "n_named": _named(listed, columns["instance"][first + k]),
        }  # fmt: skip
        found.append(sheet.compute(row + 1 + k, 1, own_instance_state, env, display=TEXT))
    return found


def _zero(ref: Ref) -> Ref:
    """A blank cell counts as 0."""
    return ref._replace(value=ref.value or 0)


def _filled(refs: Sequence[Ref]) -> Found:
    """How many cells of a row are filled."""
    area = Range((refs[0], refs[-1]))
    return Found(sum(ref.value is not None for ref in refs), lambda here: Expr(f"COUNTA({area.expr(here).text})"))


def _named(listed: Range, name: Ref) -> Found:
    """How many of a list have this name; spreadsheets do not tell capitals apart."""
    same = sum(str(ref.value).lower() == str(name.value).lower() for ref in listed.refs)
    return Found(same, lambda here: Expr(f"SUMPRODUCT(1*({listed.expr(here).text}={name.expr(here).text}))"))
