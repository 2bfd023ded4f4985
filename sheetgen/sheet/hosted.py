"""A load at hosts of the same model, in words: what they take, from which utilization on renting is cheaper, and what
a host does not give."""

from __future__ import annotations

from typing import NamedTuple

from sheetgen.recommend import Hosted, Solution, hosts_of
from sheetgen.sheet.page import NONE, Cell, Text, joined, words
from sheetgen.sheet.wording import dollars, plural_does, share, whole
from sheetgen.units import ON_DEMAND, ONE_DECIMAL, PERCENT, PURCHASES


class HostedFacts(NamedTuple):
    """One model's hosts at one load; `NONE` where nothing holds the load, or there is nothing to say."""

    hosts: Text = NONE  # "Nebius $3,259, Azure AI Foundry $4,100 (fp8) a month"; that nobody hosts it
    renting: Text = NONE  # "renting on demand is cheaper above 45% utilization, reserved-3yr above 20%"
    not_given: Text = NONE  # "your own weights, data at home, a known precision (Nebius)"


def hosted_facts(solved: Solution, row: int) -> HostedFacts:
    """What the cheapest hosts take in place of a load's hardware, in words."""
    found, read_on = hosts_of(solved, row), solved.question.reference.hosted.read_on
    if solved.choices[row].offer is None:
        return HostedFacts()
    if not found.n_hosts:
        return HostedFacts(words("nobody in our list of {} hosts this model", read_on))
    if not found.cheapest:
        tokens = whole(solved.question.loads[row].input_tokens)
        return HostedFacts(
            words("{} it, none a prompt of {} tokens", plural_does(found.n_hosts, "host", "serve"), tokens)
        )
    at = joined(", ", [_host(one) for one in found.cheapest])
    unknown = [one.host_name for one in found.cheapest if one.price.precision is None]
    precision = f", a known precision ({', '.join(unknown)})" if unknown else ""
    return HostedFacts(
        words("{} a month for the same tokens at {} utilization, prices of {}", at,
              share(solved.question.settings.utilization), read_on),
        _renting(found.cheapest[0]), f"weights of your own, data at home{precision}",
    )  # fmt: skip


def _host(one: Hosted) -> Cell:
    marks = [one.price.precision] if one.price.precision else []
    marks += [] if one.price.source else ["no source page"]
    return words("{} {}{}", one.host_name, dollars(one.monthly_usd), f" ({', '.join(marks)})" if marks else "")


def _renting(one: Hosted) -> Cell:
    """Above which utilization renting is cheaper than a host, on demand and in the best committed class; where it never
    is, how many times as dear."""
    committed = sorted((p for p in one.break_even if PURCHASES[p].committed), key=one.break_even.__getitem__)
    classes = [p for p in (ON_DEMAND, *committed[:1]) if p in one.break_even]
    if not classes:
        return NONE
    if all(one.break_even[p] > 1 for p in classes):
        times = [words("{} {} times", p, Cell(one.break_even[p], ONE_DECIMAL)) for p in classes]
        never = "renting costs more than {} at any utilization: at 100% {} as much"
        return words(never, one.host_name, joined(", ", times))
    said = [
        words("{} {}", p, words("above {}", Cell(share, PERCENT)) if share <= 1 else "at none")
        for p in classes
        for share in (one.break_even[p],)
    ]
    return words("renting is cheaper than {} by utilization: {}", one.host_name, joined(", ", said))
