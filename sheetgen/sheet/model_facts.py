"""What stands at the head of a model's column: weights, KV cache of a token, and its kind of attention."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.model import FullAttention, LatentAttention, Model, WindowedAttention
from sheetgen.recommend import Solution, short_tokens
from sheetgen.scenario.deployment import model_columns
from sheetgen.sheet.page import NONE, Cell, ModelFacts, words
from sheetgen.sheet.wording import middle_size, size, small_size
from sheetgen.sizing import kv_cache, weights
from sheetgen.units import DTYPES, ONE_DECIMAL, TWO_DECIMALS, Display

_TENTHS = Display("#,##0.#", optional=1)  # where there are any
ORIGINS = {"sourced": "published", "partly_derived": "derived", "formula": "derived", "unverified": "assumed"}
SHARED = ("shared_kv",)  # layers that do attend, to a cache of another layer: full attention would keep one


def model_facts(solved: Solution) -> tuple[ModelFacts, ...]:
    return tuple(_facts(solved, i) for i in range(len(solved.question.models)))


def _facts(solved: Solution, index: int) -> ModelFacts:
    units = solved.question.settings.units
    one = solved.question.models[index]
    token = float(solved.models["kv_bytes_per_token"][index])
    full = full_attention_bytes(one.model, DTYPES[one.kv_cache_dtype].kv_bytes)
    state = float(solved.models["state_bytes_per_sequence"][index])
    columns = model_columns(one.model, one.weight_dtype, one.kv_cache_dtype)
    columns["windowed_kv_heads_per_gpu"] = columns["windowed_kv_heads"]
    window = float(kv_cache.shard_windowed_bytes_per_token.of(columns))
    return ModelFacts(
        name=one.model.name, params=_billions(one.model.params.total),
        weights_bf16=size(weights_in(one.model, "bf16"), units),
        weights_fp8=size(weights_in(one.model, "fp8"), units), weights_used=one.weight_dtype,
        kv_used=one.kv_cache_dtype, kv_per_token=small_size(token, units),
        full_attention_per_token=small_size(full, units, _TENTHS) if full else NONE, ratio=_ratio(token, full),
        attention=attention_words(one.model), note=_note(one.model, state, window, units),
        origin=ORIGINS[one.model.confidence],
    )  # fmt: skip


def _billions(count: int) -> Cell:
    display = ONE_DECIMAL if count >= 10**9 else TWO_DECIMALS
    return words("{} B", Cell(count, replace(display, divisor=1e9)))


def weights_in(model: Model, dtype: str) -> float:
    """All weights in that precision, by the formula; the size of a known checkpoint beats it."""
    columns = model_columns(model, dtype, model.kv_cache_dtype)
    return float(weights.weights_bytes.of(columns))


def full_attention_bytes(model: Model, kv_dtype_bytes: float) -> float:
    """What a token would keep if every query head had keys and values of its own in every layer that mixes
    tokens, in bytes; 0 where the catalog has no head width (MLA, compressed caches).

    Layers that are only an MLP, mixture of experts or no-op would keep nothing in any architecture.
    """
    full = [g for g in model.attention if isinstance(g, FullAttention)]
    windowed = [g for g in model.attention if isinstance(g, WindowedAttention)]
    if not (full or windowed) or any(g.kind in ("mla", "compressed") for g in model.attention):
        return 0.0
    idle = sum(g.n_layers for g in model.attention if g.kind == "no_cache" and g.reason not in SHARED)
    head = full[0] if full else windowed[0]
    width = head.key_width + (head.value_width or head.key_width)
    layers = (model.n_layers - idle, model.n_heads, width)
    return float(kv_cache.kv_bytes_per_token(*layers, 0, 0, 0, 0, 0, kv_dtype_bytes, 0))


def _ratio(token: float, full: float) -> Cell:
    if not full or not token:
        return NONE
    factor = Cell(full / token, ONE_DECIMAL)
    return Cell("the same") if factor == "1.0" else words("{}× less", factor)


def attention_words(model: Model) -> str:
    """The kind of attention in a few words: GQA, 8 of 64 heads; 16 of 64 layers grow, 48 keep a state."""
    layers: dict[str, int] = {}
    for group in model.attention:
        layers[group.kind] = layers.get(group.kind, 0) + group.n_layers
    windows = [g for g in model.attention if isinstance(g, WindowedAttention)]
    if layers.get("recurrent"):
        growing = layers.get("full", 0) + layers.get("mla", 0)
        words = f"{growing} of {model.n_layers} layers grow, {layers['recurrent']} keep a state"
        return f"{words}, {sum(g.n_layers for g in windows)} windowed" if windows else words
    if windows:
        first = windows[0]
        kind = "chunked" if first.kind == "chunked" else "windowed"
        n_windowed, window = sum(g.n_layers for g in windows), short_tokens(first.window_tokens)
        words = f"{n_windowed} of {model.n_layers} layers {kind} ({window})"
        return f"{words}, compressed beyond" if "compressed" in layers else words
    latent = next((g for g in model.attention if isinstance(g, LatentAttention)), None)
    if latent:
        return f"MLA, {latent.latent_width} wide" + (", with an indexer" if "indexer" in layers else "")
    heads = next(g.n_kv_heads for g in model.attention if isinstance(g, FullAttention))
    if heads == model.n_heads:
        return f"MHA, {heads} heads"
    words = f"{'MQA' if heads == 1 else 'GQA'}, {heads} of {model.n_heads} heads"
    kept = layers["full"]
    return words if kept == model.n_layers else f"{words}, {kept} of {model.n_layers} layers"


def _note(model: Model, state: float, window: float, units: str) -> str:
    notes = []
    if model.kind == "reference_shape":
        notes.append(f"a reference shape, no real model; near {' and '.join(model.nearest[:2])}")
    if model.confidence == "unverified":
        notes.append("unverified figures")
    if state:
        notes.append(f"and {middle_size(state, units)} of state a request")
    if window:
        notes.append(f"and {small_size(window, units)} a token inside the window")
    return "; ".join(notes)
