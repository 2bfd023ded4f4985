"""A diagnosis as a person reads it: a short page of text, or the same as HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator

from sheetgen.diagnose.facts import excerpt
from sheetgen.diagnose.fixes import Fix
from sheetgen.diagnose.replay import Replay
from sheetgen.diagnose.report import Diagnosis, Health, Shortfall
from sheetgen.diagnose.rules import HEALTHY, NOT_AN_OOM, UNDETERMINED, Evidence
from sheetgen.units import GIB, MIB

ENGINE_NAMES = {
    "vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM", "nim": "NIM", "tgi": "TGI",
    "lmdeploy": "LMDeploy", "llama.cpp": "llama.cpp",
}  # fmt: skip
_WIDTH = 110
_SHOWN_LINE = 160  # of a line that is not the one that decided it
_SHOWN_LINES = 4
# On a phone a row of the table is a block of its own lines.
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:1em auto;padding:0 1em;overflow-wrap:anywhere}"
    "td,th{text-align:left;vertical-align:top;padding:.2em .8em .2em 0}td:first-child{white-space:nowrap}"
    "@media(max-width:40em){th{display:none}td{display:block;padding:0}tr{display:block;padding:.5em 0}"
    "td:first-child{font-weight:bold;white-space:normal}}"
)
_HEALTHY, _ANOTHER = "Healthy: started, or runs, without a failure", "Not out of memory: it failed for another reason"
_SAID = {HEALTHY: _HEALTHY, NOT_AN_OOM: _ANOTHER}
Section = tuple[str, list[str]]


def headline(found: Diagnosis) -> str:
    """The verdict in one line."""
    bill = found.verdict.bill
    sure = f"{bill.label}, confidence {100 * bill.confidence:.0f} %"
    if bill.label == UNDETERMINED:
        return "Undetermined: the log does not say which memory bill overran, if any did."
    is_cut = bill.label == HEALTHY and bill.confidence < 0.5
    said = "Nothing failed in this log, but it ends before the server is ready" if is_cut else _SAID.get(bill.label)
    return f"{said} ({sure})." if said else f"{found.bill} ({sure})"


def sections(found: Diagnosis) -> Iterator[Section]:
    """Titles and their lines, in the order of the page."""
    engine = ENGINE_NAMES.get(found.engine or "", "no serving engine's line was found")
    version = f" {found.engine_version}" if found.engine_version else ""
    yield "", [f"{engine}{version} · phase: {found.verdict.phase}", *([found.symptom] if found.symptom else [])]
    evidence, in_full = _nearest_evidence(found), _quoted_in_full(found)
    if evidence:
        texts = (one.text if one.line_number in in_full else excerpt(one.text, most=_SHOWN_LINE) for one in evidence)
        yield "HOW WE KNOW", [f"line {one.line_number:,}: {text}" for one, text in zip(evidence, texts, strict=True)]
    if found.short is not None:
        yield "SHORT BY", [_short(found.short)]
    if found.numbers:
        yield "FIGURES IN THE LOG", [", ".join(_figures(found))]
    if found.replayed is not None:
        yield "REPLAYED", list(_replayed(found, found.replayed))
    if found.health is not None:
        yield "THE FIRST LIMIT", list(_health(found.health))
    if found.fixes:
        yield "CHANGE, IN THIS ORDER", [_fix(number, fix) for number, fix in enumerate(found.fixes, 1)]
    if found.verdict.bill.also:
        yield "ALSO POSSIBLE", [", ".join(dict.fromkeys(found.verdict.bill.also))]
    if found.verdict.bill.missing:
        title = "NEXT" if found.verdict.bill.label == NOT_AN_OOM else "WHAT WOULD DECIDE IT"
        yield title, list(found.verdict.bill.missing)
    elif found.verdict.bill.label == NOT_AN_OOM:
        yield "NEXT", ["mend what the quoted line says; no memory flag helps"]
    remarks = [*found.notes, *(f"not replayed: {reason}" for reason in found.not_replayed_because)]
    if remarks:
        yield "NOTES", remarks


def text(found: Diagnosis) -> str:
    """The page for a terminal."""
    out = [headline(found)]
    for title, lines in sections(found):
        out += [""] + ([title] if title else [])
        for line in lines:
            first, rest = ("  ", "    ") if title else ("", "")
            out += textwrap.wrap(line, _WIDTH, initial_indent=first, subsequent_indent=rest)
    return "\n".join(out)


def as_html(found: Diagnosis) -> str:
    """The page as one HTML file without links, scripts or anything from outside; every text is escaped."""
    parts = [f"<h1>{html.escape(headline(found))}</h1>"]
    for title, lines in sections(found):
        if title:
            parts.append(f"<h2>{html.escape(title.capitalize())}</h2>")
        if title == "CHANGE, IN THIS ORDER":
            parts.append(_html_fixes(found.fixes))
        else:
            parts += [f"<p>{html.escape(line)}</p>" for line in lines]
    phone = '<meta name="viewport" content="width=device-width,initial-scale=1">'
    head = f'<meta charset="utf-8">{phone}<title>sheetgen diagnose</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _html_fixes(fixes: tuple[Fix, ...]) -> str:
    rows = ((f.flag, f.direction, "" if f.value is None else str(f.value), f.reason, f.cost) for f in fixes)
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    head = "".join(f"<th>{word}</th>" for word in ("Flag", "Direction", "Value", "Why", "Costs"))
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def _nearest_evidence(found: Diagnosis) -> list[Evidence]:
    """The line that decided it and those next to it, at most four."""
    lines, failure = list(found.verdict.evidence), found.verdict.failure
    at = next((i for i, one in enumerate(lines) if failure and one.line_number == failure.match.line_number), 0)
    first = max(0, min(at - 2, len(lines) - _SHOWN_LINES))
    return lines[first : first + _SHOWN_LINES]


def _quoted_in_full(found: Diagnosis) -> set[int]:
    """The lines that are quoted in full: the one that decided it, and those that state a figure."""
    verdict = found.verdict
    decisive = {verdict.failure.match.line_number} if verdict.failure else set()
    return decisive | {clue.line_number for clue in verdict.run.clues.values() if clue.figures}


def _figures(found: Diagnosis) -> Iterator[str]:
    for name, value in found.numbers.items():
        if name.endswith("_bytes") or "_bytes_" in name:
            yield f"{name.replace('_bytes', '').replace('_', ' ')} {_size(value)}"
        elif name.endswith("_fraction"):
            yield f"{name.removesuffix('_fraction').replace('_', ' ')} {100 * value:.1f} %"
        else:
            yield f"{name.replace('_', ' ')} {value:,}"


def _size(count: float) -> str:
    return f"{count / GIB:,.2f} GiB" if count >= GIB or not count else f"{count / MIB:,.2f} MiB"


def _short(short: Shortfall) -> str:
    if short.unit == "bytes":
        return f"{_size(short.short_by)}: {short.what.format(_size(short.needed), _size(short.there))}"
    return f"{short.short_by:,} {short.unit}: {short.said}"


def _replayed(found: Diagnosis, replayed: Replay) -> Iterator[str]:
    if replayed.contradiction:
        yield replayed.contradiction
    elif found.health is not None and found.health.first_limit:
        yield "Where this differs from the first limit below, that one counts: it is measured."
    yield f"predicted: {replayed.answer['verdict']}"
    for name, needed, there, short in replayed.rows:
        lacking = f", short by {short / GIB:,.2f} GiB" if short else ""
        yield f"{name}: needs {needed / GIB:,.2f} GiB of {there / GIB:,.2f} GiB{lacking}"
    yield from (f"{name}: {outcome}" for name, outcome in replayed.outcomes.items())


def _health(health: Health) -> Iterator[str]:
    limit = f"by the log: {health.first_limit}"
    yield limit if health.first_limit else "the log states no KV pool, so that its first limit cannot be told"
    for name, pair in health.compared.items():
        label = name.replace("_bytes_per_gpu", "").replace("_", " ")
        of_bytes = "bytes" in name
        predicted, measured = (f"{one / GIB:,.2f} GiB" if of_bytes else f"{one:,.0f}" for one in pair)
        yield f"{label}: predicted {predicted}, measured {measured}"
    for reason in health.not_compared_because:
        yield f"no prediction: {reason}"


def _fix(number: int, fix: Fix) -> str:
    value = "" if fix.value is None or fix.direction == "free" else f"{fix.value}"
    value = f" {value}" if value.startswith("by ") else value and f" to {value}"
    move = {"raise": "raise", "lower": "lower", "set": "set", "unset": "drop", "free": "free"}[fix.direction]
    return f"{number}. {move} {fix.flag}{value}: {fix.reason}. Costs: {fix.cost}"
