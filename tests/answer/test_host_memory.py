"""Weights in host memory: an indication with its link, its bytes and its seconds, and never a price."""

from __future__ import annotations

from asked import THREE, catalog, every, load, of_load

from sheetgen.catalog.stacks import LeverFile


def found() -> list:  # type: ignore[type-arg]
    return [lever for levers in every(THREE, tpot_ms="off") for lever in levers if lever.offload]


def test_it_has_no_price_and_is_among_no_savings() -> None:
    assert len(found()) > 3
    for lever in found():
        assert lever.after is None and lever.saved_usd is None and not lever.why_not
        assert "not priced" in lever.note and lever.family == "offload"


def test_seconds_are_bytes_over_the_link_that_is_named() -> None:
    file = catalog().file(LeverFile)
    for lever in found():
        offload = lever.offload
        link = next(host_link for host_link in file.host_links if host_link.name == offload.link)
        assert offload.link_bytes_per_second == link.bytes_per_second
        assert offload.bytes_per_gpu > 0
        assert offload.seconds_per_token == offload.bytes_per_gpu / link.bytes_per_second
        assert offload.nvme_seconds_per_token == offload.bytes_per_gpu / file.nvme_bytes_per_second
        assert offload.parked_kv_seconds == offload.parked_kv_bytes_per_gpu / link.bytes_per_second
        assert offload.n_gpus < lever.before.n_gpus
        assert link.name in lever.note and f"{link.bytes_per_second / 1e9:.1f} GB/s" in lever.note


def test_bytes_are_what_half_the_gpus_lack() -> None:
    """Weights in FP8 that take all eight GPUs of the instance; of smaller ones the choice takes what serves most."""
    options = {"gpus": "h100", "instances": "aws/p5.48xlarge", "weight_dtype": "fp8", "tpot_ms": "off"}
    solved, lever = load("405b", "4k", 2, **options), of_load("405b", "4k", 2, **options)["host-memory"]
    (choice,) = solved.choices
    assert choice.offer is not None and (choice.n_replicas, choice.pipeline_parallel_size) == (1, 1)
    size = solved.layout(choice.offer).tensor_parallel_size
    half = next(i for i, p in enumerate(solved.profiles) if p.layout == (size // 2, 1))
    short = 2 * solved.sequences["charge_bytes"][0, half] - solved.pools["kv_budget_bytes_per_gpu"][0, half]
    assert lever.offload is not None and lever.offload.bytes_per_gpu == short
    assert lever.offload.n_gpus == size // 2


def test_one_gpu_and_an_unknown_link_have_none() -> None:
    assert of_load("8b", "4k", 1, gpus="h100")["host-memory"].why_not == "one GPU is the least"
    rack = of_load("70b", "4k", 64, gpus="gb200", providers="all", tpot_ms="off")["host-memory"]
    assert "not known here" in rack.why_not
