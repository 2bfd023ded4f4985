"""Money: what is rented (by the hour, month, year), what a user and a token cost, and owning beside renting.

Everything here is in US dollars and unrounded, but for the cents by which hosts are ranked: money rounds once, when it
is shown. Contingency is a line of its own, then comes the currency: neither is inside a unit rate.
"""

from __future__ import annotations

from sheetgen.formula import (
    Quantity,
    both,
    formula,
    is_number,
    largest,
    number_where,
    power,
    ratio,
    round_nearest,
    round_up,
    where,
)
from sheetgen.units import ONE_DECIMAL, PERCENT, TWO_DECIMALS, USD, USD_CENTS, WHOLE

HOURS_IN_A_MONTH = 730  # 8,760 hours of a year / 12: what a commitment pays for
CONSTANTS = {  # units of the formulas, by the name under which they read them
    "hours_in_a_month": HOURS_IN_A_MONTH,
    "months_in_a_year": 12,
    "months_in_three_years": 36,
    "seconds_in_an_hour": 3600,
    "tokens_in_a_million": 10**6,
    "watts_in_a_kilowatt": 1000,
    "cents_in_a_dollar": 100,
    "decimal_base": 10,
    "hours_in_a_day": 24,
}


@formula("$ per hour, paid", USD_CENTS)
def discounted_usd_per_hour(listed_usd_per_hour: Quantity, discount_fraction: Quantity) -> Quantity:
    """Price of an instance in an hour under one's own contract, in US dollars: its price less the discount in force.

    Source: the price that is listed, or typed, of any purchase class x (1 - discount).
    Check: p5.48xlarge at $55.04 less 20 % is $44.03.
    """
    return listed_usd_per_hour * (1 - discount_fraction)


@formula("Instances")
def n_instances(
    n_replicas: Quantity,
    paced_requests: Quantity,
    replicas_per_instance: Quantity,
    load_requests: Quantity,
    price_usd_per_hour: Quantity,
) -> Quantity:
    """Whole instances for all replicas; none where the instance cannot hold the load or has no price, 0 where it
    holds it but no count meets the targets of speed.

    Source: INTERFACE: ceil(n_replicas / replicas of one instance).
    """
    can_serve = both(replicas_per_instance > 0, load_requests >= 1, is_number(price_usd_per_hour))
    count = round_up(ratio(n_replicas, replicas_per_instance))
    return number_where(can_serve, where(paced_requests >= 1, count, 0))


@formula("Hours paid for in a month")
def paid_hours_per_month(hours_per_month: Quantity, hours_in_a_month: Quantity, is_committed: Quantity) -> Quantity:
    """Hours that a month's cost counts: those run, or all of the month under a commitment (a reserved price).

    Source: reserved instances and committed-use discounts are billed whether they run or not.
    Check: 200 hours run under a reservation are billed as 730.
    """
    return where(is_committed == 1, largest(hours_per_month, hours_in_a_month), hours_per_month)


@formula("$ per instance and month", USD)
def instance_month_usd(price_usd_per_hour: Quantity, paid_hours_per_month: Quantity) -> Quantity:
    """Cost of one instance in a month, in US dollars; 0 where no price is known.

    Source: price x hours paid.
    """
    return where(is_number(price_usd_per_hour), price_usd_per_hour * paid_hours_per_month, 0)


@formula("$ per rented GPU and month", USD)
def gpu_month_usd(instance_month_usd: Quantity, gpu_count: Quantity) -> Quantity:
    """Cost of one GPU of the instance in a month, in US dollars, used or not; 0 where no price is known.

    Source: definition.
    """
    return ratio(instance_month_usd, gpu_count)


@formula("$ per hour", USD_CENTS)
def hourly_usd(n_instances: Quantity, price_usd_per_hour: Quantity) -> Quantity:
    """Cost of all instances in an hour, in US dollars; none where there are none, or no price is known.

    Source: the provider's price of one instance.
    """
    is_priced = both(is_number(n_instances), n_instances >= 1, is_number(price_usd_per_hour))
    return number_where(is_priced, n_instances * price_usd_per_hour)


@formula("$ per month", USD)
def monthly_usd(hourly_usd: Quantity, paid_hours_per_month: Quantity) -> Quantity:
    """Cost of all instances in a month, in US dollars, for the hours paid; none where there are none.

    Source: 730 hours a month (8,760 / 12), as cloud price lists count.
    Check: p5.48xlarge at $55.04 an hour is $40,179.20.
    """
    return number_where(is_number(hourly_usd), hourly_usd * paid_hours_per_month)


@formula("$ per year", USD)
def annual_usd(monthly_usd: Quantity, months_in_a_year: Quantity) -> Quantity:
    """Cost of a year at today's price: twelve months, in US dollars.

    Source: definition.
    """
    return number_where(is_number(monthly_usd), monthly_usd * months_in_a_year)


@formula("$ in 3 years", USD)
def three_year_usd(monthly_usd: Quantity, months_in_three_years: Quantity) -> Quantity:
    """Cost of three years at today's price: 36 months, in US dollars, for a three-year commitment as for others.

    Source: definition; nothing is discounted, and no price is foreseen.
    """
    return number_where(is_number(monthly_usd), monthly_usd * months_in_three_years)


@formula("Unused commitment, $ per month", USD)
def commitment_waste_usd(
    hourly_usd: Quantity, hours_per_month: Quantity, hours_in_a_month: Quantity, is_committed: Quantity
) -> Quantity:
    """The part of a month's cost that pays for hours not run, in US dollars: 0 without a commitment.

    Source: hours of the month not run x the committed rate.
    """
    paid = paid_hours_per_month(hours_per_month, hours_in_a_month, is_committed)
    return number_where(is_number(hourly_usd), hourly_usd * (paid - hours_per_month))


@formula("$ per user and month", USD_CENTS)
def usd_per_user_per_month(monthly_usd: Quantity, users: Quantity) -> Quantity:
    """A month's cost over the people served, in US dollars.

    Source: users, as stated or by the targets; without targets there are none to state.
    """
    return number_where(both(is_number(monthly_usd), is_number(users), users > 0), ratio(monthly_usd, users))


@formula("Million answer tokens a month", ONE_DECIMAL)
def million_output_tokens_per_month(
    output_tokens_per_second: Quantity,
    utilization: Quantity,
    hours_per_month: Quantity,
    seconds_in_an_hour: Quantity,
    tokens_in_a_million: Quantity,
) -> Quantity:
    """Tokens of answers that all replicas write in a month, in millions.

    They do this load in `utilization` of the hours that they run, and nothing in the rest.

    Source: tokens per second x seconds of the hours run x utilization.
    """
    seconds = seconds_in_an_hour * hours_per_month * utilization
    return number_where(is_number(output_tokens_per_second), output_tokens_per_second * seconds / tokens_in_a_million)


@formula("Million prompt tokens a month", ONE_DECIMAL)
def million_input_tokens_per_month(
    million_output_tokens_per_month: Quantity, input_tokens: Quantity, output_tokens: Quantity
) -> Quantity:
    """Tokens of prompts that all replicas take in beside those answers, in millions; cached ones too.

    Source: each request brings its prompt once and its answer once.
    """
    is_counted = both(is_number(million_output_tokens_per_month), output_tokens > 0)
    return number_where(is_counted, million_output_tokens_per_month * ratio(input_tokens, output_tokens))


def _per_million(usd: Quantity, millions: Quantity, *conditions: Quantity) -> Quantity:
    return number_where(both(*conditions, is_number(millions), millions > 0), ratio(usd, millions))


@formula("$ per million prompt tokens", USD_CENTS)
def usd_per_million_input_tokens(
    monthly_usd: Quantity, prefill_fraction: Quantity, million_input_tokens_per_month: Quantity
) -> Quantity:
    """The part of the month's cost that pays for reading prompts, over the prompts' tokens of a month, in US dollars.

    Source: the cost is split by GPU time: the share of it that prefill takes.
    """
    conditions = is_number(monthly_usd), is_number(prefill_fraction)
    return _per_million(monthly_usd * prefill_fraction, million_input_tokens_per_month, *conditions)


@formula("$ per million answer tokens", USD_CENTS)
def usd_per_million_output_tokens(
    monthly_usd: Quantity, prefill_fraction: Quantity, million_output_tokens_per_month: Quantity
) -> Quantity:
    """The rest of the month's cost, over the answers' tokens of a month, in US dollars.

    Source: the cost is split by GPU time: what prefill does not take, writing the answers takes.
    """
    conditions = is_number(monthly_usd), is_number(prefill_fraction)
    return _per_million(monthly_usd * (1 - prefill_fraction), million_output_tokens_per_month, *conditions)


@formula("$ per million tokens", USD_CENTS)
def usd_per_million_tokens(
    monthly_usd: Quantity, million_input_tokens_per_month: Quantity, million_output_tokens_per_month: Quantity
) -> Quantity:
    """The month's cost over all tokens of a month, prompts and answers together, in US dollars.

    Source: definition. Check: prompts and answers at their own rates add up to the cost.
    """
    millions = million_input_tokens_per_month + million_output_tokens_per_month
    per_month = monthly_usd, million_input_tokens_per_month, million_output_tokens_per_month
    is_priced = both(*map(is_number, per_month), million_output_tokens_per_month > 0)
    return number_where(is_priced, ratio(monthly_usd, millions))


@formula("Million answer tokens a month, of the people", ONE_DECIMAL)
def hosted_million_output_tokens(
    million_output_tokens_per_month: Quantity,
    requests_per_second: Quantity,
    users: Quantity,
    requests_per_user_per_day: Quantity,
    peak_hour_share: Quantity,
    burst_factor: Quantity,
    output_tokens: Quantity,
    hours_per_month: Quantity,
    hours_in_a_day: Quantity,
    seconds_in_an_hour: Quantity,
    tokens_in_a_million: Quantity,
) -> Quantity:
    """Tokens of answers that a host would write in a month, in millions: those of the day's requests, at a rate or of
    the people that the load is enough for; those of the utilization where neither is known.

    Source: people ask so many times a day; a rate at peak is the busiest hour's, with its burst. Check: 460 people who
    ask 20 times a day for 1,024 tokens are 286.5 million in 730 hours.
    """
    of_rate = requests_per_second * seconds_in_an_hour / (peak_hour_share * burst_factor)
    of_people = where(is_number(users), users * requests_per_user_per_day, 0)
    of_a_day = where(requests_per_second > 0, of_rate, of_people)
    days = hours_per_month / hours_in_a_day
    tokens = where(of_a_day > 0, of_a_day * days * output_tokens / tokens_in_a_million, million_output_tokens_per_month)
    return number_where(is_number(million_output_tokens_per_month), tokens)


@formula("Million prompt tokens a month, of the people", ONE_DECIMAL)
def hosted_million_input_tokens(
    hosted_million_output_tokens: Quantity, input_tokens: Quantity, output_tokens: Quantity
) -> Quantity:
    """Tokens of prompts that a host would read in a month beside those answers, in millions; cached ones too.

    Source: million_input_tokens_per_month.
    """
    return million_input_tokens_per_month(hosted_million_output_tokens, input_tokens, output_tokens)


@formula("Hosted, $ per month", USD)
def hosted_monthly_usd(
    hosted_million_input_tokens: Quantity,
    hosted_million_output_tokens: Quantity,
    input_tokens: Quantity,
    cached_fraction: Quantity,
    input_usd_per_million: Quantity,
    cached_usd_per_million: Quantity,
    output_usd_per_million: Quantity,
    max_input_tokens: Quantity,
) -> Quantity:
    """Price that a host of the model charges for the load's tokens of a month, in US dollars; none where the prompt is
    longer than the host accepts.

    Prompt tokens found in the cache cost the host's price of those, where it has one.

    Source: tokens x the host's price per million of each kind.
    """
    cached = where(is_number(cached_usd_per_million), cached_usd_per_million, input_usd_per_million)
    per_million = input_usd_per_million * (1 - cached_fraction) + cached * cached_fraction
    answers = hosted_million_output_tokens * output_usd_per_million
    takes = where(is_number(max_input_tokens), max_input_tokens >= input_tokens, is_number(input_tokens))
    is_priced = both(is_number(hosted_million_input_tokens), is_number(output_usd_per_million), takes)
    return number_where(is_priced, hosted_million_input_tokens * per_million + answers)


@formula("Hosted, cents per month", WHOLE)
def hosted_monthly_cents(hosted_monthly_usd: Quantity, cents_in_a_dollar: Quantity) -> Quantity:
    """The host's cost in whole cents, by which hosts are ranked: two that take the same tie, whatever program sums up
    their tokens and rounds the last digit.

    Source: hosted_monthly_usd.
    """
    return number_where(is_number(hosted_monthly_usd), round_nearest(hosted_monthly_usd * cents_in_a_dollar))


@formula("Renting is cheaper above", PERCENT)
def hosted_break_even_utilization(
    monthly_usd: Quantity,
    hosted_monthly_usd: Quantity,
    utilization: Quantity,
    hosted_million_output_tokens: Quantity,
    million_output_tokens_per_month: Quantity,
) -> Quantity:
    """The share of the hours run in which the hardware must do its load for its rent to be below what a host takes for
    the same tokens; over 100 %: the host is cheaper at any use.

    Source: rent is the same at any utilization, a host's cost grows with it: the utilization at which the hardware
    writes the hosted tokens x rent / the host's cost of these. Check: at the break-even both cost the same.
    """
    used = utilization * ratio(hosted_million_output_tokens, million_output_tokens_per_month)
    is_priced = both(is_number(monthly_usd), is_number(hosted_monthly_usd))
    return number_where(is_priced, ratio(monthly_usd * used, hosted_monthly_usd))


@formula("Contingency, $", USD)
def contingency_usd(usd: Quantity, contingency_fraction: Quantity) -> Quantity:
    """Reserve for unforeseen cost, in US dollars: a share of the sum, in a line of its own.

    Source: finance's convention; the share is an input.
    """
    return number_where(is_number(usd), usd * contingency_fraction)


@formula("Total, $", USD)
def total_usd(usd: Quantity, contingency_usd: Quantity) -> Quantity:
    """The sum and its contingency, in US dollars.

    Source: definition.
    """
    return number_where(both(is_number(usd), is_number(contingency_usd)), usd + contingency_usd)


@formula("Total in the budget's currency", WHOLE)
def in_currency(usd: Quantity, fx_rate: Quantity) -> Quantity:
    """US dollars in the budget's currency, at the rate on Inputs: units of that currency for one dollar.

    Source: definition; prices are in dollars.
    """
    return number_where(is_number(usd), usd * fx_rate)


# Owning: the GPUs are powered and housed in every hour of the month, whatever they do.


@formula("Installed, $ per GPU", USD)
def installed_usd_per_gpu(
    capex_usd_per_gpu: Quantity, is_module_price: Quantity, installed_multiplier: Quantity
) -> Quantity:
    """Price of one GPU with its share of the server, in US dollars; none where no price is known.

    Source: a module's price x the multiplier on Inputs; the price of a whole system, or your own quote, as it is.
    """
    installed = capex_usd_per_gpu * where(is_module_price == 1, installed_multiplier, 1)
    return number_where(is_number(capex_usd_per_gpu), installed)


@formula("kW per GPU", TWO_DECIMALS)
def kw_per_gpu(
    stated_kw_per_gpu: Quantity, rated_watts: Quantity, system_power_multiplier: Quantity, watts_in_a_kilowatt: Quantity
) -> Quantity:
    """Power of one GPU with its share of the server, in kW: as stated, else from the rated power of the GPU.

    Source: SemiAnalysis where stated. Check: DGX B200 draws 14.3 kW with eight GPUs of 1,000 W.
    """
    derived = rated_watts / watts_in_a_kilowatt * system_power_multiplier
    return where(is_number(stated_kw_per_gpu), stated_kw_per_gpu, number_where(is_number(rated_watts), derived))


@formula("kW per GPU at the meter", TWO_DECIMALS)
def metered_kw_per_gpu(kw_per_gpu: Quantity, is_it_power: Quantity, pue: Quantity) -> Quantity:
    """Power that one GPU draws at the site's meter, with its share of the server, in kW.

    Source: what the machine draws x PUE; a figure that has the cooling in it already is taken as it is.
    """
    return number_where(is_number(kw_per_gpu), where(is_it_power == 1, kw_per_gpu * pue, kw_per_gpu))


@formula("GPUs to own", WHOLE)
def n_owned_gpus(n_gpus: Quantity, sold_together: Quantity) -> Quantity:
    """GPUs to buy for those of all replicas: whole boards or racks, as they are sold; cards one by one.

    Source: the fewest that are sold together (NVIDIA HGX, OCP OAM, NVL72). Check: 12 on boards of 8 are 16.
    """
    return number_where(is_number(n_gpus), round_up(ratio(n_gpus, sold_together)) * sold_together)


@formula("Purchase, $", USD)
def owned_capex_usd(n_owned_gpus: Quantity, installed_usd_per_gpu: Quantity) -> Quantity:
    """Price of the GPUs to own, installed, in US dollars.

    Source: definition.
    """
    is_priced = both(is_number(n_owned_gpus), is_number(installed_usd_per_gpu))
    return number_where(is_priced, n_owned_gpus * installed_usd_per_gpu)


@formula("Yearly depreciation", PERCENT)
def purchase_share_per_year(
    owned_years: Quantity, residual_fraction: Quantity, cost_of_capital_fraction: Quantity
) -> Quantity:
    """The share of the purchase that each year of use bears, less what is left of it at the end.

    A straight line where capital costs nothing; else equal yearly payments at the cost of capital.

    Source: depreciation and annuity as finance knows them. Check: 5 years, nothing left, no interest: 20 %.
    """
    growth = power(1 + cost_of_capital_fraction, owned_years)
    straight = ratio(1 - residual_fraction, owned_years)
    annuity = (growth - residual_fraction) * ratio(cost_of_capital_fraction, growth - 1)
    return where(growth == 1, straight, annuity)


@formula("Hardware, $ per month", USD)
def owned_hardware_usd(
    owned_capex_usd: Quantity, purchase_share_per_year: Quantity, months_in_a_year: Quantity
) -> Quantity:
    """The purchase spread over its years, in US dollars a month.

    Source: definition. Check: 8 GPUs for $315,000 over 5 years are $0.90 per GPU and hour.
    """
    return number_where(is_number(owned_capex_usd), owned_capex_usd * purchase_share_per_year / months_in_a_year)


@formula("Support, $ per month", USD)
def owned_support_usd(owned_capex_usd: Quantity, support_fraction: Quantity, months_in_a_year: Quantity) -> Quantity:
    """Support and maintenance: a share of the purchase each year, in US dollars a month.

    Source: the share on Inputs; 0 until somebody knows it.
    """
    return number_where(is_number(owned_capex_usd), owned_capex_usd * support_fraction / months_in_a_year)


@formula("Power, $ per month", USD)
def owned_energy_usd(
    n_owned_gpus: Quantity, metered_kw_per_gpu: Quantity, usd_per_kwh: Quantity, hours_in_a_month: Quantity
) -> Quantity:
    """Electricity of every hour of the month, at full draw, in US dollars.

    Source: kW x hours x $ per kWh.
    """
    is_metered = both(is_number(n_owned_gpus), is_number(metered_kw_per_gpu))
    return number_where(is_metered, n_owned_gpus * metered_kw_per_gpu * hours_in_a_month * usd_per_kwh)


@formula("Site, $ per month", USD)
def owned_site_usd(n_owned_gpus: Quantity, kw_per_gpu: Quantity, colo_usd_per_kw_month: Quantity) -> Quantity:
    """Rent of space and cooling by the kW, power not included, in US dollars a month.

    Source: CBRE. Check: 1.73 kW at $194.95 is $0.46 per GPU and hour.
    """
    return number_where(
        both(is_number(n_owned_gpus), is_number(kw_per_gpu)), n_owned_gpus * kw_per_gpu * colo_usd_per_kw_month
    )


@formula("Owned, $ per month", USD)
def monthly_owned_usd(
    owned_hardware_usd: Quantity, owned_support_usd: Quantity, owned_energy_usd: Quantity, owned_site_usd: Quantity
) -> Quantity:
    """Cost of owning in a month, in US dollars; none where the purchase price or the power is not known.

    Source: hardware + support + power + site. Staff, network and licences are not in it.
    """
    is_priced = both(is_number(owned_hardware_usd), is_number(owned_energy_usd))
    return number_where(is_priced, owned_hardware_usd + owned_support_usd + owned_energy_usd + owned_site_usd)


@formula("Support, power and site, $ per month", USD)
def owned_running_usd(owned_support_usd: Quantity, owned_energy_usd: Quantity, owned_site_usd: Quantity) -> Quantity:
    """Cash that owning takes each month once the GPUs are bought, in US dollars.

    Source: support + power + site. Staff and network are not in it.
    """
    is_known = both(is_number(owned_support_usd), is_number(owned_energy_usd), is_number(owned_site_usd))
    return number_where(is_known, owned_support_usd + owned_energy_usd + owned_site_usd)


@formula("Cash in 3 years, $", USD)
def owned_three_year_cash_usd(
    owned_capex_usd: Quantity, owned_running_usd: Quantity, months_in_three_years: Quantity
) -> Quantity:
    """Cash paid in the first three years of owning, in US dollars: the purchase, support, power and site.

    Source: definition; nothing is spread or discounted. Staff, network and the cost of capital are not in it.
    """
    is_priced = both(is_number(owned_capex_usd), is_number(owned_running_usd))
    return number_where(is_priced, owned_capex_usd + owned_running_usd * months_in_three_years)


@formula("Paid to date, $", USD)
def cash_to_month_usd(month: Quantity, up_front_usd: Quantity, each_month_usd: Quantity) -> Quantity:
    """Cash paid up to and including a month, in US dollars; months count from 1.

    Source: definition; today's prices, nothing is discounted. Check: of 36 months owning has paid its cash of three
    years.
    """
    is_priced = both(is_number(up_front_usd), is_number(each_month_usd))
    return number_where(is_priced, up_front_usd + month * each_month_usd)


@formula("Owning has paid off in month", WHOLE)
def owning_pays_off_month(up_front_usd: Quantity, owned_each_month_usd: Quantity, each_month_usd: Quantity) -> Quantity:
    """The first month in which owning has paid out no more to date than this way to rent, counted from 1; none where
    its support, power and site alone cost as much.

    Source: cash_to_month_usd of both. Check: $360,000 and $2,000 a month against $12,000 are even in month 36.
    """
    saved = each_month_usd - owned_each_month_usd
    is_priced = both(is_number(up_front_usd), is_number(owned_each_month_usd), is_number(each_month_usd))
    return number_where(is_priced, number_where(saved > 0, round_up(ratio(up_front_usd, saved))))


@formula("Owned, $ per GPU and hour", USD_CENTS)
def owned_usd_per_gpu_hour(monthly_owned_usd: Quantity, n_owned_gpus: Quantity, hours_in_a_month: Quantity) -> Quantity:
    """Cost of owning per GPU and hour of the month, used or not, in US dollars.

    Source: definition.
    """
    return number_where(is_number(monthly_owned_usd), ratio(monthly_owned_usd, n_owned_gpus * hours_in_a_month))


@formula("Break-even utilization", PERCENT)
def break_even_utilization(
    monthly_owned_usd: Quantity, on_demand_hourly_usd: Quantity, hours_in_a_month: Quantity
) -> Quantity:
    """The share of a month's hours above which owning is cheaper than renting on demand; over 100 %: never.

    Source: owned $ per month / what the same load costs on demand in all hours of the month.
    """
    is_priced = both(is_number(monthly_owned_usd), is_number(on_demand_hourly_usd))
    return number_where(is_priced, ratio(monthly_owned_usd, on_demand_hourly_usd * hours_in_a_month))
