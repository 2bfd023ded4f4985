"""`pull` of an edited workbook: what was typed is read, the answers are the workbook's, and it agrees with them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import books
import openpyxl
import pytest
from amounts import IN_LONG, amount
from answers import document
from cells_of import LEAN, TINY, Places, without_picks
from option_edits import option_edits
from option_values import Options
from packages import with_options
from random_edits import random_edits
from recalculation import edit, edit_and_recalculate, values_after
from workbook_cells import CellValue, Values, areas, values

from sheetgen.answer.solve import solve
from sheetgen.book.carried import formula_digests
from sheetgen.catalog import Catalog
from sheetgen.catalog.base import read_text
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.question.overrides import TABLES, Written, input_kind
from sheetgen.question.sheet_question import ask
from sheetgen.readback.audit import agree, parsed
from sheetgen.readback.pulled import NOT_COMPARED, Pulled, option_of, pull
from sheetgen.readback.pulled_words import data, lines, scenario_text

N_RANDOM = amount(1, 16)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("pull"), "tiny", LEAN)[0]


@pytest.fixture(scope="module")
def as_built(book: Path) -> Pulled:
    return pull(book, books.catalog())


@pytest.fixture(scope="module")
def places(book: Path) -> Places:
    return Places(book)


def edited(book: Path, folder: Path, cells: Values) -> Path:
    """The workbook with these cells typed into, recalculated."""
    return edit_and_recalculate(book, folder / "edited.xlsx", cells)


def again(pulled: Pulled, catalog: Catalog | None = None) -> dict[str, Any]:
    """The answer of the scenario file that a pull writes, as JSON."""
    text = scenario_text(pulled.options, pulled.overrides, "edited.xlsx", "1")
    read = read_text(text, "again.yaml").data
    typed = read.pop("typed", None)
    options = {name: ",".join(map(str, v)) if isinstance(v, list) else str(v) for name, v in read.items()}
    if typed:
        options["typed"] = Written(typed, str)
    return document(solve(ask(catalog or books.catalog(), options)))


def test_another_build_of_sheetgen_is_named_and_no_formula_called_overwritten(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Yesterday's build wrote Decision otherwise: its inputs are read, and what was typed over a formula is counted."""
    today = formula_digests
    monkeypatch.setattr(
        "sheetgen.readback.pulled.formula_digests", lambda sheets: {**today(sheets), "Decision": "of yesterday"}
    )
    typed = edited(book, tmp_path, {"in_hours_per_month": 500})
    pulled = pull(typed, books.catalog())
    assert pulled.is_of_another_build and pulled.audit is None and not pulled.n_lost and not pulled.other_results
    assert pulled.options["hours_per_month"] == "500"
    assert [line for line in lines(pulled) if "another build" in line] and data(pulled)["is_of_another_build"]
    workbook = openpyxl.load_workbook(typed)
    workbook["Decision"]["D6"] = "cheap"
    workbook.save(tmp_path / "over.xlsx")
    over = pull(tmp_path / "over.xlsx", books.catalog())
    assert over.n_lost == data(over)["n_lost"] == 1


def test_a_workbook_as_built_has_no_changes_and_agrees(as_built: Pulled) -> None:
    pulled = as_built
    assert not pulled.changed and not pulled.fixed and not pulled.notes and not pulled.overrides
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.audit.overwritten
    assert pulled.audit.n_formulas > 4_000
    assert next(lines(pulled)).startswith("nothing ")


def test_random_edits_come_back_and_give_what_the_workbook_says(book: Path, places: Places, tmp_path: Path) -> None:
    n_changes = n_results = 0
    for seed in range(N_RANDOM):
        rng = random.Random(1000 + seed)
        cells = {**random_edits(rng, places).cells, **option_edits(rng)}
        for work in ("chat", "long_doc"):  # an answer is not longer than its context
            answer, context = (
                cells.get(name, places.values[places.columns[name][0]])
                for name in (f"in_output_{work}", f"in_context_{work}")
            )
            if answer > context:
                cells[f"in_output_{work}"] = context
        pulled = pull(edited(book, tmp_path, cells), books.catalog())
        case = f"seed {seed}: {cells}"
        assert not pulled.other_results, f"{case}\n{pulled.other_results[:5]}"
        assert pulled.audit is not None and not pulled.audit.overwritten, f"{case}\n{pulled.audit}"
        assert pulled.audit.verdict == "agrees", f"{case}\n{[str(p) for p in pulled.audit.wrong[:10]]}"
        answer = document(pulled.solved)
        assert again(pulled) == answer, case
        told = {str(change.place) for change in pulled.changed}
        assert len(told) == len(pulled.changed)
        n_changes += len(pulled.changed)
        n_results += len(pulled.snapshot.results)
        assert data(pulled)["recalculation"] == "agrees" and len(list(lines(pulled))) > 2
    assert n_changes > 20 * N_RANDOM
    print(f"{N_RANDOM} edited workbooks pulled: {n_changes} changes read, {n_results} results equal")


@pytest.mark.long
def test_a_tier_changed_under_the_first_sheet_is_told_there_and_agrees(
    book: Path, as_built: Pulled, tmp_path: Path
) -> None:
    """The yellow cell of the first sheet does not follow the tiers: its answer stays with the number that it says."""
    before = as_built.solved.question
    number = before.headline[1] + 1
    path = edited(book, tmp_path, {f"in_tier_{number}": 47})
    pulled = pull(path, books.catalog())
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.audit.overwritten
    assert [change.name for change in pulled.changed] == [f"tier_{number}"] and not pulled.overrides.get(
        "inputs", {}
    ).get("headline_tier")
    after, asked = pulled.solved.question, before.tiers[number - 1]
    assert (after.tiers[number - 1], after.typed, after.numbers[after.headline[1]]) == (47, asked, asked)
    assert pulled.options["headline"].endswith(f":{asked}")


@pytest.mark.long
def test_a_headline_of_no_tier_is_a_change_and_another_spelling_of_a_precision_none(book: Path, tmp_path: Path) -> None:
    tier = pull(book, books.catalog()).solved.question.tiers[0]
    for cells_typed, changed in (
        ({"in_headline_tier": 35}, ["headline"]),
        ({"in_headline_tier": tier, "in_kv_cache_dtype": "fp8_e4m3"}, ["kv_cache_dtype", "headline"]),
    ):
        pulled = pull(edited(book, tmp_path, cells_typed), books.catalog())
        assert pulled.audit is not None and pulled.audit.verdict == "agrees", pulled.audit.wrong
        assert [change.name for change in pulled.changed] == changed


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "typed", "problem"),
    [
        ("headline_workload", "banana", "'Sizing sheet'!B4: Workload is 'banana'. Allowed: Chat, Long document."),
        ("headline_workload", None, "'Sizing sheet'!B4: Workload is blank. Allowed: Chat, Long document."),
        ("headline_tier", None, "'Sizing sheet'!D4: At once is empty. Type a whole number from 1."),
        ("money_model", "Llama 8B", "Model is 'Llama 8B'. Allowed: Llama 3.1 8B,"),
        ("decision_model", "Llama 3.1 80B", " more in its list. Did you mean Llama 3.1 8"),
        ("decision_provider", "banana", "Provider is 'banana'. Allowed: any, "),
        ("decision_purchase", "rent", "Pay is 'rent'. Allowed: on-demand, "),
        ("decision_workload", "banana", "Workload is 'banana'. Allowed: as typed, "),
        ("currency", "EUR", "is EUR, and its rate in Inputs!B"),
    ],
)
def test_what_no_dropdown_offers_is_refused_with_what_is_allowed(
    book: Path, tmp_path: Path, name: str, typed: object, problem: str
) -> None:
    with pytest.raises(SheetgenError) as raised:
        pull(edit(book, tmp_path / "edited.xlsx", {f"in_{name}": typed}), books.catalog())
    (line,) = raised.value.problems
    assert problem in line


@pytest.mark.parametrize("typed", [0, 2.5])
def test_a_headline_of_no_whole_number_is_an_error_with_its_cell(book: Path, tmp_path: Path, typed: object) -> None:
    with pytest.raises(SheetgenError, match=r"'Sizing sheet'!D4: headline tier is "):
        pull(edit(book, tmp_path / "edited.xlsx", {"in_headline_tier": typed}), books.catalog())


@pytest.mark.long
def test_without_recalculation_the_answer_is_of_the_new_inputs(book: Path, places: Places, tmp_path: Path) -> None:
    price = places.rows("instances")["aws/p5.48xlarge"]["price_usd_per_hour"]
    typed = {"in_context_chat": 8192, price: 10.0}
    pulled = pull(edit(book, tmp_path / "typed.xlsx", typed), books.catalog())
    assert pulled.audit is not None and pulled.audit.verdict == "not recalculated"
    assert pulled.other_results
    by_place = values_after(book, typed)
    assert pulled.after.results
    assert all(agree(now, by_place[f"rec_{name}"]) for name, now in pulled.after.results.items())
    if IN_LONG:
        fresh = pull(edited(book, tmp_path, typed), books.catalog())
        assert document(fresh.solved) == document(pulled.solved)
        assert all(agree(now, fresh.snapshot.results[name]) for name, now in pulled.after.results.items())
    text = "\n".join(lines(pulled))
    assert "(Inputs!B5): 4,096 -> 8,192 tokens" in text
    assert f"('{price[0]}'!{price[1]}): 55.04 -> 10 (-82 %)" in text
    assert "was not recalculated" in text


TYPED_OVER: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"in_context_chat": 40_000}, {"contexts": "chat=40000,long-doc=131072"}),
    ({"in_confidence": 0.9}, {"confidence": "0.9"}),
    ({"in_weight_dtype": "published"}, {"weight_dtype": "published"}),
    ({"in_requests_per_user_per_day_chat": 45}, {"requests_per_user_per_day": "chat=45,long-doc=5"}),
    ({"in_tpot_ms_chat": 30}, {"tpot_ms": "chat=30"}),
    ({"in_ttft_ms_long_doc": None}, {"ttft_ms": "long-doc=off"}),
    (
        {"in_tpot_ms_chat": None, "in_context_chat": 9000},
        {"tpot_ms": "chat=off", "contexts": "chat=9000,long-doc=131072"},
    ),
]
QUICK = {**books.LEAST, "workloads": "chat,long-doc", "instances": "aws/p5.4xlarge,aws/g6e.xlarge"}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("quick"), "quick", QUICK)[0]


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(("cells", "options"), TYPED_OVER, ids=lambda cells: ",".join(cells))
def test_a_cell_typed_over_is_the_option(
    cells: dict[str, CellValue], options: dict[str, str], quick: Path, tmp_path: Path
) -> None:
    """The other targets hold the formula by which they follow their context: nobody states them."""
    pulled = pull(edited(quick, tmp_path, cells), books.catalog())
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.audit.overwritten
    assert not pulled.other_results and pulled.notes == ()
    assert {f"in_{change.name}" for change in pulled.changed} == set(cells)
    assert {name: pulled.options[name] for name in pulled.options if pulled.options[name] != QUICK.get(name)} == options
    as_asked = document(solve(ask(books.catalog(), {**QUICK, **options})))["cells"]
    assert document(pulled.solved)["cells"] == as_asked == again(pulled)["cells"]
    assert as_asked != document(solve(ask(books.catalog(), QUICK)))["cells"]


@pytest.mark.long
def test_a_input_that_follows_its_context_is_not_stated_by_what_it_held_before(quick: Path, tmp_path: Path) -> None:
    """Of a workbook that was not recalculated."""
    typed = edit(quick, tmp_path / "typed.xlsx", {"in_context_chat": 40_000, "in_tpot_ms_long_doc": 200})
    pulled = pull(typed, books.catalog())
    assert pulled.options["tpot_ms"] == "long-doc=200" and "ttft_ms" not in pulled.options and pulled.notes == ()
    chat = pulled.solved.question.workloads[0]
    assert chat.tpot_target_ms == pytest.approx(50 * (40_000 / 16_384) ** (1 / 3))
    assert chat.ttft_target_ms == pytest.approx(1000 + 0.4 * (40_000 - chat.output_tokens))


@pytest.mark.long
def test_targets_on_decision_follow_its_tokens_through_pull(quick: Path, tmp_path: Path) -> None:
    """Typed tokens alone are carried, recalculated or not; a target that is typed over is, too."""
    tokens = {"in_decision_context_tokens": 32_768}
    for path in (edited(quick, tmp_path, tokens), edit(quick, tmp_path / "typed.xlsx", tokens)):
        pulled = pull(path, books.catalog())
        assert dict(pulled.overrides["inputs"]) == {"decision_context_tokens": 32_768}
        assert pulled.after.inputs["decision_tpot_ms"] == pytest.approx(50 * 2 ** (1 / 3), rel=1e-12)
        assert "decision_tpot_ms" in pulled.after.worked_out
        assert pulled.asked_apart == ("Decision!B10, Tokens of each 32,768",)
        assert len(pulled.notes) == 1 and "page and PDF answer that of Inputs" in pulled.notes[0]
    pulled = pull(edited(quick, tmp_path, {"in_decision_workload": "Chat"}), books.catalog())
    assert dict(pulled.overrides["inputs"]) == {"decision_workload": "Chat"}, "whose lengths the targets follow"
    assert pulled.after.inputs["decision_ttft_ms"] == pytest.approx(1000 + 0.4 * 3072)
    pulled = pull(edited(quick, tmp_path, {"in_decision_tpot_ms": 30}), books.catalog())
    assert dict(pulled.overrides["inputs"]) == {"decision_tpot_ms": 30}
    assert "decision_tpot_ms" not in pulled.after.worked_out


def test_a_cell_of_decision_that_does_not_count_asks_nothing(quick: Path, tmp_path: Path) -> None:
    typed = {"in_decision_users": 300, "in_decision_concurrent_requests": 7}
    assert pull(edit(quick, tmp_path / "a.xlsx", typed), books.catalog()).asked_apart == ("Decision!B7, People 300",)
    typed = {"in_decision_requests_per_user_per_day": 7}
    assert pull(edit(quick, tmp_path / "b.xlsx", typed), books.catalog()).asked_apart == ()
    with_inputs = edit(quick, tmp_path / "c.xlsx", {"in_context_chat": 40_000})
    assert pull(with_inputs, books.catalog()).notes == (), "nobody touched Decision, and it is no request"


@pytest.mark.long  # in the gate random edits carry discounts back
def test_a_discount_in_one_cell_comes_back_in_every_price(book: Path, as_built: Pulled, tmp_path: Path) -> None:
    """Off all of them, told as one change."""
    before = as_built.solved
    only = pull(edited(book, tmp_path, {"in_discount_fraction": 0.2}), books.catalog())
    (change,) = only.changed
    assert (change.name, change.old, change.new) == ("discount_fraction", 0, 0.2)
    assert f" ({change.place}): 0 % -> 20 %" in "\n".join(lines(only))
    assert only.audit is not None and only.audit.verdict == "agrees" and not only.other_results
    for was, now in zip(before.choices, only.solved.choices, strict=True):
        assert (was.offer, was.n_instances) == (now.offer, now.n_instances)
        assert now.monthly_usd == pytest.approx(0.8 * was.monthly_usd)
    text = scenario_text(only.options, only.overrides, "edited.xlsx", "1")
    assert 'discount_fraction: "0.2"\n' in text and "price" not in text and again(only) == document(only.solved)


@pytest.mark.long
def test_a_discount_stands_beside_a_price_that_was_typed(book: Path, places: Places, tmp_path: Path) -> None:
    price = places.rows("instances")["aws/p5.48xlarge"]["price_usd_per_hour"]
    both = pull(edited(book, tmp_path, {"in_discount_fraction": 0.35, price: 10.0}), books.catalog())
    assert {change.name for change in both.changed} == {"discount_fraction", "price_usd_per_hour"}
    assert both.audit is not None and both.audit.verdict == "agrees" and not both.other_results
    assert both.overrides["instances"] == {"aws/p5.48xlarge": {"price_usd_per_hour": 10}}
    assert again(both) == document(both.solved)


@pytest.mark.long
def test_discounts_by_provider_and_class_come_back_as_the_option(book: Path, tmp_path: Path) -> None:
    cells = {
        "in_discount_fraction": 0.02,
        "in_discount_of_aws": 0.1,
        "in_discount_of_aws_reserved_3yr": 1 / 3,
        "in_discount_of_reserved_1yr": 0,
    }
    pulled = pull(edited(book, tmp_path, cells), books.catalog())
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.other_results
    option = f"0.02,reserved-1yr=0,aws=0.1,aws:reserved-3yr={1 / 3}"
    assert pulled.options["discount_fraction"] == option
    assert pulled.solved.question.discount("aws", "reserved-3yr") == 1 / 3
    printed = "\n".join(lines(pulled))
    assert "of aws reserved 3yr ('" in printed and "33.33" in printed
    text = scenario_text(pulled.options, pulled.overrides, "edited.xlsx", "1")
    listed = "".join(f'- "{word}"\n' for word in option.split(","))
    assert f"discount_fraction:\n{listed}" in text and again(pulled) == document(pulled.solved)
    second = tmp_path / "second.xlsx"
    second.write_bytes(books.book_bytes(pulled.solved))
    assert not pull(second, books.catalog()).changed
    fewer = pull(
        edited(second, tmp_path, {"in_discount_of_aws": None, "in_discount_of_reserved_1yr": None}), books.catalog()
    )
    assert fewer.options["discount_fraction"] == f"0.02,aws:reserved-3yr={1 / 3}"
    assert fewer.audit is not None and fewer.audit.verdict == "agrees" and again(fewer) == document(fewer.solved)


@pytest.mark.long
def test_a_discount_of_a_provider_that_the_sheet_does_not_have_is_kept(tmp_path: Path) -> None:
    path, _ = books.build(tmp_path, "oci", {**TINY, "discount_fraction": "oci=0.1"})
    assert pull(path, books.catalog()).options["discount_fraction"] == "oci=0.1"
    pulled = pull(edited(path, tmp_path, {"in_discount_of_aws": 0.2}), books.catalog())
    assert pulled.options["discount_fraction"] == "0,aws=0.2,oci=0.1"


@pytest.mark.long
def test_what_the_choice_reads_comes_back(book: Path, places: Places, tmp_path: Path) -> None:
    """Near ties, what spans machines, the targets of the first token: by options. Of rows: the network, what runs."""
    gpus, machine = places.rows("gpus"), places.rows("instances")["aws/p5.48xlarge"]
    cells = {
        "in_near_tie_fraction": 0.3,
        "in_least_network_gbps": 800,
        "in_span_machines": 0,
        "in_ttft_ms_chat": None,
        "in_ttft_ms_long_doc": 1000,
        "in_max_pipeline_parallel_size": 2,
        machine["network_gbps"]: 100,
        gpus["nvidia-h100-sxm5-80gb"]["weights_fp8"]: 1,
        gpus["nvidia-l4-24gb"]["weights_bf16"]: 0,
    }
    pulled = pull(edited(book, tmp_path, cells), books.catalog())
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.other_results
    assert len(pulled.changed) == len(cells)
    options = {"near_tie_fraction": "0.3", "least_network_gbps": "800", "span_machines": "never"}
    assert {name: str(pulled.options[name]) for name in options} == options
    assert pulled.options["ttft_ms"] == "chat=off,long-doc=1000"
    typed = without_picks(pulled.overrides)
    assert typed["inputs"] == {"max_pipeline_parallel_size": 2}
    assert typed["instances"] == {"aws/p5.48xlarge": {"network_gbps": 100}}
    assert typed["gpus"] == {"nvidia-h100-sxm5-80gb": {"weights_fp8": 1}, "nvidia-l4-24gb": {"weights_bf16": 0}}
    assert again(pulled) == document(pulled.solved)
    settings = pulled.solved.question.settings
    assert (settings.near_tie_fraction, settings.least_network_gbps, settings.span_machines) == (0.3, 800, 0)
    text = "\n".join(lines(pulled))
    for words in ("Near tie", "Network to span machines", "Span machines", "time to first token", "Weights fp8"):
        assert words in text, words


@pytest.mark.long
def test_a_workbook_built_with_a_discount_has_no_changes(tmp_path: Path) -> None:
    path, _ = books.build(tmp_path, "less", {**TINY, "discount_fraction": "0.2"})
    pulled = pull(path, books.catalog())
    assert not pulled.changed and pulled.audit is not None and pulled.audit.verdict == "agrees"
    back = pull(edited(path, tmp_path, {"in_discount_fraction": 0}), books.catalog())
    assert [(change.name, change.old, change.new) for change in back.changed] == [("discount_fraction", 0.2, 0)]
    assert back.audit is not None and back.audit.verdict == "agrees"
    assert document(back.solved)["cells"] == document(solve(ask(books.catalog(), TINY)))["cells"]


@pytest.mark.long
def test_a_workbook_of_typed_values_is_edited_and_pulled_again(book: Path, places: Places, tmp_path: Path) -> None:
    """Build with typed values, edit that workbook, pull: old and new stand together in the scenario."""
    row, spare = places.rows("instances")["aws/p5.48xlarge"], places.spare("instances")[0]
    own = {"provider": "acme", "type": "box.1", "instance_gpu": "nvidia-l40s-48gb", "gpu_count": 2}
    cells = {row["price_usd_per_hour"]: 10.0, row["type"]: "renamed", "in_cuda_graph_base_bytes": 5e9}
    cells |= {spare[column]: value for column, value in own.items()} | {spare["price_usd_per_hour"]: 1.5}
    first = pull(edited(book, tmp_path, cells), books.catalog())
    second = tmp_path / "second.xlsx"
    second.write_bytes(books.book_bytes(first.solved))
    assert not pull(second, books.catalog()).changed, "a workbook of typed values says of itself that it was changed"

    places = Places(second)
    assert "aws/renamed" in places.rows("instances") and "acme/box.1" in places.rows("instances")
    cells = {
        places.rows("instances")["acme/box.1"]["price_usd_per_hour"]: 2.5,
        places.rows("instances")["aws/renamed"]["gpu_count"]: 4,
        "in_hours_per_month": 100,
    }
    pulled = pull(edited(second, tmp_path, cells), books.catalog())
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.audit.overwritten
    assert not pulled.other_results and len(pulled.changed) == 3
    assert pulled.overrides["instances"] == {
        "aws/p5.48xlarge": {"price_usd_per_hour": 10, "type": "renamed", "gpu_count": 4}
    }
    assert pulled.overrides["own_instances"] == [{**own, "price_usd_per_hour": 2.5}]
    assert without_picks(pulled.overrides)["inputs"] == {"cuda_graph_base_bytes": 5_000_000_000}
    assert pulled.options["hours_per_month"] == "100"
    assert again(pulled) == document(pulled.solved)


def test_every_yellow_cell_is_an_option_or_can_be_typed(as_built: Pulled) -> None:
    """A new input of the workbook must be carried back: by an option, or as a typed value."""
    built = as_built.before
    inputs = [name for name in built.inputs if name not in built.fixed and name not in NOT_COMPARED]
    assert len(inputs) > 80
    lost = [name for name in inputs if option_of(name) is None and input_kind(name) is None]
    assert not lost
    for table, rows in built.tables.items():
        assert not set(next(iter(rows.values())).cells) - set(TABLES[table]), table


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"in_hours_per_month": 1000}, "Inputs!B35: hours_per_month is '1000'. It must be a number from 1 to 744."),
        ({"in_discount_fraction": 20}, "Inputs!B34: discount_fraction is '20'. It must be a number from 0 to 0.99."),
        ({"in_discount_of_aws": 20}, "discount_fraction of aws is '20'. It must be a number from 0 to 0.99."),
        ({"in_least_network_gbps": 0}, "least_network_gbps is '0'. It must be a number from 1 to 100,000."),
        ({"in_near_tie_fraction": 5}, "near_tie_fraction is '5'. It must be a number from 0 to 1."),
        ({"in_tpot_ms_chat": 0}, "tpot_ms is 'chat=0'. Write"),
        ({"in_tier_1": 64}, "Inputs!B19: tiers are '64,64'. Each may stand only once."),
        ({"in_fx_rate": 0.9}, "fx_rate is 0.9, but currency is USD"),
        ({"in_weight_dtype": "fp9"}, "weight_dtype is 'fp9'. Allowed: recommended, published, auto, bf16"),
        ({"in_block_size": None}, "KV block size (in_block_size) is blank. Type a value."),
        ({"in_graphs_in_budget": 2}, "graphs_in_budget is '2'. It must be a whole number from 0 to 1."),
        ({"in_output_chat": -5}, "output_chat is '-5'. It must be a whole number from 0 to 100,000,000."),
    ],
    ids=lambda cells: next(iter(cells)) if isinstance(cells, dict) else "",
)
def test_a_value_out_of_range_is_told_with_its_cell(
    cells: dict[str, CellValue], problem: str, book: Path, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as raised:
        pull(edit(book, tmp_path / "bad.xlsx", cells), books.catalog())
    (line,) = raised.value.problems
    assert line.startswith(str(tmp_path / "bad.xlsx")) and problem in line


def test_a_cell_of_a_table_out_of_range_is_told_with_its_place(book: Path, places: Places, tmp_path: Path) -> None:
    heads = places.rows("models")["gemma-3-27b"]["n_heads"]
    spare = places.spare("instances")[1]
    cells = {heads: 0, spare["provider"]: "acme", spare["price_usd_per_hour"]: 3}
    with pytest.raises(ScenarioError) as raised:
        pull(edit(book, tmp_path / "bad.xlsx", cells), books.catalog())
    first, second = raised.value.problems
    assert f"{heads[0]}!{heads[1]}: n_heads of gemma-3-27b is '0'." in first
    assert f"'{spare['type'][0]}'!{spare['type'][1]}: own_instances " in second


@pytest.mark.long
def test_an_unknown_gpu_and_more_gpus_than_built_are_remarked(book: Path, places: Places, tmp_path: Path) -> None:
    rows = places.rows("instances")
    cells = {rows["aws/p5.48xlarge"]["instance_gpu"]: "nvidia-h1000", rows["aws/g6.xlarge"]["gpu_count"]: 4}
    pulled = pull(edited(book, tmp_path, cells), books.catalog())
    count, gpu = pulled.notes
    assert "nvidia-h1000 is no GPU" in gpu
    assert "aws/g6.xlarge has 4 GPUs" in count


@pytest.mark.long
def test_links_raised_for_ranks_are_remarked_and_followed_by_what_is_built_anew(tmp_path: Path) -> None:
    """The workbook has data-parallel layouts of the GPUs alone whose links were made for them when it was built: its
    checks say so, and what pull builds has them."""
    asked = {
        "models": "qwen3-30b-a3b",
        "workloads": "chat",
        "tiers": "256",
        "headline": "chat:256",
        "instances": "aws/g6e.12xlarge,aws/g6e.48xlarge",
        "as_of": books.AS_OF,
    }
    book, question = books.build(tmp_path, "slow-links", asked)
    assert values(book)[areas(book)["chk_layouts"][0]] == "OK"
    gpu, links = "nvidia-l40s-48gb", 9e11
    cell = Places(book).rows("gpus")[gpu]["interconnect_bytes_per_second"]
    done = edited(book, tmp_path, {cell: links})
    checks = values(done), areas(done)
    assert {checks[0][checks[1][name][0]] for name in ("chk_layouts", "chk_all")} == {"CHECK"}
    pulled = pull(done, books.catalog())
    (note,) = pulled.notes
    assert note.startswith(f"{cell[0]}!{cell[1]}: ") and f"{gpu} may share experts" in note and "built anew" in note
    typed = {"gpus": {gpu: {"interconnect_bytes_per_second": links}}}
    anew = solve(ask(books.catalog(), {**asked, "typed": typed}))
    assert document(pulled.solved)["cells"] == document(anew)["cells"] == again(pulled)["cells"]
    (was,), (now,) = solve(question).choices, anew.choices
    assert now.offer is not None and anew.layout(now.offer).data_parallel_size > 1
    assert was.offer is not None and now.n_instances < was.n_instances
    rebuilt = tmp_path / "anew.xlsx"
    rebuilt.write_bytes(books.book_bytes(pulled.solved))
    assert values(rebuilt)[areas(rebuilt)["chk_layouts"][0]] == "OK"
    assert pull(rebuilt, books.catalog()).solved.choices == anew.choices


@pytest.mark.long
def test_a_fixed_figure_that_was_changed_is_told_and_not_followed(book: Path, tmp_path: Path) -> None:
    pulled = pull(edited(book, tmp_path, {"in_hours_in_a_month": 700}), books.catalog())
    (change,) = pulled.fixed
    assert change.name == "hours_in_a_month" and not pulled.changed
    assert ": Hours in a month" in "\n".join(lines(pulled))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"models": "8b,../../etc/passwd.json"}, "was built from the file ../../etc/passwd.json."),
        ({"models": "no-such-model"}, "model 'no-such-model'"),
        ({"models": ["8b"]}, "no model was named"),
        ({"models": "8b", "typed": {"models": 5, "inputs": {"x": 1}}}, "models must hold rows by name."),
    ],
)
def test_options_that_were_tampered_with_are_told(options: Options, problem: str, book: Path, tmp_path: Path) -> None:
    """A workbook's record of its own making is nobody's word: it opens no file, and breaks nothing."""
    file = with_options(book, tmp_path / "bad.xlsx", {**TINY, **options})
    with pytest.raises(SheetgenError) as raised:
        pull(file, books.catalog())
    assert any(problem in line for line in raised.value.problems), raised.value.problems
    assert all(line.startswith(str(file)) for line in raised.value.problems)


@pytest.mark.parametrize(
    ("was", "now"),
    [("SUM($D$44:$D$44)", "SUM($D$44)"), ("MAX('Sizing sheet'!B$5:B$5)+$A6", "MAX('Sizing sheet'!B$5)+$A6")],
)
def test_an_area_of_one_cell_is_that_cell(was: str, now: str) -> None:
    """LibreOffice 26.8 saves it so; 7.4, which the tests find on Debian 12, does not."""
    before, after = parsed(was, "Sources and checks"), parsed(now, "Sources and checks")
    assert (before.template, before.sheets) == (after.template, after.sheets)
    assert (before.places == after.places).all() and (before.moves == after.moves).all()
    other = parsed(was.replace("44)", "45)").replace("B$5)", "C$5)"), "Sources and checks")
    assert other.template != after.template
