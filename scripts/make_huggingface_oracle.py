"""Writes tests/data/huggingface_oracle.csv: small random configs, and what transformers counts for them.

Needs an environment of its own: pip install transformers==5.23.0 torch. For every config the class of its
model_type is built; its parameters are counted by part, and the shapes of its cache are read after a forward
pass at two lengths. CI reads the file and needs neither library.

    python scripts/make_huggingface_oracle.py tests/data/huggingface_oracle.csv
"""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
from huggingface_shapes import Config, Draw, samples
from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
)

SHORT, LONG = 24, 60
PARTS = ("total", "embedding", "routed_experts", "lm_head", "vision", "per_layer_embedding")
CACHE = ("growing", "windowed", "indexer", "conv", "state")
COLUMNS = ("name", "config", *PARTS, *CACHE)
_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight", "embeddings.weight")
_VISION = ("vision", "visual", "multi_modal_projector", "mm_projector", "embed_vision", "image_newline")


def build(config: Config, device: str) -> torch.nn.Module:
    fields = dict(config)
    made = CONFIG_MAPPING[fields.pop("model_type")](**fields)
    found = (MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING)
    cls = next(mapping[type(made)] for mapping in found if type(made) in mapping)
    cls = cls[0] if isinstance(cls, tuple) else cls
    with torch.device(device):
        model: torch.nn.Module = cls._from_config(made)
    return model


def counted(model: torch.nn.Module) -> dict[str, int]:
    out = dict.fromkeys(PARTS, 0)
    left_out = _NOT_COUNTED.get(model.config.model_type, ())
    for name, parameter in model.named_parameters():
        n = parameter.numel()
        if any(word in name for word in left_out):
            continue
        out["total"] += n
        if "embed_tokens_per_layer" in name or "ngram_embedding" in name:
            out["per_layer_embedding"] += n
        elif name.startswith("lm_head") or ".lm_head." in name:
            out["lm_head"] += n
        elif any(word in name for word in _VISION):
            out["vision"] += n
        elif ".experts." in name and "shared" not in name and "norm" not in name:
            out["routed_experts"] += n
        elif name.endswith(_EMBEDDINGS) and ".layers." not in name and "patch" not in name:
            out["embedding"] += n
    return out


def held(model: torch.nn.Module, tokens: int, vocab: int) -> list[Any]:
    torch.manual_seed(0)
    with torch.no_grad():
        out = model(torch.randint(8, vocab, (1, tokens)), use_cache=True)
    cache = out.past_key_values if hasattr(out, "past_key_values") else out.cache_params
    return cache.layers if hasattr(cache, "layers") else []


def _elements(tensor: Any) -> int:
    if isinstance(tensor, dict):
        return sum(_elements(item) for item in tensor.values())
    return tensor.numel() if isinstance(tensor, torch.Tensor) else 0


def _columns(tensor: Any) -> int:
    """Elements of a convolution's state less its last column, which engines do not keep."""
    if isinstance(tensor, dict):
        return sum(_columns(item) for item in tensor.values())
    return tensor.numel() // tensor.shape[-1] * (tensor.shape[-1] - 1) if isinstance(tensor, torch.Tensor) else 0


def cached(model: torch.nn.Module, vocab: int) -> dict[str, int]:
    """Elements a token of layers that grow and of windowed ones, of index keys; convolution and state."""
    short, long = held(model, SHORT, vocab), held(model, LONG, vocab)
    out = dict.fromkeys(CACHE, 0)
    for a, b in zip(short, long, strict=True):
        at = [_elements(getattr(x, "keys", None)) + _elements(getattr(x, "values", None)) for x in (a, b)]
        if at[0] == at[1] and at[0]:
            out["windowed"] += at[0] // a.keys.shape[-2]
        else:
            out["growing"] += (at[1] - at[0]) // (LONG - SHORT)
        index = [_elements(getattr(x, "indexer_keys", None)) for x in (a, b)]
        out["indexer"] += (index[1] - index[0]) // (LONG - SHORT)
        out["conv"] += _columns(getattr(b, "conv_states", None))
        out["state"] += _elements(getattr(b, "recurrent_states", None))
    return out


_WITHOUT_CACHE = ("llama4_text", "gpt_neo", "deepseek_v4", "minimax")  # shapes that the class holds otherwise
# With a tower, and the cache of the language model read all the same.
CACHE_TOO = ("glm5_next", "mistral_large4", "muse_spark", "step3p7", "qwen4_exp")
# Towers that sheetgen does not count, and says so.
_NOT_COUNTED = {
    "inkling_mm_model": ("audio_tower", "vision_tower"), "dots3_note": ("audio_tower", "vision_tower"),
    "muse_spark": ("audio_tower",),
}  # fmt: skip


def row(name: str, config: Config, seed: int) -> dict[str, Any]:
    parts = counted(build(config, "meta"))
    out: dict[str, Any] = {"name": f"{name}-{seed}", "config": json.dumps(config, sort_keys=True), **parts}
    if ("vision_config" in config and name not in CACHE_TOO) or config["model_type"] in _WITHOUT_CACHE:
        return out
    torch.manual_seed(0)
    vocab = config.get("text_config", config)["vocab_size"]
    return {**out, **cached(build(config, "cpu").eval(), vocab)}


def main(path: Path, seeds: int) -> None:
    rows, failed = [], []
    for seed in range(seeds):
        for name, config in samples(Draw(seed)).items():
            try:
                rows.append(row(name, config, seed))
            except Exception as error:  # a shape that the class refuses: told, and left out
                failed.append(f"{name}-{seed}: {type(error).__name__} {str(error)[:120]}")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} configs in {path}; {len(failed)} left out", *failed, sep="\n  ")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
