"""Which cells of a workbook a reader may type over beside those of an option, and what each takes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sheetgen.catalog.engines import CONSTANTS
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.speed import SpeedConstants
from sheetgen.scenario.inputs import INPUTS, OF_SETTINGS, OPTION_GROUPS, PER_GPU_KW, PER_GPU_USD
from sheetgen.scenario.kinds import ANY, COUNT, DAY, FLAG, TEXT, TOKENS, Kind, name_part
from sheetgen.units import DTYPES, PURCHASES

FACTOR = Kind(high=1000)
DIVISOR = Kind(low=0.001, high=1000)
PRICE = Kind(high=1e6, blank=True)  # 0, as nothing: it cannot be rented
RATE = Kind(low=1, high=1e18)

_AT_LEAST_ONE = ("n_layers", "n_heads", "hidden_size", "vocab_size", "max_context_tokens")
_FLAGS = ("window_is_chunked",)
_WHOLE = (
    "n_full_layers", "full_kv_heads", "n_windowed_layers", "windowed_kv_heads", "window_tokens", "n_mla_layers",
    "n_other_layers", "n_state_layers", "n_experts", "experts_per_token", "ffn_matrices",
)  # fmt: skip
_PARTS = (  # of a model's shape, any number from 0
    "intermediate_size", "expert_intermediate_size", "encoder_item_tokens", "encoder_item_elements",
    "rope_table_elements", "full_kv_width", "windowed_kv_width", "mla_width", "mla_fp8_entry_bytes",
    "mla_absorbed_elements", "attention_elements", "windowed_attention_elements", "other_elements_per_token",
    "other_bytes_per_token", "conv_bytes_per_state_layer", "state_elements_per_layer", "state_element_bytes",
    "n_params", "n_params_active", "n_params_quantizable", "n_params_copied", "n_params_routed", "n_params_mtp",
    "n_params_embedding", "n_params_per_layer_embedding", "n_params_lm_head",
)  # fmt: skip
SHAPE: dict[str, Kind] = {
    **dict.fromkeys(_AT_LEAST_ONE, Kind("whole", 1)),
    **dict.fromkeys(_FLAGS, FLAG),
    **dict.fromkeys(_WHOLE, Kind("whole")),
    **dict.fromkeys(_PARTS, ANY),
}
CLASS_STEMS = tuple(p.replace("-", "_") for p in PURCHASES)  # of the columns of other purchase classes

TABLES: dict[str, dict[str, Kind]] = {
    "models": {
        "model": Kind("text", blank=True),  # the name of a model of one's own
        **SHAPE,
        **dict.fromkeys(("own_weight_dtype", "own_kv_dtype"), Kind("dtype")),
        **{f"checkpoint_{d}": Kind(blank=True) for d in DTYPES},
    },
    "gpus": {
        "gpu_memory_bytes": Kind(low=1, high=1e13),
        **dict.fromkeys(("max_num_seqs", "max_num_batched_tokens"), COUNT),
        **dict.fromkeys(("pool_error_bytes_measured", "pool_error_bytes_elsewhere"), Kind(low=-1e13, high=0)),
        **dict.fromkeys(("is_older_gpu", "speed_is_fitted"), FLAG),
        **dict.fromkeys(("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second"), RATE),
        **{f"peak_flops_{d}": RATE for d in ("16_bit", *DTYPES)},
        **{name: FACTOR if any(getattr(bound, "ge", None) == 0 for bound in field.metadata) else DIVISOR
           for name, field in SpeedConstants.model_fields.items()},
        **{f"{what}_{d}": FLAG for what in ("weights", "kv") for d in DTYPES},
        **{f"capex_{end}_usd": Kind(high=PER_GPU_USD.high, blank=True) for end in ("low", "base", "high")},
        **dict.fromkeys(("is_module_price", "is_it_power"), FLAG),
        "capex_date": DAY,
        "stated_kw_per_gpu": Kind(high=PER_GPU_KW.high, blank=True),
        "rated_watts": Kind(high=1e5, blank=True),
    },
    "instances": {
        "provider": Kind("name"),
        "type": Kind("text"),
        **dict.fromkeys(("instance_gpu", "region", "terms", "source"), TEXT),
        "gpu_count": Kind("whole", 1, 1024, blank=True),
        "price_usd_per_hour": PRICE,
        "price_date": DAY,
        **{f"price_{stem}": PRICE for stem in CLASS_STEMS},
        **{f"date_{stem}": DAY for stem in CLASS_STEMS},
        **{f"terms_{stem}": TEXT for stem in CLASS_STEMS},
    },
    "precisions": dict.fromkeys(
        ("linear_bytes", "other_bytes", "activation_copy_bytes", "kv_dtype_bytes", "kv_scale_bytes"), Kind(high=64)
    ),
}  # fmt: skip

# What the engine's accounting is made of, under the names of its columns.
ENGINE: dict[str, Kind] = {
    **{one.column: Kind(one.kind if one.kind != "flag" else "whole", one.low, one.high)
       for one in CONSTANTS if one.label},
    "max_pipeline_parallel_size": Kind("whole", 1, 64),
}  # fmt: skip
_ASKED = ("sheet", *OPTION_GROUPS)
# Of the settings, those that no option of a sheet asks for.
SETTINGS: dict[str, Kind] = {
    one.name: one.kind for one in OF_SETTINGS if not (one.option and one.option.group in _ASKED)
}
# What decides words and marks of the page, and what sheets of the workbook are pointed at: no answer follows them.
SHOWN: dict[str, Kind] = {one.name: one.kind for one in INPUTS if one.shown}
BANDS: dict[str, Kind] = {
    f"{figure}_band_{end}_{scope}_{kind}": FACTOR
    for figure in ("tpot", "ttft", "output_tokens_per_second")
    for end in ("low", "high")
    for scope in ("fitted", "other")
    for kind in ("dense", "moe")
}
OUTPUT = Kind("whole", 0, TOKENS.high)
_OUTPUT_OF = re.compile(r"output_(?!tokens_per_second_band)\w+")


def input_kind(name: str) -> Kind | None:
    """What the input of that name takes; nothing where there is none, or an option has it."""
    known = {**ENGINE, **SETTINGS, **SHOWN, **BANDS}.get(name)
    return known or (OUTPUT if _OUTPUT_OF.fullmatch(name) else None)


def input_names(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Every input of a sheet with these workloads."""
    return (*(f"output_{name_part(w.id)}" for w in workloads), *ENGINE, *SETTINGS, *SHOWN, *BANDS)
