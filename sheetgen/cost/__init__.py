"""Money: what is rented (by the hour, month, year), what a user and a token cost, and owning beside renting.

Everything here is in US dollars and unrounded; a contingency and another currency come last (`budget`).
"""

from sheetgen.cost.owned import (
    WATTS_IN_A_KILOWATT,
    break_even_utilization,
    installed_usd_per_gpu,
    kw_per_gpu,
    metered_kw_per_gpu,
    monthly_owned_usd,
    owned_capex_usd,
    owned_energy_usd,
    owned_hardware_usd,
    owned_site_usd,
    owned_support_usd,
    owned_usd_per_gpu_hour,
    purchase_share_per_year,
)
from sheetgen.cost.rent import (
    HOURS_IN_A_MONTH,
    MONTHS_IN_A_YEAR,
    MONTHS_IN_THREE_YEARS,
    SECONDS_IN_AN_HOUR,
    TOKENS_IN_A_MILLION,
    annual_usd,
    commitment_waste_usd,
    contingency_usd,
    discounted_usd_per_hour,
    hourly_usd,
    in_currency,
    million_input_tokens_per_month,
    million_output_tokens_per_month,
    monthly_usd,
    n_instances,
    paid_hours_per_month,
    three_year_usd,
    total_usd,
    usd_per_million_input_tokens,
    usd_per_million_output_tokens,
    usd_per_million_tokens,
    usd_per_user_per_month,
)

# What the formulas count in, by the name under which they read it.
CONSTANTS = {
    "hours_in_a_month": HOURS_IN_A_MONTH, "months_in_a_year": MONTHS_IN_A_YEAR,
    "months_in_three_years": MONTHS_IN_THREE_YEARS, "seconds_in_an_hour": SECONDS_IN_AN_HOUR,
    "tokens_in_a_million": TOKENS_IN_A_MILLION, "watts_in_a_kilowatt": WATTS_IN_A_KILOWATT,
}  # fmt: skip

__all__ = [
    "CONSTANTS", "HOURS_IN_A_MONTH", "MONTHS_IN_A_YEAR", "MONTHS_IN_THREE_YEARS", "SECONDS_IN_AN_HOUR",
    "TOKENS_IN_A_MILLION", "WATTS_IN_A_KILOWATT", "annual_usd", "break_even_utilization", "commitment_waste_usd",
    "contingency_usd", "discounted_usd_per_hour", "hourly_usd", "in_currency", "installed_usd_per_gpu", "kw_per_gpu",
    "metered_kw_per_gpu", "million_input_tokens_per_month", "million_output_tokens_per_month", "monthly_owned_usd",
    "monthly_usd", "n_instances", "owned_capex_usd", "owned_energy_usd", "owned_hardware_usd", "owned_site_usd",
    "owned_support_usd", "owned_usd_per_gpu_hour", "paid_hours_per_month", "purchase_share_per_year", "three_year_usd",
    "total_usd", "usd_per_million_input_tokens", "usd_per_million_output_tokens", "usd_per_million_tokens",
    "usd_per_user_per_month",
]  # fmt: skip
