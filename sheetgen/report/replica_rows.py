"""A replica of each answer as it is started, for the engineers' page: its log lines, the memory of one GPU, its speed,
and the load at which it breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sheetgen.answer.answer_record import CellRecord
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.approval import measure_values
from sheetgen.report.page import NONE, Band, Cell, GpuParts, ReplicaRow, Text, words
from sheetgen.report.wording import MS, milliseconds, seconds, size, three_digits, whole
from sheetgen.sizing import memory
from sheetgen.units import ONE_DECIMAL, PERCENT, TWO_DECIMALS, UNIT_BYTES, UNIT_NAMES, Layout, listed


def replica_row(question: Question, cell: CellRecord, started: Mapping[str, float]) -> ReplicaRow:
    """The row of an answer's fullest replica, by every quantity of it as it is started."""
    chosen, units = cell.answer, question.settings.units
    candidate = question.instances[chosen.instance]
    held = int(started["sequences_in_pool"] * started["data_parallel_size"])
    model = question.model_of(cell.row).model
    layout = Layout(chosen.tensor_parallel_size, chosen.data_parallel_size).words(chosen.pipeline_parallel_size)
    most = min(int(chosen.paced_requests), held)
    longest = started["max_context_tokens_that_fit"]
    limit = model.max_context_tokens or longest
    pool, *ends = (
        Cell(started[f"kv_pool_bytes_per_gpu{end}"], replace(display, divisor=UNIT_BYTES[units]))
        for end, display in (("", TWO_DECIMALS), ("_low", ONE_DECIMAL), ("_high", ONE_DECIMAL))
    )
    return ReplicaRow(
        model=model.name,
        replicas=sentences.replicas.fill(
            held=chosen.replicas_held,
            needed=chosen.n_replicas,
            gpus=f"{chosen.gpus_per_replica:,} {candidate.gpu.short_name}, {layout}",
        ),
        requests=chosen.requests_per_replica,
        in_target=most,
        held=held,
        context_tokens=cell.context_tokens,
        longest_tokens=int(min(longest, limit)),
        pool=pool,
        pool_band=words("{} to {}", *ends) if started["band_scope"] else NONE,
        kv_tokens=whole(started["kv_tokens"]),
        max_concurrency=Cell(started["max_concurrency"], TWO_DECIMALS),
        parts=_parts(started, units),
        token=_band(cell, "tpot", milliseconds, 1000) if cell.output_tokens > 1 else None,
        first_token=_band(cell, "ttft", seconds, 1),
        log_note=_log_note(model.name, started, held, units),
        breaks=sentences.replica_breaks.fill(
            requests=chosen.requests_per_replica, in_target=most, counted=_held_at_low_end(started, held), held=held
        ),
        lengths=words("{} of {}", whole(cell.context_tokens), whole(min(longest, limit))),
    )


def _log_note(model_name: str, started: Mapping[str, float], held: int, units: str) -> Text:
    """That the pool holds more requests than the log's maximum concurrency, as each keeps less once its prompt is read;
    NONE where it keeps all."""
    charged, kept = started["kv_bytes_per_sequence"], started["kv_bytes_per_sequence_steady"]
    if kept >= charged or held <= started["max_concurrency"] + 1:
        return NONE
    sizes = {"charged": size(charged, units), "kept": size(kept, units), "unit": UNIT_NAMES[units]}
    return sentences.log_counts.fill(model=model_name, held=held, **sizes)


def memory_note(cells: Iterable[CellRecord]) -> Text:
    """The requests for which the sizing counts memory, of each answer: fewer than its replicas hold as started."""
    holds = [str(whole(cell.answer.memory_holds)) for cell in cells]
    return sentences.memory_counted.fill(holds=listed(holds))


def is_measured_itself(cell: CellRecord) -> bool:
    """True where an answer is measured on its own machines, and not on those that may prove enough."""
    return cell.measure is not None and cell.measure.run.instance == cell.answer.instance


def drive_words(question: Question, cell: CellRecord, bench: str | None) -> Text:
    """The load with which an answer is measured, on the machines and on each replica, and what passes; NONE of what
    nobody measures. bench: the benchmark's command, which has that load."""
    if cell.measure is None:
        return NONE
    targets = {figure: getattr(cell, f"{figure}_target_seconds") or 0 for figure in ("ttft", "tpot")}
    model, at_once = question.model_of(cell.row).model.name, cell.answer.sure_at.requests
    most = str(whole(cell.answer.paced_requests)) if at_once < cell.answer.paced_requests else ""
    return sentences.measure_drive.fill(
        model=model,
        at_once=at_once,
        most=most,
        input_tokens=cell.input_tokens,
        output_tokens=cell.output_tokens,
        ttft=three_digits(targets["ttft"]),
        tpot=three_digits(MS * targets["tpot"]),
        is_written=int(bool(bench)),
        **measure_values(question, cell),
    )


def _held_at_low_end(started: Mapping[str, float], held: int) -> int:
    """The requests that the pool at the low end of its band holds; as predicted where no band is known."""
    if not started["band_scope"]:
        return held
    low = {**started, "kv_budget_bytes_per_gpu": started["kv_pool_bytes_per_gpu_low"]}
    return int(memory.sequences_in_pool.of(low) * started["data_parallel_size"])


def _parts(started: Mapping[str, float], units: str) -> GpuParts:
    """The parts of one GPU's memory, one after another."""
    pool, graphs = started["kv_pool_bytes_per_gpu"], started["cuda_graph_bytes_per_gpu"]
    weights, overhead = started["loaded_weights_bytes_per_gpu"], started["overhead_bytes_per_gpu"]
    used = min(started["kv_needed_bytes_per_gpu"], pool)
    total = started["gpu_memory_bytes"]
    activations, beside = started["activation_bytes_per_gpu"], started["non_torch_bytes_per_gpu"]
    return GpuParts(
        shares=tuple(part / total for part in (weights, overhead, used, pool - used)),
        sizes=tuple(size(part, units) for part in (weights, activations, beside, graphs, used, pool - used)),
        limit=size(weights + overhead + pool, units),
        total=size(total, units),
    )


def _band(cell: CellRecord, figure: str, shown: Callable[[float], Cell], factor: float) -> Band:
    """A time with the ends of its 80 % band and its target, in the unit that it is shown in; of a rate, whose times are
    means, also with every place taken."""
    values = [getattr(cell.answer, f"{figure}_seconds{end}") for end in ("", "_low", "_high")]
    target = getattr(cell, f"{figure}_target_seconds")
    time, low, high = (value * factor for value in values)
    text = words("{} ({} to {})", *map(shown, values))
    full = getattr(cell.waits, f"{figure}_full_seconds") if cell.is_rate and cell.waits else None
    text = text if full is None else words("{}; full {}", text, shown(full))
    aim = three_digits((target or 0) * factor)
    return Band(time, low, high, target and target * factor, text, aim, full and full * factor)


def memory_finding(rows: Sequence[ReplicaRow]) -> Cell:
    """The shares of one GPU that the weights and the load's cache take, from the least to the most."""
    weights, cache = ([row.parts.shares[place] for row in rows] for place in (0, 2))
    return sentences.memory_finding.fill(weights=_span(weights), cache=_span(cache))


def _span(shares: Sequence[float]) -> Text:
    low, high = Cell(min(shares), PERCENT), Cell(max(shares), PERCENT)
    return low if low == high else words("{} to {}", low, high)


def speed_finding(rows: Sequence[ReplicaRow], is_rate: bool) -> Cell:
    """The number of answers that meet their targets even at the slow end of their bands; of a rate these are the bands
    of its mean times, which say nothing of full replicas."""
    aimed = [[band for band in (row.token, row.first_token) if band and band.target] for row in rows]
    safe = [all(band.high <= band.target for band in bands if band.target) for bands in aimed]
    return sentences.speed_finding.fill(
        n_safe=sum(safe), n_models=len(rows), n_aimed=sum(map(bool, aimed)), is_mean=int(is_rate)
    )


def breaks_finding(rows: Sequence[ReplicaRow]) -> Cell:
    """The answer whose replicas have the fewest places beyond the fullest one's requests."""
    least = min(rows, key=lambda row: (row.in_target - row.requests) / row.requests)
    return sentences.breaks_finding.fill(model=least.model, n_more=least.in_target - least.requests, n_models=len(rows))
