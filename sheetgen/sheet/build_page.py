"""From the answer to the one page: every word and number that all writers draw."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from sheetgen.levers import EveryLever, levers_of_sheet
from sheetgen.recommend import Solution, short_tokens
from sheetgen.scenario.question import Question
from sheetgen.sheet import notes
from sheetgen.sheet.answers import bars, cards, lever_rows, matrix
from sheetgen.sheet.breaks import breaks
from sheetgen.sheet.fingerprints import fingerprints_for
from sheetgen.sheet.fit import headline_rows
from sheetgen.sheet.model_facts import model_facts
from sheetgen.sheet.page import Page
from sheetgen.sheet.wording import plural, share, sizing_rule
from sheetgen.units import UNIT_NAMES

TITLE = "LLM serving sizing sheet"


def build_page(solved: Solution, levers: EveryLever | None = None) -> Page:
    """The page of an answer. What is tight and what is stale is in the catalogs' assumptions.

    `levers` are those of every load where they are known already; else those of the headline are worked out.
    """
    question = solved.question
    prints = fingerprints_for(solved)
    if levers is None:
        levers = levers_of_sheet(solved, headline_rows(solved))
    stale_after, tight_below = (
        question.overrides.input(name, question.reference.assumption(name)) for name in notes.MARKED_BY
    )
    return Page(
        title=TITLE, question=_question(question), precision_line=_precision(question),
        as_of=question.as_of.isoformat(), price_banner=notes.price_banner(question, stale_after), version=_version(),
        catalog=question.catalog_sha256[:8], unit=UNIT_NAMES[question.settings.units], paper=question.settings.paper,
        cards=cards(solved), matrix=matrix(solved, tight_below), models=model_facts(solved), bars=bars(solved),
        breaks=breaks(solved), fingerprints=tuple(f.on_page(named=i == 0) for i, f in enumerate(prints)),
        levers=lever_rows(solved, levers), instances=notes.instance_rows(solved, stale_after),
        price_classes=tuple(notes.price_classes(question).values()),
        subject=next((str(f.numbers.get("model_name", "")) for f in prints), ""), left_out=notes.left_out(question),
        assumptions=tuple(notes.assumption_lines(question)), sources=notes.sources(solved),
        purchase=notes.price_classes(question)[question.settings.purchase],
    )  # fmt: skip


def _question(question: Question) -> str:
    workload, tier = question.workloads[question.headline[0]], question.tiers[question.headline[1]]
    context = short_tokens(workload.context_tokens)
    return f"{workload.name} ({context} tokens), {plural(tier, 'request')} in flight"


def _precision(question: Question) -> str:
    settings, engine = question.settings, question.engine
    weights = "/".join(dict.fromkeys(m.weight_dtype for m in question.models))
    kv = "/".join(dict.fromkeys(m.kv_cache_dtype for m in question.models))
    active = settings.active_fraction
    return " · ".join((
        f"weights {weights}" + (" (the checkpoint's own)" if settings.weight_dtype == "auto" else ""),
        f"KV cache {kv}", f"{engine.name} {engine.default_version}", sizing_rule(question),
        "every user counted as in flight" if active == 1 else f"{share(active)} of the users in flight",
    ))  # fmt: skip


def _version() -> str:
    try:
        return version("sheetgen")
    except PackageNotFoundError:
        return "unknown"
