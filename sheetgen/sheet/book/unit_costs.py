"""What a user and a million tokens cost, beside each load's choice on Workings."""

from __future__ import annotations

from sheetgen import cost
from sheetgen.sheet.book.wiring import Wiring

OF_LOADS = (
    cost.usd_per_user_per_month, cost.million_output_tokens_per_month, cost.million_input_tokens_per_month,
    cost.usd_per_million_input_tokens, cost.usd_per_million_output_tokens, cost.usd_per_million_tokens,
)  # fmt: skip


def add_unit_costs(wiring: Wiring) -> None:
    """Per load: a user's month, and a million tokens at the utilization on Inputs, by the speed of the choice."""
    table = wiring.tables["cells"]
    for one in OF_LOADS:
        table.computed(one, lambda i: wiring.inputs, width=14)
