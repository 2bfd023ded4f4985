"""Every lever of every load of a sheet: planned load by load, solved together.

Levers that ask for less (fewer bits, a shared prefix, fewer tokens, fewer users, and the next step down of both; the
next steps of the targets of speed), levers of hardware (bigger GPUs, weights in host memory), and a model of like size
that keeps less of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import numpy

from sheetgen.answer.levers.lever import Change, Lever, Loads, Offload, Rented, is_less
from sheetgen.answer.levers.looser_targets import (
    LOOSER,
    NAMES,
    TPOT,
    WORDS,
    Narrowing,
    Step,
    best_step,
    looser,
    steps_down,
    tighter,
)
from sheetgen.answer.pay_less import MORE
from sheetgen.answer.sheet_facts import MILLISECONDS_PER_SECOND
from sheetgen.answer.solution import Fit, Solution, short_tokens
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.stacks import TOKENS_A_SECOND, LeverFile, LeverWords, StackFile
from sheetgen.formula import round_down, same_money
from sheetgen.program.grid import Columns, evaluate
from sheetgen.program.quantities import GROUPS, KV_SHARD, all_of
from sheetgen.question.deployment import model_columns, why_no_draft
from sheetgen.question.sheet_question import Question, SheetModel, sheet_model, with_stated
from sheetgen.sizing import kv_cache
from sheetgen.units import DTYPES, GB, GIB, ONE_DECIMAL, PERCENT, WHOLE, count, rate_text

FP8, FP4 = "fp8", ("nvfp4", "mxfp4")  # the first FP4 format wins where both cost the same
WEIGHTS, KV = "weight_dtype", "kv_cache_dtype"  # the precisions of a model on a sheet
LOWER = (  # levers that lower a precision; both FP4 formats are tried, and the better is kept
    ("fp8-kv-cache", {KV: FP8}),
    ("fp8-weights", {WEIGHTS: FP8}),
    ("fp8-both", {KV: FP8, WEIGHTS: FP8}),
    *(("fp4-weights", {WEIGHTS: dtype}) for dtype in FP4),
)
WEIGHT_ONLY = "weight_only"  # as a GPU's file says that it keeps weights in fewer bits than it computes in
LEAST_CONTEXT = 2  # tokens: one of the prompt, one of the answer
CONTEXT_STEPS = 128  # a context is sought in steps of this part of it, in whole blocks: within 0.8 %
STEPS_OF_RATE = 100  # a lower rate is sought in hundredths of the load's
KNOWN_WELL = ("sourced", "partly_derived")  # entries whose shape was read
NO_CHAT = "embedding"  # parts of the ids of models that give no answers
# What a decoding request keeps, whole (TP 1): its growing layers, its windows, its states.
KEPT = (*GROUPS, *KV_SHARD, kv_cache.steady_bytes)


def levers_of_sheet(solved: Solution, rows: Iterable[int] | None = None) -> tuple[tuple[Lever, ...], ...]:
    """By load, every lever in the catalog's order: with its answer, or with the reason why it does not apply. Only the
    best of each lever; for a target of speed also the further steps after the best one.

    Nothing for a load over its model's limit; where `rows` are given, for these alone.
    """
    question = solved.question
    requested = range(len(question.loads)) if rows is None else rows
    open_rows = [row for row in requested if not question.loads[row].over_limit]
    if not open_rows:
        return ((),) * len(question.loads)
    plans = Plans(solved)
    for row in open_rows:
        plans.lower_precisions(row)
        plans.smaller_loads(row)
        plans.more_of_memory(row)
        plans.bigger_gpus(row)
        plans.host_memory(row)
    plans.next_steps(open_rows)
    plans.looser_targets(open_rows)
    plans.leaner_models(open_rows)
    by_lever: dict[int, dict[str, list[Lever]]] = {
        row: {words.id: [] for words in plans.file.levers} for row in open_rows
    }
    for row, lever in plans.worked_out():
        by_lever[row][lever.id].append(lever)
    told = {row: tuple(lever for same in by_id.values() for lever in _best_of(same)) for row, by_id in by_lever.items()}
    return tuple(told.get(row, ()) for row in range(len(question.loads)))


def _best_of(same: Sequence[Lever]) -> Iterator[Lever]:
    """Among the planned levers of one id the cheapest, and the further steps."""
    yield min((x for x in same if not x.further), key=lambda lever: lever.after.monthly_usd if lever.after else inf)
    yield from (lever for lever in same if lever.further)


class Plans:
    """The levers of a sheet. Raises CatalogError where the catalogs lack a part."""

    def __init__(self, solved: Solution) -> None:
        self.solved, self.question, self.loads = solved, solved.question, Loads(solved)
        reference, engine = self.question.reference, self.question.engine.engine
        self.file, self.assumption = reference.catalog.file(LeverFile), reference.assumption
        self.words: dict[str, LeverWords] = {words.id: words for words in self.file.levers}
        self.launcher = next((x for x in reference.catalog.file(StackFile).launchers if x.engine == engine), None)
        self.not_run = next((exception for exception in self.file.not_run if exception.engine == engine), None)
        self.planned: list[tuple[int, Change | None, Lever]] = []

    def plan(
        self,
        lever: str,
        row: int,
        change: Change | None = None,
        *,
        words: str = "",
        changed: str = "",
        why_not: str = "",
        note: str = "",
        offload: Offload | None = None,
        further: bool = False,
    ) -> None:
        """A lever of a load; without a change it has no price. `words` stand in place of the usual ones."""
        entry = self.words[lever]
        cost = entry.cost.format_map(self._tokens_a_second(row, change)) if change or offload else ""
        note = ". ".join(filter(None, (note, cost[:1].upper() + cost[1:], entry.more)))
        before = Rented.of(self.solved, row)
        planned = Lever(
            lever, entry.family, words or entry.words, changed, cost, note, before, None, why_not, offload, further
        )
        self.planned.append((row, change, planned))

    def _tokens_a_second(self, row: int, change: Change | None) -> dict[str, str]:
        """Tokens a second that one user sees in each answer, at the targets of the load and of the change."""
        now, then = (
            MILLISECONDS_PER_SECOND / (getattr(workload, TPOT) or inf)
            for workload in (self.solved.workload_of(row), (change and change.workload) or self.solved.workload_of(row))
        )
        display = WHOLE if WHOLE.text(now) != WHOLE.text(then) else ONE_DECIMAL
        return dict(zip(TOKENS_A_SECOND, map(display.text, (now, then)), strict=True))

    def worked_out(self) -> Iterator[tuple[int, Lever]]:
        """Every planned lever with its load and its answer, solved together."""
        answers = iter(self.loads.ask([change for _, change, _ in self.planned if change is not None]))
        for row, change, lever in self.planned:
            if change is None:
                yield row, lever
                continue
            after = next(answers)
            if after is None:
                yield row, replace(lever, why_not="nothing that may be rented holds it then")
                continue
            words, changed, note = lever.words, lever.changed, lever.note
            if lever.id == "bigger-gpus" and lever.before is not None:
                old, new = lever.before.candidate.gpu, after.candidate.gpu
                words = f"bigger GPUs: {new.short_name}"
                changed = " to ".join(
                    f"{gpu.short_name} ({ONE_DECIMAL.text(gpu.memory.engine_bytes / GIB)} GiB)" for gpu in (old, new)
                )
            if change.model is not None:
                note = f"{self._weights_only(row, change.model, after)}{note}"
            yield row, replace(lever, words=words, changed=changed, note=note, after=after)

    def _weights_only(self, row: int, model: SheetModel, after: Rented) -> str:
        """A remark on a GPU that stores other weights than before in fewer bits than it computes in."""
        before, dtype, gpu = self.solved.model_of(row), model.weight_dtype, after.candidate.gpu
        is_same = (model.model.id, dtype) == (before.model.id, before.weight_dtype)
        if is_same or gpu.weights_run.get(dtype) != WEIGHT_ONLY:
            return ""
        return f"{gpu.short_name} keeps {dtype} and computes in 16 bits. "

    # Levers that ask for less.

    def lower_precisions(self, row: int) -> None:
        model = self.solved.model_of(row)
        for lever, dtypes in LOWER:
            words = f"{dtypes[WEIGHTS].upper()} weights" if lever == "fp4-weights" else ""
            reasons = (self._why_not(model, part, dtype) for part, dtype in dtypes.items())
            if why_not := next(filter(None, reasons), ""):
                self.plan(lever, row, words=words, why_not=why_not)
                continue
            other = replace(model, **dtypes)  # type: ignore[arg-type]
            named = ((WEIGHTS, "weights"), (KV, "KV cache"))
            changed = [f"{name} {getattr(model, part)} to {dtypes[part]}" for part, name in named if part in dtypes]
            self.plan(lever, row, Change(row, model=other), words=words, changed=", ".join(changed))

    def _why_not(self, model: SheetModel, part: str, dtype: str) -> str:
        """The reason why the weights or the KV cache of a model cannot be lowered to a precision; "" where they can."""
        of_weights, used, engine = part == WEIGHTS, getattr(model, part), self.question.engine.name
        before, after = DTYPES[used], DTYPES[dtype]
        if before.linear_bytes <= after.linear_bytes if of_weights else before.kv_bytes <= after.kv_bytes:
            return f"{'the weights are' if of_weights else 'the KV cache is'} {used} already"
        wanted = f"{dtype} weights" if of_weights else f"a KV cache in {dtype}"
        # An engine about which the catalogs say nothing is assumed to run it.
        if self.launcher is not None:
            if dtype not in (self.launcher.weight_dtypes if of_weights else self.launcher.kv_cache_dtypes):
                return f"{engine} does not run {wanted}"
        elif self.not_run and dtype in (self.not_run.weight_dtypes if of_weights else self.not_run.kv_cache_dtypes):
            return f"{engine} does not run {wanted}: {self.not_run.instead}"
        takes = self.question.engine.runs_kv
        runs = any(dtype in gpu.weights_run if of_weights else takes(gpu, dtype) for gpu in self.question.gpus)
        return "" if runs else f"no candidate's GPU {'runs' if of_weights else 'keeps'} {wanted}"

    def smaller_loads(self, row: int) -> None:
        """The levers of a load that reduce what it asks for by a stated share."""
        self._prefix_cache(row)
        context = self.solved.workload_of(row).context_tokens
        shorter = int(round_down(context * self.assumption("lever_context_fraction")))
        if shorter < LEAST_CONTEXT:
            self.plan("half-context", row, why_not="no shorter context holds a prompt and an answer")
        else:
            self._at_context("half-context", row, shorter)
        share = 1 - self.assumption("lever_fewer_users_fraction")
        steps = int(round_down(self._most_requests(row) * share))
        if steps < 1:
            self.plan("fewer-users", row, why_not="one request at once is the least")
        else:
            self._at_requests("fewer-users", row, steps)

    def _most_requests(self, row: int) -> int:
        """The requests of a load in the steps that are tried: each request at once; for a rate, hundredths of it."""
        load = self.question.loads[row]
        return STEPS_OF_RATE if load.requests_per_second else int(load.concurrent_requests)

    def _fewer(self, row: int, steps: int) -> Change:
        rate = self.question.loads[row].requests_per_second
        return Change(row, requests=rate * steps / STEPS_OF_RATE if rate else steps)

    def _prefix_cache(self, row: int) -> None:
        settings, share = self.question.settings, self.assumption("lever_prefix_cache_hit_fraction")
        now, then = (PERCENT.text(value) for value in (settings.prefix_cache_hit_fraction, share))
        why_not, change = "", None
        if settings.prefix_cache_hit_fraction >= share:
            why_not = f"{now} hits are counted already"
        elif settings.kv_reserved:
            why_not = "reserved KV keeps the longest context of each request, whatever they share"
        elif self.not_run is not None and not self.not_run.shared_prefix:
            why_not = f"requests share no cache on {self.question.engine.name}: {self.not_run.instead}"
        else:
            change = Change(row, settings=replace(settings, prefix_cache_hit_fraction=share))
        changed = f"prompt tokens found in the prefix cache {now} to {then}" if change else ""
        words = f"prefix cache, {then} hits"
        self.plan("prefix-cache", row, change, words=words, changed=changed, why_not=why_not)

    def _at_context(self, lever: str, row: int, context_tokens: int) -> None:
        """The lever of a load at a shorter context."""
        workload = self.solved.workload_of(row)
        counts = workload.context_tokens, context_tokens
        short = [short_tokens(count) for count in counts]  # 128k where both are so many k, else 131,072
        before, after = short if all(text.endswith("k") for text in short) else [f"{count:,}" for count in counts]
        self.plan(
            lever,
            row,
            Change(row, workload=with_context(workload, context_tokens)),
            words=f"context {after}, not {before}",
            changed=f"context {workload.context_tokens:,} to {context_tokens:,} tokens",
        )

    def _at_requests(self, lever: str, row: int, steps: int) -> None:
        """The lever of a load with fewer requests at once, or per second."""
        change, rate = self._fewer(row, steps), self.question.loads[row].requests_per_second
        share = PERCENT.text(1 - steps / self._most_requests(row))
        after, before = (
            rate_text(number) if rate else f"{number:,.0f}"
            for number in (change.requests or 0, rate or self._most_requests(row))
        )
        unit, counted = ("requests/s", "requests per second") if rate else ("at once", "requests at once")
        self.plan(
            lever,
            row,
            change,
            words=f"{after} {unit}, not {before}",
            changed=f"{counted} {before} to {after} ({share} fewer)",
        )

    def next_steps(self, rows: Sequence[int]) -> None:
        """The longest context and the most requests at which a load costs less, by halving: all loads at once.

        At the next step it costs no less. The choice within the near tie may tip back further up, by no more than it.
        """
        searches = [search for row in rows for search in (self._contexts(row), self._requests(row))]
        while open_ones := [search for search in searches if search.is_open]:
            self._halve(open_ones)
        for closed in searches:
            closed.plan(closed.low)

    def _contexts(self, row: int) -> _Search:
        workload = self.solved.workload_of(row)
        context, block = workload.context_tokens, max(LEAST_CONTEXT, self.question.settings.block_size)
        step = max(block, context // CONTEXT_STEPS // block * block)

        def plan(steps: int) -> None:
            if steps:
                self._at_context("shorter-context", row, step * steps)
            else:
                self.plan("shorter-context", row, why_not="no shorter context costs less")

        most = -(-context // step)  # the first multiple of the step that is not below the load as it is
        before = Rented.of(self.solved, row)
        return _Search(before, most, lambda n: Change(row, workload=with_context(workload, step * n)), plan)

    def _requests(self, row: int) -> _Search:
        def plan(steps: int) -> None:
            if steps:
                self._at_requests("users-for-less", row, steps)
            else:
                self.plan("users-for-less", row, why_not="no smaller number of requests costs less")

        most = self._most_requests(row)
        return _Search(Rented.of(self.solved, row), most, lambda steps: self._fewer(row, steps), plan)

    def _halve(self, searches: Sequence[_Search]) -> None:
        """Narrow the bounds of each search by two halvings: to work out what either way leads to takes less time than
        to work out the loads of two halvings in turn."""
        tried = [search.next_steps(2) for search in searches]
        answers = iter(
            self.loads.ask([search.change(n) for search, steps in zip(searches, tried, strict=True) for n in steps])
        )
        for search, steps in zip(searches, tried, strict=True):
            answer_of = {n: next(answers) for n in steps}
            while search.is_open and search.step in answer_of:
                if is_less(search.before, answer_of[search.step]):
                    search.low = search.step
                else:
                    search.high = search.step

    def looser_targets(self, rows: Sequence[int]) -> None:
        """The next steps of each load's targets of speed, both alone and together: all loads at once.

        Speed is worked out for each model, workload and target once, and only where the loosest one is cheaper than
        the load is, and than either target alone makes it.
        """
        targets = self.file.tried_targets
        tried = {
            (lever, row): [
                Change(row, workload=other) for other in looser(self.solved.workload_of(row), lever, targets)
            ]
            for lever in LOOSER  # first each target alone
            for row in rows
        }
        before = {row: Rented.of(self.solved, row) for row in rows}
        loosest = iter(self.loads.ask([changes[-1] for changes in tried.values() if changes]))
        least = {row: inf if rented is None else rented.cheapest_usd for row, rented in before.items()}
        for (lever, row), changes in tried.items():
            after = next(loosest) if changes else None
            if after is None or after.cheapest_usd > least[row] or same_money(after.cheapest_usd, least[row]):
                tried[lever, row] = []  # no tighter one is cheaper
            else:
                least[row] = after.cheapest_usd
        answers = iter(self.loads.ask([change for changes in tried.values() for change in changes]))
        alone = dict(before)  # the least that one target alone leads to
        steps_of: dict[tuple[str, int], list[Step]] = {}
        for (lever, row), changes in tried.items():
            answered = [(change.workload, next(answers)) for change in changes if change.workload]
            steps = steps_down(alone[row], answered, self.assumption("lever_step_fraction"))
            if steps and is_less(alone[row], steps[-1].after):
                alone[row] = steps[-1].after
            steps_of[lever, row] = steps
        for (lever, row), steps in self._narrowed(steps_of, before).items():
            self._plan_steps(lever, row, steps)

    def _narrowed(
        self, steps_of: Mapping[tuple[str, int], Sequence[Step]], before: Mapping[int, Rented | None]
    ) -> dict[tuple[str, int], list[Step]]:
        """The steps at the tightest targets, in two figures, that reach them, by halving: all loads at once."""
        targets, workload_of = self.file.tried_targets, self.solved.workload_of
        searches = {
            (lever, row): [
                Narrowing(tighter(workload_of(row), lever, step.workload, targets), before[row], step) for step in steps
            ]
            for (lever, row), steps in steps_of.items()
        }
        in_all = [(row, narrowing) for (_, row), narrowings in searches.items() for narrowing in narrowings]
        while open_ones := [(row, narrowing) for row, narrowing in in_all if narrowing.is_open]:
            asked = [Change(row, workload=narrowing.targets[narrowing.middle]) for row, narrowing in open_ones]
            for (_, narrowing), after in zip(open_ones, self.loads.ask(asked), strict=True):
                narrowing.take(after)
        return {key: [narrowing.step for narrowing in narrowings] for key, narrowings in searches.items()}

    def _plan_steps(self, lever: str, row: int, steps: Sequence[Step]) -> None:
        """The lever of a load: the best of its steps, and of slower tokens alone the further ones."""
        workload, fields = self.solved.workload_of(row), LOOSER[lever]
        if not steps:
            is_set = self.question.settings.speed_targets and all(getattr(workload, field) for field in fields)
            self.plan(lever, row, why_not="no looser target costs less" if is_set else "no such target is set")
            return
        best = best_step(Rented.of(self.solved, row), steps, fields[0], getattr(workload, fields[0]))
        for step in steps if fields == (TPOT,) else (best,):
            now, then = ([_time_of(getattr(w, field)) for field in fields] for w in (workload, step.workload))
            words = WORDS[lever].format(*then, now=now[0])
            changed = (f"{NAMES[field]} {x} to {y}" for field, x, y in zip(fields, now, then, strict=True))
            self.plan(
                lever,
                row,
                Change(row, workload=step.workload),
                words=words,
                changed=", ".join(changed),
                further=step is not best,
            )

    # Levers of hardware. Host memory is an indication, never a price: each step of decoding reads the bytes again, so
    # every token waits.

    def more_of_memory(self, row: int) -> None:
        """The lever of a load for which GPUs that cost clearly less lack less memory than the engine may take in
        addition."""
        share = self.question.settings.gpu_memory_utilization
        most = self.launcher.most_share if self.launcher else share
        if self._nearly_held(row, most):
            settings = replace(self.question.settings, gpu_memory_utilization=most)
            changed = f"share of GPU memory {share:g} to {most:g}"
            self.plan(MORE, row, Change(row, settings=settings), words=f"{most:g} of GPU memory", changed=changed)
        else:
            self.plan(MORE, row, why_not="no cheaper GPUs lack as little memory as the engine may take more")

    def _nearly_held(self, row: int, most: float) -> bool:
        """True where an offer that is clearly cheaper in one machine lacks less memory than the engine gains with this
        share of it."""
        solved = self.solved
        profiles = [offer.profile for offer in solved.offers]
        needed, left, runs = (solved.sequences[name] for name in ("charge_bytes", "counted_kv_budget_bytes", "runs"))
        short = (needed[row] - left[row])[profiles]
        gained = (most - solved.grid.spread("utilization_on_gpu", ("offer",))) * numpy.array(
            [self.question.candidates[offer.candidate].gpu.memory.engine_bytes for offer in solved.offers]
        )
        clearly = 1 - self.assumption("clearly_cheaper_fraction")
        months = solved.grid.spread("instance_month_usd", ("offer",))
        is_cheaper = months < clearly * (
            solved.choices[row].monthly_usd if solved.choices[row].offer is not None else inf
        )
        is_held = solved.costs["n_instances"][row] > 0
        return bool((is_cheaper & ~is_held & (runs[row][profiles] == 1) & (short > 0) & (short < gained)).any())

    def bigger_gpus(self, row: int) -> None:
        """The lever of a load; which GPU is bigger is known when it is worked out."""
        fit = Fit.of(self.solved, row)
        if fit is None:
            self.plan("bigger-gpus", row, why_not="no GPU is chosen to be bigger than")
            return
        gpu, own = fit.candidate.gpu, fit.candidate.gpu.memory.engine_bytes
        if any(gpu.memory.engine_bytes > own for gpu in self.question.gpus):
            self.plan("bigger-gpus", row, Change(row, memory_above=own))
        else:
            self.plan("bigger-gpus", row, why_not=f"no candidate's GPU has more memory than the {gpu.short_name}")

    def host_memory(self, row: int) -> None:
        """The lever of a load: one replica fewer, else one pipeline stage, else half the tensor-parallel size."""
        offload = self._offload(row)
        if isinstance(offload, str):
            self.plan("host-memory", row, why_not=offload)
            return
        weights = f"{offload.bytes_per_gpu / GIB:,.1f} GiB of weights of each in host memory"
        speed = f"{offload.link}, {ONE_DECIMAL.text(offload.link_bytes_per_second / GB)} GB/s one way"
        drive = f"{ONE_DECIMAL.text(self.file.nvme_bytes_per_second / GB)} GB/s"
        note = (
            f"Every token reads {offload.bytes_per_gpu / GB:,.1f} GB over the host link ({speed}) on each GPU and "
            f"waits at least {_time(offload.seconds_per_token)} more; from an NVMe drive ({drive}) "
            f"{_time(offload.nvme_seconds_per_token)}. The KV cache of a parked request, "
            f"{offload.parked_kv_bytes_per_gpu / GIB:,.2f} GiB a GPU, is back in {_time(offload.parked_kv_seconds)}"
        )
        self.plan("host-memory", row, changed=f"{count(offload.n_gpus, 'GPU')}, {weights}", note=note, offload=offload)

    def _offload(self, row: int) -> Offload | str:
        """The weights that the smaller deployment would read from the host, or the reason why there is none."""
        fit = Fit.of(self.solved, row)
        if fit is None:
            return "nothing is chosen to make smaller"
        layout, stages, replicas = fit.layout, fit.choice.pipeline_parallel_size, fit.choice.n_replicas
        size = layout.tensor_parallel_size
        profile, gpu = self.solved.offers[fit.offer].profile, fit.candidate.gpu
        if replicas > 1:
            replicas -= 1
        elif stages > 1:
            stages -= 1
        elif size > 1:
            size //= 2
            smaller = layout._replace(tensor_parallel_size=size)
            profile -= self.question.layouts.index(layout) - self.question.layouts.index(smaller)
        else:
            return "one GPU is the least"
        link = self.file.link(gpu)
        if link is None:
            return f"the {gpu.short_name}'s link to its host is not known here"
        columns = self.solved.at(row, profile)

        def of(name: str) -> float:
            return float(columns[name][0])

        if of("runs") != 1:
            return f"the heads do not divide over {size} GPUs"
        requests = -(-int(of("load_requests")) // replicas)
        layers = self.solved.model_of(row).model.n_layers
        share = -(-layers // stages) / layers
        staged = {n: of(n) for n in kv_cache.windows_of_stages.inputs} | {"pipeline_stages": stages}
        charge = of("charge_bytes") + kv_cache.windows_of_stages.of(staged)
        parked, weights = of("steady_bytes") * share, of("paid_layer_bytes") * share
        needed = kv_cache.pool_for(requests, charge * share, parked)
        short = needed - of("kv_budget_bytes_per_gpu") if stages == 1 else needed + weights - of("layer_budget_bytes")
        n_gpus = replicas * size * stages
        if short > weights:
            return f"{n_gpus:,} GPUs would lack {short / GIB:,.1f} GiB each, more than their layers weigh"
        if short <= 0:
            return "it is not memory that asks for the last replica"
        return Offload(
            n_gpus,
            short,
            link.name,
            link.bytes_per_second,
            seconds_per_token=short / link.bytes_per_second,
            nvme_seconds_per_token=short / self.file.nvme_bytes_per_second,
            parked_kv_bytes_per_gpu=parked,
            parked_kv_seconds=parked / link.bytes_per_second,
        )

    # A model of like size that keeps less of each request: another model, so quality is not compared.

    def leaner_models(self, rows: Sequence[int]) -> None:
        """The lever of each load: among the models with about as many parameters, the one with the smallest cache."""
        leanest = cache(lambda model, context: self._leanest(self.question.models[model], context))
        for row in rows:
            cell = self.question.loads[row]
            if answer := leanest(cell.model, cell.context_tokens):
                model, changed = answer
                self.plan(
                    "leaner-model", row, Change(row, model=model), words=f"{model.model.name} instead", changed=changed
                )
            else:
                why_not = "no model of like size in the catalog keeps less of a request"
                self.plan("leaner-model", row, why_not=why_not)

    def _leanest(self, model: SheetModel, context_tokens: int) -> tuple[SheetModel, str] | None:
        """Of the models of like size (total parameters, which decide the weights) that take the context the leanest,
        and what changes with it."""
        settings, share = self.question.settings, self.assumption("lever_like_size_fraction")
        draft, catalog = self.question.draft, self.question.reference.catalog
        others = [
            sheet_model(m, self.question.recommended_weights(m), settings)
            for m in catalog.models_of_size(model.model.params.total, share)
            if m.kind == "model"
            and m.confidence in KNOWN_WELL
            and NO_CHAT not in m.id
            and m.id != model.model.id
            and (m.max_context_tokens or 0) >= context_tokens
            and not (draft and why_no_draft(draft, m))
        ]
        kept = kept_bytes([model, *others], context_tokens, self.question)
        if not others or kept[1:].min() >= kept[0]:
            return None
        leanest = int(kept[1:].argmin())
        return others[leanest], f"{_described(model, kept[0])} to {_described(others[leanest], kept[1 + leanest])}"


@dataclass
class _Search:
    """A number of steps: `low` of them cost less than the load as it is (0: none was found), `high` do not."""

    before: Rented | None
    high: int
    change: Callable[[int], Change]  # the load with so many steps
    plan: Callable[[int], None]  # its lever
    low: int = 0

    @property
    def is_open(self) -> bool:
        """True while a number of steps between the bounds is to be tried."""
        return self.high - self.low > 1

    @property
    def step(self) -> int:
        """The number of steps to try next: first one alone, then the middle."""
        return (self.low + self.high) // 2 if self.low else 1

    def next_steps(self, n_halvings: int) -> list[int]:
        """The numbers of steps that so many halvings may try, whichever way each turns out."""
        if not (n_halvings and self.is_open):
            return []
        halves = replace(self, low=self.step), replace(self, high=self.step)
        return [self.step, *(n for half in halves for n in half.next_steps(n_halvings - 1))]


def with_context(workload: Workload, context_tokens: int) -> Workload:
    """A workload at another context: the length of the answer stays and the prompt takes the rest, as with
    `--contexts`; or less, where the prompt was stated and leaves a part of the context unused."""
    answer = workload.output_tokens if context_tokens > workload.output_tokens else context_tokens // 2
    rest = context_tokens - answer
    is_filled = workload.input_tokens + workload.output_tokens >= workload.context_tokens
    prompt = rest if is_filled else min(workload.input_tokens, rest)
    sizes = {"input_tokens": prompt, "output_tokens": answer}
    if "context" in type(workload).model_fields:  # a load of the user's own, which may leave a part of it unused
        sizes["context"] = context_tokens
    return workload.model_copy(update=sizes)


def at_context(question: Question, workload: Workload, context_tokens: int) -> Workload:
    """A workload of a question at another context, with the targets in force there."""
    workloads = (with_context(workload, context_tokens),)
    return with_stated(workloads, question.stated, question.settings, question.reference)[0]


def _time_of(milliseconds: float) -> str:
    """A target as text: 60 ms, 8 s, 1.5 s."""
    rounded = float(f"{milliseconds:.3g}")
    if rounded < MILLISECONDS_PER_SECOND:
        return f"{rounded:g} ms"
    return f"{rounded / MILLISECONDS_PER_SECOND:,g} s"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def kept_bytes(models: Sequence[SheetModel], context_tokens: int, question: Question) -> numpy.ndarray:
    """Bytes of cache that a request of this context keeps while it is answered, by model."""
    rows = [model_columns(m.model, m.weight_dtype, m.kv_cache_dtype) for m in models]
    values: Columns = {k: numpy.array([r[k] for r in rows], float) for k in rows[0]}
    values |= question.engine.columns() | {
        "tensor_parallel_size": 1.0,
        **all_of(float(context_tokens)),
        **{name: float(getattr(question.settings, name)) for name in ("block_size", "hybrid_kv_manager")},
    }
    return numpy.asarray(evaluate(KEPT, values)["steady_bytes"], float)


def _described(model: SheetModel, kept: float) -> str:
    """A model described by its own numbers: parameters (10^9), and the bytes that a request keeps."""
    params = model.model.params
    active = f", {ONE_DECIMAL.text(params.active / 1e9)} B active" if params.active < params.total else ""
    size = f"{ONE_DECIMAL.text(params.total / 1e9)} B{active}"
    return f"{model.model.name} ({size}; {model.weight_dtype} weights, {kept / GIB:,.2f} GiB of KV a request)"
