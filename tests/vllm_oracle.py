"""vLLM's own plans of the KV cache (tests/data/vllm_oracle.csv) beside sheetgen's sizing, row by row.

python tests/vllm_oracle.py     writes docs/vllm-oracle.md

scripts/make_vllm_oracle.py made the file: model classes of vLLM, built from published configs on the meta device, and
its planner. Equal is a row whose bytes of a block, blocks of a request, blocks of a pool and concurrency are all the
engine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pandas

from sheetgen.api import size_columns
from sheetgen.catalog import Catalog
from sheetgen.sizing import memory
from sheetgen.units import SAME_SIZE

ROOT = Path(__file__).parents[1]
ORACLE = ROOT / "tests" / "data" / "vllm_oracle.csv"
KV_ORACLE = ROOT / "tests" / "data" / "vllm_oracle_kv.csv"  # of other precisions, and what the engine refuses
PAGES = ROOT / "tests" / "data" / "kv_page_bytes.csv"  # of a layer by vLLM's backends (customize_spec)
RULES = ROOT / "tests" / "data" / "vllm_oracle_rules.csv"
PAGE = ROOT / "docs" / "vllm-oracle.md"
CONFIGS = ROOT / "tests" / "data" / "configs"
TEXT = """\
# vLLM's own plans, and these

vLLM {version} was asked what it plans for the KV cache of {models} models on H100: its model classes, built from their
config.json without weights or a GPU, say what each layer keeps, and its planner makes groups, blocks and concurrency
of that, at tensor-parallel sizes from 1 to 8, for 4,608 and 32,768 tokens and the longest context, with a cache of
`auto` and of `fp8`. [How to ask the next release](how-to/ask-the-engine.md).

Of {rows:,} plans {equal:,} are equal ({share}): bytes of a block, blocks and bytes of a request on a GPU, blocks of a
pool, and concurrency. {explained:,} differ by a rule that is named below and checked row by row; {unexplained}
otherwise.

| Layers that cache | Config | Models | Plans | Equal | By a rule | Otherwise |
|---|---|--:|--:|--:|--:|--:|
{table}

## Rules of the engine that are left out

{rules}
"""
ROUNDING = 1e-9  # both divide whole numbers, in another order
FIGURES = {  # the engine's column: the quantity of sheetgen that is the same
    "block_bytes": "kv_block_bytes",
    "blocks_per_request": "full_kv_blocks_per_sequence",
    "bytes_per_request": "kv_bytes_per_sequence_per_gpu",
    "num_blocks": "n_kv_blocks",
    "max_concurrency": "max_concurrency",
}


def engine_plans(path: Path = ORACLE) -> pandas.DataFrame:
    return pandas.read_csv(path, dtype={"vllm": str})


def sized_plans(plans: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """Sheetgen's figures for the same deployments, with the engine's pool. Raises ValueError where one is refused."""
    same = ("model", "gpu", "tensor_parallel_size", "kv_cache_dtype", "max_model_len")
    asked = {name: plans[name].to_numpy() for name in same}
    asked["kv_cache_dtype"] = plans["kv_cache_dtype"].replace(SAME_SIZE).to_numpy()
    asked |= {"context_tokens": asked["max_model_len"], "engine_version": plans["vllm"].to_numpy()}
    sized = size_columns(asked, len(plans), catalog)
    if len(sized.points.good) < len(plans):
        raise ValueError("\n".join(sorted({str(error) for error in sized.points.errors if error})))
    values = {name: sized.known[name] for name in ("kv_block_bytes", "full_kv_blocks_per_sequence", "n_kv_groups")}
    values["kv_bytes_per_sequence_per_gpu"] = values["full_kv_blocks_per_sequence"] * values["kv_block_bytes"]
    values["n_kv_blocks"] = memory.n_kv_blocks.of(
        {**values, "kv_pool_bytes_per_gpu": plans["pool_bytes"].to_numpy(float), "stage_fraction": 1}
    )
    values["max_concurrency"] = memory.max_concurrency.of(values)
    return pandas.DataFrame({name: numpy.broadcast_to(column, len(plans)) for name, column in values.items()})


def kind_of(catalog: Catalog, model: str) -> str:
    """The kinds of a model's layers that cache something: full + windowed."""
    kinds = {group.kind for group in catalog.model(model).attention} - {"no_cache"}
    return " + ".join(sorted(kinds))


def published_models() -> set[str]:
    """Models whose config in tests/data/configs is the published one, not put down from memory."""
    parts = [pandas.read_csv(CONFIGS / f"SOURCES-{part}.csv") for part in ("a", "b")]
    rows = pandas.concat(parts)
    return set(rows.loc[rows["confidence"].isin(("sourced", "public_copy")), "id"])


@dataclass(frozen=True)
class Rule:
    """A rule of the engine that sheetgen leaves out: where it stands, and how far the bytes of a request may differ.

    models: for which it holds; none named: where the engine's block is a whole number of sheetgen's.
    """

    name: str
    models: frozenset[str]
    within: float
    source: str
    reason: str

    def explains(self, plans: pandas.DataFrame, sized: pandas.DataFrame) -> pandas.Series:
        ours, theirs = sized["kv_bytes_per_sequence_per_gpu"], plans["bytes_per_request"]
        near = (theirs / ours - 1).abs() <= self.within + ROUNDING
        if self.models:
            return pandas.Series(near & plans["model"].isin(self.models))
        times = plans["block_bytes"] / sized["kv_block_bytes"]
        whole = (times.round() > 1) & numpy.isclose(times, times.round(), rtol=ROUNDING, atol=0)
        blocks = numpy.ceil(sized["full_kv_blocks_per_sequence"] / times.round())
        pool = (plans["num_blocks"] == numpy.floor(plans["pool_bytes"] / plans["block_bytes"])).to_numpy()
        return pandas.Series(near & whole & (blocks == plans["blocks_per_request"]) & pool)


def read_rules() -> dict[str, Rule]:
    rows = pandas.read_csv(RULES, keep_default_na=False).itertuples()
    return {
        str(row.rule): Rule(
            str(row.rule),
            frozenset(str(row.models).split()),
            float(str(row.within)),
            str(row.source),
            str(row.reason),
        )
        for row in rows
    }


@dataclass(frozen=True)
class Compared:
    """The engine's plans, each with its model's kind and its config's origin, whether sheetgen's is equal, and by which
    rule it is not; and sheetgen's figures for them."""

    rows: pandas.DataFrame
    sized: pandas.DataFrame

    @property
    def unexplained(self) -> pandas.DataFrame:
        return self.rows[~self.rows["equal"] & (self.rows["rule"] == "")]


def equal_plans(plans: pandas.DataFrame, sized: pandas.DataFrame) -> Any:
    """True where each of the engine's plans is sheetgen's, too."""
    near = [numpy.isclose(plans[theirs], sized[ours], rtol=ROUNDING, atol=0) for theirs, ours in FIGURES.items()]
    return numpy.all(near, axis=0)


def compare(catalog: Catalog) -> Compared:
    plans = engine_plans()
    sized = sized_plans(plans, catalog)
    # A base model's longer contexts are asked by its own name: its config states them, that of Instruct does not.
    plans["model"] = plans["model"].map({name: catalog.model(name).id for name in plans["model"].unique()})
    equal = equal_plans(plans, sized)
    names = pandas.Series("", plans.index)
    for rule in read_rules().values():
        names = names.where(equal | (names != "") | ~rule.explains(plans, sized), rule.name)
    kinds = {model: kind_of(catalog, model) for model in plans["model"].unique()}
    published = plans["model"].isin(published_models())
    described = plans.assign(
        kind=plans["model"].map(kinds),
        config=numpy.where(published, "published", "from memory"),
        equal=equal,
        rule=names,
    )
    return Compared(described, sized)


def _rows(compared: Compared) -> Iterator[str]:
    ordered = compared.rows.sort_values(["config", "kind"], ascending=[False, True])
    for (config, kind), rows in ordered.groupby(["config", "kind"], sort=False):
        explained = (rows["rule"] != "").sum()
        counts = (rows["model"].nunique(), len(rows), rows["equal"].sum(), explained)
        numbers = " | ".join(f"{count:,}" for count in counts)
        yield f"| {kind} | {config} | {numbers} | {len(rows) - rows['equal'].sum() - explained} |"


def _rules(compared: Compared) -> Iterator[str]:
    for rule in read_rules().values():
        rows = compared.rows[compared.rows["rule"] == rule.name]
        ours = compared.sized.loc[rows.index, "kv_bytes_per_sequence_per_gpu"]
        most = (rows["bytes_per_request"] / ours - 1).abs().max()
        models = ", ".join(sorted(rows["model"].unique()))
        yield (
            f"- **{rule.name}** ({models}: {len(rows)} plans; bytes of a request differ by at most {most:.2%}): "
            f"{rule.reason} Source: {rule.source}."
        )


def oracle_page(compared: Compared) -> str:
    rows = compared.rows
    return TEXT.format(
        version=rows["vllm"].iloc[0],
        models=rows["model"].nunique(),
        rows=len(rows),
        equal=rows["equal"].sum(),
        share=f"{rows['equal'].mean():.1%}",
        explained=(rows["rule"] != "").sum(),
        unexplained=len(compared.unexplained),
        table="\n".join(_rows(compared)),
        rules="\n".join(_rules(compared)),
    )


if __name__ == "__main__":
    PAGE.write_text(oracle_page(compare(Catalog())), encoding="utf-8")
