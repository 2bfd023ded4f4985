"""What a load is stated as: people, requests at once, or a rate; and how it is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.errors import ScenarioError, shown
from sheetgen.formula import round_up
from sheetgen.question.deployment import SECONDS_PER_HOUR
from sheetgen.question.inputs import BY_NAME, Settings
from sheetgen.sizing import rates
from sheetgen.units import count, listed, rate_text

HOURS_PER_DAY = 24
RATES = ("requests_per_second", "requests_per_day")
A_LOAD = ("users", "concurrent_requests", *RATES)
RATE = "rate"  # among the tiers of a workbook, and as its headline
OF_A_DAY = ("peak_hour_share", "burst_factor")


@dataclass(frozen=True)
class Rate:
    """Requests that arrive, as they were stated: by the second at peak, or by the day (0 where they were not)."""

    requests_per_second: float
    requests_per_day: float = 0.0

    def at_peak(self, settings: Settings) -> float:
        """Requests per second at peak."""
        known = vars(settings) | vars(self) | {"seconds_in_an_hour": SECONDS_PER_HOUR}
        return float(rates.peak_requests_per_second.of(known))


def rate_of(options: Mapping[str, Any]) -> Rate | None:
    """The rate that was asked for, if any.

    Raises ScenarioError where more than one kind of load is given, for a rate of 0, for what belongs to a day where
    there is none, and for a share of users where there are none.
    """
    given = [name for name in A_LOAD if options.get(name) is not None]
    if len(given) > 1:
        raise ScenarioError(f"{listed(given)} are given together, and each is a load by itself. Keep one.")
    stray = [name for name in OF_A_DAY if options.get(name) is not None]
    if stray and options.get("requests_per_day") is None:
        what = f"{listed(stray)} is of requests_per_day, which is not given"
        raise ScenarioError(f"{what}. Give it, or leave it out.")
    if not given or given[0] not in RATES:
        return None
    active = options.get("active_fraction")
    one_load = "context_tokens" in options  # a sheet shows tiers beside the rate
    if one_load and active is not None and BY_NAME["active_fraction"].parse(active) != 1:
        raise ScenarioError(f"active_fraction is of users, and the load is {given[0]}. Leave one out.")
    value = BY_NAME[given[0]].parse(options[given[0]])
    if not value > 0:
        raise ScenarioError(f"{given[0]} is {shown(options[given[0]])!r}. It must be above 0.")
    return Rate(**{"requests_per_second": 0.0, given[0]: float(value)})


def mean_over_peak(peak_hour_share: float, burst_factor: float) -> float:
    """The share of the peak's load that there is on average, where a day's requests are known: the utilization that
    follows; at least what a utilization may be."""
    return max(BY_NAME["utilization"].kind.low, 1 / (HOURS_PER_DAY * peak_hour_share * burst_factor))


def users_of(options: Mapping[str, Any]) -> int | None:
    """People to serve; none where the load is not people. One where nothing is said of the load."""
    if all(options.get(name) is None for name in A_LOAD):
        return 1
    return None if options.get("users") is None else int(BY_NAME["users"].parse(options["users"]))


def requests_in_flight(options: Mapping[str, Any], active_fraction: float) -> tuple[int | None]:
    """Requests at once at the peak: as stated, or users x the share of them that is active, rounded up; none where
    they follow from a rate."""
    if rate_of(options):
        return (None,)
    users = users_of(options)
    if users is None:
        return (int(BY_NAME["concurrent_requests"].parse(options["concurrent_requests"])),)
    return (int(round_up(users * active_fraction)),)


def load_words(known: Mapping[str, Any]) -> str:
    """A load as it was stated, and the requests at once that this means: `200 users, all active at once`.

    known: users, active_fraction, concurrent_requests (None where nothing serves it), requests_per_second,
    requests_per_day, peak_hour_share, burst_factor; None or 0 where not stated.
    """
    in_flight, rate = known["concurrent_requests"], known["requests_per_second"]
    means = f"{rate_text(in_flight)} at once" if in_flight else ""
    if rate and known.get("concurrent_follows", True):
        said = f"{rate_text(rate)} requests/s at peak"
        if day := known["requests_per_day"]:
            share, burst = known["peak_hour_share"], known["burst_factor"]
            said += f" ({day:,.0f} a day x {share:g} in the peak hour / 3,600 x {burst:g})"
        return f"{said}: {means}" if means else said
    users, active = known["users"], known["active_fraction"]
    if not users:
        return means
    people = count(users, "user")
    if active == 1:
        return f"{people}, active all the time" if users == 1 else f"{people}, all active at once"
    return f"{people}, {100 * active:.6g} % active at once: {means}"
