"""Answers with weights, and sizes of the KV cache, in precisions other than those in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sheetgen.answer.answer_record import CheckpointRecord, ModelRecord, OtherWeights, PublishedRecord
from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.picks import Picks, pick
from sheetgen.answer.sheet_facts import grid_of
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import OF_CHOSEN, TOO_SLOW, chances_of, tables, verdict_without
from sheetgen.program.sheet_program import ANSWERED, CELL_KV, sheet_program
from sheetgen.question.deployment import model_columns
from sheetgen.question.sheet_question import Load, Question, SheetModel
from sheetgen.sizing.kv_cache import kv_bytes_per_token
from sheetgen.sizing.weights import weights_bytes

FP8 = "fp8"
OF_KV = ("inputs", "models", "shards", "paces")  # the tables from which the bytes of a cache follow


def as_published(solved: Solution) -> tuple[PublishedRecord | None, ...]:
    """By load, the instances to rent for the weights as published; None where these are in use."""
    question = solved.question
    models = {m: model.as_published for m, model in enumerate(question.models)}
    loads = {
        row: load for row, load in enumerate(question.loads) if models[load.model] is not None and not load.over_limit
    }
    records: list[PublishedRecord | None] = [None] * len(question.loads)
    if not loads:
        return tuple(records)
    published = _in_other_precisions(question, [model for model in models.values() if model], loads.values())
    others = tables(published)
    picks = pick(others.grid)
    chances, served = _chances(others, picks), _served(others, picks)
    for index, ((row, load), picked) in enumerate(zip(loads.items(), picks, strict=True)):
        dtype = question.models[load.model].auto_weight_dtype
        if picked is None:
            records[row] = PublishedRecord(dtype, None, None, None, is_held=verdict_without(others, index) == TOO_SLOW)
        else:
            offer, n_instances, usd = picked[0]
            instance = others.candidate(offer).instance
            records[row] = PublishedRecord(
                dtype, instance, n_instances, usd, chances[index], served_at_target=served[index]
            )
    return tuple(records)


def as_recommended(solved: Solution) -> tuple[OtherWeights | None, ...]:
    """By load, the instances to rent for weights in the recommended precision, where the question names a precision
    that is neither recommended nor published, and the recommended one is clearly cheaper or surer; else None."""
    question = solved.question
    models = {
        m: replace(model, weight_dtype=model.recommended_weight_dtype)
        for m, model in enumerate(question.models)
        if model.weight_dtype not in (model.recommended_weight_dtype, model.auto_weight_dtype)
    }
    loads = {row: load for row, load in enumerate(question.loads) if load.model in models and not load.over_limit}
    records: list[OtherWeights | None] = [None] * len(question.loads)
    if not loads:
        return tuple(records)
    others = tables(_in_other_precisions(question, list(models.values()), loads.values()))
    most = 1 - question.reference.assumption("least_saving_fraction")
    picks = pick(others.grid)
    chances = _chances(others, picks)
    for index, ((row, load), picked) in enumerate(zip(loads.items(), picks, strict=True)):
        usd = solved.choices[row].monthly_usd
        if picked is None or usd is None:
            continue
        is_surer = is_fallback(solved, row) and not is_fallback(others, index)
        is_less_sure = is_fallback(others, index) and not is_fallback(solved, row)
        if is_surer or (picked[0].usd <= most * usd and not is_less_sure):
            offer, n_instances, other_usd = picked[0]
            dtype, instance = models[load.model].weight_dtype, others.candidate(offer).instance
            records[row] = OtherWeights(dtype, instance, n_instances, other_usd, chances[index])
    return tuple(records)


def _chances(solved: Solution, picks: Picks) -> dict[int, float]:
    """By the row of a load, the chance of the offer that was chosen for it."""
    offers = {row: pair[0].offer for row, pair in enumerate(picks) if pair}
    return dict(zip(offers, chances_of(solved, list(offers), list(offers.values())), strict=True))


def _served(solved: Solution, picks: Picks) -> dict[int, float]:
    """By the row of a load, the requests at once that the chosen offer serves within the targets; for a rate, the
    requests per second."""
    offers = {row: pair[0].offer for row, pair in enumerate(picks) if pair}
    if not offers:
        return {}
    chosen = solved.grid.along("chosen", {"load": list(offers), "offer": list(offers.values())})
    chosen.work_out(ANSWERED)
    at_once = chosen.spread("served_at_target", OF_CHOSEN).tolist()
    if not chosen.has("served_requests_per_second", OF_CHOSEN):
        return dict(zip(offers, at_once, strict=True))
    a_second = chosen.spread("served_requests_per_second", OF_CHOSEN).tolist()
    is_rate = [bool(solved.question.loads[row].requests_per_second) for row in offers]
    return {
        row: rate if own else requests
        for row, own, rate, requests in zip(offers, is_rate, a_second, at_once, strict=True)
    }


def _in_other_precisions(question: Question, models: list[SheetModel], loads: Iterable[Load]) -> Question:
    """The question for these loads, with models in other precisions in place of the same models."""
    places = {model.model.id: m for m, model in enumerate(models)}
    moved = tuple(replace(load, model=places[question.models[load.model].model.id]) for load in loads)
    return replace(question, models=tuple(models), loads=moved, headline=(0, 0))


def kv_bytes_by_dtype(solved: Solution) -> list[dict[str, int]]:
    """By load, the bytes of all its caches in each precision that a cache can have, before they are divided over
    GPUs."""
    question, models, loads = solved.question, list[SheetModel](), list[Load]()
    rows: list[tuple[int, str]] = []
    for row, load in enumerate(question.loads):
        for dtype in kv_dtypes(question.models[load.model]):
            model = replace(question.models[load.model], kv_cache_dtype=dtype)
            models += [model] if model not in models else []
            loads.append(replace(load, model=models.index(model)))
            rows.append((row, dtype))
    asked = replace(question, models=tuple(models), loads=tuple(loads))
    grid, program = grid_of(asked, solved.profiles, solved.offers), sheet_program(question.draft is not None)
    grid.work_out(*(program[name] for name in OF_KV))
    profiles = [solved.undivided_profile(row) for row, _ in rows]
    grid = grid.along("chosen", {"load": range(len(loads)), "profile": profiles})
    grid.work_out(CELL_KV)
    by_load: list[dict[str, int]] = [{} for _ in question.loads]
    for (row, dtype), kept in zip(rows, grid.spread("kv_bytes", OF_CHOSEN).tolist(), strict=True):
        by_load[row][dtype] = int(kept)
    return by_load


def kv_dtypes(model: SheetModel) -> tuple[str, ...]:
    """The precisions of the cache in which a model is compared: the one in use, its own, and FP8."""
    return tuple(dict.fromkeys((model.kv_cache_dtype, model.auto_kv_cache_dtype, FP8)))


def model_records(solved: Solution) -> tuple[ModelRecord, ...]:
    """The models of a sheet, with their sizes by precision and their known checkpoints."""
    of_requests = [solved.models[name].tolist() for name in ("kv_bytes_per_token", "state_bytes_per_sequence")]
    return tuple(_model_record(model, *kept) for model, *kept in zip(solved.question.models, *of_requests, strict=True))


def _model_record(sheet_model: SheetModel, kept_bytes_per_token: float, state_bytes_per_sequence: float) -> ModelRecord:
    model, checkpoints = sheet_model.model, [c for c in sheet_model.model.own_checkpoints if c.hf_id]
    own = sheet_model.weight_dtype, sheet_model.auto_weight_dtype, sheet_model.recommended_weight_dtype
    sizes = dict.fromkeys((*own, *(c.weight_dtype for c in checkpoints)))
    kv = {d: kv_bytes_per_token.of(model_columns(model, own[0], d)) for d in kv_dtypes(sheet_model)}
    return ModelRecord(
        model.id,
        model.name,
        model.sized_as,
        model.params.total,
        {d: int(weights_bytes.of(model_columns(model, d, sheet_model.kv_cache_dtype))) for d in sizes},
        {d: int(kept) for d, kept in kv.items()},
        model.max_context_tokens,
        tuple(
            CheckpointRecord(c.hf_id, c.weight_dtype, c.kv_cache_dtype, c.publisher, model.license_of(c))
            for c in checkpoints
        ),
        kept_bytes_per_token,
        state_bytes_per_sequence,
    )
