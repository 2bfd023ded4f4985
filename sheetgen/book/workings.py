"""Workings: a row per load (model x workload x tier), the cheapest hardware that holds it, and what users get of it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.answer.ways_to_pay import HOSTED_TOKENS, OF_A_LOAD
from sheetgen.book import figures
from sheetgen.book.catalogs import LABELS, class_stem
from sheetgen.book.contexts_sheet import HOPS, LEFT, OF_PROFILE, PARTS, put_asks, put_rate
from sheetgen.book.decision_choices import case_rate
from sheetgen.book.lookups import NO_VALUE, ONE, ZERO, call, greatest, position_in, written
from sheetgen.book.matrices import LEVELS_WITHIN, WHOLE_OF, has_rate
from sheetgen.book.money_block import entry
from sheetgen.book.sheets import (
    NONE,
    CellValue,
    Lookup,
    Range,
    Ref,
    RepeatedRow,
    Row,
    RowValues,
    Sheet,
    Source,
    choose,
    derived,
    lookup,
    row_of,
    worked_out,
)
from sheetgen.book.wiring import HEAD_ROWS, Read, Table, Wiring, held_at, in_words, named, titled
from sheetgen.formula import (
    Expr,
    Formula,
    Quantity,
    Value,
    formula,
    function,
    is_number,
    is_number_in_row,
    number_where,
    where,
    where_number,
)
from sheetgen.formula.tree import literal
from sheetgen.program.declared import Again, Declared, Named, Repeat, by_name, is_same
from sheetgen.program.quantities import SPEED_BANDS, STEADY, speed_ends
from sheetgen.program.sheet_program import CHOSEN, PEOPLE_READ, READ, SHEET, tried
from sheetgen.report import sentences
from sheetgen.sizing import choice, cost, kv_cache, memory, parallelism, people, rates, speed
from sheetgen.sizing.choice import STEPS
from sheetgen.units import (
    BESIDE_ON_DEMAND,
    DATE,
    FACTOR,
    PLAIN,
    PURCHASES,
    TEXT,
    TWO_DECIMALS,
    USD_CENTS,
    WHOLE,
    Display,
)


def build_loads(
    wiring: Wiring,
    workloads: Sequence[str],
    loads: Sequence[tuple[int, int, int]],
    name: str = "Workings",
    names: Sequence[str] = (),
    headline: Mapping[str, Ref] | None = None,
    paces: Sequence[int] = (),
) -> Sheet:
    """The sheet with the load columns; `add_choices` fills in the rest once the matrices stand.

    loads: model, workload and tier of each, from 0. names: their names, where these are not those of the workloads.
    headline: cells of the first sheet that state one further load of each model, whose rows stand below the others.
    paces: the row of each load on Contexts, from 0, where Contexts has not every model and workload once.
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
        [pace + 1 for pace in paces or (m * len(workloads) + w for m, w, _ in loads)],
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
    table.picked("output_tokens", "Answer", lists["answers"], "workload_row", width=14)
    is_rate = bool(wiring.prefix) or "stated_requests_per_second" in wiring.inputs
    if is_rate:
        _put_requests(table, "tier", "Tier", PLAIN, headline)
        table.computed(figures.stated_requests, width=14)
        if wiring.prefix:
            table.picked("peak_requests_per_second", case_rate.label, lists["rates"], "tier_row", TWO_DECIMALS)
        else:
            put_rate(table)
        table.computed(figures.requests_per_second, width=14)
    else:
        _put_requests(table, "concurrent_requests", "At once", WHOLE, headline)
    table.picked(
        "max_context_tokens", LABELS["max_context_tokens"], models.range("max_context_tokens"), "model_row", width=14
    )
    if wiring.prefix:  # its rows are named by their differences
        table.columns["load_words"] = table.columns["workload"]
    else:
        words = sentences.rate_or_load_words if is_rate else sentences.load_words
        table.computed(words, name="load_words", width=30)
    longest = {"max_model_len": table.columns["context_tokens"]}
    table.computed(kv_cache.charged_tokens, longest)
    if is_rate:  # of which requests follow
        stated = {"concurrent_requests": table.columns["stated_requests"]}
        table.computed(parallelism.load_requests, stated, name="stated_load", label="Load, stated")
    else:
        table.computed(parallelism.load_requests)
    table.computed(parallelism.within_limit, longest)
    for name, column, label in (
        ("context_words", "context_tokens", "Context in words"),
        ("limit_words", "max_context_tokens", "Model's limit in words"),
    ):
        table.computed(kv_cache.short_tokens, {"tokens": table.columns[column]}, name=name, label=label)
    if not wiring.prefix:
        _add_chance(table)
        if not is_rate:
            put_asks(table)
    table.asked = tuple(table.columns)
    return sheet


def rows_of_book(solved: Solution) -> list[int]:
    """By row of Workings the index of its load in the question: all tiers, then the load on the first sheet once
    more."""
    question = solved.question
    n_tiers = len(question.models) * len(question.workloads) * len(question.tiers)
    return [*range(n_tiers), *headline_rows(solved)]


def _follow_headline(table: Table, cells: Mapping[str, Ref]) -> None:
    """The rows of the load on the first sheet: its workload, and its row on Contexts, as the cells there say."""
    columns = table.columns
    fixed = Range(columns["workload_row"][: table.n_fixed])
    for i in range(table.n_fixed, table.n_rows):
        row = table.replace("workload_row", i, cells["workload_row"], PLAIN)
        model = columns["model_row"][i]
        pace = derived(lambda model, many, row: (model - 1) * many + row, model, greatest(fixed), row)
        table.replace("pace_row", i, pace, PLAIN)


def _put_requests(table: Table, name: str, label: str, display: Display, cells: Mapping[str, Ref] | None) -> None:
    """The requests at once of each load: those of its tier, or those that the first sheet states."""
    tiers, places = table.wiring.lists["tiers"], table.columns["tier_row"]

    requests = (
        lookup(tiers, place) if cells is None else held_at(place, lookup(tiers, place), cells["requests"])
        for place in places
    )
    table.looked_up(name, label, requests, display, width=14)


def _add_chance(loads: Table) -> None:
    """Below the loads, the allowance for chance: a row for each step of Newton's method; rates read the last."""
    wiring, sheet, top = loads.wiring, loads.sheet, loads.top + loads.n_rows + 3
    column = loads.columns["workload_row"][0].column
    sheet.text(top, column - 1, rates.next_z.label, "head", note=rates.next_z.documentation)
    for step in range(rates.Z_STEPS + 1):
        env = dict(wiring.inputs)
        quantity = rates.next_z if step else rates.first_z
        wiring.inputs["z"] = sheet.compute(top + step, column, quantity, env)
    wiring.names["calc_wait_z"] = wiring.inputs.pop("z")
    wiring.inputs["wait_z"] = wiring.ref("calc_wait_z")._replace(name="calc_wait_z")
    loads.rows_below = rates.Z_STEPS + 3


@formula("Sequences per replica")
def replica_sequences(sequences: Quantity, data_parallel_size: Quantity) -> Value:
    """Sequences that one replica of the recommended hardware holds: those of its ranks together; 0 where there is none.

    Source: sequences.
    """
    return sequences * where(is_number(data_parallel_size), data_parallel_size, 0)


@formula("$ per hour", USD_CENTS)
def chosen_hourly_usd(n_instances: Quantity, hourly_price: Value) -> Value:
    """$ per hour of all recommended instances; none where there are none.

    Source: hourly_usd.
    """
    return cost.hourly_usd(n_instances, hourly_price)


def chosen(quantity: Formula, otherwise: CellValue = "-") -> Formula:
    """The formula for a load that has hardware; for a load that has none it gives `otherwise`, by default no value."""

    @functools.wraps(quantity.function)
    def read(n_instances: Quantity, *values: Quantity) -> Value:
        return where_number(n_instances, lambda: quantity.function(*values), otherwise)

    return replace(quantity, inputs=("n_instances", *quantity.inputs), function=read)


@formula("Milliseconds")
def in_milliseconds(seconds: Quantity, milliseconds_per_second: Quantity) -> Value:
    """A time in milliseconds.

    Source: definition.
    """
    return number_where(is_number(seconds), seconds * milliseconds_per_second)


# Facts of the chosen candidate from other sheets: column, head, quantity, display, width.
OF_RENT = (
    ("instance_row", "Row on Prices and hardware", "instance_row", PLAIN, 14),
    ("instance", "Instance", "instance", TEXT, 34),
    ("type", "Type", "type", TEXT, 30),
)
OF_CHOSEN = (
    ("gpu_row", "GPU row", "gpu_row", PLAIN, 14),
    ("profile", "Profile", "profile", PLAIN, 14),
    ("plain_position", "Column without ranks", "plain_position", PLAIN, 14),
    ("provider", "Provider", "provider", TEXT, 14),
    ("provider_name", "Provider's name", "provider_name", TEXT, 14),
    ("price_age", "Price age", "mark_in_use", TEXT, 14),
    ("gpu", "GPU", "gpu", TEXT, 28),
    ("gpu_name", "GPU, short", "gpu_name", TEXT, 18),
    ("hourly_price", "$ per instance and hour", "price_usd_per_hour", USD_CENTS, 14),
)  # fmt: skip
OF_BRIEF = ("instance_row", "type", "gpu_row", "profile", "plain_position")


def add_choices(wiring: Wiring, *, takes_cheapest: Sequence[int] = (), n_shown: int | None = None) -> None:
    """The choice of each load, from its rows on Candidates and Profiles.

    takes_cheapest: of Decision, by load, as `near_tie_in_force` reads it; its loads have no next cheapest, no cache of
    the load and no unit costs. n_shown: the loads, the first ones, whose speed and chance are shown; of the others
    what they rent and cost alone.
    """
    table = wiring.tables["loads"]
    rows = _made_of(_rows(table), table.n_rows)
    _add_choice(table, rows, [wiring.prefix] * table.n_rows, takes_cheapest, n_shown)


def _add_choice(
    table: Table,
    rows: dict[str, Any],
    prefixes: Sequence[str],
    takes_cheapest: Sequence[int] = (),
    n_shown: int | None = None,
    is_brief: bool = False,
) -> None:
    """The choice of each row of a table of loads, and what users get of it. rows: what the steps of the choice read.
    prefixes: by row, of the rows of Candidates that have its prices. is_brief: only what is rented, its cost and its
    chance."""
    wiring, columns = table.wiring, table.columns
    is_decision = bool(wiring.prefix)
    _add_steps(table, rows, _CALLED, takes_cheapest=takes_cheapest)
    table.chosen = "position"
    why = [_verdict(table, i, monthly) for i, monthly in enumerate(rows["monthly_usd"])]
    n_loads, n_rented = table.n_rows, len(OF_RENT)
    facts = [fact for fact in (*OF_RENT, *OF_CHOSEN) if not is_brief or fact[0] in OF_BRIEF]
    for k, (name, label, reads, display, width) in enumerate(facts):
        if k == n_rented and n_shown is not None:
            table.n_rows = n_shown
        none = why if name in ("instance", "type") else repeat(NO_VALUE)
        read = _of_own_class(table, reads, prefixes) if is_decision else table.sources_by_row(reads)
        table.looked_up(name, label, map(held_at, columns["position"], read, none), display, width=width)
    if not is_decision:
        dates = wiring.tables["instances"].range("date_in_use")
        read_on = (entry(dates, place, is_number) for place in columns["instance_row"])
        table.looked_up("price_date", "Price date", read_on, DATE)
    table.bring("sequences", label="Sequences per rank")
    if not is_brief:
        table.computed(replica_sequences)
    table.bring("pipeline_stages", label="PP")
    columns["pipeline_parallel_size"] = columns["pipeline_stages"]
    # The load of a replica within the targets is planned with a request on each of its ranks.
    ranks = map(held_at, columns["position"], columns["data_parallel_size"])
    table.looked_up("busy_ranks", "Ranks that step together", ranks, PLAIN)
    _add_parts(table)
    table.computed(parallelism.paced_requests.reading(data_parallel_size="busy_ranks"))
    table.computed(chosen(parallelism.replicas_per_instance))
    is_rate = has_rate(wiring)
    if is_rate:
        table.bring("full_turn_seconds", "replica_prefill_seconds")
        for quantity in (
            rates.full_batch_requests,
            rates.offered_requests,
            rates.places,
            rates.prefill_replicas,
            rates.rate_places,
        ):
            table.computed(chosen(quantity))
        table.computed(rates.load_with_rates.reading(load_requests="stated_load"), name="load_requests")
    if is_brief:
        _add_program(table, TIMES, OF_SPEED.difference(SHOWN_OF_SPEED))
    else:
        table.computed(chosen(parallelism.n_replicas))
        table.computed(figures.n_gpus)
        table.computed(chosen_hourly_usd, name="hourly_usd")
        _add_speed(table)
        table.computed(chosen(parallelism.served_at_target))
        if is_rate:
            table.computed(chosen(rates.served_requests_per_second))
            table.computed(chosen(figures.served_of_load), name="served_at_target")
        table.computed(chosen(parallelism.memory_holds))
        words = sentences.rate_or_room_words if is_rate else sentences.room_words
        table.computed(words, name="room_words", width=34)
    if is_rate:
        table.bring("rank_position")
    if "level_z" in wiring.tables["contexts"].columns:
        table.picked("level_z", "Level", wiring.tables["contexts"].range("level_z"), "pace_row", FACTOR)
    else:
        columns["level_z"] = [wiring.inputs["level_z"]] * table.n_rows
    columns["low_z"] = columns["level_z"]
    _add_program(table, CHANCES, OF_CHANCES.difference(OF_PARTS if is_brief else ()))
    if not is_decision:
        table.computed(sentences.fit_word)
        table.computed(figures.headroom)
        _add_runner_up(table, rows)
        table.computed(sentences.hardware_words, width=40)
        _add_kv(table)
        for quantity in (*OF_A_LOAD, *HOSTED_TOKENS):
            table.computed(quantity, {} if is_rate else {"requests_per_second": ZERO}, width=14)
    table.n_rows = n_loads


# The columns of the steps of the choice; and of those of the load itself.
COLUMNS_OF_STEPS = {
    "fewest_instances": "n_instances", "best_suitability": "suitability", "most_served": "served", "chosen_usd": "usd",
    "chosen_tp": "size", "chosen_dp": "n_ranks", "chosen_position": "position",
}  # fmt: skip
_CALLED = {"usd": "monthly_usd", "size": "tensor_parallel_size", "n_ranks": "data_parallel_size"}


def _rows(table: Table) -> dict[str, Read]:
    """The columns of Candidates that the steps of the choice read, for each row of the table of loads, with what
    follows from whole rows."""
    wiring, head = table.wiring, table.wiring.tables["candidates"]

    def of_block(name: str) -> Sequence[Source]:
        every: Sequence[Source] = wiring.ranges(name)
        return table.by_row(wiring.blocks[name].down, every, lambda i: _of_workload(every, table, i))

    sizes = ("tensor_parallel_size", "data_parallel_size", "gpu_count", f"{wiring.prefix}instance_month_usd")
    return {
        **{name.removeprefix(wiring.prefix): head.range(name) for name in sizes},
        **{name: of_block(name) for name in ("monthly_usd", "ranked_requests", "weights_on_candidate")},
        "stated_load": table.columns["stated_load" if has_rate(wiring) else "load_requests"],
        "among": written(True, lambda: literal(1)),
    }


def _made_of(rows: Mapping[str, Read], n_rows: int) -> dict[str, Read]:
    """The inputs of the steps of the choice for `n_rows` loads, with the quantities that follow from whole rows of
    Candidates."""

    def made(quantity: Formula) -> list[Lookup]:
        read = [rows[name] for name in quantity.inputs]
        by_load = zip(*(source if isinstance(source, list) else [source] * n_rows for source in read), strict=True)
        return [row_of(quantity.function, *of_load) for of_load in by_load]

    return {
        **rows,
        "gpu_month_usd": made(cost.gpu_month_usd),
        "suitability": made(figures.suitability_of_load),
    }


def _of_workload(rows: Sequence[Source], table: Table, i: int) -> Lookup:
    """The row of a load whose workload a reader chooses, among those of its model's workloads."""
    key, pace = table.columns["workload_row"][i], int(table.columns["pace_row"][i].value)
    first = pace - int(key.value)
    own = rows[first : first + len(rows) // len(table.wiring.tables["models"].columns["model"])]
    return choose(key, own)


def _add_steps(
    table: Table,
    rows: dict[str, Read],
    called: Mapping[str, str],
    prefix: str = "",
    label_prefix: str = "",
    takes_cheapest: Sequence[int] = (),
) -> None:
    """The steps of the choice, a column each (and one that passes it on), under their names with a prefix.

    label_prefix: put before their heads. takes_cheapest: as in `add_choices`.
    """
    rows = dict(rows)
    for step in STEPS:
        name = COLUMNS_OF_STEPS.get(step.name, step.name)
        column = prefix + called.get(name, name)
        width = 14 if name.endswith("usd") else 12
        table.computed(step, rows, name=column, label=f"{label_prefix}{step.label}", width=width)
        rows[step.name] = table.columns[column]
        if takes_cheapest and step is choice.cheapest_usd:
            table.given("takes_cheapest", "Takes the very cheapest", takes_cheapest, PLAIN, role="fixed", width=8)
            asked = table.columns[column][0]._replace(lock="both")
            table.computed(figures.near_tie_in_force, {"asked_cheapest_usd": asked}, name="near_tie", width=8)
            rows["near_tie_fraction"] = table.columns["near_tie"]


def _verdict(table: Table, i: int, monthly: Range) -> Lookup:
    """The reason why no hardware was chosen for a load."""
    within, limit = table.columns["within_limit"][i], table.columns["limit_words"][i]
    # Where memory holds the load but no count is fast enough, its month reads 0.
    n_held = written(int((monthly.value == 0).sum()), call("COUNT"), monthly)
    return worked_out(sentences.why_nothing, {"within_limit": within, "n_held": n_held, "limit_words": limit})


def _of_own_class(table: Table, reads: str, prefixes: Sequence[str]) -> Sequence[Ref | Lookup]:
    """A column of another sheet for the candidate chosen on Decision, whose purchase class may differ from the
    workbook's."""
    tables, columns = table.wiring.tables, table.columns
    head = tables["candidates"]
    if f"{prefixes[0]}{reads}" in head.columns:
        places = zip(prefixes, columns["position"], strict=False)
        return [lookup(head.range(f"{prefix}{reads}"), place) for prefix, place in places]
    if reads == "instance":
        return [lookup(tables["instances"].range(reads), place) for place in columns["instance_row"]]
    return table.sources_by_row(reads)


def _add_parts(table: Table) -> None:
    """The parts of a step on the chosen profile, from the blocks of Profiles."""
    for quantity in PARTS:
        if quantity.name in table.wiring.blocks:
            table.bring(quantity.name, label=quantity.label)
        else:
            table.computed(chosen(quantity, 0))
    table.bring("prefill_seconds", *LEFT, "batch_limit", *(name for name in OF_PROFILE if name not in table.columns))
    for quantity in (speed.fixed_step_seconds, speed.request_step_seconds):
        whole = quantity.with_parts(HOPS)
        ranks = {name: "busy_ranks" for name in ("data_parallel_size",) if name in whole.inputs}
        table.computed(whole.reading(**ranks))  # numbers in any case


# The speed that users get on the chosen hardware, and the part that Decision shows.
OF_SPEED = frozenset((
    "requests_per_replica", "running_ranks", "running_step_seconds",
    "loaded_replicas", "replica_requests_per_second", "earlier_batch_requests",
    "next_earlier_in_flight", "later_batch_requests", "next_in_flight",
    "secant_in_flight", "running_requests", "mean_batch_requests", "in_flight_at_peak", "served_load_requests",
    "batch_requests", "untouched_fraction", "tpot_seconds", "service_ttft_seconds", "ttft_seconds",
    "prefill_fraction", "load_tokens_per_second", "next_tpot_seconds", "sized_by",
    *(name for name, _ in by_name((*SPEED_BANDS, *speed_ends()))),
))  # fmt: skip
# Those that no chance reads.
SHOWN_OF_SPEED = (
    "running_requests",
    "prefill_fraction", "load_tokens_per_second", "next_tpot_seconds", "sized_by",
    "output_tokens_per_second_band_low", "output_tokens_per_second_band_high",
    *(name for name, _ in by_name(speed_ends())),
)  # fmt: skip
OF_PARTS = ("memory_chance", "tpot_chance", "ttft_chance")
OF_CHANCES = frozenset((
    "high_z", "tried_z", *(name for name, _ in by_name(tried())), "is_served", "served_z", "missed_z", "served_places",
    "rank_requests", "held_requests", "fullest_batch_requests", "fullest_tpot_seconds", "fullest_ttft_seconds",
    "tpot_z", "ttft_z", "pool_room_bytes", "memory_z", "least_z", *OF_PARTS, "chance",
))  # fmt: skip
# The program's tables for the chosen hardware: its times with their bands, and its certainty.
_LEVEL = next(i for i, part in enumerate(CHOSEN.tables) if part.name == "level_at_rate")
TIMES, CHANCES = (SHEET["levels"], *CHOSEN.tables[:_LEVEL]), CHOSEN.tables[_LEVEL:]
# Further quantities without a column.
WITHIN = (*HOPS, *LEVELS_WITHIN, kv_cache.UNSTAGED_WINDOWS, kv_cache.UNSTAGED_COMPRESSORS)


def _batches_tried(table: Table, name: str) -> list[Source]:
    """For each load the values of its model for every batch that is tried, at the data-parallel ranks of the chosen
    hardware."""
    columns, tried = table.columns, table.wiring.tried[name]
    sources: list[Source] = []
    for model, place in zip(columns["model_row"][: table.n_rows], columns["rank_position"], strict=True):
        by_ranks = tried[int(model.value) - 1]
        sources.append(by_ranks[0] if len(by_ranks) == 1 or place.value in (NONE, 0) else choose(place, by_ranks))
    return sources


def _add_program(table: Table, parts: Iterable[Declared], names: Collection[str]) -> None:
    """Columns of the program's quantities for loads on their chosen hardware, those of these names."""
    columns = table.columns

    def add(quantities: Iterable[Named], step: str = "") -> None:
        for name, quantity in by_name(quantities):
            if is_same(quantity):
                columns[name] = columns[quantity.inputs[0]]
            elif name in names:
                # Nobody waits for memory: replicas are as many as hold all requests.
                within = (part for part in WITHIN if part.name not in columns)
                waits = {name: "no_queue_seconds" for name in quantity.inputs if name == "queue_seconds"}
                of_chosen = chosen(quantity.with_parts(within).reading(**waits))
                given: dict[str, Read] = {read: _batches_tried(table, read) for read in of_chosen.rows}
                called = in_words(name) if table.has_head(f"{quantity.label}{step}") else quantity.label
                table.computed(of_chosen, given, name=name, label=f"{called}{step}")

    for part in parts:
        assert not isinstance(part, Again)
        if part.where is not None and part.where not in columns:
            continue
        if isinstance(part, Repeat):
            add(part.start)
            for step in range(part.times):
                add(part.step, f", line {step + 1}")
                columns.update({name: columns[left] for name, left in part.carry.items()})
        else:
            add(part.quantities)


def _add_speed(table: Table) -> None:
    """The speed that users get on the chosen hardware."""
    columns = table.columns
    _add_program(table, TIMES, OF_SPEED)
    if "requests_per_second" in columns:
        table.computed(figures.in_flight, name="concurrent_requests")
    _add_people(table)
    columns["output_tokens_per_second"] = columns["load_tokens_per_second"]
    for end in () if table.wiring.prefix else ("", "_low", "_high"):
        name = f"tpot{end}_ms"
        table.computed(in_milliseconds.reading(seconds=f"tpot_seconds{end}"), name=name, label=name.replace("_", " "))


def _add_people(table: Table) -> None:
    """Each load as a rate and as people: as stated, or by its targets."""
    columns, is_rate, inputs = table.columns, has_rate(table.wiring), table.wiring.inputs
    for quantity in (speed.cached_fraction, people.target_turn_seconds):
        if table.wiring.prefix:  # Decision has them once
            columns[quantity.name] = [inputs[f"own_{quantity.name}"]] * table.n_rows
            continue
        of_paces = table.wiring.tables["contexts"].range(quantity.name)
        table.picked(quantity.name, quantity.label, of_paces, "pace_row", quantity.display)
    at_once = people.at_once_per_second
    table.computed(at_once.reading(concurrent_requests="stated_requests") if is_rate else at_once)
    columns["load_requests_per_second"] = columns["at_once_per_second"]
    if is_rate:
        label = in_words("load_requests_per_second")
        table.computed(people.rate_or_at_once, name="load_requests_per_second", label=label)
        typed = inputs["own_users" if table.wiring.prefix else "stated_users"]
        table.computed(figures.stated_people, {"users": typed}, name="stated_users")
    _add_program(table, (READ,), {name for name, _ in by_name(READ.quantities)} - set(columns))
    for name, quantity in by_name(PEOPLE_READ.quantities):
        table.computed(quantity, {} if is_rate else {"stated_users": ZERO}, name=name)


def _add_runner_up(table: Table, rows: Mapping[str, Read]) -> None:
    """The best candidate with another GPU or from another provider."""
    columns, head = table.columns, table.wiring.tables["candidates"]

    def other(gpu: Value, provider: Value, gpus: Value, providers: Value) -> Value:
        return (1 * (gpus != gpu) + 1 * (providers != provider)) > 0  # the OR of an array formula

    of_head = head.range("gpu_row"), head.range("provider")
    own = zip(columns["gpu_row"], columns["provider"], strict=True)
    rows = {**rows, "among": [row_of(other, *cells, *of_head) for cells in own]}
    _add_steps(table, rows, {}, "second_", "Next cheapest, ")
    refs, through = table.wiring.tables["instances"].range("instance"), head.range("instance_row")
    names = (held_at(place, lookup(refs, lookup(through, place)), NO_VALUE) for place in columns["second_position"])
    table.looked_up("runner_up", "Next cheapest", names, TEXT, width=34)


def _add_kv(table: Table) -> None:
    """The memory that the load's KV cache keeps, before any division."""
    wiring, columns = table.wiring, table.columns
    gpu_rows = wiring.tables["profiles"].range("gpu_row")
    table.looked_up(
        "undivided_profile",
        "Profile of one undivided GPU",
        (position_in(gpu_rows, gpu, ONE) for gpu in columns["gpu_row"]),
        PLAIN,
        note="The first of the GPU chosen; where none is, of the first GPU.",
    )
    places = list(zip(columns["model_row"], columns["undivided_profile"], strict=True))
    given: dict[str, Read] = {name: [wiring.of_block(name, *place, {}) for place in places] for name in WHOLE_OF}
    for quantity in STEADY:
        table.computed(quantity, given)
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
        figures.in_unit,
        {"amount_bytes": columns["kv_bytes"]},
        name="kv_in_unit",
        label="KV in the page's unit",
        width=14,
    )


def add_otherwise(wiring: Wiring, purchases: Sequence[str]) -> tuple[dict[str, dict[str, Ref]], dict[str, Ref]]:
    """By purchase class the best for the first load at the prices of that class, as a commitment chooses its own
    hardware; and the best that survives the loss of a machine. By the same steps, below the loads."""
    loads, head, n_rows = wiring.tables["loads"], wiring.tables["candidates"], len(purchases) + 1
    top = loads.top + loads.n_rows + 3
    asked = {name: loads.columns[name][:1] * n_rows for name in loads.asked}
    table = Table(wiring, loads.sheet, n_rows, "otherwise", top=top, columns=asked)
    table.given("otherwise", "Otherwise", [*purchases, "where a machine may fail"], TEXT, role="label")
    table.columns["survive"] = [*[wiring.inputs["survive"]] * len(purchases), wiring.inputs["own_survive"]]
    rows = {name: every[0] if isinstance(every, list) else every for name, every in _rows(loads).items()}
    prefixes = [*(f"{class_stem(purchase)}_" for purchase in purchases), wiring.prefix]
    names = [*(f"{prefix}monthly_usd" for prefix in prefixes[:-1]), "survivor_monthly_usd"]
    blocks = [Range(wiring.blocks[name].rows[0], lock="columns") for name in names]
    of_rows = {
        "monthly_usd": blocks,
        "instance_month_usd": [head.range(f"{prefix}instance_month_usd") for prefix in prefixes],
    }
    _add_choice(table, _made_of(rows | of_rows, n_rows), prefixes, is_brief=True)
    every = [table.row(i) for i in range(n_rows)]
    return dict(zip(purchases, every, strict=False)), every[-1]


def add_providers(wiring: Wiring, n_providers: int, load: Ref, model: Ref) -> list[dict[str, Ref]]:
    """Each provider's best for a model's load on the first sheet, by the same steps, below the loads; gives what Money
    shows of each. load, model: the cells that say its row here, and the model's."""
    head, in_order = wiring.tables["candidates"], wiring.tables["instances"].range("provider_in_order")
    table, rows = _of_money(wiring, n_providers, "providers", load, model)
    numbers = list(range(1, n_providers + 1))
    table.given("provider_row", "Provider row", numbers, PLAIN, role="fixed")
    table.picked("provider", "Provider", in_order, "provider_row", TEXT)

    def of_provider(providers: Value, provider: Value) -> Value:
        return providers == provider

    rows["among"] = [row_of(of_provider, head.range("provider"), ref) for ref in table.columns["provider"]]
    _add_steps(table, _made_of(rows, n_providers), {})
    for name, column, display in (("price", "price_usd_per_hour", USD_CENTS), ("instance_row", "instance_row", PLAIN)):
        shown = (held_at(place, lookup(head.range(column), place), NO_VALUE) for place in table.columns["position"])
        table.looked_up(name, in_words(name), shown, display)
    return [table.row(i) for i in range(n_providers)]


def add_classes(wiring: Wiring, load: Ref, model: Ref) -> dict[str, dict[str, Ref]]:
    """By purchase class but on demand the best for a model's load on the first sheet at its prices, by the same steps,
    below the providers: the row on Prices and hardware, and how many instances. load, model: as above."""
    head = wiring.tables["candidates"]
    table, rows = _of_money(wiring, len(BESIDE_ON_DEMAND), "classes", load, model)
    table.given("purchase_class", "Purchase class", BESIDE_ON_DEMAND, TEXT, role="label")

    def of_class(count: Value, instance_month_usd: Value) -> Value:
        """The same instances at the prices of a class."""
        return number_where(is_number_in_row(count), count * instance_month_usd)

    counts = _instances_of_money(wiring, load)
    months = [head.range(f"{class_stem(purchase)}_instance_month_usd") for purchase in BESIDE_ON_DEMAND]
    rows |= {"monthly_usd": [row_of(of_class, counts, month) for month in months], "instance_month_usd": months}
    contexts = wiring.tables["contexts"]
    if "level_z" in contexts.columns:  # nobody binds money on an even chance
        table.picked("level_z", "Level", contexts.range("level_z"), "pace_row", FACTOR)
        asked = wiring.inputs["confidence_z"]
        as_sure = (
            derived(lambda level, asked: where(level == asked, 1, 0), level, asked)
            if PURCHASES[purchase].binds
            else ONE
            for purchase, level in zip(BESIDE_ON_DEMAND, table.columns["level_z"], strict=True)
        )
        rows["among"] = list(as_sure)
    _add_steps(table, _made_of(rows, table.n_rows), {})
    places = zip(BESIDE_ON_DEMAND, table.columns["position"], strict=True)
    of_rows = (
        held_at(place, lookup(head.range(f"{class_stem(purchase)}_instance_row"), place), NO_VALUE)
        for purchase, place in places
    )
    table.looked_up("instance_row", in_words("instance_row"), of_rows, PLAIN)
    return {purchase: table.row(i) for i, purchase in enumerate(BESIDE_ON_DEMAND)}


# The number of instances of a candidate that a load takes, whether the class in use has a price of it or not.
INSTANCES = cost.n_instances.with_parts([parallelism.n_replicas]).reading(price_usd_per_hour="has_instances")


def _instances_of_money(wiring: Wiring, load: Ref) -> Range:
    """The instances of each candidate for the load of Money, in a row below all others on Candidates."""
    head, loads = wiring.tables["candidates"], wiring.tables["loads"]
    sheet, profiles = head.sheet, head.columns["profile"]
    row = 2 + max([row for row, _ in sheet.cells] + [filled.row for filled in sheet.rows])
    sheet.text(row, 0, "Instances for the load of Money", "label")
    places = {"loads": load} | {
        key: sheet.link(row, column, lookup(loads.range(name), load), PLAIN, "computed", lock="column")
        for column, (key, name) in enumerate((("contexts", "pace_row"), ("models", "model_row")), 1)
    }

    def on_profiles(name: str) -> RowValues:
        place = places[wiring.blocks[name].down]
        return RowValues.of([wiring.of_block(name, place, profile, {}) for profile in profiles])

    held = wiring.blocks["replicas_per_instance"]
    env: dict[str, Source | RowValues] = {**wiring.inputs, "has_instances": ONE}
    env["paced_requests"] = on_profiles("paced_requests")
    env["load_requests"] = (
        on_profiles("places_of_load") if has_rate(wiring) else lookup(loads.range("load_requests"), load)
    )
    env["replicas_per_instance"] = _picked(held.rows, places[held.down])
    counts = sheet.fill_row(row, profiles[0].column, head.n_rows, INSTANCES, env)
    return named(wiring.names, "tbl_candidates_instances_of_money", counts)


def _picked(rows: Sequence[Row | RepeatedRow], place: Ref) -> RowValues:
    """Of the rows of a block on the same sheet, the cells of that at a place."""
    first, last = (row[0]._replace(lock="row") for row in (rows[0], rows[-1]))
    if len(rows) == 1:  # Gnumeric finds nothing in a range of one cell
        return RowValues(rows[0].values, first)
    held = rows[int(place.value) - 1].values

    def tree(first: Expr, last: Expr, place: Expr) -> Expr:
        return function("INDEX", Expr(f"{first.text}:{last.text}"), place)

    return RowValues(held, written(held[0], tree, first, last, place))


def _of_money(wiring: Wiring, n_rows: int, key: str, load: Ref, model: Ref) -> tuple[Table, dict[str, Any]]:
    """A table of choices for a model's load on the first sheet, below what stands on Workings, and what the steps read
    in each of its rows."""
    loads = wiring.tables["loads"]
    top = loads.top + loads.n_rows + 3 + loads.rows_below
    loads.rows_below += n_rows + 3
    table = Table(wiring, loads.sheet, n_rows, key, top=top)
    table.looked_up("load_row", "Load", [load] * n_rows, PLAIN)
    table.picked("pace_row", "Context row", loads.range("pace_row"), "load_row", PLAIN)
    table.picked("model_row", "Model row", loads.range("model_row"), "load_row", PLAIN)
    # The load on the first sheet has rows of its own, the last ones, a model each.
    place = model._replace(name="calc_money_model")
    rows: dict[str, Read] = {}
    for name, every in _rows(loads).items():
        if isinstance(every, list):  # of the load on the first sheet, wherever it is read
            own = [
                source._replace(lock="both") if isinstance(source, Ref) else source for source in every[loads.n_fixed :]
            ]
            every = choose(place, own)
        rows[name] = every
    return table, rows
