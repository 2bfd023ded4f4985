"""A decoded claim as a person reads it: the verdict first, then what fits, what each length gives, and your context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.cli.output import table
from sheetgen.decode.answer import rounded

Record = Mapping[str, Any]


def text(answer: Record) -> str:
    claim = answer["claim"]
    parts = [
        _head(claim, answer["per_user"]),
        f"VERDICT  {answer['verdict_words']}",
        "\n".join(["WHAT FITS AT ONCE", answer["longest_context_words"], *_capacity(answer)]),
    ]
    if any(one["nearest"] for one in answer["shapes"]):
        rows = [
            (f"  {_lengths(shape)}", *_reading(one), rounded(one["ceiling_tokens_per_second"]), one["verdict"])
            for shape in answer["shapes"]
            for one in shape["nearest"]
        ]
        head = ("  input + output", *_READING, "ceiling", "the claim")
        parts += [
            "\n".join(["WHAT EACH LENGTH GIVES", table([head, *rows], right=(3, 4, 5, 6, 8), optional=(8, 4)), _FIT])
        ]
    if answer["at_context"]:
        parts.append(_at_context(answer["at_context"]))
    if answer["cautions"]:
        parts.append("\n".join(["CAUTION", *(f"  {one['words']}" for one in answer["cautions"])]))
    return "\n\n".join([*parts, _taken(claim)])


def _head(claim: Record, user: Record) -> str:
    lengths = [f"{claim[f'{name}_tokens']:,} {name}" for name in ("input", "output") if claim[f"{name}_tokens"]]
    per = {"all": "", "gpu": " of each GPU", "node": " of each node of 8", "user": " of each user"}[claim["stated_per"]]
    stated = f"{claim['stated_tokens_per_second']:,.10g} tokens/s{per}"
    total = f", {rounded(claim['tokens_per_second'])} in all" if per else ""
    each = f"{rounded(user['tokens_per_second'])} tokens/s, one every {_ms(user['seconds_per_token'])}, waits included"
    return (
        f"CLAIM    {stated}{total} at concurrency {claim['concurrency']:,}"
        f"{', ' + ' and '.join(lengths) + ' tokens' if lengths else ''}:\n"
        f"         {claim['model']} with weights in {claim['weight_dtype']} on {claim['n_gpus']:,}x {claim['gpu']}\n"
        f"         {rounded(claim['tokens_per_second_per_gpu'])} tokens/s per GPU; each user gets {each}\n"
        f"         {user['words']}"
    )


def _capacity(answer: Record) -> list[str]:
    """By layout and precision that hold anything: the longest context for all, and how many of each length fit."""
    capacity, shapes = [one for one in answer["capacity"] if one["kv_pool_bytes_per_gpu"]], answer["shapes"]
    if not capacity:
        return []
    fit = {
        (one["layout"], one["kv_cache_dtype"], i): one["requests_that_fit"]
        for i, shape in enumerate(shapes)
        for one in shape["readings"]
    }
    full = capacity[0]["full_context_tokens"]
    head = ("  layout", "KV", f"tokens of {answer['claim']['concurrency']:,}", *map(_lengths, shapes), f"{full:,}")
    rows = [
        (
            f"  {one['layout']}",
            one["kv_cache_dtype"],
            f"{one['longest_context_tokens']:,}" if one["longest_context_tokens"] else "none",
            *(f"{fit.get((one['layout'], one['kv_cache_dtype'], i), 0):,}" for i in range(len(shapes))),
            f"{one['requests_at_full_context']:,}",
        )
        for one in capacity
    ]
    return [
        "Requests that fit, each at its full length:",
        table([head, *rows], right=range(2, len(head)), optional=[2]),
    ]


_FIT = "By length and KV precision the reading nearest to the claim. fit: at full length; run: at their average length."
_READING = ("KV", "layout", "fit", "run, wait", "TPOT", "tokens/s", "80 % band")


def _reading(one: Record) -> tuple[str, ...]:
    low, high = (rounded(one[f"output_tokens_per_second_{end}"]) for end in ("low", "high"))
    run = f"{one['running_requests']:,}, {one['waiting_requests']:,}"
    rate = rounded(one["output_tokens_per_second"])
    return (
        one["kv_cache_dtype"],
        one["layout"],
        f"{one['requests_that_fit']:,}",
        run,
        _ms(one["tpot_seconds"]),
        rate,
        f"{low} to {high}",
    )


def _at_context(at: Record) -> str:
    """Every layout that holds the asker's context, the fastest first; then the claim's own, scaled by it."""
    holding = (one for one in at["readings"] if one["output_tokens_per_second"] is not None)
    fastest = sorted(holding, key=lambda one: -one["output_tokens_per_second"])
    rows = [("  predicted", *_reading(one), _ms(one["ttft_seconds"])) for one in fastest]
    if scaled := at["scaled_by_claim"]:
        rows.append((f"  x {scaled['factor']:.2f}, by the claim", *_reading(scaled), _ms(scaled["ttft_seconds"])))
    head = f"AT YOUR CONTEXT  {at['context_tokens']:,} tokens, {at['users']:,} at once"
    shown = [table([("  ", *_READING, "TTFT"), *rows], right=(3, 4, 5, 6, 8), optional=(4,))] if rows else []
    return "\n".join([head, at["words"], *shown])


def _taken(claim: Record) -> str:
    """What was taken where the claim is silent."""
    kv = " and ".join(claim["kv_cache_dtypes"])
    read = ", ".join(f"{name} {value}" for name, value in claim["read_from_text"].items())
    lines = [f"Read from the claim: {read}."] if read else []
    size = claim["tensor_parallel_size"]
    lines.append(
        f"Read with {claim['engine']} {claim['engine_version']}, weights in {claim['weight_dtype']}, KV in {kv},"
        f" {'all layouts' if size is None else f'TP {size}'}; bands: docs/speed.md."
    )
    if claim["gpu_memory_utilization_is_raised"]:
        share = f"{claim['gpu_memory_utilization']:.0%}"
        lines.append(f"The engine's default share of memory holds nothing: read with {share} of it.")
    return "\n".join(lines)


def _lengths(shape: Record) -> str:
    return f"{shape['input_tokens']:,} + {shape['output_tokens']:,}"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms" if seconds < 1 else f"{seconds:,.1f} s"
