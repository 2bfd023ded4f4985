"""The sheet Contexts: for each model and workload the tokens, the times allowed and the work of a prompt; to the right,
the batches that are tried against the targets."""

from __future__ import annotations

from collections.abc import Sequence

from sheetgen.answer.sheet_facts import STRIDE
from sheetgen.book.sheets import Ref, Sheet, derived, lookup, worked_out
from sheetgen.book.wiring import HEAD_ROWS, Read, Table, Wiring, in_words, titled
from sheetgen.formula import Quantity, Value, formula, is_number, where
from sheetgen.program.quantities import PARTS_OF_STEP, TOKENS
from sheetgen.question.inputs import ASKS
from sheetgen.question.stated_load import BY_DAY
from sheetgen.sizing import parallelism, people, rates, speed
from sheetgen.units import FACTOR, PERCENT, PLAIN, TEXT, WHOLE

# Parts of a step on a profile. Profiles computes them within the quantities that read them; Workings shows them for
# the chosen hardware.
PARTS = (*PARTS_OF_STEP, speed.shared_prefill_seconds, speed.steps_before_prompt)
HOPS = speed.token_hop_seconds, speed.stage_hop_seconds
OF_PROFILE = ("wait_factor", "base_ttft_seconds", "busy_ttft_seconds", "gather_steps")
LEFT = ("tpot_residual", "ttft_residual")  # of a model, or its prompt, on a profile


@formula("Requests of the strides")
def stride_requests(n_strides: Quantity, requests_per_stride: Quantity) -> Quantity:
    """Requests of so many strides.

    Source: definition.
    """
    return n_strides * requests_per_stride


@formula("Level in force", FACTOR)
def level_in_force(is_even: Quantity, confidence_z: Quantity) -> Value:
    """Standard deviations at which a context is answered: those of the confidence in use, or none where nothing
    served it at that when the workbook was built.

    Source: INTERFACE (certainty: only where the confidence is impossible the answer is that of an even chance).
    """
    return where(is_even == 1, 0, confidence_z)


def build_contexts(
    wiring: Wiring,
    workloads: Sequence[str],
    name: str = "Contexts",
    at_even_chance: Sequence[bool] = (),
    pairs: Sequence[tuple[int, int]] = (),
    levels: Sequence[Ref] = (),
) -> Sheet:
    """Contexts: a row per model and workload, and to the right the batches that are tried.

    at_even_chance: by row, whether nothing serves it at the confidence asked for. pairs, levels: the model and the
    workload of each row, from 0, and the level at which it is answered, where that is not every pair once.
    """
    models, lists = wiring.tables["models"], wiring.lists
    n_models = len(models.columns["model"])
    sheet = titled(
        name,
        name,
        "A row per model and workload: the tokens charged, how long a token may take, and what the model has to do.",
        freeze=(HEAD_ROWS + 1, 1),
    )
    pairs = pairs or [(m, w) for m in range(n_models) for w in range(len(workloads))]
    table = Table(wiring, sheet, len(pairs), "contexts")
    table.given("workload", "Workload", [workloads[w] for _, w in pairs], TEXT, role="label", width=20)
    table.given("model_row", "Model row", [m + 1 for m, _ in pairs], PLAIN, role="fixed", width=14)
    table.given("workload_row", "Workload row", [w + 1 for _, w in pairs], PLAIN, role="fixed", width=14)
    table.picked("model", "Model", models.range("model"), "model_row", TEXT, width=24)
    table.picked("context_tokens", "Context", lists["contexts"], "workload_row", width=14)
    table.picked("max_context_tokens", "Longest context", models.range("max_context_tokens"), "model_row", width=14)
    table.picked("input_tokens", "Prompt", lists["prompts"], "workload_row", width=14)
    table.picked("output_tokens", "Answer", lists["answers"], "workload_row", width=14)
    for figure in ("tpot", "ttft"):
        target = f"{figure}_target_ms"
        given = (lookup(lists[f"{figure}_targets"], row) for row in table.columns["workload_row"])
        targets = (derived(lambda ms: where(is_number(ms), ms, 0), cell) for cell in given)
        table.looked_up(target, f"{figure.upper()} target, ms", targets, WHOLE)
        table.computed(
            parallelism.token_limit_seconds if figure == "tpot" else parallelism.limit_seconds,
            {"target_ms": table.columns[target]},
            name=f"{figure}_limit_seconds",
            label=f"{figure.upper()} in force, s",
        )
    if wiring.prefix:  # Decision asks for no history
        table.columns["cached_fraction"] = [wiring.inputs["prefix_cache_hit_fraction"]] * len(pairs)
    else:
        table.picked("cached_fraction", speed.cached_fraction.label, lists["cached"], "workload_row", PERCENT)
        table.computed(people.target_turn_seconds)
    if at_even_chance:
        asked = [int(is_even) for is_even in at_even_chance]
        table.given("is_even", "At an even chance, as built", asked, PLAIN, role="fixed", width=14)
        table.computed(level_in_force, name="level_z")
    if levels:
        table.looked_up("level_z", level_in_force.label, levels, FACTOR)
    table.bring("window_tokens", "attention_elements", "windowed_attention_elements", width=18)
    table.computed(speed.prompt_attention_flops, width=20)
    for quantity in (*TOKENS, parallelism.within_limit):
        table.computed(quantity, {"max_model_len": table.columns["context_tokens"]})
    _tried(table)
    return sheet


def put_asks(table: Table) -> None:
    """The questions of a person a day, by the workload of each row."""
    table.picked(ASKS, in_words(ASKS), table.wiring.lists[ASKS], "workload_row", width=14)


def put_rate(table: Table) -> None:
    """Requests per second at peak, by the workload of each row: people ask more or less often, and tokens of a day are
    fewer or more requests."""
    put_asks(table)
    table.computed(people.day_requests.reading(**{name: f"stated_{name}" for name in BY_DAY}))
    table.computed(rates.peak_requests_per_second.reading(requests_per_second="stated_requests_per_second"))


def _tried(contexts: Table) -> None:
    """To the right, the batches that are tried: 1 to 64 requests, and 1 to 64 strides, each with the share of a model's
    experts that it leaves unread. No precision changes that share; a model without experts has it for one rank."""
    wiring, models = contexts.wiring, contexts.wiring.tables["models"].columns
    missed = models["expert_miss_fraction"][: 1 if wiring.prefix else None]
    tried = Table(wiring, contexts.sheet, STRIDE, "tried", left=contexts.next_column + 1)
    tried.given(
        "steps",
        "Tried",
        list(range(1, STRIDE + 1)),
        PLAIN,
        role="fixed",
        note="Batches that are tried against the targets: so many requests, and so many strides.",
    )
    steps, size = tried.columns["steps"], wiring.inputs["requests_per_stride"]
    batches: dict[str, tuple[Read, str]] = {
        "untouched_by_request": (steps, "requests"),
        "untouched_by_stride": (
            [worked_out(stride_requests, {"n_strides": step, "requests_per_stride": size}) for step in steps],
            "strides",
        ),
    }
    ranks = {ref.value: ref for ref in reversed(wiring.lists["dp"].refs)}  # the first cell of each size
    wiring.tried = {"steps": [[tried.range("steps")]] * len(missed), **{name: [] for name in batches}}
    for m, share in enumerate(missed):
        sizes = sorted(ranks)[: None if wiring.prefix or models["is_mixture"][m].value else 1]
        for name, (batch, words) in batches.items():
            columns = [f"by_{words}_{m}_{d}" for d in range(len(sizes))]
            for column, value in zip(columns, sizes, strict=True):
                tried.computed(
                    speed.untouched_fraction,
                    {
                        "expert_miss_fraction": share._replace(lock="both"),
                        "batch_requests": batch,
                        "data_parallel_size": ranks[value],
                    },
                    name=column,
                    label=f"Experts left alone, model {m + 1}, {words}, DP {value}",
                    width=14,
                )
            wiring.tried[name].append([tried.range(column) for column in columns])
    n_alike = len(models["expert_miss_fraction"]) // len(missed)
    wiring.tried = {name: ranges * n_alike for name, ranges in wiring.tried.items()}
