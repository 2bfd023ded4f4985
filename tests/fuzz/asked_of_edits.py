"""The question to Python when cells are edited: options of `build` where there is one, `typed` for all else.

Written apart from `sheetgen pull`, which has to find the same: two readers of one workbook.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from option_values import OptionValue
from workbook_cells import CellValue, number
from yellow_cells import Key, Yellow

from sheetgen.question.inputs import BY_NAME, BY_WORKLOAD, OF_SETTINGS, OF_WORKLOAD
from sheetgen.question.overrides import input_kind
from sheetgen.question.parse import name_part
from sheetgen.units import PURCHASES

# Inputs that have the name of their option, and its value.
OPTIONS = (
    "weight_dtype", "kv_cache_dtype", "gpu_memory_utilization", "hours_per_month", "peak_hour_share",
    "extra_headroom_fraction", "zones", "average_context_fraction", "prefix_cache_hit_fraction",
    "block_size", "as_of", "speed_factor", "ttft_factor", "utilization", "contingency_fraction", "currency",
    "fx_rate", "fx_date", "owned_years", "residual_fraction", "cost_of_capital_fraction", "support_fraction",
    "installed_multiplier", "system_power_multiplier", "usd_per_kwh", "pue", "colo_usd_per_kw_month",
    "discount_fraction", "near_tie_fraction", "least_network_gbps", "together",
)  # fmt: skip
NEWER = tuple(
    setting.name
    for setting in OF_SETTINGS
    if setting.row and setting.asked_as == setting.name and not setting.words and setting.name not in OPTIONS
)
# Cells that a sheet built anew would fill otherwise: they are said as they stand, edited or not.
AS_THEY_STAND = ("decision_", "case_", "output_", "money_model")
FOLLOW = ("decision_tpot_ms", "decision_ttft_ms")  # the tokens, until somebody types over them


def asked(start: Mapping[str, OptionValue], yellow: Yellow, edits: Mapping[Key, CellValue]) -> dict[str, Any]:
    """The options for `ask`: `start`, those that the workbook was built with, and `edits` over it."""
    typed_over = {key[1]: value for key, value in edits.items() if key[0] == "inputs"}
    now = {**yellow.inputs, **typed_over}
    question = yellow.question
    works = {w.id: name_part(w.id) for w in question.workloads}
    tiers = [int(number(now[f"tier_{i}"])) for i, _ in enumerate(question.tiers, 1)]
    options = {
        **start,
        "contexts": ",".join(f"{work}={int(number(now[f'context_{part}']))}" for work, part in works.items()),
        "tiers": ",".join(map(str, tiers)),
        "headline": _headline(yellow, now),
        "kv_allocation": "reserved" if now["kv_reserved"] else "paged",
        "survive": BY_NAME["survive"].words[int(number(now["survive"]))],
        "span_machines": "auto" if now["span_machines"] else "never",
        "fx_date": _text(now["fx_date"]),
        **{name: _text(typed_over[name]) for name in (*OPTIONS, *NEWER) if name in typed_over},
    }
    whose = {f"discount_of_{name_part(discount.replace(':', '_'))}": discount for discount in _whose(yellow)}
    if any(name in typed_over for name in (*whose, "discount_fraction")):
        parts = [f"{words}={now[name]}" for name, words in whose.items() if now[name] is not None]
        options["discount_fraction"] = ",".join((str(now["discount_fraction"]), *parts))
    for figure in BY_WORKLOAD:  # what nobody typed is as stated, or follows the workload's lengths
        cells = {w: f"{figure}_{part}" for w, part in works.items()}
        if any(name in typed_over for name in cells.values()):
            at_build = works if figure in OF_WORKLOAD else question.stated[figure]
            stated = {w: name for w, name in cells.items() if name in typed_over or w in at_build}
            of_each = {w: "off" if now[name] is None else _text(now[name]) for w, name in stated.items()}
            options[figure] = ",".join(f"{w}={value}" for w, value in of_each.items())
    return options | {"typed": _typed(now, typed_over, edits)}


def _whose(yellow: Yellow) -> list[str]:
    """Every provider and purchase class of the sheet, and both together, as the option names them."""
    providers = list(dict.fromkeys(row.provider for row in yellow.question.rows))
    return [*PURCHASES, *providers, *(f"{provider}:{purchase}" for provider in providers for purchase in PURCHASES)]


def _headline(yellow: Yellow, now: Mapping[str, CellValue]) -> str:
    """The load in the two dropdowns, whose words are a workload's name."""
    named = str(now["headline_workload"]).lower()
    workload = next(w.id for w in yellow.question.workloads if w.name.lower() == named)
    return f"{workload}:{int(number(now['headline_tier']))}"


def _typed(
    now: Mapping[str, CellValue], typed_over: Mapping[str, CellValue], edits: Mapping[Key, CellValue]
) -> dict[str, Any]:
    inputs = {name: value for name, value in now.items() if name.startswith(AS_THEY_STAND) and name not in FOLLOW}
    inputs |= {name: value for name, value in typed_over.items() if input_kind(name) is not None}
    typed: dict[str, Any] = {"inputs": inputs}
    for table, row, column in (key for key in edits if key[0] != "inputs"):
        value = edits[table, row, column]
        if table.startswith("own_"):
            rows = typed.setdefault(table, [])
            rows += [{} for _ in range(row + 1 - len(rows))]
            rows[row] |= {column: value} if value is not None else {}
        else:
            typed.setdefault(table, {}).setdefault(row, {})[column] = value
    return typed


def _text(value: CellValue) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
