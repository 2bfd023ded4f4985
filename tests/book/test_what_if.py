"""What-if: any model and hardware of the catalogs, chosen in the workbook, gives what Python gives for them."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import amount
from recalculation import compare, poison, recalculate_with_formualizer, values_after
from what_if_asked import asked_of
from workbook_cells import ErrorValue, values

import sheetgen
from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.solve import solve
from sheetgen.book.what_if_choices import BASE, what_if
from sheetgen.catalog.engines import load_engine
from sheetgen.question.sheet_question import Question, ask

ENGINES = ("vllm", "sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp")
OPTIONS = {"models": "8b", "workloads": "rag", "tiers": "32", "instances": books.INSTANCES, "as_of": books.AS_OF}
DTYPES = ("recommended", "published", "bf16", "fp8", "int8", "int4", "nvfp4")


N_CHOICES = amount(3, 48)
FIRST_CHOICE = amount(33, 0)  # in the gate three for three engines, one of them on hardware that holds its load
LONGEST, OF_HARDWARE = "Longest context for all on one replica", ("Rent", "Its $ per month", "Its speed")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("what-if"), "one", OPTIONS)[0]


@pytest.fixture(scope="module")
def book_of(book: Path) -> Callable[[str], Path]:
    """The same workbook for another engine."""
    built = {"vllm": book}

    def find(engine: str) -> Path:
        if engine not in built:
            built[engine] = books.build(book.parent, engine, {**OPTIONS, "engine": engine})[0]
        return built[engine]

    return find


GPUS_OF = {c.instance: c.gpu_count for c in ask(books.catalog(), OPTIONS).candidates}


@functools.cache
def served() -> list[Any]:
    return [m for m in books.catalog().models() if m.kind != "draft"]


def picks(rng: random.Random) -> dict[str, Any]:
    """Choices on the page, from usual to odd."""
    sized = [g.id for g in books.catalog().gpus() if g.memory.engine_bytes]
    hardware = rng.choice(sized) if rng.random() < 0.3 else rng.choice(books.INSTANCES.split(","))
    context = rng.choice((1, 500, 4096, 4096, 16_384, 16_384, 32_768, 100_000, 131_072, 1_000_000))
    return {
        "model": rng.choice(served()).name,
        "hardware": hardware,
        "tensor_parallel_size": rng.choice(("auto", "auto", "auto", "auto", 1, 2, 4, 8)),
        "weight_dtype": rng.choice(DTYPES),
        "kv_cache_dtype": rng.choice(("auto", "auto", "fp8", "int8")),
        "users": rng.choice((1, 1, 3, 3, 32, 200, 5000)),
        "context_tokens": context,
        "answer_tokens": rng.choice((0, 1, 1024)),
    }


def expected(picked: dict[str, Any], engine: str) -> dict[str, Any]:
    """What solve says of the same question."""
    solved = solve(ask(books.catalog(), {**OPTIONS, "engine": engine}))
    one = what_if(solved)
    asked = asked_of(solved.question, {**one.picked, **picked}, one)
    assert (asked.models[0].model.name, asked.engine.engine) == (picked["model"], engine)
    after = solve(asked)
    choice = after.choices[BASE]
    return {
        "rec_whatif_n_instances": float(choice.n_instances) if choice.offer is not None else "-",
        "rec_whatif_monthly_usd": choice.monthly_usd if choice.offer is not None else "-",
        "rec_whatif_instance": choice.verdict if choice.offer is None else after.candidate(choice.offer).instance,
        "sequences": [float(after.sequences["sequences"][BASE, k]) for k in range(4)],
        "stages": [float(after.sequences["pipeline_stages"][BASE, k]) for k in range(4)],
        "limit": asked.models[0].model.max_context_tokens,
        "on_hardware": on_hardware(asked, picked),
        "is_even": is_fallback(after, BASE),
    }


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(
    "picked,words",
    [
        ({"kv_cache_dtype": "mxfp4"}, "aws/g6e.xlarge does not run a KV cache in mxfp4"),
        (
            {"weight_dtype": "nvfp4", "hardware": "nvidia-v100-sxm2-32gb"},
            "nvidia-v100-sxm2-32gb does not run weights in nvfp4",
        ),
        ({"kv_cache_dtype": "fp8"}, "3 × g6e.xlarge"),
    ],
)
def test_it_says_why_hardware_is_not_enough(picked: dict[str, Any], words: str, book: Path) -> None:
    changes = {f"in_whatif_{k}": v for k, v in picked.items()}
    found = values_after(book, changes)
    at = {label: f"F{row}" for row, label in _rows(book).items()}
    assert found["What-if", at["Rent"]] == words
    not_run = "does not run" in words
    assert (found["What-if", at["Where it breaks"]] == f"{words}.") == not_run
    assert (found["What-if", at[LONGEST]] == "-") == not_run


HARDWARE = {"h100": "aws/p5.48xlarge", "l40s": "nvidia-l40s-48gb"}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "model,name,stages,gpu",
    [
        ("8b", "Llama 3.1 8B", 1, "h100"),
        ("deepseek-v3", "DeepSeek-V3", 2, "h100"),
        ("405b", "Llama 3.1 405B", 2, "h100"),
        ("253b", "Nemotron Ultra 253B", 2, "l40s"),  # whose layers differ: a half of them leaves more
    ],
)
def test_the_longest_context_on_stages_is_that_of_size(
    model: str, name: str, stages: int, gpu: str, book: Path
) -> None:
    users = 32 if gpu == "h100" else 2
    picked = {"model": name, "hardware": HARDWARE[gpu], "tensor_parallel_size": 8, "users": users}
    picked["weight_dtype"] = "published"
    changes = {f"in_whatif_{k}": v for k, v in picked.items()}
    found = values_after(book, changes)
    of_size = sheetgen.size(
        model=model,
        gpu=gpu,
        tensor_parallel_size=8,
        pipeline_parallel_size=stages,
        context="16k",
        concurrent_requests=users,
        weight_dtype="published",
    )
    at = {label: f"F{row}" for row, label in _rows(book).items()}
    assert found["What-if", at[LONGEST]] == of_size["max_context_tokens_that_fit"] > 10_000


@pytest.mark.long
def test_a_sheet_without_a_target_is_built_and_agrees(tmp_path: Path) -> None:
    path, _ = books.build(tmp_path, "off", {**OPTIONS, "tpot_ms": "off"})
    assert values(path)["chk_all"] == "OK"
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "again.xlsx"))
    assert not result.mismatches and result.n_compared > 5_000, str(result)


def on_hardware(asked: Question, picked: dict[str, Any]) -> Any:
    """$ per month and words of the speed where nothing but the chosen hardware may be rented, at the level at which all
    hardware is judged: an even chance is no answer beside others that serve at the confidence."""
    of_it = [c for c in asked.candidates if picked["hardware"] in (c.instance, c.gpu.id)]
    if not of_it:
        return "-"
    alone = solve(dataclasses.replace(asked, candidates=tuple(of_it)))
    choice = alone.choices[BASE]
    if choice.offer is None or (is_fallback(alone, BASE) and not is_fallback(solve(asked), BASE)):
        return "-"
    (low, high), _, _ = choice.bands
    ms = [round_half_up(seconds * 1e3) for seconds in (choice.tpot_seconds, low, high)]
    return choice.monthly_usd, "{:,} ms a token ({:,} to {:,})".format(*ms), choice.n_instances


def round_half_up(x: float) -> int:
    return int(x + 0.5)


def test_random_choices_give_what_solve_gives(book: Path, book_of: Callable[[str], Path]) -> None:
    found_any, on_it, n = 0, 0, 0
    sheet = {cell: key for key, cell in _rows(book).items()}
    for tried, seed in enumerate(range(FIRST_CHOICE, FIRST_CHOICE + 10 * N_CHOICES)):
        if tried >= N_CHOICES and on_it > amount(0, 2):
            break
        picked, engine = picks(random.Random(seed)), ENGINES[seed % len(ENGINES)]
        found = values_after(book_of(engine), {f"in_whatif_{k}": v for k, v in picked.items()})
        errors = [key for key, value in found.items() if isinstance(value, ErrorValue)]
        assert not errors, f"{picked}: errors in {errors[:5]}"
        want = expected(picked, engine)
        if want["is_even"]:  # the page keeps the level at which it was built, here the confidence
            assert found["rec_whatif_n_instances"] == "-", picked
            continue
        for name in ("rec_whatif_instance", "rec_whatif_n_instances", "rec_whatif_monthly_usd"):
            same = found[name] == want[name] or (
                isinstance(want[name], float) and found[name] == pytest.approx(want[name], rel=1e-9)
            )
            assert same, f"{picked}: {name} is {found[name]!r}, solve says {want[name]!r}"
            n += 1
        row = sheet["Requests at once that one replica holds"]
        held = [found["What-if", f"{c}{row}"] for c in "FGHI"]
        gpus = GPUS_OF.get(picked["hardware"], 8) if want["limit"] else 0
        sizes = zip((1, 2, 4, 8), want["sequences"], want["stages"], strict=True)
        shown = [held_here if t <= gpus and stages <= 1 else "-" for t, held_here, stages in sizes]
        assert held == shown, f"{picked}: {held} sequences on {gpus} GPUs, solve says {shown}"
        n += 4
        if picked["tensor_parallel_size"] == "auto":
            of_it, answer = want["on_hardware"], [found["What-if", f"F{sheet[of]}"] for of in OF_HARDWARE]
            if of_it == "-":
                assert answer[1:] == ["-", "-"] and "×" not in answer[0], (
                    f"{picked}: {answer}, solve says none holds it"
                )
            else:
                assert answer[1] == pytest.approx(of_it[0], rel=1e-9), f"{picked}: {answer}, solve says {of_it}"
                assert answer[2].startswith(of_it[1]), f"{picked}: {answer}, solve says {of_it}"
                assert answer[0].startswith(f"{of_it[2]:g} × "), f"{picked}: {answer}, solve says {of_it}"
            n, on_it = n + 3, on_it + (of_it != "-")
        found_any += want["rec_whatif_n_instances"] != "-"
    assert found_any > amount(0, 6), "the choices hardly ever fit"
    assert on_it > amount(0, 2), "the chosen hardware hardly ever holds the load"
    print(f"{tried} random choices on What-if, {n} figures")


def _rows(book: Path) -> dict[int, str]:
    """By row, the labels of the answer's side of the page."""
    found = values(book)
    return {
        int(key[1][1:]): value
        for key, value in found.items()
        if isinstance(key, tuple) and key[0] == "What-if" and key[1][0] == "E" and isinstance(value, str)
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("model", "gpu", "size", "users", "engine"),
    [("70b", "h100", 4, 8, "vllm"), ("gpt-oss-120b", "h200", 2, 16, "vllm"), ("gemma-3-27b", "a100", 2, 4, "sglang")],
)
def test_the_longest_context_is_that_of_size(
    book_of: Callable[[str], Path], model: str, gpu: str, size: int, users: int, engine: str
) -> None:
    catalog = books.catalog()
    known = load_engine(catalog, engine, None)
    row = sheetgen.size(
        model=model,
        gpu=gpu,
        tensor_parallel_size=size,
        concurrent_requests=users,
        context_tokens=4096,
        output_tokens=1024,
        engine=engine,
        gpu_memory_utilization=known.gpu_memory_utilization,
        weight_dtype="published",
    )
    typed = {
        "model": catalog.model(model).name,
        "hardware": catalog.gpu(gpu).id,
        "tensor_parallel_size": size,
        "users": users,
        "context_tokens": 4096,
        "weight_dtype": "published",
    }
    found = values_after(book_of(engine), {f"in_whatif_{k}": v for k, v in typed.items()})
    at = {label: n for n, label in _rows(book_of(engine)).items()}[LONGEST]
    assert found["What-if", f"F{at}"] == row["max_context_tokens_that_fit"]


def test_the_large_answer_is_the_cheapest_of_all_hardware_and_no_chosen_one_times_many(book: Path) -> None:
    """5,000 people on a small instance: what stands there in large print is what `solve` recommends."""
    found = values_after(book, {"in_whatif_users": 5_000, "in_whatif_hardware": "aws/g6e.xlarge"})
    at = {label: f"F{row}" for row, label in reversed(_rows(book).items())}  # the first of each label
    instance = str(found["rec_whatif_instance"]).partition("/")[2]
    assert found["What-if", at["To rent"]] == f"{found['rec_whatif_n_instances']:g} × {instance}"
    assert found["What-if", at["$ per month"]] == found["rec_whatif_monthly_usd"]
    assert found["What-if", at["Its $ per month"]] > found["rec_whatif_monthly_usd"]


def test_half_the_context_moves_the_gpus(book: Path) -> None:
    """What the page is for: halving and doubling the context is seen at once."""
    gpus = []
    for context in (8_192, 16_384, 32_768, 65_536):
        found = values_after(
            book,
            {
                "in_whatif_context_tokens": context,
                "in_whatif_users": 200,
                "in_whatif_ttft_ms": None,
            },
        )
        gpus.append(found["rec_whatif_hardware_gpus"])
    assert gpus == sorted(gpus) and len(set(gpus)) == 4


def test_a_model_typed_in_a_spare_row_is_offered_and_sized(book: Path) -> None:
    """All facts of a model of which no FP8 checkpoint is listed, under a name of one's own: the what-if answers as for
    the catalog's entry."""
    sheets = books.Sheets(book)
    model = books.catalog().model("exaone-3.5-32b")
    facts = {**model.shape(), "own_weight_dtype": "bf16", "own_kv_dtype": "bf16"}
    labels = _labels(book)
    spare = 6  # the row after the one model
    typed: dict[Any, Any] = {
        ("Models", f"{sheets.columns['Models', labels[k]]}{spare}"): v for k, v in facts.items() if k in labels and v
    }
    typed |= {("Models", f"A{spare}"): "Our own 32B", "in_whatif_model": "Our own 32B"}
    own, listed = values_after(book, typed), values_after(book, {"in_whatif_model": model.name})
    names = [k for k in listed if isinstance(k, str) and k.startswith(("rec_whatif", "rec_case"))]
    assert len(names) >= 8 and listed["rec_whatif_n_instances"] != "-"
    assert {k: own[k] for k in names} == {k: listed[k] for k in names}


def _labels(book: Path) -> dict[str, str]:
    """By the column's name the head's label on Models."""
    from sheetgen.book.catalogs import LABELS

    return {**LABELS, "own_weight_dtype": "Own weights", "own_kv_dtype": "Own KV"}
