"""The choice of each cell: the least monthly cost, and how ties are broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from sheetgen.formula import cheapest, first_where, least_where, same_money
from sheetgen.recommend.solution import Choice, Columns, Solution, short_tokens
from sheetgen.sizing import parallelism

NOTHING_FITS = "nothing fits"
TOO_SLOW = "no count meets the target"  # memory holds it somewhere, but a lone request is too slow


def cheapest_position(monthly: Any, instances: Any, size: Any) -> tuple[Any, Any]:
    """Per row the least monthly cost, and where it stands from 1: ties by fewer instances, smaller TP, then order."""
    best = cheapest(monthly, numpy.nan)
    least = same_money(monthly, best[:, None])
    fewest = least_where(instances, least)
    narrowest = least_where(size, least, instances == fewest[:, None])
    return best, first_where(least, instances == fewest[:, None], size == narrowest[:, None])


def choose(solved: Solution) -> list[Choice]:
    """Per cell the least monthly cost; ties: fewer instances, then smaller TP, then catalog order."""
    costs, offers = solved.costs, solved.offers
    monthly, instances = costs["monthly_usd"], costs["n_instances"]
    size = costs["tensor_parallel_size"] + 0 * monthly
    best, position = cheapest_position(monthly, instances, size)
    gpu = numpy.array([solved.profiles[s.profile].gpu for s in offers])
    providers = [solved.candidate(i).provider for i in range(len(offers))]
    provider = numpy.array([providers.index(p) for p in providers])
    choices = []
    for row, cell in enumerate(solved.question.loads):
        if cell.over_limit or numpy.isnan(best[row]):
            choices.append(Choice(_verdict_without(solved, row)))
            continue
        offer = int(position[row]) - 1
        other = (gpu != gpu[offer]) | (provider != provider[offer])
        others = numpy.where(other, monthly[row], numpy.nan)
        second = cheapest(others, numpy.nan)
        runner_up = None if numpy.isnan(second) else int(first_where(same_money(others, second))) - 1
        replicas = costs["n_replicas"][row, offer]
        load = costs["load_requests"][row, 0]
        held, sure = costs["sequences"][row, offer], costs["sure_sequences"][row, offer]
        choices.append(
            Choice(
                verdict="fits",
                offer=offer,
                runner_up=runner_up,
                sequences_per_replica=int(held),
                pipeline_parallel_size=int(costs["pipeline_stages"][row, offer]),
                n_replicas=int(replicas),
                n_instances=int(instances[row, offer]),
                hourly_usd=float(costs["hourly_usd"][row, offer]),
                monthly_usd=float(monthly[row, offer]),
                runner_up_monthly_usd=None if runner_up is None else float(second),
                headroom_fraction=float(parallelism.headroom_fraction(load, held, replicas)),
                sure_headroom_fraction=float(parallelism.sure_headroom_fraction(load, sure, replicas)),
            )
        )
    return choices


def _verdict_without(solved: Solution, row: int) -> str:
    cell = solved.question.loads[row]
    if cell.over_limit:
        limit = solved.question.models[cell.model].model.max_context_tokens
        return f"over the model's {short_tokens(limit or 0)}"
    if (solved.costs["n_instances"][row] == 0).any():
        return TOO_SLOW
    return NOTHING_FITS


def with_memory_alone(choices: tuple[Choice, ...], costs: Columns) -> tuple[Choice, ...]:
    """The choices with what memory alone would take, where that costs less: `costs` are those without targets."""
    monthly, instances = costs["monthly_usd"], costs["n_instances"]
    best, position = cheapest_position(monthly, instances, costs["tensor_parallel_size"] + 0 * monthly)
    out = []
    for row, choice in enumerate(choices):
        cheaper = not numpy.isnan(best[row]) and (choice.offer is None or best[row] < choice.monthly_usd * (1 - 1e-12))
        offer = int(position[row]) - 1
        alone = (offer, int(instances[row, offer]), float(best[row])) if cheaper else None
        by = "speed" if alone and choice.offer is not None else choice.sized_by
        out.append(replace(choice, without_targets=alone, sized_by=by))
    return tuple(out)
