"""OOM guide, and the workbook's notes below the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.book.sheets import BESIDE, Sheet
from sheetgen.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.report import sentences
from sheetgen.report.notes import first_link
from sheetgen.report.page import NOT_SURE_OF, Page
from sheetgen.units import TEXT

NOTE_COLUMNS = 6  # that a note takes, before its link
Blocks = Sequence[tuple[str, Sequence[tuple[str, str | None]]]]  # titles, texts, addresses


def build_guide(solved: Solution, page: Page, wiring: Wiring) -> Sheet:
    """By where it dies: which part ran out, what to change, which way; then this sheet's breaking points."""
    sheet = titled(
        "OOM guide",
        "OOM guide: where it died is a fingerprint",
        "Find the row by where the deployment died. "
        "The same flag helps one death and worsens another: mind the direction.",
        freeze=(HEAD_ROWS + 1, 0),
    )
    heads = (
        ("Where it dies", 26),
        ("Part that ran out", 26),
        ("What the log says", 66),
        ("What to change", 58),
        ("On this sheet, as built", 52),
    )
    sheet.texts(HEAD_ROWS, 0, [head for head, _ in heads])
    sheet.widths = {column: width for column, (_, width) in enumerate(heads)}
    for row, death in enumerate(page.all_deaths, HEAD_ROWS + 1):
        first, *rest = (str(t) for t in (death.where, death.bill, death.looks_like, death.change, death.here))
        sheet.text(row, 0, first, "wrapped_bold")
        sheet.texts(row, 1, rest, "wrapped")
    row = HEAD_ROWS + 2 + len(page.all_deaths)
    sheet.texts(
        row,
        0,
        (
            "Where each load of this sheet breaks (live)",
            "",
            "",
            "Longest context, as built",
            "Parts of memory, and what there is for them, as built",
        ),
        "section",
    )
    loads, baseline = wiring.tables["loads"], _as_built(solved, page)
    for i, line in enumerate(range(row + 1, row + 1 + loads.n_rows)):
        for column, name in enumerate(("model", "load_words")):
            sheet.link(line, column, loads.columns[name][i], TEXT)
        sheet.compute(line, 2, sentences.breaking_words, loads.row(i))
        sheet.texts(line, 3, baseline.get(i, ()), "text")
    return sheet


def _as_built(solved: Solution, page: Page) -> Mapping[int, tuple[str, str]]:
    """By load of the headline's tier the memory that the PDF draws, and, for the headline's load alone, the longest
    context, which Decision has live."""
    workload, tier = solved.question.headline
    bars = {m: iter(of_model) for m, of_model in enumerate(page.bars)}
    lines: dict[int, tuple[str, str]] = {}
    for i, cell in enumerate(solved.question.loads):
        if cell.tier == tier:
            bar, longest_fit = next(bars[cell.model]), page.longest_fits[cell.model]
            longest = str(longest_fit) if cell.workload == workload and longest_fit else ""
            lines[i] = longest, f"{bar.weights} + {bar.kv} + {bar.overhead} of {bar.limit} {page.unit}"
    first = len(solved.question.models) * len(solved.question.workloads) * len(solved.question.tiers)
    return lines | {first + m: lines[row] for m, row in enumerate(headline_rows(solved))}


WORDS = (
    ("KV cache", "what the engine keeps in GPU memory of every token of a request; it grows with context and requests"),
    ("at once", "requests being answered at the same moment; people online are usually many more"),
    ("replica", "one running copy of the model, on one GPU or several"),
    ("TP", "tensor parallelism: the GPUs of one instance that share each layer of a replica"),
    ("PP", "pipeline stages: instances that each hold some layers of a replica; slower, and they need a fast network"),
    ("DP", "data parallelism: ranks of one replica that each serve requests of their own and share the experts"),
    ("sure", "the chance that what is rented is fast enough for the load and holds it, by the errors of predictions "
     f"of measured runs; {NOT_SURE_OF}"),
    ("near tie", "offers that cost nearly the same as the cheapest (Inputs): the one of fewer machines is taken"),
    ("class", "how it is paid: on demand by the hour, on a term of 1 or 3 years, spot (may be taken away), or a block "
     "of capacity that is booked ahead"),
    ("full multi-head attention", "what the cache would be if every query head kept keys and values of its own"),
    ("BF16, FP8", "16 and 8 bits a number; fewer bits take less memory and may cost quality"),
)  # fmt: skip


def add_notes(sheet: Sheet, page: Page, hidden: Sequence[Sheet]) -> None:
    """Add the workbook's notes below the last row of a sheet: hidden sheets, glossary, candidates left out, sources."""
    sources = [(s.text, s.url or first_link(s.text)) for s in page.sources]
    blocks: Blocks = (
        (
            "About",
            [
                (
                    "A sizing sheet for serving large language models: memory, hardware and price. Blue on "
                    "yellow cells "
                    "are inputs; black figures are formulas; green ones are taken from another sheet.",
                    None,
                ),
                (
                    f"sheetgen {page.version}, catalog {page.catalog}. Sheets are protected without a password.",
                    None,
                ),
            ],
        ),
        ("Words", [(f"{word}: {meaning}", None) for word, meaning in WORDS]),
        ("Left out", [(page.left_out, None)]),
        ("Sources", sources),
    )
    top = 2 + max(row for row, _ in sheet.cells)
    sheet.texts(top, 0, ("Hidden sheets: right-click a tab, Unhide; then these links go there",), "section")
    for row, hidden_sheet in enumerate(hidden, top + 1):
        sheet.text(row, 0, f"{hidden_sheet.name}: {hidden_sheet.about}", "wrapped", span=NOTE_COLUMNS)
        sheet.text(row, NOTE_COLUMNS, hidden_sheet.name, "link_text", url=f"internal:'{hidden_sheet.name}'!A1")
    row = top + len(hidden) + 2
    for title, texts in blocks:
        sheet.texts(row, 0, (title,), "section")
        for text, url in texts:
            row += 1
            sheet.text(row, 0, text, "wrapped", span=NOTE_COLUMNS)
            if url:
                sheet.text(row, NOTE_COLUMNS, unquote(url.removeprefix(BESIDE)), "link_text", url=url)
        row += 2
