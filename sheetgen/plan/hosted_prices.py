"""The plan's services at hosts of their models, beside machines for them: the price of the tokens that are expected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sheetgen.answer.hosts import by_host
from sheetgen.catalog.hosted import HostedPrice
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.schema import Request
from sheetgen.plan.spending import month_million_tokens
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.sizing import cost
from sheetgen.sizing.speed import cached_fraction


@dataclass(frozen=True)
class Hosted:
    """A service at the cheapest hosts of its models, in all quarters in which it is served, at p50."""

    service: int
    hosts: tuple[str, ...]
    usd: float
    read_on: str  # the oldest of their prices


def hosted(answer: Answer) -> Iterator[Hosted]:
    """The services that hosts could serve: those whose demand is a rate, as no tokens follow from requests at once, and
    whose models and prompts a host takes in each quarter."""
    plan = answer.plan
    for s, service in enumerate(plan.services):
        quarters = answer.quarters_of(s)
        cheapest = [prices[0] for q in quarters if (prices := _hosts(answer, s, q))]
        if quarters and len(cheapest) == len(quarters):
            file = plan.question_in(service, plan.quarters[quarters[0]]).reference.hosted
            names = dict.fromkeys(file.host_name(price.host) for _, price in cheapest)
            usd = MONTHS_IN_A_QUARTER * sum(month_usd for month_usd, _ in cheapest)
            yield Hosted(s, tuple(names), usd, min(file.day_of(price) for _, price in cheapest))


def _hosts(answer: Answer, s: int, q: int) -> list[tuple[float, HostedPrice]]:
    """The price of a month of a service at each host of its model, the cheapest first; nothing where it has no rate."""
    question = answer.plan.question_in(answer.plan.services[s], answer.plan.quarters[q])
    rate, (request,) = float(answer.services["requests_per_second"][s, q, CASE["p50"]]), question.workloads
    if not rate or not request.output_tokens:
        return []
    lengths = request.input_tokens, request.output_tokens
    prompts, answers = (million_tokens(answer, s, q, CASE["p50"], tokens) for tokens in lengths)
    stated = answer.plan.services[s].request or Request()
    cached = float(cached_fraction(stated.prefix_hit_fraction, stated.history_hit_fraction))
    return by_host(question.live_hosts(question.models[0].model), prompts, answers, request.input_tokens, cached)


def million_tokens(answer: Answer, s: int, q: int, z: int, tokens_per_request: float) -> float:
    """Tokens of a service's month in millions, where its demand is a rate, of so many for each request."""
    quantities = {
        "requests_per_second": float(answer.services["requests_per_second"][s, q, z]),
        "mean_over_peak": float(answer.mean_shares[s, q]),
        "tokens_per_request": tokens_per_request,
        "hours_per_month": answer.plan.prices.hours_per_month,
        **cost.CONSTANTS,
    }
    return float(month_million_tokens.of(quantities))
