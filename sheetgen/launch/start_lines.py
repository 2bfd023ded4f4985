"""The lines of a shell that start every replica of the answers: on each machine its replicas, each on its own GPUs and
port; what all models have in common stands once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sheetgen.answer.answer_record import ChosenRecord
from sheetgen.launch.commands import Written, quoted
from sheetgen.question.market import Candidate
from sheetgen.report import sentences
from sheetgen.report.page import Start

FIRST_PORT = 8000  # of the first replica on a machine: any that is free will do
PORT_FLAGS = {"vllm": "--port", "sglang": "--port", "tensorrt-llm": "--port", "lmdeploy": "--server-port"}
MOST_LINES = 4  # replicas of one machine that are not a loop
ROOMY = 3  # models, up to which each of these has a line


class Started(NamedTuple):
    """One model's answer with the command of a replica."""

    model: str
    engine: str
    written: Written
    chosen: ChosenRecord
    candidate: Candidate

    @property
    def on_one(self) -> int:
        """The replicas of one machine."""
        return max(1, min(self.candidate.gpu_count // self.chosen.gpus_per_replica, self.chosen.replicas_held))

    @property
    def is_side_by_side(self) -> bool:
        return self.on_one > 1 and self.engine in PORT_FLAGS


def start_lines(models: Sequence[Started]) -> Start:
    """How all replicas are started."""
    shared = _shared(models)
    flags = [f'FLAGS="{" ".join(shared)}"'] if shared else []
    lines = [line for one in models for line in _lines_of(one, shared, len(models))]
    most = max((one.chosen.replicas_held for one in models), default=1)
    return Start((*flags, *lines), sentences.start_note.fill(n_shared=len(shared), most_replicas=most))


def _shared(models: Sequence[Started]) -> list[str]:
    """The flags that every model has, as most have them, and that need no quotes of their own."""
    if len(models) < 2:
        return []
    of_models = [_flags(one) for one in models]
    names = [name for name in of_models[0] if all(name in flags for flags in of_models)]
    most = [Counter(flags[name] for flags in of_models).most_common(1)[0] for name in names]
    return [flag for flag, count in most if 2 * count > len(models)]


def _flags(one: Started) -> dict[str, str]:
    """Flags that need no quotes, by name, each with its value."""
    plain = [group for group in one.written.groups if group[0].startswith("--")]
    return {group[0]: " ".join(group) for group in plain if all(quoted(word) == word for word in group)}


def _lines_of(one: Started, shared: Sequence[str], n_models: int) -> Iterator[str]:
    names = {flag.split()[0] for flag in shared}
    words = [" ".join(map(quoted, group)) for group in one.written.groups]
    own = [text for text in words if text not in shared]
    first = [text for text in own if text.split()[0] not in names]
    command = " ".join([*first, *(["$FLAGS"] if shared else []), *(text for text in own if text not in first)])
    remark = _remark(one)
    if not one.is_side_by_side:
        yield command + remark
        return
    is_plain = all(quoted(word) == word for group in one.written.groups for word in group)
    if is_plain:
        yield f'SERVE="{command}"'
    of_a_line = 1 if n_models <= ROOMY or not is_plain else 2
    *starts, last = _side_by_side(one, "$SERVE" if is_plain else command, of_a_line)
    yield from starts
    yield last + remark


def _remark(one: Started) -> str:
    """What is to be known of a model's replicas, behind their line."""
    chosen = one.chosen
    is_staged = chosen.pipeline_parallel_size > 1
    said = sentences.start_remark.fill(
        n_machines=chosen.pipeline_parallel_size if is_staged else -(-chosen.replicas_held // one.on_one),
        is_staged=is_staged and chosen.spans_machines,
        files=", ".join(one.written.files) or None,
        engine=one.engine,
    )
    return f"  # {said}" if said else ""


def _side_by_side(one: Started, serve: str, of_a_line: int) -> Iterator[str]:
    """Each replica of a machine, so many a line; a loop for many."""
    n_gpus, port = one.chosen.gpus_per_replica, PORT_FLAGS[one.engine]
    visible = "HIP_VISIBLE_DEVICES" if one.candidate.gpu.vendor == "amd" else "CUDA_VISIBLE_DEVICES"
    if one.on_one > MOST_LINES:
        places = " ".join(map(str, range(one.on_one)))
        devices = ",".join(f"$(({n_gpus}*i+{j}))" for j in range(n_gpus)) if n_gpus > 1 else "$i"
        yield f"for i in {places}; do {visible}={devices} {serve} {port} $(({FIRST_PORT}+i)) & done"
        return
    starts = [
        f"{visible}={','.join(map(str, range(i * n_gpus, (i + 1) * n_gpus)))} {serve} {port} {FIRST_PORT + i} &"
        for i in range(one.on_one)
    ]
    for first in range(0, one.on_one, of_a_line):
        yield " ".join(starts[first : first + of_a_line])
