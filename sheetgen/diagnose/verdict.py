"""What is said of a run: the bill, the failure that told it, and the lines of the log that show it."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.diagnose.facts import Failure, Run
from sheetgen.diagnose.rules import Bill

NOT_AN_OOM, HEALTHY = "not_an_oom", "healthy"
ERROR_MISSING = "the error line itself: the log ends, or was cut, before it"
READY_MISSING = "the rest of the log, up to the line that says that the server is ready"
CAUSE_ABOVE = "read the {who}'s own traceback above this line: it names the cause"
NO_ENGINE = "a line of vLLM, SGLang, TensorRT-LLM, NIM, TGI, LMDeploy or llama.cpp: none was found"


@dataclass(frozen=True)
class Evidence:
    """A line of the log and why it was looked at."""

    line_number: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """The bill, the run that it is of, the failure that told it (none where nothing failed), and the evidence."""

    bill: Bill
    run: Run
    failure: Failure | None
    phase: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()


PHASES = {
    "loading": "start: loading weights",
    "loaded": "start: weights loaded, KV pool not sized",
    "sized": "start: KV pool sized",
    "capturing": "start: capturing CUDA graphs",
    "captured": "start: CUDA graphs captured",
    "failed-start": "start",
    "ready": "serving",
    "serving": "serving",
    "died-serving": "serving",
}


def named(phase: str) -> str:
    return PHASES.get(phase, "unknown")
