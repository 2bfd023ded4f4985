"""What users get of each load's choice on Workings, and what it costs a user: times, tokens, their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen import cost
from sheetgen.estimate import PACE
from sheetgen.formula import Expr, Formula, both, formula, is_number, join_text, number_where, where, whole_text
from sheetgen.sheet.book.speed import OF_PROFILE, PARTS, SUMS
from sheetgen.sheet.book.wiring import Table, Wiring, named
from sheetgen.sheet.model import Range, Ref, index, lookup
from sheetgen.sizing import speed, targets
from sheetgen.units import FACTOR, PLAIN, SECONDS, TEXT, WHOLE, Display


def of_profile(wiring: Wiring, table: Table, name: str, label: str, display: Display = WHOLE) -> None:
    """What a block of Profiles, a row for each model and workload or each model, holds in the chosen profile's
    column; 0 where nothing was chosen."""
    key = "model_row" if name in wiring.by_model else "pace_row"
    here, rows = table.sheet.name, wiring.blocks[name]
    block = named(wiring.names, f"tbl_{wiring.prefix}profiles_{name}", (rows[0][0], rows[-1][-1]))

    def find(i: int) -> tuple[Any, Expr]:
        place, pace = table.columns["profile"][i], table.columns[key][i]
        text = f"INDEX({block.expr(here).text},{pace.expr(here).text},{place.expr(here).text})"
        expr = where(is_number(place.expr(here)), Expr(text), 0)
        return (0 if place.value == "-" else rows[pace.value - 1][place.value - 1].value), expr

    table.looked_up(name, label, find, display)


SHOWN = (
    "batch_requests", "untouched_fraction", "tpot_seconds", "service_ttft_seconds", "ttft_seconds",
    "output_tokens_per_second", "prefill_fraction", "bound_by",
)  # fmt: skip
TPOT = SHOWN[:3]


def chosen(one: Formula) -> Formula:
    """The same formula for a load that has hardware; none for one that has not."""

    def read(n_instances: Any, *values: Any) -> Any:
        if isinstance(n_instances, Expr):
            return number_where(is_number(n_instances), one.function(*values))
        return one.function(*values) if n_instances == n_instances else float("nan")

    return Formula(one.name, one.label, one.display, ("n_instances", *one.inputs), read, one.function)


@formula("Row of the band", PLAIN)
def band_row(n_experts: Any, is_fitted: Any, pipeline_stages: Any) -> Any:
    """The row of the error bands on Inputs: runs on this GPU and engine or not, dense or mixture of experts.

    Source: docs/speed.md; no run had pipeline stages.
    """
    measured = both(is_fitted == 1, pipeline_stages == 1)
    kind = where(n_experts > 0, 1, 0)
    return 1 + kind + where(measured, 0, 1) + where(measured, 0, 1)


@formula("Milliseconds")
def in_milliseconds(seconds: Any, milliseconds_per_second: Any) -> Any:
    """A time in milliseconds.

    Source: definition.
    """
    return number_where(is_number(seconds), seconds * milliseconds_per_second)


@formula("Speed in words", TEXT)
def speed_words(n_instances: Any, tpot_ms: Any, tpot_low_ms: Any, tpot_high_ms: Any, sized_by: Any) -> Any:
    """Time per output token with its 80 % band, and what asked for the replicas. What asked for the hardware, as the
    PDF has it, takes a second choice by memory alone, which no cell makes.

    Source: the columns beside.
    """
    span = join_text(" (", whole_text(tpot_low_ms), " to ", whole_text(tpot_high_ms), ")")
    words = join_text(whole_text(tpot_ms), " ms a token", span, "; replicas by ", sized_by)
    return where(is_number(n_instances), words, "-")


@formula("First token in words", TEXT)
def ttft_words(n_instances: Any, ttft_ms: Any, output_tokens_per_second: Any) -> Any:
    """Time to the first token, and the tokens of all requests together.

    Source: the columns beside.
    """
    rate = whole_text(output_tokens_per_second)
    words = join_text("first token ", whole_text(ttft_ms), " ms, indicative; ", rate, " tokens/s in all")
    return where(is_number(n_instances), words, "-")


def add_choice_parts(wiring: Wiring, table: Table) -> None:
    """What a step on the chosen profile takes, from the blocks of Profiles."""
    here, profiles, latency = table.sheet.name, wiring.tables["profiles"], wiring.tables["paces"]
    for name in PARTS:
        of_profile(wiring, table, name, name.replace("_", " ").capitalize(), _display(name))
    for one in SUMS:
        table.computed(one, lambda i: {})
    for name in (*OF_PROFILE, "speed_is_fitted"):
        row = profiles.range(name)

        def find(i: int, row: Range = row) -> tuple[Any, Expr]:
            place = table.columns["profile"][i]
            expr = where(is_number(place.expr(here)), index(row, place, here), 0)
            return (0 if place.value == "-" else row.refs[place.value - 1].value), expr

        table.looked_up(name, name.replace("_", " ").capitalize(), find, _display(name))
    for name in ("output_tokens", "expert_miss_fraction"):
        table.picked(name, name.replace("_", " ").capitalize(), latency.range(name), "pace_row", _display(name))


def add_choice_speed(wiring: Wiring, table: Table, *, alone: bool = False) -> None:
    """What users get of the chosen hardware. alone: the time per output token only."""
    inputs = lambda i: wiring.inputs  # noqa: E731
    table.computed(chosen(targets.requests_per_replica), inputs)

    def env(i: int) -> Mapping[str, Any]:
        own = table.columns["requests_per_replica"][i]
        return {
            **wiring.inputs, "running_requests": own, "concurrent_requests": own, "queue_seconds": _zero(wiring),
            "pipeline_parallel_size": table.columns["pipeline_stages"][i],
        }  # fmt: skip

    def all_replicas(i: int) -> Mapping[str, Any]:
        return {**wiring.inputs, "concurrent_requests": table.columns["load_requests"][i]}

    for one in PACE:
        if one.name in (TPOT if alone else SHOWN):
            table.computed(chosen(one), all_replicas if one.name == "output_tokens_per_second" else env)
    table.computed(chosen(_sized_by), inputs, name="sized_by")
    _bands(wiring, table, ("tpot",) if alone else ("tpot", "ttft", "output_tokens_per_second"))
    table.computed(speed_words, lambda i: {}, width=46)
    if not alone:
        table.computed(ttft_words, lambda i: {}, width=46)


@formula("Replicas by", TEXT)
def _sized_by(load_requests: Any, sequences: Any, batch_limit: Any, pipeline_stages: Any) -> Any:
    """speed where its targets ask for more replicas than memory does, else memory.

    Source: n_replicas.
    """
    return targets.sized_by(load_requests, sequences, batch_limit * pipeline_stages)


def _zero(wiring: Wiring) -> Ref:
    """Nobody waits for memory: replicas are as many as hold all requests."""
    return wiring.inputs["no_queue_seconds"]


def _bands(wiring: Wiring, table: Table, figures: Sequence[str]) -> None:
    here, models = table.sheet.name, wiring.tables["models"]
    experts = models.range("n_experts")
    table.looked_up(
        "n_experts", "Experts", lambda i: (experts.refs[int(table.columns["model_row"][i].value) - 1].value,
                                           index(experts, table.columns["model_row"][i], here)), WHOLE,
    )  # fmt: skip
    table.computed(band_row, lambda i: {"is_fitted": table.columns["speed_is_fitted"][i]})
    for figure in figures:
        name = figure if figure.endswith("second") else f"{figure}_seconds"
        for end in ("low", "high"):
            factors = wiring.lists[f"{figure}_band_{end}"]
            table.computed(
                chosen(speed.at_speed_band),
                lambda i, n=name, f=factors: {  # type: ignore[misc,arg-type]
                    "predicted": table.columns[n][i], "band_factor": lookup(f, table.columns["band_row"][i]),
                },
                name=f"{name}_{end}", label=f"{figure.replace('_', ' ')}, {end}",
            )  # fmt: skip
    for name, source in (
        ("tpot_ms", "tpot_seconds"), ("tpot_low_ms", "tpot_seconds_low"), ("tpot_high_ms", "tpot_seconds_high"),
        ("ttft_ms", "ttft_seconds"),
    ):  # fmt: skip
        if source not in table.columns:
            continue
        table.computed(
            in_milliseconds,
            lambda i, s=source: {**wiring.inputs, "seconds": table.columns[s][i]},  # type: ignore[misc]
            name=name, label=name.replace("_", " "),
        )  # fmt: skip


def _display(name: str) -> Display:
    return SECONDS if name.endswith("_seconds") else FACTOR if name.startswith(("wait", "expert", "steps")) else WHOLE


OF_LOADS = (
    cost.usd_per_user_per_month, cost.million_output_tokens_per_month, cost.million_input_tokens_per_month,
    cost.usd_per_million_input_tokens, cost.usd_per_million_output_tokens, cost.usd_per_million_tokens,
)  # fmt: skip


def add_unit_costs(wiring: Wiring) -> None:
    """Per load: a user's month, and a million tokens at the utilization on Inputs, by the speed of the choice."""
    table = wiring.tables["cells"]
    for one in OF_LOADS:
        table.computed(one, lambda i: wiring.inputs, width=14)
