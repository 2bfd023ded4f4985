"""Random questions for the live page, and what `sheetgen recommend` answers to each."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from node import run

from sheetgen.answer.answer_record import CellRecord, as_json
from sheetgen.answer.levers import levers_of_sheet
from sheetgen.answer.recording import record_of
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.launch.commands import Written
from sheetgen.launch.start_lines import Started
from sheetgen.live.live_facts import facts_of_catalog
from sheetgen.live.live_program import live_program
from sheetgen.live.packed import as_text
from sheetgen.question.sheet_question import Question as Asked
from sheetgen.report.fingerprints import larger_than
from sheetgen.units import PURCHASES

Question = dict[str, Any]  # by the names that the page has
SCRIPT = Path(__file__).with_name("answer_questions.js")
AS_OF = "2026-08-01"
MODELS = (
    "8b", "70b", "405b", "deepseek-v3", "gpt-oss-120b", "gemma-3-27b", "qwen3-235b-a22b", "ai21-jamba-1.5-mini",
    "mistral-small-3.1-24b", "qwen3-next-80b-a3b", "llama-4-scout-17b-16e", "phi-4", "kimi-k2", "mixtral-8x7b",
)  # fmt: skip
# What is compared, of a record, of a host and of a way to pay less.
OF_RECORD = (
    "verdict", "instance", "n_instances", "monthly_usd", "hourly_usd", "annual_usd", "gpu", "region", "purchase",
    "price_as_of", "tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size", "n_replicas", "n_gpus",
    "replicas_held", "chance", "chance_of", "tpot_seconds", "ttft_seconds", "output_tokens_per_second", "bound_by",
    "served_at_target", "memory_holds", "users", "requests_per_second", "requests_per_hour", "concurrent_requests",
    "weight_dtype", "kv_cache_dtype", "tpot_target_seconds", "ttft_target_seconds", "measure_first",
)  # fmt: skip
OF_HOST = (
    "host", "monthly_usd", "input_usd_per_million", "cached_usd_per_million", "output_usd_per_million", "precision",
    "source", "read_on", "deprecation_date",
)  # fmt: skip
OF_WAY = ("kind", "instance", "n_instances", "monthly_usd", "commits_usd", "pays_after_months", "chance", "detail")


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def random_questions(seed: int, n_questions: int) -> Iterator[Question]:
    """Questions of every kind of model and load; most of what a reader may leave alone is left alone."""
    draw = random.Random(seed)
    areas = ("eu", "us", "ap", "ca", "uk")
    providers = (["aws"], ["gcp"], ["azure"], ["aws", "azure"], ["lambda"], ["nebius", "gcp"], ["crusoe"])
    names = [*MODELS, *(model.id for model in catalog().models())] if seed % 2 else MODELS

    def sometimes(share: float, name: str, *values: Any) -> Question:
        return {name: draw.choice(values)} if draw.random() < share else {}

    for _ in range(n_questions):
        load = draw.choice(
            (
                {
                    "users": draw.choice((1, 20, 200, 640, 3000, 50_000)),
                    **sometimes(0.5, "requests_per_user_per_day", 1, 5, 60),
                },
                {"concurrent_requests": draw.choice((1, 3, 8, 32, 100, 1024))},
                {"requests_per_second": draw.choice((0.02, 0.5, 4.5, 60.0))},
            )
        )
        yield {
            "model": draw.choice(names),
            **load,
            "input_tokens": draw.choice((100, 1000, 3072, 3072, 7000, 15_360, 15_360, 30_000, 129_024)),
            "output_tokens": draw.choice((1, 8, 64, 256, 1024, 1024, 2048)),
            **sometimes(0.4, "weight_dtype", "published", "fp8", "bf16", "int4", "nvfp4"),
            **sometimes(0.2, "kv_cache_dtype", "fp8"),
            **sometimes(0.3, "purchase", *PURCHASES),
            **sometimes(0.3, "region", *areas),
            **sometimes(0.3, "providers", *providers),
            **sometimes(0.3, "confidence", 0.5, 0.6, 0.8, 0.9, 0.95),
            **sometimes(0.2, "tpot_ms", 15, 25, 80, 0),
            **sometimes(0.2, "ttft_ms", 400, 2000, 30_000, 0),
        }


def options_of(question: Question) -> dict[str, Any]:
    """The same as options of `recommend`."""
    off = {name: "off" for name in ("tpot_ms", "ttft_ms") if question.get(name) == 0}
    options = {**question, **off}
    return {name: str(value) if name.endswith("_ms") else value for name, value in options.items()} | {"as_of": AS_OF}


def in_python(question: Question) -> dict[str, Any]:
    """Python's answer and the ways beside it: the values that are compared, or why there is none. Each question is
    answered once."""
    return _in_python(json.dumps(question))


def answer_in_python(question: Question) -> dict[str, Any]:
    """The values of Python's answer alone, which must not be refused."""
    [cell] = record_of(recommended(options_of(question), catalog())).cells
    return values_of(cell)


@functools.cache
def _in_python(written: str) -> dict[str, Any]:
    question = json.loads(written)
    try:
        solved = recommended(options_of(question), catalog())
    except SheetgenError as error:
        return {"refused": str(error)}
    [cell] = record_of(solved, levers_of_sheet(solved)).cells
    values = values_of(cell)
    looser = [lever for lever in cell.levers if lever.family == "speed" and not lever.further and cell.chosen is None]
    rental, published = ("instance", "n_instances", "monthly_usd"), cell.as_published
    return {
        **values,
        "by_confidence": [fields_of(answer, "confidence", "chance", *rental) for answer in cell.by_confidence],
        "by_purchase": {name: fields_of(answer, *rental) for name, answer in cell.by_purchase.items()},
        "pay_less": [fields_of(way, *OF_WAY) for way in cell.pay_less] if cell.chosen else None,
        **(machines_of(solved.question, cell) if cell.chosen else {}),
        "as_sure": [fields_of(way, *OF_WAY) for way in cell.as_sure] if cell.chosen else None,
        "cheapest_same": fields_of(cell.cheapest_same, *OF_WAY),
        "survives_machine": fields_of(cell.survives_machine, "chance", "chance_before", *rental),
        "waits": cell.waits and {**as_json(cell.waits), "wait_fraction": cell.wait_fraction},
        "hosted": [fields_of(host, *OF_HOST) for host in cell.hosted],
        "fastest": fields_of(looser[0], "lever", *rental) if looser else None,
        "as_published": fields_of(published, "weight_dtype", "served_at_target", "chance", *rental),
        "declined": cell.declined and {name: cell.declined[name] for name in ("purchase", "reason")},
    }


def machines_of(question: Asked, cell: CellRecord) -> dict[str, Any]:
    """The replicas of one machine of an answer, and the larger machine that would take its place."""
    rented = question.instances[cell.answer.instance]
    larger = larger_than(question, cell)
    started = Started(cell.model, question.engine.engine, Written([], {}, {}, {}), cell.answer, rented)
    return {
        "replicas_of_machine": started.on_one,
        "larger": larger and {"monthly_usd": larger[0], "instance": larger[1].instance},
        "is_worth_it": cell.measure and cell.measure.is_worth_it,
    }


def fields_of(record: object, *names: str) -> dict[str, Any] | None:
    return None if record is None else {name: getattr(record, name) for name in names}


def values_of(cell: CellRecord) -> dict[str, Any]:
    """The values of a cell, or of what was chosen for it, by name; without hardware those of the question alone."""
    chosen = cell.chosen
    values = {name: getattr(cell, name) for name in OF_RECORD if hasattr(cell, name)}
    if chosen is None:
        kept = ("verdict", "weight_dtype", "kv_cache_dtype", "tpot_target_seconds", "ttft_target_seconds")
        return {name: values[name] for name in kept}
    values |= {name: getattr(chosen, name) for name in OF_RECORD if hasattr(chosen, name)}
    values["annual_usd"] = cell.units.annual_usd
    values["memory"] = {
        "weights_bytes": cell.weights_bytes * chosen.n_replicas,
        **{name: getattr(chosen.memory, name) for name in ("kv_bytes", "overhead_bytes", "limit_bytes")},
    }
    return values


@functools.cache
def facts(names: tuple[str, ...] = ()) -> Any:
    """The page's facts of these models, or of all."""
    return facts_of_catalog(catalog(), names, AS_OF)


def source(names: tuple[str, ...] = ()) -> str:
    """The page's program, with the facts of these models or of all."""
    return program_of(facts(names))


def program_of(facts: Any) -> str:
    """The same with these facts."""
    return f"const FACTS={as_text(facts)};\n{live_program(facts['has_draft'])}"


def in_node(questions: list[Question], code: str = "") -> list[dict[str, Any]]:
    """The answers of the page's program to each."""
    answers: list[dict[str, Any]] = run(SCRIPT, code or source(), questions)
    return answers


def differences(python: Any, page: Any, where: str = "") -> Iterator[str]:
    """The places at which two answers differ; numbers may differ by one in a thousand million."""
    if isinstance(python, dict):
        for name, value in python.items():
            of_page = page.get(name) if isinstance(page, dict) else page
            yield from differences(value, of_page, f"{where}.{name}")
    elif isinstance(python, (list, tuple)):
        if not isinstance(page, list) or len(page) != len(python):
            yield f"{where}: {python} in Python, {page} on the page"
        else:
            for i, (value, other) in enumerate(zip(python, page, strict=True)):
                yield from differences(value, other, f"{where}[{i}]")
    elif not is_same(python, page):
        yield f"{where}: {python} in Python, {page} on the page"


def is_same(python: Any, page: Any) -> bool:
    """True where two values are the same: texts wholly, numbers to 1e-9; none is null, and NaN."""
    if python is None or python != python:
        return page is None
    if isinstance(python, (int, float)) and isinstance(page, (int, float)):
        return bool(abs(python - page) <= 1e-9 * abs(python))
    return bool(python == page)
