"""A card for each model at the headline load: what to rent, what it costs, and what users get of it."""

from __future__ import annotations

from typing import Any

from sheetgen.recommend import TOO_SLOW, Solution, short_tokens
from sheetgen.sheet.fit import Fit, at, headline_rows
from sheetgen.sheet.money import facts_of
from sheetgen.sheet.notes import price_classes
from sheetgen.sheet.one_page import Card
from sheetgen.sheet.pace import bought_by, first_token_line, speed_line, target_words
from sheetgen.sheet.wording import NONE, change, money, named_size, plural, provider_name, rent, rented_gpus
from sheetgen.units import PERCENT, WHOLE


def cards(solved: Solution) -> tuple[Card, ...]:
    return tuple(_card(solved, row) for row in headline_rows(solved))


def _card(solved: Solution, row: int) -> Card:
    question, choice = solved.question, solved.choices[row]
    model, units = question.models[question.loads[row].model], question.settings.units
    weights, kv = solved.models["weights_bytes"][question.loads[row].model], solved.cells["kv_bytes"][row]
    memory = f"{named_size(weights, units)} weights + {named_size(kv, units)} KV cache"
    users = WHOLE.text(solved.cells["users"][row])
    fit = Fit.of(solved, row)
    if fit is None:
        why = _why_nothing(solved, row)
        nothing: dict[str, Any] = dict.fromkeys(
            ("headroom", "speed", "first_token", "sized_by", "unit_money", "runner_up"), NONE
        )
        name = model.model.name
        return Card(name, False, choice.verdict, NONE, NONE, why, memory, **nothing, users=users, classes=())
    one, pipeline = fit.candidate, choice.pipeline_parallel_size
    idle = fit.gpus_rented - fit.gpus_used
    hardware = [
        rented_gpus(choice.n_instances, one),
        f"TP {fit.tensor_parallel_size}",
        *([f"PP {pipeline}"] if pipeline > 1 else []),
        plural(choice.n_replicas, "replica"),
        *([f"{plural(idle, 'GPU')} idle"] if idle else []),
    ]
    if choice.n_replicas > 1:
        memory = f"{choice.n_replicas:,} × {memory}"
    held = choice.n_replicas * choice.sequences_per_replica
    speed, facts = speed_line(solved, row), facts_of(solved, row)
    token_time, _, throughput = speed.partition(", ")
    return Card(
        model=model.model.name,
        fits=True,
        rent=rent(choice.n_instances, one),
        monthly=money(choice.monthly_usd),
        provider=", ".join(filter(None, (provider_name(one.provider), one.region))),
        hardware=", ".join(hardware),
        memory=memory,
        headroom=f"room for {plural(held, 'request')}, {PERCENT.text(choice.sure_headroom_fraction)} surely free",
        speed=speed,
        first_token=first_token_line(solved, row),
        sized_by=bought_by(solved, row),
        unit_money=", ".join(x for x in (facts.per_user, facts.per_million_tokens) if x != NONE) or NONE,
        runner_up=_runner_up(solved, row),
        users=users,
        held=f"room for {held:,}",
        token_time=token_time,
        throughput=throughput,
        per_user=facts.per_user.removesuffix(" and month"),
        budget=_told(facts.budget),
        classes=tuple(dict(facts.classes)[purchase] for purchase in price_classes(question)),
        owned=_told(facts.owned).removeprefix("own ").removesuffix(" a month"),
        break_even=_told(facts.break_even),
        is_quoted=facts.is_quoted,
    )


def _told(fact: str) -> str:
    return "" if fact == NONE else fact


def _runner_up(solved: Solution, row: int) -> str:
    choice = solved.choices[row]
    second, usd = choice.runner_up, choice.runner_up_monthly_usd
    if second is None or usd is None:
        return "no other GPU or provider holds it"
    one = solved.candidate(second)
    gpus = rented_gpus(round(at(solved.costs, "n_instances", row, second)), one)
    dearer = "the same" if usd == choice.monthly_usd else change(choice.monthly_usd, usd)
    return f"then {gpus} on {provider_name(one.provider)}: {money(usd)} ({dearer})"


def _why_nothing(solved: Solution, row: int) -> str:
    cell, choice = solved.question.loads[row], solved.choices[row]
    model = solved.question.models[cell.model]
    if cell.over_limit:
        limit = short_tokens(int(model.model.max_context_tokens or 0))
        return f"{short_tokens(cell.context_tokens)} asked, {limit} allowed"
    if choice.verdict == TOO_SLOW:
        return f"a lone request misses {target_words(solved.question, row)} on every candidate that holds it"
    if not (solved.pools["runs"][cell.model] == 1).any():
        return f"no candidate runs {model.weight_dtype} weights with a {model.kv_cache_dtype} KV cache"
    return "no candidate holds weights and one request"
