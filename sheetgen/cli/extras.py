"""What `sheetgen size` prints on request: launch flags, the stack that suits, a KV budget, a start-up log compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from sheetgen.catalog.load import Catalog
from sheetgen.cli.options import PACE, rows_of
from sheetgen.cli.output import count, print_json, say, table
from sheetgen.launch.flags import CAVEAT, Flags, advice_record, engines_asked, flags_for, flags_record
from sheetgen.launch.kv_budget import KvBudget, budget, budget_record, inputs_of
from sheetgen.startup.compare import Compared, compare, compared_record
from sheetgen.startup.read import QUANTITIES, read_log
from sheetgen.startup.words import ENGINE_NAMES
from sheetgen.units import GIB


def extras(
    requested: Mapping[str, Any], flags: str | None, kv_budget: str | None, catalog: Catalog
) -> tuple[dict[str, Any], Callable[[Mapping[str, Any]], tuple[dict[str, Any], str]]]:
    """The inputs, completed from the settings of --kv-budget; and what gives the keys that --flags and --kv-budget add
    to the record of their point, and the text below its bills.

    Raises ScenarioError for an engine or a setting that is unknown, or a file that cannot be read.
    """
    engines = () if flags is None else engines_asked(flags, catalog)
    settings, inputs = (None, dict(requested)) if kv_budget is None else inputs_of(kv_budget, requested, catalog)

    def added(point: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        record, lines = dict[str, Any](), [""]
        if settings is not None:
            held = budget(settings, inputs, point, catalog)
            record["kv_budget"] = budget_record(held)
            lines += ["", *_budget(held)]
        if engines:
            written, advice = flags_for(engines, inputs, point, catalog)
            record |= {"flags": flags_record(written), "stack": advice_record(advice)}
            sources = [f"  {', '.join(advice.rule.sources)}"] if advice.rule else []
            lines += [*flag_lines(written), "", "STACK", f"  {advice.line}", *sources, f"  {CAVEAT}"]
        return record, "\n".join(lines)

    return inputs, added


def flag_lines(written: Mapping[str, Flags]) -> Iterator[str]:
    """The flags of all engines asked for."""
    yield from ("", "LAUNCH FLAGS, each sized again under its engine with max_num_seqs at the requests asked for")
    for one in written.values():
        yield from ("", *_flags(one))


def _budget(one: KvBudget) -> Iterator[str]:
    """What the settings ask for, and whether it is there."""
    answer, engine = one.trial.answer, one.trial.names.engine
    named = ", ".join(f"{name} {value}" for name, value in one.settings.read.items())
    yield f"KV BUDGET of {engine.name} {engine.default_version}: {named}"
    yield (
        f"  {one.n_sequences:,} sequences of {answer['max_model_len']:,} tokens, {one.budget_tokens:,} tokens in all, "
        f"{answer['kv_bytes_per_token']:,} bytes each ({answer['kv_cache_dtype']}): {one.budget_bytes / GIB:,.2f} GiB, "
        f"{one.budget_bytes:,} bytes"
    )
    if answer["kv_bytes"] != one.budget_bytes and one.budget_tokens == one.n_sequences * answer["max_model_len"]:
        yield (
            f"  with whole blocks, windows and states as the engine takes them: {answer['kv_bytes'] / GIB:,.2f} GiB, "
            f"{answer['kv_bytes']:,} bytes"
        )
    yield f"  {one.verdict}"
    yield from (f"  note: {note}" for note in one.settings.notes)


def _flags(one: Flags) -> Iterator[str]:
    """The commands one below the other, each with its check."""
    yield f"# {one.name}: {one.checked.verdict}"
    if one.checked.printed is not None:
        held = one.checked.printed.answer
        each = " on each data-parallel rank" if held["data_parallel_size"] > 1 else ""
        yield (
            f"# These flags hold {count(held['max_num_seqs'], 'sequence')}{each}: "
            f"KV pool {held['kv_pool_bytes_per_gpu'] / GIB:,.2f} GiB on each GPU, {held['kv_tokens']:,} tokens, "
            f"{held['max_concurrency']:,.2f} sequences of {held['max_model_len']:,} tokens."
        )
    if one.written is None:
        yield "# No command: the engine would not start with these inputs."
    for remedy in one.checked.remedies:
        yield f"# would hold: {one.flag(remedy)} ({remedy.says})"
    yield from (f"# note: {note}" for note in one.notes)
    if one.written is not None:
        yield one.text(one.written)
        for name, other in one.written.other.items():
            yield from ("", f"# {name}", *(f"# note: {note}" for note in other.notes), one.text(other))


def run_from_log(name: str, requested: Mapping[str, Any], as_json: bool, catalogs: tuple[str, ...]) -> None:
    """Read the log called `name` (`-`: stdin) and print what the engine measured beside its prediction."""
    of_speed = [f"--{name.replace('_', '-')}" for name, *_ in rows_of("rate", *PACE) if requested[name] is not None]
    if of_speed:  # they would be accepted and ignored
        raise click.UsageError(f"{', '.join(of_speed)} does not go with --from-log, which compares memory.")
    catalog = Catalog(*catalogs)
    compared = compare(read_log(name, catalog.devices), requested, catalog)
    if as_json:
        print_json(compared_record(compared))
    else:
        say("\n".join(_comparison(compared)))


def _comparison(compared: Compared) -> Iterator[str]:
    inputs, log = compared.inputs, compared.log
    engine = f"{ENGINE_NAMES[log.engine]} {log.version or 'of an unstated version'}"
    if compared.predicted:
        tp, pp, dp = (inputs[f"{kind}_parallel_size"] for kind in ("tensor", "pipeline", "data"))
        split = f"TP {tp}" + (f", PP {pp}" if pp > 1 else "") + (f", DP {dp}" if dp > 1 else "")
        yield (
            f"{engine}: {inputs['model_id']} on {tp * pp * dp}x {inputs['gpu_id']} ({split}), "
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
            yield from ("", title, *(f"  {one}" for one in lines))


def _text(name: str, value: float | None, sign: str = "") -> str:
    if value is None:
        return "–"
    if "bytes" in name:
        return f"{value / GIB:{sign},.2f} GiB"
    return f"{value:{sign},.2f}x" if name == "max_concurrency" else f"{value:{sign},.0f}"
