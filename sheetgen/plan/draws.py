"""Joint draws of the demand: the p90 of a sum is not the sum of p90s.

Services are lognormal with one correlation, by a common factor; each service's draws are its own quantiles at even
steps, so that one service alone comes out as in the closed form. The seed is fixed: same plan, same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy

from sheetgen.formula import exponential
from sheetgen.plan.arrays import Array
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.tables import OF_MONEY, OF_TYPE, Z_OF_P90
from sheetgen.plan.worked_plan import Answer

SEED, DRAWS = 2027, 10_000
LEAST = 1_000  # where services have hours of their own: each draw is worked out for each kind of them
AT_ONCE = 500  # draws: of fifty services, twelve quarters and twenty types some 30 MB
SHARES = dict(zip(QUANTILES, (0.1, 0.5, 0.9), strict=True))


@dataclass(frozen=True)
class Draws:
    """Over draws: what each quarter costs, the GPUs needed in it, and by type the machines that are rented."""

    spend_usd: Array  # draws x quarters
    n_gpus: Array  # draws x quarters
    rented: list[Array]  # by type: of quarters and machines the share of draws and hours in which each is rented
    seed: int = SEED

    @property
    def n(self) -> int:
        return len(self.spend_usd)


def quantiles(values: Array) -> dict[str, float]:
    """p10, p50 and p90 of draws: numbers that were drawn, none between them."""
    return {name: float(numpy.quantile(values, share, method="inverted_cdf")) for name, share in SHARES.items()}


def scores(n: int) -> Array:
    """The quantiles of a normal distribution in the middle of n even steps."""
    return numpy.array([NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)])


def correlated(n_services: int, correlation: float, n: int = DRAWS, seed: int = SEED) -> tuple[Array, Array]:
    """Standard deviations from the median: by service and draw, and of the price by draw."""
    random = numpy.random.default_rng(seed)
    common, price = random.standard_normal(n), random.permutation(scores(n))
    own = random.standard_normal((n_services, n))
    mixed = numpy.sqrt(correlation) * common + numpy.sqrt(1 - correlation) * own
    return scores(n)[mixed.argsort(axis=1).argsort(axis=1)], price


def drawn(answer: Answer, n: int = DRAWS, seed: int = SEED) -> Draws:
    """The plan at joint draws of the demand and of prices, on the hardware that was chosen."""
    plan = answer.plan
    n_kinds = plan.week.over_peak.shape[-1]
    n = max(n // n_kinds, min(n, LEAST))
    spent, gpus, rented = _worked_out(answer, *correlated(len(plan.services), plan.policy.correlation, n, seed))
    means = [_mean(of_type, n) for of_type in zip(*rented, strict=True)]
    return Draws(spent, gpus, means, seed)


def _mean(parts: Sequence[Array], n: int) -> Array:
    """The mean over draws of sums by quarter and machine, of which some parts have fewer machines."""
    whole = numpy.zeros((len(parts[0]), max(part.shape[1] for part in parts)))
    for part in parts:
        whole[:, : part.shape[1]] += part
    return whole / n


def swings(answer: Answer) -> list[tuple[str, float, float]]:
    """The cost of the whole plan where one service, or the price, is at its p10 or p90 and all else as expected: those
    that move it, the one that moves it most first."""
    n = len(answer.plan.services)
    ends = numpy.kron(numpy.eye(n + 1), [-Z_OF_P90, Z_OF_P90])
    spent, _, _ = _worked_out(answer, ends[:n], ends[n])
    names = (*(f"demand of {service.id}" for service in answer.plan.services), "price of what is bought")
    pairs = spent.sum(axis=1).reshape(-1, 2)
    swings_of = [(name, float(low), float(high)) for name, (low, high) in zip(names, pairs, strict=True)]
    return sorted(
        (service for service in swings_of if service[1] != service[2]), key=lambda service: service[1] - service[2]
    )


def _worked_out(answer: Answer, z: Array, price_z: Array) -> tuple[Array, Array, list[list[Array]]]:
    """The draws, some at a time: see `_part`."""
    at_once = max(1, AT_ONCE // answer.plan.week.over_peak.shape[-1])
    parts = [_part(answer, z[:, i : i + at_once], price_z[i : i + at_once]) for i in range(0, len(price_z), at_once)]
    spent, gpus, rented = zip(*parts, strict=True)
    return numpy.concatenate(spent), numpy.concatenate(gpus), [*rented]


def _part(answer: Answer, z: Array, price_z: Array) -> tuple[Array, Array, list[Array]]:
    """Some draws: what each costs and its GPUs, by quarter; and by type sums over them of the shares of the hours."""
    change = answer.plan.prices.expected_change_per_year
    low, middle, high = (numpy.log(1 + fraction) for fraction in (change.p10, change.p50, change.p90))
    spread = numpy.where(price_z < 0, middle - low, high - middle) / Z_OF_P90
    grid, rented = answer.at_demand(z, expected_change_per_year=exponential(middle + price_z * spread) - 1)
    sizes = numpy.array([float(machine.gpu_count) for machine in answer.types])
    machines = grid.spread("needed_instances", OF_TYPE)
    n_gpus = (machines * sizes[:, None, None]).sum(axis=0).T
    return grid.spread("spend_usd", OF_MONEY).T, n_gpus, [of_type.of_all_cases() for of_type in rented]
