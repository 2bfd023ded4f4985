"""OOM guide, Checks, and Notes and sources."""

from __future__ import annotations

import datetime
from typing import Any

from sheetgen.formula import Expr, both, either, formula, is_number, join_text, where
from sheetgen.recommend import Solution
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, head_lines, titled
from sheetgen.sheet.book.words import check_word
from sheetgen.sheet.model import Cell, Found, Range, Ref, Sheet
from sheetgen.sheet.one_page import OnePage
from sheetgen.units import PLAIN, TEXT


@formula("Where it breaks", TEXT)
def breaking_words(
    model: Any, context_words: Any, n_instances: Any, instance: Any, sequences: Any, n_replicas: Any
) -> Any:
    """Where the recommended hardware of a load stops holding requests.

    Source: sequences per replica x replicas, from Workings.
    """
    replicas = where(is_number(n_replicas), n_replicas, 0)
    held = sequences * replicas
    fits = join_text(
        model, " at ", context_words, " on ", n_instances, " × ", instance, ": ", held,
        where(held == 1, " request fits", " requests fit"), "; request ", held + 1, " does not.",
    )  # fmt: skip
    return where(is_number(n_instances), fits, join_text(model, " at ", context_words, ": ", instance, "."))


def build_guide(solved: Solution, page: OnePage, wiring: Wiring) -> Sheet:
    """By where it dies: which bill overran, what to change, which way; then this sheet's breaking points."""
    sheet = titled(
        "OOM guide",
        "OOM guide: where it died is a fingerprint",
        "Find the row by where the deployment died. "
        "The same flag helps one death and worsens another: mind the direction.",
        freeze=(HEAD_ROWS + 1, 0),
    )
    heads = (
        ("Where it dies", 26),
        ("Bill that overran", 26),
        ("What the log says", 52),
        ("What to change", 58),
        ("On this sheet, as built", 52),
    )
    for column, (head, width) in enumerate(heads):
        sheet.text(HEAD_ROWS, column, head, "head")
        sheet.widths[column] = width
    row = HEAD_ROWS + 1
    for print_ in page.fingerprints:
        for column, text in enumerate((print_.where, print_.bill, print_.looks_like, print_.change, print_.here)):
            sheet.text(row, column, text, "wrapped_bold" if column == 0 else "wrapped")
        lines = max(
            head_lines(text, heads[column][1])
            for column, text in enumerate((print_.where, print_.bill, print_.looks_like, print_.change, print_.here))
        )
        sheet.heights[row] = 14.0 * lines + 6
        row += 1
    row += 1
    sheet.text(row, 0, "Where each load of this sheet breaks (live)", "section")
    for column in range(1, len(heads)):
        sheet.text(row, column, "", "section")
    cells = wiring.tables["cells"]
    for i in range(len(solved.question.cells)):
        sheet.link(row + 1 + i, 0, cells.columns["model"][i], TEXT)
        sheet.link(row + 1 + i, 1, cells.columns["load_words"][i], TEXT)
        sheet.compute(row + 1 + i, 2, breaking_words, cells.row(i))
    return sheet


@formula("A load is classified", PLAIN)
def classified(fit_word: Any) -> Any:
    """1 where the load has one of the four words.

    Source: definition.
    """
    return where(
        either(fit_word == "fits", fit_word == "tight", fit_word == "none fits", fit_word == "over limit"),
        1,
        0,
    )


@formula("A load is held", PLAIN)
def load_is_held(n_instances: Any, sequences: Any, n_replicas: Any, load_requests: Any) -> Any:
    """1 where the replicas hold the load, or nothing was recommended.

    Source: sequences per replica x replicas >= load.
    """
    replicas = where(is_number(n_replicas), n_replicas, 0)
    return where(is_number(n_instances), where(sequences * replicas >= load_requests, 1, 0), 1)


@formula("Money adds up", PLAIN)
def money_adds_up(n_instances: Any, hourly_price: Any, paid_hours_per_month: Any, monthly_usd: Any) -> Any:
    """1 where instances x price x hours is the month's cost, or nothing was recommended.

    Source: definition.
    """
    count = where(is_number(n_instances), n_instances, 0)
    price = where(is_number(hourly_price), hourly_price, 0)
    month = where(is_number(monthly_usd), monthly_usd, 0)
    return where(count * price * paid_hours_per_month == month, 1, 0)


@formula("Share in range", PLAIN)
def share_in_range(gpu_memory_utilization: Any, active_fraction: Any, average_context_fraction: Any) -> Any:
    """1 where the shares on Inputs lie above 0 and at most 1.

    Source: definition.
    """
    return where(
        both(
            gpu_memory_utilization > 0, gpu_memory_utilization <= 1,
            active_fraction > 0, active_fraction <= 1,
            average_context_fraction > 0, average_context_fraction <= 1,
        ), 1, 0,
    )  # fmt: skip


def build_checks(solved: Solution, wiring: Wiring) -> Sheet:
    """Each check counts what holds against what there is; one word for all goes on the first sheet."""
    sheet = titled(
        "Checks",
        "Checks",
        "Each line counts what holds against what there is. The first sheet shows the overall word.",
    )
    sheet.widths = {0: 50, 1: 10, 2: 10, 3: 10, 4: 4, 5: 26, 6: 30, 7: 12, 8: 12, 9: 12, 10: 12}
    cells = wiring.tables["cells"]
    n = len(solved.question.cells)
    for column, head in enumerate(("Check", "Holds", "Of", "")):
        sheet.text(HEAD_ROWS, column, head, "head")
    for column, head in enumerate(("Model", "Load", "Classified", "Held", "Money", "Shares")):
        sheet.text(HEAD_ROWS, 5 + column, head, "head")
    columns: list[list[Ref]] = [[], [], []]
    for i in range(n):
        sheet.link(HEAD_ROWS + 1 + i, 5, cells.columns["model"][i], TEXT)
        sheet.link(HEAD_ROWS + 1 + i, 6, cells.columns["load_words"][i], TEXT)
        env = {**wiring.inputs, **cells.row(i)}
        for k, one in enumerate((classified, load_is_held, money_adds_up)):
            columns[k].append(sheet.compute(HEAD_ROWS + 1 + i, 7 + k, one, env))
    row = HEAD_ROWS + 1
    words: list[Ref] = []

    def line(label: str, holds: tuple[Any, Expr], of: tuple[Any, Expr]) -> None:
        nonlocal row
        sheet.text(row, 0, label, "label")
        a = sheet.formula(row, 1, *holds, PLAIN)
        b = sheet.formula(row, 2, *of, PLAIN)
        same = Found(1 if a.value == b.value else 0, lambda here: where(a.expr(here) == b.expr(here), 1, 0))
        words.append(sheet.compute(row, 3, check_word, {"holds": same}, role="light"))
        row += 1

    here = sheet.name
    for label, refs in zip(
        (
            "Every load is classified",
            "Recommended hardware holds its load",
            "Instances x price x hours is the month's cost",
        ),
        columns, strict=True,
    ):  # fmt: skip
        area = Range(tuple(refs)).expr(here).text
        n_loads = Expr(f"COUNT({area})")
        line(label, (sum(int(r.value) for r in refs), Expr(f"SUM({area})")), (n, n_loads))
    prices = wiring.tables["instances"].range("price_usd_per_hour")
    dates = wiring.tables["instances"].range("price_date")
    line("Every price has a date", _count(dates, here), _count(prices, here))
    ages = cells.columns["price_age"]
    old = Expr(f'COUNTIFS({Range(tuple(ages)).expr(here).text},"old")')
    line(
        "No recommended instance has an old price",
        (n - sum(r.value == "old" for r in ages), n_loads - old),
        (n, n_loads),
    )
    share = sheet.compute(HEAD_ROWS + 1, 10, share_in_range, wiring.inputs)
    line("Shares on Inputs lie between 0 % and 100 %", (share.value, share.expr(here)), (1, Expr("1*1")))
    _input_lines(solved, wiring, sheet, line)
    area = Range(tuple(words)).expr(here).text
    bad = any(w.value != "OK" for w in words)
    sheet.text(row + 1, 0, "All checks", "label")
    # What is counted is the lines that hold: a line that is an error does not, and must not pass for one.
    n_lines = sheet.put(row + 1, 2, Cell(len(words), "fixed", PLAIN))
    all_hold = Expr(f'COUNTIFS({area},"OK")') == n_lines.expr(here)
    total = sheet.formula(row + 1, 3, "CHECK" if bad else "OK", where(all_hold, "OK", "CHECK"), TEXT, "light")
    wiring.inputs["all_checks"] = total
    wiring.names["chk_all"] = total
    return sheet


def _input_lines(solved: Solution, wiring: Wiring, sheet: Sheet, line: Any) -> None:
    """Inputs that a person may have emptied, or typed past what the cell accepts."""
    here = sheet.name
    cells, n_w, n_t = wiring.tables["cells"], len(solved.question.workloads), len(solved.question.tiers)
    for label, key, refs, n in (
        ("Every context is a number above 0", "workload_row", wiring.lists["contexts"], n_w),
        ("Every tier is a number above 0", "tier_row", wiring.lists["tiers"], n_t),
    ):
        of = Expr(f"MAX({cells.range(key).expr(here).text})")
        line(label, (n, Expr(f'COUNTIFS({refs.expr(here).text},">0")')), (n, of))
    known = wiring.names["list_dtype"].expr(here).text
    for label, key in (
        ("The KV cache's precision is known", "asked_kv_dtype"),
        ("The weights' precision is known", "asked_weight_dtype"),
    ):
        asked = wiring.inputs[key].expr(here).text
        found = where(Expr(f"ISNUMBER(MATCH({asked},{known},0))"), 1, 0)
        line(label, (1, found), (1, Expr("1*1")))
    numbers = [r for r in wiring.inputs.values() if r.sheet == "Inputs" and isinstance(r.value, (int, float))]
    rows = sorted(r.row for r in numbers)
    column = Range(tuple(Ref("Inputs", r, 1, None) for r in (rows[0], rows[-1])))
    value = sum(
        c == 1 and rows[0] <= r <= rows[-1] and isinstance(cell.value, (int, float, datetime.date))
        for (r, c), cell in wiring.inputs_cells.items()
    )
    # A target may be blank, and one that is typed in makes up for no other number.
    targets = [wiring.lists[f"{figure}_targets"] for figure in ("tpot", "ttft")]
    value -= sum(isinstance(r.value, (int, float)) for refs in targets for r in refs.refs)
    counts = [Expr(f"COUNT({refs.expr(here).text})") for refs in (column, *targets)]
    built = sheet.put(HEAD_ROWS + 2, 10, Cell(value, "fixed", PLAIN))
    line("No number is missing on Inputs", (value, counts[0] - counts[1] - counts[2]), (value, built.expr(here)))


def _count(refs: Range, here: str) -> tuple[int, Expr]:
    return sum(r.value is not None for r in refs.refs), Expr(f"COUNT({refs.expr(here).text})")


WORDS = (
    ("KV cache", "what the engine keeps in GPU memory of every token of a request; it grows with context and requests"),
    ("in flight", "requests being answered at the same moment; people online are usually many more"),
    ("replica", "one running copy of the model, on one GPU or several"),
    ("TP", "tensor parallelism: the GPUs of one instance that share each layer of a replica"),
    ("PP", "pipeline stages: instances that each hold some layers of a replica; slower, and they need a fast network"),
    (
        "surely free",
        "share left of the requests that the replicas hold even where each KV pool comes out at the low end of "
        "the 80% band of prediction errors; a fit is tight by it",
    ),
    ("full multi-head attention", "what the cache would be if every query head kept keys and values of its own"),
    ("BF16, FP8", "16 and 8 bits a number; fewer bits take less memory and may cost quality"),
)


def build_notes(page: OnePage) -> Sheet:
    """What the sheet says of itself: assumptions, what was left out, figures that differ, sources."""
    sheet = titled("Notes and sources", "Notes and sources", "What the numbers stand on.")
    sheet.widths = {0: 120, 1: 50}
    row = HEAD_ROWS

    def block(title: str, lines: list[tuple[str, str | None]]) -> None:
        nonlocal row
        sheet.text(row, 0, title, "section")
        sheet.text(row, 1, "", "section")
        for text, url in lines:
            row += 1
            sheet.text(row, 0, text, "wrapped")
            sheet.heights[row] = 15.0 * max(1, -(-len(text) // 118))
            if url:
                sheet.text(row, 1, url, "link_text", url=url)
        row += 2

    block("About", [
        ("A sizing sheet for serving large language models: memory, hardware and price. Blue on yellow cells "
         "are inputs; black figures are formulas; green ones are taken from another sheet.", None),
        (f"sheetgen {page.version}, catalog {page.catalog}, {page.as_of}. "
         "Sheets are protected without a password.", None),
    ])  # fmt: skip
    block("Assumptions as built (those in use stand on the first sheet and on Inputs)",
          [(a, None) for a in page.assumptions])  # fmt: skip
    block("Words", [(f"{word}: {meaning}", None) for word, meaning in WORDS])
    block("Left out", [(page.left_out, None)])
    block("Sources", [(s.text, s.url) for s in page.sources])
    return sheet
