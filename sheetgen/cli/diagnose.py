"""`sheetgen diagnose`: which memory bill of a serving log overran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sheetgen.cli.options import OF_ENGINE, command, common, text_options
from sheetgen.cli.output import print_json, say, write_files
from sheetgen.errors import ScenarioError, shown

ASKED = (
    ("gpu", "NAME", "GPU by id or alias, where the log does not say it."), "precision", *OF_ENGINE,
    ("tensor_parallel_size", "NUMBER", "GPUs of one replica, where the log does not say it."),
    ("max_model_len", "TOKENS", "Longest request that the engine admits, where the log does not say it."),
    ("max_num_seqs", "NUMBER", "Most requests in one batch, where the log does not say it."),
)  # fmt: skip


@command()
@click.argument("log", metavar="LOG")
@click.option("--model", metavar="NAME", help="Model by catalog id, alias, Hugging Face id, or path of a config.json.")
@text_options(*ASKED)
@click.option("--context-tokens", "--context", "context_tokens", metavar="TOKENS", help="Tokens of a request: 16k.")
@click.option("--html", "html_file", metavar="FILE", help="Write the page as HTML, too.")
@common
def diagnose(
    log: str, html_file: str | None, as_json: bool, catalogs: tuple[str, ...], quiet: bool, **options: Any
) -> None:
    """Name the memory bill that overran in a serving LOG, how we know, and the flags to move (`-` reads stdin).

    Reads logs of vLLM, SGLang, TensorRT-LLM, NIM, TGI, LMDeploy and llama.cpp: plain, .gz, JSON lines, with the
    prefixes of Docker and Kubernetes. Where model and GPU are known, the sizing engine replays the configuration.

    \b
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
    from sheetgen.catalog import Catalog
    from sheetgen.diagnose.report import as_html, text
    from sheetgen.diagnose.report import diagnose as diagnosed

    if html_file is not None and _is_same_file(log, html_file):
        what = "is the log itself, which would be overwritten. Choose another place."
        raise ScenarioError(f"--html {shown(html_file, 200)}: {what}")
    found = diagnosed(log, options, Catalog(*catalogs))
    if html_file is not None:
        write_files({Path(html_file): as_html(found).encode()}, "Choose another place with --html.")
    if as_json:
        print_json(found.record())
    else:
        say(text(found))


def _is_same_file(log: str, html_file: str) -> bool:
    """Whether both are one file, by whatever name. A place that cannot be looked at is reported when it is read."""
    try:
        return log != "-" and Path(log).samefile(html_file)
    except (OSError, ValueError):
        return False
