"""`sheetgen size`: one deployment bill by bill, or a CSV of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sheetgen.cli.options import DEPLOYMENT, PACE, command, common, load_options, rows_of, text_options
from sheetgen.cli.output import print_json, say


@command()
@click.option("--model", metavar="NAME", help="Model by catalog id, alias, Hugging Face id, or path of a config.json.")
@load_options
@text_options(*DEPLOYMENT)
@click.option("--flags", metavar="ENGINES", help="Launch flags: vllm, sglang, tensorrt-llm, nim, lmdeploy, all.")
@click.option("--kv-budget", metavar="SETTINGS", help="KV budget of trtllm-build or NIM settings, or of their file.")
@click.option("--from-log", metavar="FILE", help="Size what a start-up log says, beside what the engine measured.")
@click.option("--batch", metavar="IN.csv", help="Size every row of a CSV whose columns are these options.")
@click.option("--out", metavar="OUT.csv", help="Where --batch writes; default stdout.")
@common
def size(
    model: str | None, from_log: str | None, batch: str | None, out: str | None, as_json: bool,
    catalogs: tuple[str, ...], quiet: bool, flags: str | None, kv_budget: str | None, **inputs: Any,
) -> None:  # fmt: skip
    """One deployment, bill by bill: weights, activations, overhead, KV cache, whether the load fits; and its speed.

    What does not fit is an answer, not an error. In a batch, columns have the long names with underscores
    (context_tokens), unknown columns stay, and a row that cannot be sized has its reason in `error`.

    \b
    Examples:
      sheetgen size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
      sheetgen size --model gpt-oss-120b --gpu h200 --kv-cache-dtype fp8 --json
      sheetgen size --model 8b --users 64 --anchor concurrent_requests=32,input_tokens=1k,output_tokens=1k,tpot_ms=9.8
      sheetgen size --batch in.csv --out out.csv
      sheetgen size --from-log startup.log
      sheetgen size --model 8b --gpu l40s --context 8k --users 16 --flags vllm
      sheetgen size --model 8b --gpu spark --kv-budget max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8
    """
    asked = {"model": model, **inputs}
    if (flags is not None or kv_budget is not None) and (from_log is not None or batch is not None):
        raise click.UsageError("--flags and --kv-budget do not go with --from-log or --batch.")
    if from_log is not None:
        if batch is not None or out is not None:
            raise click.UsageError("--from-log does not go with --batch or --out.")
        _refuse_speed(asked)
        from sheetgen.cli.from_log import run_from_log

        run_from_log(from_log, asked, as_json, catalogs)
        return
    if batch is not None:
        from sheetgen.cli.batch import run_batch

        run_batch(Path(batch), Path(out) if out else None, asked, as_json, catalogs, quiet)
        return
    if out is not None:
        raise click.UsageError("--out goes with --batch.")
    if model is None:
        raise click.UsageError("Missing option '--model'.")
    from sheetgen.api import record, sized_point
    from sheetgen.catalog import Catalog

    catalog, extras = Catalog(*catalogs), None
    if flags is not None or kv_budget is not None:
        from sheetgen.cli.flags import Extras

        extras = Extras.of(asked, flags, kv_budget, catalog)
    sized = sized_point(extras.asked if extras else asked, catalog)
    answer = record(sized)
    if as_json:
        print_json(answer | (extras.record(answer) if extras else {}))
        return
    from sheetgen.cli.bills import bills

    say(bills(sized) + (extras.text(answer) if extras else ""))


def _refuse_speed(asked: dict[str, Any]) -> None:
    """Inputs of speed alone would be accepted and ignored: a start-up log is compared in memory."""
    given = [f"--{name.replace('_', '-')}" for name, *_ in rows_of(*PACE) if asked.get(name) is not None]
    if given:
        raise click.UsageError(f"{', '.join(given)} does not go with --from-log, which compares memory.")
