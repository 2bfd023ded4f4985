"""Workings: a row per load (model x workload x tier), the cheapest hardware that holds it, and what users get of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from sheetgen.answer import NOTHING_FITS, TOO_SLOW, Solution, headline_rows, not_asked
from sheetgen.answer.levers import EveryLever, terms_at_fp8
from sheetgen.answer.solution import Rental
from sheetgen.book import sentences
from sheetgen.book.catalogs import LABELS, class_stem
from sheetgen.book.matrices import WHOLE_OF
from sheetgen.book.sheets import NONE, Lookup, Range, Ref, Sheet, Source, derived, lookup, place_of
from sheetgen.book.speed_sheet import COMPARED, HOPS, LEFT, OF_PROFILE, PARTS
from sheetgen.book.wiring import HEAD_ROWS, PLACES, ZERO, Read, Table, Wiring, in_words, titled
from sheetgen.formula import (
    Formula,
    formula,
    is_number,
    join_text,
    number_where,
    round_nearest,
    where,
    where_number,
    whole_text,
)
from sheetgen.program.quantities import PACE, SHARD, STEADY
from sheetgen.report import wording
from sheetgen.report.page import TIGHT
from sheetgen.sizing import cost, kv_cache, memory, parallelism, rates, speed
from sheetgen.sizing.choice import STEPS
from sheetgen.units import COMMITTED, FACTOR, PLAIN, SECONDS, TEXT, USD, USD_CENTS, WHOLE, Display

TPOT = COMPARED[:3]
UNIT_COSTS = (
    cost.usd_per_user_per_month,
    cost.million_output_tokens_per_month,
    cost.million_input_tokens_per_month,
    cost.usd_per_million_input_tokens,
    cost.usd_per_million_output_tokens,
    cost.usd_per_million_tokens,
)


def build_loads(
    wiring: Wiring,
    workloads: Sequence[str],
    loads: Sequence[tuple[int, int, int]],
    name: str = "Workings",
    names: Sequence[str] = (),
    headline: Mapping[str, Ref] | None = None,
) -> Sheet:
    """The sheet with the load columns; `add_choices` fills in the rest once the matrices stand.

    loads: model, workload and tier of each, from 0. names: what each is called, where not by its workload.
    headline: the cells of the first sheet that say one more load of each model, which stand below the others.
    """
    sheet = titled(
        name,
        name,
        "A row per load: model, workload, tier, the tokens charged, and the cheapest hardware that holds it.",
        freeze=(HEAD_ROWS + 1, 4),
    )
    table, models, lists = Table(wiring, sheet, len(loads), "loads"), wiring.tables["models"], wiring.lists
    table.n_fixed = len(loads) - (len(models.columns["model"]) if headline else 0)
    table.given("model_row", "Model row", [m + 1 for m, _, _ in loads], PLAIN, role="fixed", width=8)
    table.given("workload_row", "Workload row", [w + 1 for _, w, _ in loads], PLAIN, role="fixed", width=8)
    tiers = [t + 1 if i < table.n_fixed else NONE for i, (_, _, t) in enumerate(loads)]
    table.given("tier_row", "Tier row", tiers, PLAIN, role="fixed", width=8)
    table.given(
        "pace_row",
        "Context row",
        [m * len(workloads) + w + 1 for m, w, _ in loads],
        PLAIN,
        role="fixed",
        width=8,
        note="Row of the model and workload on Contexts.",
    )
    if headline:
        _follow_headline(table, headline)
    table.picked("model", "Model", models.range("model"), "model_row", TEXT, width=24)
    table.given("workload", "Workload", names or [workloads[w] for _, w, _ in loads], TEXT, role="label", width=14)
    if headline:
        for i in range(table.n_fixed, table.n_rows):
            table.replace("workload", i, lookup(wiring.area("list_workload"), table.columns["workload_row"][i]), TEXT)
    table.picked("context_tokens", "Context", lists["contexts"], "workload_row", width=14)
    table.picked("input_tokens", "Prompt", lists["prompts"], "workload_row", width=14)
    has_rate = "peak_requests_per_second" in wiring.inputs and not wiring.prefix  # What-if asks for people
    if has_rate:
        table.given("load_row", "Load row", list(range(1, len(loads) + 1)), PLAIN, role="fixed", width=8)
        _put_requests(table, "tier", "Tier", PLAIN, headline)
        table.computed(sentences.stated_requests, width=14)
        table.computed(sentences.requests_per_second, width=14)
    else:
        _put_requests(table, "concurrent_requests", "At once", WHOLE, headline)
    table.picked(
        "max_context_tokens", LABELS["max_context_tokens"], models.range("max_context_tokens"), "model_row", width=14
    )
    table.computed(sentences.rate_or_load_words if has_rate else sentences.load_words, name="load_words", width=30)
    longest = {"max_model_len": table.columns["context_tokens"]}
    table.computed(kv_cache.charged_tokens, longest)
    if has_rate:  # of which users and requests follow
        stated = {"concurrent_requests": table.columns["stated_requests"]}
        table.computed(parallelism.load_requests, stated, name="stated_load", label="Load, stated")
    else:
        table.computed(parallelism.users)
        table.computed(parallelism.load_requests)
    table.computed(parallelism.within_limit, longest)
    for name, of, label in (
        ("context_words", "context_tokens", "Context in words"),
        ("limit_words", "max_context_tokens", "Model's limit in words"),
    ):
        table.computed(kv_cache.short_tokens, {"tokens": table.columns[of]}, name=name, label=label)
    if has_rate:
        _add_chance(table)
    return sheet


def rows_of_book(solved: Solution) -> list[int]:
    """By row of Workings, which load of the question it is: all tiers, then the load on the first sheet once more."""
    question = solved.question
    n_tiers = len(question.models) * len(question.workloads) * len(question.tiers)
    return [*range(n_tiers), *headline_rows(solved)]


def _follow_headline(table: Table, cells: Mapping[str, Ref]) -> None:
    """The rows of the load on the first sheet: its workload, and its row on Contexts, as the cells there say."""
    columns = table.columns
    fixed = Range(columns["workload_row"][: table.n_fixed])
    for i in range(table.n_fixed, table.n_rows):
        row = table.replace("workload_row", i, cells["workload_row"], PLAIN)
        model, n_workloads = columns["model_row"][i], max(int(ref.value) for ref in fixed.refs)
        pace = (int(model.value) - 1) * n_workloads + int(row.value)
        table.replace("pace_row", i, Lookup.of(pace, "({0}-1)*MAX({1})+{2}", model, fixed, row), PLAIN)


def _put_requests(table: Table, name: str, label: str, display: Display, cells: Mapping[str, Ref] | None) -> None:
    """The requests at once of each load: those of its tier, or what the first sheet asks for."""
    tiers, places = table.wiring.lists["tiers"], table.columns["tier_row"]

    found = (lookup(tiers, at) if cells is None else _held(at, lookup(tiers, at), cells["requests"]) for at in places)
    table.looked_up(name, label, found, display, width=14)


def _add_chance(loads: Table) -> None:
    """Below the loads the allowance for chance, a step of Newton's method a row; the last is what all rates read."""
    wiring, sheet, top = loads.wiring, loads.sheet, loads.top + loads.n_rows + 3
    column = loads.columns["workload_row"][0].column
    sheet.text(top, column - 1, rates.next_z.label, "head", note=rates.next_z.documentation)
    for step in range(rates.Z_STEPS + 1):
        env = dict(wiring.inputs)
        one = rates.next_z if step else rates.first_z
        wiring.inputs["z"] = sheet.compute(top + step, column, one, env)
    wiring.inputs["wait_z"] = wiring.inputs.pop("z")
    loads.rows_below = rates.Z_STEPS + 3


@formula("Sequences per replica")
def replica_sequences(sequences: Any, data_parallel_size: Any) -> Any:
    """Sequences that one replica of the recommended hardware holds: those of its ranks together; 0 where there is none.

    Source: sequences.
    """
    return sequences * where(is_number(data_parallel_size), data_parallel_size, 0)


@formula("$ per hour", USD_CENTS)
def chosen_hourly_usd(n_instances: Any, hourly_price: Any) -> Any:
    """$ per hour of all recommended instances; none where there are none.

    Source: hourly_usd.
    """
    return cost.hourly_usd(n_instances, hourly_price)


def chosen(one: Formula, otherwise: Any = "-") -> Formula:
    """The same formula for a load that has hardware; for one that has not `otherwise`, by default none."""

    @functools.wraps(one.function)
    def read(n_instances: Any, *values: Any) -> Any:
        return where_number(n_instances, lambda: one.function(*values), otherwise)

    return replace(one, inputs=("n_instances", *one.inputs), function=read)


@formula("Row of the band", PLAIN, within=[speed.measured_scope])
def band_row(measured_scope: Any, speed_kind: Any, n_model_kinds: Any, set_factor: Any) -> Any:
    """The row of the error bands on Inputs: by kind of model those of runs on this GPU and engine, then all others';
    then data-parallel ranks and pipeline stages; then by kind those of runs that a measured point set right, which is
    what a factor other than 1 comes from.

    Source: docs/speed.md.
    """
    row = where(
        measured_scope <= 1, speed_kind + n_model_kinds * measured_scope, 2 * n_model_kinds + measured_scope - 1
    )
    return where(set_factor == 1, row, 2 * n_model_kinds + 2 + speed_kind)


@formula("Milliseconds")
def in_milliseconds(seconds: Any, milliseconds_per_second: Any) -> Any:
    """A time in milliseconds.

    Source: definition.
    """
    return number_where(is_number(seconds), seconds * milliseconds_per_second)


@formula("Speed in words", TEXT)
def speed_words(n_instances: Any, tpot_ms: Any, tpot_low_ms: Any, tpot_high_ms: Any) -> Any:
    """Time per output token with its 80 % band.

    Source: the columns beside.
    """
    span = join_text(" (", whole_text(tpot_low_ms), " to ", whole_text(tpot_high_ms), ")")
    return where(is_number(n_instances), join_text(whole_text(tpot_ms), " ms a token", span), "-")


@formula("First token in words", TEXT)
def ttft_words(n_instances: Any, ttft_seconds: Any, output_tokens_per_second: Any) -> Any:
    """Time to the first token, and the tokens of all requests together.

    Source: the columns beside.
    """
    rate = output_tokens_per_second
    rate = where(rate < 1, round_nearest(rate, 2), whole_text(rate))
    said = join_text("first token ", round_nearest(ttft_seconds, 1), " s, indicative; ", rate, " tokens/s in all")
    return where(is_number(n_instances), said, "-")


def add_choices(wiring: Wiring, *, alone: bool = False) -> None:
    """The choice of each load, from its rows on Candidates and Profiles.

    alone: without the next cheapest, what is served, the cache of the load and unit costs.
    """
    table, head, monthly = wiring.tables["loads"], wiring.tables["candidates"], wiring.ranges("monthly_usd")
    columns, gpus = table.columns, wiring.tables["gpus"]

    def rows_of(name: str, key: str) -> list[Range | Lookup]:
        # By their places: Gnumeric has no INDEX(matrix, row, 0).
        every = wiring.ranges(name)
        fixed = table.n_fixed if key == "pace_row" else table.n_rows
        found = [every[int(ref.value) - 1] for ref in columns[key][:fixed]]
        return [*found, *(_of_workload(every, table, i) for i in range(len(found), table.n_rows))]

    rows = _rows(wiring, rows_of) | {"monthly_usd": monthly, "among": Lookup.of(True, "1")}
    _add_steps(table, rows, _CALLED)

    def at(
        name: str, label: str, refs: Range, through: Range | None = None, display: Display = TEXT, width: float = 14
    ) -> None:
        """What stands in a range at the column that was chosen; where none was, a dash, or of what is rented why.

        through: the range has rows of Prices and hardware or of GPUs, and this says which one each column is of.
        """

        found = []
        for i, place in enumerate(columns["position"]):
            none = _verdict(table, i, monthly[i]) if name in ("instance", "type") else NO_VALUE
            found.append(_held(place, lookup(refs, place if through is None else lookup(through, place)), none))
        table.looked_up(name, label, found, display, width=width)

    instances = wiring.tables["instances"]
    at("instance", "Instance", instances.range("instance"), head.range("instance_row"), width=34)
    at("type", "Type", instances.range("type"), head.range("instance_row"), width=30)
    at("provider", "Provider", head.range("provider"))
    at("provider_name", "Provider's name", instances.range("provider_name"), head.range("instance_row"))
    at("price_age", "Price age", instances.range("mark_in_use"), head.range("instance_row"))
    at("gpu_row", "GPU row", head.range("gpu_row"), display=PLAIN)
    at("gpu", "GPU", gpus.range("gpu"), head.range("gpu_row"), width=28)
    at("gpu_name", "GPU, short", gpus.range("gpu_name"), head.range("gpu_row"), width=18)
    at("hourly_price", "$ per instance and hour", head.range("price_usd_per_hour"), display=USD_CENTS)
    at("profile", "Profile", head.range("profile"), display=PLAIN)
    _of_block(table, "sequences", "Sequences per rank")
    table.computed(replica_sequences)
    _of_block(table, "pipeline_stages", "PP")
    _add_parts(table)
    table.computed(parallelism.paced_requests, {"data_parallel_size": columns["busy_ranks"]})
    held_inside = wiring.tables["contexts"].range("held_inside")
    table.computed(
        chosen(parallelism.replicas_per_instance),
        {
            **{
                name: [lookup(head.range(name), at) for at in columns["position"]]
                for name in ("gpu_count", "linked_gpus", "network_gbps")
            },
            "held_inside": [lookup(held_inside, at) for at in columns["pace_row"]],
        },
    )
    has_rate = "requests_per_second" in columns
    if has_rate:
        for name in ("full_turn_seconds", "places"):
            _of_block(table, name)
        table.computed(rates.load_with_rates, {"load_requests": columns["stated_load"]}, name="load_requests")
    table.computed(chosen(parallelism.n_replicas))
    table.computed(sentences.n_gpus)
    table.computed(chosen_hourly_usd, name="hourly_usd")
    _add_speed(table, alone)
    table.computed(chosen(parallelism.served_at_target))
    if has_rate and not alone:
        table.computed(chosen(rates.served_requests_per_second))
        table.computed(chosen(sentences.served_of_load), name="served_at_target")
    table.computed(chosen(parallelism.memory_holds))
    said = sentences.rate_or_room_words if has_rate and not alone else sentences.room_words
    table.computed(said, name="room_words", width=34)
    if not alone:
        _add_sure_sequences(table)
        for one in (sentences.headroom, sentences.sure_headroom):
            table.computed(one)
        table.computed(chosen(parallelism.has_little_headroom))
        table.computed(sentences.fit_word)
        _add_runner_up(table, rows)
    table.computed(sentences.hardware_words, width=40)
    if not alone:
        _add_kv(table)
        for one in UNIT_COSTS:
            table.computed(one, width=14)


def add_as_built(wiring: Wiring, solved: Solution, every_lever: EveryLever) -> None:
    """What takes a choice anew, which no cell makes, as values: what memory alone would take, the month at the ends of
    the band of speed, the answer at FP8 and in each purchase class, and who took no part and is cheaper."""
    table, rows = wiring.tables["loads"], rows_of_book(solved)
    fits, others = {row: solved.choices[row].offer is not None for row in rows}, not_asked(solved)

    def put(name: str, label: str, values: Iterable[Any], display: Display = TEXT, width: float = 34) -> None:
        shown = [NONE if value is None or value == "" else value for value in values]
        table.given(name, f"As built: {label}", shown, display, role="fixed", width=width)

    def said(one: Rental, beside: Rental | None) -> str:
        saves = "" if beside is None or one.usd < beside.usd else " (no saving)"
        return f"{wording.rent(one.n_instances, one.candidate)}{f' {TIGHT}' if one.tight else ''}{saves}"

    def rented(stem: str, label: str, answers: Sequence[Rental | None], beside: Sequence[Rental | None] = ()) -> None:
        """beside: what the same takes without the commitment."""
        pairs = zip(answers, beside or [None] * len(answers), strict=True)
        put(f"rent_{stem}", label, [one and said(one, other) for one, other in pairs])
        put(f"usd_{stem}", f"{label}, $ per month", [one and one.usd for one in answers], USD, 14)

    put(
        "sized_words",
        "what drives the size",
        [str(wording.sized_shortly(solved, row)) if fits[row] else None for row in rows],
    )
    put(
        "band_words",
        "the ends of the speed band",
        [str(wording.money_band(solved.choices[row]) or "") if fits[row] else None for row in rows],
    )
    terms = terms_at_fp8(solved, every_lever) if every_lever else ({},) * len(solved.question.loads)
    in_use = solved.question.settings.purchase
    in_fp8 = [terms[row].get(in_use) for row in rows]
    rented("fp8", "at FP8", in_fp8)
    for purchase, answers in solved.by_purchase.items():
        rented(class_stem(purchase), purchase, [answers[row] for row in rows])
    for purchase in COMMITTED:
        beside = () if purchase == in_use else in_fp8
        rented(f"fp8_{class_stem(purchase)}", f"at FP8, {purchase}", [terms[row].get(purchase) for row in rows], beside)
    put(
        "not_asked_words",
        "took no part, and cheaper",
        ["; ".join(str(wording.not_asked_words(one)) for one in others[row]) for row in rows],
        width=60,
    )


# The columns of the steps of the choice; and of those of the load itself.
COLUMNS_OF_STEPS = {
    "fewest_instances": "n_instances", "best_precision": "precision", "most_served": "served", "chosen_usd": "usd",
    "chosen_tp": "size", "chosen_dp": "n_ranks", "chosen_position": "position",
}  # fmt: skip
_CALLED = {"usd": "monthly_usd", "size": "tensor_parallel_size", "n_ranks": "data_parallel_size"}


def _rows(wiring: Wiring, rows_of: Callable[[str, str], Sequence[Read]]) -> dict[str, Any]:
    """What the steps of the choice read of Candidates, for each row of a table of loads; of blocks by the row of its
    model, or of its model and workload. rows_of: those of a block, by its name and the column that numbers them."""
    head = wiring.tables["candidates"]
    months, gpus = head.range("instance_month_usd"), head.range("gpu_count")
    of_gpu = cost.gpu_month_usd.of  # worked out for the whole row, within the steps
    return {
        "gpu_month_usd": Lookup(
            of_gpu({"instance_month_usd": months.value, "gpu_count": gpus.value}),
            lambda on: of_gpu({"instance_month_usd": months.expr(on), "gpu_count": gpus.expr(on)}),
        ),
        "instance_month_usd": months,
        "tensor_parallel_size": head.range("tensor_parallel_size"),
        "data_parallel_size": head.range("data_parallel_size"),
        "gpu_count": gpus,
        "runs_weights": rows_of("precisions", "model_row"),
        "ranked_requests": rows_of(
            *(
                ("ranked_requests", "load_row")
                if "ranked_requests" in wiring.blocks
                else ("requests_per_instance", "pace_row")
            )
        ),
    }


def _of_workload(rows: Sequence[Range], table: Table, i: int) -> Lookup:
    """Of a load whose workload a reader chooses, its row among those of its model's workloads."""
    key, pace = table.columns["workload_row"][i], int(table.columns["pace_row"][i].value)
    first = pace - int(key.value)
    own = rows[first : first + len(rows) // len(table.wiring.tables["models"].columns["model"])]
    text = ",".join(f"{{{n}}}" for n in range(1, 1 + len(own)))
    return Lookup.of(rows[pace - 1].value, f"CHOOSE({{0}},{text})", key, *own)


def _add_steps(table: Table, rows: dict[str, Read], called: Mapping[str, str], prefix: str = "", of: str = "") -> None:
    """The steps of the choice, a column each (and one that passes it on), under their names with a prefix. of: said
    before their heads."""
    rows = dict(rows)
    for step in STEPS:
        name = COLUMNS_OF_STEPS.get(step.name, step.name)
        column = prefix + called.get(name, name)
        width = 14 if name.endswith("usd") else 12
        table.computed(step, rows, name=column, label=f"{of}{step.label}", width=width)
        rows[step.name] = table.columns[column]


NO_VALUE = Lookup.of(NONE, '"-"')


def _held(place: Ref, held: Source, otherwise: Source = NO_VALUE) -> Lookup:
    """What is held at a place; something else where there is no place."""
    return derived(lambda at, held, otherwise: where(is_number(at), held, otherwise), place, held, otherwise)


def _verdict(table: Table, i: int, monthly: Range) -> Lookup:
    """Why nothing was chosen for a load."""
    within, limit = table.columns["within_limit"][i], table.columns["limit_words"][i]

    def why(within: Any, n_held: Any, limit: Any) -> Any:
        none = where(n_held > 0, TOO_SLOW, NOTHING_FITS)
        return where(within == 1, none, join_text("over the model's ", limit))

    # Where memory holds the load but no count is fast enough, its month reads 0.
    return derived(why, within, Lookup.of(int((monthly.value == 0).sum()), "COUNT({0})", monthly), limit)


def _of_block(table: Table, name: str, label: str = "") -> None:
    """What a block of Profiles, a row for each model and workload or each model, holds in the chosen profile's
    column; 0 where nothing was chosen."""
    rows = table.columns[PLACES[table.wiring.blocks[name].down]]
    table.looked_up(
        name,
        label or in_words(name),
        (
            _held(place, table.wiring.of_block(name, row, place), ZERO)
            for place, row in zip(table.columns["profile"], rows, strict=True)
        ),
        _display(name),
    )


def _at_profile(table: Table, names: Iterable[str]) -> dict[str, list[Ref | Lookup]]:
    """What formulas read by these names that are no columns here, from the chosen profile."""
    known = {*table.columns, *table.wiring.inputs}
    return {name: table.at(name) for name in names if name not in known}


def _add_sure_sequences(table: Table) -> None:
    """What the chosen profile still holds where its pool is at the band's low end."""
    error = replace(parallelism.pool_error_bytes, name="kv_pool_error_bytes_low")
    one = parallelism.sure_sequences.with_parts([error, kv_cache.UNSTAGED_WINDOWS])
    table.computed(chosen(one), _at_profile(table, one.inputs))


def _add_parts(table: Table) -> None:
    """What a step on the chosen profile takes, from the blocks of Profiles."""
    for one in PARTS:
        table.computed(chosen(one, 0), _at_profile(table, one.inputs))
    for name in ("prefill_seconds", *LEFT, "batch_limit"):
        _of_block(table, name)
    # A data-parallel layout is for loads that give each rank a request.
    places = table.columns["profile"]
    found = map(_held, places, table.columns["data_parallel_size"], repeat(ZERO))
    table.looked_up("busy_ranks", "Ranks that step together", found, PLAIN)
    for one in (speed.fixed_step_seconds, speed.request_step_seconds):
        table.computed(one.with_parts(HOPS), _between_stages(table, "busy_ranks"))  # numbers in any case
    for name, refs in _at_profile(table, OF_PROFILE).items():
        table.looked_up(name, in_words(name), map(_held, places, refs, repeat(ZERO)), _display(name))
    tables = table.wiring.tables
    for name, key in (("output_tokens", "contexts"), ("expert_miss_fraction", "models")):
        table.picked(name, in_words(name), tables[key].range(name), PLACES[key], _display(name))


def _between_stages(table: Table, ranks: str) -> dict[str, Read]:
    """What the way between stages depends on. ranks: the column of those that send tokens."""
    hidden = table.wiring.tables["models"].range("hidden_size")
    return {
        "pipeline_parallel_size": table.columns["pipeline_stages"],
        "data_parallel_size": table.columns[ranks],
        "hidden_size": [lookup(hidden, at) for at in table.columns["model_row"]],
    }


def _display(name: str) -> Display:
    is_factor = name.startswith(("wait", "expert", "steps", "gather"))
    return SECONDS if name.endswith("_seconds") else FACTOR if is_factor else WHOLE


def _add_speed(table: Table, alone: bool) -> None:
    """What users get of the chosen hardware. alone: the time per output token only."""
    columns, wiring = table.columns, table.wiring
    table.computed(chosen(parallelism.requests_per_replica))
    own, of_all = columns["requests_per_replica"], columns["load_requests"]
    has_rate = "requests_per_second" in columns
    if has_rate:
        _add_mean(table)
    for one in PACE:
        if has_rate and one is speed.batch_requests:
            one = sentences.batch_of_load
        if has_rate and one is speed.output_tokens_per_second:
            table.computed(sentences.in_flight, name="concurrent_requests")
            table.computed(parallelism.users)
            table.computed(chosen(sentences.all_in_flight))
            of_all = columns["all_in_flight"]
        name = "batch_requests" if one is sentences.batch_of_load else one.name
        if name in (TPOT if alone else COMPARED):
            table.computed(
                chosen(one.with_parts(HOPS)),
                name=name,
                given={
                    **_between_stages(table, "data_parallel_size"),
                    "running_requests": own,
                    "concurrent_requests": of_all if one.name == "output_tokens_per_second" else own,
                    # Nobody waits for memory: replicas are as many as hold all requests.
                    "queue_seconds": wiring.inputs["no_queue_seconds"],
                },
            )
    for name in ("tpot_limit_seconds", "ttft_limit_seconds"):
        table.picked(name, in_words(name), wiring.tables["contexts"].range(name), "pace_row", SECONDS)
    table.computed(chosen(parallelism.next_tpot_seconds))
    table.computed(chosen(parallelism.sized_by))
    read = _at_profile(table, (name for name in band_row.inputs if name != "set_factor"))
    for name, label, factor in (
        ("band_row", band_row.label, "speed_factor"),
        *([] if alone else [("ttft_band_row", f"{band_row.label}, first token", "ttft_factor")]),
    ):
        table.computed(
            chosen(band_row),
            name=name,
            label=label,
            given={
                **read,
                "pipeline_parallel_size": columns["pipeline_stages"],
                "set_factor": wiring.inputs[factor],
            },
        )
    for figure in ("tpot",) if alone else ("tpot", "ttft", "output_tokens_per_second"):
        name = figure if figure.endswith("second") else f"{figure}_seconds"
        for end in ("low", "high"):
            rows = columns["ttft_band_row" if figure == "ttft" else "band_row"]
            factors = [lookup(wiring.lists[f"{figure}_band_{end}"], at) for at in rows]
            table.computed(
                chosen(speed.at_speed_band),
                {"predicted": columns[name], "band_factor": factors},
                name=f"{name}_{end}",
                label=f"{figure.replace('_', ' ')}, {end}",
            )
    for name, source in (
        ("tpot_ms", "tpot_seconds"),
        ("tpot_low_ms", "tpot_seconds_low"),
        ("tpot_high_ms", "tpot_seconds_high"),
    ):
        table.computed(in_milliseconds, {"seconds": columns[source]}, name=name, label=name.replace("_", " "))
    table.computed(speed_words, width=46)
    if not alone:
        table.computed(ttft_words, width=46)


def _add_mean(table: Table) -> None:
    """Of a rate, requests at once on a replica on average: from a full one downward, along straight lines."""
    columns = table.columns
    table.computed(chosen(rates.replica_requests_per_second))

    def follows(name: str, step: int) -> str:
        given = {"in_flight": columns[name], "pipeline_parallel_size": columns["pipeline_stages"]}
        after, label = f"next_in_flight_{step}", f"{rates.next_in_flight.label}, {step + 1}"
        table.computed(chosen(rates.next_in_flight), given, name=after, label=label)
        return after

    pairs = [("paced_requests", follows("paced_requests", 0))]
    name = pairs[0][1]
    for step in range(1, rates.SECANTS + 1):
        pairs.append((name, follows(name, step)))
        read = dict(zip(rates.secant_in_flight.inputs, (*pairs[-2], *pairs[-1]), strict=True))
        name = "mean_in_flight" if step == rates.SECANTS else f"secant_{step}"
        given = {what: columns[column] for what, column in read.items()}
        label = f"{rates.secant_in_flight.label}, line {step}"
        table.computed(chosen(rates.secant_in_flight), given, name=name, label=label)


def _add_runner_up(table: Table, rows: Mapping[str, Read]) -> None:
    """The best with another GPU or from another provider, and how much more it costs."""
    columns, head = table.columns, table.wiring.tables["candidates"]

    def other(gpu: Any, provider: Any, gpus: Any, providers: Any) -> Any:
        return (1 * (gpus != gpu) + 1 * (providers != provider)) > 0  # the OR of an array formula

    def among(*read: Ref | Range) -> Lookup:
        return Lookup(other(*(one.value for one in read)), lambda on: other(*(one.expr(on) for one in read)))

    others = [
        among(*of, head.range("gpu_row"), head.range("provider"))
        for of in zip(columns["gpu_row"], columns["provider"], strict=True)
    ]
    _add_steps(table, {**rows, "among": others}, {}, "second_", "Next cheapest, ")
    for name, label, key, column in (
        ("runner_up", "Next cheapest", "instances", "instance"),
        ("runner_up_type", "Type of the next cheapest", "instances", "type"),
        ("runner_up_provider", "Provider of the next cheapest", "instances", "provider_name"),
        ("runner_up_gpu", "GPU of the next cheapest", "gpus", "gpu_name"),
    ):
        refs, through = table.wiring.tables[key].range(column), head.range(f"{key[:-1]}_row")
        found = (_held(place, lookup(refs, lookup(through, place))) for place in columns["second_position"])
        table.looked_up(name, label, found, TEXT, width=34)
    table.computed(sentences.dearer_by, {"runner_up_monthly_usd": columns["second_usd"]})
    table.computed(sentences.runner_up_words, width=48)


def _add_kv(table: Table) -> None:
    """What stays in memory of the load's cache, before any division."""
    wiring, columns = table.wiring, table.columns
    models, places = wiring.tables["models"], wiring.tables["profiles"].range("gpu_row")
    firsts = [(place_of(places, of.value) or 1, of) for of in columns["gpu_row"]]
    table.looked_up(
        "undivided_profile",
        "Profile of one undivided GPU",
        (Lookup.of(value, "IFERROR(MATCH({0},{1},0),1)", of, places) for value, of in firsts),
        PLAIN,
        note="The first of the GPU chosen; where none is, of the first GPU.",
    )
    at = list(zip(columns["model_row"], columns["undivided_profile"], strict=True))
    whole = [o.name for o in SHARD if o.name in WHOLE_OF]
    facts = {n for one in STEADY for n in one.inputs if n in models.columns} - {*whole, *columns}
    given: dict[str, Read] = {n: [lookup(models.range(n), row) for row in columns["model_row"]] for n in facts}
    given |= {n: [wiring.of_block(n, *of) for of in at] for n in whole}
    for one in STEADY:
        table.computed(one, given)
    table.computed(
        kv_cache.kv_bytes_per_sequence_steady,
        {
            "unsharded_kv_blocks_per_sequence_steady": columns["kv_blocks_per_sequence_steady"],
            "unsharded_kv_block_bytes": given["kv_block_bytes"],
        },
        width=18,
    )
    table.computed(memory.kv_bytes, width=20)
    table.computed(
        sentences.in_unit,
        {"amount_bytes": columns["kv_bytes"]},
        name="kv_in_unit",
        label="KV in the page's unit",
        width=14,
    )


def add_providers(wiring: Wiring, n_providers: int) -> list[list[dict[str, Ref]]]:
    """By model each provider's best for the load on the first sheet, by the same steps, below the loads; gives what
    Money shows of each."""
    head = wiring.tables["candidates"]
    loads, in_order = wiring.tables["loads"], wiring.tables["instances"].range("provider_in_order")
    n_models, numbers = len(wiring.lists["headline_rows"].refs), list(range(1, n_providers + 1))
    table = Table(
        wiring, loads.sheet, n_models * n_providers, "providers", top=loads.top + loads.n_rows + 3 + loads.rows_below
    )
    at = [ref for ref in wiring.lists["headline_rows"].refs for _ in numbers]
    table.looked_up("load_row", "Load", at, PLAIN)
    table.given("provider_row", "Provider row", numbers * n_models, PLAIN, role="fixed")
    table.picked("provider", "Provider", in_order, "provider_row", TEXT)
    table.picked("pace_row", "Context row", loads.range("pace_row"), "load_row", PLAIN)
    table.picked("model_row", "Model row", loads.range("model_row"), "load_row", PLAIN)
    columns = table.columns

    def among(provider: Ref) -> Lookup:
        own = head.range("provider")
        return Lookup(own.value == provider.value, lambda on: own.expr(on) == provider.expr(on))

    def of_providers(of_models: Iterable[Read]) -> list[Read]:
        return [of_model for of_model in of_models for _ in numbers]

    def rows_of(name: str, key: str) -> list[Read]:
        every = wiring.ranges(name)
        if key == "pace_row":
            return of_providers(_of_workload(every, loads, loads.n_fixed + m) for m in range(n_models))
        return of_providers(every if key == "model_row" else every[loads.n_fixed :])

    # The load on the first sheet has rows of its own, the last ones: no row is looked up by its number.
    months = wiring.ranges("monthly_usd")[loads.n_fixed :]
    rows = _rows(wiring, rows_of) | {
        "monthly_usd": of_providers(months),
        "among": [among(ref) for ref in columns["provider"]],
    }
    _add_steps(table, rows, {})
    for name, of, display in (("price", "price_usd_per_hour", USD_CENTS), ("instance_row", "instance_row", PLAIN)):
        found = (_held(place, lookup(head.range(of), place)) for place in columns["position"])
        table.looked_up(name, in_words(name), found, display)
    return [[table.row(m * n_providers + i) for i in range(n_providers)] for m in range(n_models)]
