"""The program of a sheet: every quantity on its axes, for all models, loads and offers together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sheetgen.formula import Formula, Quantity, formula
from sheetgen.program import quantities
from sheetgen.program.declared import Again, Axes, Axis, Named, Program, Repeat, Table, same_as
from sheetgen.sizing import certainty, choice, cost, draft, kv_cache, memory, parallelism, people, rates, speed, weights
from sheetgen.units import ENDS, PLAIN

AXES = (
    Axis("weight_dtype"),
    Axis("kv_dtype"),
    Axis("kind"),  # kinds of models, as the bands of speed distinguish them
    Axis("model", on=("weight_dtype", "kv_dtype", "kind")),
    Axis("gpu"),
    Axis("tp"),
    Axis("dp"),
    Axis("layout", on=("tp", "dp")),
    Axis("profile", on=("gpu", "layout")),  # the hardware of one rank of a replica
    Axis("workload"),
    Axis("pace", on=("model", "workload")),  # speed does not depend on the requests at once
    Axis("load", on=("pace",)),
    Axis("instance"),
    Axis("offer", on=("instance", "profile")),  # a candidate instance at a layout
    Axis("measurement"),  # deployments that were measured
    Axis("step"),  # 1 to 64, of the batches that are tried
    Axis("chosen", on=("load", "offer")),  # loads on offers that were chosen for them
)
OF_CHANCE = {"memory": "memory", "tpot": "time per token", "ttft": "first token"}  # what has a chance of its own
RATE = "requests_per_second"  # a fact of loads, where some are rates
MEASURED = "measured_models"  # a fact of measurements, where there are some
OF_MEASUREMENTS = {  # what runs and start-up logs of a deployment set, and by measurement
    **{f"measured_{name}_factor": f"measured_{name}_factors" for name in ("tpot", "ttft", "request")},
    **{f"measured_pool_{name}_bytes": f"measured_pools_{name}_bytes" for name in ("more", "less", "error")},
}
ON_REPLICA = {  # the fullest replica has no more requests than run, and perhaps ranks without any
    "concurrent_requests": "running_requests",
    "busy_ranks": "running_ranks",
    "request_step_seconds": "running_step_seconds",
}


@formula("Requests of so many strides", PLAIN)
def stride_requests(steps: Quantity, requests_per_stride: Quantity) -> Quantity:
    """Requests of a batch that is so many strides long.

    Source: strides_within_targets.
    """
    return steps * requests_per_stride


def counted(formula: Formula) -> Formula:
    """A formula of the cache's pool that reads what may be counted on at the chance in force."""
    pools = {
        "kv_budget_bytes_per_gpu": "counted_kv_budget_bytes",
        "layer_budget_bytes": "counted_layer_budget_bytes",
    }
    own = {name: read for name, read in pools.items() if name in formula.inputs and read != formula.name}
    return formula.reading(**own)


def _levels() -> Iterator[Named]:
    """For both times the ends of the 80 % band, the factor of a time at the chance in force, and the predicted time
    that meets the target then."""
    for figure in ("tpot", "ttft"):
        yield from quantities.speed_band(figure)
        bands = {f"band_{end}": f"{figure}_band_{end}" for end in ENDS}
        yield f"{figure}_level_factor", certainty.level_factor.reading(**bands)
        limits = {"limit_seconds": f"{figure}_limit_seconds", "level_factor": f"{figure}_level_factor"}
        yield f"{figure}_allowed_seconds", certainty.allowed_seconds.reading(**limits)


def _chances() -> Iterator[Named]:
    """The chance of the whole answer and of each of its parts."""
    for name, words in OF_CHANCE.items():
        yield f"{name}_chance", replace(certainty.chance_at_z.reading(z=f"{name}_z"), label=f"Chance, {words}")
    yield "chance", certainty.chance_at_z.reading(z="least_z")


def _times_z() -> Iterator[Named]:
    """The number of standard deviations by which each of both times is within its target."""
    for figure in ("tpot", "ttft"):
        reads = {
            "limit_seconds": f"{figure}_limit_seconds",
            "predicted_seconds": f"fullest_{figure}_seconds",
            **{f"band_{end}": f"{figure}_band_{end}" for end in ENDS},
        }
        label = f"{certainty.time_z.label}, {OF_CHANCE[figure]}"
        yield f"{figure}_z", replace(certainty.time_z.reading(**reads), label=label)


SHEET = Program(
    AXES,
    (
        Table("inputs", (), (speed.network_bytes_per_second, certainty.confidence_z)),
        Table("models", ("model",), (*quantities.MODEL, *quantities.WORK)),
        Table("gpus", ("gpu",), (memory.utilization_on_gpu,)),
        Table(
            "measured",
            ("model", "profile"),
            tuple(
                (name, replace(speed.of_measurements.reading(measured=measured), label=name.replace("_", " ")))
                for name, measured in OF_MEASUREMENTS.items()
            ),
            rows="measurement",
            where=MEASURED,
        ),
        Table("shards", ("model", "profile"), quantities.SHARD),
        Table(
            "profiles",
            ("profile",),
            (
                *(
                    (
                        f"kv_pool_error_bytes_{end}",
                        parallelism.pool_error_bytes.reading(
                            pool_error_bytes_measured=f"pool_error_bytes_measured_{end}",
                            pool_error_bytes_elsewhere=f"pool_error_bytes_elsewhere_{end}",
                        ),
                    )
                    for end in ENDS
                ),
                memory.non_torch_bytes_per_tp,
                same_as("non_torch_bytes_per_gpu", "non_torch_bytes_per_tp"),
                memory.staged_non_torch_bytes_per_gpu,
                memory.memory_budget_bytes.reading(gpu_memory_utilization="utilization_on_gpu"),
            ),
        ),
        # What a model leaves on a profile: pools are those without pipeline stages.
        Table(
            "pools",
            ("model", "profile"),
            (
                *quantities.PEAK,
                same_as("activation_bytes_per_gpu", "profile_peak_bytes"),
                ("weights_bytes_per_gpu", weights.rank_weights_bytes),
                ("loaded_weights_bytes_per_gpu", weights.rank_weights_bytes),
                memory.cuda_graph_bytes_per_gpu,
                memory.overhead_bytes_per_gpu,
                memory.stage_overhead_bytes,
                memory.kv_budget_bytes_per_gpu,
                parallelism.layer_budget_bytes,
                parallelism.runs,
            ),
        ),
        # What a load's context takes of one rank, and how many stages a replica needs for it.
        Table(
            "paces",
            ("pace",),
            (
                ("tpot_limit_seconds", parallelism.token_limit_seconds.reading(target_ms="tpot_target_ms")),
                ("ttft_limit_seconds", parallelism.limit_seconds.reading(target_ms="ttft_target_ms")),
                *quantities.TOKENS,
                parallelism.within_limit,
                same_as("level_z", "confidence_z"),
                people.target_turn_seconds,
                speed.cached_fraction,
            ),
        ),
        Table(
            "stages",
            ("pace", "profile"),
            (
                kv_cache.UNSTAGED_WINDOWS,
                kv_cache.UNSTAGED_COMPRESSORS,
                kv_cache.charge_bytes,
                kv_cache.steady_bytes,
                certainty.pool_level_bytes,
                certainty.counted_kv_budget_bytes,
                certainty.counted_layer_budget_bytes,
                counted(parallelism.layers_that_fit),
                counted(parallelism.pipeline_stages),
                same_as("pipeline_parallel_size", "pipeline_stages"),
            ),
        ),
        Table("steps", ("pace", "profile"), quantities.STEP),
        # The batches that are tried, and which share of the experts each leaves alone.
        Table(
            "batches",
            ("step", "model", "dp"),
            (
                stride_requests,
                ("untouched_by_request", speed.untouched_fraction.reading(batch_requests="steps")),
                ("untouched_by_stride", speed.untouched_fraction.reading(batch_requests="stride_requests")),
            ),
        ),
        # How much longer than predicted times may be with the chance in force, and what that leaves of the targets.
        Table("levels", ("pace", "profile"), (*quantities.SPEED_SCOPES, *_levels())),
        Table(
            "limits", ("pace", "profile"), (parallelism.strides_within_targets, parallelism.batch_limit), rows="step"
        ),
        Table("loads", ("load",), (parallelism.load_requests,)),
        # Requests at once, a rate, people: each load in all three.
        Table(
            "at_once",
            ("load",),
            (people.at_once_per_second, same_as("load_requests_per_second", "at_once_per_second")),
        ),
        Table("at_rate", ("load",), (("load_requests_per_second", people.rate_or_at_once),), where=RATE),
        Table("people", ("load",), (people.requests_per_hour, people.users)),
        # What one replica on a profile takes and holds of a load, and how many replicas the load needs.
        Table(
            "sequences",
            ("load", "profile"),
            (counted(parallelism.sequences), parallelism.paced_requests),
        ),
        # Of a rate: how long a request takes on a full replica, and the places that it takes with allowance for chance.
        Table(
            "rates",
            ("load", "profile"),
            (
                rates.full_batch_requests,
                rates.full_turn_seconds,
                rates.offered_requests,
                rates.places,
                rates.replica_prefill_seconds,
                rates.prefill_replicas,
                rates.rate_places,
                ("load_requests", rates.load_with_rates),
            ),
            where=RATE,
        ),
        Table(
            "offers",
            ("offer",),
            (
                parallelism.linked_gpus,
                ("price_usd_per_hour", cost.discounted_usd_per_hour),
                cost.paid_hours_per_month,
                cost.instance_month_usd,
                cost.gpu_month_usd,
            ),
        ),
        Table("held", ("load",), (parallelism.held_inside,), rows="offer"),
        # Per load and offer: replicas, whole instances, $ an hour and a month; NaN where it cannot hold the load.
        Table(
            "costs",
            ("load", "offer"),
            (
                parallelism.replicas_per_instance,
                parallelism.requests_per_instance,
                parallelism.n_replicas,
                cost.n_instances,
                cost.hourly_usd,
                cost.monthly_usd,
                choice.suitability,
                same_as("ranked_requests", "requests_per_instance"),
            ),
        ),
        # Of a rate, what a candidate would serve: the choice ranks by it.
        Table("ranks", ("load", "offer"), (rates.served_requests_per_second, rates.ranked_requests), where=RATE),
    ),
)


OF_LEVEL = ("stages", "levels", "limits", "sequences", "rates")  # what depends on the level


def tried() -> Iterator[Named]:
    """The quantities of a rate on its hardware that depend on the level, at the level that is tried."""
    named = {"level_z": "tried_z"}
    kept = ("layers_that_fit", "pipeline_stages", "pipeline_parallel_size", "load_requests")
    for table in OF_LEVEL:
        for name, quantity in SHEET[table].named().items():
            reads = {read: named[read] for read in quantity.inputs if read in named}
            if reads and name not in kept:
                named[name] = f"tried_{name}"
                yield named[name], quantity.reading(**reads)


def of_replica(formulas: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """Formulas of one deployment that read the fullest replica of a load, whose requests all run."""
    return tuple(
        formula.reading(**{name: read for name, read in ON_REPLICA.items() if name in formula.inputs})
        for formula in formulas
    )


def _running_ranks() -> Iterator[Named]:
    """For the fullest replica of a load, the ranks that have a request, and what each request adds to their step."""
    ranks = speed.busy_ranks.reading(running_requests="requests_per_replica")
    yield "running_ranks", replace(ranks, label="Data-parallel ranks with a request")
    step = speed.request_step_seconds.reading(busy_ranks="running_ranks")
    yield "running_step_seconds", replace(step, label=f"{step.label}, on ranks with a request")


# What users get of loads on the offers that are chosen for them.
CHOSEN = Program(
    AXES,
    (
        Table(
            "replicas",
            ("chosen",),
            (
                parallelism.requests_per_replica,
                same_as("running_requests", "requests_per_replica"),
                speed.batch_requests,
                same_as("served_load_requests", "load_requests"),
            ),
        ),
        Table("replicas_at_rate", ("chosen",), (rates.loaded_replicas, rates.replica_requests_per_second), where=RATE),
        # From a full replica downward, to where as many run at once as arrive during one request.
        Repeat(
            "in_flight",
            ("chosen",),
            rates.SECANTS,
            start=(
                same_as("earlier_in_flight", "paced_requests"),
                ("earlier_batch_requests", rates.mean_batch_requests.reading(in_flight="earlier_in_flight")),
                ("next_earlier_in_flight", rates.next_in_flight.reading(mean_batch_requests="earlier_batch_requests")),
                same_as("in_flight", "next_earlier_in_flight"),
            ),
            step=(
                ("later_batch_requests", rates.mean_batch_requests),
                ("next_in_flight", rates.next_in_flight.reading(mean_batch_requests="later_batch_requests")),
                rates.secant_in_flight.reading(
                    in_flight="earlier_in_flight",
                    next_in_flight="next_earlier_in_flight",
                    later_in_flight="in_flight",
                    next_later_in_flight="next_in_flight",
                ),
            ),
            carry={
                "earlier_in_flight": "in_flight",
                "next_earlier_in_flight": "next_in_flight",
                "in_flight": "secant_in_flight",
            },
            where=RATE,
        ),
        Table(
            "running_at_rate",
            ("chosen",),
            (
                ("running_requests", rates.running_with_rates),
                rates.mean_batch_requests,
                ("batch_requests", rates.batch_with_rates),
            ),
            where=RATE,
        ),
        Table(
            "pace",
            ("chosen",),
            (*_running_ranks(), *of_replica(quantities.PACE[1:])),
        ),
        Table(
            "load_at_rate",
            ("chosen",),
            (rates.in_flight_at_peak, ("served_load_requests", rates.served_load_with_rates)),
            where=RATE,
        ),
        # All replicas together serve the load: the fullest one's times hold for every request.
        Table(
            "served",
            ("chosen",),
            (
                (
                    "load_tokens_per_second",
                    speed.output_tokens_per_second.reading(concurrent_requests="served_load_requests"),
                ),
                parallelism.next_tpot_seconds,
                parallelism.sized_by,
                *quantities.speed_band("output_tokens_per_second"),  # the bands of times are in the levels
                *quantities.speed_ends(output_tokens_per_second="load_tokens_per_second"),
            ),
        ),
        Table("sized_at_rate", ("chosen",), (("sized_by", rates.sized_with_rates),), where=RATE),
        # The largest level at which all that is rented still serves the load; for a rate it is searched.
        Repeat(
            "level_at_rate",
            ("chosen",),
            certainty.BISECTIONS,
            start=(
                same_as("low_z", "level_z"),
                ("high_z", certainty.highest_z),
                same_as("paced_at_level", "paced_requests"),
            ),
            step=(
                certainty.tried_z,
                *tried(),
                certainty.is_served.reading(paced_requests="tried_paced_requests", rate_places="tried_rate_places"),
                certainty.served_z,
                certainty.missed_z,
                certainty.served_places,
            ),
            carry={"low_z": "served_z", "high_z": "missed_z", "paced_at_level": "served_places"},
            where=RATE,
            rows="step",
            answer="is_served",
        ),
        Table("rank", ("chosen",), (certainty.rank_requests, same_as("held_requests", "rank_requests"))),
        Table(
            "rank_at_rate",
            ("chosen",),
            (
                ("rank_requests", certainty.rank_requests_with_rates),
                ("held_requests", certainty.held_requests_with_rates),
            ),
            where=RATE,
        ),
        Table(
            "levels_held",
            ("chosen",),
            (
                certainty.fullest_batch_requests,
                certainty.fullest_tpot_seconds,
                certainty.fullest_ttft_seconds,
                *_times_z(),
                certainty.pool_room_bytes,
                certainty.memory_z,
                certainty.least_z,
            ),
        ),
        Table("level_held_at_rate", ("chosen",), (("least_z", certainty.least_z_with_rates),), where=RATE),
        Table("chances", ("chosen",), tuple(_chances())),
    ),
)
# What an answer says of loads on the offers that are chosen for them.
ANSWERED = Table(
    "answered",
    ("chosen",),
    (
        parallelism.headroom_fraction,
        parallelism.served_at_target,
        parallelism.memory_holds,
    ),
)
# The times of an answer with every place of its replicas taken, and when the last of all its people has the first token
# where they ask at the same moment.
WAITS = Table(
    "waits",
    ("chosen",),
    (
        rates.full_batch_requests,
        ("full_ttft_seconds", certainty.fullest_ttft_seconds.reading(fullest_batch_requests="full_batch_requests")),
        ("full_tpot_seconds", certainty.fullest_tpot_seconds.reading(fullest_batch_requests="full_batch_requests")),
        (
            "queue_of_all_seconds",
            speed.queue_seconds.reading(
                concurrent_requests="stated_users",
                running_requests="served_at_target",
                service_ttft_seconds="full_ttft_seconds",
                tpot_seconds="full_tpot_seconds",
            ),
        ),
        (
            "last_ttft_seconds",
            speed.ttft_seconds.reading(service_ttft_seconds="full_ttft_seconds", queue_seconds="queue_of_all_seconds"),
        ),
    ),
)
# The rate whose prompts the chosen hardware reads, and the people of it.
READ = Table("read", ("chosen",), (rates.replica_prefill_seconds, people.read_per_second))
PEOPLE_READ = Table(
    "people_read",
    ("load",),
    (("load_requests_per_second", people.rented_per_second), people.requests_per_hour, people.users),
)
# Which offer each load takes.
CHOICE = Table("choice", ("load",), (*choice.STEPS, choice.cheapest_position), rows="offer")
# What stays in memory of a load's cache on an undivided GPU.
CELL_KV = Table(
    "cell_kv",
    ("chosen",),
    (
        *quantities.STEADY,
        same_as("unsharded_kv_blocks_per_sequence_steady", "kv_blocks_per_sequence_steady"),
        same_as("unsharded_kv_block_bytes", "kv_block_bytes"),
        kv_cache.kv_bytes_per_sequence_steady,
        memory.kv_bytes,
    ),
)
# Prompts alone on a replica, and answers whose prompts are another pool's.
FIRST_TOKEN = Table("first_token", ("chosen",), (speed.untouched_fraction, speed.service_ttft_seconds))
FURTHER_TOKENS = Table(
    "further_tokens",
    ("chosen",),
    (
        speed.busy_ranks,
        speed.request_step_seconds,
        speed.batch_requests,
        speed.untouched_fraction,
        speed.tpot_seconds,
    ),
)
NO_BATCH_LIMIT = 1e9  # requests: more than any memory holds
ON_CHOSEN: dict[str, Axes] = dict.fromkeys(("pace", "profile", "load", "offer"), ("chosen",))
AFTER_SPEED = ("sequences", "rates", "costs", "ranks", "choice")
# What depends on the level of certainty, up to the choice.
AT_LEVEL = ("stages", "steps", "levels", "limits", "sequences", "rates", "held", "costs", "ranks", "choice")
LOWEST_PRICE: dict[str, str | float] = {"near_tie_fraction": 0.0}  # only offers at the lowest price are chosen among
# The tables of a sheet again: under other limits, for other prices or requests, on what is chosen at other speeds.
AGAIN = Program(
    AXES,
    (
        Again("runner_up", {"among": "is_elsewhere"}, ("choice",)),
        Again("without_targets", {"batch_limit": NO_BATCH_LIMIT}, AFTER_SPEED),
        Again("without_ttft", {"ttft_limit_seconds": "no_limit_seconds"}, ("levels", "limits", *AFTER_SPEED)),
        Again("without_loss", {"survive": 0.0}, ("costs", "ranks", "choice")),
        Again("with_loss", {"survive": float(parallelism.MACHINE)}, ("costs", "ranks", "choice")),
        Again("at_other_prices", {}, ("offers", "held", "costs", "ranks", "choice")),
        Again("of_other_requests", {}, ("loads", "rates", "costs", "ranks", "choice"), along={"load": ("chosen",)}),
        Again("at_lowest_price", LOWEST_PRICE, ("choice",)),
        Again("at_even_chance", {"level_z": 0.0, **LOWEST_PRICE}, AT_LEVEL),
        Again("at_sure_chance", {"level_z": certainty.SURE_Z, **LOWEST_PRICE}, AT_LEVEL),
        Again("at_levels", {}, AT_LEVEL[:-1]),
        Again("prompts_alone", {"batch_requests": 1.0, "busy_ranks": 1.0}, ("first_token",)),
        Again(
            "answers_alone",
            {"prefill_seconds": 0.0, "shared_prefill_seconds": 0.0, "ttft_limit_seconds": "no_limit_seconds"},
            ("levels", "limits", "sequences"),
            along=ON_CHOSEN,
        ),
    ),
    (*(table for table in SHEET.tables if isinstance(table, Table)), CHOICE, FIRST_TOKEN),
)


def sheet_program(has_draft: bool) -> Program:
    """The program of a sheet; with a draft model that serves beside the model, the program with the draft's share."""
    return WITH_DRAFT if has_draft else SHEET


# Quantities that replace those of the same name where a draft model serves beside the model.
BESIDE_DRAFT: dict[str, tuple[Formula, ...]] = {
    "models": tuple(formula.with_parts(draft.OF_A_MODEL) for formula in quantities.MODEL),
    "shards": draft.beside(quantities.SHARD),
    "pools": draft.beside((weights.loaded_weights_bytes_per_gpu, parallelism.layer_budget_bytes)),
}
WITH_DRAFT = SHEET.replacing(BESIDE_DRAFT)
