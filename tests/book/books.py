"""Workbooks for tests: built once a process, edited by the heads of their columns, compared with what `solve` says."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import openpyxl
from amounts import IN_LONG
from answers import book_for
from openpyxl import Workbook
from openpyxl.worksheet import _reader
from option_values import OptionValue
from workbook_cells import PRICES_SHEET, CellValue, Place, cells, moved

from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.book.decision_choices import decision
from sheetgen.catalog import Catalog, write_index
from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.program.sheet_program import OF_CHANCE
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import Load, Question, ask, stated_of, with_stated
from sheetgen.units import GIB
from sheetgen.writers import xlsx_library
from sheetgen.writers.xlsx import write_xlsx

AS_OF = "2026-11-20"
DEFAULT = "8b,70b,405b"
FAMILIES = "llama-3.1-8b,gemma-3-27b,qwen3.6-27b,gpt-oss-120b,deepseek-v3"
HEAD = 4  # the row of a table's head

# A small sheet, quick to recalculate, on which all that the large one does can be seen.
INSTANCES = (
    "aws/g6.xlarge,aws/g6.12xlarge,aws/g6e.xlarge,aws/g6e.12xlarge,aws/p5.4xlarge,aws/p5.48xlarge,aws/p5en.48xlarge,"
    "gcp/g2-standard-4,gcp/a2-highgpu-4g,gcp/a3-highgpu-8g,azure/Standard_NC80adis_H100_v5,azure/Standard_ND96isr_H200_v5"
)
SMALL = {
    "models": "8b,gemma-3-27b,deepseek-v3",
    "workloads": "chat,long-doc",
    "tiers": "1,32,256",
    "headline": "chat:32",
    "instances": INSTANCES,
    "as_of": AS_OF,
}
# The workbook of the main job: three models, all workloads and tiers; in the gate of few instances, as more of them are
# more rows of the same formulas.
USUAL = {"models": DEFAULT, "as_of": AS_OF, **({} if IN_LONG else {"instances": f"{INSTANCES},aws/g5.xlarge"})}
LEAST = {
    "models": "8b",
    "workloads": "chat",
    "tiers": "1",
    "headline": "chat:1",
    "instances": "aws/p5.4xlarge",
    "as_of": AS_OF,
}
# Mixtures of experts on one provider: data-parallel layouts are chosen, and no single machine of these holds Kimi-K2.
EXPERTS = {
    "models": "deepseek-v3,kimi-k2,gpt-oss-120b",
    "workloads": "chat,long-doc",
    "tiers": "1,64",
    "headline": "chat:64",
    "instances": "aws/g6e.12xlarge,aws/p4d.24xlarge,aws/p4de.24xlarge,aws/p5.4xlarge,aws/p5.48xlarge,aws/p5en.48xlarge",
    "as_of": AS_OF,
}


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def book_bytes(solved: Solution, *, with_decision: bool = True) -> bytes:
    levers = levers_of_sheet(solved)
    choices = decision(solved) if with_decision else None
    return write_xlsx(book_for(solved, levers, choices))


def build(
    folder: Path, name: str, options: Mapping[str, OptionValue], *, with_decision: bool = True
) -> tuple[Path, Question]:
    """A workbook in `folder`, and the question that it answers. Without Decision it is recalculated twice as fast.

    Tests of several files have the same one: it is built once a run, whichever process has it first."""
    path, key = folder / f"{name}.xlsx", repr((sorted(options.items()), with_decision, xlsx_library.LEVEL))
    if key not in _built:
        question = ask(Catalog(), options)  # what a test imported into the shared one is in no book's fingerprint
        _built[key] = _bytes_once(key, lambda: book_bytes(solve(question), with_decision=with_decision)), question
    data, question = _built[key]
    path.write_bytes(data)
    return path, question


_built: dict[str, tuple[bytes, Question]] = {}


def _bytes_once(key: str, build: Callable[[], bytes]) -> bytes:
    """The bytes that another process of the run has built for a key, or those that are built now."""
    if SHARED is None:
        return build()
    file = SHARED / f"{hashlib.sha256(key.encode()).hexdigest()}.xlsx"
    if not file.exists():
        (begun := file.with_suffix(f".{os.getpid()}")).write_bytes(build())
        begun.replace(file)  # whole, or not there
    return file.read_bytes()


SHARED: Path | None = None  # the folder of all processes of a run with pytest-xdist


def opened(path: Path) -> Workbook:
    """A workbook as openpyxl reads it. It is kept, so that no test may change it."""
    return _opened(path.read_bytes())


def opened_values(path: Path) -> Workbook:
    """The same with the values of its formulas."""
    return openpyxl.load_workbook(path, data_only=True, read_only=True)


class _Moving:
    """A shared formula for openpyxl, which takes three times as long to move it, longer than to build the workbook."""

    def __init__(self, formula: str, origin: str) -> None:
        self.text, self.first = formula.removeprefix("="), origin

    def translate_formula(self, to: str) -> str:
        return f"={moved(self.text, self.first, to)}"


@functools.lru_cache(3)
def _opened(data: bytes) -> Workbook:
    with mock.patch.object(_reader, "Translator", _Moving):
        return openpyxl.load_workbook(io.BytesIO(data))


# Finding ------------------------------------------------------------------------------------------------


class Sheets:
    """A workbook's cells by what stands in a table's head and in its first column."""

    def __init__(self, path: Path) -> None:
        self.values = {cell.place: cell.value for cell in cells(path)}
        self.columns: dict[tuple[str, str], str] = {}
        for (sheet, cell), value in self.values.items():
            letters = cell.rstrip("0123456789")
            if cell == f"{letters}{HEAD}" and isinstance(value, str):
                assert (sheet, value) not in self.columns, f"{sheet} has two columns called {value!r}"
                self.columns[sheet, value] = letters

    def at(self, sheet: str, key: str | int, head: str) -> tuple[str, str]:
        """The cell in the column `head` of the row that starts with `key` (or of that row)."""
        row = key if isinstance(key, int) else self._row(sheet, key)
        return sheet, f"{self.columns[sheet, head]}{row}"

    def _row(self, sheet: str, key: str) -> str:
        cells = [cell[1:] for (s, cell), v in self.values.items() if s == sheet and v == key and cell[0] == "A"]
        return next(row for row in cells if row.isdigit())

    def spare(self) -> int:
        """The first spare row of Prices and hardware."""
        cells = [cell for sheet, cell in self.values if sheet == PRICES_SHEET]
        return max(int(cell[1:]) for cell in cells if cell[1:].isdigit() and cell[0] == "D") + 1


# Asking otherwise ---------------------------------------------------------------------------------------


def overlay(folder: Path, files: Mapping[str, str]) -> Catalog:
    """The shipped catalog with these files over it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    write_index(folder)
    return Catalog(folder)


class Reshaped(Model):
    """A model with other numbers in its columns, as a reader types them into Models."""

    changes: dict[str, float]

    def shape(self) -> dict[str, float]:
        return {**super().shape(), **self.changes}


def reshape(question: Question, model: int, **changes: float) -> Question:
    """`question` with numbers of one model's columns changed."""
    models = list(question.models)
    old = models[model]
    context = int(changes.get("max_context_tokens", old.model.max_context_tokens or 0))
    before = getattr(old.model, "changes", {})
    fields = {**dict(old.model), "max_context_tokens": context, "changes": {**before, **changes}}
    models[model] = dataclasses.replace(old, model=Reshaped.model_construct(**fields))
    return with_cells(dataclasses.replace(question, models=tuple(models)))


def with_cells(question: Question) -> Question:
    """`question` with its loads worked out anew from its models, workloads and tiers."""
    loads = [
        Load(
            m,
            w,
            t,
            work.context_tokens,
            work.input_tokens,
            tier or 0,
            work.context_tokens > (model.model.max_context_tokens or 0),
        )
        for m, model in enumerate(question.models)
        for w, work in enumerate(question.workloads)
        for t, tier in enumerate(question.tiers)
    ]
    return dataclasses.replace(question, loads=tuple(loads))


def with_workload(question: Question, workload: int, context: int, answer: int) -> Question:
    """`question` with other lengths; the targets, of which none is stated, follow them."""
    works = list(question.workloads)
    sizes = {"input_tokens": context - answer, "output_tokens": answer}
    settings, reference = question.settings, question.reference
    resized = works[workload].model_copy(update={**sizes, "tpot_target_ms": None, "ttft_target_ms": None})
    [works[workload]] = with_stated((resized,), stated_of((resized,), {}), settings, reference)
    return with_cells(dataclasses.replace(question, workloads=tuple(works)))


def with_settings(question: Question, **settings: Any) -> Question:
    """`question` with other settings; precisions change what the models use."""
    new = dataclasses.replace(question.settings, **settings)
    models = tuple(
        dataclasses.replace(
            m,
            weight_dtype=m.auto_weight_dtype if new.weight_dtype == "published" else new.weight_dtype,
            kv_cache_dtype=m.auto_kv_cache_dtype if new.kv_cache_dtype == "auto" else new.kv_cache_dtype,
        )
        for m in question.models
    )
    return dataclasses.replace(question, settings=new, models=models)


def with_gpu(question: Question, gpu_id: str, memory_bytes: int | None = None, **fields: OptionValue) -> Question:
    """`question` with one GPU changed, wherever it stands."""

    def changed(gpu: Gpu) -> Gpu:
        if gpu.id != gpu_id:
            return gpu
        memory = gpu.memory
        if memory_bytes is not None:
            memory = memory.model_copy(update={"engine_bytes": memory_bytes})
        return gpu.model_copy(update={**fields, "memory": memory})

    candidates = tuple(dataclasses.replace(c, gpu=changed(c.gpu)) for c in question.candidates)
    return dataclasses.replace(question, gpus=tuple(map(changed, question.gpus)), candidates=candidates)


class Limited(Engine):
    """An engine with other batch limits on GPUs of these sizes, as a reader types them into GPUs."""

    limits: dict[float, tuple[int, int]]

    def batch_limits(self, gpu_memory_gib: float, architecture: str) -> tuple[int, int]:
        return self.limits.get(gpu_memory_gib) or super().batch_limits(gpu_memory_gib, architecture)


def with_limits(question: Question, gpu_id: str, max_num_seqs: int, max_num_batched_tokens: int) -> Question:
    """`question` with other batch limits on one GPU."""
    size = next(g.memory.engine_bytes for g in question.gpus if g.id == gpu_id) / GIB
    limits = {**getattr(question.engine, "limits", {}), size: (max_num_seqs, max_num_batched_tokens)}
    engine = Limited.model_construct(**{**dict(question.engine), "limits": limits})
    return dataclasses.replace(question, engine=engine)


def with_instance(question: Question, name: str, **fields: Any) -> Question:
    """`question` with one instance changed."""
    candidates = tuple(dataclasses.replace(c, **fields) if c.instance == name else c for c in question.candidates)
    return dataclasses.replace(question, candidates=candidates)


# What solve says of every load --------------------------------------------------------------------------

WORKINGS = (
    "Context", "At once", "Tokens charged per sequence", "People", "Load", "$ per month", "Instances", "TP", "DP",
    "Lowest $ per month", "Requests served within the targets", "Requests that memory holds", "What set the replicas",
    "Instance", "Type", "Provider", "GPU", "GPU, short", "$ per instance and hour", "Sequences per replica", "PP",
    "Replicas", "GPUs of the replicas", "$ per hour", "Headroom", "Fit", "Next cheapest", "Next cheapest, $ per month",
    "Steady KV per sequence", "KV for all requests", "Chance", "Chance, memory", "Chance, time per token",
    "Chance, first token",
)  # fmt: skip
RESULTS = {"instance": "Instance", "n_instances": "Instances", "monthly_usd": "$ per month", "chance": "Chance"}


def expected(solved: Solution) -> list[dict[str, CellValue]]:
    """For each load, the columns of Workings as `solve` has them."""
    return [_load(solved, row) for row in range(len(solved.choices))]


def _load(solved: Solution, row: int) -> dict[str, CellValue]:
    cell, choice, kv = solved.question.loads[row], solved.choices[row], solved.loads
    out: dict[str, CellValue] = {
        "Context": cell.context_tokens,
        "At once": cell.concurrent_requests,
        "Tokens charged per sequence": kv["charged_tokens"][row],
        "People": "-" if math.isnan(kv["users"][row]) else kv["users"][row],
        "Load": kv["load_requests"][row],
        "Steady KV per sequence": kv["kv_bytes_per_sequence_steady"][row],
        "KV for all requests": kv["kv_bytes"][row],
        "Instance": choice.verdict,
        "Type": choice.verdict,
        "Fit": "over limit" if cell.over_limit else "none fits",
        "Sequences per replica": 0,
        "PP": 0,
        "Next cheapest, $ per month": "-",
    }
    if choice.offer is None:
        return {**dict.fromkeys(WORKINGS, "-"), **out}
    candidate, layout = solved.candidate(choice.offer), solved.layout(choice.offer)
    second = choice.runner_up
    return out | {
        "$ per month": choice.monthly_usd,
        "Instances": choice.n_instances,
        "TP": layout.tensor_parallel_size,
        "DP": layout.data_parallel_size,
        "Lowest $ per month": choice.cheapest and choice.cheapest.usd,
        "Requests served within the targets": choice.served_at_target,
        "Requests that memory holds": choice.memory_holds,
        "What set the replicas": choice.replicas_by,
        "Instance": candidate.instance,
        "Type": candidate.instance.split("/", 1)[1],
        "Provider": candidate.provider,
        "GPU": candidate.gpu.id,
        "GPU, short": candidate.gpu.short_name,
        "$ per instance and hour": candidate.usd_per_hour
        * (1 - solved.question.discount(candidate.provider, candidate.purchase)),
        "Sequences per replica": choice.sequences_per_replica,
        "PP": choice.pipeline_parallel_size,
        "Replicas": choice.n_replicas,
        "GPUs of the replicas": choice.n_replicas * layout.n_gpus * choice.pipeline_parallel_size,
        "$ per hour": choice.hourly_usd,
        "Headroom": choice.headroom_fraction,
        "Chance": choice.chance,
        **{f"Chance, {words}": choice.chance_of[name] for name, words in OF_CHANCE.items()},
        "Fit": "fits",
        "Next cheapest": "-" if second is None else solved.candidate(second).instance,
        "Next cheapest, $ per month": choice.runner_up_monthly_usd or "-",
    }


def stems(question: Question) -> list[str]:
    """The defined names of each load's results, without their ending."""
    models = [name_part(m.model.id) for m in question.models]
    works = [name_part(w.id) for w in question.workloads]
    return [
        f"rec_{models[c.model]}_{f'{works[c.workload]}_{c.tier + 1}' if c.tier < len(question.tiers) else 'headline'}"
        for c in question.loads
    ]


def differences(values: Mapping[Place | str, CellValue], sheets: Sheets, solved: Solution) -> tuple[int, list[str]]:
    """How many cells of a recalculated workbook were held against `solve`, and which differ."""
    n, wrong = 0, []
    for row, (stem, load) in enumerate(zip(stems(solved.question), expected(solved), strict=True)):
        pairs = [(head, values.get(sheets.at("Workings", HEAD + 1 + row, head)), load[head]) for head in WORKINGS]
        pairs += [(f"{stem}_{end}", values.get(f"{stem}_{end}"), load[head]) for end, head in RESULTS.items()]
        for name, got, want in pairs:
            n += 1
            if not same(got, want):
                wrong.append(f"{stem} {name}: the workbook says {got!r}, solve {want!r}")
    return n, wrong


def same(got: CellValue, want: CellValue) -> bool:
    if not isinstance(want, int | float) or not isinstance(got, int | float):
        return got == want
    return bool(abs(got - want) <= 1e-9 * max(abs(got), abs(want), 1e-3))
