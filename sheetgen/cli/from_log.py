"""`sheetgen size --from-log`: the prediction beside what an engine measured at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.cli.output import print_json, say, table
from sheetgen.startup.compare import Compared, compare, compared_record
from sheetgen.startup.read import QUANTITIES, read_log
from sheetgen.units import GIB

ENGINE_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}


def run_from_log(name: str, requested: Mapping[str, Any], as_json: bool, catalogs: Sequence[str]) -> None:
    """Read the log called `name` (`-`: stdin) and print it beside its prediction."""
    from sheetgen.catalog import Catalog

    catalog = Catalog(*catalogs)
    compared = compare(read_log(name, catalog.devices), requested, catalog)
    if as_json:
        print_json(compared_record(compared))
    else:
        say(comparison(compared))


def comparison(compared: Compared) -> str:
    """The comparison as a person reads it."""
    lines = [_headline(compared), ""]
    lines += [f"no prediction: {reason}" for reason in compared.unsized]
    lines += [""] if compared.unsized else []
    head = ("EACH GPU", "predicted", "measured", "difference", "")
    rows = [_row(compared, name) for name in QUANTITIES if compared.predicted or name in compared.measured.figures]
    lines.append(table(head, rows, right=(1, 2, 3, 4)))
    for title, lines_of in (("NOT IN THE LOG", compared.not_stated), ("NOTES", compared.notes)):
        if lines_of:
            lines += ["", title, *(f"  {one}" for one in lines_of)]
    return "\n".join(lines)


def _headline(compared: Compared) -> str:
    inputs, log = compared.inputs, compared.log
    engine = f"{ENGINE_NAMES[log.engine]} {log.version or 'of an unstated version'}"
    if not compared.predicted:
        return f"{engine}: what it measured at its start"
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    tp, pp, dp = (inputs[name] for name in sizes)
    split = f"TP {tp}" + (f", PP {pp}" if pp > 1 else "") + (f", DP {dp}" if dp > 1 else "")
    return (
        f"{engine}: {inputs['model_id']} on {tp * pp * dp}x {inputs['gpu_id']} ({split}), "
        f"weights {inputs['weight_dtype']}, KV cache {inputs['kv_cache_dtype']}, "
        f"max_model_len {inputs['max_model_len']:,}"
    )


def _row(compared: Compared, name: str) -> tuple[str, str, str, str, str]:
    figure, share = compared.measured.figures.get(name), compared.percent(name)
    values = (compared.predicted.get(name), figure.value if figure else None, compared.difference(name))
    predicted, measured, difference = (_text(name, value, i == 2) for i, value in enumerate(values))
    return f"  {QUANTITIES[name]}", predicted, measured, difference, "" if share is None else f"{share:+.1f}%"


def _text(name: str, value: float | None, signed: bool) -> str:
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if "bytes" in name:
        return f"{value / GIB:{sign},.2f} GiB"
    return f"{value:{sign},.2f}x" if name == "max_concurrency" else f"{value:{sign},.0f}"
