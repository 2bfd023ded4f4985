"""What stands on pages beside the loads, named for people: there a cell's own row says only part of it."""

from __future__ import annotations

_RESULTS = {
    "whatif_hardware_monthly_usd": "$ per month on the hardware chosen",
    "whatif_hardware_gpus": "GPUs for all users on the hardware chosen",
    "whatif_monthly_usd": "$ per month of the cheapest hardware",
    "whatif_instance": "cheapest hardware",
    "whatif_n_instances": "how many of the cheapest hardware",
}
_CASES = ("low", "base", "high")
_OF_CASES = {
    "users": "users, times",
    "context": "context, times",
    "price": "prices, times",
    "monthly_usd": "$ per month",
}


def aside_label(name: str, sheet: str) -> str:
    """The label of a result of What-if, or of an input or a result of its cases (`case_low_monthly_usd`,
    `case_users_high`); "" for anything else. `sheet`: where its cell stands, which may be a sheet of workings."""
    page = sheet.removesuffix(" loads")
    if name in _RESULTS:
        return f"{page}, {_RESULTS[name]}"
    head, _, rest = name.partition("_")
    if head == "case":
        for case in _CASES:
            what = rest.removeprefix(f"{case}_").removesuffix(f"_{case}")
            if what != rest and what in _OF_CASES:
                return f"{page}, {case} case, {_OF_CASES[what]}"
    return ""
