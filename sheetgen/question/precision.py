"""Which precision `recommended` stands for: what one deploys a model in."""

from __future__ import annotations

from collections.abc import Collection

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model, stem
from sheetgen.catalog.stacks import LeverFile, StackFile
from sheetgen.units import DTYPES

DEPLOYED = "fp8"
SIXTEEN_BITS = DTYPES["bf16"].linear_bytes


def other_weights(name: str, model: Model) -> str | None:
    """The Hugging Face id of the weights that `name` means, where they are not the entry's own but others of its
    architecture; None for the entry's own."""
    low = name.strip().lower()
    exact = next((one for one in model.same_architecture if one.lower() == low), None)
    if exact or low in (model.id, *model.aliases) or stem(low) in (model.id, stem(model.hf_id or "")):
        return exact
    return next((one for one in model.same_architecture if stem(one) == stem(low)), None)


def has_deployed(model: Model, published: str, of: str | None) -> bool:
    """Whether weights of 16 bits have a checkpoint in the precision that one deploys."""
    known = model.checkpoint(DEPLOYED, of)
    return DTYPES[published].linear_bytes == SIXTEEN_BITS and known is not None and known.hf_id is not None


def recommended_weights(
    model: Model, published: str, of: str | None, engine: Engine, gpus: Collection[Gpu], catalog: Catalog
) -> str:
    """FP8 where the published weights have 16 bits, an FP8 checkpoint of them is known, the engine loads it and one of
    the GPUs runs it, be it with weights alone in FP8; else what was published."""
    deploys = (
        has_deployed(model, published, of)
        and loads_weights(catalog, engine.engine, DEPLOYED)
        and any(DEPLOYED in gpu.weights_run for gpu in gpus)
    )
    return DEPLOYED if deploys else published


def loads_weights(catalog: Catalog, engine: str, dtype: str) -> bool:
    """Whether an engine loads checkpoints in a precision; one that the catalogs say nothing of is taken to load it."""
    launcher = next((one for one in catalog.file(StackFile).launchers if one.engine == engine), None)
    if launcher is not None:
        return dtype in launcher.weight_dtypes
    return all(dtype not in one.weight_dtypes for one in catalog.file(LeverFile).not_run if one.engine == engine)
