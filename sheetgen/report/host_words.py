"""A load served by hosts of the same model, in words: their prices, the utilization above which renting is cheaper, and
what a host does not offer."""

from __future__ import annotations

from sheetgen.answer.answer_record import CellRecord, HostedRecord
from sheetgen.errors import shown
from sheetgen.question.sheet_question import Question
from sheetgen.report import sentences
from sheetgen.report.page import NONE, Cell, HostedFacts, joined, words
from sheetgen.report.templates import q, template
from sheetgen.report.wording import dollars
from sheetgen.units import ON_DEMAND, ONE_DECIMAL, PERCENT, PURCHASES, TWO_DECIMALS

_PRICED_FOR = template(
    "[counted?for {users:grouped} {users:person|people}|[rated?at this rate|at {share:percent} of the hours]]",
    counted=q.counted == 1,
    rated=q.rated == 1,
)


def hosted_facts(question: Question, cell: CellRecord) -> HostedFacts:
    """The prices of the cheapest hosts for a load, in words, or why there are none."""
    file, model = question.reference.hosted, question.model_of(cell.row).model
    n_hosts, n_listed = (
        len({price.host for price in prices}) for prices in (question.live_hosts(model), file.of(model.hosted_id))
    )
    if cell.chosen is None:
        return HostedFacts()
    if n_listed and not n_hosts:
        days = question.reference.assumption("stale_host_after_days")
        return HostedFacts(hosts=sentences.no_live_host.fill(n_listed, days=days))
    if not n_hosts:
        nobody = words("nobody in our list of {} hosts this model", file.read_on)
        return HostedFacts(hosts=nobody)
    if not question.workload_of(cell.row).output_tokens:
        why = "not compared: without answer tokens a host's cost is not worked out"
        return HostedFacts(hosts=Cell(why))
    if not cell.hosted:
        hosts = sentences.no_host_of_prompt.fill(n_hosts, tokens=question.loads[cell.row].input_tokens)
        return HostedFacts(hosts=hosts)
    names = [file.host_name(host.host) for host in cell.hosted]
    hosts_words = joined(", ", [_host(*host) for host in zip(names, cell.hosted, strict=True)])
    unknown = [name for name, host in zip(names, cell.hosted, strict=True) if host.precision is None]
    precision = f", a known precision ({', '.join(unknown)})" if unknown else ""
    region = f", the region {shown(question.filters.region)} (our list states none)" if question.filters.region else ""
    first = cell.hosted[0]
    return HostedFacts(
        hosts=words(
            "{} a month {}; prices read {} from {}",
            hosts_words,
            priced_for(question, cell),
            min(host.read_on for host in cell.hosted),
            file.origin,
        ),
        hosts_rent=_renting(names[0], first),
        not_given=f"weights of your own, data at home{precision}{region}",
    )


def priced_for(question: Question, cell: CellRecord) -> Cell:
    """The load that a host's price is for, in words: the people that the answer serves, the rate, or, where neither is
    known, the share of the hours in which the hardware does its load."""
    load, users = question.loads[cell.row], cell.users
    return _PRICED_FOR.fill(
        users=int(users) if users >= 1 else 0,
        counted=bool(users >= 1 and (load.users or not cell.is_rate)),
        rated=cell.is_rate,
        share=question.settings.utilization,
    )


def _host(name: str, host: HostedRecord) -> Cell:
    marks = [host.precision or "precision unknown"]
    marks += [f"until {host.deprecation_date}"] if host.deprecation_date else []
    return words("{} {}{}", name, dollars(host.monthly_usd), f" ({', '.join(marks)})")


def hosted_rate(question: Question, cell: CellRecord) -> Cell:
    """The utilization above which renting on demand is cheaper than the cheapest host, as the requests that arrive in a
    second on average over the hours run: 55% is 2.9 requests a second."""
    above = cell.hosted[0].cheaper_above.get(ON_DEMAND) if cell.hosted else None
    if above is None:
        return NONE
    always = cell.answer.output_tokens_per_second / question.workload_of(cell.row).output_tokens
    return words("{} is {} requests a second on average", Cell(above, PERCENT), Cell(always * above, TWO_DECIMALS))


def _renting(name: str, host: HostedRecord) -> Cell:
    """The utilization above which renting is cheaper than a host, on demand and in the best committed class; where it
    never is, the ratio of the costs."""
    committed = sorted((p for p in host.break_even if PURCHASES[p].committed), key=host.break_even.__getitem__)
    classes = [p for p in (ON_DEMAND, *committed[:1]) if p in host.break_even]
    if not classes:
        return NONE
    if all(host.break_even[p] > 1 for p in classes):
        times = [words("{} {} times", p, Cell(host.break_even[p], ONE_DECIMAL)) for p in classes]
        never = "renting costs more than {} at any utilization: at 100% {} as much"
        return words(never, name, joined(", ", times))
    parts = [
        words("{} {}", p, words("above {}", Cell(share, PERCENT)) if share <= 1 else "at none")
        for p in classes
        for share in (host.break_even[p],)
    ]
    return words("renting is cheaper than {} by utilization: {}", name, joined(", ", parts))
