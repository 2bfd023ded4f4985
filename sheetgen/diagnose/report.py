"""A log -> the whole diagnosis as plain values: what `--json` prints and the page is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sheetgen.catalog import guidance
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.diagnose import healthy, reader, replay
from sheetgen.diagnose.decide import decide, start_of
from sheetgen.diagnose.fixes import Fix, fixes_for
from sheetgen.diagnose.reader import Read
from sheetgen.diagnose.replay import Replay
from sheetgen.diagnose.shortfall import Shortfall, shortfall
from sheetgen.diagnose.verdict import HEALTHY, Verdict
from sheetgen.startup.read import measure
from sheetgen.startup.words import RENAMED
from sheetgen.units import GIB, MIB

_BILLS = {"not_an_oom": "none: it failed for another reason", "healthy": "none"}


@dataclass(frozen=True)
class Diagnosis:
    """All that is said of one log. `record` is INTERFACE's; the rest adds to it."""

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
    health: healthy.Health | None

    def record(self) -> dict[str, Any]:
        bill = self.verdict.bill
        answer: dict[str, Any] = {
            "label": bill.label,
            "confidence": round(bill.confidence, 2),
            "bill": self.bill,
            "phase": self.verdict.phase,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "evidence": [asdict(one) for one in self.verdict.evidence],
            "numbers": self.numbers,
            "fixes": [asdict(one) for one in self.fixes],
            "also_possible": list(dict.fromkeys(bill.also)),
            "missing": list(bill.missing),
            "case": bill.case,
            "shortfall": asdict(self.short) | {"what": self.short.said} if self.short else None,
            "notes": list(self.notes),
            "replay": None,
            "not_replayed_because": list(self.not_replayed_because),
            "health": asdict(self.health) if self.health else None,
        }
        if self.replayed is not None:
            rows = [dict(zip(("bill", "needed_bytes", "there_bytes", "short_by_bytes"), row, strict=True))
                    for row in self.replayed.rows]  # fmt: skip
            answer["replay"] = {
                "contradiction": self.replayed.contradiction,
                "inputs": self.replayed.inputs, "verdict": self.replayed.answer["verdict"],
                "fits": self.replayed.answer["fits"], "bills": rows, "changes": self.replayed.outcomes,
            }  # fmt: skip
        return answer


def diagnose(name: str, options: Mapping[str, Any], catalog: Catalog) -> Diagnosis:
    """The diagnosis of the log called `name` (`-`: stdin). Raises ScenarioError where it is no text, or is empty."""
    file = guidance.fingerprint_file(catalog)
    read = reader.read(name, file.signatures, catalog.devices)
    verdict = decide(read.facts, read.startup)
    engine = load_engine(catalog, str(options["engine"])).engine if options.get("engine") else engine_of(read)
    any_start = read.startup if read.startup and engine in (read.startup.engine, "nim", None) else None
    version = any_start.version if any_start else None
    startup = start_of(verdict.run, read.facts, any_start)
    given = {key: value for key, value in options.items() if value is not None and key != "engine"}
    replayed: Replay | None = None
    reasons: tuple[str, ...] = ()
    if verdict.bill.label not in ("undetermined", "not_an_oom", HEALTHY) or given:
        replayed, reasons = replay.replay(verdict, startup, engine, given, catalog)
    if given and replayed is None and ("model" in given or "gpu" in given):
        _refuse_unknown(given, catalog)
    one = next((f for f in file.fingerprints if f.label == verdict.bill.label), None)
    numbers = _numbers(verdict, read)
    wanted = given.get("engine_version") or (version if any_start and any_start.engine == engine else None)
    return Diagnosis(
        verdict,
        engine,
        version,
        *_words(one, verdict, engine),
        numbers,
        shortfall(numbers) if verdict.failure else None,
        fixes_for(verdict, engine, file, guidance.assumptions(catalog), startup, replayed, wanted),
        (*verdict.notes, *(replayed.notes if replayed else ())),
        replayed,
        reasons,
        healthy.health(startup, verdict, given, catalog) if verdict.bill.label == HEALTHY and startup else None,
    )


def _words(one: guidance.Fingerprint | None, verdict: Verdict, engine: str | None) -> tuple[str | None, str]:
    """The bill and how it looks: for this form of the death, else for this engine, else for all."""
    if one is None:
        return _BILLS.get(verdict.bill.label), ""
    case = one.cases.get(verdict.bill.case or "")
    if case:
        return case.bill, case.symptom
    usual = one.words(engine or "").symptom
    return one.bill, f"Typical: {usual}" if usual else ""  # not every line that it speaks of is in this log


def _refuse_unknown(given: Mapping[str, Any], catalog: Catalog) -> None:
    """A name that was typed and is in no catalog is the user's to mend."""
    if "model" in given:
        catalog.resolve_model(str(given["model"]))
    if "gpu" in given:
        catalog.gpu(str(given["gpu"]))


def engine_of(read: Read) -> str | None:
    """The engine that most of the lines are of; NIM is told by its own, for the rest are of the engine inside."""
    votes = read.facts.votes
    if votes.get("nim"):
        return "nim"
    if votes:
        first = max(votes, key=lambda e: votes[e])
        return first
    return read.startup.engine if read.startup else None


def _numbers(verdict: Verdict, read: Read) -> dict[str, float | int]:
    """Named figures: of the line that told the label, of the start, of the last statistics."""
    found: dict[str, float] = dict(verdict.run.figures)
    startup = start_of(verdict.run, read.facts, read.startup)
    if startup is not None and startup.engine in RENAMED:
        found |= {name: figure.value for name, figure in measure(startup).figures.items()}
    if verdict.failure is not None:
        found |= verdict.failure.amounts | verdict.failure.match.figures
    samples = verdict.run.usage.until(verdict.failure.match.line_number if verdict.failure else None)
    if samples:
        last = samples[-1]
        found |= {"running_requests": last.running, "waiting_requests": last.waiting}
        if last.usage is not None:
            found["kv_usage_fraction"] = last.usage
    plain = dict(_in_bytes(name, value) for name, value in found.items())
    return {k: int(v) if v == int(v) else round(v, 6) for k, v in plain.items() if abs(v) < 1e18}


def _in_bytes(name: str, value: float) -> tuple[str, float]:
    """A size that a message prints in GiB, MiB or GB, as whole bytes under its own name."""
    stem, _, unit = name.rpartition("_")
    scale = {"gib": GIB, "mib": MIB, "gb": 10**9}.get(unit)
    return (name, value) if scale is None else (f"{stem}_bytes", float(round(value * scale)))
