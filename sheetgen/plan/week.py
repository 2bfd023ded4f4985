"""The load of each service by the hour of a week, over that of its peak, in UTC.

A week stands for a quarter, at the offset from UTC that a service's time zone has in the quarter's middle.
"""

from __future__ import annotations

import datetime
import functools
import math
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.profile import DAYS, HOURS_OF_WEEK, MINUTES_OF_HOUR, SHARES, WORKING_DAYS, Profile
from sheetgen.plan.schema import Demand, Requests, Service

WEEKDAYS, BLOCKS_OF_DAY, BLOCKS_OF_WEEKEND = 5, 8, 2


def profile_of(service: Service) -> Profile | None:
    """The day of a service; none of one whose peak is held all month."""
    stated = service.profile
    if stated is None:
        return None
    named = stated if isinstance(stated, str) else ""
    weights = SHARES[named] if named else tuple(map(float, stated))
    whole = math.fsum(weights)
    days = service.working_days or WORKING_DAYS.get(named, DAYS)
    return Profile(tuple(weight / whole for weight in weights), frozenset(days), zoneinfo.ZoneInfo(service.time_zone))


def at_its_peak(service: Service) -> Service:
    """A service whose demand peaks in the largest hour of its profile, and whose month has its working days."""
    day = profile_of(service)
    if day is None:
        return service
    demand, changed = service.demand, dict[str, Any]()
    for name in ("users", "requests", "tokens"):
        amount = getattr(demand, name)
        if amount is not None:
            update = {"peak_hour_share": day.peak_hour_share}
            if isinstance(amount, Requests) and "days_per_month" not in amount.model_fields_set:
                update["days_per_month"] = amount.days_per_month * day.days_of_week / len(DAYS)
            changed[name] = amount.model_copy(update=update)
    return service.model_copy(update={"demand": demand.model_copy(update=changed)})


def states_peak_hour(demand: Demand) -> bool:
    """True where a demand says itself what its busiest hour has."""
    every = (demand.users, demand.requests, demand.tokens)
    return any(amount is not None and "peak_hour_share" in amount.model_fields_set for amount in every)


@dataclass(frozen=True)
class Week:
    """The hours of a week in which the services of a plan have loads of their own.

    over_peak: by service, quarter and kind of hour the load over that of the peak, 1 where no profile is. kinds: by
    quarter and hour of the week (or part of one, where clocks are apart by parts) which kind of hour it is.
    """

    over_peak: Array
    kinds: Array
    minutes: int  # of an hour's part

    @cached_property
    def is_flat(self) -> bool:
        return bool(self.over_peak.shape[-1] == 1)

    @cached_property
    def shares(self) -> Array:
        """By quarter and kind the share of the week's hours that are of it."""
        n = self.over_peak.shape[-1]
        return numpy.array([numpy.bincount(of_quarter, minlength=n) for of_quarter in self.kinds]) / self.n_parts

    @property
    def n_parts(self) -> int:
        return int(self.kinds.shape[-1])

    @cached_property
    def mean_over_peak(self) -> Array:
        """By service and quarter the mean load over that of the peak."""
        return numpy.asarray((self.over_peak * self.shares).sum(axis=-1))

    @cached_property
    def in_blocks(self) -> tuple[Array, Array]:
        """By service, quarter and block of hours the mean load over that of the peak, and by quarter the blocks' shares
        of the week: eight of a working day of UTC, and two of a day of the weekend. For searches; the kinds, where
        those are no more."""
        return self._blocks(numpy.mean)

    @cached_property
    def peaks_in_blocks(self) -> Array:
        """The same with the largest load of each block."""
        return self._blocks(numpy.max)[0]

    def _blocks(self, of_hours: Callable[..., Array]) -> tuple[Array, Array]:
        if self.over_peak.shape[-1] <= BLOCKS_OF_DAY + BLOCKS_OF_WEEKEND:
            return self.over_peak, self.shares
        day, hour = numpy.divmod(numpy.arange(self.n_parts) * len(DAYS) / self.n_parts, 1)
        is_weekend = day >= WEEKDAYS
        block = numpy.where(is_weekend, BLOCKS_OF_DAY + hour * BLOCKS_OF_WEEKEND, hour * BLOCKS_OF_DAY).astype(int)
        sizes = numpy.bincount(block)
        hours = numpy.stack([self.over_peak[:, q][:, kinds] for q, kinds in enumerate(self.kinds)], axis=1)
        blocks = [of_hours(hours[..., block == i], axis=-1) for i in range(len(sizes))]
        return numpy.stack(blocks, axis=-1), numpy.tile(sizes / self.n_parts, (len(self.kinds), 1))

    def up(self, needed: Array, start_minutes: float, quarters: Array) -> tuple[Array, Array]:
        """Machines that are up in the hours of the week, where each is asked for so many minutes before it is needed;
        and the share of a week that each of these hours is. needed: by kind of hour, the last side, and by span, the
        second; what is given has the hours there; quarters: of the spans."""
        if self.is_flat:
            return needed, numpy.ones(1)
        spans = numpy.arange(len(quarters))[:, None]
        by_hour = numpy.moveaxis(needed, (1, -1), (0, 1))[spans, self.kinds[quarters]]
        whole, part = divmod(start_minutes / self.minutes, 1)
        ahead = [numpy.roll(by_hour, -i, axis=1) for i in range(min(int(whole) + 2, self.n_parts))]
        first = numpy.maximum.reduce(ahead[: int(whole) + 1])
        values, weights = [first], [numpy.full(self.n_parts, (1 - part) / self.n_parts)]
        if part:
            values.append(numpy.maximum.reduce(ahead))
            weights.append(numpy.full(self.n_parts, part / self.n_parts))
        return numpy.moveaxis(numpy.concatenate(values, axis=1), (0, 1), (1, -1)), numpy.concatenate(weights)


def week_of(services: Sequence[Service], middles: Sequence[datetime.date]) -> Week:
    """The week of the services of a plan. middles: of its quarters, a day each."""
    days = [profile_of(service) for service in services]
    offsets = [[day.offset_minutes(middle) if day else 0 for middle in middles] for day in days]
    if not any(days):
        return Week(numpy.ones((len(services), len(middles), 1)), numpy.zeros((len(middles), 1), int), MINUTES_OF_HOUR)
    minutes = math.gcd(MINUTES_OF_HOUR, *(minute for of_service in offsets for minute in of_service))
    n_parts = HOURS_OF_WEEK * MINUTES_OF_HOUR // minutes

    @functools.cache
    def loads(day: Profile | None, offset: int) -> list[float]:
        return [day.over_peak(i * minutes + offset) if day else 1.0 for i in range(n_parts)]

    parts = numpy.array([[loads(day, offset) for offset in row] for day, row in zip(days, offsets, strict=True)])
    unlike = [numpy.unique(parts[:, q], axis=1, return_inverse=True) for q in range(len(middles))]
    n_kinds = max(loads.shape[1] for loads, _ in unlike)
    # A quarter with fewer kinds of hours than another has the last of its own again, of which no hour is.
    filled = [numpy.pad(loads, ((0, 0), (0, n_kinds - loads.shape[1])), "edge") for loads, _ in unlike]
    kinds = numpy.array([place.reshape(-1) for _, place in unlike])
    return Week(numpy.stack(filled, axis=1), kinds, minutes)
