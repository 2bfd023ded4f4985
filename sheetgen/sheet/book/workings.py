"""Workings: a row per load (model x workload x tier), the cheapest hardware that holds it, and what users get of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sheetgen import cost
from sheetgen.estimate import CHARGE, PACE, SHARD
from sheetgen.formula import (
    Expr,
    Formula,
    both,
    first_where,
    formula,
    greatest_where,
    is_number,
    join_text,
    least_above_zero,
    least_where,
    literal,
    number_where,
    ratio,
    round_nearest,
    same_money,
    where,
    whole_text,
)
from sheetgen.recommend import NOTHING_FITS, TOO_SLOW
from sheetgen.sheet.book.catalogs import LABELS
from sheetgen.sheet.book.matrices import WHOLE_OF
from sheetgen.sheet.book.speed import OF_PROFILE, PARTS, SUMS
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, named, titled
from sheetgen.sheet.book.words import (
    dearer_by,
    fit_word,
    hardware_words,
    headroom,
    in_unit,
    load_words,
    n_gpus,
    room_words,
    runner_up_words,
    sure_headroom,
)
from sheetgen.sheet.model import NONE, Lookup, Range, Ref, Sheet, Source, index, lookup
from sheetgen.sizing import admission, memory, parallelism, speed, targets
from sheetgen.sizing.admission import short_tokens
from sheetgen.units import FACTOR, PLAIN, SECONDS, TEXT, USD, USD_CENTS, WHOLE, Display

_OF_MODEL = ("max_context_tokens", "n_heads", "full_kv_heads", "windowed_kv_heads")


def build_loads(
    wiring: Wiring, workloads: Sequence[str], loads: Sequence[tuple[int, int, int]], name: str = "Workings",
    names: Sequence[str] = (),
) -> Sheet:  # fmt: skip
    """The sheet with the load columns; `add_choices` fills in the rest once the matrices stand.

    loads: model, workload and tier of each, from 0. names: what each is called, where not by its workload.
    """
    sheet = titled(
        name,
        name,
        "A row per load: model, workload, tier, the tokens charged, and the cheapest hardware that holds it.",
        freeze=(HEAD_ROWS + 1, 4),
    )
    table = Table(sheet, HEAD_ROWS, 0, len(loads), key=f"{wiring.prefix}loads", names=wiring.names)
    wiring.tables["cells"] = table
    models = wiring.tables["models"]
    table.given("model_row", "Model row", [m + 1 for m, _, _ in loads], PLAIN, role="fixed", width=8)
    table.given("workload_row", "Workload row", [w + 1 for _, w, _ in loads], PLAIN, role="fixed", width=8)
    table.given("tier_row", "Tier row", [t + 1 for _, _, t in loads], PLAIN, role="fixed", width=8)

    table.given("pace_row", "Context row", [m * len(workloads) + w + 1 for m, w, _ in loads], PLAIN, role="fixed",
                width=8, note="Row of the model and workload on Contexts.")  # fmt: skip

    def look(name: str, label: str, refs: Range, key: str, display: Any = WHOLE, width: float = 14) -> None:
        table.picked(name, label, refs, key, display, width=width)

    look("model", "Model", models.range("model"), "model_row", TEXT, 24)
    table.given("workload", "Workload", names or [workloads[w] for _, w, _ in loads], TEXT, role="label", width=14)
    look("context_tokens", "Context", wiring.lists["contexts"], "workload_row")
    look("input_tokens", "Prompt", wiring.lists["prompts"], "workload_row")
    look("concurrent_requests", "In flight", wiring.lists["tiers"], "tier_row")
    for fact in _OF_MODEL:
        look(fact, LABELS[fact], models.range(fact), "model_row")
    table.computed(load_words, lambda i: {}, width=30)
    env = lambda i: {**wiring.inputs, "max_model_len": table.columns["context_tokens"][i]}  # noqa: E731
    table.computed(admission.charged_tokens, env)
    table.computed(parallelism.users, env)
    table.computed(parallelism.load_requests, env)
    table.computed(parallelism.within_limit, env)
    table.computed(short_tokens, lambda i: {**wiring.inputs, "tokens": table.columns["context_tokens"][i]},
                   name="context_words", label="Context in words")  # fmt: skip
    table.computed(short_tokens, lambda i: {**wiring.inputs, "tokens": table.columns["max_context_tokens"][i]},
                   name="limit_words", label="Model's limit in words")  # fmt: skip
    return sheet


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


@formula("$ per month", USD)
def best_monthly_usd(monthly: Any) -> Any:
    """The least $ per month of the row; none where nothing holds the load.

    Source: the row of the Candidates sheet, where 0 is too slow; MIN of nothing would read as free.
    """
    return least_above_zero(monthly, "-")


@formula("$ per hour of the cheapest", USD_CENTS)
def chosen_price(best: Any, monthly: Any, prices: Any) -> Any:
    """What an instance of the cheapest candidate costs an hour; the dearest where months tie, which are the fewest.

    Source: INTERFACE (ties: fewer instances first).
    """
    return number_where(is_number(best), greatest_where(prices, same_money(monthly, best)))


@formula("Instances")
def chosen_n_instances(best: Any, price: Any, paid_hours_per_month: Any) -> Any:
    """Instances of the cheapest candidate: its month over what one of them costs a month, a whole number.

    Source: instances x price x hours is the month, in three roundings of one part in 2^53 each: the quotient is
    within a millionth of the count while there are fewer than a billion instances, so the nearest whole number is it.
    """
    return number_where(is_number(best), round_nearest(ratio(best, price * paid_hours_per_month)))


@formula("TP", PLAIN)
def chosen_tp(best: Any, price: Any, monthly: Any, prices: Any, sizes: Any) -> Any:
    """Tensor-parallel size of the cheapest candidate; the smallest where the rest ties.

    Source: INTERFACE (ties: then smaller TP).
    """
    return number_where(is_number(best), least_where(sizes, same_money(monthly, best), same_money(prices, price)))


@formula("Candidate", PLAIN)
def chosen_position(best: Any, price: Any, size: Any, monthly: Any, prices: Any, sizes: Any) -> Any:
    """Column of the cheapest candidate; the first in catalog order where all else ties.

    Source: INTERFACE (ties: then catalog order).
    """
    found = first_where(same_money(monthly, best), same_money(prices, price), sizes == size)
    return number_where(is_number(best), found)


@formula("Runner-up, $ per month", USD)
def runner_up_monthly_usd(best: Any, gpu: Any, provider: Any, monthly: Any, gpus: Any, providers: Any) -> Any:
    """The least $ per month with another GPU or from another provider; none where there is none.

    Source: INTERFACE (the runner-up).
    """
    others = least_where(monthly, monthly > 0, _numbers(monthly), _other(gpus, gpu, providers, provider))
    return where(is_number(best), others, 0)


@formula("Runner-up's column", PLAIN)
def runner_up_position(second: Any, gpu: Any, provider: Any, monthly: Any, gpus: Any, providers: Any) -> Any:
    """Column of the runner-up; 0 where there is none.

    Source: INTERFACE (the runner-up).
    """
    # 0 is the month of a candidate that is too slow, and none of them comes second.
    return first_where(same_money(monthly, second), monthly > 0, _other(gpus, gpu, providers, provider))


def _numbers(row: Any) -> Any:
    """Cells that hold a number: a text is greater than every number, so greater than the row's largest."""
    if isinstance(row, Expr):
        return row <= Expr(f"MAX({row.text})")
    return is_number(row)


def _other(gpus: Any, gpu: Any, providers: Any, provider: Any) -> Any:
    """Cells with another GPU or provider: the OR of an array formula is a sum above 0."""
    if isinstance(gpus, Expr):
        return (1 * (gpus != gpu) + 1 * (providers != provider)) > 0
    return (gpus != gpu) | (providers != provider)


def add_choices(wiring: Wiring, head: Mapping[str, Range], *, alone: bool = False) -> None:
    """The choice of each load, from its rows on Candidates and Profiles.

    head: by name, a row of the Candidates sheet's head.
    alone: without the runner-up, the room that is left and the cache of the load.
    """
    monthly = wiring.monthly
    table = wiring.tables["cells"]
    sheet = table.sheet
    here = sheet.name

    def rows(i: int) -> dict[str, Source]:
        return {
            "monthly": monthly[i],
            "prices": head["price_usd_per_hour"],
            "sizes": head["tp"],
            "gpus": head["gpu"],
            "providers": head["provider"],
        }

    def so_far(i: int) -> dict[str, Source]:
        """The row of Candidates, and what is known of the cheapest so far."""
        names = {"monthly_usd": "best", "cheapest_price": "price", "tensor_parallel_size": "size"}
        known = {short: table.columns[name][i] for name, short in names.items() if name in table.columns}
        return {**wiring.inputs, **rows(i), **known}

    for one, name in (
        (best_monthly_usd, "monthly_usd"), (chosen_price, "cheapest_price"), (chosen_n_instances, "n_instances"),
        (chosen_tp, "tensor_parallel_size"), (chosen_position, "position"),
    ):  # fmt: skip
        table.computed(one, so_far, name=name, width=14 if name == "monthly_usd" else 12)

    def at(
        name: str, label: str, refs: Range, otherwise: str, display: Any = TEXT, width: float = 14,
        through: Range | None = None,
    ) -> None:  # fmt: skip
        """What stands in a range at the column that was chosen, or `otherwise` where none was.

        through: the range has rows of Instances or GPUs, and this says which one each column is of.
        """

        def find(i: int) -> tuple[Any, Expr]:
            place = table.columns["position"][i]
            held = lookup(refs, place if through is None else lookup(through, place))
            words = _otherwise(otherwise, table, i, here, monthly[i])
            expr = where(is_number(place.expr(here)), held.expr(here), words[1])
            return (words[0] if place.value == "-" else held.value), expr

        table.looked_up(name, label, find, display, width=width)

    instances, gpus = wiring.tables["instances"], wiring.tables["gpus"]
    at("instance", "Instance", head["instance"], "verdict", width=34)
    at("type", "Type", instances.range("type"), "verdict", width=30, through=head["instance_row"])
    at("provider", "Provider", head["provider"], "-")
    at("price_age", "Price age", instances.range("age_word"), "-", through=head["instance_row"])
    at("gpu", "GPU", head["gpu"], "-", width=28)
    at("gpu_name", "GPU, short", gpus.range("gpu_name"), "-", width=18, through=head["gpu_row"])
    at("hourly_price", "$ per instance and hour", head["price_usd_per_hour"], "-", USD_CENTS)
    at("profile", "Profile", head["profile"], "-", PLAIN)
    for name, label in (("sequences", "Sequences per replica"), ("pipeline_stages", "PP")):
        of_profile(wiring, table, name, label)
    add_choice_parts(wiring, table)
    _numbers_of_choice(table, wiring)
    add_choice_speed(wiring, table, alone=alone)
    if not alone:
        _numbers_of_room(table, wiring)
        _runner_up(table, rows, head, gpus)
    table.computed(hardware_words, lambda i: {}, width=40)
    if not alone:
        _kv_of_cell(wiring, table)


def _runner_up(table: Table, rows: Callable[[int], dict[str, Source]], head: Mapping[str, Range], gpus: Table) -> None:
    """The cheapest with another GPU or from another provider, and how much dearer it is."""
    here = table.sheet.name
    table.computed(
        runner_up_monthly_usd, lambda i: {**rows(i), "best": table.columns["monthly_usd"][i]}, name="second", width=16
    )
    table.computed(runner_up_position, lambda i: rows(i), name="second_position", label="Runner-up's column")
    of_gpu = gpus.range("gpu_name")
    for name, label, refs, through in (
        ("runner_up", "Runner-up", head["instance"], None),
        ("runner_up_gpu", "Runner-up's GPU", of_gpu, head["gpu_row"]),
    ):

        def second(i: int, refs: Range = refs, through: Range | None = through) -> tuple[Any, Expr]:
            place = table.columns["second_position"][i]
            none = Lookup(NONE, place.expr) if not place.value else place
            held = lookup(refs, none if through is None else lookup(through, none))
            return held.value, where(place.expr(here) > 0, held.expr(here), NONE)

        table.looked_up(name, label, second, TEXT, width=34)
    table.computed(dearer_by, lambda i: {"runner_up_monthly_usd": _none_if_zero(table.columns["second"][i])})
    table.computed(runner_up_words, lambda i: {}, width=48)


def _none_if_zero(second: Ref) -> Lookup:
    """The runner-up's cost, or the sign for none where there is no other GPU or provider."""

    def write(here: str) -> Expr:
        expr: Expr = where(second.expr(here) == 0, "-", second.expr(here))
        return expr

    return Lookup(second.value or "-", write)


def _otherwise(word: str, table: Table, i: int, here: str, monthly: Range) -> tuple[Any, Expr]:
    if word != "verdict":
        return word, literal(word)
    within, limit = table.columns["within_limit"][i], table.columns["limit_words"][i]
    over = f"over the model's {limit.value}"
    # Where memory holds the load but no count is fast enough, its month reads 0.
    slow = bool((monthly.value == 0).any())
    none = where(Expr(f"COUNT({monthly.expr(here).text})") > 0, TOO_SLOW, NOTHING_FITS)
    expr = where(within.expr(here) == 1, none, join_text("over the model's ", limit.expr(here)))
    return ((TOO_SLOW if slow else NOTHING_FITS) if within.value == 1 else over), expr


@formula("Replicas")
def chosen_n_replicas(
    n_instances: Any, load_requests: Any, sequences: Any, batch_limit: Any, pipeline_stages: Any, spare_replicas: Any
) -> Any:
    """Replicas of the recommended hardware; none where there is none.

    Source: n_replicas.
    """
    count = parallelism.n_replicas(load_requests, sequences, batch_limit, pipeline_stages, spare_replicas)
    return number_where(is_number(n_instances), count)


@formula("$ per hour", USD_CENTS)
def chosen_hourly_usd(n_instances: Any, hourly_price: Any) -> Any:
    """$ per hour of all recommended instances; none where there are none.

    Source: hourly_usd.
    """
    return cost.hourly_usd(n_instances, hourly_price)


def _numbers_of_choice(table: Table, wiring: Wiring) -> None:
    inputs = lambda i: wiring.inputs  # noqa: E731
    table.computed(chosen_n_replicas, inputs, name="n_replicas")
    table.computed(n_gpus, inputs)
    table.computed(chosen_hourly_usd, inputs, name="hourly_usd")


def _numbers_of_room(table: Table, wiring: Wiring) -> None:
    of_profile(wiring, table, "sure_sequences", "Sequences at the band's low end")
    inputs = lambda i: wiring.inputs  # noqa: E731
    table.computed(headroom, inputs)
    table.computed(sure_headroom, inputs)
    table.computed(fit_word, inputs, width=12)
    table.computed(room_words, lambda i: {}, width=34)


def _kv_of_cell(wiring: Wiring, table: Table) -> None:
    """The load's own KV bill, before any division, with the batch in flight of the recommended GPU."""
    here, gpus, profiles = table.sheet.name, wiring.tables["gpus"], wiring.tables["profiles"]
    largest, batches = gpus.range("max_num_batched_tokens"), profiles.range("max_num_batched_tokens")

    def batch(i: int) -> tuple[Any, Expr]:
        place = table.columns["profile"][i]
        expr = where(is_number(place.expr(here)), index(batches, place, here), Expr(f"MAX({largest.expr(here).text})"))
        return (max(r.value for r in largest.refs) if place.value == "-" else batches.refs[place.value - 1].value), expr

    table.looked_up("max_num_batched_tokens", "Batch in flight", batch, WHOLE)
    models, undivided = wiring.tables["models"], wiring.tables["whole"]
    whole = [o.name for o in SHARD if o.name in WHOLE_OF]
    facts = {n for one in CHARGE for n in one.inputs if n in models.columns} - {*whole, *table.columns}

    def env(i: int) -> dict[str, Source]:
        row = table.columns["model_row"][i]
        return {
            **wiring.inputs,
            **{n: lookup(models.range(n), row) for n in facts},
            **{n: lookup(undivided.range(n), row) for n in whole},
        }

    for one in CHARGE:
        table.computed(one, env)
    table.computed(admission.kv_bytes_per_sequence,
                   lambda i: {"unsharded_kv_blocks_per_sequence": table.columns["kv_blocks_per_sequence"][i],
                   "unsharded_kv_block_bytes": env(i)["kv_block_bytes"]}, width=18)  # fmt: skip
    table.computed(memory.kv_bytes, lambda i: {}, width=20)
    table.computed(in_unit, lambda i: {"amount_bytes": table.columns["kv_bytes"][i],
                   "unit_bytes": wiring.inputs["unit_bytes"]}, name="kv_in_unit", label="KV in the page's unit",
                   width=14)  # fmt: skip
