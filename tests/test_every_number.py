"""Every number of the PDF, Markdown, CSV and JSON of one sheet is what its workbook shows.

The page's texts are held to the cells of their own place; what the PDF and Markdown print is held to the page;
CSV and JSON are held to the cells, value by value. What the workbook does not show is listed here, with the reason.
"""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import date
from typing import Any

import pytest
from amounts import IN_LONG
from books import SMALL, catalog
from numbers_shown import Book, Place, figures, leaves, named, read_sheet
from pages import text_of
from places_of_page import Built, load_cells, names_of, place_on_page
from recalculation import edit_and_recalculate
from workbook_cells import PRICES_SHEET

from sheetgen.answer.solve import solve
from sheetgen.api import answer_of
from sheetgen.launch.recommended import with_launch_rows
from sheetgen.question.sheet_question import ask
from sheetgen.report.build_page import build_page, page_in_dollars
from sheetgen.report.page import Page, formatted
from sheetgen.sheet_files import draw
from sheetgen.units import GIB, ONE_DECIMAL, WHOLE

FORMATS = ("xlsx", "pdf", "md", "csv", "json")
FEW = {} if IN_LONG else {"tiers": "1,32"}
ASKED = SMALL | FEW | {"models": "8b,llama-2-7b,deepseek-v3"}
BUDGETED = (
    SMALL
    | FEW
    | {
        "currency": "EUR",
        "fx_rate": "0.93",
        "contingency_fraction": "0.15",
        "survive": "replica",
        "paper": "letter",
        "extra_headroom_fraction": "0.2",
        "purchase": "reserved-1yr",
        "discount_fraction": "0.15",
        **({} if IN_LONG else {"models": "8b,deepseek-v3"}),
    }
)

# With the limits of the start command: tests/cli/test_flags_of_answers.py, tests/report/test_approval.py.
OF_THE_START = (
    "replicas",
    "start",
    "sized_by",
    "findings",
    "started_deaths",
    "drive",
    "drive_alone",
    "bench",
    "memory_note",
)
# Of the page: what the workbook shows nowhere.
NOT_IN_THE_WORKBOOK = {
    "cards.approve": "the rent with its contingency in dollars; the workbook has it in the budget's currency",
    "cards.survivor": "of every model; Decision has that of its own load, held by tests/book/test_decision.py",
    "fingerprints.change": "of the replica as it is started, which an edit would make stale",
    "fingerprints.first_change": "the same",
    "fingerprints.here": "the same",
    "fingerprints.label": "a name",
    "pages": "how many parts the PDF has",
    "load_note": "counts people and their requests in an hour, which the workbook says of its own load",
    "confidence": "counts the start-ups that the engine's bands are of, as docs/fidelity.md has them",
}
# Of the JSON: the same.
NOT_IN_CELLS = {
    "schema_version": "of the format",
    "inputs.left_out.rows": "the workbook sums up all reasons but the first two",
    "cells.host_memory": "an indication that is in the JSON alone",
    "cells.kv_bytes_by_dtype": "the cache in use is held by name; others are in the JSON alone",
    "cells.log.kv_pool_bytes_per_gpu": "what the engine prints of one replica: tests/test_precision.py",
    "cells.pay_less.what": "words of a way, whose money is held",
    "cells.pay_less.gives_up": "words of what a way commits to, of terms and list prices",
    "cells.other_terms.what": "the same",
    "cells.other_terms.gives_up": "the same",
    **{f"cells.{part}.{words}": "the same" for part in ("as_sure", "cheapest_same") for words in ("what", "gives_up")},
    "cells.survives_machine": "of every load; of its own Decision says it, held by tests/book/test_decision.py",
    "cells.why_not": "each candidate's month stands on Candidates, its distance from the cheapest nowhere",
    "fingerprints.here": "of the replica as it is started; its numbers are held by name",
    "fingerprints.numbers.kv_pool_bytes_per_gpu": "what the engine prints of one replica: tests/test_precision.py",
    "fingerprints.log_lines": "words of an engine's log, quoted",
    "fingerprints.numbers.activation_bytes_at_fewer_tokens": "said on the page alone, and only where it is less",
    "sources": "texts about figures, with commits and days",
}
# Of the loads that are not the case: the Money sheet shows those only.
NOT_OF_OTHER_LOADS = {"purchase_classes", "providers", "owned", "budget", "without_targets"}
COLUMNS = {
    "tier": "At once", "context_tokens": "Context", "concurrent_requests": "At once",
    "kv_bytes": "KV for all requests", "tensor_parallel_size": "TP", "pipeline_parallel_size": "PP",
    "data_parallel_size": "DP", "served_at_target": "Requests served within the targets",
    "memory_holds": "Requests that memory holds", "sequences_per_replica": "Sequences per replica",
    "n_replicas": "Replicas", "n_gpus": "GPUs of the replicas",
    "n_instances": "Instances", "hourly_usd": "$ per hour", "monthly_usd": "$ per month",
    "headroom_fraction": "Headroom", "chance": "Chance",
    "requests_per_replica": "Requests of one replica", "tpot_seconds": "Time per output token",
    "ttft_seconds": "Time to first token", "output_tokens_per_second": "Output tokens per second",
    "tpot_seconds_low": "tpot, low", "tpot_seconds_high": "tpot, high", "ttft_seconds_low": "ttft, low",
    "ttft_seconds_high": "ttft, high", "output_tokens_per_second_low": "output tokens per second, low",
    "output_tokens_per_second_high": "output tokens per second, high", "usd_per_user_per_month": "$ per user and month",
    "usd_per_million_input_tokens": "$ per million prompt tokens",
    "usd_per_million_output_tokens": "$ per million answer tokens", "usd_per_million_tokens": "$ per million tokens",
    "runner_up_monthly_usd": "Next cheapest, $ per month", "instance": "Instance", "gpu": "GPU",
    "runner_up_instance": "Next cheapest", "users": "People", "requests_per_hour": "Requests per hour",
    "requests_per_second": "Requests per second of so many at once",
}  # fmt: skip
# Where nothing holds a load the workbook has 0 or the verdict, CSV and JSON nothing.
LACKING = {
    "sequences_per_replica", "pipeline_parallel_size", "requests_per_replica", "headroom_fraction", "instance", "gpu",
    "chance", "tpot_seconds", "ttft_seconds", "output_tokens_per_second", "runner_up_monthly_usd",
}  # fmt: skip

# What Markdown and PDF add to the page: the units' definitions, precisions' names, and a picture's axis.
OF_THE_FORMAT = {"30", "10", "16", "8", "1", "2", "80", "90%"}  # among them the share of runs that a range is of
OF_THE_FORMAT |= {f"${d}{k}" for d in (1, 10, 100) for k in ("", "k", "M")}  # the axis of the curves of cost
OF_THE_FORMAT |= {f"{d}M" for d in (1, 10, 100)}  # and in another currency
OF_THE_FORMAT |= {f"{d}{k}" for d in ("1", "5", "10", "50", "100", "500") for k in ("", "k", ",000")}


@pytest.fixture(
    scope="module", params=[ASKED, pytest.param(BUDGETED, marks=pytest.mark.long)], ids=["usual", "with a budget"]
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    solved = solve(ask(catalog(), request.param))
    answer = answer_of(solved)
    files, missing = draw(answer, FORMATS, catalog())
    assert not missing and set(files) == set(FORMATS)
    book = Book(files["xlsx"])
    in_dollars, shown = (
        with_launch_rows(draw_page(answer.record, answer.question), answer.record, answer.question, {}, catalog())
        for draw_page in (page_in_dollars, build_page)
    )
    path = tmp_path_factory.mktemp("numbers") / "built.xlsx"
    path.write_bytes(files["xlsx"])
    chosen = [{"in_money_model": asked.model.name} for asked in solved.question.models]
    books = [edit_and_recalculate(path, path.with_name(f"{n}.xlsx"), edit) for n, edit in enumerate(chosen)]
    in_dollars_too = [] if solved.question.settings.currency == "USD" else ["Money in US dollars"]
    money = [
        [place for name in ("Money", *in_dollars_too) for place in read_sheet(of_model.read_bytes(), name)]
        for of_model in books
    ]
    of_book = (book, money, book.texts(), names_of(book))
    return Built(solved, answer.record, formatted(in_dollars), formatted(shown), files, *of_book)


# Texts that stand in the workbook word for word.
AS_THEY_ARE = ("fingerprints", "left_out", "sources.text")


def amiss_on_page(built: Built, page: Page) -> list[str]:
    """Numbers of the page that no cell of their place comes to."""
    return [wrong for path, value in leaves(page) for wrong in amiss(built, path, value)]


def amiss(built: Built, path: tuple[str | int, ...], value: object) -> list[str]:
    """The fault of one text or number of the page."""
    where = named(path)
    if is_elsewhere(where):
        return []
    if where.startswith(AS_THEY_ARE):
        return [f"{where} {value!r}"] if figures(value) and value not in built.texts else []
    place = place_on_page(built, path)
    if isinstance(value, str):
        return [f"{where} {value!r}: {f}" for f in figures(built.names.sub(" ", value)) if not place.shows(f)]
    return [] if place.has(value) or place.shows(WHOLE.text(value)) else [f"{where}: {value}"]


def is_elsewhere(where: str) -> bool:
    """True where the workbook shows a number of the page nowhere; those of the request are held to the record by key,
    in tests/test_one_truth.py and tests/report/test_approval.py."""
    return where in NOT_IN_THE_WORKBOOK or where.startswith((*OF_THE_START, "request.")) or where.endswith("url")


def test_every_number_of_the_page(built: Built) -> None:
    assert amiss_on_page(built, built.page) == []


def nobody_would_rent(built: Built, row: dict[str, Any]) -> bool:
    """Whether the next cheapest is three times as dear as the answer, or of three times as many machines, and more than
    the 8 that need no reservation."""
    second = next((r for r in built.book.rows[PRICES_SHEET] if r.get("Instance") == row["Next cheapest"]), None)
    month, second_usd, settings = row["$ per month"], row["Next cheapest, $ per month"], built.solved.question.settings
    if second is None or not isinstance(second_usd, float):
        return False
    hourly = second["$ per hour in use"] * (1 - settings.discount_fraction)
    n_instances = round(second_usd / (hourly * settings.hours_per_month))
    return second_usd > 3 * month or n_instances > max(8, 3 * row["Instances"])


def amiss_in_loads(built: Built, loads: list[dict[str, Any]]) -> list[str]:
    """Values of the loads' own columns, in the CSV or the JSON, that are not those of their row of the workbook."""
    wrong = []
    for n, load in enumerate(loads):
        cell, row = built.solved.question.loads[n], built.book.rows["Workings"][4 + n]
        model = built.book.rows["Models"][4 + cell.model]
        row_ = {key: row.get(head) for key, head in COLUMNS.items()}
        row_ |= {"weights_bytes": model["Weights"], "model": model["Catalog id"]}
        month = row["$ per month"]
        if load["instance"] is None:
            row_ |= dict.fromkeys(k for k in row_ if k in LACKING)
        else:
            settings = built.solved.question.settings
            budgeted = month * (1 + settings.contingency_fraction) * settings.fx_rate
            for key, months in (("monthly", 1), ("annual", 12), ("three_year", 36)):
                row_ |= {f"{key}_usd": months * month, f"budget_{key}": months * budgeted}
        if load["runner_up_instance"] is None and nobody_would_rent(built, row):
            row_ |= dict.fromkeys(("runner_up_instance", "runner_up_monthly_usd"))
        for key in row_.keys() & load.keys():
            want, got = row_[key], load[key]
            same = want == got if isinstance(got, str) or not got else Place((float(want),)).has(float(got))
            if not same and not (got is None and want in ("-", None)):
                wrong.append(f"load {n} {key}: {got!r}, the workbook has {want!r}")
        if load["runner_up_n_instances"] is not None:
            second = next(r for r in built.book.rows[PRICES_SHEET] if r.get("Instance") == load["runner_up_instance"])
            settings = built.solved.question.settings
            hourly = second["$ per hour in use"] * (1 - settings.discount_fraction)
            month = load["runner_up_n_instances"] * hourly * settings.hours_per_month
            if not Place((month,)).has(load["runner_up_monthly_usd"]):
                wrong.append(f"load {n}: {load['runner_up_n_instances']} of the runner-up are not its price")
    return wrong


def loads_of_csv(data: bytes) -> list[dict[str, Any]]:
    def typed(text: str) -> Any:
        return float(text) if re.fullmatch(r"-?\d[\d.e+-]*", text) else text or None

    return [{k: typed(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(data.decode()))]


def loads_of_json(answer: dict[str, Any]) -> list[dict[str, Any]]:
    def second(cell: dict[str, Any]) -> dict[str, Any]:
        return {
            f"runner_up_{key}": (cell["runner_up"] or {}).get(key) for key in ("instance", "n_instances", "monthly_usd")
        }

    return [{**cell, **second(cell)} for cell in answer["cells"]]


def amiss_in_json(built: Built, answer: dict[str, Any]) -> list[str]:
    """Numbers beyond the loads' own columns that no cell of their place has."""
    book = built.book
    headlines = {built.headline(m) for m in range(len(built.solved.question.models))}
    everywhere = book.sheet("Inputs", "Workings", "Contexts", "Models")
    asked = everywhere + book.sheet("Money", "Sources and checks")
    candidates, dead = (
        book.sheet("Candidates", PRICES_SHEET, "GPUs"),
        book.sheet("OOM guide", "Models", "GPUs", "Workings"),
    )
    wrong = []
    for path, value in leaves(answer):
        where = named(path)
        if any(where.startswith(prefix) for prefix in NOT_IN_CELLS) or value in built.texts:
            continue
        if is_idle(answer, path) and path[-1] in ("note", "changed"):
            continue
        place = {"inputs": asked, "candidates": candidates, "fingerprints": dead}.get(str(path[0]), asked)
        if path[0] == "cells":
            key, row = path[2], int(path[1])
            if key in COLUMNS or key in ("weights_bytes", "annual_usd", "three_year_usd"):
                continue  # held by name
            if key in NOT_OF_OTHER_LOADS and row not in headlines:
                continue
            load = book.rows["Workings"][4 + row]
            place = load_cells(built, row) + candidates
            if key == "levers":
                place = book.where("Levers", Model=load["Model"], Load=load["Load in words"]) + book.sheet("Models")
            elif key in NOT_OF_OTHER_LOADS:
                place += sum(built.money[built.solved.question.loads[row].model], book.sheet("Inputs"))
        if isinstance(value, str):
            wrong += [f"{where} {value!r}: {f}" for f in figures(built.names.sub(" ", value)) if not place.shows(f)]
        elif not any(
            place.has(v)
            for v in (
                value,
                value * built.solved.question.settings.hours_per_month,
                round(value, 4 if path[-1] == "saved_fraction" else 2) if "levers" in path else value,
            )
        ) and not any(
            place.shows(text) for text in (WHOLE.text(abs(value)), f"{ONE_DECIMAL.text(abs(value) / GIB)} GiB")
        ):
            wrong.append(f"{where}: {value}")
    return wrong


def is_idle(answer: dict[str, Any], path: tuple[str | int, ...]) -> bool:
    """True where a lever saves nothing: the Levers sheet has one line for all of those of a load, with their names."""
    if path[0] != "cells" or path[2] != "levers":
        return False
    return bool(answer["cells"][path[1]]["levers"][path[3]]["saved_usd"] == 0)


def test_every_number_of_the_csv(built: Built) -> None:
    assert amiss_in_loads(built, loads_of_csv(built.files["csv"])) == []


def test_every_number_of_the_json(built: Built) -> None:
    answer = json.loads(built.files["json"])
    assert amiss_in_loads(built, loads_of_json(answer)) == []
    assert amiss_in_json(built, answer) == []


PRINTED = re.compile(r"\$?\d[\d,]*(?:\.\d+)?[kM%]?")


def printed(text: str) -> set[str]:
    """The numbers of a text as they stand in print, those of names too."""
    return {match.rstrip(",") for match in PRINTED.findall(text)}


def of_page(page: Page) -> set[str]:
    """The numbers printed anywhere in the page."""
    texts = [v for _, v in leaves(page) if isinstance(v, str)]
    return {number for text in texts for number in printed(text)} | OF_THE_FORMAT


def amiss_in_print(page: Page, text: str) -> list[str]:
    """Numbers of a text that the page does not have."""
    return sorted(printed(text) - of_page(page))


def test_every_number_of_the_markdown(built: Built) -> None:
    assert amiss_in_print(built.shown, built.files["md"].decode()) == []


def test_every_number_of_the_pdf(built: Built) -> None:
    """The age of the oldest price is counted from its date."""
    page = built.shown
    days = [date.fromisoformat(text) for text in re.findall(r"\d{4}-\d\d-\d\d", page.price_lists)]
    age = (date.fromisoformat(page.as_of) - min(days)).days
    assert f"the oldest {age} days old" in page.price_lists
    assert set(amiss_in_print(page, text_of(built.files["pdf"]))) <= {str(age)}


# Told from among many numbers: a wrong digit may be another's, as that of 32 at once is the 35 that are served.
LOOSE = {"assumed", "cards.spare", "cards.ways.rent"}


@pytest.mark.parametrize("built", [ASKED], ids=["usual"], indirect=True)
def test_a_wrong_number_is_found(built: Built) -> None:
    """Each number of the page in its turn is made wrong, in its last digit."""
    missed, n = [], 0
    for path, value in leaves(built.page):
        if is_elsewhere(named(path)) or named(path) in LOOSE:
            continue
        if isinstance(value, str):
            masked = built.names.sub(lambda name: "_" * len(name[0]), value)
            if not (printed := figures(masked)):
                continue
            position = masked.rindex(printed[-1]) + max(i for i, c in enumerate(printed[-1]) if c.isdigit())
            wrong: Any = f"{value[:position]}{(int(value[position]) + 3) % 10}{value[position + 1 :]}"
        else:
            wrong = value * 1.1 + 1
        n += 1
        missed += [] if amiss(built, path, wrong) else [f"{named(path)}: {value!r}, {wrong!r}"]
    assert n > 200 and missed == []


def test_a_wrong_number_of_a_file_is_found(built: Built) -> None:
    loads = loads_of_csv(built.files["csv"])
    numbers = [(n, key) for n, load in enumerate(loads) for key, value in load.items() if isinstance(value, float)]
    for n, key in numbers:
        wrong = [{**load, key: load[key] * 1.001 + 1e-6} if n == m else load for m, load in enumerate(loads[: n + 1])]
        assert amiss_in_loads(built, wrong), f"load {n} {key}"
    text = built.files["md"].decode()
    for card in built.shown.cards:
        assert amiss_in_print(built.shown, text.replace(card.monthly, card.monthly + "7"))
