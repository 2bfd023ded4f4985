"""A workbook after edits: two engines agree on every cell, and on what `solve` says of the same question."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG, amount
from books import (
    Sheets,
    differences,
    reshape,
    with_gpu,
    with_instance,
    with_limits,
    with_settings,
    with_workload,
)
from option_values import OptionValue
from recalculation import (
    Mismatch,
    convert_all,
    edit,
    half_percent,
    needs_libreoffice,
    poison,
    same,
    values_after,
)
from workbook_cells import PRICES_SHEET, Cell, CellValue, ErrorValue, Place, Values, cells, values

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog import default_folder
from sheetgen.question.sheet_question import Question, ask

H100, H200, L40S = "nvidia-h100-sxm5-80gb", "nvidia-h200-sxm5-141gb", "nvidia-l40s-48gb"
Where = Callable[[Sheets], Mapping[Place | str, CellValue]]


@dataclass(frozen=True)
class Edit:
    """Cells to type into, and how `build` is asked for the same thing: options, catalog files, or a Question."""

    name: str
    cells: Mapping[str, OptionValue] | Where
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    files: Callable[[], Mapping[str, str]] | None = None
    change: Callable[[Question], Question] = lambda question: question
    moves: bool = True  # some load gets another answer

    def typed(self, sheets: Sheets) -> Values:
        return dict(self.cells(sheets) if callable(self.cells) else self.cells)

    def question(self, folder: Path, start: Mapping[str, OptionValue] = books.SMALL) -> Question:
        catalog = books.overlay(folder, self.files()) if self.files else books.catalog()
        return self.change(ask(catalog, {**start, **self.options}))


def shipped(name: str, *changes: tuple[str, str]) -> Callable[[], Mapping[str, str]]:
    """A file of the shipped catalog with texts replaced, each found exactly once."""

    def files() -> Mapping[str, str]:
        text = (default_folder() / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, f"{name} holds {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        return {name: text}

    return files


def row(provider: str, kind: str, **fields: object) -> Callable[[], Mapping[str, str]]:
    """A provider's file with one instance, taken from the shipped one and changed."""

    def files() -> Mapping[str, str]:
        text = (default_folder() / f"instances/{provider}.yaml").read_text()
        head, *rows = re.split(r"(?m)^(?=  - type: )", text)
        mine = next(r for r in rows if r.startswith(f"  - type: {kind}\n"))
        for name, value in fields.items():
            before = "on-demand, " if name == "usd_per_hour" else ""
            mine, n = re.subn(rf"\b{before}{name}: [^,}}\n]+", f"{before}{name}: {value}", mine)
            assert n == 1, f"{kind} holds {name} {n} times"
        return {f"instances/{provider}.yaml": head + mine}

    return files


def engine(**fields: object) -> Callable[[Question], Question]:
    return lambda q: dataclasses.replace(q, engine=q.engine.model_copy(update=fields))


def non_torch(**gib: float) -> Callable[[Question], Question]:
    return lambda q: engine(non_torch_gib=q.engine.non_torch_gib.model_copy(update=gib))(q)


def older_non_torch(**gib: float) -> Callable[[Question], Question]:
    return lambda q: engine(older_non_torch_gib=q.engine.older_non_torch_gib.model_copy(update=gib))(q)  # type: ignore[union-attr]


def at(sheet: str, key: str, head: str, value: object) -> Where:
    return lambda sheets: {sheets.at(sheet, key, head): value}


def in_spare_row(values: Mapping[str, Any], more: int = 0) -> Where:
    return lambda sheets: {sheets.at(PRICES_SHEET, sheets.spare() + more, head): v for head, v in values.items()}


NEW = {"Type": "box.1", "Provider": "acme", "GPU": H200, "GPUs": 8, "$ per hour": 3.25, "Price date": 46000}
HALF = ("input_tokens: 3072", "input_tokens: 4976")


def with_new_of(gpu: str, **fields: object) -> Callable[[Question], Question]:
    """A new instance with that GPU, as in the spare row."""

    def change(question: Question) -> Question:
        old = next(c for c in question.candidates if c.gpu.id == gpu)
        named = {"instance": "acme/box.1", "provider": "acme", "gpu_count": 8, "usd_per_hour": 3.25}
        new = dataclasses.replace(old, **{**named, "network_gbps": 0, "tries_ranks": True, **fields})
        return dataclasses.replace(question, candidates=(*question.candidates, new))

    return change


def without_ranks(gpu: str) -> Callable[[Question], Question]:
    """As a workbook that was built when its links were slow: it has no data-parallel layouts of that GPU."""
    return lambda q: dataclasses.replace(
        q, candidates=tuple(dataclasses.replace(c, tries_ranks=c.tries_ranks and c.gpu.id != gpu) for c in q.candidates)
    )


def without(name: str) -> Callable[[Question], Question]:
    return lambda q: dataclasses.replace(q, candidates=tuple(c for c in q.candidates if c.instance != name))


def flag(dtype: str, gpu: str) -> Callable[[Question], Question]:
    def change(question: Question) -> Question:
        runs = next(g.weights_run for g in question.gpus if g.id == gpu)
        return with_gpu(question, gpu, weights_run={k: v for k, v in runs.items() if k != dtype})

    return change


def keeps(dtype: str, gpu: str) -> Callable[[Question], Question]:
    """The GPU keeps weights in that precision, and does not compute in it."""

    def change(question: Question) -> Question:
        runs = next(g.weights_run for g in question.gpus if g.id == gpu)
        return with_gpu(question, gpu, weights_run={**runs, dtype: "weight_only"})

    return change


def own_int4(question: Question) -> Question:
    *others, last = question.models
    return dataclasses.replace(
        question, models=(*others, dataclasses.replace(last, weight_dtype="int4", auto_weight_dtype="int4"))
    )


SETTINGS = [
    Edit(f"in_{name}={value}", {f"in_{name}": value}, {name: value}, moves=moves)
    for name, value, moves in (
        ("kv_cache_dtype", "fp8", True),
        ("kv_cache_dtype", "fp8_e4m3", True),
        ("kv_cache_dtype", "int4", True),
        ("weight_dtype", "fp8", True),
        ("weight_dtype", "int4", True),
        ("weight_dtype", "fp32", True),
        ("gpu_memory_utilization", 0.95, True),
        ("hours_per_month", 744, True),
        ("peak_hour_share", 0.25, False),
        ("discount_fraction", 0.2, True),
        ("discount_fraction", 1 / 3, True),
        ("extra_headroom_fraction", 0.2, True),
        ("average_context_fraction", 0.5, True),
        ("prefix_cache_hit_fraction", 0.4, True),
        ("block_size", 4096, True),
        ("near_tie_fraction", 0, True),
        ("near_tie_fraction", 0.5, True),
        ("near_tie_fraction", 1, True),
    )
]

EDITS = [
    *SETTINGS,
    *(
        Edit(f"survive a {loss}", {"in_survive": i}, {"survive": loss})
        for i, loss in enumerate(("replica", "machine", "zone"), 1)
    ),
    Edit("context", {"in_context_chat": 6000}, files=shipped("workloads.yaml", HALF)),
    Edit(
        "context over every limit",
        {"in_context_long_doc": 200_000},
        files=shipped("workloads.yaml", ("input_tokens: 129024", "input_tokens: 197952")),
    ),
    Edit(
        "answer",
        {"in_output_chat": 3072, "in_prefix_cache_hit_fraction": 0.9},
        {"prefix_cache_hit_fraction": 0.9},
        files=shipped(
            "workloads.yaml",
            ("input_tokens: 3072\n    output_tokens: 1024", "input_tokens: 1024\n    output_tokens: 3072"),
        ),
    ),
    Edit("tier", {"in_tier_2": 64}, {"tiers": "1,64,256", "headline": "chat:32"}),
    Edit(
        "reserved",
        {"in_kv_reserved": 1, "in_average_context_fraction": 0.5},
        {"kv_allocation": "reserved", "average_context_fraction": 0.5},
        moves=False,
    ),
    Edit("hybrid off", {"in_hybrid_kv_manager": 0}, change=lambda q: with_settings(q, hybrid_kv_manager=0)),
    Edit("date", {"in_as_of": 46_500, "in_stale_after_days": 30}, {"as_of": "2027-04-23"}, moves=False),
    Edit("surer", {"in_confidence": 0.8}, {"confidence": 0.8}),
    Edit("less sure than not", {"in_confidence": 0.3}, {"confidence": 0.3}),
    Edit(
        "headline",
        {"in_headline_workload": "Long document", "in_headline_tier": 256},
        {"headline": "long-doc:256"},
        moves=False,
    ),
    Edit(
        "no target of the first token",
        {"in_ttft_ms_chat": None, "in_ttft_ms_long_doc": None},
        {"ttft_ms": "off"},
        moves=False,
    ),
    Edit("first token in a second", {"in_ttft_ms_chat": 1000, "in_ttft_ms_long_doc": 1000}, {"ttft_ms": "1000"}),
    Edit(
        "one target of each",
        {"in_ttft_ms_chat": None, "in_ttft_ms_long_doc": 1000, "in_tpot_ms_long_doc": None},
        {"ttft_ms": "chat=off,long-doc=1000", "tpot_ms": "long-doc=off"},
    ),
    Edit("targets off", {"in_speed_targets": 0}, change=lambda q: with_settings(q, speed_targets=0)),
    Edit(
        "sampler",
        {"in_second_runner_sampler_bytes_per_logit": 60.0},
        change=engine(second_runner_sampler_bytes_per_logit=60.0),
    ),
    Edit(
        "sampler's rows",
        {"in_sampler_bytes_per_vocabulary_entry": 90_000.0},
        change=engine(sampler_bytes_per_vocabulary_entry=90_000.0),
    ),
    Edit("forward pass", {"in_forward_hidden_copies": 300.0}, change=engine(forward_hidden_copies=300.0)),
    Edit("experts", {"in_expert_workspace_share": 8.0}, change=engine(expert_workspace_share=8.0)),
    Edit("context memory", {"in_context_bytes": 6 * 2**30}, change=engine(context_gib=6)),
    Edit(
        "allocation step",
        {"in_allocation_step_bytes": 2**30, "in_large_allocation_bytes": 1},
        change=engine(allocation_step_bytes=2**30, large_allocation_bytes=1),
        moves=False,
    ),
    Edit("share of free", {"in_fraction_of_free": 1}, change=engine(fraction_of_free=True)),
    Edit("activations outside", {"in_activations_in_budget": 0}, change=engine(activations_in_budget=False)),
    Edit("non-torch on stages", {"in_staged_non_torch_bytes_tp1": 9 * 2**30}, change=non_torch(staged=9), moves=False),
    Edit("non-torch", {"in_non_torch_bytes_tp1": 8 * 2**30}, change=non_torch(tp1=8), moves=False),
    Edit("non-torch, older GPUs", {"in_older_non_torch_bytes_tp1": 8 * 2**30}, change=older_non_torch(tp1=8)),
    Edit(
        "graphs",
        {"in_cuda_graph_base_bytes": 6 * 2**30, "in_graphs_in_budget": 1},
        change=engine(cuda_graph_gib=6, graphs_in_budget=True),
    ),
    Edit("pool set outright", {"in_kv_cache_memory_bytes": 20 * 2**30}, {"kv_cache_memory_bytes": 20 * 2**30}),
    Edit(
        "second runner",
        {
            "in_second_runner": 1,
            "in_second_runner_graphs_in_budget": 1,
            "in_cuda_graph_base_bytes": 6 * 2**30,
            "in_second_runner_sampler_bytes_per_logit": 60.0,
        },
        change=engine(
            second_runner="dense",
            second_runner_graphs_in_budget=True,
            cuda_graph_gib=6,
            second_runner_sampler_bytes_per_logit=60.0,
        ),
    ),
    Edit(
        "second runner's own",
        {"in_second_runner": 2, "in_second_runner_table_bytes_per_logit": 60.0, "in_cold_start_embeddings": 8.0},
        change=engine(second_runner="all", second_runner_table_bytes_per_logit=60.0, cold_start_embeddings=8.0),
    ),
    Edit("checkpoint blocks", {"in_checkpoint_blocks": 8}, change=engine(checkpoint_blocks=8), moves=False),
    Edit("batches", {"in_in_flight_batches": 16}, change=engine(in_flight_batches=16)),
    Edit("pools of their own", {"in_shares_pages": 0}, change=engine(shares_pages=False), moves=False),
    Edit("state blocks", {"in_state_blocks": 4}, change=engine(state_blocks=4), moves=False),
    Edit("stretch", {"in_group_stretch": 8}, change=engine(group_stretch=8)),
    Edit(
        "model: KV heads",
        at("Models", "Llama 3.1 8B", "KV heads (full)", 4),
        files=shipped("models/llama-3.1-8b.yaml", ("n_kv_heads: 8", "n_kv_heads: 4")),
    ),
    Edit(
        "model: layers",
        lambda sheets: {
            sheets.at("Models", "Llama 3.1 8B", "Full-attention layers"): 16,
            sheets.at("Models", "Llama 3.1 8B", "Attention, elements"): 131_072,
        },
        files=shipped(
            "models/llama-3.1-8b.yaml",
            (
                "n_layers: 32, n_kv_heads: 8, key_width: 128, value_width: 128}",
                "n_layers: 16, n_kv_heads: 8, key_width: 128, value_width: 128}\n"
                "  - {kind: no_cache, n_layers: 16, reason: a test}",
            ),
        ),
    ),
    Edit(
        "model: limit",
        at("Models", "Llama 3.1 8B", "Longest context", 20_000),
        files=shipped("models/llama-3.1-8b.yaml", ("max_context_tokens: 131072", "max_context_tokens: 20000")),
    ),
    Edit(
        "model: window",
        at("Models", "Gemma 3 27B", "Window", 32_768),
        change=lambda q: reshape(q, 1, window_tokens=32_768),
    ),
    Edit("model: heads", at("Models", "Llama 3.1 8B", "Query heads", 6), change=lambda q: reshape(q, 0, n_heads=6)),
    Edit(
        "model: latent",
        at("Models", "DeepSeek-V3", "Latent width", 4608),
        change=lambda q: reshape(q, 2, mla_width=4608),
    ),
    Edit(
        "model: experts of a dense one",
        lambda sheets: {
            sheets.at("Models", "Llama 3.1 8B", "Experts"): 8,
            sheets.at("Models", "Llama 3.1 8B", "Experts per token"): 1,
        },
        change=lambda q: reshape(q, 0, n_experts=8, experts_per_token=1),
        moves=False,
    ),
    Edit("model: own precision", at("Models", "DeepSeek-V3", "Own weights", "int4"), change=own_int4),
    Edit("GPU: memory", at("GPUs", L40S, "Memory, bytes", 60 * 10**9), change=lambda q: with_gpu(q, L40S, 60 * 10**9)),
    Edit("GPU: runs", at("GPUs", L40S, "Weights bf16", 0), change=flag("bf16", L40S)),
    Edit(
        "GPU: keeps weights in it alone",
        lambda sheets: {sheets.at("GPUs", H200, "Weights fp8"): 1, "in_near_tie_fraction": 1},
        {"near_tie_fraction": 1},
        change=keeps("fp8", H200),
    ),
    Edit(
        "network",
        at(PRICES_SHEET, "p5en.48xlarge", "Network, Gb/s", 100),
        change=lambda q: with_instance(q, "aws/p5en.48xlarge", network_gbps=100),
        moves=False,
    ),
    Edit(
        "price",
        at(PRICES_SHEET, "p5en.48xlarge", "$ per hour", 1.5),
        files=row("aws", "p5en.48xlarge", usd_per_hour=1.5),
    ),
    Edit(
        "price, under a discount",
        lambda sheets: {sheets.at(PRICES_SHEET, "p5en.48xlarge", "$ per hour"): 1.5, "in_discount_fraction": 0.35},
        {"discount_fraction": 0.35},
        files=row("aws", "p5en.48xlarge", usd_per_hour=1.5),
    ),
    Edit(
        "discounts by provider and class",
        {
            "in_discount_fraction": 0.05,
            "in_discount_of_aws": 0.3,
            "in_discount_of_on_demand": 0.1,
            "in_discount_of_gcp_on_demand": 0,
            "in_discount_of_aws_spot": 0.5,
        },
        {"discount_fraction": "0.05,aws=0.3,on-demand=0.1,gcp:on-demand=0,aws:spot=0.5"},
    ),
    Edit(
        "discounts, of another class",
        {"in_purchase": "reserved-3yr", "in_discount_of_azure_reserved_3yr": 0.6, "in_discount_of_reserved_3yr": 0.02},
        {"purchase": "reserved-3yr", "discount_fraction": "azure:reserved-3yr=0.6,reserved-3yr=0.02"},
    ),
    Edit("price gone", at(PRICES_SHEET, "g6e.xlarge", "$ per hour", None), change=without("aws/g6e.xlarge")),
    Edit("more GPUs", at(PRICES_SHEET, "g6e.12xlarge", "GPUs", 7), files=row("aws", "g6e.12xlarge", gpu_count=7)),
    Edit("fewer GPUs", at(PRICES_SHEET, "g6.12xlarge", "GPUs", 2), files=row("aws", "g6.12xlarge", gpu_count=2)),
    Edit("another GPU", at(PRICES_SHEET, "g6.xlarge", "GPU", H100), files=row("aws", "g6.xlarge", gpu=H100)),
    Edit(
        "another name",
        at(PRICES_SHEET, "g6.12xlarge", "Type", "small.one"),
        change=lambda q: with_instance(q, "aws/g6.12xlarge", instance="aws/small.one"),
    ),
    Edit(
        "another provider",
        at(PRICES_SHEET, "g6.12xlarge", "Provider", "acme"),
        change=lambda q: with_instance(q, "aws/g6.12xlarge", instance="acme/g6.12xlarge", provider="acme"),
    ),
    Edit("spare row", in_spare_row(NEW), change=with_new_of(H200)),
    Edit("spare row, GPU unknown", in_spare_row({**NEW, "GPU": "a-gpu-of-the-future"}), moves=False),
    Edit("spare row, no price", in_spare_row({**NEW, "$ per hour": None}), moves=False),
    Edit("spare row, free", in_spare_row({**NEW, "$ per hour": 0}), moves=False),
]


NETWORK = "Network, Gb/s"


# Of books.EXPERTS: layouts of experts, and a model that spans machines.
OF_EXPERTS = [
    Edit("never span", {"in_span_machines": 0}, {"span_machines": "never"}),
    Edit("network to span", {"in_least_network_gbps": 401}, {"least_network_gbps": 401}),
    Edit("any network to span", {"in_least_network_gbps": 1}, {"least_network_gbps": 1}),
    Edit("more network to span than there is", {"in_least_network_gbps": 5000}, {"least_network_gbps": 5000}),
    Edit(
        "network of a machine",
        at(PRICES_SHEET, "p4de.24xlarge", NETWORK, 399),
        change=lambda q: with_instance(q, "aws/p4de.24xlarge", network_gbps=399),
    ),
    Edit(
        "network of a machine, not stated",
        at(PRICES_SHEET, "p4de.24xlarge", NETWORK, None),
        change=lambda q: with_instance(q, "aws/p4de.24xlarge", network_gbps=0),
    ),
    Edit("stages", {"in_max_pipeline_parallel_size": 1}, {"typed": {"inputs": {"max_pipeline_parallel_size": 1}}}),
    Edit(
        "a machine that holds it",
        at("GPUs", H200, "Memory, bytes", 190 * 10**9),
        {"typed": {"gpus": {H200: {"gpu_memory_bytes": 190 * 10**9}}}},
    ),
    Edit("another machine to span", in_spare_row({**NEW, NETWORK: 400}), change=with_new_of(H200, network_gbps=400)),
    Edit("near ties", {"in_near_tie_fraction": 1}, {"near_tie_fraction": 1}),
    Edit("GPU: keeps weights in it alone", at("GPUs", H100, "Weights fp8", 1), change=keeps("fp8", H100), moves=False),
    Edit(
        "links too slow for ranks",
        at("GPUs", H200, "Links, bytes/s", 1e11),
        {"typed": {"gpus": {H200: {"interconnect_bytes_per_second": 1e11}}}},
    ),
    Edit(
        "links made for ranks",
        at("GPUs", L40S, "Links, bytes/s", 3e11),
        {"typed": {"gpus": {L40S: {"interconnect_bytes_per_second": 3e11}}}},
        change=without_ranks(L40S),
    ),
    Edit("no experts", at("Models", "gpt-oss-120b", "Experts", 0), change=lambda q: reshape(q, 2, n_experts=0)),
    Edit("first token in a second", {"in_ttft_ms_chat": 1000, "in_ttft_ms_long_doc": 1000}, {"ttft_ms": "1000"}),
    Edit("no target of the first token", {"in_ttft_ms_chat": None, "in_ttft_ms_long_doc": None}, {"ttft_ms": "off"}),
    Edit(
        "a replica and headroom",
        {"in_survive": 1, "in_extra_headroom_fraction": 0.25},
        {"survive": "replica", "extra_headroom_fraction": 0.25},
    ),
    Edit("a zone of two", {"in_survive": 3, "in_zones": 2}, {"survive": "zone", "zones": 2}),
]


def unlike(mine: Sequence[Cell], theirs: Mapping[Place | str, CellValue]) -> tuple[int, list[Mismatch]]:
    """Formula cells of one workbook against the values of another program."""
    pairs = [(c, theirs.get(c.place)) for c in mine if c.is_formula]
    return len(pairs), [
        Mismatch(*c, got)
        for c, got in pairs
        if not same(c.value, got) and not half_percent(c.sheet, c.formula, c.value, got, theirs)
    ]


def errors(values: Mapping[Place | str, CellValue]) -> list[Any]:
    return [key for key, value in values.items() if isinstance(value, ErrorValue)]


def answers(solved: Solution) -> list[tuple[Any, ...]]:
    """The answers a reader acts on, for each load."""
    expected = books.expected(solved)
    return [(x["Instance"], x["Instances"], x["$ per month"], x["Fit"]) for x in expected]


def test_there_are_twenty_different_inputs_on_every_sheet_that_has_inputs(lean_book: Any) -> None:
    sheets = Sheets(lean_book[0])
    names = {key for edit in EDITS for key in edit.typed(sheets)}
    on_sheets = {key[0] for key in names if isinstance(key, tuple)}
    assert len(names) >= 40
    assert on_sheets == {"Models", "GPUs", PRICES_SHEET}
    assert {"in_headline_workload", "in_headline_tier"} <= names  # Sizing sheet


@needs_libreoffice
@pytest.mark.parametrize(
    ("book", "start", "edits"),
    [
        pytest.param("lean_book", books.SMALL, EDITS, id="small"),
        pytest.param("experts_book", books.EXPERTS, OF_EXPERTS, id="experts", marks=pytest.mark.long),
    ],
)
def test_formualizer_and_solve_agree_after_each_edit_and_libreoffice_after_some(
    book: str, start: Mapping[str, OptionValue], edits: list[Edit], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Every twentieth edit, in formualizer alone: LibreOffice opens a workbook slowly, and takes many edits at once
    below. All of them in --long, and a third of them in both."""
    edits = edits[:: amount(20, 1)]
    path, question = request.getfixturevalue(book)
    sheets = Sheets(path)
    poison(path, tmp_path / "poisoned.xlsx")
    some = [
        (i, edit(tmp_path / "poisoned.xlsx", tmp_path / f"edit-{i}.xlsx", edits[i].typed(sheets)))
        for i in range(0, len(edits) if IN_LONG else 0, 3)
    ]
    done = convert_all([file for _, file in some], tmp_path, timeout=300) if some else []
    by_libreoffice = {i: file for (i, _), file in zip(some, done, strict=True)}
    base, n_solve, n_engines = solve(question), 0, 0
    for i, edit_ in enumerate(edits):
        after = values_after(path, edit_.typed(sheets))
        if i in by_libreoffice:
            n, wrong = unlike(cells(by_libreoffice[i]), after)
            n_engines += n
            assert not wrong, f"{edit_.name}: LibreOffice and formualizer differ: {wrong[:5]}"
        solved = solve(edit_.question(tmp_path / f"catalog-{i}", start))
        assert not errors(after), f"{edit_.name}: errors in {errors(after)[:5]}"
        n, lines = differences(after, sheets, solved)
        n_solve += n
        assert not lines, f"{edit_.name}: {len(lines)} of {n} differ\n" + "\n".join(lines[:10])
        moved = answers(solved) != answers(base)
        assert moved or not edit_.moves, f"{edit_.name} changed no answer: it tests nothing"
    print(f"{len(edits)} edits: {n_engines} cells in two engines, {n_solve} cells against solve")


# Many edits at once --------------------------------------------------------------------------------------


OF_MANY_EDITS = "aws/g5.xlarge,aws/g6.12xlarge,aws/g6e.12xlarge,aws/g6e.48xlarge,aws/p5.48xlarge"


@needs_libreoffice
def test_the_default_workbook_after_many_edits_at_once(tmp_path: Path) -> None:
    """Nineteen inputs of the workbook that everybody builds, on every sheet, typed into one file; in the gate of two
    workloads, three tiers and few instances, as LibreOffice opens it slowly."""
    fewer = {} if IN_LONG else {"workloads": "chat,rag", "tiers": "1,32,1024", "instances": OF_MANY_EDITS}
    default_book, _ = books.build(tmp_path, "default", {**books.USUAL, **fewer}, with_decision=IN_LONG)
    sheets = Sheets(default_book)
    typed = {
        "in_context_rag": 20_000,
        "in_tier_2": 48,
        "in_headline_workload": "Chat",
        "in_headline_tier": 1024,
        "in_kv_cache_dtype": "fp8",
        "in_weight_dtype": "fp8",
        "in_gpu_memory_utilization": 0.92,
        "in_hours_per_month": 700,
        "in_discount_fraction": 0.2,
        "in_extra_headroom_fraction": 0.1,
        "in_survive": 3,
        "in_zones": 2,
        "in_block_size": 32,
        sheets.at("Models", "Llama 3.1 70B", "KV heads (full)"): 16,
        sheets.at("Models", "Llama 3.1 405B", "Longest context"): 16_384,
        sheets.at("GPUs", H100, "Most sequences"): 64,
        sheets.at(PRICES_SHEET, "p5.48xlarge", "$ per hour"): 9.75,
        sheets.at(PRICES_SHEET, "g6.12xlarge", "GPUs"): 6,
        sheets.at(PRICES_SHEET, "g5.xlarge", "GPU"): L40S,
        sheets.at(PRICES_SHEET, sheets.spare(), "Type"): "box.1",
    }
    file = edit(default_book, tmp_path / "edited.xlsx", typed)
    recalculated = convert_all([file], tmp_path)[0]
    read = cells(recalculated)
    n, wrong = unlike(read, values_after(default_book, typed))
    after = values(recalculated)
    assert not wrong and not errors(after)

    question = ask(
        books.catalog(),
        {
            **books.USUAL,
            **fewer,
            "tiers": "1,48,128,1024" if IN_LONG else "1,48,1024",
            "kv_cache_dtype": "fp8",
            "weight_dtype": "fp8",
            "gpu_memory_utilization": 0.92,
            "hours_per_month": 700,
            "discount_fraction": 0.2,
            "extra_headroom_fraction": 0.1,
            "survive": "zone",
            "zones": 2,
            "block_size": 32,
        },
    )
    question = with_workload(question, 1, 20_000, 1024)
    question = reshape(question, 1, full_kv_heads=16)
    question = reshape(question, 2, max_context_tokens=16_384)
    l40s = next(g for g in question.gpus if g.id == L40S)
    question = with_instance(question, "aws/p5.48xlarge", usd_per_hour=9.75)
    question = with_instance(question, "aws/g6.12xlarge", gpu_count=6)
    question = with_instance(question, "aws/g5.xlarge", gpu=l40s)
    solved = solve(with_limits(question, H100, 64, 8192))
    n_solve, lines = differences(after, sheets, solved)
    assert not lines, "\n".join(lines[:10])
    first = {key[1]: value for key, value in after.items() if isinstance(key, tuple) and key[0] == "Sizing sheet"}
    assert str(first["A3"]).startswith("1,024 chats at once: ")
    print(f"{n} cells in two engines, {n_solve} against solve")


@needs_libreoffice
@pytest.mark.some(1)
@pytest.mark.parametrize("share", [None, 0.7], ids=["of each GPU", "of all GPUs"])
def test_the_share_of_memory_of_an_engine_that_differs_by_gpu(share: float | None, tmp_path: Path) -> None:
    options = {
        "models": "8b",
        "engine": "sglang",
        "workloads": "chat,rag",
        "tiers": "32",
        "instances": "aws/g6.12xlarge,aws/p5en.48xlarge",
    }
    book, _ = books.build(tmp_path, "shares", options, with_decision=False)
    typed = {"in_gpu_memory_utilization": share} if share else {}
    file = edit(book, tmp_path / "edited.xlsx", typed)
    after = values(convert_all([file], tmp_path)[0])
    asked = options | ({"gpu_memory_utilization": share} if share else {})
    n_solve, lines = differences(after, Sheets(book), solve(ask(books.catalog(), asked)))
    assert n_solve and not lines, "\n".join(lines[:10])
