"""The choice for each load: the least monthly cost, how ties are broken, and how fast the chosen hardware answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from sheetgen.catalog.speed import Scope
from sheetgen.estimate import PACE
from sheetgen.formula import cheapest, first_where, least_where, same_money
from sheetgen.recommend.solution import Choice, Solution, short_tokens
from sheetgen.scenario.deployment import SPEED_FIGURES, speed_band_columns
from sheetgen.sizing import parallelism, speed

BAND_SCOPES: tuple[Scope, ...] = ("fitted", "other")  # a sheet has no anchor
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
    best, position = cheapest_position(monthly, instances, costs["tensor_parallel_size"])
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


def with_memory_alone(choices: tuple[Choice, ...], alone: Solution) -> tuple[Choice, ...]:
    """The choices with what memory alone would take, where that costs less: `alone` is without targets."""
    monthly, instances = alone.costs["monthly_usd"], alone.costs["n_instances"]
    best, position = cheapest_position(monthly, instances, alone.costs["tensor_parallel_size"])
    out = []
    for row, choice in enumerate(choices):
        cheaper = not numpy.isnan(best[row]) and (choice.offer is None or best[row] < choice.monthly_usd * (1 - 1e-12))
        offer = int(position[row]) - 1
        by_memory = (offer, int(instances[row, offer]), float(best[row])) if cheaper else None
        by = "speed" if by_memory and choice.offer is not None else choice.sized_by
        out.append(replace(choice, without_targets=by_memory, sized_by=by))
    return tuple(out)


def with_speed(solved: Solution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices with what users get of them: times, tokens, bands, and what asked for the replicas."""
    rows = [i for i, c in enumerate(choices) if c.offer is not None]
    if not rows:
        return choices
    at = solved.grid.along("chosen", {"load": rows, "offer": [choices[i].offer for i in rows]})
    at.put(("chosen",), {
        "n_replicas": numpy.array([float(choices[i].n_replicas) for i in rows]),
        "pipeline_parallel_size": numpy.array([float(choices[i].pipeline_parallel_size) for i in rows]),
    })  # fmt: skip
    found = at.evaluate((parallelism.requests_per_replica,), ("chosen",))
    each = found["requests_per_replica"]
    at.put(("chosen",), {"running_requests": each, "concurrent_requests": each})
    found |= at.evaluate(PACE, ("chosen",))
    # All replicas together serve the load: the fullest one's times hold for every request.
    load = at.read("load_requests", ("chosen",))
    at.put(("chosen",), {"concurrent_requests": load})
    found |= at.evaluate((speed.output_tokens_per_second,), ("chosen",))
    limits = at.read("batch_limit", ("chosen",)) * at.read("pipeline_parallel_size", ("chosen",))
    out = list(choices)
    for n, i in enumerate(rows):
        bands = _bands(solved, i, choices[i])
        figures = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
        times: dict[str, Any] = {name: float(found[name][n]) for name in figures}
        by = str(parallelism.sized_by(load[n], choices[i].sequences_per_replica, limits[n]))
        out[i] = replace(
            choices[i],
            sized_by=by,
            replicas_by=by,
            requests_per_replica=int(found["requests_per_replica"][n]),
            prefill_fraction=float(found["prefill_fraction"][n]),
            bound_by=str(found["bound_by"][n]),
            bands=tuple(
                (float(speed.at_speed_band(times[name], low)), float(speed.at_speed_band(times[name], high)))
                for name, (low, high) in zip(figures, bands, strict=True)
            ),
            **times,
        )
    return tuple(out)


def _bands(solved: Solution, row: int, choice: Choice) -> list[tuple[float, float]]:
    """Both ends of the bands of TPOT, TTFT and tokens a second, as factors."""
    question, model = solved.question, solved.question.loads[row].model
    gpu = solved.profiles[solved.offers[choice.offer or 0].profile].gpu
    fitted = solved.gpus["speed_is_fitted"][gpu] == 1 and choice.pipeline_parallel_size == 1
    is_moe = bool(solved.models["n_experts"][model] > 0)
    scope: Scope = "fitted" if fitted else "other"
    columns = speed_band_columns(question.speed, scope, is_moe)
    kind = "moe" if is_moe else "dense"
    columns = {name: question.overrides.input(f"{name}_{scope}_{kind}", v) for name, v in columns.items()}
    return [(columns[f"{f}_band_low"], columns[f"{f}_band_high"]) for f in SPEED_FIGURES]
