"""The data that Decision is built with: its choices and factors as typed, the entries of its dropdowns, and the loads
that it answers.

A spreadsheet cannot refuse what is typed into it. Where a choice is not known it shows words, and no numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.model import Model
from sheetgen.errors import ScenarioError
from sheetgen.formula import Quantity, Value, both, formula, is_number, largest, number_where, round_up, smallest, where
from sheetgen.question.inputs import ASKS, HISTORY
from sheetgen.question.parse import Raw
from sheetgen.question.sheet_question import TARGETS, Load, Question
from sheetgen.question.stated_load import Rate
from sheetgen.sizing import cost
from sheetgen.sizing.people import users
from sheetgen.units import DTYPE_CHOICES, PLAIN, PURCHASES, TWO_DECIMALS, WEIGHT_CHOICES

AUTO, ANY, AS_TYPED = "auto", "any", "as typed"
BASE, LOW, HIGH = range(3)  # cases: of the context, and of the size of the load
CASES = ("base", "low", "high")
ASKED, EVEN, SURE = "asked", "even", "sure"  # levels of confidence
AS_ASKED, PUBLISHED, KV_FP8, FOUR_BITS = range(4)  # precisions in which the model is answered: rows of its table
OUTER = (0.25, 4)  # further sizes of the load on the chart, beyond its low and its high end
FACTORS = {"users": (0.5, 2), "context": (0.5, 2), "price": (0.8, 1.25)}
ENDS = ("low", "high")
ASKS_PLACES = 4  # decimals of how often people ask, where that follows from a rate


class Context(NamedTuple):
    """A row of Decision contexts: its precision, its case and its level."""

    precision: int = AS_ASKED
    case: int = BASE
    level: str = ASKED


# Contexts that the page shows with speed and chance; of the others it shows machines and cost alone.
SHOWN = (Context(), Context(level=EVEN), Context(KV_FP8), Context(FOUR_BITS))
CONTEXTS = (*SHOWN, Context(level=SURE), Context(PUBLISHED), Context(case=LOW), Context(case=HIGH))
# Every load that is answered: its context, and its place among the sizes of the load (base, low, high, the outer ones).
LOADS: tuple[tuple[Context, int], ...] = (
    *((context, BASE) for context in CONTEXTS),
    (Context(), LOW),
    (Context(), HIGH),
    (Context(case=HIGH), HIGH),
    *((Context(), 1 + HIGH + k) for k in range(len(OUTER))),
)


def load_of(context: Context = CONTEXTS[0], size: int = BASE) -> int:
    """The index of a load among all loads of Decision."""
    return LOADS.index((context, size))


@formula("Context of the case")
def case_context_tokens(
    context_tokens: Quantity, case_factor: Quantity, max_context_tokens: Quantity, answer_tokens: Quantity
) -> Value:
    """The context of a case: at least the answer, and at most what the model accepts, where the base keeps to these.

    Source: context x the case's factor.
    """
    context = where(is_number(context_tokens), largest(context_tokens, 1), 1)
    least = where(answer_tokens < context, answer_tokens, context)
    scaled = largest(round_up(context * case_factor), least)
    return where(context <= max_context_tokens, smallest(scaled, max_context_tokens), scaled)


@formula("Requests at once of the case")
def case_requests(requests: Quantity, case_factor: Quantity) -> Value:
    """Requests at once of a case; none of people, whose rate counts.

    Source: requests at once x the case's factor.
    """
    return number_where(is_number(requests), round_up(requests * case_factor))


@formula("People of the case, or requests at once")
def case_load(stated_users: Quantity, requests: Quantity, case_factor: Quantity) -> Value:
    """How large the load of a case is, in what it was stated in.

    Source: people, or requests at once, x the case's factor.
    """
    return where(stated_users > 0, stated_users * case_factor, case_requests(requests, case_factor))


@formula("People stated; 0: none")
def people_or_none(users: Quantity) -> Value:
    """People as they were typed; 0 where there are none."""
    return where(is_number(users), largest(users, 0), 0)


@formula("Requests at once, stated")
def requests_of_choice(stated_users: Quantity, concurrent_requests: Quantity) -> Value:
    """Requests at once as they were typed; none beside people, whose rate counts.

    Source: INTERFACE (a load is people, a rate, or requests at once).
    """
    return number_where(both(stated_users == 0, is_number(concurrent_requests)), concurrent_requests)


@formula("A request follows each answer (1 or 0)", PLAIN)
def loop_of_choice(stated_users: Quantity) -> Value:
    """1 for requests at once, one of which follows each answer; 0 for people, whose requests arrive at a rate.

    Source: prompts_waited_for.
    """
    return where(stated_users > 0, 0, 1)


@formula("Requests per second of the case", TWO_DECIMALS)
def case_rate(requests_per_second: Quantity, case_factor: Quantity) -> Value:
    """Requests that arrive in a second in a case.

    Source: the rate of the people x the case's factor.
    """
    return where(is_number(requests_per_second), requests_per_second, 0) * case_factor


@dataclass(frozen=True)
class Choices:
    """The choices that Decision is built with. picked: by name, what the page asks for; factors: of users, context and
    price, those of the low and the high end; models: what the dropdown offers beside the workbook's own; follows: the
    targets that nobody stated, which follow the tokens."""

    picked: Mapping[str, Raw]
    factors: Mapping[str, tuple[float, ...]]
    models: tuple[Model, ...]
    follows: frozenset[str]


def headline_choices(solved: Solution) -> dict[str, Raw]:
    """The choices by which Decision asks what the page does: the headline's load of the model to approve, or of the
    first model."""
    question = solved.question
    m, w = question.ask or 0, question.headline[0]
    row = headline_rows(solved)[m]
    load, workload, settings = question.loads[row], question.workloads[w], question.settings
    people, asks = _people_of(question, load, workload)
    return {
        "model": question.models[m].model.name,
        "workload": AS_TYPED,
        "users": people,
        "requests_per_user_per_day": asks,
        "concurrent_requests": load.requests,
        "context_tokens": workload.context_tokens,
        "answer_tokens": workload.output_tokens,
        "weight_dtype": settings.weight_dtype,
        "kv_cache_dtype": settings.kv_cache_dtype,
        "purchase": settings.purchase,
        "provider": ANY,
        "region": ANY,
        "confidence": settings.confidence,
        "tpot_ms": workload.tpot_target_ms,
        "ttft_ms": workload.ttft_target_ms,
    }


def _people_of(question: Question, load: Load, workload: Workload) -> tuple[int | None, float]:
    """The people of a load and how often each asks a day; of a stated rate, for which Decision does not ask, the people
    of the page, who ask a little more often than its workload says. None of requests at once."""
    asks, rate = workload.requests_per_user_per_day, load.requests_per_second
    if not rate or load.users:
        return (int(load.users) if load.users and rate else None), asks
    facts = {**vars(question.settings), **cost.CONSTANTS, ASKS: asks}
    people = max(1, int(users.of({**facts, "stated_users": 0, "load_requests_per_second": rate})))
    return people, round(asks * rate / Rate(users=people).at_peak(question.settings, workload), ASKS_PLACES)


def decision(solved: Solution) -> Choices:
    """The choices of Decision: as typed on its sheet, else those of the headline."""
    question, usual = solved.question, headline_choices(solved)
    workload = question.workloads[question.headline[0]]
    picked = {name: question.overrides.input(f"decision_{name}", value) for name, value in usual.items()}
    factors = {
        name: tuple(question.overrides.input(f"case_{name}_{end}", f) for end, f in zip(ENDS, values, strict=True))
        for name, values in FACTORS.items()
    }
    if picked["workload"] == AS_TYPED and (picked["answer_tokens"] or 0) > (picked["context_tokens"] or 0):
        raise ScenarioError(
            f"Decision: the answer of {picked['answer_tokens']:,} tokens is longer than the context of "
            f"{picked['context_tokens'] or 0:,}, which holds prompt and answer. "
            "Lengthen the context, or shorten the answer."
        )
    models = question.reference.models
    # A spreadsheet finds a name in capitals, too: the choices as the dropdowns spell them.
    lists = offered(question, models)
    spelled = {name: {str(choice).lower(): choice for choice in reversed(listed)} for name, listed in lists.items()}
    picked = {name: spelled.get(name, {}).get(str(value).lower(), value) for name, value in picked.items()}
    has_history = bool(getattr(workload, HISTORY))  # which Decision does not ask for
    stated = {name for name in TARGETS if workload.id in question.stated[name]}
    typed = {name for name in TARGETS if f"decision_{name}" in question.overrides.inputs}
    follows = frozenset() if has_history else frozenset(TARGETS) - stated - typed
    return Choices(picked, factors, models, follows)


def offered(question: Question, models: Sequence[Model]) -> dict[str, Sequence[str]]:
    """The entries of each dropdown, in the order in which a spreadsheet searches them."""
    own = [row["model"] for row in question.overrides.own_models if row.get("model")]
    blank = [NO_MODEL] if len(own) < SPARE_MODELS else []
    return {
        "model": (*(m.model.name for m in question.models), *own, *blank, *(m.name for m in models)),
        "workload": (AS_TYPED, *(workload.name for workload in question.workloads)),
        "weight_dtype": WEIGHT_CHOICES,
        "kv_cache_dtype": DTYPE_CHOICES,
        "purchase": tuple(PURCHASES),
        "provider": (ANY, *providers(question)),
        "region": (ANY, *regions(question)),
    }


def providers(question: Question) -> list[str]:
    """The providers of the sheet Prices and hardware, as they were typed."""
    return list(dict.fromkeys(name.partition("/")[0] for name, _ in instances(question)))


def regions(question: Question) -> list[str]:
    """The regions of the sheet Prices and hardware, as they were typed."""
    rows = ((question.overrides.instances.get(candidate.instance, {}), candidate.region) for candidate in question.rows)
    typed = [row.get("region", region) for row, region in rows]
    typed += [row.get("region") for row in question.overrides.own_instances if row.get("type")]
    return list(dict.fromkeys(region for region in typed if region))


def n_table_rows(used: Iterable[str], as_built: Iterable[str]) -> int:
    """The number of rows of a table of providers or regions: those of the catalog and spare ones for what is typed;
    more where more names are used."""
    built = {name for name in as_built if name}
    return max(len(built) + SPARE_INSTANCES, len(built.union(used)))


def instances(question: Question) -> list[tuple[str, str | None]]:
    """Name and GPU of each row of Prices and hardware, as typed; those too that cannot be rented."""
    overrides, listed = question.overrides, []
    for candidate in question.rows:
        provider, kind = candidate.instance.split("/", 1)
        row = overrides.instances.get(candidate.instance, {})
        name = f"{row.get('provider', provider)}/{row.get('type', kind)}"
        listed.append((name, row.get("instance_gpu", candidate.gpu.id)))
    own = (row for row in overrides.own_instances if row.get("type"))
    return listed + [(f"{row.get('provider') or ''}/{row['type']}", row.get("instance_gpu")) for row in own]


NO_MODEL = "(your own model)"  # in the dropdown, for a blank row of Models
SPARE_MODELS = 3  # rows of one's own on Models, at least
SPARE_INSTANCES = 3  # rows of one's own on Prices and hardware, at least
CHOICES = ("model", "workload", "weight_dtype", "kv_cache_dtype", "purchase", "provider", "region")
