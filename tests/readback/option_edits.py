"""Random edits of the inputs that have an option, as a reader types them."""

from __future__ import annotations

import random
from typing import Any

CHOICES: dict[str, tuple[Any, ...]] = {
    "kv_cache_dtype": ("auto", "fp8", "BF16", "fp8_e4m3", "int8"),
    "weight_dtype": ("auto", "fp8", "int4", "mxfp4"),
    "gpu_memory_utilization": (0.5, 0.95, 1.0),
    "hours_per_month": (1, 200.5, 744),
    "peak_hour_share": (0.1, 0.333),
    "extra_headroom_fraction": (0.07, 0.5),
    "survive": (1, 2, 3),
    "zones": (2, 5),
    "average_context_fraction": (0.33,),
    "prefix_cache_hit_fraction": (0.3, 0.9),
    "kv_reserved": (1,),
    "kv_cache_memory_bytes": (6 * 2**30, 10**11),
    "block_size": (1, 48, 256),
    "as_of": (46_500, 40_000),
    "purchase": ("reserved-3yr", "spot"),
    "speed_factor": (1.2, 0.7),
    "ttft_factor": (2.5,),
    "utilization": (0.5, 0.05),
    "contingency_fraction": (0.1,),
    "owned_years": (3, 4.5),
    "residual_fraction": (0.2,),
    "cost_of_capital_fraction": (0.08,),
    "usd_per_kwh": (0.2,),
    "pue": (1.2,),
    "context_chat": (512, 1500, 4097, 33_000),
    "context_long_doc": (2048, 65_536, 500_000),
    "tier_1": (2, 500),
    "tier_2": (65, 3000),
    "tpot_ms_chat": (20, 33.5, None, 1.5),
    "tpot_ms_long_doc": (200, None),
    "ttft_ms_chat": (900, 5000, None),
    "ttft_ms_long_doc": (1000, None),
    "discount_of_aws": (0.1, 0),
    "discount_of_on_demand": (0.3,),
    "near_tie_fraction": (0, 0.3, 1),
    "least_network_gbps": (1, 100, 3201),
    "span_machines": (0,),
    "headline_workload": ("Long document", "Chat"),
    "headline_tier": (1, 64, 7),
    "speed_requests": (5, 500),
    "stale_after_days": (30, 900),
    "confidence": (0.3, 0.8),
}


def option_edits(rng: random.Random, share: float = 0.15) -> dict[str, Any]:
    """Cells to type into, by their defined names."""
    cells = {f"in_{name}": rng.choice(values) for name, values in CHOICES.items() if rng.random() < share}
    if rng.random() < 0.2:
        cells |= {"in_currency": "EUR", "in_fx_rate": rng.choice((0.9, 1.1)), "in_fx_date": 46_000}
    if rng.random() < 0.5:
        cells["in_discount_fraction"] = rng.choice((0.2, 0.35, 1 / 3, 0.99))
    return cells
