"""The whole diagnosis of a log: as plain values (`--json`), as a short text, or as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TypedDict

from sheetgen.answer.solution import short_tokens
from sheetgen.catalog import guidance
from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.signatures import SignatureFile
from sheetgen.diagnose.cause import (
    HEALTHY,
    NOT_AN_OOM,
    POSING,
    QUOTED,
    REFUSED,
    SOURCE,
    UNDETERMINED,
    UNSAID,
    Queue,
    Verdict,
    verdict_of,
)
from sheetgen.diagnose.fixes import Fix, Step, fixes_for
from sheetgen.diagnose.log_compared import compare
from sheetgen.diagnose.log_facts import Facts, excerpt
from sheetgen.diagnose.reading import read
from sheetgen.diagnose.replay import Replay, replay
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.importer.model_names import resolve_model
from sheetgen.question import parse
from sheetgen.question.deployment import wrong_values
from sheetgen.shipped import shipped_table
from sheetgen.startup.printed_arguments import ENGINE_NAMES
from sheetgen.startup.startup_log import StartupLog, measure
from sheetgen.units import GB, GIB, MIB

_NO_PART = {"not_an_oom": "none: it failed for another reason", "healthy": "none"}
_COMPARED = ("weights_bytes_per_gpu", "activation_bytes_per_gpu", "kv_pool_bytes_per_gpu", "kv_tokens")


@dataclass(frozen=True)
class Shortfall:
    """The amounts needed and available, in `unit`; `what` is a sentence with {} for each of the two."""

    what: str
    needed: float | int
    there: float | int
    short_by: float | int
    unit: str

    @property
    def sentence(self) -> str:
        """The sentence with its numbers; bytes in GiB."""
        if self.unit == "bytes":
            return self.what.format(*(f"{n / GIB:,.2f} GiB" for n in (self.needed, self.there)))
        return self.what.format(f"{self.needed:,}", f"{self.there:,}")


@dataclass(frozen=True)
class Health:
    """The capacity of a healthy server: its first limit in a sentence, and (predicted, measured) by quantity."""

    first_limit: str
    compared: dict[str, tuple[float | int, float | int]]
    not_compared_because: tuple[str, ...] = ()


class ReplayRecord(TypedDict):
    """The sized configuration of the log: what it has to be, memory of one GPU by part, what each change would do."""

    contradiction: str | None
    inputs: RawRecord
    verdict: str
    fits: bool
    bills: list[RawRecord]
    changes: dict[str, str]


class DiagnosisRecord(TypedDict):
    """The diagnosis of one log, as JSON has it."""

    label: str
    confidence: float
    bill: str | None
    phase: str
    engine: str | None
    engine_version: str | None
    evidence: list[RawRecord]
    numbers: dict[str, float | int]
    fixes: list[RawRecord]
    also_possible: list[str]
    missing: list[str]
    case: str | None
    shortfall: RawRecord | None
    notes: list[str]
    replay: ReplayRecord | None
    not_replayed_because: list[str]
    health: RawRecord | None
    queue: RawRecord | None


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of one log."""

    verdict: Verdict
    engine: str | None
    engine_version: str | None
    bill: str | None
    symptom: str
    numbers: dict[str, float | int]
    short: Shortfall | None
    fixes: tuple[Fix, ...]
    notes: tuple[str, ...]
    replayed: Replay | None
    not_replayed_because: tuple[str, ...]
    health: Health | None

    def record(self) -> DiagnosisRecord:
        """The diagnosis as JSON has it."""
        cause, replayed = self.verdict.cause, self.replayed
        names = ("bill", "needed_bytes", "there_bytes", "short_by_bytes")
        return {
            "label": cause.label,
            "confidence": round(cause.confidence, 2),
            "bill": self.bill,
            "phase": self.verdict.phase,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "evidence": [asdict(evidence) for evidence in self.verdict.evidence],
            "numbers": self.numbers,
            "fixes": [asdict(fix) for fix in self.fixes],
            "also_possible": list(dict.fromkeys(cause.also)),
            "missing": list(cause.missing),
            "case": cause.case,
            "shortfall": asdict(self.short) | {"what": self.short.sentence} if self.short else None,
            "notes": list(self.notes),
            "replay": {
                "contradiction": replayed.contradiction,
                "inputs": replayed.inputs,
                "verdict": replayed.answer["verdict"],
                "fits": replayed.answer["fits"],
                "bills": [dict(zip(names, row, strict=True)) for row in replayed.rows.values()],
                "changes": replayed.outcomes,
            }
            if replayed
            else None,
            "not_replayed_because": list(self.not_replayed_because),
            "health": asdict(self.health) if self.health else None,
            "queue": asdict(self.verdict.queue) if self.verdict.queue else None,
        }


def diagnose(name: str, options: RawMapping, catalog: Catalog) -> Diagnosis:
    """The diagnosis of the log called `name` (`-`: stdin). Raises ScenarioError where it is no text, or is empty."""
    if wrong := wrong_values({key: value for key, value in options.items() if value is not None}, catalog):
        raise ScenarioError(*wrong)  # also where nothing is replayed with it
    file = catalog.file(guidance.FingerprintFile)
    log = read(name, catalog.file(SignatureFile).signatures, catalog)
    verdict = verdict_of(log)
    engine = load_engine(catalog, str(options["engine"])).engine if options.get("engine") else engine_of(log)
    any_start = log.startup if log.startup and engine in (log.startup.engine, "nim", None) else None
    version = any_start.version if any_start else None
    startup = log.start_of(verdict.run) if any_start else None
    given = {key: value for key, value in options.items() if value is not None and key != "engine"}
    replayed: Replay | None = None
    reasons: tuple[str, ...] = ()
    if verdict.cause.label not in (UNDETERMINED, NOT_AN_OOM, HEALTHY) or given:
        try:
            replayed = replay(verdict, startup, engine, given, catalog)
        except SheetgenError as error:
            reasons = error.problems
    if replayed is None:  # raise for names in the options that no catalog has
        if "model" in given:
            resolve_model(str(given["model"]), catalog)
        if "gpu" in given:
            catalog.gpu(str(given["gpu"]))
    is_well = verdict.cause.label == HEALTHY and verdict.queue is None
    fingerprint = None if is_well else next((f for f in file.fingerprints if f.label == verdict.cause.label), None)
    numbers = _numbers(verdict, log)
    wanted = given.get("engine_version") or (version if any_start and any_start.engine == engine else None)
    fixes = fixes_for(verdict, engine, file, guidance.assumptions(catalog), startup, replayed, wanted)
    return Diagnosis(
        verdict,
        engine,
        version,
        *_part_and_symptom(fingerprint, verdict, engine),
        numbers,
        shortfall(numbers) if verdict.failure else _queue_shortfall(verdict.queue),
        fixes,
        (*verdict.notes, *_remarks(verdict), *(replayed.notes if replayed else ())),
        replayed,
        reasons,
        health(startup, given, catalog) if verdict.cause.label == HEALTHY and startup else None,
    )


def _part_and_symptom(
    fingerprint: guidance.Fingerprint | None, verdict: Verdict, engine: str | None
) -> tuple[str | None, str]:
    """The words for the part of memory and the symptom: for this form of the failure, else this engine, else all."""
    if fingerprint is None:
        return _NO_PART.get(verdict.cause.label), ""
    case = fingerprint.cases.get(verdict.cause.case or "")
    if case:
        return case.bill, case.symptom
    usual = fingerprint.words(engine or "").symptom
    return fingerprint.bill, f"Typical: {usual}" if usual else ""  # this log may lack lines that it mentions


def engine_of(log: Facts) -> str | None:
    """The engine of most of the lines, or NIM if any line is its own: the others are of the engine inside it."""
    votes = log.votes
    if votes:
        return "nim" if votes.get("nim") else max(votes, key=lambda engine: votes[engine])
    return log.startup.engine if log.startup else None


def _numbers(verdict: Verdict, log: Facts) -> dict[str, float | int]:
    """The log's figures by name, sizes in bytes: of the decisive line, of the start-up log, of the last statistics."""
    figures: dict[str, float] = dict(verdict.run.figures)
    if startup := log.start_of(verdict.run):
        figures |= {name: figure.value for name, figure in measure(startup).figures.items()}
    figures |= verdict.amounts | verdict.of_failure
    if samples := verdict.run.usage.until(verdict.failure.match.line_number if verdict.failure else None):
        last = samples[-1]
        figures |= {"running_requests": last.running, "waiting_requests": last.waiting}
        if last.usage is not None:
            figures["kv_usage_fraction"] = last.usage
    plain: dict[str, float] = {}
    for name, value in figures.items():
        stem, _, unit = name.rpartition("_")
        if scale := {"gib": GIB, "mib": MIB, "gb": GB}.get(unit):
            plain[f"{stem}_bytes"] = round(value * scale)
        else:
            plain[name] = value
    return {k: int(v) if v == int(v) else round(v, 6) for k, v in plain.items() if abs(v) < 1e18}


def shortfall(numbers: Mapping[str, float | int]) -> Shortfall | None:
    """The first pair of figures with less available than needed; None for none."""
    answer = numbers.get("completion_tokens", 0)
    both = {"requested_tokens": numbers.get("prompt_tokens", 0) + answer} if answer else {}
    figures = {**both, **numbers}
    for pair in shipped_table("causes.toml")["shortfalls"]:
        needed, available = figures.get(pair["needed"]), figures.get(pair["available"])
        if needed is not None and available is not None and needed > available:
            return Shortfall(pair["says"], needed, available, needed - available, pair["unit"])
    return None


def _queue_shortfall(queue: Queue | None) -> Shortfall | None:
    """The places that waiting requests lack; None without a queue."""
    if queue is None:
        return None
    want = queue.running + queue.waiting
    words = "{} requests want a place, {} run at once"
    return Shortfall(words, want, queue.running, queue.waiting, "places")


def health(startup: StartupLog, options: RawMapping, catalog: Catalog) -> Health:
    """The capacity of a healthy server by its log, and the prediction beside the measurement."""
    try:
        compared = compare(startup, options, catalog)
    except SheetgenError as error:
        return Health(_first_limit(startup, {}, options), {}, error.problems)
    pairs = {
        name: (predicted, compared.measured.figures[name].value)
        for name in _COMPARED
        if (predicted := compared.predicted.get(name)) is not None and name in compared.measured.figures
    }
    return Health(_first_limit(startup, compared.inputs, options), pairs, compared.unsized)


def _first_limit(startup: StartupLog, inputs: RawMapping, options: RawMapping) -> str:
    """A sentence on the first user who waits, for memory or for a place (max_num_seqs); "" if the log has no pool."""
    tokens = measure(startup).figures.get("kv_tokens")
    per_request = startup.figures.get("tokens_per_request", {})
    length = inputs.get("max_model_len") or next((f.value for f in per_request.values()), None)
    requested = options.get("context_tokens") or options.get("max_model_len")
    if requested is not None:
        length = parse.tokens(requested, "context")
    if tokens is None:
        return ""
    if not length:
        return f"the pool is {tokens.value:,.0f} tokens; max_model_len is not in the log. Add --context 16k"
    held, size = int(tokens.value // length), short_tokens(int(length))
    stated = startup.arguments.get("max_num_seqs")
    cap = inputs.get("max_num_seqs") or (stated.value if stated else None)
    if isinstance(cap, int) and 0 < cap <= held:
        return f"user {cap + 1:,} waits for a free place (max_num_seqs {cap:,}); the pool would hold {held:,} at {size}"
    if held < 1:
        return f"one request of {size} does not fit in the pool of {tokens.value:,.0f} tokens"
    return f"user {held + 1:,} at {size}: the pool of {tokens.value:,.0f} tokens holds {held:,}"


_SHOWN_LINE = 160  # characters of a line other than the decisive one
_SHOWN_LINES = 4
# On a phone each row of the table becomes a block of lines.
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60em;margin:1em auto;padding:0 1em;overflow-wrap:anywhere}"
    "td,th{text-align:left;vertical-align:top;padding:.2em .8em .2em 0}td:first-child{white-space:nowrap}"
    "@media(max-width:40em){th{display:none}td{display:block;padding:0}tr{display:block;padding:.5em 0}"
    "td:first-child{font-weight:bold;white-space:normal}}"
)
_CHANGES = "CHANGE, IN THIS ORDER"
_WITHOUT_SHORTAGE = {
    HEALTHY: "Healthy: started, or runs, without a failure",
    NOT_AN_OOM: "Not out of memory: it failed for another reason",
}


def headline(diagnosis: Diagnosis) -> str:
    """The first line of the text: the result in one sentence."""
    cause = diagnosis.verdict.cause
    sure = f"{cause.label}, confidence {100 * cause.confidence:.0f} %"
    if cause.label == UNDETERMINED:
        return f"Undetermined: {_why_undetermined(diagnosis.verdict)}."
    is_cut = cause.label == HEALTHY and cause.confidence < 0.5
    if (queue := diagnosis.verdict.queue) is not None:
        used = "" if queue.usage is None else f" ({100 * queue.usage:.0f} % of the KV cache in use)"
        limit = "the KV cache is full" if queue.limit == "full" else "no more may run"
        well = "Healthy, and saturated" if cause.label == HEALTHY else "Nothing failed, and it is saturated"
        return f"{well}: {queue.running:,} requests run, {limit}{used}, and {queue.waiting:,} wait ({sure})."
    finding = (
        "Nothing failed in this log, but it ends before the server is ready"
        if is_cut
        else _WITHOUT_SHORTAGE.get(cause.label)
    )
    if QUOTED in diagnosis.notes:
        return f"If this is a log and not a text about one: {diagnosis.bill} ({sure})"
    return f"{finding} ({sure})." if finding else f"{diagnosis.bill} ({sure})"


def _why_undetermined(verdict: Verdict) -> str:
    """The clause that completes "Undetermined: "."""
    failure = verdict.failure
    if SOURCE in verdict.notes:
        return "the words of a failure stand in source code or in a command, and no line of a log has them"
    if QUOTED in verdict.notes:
        return "this reads like a text that quotes a failure, and not like the log of one"
    if failure is None or failure.match.signature.kind != "oom" or failure.match.signature.says == UNSAID:
        return "the log does not say which part of memory ran out, if any did"
    if verdict.cause.case == REFUSED:
        return f"{_with_room(verdict.amounts)}, so that no part of memory was short"
    return "memory of the GPU ran out, and the log does not say for which part"


def _with_room(amounts: Mapping[str, float]) -> str:
    """A clause on an allocation that failed though more memory was free; "" for none."""
    tried, free = amounts.get("tried_bytes", 0.0), amounts.get("free_bytes", 0.0)
    return f"{_size(tried)} were refused with {_size(free)} free on the GPU" if 0 < tried < free else ""


def _remarks(verdict: Verdict) -> tuple[str, ...]:
    """Sentences on the log's figures beside the verdict."""
    room, idle = _with_room(verdict.amounts), verdict.run.figures.get("idle_gib", 0.0)
    remarks = (
        room
        and verdict.cause.case != REFUSED
        and f"{room}: no plain want of memory (WSL 2, a slice of a GPU, or free addresses in pieces).",
        idle and verdict.cause.case == POSING and f"{idle:,.2f} GiB of the GPU were free when the pool had been made.",
    )
    return tuple(remark for remark in remarks if remark)


def sections(diagnosis: Diagnosis) -> list[tuple[str, list[str]]]:
    """The sections of the text: title and lines."""
    cause, short = diagnosis.verdict.cause, diagnosis.short
    engine = ENGINE_NAMES.get(diagnosis.engine or "", "no serving engine's line was found")
    version = f" {diagnosis.engine_version}" if diagnosis.engine_version else ""
    by = ""
    if short is not None and short.unit == "bytes":
        by = f"{_size(short.short_by)}: {short.what.format(_size(short.needed), _size(short.there))}"
    elif short is not None:
        by = f"{short.short_by:,} {short.unit}: {short.sentence}"
    is_other = cause.label == NOT_AN_OOM
    mend = ["mend what the quoted line says; no memory flag helps"] if is_other else []
    every = (
        ("", [f"{engine}{version} · phase: {diagnosis.verdict.phase}", diagnosis.symptom]),
        ("HOW WE KNOW", _evidence_lines(diagnosis.verdict)),
        ("SHORT BY", [by]),
        ("FIGURES IN THE LOG", [", ".join(_figure_texts(diagnosis))]),
        ("REPLAYED", list(_replay_lines(diagnosis, diagnosis.replayed)) if diagnosis.replayed else []),
        ("THE FIRST LIMIT", list(_health_lines(diagnosis.health)) if diagnosis.health else []),
        (_CHANGES, [_fix_line(number, fix) for number, fix in enumerate(diagnosis.fixes, 1)]),
        ("ALSO POSSIBLE", [", ".join(dict.fromkeys(cause.also))]),
        ("NEXT" if is_other else "WHAT WOULD DECIDE IT", list(cause.missing) or mend),
        ("NOTES", [*diagnosis.notes, *(f"not replayed: {reason}" for reason in diagnosis.not_replayed_because)]),
    )
    return [(title, list(filter(None, lines))) for title, lines in every if any(lines)]


def text(diagnosis: Diagnosis) -> str:
    """The diagnosis as plain text, section by section."""
    out = [headline(diagnosis)]
    for title, lines in sections(diagnosis):
        out += [""] + ([title] if title else [])
        out += [f"  {line}" if title else line for line in lines]
    return "\n".join(out)


def as_html(diagnosis: Diagnosis) -> str:
    """The diagnosis as one HTML file without links, scripts or external files; every text is escaped."""
    parts = [f"<h1>{html.escape(headline(diagnosis))}</h1>"]
    for title, lines in sections(diagnosis):
        if title:
            parts.append(f"<h2>{html.escape(title.capitalize())}</h2>")
        if title != _CHANGES:
            parts += [f"<p>{html.escape(line)}</p>" for line in lines]
            continue
        head = "".join(f"<th>{word}</th>" for word in ("Flag", "Direction", "Value", "Why", "Costs"))
        fixes = ((fix, "" if fix.value is None else str(fix.value)) for fix in diagnosis.fixes)
        rows = ((fix.flag, fix.direction, value, fix.reason, fix.cost) for fix, value in fixes)
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
        parts.append(f"<table><tr>{head}</tr>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
    phone = '<meta name="viewport" content="width=device-width,initial-scale=1">'
    head = f'<meta charset="utf-8">{phone}<title>sheetgen diagnose</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _evidence_lines(verdict: Verdict) -> list[str]:
    """The decisive line and the evidence next to it; that line, and those with a figure, are not shortened."""
    lines, decisive = verdict.evidence, verdict.failure.match.line_number if verdict.failure else None
    decisive_index = next((i for i, evidence in enumerate(lines) if evidence.line_number == decisive), 0)
    first = max(0, min(decisive_index - 2, len(lines) - _SHOWN_LINES))
    in_full = {decisive, *(clue.line_number for clue in verdict.run.clues.values() if clue.figures)}
    return [
        f"line {evidence.line_number:,}: "
        + (evidence.text if evidence.line_number in in_full else excerpt(evidence.text, most=_SHOWN_LINE))
        for evidence in lines[first : first + _SHOWN_LINES]
    ]


def _figure_texts(diagnosis: Diagnosis) -> Iterator[str]:
    for name, value in diagnosis.numbers.items():
        if name.endswith("_bytes") or "_bytes_" in name:
            yield f"{name.replace('_bytes', '').replace('_', ' ')} {_size(value)}"
        elif name.endswith("_fraction"):
            yield f"{name.removesuffix('_fraction').replace('_', ' ')} {100 * value:.1f} %"
        else:
            yield f"{name.replace('_', ' ')} {value:,}"


def _size(count: float) -> str:
    return f"{count / GIB:,.2f} GiB" if count >= GIB or not count else f"{count / MIB:,.2f} MiB"


def _replay_lines(diagnosis: Diagnosis, replayed: Replay) -> Iterator[str]:
    if replayed.contradiction:
        yield replayed.contradiction
    elif diagnosis.health is not None and diagnosis.health.first_limit:
        yield "Where this differs from the first limit below, that one counts: it is measured."
    yield f"predicted: {replayed.answer['verdict']}"
    for name, needed, available, short in replayed.rows.values():
        lacking = f", short by {short / GIB:,.2f} GiB" if short else ""
        yield f"{name}: needs {needed / GIB:,.2f} GiB of {available / GIB:,.2f} GiB{lacking}"
    yield from (f"{name}: {outcome}" for name, outcome in replayed.outcomes.items())


def _health_lines(health: Health) -> Iterator[str]:
    limit = f"by the log: {health.first_limit}"
    yield limit if health.first_limit else "the log states no KV pool, so that its first limit cannot be told"
    for name, pair in health.compared.items():
        label = name.replace("_bytes_per_gpu", "").replace("_", " ")
        of_bytes = "bytes" in name
        predicted, measured = (f"{value / GIB:,.2f} GiB" if of_bytes else f"{value:,.0f}" for value in pair)
        yield f"{label}: predicted {predicted}, measured {measured}"
    for reason in health.not_compared_because:
        yield f"no prediction: {reason}"


def _fix_line(number: int, fix: Fix) -> str:
    value = "" if fix.value is None or fix.direction == "free" else f" to {fix.value}"
    value = f" {fix.value}" if isinstance(fix.value, Step) else value
    move = "drop" if fix.direction == "unset" else fix.direction
    if fix.direction == "free" and fix.value is not None:
        move = f"run {fix.value}"
    return f"{number}. {move} {fix.flag}{value}: {fix.reason}. Costs: {fix.cost}"
