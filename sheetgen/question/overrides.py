"""Values typed over a sheet beside its options: constants, facts of models, GPUs and instances, rows of one's own.

A workbook's reader types it into yellow cells, `pull` carries it back, and a scenario file keeps it under `typed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

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
from sheetgen.catalog.model import Group, Model
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.question.inputs import BY_NAME, INPUTS, OF_SETTINGS, OPTION_GROUPS
from sheetgen.question.market import Candidate, ClassPrice, OwnedGpu, Owning, shares_experts
from sheetgen.question.parse import (
    ANY,
    COUNT,
    DAY,
    FLAG,
    LEAST,
    SHARE_ABOVE_0,
    TEXT,
    TOKENS,
    Kind,
    Raw,
    name_part,
    plain,
)
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
    return {part: f"{part}_{stem}" for part in ("price", "date", "mark", "terms")}


_PER_GPU_USD = BY_NAME["capex_usd_per_gpu"].kind
_COLUMNS = {purchase: class_columns(purchase) for purchase in PURCHASES}
TABLES: dict[str, dict[str, Kind]] = {
    "models": {
        "model": Kind("text", blank=True),  # the name of a user's own model
        **SHAPE,
        **dict.fromkeys(("own_weight_dtype", "recommended_weight_dtype", "own_kv_dtype"), Kind("dtype")),
        **{f"checkpoint_{d}": Kind(blank=True) for d in DTYPES},
    },
    "gpus": {
        "gpu_memory_bytes": Kind(low=1, high=1e13),
        **dict.fromkeys(("max_num_seqs", "max_num_batched_tokens"), COUNT),
        "own_utilization": SHARE_ABOVE_0,
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
        **{f"capex_{end}_usd": replace(_PER_GPU_USD, low=0, blank=True) for end in ("low", "base", "high")},
        **dict.fromkeys(("is_module_price", "is_it_power"), FLAG),
        "sold_together": Kind("whole", 1, 1024),
        "capex_date": DAY,
        "stated_kw_per_gpu": replace(BY_NAME["kw_per_gpu"].kind, low=0, blank=True),
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
        constant.column: Kind(constant.kind if constant.kind != "flag" else "whole", constant.low, constant.high)
        for constant in CONSTANTS
        if constant.label
    },
    "max_pipeline_parallel_size": Kind("whole", 1, 64),
}
_ASKED = ("sheet", *OPTION_GROUPS)
# The settings that no option of a sheet sets.
SETTINGS: dict[str, Kind] = {
    setting.name: setting.kind for setting in OF_SETTINGS if not (setting.option and setting.option.group in _ASKED)
}
# Inputs that decide words and marks of the page, or what sheets of the workbook point at: no answer depends on them.
SHOWN: dict[str, Kind] = {entry.name: entry.kind for entry in INPUTS if entry.shown}
BANDS: dict[str, Kind] = dict.fromkeys(
    (*(name for scope in OF_ANY_KIND for name in band_names(scope)), *band_names("anchored", MODEL_KINDS)),
    replace(FACTOR, low=LEAST),  # a time at the low end is divided by it
)
OUTPUT = Kind("whole", 0, TOKENS.high)
_LENGTH_OF = re.compile(r"output_(?!tokens_per_second_band)\w+|prompt_asked")


def input_kind(name: str) -> Kind | None:
    """The kind of the input of that name; None for an unknown name or an input with an option."""
    return {**ENGINE, **SETTINGS, **SHOWN, **BANDS}.get(name) or (OUTPUT if _LENGTH_OF.fullmatch(name) else None)


def input_names(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Every input of a sheet with these workloads."""
    lengths = (f"{length}_{name_part(w.id)}" for w in workloads for length in ("output", "prompt"))
    return (*filter(input_kind, lengths), *ENGINE, *SETTINGS, *SHOWN, *BANDS)


Row = Mapping[str, Raw]
MOST_OWN_ROWS = 20
NAMED_BY = {"own_instances": ("provider", "type"), "own_models": ("model",)}


@dataclass(frozen=True)
class Overrides:
    """Values that replace those of options and catalogs; empty where nothing was typed.

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
        return any(getattr(self, part.name) for part in fields(self))

    def value(self, table: str, key: str, column: str, otherwise: Raw) -> Raw:
        """The value typed into a table's cell (None where it was emptied), or `otherwise`."""
        row: Row = getattr(self, table).get(key, {})
        return row.get(column, otherwise)

    def input(self, name: str, otherwise: Raw) -> Raw:
        """The value typed into an input's cell, or `otherwise`."""
        return self.inputs.get(name, otherwise)

    def shares_experts(self, gpu: Gpu) -> bool:
        """True where data-parallel layouts are tried on a GPU: its links are made for them by the catalog, or as
        typed."""
        return shares_experts(gpu, self.value("gpus", gpu.id, "interconnect_bytes_per_second", 0))

    def spelled(self, gpus: Iterable[str], instances: Iterable[str]) -> Overrides:
        """The same overrides with GPUs and providers spelled as in the sheet's first row of them: a spreadsheet ignores
        capital letters when it compares names."""
        spelled_gpus = {gpu.lower(): gpu for gpu in gpus}
        providers: dict[str, str] = {}

        def row(typed: Row, instance: str = "/") -> Row:
            provider = typed.get("provider") or instance.partition("/")[0]
            spelled = providers.setdefault(provider.lower(), provider)
            named: dict[str, Raw] = {"provider": spelled} if "provider" in typed else {}
            if gpu := typed.get("instance_gpu"):
                named["instance_gpu"] = spelled_gpus.get(gpu.lower(), gpu)
            return {**typed, **named}

        rows = {name: row(self.instances.get(name, {}), name) for name in instances}
        overrides = {**self.instances, **{name: row_typed for name, row_typed in rows.items() if row_typed}}
        return replace(self, instances=overrides, own_instances=tuple(row(own) for own in self.own_instances))

    def data(self) -> dict[str, Raw]:
        """The overrides as a scenario file and JSON have them: empty parts are left out, dates are text."""
        return {part.name: plain(getattr(self, part.name)) for part in fields(self) if getattr(self, part.name)}


@dataclass(frozen=True)
class Written:
    """The `typed` part of a file, and the prefix of a problem with a part of it: `file:line: `."""

    data: Raw
    place_of: Callable[[Loc], str]


def _place_in_typed(loc: Loc) -> str:
    return "typed" + "".join(f" {shown(part)}" for part in loc) + ": "


def read_overrides(given: Raw) -> tuple[Overrides, Callable[[Loc], str]]:
    """`typed` of a scenario, checked but for the keys of its rows, and `place_of` of `Written`.

    Raises ScenarioError with every problem: an unknown table, column or input, and a value out of range.
    """
    if isinstance(given, Overrides) or given is None:
        return given or Overrides(), _place_in_typed
    written = given if isinstance(given, Written) else Written(given, _place_in_typed)
    problems: list[str] = []

    def refuse(loc: Loc, problem: str) -> None:
        problems.append(f"{written.place_of(loc)}{problem}")

    def items(loc: Loc, data: object, content: str) -> Iterable[tuple[Raw, Raw]]:
        if isinstance(data, Mapping):
            return data.items()
        if data is not None:
            refuse(loc, f"{shown(loc[-1] if loc else 'typed')} must hold {content} by name.")
        return ()

    def values(loc: Loc, data: object) -> dict[str, Raw]:
        """The inputs, or the columns of a row, by name."""
        of_row = len(loc) > 1
        columns = TABLES[str(loc[0]).removeprefix("own_")] if of_row else {}
        typed = {}
        for key, value in items(loc, data, "columns" if of_row else "inputs"):
            name, here = str(key), (*loc, key)
            kind = columns.get(name) if of_row else input_kind(name)
            if kind is None and of_row:
                refuse(here, f"unknown column {shown(key)} of {loc[0]}.{did_you_mean(name, columns)}")
            elif kind is None:
                refuse(here, f"unknown input {shown(key)}.")
            else:
                row, wrong = f"your own row {loc[-1] + 1}" if isinstance(loc[-1], int) else shown(loc[-1]), Problems()
                typed[name] = wrong.attempt(kind.read, value, f"{shown(name)} of {row}" if of_row else shown(name))
                for problem in wrong:
                    refuse(here, problem)
        return typed

    def own_rows(part: str, data: object) -> Iterator[Row]:
        if not isinstance(data, (list, tuple)) or len(data) > MOST_OWN_ROWS:
            refuse((part,), f"{part} must be a list of at most {MOST_OWN_ROWS} rows.")
            return
        for i, row in enumerate(data):
            typed = values((part, i), row)
            refused = row.keys() if isinstance(row, dict) else ()  # a refused column is not reported as missing too
            lacks = [name for name in NAMED_BY[part] if not typed.get(name) and name not in refused]
            if lacks:
                refuse((part, i), f"{part} has a row without {' and '.join(lacks)}. Name it, or take it out.")
            yield typed

    names = [part_field.name for part_field in fields(Overrides)]
    parts: dict[str, Raw] = {}
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
    return Overrides(**parts), written.place_of


def unknown_keys(overrides: Overrides, keys: Mapping[str, Iterable[str]], where: Callable[[Loc], str]) -> Iterator[str]:
    """A line for each row and input that the sheet does not have; `keys` has them by part."""
    for part, allowed in keys.items():
        names = tuple(allowed)
        for key in getattr(overrides, part):
            if key not in names:
                kind = "an input" if part == "inputs" else f"a row of {part}"
                yield f"{where((part, key))}{shown(key)} is not {kind} on this sheet.{did_you_mean(key, names)}"


BY_READER = "typed in, not from the catalogs"
_OF_GROUPS = {  # a column: the field of each group of these kinds of attention
    "full_kv_heads": ("n_kv_heads", ("full",)),
    "windowed_kv_heads": ("n_kv_heads", ("windowed", "chunked")),
    "window_tokens": ("window_tokens", ("windowed", "chunked")),
    "mla_width": ("latent_width", ("mla",)),
}


class OverriddenModel(Model):
    """A model some of whose columns were typed over. The other columns stay as they are: they do not follow."""

    columns: dict[str, float]
    checkpoint_sizes: dict[str, float]

    def shape(self) -> dict[str, float]:
        return dict(self.columns)

    def checkpoint_bytes(self, weight_dtype: str) -> int:
        return self.checkpoint_sizes[weight_dtype]  # type: ignore[return-value]


def overridden_model(model: Model, row: Row) -> Model:
    """`model` with the numbers of its row, also in the fields and groups from which texts are made."""
    if not row:
        return model

    def group(attention: Group) -> Group:
        return attention.model_copy(
            update={field: row[c] for c, (field, kinds) in _OF_GROUPS.items() if c in row and attention.kind in kinds}
        )

    params = {field: int(row[c]) for c, field in (("n_params", "total"), ("n_params_active", "active")) if c in row}
    fields: dict[str, Raw] = dict(model) | {name: row[name] for name in _AT_LEAST_ONE if name in row}
    fields["params"] = model.params.model_copy(update=params)
    fields["attention"] = tuple(group(attention) for attention in model.attention)
    columns = {name: row.get(name, value) for name, value in model.shape().items()}
    sizes = {d: row.get(f"checkpoint_{d}", model.checkpoint_bytes(d)) or 0 for d in DTYPES}
    return OverriddenModel.model_construct(**fields, columns=columns, checkpoint_sizes=sizes)


class OverriddenGpu(Gpu):
    """A GPU whose memory was typed over: the engine's defaults stay those of the catalog's GPU."""

    catalog_bytes: int


def overridden_gpu(gpu: Gpu, row: Row) -> Gpu:
    """`gpu` with the memory and the precisions of its row."""
    runs = {part: {d: row.get(f"{part}_{d}") for d in DTYPES} for part in ("weights", "kv")}
    typed: dict[str, Raw] = {d: ("weight_only", "native")[int(how) - 1] for d, how in runs["weights"].items() if how}
    kept = {d: how for d, how in gpu.weights_run.items() if runs["weights"][d] != 0}
    cache = {d: int(how) for d, how in runs["kv"].items() if how is not None}
    fields: dict[str, Raw] = {"weights_run": {**kept, **typed}, "kv_typed": cache}
    memory = row.get("gpu_memory_bytes")
    if memory is None:
        return gpu.model_copy(update=fields)
    fields |= {"memory": gpu.memory.model_copy(update={"engine_bytes": memory})}
    return OverriddenGpu.model_construct(**{**dict(gpu), **fields, "catalog_bytes": gpu.memory.engine_bytes})


def limits_of(engine: Engine, gpu: Gpu) -> tuple[int, int]:
    """The engine's default batch limits on a GPU, by the memory in the catalog."""
    return engine.batch_limits(_catalog_gib(gpu), gpu.architecture)


def own_utilization(engine: Engine, gpu: Gpu) -> float:
    """The engine's default share of memory on a GPU, by the memory in the catalog."""
    return engine.utilization_on(_catalog_gib(gpu), gpu.architecture)


def _catalog_gib(gpu: Gpu) -> float:
    return (gpu.catalog_bytes if isinstance(gpu, OverriddenGpu) else gpu.memory.engine_bytes) / GIB


def overridden_owning(owning: Owning, overrides: Overrides) -> Owning:
    """`owning` with what was typed about GPUs; an end of the price that is blank or 0 is unknown."""
    return replace(owning, gpus={key: _owned(owned, overrides.gpus.get(key, {})) for key, owned in owning.gpus.items()})


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
    """The instances that can be rented: those of the catalog with what was typed over them, then the user's own
    rows."""
    purchase = listed[0].purchase
    blank, columns = Candidate("/", "", listed[0].gpu, 0, purchase, 0, None, "", BY_READER), _COLUMNS[purchase]
    rows: list[tuple[Candidate, Row]] = [(machine, overrides.instances.get(machine.instance, {})) for machine in listed]
    rows += [(blank, {"instance_gpu": None, **row}) for row in overrides.own_instances]
    named = {key.lower(): gpu for key, gpu in gpus.items()}  # a spreadsheet's look-up ignores capital letters
    for machine, row in rows:
        price = row.get(columns["price"], machine.usd_per_hour)
        if not price or purchase in machine.passed_over:
            continue
        if not row:
            yield replace(machine, gpu=gpus[machine.gpu.id], tries_ranks=overrides.shares_experts(machine.gpu))
            continue
        provider, kind = machine.instance.split("/", 1)
        provider, kind = row.get("provider", provider), row.get("type", kind)
        gpu = named.get((row.get("instance_gpu", machine.gpu.id) or "").lower())
        count = row.get("gpu_count", machine.gpu_count)
        if gpu is None or not count:
            continue
        is_listed = price == machine.usd_per_hour  # the source is of the list's price; the date, of the one beside it
        yield replace(
            machine,
            instance=f"{provider}/{kind}",
            provider=provider,
            gpu=gpu,
            gpu_count=count,
            usd_per_hour=price,
            price_as_of=_iso(row.get(columns["date"], machine.price_as_of)),
            region=row.get("region", machine.region) or "",
            source=row.get("source", machine.source if is_listed else "") or BY_READER,
            price_kind=row.get(columns["terms"], machine.price_kind) or "",
            prices=tuple(_prices(machine, row)),
            network_gbps=row.get("network_gbps", machine.network_gbps) or 0,
            tries_ranks=machine is blank or overrides.shares_experts(machine.gpu),
        )


def _prices(candidate: Candidate, row: Row) -> Iterator[ClassPrice]:
    """The prices in the other purchase classes; blank or 0 means no price."""
    for purchase, columns in _COLUMNS.items():
        listed = candidate.class_price(purchase) if purchase != candidate.purchase else None
        usd = row.get(columns["price"], listed and listed.usd_per_hour)
        if usd:
            date = row.get(columns["date"], listed and listed.price_as_of)
            terms = row.get(columns["terms"], listed.price_kind if listed else "")
            yield ClassPrice(purchase, usd, _iso(date), terms or "", listed.region if listed else "")


def _iso(date: Raw) -> str | None:
    return str(date.isoformat()) if hasattr(date, "isoformat") else date or None
