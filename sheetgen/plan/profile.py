"""The profile of a day: 24 shares of a working day's requests, by the hour of a time zone. On other days every hour has
the least of them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS_OF_DAY, MINUTES_OF_HOUR = 24, 60
MINUTES_OF_DAY = HOURS_OF_DAY * MINUTES_OF_HOUR
HOURS_OF_WEEK = HOURS_OF_DAY * len(DAYS)
_QUIET, _NIGHT = (0.005,) * 7, 1 / 8
# By the hour from midnight. The busiest hour of business has what `peak_hour_share` is without a profile.
SHARES: Mapping[str, tuple[float, ...]] = {
    "business": (
        *_QUIET, 0.02, 0.06, 0.1, 0.12, 0.11, 0.08, 0.09, 0.11, 0.1, 0.08, 0.04, 0.02, 0.01, 0.01, *_QUIET[:3],
    ),
    "flat": (1 / HOURS_OF_DAY,) * HOURS_OF_DAY,
    "night": tuple(_NIGHT if hour < 6 or hour >= 22 else 0.0 for hour in range(HOURS_OF_DAY)),
}  # fmt: skip
WORKING_DAYS: Mapping[str, tuple[str, ...]] = {"business": DAYS[:5]}  # of others every day


@dataclass(frozen=True)
class Profile:
    """A service's day. shares: of a working day's requests, by the hour of its time zone."""

    shares: tuple[float, ...]
    working_days: frozenset[str]
    zone: datetime.tzinfo

    @property
    def peak_hour_share(self) -> float:
        return max(self.shares)

    @property
    def days_of_week(self) -> float:
        """The working days with as many requests as a week has."""
        working = len(self.working_days)
        return working + (len(DAYS) - working) * HOURS_OF_DAY * min(self.shares)

    def offset_minutes(self, day: datetime.date) -> int:
        """How far its clocks are ahead of UTC at noon of a day."""
        noon = datetime.datetime.combine(day, datetime.time(12), self.zone)
        offset = noon.utcoffset()
        assert offset is not None
        return round(offset.total_seconds() / MINUTES_OF_HOUR)

    def over_peak(self, minute_of_week: int) -> float:
        """The load over that of the peak, a minute of its own week, from Monday on."""
        day, minute = divmod(minute_of_week % (MINUTES_OF_DAY * len(DAYS)), MINUTES_OF_DAY)
        works = DAYS[day] in self.working_days
        share = self.shares[minute // MINUTES_OF_HOUR] if works else min(self.shares)
        return share / self.peak_hour_share
