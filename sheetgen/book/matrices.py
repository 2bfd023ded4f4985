"""Profiles and Candidates: the memory that a model leaves on each GPU, and the monthly cost of each load on each
instance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy

from sheetgen.answer.solution import Solution
from sheetgen.book import discount_table
from sheetgen.book.catalogs import class_stem, of_class_in_use
from sheetgen.book.compiler import Compiler, Span
from sheetgen.book.contexts_sheet import HOPS, PARTS
from sheetgen.book.decision_choices import ANY, AS_ASKED, KV_FP8
from sheetgen.book.figures import latent_position, non_torch_position, profile_position, ranked_of_candidate
from sheetgen.book.lookups import NO_VALUE, ONE, ZERO, count_numbers, position_in, written
from sheetgen.book.sheets import (
    NONE,
    Cell,
    CellValue,
    Lookup,
    Range,
    Ref,
    RowValues,
    Sheet,
    choose,
    derived,
    lookup,
    worked_out,
)
from sheetgen.book.wiring import HEAD_ROWS, LEFT, Head, Read, RowSource, Table, Wiring, profile_columns, titled
from sheetgen.formula import (
    Formula,
    Quantity,
    Value,
    both,
    either,
    formula,
    function,
    is_number,
    is_text,
    join_text,
    number_or_none,
    number_where,
    where,
)
from sheetgen.program.declared import is_same
from sheetgen.program.sheet_program import SHEET, counted, sheet_program
from sheetgen.question.overrides import class_columns
from sheetgen.sizing import certainty, kv_cache, memory, parallelism, rates, speed
from sheetgen.sizing.cost import discounted_usd_per_hour, instance_month_usd, n_instances, paid_hours_per_month
from sheetgen.sizing.parallelism import n_replicas
from sheetgen.units import (
    BESIDE_ON_DEMAND,
    COMMITTED,
    ENDS,
    PLAIN,
    PLAIN_LAYOUTS,
    PURCHASES,
    TENSOR_PARALLEL_SIZES,
    TEXT,
    USD,
    USD_CENTS,
    WHOLE,
    Display,
    Layout,
)

# Inputs of a load's own KV cache, before any division: those of one undivided rank.
WHOLE_OF = (
    "growing_block_tokens", "windowed_block_tokens", "kv_block_bytes", "shard_kv_bytes_per_token",
    "shard_windowed_bytes_per_token", "shard_state_bytes_per_layer",
)  # fmt: skip
OF_REPLICA = ("pipeline_stages", "sequences", "batch_limit", "places_of_load")
# On Contexts; the same as the loaded weights, or a part of them.
ELSEWHERE = ("prompt_attention_flops", "weights_bytes_per_gpu")
# The parts of a step that have cells: prompts read them, too.
STEPS_OF_MODEL = (speed.dense_seconds, speed.layer_overhead_seconds)
# The scopes of the bands of times, and the quantities that follow directly from the factors.
_LEVELS = {name: replace(quantity, name=name) for name, quantity in SHEET["levels"].named().items()}
_SCOPES = [_LEVELS[name].with_parts([_LEVELS["measured_scope"]]) for name in ("speed_scope", "ttft_scope")]
LEVELS_WITHIN = tuple(
    quantity.with_parts(_SCOPES) for name, quantity in _LEVELS.items() if not name.endswith("_factor")
)
# Computed within the formulas that read them: sums of a few cells, parts of a step, and minor steps.
NOT_WRITTEN = (
    *HOPS,
    speed.fixed_step_seconds,
    *(part for part in PARTS if part not in STEPS_OF_MODEL),
    parallelism.runs,
    memory.staged_non_torch_bytes_per_gpu,
    memory.encoder_bytes,
    memory.encoder_peak_bytes,
    memory.hand_over_bytes,
    memory.stage_overhead_bytes,
    counted(parallelism.layers_that_fit),
    *LEVELS_WITHIN,
    certainty.counted_layer_budget_bytes.with_parts([certainty.pool_level_bytes]),
    certainty.pool_level_bytes,
    memory.sampler_bytes,
    memory.forward_bytes,
    memory.expert_workspace_bytes,
    memory.cold_start_bytes,
    memory.sampler_table_bytes,
    kv_cache.UNSTAGED_WINDOWS,
    kv_cache.UNSTAGED_COMPRESSORS,
)


def build_profiles(solved: Solution, wiring: Wiring, live: Sequence[Wiring]) -> Sheet:
    """The sheet; `blocks` of a wiring has a row per model, or per context, of what each profile leaves and holds.

    live: those whose models a reader chooses, such as Decision's: they get rows of their own below those of the sheet's
    models, and the GPU that is chosen there columns at the right.
    """
    gpus, question = wiring.tables["gpus"], solved.question
    wirings = [wiring, *live]
    profiles = profile_columns(question)
    n_profiles, n_plain = len(profiles), len(question.gpus) * len(PLAIN_LAYOUTS)
    sheet = titled(
        "Profiles",
        "Profiles",
        "A column per GPU and layout (TP, DP): what a model leaves for the cache "
        "on one GPU, and how many sequences one replica holds of each load.",
        freeze=(HEAD_ROWS + 3, LEFT),
    )
    sheet.widths = {0: 30, 1: 26}
    head = Head(wiring, sheet, len(profiles), "profiles")
    ranks = list(dict.fromkeys(layout.data_parallel_size for layout in question.layouts))
    plain = {profile: column for column, profile in enumerate(profiles) if profile[1] in PLAIN_LAYOUTS}
    head.given("gpu_row", "GPU row", [gpu + 1 for gpu, _ in profiles], PLAIN, role="fixed")
    head.picked("gpu_name", "GPU", gpus.range("gpu_name"), "gpu_row", TEXT)
    for name, label, places in (
        ("tp_position", "TP row", [TENSOR_PARALLEL_SIZES.index(layout.tensor_parallel_size) for _, layout in profiles]),
        ("rank_position", "DP row", [ranks.index(layout.data_parallel_size) for _, layout in profiles]),
        (
            "plain_position",
            "Without ranks",
            [plain[gpu, Layout(layout.tensor_parallel_size)] for gpu, layout in profiles],
        ),
    ):
        head.given(name, label, [place + 1 for place in places], PLAIN, role="fixed")
    for name, label in (("tensor_parallel_size", "TP"), ("data_parallel_size", "DP")):
        head.given(name, label, [getattr(layout, name) for _, layout in profiles], PLAIN, role="fixed")
    head.columns["busy_ranks"] = head.columns["data_parallel_size"]  # full replicas have a request on each
    n_sizes = count_numbers(wiring.lists["non_torch_newer"])
    rows_of_sizes = (
        worked_out(
            non_torch_position, {"tp_position": tp, "is_older_gpu": is_older, "n_tensor_parallel_sizes": n_sizes}
        )
        for tp, is_older in zip(head.columns["tp_position"], head.sources_by_row("is_older_gpu"), strict=True)
    )
    non_torch = (lookup(wiring.lists["non_torch"], row) for row in rows_of_sizes)
    head.looked_up("non_torch_bytes_per_gpu", "Non-torch memory", non_torch, WHOLE)
    head.columns["non_torch_bytes_per_tp"] = head.columns["non_torch_bytes_per_gpu"]
    head.computed(SHEET["profiles"].named()["memory_budget_bytes"])
    for end in ENDS:
        name = f"kv_pool_error_bytes_{end}"
        head.computed(SHEET["profiles"].named()[name], name=name, label=f"Pool's error, {end} end")
    head.looked_up("n_offered", "Instances offered", _offered(wiring, head), PLAIN)
    for column in range(LEFT, LEFT + len(profiles)):
        sheet.widths[column] = 23
    for w in wirings:
        w.tables["profiles"] = head
    ranks_of = frozenset({"dp"} if n_profiles > n_plain else ())
    sizes = dict.fromkeys(("tensor_parallel_size", "tp_position"), frozenset({"tp"}))
    latents = {"plain_fp8_latent": frozenset({"latent"})}
    compiler = Compiler(
        sheet,
        head,
        wirings,
        down=("models", "contexts", "loads"),
        along={
            "tp": Span(len(TENSOR_PARALLEL_SIZES), head.columns, "tp_position"),
            **_spans_beside(head, len(gpus.columns["gpu"]), n_sizes),
            "plain": Span(n_plain, head.columns, "plain_position" if n_plain < n_profiles else ""),
            "profile": Span(n_profiles, head.columns),
        },
        facts={**sizes, **latents, **dict.fromkeys(("data_parallel_size", "busy_ranks", "rank_position"), ranks_of)},
        inside=NOT_WRITTEN,
        alike=frozenset(() if question.has_latent_entries else {"plain_fp8_latent"}),
        by_model={
            name: (
                frozenset() if name == "steps" else ranks_of | {"model"},
                [_of_ranks(w, name, head) for w in wirings],
            )
            for name in wiring.tried
        },
    )
    for name, quantity in sheet_program(False)["measured"].named().items() if question.measurements.deployments else ():
        lists = {read: wiring.area(f"lst_{read}") for read in quantity.rows}
        models = [ref for w in wirings for ref in w.tables["models"].columns["model"]]
        compiler.write(name, quantity, given={**lists, "model_name": models})
    written: dict[str, str] = {}  # once, where the grid has it under two names
    for name, quantity in _quantities(question.draft is not None):
        other = quantity.inputs[0] if is_same(quantity) else written.setdefault(quantity.name, name)
        if other == name:
            compiler.write(name, quantity)
        else:
            compiler.same(name, other)
    with compiler.alone(*(w for w in wirings if has_rate(w))) as of_rates:
        for quantity in OF_RATE if of_rates.every else ():
            of_rates.write(quantity.name, quantity)
    for w in wirings:
        stages = [Range(row, lock="columns") for row in w.blocks["pipeline_stages"].rows]
        offered = [Range(head.columns["n_offered"][: len(row.refs)]) for row in stages]
        w.tables["contexts"].computed(
            parallelism.held_inside, {"pipeline_stages": stages, "instance_month_usd": offered}
        )
    return sheet


def _spans_beside(head: Head, n_gpus: int, n_sizes: Lookup) -> dict[str, Span]:
    """Columns to the right of the profiles, for quantities that are the same on many of them: one for each
    tensor-parallel size and treatment of latents, and one for each GPU."""
    head.computed(latent_position, {"n_tensor_parallel_sizes": n_sizes})
    flags = head.begin_column("FP8 latents as they are (0 or 1)", "Of the columns at the right.", 0)
    line = {name: head.columns[name][0].row for name in ("tp_position", "tensor_parallel_size", "latent_position")}
    left, size_of = LEFT + head.n_rows + 1, list(enumerate(TENSOR_PARALLEL_SIZES, 1))
    kinds = [(flag, position, size) for flag in (0, 1) for position, size in size_of]

    def put(row: int, column: int, value: int) -> Ref:
        return head.sheet.put(row, column, Cell(value, "fixed", PLAIN), lock="row")

    latent: dict[str, list[Ref]] = {name: [] for name in (*line, "plain_fp8_latent")}
    for column, (flag, position, size) in enumerate(kinds, left):
        latent["tp_position"].append(put(line["tp_position"], column, position))
        latent["tensor_parallel_size"].append(put(line["tensor_parallel_size"], column, size))
        latent["latent_position"].append(put(line["latent_position"], column, 1 + column - left))
        latent["plain_fp8_latent"].append(put(flags, column, flag))
    beside = left + len(kinds) + 1
    rows = [put(head.columns["gpu_row"][0].row, beside + i, i + 1) for i in range(n_gpus)]
    return {
        "latent": Span(len(kinds), latent, "latent_position", left),
        "gpu": Span(n_gpus, {"gpu_row": rows}, "gpu_row", beside),
    }


def _offered(wiring: Wiring, head: Head) -> Iterator[Lookup]:
    """By profile the number of instances with a price that have its GPU, and at least as many as the layout takes."""
    instances = wiring.tables["instances"]
    names, counts, prices = (instances.range(n) for n in ("instance_gpu", "linked_gpus", "price_in_use"))
    rows = [
        (g.value, c.value or 0, 0 if p.value == NONE else p.value)
        for g, c, p in zip(names.refs, counts.refs, prices.refs, strict=True)
    ]
    gpu_names = wiring.tables["gpus"].range("gpu")
    of_profile = (head.columns[n] for n in ("gpu_row", "tensor_parallel_size", "data_parallel_size"))
    for gpu_row, tp, dp in zip(*of_profile, strict=True):
        gpu = lookup(gpu_names, gpu_row)
        count = sum(g == gpu.value and c >= tp.value * dp.value and p > 0 for g, c, p in rows)
        yield written(
            count,
            lambda names, gpu, counts, tp, dp, prices: function(
                "COUNTIFS", names, gpu, counts, join_text(">=", tp * dp), prices, ">0"
            ),
            *(names, gpu, counts, tp, dp, prices),
        )


def _of_ranks(wiring: Wiring, name: str, head: Head) -> list[Range | RowValues]:
    """By model the values of the batches tried in each profile's column: the same in all columns, or by their ranks."""
    sources: list[Range | RowValues] = []
    places = head.columns["rank_position"]
    for ranges in wiring.tried[name]:
        if len(ranges) == 1:
            sources.append(ranges[0])
            continue
        values = numpy.stack([tried.value for tried in ranges], axis=1)[:, [int(place.value) - 1 for place in places]]
        sources.append(RowValues(values, choose(places[0], ranges)))
    return sources


def _quantities(has_draft: bool) -> Iterator[tuple[str, Formula]]:
    """By name, what is written on the sheet, in the order in which the grid has it.

    What a replica holds is the same for every number of requests, so it stands here once for each context.
    """
    within = {part.name for part in NOT_WRITTEN}
    for table in ("shards", "pools", "stages", "steps", "levels", "limits", "sequences"):
        for name, quantity in sheet_program(has_draft)[table].named().items():
            if name not in (*ELSEWHERE, *within):
                yield name, _LEVELS.get(name, quantity)


def has_rate(wiring: Wiring) -> bool:
    """True where a wiring's loads may be rates."""
    return "requests_per_second" in wiring.tables["loads"].columns


@formula("Requests at once, stated or of the rate")
def places_of_load(stated_load: Quantity, rate_places: Quantity) -> Value:
    """The requests at once that a load states; where it states none, the places that the rate takes on a profile.

    Source: rate_places.
    """
    return where(stated_load > 0, stated_load, rate_places)


# Of loads that may be rates: by context the time of a request on a full replica and the work of its prompt, by load the
# places that it takes.
OF_RATE = (
    rates.full_turn_seconds.with_parts([rates.full_batch_requests]),
    rates.replica_prefill_seconds,
    places_of_load.with_parts([rates.rate_places])
    .with_parts([rates.places, rates.prefill_replicas])
    .with_parts([rates.offered_requests]),
)


USD_OR_SLOW = Display(f'{USD.excel};{USD.excel};"too slow"')  # how 0 is shown


@formula("$ per month", USD_OR_SLOW)
def monthly_usd_of_load(
    load_requests: Quantity,
    paced_requests: Quantity,
    replicas_per_instance: Quantity,
    survive: Quantity,
    zones: Quantity,
    price_usd_per_hour: Quantity,
    paid_hours_per_month: Quantity,
) -> Value:
    """The cost of the whole instances for all replicas in a month; none where the instance cannot hold the load or has
    no price, 0 (shown as: too slow) where it holds it but no count meets the targets of speed.

    Source: n_instances x price x hours.
    """
    replicas = n_replicas(load_requests, paced_requests, replicas_per_instance, survive, zones)
    count = n_instances(replicas, paced_requests, replicas_per_instance, load_requests, price_usd_per_hour)
    return number_or_none(count * price_usd_per_hour * paid_hours_per_month)


@formula("Keeps the weights' precision (2: computes in it, 1: keeps it)", PLAIN)
def weights_on_candidate(runs_weights: Quantity) -> Quantity:
    """How far a candidate's GPU runs the precision of a model's weights.

    Source: runs_weights of GPUs.
    """
    return runs_weights


@formula("GPUs", PLAIN)
def gpus_taking_part(gpu_count: Quantity, data_parallel_size: Quantity, plain_columns: Quantity) -> Value:
    """The GPUs of an instance; 0 in a column of ranks where its GPU has none on Profiles.

    Source: Prices and hardware.
    """
    return where(both(is_number(gpu_count), either(data_parallel_size == 1, plain_columns > 0)), gpu_count, 0)


@formula("$ per hour", USD_CENTS)
def paid_usd_per_hour(price_in_use: Value, gpu_known: Quantity, discount_in_use: Quantity) -> Value:
    """The price of an hour less the discount; none without a price above 0 or a GPU that the GPUs sheet knows.

    Source: discounted_usd_per_hour.
    """
    is_price = both(is_number(price_in_use), price_in_use > 0, gpu_known)
    usable = both(is_price, is_number(discount_in_use), discount_in_use >= 0, discount_in_use < 1)
    return number_where(usable, discounted_usd_per_hour(price_in_use, discount_in_use))


# Of an instance in a purchase class that is committed, at the price on Prices and hardware.
INSTANCE_MONTH_OF_TERM = instance_month_usd.reading(price_usd_per_hour="paid_usd_per_hour").with_parts(
    [paid_usd_per_hour, paid_hours_per_month]
)


def _is_asked(provider: Value, asked_provider: Value, region: Value, asked_region: Value) -> Value:
    """True of an instance at the provider and in the region that Decision asks for."""
    is_provider = either(asked_provider == ANY, asked_provider == provider)
    return both(is_provider, either(asked_region == ANY, asked_region == region))


@formula("$ per hour, as asked on Decision", USD_CENTS, within=[paid_usd_per_hour])
def usd_as_asked(
    paid_usd_per_hour: Quantity, provider: Value, asked_provider: Value, region: Value, asked_region: Value
) -> Value:
    """The cost of an instance an hour at the provider and in the region that Decision asks for; none elsewhere.

    Source: paid_usd_per_hour.
    """
    return number_where(_is_asked(provider, asked_provider, region, asked_region), paid_usd_per_hour)


@formula("$ per month, as asked on Decision", USD)
def month_as_asked(
    instance_month_usd: Quantity, provider: Value, asked_provider: Value, region: Value, asked_region: Value
) -> Value:
    """The cost of an instance a month at the provider and in the region that Decision asks for; 0 elsewhere.

    Source: instance_month_usd.
    """
    return where(_is_asked(provider, asked_provider, region, asked_region), instance_month_usd, 0)


# Of a load under a commitment, by what an instance costs a month.
MONTHLY_USD_OF_TERM = monthly_usd_of_load.reading(price_usd_per_hour="month_as_asked").with_parts([month_as_asked])


def build_candidates(solved: Solution, wiring: Wiring, live: Sequence[Wiring]) -> Sheet:
    """The sheet; `blocks` of a wiring has by load what each candidate costs a month, and by model and by context what
    the choice reads of each beside.

    live: get rows of their own below, at the prices of the class and the provider that are chosen there.
    """
    instances, gpus = wiring.tables["instances"], wiring.tables["gpus"]
    # Up to the most GPUs of a row, as built or as typed. A spare row has every layout: a reader may give it any number.
    built = [
        (candidate.linked_gpus, solved.question.overrides.shares_experts(candidate.gpu))
        for candidate in solved.question.rows
    ]
    typed = [r.value for r in instances.columns["gpu_count"]]
    counts = [(max(instance[0], n or 0), instance[1]) for instance, n in zip(built, typed, strict=False)]
    counts += [(math.inf, True)] * (len(typed) - len(built))
    layouts, together = solved.question.layouts, _in_place_of_each_other(solved)
    offers = [
        (c, i)
        for c, (count, tries) in enumerate(counts)
        for i, layout in enumerate(layouts)
        if c not in together or c == min(together[c])
        if layout.n_gpus <= count and (layout.data_parallel_size == 1 or tries)
    ]
    # Those without ranks first: a dense model's rows end there.
    offers.sort(key=lambda offer: layouts[offer[1]].data_parallel_size > 1)
    n_plain = sum(layouts[i].data_parallel_size == 1 for _, i in offers)
    sheet = titled(
        "Candidates",
        "Candidates",
        "A column per instance and layout (TP, DP): $ per month for each load. "
        "A dash: it cannot hold the load, or has no price.",
        freeze=(HEAD_ROWS + 4, LEFT),
    )
    sheet.widths = {0: 30.0, 1: 26.0} | {c: 18.0 for c in range(LEFT, LEFT + len(offers))}
    head = Head(wiring, sheet, len(offers), "candidates")
    head.given("instance_row", "Instance row", [c + 1 for c, _ in offers], PLAIN, role="fixed")

    places = head.columns["instance_row"]
    class_place, rows = list(PURCHASES).index(solved.question.settings.purchase), instances.columns["row"]
    for k, (c, _) in enumerate(offers):
        if c in together:
            in_use = of_class_in_use(
                [rows[row] for row in (*together[c], c)], class_place, wiring.inputs["purchase_row"]
            )
            del sheet.cells[places[k].row, places[k].column]
            places[k] = sheet.link(places[k].row, places[k].column, in_use, PLAIN, "computed", lock=head.lock)

    def of_instance(fact: str, test: Callable[[Value], Value], blank: CellValue) -> Iterator[Lookup]:
        """A field of the instance, or `blank` in a spare row: the look-up of an empty cell would be 0."""
        return (derived(lambda value: where(test(value), value, blank), source) for source in head.sources_by_row(fact))

    head.columns["instance"] = list(of_instance("instance", is_text, "-"))  # no row of its own
    head.looked_up("provider", "Provider", of_instance("provider", is_text, "-"), TEXT)
    head.given("layout_position", "Layout", [i + 1 for _, i in offers], PLAIN, role="fixed")
    for size, label in (("tensor_parallel_size", "TP"), ("data_parallel_size", "DP")):
        head.given(size, label, [getattr(layouts[i], size) for _, i in offers], PLAIN, role="fixed")
    head.columns["gpu"] = list(of_instance("instance_gpu", is_text, "-"))
    names = gpus.range("gpu")
    head.looked_up("gpu_row", "GPU row", (position_in(names, gpu, ONE) for gpu in head.columns["gpu"]), PLAIN)
    head.computed(gpus_taking_part, name="gpu_count")
    head.looked_up("linked_gpus", "GPUs linked", of_instance("linked_gpus", is_number, 0), PLAIN)
    head.looked_up("network_gbps", "Network, Gb/s", of_instance("network_gbps", is_number, 0), PLAIN)
    head.columns["gpu_known"] = [derived(is_number, position_in(names, gpu)) for gpu in head.columns["gpu"]]
    head.computed(paid_usd_per_hour, name="price_usd_per_hour")
    n_sizes = count_numbers(wiring.lists["non_torch_newer"])
    head.computed(profile_position, {"n_plain_layouts": n_sizes}, name="profile")
    head.computed(instance_month_usd)

    wirings = [wiring, *live]
    _add_classes(solved, head, together)
    if live:
        _add_asked(solved, head, live[0])
    for w in wirings:
        w.tables["candidates"] = head
    ends = [
        [len(offers) if is_mixture.value else n_plain for is_mixture in wiring.tables["models"].columns["is_mixture"]]
    ]
    ends += [[len(offers)] * w.tables["models"].n_rows for w in live]  # any model may be chosen there
    compiler = Compiler(
        sheet, head, wirings, ("models", "contexts", "loads"), {"offer": Span(len(offers), head.columns)}, ends
    )
    # Blocks of their own: each load reads them so often that its formula would be the longest of the workbook.
    compiler.write("replicas_per_instance", parallelism.replicas_per_instance)
    with compiler.alone(wiring) as own:
        own.write("weights_on_candidate", weights_on_candidate)
    for w in live:  # a precision of the cache alone leaves the weights
        with compiler.alone(w) as own:
            own.write("weights_on_candidate", weights_on_candidate, rows=_with_own_weights)
        weights = w.blocks["weights_on_candidate"].rows
        weights.insert(KV_FP8, weights[AS_ASKED])
    for w in wirings:
        prices: dict[str, RowSource] = {
            "price_usd_per_hour": RowValues.of(head.columns[f"{w.prefix}price_usd_per_hour"]),
            "paid_hours_per_month": w.inputs["own_paid_hours_per_month" if w.prefix else "paid_hours_per_month"],
        }
        with compiler.alone(w) as own:
            _add_months(own, "monthly_usd", prices)
            if has_rate(w):
                own.write("ranked_requests", ranked_of_candidate, down="loads", given=_requests(own))
            else:
                own.write("ranked_requests", parallelism.requests_per_instance)
    for w in live:  # the cost of its load, the first of its rows, under each commitment, and where a machine may fail
        with compiler.alone(w) as own:
            for purchase in COMMITTED:
                asked = {**_asked_of_term(head, w, purchase), "paid_hours_per_month": ONE}
                _add_months(own, f"{class_stem(purchase)}_monthly_usd", asked, MONTHLY_USD_OF_TERM, n_rows=1)
            prices = {
                "price_usd_per_hour": RowValues.of(head.columns[f"{w.prefix}price_usd_per_hour"]),
                "paid_hours_per_month": w.inputs["own_paid_hours_per_month"],
                "survive": w.inputs["own_survive"],
            }
            _add_months(own, "survivor_monthly_usd", prices, n_rows=1)
    return sheet


def _with_own_weights(models: Table) -> Sequence[int]:
    """The rows of Decision's model whose weights differ from those of other rows."""
    return [row for row in range(models.n_rows) if row != KV_FP8]


def _requests(compiler: Compiler) -> dict[str, RowSource]:
    """The requests at once of loads: as stated, or the places that they take on each profile."""
    name = "places_of_load" if has_rate(compiler.every[0]) else "load_requests"
    return {"load_requests": compiler.sources(name, "loads")}


def _add_months(
    compiler: Compiler,
    name: str,
    prices: Mapping[str, RowSource],
    quantity: Formula = monthly_usd_of_load,
    n_rows: int | None = None,
) -> None:
    """Write the monthly cost of loads, the first rows or all, on each candidate. prices: by name what is read of
    prices, hours and what is to be survived."""
    given = {**_requests(compiler), **prices}
    compiler.write(name, quantity, down="loads", given=given, rows=lambda table: range(table.n_rows)[:n_rows])


def _add_classes(solved: Solution, head: Head, together: Mapping[int, list[int]]) -> None:
    """Write the instance of each candidate that takes part in each purchase class, and what it costs a month
    there, but on demand."""
    wiring, instances = head.wiring, head.wiring.tables["instances"]
    rows = instances.columns["row"]
    held = [row.value - 1 for row in head.columns["instance_row"]]  # as built, of any class
    for class_place, purchase in enumerate(PURCHASES):
        of_class = [rows[together[c][class_place]] if c in together else rows[c] for c in held]
        places = [row.value for row in of_class]
        head.given(f"{class_stem(purchase)}_instance_row", f"Instance row, {purchase}", places, PLAIN, role="fixed")
    for purchase in BESIDE_ON_DEMAND:
        stem, prices = class_stem(purchase), instances.range(class_columns(purchase)["price"])
        places = head.columns[f"{stem}_instance_row"]
        providers = (lookup(instances.range("provider"), place) for place in places)
        env: dict[str, RowSource] = {
            **wiring.inputs,
            "price_in_use": RowValues.of([lookup(prices, place) for place in places]),
            "discount_in_use": RowValues.of(
                [discount_table.of_class(wiring, provider, purchase) for provider in providers]
            ),
            "gpu_known": RowValues.of(head.columns["gpu_known"]),
            "is_committed": ONE if purchase in COMMITTED else ZERO,
        }
        row = head.begin_column(f"$ per month, {purchase}", INSTANCE_MONTH_OF_TERM.documentation, 0)
        months = head.sheet.fill_row(row, LEFT, head.n_rows, INSTANCE_MONTH_OF_TERM, env)
        head.columns[f"{stem}_instance_month_usd"] = list(months)


def _asked(head: Head, decision: Wiring, instance_rows: Sequence[Ref], regions: Sequence[Lookup]) -> dict[str, Read]:
    """The facts read of each candidate's instance to say whether Decision asks for it."""
    of_provider = head.wiring.tables["instances"].range("provider")
    return {
        "provider": [lookup(of_provider, place) for place in instance_rows],
        "region": regions,
        **{f"asked_{name}": decision.inputs[f"own_{name}"] for name in ("provider", "region")},
    }


def _region_columns(instances: Table) -> list[str]:
    """The columns of Prices and hardware with the region of each purchase class."""
    by_class = [f"region_{class_stem(purchase)}" for purchase in PURCHASES]
    return by_class if by_class[0] in instances.columns else ["region"] * len(PURCHASES)


def _asked_of_term(head: Head, decision: Wiring, purchase: str) -> dict[str, RowSource]:
    """The same under a commitment, with what an instance costs a month."""
    instances, stem = head.wiring.tables["instances"], class_stem(purchase)
    places = head.columns[f"{stem}_instance_row"]
    held = instances.range(_region_columns(instances)[list(PURCHASES).index(purchase)])
    asked = _asked(head, decision, places, [lookup(held, place) for place in places])
    asked["instance_month_usd"] = head.columns[f"{stem}_instance_month_usd"]
    return {name: RowValues.of(read) if isinstance(read, list) else read for name, read in asked.items()}


def _add_asked(solved: Solution, head: Head, decision: Wiring) -> None:
    """Write the price and the monthly cost of each candidate in the class chosen on Decision, at the provider and
    region chosen there, for the instance that takes part in that class."""
    wiring, instances, inputs = head.wiring, head.wiring.tables["instances"], decision.inputs
    chosen = inputs["own_purchase_row"]
    class_place = (
        list(PURCHASES).index(solved.question.settings.purchase) if chosen.value > len(PURCHASES) else chosen.value - 1
    )
    by_class = zip(*(head.columns[f"{class_stem(purchase)}_instance_row"] for purchase in PURCHASES), strict=True)
    of_class = [of_class_in_use(refs, class_place, chosen) for refs in by_class]
    head.looked_up(f"{decision.prefix}instance_row", "Instance row on Decision", of_class, PLAIN)
    places = head.columns[f"{decision.prefix}instance_row"]

    def in_class(names: Sequence[str], place: Ref) -> Lookup:
        """The cell of the class on Decision in a row, of one column for each class."""
        cells = [lookup(instances.range(name), place) for name in names]
        if len(set(names)) == 1:
            return cells[class_place]
        return replace(choose(chosen, cells, NO_VALUE), value=cells[class_place].value)

    prices, regions = [class_columns(purchase)["price"] for purchase in PURCHASES], _region_columns(instances)
    env = _asked(head, decision, places, [in_class(regions, place) for place in places])
    env["price_in_use"] = [in_class(prices, place) for place in places]
    as_built = list(PURCHASES)[class_place]
    providers = (lookup(instances.range("provider"), place) for place in places)
    env["discount_in_use"] = [discount_table.of_class(wiring, provider, as_built, chosen) for provider in providers]
    price = f"{decision.prefix}price_usd_per_hour"
    head.computed(usd_as_asked, env, name=price, label="$ per hour, on Decision")
    months: dict[str, Read] = {
        "price_usd_per_hour": head.columns[price],
        "paid_hours_per_month": inputs["own_paid_hours_per_month"],
    }
    name = f"{decision.prefix}instance_month_usd"
    head.computed(instance_month_usd, months, name=name, label="$ per month, on Decision")


def _in_place_of_each_other(solved: Solution) -> dict[int, list[int]]:
    """By row of Prices and hardware, of those that share their columns: which one stands there in each purchase class.

    Of a provider's instances with the same GPUs one alone takes part in a class.
    """
    shapes: dict[object, list[int]] = {}
    for row, candidate in enumerate(solved.question.rows):
        if candidate.passed_over:
            shapes.setdefault(candidate.shape, []).append(row)
    candidates = solved.question.rows
    return {
        row: [next((r for r in rows if purchase not in candidates[r].passed_over), rows[0]) for purchase in PURCHASES]
        for rows in shapes.values()
        for row in rows
    }
