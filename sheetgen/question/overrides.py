"""What was typed over a sheet beside its options: constants, facts of models, GPUs and instances, rows of one's own.

A workbook's reader types it into yellow cells, `pull` carries it back, and a scenario file keeps it under `typed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sheetgen.catalog.base import Loc
from sheetgen.catalog.engines import (
    CONSTANTS,
    MODEL_KINDS,
    OF_ANY_KIND,
    RESIDUALS,
    Engine,
    SpeedConstants,
    band_names,
)
from sheetgen.catalog.hardware import Gpu, Workload
from sheetgen.catalog.model import Model
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.question.inputs import INPUTS, OF_SETTINGS, OPTION_GROUPS, PER_GPU_KW, PER_GPU_USD
from sheetgen.question.market import Candidate, ClassPrice, OwnedGpu, Owning, shares_experts
from sheetgen.question.parse import ANY, COUNT, DAY, FLAG, LEAST, TEXT, TOKENS, Kind, name_part, plain
from sheetgen.units import DTYPES, GIB, ON_DEMAND, PURCHASES

FACTOR = Kind(high=1000)
DIVISOR = Kind(low=0.001, high=1000)
PRICE = Kind(high=1e6, blank=True)  # 0, as nothing: it cannot be rented
RATE = Kind(low=1, high=1e18)

_AT_LEAST_ONE = ("n_layers", "n_heads", "hidden_size", "vocab_size", "max_context_tokens")
_WHOLE = (
    "n_full_layers", "full_kv_heads", "n_windowed_layers", "windowed_kv_heads", "window_tokens", "n_mla_layers",
    "n_other_layers", "n_state_layers", "n_experts", "experts_per_token", "ffn_matrices",
)  # fmt: skip
_PARTS = (  # of a model's shape, any number from 0
    "intermediate_size", "expert_intermediate_size", "encoder_item_tokens", "encoder_item_elements",
    "encoder_item_patches", "encoder_hidden_size", "encoder_ffn_elements",
    "rope_table_elements", "full_kv_width", "windowed_kv_width", "mla_width", "mla_fp8_entry_bytes",
    "mla_absorbed_elements", "attention_elements", "windowed_attention_elements", "other_elements_per_token",
    "other_bytes_per_token", "conv_bytes_per_state_layer", "state_elements_per_layer", "state_element_bytes",
    "n_params", "n_params_active", "n_params_quantizable", "n_params_copied", "n_params_routed", "n_params_mtp",
    "n_params_embedding", "n_params_per_layer_embedding", "n_params_lm_head",
)  # fmt: skip
SHAPE: dict[str, Kind] = {
    **dict.fromkeys(_AT_LEAST_ONE, Kind("whole", 1)),
    "window_is_chunked": FLAG,
    **dict.fromkeys(_WHOLE, Kind("whole")),
    **dict.fromkeys(_PARTS, ANY),
}


def class_columns(purchase: str) -> dict[str, str]:
    """The columns of Prices and hardware that hold a purchase class: price, date, mark and terms."""
    if purchase == ON_DEMAND:
        return {"price": "price_usd_per_hour", "date": "price_date", "mark": "age_word", "terms": "terms"}
    stem = purchase.replace("-", "_")
    return {what: f"{what}_{stem}" for what in ("price", "date", "mark", "terms")}


_COLUMNS = {purchase: class_columns(purchase) for purchase in PURCHASES}
TABLES: dict[str, dict[str, Kind]] = {
    "models": {
        "model": Kind("text", blank=True),  # the name of a model of one's own
        **SHAPE,
        **dict.fromkeys(("own_weight_dtype", "recommended_weight_dtype", "own_kv_dtype"), Kind("dtype")),
        **{f"checkpoint_{d}": Kind(blank=True) for d in DTYPES},
    },
    "gpus": {
        "gpu_memory_bytes": Kind(low=1, high=1e13),
        **dict.fromkeys(("max_num_seqs", "max_num_batched_tokens"), COUNT),
        **dict.fromkeys(("pool_error_bytes_measured_low", "pool_error_bytes_elsewhere_low"), Kind(low=-1e13, high=0)),
        **dict.fromkeys(("pool_error_bytes_measured_high", "pool_error_bytes_elsewhere_high"), Kind(low=0, high=1e13)),
        **dict.fromkeys(
            ("is_older_gpu", "has_heavier_graphs", "shares_host_memory", "runs_sparse_attention", "plain_fp8_latent"),
            FLAG,
        ),
        "measured_kinds": Kind("whole", 0, 2 ** len(MODEL_KINDS) - 1),
        **dict.fromkeys(("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second"), RATE),
        "pair_link_bytes_per_second": replace(RATE, low=0),
        **{f"peak_flops_{d}": RATE for d in ("16_bit", *DTYPES)},
        **{
            name: FACTOR if any(getattr(bound, "ge", None) == 0 for bound in field.metadata) else DIVISOR
            for name, field in SpeedConstants.model_fields.items()
        },
        **dict.fromkeys(RESIDUALS, DIVISOR),
        **dict.fromkeys((*band_names("fitted"), *band_names("other", MODEL_KINDS)), DIVISOR),
        **{f"weights_{d}": Kind("whole", 0, 2) for d in DTYPES},  # 1: keeps weights in it, 2: computes in it
        **{f"kv_{d}": Kind("whole", 0, 2) for d in DTYPES},  # 1: any cache, 2: keys and values, and no latents
        **{f"capex_{end}_usd": Kind(high=PER_GPU_USD.high, blank=True) for end in ("low", "base", "high")},
        **dict.fromkeys(("is_module_price", "is_it_power"), FLAG),
        "sold_together": Kind("whole", 1, 1024),
        "capex_date": DAY,
        "stated_kw_per_gpu": Kind(high=PER_GPU_KW.high, blank=True),
        "rated_watts": Kind(high=1e5, blank=True),
    },
    "instances": {
        "provider": Kind("name"),
        "type": Kind("text"),
        **dict.fromkeys(("instance_gpu", "region", "source"), TEXT),
        "gpu_count": Kind("whole", 1, 1024, blank=True),
        "network_gbps": Kind(high=100_000, blank=True),
        **{names["price"]: PRICE for names in _COLUMNS.values()},
        **{names["date"]: DAY for names in _COLUMNS.values()},
        **{names["terms"]: TEXT for names in _COLUMNS.values()},
    },
    "precisions": dict.fromkeys(
        ("linear_bytes", "other_bytes", "activation_copy_bytes", "kv_dtype_bytes", "kv_scale_bytes"), Kind(high=64)
    ),
}

# What the engine's accounting is made of, under the names of its columns.
ENGINE: dict[str, Kind] = {
    **{
        one.column: Kind(one.kind if one.kind != "flag" else "whole", one.low, one.high)
        for one in CONSTANTS
        if one.is_shown
    },
    "max_pipeline_parallel_size": Kind("whole", 1, 64),
}
_ASKED = ("sheet", *OPTION_GROUPS)
# Of the settings, those that no option of a sheet asks for.
SETTINGS: dict[str, Kind] = {
    one.name: one.kind for one in OF_SETTINGS if not (one.option and one.option.group in _ASKED)
}
# What decides words and marks of the page, and what sheets of the workbook are pointed at: no answer follows them.
SHOWN: dict[str, Kind] = {one.name: one.kind for one in INPUTS if one.shown}
BANDS: dict[str, Kind] = dict.fromkeys(
    (*(name for scope in OF_ANY_KIND for name in band_names(scope)), *band_names("anchored", MODEL_KINDS)),
    replace(FACTOR, low=LEAST),  # a time at the low end is divided by it
)
OUTPUT = Kind("whole", 0, TOKENS.high)
_LENGTH_OF = re.compile(r"output_(?!tokens_per_second_band)\w+|prompt_asked")


def input_kind(name: str) -> Kind | None:
    """What the input of that name takes; nothing where there is none, or an option has it."""
    return {**ENGINE, **SETTINGS, **SHOWN, **BANDS}.get(name) or (OUTPUT if _LENGTH_OF.fullmatch(name) else None)


def input_names(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Every input of a sheet with these workloads."""
    lengths = (f"{what}_{name_part(w.id)}" for w in workloads for what in ("output", "prompt"))
    return (*filter(input_kind, lengths), *ENGINE, *SETTINGS, *SHOWN, *BANDS)


Row = Mapping[str, Any]
MOST_OWN_ROWS = 20
NAMED_BY = {"own_instances": ("provider", "type"), "own_models": ("model",)}


@dataclass(frozen=True)
class Overrides:
    """Values in place of those that options and catalogs give; empty where nothing was typed.

    Inputs by their name, tables by row and column: models, GPUs and instances by catalog id, precisions by name.
    An instance without a price above 0, or of a GPU that the sheet does not have, cannot be rented.
    """

    inputs: Row = field(default_factory=dict)
    models: Mapping[str, Row] = field(default_factory=dict)
    gpus: Mapping[str, Row] = field(default_factory=dict)
    instances: Mapping[str, Row] = field(default_factory=dict)
    precisions: Mapping[str, Row] = field(default_factory=dict)
    own_instances: tuple[Row, ...] = ()
    own_models: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def value(self, table: str, key: str, column: str, otherwise: Any) -> Any:
        """What was typed into a table's cell (None: it was emptied), or `otherwise`."""
        row: Row = getattr(self, table).get(key, {})
        return row.get(column, otherwise)

    def input(self, name: str, otherwise: Any) -> Any:
        """What was typed into an input's cell, or `otherwise`."""
        return self.inputs.get(name, otherwise)

    def shares_experts(self, gpu: Gpu) -> bool:
        """Whether data-parallel layouts are tried on a GPU: its links are made for them by the catalog, or as typed."""
        return shares_experts(gpu, self.value("gpus", gpu.id, "interconnect_bytes_per_second", 0))

    def spelled(self, gpus: Iterable[str], instances: Iterable[str]) -> Overrides:
        """The same with GPUs and providers spelled as the sheet's first row of them: a spreadsheet does not tell names
        apart by their capital letters."""
        known = {gpu.lower(): gpu for gpu in gpus}
        providers: dict[str, str] = {}

        def row(one: Row, instance: str = "/") -> Row:
            provider = one.get("provider") or instance.partition("/")[0]
            spelled = providers.setdefault(provider.lower(), provider)
            named: dict[str, Any] = {"provider": spelled} if "provider" in one else {}
            if gpu := one.get("instance_gpu"):
                named["instance_gpu"] = known.get(gpu.lower(), gpu)
            return {**one, **named}

        rows = {name: row(self.instances.get(name, {}), name) for name in instances}
        overrides = {**self.instances, **{name: one for name, one in rows.items() if one}}
        return replace(self, instances=overrides, own_instances=tuple(row(one) for one in self.own_instances))

    def data(self) -> dict[str, Any]:
        """The same as a scenario file and JSON have it: what is empty is left out, dates are text."""
        return {one.name: plain(getattr(self, one.name)) for one in fields(self) if getattr(self, one.name)}


@dataclass(frozen=True)
class Written:
    """A `typed` as it stands in a file, and what is said before a problem with a part of it: `file:line: `."""

    data: Any
    at: Callable[[Loc], str]


def _nowhere(loc: Loc) -> str:
    return "typed" + "".join(f" {shown(part)}" for part in loc) + ": "


def read_overrides(given: Any) -> tuple[Overrides, Callable[[Loc], str]]:
    """`typed` of a scenario, checked but for the keys of its rows, and `at` of `Written`.

    Raises ScenarioError with every problem: an unknown table, column or input, and a value out of range.
    """
    if isinstance(given, Overrides) or given is None:
        return given or Overrides(), _nowhere
    written = given if isinstance(given, Written) else Written(given, _nowhere)
    problems: list[str] = []

    def refuse(loc: Loc, problem: str) -> None:
        problems.append(f"{written.at(loc)}{problem}")

    def items(loc: Loc, data: Any, what: str) -> Iterable[tuple[Any, Any]]:
        if isinstance(data, Mapping):
            return data.items()
        if data is not None:
            refuse(loc, f"{shown(loc[-1] if loc else 'typed')} must hold {what} by name.")
        return ()

    def values(loc: Loc, data: Any) -> dict[str, Any]:
        """The inputs, or the columns of a row, by name."""
        of_row = len(loc) > 1
        columns = TABLES[str(loc[0]).removeprefix("own_")] if of_row else {}
        found = {}
        for key, value in items(loc, data, "columns" if of_row else "inputs"):
            name, here = str(key), (*loc, key)
            kind = columns.get(name) if of_row else input_kind(name)
            if kind is None and of_row:
                refuse(here, f"unknown column {shown(key)} of {loc[0]}.{did_you_mean(name, columns)}")
            elif kind is None:
                refuse(here, f"unknown input {shown(key)}.")
            else:
                row, wrong = f"your own row {loc[-1] + 1}" if isinstance(loc[-1], int) else shown(loc[-1]), Problems()
                found[name] = wrong.attempt(kind.read, value, f"{shown(name)} of {row}" if of_row else shown(name))
                for problem in wrong:
                    refuse(here, problem)
        return found

    def own_rows(part: str, data: Any) -> Iterator[Row]:
        if not isinstance(data, (list, tuple)) or len(data) > MOST_OWN_ROWS:
            refuse((part,), f"{part} must be a list of at most {MOST_OWN_ROWS} rows.")
            return
        for i, row in enumerate(data):
            found = values((part, i), row)
            refused = row.keys() if isinstance(row, dict) else ()  # what was refused is not missing, too
            lacks = [name for name in NAMED_BY[part] if not found.get(name) and name not in refused]
            if lacks:
                refuse((part, i), f"{part} has a row without {' and '.join(lacks)}. Name it, or take it out.")
            yield found

    names = [one.name for one in fields(Overrides)]
    parts: dict[str, Any] = {}
    for part, data in items((), written.data, "the parts " + ", ".join(names)):
        if part not in names:
            refuse((part,), f"unknown part {shown(part)}.{did_you_mean(part, names)}")
        elif part == "inputs":
            parts[part] = values((part,), data)
        elif part in NAMED_BY:
            parts[part] = tuple(own_rows(part, data))
        else:
            parts[part] = {str(key): values((part, key), row) for key, row in items((part,), data, "rows")}
    if problems:
        raise ScenarioError(*problems)
    return Overrides(**parts), written.at


def unknown_keys(overrides: Overrides, known: Mapping[str, Iterable[str]], at: Callable[[Loc], str]) -> Iterator[str]:
    """A line for each row and input that the sheet does not have; `known` has them by part."""
    for part, allowed in known.items():
        names = tuple(allowed)
        for key in getattr(overrides, part):
            if key not in names:
                what = "an input" if part == "inputs" else f"a row of {part}"
                yield f"{at((part, key))}{shown(key)} is not {what} on this sheet.{did_you_mean(key, names)}"


BY_READER = "typed in, not from the catalogs"
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

    def group(one: Any) -> Any:
        return one.model_copy(
            update={field: row[c] for c, (field, kinds) in _OF_GROUPS.items() if c in row and one.kind in kinds}
        )

    params = {field: int(row[c]) for c, field in (("n_params", "total"), ("n_params_active", "active")) if c in row}
    fields: dict[str, Any] = dict(model) | {name: row[name] for name in _AT_LEAST_ONE if name in row}
    fields["params"] = model.params.model_copy(update=params)
    fields["attention"] = tuple(group(one) for one in model.attention)
    columns = {name: row.get(name, value) for name, value in model.shape().items()}
    sizes = {d: row.get(f"checkpoint_{d}", model.checkpoint_bytes(d)) or 0 for d in DTYPES}
    return OverriddenModel.model_construct(**fields, columns=columns, checkpoint_sizes=sizes)


class OverriddenGpu(Gpu):
    """A GPU whose memory was typed over: the engine's default batch limits stay those of the catalog's."""

    catalog_bytes: int


def overridden_gpu(gpu: Gpu, row: Row) -> Gpu:
    """`gpu` with the memory and the precisions of its row."""
    runs = {what: {d: row.get(f"{what}_{d}") for d in DTYPES} for what in ("weights", "kv")}
    typed: dict[str, Any] = {d: ("weight_only", "native")[int(how) - 1] for d, how in runs["weights"].items() if how}
    kept = {d: how for d, how in gpu.weights_run.items() if runs["weights"][d] != 0}
    cache = {d: int(how) for d, how in runs["kv"].items() if how is not None}
    fields: dict[str, Any] = {"weights_run": {**kept, **typed}, "kv_typed": cache}
    memory = row.get("gpu_memory_bytes")
    if memory is None:
        return gpu.model_copy(update=fields)
    fields |= {"memory": gpu.memory.model_copy(update={"engine_bytes": memory})}
    return OverriddenGpu.model_construct(**{**dict(gpu), **fields, "catalog_bytes": gpu.memory.engine_bytes})


def limits_of(engine: Engine, gpu: Gpu) -> tuple[int, int]:
    """The engine's default batch limits on a GPU, by the memory that the catalog says."""
    known = gpu.catalog_bytes if isinstance(gpu, OverriddenGpu) else gpu.memory.engine_bytes
    return engine.batch_limits(known / GIB, gpu.architecture)


def overridden_owning(owning: Owning, overrides: Overrides) -> Owning:
    """`owning` with what was typed of GPUs; an end of the price that is blank or 0 is not known."""
    return replace(owning, gpus={key: _owned(one, overrides.gpus.get(key, {})) for key, one in owning.gpus.items()})


def _owned(owned: OwnedGpu, row: Row) -> OwnedGpu:
    typed = "is_module_price", "stated_kw_per_gpu", "rated_watts", "is_it_power", "sold_together"
    fields = {name: row[name] for name in typed if name in row}
    if "capex_date" in row:
        fields["capex_as_of"] = row["capex_date"] and row["capex_date"].isoformat()
    ends = [f"capex_{end}_usd" for end in ("low", "base", "high")]
    if any(end in row for end in ends):
        before = owned.capex_usd or (None, None, None)
        now = tuple(row.get(end, usd) or float("nan") for end, usd in zip(ends, before, strict=True))
        fields["capex_usd"] = now if any(usd == usd for usd in now) else None
    return replace(owned, **fields)


def overridden_candidates(
    listed: tuple[Candidate, ...], gpus: Mapping[str, Gpu], overrides: Overrides
) -> Iterator[Candidate]:
    """The instances that can be rented: those of the catalog as typed over, then the reader's own rows."""
    purchase = listed[0].purchase
    blank, columns = Candidate("/", "", listed[0].gpu, 0, purchase, 0, None, "", BY_READER), _COLUMNS[purchase]
    rows: list[tuple[Candidate, Row]] = [(one, overrides.instances.get(one.instance, {})) for one in listed]
    rows += [(blank, {"instance_gpu": None, **row}) for row in overrides.own_instances]
    named = {key.lower(): gpu for key, gpu in gpus.items()}  # to a spreadsheet's look-up capital letters are no others
    for one, row in rows:
        price = row.get(columns["price"], one.usd_per_hour)
        if not price or purchase in one.passed_over:
            continue
        if not row:
            yield replace(one, gpu=gpus[one.gpu.id], tries_ranks=overrides.shares_experts(one.gpu))
            continue
        provider, kind = one.instance.split("/", 1)
        provider, kind = row.get("provider", provider), row.get("type", kind)
        gpu = named.get((row.get("instance_gpu", one.gpu.id) or "").lower())
        count = row.get("gpu_count", one.gpu_count)
        if gpu is None or not count:
            continue
        is_listed = price == one.usd_per_hour  # the source is of the list's price; the date, of the one beside it
        yield replace(
            one,
            instance=f"{provider}/{kind}",
            provider=provider,
            gpu=gpu,
            gpu_count=count,
            usd_per_hour=price,
            price_as_of=_iso(row.get(columns["date"], one.price_as_of)),
            region=row.get("region", one.region) or "",
            source=row.get("source", one.source if is_listed else "") or BY_READER,
            price_kind=row.get(columns["terms"], one.price_kind) or "",
            prices=tuple(_prices(one, row)),
            network_gbps=row.get("network_gbps", one.network_gbps) or 0,
            tries_ranks=one is blank or overrides.shares_experts(one.gpu),
        )


def _prices(one: Candidate, row: Row) -> Iterator[ClassPrice]:
    """Its prices in the other purchase classes; what is blank or 0 is no price."""
    for purchase, columns in _COLUMNS.items():
        known = one.class_price(purchase) if purchase != one.purchase else None
        usd = row.get(columns["price"], known and known.usd_per_hour)
        if usd:
            date = row.get(columns["date"], known and known.price_as_of)
            terms = row.get(columns["terms"], known.price_kind if known else "")
            yield ClassPrice(purchase, usd, _iso(date), terms or "", known.region if known else "")


def _iso(date: Any) -> str | None:
    return str(date.isoformat()) if hasattr(date, "isoformat") else date or None
