"""scripts/engine_rules.py on a small wheel of our own: what differs from the catalog is named, with file and line."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "engine_rules.py"
CACHE = (
    'class CacheConfig:\n    """Of the cache."""\n    gpu_memory_utilization: float = Field(default={share}, gt=0)\n'
)
ENVS = 'd = {{"X": lambda: bool(int(os.getenv("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "{on}")))}}\n'
RUNNER = "class GPUModelRunner:\n    def profile_cudagraph_memory(self):\n        return {graphs}\n"
PLANNING = "def groups():\n    if max_num_layers < min_num_layers * {stretch}:\n        pass\n"


def ran(tmp_path: Path, *options: str, packed: bool = False, **values: object) -> list[str]:
    """The script's output for a wheel with these values; those of the catalog's 0.33 where not given."""
    constants = {"share": 0.92, "on": 1, "graphs": "_estimate(self)", "stretch": 1.5} | values
    name = "vllm-0.99.0-cp38-abi3-any.whl" if packed else "vllm-0.99.0"
    files = {
        "config/cache.py": CACHE,
        "envs.py": ENVS,
        "v1/worker/gpu/model_runner.py": RUNNER,
        "v1/core/kv_cache_planning.py": PLANNING,
    }
    texts = {f"vllm/{file}": text.format(**constants) for file, text in files.items()}
    if packed:
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            for file, text in texts.items():
                wheel.writestr(file, text)
    else:
        for file, text in texts.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), str(tmp_path / name), "--known", "0.33.0", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and not result.stderr  # other files of the wheel are missing, and said to be
    return result.stdout.splitlines()


@pytest.mark.parametrize("packed", [False, True])
def test_what_agrees_is_not_named(tmp_path: Path, packed: bool) -> None:
    lines = ran(tmp_path, packed=packed)
    assert not [line for line in lines if "; the catalog has" in line and "not found" not in line]
    assert [line for line in ran(tmp_path, "--all", packed=packed) if "gpu_memory_utilization: 0.92; the" in line]


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"share": 0.95}, "config/cache.py:3  gpu_memory_utilization: 0.95; the catalog has 0.92"),
        ({"on": 0}, "envs.py:1  graphs_in_budget: False; the catalog has True"),
        ({"graphs": 0}, "v1/worker/gpu/model_runner.py:2  second_runner_graphs_in_budget: False; the catalog has True"),
        ({"stretch": 1.75}, "v1/core/kv_cache_planning.py:2  group_stretch: 1.75; the catalog has 1.5"),
    ],
)
def test_what_differs_is_named_with_file_and_line(tmp_path: Path, changed: dict[str, object], place: str) -> None:
    assert f"* vllm/{place}" in ran(tmp_path, **changed)


def test_a_rule_that_changed_or_went_is_named(tmp_path: Path) -> None:
    lines = ran(tmp_path)
    assert "* vllm/config/cache.py:1  CacheConfig: changed: read it" in lines
    assert "* vllm/v1/core/kv_cache_utils.py:0  get_kv_cache_capacity: gone" in lines


def test_what_is_no_wheel_is_told_in_a_line(tmp_path: Path) -> None:
    for name, why in (("none.whl", "no such wheel or folder"), (".", "says no engine and version")):
        command = [sys.executable, str(SCRIPT), str(tmp_path / name)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 1 and why in result.stderr and "Traceback" not in result.stderr
