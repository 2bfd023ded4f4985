"""GPUs by the names that tools print for them, and MIG slices as GPUs of their own."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import pytest

import sheetgen
from sheetgen.catalog import Catalog, gpu_names
from sheetgen.errors import CatalogError, ScenarioError, UnknownNameError

with (Path(__file__).parents[1] / "data" / "gpu_names.csv").open(encoding="utf-8") as file:
    PRINTED = list(csv.DictReader(file))


def skip_if_entered(catalog: Catalog, name: str) -> None:
    """A refused name may be entered some day, and is then a row of data/gpu_names.csv with its id."""
    if gpu_names.words(name).core in gpu_names.by_core(catalog.gpus()):
        pytest.skip(f"{name} has been entered")


def test_names_are_of_five_tools() -> None:
    assert len({row["tool"] for row in PRINTED}) == 5 and len(PRINTED) > 40
    assert all(row["source"] and bool(row["gpu"]) != bool(row["refused"]) for row in PRINTED)


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: row["printed"])
def test_as_printed(catalog: Catalog, row: dict[str, str]) -> None:
    if row["gpu"]:
        assert catalog.gpu(row["printed"]).id == row["gpu"]
        return
    skip_if_entered(catalog, row["printed"])
    with pytest.raises(CatalogError) as caught:
        catalog.gpu(row["printed"])
    assert row["refused"] in str(caught.value) and len(caught.value.problems) == 1
    assert len(str(caught.value)) < 500


def test_every_way_of_writing_a_device_name_means_its_gpu(catalog: Catalog) -> None:
    draw = random.Random(35)
    for gpu in catalog.gpus():
        for device in (name for whole in (gpu, *gpu.slices) for name in whole.device_names):
            meant = catalog.gpu(device).id
            assert meant.startswith(gpu.id), device
            for _ in range(4):
                written = draw.choice((str.upper, str.lower, str))(
                    re.sub(r"[ -]", lambda _: draw.choice(" -_"), device)
                )
                around = draw.choice(
                    ("{}", "GPU 3: {} (UUID: GPU-0a1b)", "nvidia.com/gpu.product={}", "device_name={}.json")
                )
                assert catalog.gpu(around.format(written)).id == meant, (device, around.format(written))


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("A100 40GB", "nvidia-a100-sxm4-40gb"),
        ("NVIDIA A100 Tensor Core GPU 80GB PCIe", "nvidia-a100-pcie-80gb"),
        ("H100 SXM5 80GB", "nvidia-h100-sxm5-80gb"),
        ("RTX4090", "nvidia-rtx-4090-24gb"),
        ("RTX 4090 48GB", "nvidia-rtx-4090-48gb"),
        ("H20 141GB", "nvidia-h20-141gb"),
        ("V100 16GB", "nvidia-v100-sxm2-16gb"),
        ("MI325X 256GB", "amd-mi325x-256gb"),
    ],
)
def test_words_memory_and_form_in_any_order(catalog: Catalog, name: str, gpu: str) -> None:
    assert catalog.gpu(name).id == gpu
    words = name.split()
    random.Random(name).shuffle(words)
    assert catalog.gpu(" ".join(words)).id == gpu


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("h1000", ["Did you mean h100?"]),
        ("RTX PRO 5999", ["rtx-pro-6000"]),
        ("mig-1g.10gb", ["nvidia-a100-sxm4-80gb-mig-1g.10gb", "nvidia-h100-sxm5-80gb-mig-1g.10gb"]),
        ("H100 MIG 1g.11gb", ["nvidia-h100-sxm5-80gb has no MIG profile 1g.11gb. It has 1g.10gb, 1g.20gb"]),
        ("H100 PCIe MIG 1g.10gb", ["nvidia-h100-pcie-80gb has no MIG profile", "No profile of it is entered."]),
    ],
)
def test_refused_with_what_is_near(catalog: Catalog, name: str, words: list[str]) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.gpu(name)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("name", ["NVIDIA L20", "RTX 3070", "B100", "NVIDIA A2", "zzz"])
def test_letters_alone_are_no_hint(catalog: Catalog, name: str) -> None:
    skip_if_entered(catalog, name)
    with pytest.raises(UnknownNameError) as caught:
        catalog.gpu(name)
    assert caught.value.near == ""


SMS = [
    ("a100", "7g.80gb", 98, 108),
    ("h100", "1g.10gb", 16, 132),
    ("h200", "3g.71gb", 60, 132),
    ("b200", "1g.23gb", 18, 148),
]


@pytest.mark.parametrize(("gpu", "profile", "n_sms", "n_slices"), SMS)
def test_slices_have_the_sms_that_nvidia_smi_lists(
    catalog: Catalog, gpu: str, profile: str, n_sms: int, n_slices: int
) -> None:
    whole, part = catalog.gpu(gpu), catalog.gpu(f"{gpu}-mig-{profile}")
    assert whole.peak_dense_flops.bf16 and part.peak_dense_flops.bf16
    assert part.peak_dense_flops.bf16 == pytest.approx(whole.peak_dense_flops.bf16 * n_sms / n_slices)


def test_slices_are_shares_of_their_gpu(catalog: Catalog) -> None:
    """Supported profiles of NVIDIA's MIG user guide: memory and bandwidth by eighths, SMs by about sevenths."""
    sliced = [gpu for gpu in catalog.gpus() if gpu.mig]
    assert {gpu.architecture.split()[0] for gpu in sliced} == {"Ampere", "Hopper", "Blackwell"}
    for whole in sliced:
        assert whole.mig and {profile[0] for profile in whole.mig.slices} == set("12347")
        for profile, slice_ in whole.mig.slices.items():
            part, sevenths = whole.slice(profile), int(profile[0])
            share = part.memory.engine_bytes / whole.memory.engine_bytes
            assert share == pytest.approx(slice_.memory_eighths / 8, rel=0.09), profile  # 1g.18gb: 16 of 17.5 GiB
            assert (
                part.memory_bandwidth_bytes_per_second
                == whole.memory_bandwidth_bytes_per_second * slice_.memory_eighths // 8
            )
            # Of 132 SMs 112 are in the sevenths; what is left goes to the slices of three and more.
            assert 0.8 * sevenths / 7 < slice_.n_sms / whole.mig.n_sms < 1.1 * sevenths / 7 + 0.1
            assert catalog.gpu(part.id) == part and part.is_slice and part.entry_id == whole.id


def test_a_slice_is_sized_as_a_gpu_of_its_own_and_never_joined() -> None:
    answer = sheetgen.size(model="8b", gpu="NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", context_tokens=8192)
    assert answer["gpu_memory_bytes"] == 39.25 * 2**30  # nvidia-smi mig -lgip
    for split in ("tensor_parallel_size", "pipeline_parallel_size"):
        with pytest.raises(ScenarioError, match="reaches no other GPU"):
            sheetgen.size(model="8b", gpu="a100-mig-3g.40gb", **{split: 2})
