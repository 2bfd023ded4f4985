"""Owning the GPUs instead of renting them: purchase, power, site and support a month, and when it is cheaper.

The GPUs are powered and housed in every hour of the month, whatever they do.
"""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, formula, is_number, number_where, power, ratio, where
from sheetgen.units import PERCENT, TWO_DECIMALS, USD, USD_CENTS

WATTS_IN_A_KILOWATT = 1000


@formula("Installed, $ per GPU", USD)
def installed_usd_per_gpu(
    capex_usd_per_gpu: Quantity, is_module_price: Quantity, installed_multiplier: Quantity
) -> Any:
    """What one GPU costs with its share of the server, in US dollars; none where no price is known.

    Source: a module's price x the multiplier on Inputs; the price of a whole system, or your own quote, as it is.
    """
    installed = capex_usd_per_gpu * where(is_module_price == 1, installed_multiplier, 1)
    return number_where(is_number(capex_usd_per_gpu), installed)


@formula("kW per GPU", TWO_DECIMALS)
def kw_per_gpu(
    stated_kw_per_gpu: Quantity, rated_watts: Quantity, system_power_multiplier: Quantity, watts_in_a_kilowatt: Quantity
) -> Any:
    """Power of one GPU with its share of the server, in kW: as stated, else from the rated power of the GPU.

    Source: SemiAnalysis where stated. Check: DGX B200 draws 14.3 kW with eight GPUs of 1,000 W.
    """
    derived = rated_watts / watts_in_a_kilowatt * system_power_multiplier
    return where(is_number(stated_kw_per_gpu), stated_kw_per_gpu, number_where(is_number(rated_watts), derived))


@formula("kW per GPU at the meter", TWO_DECIMALS)
def metered_kw_per_gpu(kw_per_gpu: Quantity, is_it_power: Quantity, pue: Quantity) -> Any:
    """Power that one GPU draws at the site's meter, with its share of the server, in kW.

    Source: what the machine draws x PUE; a figure that has the cooling in it already is taken as it is.
    """
    return number_where(is_number(kw_per_gpu), where(is_it_power == 1, kw_per_gpu * pue, kw_per_gpu))


@formula("Purchase, $", USD)
def owned_capex_usd(n_gpus: Quantity, installed_usd_per_gpu: Quantity) -> Any:
    """What the GPUs of all replicas cost to buy, installed, in US dollars.

    Source: definition; GPUs are counted one by one, servers sell several together.
    """
    return number_where(both(is_number(n_gpus), is_number(installed_usd_per_gpu)), n_gpus * installed_usd_per_gpu)


@formula("Purchase paid in a year", PERCENT)
def purchase_share_per_year(
    owned_years: Quantity, residual_fraction: Quantity, cost_of_capital_fraction: Quantity
) -> Any:
    """The share of the purchase that each year of use bears, less what is left of it at the end.

    A straight line where capital costs nothing; else equal yearly payments at the cost of capital.

    Source: depreciation and annuity as finance knows them. Check: 5 years, nothing left, no interest: 20 %.
    """
    growth = power(1 + cost_of_capital_fraction, owned_years)
    straight = ratio(1 - residual_fraction, owned_years)
    annuity = (growth - residual_fraction) * ratio(cost_of_capital_fraction, growth - 1)
    return where(growth == 1, straight, annuity)


@formula("Hardware, $ per month", USD)
def owned_hardware_usd(owned_capex_usd: Quantity, purchase_share_per_year: Quantity, months_in_a_year: Quantity) -> Any:
    """The purchase spread over its years, in US dollars a month.

    Source: definition. Check: 8 GPUs for $315,000 over 5 years are $0.90 per GPU and hour.
    """
    return number_where(is_number(owned_capex_usd), owned_capex_usd * purchase_share_per_year / months_in_a_year)


@formula("Support, $ per month", USD)
def owned_support_usd(owned_capex_usd: Quantity, support_fraction: Quantity, months_in_a_year: Quantity) -> Any:
    """Support and maintenance: a share of the purchase each year, in US dollars a month.

    Source: the share on Inputs; 0 until somebody knows it.
    """
    return number_where(is_number(owned_capex_usd), owned_capex_usd * support_fraction / months_in_a_year)


@formula("Power, $ per month", USD)
def owned_energy_usd(
    n_gpus: Quantity, metered_kw_per_gpu: Quantity, usd_per_kwh: Quantity, hours_in_a_month: Quantity
) -> Any:
    """Electricity of every hour of the month, at full draw, in US dollars.

    Source: kW x hours x $ per kWh.
    """
    known = both(is_number(n_gpus), is_number(metered_kw_per_gpu))
    return number_where(known, n_gpus * metered_kw_per_gpu * hours_in_a_month * usd_per_kwh)


@formula("Site, $ per month", USD)
def owned_site_usd(n_gpus: Quantity, kw_per_gpu: Quantity, colo_usd_per_kw_month: Quantity) -> Any:
    """Rent of space and cooling by the kW, power not included, in US dollars a month.

    Source: CBRE. Check: 1.73 kW at $194.95 is $0.46 per GPU and hour.
    """
    return number_where(both(is_number(n_gpus), is_number(kw_per_gpu)), n_gpus * kw_per_gpu * colo_usd_per_kw_month)


@formula("Owned, $ per month", USD)
def monthly_owned_usd(
    owned_hardware_usd: Quantity, owned_support_usd: Quantity, owned_energy_usd: Quantity, owned_site_usd: Quantity
) -> Any:
    """What owning costs in a month, in US dollars; none where the purchase price or the power is not known.

    Source: hardware + support + power + site. Staff, network and licences are not in it.
    """
    known = both(is_number(owned_hardware_usd), is_number(owned_energy_usd))
    return number_where(known, owned_hardware_usd + owned_support_usd + owned_energy_usd + owned_site_usd)


@formula("Owned, $ per GPU and hour", USD_CENTS)
def owned_usd_per_gpu_hour(monthly_owned_usd: Quantity, n_gpus: Quantity, hours_in_a_month: Quantity) -> Any:
    """What owning costs per GPU and hour of the month, used or not, in US dollars.

    Source: definition.
    """
    return number_where(is_number(monthly_owned_usd), ratio(monthly_owned_usd, n_gpus * hours_in_a_month))


@formula("Break-even utilization", PERCENT)
def break_even_utilization(
    monthly_owned_usd: Quantity, on_demand_hourly_usd: Quantity, hours_in_a_month: Quantity
) -> Any:
    """The share of a month's hours above which owning is cheaper than renting on demand; over 100 %: never.

    Source: owned $ per month / what the same load costs on demand in all hours of the month.
    """
    known = both(is_number(monthly_owned_usd), is_number(on_demand_hourly_usd))
    return number_where(known, ratio(monthly_owned_usd, on_demand_hourly_usd * hours_in_a_month))
