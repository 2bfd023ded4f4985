"""The inputs that hold for a whole sheet: precisions, the engine's limits, money, and how the page is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sheetgen.catalog.engines import Engine
from sheetgen.errors import ScenarioError
from sheetgen.scenario import parse
from sheetgen.scenario.money import Money, money_settings
from sheetgen.units import ON_DEMAND, PURCHASES

MOST_DISCOUNT = 0.99  # beyond it is no contract: 20 was meant as 20 %


@dataclass(frozen=True)
class Settings(Money):
    """The inputs that hold for the whole sheet."""

    weight_dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    gpu_memory_utilization: float = 0.90
    block_size: int = 16
    hours_per_month: float = 730
    discount_fraction: float = 0  # what a contract takes off every rental price
    active_fraction: float = 1.0
    extra_headroom_fraction: float = 0.0
    spare_replicas: int = 0
    average_context_fraction: float = 1.0
    prefix_cache_hit_fraction: float = 0.0
    kv_reserved: int = 0
    hybrid_kv_manager: int = 1
    purchase: str = ON_DEMAND
    speed_factor: float = 1.0
    ttft_factor: float = 1.0
    speed_targets: int = 1  # 0: memory alone decides
    units: str = "gib"
    paper: str = "a4"

    @property
    def is_committed(self) -> int:
        """1 where the purchase class pays for every hour of the month, run or not."""
        return int(PURCHASES[self.purchase].committed)


def _discount(value: Any) -> float:
    try:
        return parse.number_between(value, "discount_fraction", 0, MOST_DISCOUNT)
    except ScenarioError as error:
        raise ScenarioError(*(f"{one} A share: 0.2 is 20 %." for one in error.problems)) from None


def settings_of(options: Mapping[str, Any], engine: Engine | None) -> Settings:
    """The settings behind the options of `build`; what is not given takes the engine's default or ours."""
    default = Settings()

    def share(name: str, fallback: float, above_zero: bool = True) -> float:
        value = options.get(name)
        return fallback if value is None else parse.fraction(value, name, above_zero)

    if engine:
        default = replace(
            default,
            gpu_memory_utilization=engine.gpu_memory_utilization,
            block_size=engine.block_size,
            hybrid_kv_manager=int(engine.frees_windows),
        )
    block, hours, discount = (options.get(name) for name in ("block_size", "hours_per_month", "discount_fraction"))
    return Settings(
        weight_dtype=parse.dtype(options.get("weight_dtype") or "auto", "weight_dtype"),
        kv_cache_dtype=parse.dtype(options.get("kv_cache_dtype") or "auto", "kv_cache_dtype"),
        gpu_memory_utilization=share("gpu_memory_utilization", default.gpu_memory_utilization),
        block_size=parse.whole(default.block_size if block is None else block, "block_size"),
        hours_per_month=parse.amount(hours, "hours_per_month", 1, 744) if hours is not None else 730,
        discount_fraction=0 if discount is None else _discount(discount),
        active_fraction=share("active_fraction", 1.0),
        extra_headroom_fraction=share("extra_headroom_fraction", 0.0, above_zero=False),
        spare_replicas=parse.whole(options.get("spare_replicas") or 0, "spare_replicas", 0, 100),
        average_context_fraction=share("average_context_fraction", 1.0),
        prefix_cache_hit_fraction=share("prefix_cache_hit_fraction", 0.0, above_zero=False),
        kv_reserved=int(
            parse.one_of(options.get("kv_allocation") or "paged", "kv_allocation", ("paged", "reserved")) == "reserved"
        ),
        hybrid_kv_manager=default.hybrid_kv_manager,
        purchase=parse.one_of(options.get("purchase") or ON_DEMAND, "purchase", PURCHASES),
        speed_factor=parse.factor(options.get("speed_factor"), "speed_factor"),
        ttft_factor=parse.factor(options.get("ttft_factor"), "ttft_factor"),
        units=parse.one_of(options.get("units") or "gib", "units", ("gib", "gb")),
        paper=parse.one_of(options.get("paper") or "a4", "paper", ("a4", "letter")),
        **money_settings(options),
    )
