"""The precision that `recommended` stands for: the one in which a model is usually deployed."""

from __future__ import annotations

from collections.abc import Collection

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.units import DTYPES

DEPLOYED = "fp8"
SIXTEEN_BITS = DTYPES["bf16"].linear_bytes


def has_deployed(model: Model, published: str) -> bool:
    """True where 16-bit weights have a checkpoint in the precision in which models are usually deployed."""
    checkpoint = model.checkpoint(DEPLOYED)
    return DTYPES[published].linear_bytes == SIXTEEN_BITS and checkpoint is not None and checkpoint.hf_id is not None


def recommended_weights(model: Model, published: str, engine: Engine, gpus: Collection[Gpu], catalog: Catalog) -> str:
    """FP8 where the published weights have 16 bits, an FP8 checkpoint of them is known, the engine loads it and one of
    the GPUs runs it, be it with weights alone in FP8; else what was published."""
    deploys = (
        has_deployed(model, published)
        and loads_weights(catalog, engine.engine, DEPLOYED)
        and any(DEPLOYED in gpu.weights_run for gpu in gpus)
    )
    return DEPLOYED if deploys else published


def loads_weights(catalog: Catalog, engine: str, dtype: str) -> bool:
    """True where an engine loads checkpoints in a precision; an engine about which the catalogs say nothing is assumed
    to load it."""
    from sheetgen.catalog.stacks import LeverFile, StackFile  # which a deployment in a named precision does not need

    launcher = next((entry for entry in catalog.file(StackFile).launchers if entry.engine == engine), None)
    if launcher is not None:
        return dtype in launcher.weight_dtypes
    return all(dtype not in entry.weight_dtypes for entry in catalog.file(LeverFile).not_run if entry.engine == engine)
