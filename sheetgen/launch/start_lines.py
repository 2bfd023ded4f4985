"""Shell lines that start all replicas of the answers: on each machine its replicas, each on its own GPUs and port;
flags that the models share are written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sheetgen.answer.answer_record import ChosenRecord
from sheetgen.launch.commands import Written, quoted
from sheetgen.question.market import Candidate
from sheetgen.report import sentences
from sheetgen.report.page import Start

FIRST_PORT = 8000  # of the first replica on a machine; any free port works
PORT_FLAGS = {"vllm": "--port", "sglang": "--port", "tensorrt-llm": "--port", "lmdeploy": "--server-port"}
MOST_LINES = 4  # replicas of one machine; more are started in a loop
ROOMY = 3  # models; with more, two replicas share a line


class Started(NamedTuple):
    """One model's answer, and the command of its replicas."""

    model: str
    engine: str
    written: Written
    chosen: ChosenRecord
    candidate: Candidate

    @property
    def on_one(self) -> int:
        """The number of replicas on one machine."""
        return max(1, min(self.candidate.gpu_count // self.chosen.gpus_per_replica, self.chosen.replicas_held))

    @property
    def is_side_by_side(self) -> bool:
        return self.on_one > 1 and self.engine in PORT_FLAGS


def start_lines(models: Sequence[Started]) -> Start:
    """The shell lines that start all replicas, with a note."""
    shared = _shared(models)
    flags = [f'FLAGS="{" ".join(shared)}"'] if shared else []
    lines = [line for started in models for line in _lines_of(started, shared, len(models))]
    most = max((started.chosen.replicas_held for started in models), default=1)
    return Start(
        (*flags, *lines), sentences.start_note.fill(n_models=len(models), n_shared=len(shared), most_replicas=most)
    )


def _shared(models: Sequence[Started]) -> list[str]:
    """The flags that every model has, each with the value of most models; only those without shell quoting."""
    if len(models) < 2:
        return []
    of_models = [_flags(started) for started in models]
    names = [name for name in of_models[0] if all(name in flags for flags in of_models)]
    most = [Counter(flags[name] for flags in of_models).most_common(1)[0] for name in names]
    return [flag for flag, count in most if 2 * count > len(models)]


def _flags(started: Started) -> dict[str, str]:
    """The flags with their values by name, only those without shell quoting."""
    plain = [group for group in started.written.groups if group[0].startswith("--")]
    return {group[0]: " ".join(group) for group in plain if all(quoted(word) == word for word in group)}


def _lines_of(started: Started, shared: Sequence[str], n_models: int) -> Iterator[str]:
    names = {flag.split()[0] for flag in shared}
    words = [" ".join(map(quoted, group)) for group in started.written.groups]
    own = [text for text in words if text not in shared]
    first = [text for text in own if text.split()[0] not in names]
    command = " ".join([*first, *(["$FLAGS"] if shared else []), *(text for text in own if text not in first)])
    remark = _remark(started)
    if not started.is_side_by_side:
        yield command + remark
        return
    is_plain = all(quoted(word) == word for group in started.written.groups for word in group)
    if is_plain:
        yield f'SERVE="{command}"'
    of_a_line = 1 if n_models <= ROOMY or not is_plain else 2
    *starts, last = _side_by_side(started, "$SERVE" if is_plain else command, of_a_line)
    yield from starts
    yield last + remark


def _remark(started: Started) -> str:
    """The comment after a model's line, with a leading space; empty for none."""
    chosen = started.chosen
    is_staged = chosen.pipeline_parallel_size > 1
    text = sentences.start_remark.fill(
        n_machines=chosen.pipeline_parallel_size if is_staged else -(-chosen.replicas_held // started.on_one),
        is_staged=is_staged and chosen.spans_machines,
        files=", ".join(started.written.files) or None,
        engine=started.engine,
    )
    return f"  # {text}" if text else ""


def _side_by_side(started: Started, serve: str, of_a_line: int) -> Iterator[str]:
    """Shell lines that start the replicas of one machine, `of_a_line` per line; a loop for many."""
    n_gpus, port = started.chosen.gpus_per_replica, PORT_FLAGS[started.engine]
    visible = "HIP_VISIBLE_DEVICES" if started.candidate.gpu.vendor == "amd" else "CUDA_VISIBLE_DEVICES"
    if started.on_one > MOST_LINES:
        places = " ".join(map(str, range(started.on_one)))
        devices = ",".join(f"$(({n_gpus}*i+{j}))" for j in range(n_gpus)) if n_gpus > 1 else "$i"
        yield f"for i in {places}; do {visible}={devices} {serve} {port} $(({FIRST_PORT}+i)) & done"
        return
    starts = [
        f"{visible}={','.join(map(str, range(i * n_gpus, (i + 1) * n_gpus)))} {serve} {port} {FIRST_PORT + i} &"
        for i in range(started.on_one)
    ]
    for first in range(0, started.on_one, of_a_line):
        yield " ".join(starts[first : first + of_a_line])
