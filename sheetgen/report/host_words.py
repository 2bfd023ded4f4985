"""A load at hosts of the same model, in words: what they take, from which utilization on renting is cheaper, and what
a host does not give."""

from __future__ import annotations

from sheetgen.answer import Hosted, Solution, hosts_of
from sheetgen.report.page import NONE, Cell, HostedFacts, joined, words
from sheetgen.report.wording import dollars, plural_does, share, whole
from sheetgen.units import ON_DEMAND, ONE_DECIMAL, PERCENT, PURCHASES, TWO_DECIMALS


def hosted_facts(solved: Solution, row: int) -> HostedFacts:
    """What the cheapest hosts take in place of a load's hardware, in words."""
    found, read_on = hosts_of(solved, row), solved.question.reference.hosted.read_on
    if solved.choices[row].offer is None:
        return HostedFacts()
    if not found.n_hosts:
        nobody = words("nobody in our list of {} hosts this model", read_on)
        return HostedFacts(hosted="nobody hosts it", hosts=nobody)
    if not solved.question.workloads[solved.question.loads[row].workload].output_tokens:
        why = "not compared: without answer tokens a host's cost is not worked out"
        return HostedFacts(hosted="no answer to host", hosts=Cell(why))
    if not found.cheapest:
        tokens = whole(solved.question.loads[row].input_tokens)
        hosts = words("{} it, none a prompt of {} tokens", plural_does(found.n_hosts, "host", "serve"), tokens)
        return HostedFacts(hosted="no host takes its prompt", hosts=hosts)
    at = joined(", ", [_host(one) for one in found.cheapest])
    unknown = [one.host_name for one in found.cheapest if one.price.precision is None]
    precision = f", a known precision ({', '.join(unknown)})" if unknown else ""
    first = found.cheapest[0]
    above = first.cheaper_above.get(ON_DEMAND)
    even = words("on demand cheaper above {}", Cell(above, PERCENT)) if above else "cheaper at any use"
    rank = words("cheapest of {}", whole(found.n_hosts)) if found.n_hosts > 1 else "the only host we list"
    said = [words("{} {}", first.host_name, dollars(first.monthly_usd)), rank]
    said += [even] if ON_DEMAND in first.break_even else []
    return HostedFacts(
        hosted=words("hosted: {}", joined(", ", said)),
        hosted_monthly=dollars(first.monthly_usd),
        hosts=words(
            "{} a month for the same tokens at {} utilization; prices read {} from {}",
            at,
            share(solved.question.settings.utilization),
            read_on,
            solved.question.reference.hosted.origin,
        ),
        hosts_rent=_renting(first),
        not_given=f"weights of your own, data at home{precision}",
    )


def _host(one: Hosted) -> Cell:
    marks = [one.price.precision or "precision unknown"]
    marks += [] if one.price.source else ["no source page"]
    return words("{} {}{}", one.host_name, dollars(one.monthly_usd), f" ({', '.join(marks)})")


def hosted_rate(solved: Solution, row: int) -> Cell:
    """The utilization above which renting on demand is cheaper than the cheapest host, as the requests that arrive in a
    second on average over the hours run: 55% is 2.9 requests a second."""
    cheapest = hosts_of(solved, row).cheapest
    above = cheapest[0].cheaper_above.get(ON_DEMAND) if cheapest else None
    if above is None:
        return NONE
    workload = solved.question.workloads[solved.question.loads[row].workload]
    always = solved.choices[row].output_tokens_per_second / workload.output_tokens
    return words("{} is {} requests a second on average", Cell(above, PERCENT), Cell(always * above, TWO_DECIMALS))


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
