"""Which cells of a workbook a reader may type over beside those of an option, and what each takes."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.speed import SpeedConstants
from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.scenario import parse
from sheetgen.scenario.money import MOST_CAPEX_USD, MOST_KW
from sheetgen.units import DTYPES, PURCHASES, TENSOR_PARALLEL_SIZES

MOST_TEXT = 200  # characters
LOG_LINES, LOG = 12, ("what", "where", "was", "is", "who", "date")  # lines of the Change log that people fill
MOST = 1e15


def name_part(text: str) -> str:
    """A catalog id as part of a cell's name: dots and dashes become underscores."""
    return "".join(c if c.isalnum() else "_" for c in text)


@dataclass(frozen=True)
class Kind:
    """What one cell takes: a number within bounds, a text, a date or a precision; or nothing, where `blank`."""

    what: str = "number"  # or whole, text, name, any (a number or a text), date, dtype
    low: float = 0
    high: float = MOST
    blank: bool = False

    def read(self, value: Any, name: str) -> Any:
        """`value` as it is kept. Raises ScenarioError with the value and what is allowed."""
        if value is None or (isinstance(value, str) and not value.strip()):
            if self.blank:
                return None
            raise ScenarioError(f"{name} is blank. It must be {self}.")
        try:
            return _READ[self.what](self, value)
        except (ValueError, SheetgenError):
            raise ScenarioError(f"{name} is {shown(value)!r}. It must be {self}.") from None

    def __str__(self) -> str:
        if self.what in ("number", "whole"):
            span = f"from {_plain(self.low)} to {_plain(self.high)}"
            return f"{'a whole number' if self.what == 'whole' else 'a number'} {span}"
        if self.what == "date":
            return f"a date such as 2026-11-20, from {parse.FIRST_DAY} to {parse.LAST_DAY}"
        if self.what == "any":
            return f"a number, or a text of at most {MOST_TEXT} characters"
        if self.what == "dtype":
            return f"one of {', '.join(DTYPES)}"
        return f"a text of at most {MOST_TEXT} characters{' without a slash' if self.what == 'name' else ''}"


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) and abs(number) < MOST else f"{number:g}"


def _number(kind: Kind, value: Any) -> float:
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    whole = float(value).is_integer()
    if not kind.low <= value <= kind.high or (kind.what == "whole" and not whole):
        raise ValueError
    return int(value) if whole else value


def _text(kind: Kind, value: Any) -> str:
    text = str(value)
    if isinstance(value, bool) or not text.isprintable() or len(text) > MOST_TEXT:
        raise ValueError
    if kind.what == "name" and "/" in text:
        raise ValueError
    return text


def _date(kind: Kind, value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        value = value.date()
    return parse.day(value, "")


def _dtype(kind: Kind, value: Any) -> str:
    found = parse.dtype(value, "")
    if found == "auto":
        raise ValueError
    return found


def _any(kind: Kind, value: Any) -> Any:
    return _text(kind, value) if isinstance(value, str) else _number(kind, value)


_READ: dict[str, Any] = {
    "any": _any, "number": _number, "whole": _number, "text": _text, "name": _text, "date": _date, "dtype": _dtype,
}  # fmt: skip

FLAG = Kind("whole", 0, 1)
FACTOR = Kind(high=1000)
DIVISOR = Kind(low=0.001, high=1000)
COUNT = Kind("whole", 1, 1e7)
TEXT = Kind("text", blank=True)
DAY = Kind("date", blank=True)
PRICE = Kind(high=1e6, blank=True)  # 0, as nothing: it cannot be rented
RATE = Kind(low=1, high=1e18)
ANY = Kind()

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
_FROM_ZERO = (  # constants of speed that nothing is divided by
    "prefill_weight_reads", "seconds_per_layer", "seconds_per_all_reduce", "wait_factor", "base_ttft_seconds",
    "steps_before_prefill",
)  # fmt: skip
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
        **{name: FACTOR if name in _FROM_ZERO else DIVISOR for name in SpeedConstants.model_fields},
        **{f"{what}_{d}": FLAG for what in ("weights", "kv") for d in DTYPES},
        **{f"capex_{end}_usd": Kind(high=MOST_CAPEX_USD, blank=True) for end in ("low", "base", "high")},
        **dict.fromkeys(("is_module_price", "is_it_power"), FLAG),
        "capex_date": DAY,
        "stated_kw_per_gpu": Kind(high=MOST_KW, blank=True),
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

# What the engine's accounting is made of, under the names of `engine_columns`.
ENGINE: dict[str, Kind] = {
    **dict.fromkeys(("fraction_of_free", "activations_in_budget", "graphs_in_budget", "shares_pages"), FLAG),
    **dict.fromkeys(
        ("context_bytes", "sampler_bytes_per_logit", "sampler_bytes_per_vocabulary_entry", "forward_hidden_copies",
         "expert_workspace_share", "matmul_workspace_bytes", "large_allocation_bytes", "staged_non_torch_bytes_tp1",
         "cuda_graph_bytes_per_gpu"), ANY),
    "allocation_step_bytes": Kind(low=1),
    **{f"{older}non_torch_bytes_tp{t}": ANY for older in ("", "older_") for t in TENSOR_PARALLEL_SIZES},
    **dict.fromkeys(("in_flight_batches", "state_blocks"), Kind("whole", 1, 8)),
    "group_stretch": FACTOR,
    "max_pipeline_parallel_size": Kind("whole", 1, 64),
    "calibrated_tensor_parallel_size": Kind("whole", 0, 64),
}  # fmt: skip
# Of the settings, those that no option asks for.
SETTINGS: dict[str, Kind] = {"hybrid_kv_manager": FLAG, "speed_targets": FLAG}
# What decides words and marks of the page, and what sheets of the workbook are pointed at: no answer follows them.
SHOWN: dict[str, Kind] = {
    "stale_after_days": Kind("whole", 1, 10_000),
    "tight_below": Kind(high=1),
    "headline_tier": Kind("whole", 1, MOST),  # only where it is no tier any more
    "speed_pace": Kind("text"),
    "speed_requests": Kind("whole", 1, 1e6),
    **{f"whatif_{name}": Kind("text") for name in ("model", "hardware", "weight_dtype", "kv_cache_dtype", "engine")},
    "whatif_tensor_parallel_size": Kind("any"),
    "whatif_users": COUNT,
    "whatif_context_tokens": Kind("whole", 1, parse.MAX_TOKENS),
    "whatif_answer_tokens": Kind("whole", 0, parse.MAX_TOKENS),
    "whatif_tpot_ms": Kind(high=3_600_000, blank=True),
    **{f"log_{i}_{what}": Kind("date" if what == "date" else "any", low=-MOST, blank=True)
       for i in range(1, LOG_LINES + 1) for what in LOG},
    **{f"case_{name}_{case}": Kind(low=0.001, high=1000)
       for name in ("users", "context", "price") for case in ("low", "base", "high")},
}  # fmt: skip
BANDS: dict[str, Kind] = {
    f"{figure}_band_{end}_{scope}_{kind}": FACTOR
    for figure in ("tpot", "ttft", "output_tokens_per_second")
    for end in ("low", "high")
    for scope in ("fitted", "other")
    for kind in ("dense", "moe")
}
OUTPUT = Kind("whole", 0, parse.MAX_TOKENS)
_OUTPUT_OF = re.compile(r"output_(?!tokens_per_second_band)\w+")


def input_kind(name: str) -> Kind | None:
    """What the input of that name takes; nothing where there is none, or an option has it."""
    known = {**ENGINE, **SETTINGS, **SHOWN, **BANDS}.get(name)
    return known or (OUTPUT if _OUTPUT_OF.fullmatch(name) else None)


def input_names(workloads: Iterable[Workload]) -> tuple[str, ...]:
    """Every input of a sheet with these workloads."""
    return (*(f"output_{name_part(w.id)}" for w in workloads), *ENGINE, *SETTINGS, *SHOWN, *BANDS)


def plain(value: Any) -> Any:
    """A kept value as JSON and YAML have it."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
