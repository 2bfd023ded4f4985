"""What differs between an engine's wheel and the rules in catalogs/engines: constants, and functions that are rules.

python scripts/engine_rules.py WHEEL [--known VERSION] [--all] [--record]

WHEEL: a .whl, a folder into which one was unpacked, or name==version, which pip downloads. Its code is read, never run.
Prints, with file and line, each constant that is not what the catalog has for VERSION (default: the newest release that
was recorded), and each rule whose code is not what was recorded for it: comments and docstrings do not count.
--all: what agrees, too. --record: writes the rules of this wheel to scripts/engine_rules.csv, once they are in the
catalog. Exits 1 where anything differs.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import Engine, load_engine, release_of

RECORDED = Path(__file__).with_suffix(".csv")
COLUMNS = ("engine", "version", "file", "rule", "digest")
NAME = re.compile(r"([a-z_]+)-(\d[\w.]*?)(?:-|$)")
Found = tuple[Any, int]  # a value and the line where it stands


@dataclass(frozen=True)
class Constant:
    """A constant of the catalog: where a wheel has it (the first of `files` that does), and how it is read there."""

    field: str
    files: tuple[str, ...]
    read: Callable[[ast.Module], Found | None]


def group_stretch(tree: ast.Module) -> Found | None:
    """By how much layer counts may differ that share groups: max_num_layers < min_num_layers * value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and ast.unparse(node).startswith("max_num_layers < min_num_layers * "):
            return ast.literal_eval(node.comparators[0].right), node.lineno  # type: ignore[attr-defined]
    return None


def default_of(name: str) -> Callable[[ast.Module], Found | None]:
    """The default of a field of a class: `name: type = Field(default=value)` or `= value`."""

    def read(tree: ast.Module) -> Found | None:
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                value = node.value
                if isinstance(value, ast.Call):
                    value = next((k.value for k in value.keywords if k.arg == "default"), None)
                if isinstance(value, ast.Constant):
                    return value.value, node.lineno
        return None

    return read


def switch_of(name: str) -> Callable[[ast.Module], Found | None]:
    """Whether an environment variable is on by default: os.getenv(name, "1")."""

    def read(tree: ast.Module) -> Found | None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and [getattr(a, "value", None) for a in node.args[:1]] == [name]:
                return getattr(node.args[1], "value", "0") != "0", node.lineno
        return None

    return read


def function(tree: ast.Module, rule: str) -> ast.AST | None:
    """A function or class by its name, or `Class.method`."""
    node: ast.AST | None = tree
    for part in rule.split("."):
        inside = ast.walk(node) if node is tree else ast.iter_child_nodes(node)  # type: ignore[arg-type]
        named = (n for n in inside if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))
        node = next((n for n in named if n.name == part), None)
        if node is None:
            return None
    return node


def second_runner(tree: ast.Module) -> Found | None:
    """Which models Model Runner V2 serves by default, by the way in which the engine asks."""
    chosen = function(tree, "use_v2_model_runner")
    if chosen is None:
        return "none", 1
    asks = "_is_default_v2_model_runner_model"
    if asks not in ast.unparse(chosen):
        return "all", chosen.lineno  # type: ignore[attr-defined]
    by_kind = function(tree, asks)
    text = ast.unparse(by_kind) if by_kind else ""
    dense = "not model_config.is_moe" in text and "is_quantized" not in text
    return "dense" if dense else "none", chosen.lineno  # type: ignore[attr-defined]


def second_runner_graphs(tree: ast.Module) -> Found | None:
    """Whether the second runner reserves CUDA graphs: its estimate is no plain 0."""
    node = function(tree, "profile_cudagraph_memory")
    if node is None:
        return None
    given = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
    return any(not isinstance(v, ast.Constant) or v.value for v in given), node.lineno  # type: ignore[attr-defined]


def batch_defaults(tree: ast.Module) -> Found | None:
    """The tiers of the API server's limits: (least GiB, tokens, requests, whether A100 and GB10 are excepted)."""
    node = function(tree, "get_batch_defaults")
    if node is None:
        return None
    tiers = []
    branch = next((n for n in ast.walk(node) if isinstance(n, ast.If) and "GiB_bytes" in ast.unparse(n.test)), None)
    while branch is not None:
        test = ast.unparse(branch.test)
        least = int(re.search(r">= (\d+) \* GiB_bytes", test)[1])  # type: ignore[index]
        tiers.append((least, *_limits(branch.body), "a100" in test, "gb10" in test))
        last = branch.orelse
        branch = last[0] if len(last) == 1 and isinstance(last[0], ast.If) else None
    return (*tiers, (0, *_limits(last), False, False)), node.lineno  # type: ignore[attr-defined]


def _limits(body: list[ast.stmt]) -> tuple[int, int]:
    found = {}
    for one in body:
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Dict):
            pairs = zip(one.value.keys, one.value.values, strict=True)
            served = [v for k, v in pairs if k is not None and ast.unparse(k).endswith("OPENAI_API_SERVER")]
            found[ast.unparse(one.targets[0])] = ast.literal_eval(served[0])
    return found["default_max_num_batched_tokens"], found["default_max_num_seqs"]


def of_catalog(engine: Engine, field: str) -> Any:
    """What the catalog has for a constant, as its reader gives it."""
    if field != "batch_defaults":
        return getattr(engine, field)
    excepted = ("Ampere", "Grace Blackwell GB10")
    return tuple(
        (
            round(t.min_memory_gib),
            t.max_num_batched_tokens,
            t.max_num_seqs,
            *(e in t.not_architectures for e in excepted),
        )
        for t in engine.batch_defaults
    )


CONSTANTS = {
    "vllm": (
        Constant("group_stretch", ("v1/core/kv_cache_planning.py", "v1/core/kv_cache_utils.py"), group_stretch),
        Constant("gpu_memory_utilization", ("config/cache.py",), default_of("gpu_memory_utilization")),
        Constant("graphs_in_budget", ("envs.py",), switch_of("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")),
        Constant("batch_defaults", ("engine/arg_utils.py",), batch_defaults),
        Constant("second_runner", ("config/vllm.py",), second_runner),
        Constant("second_runner_graphs_in_budget", ("v1/worker/gpu/model_runner.py",), second_runner_graphs),
    ),
    "lmdeploy": (
        Constant("gpu_memory_utilization", ("messages.py",), default_of("cache_max_entry_count")),
        Constant("block_size", ("messages.py",), default_of("cache_block_seq_len")),
    ),
    "sglang": (),
}
RULES = {  # by engine: a file, and the functions and classes in it that decide what memory is for
    "vllm": {
        "config/vllm.py": ("max_concurrent_batches", "max_in_flight_tokens", "use_v2_model_runner",
                           "_get_v2_model_runner_unsupported_features"),
        "config/cache.py": ("CacheDType", "CacheConfig"),
        "utils/mem_utils.py": ("memory_profiling", "MemorySnapshot"),
        "utils/torch_utils.py": ("get_kv_cache_quant_algo_string", "resolve_kv_cache_dtype_string"),
        "engine/arg_utils.py": ("get_batch_defaults", "_set_default_max_num_seqs_and_batched_tokens_args"),
        "v1/kv_cache_interface.py": (
            "AttentionSpec", "FullAttentionSpec.max_memory_usage_bytes", "MLAAttentionSpec", "SlidingWindowSpec",
            "ChunkedLocalAttentionSpec", "MambaSpec", "KVQuantMode"),
        "v1/core/kv_cache_utils.py": (
            "get_kv_cache_groups", "_get_kv_cache_groups_uniform_page_size", "get_kv_cache_capacity",
            "check_enough_kv_cache_memory", "get_max_concurrency_for_kv_cache_config"),
        "v1/core/kv_cache_planning.py": (  # from 0.33 on
            "get_kv_cache_groups", "_get_kv_cache_groups_uniform_page_size", "_get_packed_kv_cache_groups"),
        "v1/core/single_type_kv_cache_manager.py": (
            "SlidingWindowManager.get_num_skipped_tokens", "SlidingWindowManager.remove_skipped_blocks",
            "MambaManager.allocate_new_blocks", "MambaManager.get_num_blocks_to_allocate"),
        "v1/worker/gpu_worker.py": ("Worker.determine_available_memory",),
        "v1/worker/gpu_model_runner.py": ("GPUModelRunner.profile_run", "GPUModelRunner._dummy_sampler_run",
                                          "GPUModelRunner.profile_cudagraph_memory"),
        "v1/worker/gpu/model_runner.py": ("GPUModelRunner.profile_run", "GPUModelRunner._dummy_sampler_run",
                                          "GPUModelRunner.profile_cudagraph_memory"),
        "v1/worker/gpu/sample/sampler.py": ("Sampler.apply_sampling_params", "Sampler.sample"),
        "v1/worker/gpu/sample/penalties.py": ("PenaltiesState.__init__",),
        "multimodal/gpu_ipc_memory.py": ("reserve_mm_ipc_gpu_memory",),
        "model_executor/models/config.py": ("MambaModelConfig", "HybridAttentionMambaModelConfig",
                                            "GlmMoeDsaForCausalLM", "Glm5NextModelConfig"),
        "platforms/interface.py": ("Platform._align_hybrid_block_size",),
    },
    "sglang": {
        "srt/arg_groups/memory_hook.py": (  # in server_args.py up to 0.5.9
            "handle_gpu_memory_settings", "reserve_for_graph_mb", "adjust_mem_fraction_for_vlm"),
        "srt/arg_groups/cuda_graph_hook.py": ("generate_prefill_cuda_graph_batch_sizes",),
        "srt/arg_groups/overrides.py": ("post_capture_kv_sizing_planned",),
        "srt/mem_cache/kv_cache_configurator.py": (
            "KVCacheConfigurator._profile_available_bytes", "KVCacheConfigurator.resolve_max_num_reqs"),
        "srt/model_executor/pool_configurator.py": ("DefaultPoolConfigurator", "HybridSWAPoolConfigurator"),
    },
    "lmdeploy": {
        "messages.py": ("TurbomindEngineConfig",),
        "utils.py": ("get_max_batch_size",),
    },
}  # fmt: skip


class Wheel:
    """The Python files of an engine's wheel, by their path inside the engine's package."""

    def __init__(self, path: Path) -> None:
        match = NAME.match(path.name)
        if match is None:
            sys.exit(f"{path}: the name says no engine and version, such as vllm-0.33.0.")
        self.engine, self.version = match[1], match[2]
        self.zip = zipfile.ZipFile(path) if path.is_file() else None
        self.path = path

    def tree(self, file: str) -> ast.Module | None:
        """A file, parsed; None where the wheel has none of that name."""
        name = f"{self.engine}/{file}"
        try:
            text = self.zip.read(name) if self.zip else (self.path / name).read_bytes()
        except (KeyError, FileNotFoundError):
            return None
        return ast.parse(text)


def opened(what: str, folder: str) -> Wheel:
    """A wheel or folder, or one that pip downloads into `folder`."""
    if "==" in what:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            "-d",
            folder,
            what,
        ]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"{what}: pip found no wheel. Give the path of one.")
        return Wheel(next(Path(folder).glob("*.whl")))
    if not Path(what).exists():
        sys.exit(f"{what}: no such wheel or folder. Write one, or name==version.")
    return Wheel(Path(what))


def digest(node: ast.AST) -> str:
    """Of what a rule does: its code without comments, docstrings and layout."""
    bare = ast.parse(ast.unparse(node))
    for one in ast.walk(bare):
        body = getattr(one, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0] = ast.Pass()
    return hashlib.sha256(ast.dump(bare).encode()).hexdigest()[:16]


def rules_of(wheel: Wheel) -> Iterator[tuple[str, str, str, int]]:
    """File, name, digest and line of each rule; a digest of "" where the wheel has no such rule."""
    for file, names in RULES[wheel.engine].items():
        tree = wheel.tree(file)
        for name in names:
            node = tree and (function(tree, name) or _assigned(tree, name))
            yield file, name, digest(node) if node else "", getattr(node, "lineno", 0) if node else 0


def _assigned(tree: ast.Module, name: str) -> ast.AST | None:
    """A constant by its name."""
    return next((n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == name), None)


def recorded() -> list[dict[str, str]]:
    with RECORDED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("--known", metavar="VERSION")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = opened(given.wheel, folder)
        if wheel.engine not in RULES:
            parser.error(f"{wheel.engine}: what to read is known for {', '.join(RULES)}.")
        return report(wheel, given.known, show_all=given.all, record=given.record)


def report(wheel: Wheel, known: str | None, *, show_all: bool, record: bool) -> int:
    rows = recorded()
    versions = {row["version"] for row in rows if row["engine"] == wheel.engine}
    newest = max(versions, key=lambda v: release_of(v) or (), default=None)
    known = known or newest or wheel.version
    engine = load_engine(Catalog(), wheel.engine, known)
    print(f"{wheel.engine} {wheel.version}, beside catalogs/engines/{wheel.engine}.yaml at {known}")
    n_off = 0

    def say(same: bool, file: str, line: int, text: str) -> None:
        nonlocal n_off
        n_off += not same
        if show_all or not same:
            print(f"{' ' if same else '*'} {wheel.engine}/{file}:{line}  {text}")

    for one in CONSTANTS[wheel.engine]:
        trees = ((file, wheel.tree(file)) for file in one.files)
        read = ((file, one.read(tree)) for file, tree in trees if tree)
        file, found = next(((file, found) for file, found in read if found), (one.files[0], None))
        has = of_catalog(engine, one.field)
        if found is None:
            say(False, file, 0, f"{one.field}: not found; the catalog has {has}")
        else:
            say(found[0] == has, file, found[1], f"{one.field}: {found[0]}; the catalog has {has}")
    before = {(r["file"], r["rule"]): r["digest"] for r in rows if (r["engine"], r["version"]) == (wheel.engine, known)}
    own = list(rules_of(wheel))
    for file, name, now, line in own:
        then = before.get((file, name))
        if then is None:
            say(False, file, line, f"{name}: not recorded for {known}")
        else:
            how = "the same" if now == then else "gone" if not now else "new" if not then else "changed: read it"
            say(now == then, file, line, f"{name}: {how}")
    if record:
        kept = [r for r in rows if (r["engine"], r["version"]) != (wheel.engine, wheel.version)]
        own_rows = [dict(zip(COLUMNS, (wheel.engine, wheel.version, *rule[:3]), strict=True)) for rule in own]
        with RECORDED.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept + own_rows)
    print(f"{n_off} of {len(own) + len(CONSTANTS[wheel.engine])} differ.")
    return int(n_off > 0)


if __name__ == "__main__":
    sys.exit(main())
