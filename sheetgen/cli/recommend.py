"""`sheetgen recommend`: the cheapest instances that hold one load, the runner-up, and why not the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import ANSWER, command, common, text_options
from sheetgen.cli.output import print_json, say, table

if TYPE_CHECKING:
    from sheetgen.recommend import Solution

SHOWN = 8  # reasons against others; --all shows every one


@command()
@click.option("--model", metavar="NAME", required=True,
              help="Model by catalog id, alias, Hugging Face id, or path of a config.json.")  # fmt: skip
@click.option("--context-tokens", "--context", "context_tokens", metavar="TOKENS", help="16k, or 16384. Default 4096.")
@click.option("--users", metavar="NUMBER", help="People to serve, any number. Default 1.")
@text_options("split", *ANSWER)
@click.option("--all", "show_all", is_flag=True, help="Every reason against another instance, not only eight.")
@common
def recommend(as_json: bool, catalogs: tuple[str, ...], quiet: bool, show_all: bool, **options: Any) -> None:
    """The question people ask: which instance, how many, $ a month, and why not the others.

    \b
    Examples:
      sheetgen recommend --model 70b --context 16k --users 200
      sheetgen recommend --model 405b --context 128k --users 32 --weight-dtype fp8 --providers aws
      sheetgen recommend --model 8b --users 1000 --active-fraction 0.1 --json
    """
    from sheetgen.api import recommend_record, recommended
    from sheetgen.catalog import Catalog

    solved = recommended(options, Catalog(*catalogs))
    if as_json:
        print_json(recommend_record(solved, options))
    else:
        say(_answer(solved, None if show_all else SHOWN))


def _answer(solved: Solution, limit: int | None) -> str:
    """The answer, what changes would buy, then the alternatives: by price, else by time, then memory."""
    from sheetgen.cli.words import headline, lever_lines, memory_line, money_lines
    from sheetgen.recommend import why_not

    question, choice = solved.question, solved.choices[0]
    cell, model = question.loads[0], question.models[0]
    lines = [
        f"{model.model.name}, {cell.concurrent_requests:,} in flight at {cell.context_tokens:,} tokens "
        f"(weights {model.weight_dtype}, KV cache {model.kv_cache_dtype})", "",
        headline(solved, 0, with_budget=False), *memory_line(solved, 0), *money_lines(solved, 0), "",
    ]  # fmt: skip
    if changes := lever_lines(solved, 0):
        lines += ["WHAT ONE CHANGE BUYS", *changes, ""]
    reasons = why_not(solved, 0)
    nearest = sorted(reasons, key=lambda pair: pair[1].distance)
    shown = nearest if limit is None else nearest[:limit]
    lines.append("WHY NOT" + ("" if choice.offer is None else " THE OTHERS"))
    rows = [("  " + instance, reason.words) for instance, reason in shown]
    lines.append(table(rows[0], rows[1:]) if rows else "  there is no other candidate")
    if len(shown) < len(reasons):
        lines.append(f"  and {len(reasons) - len(shown)} more: --all shows them")
    left_out = "; ".join(f"{count} {reason}" for reason, count in question.left_out)
    if left_out:
        lines += ["", f"Catalog rows left out: {left_out}."]
    return "\n".join(lines)
