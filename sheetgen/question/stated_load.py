"""The ways to state a load: people, requests at once, or a rate; and the words for each."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.catalog.hardware import Workload
from sheetgen.errors import ScenarioError, shown
from sheetgen.formula import round_up
from sheetgen.question.deployment import RATES as RATES
from sheetgen.question.deployment import SECONDS_PER_HOUR
from sheetgen.question.inputs import BY_NAME, Settings
from sheetgen.question.parse import Options
from sheetgen.sizing import cost, people, rates
from sheetgen.units import listed, rate_text

A_LOAD = ("concurrent_requests", *RATES)
BY_DAY = tuple(name for name in RATES if name != "requests_per_second")
RATE = "rate"  # among the tiers of a workbook, and as its headline
TOGETHER = "{given} are given together, and each is a load by itself. Keep one."
STATED = ("users", "tokens_per_day", "requests_per_day", "requests_per_second")  # the first that is given counts


@dataclass(frozen=True)
class Rate:
    """Requests that arrive, as stated: by people, by the day in requests or tokens, or by the second at peak (0 for
    those not stated)."""

    users: float = 0.0
    requests_per_second: float = 0.0
    requests_per_day: float = 0.0
    tokens_per_day: float = 0.0

    def per_day(self, workload: Workload) -> float:
        """Requests in a day; 0 where the rate was stated by the second."""
        return float(people.day_requests.of({**vars(self), **dict(workload)}))

    def at_peak(self, settings: Settings, workload: Workload) -> float:
        """Requests per second at peak."""
        of_day = {"day_requests": self.per_day(workload), "seconds_in_an_hour": SECONDS_PER_HOUR}
        return float(rates.peak_requests_per_second.of(vars(settings) | vars(self) | of_day))


def stated_kind(stated: Options) -> str:
    """The name of the statement that counts where several say how much arrives: the first of `STATED` that is given."""
    return next((name for name in STATED if stated.get(name)), STATED[-1])


def rate_of(options: Options) -> Rate | None:
    """The rate that was asked for; None where there is none. People are a rate too, unless a share of them waits at the
    same moment.

    Raises ScenarioError where more than one kind of load is given, for a rate of 0, and for a share of people where
    there are none.
    """
    given = [name for name in A_LOAD if options.get(name) is not None]
    if len(given) > 1:
        raise ScenarioError(TOGETHER.format(given=listed(given)))
    active = options.get("active_fraction") is not None
    if active and given != ["users"]:
        whose = f"the load is {given[0]}" if given else "users are not given"
        raise ScenarioError(f"active_fraction is of users, and {whose}. Leave one out.")
    if active or not given or given[0] not in RATES:
        return None
    value = BY_NAME[given[0]].parse(options[given[0]])
    if not value > 0:
        raise ScenarioError(f"{given[0]} is {shown(options[given[0]])!r}. It must be above 0.")
    return Rate(**{given[0]: float(value)})


def mean_over_peak(peak_hour_share: float, burst_factor: float) -> float:
    """The mean load as a share of the peak's where a day's requests are known, which sets the utilization."""
    hours, least = cost.CONSTANTS["hours_in_a_day"], BY_NAME["utilization"].kind.low
    return float(people.day_utilization(peak_hour_share, burst_factor, hours, least))


def users_of(options: Options) -> int | None:
    """The number of people to serve; None where the load is not stated as people."""
    return None if options.get("users") is None else int(BY_NAME["users"].parse(options["users"]))


def requests_at_once(options: Options, active_fraction: float | None) -> int | None:
    """Requests at once at the peak: as stated, one where no load is stated, or the share of the people that waits at
    the same moment, rounded up; None where they follow from a rate."""
    if rate_of(options):
        return None
    users = users_of(options)
    if users is not None and active_fraction is not None:
        return int(round_up(users * active_fraction))
    stated = options.get("concurrent_requests")
    return 1 if stated is None else int(BY_NAME["concurrent_requests"].parse(stated))


def people_words(users: float) -> str:
    """1 person, 200 people."""
    return "1 person" if users == 1 else f"{users:,.0f} people"


def stated_words(load: Options) -> str:
    """A load as it was stated: `200 people who ask 20 times a day`, `300,000,000 tokens a day`, `200,000 requests a
    day`; nothing where it was stated by the second, or at once.

    load: users, active_fraction, requests_per_user_per_day, requests_per_day, tokens_per_day; None or 0 where not
    stated.
    """
    if users := load["users"]:
        if (active := load["active_fraction"]) and active == active:
            return f"{people_words(users)}, {100 * active:.6g} % of them waiting at the same moment"
        verb = "asks" if users == 1 else "ask"
        return f"{people_words(users)} who {verb} {load['requests_per_user_per_day']:g} times a day"
    if tokens := load["tokens_per_day"]:
        return f"{tokens:,.0f} tokens a day"
    if requests := load["requests_per_day"]:
        return f"{requests:,.0f} requests a day"
    return ""


def load_words(load: Options) -> str:
    """A load as it was stated, the rate at peak and the requests at once that this means: `200 people who ask 20 times
    a day (0.173 requests/s at peak): 12.3 at once on average`.

    load: as in `stated_words`, and concurrent_requests (None where nothing serves it) and requests_per_second.
    """
    at_once, rate = load["concurrent_requests"], load["requests_per_second"]
    means = f"{rate_text(at_once)} at once" if at_once else ""
    stated = stated_words(load)
    if rate and load.get("concurrent_follows", True):
        per_second = f"{rate_text(rate)} requests/s at peak"
        words = f"{stated} ({per_second})" if stated else per_second
        return f"{words}: {means} on average" if means else words
    has_share = load["active_fraction"] and load["active_fraction"] == load["active_fraction"]
    return f"{stated}: {means}" if load["users"] and has_share else means
