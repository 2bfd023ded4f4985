"""Options that several commands share. All values stay text here: `scenario` reads them and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

DTYPES = "auto bf16 fp16 fp32 fp8 fp8_e5m2 int8 int4 nvfp4 mxfp4"
# long name, metavar, help; every command that takes one of these takes it with the same words
PRECISION = (
    ("weight_dtype", "DTYPE", f"Precision of the weights: {DTYPES}. Default auto, the checkpoint's own."),
    (
        "kv_cache_dtype",
        "DTYPE",
        "Precision of the KV cache, the same words. Default auto, 16 bits for most models.",
    ),
)
ENGINE = (
    ("engine", "NAME", "Serving engine. Default vllm."),
    (
        "engine_version",
        "VERSION",
        "Its version, whose accounting rules hold; a build's own name (nightly, gpt-oss-dev) is the newest.",
    ),
    ("gpu_memory_utilization", "SHARE", "Share of the memory that the engine may use. Default: the engine's."),
    ("block_size", "TOKENS", "Tokens in a block of the KV cache. Default 16."),
    ("kv_allocation", "HOW", "paged, or reserved: every request is charged max_model_len. Default paged."),
    ("average_context_fraction", "SHARE", "Share of the context that is filled on average. Default 1."),
    (
        "prefix_cache_hit_fraction",
        "SHARE",
        "Share of the prompt that is found in the prefix cache. Default 0.",
    ),
)
SPLIT = (
    (
        "input_tokens",
        "TOKENS",
        "Tokens of the prompt. Default: the context less 1,024, or half of a small one.",
    ),
    ("output_tokens", "TOKENS", "Tokens of the answer. Default: the rest of the context."),
)
MARKET = (
    ("gpus", "NAMES", "Only instances with these GPUs: h100,l40s."),
    ("providers", "NAMES", "Only these providers, or all. Default aws,azure,gcp."),
    ("instances", "NAMES", "Only these instances: aws/p5.48xlarge."),
    ("region", "TEXT", "Only regions that contain this text."),
    (
        "purchase",
        "CLASS",
        "on-demand, reserved-1yr, reserved-3yr, spot or capacity-block. Default on-demand.",
    ),
    ("active_fraction", "SHARE", "Share of the users with a request in flight at the peak. Default 1."),
    ("extra_headroom_fraction", "SHARE", "Room to leave above the load. Default 0."),
    ("spare_replicas", "NUMBER", "Replicas beyond those that the load needs (N+1). Default 0."),
    ("hours_per_month", "HOURS", "Hours that a month is billed. Default 730."),
    ("discount_fraction", "SHARE", "What your contract takes off every rental price, of any class. Default 0."),
    ("as_of", "DATE", "Day from which the age of prices counts. Default today (UTC), or SOURCE_DATE_EPOCH."),
)
TARGETS = (
    (
        "tpot_ms",
        "MS",
        "Time per output token to size for: 40, off, or chat=40,rag=off. Default 50; 100 for long-doc and above 16k.",
    ),
    ("ttft_ms", "MS", "Time to first token to size for, too: 2000, or rag=2000. Default: shown, not asked for."),
    (
        "speed_factor",
        "FACTOR",
        "What every predicted time per output token is multiplied by, as one measured point set it right "
        "(size --anchor). Default 1.",
    ),
    ("ttft_factor", "FACTOR", "The same for the time to the first token. Default 1."),
)
MONEY = (
    ("utilization", "SHARE", "Share of the hours in which the hardware does its load, for $ per token. Default 0.7."),
    ("contingency_fraction", "SHARE", "Contingency, in a line of its own under the sums. Default 0."),
    ("currency", "CODE", "Currency of the totals, such as EUR; needs --fx-rate. Default USD."),
    ("fx_rate", "RATE", "How many of that currency one US dollar is."),
    ("fx_date", "DATE", "Day of that rate. Default: the sheet's date."),
    (
        "capex_usd_per_gpu",
        "AMOUNTS",
        "Your quote for owning, of one GPU as installed: 39375, or h100=39375,b200=60000. Default: street prices.",
    ),
    ("kw_per_gpu", "AMOUNTS", "Its power with the server and the cooling, in kW: 1.7, or h100=1.7."),
    ("owned_years", "YEARS", "Years that an owned GPU is used. Default 5."),
    ("residual_fraction", "SHARE", "What it is worth at the end, of its purchase. Default 0."),
    ("cost_of_capital_fraction", "SHARE", "Cost of capital a year. Default 0."),
    ("support_fraction", "SHARE", "Support and maintenance a year, of the purchase. Default 0."),
    ("installed_multiplier", "FACTOR", "Price installed over the price of the GPU module. Default 1.54."),
    ("system_power_multiplier", "FACTOR", "Power of a server over the rated power of its GPUs. Default 1.79."),
    ("usd_per_kwh", "AMOUNT", "Electricity. Default 0.08."),
    ("pue", "FACTOR", "Power of the site over the power of its machines. Default 1.54."),
    ("colo_usd_per_kw_month", "AMOUNT", "Rent of the site by the kW and month, without power. Default 194.95."),
)
SHEET = (
    ("models", "NAMES", "Models by catalog id, alias or Hugging Face id: 8b,70b,405b."),
    ("workloads", "NAMES", "Up to three of `sheetgen list workloads`. Default chat,rag,long-doc."),
    ("contexts", "LIST", "Other contexts for them, such as rag=32k,chat=8k (prompt and answer together)."),
    ("tiers", "NUMBERS", "One to four numbers of requests in flight. Default 1,32,128,1024."),
    ("headline", "LOAD", "The load of the large answer per model. Default rag:32."),
    ("units", "UNIT", "gib or gb. Default gib."),
    ("paper", "SIZE", "a4 or letter. Default a4."),
)
PACE = (
    (
        "requests_per_second",
        "RATE",
        "Requests that arrive in a second, whoever was answered: says where their queue grows without bound.",
    ),
    (
        "anchor",
        "POINT",
        "One measured point of this model, GPU, engine, precision and parallel sizes: name=value, by commas, of "
        "concurrent_requests, input_tokens, output_tokens, tpot_ms and, if measured, ttft_ms; or a JSON or YAML file.",
    ),
    ("speed_factor", "FACTOR", "What --anchor works out: measured over predicted time per output token. Default 1."),
    ("ttft_factor", "FACTOR", "The same for the time to first token. Default 1."),
)
DEPLOYMENT = (
    ("gpu", "NAME", "GPU by id or alias. Default h100."),
    *PRECISION,
    ("tensor_parallel_size", "NUMBER", "Default 1."),
    ("pipeline_parallel_size", "NUMBER", "Default 1."),
    ("data_parallel_size", "NUMBER", "Default 1. A replica has TP x PP x DP GPUs."),
    ("expert_parallel_size", "NUMBER", "Default 1. Adds no GPUs."),
    *ENGINE,
    ("max_model_len", "TOKENS", "Longest context that the engine admits. Default: the context."),
    ("max_num_seqs", "NUMBER", "Most requests in one batch. Default: the engine's own on this GPU."),
    ("max_num_batched_tokens", "TOKENS", "Most tokens in one step. Default: the engine's own on this GPU."),
    *SPLIT,
    ("draft_model", "NAME", "Draft model for speculative decoding."),
    ("enable_prefix_caching", "0|1", "0 where prefixes are not kept: recurrent layers then take one block less."),
    ("hybrid_kv_manager", "0|1", "1 where the engine keeps windows and states apart. Default: the engine's own."),
    *PACE,
)


def text_options(*rows: tuple[str, str, str]) -> Callable[[F], F]:
    """`--long-name METAVAR` for each row."""

    def wrap(function: F) -> F:
        for name, metavar, about in reversed(rows):
            flag = "--" + name.replace("_", "-")
            function = click.option(flag, name, metavar=metavar, help=about)(function)
        return function

    return wrap


def load_options(function: F) -> F:
    """The load of one point: context and requests, each with its short spelling."""
    users = ("--concurrent-requests", "--users", "concurrent_requests")
    context = ("--context-tokens", "--context", "context_tokens")
    function = click.option(*users, metavar="NUMBER", help="Requests in flight on the replica. Default 1.")(function)
    return click.option(*context, metavar="TOKENS", help="Tokens of a request: 16k, or 16384. Default 4096.")(function)


def brand_option(function: F) -> F:
    """A company's template, for the commands that draw a workbook or a PDF."""
    about = "Your company's name, logo, colours and footer line, for workbook and PDF; see templates/brand/."
    return click.option("--brand", metavar="FILE.yaml", help=about)(function)


def common(function: F) -> F:
    """What every command takes."""
    function = click.option("--quiet", "-q", is_flag=True, help="No notes, only the result.")(function)
    function = click.option(
        "--catalogs",
        multiple=True,
        metavar="DIR",
        help="A folder that adds to the catalogs or overrides them.",
    )(function)
    return click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout.")(function)
