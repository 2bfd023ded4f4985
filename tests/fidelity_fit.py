"""The constants of catalogs/engines/vllm.yaml for 0.17 to 0.19 that were fitted, fitted again from the measured runs.

Every constant is a median over models of the median within a model, so that a model with many runs counts once;
of an even number of logged values the lower middle one is taken, which was measured.
"""

from __future__ import annotations

import copy
import statistics
from pathlib import Path
from typing import Any

import pandas
import yaml
from measured_rows import predict

from sheetgen.catalog import Catalog
from sheetgen.units import GIB

FITTED_FROM = "0.17.0"  # the version change that carries the constants of these runs
FORWARD_FROM_GIB = 0.03  # a log this far above what the sampler explains has its peak in the forward pass
MOST_COPIES = 8  # more copies than this are no hidden states: an image of unknown size was the peak
NOT_MEASURED = "tp8"


def fit(rows: pandas.DataFrame, catalog: Catalog) -> dict[str, float]:
    """The constants from these runs alone. `rows` has the column model_id; constants without a run are left out."""
    seen = predict(rows, catalog)
    logged = rows["activation_peak_gib"]
    kept = (seen["expert_workspace_bytes"] + seen["encoder_bytes"]) / GIB
    over_sampler = logged - kept - seen["sampler_bytes"] / GIB
    staged = rows["pipeline_parallel_size"] > 1
    plain = (kept == 0) & ~staged
    workspace = max(0.0, _median(over_sampler[plain], rows) or 0.0)
    constants = {"matmul_workspace_gib": workspace}
    # The forward pass is the peak where the sampler does not explain it, and on stages without a head, which log it.
    forward = staged | (over_sampler > workspace + FORWARD_FROM_GIB)
    copy = seen["max_num_batched_tokens"] * seen["hidden_size"] * seen["other_bytes"] / GIB
    without_copies = seen["forward_bytes"] / GIB - seen["forward_hidden_copies"] * copy
    handed = seen["hand_over_bytes"] / GIB * staged
    shares = (logged - kept - workspace - handed - without_copies) / copy
    copies = _median(shares[forward & (shares < MOST_COPIES)], rows)
    constants |= {"forward_hidden_copies": copies} if copies is not None else {}
    for name, part in (
        *((f"tp{size}", ~staged & (rows["tensor_parallel_size"] == size)) for size in (1, 2, 4, 8)),
        ("staged", staged & (rows["tensor_parallel_size"] == 1)),
    ):
        value = _median(rows["non_torch_gib"][part], rows, statistics.median_low)
        constants |= {f"non_torch_gib.{name}": value} if value is not None else {}
    constants["cuda_graph_gib"] = _median(rows["cuda_graph_gib"], rows, statistics.median_low) or 0.0
    return constants


def _median(values: pandas.Series, rows: pandas.DataFrame, middle: Any = statistics.median) -> float | None:
    """The median over models of the median within each."""
    if values.empty:
        return None
    groups = values.groupby(rows.loc[values.index, "model_id"])
    return float(middle([middle(list(group)) for _, group in groups]))


def engine_with(constants: dict[str, float], folder: Path, under: Catalog) -> Catalog:
    """The catalogs `under` with these constants in the engine's file. What was not fitted has no value to lean on:
    a stage without a run is taken to be like a GPU without stages."""
    document: dict[str, Any] = copy.deepcopy(under.read_document("engines/vllm.yaml").data)
    change = next(v for v in document["versions"] if v["from_version"] == FITTED_FROM)
    for name, value in constants.items():
        part, _, key = name.partition(".")
        if key:
            change[part][key] = value
        else:
            (change if part in change else document)[part] = value
    if "non_torch_gib.staged" not in constants and "non_torch_gib.tp1" in constants:
        change["non_torch_gib"]["staged"] = constants["non_torch_gib.tp1"]
    target = folder / "engines" / "vllm.yaml"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Catalog(*(part.path for part in under.folders[1:]), folder)


def shipped(catalog: Catalog) -> dict[str, float]:
    """The same constants as the catalog states them."""
    document = catalog.read_document("engines/vllm.yaml").data
    change = next(v for v in document["versions"] if v["from_version"] == FITTED_FROM)
    both = {**document, **change}
    out = {name: both[name] for name in ("matmul_workspace_gib", "forward_hidden_copies", "cuda_graph_gib")}
    return out | {f"non_torch_gib.{k}": v for k, v in both["non_torch_gib"].items() if k != NOT_MEASURED}
