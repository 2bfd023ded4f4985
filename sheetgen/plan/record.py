"""The plan as JSON: INTERFACE's keys, whole numbers as such, nothing where something does not apply."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from sheetgen.plan.bridge import listed_prices
from sheetgen.plan.cheaper import Lever
from sheetgen.plan.decisions import Decision, kind, owners
from sheetgen.plan.draws import quantiles, swings
from sheetgen.plan.findings import (
    Findings,
    answered_at_once,
    cautions,
    changed_now,
    inputs_sha256,
    spans,
    spent,
    unit_cost,
    warnings,
)
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.sizing.parallelism import needed_replicas
from sheetgen.sizing.rates import exact_wait_fraction
from sheetgen.version import VERSION

SCHEMA_VERSION = 1
NAME = "capacity-plan"
Record = dict[str, Any]


def record_of(findings: Findings) -> Record:
    """The whole plan as plain values; with what changed since the last one, where that was given."""
    answer, plan = findings.answer, findings.answer.plan
    return {
        "schema_version": SCHEMA_VERSION,
        "as_of": plan.as_of.isoformat(),
        "version": VERSION,
        "catalog_sha256": plan.catalog.catalog_sha256(),
        "seed": findings.draws.seed,
        "inputs": plan.data,
        "inputs_sha256": inputs_sha256(answer),
        "plan_at": plan.policy.plan_at,
        "quarters": [
            {
                "quarter": str(quarter),
                "from": plan.first_day(quarter).isoformat(),
                "until": plan.last_day(quarter).isoformat(),
            }
            for quarter in plan.quarters
        ],
        "services": list(_services(findings)),
        "supply": list(_supply(answer)),
        "decisions": [_as_json(answer, decision) for decision in findings.decisions],
        "unserved": [_as_json(answer, gap) for gap in findings.unserved],
        "on_others": [_as_json(answer, gap) for gap in findings.on_others],
        "money": list(_money(answer)),
        "owners": list(_owners(answer)),
        "years": list(_years(findings)),
        "currency": {"code": plan.head.currency, "per_usd": plain(plan.head.fx_rate)},
        "totals": _totals(findings),
        **_since(findings),
        "variance": list(findings.last.variance) if findings.last else [],
        "cheaper": [_lever(lever) for lever in findings.cheaper],
        "closing": _closing(findings),
        "without_moves": _without_moves(findings),
        "served": [_as_json(answer, share) for share in findings.served],
        "hosted": [
            _as_json(answer, hosts) | {"p50_usd": answer.part_usd(hosts.service, CASE["p50"])}
            for hosts in findings.hosted
        ],
        "measure_first": [_as_json(answer, measured) for measured in findings.to_measure],
        "prices": listed_prices(plan),
        "checks": [
            {"check": check.statement, "ok": check.holds, "found": list(check.against)} for check in findings.checks
        ],
        "warnings": [*warnings(findings), *answered_at_once(findings)],
    }


def plain(value: Any) -> Any:
    """A number as JSON has it: whole where it is, nothing for NaN."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() else number


def _services(findings: Findings) -> Iterator[Record]:
    answer, plan, table = findings.answer, findings.answer.plan, findings.answer.services
    for s, service in enumerate(plan.services):
        for q, quarter in enumerate(plan.quarters):
            place = answer.hardware.placed.get((s, q))
            for z, quantile in enumerate(QUANTILES):
                rate = float(table["requests_per_second"][s, q, z])
                row: Record = {
                    "id": service.id,
                    "owner": service.owner or plan.head.owner or None,
                    "quarter": str(quarter),
                    "quantile": quantile,
                    "requests_per_second": plain(rate) if rate else None,
                }
                if place is None:
                    why = answer.hardware.nothing.get((s, q))
                    nothing = None if why else 0
                    at_once = float(table["concurrent_requests"][s, q, z])
                    yield row | {
                        "concurrent_requests": plain(at_once) if at_once or not why else None,
                        "n_replicas": nothing,
                        "set_by": None,
                        "instance": None,
                        "region": None,
                        "n_instances": nothing,
                        "monthly_usd": nothing,
                        "verdict": why or "not served",
                    }
                    continue
                speed, until = answer.hardware.speed[s, q, answer.case], answer.hardware.until.get((s, q))
                yield row | {
                    "concurrent_requests": plain(table["at_once"][s, q, z]),
                    "n_replicas": plain(table["planned_replicas"][s, q, z]),
                    "set_by": answer.set_by(s, q, z).rpartition(" + ")[2],
                    "instance": place.instance,
                    "instance_alone": answer.hardware.alone[s, q],
                    "moves_on": answer.moves_on(s, q).isoformat() if place.moved else None,
                    "instance_until": until.place.instance if until else None,
                    "shares_with": [plan.services[i].id for i in answer.beside(s, q)],
                    "purchase": plan.class_of(place.instance),
                    "region": place.candidate.region,
                    "n_instances": plain(table["own_instances"][s, q, z]),
                    "monthly_usd": plain(table["service_month_usd"][s, q, z]),
                    "monthly_owned_usd": plain(answer.owned_month_usd(s, q, z)),
                    "verdict": "fits",
                    "gpu": place.candidate.gpu.id,
                    **place.layout._asdict(),
                    "pipeline_parallel_size": place.pipeline_parallel_size,
                    "requests_per_replica": plain(place.paced_requests),
                    "ttft_seconds": speed.ttft_seconds,
                    "tpot_seconds": speed.tpot_seconds,
                    "chance": answer.hardware.speed[s, q, z].chance,
                    "measure_first": list(findings.measurements[s, q][0]) if (s, q) in findings.measurements else [],
                    **_places(answer, s, q, z),
                    "utilization": _utilization(answer, s, q, z),
                    "usd_per_million_tokens": unit_cost(answer, s, q, z),
                }


def _places(answer: Answer, s: int, q: int, z: int) -> Record:
    """Of a rate the places that are planned, and the share of requests that finds none free: by exact Erlang-C, beside
    the share that the square-root form was asked for."""
    table = answer.services
    offered = float(table["offered_requests"][s, q, z])
    if not offered:
        return {"n_places": None, "wait_fraction": None}
    paced = float(table["paced_requests"][s, q, z])
    n_places = int(needed_replicas(float(table["load_requests"][s, q, z]), paced) * paced)
    return {"n_places": n_places, "wait_fraction": exact_wait_fraction(n_places, offered)}


def _utilization(answer: Answer, s: int, q: int, z: int) -> float | None:
    """The mean load of a quantile over what the replicas that are bought can take."""
    replicas = float(answer.services["planned_replicas"][s, q, answer.case])
    busy = float(answer.services["busy_replicas"][s, q, z]) * float(answer.mean_shares[s, q])
    return busy / replicas if replicas else None


def _supply(answer: Answer) -> Iterator[Record]:
    """Every type in every quarter in which there is or must be one, at the quantile that is bought; which share of them
    is in use at p50, and what they cost then beside what is owned."""
    mean, peak = answer.in_use
    for q, quarter in enumerate(answer.plan.quarters):
        for t, machine in enumerate(answer.types):
            row = {name: plain(counts[t, q, answer.case]) for name, counts in answer.supply_counts.items()}
            rented_usd = float(answer.rented_usd[t, q, CASE["p50"]])
            if row["needed"] or row["owned"] or row["committed"] or row["gap"] or rented_usd:
                in_use = {"utilization": plain(mean[t, q]), "peak_utilization": plain(peak[t, q])}
                yield {
                    "quarter": str(quarter),
                    "instance": machine.instance,
                    "gpu": machine.gpu,
                    **row,
                    **in_use,
                    "p50_usd": plain(rented_usd),
                    "idle_usd": plain(answer.supply["idle_usd"][t, q, answer.case]),
                    "base": plain(answer.supply["base_instances"][t, q, answer.case]),
                    "machine_hours": plain(answer.rented_on_average[t, q] * answer.plan.prices.hours_per_month),
                    "held_usd": plain(answer.held_usd[t, q]),
                    "saves_usd": plain(answer.saved_by_hour_usd[t, q]),
                }


NAMES = {  # of fields, where JSON has others
    "first": "from",
    "last": "until",
    "other": "or",
    "month_usd": "monthly_usd",
    "saves_usd": "expected_saving_usd",
    "saves_p50_usd": "expected_saving_p50_usd",
    "saves_after_usd": "saving_after_plan_usd",
}
LEFT_OUT = ("machine_months", "missing", "moves")  # fields that JSON has not


def _as_json(answer: Answer, part: Any) -> Any:
    """A part of what was found: services and quarters by their names, days as text."""
    match part:
        case None | bool() | str():
            return part
        case int() | float():
            return plain(part)
        case datetime.date():
            return part.isoformat()
        case tuple():
            return [_as_json(answer, inner) for inner in part]
    plan, row = answer.plan, Record()
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name == "service":
            value = plan.services[value].id
        elif field.name == "quarter":
            value = str(plan.quarters[value])
        if field.name not in LEFT_OUT:
            row[NAMES.get(field.name, field.name)] = _as_json(answer, value)
    if isinstance(part, Decision):
        row |= {"kind": kind(plan, part), "owners": owners(answer, part), "about": part.about or None}
        row |= {"term_ends": _as_json(answer, part.term_ends), "cautions": cautions(answer, part)}
    return row


def _money(answer: Answer) -> Iterator[Record]:
    table = answer.money
    for q, quarter in enumerate(answer.plan.quarters):
        spent = {f"{name}_usd": plain(table["spend_usd"][q, z]) for z, name in enumerate(QUANTILES)}
        yield {
            "quarter": str(quarter),
            "budget_usd": plain(table["budget_usd"][q, 0]),
            **spent,
            "bound_usd": plain(answer.bound_usd[q]),
            "late_usd": plain(table["late_usd"][q, answer.case]),
            "by_class_usd": {
                purchase: plain(usd[q, CASE["p50"]])
                for purchase, usd in answer.of_classes.items()
                if usd[q, CASE["p50"]]
            },
            "committed_usd": plain(table["committed_usd"][q, 0]),
            "owned_usd": plain(table["owned_usd"][q, 0]),
            "contingency_p50_usd": plain(table["reserve_usd"][q, 1]),
            "contingency_p90_usd": plain(table["reserve_usd"][q, 2]),
            "verdict": answer.verdicts[q],
        }


def _owners(answer: Answer) -> Iterator[Record]:
    """Each owner's part of each quarter; of nobody what is shared."""
    for owner, usd in answer.of_owners.items():
        for q, quarter in enumerate(answer.plan.quarters):
            spent = {f"{name}_usd": plain(usd[q, z]) for z, name in enumerate(QUANTILES)}
            yield {"owner": owner, "quarter": str(quarter), **spent}


def _years(findings: Findings) -> Iterator[Record]:
    """Fiscal years, as far as the plan has quarters of them."""
    plan, spanned = findings.answer.plan, list(spans(findings.answer.plan))
    whole = [(plan.quarters[0].year, spanned[-1][2])]
    for year, many in [(year, many) for _, year, many in spanned if year is not None] or whole:
        money = spent(findings.answer, findings.draws, many)
        yield {
            "fiscal_year": year,
            "quarters": [str(plan.quarters[q]) for q in many],
            "budget_usd": plain(money.budget_usd),
            **{f"{name}_usd": plain(usd) for name, usd in money.usd.items()},
            "contingency_p90_usd": plain(money.reserve_usd["p90"]),
            "together_p90_usd": plain(money.together_p90_usd),
            "verdict": money.verdict,
        }


def _totals(findings: Findings) -> Record:
    """The cost and the GPUs of all services together, over joint draws; and what is to be signed."""
    answer, draws = findings.answer, findings.draws
    whole = draws.spend_usd.sum(axis=1)
    return {
        "seed": draws.seed,
        "n": draws.n,
        "correlation": answer.plan.policy.correlation,
        "inputs_sha256": inputs_sha256(answer),
        "usd": quantiles(whole),
        "mean_usd": float(whole.mean()),
        "covered_fraction": plain(findings.covered_fraction),
        "bound_usd": plain(sum(answer.bound_usd)),
        "bound_after_plan_usd": plain(answer.bound_after_usd),
        **dict(zip(("sign_now_usd", "sign_now_binds_usd"), map(plain, findings.sign_now_usd), strict=True)),
        "offered_now_binds_usd": plain(math.fsum(decision.binds_usd for decision in findings.offered_now)),
        "already_usd": plain(answer.already_usd),
        "idle_while_ordering_usd": plain(answer.idle_while_buying_usd),
        "ordered_before_usd": plain(findings.ordered_before_usd),
        "forecast_usd": plain(findings.forecast_usd),
        "p50_once_signed_usd": plain(findings.p50_once_signed_usd),
        "moves_usd": plain(findings.moves_usd),
        "swings": [{"of": name, "p10_usd": low, "p90_usd": high} for name, low, high in swings(answer)],
        "quarters": [
            {
                "quarter": str(quarter),
                "usd": quantiles(draws.spend_usd[:, q]),
                "n_gpus": {name: plain(count) for name, count in quantiles(draws.n_gpus[:, q]).items()},
            }
            for q, quarter in enumerate(answer.plan.quarters)
        ],
    }


def _since(whole: Findings) -> Record:
    """The changes since the last plan: parts that sum to the differences in spend at p50, and in what is approved."""
    last, bridge = whole.last, whole.bridge
    if last is None or bridge is None:
        return {"since": None, "bridge": []}
    return {
        "since": {
            "file": Path(last.where).name,
            "as_of": last.plan.as_of.isoformat(),
            "p50_usd": bridge.p50.last_usd,
            "now_p50_usd": bridge.p50.usd,
            "asked_usd": bridge.asked.last_usd,
            "now_asked_usd": bridge.asked.usd,
            "calendar": {name: list(parts) for name, parts in vars(bridge.calendar).items()},
        },
        "bridge": [
            {"factor": name, "service": service, "usd": p50_usd, "asked_usd": asked_usd}
            for (name, service), p50_usd, asked_usd in bridge.rows
        ],
    }


def _lever(lever: Lever) -> Record:
    return {
        "what": lever.change.name,
        "kind": lever.change.kind,
        "usd": lever.saves_usd,
        "p50_usd": lever.saves_p50_usd,
        "gives_up": lever.change.gives_up,
        "moves_usd": plain(lever.moves_usd),
        "asked_usd": lever.asked_usd,
        "bound_usd": lever.bound_usd,
        "bound_after_plan_usd": lever.bound_after_usd,
        "over_budget": list(lever.over),
    }


def _without_moves(findings: Findings) -> Record | None:
    without = findings.without_moves
    if without is None:
        return None
    return {
        "n_moves": without.n_moves,
        "asked_usd": without.asked_usd,
        "p50_usd": without.p50_usd,
        "moves_usd": plain(without.moves_usd),
        "over_budget": [{"quarter": quarter, "usd": usd} for quarter, usd in without.over_usd.items()],
    }


def _closing(findings: Findings) -> Record | None:
    closing = findings.closing
    if closing is None:
        return None
    return {
        "levers": [lever.change.name for lever in closing.levers],
        "by_itself": [lever.change.name for lever in closing.by_itself],
        "usd": closing.saves_usd,
        "over_budget": list(closing.over),
        "sign_now": [
            {
                "what": changed.decision.what,
                "instance": changed.decision.instance,
                "purchase": changed.decision.purchase,
                "needed_from": changed.decision.needed_from.isoformat(),
                "n_instances": plain(changed.n_instances),
                "n_instances_then": plain(changed.n_then),
            }
            for changed in changed_now(findings)
        ],
    }
