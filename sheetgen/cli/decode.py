"""`sheetgen decode`: a vendor's benchmark claim read back."""

from __future__ import annotations

from typing import Any

import click

from sheetgen.cli.options import OF_ENGINE, command, common, text_options
from sheetgen.cli.output import print_json, say

LENGTHS = (
    ("input_tokens", "TOKENS", "Tokens of the claim's prompts. Default: not stated, the usual lengths are tried."),
    ("output_tokens", "TOKENS", "Tokens of its answers. Default: not stated."),
)
PRECISIONS = (
    ("weight_dtype",),
    ("kv_cache_dtype", "DTYPE", "Precision of the KV cache. Default: not stated, bf16 and fp8 are tried."),
)


@command()
@click.option(
    "--model", metavar="NAME", required=True, help="Model by catalog id, alias, Hugging Face id, or a config.json."
)
@click.option("--claim", metavar="TEXT", help="The claim as it was made; its numbers are read, and options win.")
@click.option("--gpu", metavar="NAME", help="GPU by id or alias.")
@click.option("--gpus", "--n-gpus", "n_gpus", metavar="NUMBER", help="How many of them the claim is about.")
@click.option("--tokens-per-second", metavar="NUMBER", help="Output tokens per second of all GPUs together.")
@click.option("--per-gpu", is_flag=True, default=None, help="The rate is of each GPU, not of all.")
@click.option("--concurrency", metavar="NUMBER", help="Requests in flight: concurrency, batch size, users.")
@text_options(*LENGTHS, *PRECISIONS, *OF_ENGINE)
@click.option("--tensor-parallel-size", metavar="NUMBER", help="Default: not stated, 1, 2, 4 and 8 are tried.")
@click.option("--context-tokens", "--context", "context_tokens", metavar="TOKENS", help="Your context: 16k, or 16384.")
@click.option("--users", metavar="NUMBER", help="Your requests in flight. Default: the claim's concurrency.")
@common
def decode(as_json: bool, catalogs: tuple[str, ...], quiet: bool, **options: Any) -> None:
    """Decode a benchmark claim: "12,000 tok/s at concurrency 512 on 8x H100".

    What context each request can have had and at which precision of the KV cache, how many requests really fit at
    once, whether the claim can be true, and what it would be at your context. All GPUs are laid out as replicas of
    TP 1, 2, 4 or 8 (with experts also data-parallel attention); layouts that waste half are not held against it.

    \b
    verdict     consistent: within the 80 % band of a reading     slower: below the fastest readings' bands
                unlikely: above every band                        impossible: above what perfect software reaches
                unknown: the GPU's speed is not published

    \b
    --json      claim, per_user, verdict, verdict_words, nearest (the reading that needs the least belief),
                longest_context_tokens (by KV precision), longest_context_words, capacity (by layout and KV precision),
                shapes (by lengths: verdict, nearest, readings), at_context (predicted, scaled_by_claim, readings),
                cautions (kind, words). A rate has its band under _low and _high.

    \b
    Examples:
      sheetgen decode --model 70b --weight-dtype fp8 --claim "12,000 tok/s at concurrency 512 on 8x H100" --context 16k
      sheetgen decode --model 70b --gpu h100 --gpus 8 --tokens-per-second 1500 --per-gpu --concurrency 512
      sheetgen decode --model gpt-oss-120b --claim "9k tok/s, 256 users, 4x H200, 1k/1k" --context 32k --users 100
    """
    from sheetgen.catalog import Catalog
    from sheetgen.decode import decoded

    answer = decoded(options, Catalog(*catalogs))
    if as_json:
        print_json(answer)
        return
    from sheetgen.cli.decode_text import text

    say(text(answer))
