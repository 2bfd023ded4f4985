"""Every formula of the workbook, recalculated by other programs, gives the value that was written beside it."""

from __future__ import annotations

import re
from pathlib import Path

import books
import pytest
from amounts import IN_LONG
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from option_values import Options
from recalculation import (
    ALLOWED_FUNCTIONS,
    assert_recalculated,
    assert_recalculates,
    compare,
    convert_all,
    functions_used,
    needs_libreoffice,
    poison,
    recalculate_with_formualizer,
    tamper,
    values_after,
)
from workbook_cells import ErrorValue, formulas

from sheetgen.answer.solution import Solution
from sheetgen.question.sheet_question import Question, ask

RACK = "azure/Standard_ND128isr_NDR_GB200_v6"
CONSTANTS = {"0", "1", "2"}  # the 2 of keys and values, and of nothing else
# Places from 0 in the list of what a band is from; and the root of the mean that fills so many places: 4 and a half.
OF_SCOPE = re.compile(r"(?<=[A-Z\d)])<[1234],")
OF_HALVES = re.compile(r"(?<=ROUNDUP\(A1/)2(?=,0\))")  # of windows: a size of group that vLLM's planner tries
OF_PAIR = re.compile(r"(?<=<=)2(?=,INDEX\(cat_gpus_pair_link_bytes_per_second,)")  # GPUs that a bridge joins
OF_ROOT = re.compile(r"(?<=\+)4(?=\*A1,|\*\(MAX\(0,)|(?<=,)0\.5(?=\))|(?<=-calc_wait_z\)/)2")
# Below them a number in three digits has two decimals, or one, in a text.
OF_DIGITS = re.compile(r"(?<=<)9\.995(?=,)|(?<=>=)99\.95(?=,)")
OF_MIDDLE = re.compile(r"(?<=\(A1\+A1\)/)2(?=,)")  # of two levels, between which the chance of a rate is searched


@pytest.fixture(params=["families_book", pytest.param("default_book", marks=pytest.mark.long)])
def book(request: pytest.FixtureRequest) -> Path:
    path = request.getfixturevalue(request.param)
    assert isinstance(path, Path)
    return path


def assert_both_recalculate(book: Path, tmp_path: Path) -> None:
    """LibreOffice and formualizer both find the values that stand in the file; in the gate formualizer alone, as other
    workbooks have LibreOffice calculate the same functions."""
    if IN_LONG:
        print(f"{book.stem}: {assert_recalculates(book, tmp_path)}")
    poison(book, tmp_path / "poisoned.xlsx")
    result = compare(book, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches and result.n_poisoned == 0, str(result)


def solved_with_flag(book: Path, options: Options, gpu: str, name: str, label: str, flag: int) -> Solution:
    """The answer with a flag of a GPU typed, which the workbook gives, too."""
    wanted = books.solve(ask(books.catalog(), {**options, "typed": {"gpus": {gpu: {name: flag}}}}))
    sheets = books.Sheets(book)
    n_compared, lines = books.differences(values_after(book, {sheets.at("GPUs", gpu, label): flag}), sheets, wanted)
    assert n_compared and not lines
    return wanted


@pytest.fixture(scope="module")
def by_libreoffice(
    families_book: Path, least_book: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, tuple[str, str], list[Path]]:
    """The large workbook and the smallest with one wrong sign, poisoned and recalculated, as LibreOffice starts slowly:
    how many formulas of the first were poisoned, and where the sign is."""
    folder = tmp_path_factory.mktemp("by-libreoffice")
    n_poisoned = poison(families_book, folder / "families.xlsx")
    sheet, cell, _, _ = tamper(least_book, folder / "tampered.xlsx")
    poison(folder / "tampered.xlsx", folder / "least.xlsx")
    files = convert_all([folder / "families.xlsx", folder / "least.xlsx"], folder / "out", timeout=300)
    return n_poisoned, (sheet, cell), files


@needs_libreoffice
def test_libreoffice_recalculates_every_formula(
    families_book: Path, by_libreoffice: tuple[int, tuple[str, str], list[Path]]
) -> None:
    n_poisoned, _, (recalculated, _) = by_libreoffice
    result = assert_recalculated(families_book, recalculated, n_poisoned)
    assert result.n_compared == result.n_formulas > 5_000
    print(f"{families_book.stem}: {result}")


@pytest.mark.long
@needs_libreoffice
def test_libreoffice_recalculates_the_default_workbook(default_book: Path, tmp_path: Path) -> None:
    print(f"{default_book.stem}: {assert_recalculates(default_book, tmp_path)}")


@pytest.mark.long  # in the gate test_edits recalculates this workbook, edited, in both
@needs_libreoffice
def test_mixtures_of_experts_recalculate_in_both_programs(experts_book: tuple[Path, Question], tmp_path: Path) -> None:
    """Layouts of data-parallel ranks, and replicas that span machines."""
    book, question = experts_book
    solved = books.solve(question)
    assert any(choice.pipeline_parallel_size > 1 for choice in solved.choices)
    layouts = [solved.layout(choice.offer) for choice in solved.choices if choice.offer is not None]
    assert any(layout.data_parallel_size > 1 for layout in layouts)
    assert_both_recalculate(book, tmp_path)


def test_fewer_requests_than_ranks(tmp_path: Path) -> None:
    """One request on all of a machine, where layouts with idle ranks serve it too; three on two data-parallel ranks."""
    options = {
        "models": "deepseek-v3,kimi-k2",
        "workloads": "chat",
        "tiers": "1,3",
        "confidence": "0.5",
        "instances": "aws/p4d.24xlarge,aws/p5en.48xlarge,aws/p6-b200.48xlarge",
        "as_of": books.AS_OF,
        "headline": "chat:1",
    }
    book, question = books.build(tmp_path, "ranks", options, with_decision=IN_LONG)
    solved = books.solve(question)
    ranks = [solved.layout(choice.offer or 0).data_parallel_size for choice in solved.choices]
    assert ranks == [1, 2, 1, 2]
    assert_both_recalculate(book, tmp_path)
    sheets = books.Sheets(book)
    n_compared, lines = books.differences(values_after(book, {}), sheets, solved)
    assert n_compared and not lines


@pytest.mark.long
@needs_libreoffice
def test_few_experts_that_all_are_read(tmp_path: Path) -> None:
    """A share of experts left alone, 0.75 to the 2,560th: LibreOffice calls a power that small an error."""
    options = {
        "models": "mixtral-8x7b",
        "workloads": "chat",
        "instances": books.INSTANCES,
        "as_of": books.AS_OF,
        "headline": "chat:1",
    }
    book, question = books.build(tmp_path, "experts", options)
    assert_recalculates(book, tmp_path)
    assert any(choice.offer is not None for choice in books.solve(question).choices)


@pytest.mark.long
@needs_libreoffice
def test_hardware_without_a_kernel_for_the_models_attention(tmp_path: Path) -> None:
    """A live flag on GPUs: where it is set to 1, the cheaper A100 are rented. Beside it a hybrid with an index."""
    options = {
        "models": "deepseek-v4-flash,qwen3.8-flash-next",
        "workloads": "chat",
        "tiers": "1",
        "as_of": books.AS_OF,
        "instances": "aws/p4de.24xlarge,aws/p5en.48xlarge",
        "headline": "chat:1",
    }
    book, _ = books.build(tmp_path, "sparse", options, with_decision=IN_LONG)
    assert_both_recalculate(book, tmp_path)
    flag = "runs_sparse_attention", "Sparse attention (0 or 1)", 1
    wanted = solved_with_flag(book, options, "nvidia-a100-sxm4-80gb", *flag)
    assert wanted.candidate(wanted.choices[0].offer or 0).instance == "aws/p4de.24xlarge"


@pytest.mark.long
@needs_libreoffice
def test_stages_of_a_model_whose_layers_differ(tmp_path: Path) -> None:
    """By the order of its layers: the shares of each number of stages are values on Models. Beside it one with windows,
    which are charged the batches that its stages have under way."""
    options = {
        "models": "253b,70b,trinity-large",
        "workloads": "chat,long-doc",
        "tiers": "1,8",
        "headline": "chat:1",
        "weight_dtype": "bf16",
        "instances": "aws/g6e.48xlarge,aws/p4d.24xlarge",
        "tpot_ms": "off",
        "ttft_ms": "off",
        "as_of": books.AS_OF,
    }
    book, question = books.build(tmp_path, "in-order", options, with_decision=IN_LONG)
    solved = books.solve(question)
    assert {3, 4} & {solved.choices[row].pipeline_parallel_size for row in range(4)}
    staged = [choice.pipeline_parallel_size for choice in solved.choices[8:] if choice.offer is not None]
    assert staged and min(staged) > 1
    assert_both_recalculate(book, tmp_path)


@pytest.mark.long
@needs_libreoffice
def test_replicas_over_the_trays_of_a_rack(tmp_path: Path) -> None:
    """Two trays of 4 GPUs each, joined by NVLink; on Decision, too."""
    options = {
        "models": "deepseek-v3,405b",
        "workloads": "chat,long-doc",
        "tiers": "1,8",
        "headline": "chat:8",
        "instances": f"{RACK},aws/g6e.12xlarge",
        "survive": "machine",
        "as_of": books.AS_OF,
    }
    book, question = books.build(tmp_path, "racks", options)
    solved = books.solve(question)
    layouts = {solved.layout(choice.offer) for choice in solved.choices if choice.offer is not None}
    assert len([layout for layout in layouts if layout.n_gpus == 8]) > 1
    assert_both_recalculate(book, tmp_path)
    by_place = values_after(
        book,
        {
            "in_decision_model": "Llama 3.1 405B",
            "in_decision_concurrent_requests": 8,
            "in_decision_context_tokens": 16384,
            "in_decision_ttft_ms": None,
        },
    )
    assert by_place["Decision", "D7"] == "4 × ND128isr NDR GB200 v6"


@pytest.mark.long
@needs_libreoffice
def test_entries_of_fp8_latents_by_gpu(tmp_path: Path) -> None:
    """Sparse attention keeps 656 bytes a token and layer on Hopper, 576 on SM100: a live flag on GPUs."""
    options = {
        "models": "glm-5.2,8b",
        "workloads": "long-doc",
        "tiers": "32",
        "as_of": books.AS_OF,
        "instances": "aws/g6.12xlarge,aws/p6-b200.48xlarge",
        "headline": "long-doc:32",
        "weight_dtype": "fp8",
        "kv_cache_dtype": "fp8",
    }
    book, _ = books.build(tmp_path, "latents", options)
    assert_recalculates(book, tmp_path)
    solved = books.solve(ask(books.catalog(), options))
    chosen = solved.choices[0].offer
    assert chosen is not None and solved.candidate(chosen).gpu.id == "nvidia-b200-sxm6-180gb"
    kv_bytes = float(solved.loads["kv_bytes"][0])
    for flag in (0, 1):
        label = "FP8 latents as they are (0 or 1)"
        wanted = solved_with_flag(book, options, "nvidia-b200-sxm6-180gb", "plain_fp8_latent", label, flag)
        assert wanted.choices[0].offer == chosen
        assert float(wanted.loads["kv_bytes"][0]) / kv_bytes == pytest.approx(1 if flag else 53_940 / 47_700)


@needs_libreoffice
def test_libreoffice_finds_one_wrong_sign(
    least_book: Path, by_libreoffice: tuple[int, tuple[str, str], list[Path]]
) -> None:
    _, wrong, (_, recalculated) = by_libreoffice
    result = compare(least_book, recalculated)
    assert wrong in {(m.sheet, m.cell) for m in result.mismatches}


@pytest.mark.long  # in the gate LibreOffice recalculates this workbook, and formualizer those of edits
@pytest.mark.parametrize("book", ["families_book", "default_book"], indirect=True)
def test_formualizer_recalculates_every_formula(book: Path, tmp_path: Path) -> None:
    """The default one, edited, stands in test_edits: there LibreOffice and formualizer agree in every cell."""
    poisoned = tmp_path / "poisoned.xlsx"
    n_poisoned = poison(book, poisoned)
    result = compare(book, recalculate_with_formualizer(poisoned, tmp_path / "out.xlsx"))
    assert not result.mismatches and result.n_poisoned == 0, str(result)
    assert n_poisoned == result.n_compared == result.n_formulas


def test_formualizer_finds_one_wrong_sign(least_book: Path, tmp_path: Path) -> None:
    sheet, cell, _, _ = tamper(least_book, tmp_path / "tampered.xlsx")
    result = compare(least_book, recalculate_with_formualizer(tmp_path / "tampered.xlsx", tmp_path / "out.xlsx"))
    assert (sheet, cell) in {(m.sheet, m.cell) for m in result.mismatches}


def test_the_vocabulary_is_portable(book: Path) -> None:
    assert functions_used(book) <= ALLOWED_FUNCTIONS
    assert not [f.formula for f in formulas(book) if "_xlfn" in f.formula or "^" in f.formula]


def test_every_formula_has_a_value_beside_it_and_none_is_an_error(book: Path) -> None:
    bad = [f for f in formulas(book) if f.value is None or f.value == "" or isinstance(f.value, ErrorValue)]
    assert not bad, bad[:5]
    assert not [f for f in formulas(book) if isinstance(f.value, str) and f.value.startswith("#")]


def test_no_number_stands_in_a_formula_but_0_and_1_and_the_2_of_keys_and_values(book: Path) -> None:
    numbers: dict[str, list[str]] = {}
    unlike = {re.sub(r"\$?\b[A-Z]{1,3}\$?\d+\b", "A1", f.formula): f"{f.sheet}!{f.cell}" for f in formulas(book)}
    for text, place in unlike.items():  # one of all formulas that differ in their references only
        for pattern in (OF_HALVES, OF_PAIR, OF_ROOT, OF_MIDDLE, OF_DIGITS):
            text = pattern.sub("0", text)
        text = OF_SCOPE.sub("<0,", text)
        for token in Tokenizer("=" + text).items:
            if token.type == Token.OPERAND and token.subtype == Token.NUMBER:
                numbers.setdefault(token.value, []).append(f"{place} ={text}")
    assert set(numbers) <= CONSTANTS, {n: places[:2] for n, places in numbers.items() if n not in CONSTANTS}
    # The 2 counts keys and values of a head, is the least number of pipeline stages: MAX(2,ROUNDUP(...)), or the
    # decimals of a price or of a chance in words.
    others = [
        p for p in numbers["2"] if not re.search(r"(?<![\d.])2\*\$?\w|MAX\(2,ROUNDUP\(|(?:ROUND|FIXED)\(.+,2\)", p)
    ]
    assert not others, others[:3]
