"""Writes what SGLang itself keeps for a token and for a request of published models, asked on a machine without a GPU.

Needs vLLM's environment of scripts/make_vllm_oracle.py, for torch and what both engines import, and SGLang beside it:
pip install --no-deps --target sglang-0.5.23 sglang==0.5.23. For every config.json SGLang's own model config is built,
and its pool configurator, as a server at each tensor-parallel size and KV cache dtype makes them, is asked for the
bytes of a token in the layers of each pool, and the model's config for those of a request's states. Nothing is fetched,
no weight is read. CI reads the file and needs no SGLang; docs/how-to/ask-the-engine.md says how a release is asked.

    python scripts/make_sglang_oracle.py sglang-0.5.23 tests/data/configs new.csv --only llama-3.1-8b gemma-3-27b
    python scripts/make_sglang_oracle.py sglang-0.5.23 tests/data/configs new.csv --like tests/data/sglang_oracle.csv
"""

# ruff: noqa: E402  modules that are not installed are replaced before SGLang's are imported

from __future__ import annotations

import argparse
import csv
import ctypes
import importlib
import importlib.machinery
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)
KV_CACHE_DTYPES = ("auto", "fp8")
PAGE = 64
COLUMNS = (
    "model", "architecture", "sglang", "tensor_parallel_size", "kv_cache_dtype", "configurator", "token_bytes",
    "window_token_bytes", "state_bytes",
)  # fmt: skip
NOT_INSTALLED = ("IPython", "IPython.display", "gguf")  # imported by modules that are not asked
CONTEXTS = ("get_memory", "get_exec", "get_disagg", "get_spec")
os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sglang", type=Path, help="the folder that SGLang was installed to")
    parser.add_argument("configs", type=Path, help="a folder of <id>.json files")
    parser.add_argument("out", type=Path, help="the CSV to write")
    parser.add_argument("--only", nargs="*", default=[], help="ids of models")
    parser.add_argument("--like", type=Path, help="a CSV with a column `model`, whose models are asked")
    return parser.parse_args()


def load_empty_driver() -> None:
    """Kernels are linked to the CUDA driver: an empty library of its name lets them load."""
    sys.setdlopenflags(os.RTLD_LAZY)
    try:
        ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    except OSError:
        folder = Path(tempfile.mkdtemp())
        (folder / "empty.c").write_text("int no_driver;\n")
        library = folder / "libcuda.so.1"
        command = ["cc", "-shared", "-Wl,-soname,libcuda.so.1", "-o", str(library), str(folder / "empty.c")]
        subprocess.run(command, check=True)
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def replace_missing() -> None:
    for name in NOT_INSTALLED:
        module = MagicMock(name=name)
        module.__path__, module.__spec__ = [], importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module


OPTIONS = options()
load_empty_driver()
replace_missing()
sys.path.insert(0, str(OPTIONS.sglang))

import sglang.srt.mem_cache.kv_cache_configurator as kv_cache_configurator
import torch
from sglang.srt.configs.hybrid_arch import mambaish_config
from sglang.srt.configs.model_config import AttentionArch, ModelConfig
from sglang.srt.model_executor import pool_configurator
from sglang.version import __version__


class Off:
    """Settings of a plain server on Hopper; those that are not named here are off."""

    kernel = SimpleNamespace(
        dsa_prefill_backend="flashmla_sparse", dsa_decode_backend="flashmla_kv", dsv4_attn_backend=None
    )
    swa_full_tokens_ratio = 0.8
    max_total_tokens = None
    mamba_full_memory_ratio = 0.9

    def __getattr__(self, name: str) -> Any:
        return None if name.startswith(("max_", "requested_")) else False


class Ranks(Off):
    """The ranks of a server: n tensor-parallel ranks, and one of every other kind."""

    def __init__(self, n: int) -> None:
        self.tp_size = self.attn_tp_size = n

    def __getattr__(self, name: str) -> Any:
        return 1 if name.endswith("_size") else 0 if name.endswith("_rank") else False


def set_contexts(ranks: int) -> None:
    """Replace the functions by which SGLang's modules ask the running server."""
    answers = dict.fromkeys((*CONTEXTS, "get_schedule"), Off()) | {"get_parallel": Ranks(ranks)}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("sglang"):
            for name in answers.keys() & vars(module).keys():
                setattr(module, name, lambda answer=answers[name]: answer)


def server_of(config: Any, ranks: int, dtype: str) -> Any:
    """The configurator's view of a server without drafts, pipeline stages and hierarchical caches."""
    mambaish = mambaish_config(config)
    kept = {name: getattr(config, name, None) or [] for name in ("full_attention_layer_ids", "swa_attention_layer_ids")}
    layers = max(config.num_hidden_layers, config.num_attention_layers)
    layer_info = SimpleNamespace(start_layer=0, end_layer=layers, num_effective_layers=layers, **kept)
    without_draft = dict.fromkeys(("is_eagle", "is_standalone", "is_dflash_family", "is_none"), lambda: False)
    return SimpleNamespace(
        model_config=config,
        kv_cache_dtype=torch.float8_e4m3fn if dtype == "fp8" else torch.bfloat16,
        kv_cache_dtype_str=dtype,
        use_mla_backend=config.attention_arch == AttentionArch.MLA,
        is_hybrid_swa=bool(getattr(config, "is_hybrid_swa", False)),
        sliding_window_size=getattr(config, "sliding_window_size", None)
        or getattr(config, "attention_chunk_size", None),
        server_args=Off(),
        layer_info=layer_info,
        mambaish_config=mambaish,
        is_draft_worker=False,
        spec_algorithm=SimpleNamespace(**without_draft),
        spec_aux_config=None,
        page_size=PAGE,
        pp_size=1,
        tp_size=ranks,
        model_dtype=torch.bfloat16,
        device="cpu",
        fused_entry_bytes=lambda side: None,
    )


@cache
def classes() -> str:
    """The text of all model classes, which are not imported."""
    return "".join(path.read_text() for path in (OPTIONS.sglang / "sglang" / "srt" / "models").glob("*.py"))


def cache_sizes(folder: Path, ranks: int, dtype: str) -> dict[str, Any]:
    """A row of the CSV: the bytes that one rank keeps of a token, in the pool of all tokens and in that of windows,
    and of the states of a request."""
    config = ModelConfig(str(folder), trust_remote_code=False)
    architecture = config.hf_config.architectures[0]
    if f"class {architecture}(" not in classes():
        raise ValueError(f"no model class {architecture}")
    set_contexts(ranks)
    server = server_of(config, ranks, dtype)
    states = 0
    if server.mambaish_config:
        states = server.mambaish_config.mamba2_cache_params.mamba_cache_per_req
    if pool_configurator.is_deepseek_v4(config.hf_config):
        raise ValueError("six pools of DeepSeek V4, which are not asked for")
    if server.is_hybrid_swa:
        asked = pool_configurator.HybridSWAPoolConfigurator(server)
        token, window = asked._full_cell_bytes(), asked._swa_cell_bytes()
    else:
        asked = pool_configurator.DefaultPoolConfigurator(server)
        token, window = asked._cell_size, 0
    return {
        "architecture": architecture,
        "sglang": __version__,
        "tensor_parallel_size": ranks,
        "kv_cache_dtype": dtype,
        "configurator": type(asked).__name__,
        "token_bytes": int(token),
        "window_token_bytes": int(window),
        "state_bytes": int(states),
    }


def ask(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of one model, and the reasons for which SGLang refused others."""
    rows, refused = [], []
    with tempfile.TemporaryDirectory() as name:
        stated = json.loads(path.read_text())
        # That of weights: some are refused without a GPU, and none matters to the cache.
        stated.pop("quantization_config", None)
        Path(name, "config.json").write_text(json.dumps(stated))
        for size in TENSOR_PARALLEL_SIZES:
            for dtype in KV_CACHE_DTYPES:
                try:
                    rows.append(cache_sizes(Path(name), size, dtype))
                except Exception as error:
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    words = " ".join(str(error).split())[:200]
                    where = f"{Path(place.filename).name}:{place.lineno}"
                    refused.append(f"TP {size}: {type(error).__name__} at {where}: {words}")
    return rows, refused


def names() -> Iterator[str]:
    if OPTIONS.like:
        with OPTIONS.like.open(newline="") as file:
            yield from dict.fromkeys(row["model"] for row in csv.DictReader(file))
    else:
        yield from OPTIONS.only or sorted(path.stem for path in OPTIONS.configs.glob("*.json"))


def main() -> None:
    assert kv_cache_configurator  # its functions are among those that ask the server
    n_refused = 0
    with OPTIONS.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for path in (OPTIONS.configs / f"{name}.json" for name in names()):
            rows, refused = ask(path)
            for row in rows:
                writer.writerow({"model": path.stem, **row})
            file.flush()
            n_refused += len(refused)
            print(path.stem, len(rows), *Counter(refused), sep="\n  ", flush=True)
    print(f"{n_refused} refused")


if __name__ == "__main__":
    main()
