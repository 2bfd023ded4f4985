"""Writes what vLLM itself plans for the KV cache of published models, asked on a machine without a GPU.

Needs an environment of its own: pip install vllm==0.33.0. For every config.json the model class of vLLM is built on
the meta device, as it would be on such a GPU at each tensor-parallel size and KV cache dtype; its attention layers are
asked for their cache specs, and vLLM's planner for groups, blocks and concurrency. Nothing is fetched, no weight is
read. CI reads the file and needs no vLLM; docs/how-to/ask-the-engine.md says how a release is asked.

    python scripts/make_vllm_oracle.py tests/data/configs tests/data/vllm_oracle.csv --only llama-3.1-8b gemma-3-27b
    python scripts/make_vllm_oracle.py tests/data/configs new.csv --like tests/data/vllm_oracle.csv
"""

# ruff: noqa: E402  the platform is replaced before vLLM's modules are imported, which ask it what they run on

from __future__ import annotations

import argparse
import csv
import ctypes
import dataclasses
import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

if find_spec("vllm") is None:
    sys.exit("vllm is not installed here: make an environment of its own, and pip install vllm==0.33.0 in it.")

GIB = 2**30
TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)
KV_CACHE_DTYPES = ("auto", "fp8")
SHORT, MEDIUM = 4608, 32768
SHARED_MEMORY = 232_448  # bytes that a block of Hopper may take
NO_SUCH_CACHE = ("No valid attention backend", "KV cache is not supported")  # a refusal of the precision
REFUSED = "refused"  # in the place of a plan
POOL = 40 * GIB  # doubled until one request of the length fits
COLUMNS = (
    "model", "architecture", "specs", "vllm", "gpu", "tensor_parallel_size", "kv_cache_dtype", "max_model_len",
    "layers", "groups", "block_bytes", "blocks_per_request", "bytes_per_request", "pool_bytes", "num_blocks",
    "max_concurrency",
)  # fmt: skip
os.environ |= {
    "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "CRITICAL"), "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error", "CUDA_VISIBLE_DEVICES": "",  # so that Triton imports without a driver
}  # fmt: skip


def load_empty_driver() -> None:
    """vLLM's extensions are linked to the CUDA driver: an empty library of its name lets them load and register."""
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


@dataclasses.dataclass(frozen=True)
class Card:
    """A GPU as vLLM asks for it."""

    name: str
    capability: tuple[int, int]
    gib: float
    processors: int


CARDS = {
    "h100": Card("NVIDIA H100 80GB HBM3", (9, 0), 79.19, 132),
    "a100": Card("NVIDIA A100-SXM4-80GB", (8, 0), 79.25, 108),
    "b200": Card("NVIDIA B200", (10, 0), 178.35, 148),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", type=Path, help="a folder of <id>.json files")
    parser.add_argument("out", type=Path, help="the CSV to write")
    parser.add_argument("--only", nargs="*", default=[], help="ids of models")
    parser.add_argument("--like", type=Path, help="a CSV of this script, whose models are asked")
    parser.add_argument("--gpu", choices=CARDS, default="h100")
    parser.add_argument("--sizes", nargs="*", type=int, default=TENSOR_PARALLEL_SIZES, help="tensor parallel")
    parser.add_argument("--kv-cache-dtypes", nargs="*", default=KV_CACHE_DTYPES, help="in vLLM's words")
    return parser.parse_args()


OPTIONS = options()
load_empty_driver()

import torch
import triton
import vllm.platforms
from triton.backends.compiler import GPUTarget
from vllm.platforms import cuda
from vllm.platforms.interface import DeviceCapability


def pretend(card: Card) -> None:
    """vLLM's CUDA platform as it is on eight GPUs of this kind, with every tensor on the meta device."""

    class Pretended(cuda.CudaPlatformBase):
        device_type = "meta"
        get_device_capability = classmethod(lambda cls, device_id=0: DeviceCapability(*card.capability))
        get_device_name = classmethod(lambda cls, device_id=0: card.name)
        get_device_total_memory = classmethod(lambda cls, device_id=0: int(card.gib * GIB))
        device_count = classmethod(lambda cls: max(TENSOR_PARALLEL_SIZES))
        num_compute_units = classmethod(lambda cls, device_id=0: card.processors)
        current_device = staticmethod(lambda: torch.device("meta"))
        is_fully_connected = classmethod(lambda cls, device_ids: True)
        is_integrated_gpu = classmethod(lambda cls, device_id=0: False)
        is_arch_support_pdl = classmethod(lambda cls: card.capability >= (9, 0))
        log_warnings = classmethod(lambda cls: None)

    vllm.platforms._current_platform = cuda.CudaPlatform = Pretended()


class Absent:
    """A stream or event of a GPU, which no kernel uses here."""

    def __init__(self, *_: Any, **__: Any) -> None: ...


def pretend_torch(card: Card) -> None:
    """What model classes ask torch about the GPU while they are built."""
    memory = int(card.gib * GIB)
    properties = SimpleNamespace(
        name=card.name,
        major=card.capability[0],
        minor=card.capability[1],
        total_memory=memory,
        multi_processor_count=card.processors,
        is_integrated=False,
        shared_memory_per_block_optin=SHARED_MEMORY,
        L2_cache_size=50 * 2**20,
    )
    answers: dict[str, Any] = {
        "Stream": Absent,
        "Event": Absent,
        "current_stream": Absent,
        "default_stream": Absent,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: card.capability,
        "get_device_name": lambda device=None: card.name,
        "current_device": lambda: 0,
        "device_count": lambda: max(TENSOR_PARALLEL_SIZES),
        "mem_get_info": lambda device=None: (memory, memory),
        "synchronize": lambda device=None: None,
        "is_current_stream_capturing": lambda: False,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


def pretend_triton(card: Card) -> None:
    """Triton's driver, as far as modules ask it what they run on while they are imported."""
    target = GPUTarget("cuda", 10 * card.capability[0] + card.capability[1], 32)
    properties = {"multiprocessor_count": card.processors, "max_shared_mem": SHARED_MEMORY, "warpSize": 32}
    active = SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_current_stream=lambda device=None: 0,
        get_device_capability=lambda device=0: card.capability,
        get_device_interface=lambda: torch.cuda,
        utils=SimpleNamespace(get_device_properties=lambda device: properties),
    )
    triton.runtime.driver.set_active(active)


pretend_torch(CARDS[OPTIONS.gpu])
pretend_triton(CARDS[OPTIONS.gpu])
pretend(CARDS[OPTIONS.gpu])  # before vLLM's other modules, which ask what they run on as they are imported

from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.distributed.kv_transfer.kv_connector.utils import get_current_attn_backends
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.model_executor.models import registry
from vllm.usage.usage_lib import UsageContext
from vllm.utils.torch_utils import set_default_torch_dtype
from vllm.v1.attention.backends import flashinfer
from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts, resolve_kv_cache_layout
from vllm.v1.core import kv_cache_planning
from vllm.v1.core.kv_cache_config_builder import get_kv_cache_config_builder
from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec
from vllm.v1.worker.workspace import init_workspace_manager


class Ranks:
    """The first of so many ranks, without processes behind them."""

    def __init__(self, n: int) -> None:
        self.world_size, self.ranks = n, list(range(n))
        self.rank = self.local_rank = self.rank_in_group = 0
        self.is_first_rank = self.is_last_rank = True
        self.device = torch.device("meta")
        self.device_group = self.cpu_group = SimpleNamespace(size=lambda: n, rank=lambda: 0)
        self.device_communicator = self.mq_broadcaster = None
        self.use_custom_op_call = False

    def barrier(self) -> None: ...


def set_ranks(tensor_parallel_size: int) -> None:
    """vLLM's process groups: tensor parallel over so many ranks, no other kind."""
    for name in ("_WORLD", "_TP", "_ETP", "_EP", "_EPLB"):
        setattr(parallel_state, name, Ranks(tensor_parallel_size))
    for name in ("_PP", "_DP", "_ENGRAM_DP", "_DCP", "_PCP"):
        setattr(parallel_state, name, Ranks(1))


def specs_of(folder: Path, tensor_parallel_size: int, kv_cache_dtype: str) -> tuple[VllmConfig, dict[str, Any]]:
    """vLLM's config for a server of the model, and the cache spec of each of its layers, as the worker reports them."""
    set_ranks(tensor_parallel_size)
    arguments = EngineArgs(
        model=str(folder),
        runner="generate",  # where a config names no architecture, vLLM would take it for a pooling model
        skip_tokenizer_init=True,
        load_format="dummy",
        tensor_parallel_size=tensor_parallel_size,
        kv_cache_dtype=kv_cache_dtype,
    )
    config = arguments.create_engine_config(UsageContext.OPENAI_API_SERVER)
    dtype = config.model_config.dtype
    with set_current_vllm_config(config), set_default_torch_dtype(dtype), torch.device("meta"):
        initialize_model(vllm_config=config, model_config=config.model_config)
    vllm.platforms.current_platform.update_block_size_for_backend(config)
    register_all_kvcache_specs(config)
    with set_current_vllm_config(config):
        specs = get_kv_cache_spec(config)
        layouts = [layout.name for layout in get_supported_kv_cache_layouts(get_current_attn_backends(config))]
    layout = resolve_kv_cache_layout(config, [layouts], list(specs.values()))
    config.cache_config.kv_cache_layout = layout.name
    return config, specs


def short_name(spec: Any) -> str:
    """The kind of a spec with its tokens a block, bytes a page and window: SlidingWindow/16/32768/w1024."""
    window = getattr(spec, "sliding_window", None) or getattr(spec, "attention_chunk_size", None)
    tail = f"/w{window}" if window else ""
    return f"{type(spec).__name__.removesuffix('Spec')}/{spec.block_size}/{spec.page_size_bytes}{tail}"


def counted(names: list[str]) -> str:
    return " + ".join(f"{n} x {name}" for name, n in Counter(names).items())


def plans(folder: Path, tensor_parallel_size: int, kv_cache_dtype: str) -> Iterator[dict[str, Any]]:
    """What vLLM plans at each length."""
    config, specs = specs_of(folder, tensor_parallel_size, kv_cache_dtype)
    longest = config.model_config.max_model_len
    builder = get_kv_cache_config_builder(config)
    for length in sorted({min(SHORT, longest), min(MEDIUM, longest), longest}):
        config.model_config.max_model_len = config.model_config.original_max_model_len = length
        groups = kv_cache_planning.get_global_kv_cache_groups(config, [dict(specs)])
        layers = {name for group in groups for name in group.layer_names}
        needed = kv_cache_planning._max_memory_usage_bytes_from_groups(builder, config, groups)
        block = kv_cache_planning._pool_bytes_per_block_from_builder(builder, config, groups)
        pool = POOL
        while pool < needed + block:
            pool *= 2
        [planned] = kv_cache_planning.get_kv_cache_configs(
            config, [{name: spec for name, spec in specs.items() if name in layers}], [pool], groups
        )
        yield {
            "architecture": config.model_config.architecture,
            "specs": "model class",
            "tensor_parallel_size": tensor_parallel_size,
            "kv_cache_dtype": kv_cache_dtype,
            "max_model_len": length,
            "layers": counted([short_name(spec) for spec in specs.values()]),
            "groups": len(groups),
            "block_bytes": block,
            "blocks_per_request": needed // block,
            "bytes_per_request": needed,
            "pool_bytes": pool,
            "num_blocks": planned.num_blocks,
            "max_concurrency": get_max_concurrency_for_kv_cache_config(config, planned),
        }


def stated(path: Path) -> str:
    """A config.json, with keys that vLLM's class reads and the file does not state; none bears on the cache."""
    config = json.loads(path.read_text())
    text = config.get("text_config", config)
    if text.get("model_type", "").startswith("lfm2"):
        text.setdefault("conv_dim", text["hidden_size"])
    if text.get("model_type", "").startswith("qwen4"):
        text.setdefault("output_gate_type", "silu")
    if text.get("model_type", "").startswith("glm5_next"):
        text.setdefault("mhc", True)
    return json.dumps(config)


def ask(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of one model, and what vLLM refused."""
    rows, refused = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(stated(path))
        for size in OPTIONS.sizes:
            for dtype in OPTIONS.kv_cache_dtypes:
                try:
                    rows += plans(folder, size, dtype)
                except Exception as error:
                    if any(words in str(error) for words in NO_SUCH_CACHE):
                        rows.append({"specs": REFUSED, "tensor_parallel_size": size, "kv_cache_dtype": dtype})
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    refused.append(
                        f"TP {size}: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: "
                        + " ".join(str(error).split())[:300]
                    )
    gc.collect()
    return rows, refused


def models_of(plans: Path) -> list[str]:
    with plans.open(newline="") as file:
        return list(dict.fromkeys(row["model"] for row in csv.DictReader(file)))


def every_config() -> list[str]:
    return sorted(path.stem for path in OPTIONS.configs.glob("*.json"))


def inspect_here(function: Any) -> Any:
    """Instead of vLLM's subprocess for each model class, which would import it all anew."""
    return function()


def main() -> None:
    registry._run_in_subprocess = inspect_here
    flashinfer._get_multi_ctas_kv_counter_buffer = lambda *_: torch.empty(0)  # on the GPU, of no KV cache
    init_workspace_manager(torch.device("meta"))
    failed = []
    with OPTIONS.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        names = OPTIONS.only or (models_of(OPTIONS.like) if OPTIONS.like else every_config())
        for path in (OPTIONS.configs / f"{name}.json" for name in names):
            rows, refused = ask(path)
            for row in rows:
                writer.writerow({"model": path.stem, "vllm": vllm.__version__, "gpu": OPTIONS.gpu, **row})
            file.flush()
            failed += [f"{path.stem} {text}" for text in refused]
            print(path.stem, len(rows), *Counter(refused), sep="\n  ", flush=True)
    print(f"{len(failed)} refused")


if __name__ == "__main__":
    main()
