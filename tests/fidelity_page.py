"""docs/fidelity.md: what tests/fidelity.py compared, as a short page."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterable, Iterator

import pandas
from fidelity import BYTES, FIGURES, TOKENS_WITHIN, Fidelity, bands, summary
from fidelity_fit import shipped
from fidelity_left_out import source_of
from fidelity_scoreboard import lines_of
from measured_rows import DATA, tuples

from sheetgen.units import GIB

N_WORST = 5  # of the runs
MISSED = 0.03  # a log whose pool is further off has its reason
WIDTH = 120
WORDS = ("Scope", "Wanted", "Why", "Rules since", "What changed")  # columns of text
SMALL = ("activations", "non-torch", "CUDA graphs")  # shares of little say little
SCOPES = {
    "calibrated": "runs on H100, held out", "shared": "other logs, memory shared with the host",
    "cards": "other logs, GPUs without HBM",
    "other": "all other logs",
}  # fmt: skip


def reasons() -> dict[str, str]:
    """Why a row is off, by its id."""
    with (DATA / "reasons.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row["reason"] for row in csv.DictReader(file)}


def worst(fidelity: Fidelity) -> pandas.DataFrame:
    """The rows whose pool is furthest off, as a share: of the runs (held out), then all logs that miss it."""
    parts = []
    for lines in (fidelity.held_out, fidelity.pools):
        pools = lines[lines["figure"] == "KV pool"]
        parts.append(pools.loc[pools["relative"].abs().sort_values(ascending=False, kind="stable").index])
    runs, logs = parts
    return pandas.concat([runs[:N_WORST], logs[logs["relative"].abs() > MISSED]])


def document(fidelity: Fidelity) -> str:
    lines = [
        "# How near sheetgen comes to real engines",
        "",
        "What `sheetgen size` computes, beside what engines printed:",
        f"{len(fidelity.h100)} runs of vLLM on H100 that print every part, and {len(fidelity.logs)} public "
        "start-up logs of\n"
        "vLLM, SGLang and TensorRT-LLM. Held out: the runs of a model are predicted with constants fitted without it.",
        "Errors are prediction less log; median and mean are of their size.",
        "",
        *_scoreboard(fidelity),
        *_runs(fidelity),
        *_tokens(fidelity),
        *_pools(fidelity),
        *_left_one_out(fidelity),
        *_worst(fidelity),
        *_fitted(fidelity),
        *_bands(fidelity),
        *_left_out(fidelity),
    ]
    made = "Made by `python tests/fidelity.py` from tests/data/measured; held to the code by `tests/test_fidelity.py`."
    return "\n".join([*lines, made]) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    rule = ["---" if i == 0 or name in WORDS else "---:" for i, name in enumerate(head)]
    return [_line(head), _line(rule), *(_line(row) for row in rows), ""]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def _percent(value: float, places: int = 2) -> str:
    text = f"{100 * value:+.{places}f}"
    return ("0" if float(text) == 0 else text) + " %"


def _size(value: float) -> str:
    return f"{100 * value:.2f} %"


def _gib(value: float) -> str:
    text = f"{value:+.2f}"
    return ("0" if float(text) == 0 else text) + " GiB"


def _by(rows: pandas.DataFrame, column: str) -> Iterator[tuple[str, pandas.Series]]:
    """The errors of the rows that have the same in one column."""
    return ((str(name), part["relative"]) for name, part in rows.groupby(column))


def _summaries(name: str, errors: pandas.Series) -> list[str]:
    s = summary(errors)
    return [
        name,
        f"{s['n']:.0f}",
        _percent(s["bias"]),
        _size(s["median"]),
        _size(s["mae"]),
        _percent(s["worst"]),
    ]


def _scoreboard(fidelity: Fidelity) -> list[str]:
    text = _wrapped(
        "All runs and logs, each predicted without its own model or source, the cases among them that were shown after "
        "all constants were set and decide none. A start fits where its pool holds one request of max_model_len."
    )
    return ["## The scoreboard", "", *text, "", *_table(("Figure", "Value", "Logs", "Wanted"), lines_of(fidelity))]


def _runs(fidelity: Fidelity) -> list[str]:
    rows = []
    for figure in FIGURES:
        inside, outside = (x[x["figure"] == figure] for x in (fidelity.in_sample, fidelity.held_out))
        s, gib = summary(outside["relative"]), summary(outside["error"])
        shares = [_size(inside["relative"].abs().mean()), _size(s["mae"]), _size(s["median"])]
        shares += [_percent(s["bias"]), _percent(s["worst"])]
        sizes = [f"{inside['error'].abs().mean():.3f}", f"{gib['mae']:.3f}", _gib(gib["worst"])]
        dashes = ["–"] * 5
        rows.append(
            [figure, *(dashes if figure in SMALL else shares), *(sizes if figure in BYTES else dashes[: len(sizes)])]
        )
    head = ("Figure", "Mean in-sample", "held out", "Median", "Bias", "Worst", "GiB in-sample", "held out", "Worst")
    out = [f"## {len(fidelity.h100)} runs of vLLM 0.19 on H100", "", *_table(head, rows)]
    stages = fidelity.smallest_stage
    out += [
        "The two runs with pipeline stages logged the activations and the pool of a stage without the output head;",
        "they are compared with such a stage. Their tokens follow from the smallest stage, the one with the head: the",
        "pool that those tokens take and the one predicted for that stage differ by "
        + " and ".join(_percent(value) for value in stages["relative"])
        + ".",
        "",
        "By model family, held out, KV pool:",
        "",
    ]
    pools = fidelity.held_out[fidelity.held_out["figure"] == "KV pool"]
    families = ("Family", "Rows", "Bias", "Median", "Mean", "Worst")
    return [*out, *_table(families, (_summaries(*part) for part in _by(pools, "family")))]


def _tokens(fidelity: Fidelity) -> list[str]:
    all_of, missed = fidelity.tokens, fidelity.misses
    within = 1 - len(missed) / len(all_of)
    head = ("Engine", "Rows", "Within 1 %", "Bias", "Median", "Worst")
    rows = []
    for name, part in all_of.groupby("system"):
        s = summary(part["relative"])
        near = (part["relative"].abs() <= TOKENS_WITHIN).sum()
        rows.append(
            [str(name), f"{s['n']:.0f}", f"{near}", _percent(s["bias"]), _size(s["median"]), _percent(s["worst"])]
        )
    why = reasons()
    return [
        "## Tokens from the logged pool",
        "",
        "From the pool that a log states, the tokens that sheetgen prints, by its rules of blocks and groups:",
        f"{len(all_of)} logs, {within:.1%} of them within 1 %.",
        "",
        *_table(head, rows),
        "A group of recurrent layers is counted here at two state blocks a sequence from 0.21 on (one before), and at",
        "one more for each drafted token, whose convolution state is longer too: blocks of 1600, 2848 and 8432 tokens",
        "in the logs say so to the token.",
        "",
        "Further off than 1 %:",
        "",
        *(f"- `{row.id}` ({_percent(row.relative, 1)}): {why.get(row.id, '')}" for row in tuples(missed)),
        "",
    ]


def _pools(fidelity: Fidelity) -> list[str]:
    lines = fidelity.pools[fidelity.pools["figure"] == "KV pool"]
    head = ("Engine and version", "Rows", "Bias", "Median", "Mean", "Worst")
    out = [
        "## Pools of the public logs",
        "",
        "The whole way from arguments to pool, where utilization, GPU and model are known. What a log does not state",
        "is the engine's default, also its version; what was assumed beyond that stands in",
        "tests/data/measured/engine_logs_rows.csv. Of a log that prints tokens and no pool it is the pool that they",
        "take.",
        "Some constants of other versions come from these logs, so this is not held out.",
        "",
        *_table(head, (_summaries(*part) for part in _by(lines, "system"))),
    ]
    rows = (_summaries(name.removeprefix("nvidia-"), errors) for name, errors in _by(lines, "gpu_id"))
    out += _table(("GPU", *head[1:]), [*rows, _summaries("**all**", lines["relative"])])
    parts = []
    for figure in ("weights", "activations", "non-torch"):
        part = fidelity.pools[fidelity.pools["figure"] == figure]
        s = summary(part["error"])
        parts.append([figure, f"{s['n']:.0f}", _gib(s["bias"]), f"{s['median']:.2f} GiB", _gib(s["worst"])])
    return [*out, "Parts, where the log prints them:", "", *_table(("Part", "Rows", "Bias", "Median", "Worst"), parts)]


def _left_one_out(fidelity: Fidelity) -> list[str]:
    tokens, pools = fidelity.left_out
    lines = pools[pools["figure"] == "KV pool"]
    plain = fidelity.pools[fidelity.pools["figure"] == "KV pool"].set_index("id")["relative"]
    within = (tokens["relative"].abs() <= TOKENS_WITHIN).mean()
    moved = lines[(lines["relative"] - lines["id"].map(plain)).abs() > 1e-9]
    why = reasons()
    rows = [
        [f"`{row.id}`", _percent(plain[row.id]), _percent(row.relative), why.get(f"{row.id} left out", "")]
        for row in tuples(moved)
    ]
    return [
        "## Leave one source out",
        "",
        *_wrapped(
            "The same with all that was calibrated on public logs set again, by code, without the logs of the same "
            "source, which are then predicted. A source is a repository, a thread or a file: there are "
            f"{fidelity.logs['source'].map(source_of).nunique()}."
        ),
        "",
        f"- Tokens from the logged pool are within 1 % on {within:.1%} of {len(tokens)} logs; no calibrated constant",
        "  takes part in them.",
        f"- The pool's median error is {_size(lines['relative'].abs().median())} of {len(lines)}.",
        "",
        *_wrapped(
            "Which constants these are, and their logs, is in tests/data/measured/calibrated_on.csv: memory outside "
            "torch up to 0.16 and of older GPUs, what CUDA graphs are estimated at by layer and batch size, what a "
            "cold start holds (a pattern of four logs, three of them here, not read in code), and of TensorRT-LLM "
            "memory outside torch and hidden copies. Pools that move:"
        ),
        "",
        *_table(("Row", "Error", "Left out", "Why"), rows),
        *_wrapped(
            "Not set again by code: memory outside torch of vLLM 0.11 on H100, and at TP 2 and 4 before it (their logs "
            "are not among these), of TensorRT-LLM at TP 2 to 8 from 0.18 on (assumed), SGLang's context (its pools "
            "are not predicted here), and GB10's 121.63 GiB, which logs of three sources print. Those of vLLM from "
            "0.17 on are of the runs on H100, which are held out by model above; the logs take no part in them."
        ),
        "",
    ]


def _worst(fidelity: Fidelity) -> list[str]:
    why = reasons()
    rows = [
        [f"`{row.id}`", _percent(row.relative, 1), _gib(row.error), why.get(row.id, "")]
        for row in tuples(worst(fidelity))
    ]
    words = f"Five of the runs, held out, and every log whose pool is further off than {100 * MISSED:.0f} %."
    out = ["## The worst pools", "", words, ""]
    return [*out, *_table(("Row", "Error", "Error", "Why"), rows)]


def _fitted(fidelity: Fidelity) -> list[str]:
    rows = [
        [f"`{name}`", f"{value:g}", f"{fidelity.constants[name]:.3f}"]
        for name, value in shipped(fidelity.catalog).items()
    ]
    return [
        "## What was fitted",
        "",
        f"Each is a median over models, from the {len(fidelity.h100)} runs "
        f"({fidelity.h100['model_id'].nunique()} models):",
        "`matmul_workspace_gib` from text models whose peak is the sampler, `forward_hidden_copies` from runs whose",
        "peak is the forward pass, `non_torch_gib` by TP. The rest follows from shapes. TP 8 was not measured.",
        "",
        *_table(("Constant (vLLM 0.17 to 0.19)", "Shipped", "Fit"), rows),
    ]


def _bands(fidelity: Fidelity) -> list[str]:
    out = [
        "## Error bands",
        "",
        *_wrapped(
            "Measured less predicted: from the tenth to the ninetieth of a hundred models, and the prediction itself. "
            "Inside: rows that the band holds which was made without their model (of the runs) or source (of the "
            "logs). Where these were fewer than 80 % (to the nearest row), all bands of the figure are wider at both "
            "ends by the least share of their width at which they are 80 %. On GPUs whose memory is the host's, too, "
            "what is free varies by gigabytes with all that runs on the machine. Of vLLM alone, and of logs that name "
            "their release."
        ),
        "",
    ]
    rows = [
        [
            figure,
            SCOPES[scope],
            _end(figure, band.low),
            _end(figure, band.high),
            " to ".join(dict.fromkeys(band.releases)),
            f"{band.n_rows}",
            f"{band.n_groups}",
            f"{band.plain}",
            f"{band.wider:.0%}",
            f"{band.inside} ({band.inside / band.n_rows:.0%})",
        ]
        for scope, by_figure in bands(fidelity).items()
        for figure, band in by_figure.items()
    ]
    head = ("Figure", "Scope", "From", "To", "Releases", "Rows", "Groups", "Inside", "Wider by", "Inside then")
    return [*out, *_table(head, rows)]


def _end(figure: str, value: float) -> str:
    return _percent(value) if figure == "weights" else _gib(value / GIB)


def _left_out(fidelity: Fidelity) -> list[str]:
    none = fidelity.logs[fidelity.logs["use"] == "none"]
    part = fidelity.logs[fidelity.logs["use"] == "tokens"]
    grouped = none.groupby("reason", sort=False)["id"]
    return [
        "## What is left out, and what is still wrong",
        "",
        *(f"- {', '.join(f'`{name}`' for name in ids)}: {why}." for why, ids in grouped),
        f"- {len(part)} logs are held to their tokens alone: their share, GPU or checkpoint is not in the log, or the",
        "  engine's pool is not predicted.",
        "- Weights of checkpoints that leave other layers in 16 bits than usual are off by what those layers weigh.",
        "",
    ]
