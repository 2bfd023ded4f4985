"""Bytes that SGLang keeps of a token and a request (tests/data/sglang_oracle.csv) beside sheetgen's sizing, row by row.

python tests/sglang_oracle.py     writes docs/sglang-oracle.md

scripts/make_sglang_oracle.py made the file: SGLang's own model config and pool configurator. Equal is a row whose bytes
of a token in the pool of all tokens, of a token in that of windows, and of a request's states are all the engine's.
"""

from __future__ import annotations

from pathlib import Path

import numpy
import pandas
from vllm_oracle import ROUNDING, kind_of

from sheetgen.api import size_columns
from sheetgen.catalog import Catalog

ROOT = Path(__file__).parents[1]
ORACLE = ROOT / "tests" / "data" / "sglang_oracle.csv"
RULES = ROOT / "tests" / "data" / "sglang_oracle_rules.csv"
PAGE = ROOT / "docs" / "sglang-oracle.md"
TEXT = """\
# What SGLang keeps, and these

SGLang {version} was asked what it keeps of a token, and of a request's states, of {models} models: its own model config
and pool configurator, without weights or a GPU, at tensor-parallel sizes from 1 to 8, with a cache of `auto` and of
`fp8` on Hopper. [How to ask the next release](how-to/ask-the-engine.md).

Of {rows:,} rows {equal:,} are equal ({share}): bytes of a token on a GPU in the pool of all tokens, in that of windows
where it has one, and of the states of a request. {explained:,} differ by a rule that is named below and checked row by
row; {unexplained} otherwise. DeepSeek V4, which has six pools there, is not among them.

| Layers that cache | Models | Rows | Equal | By a rule | Otherwise |
|---|--:|--:|--:|--:|--:|
{table}

## Rules of the engine that are left out

{rules}
"""
FIGURES = ("token_bytes", "window_token_bytes", "state_bytes")


def sized_rows(asked: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """Sheetgen's figures for the rows that it sizes; it refuses heads that do not divide over the ranks, of which
    SGLang's configurator makes none. Windows without a pool of their own are kept as all other layers are."""
    same = ("model", "tensor_parallel_size", "kv_cache_dtype")
    columns = {name: asked[name].to_numpy() for name in same}
    fixed = {"engine": "sglang", "gpu": "h100", "context_tokens": 1024}
    columns |= {name: numpy.full(len(asked), value, object) for name, value in fixed.items()}
    sized = size_columns(columns | {"engine_version": asked["sglang"].to_numpy()}, len(asked), catalog)
    rows = asked.index[sized.points.good]
    names = (
        "shard_kv_bytes_per_token",
        "shard_windowed_bytes_per_token",
        "n_state_layers",
        "shard_state_bytes_per_layer",
    )
    values = {name: numpy.broadcast_to(sized.known[name], len(rows)) for name in names}
    own_pool = (asked.loc[rows, "configurator"] == "HybridSWAPoolConfigurator").to_numpy()
    token, window = values["shard_kv_bytes_per_token"], values["shard_windowed_bytes_per_token"]
    figures = (
        numpy.where(own_pool, token, token + window),
        numpy.where(own_pool, window, 0),
        values["n_state_layers"] * values["shard_state_bytes_per_layer"],
    )
    return pandas.DataFrame(dict(zip(FIGURES, figures, strict=True)), index=rows)


def rules() -> pandas.DataFrame:
    return pandas.read_csv(RULES, keep_default_na=False)


def compare(catalog: Catalog) -> pandas.DataFrame:
    """The engine's rows that sheetgen sizes, each with its kind, whether the figures are equal, and the rule by which
    they are not; `sized_` figures are sheetgen's."""
    asked = pandas.read_csv(ORACLE, dtype={"sglang": str})
    sized = sized_rows(asked, catalog)
    rows = asked.loc[sized.index].join(sized.add_prefix("sized_"))
    pairs = [(rows[name].to_numpy(), rows[f"sized_{name}"].to_numpy()) for name in FIGURES]
    equal = numpy.all([numpy.isclose(theirs, ours, rtol=ROUNDING, atol=0) for theirs, ours in pairs], axis=0)
    far = numpy.max([abs(theirs / numpy.where(ours == 0, 1, ours) - (ours > 0)) for theirs, ours in pairs], axis=0)
    names = pandas.Series("", rows.index)
    for rule in rules().itertuples():
        near = rows["model"].isin(str(rule.models).split()) & (far <= float(str(rule.within)))
        names = names.where(equal | ~near, str(rule.rule))
    kinds = {model: kind_of(catalog, model) for model in rows["model"].unique()}
    return rows.assign(equal=equal, rule=names, kind=rows["model"].map(kinds))


def oracle_page(rows: pandas.DataFrame) -> str:
    explained = rows["rule"] != ""
    table = []
    for kind, part in rows.groupby("kind"):
        ruled = (part["rule"] != "").sum()
        other = len(part) - part["equal"].sum() - ruled
        table.append(
            f"| {kind} | {part['model'].nunique()} | {len(part)} | {part['equal'].sum()} | {ruled} | {other} |"
        )
    told = []
    for rule in rules().itertuples():
        part = rows[rows["rule"] == rule.rule]
        models = ", ".join(sorted(part["model"].unique()))
        told.append(f"- **{rule.rule}** ({models}: {len(part)} rows): {rule.reason} Source: {rule.source}.")
    return TEXT.format(
        version=rows["sglang"].iloc[0],
        models=rows["model"].nunique(),
        rows=len(rows),
        equal=rows["equal"].sum(),
        share=f"{rows['equal'].mean():.1%}",
        explained=explained.sum(),
        unexplained=(~rows["equal"] & ~explained).sum(),
        table="\n".join(table),
        rules="\n".join(told),
    )


if __name__ == "__main__":
    PAGE.write_text(oracle_page(compare(Catalog())), encoding="utf-8")
