"""A question's models, GPUs, instances, workloads, settings and engine with what was typed over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu, Workload
from sheetgen.catalog.model import Model
from sheetgen.scenario.candidates import Candidate, ClassPrice
from sheetgen.scenario.inputs import Settings
from sheetgen.scenario.kinds import name_part
from sheetgen.scenario.money import OwnedGpu, Owning
from sheetgen.scenario.override_kinds import SETTINGS
from sheetgen.scenario.overrides import Overrides, Row
from sheetgen.scenario.workloads import sized
from sheetgen.units import DTYPES, GIB, PURCHASES

BY_READER = "typed in, not from the catalogs"
_FIELDS = ("n_layers", "n_heads", "hidden_size", "vocab_size", "max_context_tokens")
_OF_GROUPS = {  # a column: the field of each group of these kinds of attention
    "full_kv_heads": ("n_kv_heads", ("full",)),
    "windowed_kv_heads": ("n_kv_heads", ("windowed", "chunked")),
    "window_tokens": ("window_tokens", ("windowed", "chunked")),
    "mla_width": ("latent_width", ("mla",)),
}


class OverriddenModel(Model):
    """A model some of whose columns were typed over. The others stay as they are: they do not follow."""

    columns: dict[str, float]
    checkpoint_sizes: dict[str, float]

    def shape(self) -> dict[str, float]:
        return dict(self.columns)

    def checkpoint_bytes(self, weight_dtype: str) -> int:
        return self.checkpoint_sizes[weight_dtype]  # type: ignore[return-value]


def overridden_model(model: Model, row: Row) -> Model:
    """`model` with the numbers of its row; also in the fields and groups that words are made of."""
    if not row:
        return model
    shape = model.shape()
    params = {field: int(row[c]) for c, field in (("n_params", "total"), ("n_params_active", "active")) if c in row}
    fields: dict[str, Any] = dict(model) | {name: row[name] for name in _FIELDS if name in row}
    fields |= {"params": model.params.model_copy(update=params)}
    fields |= {"attention": tuple(_group(one, row) for one in model.attention)}
    columns = {name: row.get(name, value) for name, value in shape.items()}
    sizes = {d: row.get(f"checkpoint_{d}", model.checkpoint_bytes(d)) or 0 for d in DTYPES}
    return OverriddenModel.model_construct(**fields, columns=columns, checkpoint_sizes=sizes)


def _group(group: Any, row: Row) -> Any:
    update = {field: row[c] for c, (field, kinds) in _OF_GROUPS.items() if c in row and group.kind in kinds}
    return group.model_copy(update=update) if update else group


class OverriddenGpu(Gpu):
    """A GPU whose memory was typed over: the engine's default batch limits stay those of the catalog's."""

    catalog_bytes: int


def overridden_gpu(gpu: Gpu, row: Row) -> Gpu:
    """`gpu` with the memory and the precisions of its row."""
    runs = {what: {d: row.get(f"{what}_{d}") for d in DTYPES} for what in ("weights", "kv")}
    native: dict[str, Any] = {d: "native" for d, on in runs["weights"].items() if on}
    kept = {d: how for d, how in gpu.weights_run.items() if runs["weights"][d] != 0}
    cache = [d for d in gpu.kv_run if runs["kv"][d] != 0]
    fields: dict[str, Any] = {
        "weights_run": {**native, **kept},
        "kv_run": (*cache, *(d for d, on in runs["kv"].items() if on and d not in cache)),
    }
    memory = row.get("gpu_memory_bytes")
    if memory is None:
        return gpu.model_copy(update=fields)
    fields |= {"memory": gpu.memory.model_copy(update={"engine_bytes": memory})}
    return OverriddenGpu.model_construct(**{**dict(gpu), **fields, "catalog_bytes": gpu.memory.engine_bytes})


def limits_of(engine: Engine, gpu: Gpu) -> tuple[int, int]:
    """The engine's default batch limits on a GPU, by the memory that the catalog says."""
    known = gpu.catalog_bytes if isinstance(gpu, OverriddenGpu) else gpu.memory.engine_bytes
    return engine.batch_limits(known / GIB, gpu.architecture)


def overridden_workload(workload: Workload, overrides: Overrides) -> Workload:
    """`workload` with its answer as typed; the prompt takes what the context leaves."""
    answer = overrides.input(f"output_{name_part(workload.id)}", None)
    return workload if answer is None else sized(workload, workload.context_tokens, answer)


def overridden_settings(settings: Settings, overrides: Overrides) -> Settings:
    """`settings` with those that no option asks for."""
    return replace(settings, **{name: overrides.inputs[name] for name in SETTINGS if name in overrides.inputs})


def overridden_owning(owning: Owning, overrides: Overrides) -> Owning:
    """`owning` with what was typed of GPUs; an end of the price that is blank or 0 is not known."""
    gpus = {key: _owned(one, overrides.gpus.get(key, {})) for key, one in owning.gpus.items()}
    return replace(owning, gpus=gpus)


def _owned(owned: OwnedGpu, row: Row) -> OwnedGpu:
    fields = {n: row[n] for n in ("is_module_price", "stated_kw_per_gpu", "rated_watts", "is_it_power") if n in row}
    if "capex_date" in row:
        fields["capex_as_of"] = row["capex_date"] and row["capex_date"].isoformat()
    ends = [f"capex_{end}_usd" for end in ("low", "base", "high")]
    if any(end in row for end in ends):
        before = owned.capex_usd or (None, None, None)
        now = tuple(row.get(end, usd) or float("nan") for end, usd in zip(ends, before, strict=True))
        fields["capex_usd"] = now if any(usd == usd for usd in now) else None
    return replace(owned, **fields)


def overridden_candidates(
    listed: Iterable[Candidate], gpus: Mapping[str, Gpu], overrides: Overrides
) -> Iterator[Candidate]:
    """The instances that can be rented: those of the catalog as typed over, then the reader's own rows."""
    like: Candidate | None = None
    for one in listed:
        like = like or one
        yield from _candidate(one, overrides.instances.get(one.instance, {}), gpus)
    if like is not None:
        blank = Candidate("/", "", like.gpu, 0, like.purchase, 0, None, "", BY_READER)
        for row in overrides.own_instances:
            yield from _candidate(blank, {"instance_gpu": None, **row}, gpus)


def _candidate(one: Candidate, row: Row, gpus: Mapping[str, Gpu]) -> Iterator[Candidate]:
    """The instance with what was typed into its row; nothing where it then cannot be rented."""
    if not row:
        yield replace(one, gpu=gpus[one.gpu.id])
        return
    provider, kind = one.instance.split("/", 1)
    provider, kind = row.get("provider", provider), row.get("type", kind)
    gpu = _named(row.get("instance_gpu", one.gpu.id), gpus)
    price, count = row.get("price_usd_per_hour", one.usd_per_hour), row.get("gpu_count", one.gpu_count)
    if gpu is None or not price or not count:
        return
    listed = price == one.usd_per_hour  # its source is of the list's price; the date is the one beside the price
    yield replace(
        one, instance=f"{provider}/{kind}", provider=provider, gpu=gpu, gpu_count=count, usd_per_hour=price,
        price_as_of=_iso(row.get("price_date", one.price_as_of)), region=row.get("region", one.region) or "",
        source=row.get("source", one.source if listed else "") or BY_READER,
        price_kind=row.get("terms", one.price_kind) or "", prices=tuple(_prices(one, row)),
    )  # fmt: skip


def _named(name: str | None, gpus: Mapping[str, Gpu]) -> Gpu | None:
    """The sheet's GPU of that id, as a spreadsheet's look-up finds it: capital letters count for nothing."""
    return next((gpu for key, gpu in gpus.items() if key.lower() == (name or "").lower()), None)


def _prices(one: Candidate, row: Row) -> Iterator[ClassPrice]:
    """Its prices in the other purchase classes; what is blank or 0 is no price."""
    for purchase in PURCHASES:
        stem = purchase.replace("-", "_")
        known = one.class_price(purchase) if purchase != one.purchase else None
        usd = row.get(f"price_{stem}", known and known.usd_per_hour)
        if usd:
            date = row.get(f"date_{stem}", known and known.price_as_of)
            terms = row.get(f"terms_{stem}", known.price_kind if known else "")
            yield ClassPrice(purchase, usd, _iso(date), terms or "")


def _iso(date: Any) -> str | None:
    return str(date.isoformat()) if hasattr(date, "isoformat") else date or None
