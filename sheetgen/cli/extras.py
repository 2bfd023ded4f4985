"""Parts that `sheetgen size` prints on request: launch flags, the stack, a KV budget, a start-up log compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import click

from sheetgen.answer.answer_record import CellRecord, Json
from sheetgen.answer.disaggregated import Apart
from sheetgen.answer.reverse import Reverse, in_words
from sheetgen.api import Sized, reversed_question
from sheetgen.catalog.load import Catalog
from sheetgen.cli.answer_text import NEVER_MEASURED, budgeted_words, dearer
from sheetgen.cli.bills import numbers_of
from sheetgen.cli.options import PACE
from sheetgen.cli.output import answer, folded, table, warn
from sheetgen.diagnose.log_compared import Compared, compare, compared_record
from sheetgen.launch.flags import CAVEAT, Flags, advice_record, engines_asked, flags_for, flags_record
from sheetgen.launch.kv_budget import KvBudget, budget, budget_record, inputs_of
from sheetgen.launch.parked import GIB_OF_HOST, launch_note, parked
from sheetgen.question.inputs import asked_in
from sheetgen.question.parse import Options, Raw
from sheetgen.question.sheet_question import Question
from sheetgen.question.stated_load import A_LOAD
from sheetgen.report.in_currency import amounts_of
from sheetgen.report.wording import lost
from sheetgen.startup.printed_arguments import ENGINE_NAMES
from sheetgen.startup.startup_log import QUANTITIES, read_log
from sheetgen.units import GIB, PERCENT, USD, Layout, count, rate_text


def extras(
    requested: Options,
    flags: str | None,
    kv_budget: str | None,
    kv_offload_gib: str | None,
    catalog: Catalog,
) -> tuple[dict[str, Raw], Callable[[Sized, Json], tuple[Json, str]]]:
    """The inputs, completed from the settings of --kv-budget; and a function that gives the keys that --flags,
    --kv-budget and --kv-offload-gib add to the record of their point, and the text below its bills.

    Raises ScenarioError for an engine or a setting that is unknown, or a file that cannot be read.
    """
    host = None if kv_offload_gib is None else round(GIB_OF_HOST.parse(kv_offload_gib, "kv_offload_gib") * GIB)
    engines = () if flags is None else engines_asked(flags, catalog)
    settings, inputs = (None, dict(requested)) if kv_budget is None else inputs_of(kv_budget, requested, catalog)

    def added(sized: Sized, point: Json) -> tuple[Json, str]:
        record, lines = dict[str, object](), [""]
        if host_kv_bytes := host or (settings and settings.host_kv_bytes):
            held_there = parked(host_kv_bytes, numbers_of(sized), sized.points.names[0], catalog)
            record["parked"] = held_there.record()
            title = f"PARKED IN HOST MEMORY, {host_kv_bytes / GIB:,.6g} GiB of it"
            lines += ["", title, *(folded(f"  {line}") for line in held_there.words)]
        if settings is not None:
            held = budget(settings, inputs, point, catalog)
            record["kv_budget"] = budget_record(held)
            lines += ["", *map(folded, _budget(held))]
        if engines:
            written, advice = flags_for(engines, [(inputs, point)], catalog)[0]
            if host:
                for engine, flags_of_engine in written.items():
                    note = launch_note(flags_of_engine.launcher, host, flags_of_engine.checked.requested.n_gpus)
                    written[engine] = replace(flags_of_engine, notes=(*flags_of_engine.notes, note))
            assert advice is not None
            record |= {"flags": flags_record(written), "stack": advice_record(advice)}
            sources = [f"  {', '.join(advice.rule.sources)}"] if advice.rule else []
            stack = (f"  {advice.line}", *sources, f"  {CAVEAT}")
            lines += [*flag_lines(written), "", "STACK", *map(folded, stack)]
        return record, "\n".join(lines)

    return inputs, added


def flag_lines(written: Mapping[str, Flags]) -> Iterator[str]:
    """The flags of all engines asked for; all lines but the commands are folded to the terminal's width."""
    yield ""
    yield folded("LAUNCH FLAGS, each sized again under its engine")
    for flags in written.values():
        yield from ("", *map(folded, _comments(flags)))
        if flags.written is not None:
            yield flags.text(flags.written)
            for name, other in flags.written.other.items():
                yield from ("", f"# {name}", *(folded(f"# note: {note}") for note in other.notes), flags.text(other))


def _budget(kv_budget: KvBudget) -> Iterator[str]:
    """The cache that the settings ask for, and whether there is room for it."""
    sized, engine = kv_budget.trial.answer, kv_budget.trial.names.engine
    named = ", ".join(f"{name} {value}" for name, value in kv_budget.settings.read.items())
    yield f"KV BUDGET of {engine.name} {engine.default_version}: {named}"
    sequences = f"{count(kv_budget.n_sequences, 'sequence')} of {sized['max_model_len']:,} tokens"
    load = f"{sequences}, {kv_budget.budget_tokens:,} tokens in all"
    tokens = f"{kv_budget.budget_tokens:,} tokens" if kv_budget.is_pool else load
    yield (
        f"  {tokens}, {sized['kv_bytes_per_token']:,} bytes each "
        f"({sized['kv_cache_dtype']}): {kv_budget.budget_bytes / GIB:,.2f} GiB, {kv_budget.budget_bytes:,} bytes"
    )
    is_every = kv_budget.budget_tokens == kv_budget.n_sequences * sized["max_model_len"]
    if is_every and not kv_budget.is_pool and sized["kv_bytes"] != kv_budget.budget_bytes:
        yield (
            f"  with whole blocks, windows and states as the engine takes them: {sized['kv_bytes'] / GIB:,.2f} GiB, "
            f"{sized['kv_bytes']:,} bytes"
        )
    yield f"  {kv_budget.verdict}"
    yield from (f"  note: {note}" for note in kv_budget.settings.notes)


def _comments(flags: Flags) -> Iterator[str]:
    """The check of an engine's command, and other remarks on it."""
    yield f"# {flags.name}: {flags.checked.verdict}"
    if flags.checked.printed is not None:
        held = flags.checked.printed.answer
        where = " on each data-parallel rank" if held["data_parallel_size"] > 1 else ""
        yield (
            f"# These flags hold {count(held['max_num_seqs'], 'sequence')}{where}: "
            f"KV pool {held['kv_pool_bytes_per_gpu'] / GIB:,.2f} GiB on each GPU, {held['kv_tokens']:,} tokens, "
            f"{held['max_concurrency']:,.2f} sequences of {held['max_model_len']:,} tokens."
        )
    if flags.written is None:
        yield "# No command: the engine would not start with these inputs."
    for remedy in flags.checked.remedies:
        yield f"# would hold: {flags.flag(remedy)} ({remedy.says})"
    yield from (f"# note: {note}" for note in flags.notes)


def pools(question: Question, cell: CellRecord, apart: Apart | None) -> Iterator[str]:
    """Prefill and decode apart, beside the answer with one pool."""
    yield f"PREFILL AND DECODE APART, {NEVER_MEASURED}"
    if apart is None:
        yield "  no pair of pools in one region meets the targets over a network that is known"
        return
    most = apart.decode.requests_per_replica
    per_token = f"{apart.decode.seconds * 1000:.0f} ms a token here, up to {most:,} at once each"
    for name, pool, does in (
        ("prefill", apart.prefill, f"{apart.prefill.seconds:.2f} s a prompt, one at a time each"),
        ("decode", apart.decode, per_token),
    ):
        gpus = f"{pool.layout.n_gpus}x {pool.candidate.gpu.short_name} ({pool.layout.words()})"
        yield f"  {name}: {count(pool.n_replicas, 'replica')} of {gpus}, {does}"
    yield (
        f"  KV cache: {apart.kv_transfer_bytes / GIB:,.2f} GiB a prompt, {apart.kv_transfer_seconds:.2f} s on the way; "
        f"first token {apart.ttft_seconds:.1f} s"
    )
    rented = " and ".join(f"{n:,}x {instance}" for instance, n in apart.n_instances.items())
    alone = cell.chosen
    beside = "" if alone is None else f", {dearer(apart.monthly_usd / alone.monthly_usd - 1)} against one pool"
    if question.filters.region:
        rented += f" in {apart.prefill.candidate.region}"
    month = amounts_of(question.settings)(apart.monthly_usd)
    yield f"  {rented}, {month} a month for {rate_text(apart.requests_per_second)} requests/s{beside}"
    after = f" after the loss of a {lost(question)}" if question.settings.survive else ""
    yield f"  at most {rate_text(apart.served_at_target)} requests/s within the targets{after}"
    if not cell.is_rate:
        yield "  Both pools have allowance for chance, one pool has none: state the load as a rate to compare alike."


def run_reverse(
    budget_usd: str | None,
    have: str | None,
    options: Options,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
    has_extras: bool,
) -> None:
    """Print the most that a sum a month or machines of one's own serve, and what the next step costs."""
    load = [name for name in A_LOAD if options.get(name) is not None]
    if load or has_extras or (budget_usd is not None and have is not None):
        raise click.UsageError(
            "--budget-usd and --have ask for the load: give one of them, without a load, --flags or --disaggregated."
        )
    reverse = reversed_question(options, catalog, budget_usd, have)
    warn(reverse.question, quiet)
    answer(as_json, reverse.record(), lambda: "\n".join(_reverse(reverse)))


def _reverse(reverse: Reverse) -> Iterator[str]:
    model, (work,), after = reverse.question.models[0], reverse.question.workloads, ""
    yield (
        f"{model.model.name} at {work.context_tokens:,} tokens ({work.input_tokens:,} prompt + "
        f"{work.output_tokens:,} answer; weights {model.weight_dtype}, KV cache {model.kv_cache_dtype})\n"
    )
    asked = reverse.asked.get("have") or f"{USD.text(reverse.asked['budget_usd'])} a month"
    extra = 0.0 if reverse.machines else reverse.question.settings.contingency_fraction
    asked += f" of rent, {PERCENT.text(extra)} contingency on top" if extra else ""
    rate = f"{rate_text(reverse.requests_per_second)} requests/s with allowance for chance"
    if reverse.question.settings.survive:
        after = f", after the loss of one {lost(reverse.question)} in all"
    serves = f"{reverse.served_at_target:,} at once within the targets, or {rate}{after}"
    yield f"{asked}: serves {serves if reverse.served_at_target else 'nothing'}"
    kinds = zip(reverse.machines or [None], reverse.in_flight, reverse.per_second, reverse.held or [True], strict=True)
    for own, most, fastest, is_held in kinds:
        head = f"{count(own[1], 'machine')} of {own[0].instance}" if own else ""
        if most and not own:
            head = budgeted_words(most.n_instances, most.candidate.instance, most.monthly_usd or 0, reverse.question)
        if most:
            yield f"  {head}: {'; '.join(in_words(most))}"
        elif own:
            why = "nothing within the targets" if is_held else "memory does not hold the weights and one request"
            yield f"  {head}: {why}"
        if fastest and most and (fastest.candidate, fastest.layout) != (most.candidate, most.layout):
            rented = "" if own else f"{fastest.n_instances:,}x {fastest.candidate.instance}, "
            yield f"  for the most requests/s: {rented}{'; '.join(in_words(fastest))}"
        if own and most:
            yield f"  one machine more: {most.of_one_more:,} at once{' in all' * (len(reverse.machines) > 1)}"
    if rent := reverse.next_rent:
        rented = budgeted_words(rent.n_instances, rent.instance, rent.monthly_usd, reverse.question)
        yield f"one more at once: {rented} {'beside them' if reverse.machines else 'in all'}"
    elif reverse.next_verdict:
        yield f"one more at once: {reverse.next_verdict}"


def run_from_log(name: str, requested: Options, as_json: bool, catalog: Catalog) -> None:
    """Read the log called `name` (`-`: stdin) and print what the engine measured beside its prediction."""
    names = [option.asked_as for option in asked_in("rate", *PACE)]
    of_speed = [f"--{name.replace('_', '-')}" for name in names if requested[name] is not None]
    if of_speed:  # they would be accepted and ignored
        raise click.UsageError(f"{', '.join(of_speed)} does not go with --from-log, which compares memory.")
    compared = compare(read_log(name, catalog), requested, catalog)
    answer(as_json, compared_record(compared), lambda: "\n".join(_comparison(compared)))


def _comparison(compared: Compared) -> Iterator[str]:
    inputs, log = compared.inputs, compared.log
    engine = f"{ENGINE_NAMES[log.engine]} {log.version or 'of an unstated version'}"
    if compared.predicted:
        tp, pp, dp = (inputs[f"{kind}_parallel_size"] for kind in ("tensor", "pipeline", "data"))
        yield (
            f"{engine}: {inputs['model_id']} on {tp * pp * dp}x {inputs['gpu_id']} ({Layout(tp, dp).words(pp)}), "
            f"weights {inputs['weight_dtype']}, KV cache {inputs['kv_cache_dtype']}, "
            f"max_model_len {inputs['max_model_len']:,}"
        )
    else:
        yield f"{engine}: what it measured at its start"
    yield ""
    if compared.unsized:
        yield from (*(f"no prediction: {reason}" for reason in compared.unsized), "")
    rows = [("EACH GPU", "predicted", "measured", "difference", "")]
    for name, label in QUANTITIES.items():
        figure, (off, share) = compared.measured.figures.get(name), compared.difference(name)
        if compared.predicted or figure:
            predicted, measured = compared.predicted.get(name), figure.value if figure else None
            values = _text(name, predicted), _text(name, measured), _text(name, off, "+")
            rows.append((f"  {label}", *values, "" if share is None else f"{share:+.1f}%"))
    yield table(rows, right=(1, 2, 3, 4))
    for title, lines in (("NOT IN THE LOG", compared.not_stated), ("NOTES", compared.notes)):
        if lines:
            yield from ("", title, *(f"  {line}" for line in lines))


def _text(name: str, value: float | None, sign: str = "") -> str:
    if value is None:
        return "–"
    if "bytes" in name:
        return f"{value / GIB:{sign},.2f} GiB"
    return f"{value:{sign},.2f}x" if name == "max_concurrency" else f"{value:{sign},.0f}"
