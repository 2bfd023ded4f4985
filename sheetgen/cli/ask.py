"""The commands that put one question: `size`, `recommend`, `explain` and `diagnose`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.cli.options import (
    ANSWER,
    DEPLOYMENT,
    LOAD,
    MARKET,
    OF_ENGINE,
    command,
    common,
    flags_option,
    model_option,
    one_load,
    scenario_option,
    text_options,
    with_scenario,
)
from sheetgen.cli.output import answer, print_json, say, say_measured, step, warn
from sheetgen.errors import ScenarioError, shown
from sheetgen.writers.safe_files import check_places, write_files

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog
    from sheetgen.question.parse import Raw


@command()
@model_option()
@text_options("load", *DEPLOYMENT)
@flags_option
@click.option("--kv-budget", metavar="SETTINGS", help="KV budget of trtllm-build or NIM settings, or of their file.")
@click.option(
    "--kv-offload-gib", metavar="GIB", help="Host memory for the KV cache of parked users, of a whole replica."
)
@click.option("--from-log", metavar="FILE", help="Size what a start-up log says, beside what the engine measured.")
@click.option("--batch", metavar="IN.csv", help="Size every row of a CSV whose columns are these options.")
@click.option(
    "--columns",
    metavar="NAMES",
    help="The columns that --batch writes, of the file, the inputs and the results; what none of them needs is not "
    "worked out. Default all.",
)
@click.option("--out", metavar="OUT.csv", help="Where --batch writes: CSV, or OUT.parquet; default CSV on stdout.")
@common
def size(
    model: str | None,
    from_log: str | None,
    batch: str | None,
    columns: str | None,
    out: str | None,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
    flags: str | None,
    kv_budget: str | None,
    kv_offload_gib: str | None,
    **inputs: Raw,
) -> None:
    """One deployment, part by part: weights, activations, overhead, KV cache, whether the load fits; and its speed.

    What does not fit is an answer, not an error. In a batch, columns have the long names with underscores
    (context_tokens), unknown columns stay, and a row that cannot be sized has its reason in `error`.

    \b
    Examples:
      sheetgen size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
      sheetgen size --model gpt-oss-120b --gpu h200 --kv-cache-dtype fp8 --json
      sheetgen size --model 8b --users 64 --measured result.json
      sheetgen size --batch in.csv --out out.csv
      sheetgen size --batch in.csv --columns model,fits,min_gpus,tpot_seconds --out out.csv
      sheetgen size --from-log startup.log
      sheetgen size --model 8b --gpu l40s --context 8k --users 16 --flags vllm
      sheetgen size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --kv-offload-gib 400
      sheetgen size --model 8b --gpu spark --kv-budget max_batch_size=8,max_seq_len=4096,kv_cache_dtype=fp8
    """
    from sheetgen.question.stated_load import rate_of

    one_load(inputs)
    if batch is None and inputs["users"] is None:  # whose columns may have the rest of a load
        rate_of(inputs)
    requested, wanted = {"model": model, **inputs}, (flags, kv_budget, kv_offload_gib)
    has_extras = any(extra is not None for extra in wanted)
    if has_extras and (from_log is not None or batch is not None):
        options_given = "--flags, --kv-budget and --kv-offload-gib"
        raise click.UsageError(f"{options_given} do not go with --from-log or --batch.")
    if from_log is not None:
        if batch is not None or out is not None or columns is not None:
            raise click.UsageError("--from-log does not go with --batch, --out or --columns.")
        from sheetgen.cli.extras import run_from_log

        run_from_log(from_log, requested, as_json, catalog)
        return
    if batch is not None:
        from sheetgen.cli.batch import run_batch

        run_batch(Path(batch), Path(out) if out else None, columns, requested, as_json, catalog, quiet)
        return
    for option, value in (("--out", out), ("--columns", columns)):
        if value is not None:
            raise click.UsageError(f"{option} goes with --batch.")
    if model is None:
        raise click.UsageError("Missing option '--model'.")
    from sheetgen.api import record, sized_point
    from sheetgen.question.measurements import with_measured

    added = None
    if has_extras:
        from sheetgen.cli.extras import extras

        requested, added = extras(requested, *wanted, catalog)
    sized = sized_point(requested, catalog)
    names = sized.points.names[0]
    if inputs.get("engine_version") and names.engine.caution and not quiet:
        say(names.engine.caution, err=True)
    is_auto = inputs.get("kv_cache_dtype") in (None, "auto") and names.kv_cache_dtype != "fp8"
    remark = names.engine.fp8_remark(names.model.entry_id, names.model.name, [names.gpu]) if is_auto else None
    if remark and not quiet:
        say(remark, err=True)
    point = record(sized)
    keys, below = added(sized, point) if added else ({}, "")
    if as_json:
        print_json(with_measured(point, sized.measured) | keys)
        return
    from sheetgen.cli.bills import bills

    say(bills(sized, point))
    if below:
        say(below.removeprefix("\n"), verbatim=True)


@command()
@model_option()
@text_options(
    ("context_tokens", "TOKENS", "16k, or 16384. Default 4096."),
    *LOAD,
    "split",
    *ANSWER,
)
@click.option("--details", is_flag=True, help="Everything behind the answer: what changes buy, classes, owning, hosts.")
@click.option("--all", "show_all", is_flag=True, help="--details with every reason against another instance.")
@click.option(
    "--budget-usd",
    metavar="NUMBER",
    help="The reverse: the most that so many $ of rent a month serve, before contingency.",
)
@click.option("--have", metavar="GPU:NUMBER", help="The reverse: the most that your machines serve: h100:16, l40s:8x4.")
@click.option("--disaggregated", is_flag=True, help="Beside it prefill and decode on pools of their own.")
@scenario_option
@flags_option
@common
def recommend(
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
    details: bool,
    show_all: bool,
    flags: str | None,
    disaggregated: bool,
    budget_usd: str | None,
    have: str | None,
    scenario: str | None,
    **typed: Raw,
) -> None:
    """The question people ask: which instance, how many, $ a month; and, with --details, why not the others.

    \b
    Examples:
      sheetgen recommend --model 70b --context 16k --users 200
      sheetgen recommend --model 405b --context 128k --users 32 --weight-dtype fp8 --providers aws
      sheetgen recommend --model 8b --users 1000 --active-fraction 0.1 --json
      sheetgen recommend --model 70b --context 16k --users 32 --vendors nvidia,amd --flags vllm
      sheetgen recommend --model 405b --context 16k --users 128 --disaggregated
      sheetgen recommend --model 70b --context 16k --budget-usd 50000
      sheetgen recommend --model 70b --context 16k --have h100:16
      sheetgen recommend --model 70b --users 200 --flags compose --quiet > compose.yaml
    """
    one_load(typed)
    options = with_scenario(scenario, typed, also=())
    if not options.get("model"):
        raise click.UsageError("Missing option '--model'.")
    if budget_usd is not None or have is not None:
        from sheetgen.cli.extras import run_reverse

        run_reverse(budget_usd, have, options, as_json, catalog, quiet, disaggregated or flags is not None)
        return
    from sheetgen.api import recommend_document, recommended, sheet_record

    kinds: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    if flags is not None:
        from sheetgen.launch.flags import engines_asked
        from sheetgen.launch.manifests import split_manifests

        kinds, words = split_manifests(flags)
        engines = engines_asked(words, catalog) if words or not kinds else ()
    solved = recommended(options, catalog)
    question = solved.question
    warn(question, quiet)
    record = sheet_record(solved)
    cell = record.cells[0]
    launch, manifests = None, dict[str, str]()
    if flags is not None or as_json or details or show_all:
        from sheetgen.launch.recommended import launches, manifests_of, with_launches

        launched = launches(record, question, engines, catalog)
        launch = launched.get(0)
        manifests = manifests_of(kinds, cell, question, launch)
    if disaggregated:
        from sheetgen.answer.disaggregated import disaggregated as apart
        from sheetgen.answer.disaggregated import pools_record
        from sheetgen.cli.extras import pools

        split = apart(solved, 0)
    if as_json:
        document = recommend_document(with_launches(record, launched), question)
        if kinds:
            document["cells"][0]["manifests"] = manifests
        if disaggregated:
            document["cells"][0] |= pools_record(split)
        print_json(document | document["cells"][0])
    else:
        from sheetgen.cli.answer_text import headline, recommendation

        if quiet and manifests and not (details or show_all or disaggregated or engines):  # files, and nothing else
            say("\n---\n".join(manifests.values()), verbatim=True)
            return
        if quiet and not (details or show_all):
            say(headline(question, cell))
        else:
            say(recommendation(question, cell, details, show_all, launch.advice if launch else None))
            say_measured(question, [cell])
        if disaggregated:
            say("\n".join(("", *pools(question, cell, split))))
        if launch and engines:
            from sheetgen.cli.extras import flag_lines

            say("\n".join(flag_lines(launch.flags)), verbatim=True)
        for text in manifests.values():
            say(f"\n{text}", verbatim=True)


@command()
@click.argument("quantity", required=False)
@model_option()
@text_options("load", *DEPLOYMENT, *MARKET, without="gpus")
@click.option("--depth", type=click.IntRange(0, 99), help="Levels of inputs. Default 2; all in --json.")
@common
def explain(
    quantity: str | None,
    model: str | None,
    depth: int | None,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
    **inputs: Raw,
) -> None:
    """The derivation of any quantity: formula, values, result, and where every input is from.

    Quantities are those of `size`, or of `recommend` (n_replicas, n_instances, monthly_usd ...). Without
    QUANTITY it lists all of them, in the order in which they come about.

    \b
    Examples:
      sheetgen explain
      sheetgen explain kv_bytes_per_token --model 70b
      sheetgen explain weights_bytes_per_gpu --model 405b --weight-dtype fp8 --tensor-parallel-size 8 --json
      sheetgen explain tpot_seconds --model deepseek-r1 --gpu h200 --tensor-parallel-size 8 --users 64
      sheetgen explain monthly_usd --model 70b --context 16k --users 200 --depth 4
    """
    from sheetgen.cli.derivation_text import DEPTH, derivation, every_quantity, record, text
    from sheetgen.explain import find, quantities

    if quantity is None:
        listed = [{"name": n, "label": label, "summary": about} for n, label, about in quantities()]
        answer(as_json, listed, every_quantity)
        return
    name = find(quantity)
    if model is None:
        raise click.UsageError("Missing option '--model'.")
    options = {k: v for k, v in {"model": model, **inputs}.items() if v is not None}
    derived = derivation(name, options, catalog)
    answer(as_json, record(derived, depth), lambda: text(derived, DEPTH if depth is None else depth))


@command()
@click.argument("log", metavar="LOG")
@model_option()
@text_options(
    ("gpu", "NAME", "GPU by id or alias, where the log does not say it."),
    "precision",
    *OF_ENGINE,
    ("tensor_parallel_size", "NUMBER", "GPUs of one replica, where the log does not say it."),
    ("max_model_len", "TOKENS", "Longest request that the engine admits, where the log does not say it."),
    ("max_num_seqs", "NUMBER", "Most requests in one batch, where the log does not say it."),
    ("context_tokens", "TOKENS", "Tokens of a request: 16k."),
)
@click.option("--html", "html_file", metavar="FILE", help="Write the page as HTML, too.")
@common
def diagnose(log: str, html_file: str | None, as_json: bool, catalog: Catalog, quiet: bool, **options: Raw) -> None:
    """Name the part of memory that ran out in a serving LOG, how we know, and the flags to move (`-` reads stdin).

    Reads logs of vLLM, SGLang, TensorRT-LLM, NIM, TGI, LMDeploy and llama.cpp: plain, .gz, JSON lines, with the
    prefixes of Docker and Kubernetes. Where model and GPU are known, the sizing engine replays the configuration.

    What cannot be told from the file is `undetermined`, with what would decide it: no label is guessed.

    Direction matters: gpu_memory_utilization goes up for a KV pool too small at start, and down for
    CUDA graphs, the sampler and prefill peaks.

    Exit status: 0 whatever the verdict (read `label` of --json), 1 a log or a name that cannot be read, 2 usage.

    \b
    Examples:
      sheetgen diagnose server.log
      docker logs vllm 2>&1 | sheetgen diagnose -
      sheetgen diagnose server.log.gz --model 70b --gpu h100 --json
    """
    from sheetgen.diagnose.diagnosis import as_html, text
    from sheetgen.diagnose.diagnosis import diagnose as diagnosed

    # A place that cannot be looked at is reported when it is read.
    with contextlib.suppress(OSError, ValueError):
        if html_file is not None and log != "-" and Path(log).samefile(html_file):
            problem = "is the log itself, which would be overwritten. Choose another place."
            raise ScenarioError(f"--html {shown(html_file, 200)}: {problem}")
    change = "Choose another place with --html."
    check_places(() if html_file is None else [Path(html_file)], change)
    step(f"reading {shown(log)}")
    diagnosis = diagnosed(log, options, catalog)
    if html_file is not None:
        write_files({Path(html_file): as_html(diagnosis).encode()}, change)
    answer(as_json, diagnosis.record(), lambda: text(diagnosis))
