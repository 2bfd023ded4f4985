"""What no workbook has yet, and the compiler of blocks can write, live: a model at a second and a third precision that
a reader chooses, every purchase class, and a load at once of their own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import books
import pytest
from answers import book_for
from readers import needs_gnumeric, recalculate_with_gnumeric
from recalculation import compare, needs_libreoffice, poison, recalculate, values_after
from workbook_cells import values

import sheetgen.book
from sheetgen.answer.solve import solve
from sheetgen.book import matrices
from sheetgen.book.catalogs import FIXED, SHAPE, derive_models
from sheetgen.book.compiler import Compiler
from sheetgen.book.decision_choices import case_requests
from sheetgen.book.lookups import ONE
from sheetgen.book.sheets import Cell, Range, RowValues, Sheet, lookup
from sheetgen.book.speed_sheet import build_latency
from sheetgen.book.wiring import Table, Wiring, name_all
from sheetgen.book.workings import add_choices, build_loads
from sheetgen.errors import ScenarioError
from sheetgen.formula import Formula, formula, is_number, where
from sheetgen.question.overrides import class_columns
from sheetgen.question.sheet_question import ask
from sheetgen.sizing import cost
from sheetgen.units import DTYPES, FACTOR, PLAIN, PURCHASES, TEXT, USD_CENTS, WHOLE
from sheetgen.writers.xlsx import write_xlsx

MODEL, WORKLOAD, PEOPLE = "8b", "chat", 6400
DTYPES_ASKED = {"second_": "fp8", "third_": "int4"}
OPTIONS: dict[str, Any] = {
    "models": MODEL, "workloads": WORKLOAD, "tiers": "32", "headline": f"{WORKLOAD}:32",
    "instances": books.INSTANCES, "as_of": books.AS_OF, "tpot_ms": 20, "ttft_ms": 2000,
}  # fmt: skip


@formula("Paid, $ per hour")
def paid_usd_per_hour(listed: Any, less: Any) -> Any:
    """What is paid of a price above 0; none where nobody lists one."""
    return where(is_number(listed), where(listed > 0, cost.discounted_usd_per_hour(listed, less), "-"), "-")


class LiveCompiler(Compiler):
    """A compiler that adds the quantities of later issues to the blocks of Profiles and Candidates."""

    def __post_init__(self) -> None:
        if self.head.key == "candidates":
            instances, less = self.every[0].tables["instances"], self.every[0].inputs["no_discount"]
            for purchase in PURCHASES:
                listed = [lookup(instances.range(class_columns(purchase)["price"]), at) for at in self.places]
                self.head.computed(paid_usd_per_hour, {"listed": listed, "less": less}, name=f"paid_{purchase}")
        super().__post_init__()

    @property
    def places(self) -> Sequence[Any]:
        return self.head.columns["instance_row"]

    def write(self, name: str, quantity: Formula, **more: Any) -> None:
        super().write(name, quantity, **more)
        if name == "monthly_usd" and self.head.key == "candidates":
            for purchase in PURCHASES:
                paid = {"price_usd_per_hour": RowValues.of(self.head.columns[f"paid_{purchase}"])}
                super().write(f"monthly_usd_{purchase}", quantity, **{**more, "given": paid})


class LiveBook:
    """A workbook of one model with the model twice more at precisions of yellow cells, and a load in people."""

    def __init__(self) -> None:
        self.sheet, self.sheets, self.live = Sheet("Live"), list[Sheet](), list[Wiring]()

    def profiles(self, solved: Any, wiring: Wiring, live: Sequence[Wiring]) -> Sheet:
        sheet, names = self.sheet, wiring.names
        people, none = (
            sheet.put(row, 1, Cell(value, "input", display), f"in_live_{name}", label=name)
            for row, (name, value, display) in enumerate((("people", PEOPLE, WHOLE), ("no_discount", 0, FACTOR)))
        )
        names |= {str(ref.name): ref for ref in (people, none)}
        wiring.inputs |= {"no_discount": none}
        for number, (prefix, dtype) in enumerate(DTYPES_ASKED.items(), 1):
            asked = sheet.put(3 + number, 1, Cell(dtype, "input", TEXT), f"in_live_{prefix}dtype", label=prefix)
            names[str(asked.name)] = asked
            self.live.append(self._live(wiring, prefix, asked, people, number))
        return build_profiles(solved, wiring, [*live, *self.live])

    def _live(self, of: Wiring, prefix: str, dtype: Any, people: Any, number: int) -> Wiring:
        """The workbook's model at another precision, with the people's load."""
        wiring = Wiring(inputs=dict(of.inputs), prefix=prefix, names=of.names, lists=dict(of.lists))
        wiring.tables |= {name: of.tables[name] for name in ("instances", "gpus")}
        wiring.inputs["asked_weight_dtype"], own = dtype, of.tables["models"]
        sheet = Sheet(f"Models {number}")
        table = Table(wiring, sheet, 1, "models", top=3)
        kept = (*(name for name, _, _ in SHAPE), *FIXED, *(f"checkpoint_{d}" for d in DTYPES), "is_mixture")
        for name in ("model", "own_weight_dtype", "recommended_weight_dtype", "own_kv_dtype", *kept):
            display = FACTOR if name in kept else TEXT
            fact = lookup(own.range(name), ONE)
            table.looked_up(name, name, [dataclasses.replace(fact, value=fact.value or 0)], display)
        derive_models(table)
        env = {**of.inputs, "requests": people, "case_factor": sheet.put(0, 5, Cell(1, "fixed", PLAIN))}
        at_once = sheet.compute(0, 6, case_requests, env)
        wiring.lists["tiers"] = Range((at_once,))
        name_all(wiring, sheet.name)
        contexts = build_latency(wiring, [WORKLOAD], f"Contexts {number}")
        loads = build_loads(wiring, [WORKLOAD], [(0, 0, 0)], f"Loads {number}")
        self.sheets += [sheet, contexts, loads]
        return wiring

    def candidates(self, solved: Any, wiring: Wiring, live: Sequence[Wiring]) -> Sheet:
        sheet = build_candidates(solved, wiring, [*live, *self.live])
        for row, of in enumerate(self.live, 7):
            add_choices(of, alone=True)
            names = ["monthly_usd", *(f"monthly_usd_{purchase}" for purchase in PURCHASES)]
            months = [Range(block.rows[0]) for block in map(of.blocks.__getitem__, names)]
            for column, (name, month) in enumerate(zip(names, months, strict=True), 1):
                best = self.sheet.compute(row, column, least_month, {"month": month}, name=f"live_{of.prefix}{name}")
                wiring.names[str(best.name).replace("-", "_")] = best
            chosen = of.tables["loads"].columns["monthly_usd"][0]
            wiring.names[f"live_{of.prefix}chosen"] = self.sheet.link(row, 12, chosen, USD_CENTS)
        return sheet


@formula("Lowest month")
def least_month(month: Any) -> Any:
    """The lowest $ per month above 0 of a row."""
    from sheetgen.formula import least_where

    return least_where(month, month > 0, otherwise="-")


build_profiles, build_candidates = matrices.build_profiles, matrices.build_candidates


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    live = LiveBook()
    path = tmp_path_factory.mktemp("live") / "live.xlsx"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrices, "Compiler", LiveCompiler)
        patch.setattr(sheetgen.book, "build_profiles", live.profiles)
        patch.setattr(sheetgen.book, "build_candidates", live.candidates)
        made = book_for(solve(ask(books.catalog(), OPTIONS)))
    made.sheets.extend([live.sheet, *live.sheets])
    path.write_bytes(write_xlsx(made))
    return path


def oracle(dtype: str, people: int, purchase: str = "on-demand") -> float | str:
    """What `solve` says is the lowest month of the people's load at that precision and class."""
    more = {"weight_dtype": dtype, "tiers": str(people), "headline": f"{WORKLOAD}:{people}", "purchase": purchase}
    try:
        choice = solve(ask(books.catalog(), {**OPTIONS, **more})).choices[0]
    except ScenarioError:  # nobody lists a price of that class
        return "-"
    return choice.cheapest.usd if choice.cheapest else "-"


def unlike(found: Mapping[Any, Any], dtypes: Mapping[str, str], people: int) -> list[str]:
    """Which of the live months are not what `solve` says."""
    wrong = []
    for prefix, dtype in dtypes.items():
        wanted = {"monthly_usd": oracle(dtype, people)}
        wanted |= {f"monthly_usd_{class_}": oracle(dtype, people, class_) for class_ in PURCHASES}
        for name, want in wanted.items():
            got = found[f"live_{prefix}{name}".replace("-", "_")]
            same = got == want if isinstance(want, str) else math.isclose(got, want, rel_tol=1e-9)
            wrong += [] if same else [f"{prefix}{name}: {got} for {want}"]
    return wrong


def test_it_is_what_solve_says_as_built_and_after_edits(book: Path) -> None:
    assert unlike(values(book), DTYPES_ASKED, PEOPLE) == []
    changes = {"in_live_second_dtype": "bf16", "in_live_third_dtype": "fp8", "in_live_people": 9000}
    found = values_after(book, changes)
    assert unlike(found, {"second_": "bf16", "third_": "fp8"}, 9000) == []
    months = [found[f"live_{prefix}monthly_usd"] for prefix in DTYPES_ASKED]
    assert len(set(months)) == len(months), "precision changes the month"


@pytest.mark.long  # in the gate they recalculate workbooks as built
@needs_libreoffice
@needs_gnumeric
def test_libreoffice_and_gnumeric_agree_from_poisoned_values(book: Path, tmp_path: Path) -> None:
    poisoned, out = tmp_path / "poisoned.xlsx", tmp_path / "gnumeric.xlsx"
    assert poison(book, poisoned) > 5_000
    recalculate_with_gnumeric(poisoned, out)
    for again in (out, recalculate(poisoned, tmp_path)):
        compared = compare(book, again)
        assert compared.n_compared == compared.n_formulas and not compared.mismatches, str(compared)
