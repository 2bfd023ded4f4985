"""A log -> the whole diagnosis as plain values: what `--json` prints and the page is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sheetgen.catalog import guidance
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.diagnose.fixes import Fix, fixes_for
from sheetgen.diagnose.reading import Read, read
from sheetgen.diagnose.replay import Replay, replay
from sheetgen.diagnose.rules import HEALTHY, NOT_AN_OOM, UNDETERMINED, Verdict
from sheetgen.diagnose.verdict import start_of, verdict_of
from sheetgen.errors import SheetgenError
from sheetgen.recommend import short_tokens
from sheetgen.scenario import parse
from sheetgen.startup.compare import Compared, compare
from sheetgen.startup.read import StartupLog, measure
from sheetgen.startup.words import RENAMED
from sheetgen.units import GIB, MIB

_BILLS = {"not_an_oom": "none: it failed for another reason", "healthy": "none"}
_COMPARED = ("weights_bytes_per_gpu", "activation_bytes_per_gpu", "kv_pool_bytes_per_gpu", "kv_tokens")
# What was needed, what there was, and the words for both; the first pair that the log holds is reported.
_PAIRS = (
    ("kv_needed_bytes", "kv_available_bytes", "one request needs {} of KV cache, the pool has {}", "bytes"),
    ("wanted_bytes", "free_at_start_bytes", "the share asks for {}, {} were free at the start", "bytes"),
    ("host_needed_bytes", "host_free_bytes", "{} of host memory are needed, {} are free", "bytes"),
    ("max_num_seqs", "mamba_blocks", "{} sequences need a state each, there are {} states", "sequences"),
    ("max_model_len", "kv_tokens_available", "one request needs {} tokens, the pool holds {}", "tokens"),
    ("requested_tokens", "limit_tokens", "prompt and answer have {} tokens, {} are allowed", "tokens"),
    ("prompt_tokens", "limit_tokens", "the prompt has {} tokens, {} are allowed", "tokens"),
    ("tried_bytes", "free_bytes", "one allocation asked for {}, {} were free on the GPU", "bytes"),
)


@dataclass(frozen=True)
class Shortfall:
    """So much was needed and so much there, in `unit`; `what` says it, with {} for each of the two."""

    what: str
    needed: float | int
    there: float | int
    short_by: float | int
    unit: str

    @property
    def said(self) -> str:
        """The sentence with plain numbers, of bytes in GiB."""
        if self.unit == "bytes":
            return self.what.format(*(f"{n / GIB:,.2f} GiB" for n in (self.needed, self.there)))
        return self.what.format(f"{self.needed:,}", f"{self.there:,}")


@dataclass(frozen=True)
class Health:
    """`first_limit` is one sentence; `compared` has predicted and measured by quantity."""

    first_limit: str
    compared: dict[str, tuple[float | int, float | int]]
    not_compared_because: tuple[str, ...] = ()


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
    health: Health | None

    def record(self) -> dict[str, Any]:
        bill, replayed = self.verdict.bill, self.replayed
        names = ("bill", "needed_bytes", "there_bytes", "short_by_bytes")
        return {
            "label": bill.label, "confidence": round(bill.confidence, 2), "bill": self.bill,
            "phase": self.verdict.phase, "engine": self.engine, "engine_version": self.engine_version,
            "evidence": [asdict(one) for one in self.verdict.evidence], "numbers": self.numbers,
            "fixes": [asdict(one) for one in self.fixes], "also_possible": list(dict.fromkeys(bill.also)),
            "missing": list(bill.missing), "case": bill.case,
            "shortfall": asdict(self.short) | {"what": self.short.said} if self.short else None,
            "notes": list(self.notes),
            "replay": {
                "contradiction": replayed.contradiction, "inputs": replayed.inputs,
                "verdict": replayed.answer["verdict"], "fits": replayed.answer["fits"],
                "bills": [dict(zip(names, row, strict=True)) for row in replayed.rows], "changes": replayed.outcomes,
            } if replayed else None,
            "not_replayed_because": list(self.not_replayed_because),
            "health": asdict(self.health) if self.health else None,
        }  # fmt: skip


def diagnose(name: str, options: Mapping[str, Any], catalog: Catalog) -> Diagnosis:
    """The diagnosis of the log called `name` (`-`: stdin). Raises ScenarioError where it is no text, or is empty."""
    file = catalog.file(guidance.FingerprintFile)
    log = read(name, file.signatures, catalog.devices)
    verdict = verdict_of(log.facts, log.startup)
    engine = load_engine(catalog, str(options["engine"])).engine if options.get("engine") else engine_of(log)
    any_start = log.startup if log.startup and engine in (log.startup.engine, "nim", None) else None
    version = any_start.version if any_start else None
    startup = start_of(verdict.run, log.facts, any_start)
    given = {key: value for key, value in options.items() if value is not None and key != "engine"}
    replayed: Replay | None = None
    reasons: tuple[str, ...] = ()
    if verdict.bill.label not in (UNDETERMINED, NOT_AN_OOM, HEALTHY) or given:
        replayed, reasons = replay(verdict, startup, engine, given, catalog)
    if replayed is None:  # a name that was typed and is in no catalog is the user's to mend
        if "model" in given:
            catalog.resolve_model(str(given["model"]))
        if "gpu" in given:
            catalog.gpu(str(given["gpu"]))
    fingerprint = next((f for f in file.fingerprints if f.label == verdict.bill.label), None)
    numbers = _numbers(verdict, log)
    wanted = given.get("engine_version") or (version if any_start and any_start.engine == engine else None)
    fixes = fixes_for(verdict, engine, file, guidance.assumptions(catalog), startup, replayed, wanted)
    return Diagnosis(
        verdict, engine, version, *_words(fingerprint, verdict, engine), numbers,
        shortfall(numbers) if verdict.failure else None, fixes,
        (*verdict.notes, *(replayed.notes if replayed else ())), replayed, reasons,
        health(startup, given, catalog) if verdict.bill.label == HEALTHY and startup else None,
    )  # fmt: skip


def _words(one: guidance.Fingerprint | None, verdict: Verdict, engine: str | None) -> tuple[str | None, str]:
    """The bill and how it looks: for this form of the death, else for this engine, else for all."""
    if one is None:
        return _BILLS.get(verdict.bill.label), ""
    case = one.cases.get(verdict.bill.case or "")
    if case:
        return case.bill, case.symptom
    usual = one.words(engine or "").symptom
    return one.bill, f"Typical: {usual}" if usual else ""  # not every line that it speaks of is in this log


def engine_of(log: Read) -> str | None:
    """The engine that most of the lines are of; NIM is known by its own, for the rest are of the engine inside."""
    votes = log.facts.votes
    if votes:
        return "nim" if votes.get("nim") else max(votes, key=lambda engine: votes[engine])
    return log.startup.engine if log.startup else None


def _numbers(verdict: Verdict, log: Read) -> dict[str, float | int]:
    """Named figures: of the line that decided the label, of the start, of the last statistics."""
    found: dict[str, float] = dict(verdict.run.figures)
    startup = start_of(verdict.run, log.facts, log.startup)
    if startup is not None and startup.engine in RENAMED:
        found |= {name: figure.value for name, figure in measure(startup).figures.items()}
    if verdict.failure is not None:
        found |= verdict.failure.amounts | verdict.failure.match.figures
    if samples := verdict.run.usage.until(verdict.failure.match.line_number if verdict.failure else None):
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


def shortfall(numbers: Mapping[str, float | int]) -> Shortfall | None:
    """The first pair of figures of which less was there than needed."""
    answer = numbers.get("completion_tokens", 0)
    both = {"requested_tokens": numbers.get("prompt_tokens", 0) + answer} if answer else {}
    known = {**both, **numbers}
    for needed, there, what, unit in _PAIRS:
        if needed in known and there in known and known[needed] > known[there]:
            return Shortfall(what, known[needed], known[there], known[needed] - known[there], unit)
    return None


def health(startup: StartupLog, options: Mapping[str, Any], catalog: Catalog) -> Health | None:
    """What a healthy log says of its capacity; None where it states no pool."""
    try:
        compared = compare(startup, options, catalog)
    except SheetgenError as error:
        return Health(_limit(startup, None, options), {}, error.problems)
    pairs = {
        name: (predicted, compared.measured.figures[name].value)
        for name in _COMPARED
        if (predicted := compared.predicted.get(name)) is not None and name in compared.measured.figures
    }
    return Health(_limit(startup, compared, options), pairs, compared.unsized)


def _limit(startup: StartupLog, compared: Compared | None, options: Mapping[str, Any]) -> str:
    """The user that waits first, at the longest context and at half of it: by memory or by the engine's own cap."""
    measured = compared.measured if compared else measure(startup)
    tokens = measured.figures.get("kv_tokens")
    arguments = {name: one.value for name, one in startup.arguments.items()}
    stated = compared.inputs.get("max_model_len") if compared else None
    each = startup.figures.get("tokens_per_request", {})
    length = stated or next((f.value for f in each.values()), None)
    requested = options.get("context_tokens") or options.get("max_model_len")
    if requested is not None:
        length = parse.tokens(requested, "context")
    if tokens is None:
        return ""
    if not length:
        return f"the pool is {tokens.value:,.0f} tokens; max_model_len is not in the log. Add --context 16k"
    held = int(tokens.value // length)
    cap = (compared.inputs.get("max_num_seqs") if compared else None) or arguments.get("max_num_seqs")
    at = short_tokens(int(length))
    if isinstance(cap, int) and 0 < cap <= held:
        return f"user {cap + 1:,} waits for a free place (max_num_seqs {cap:,}); the pool would hold {held:,} at {at}"
    if held < 1:
        return f"one request of {at} does not fit in the pool of {tokens.value:,.0f} tokens"
    return f"user {held + 1:,} at {at}: the pool of {tokens.value:,.0f} tokens holds {held:,}"
