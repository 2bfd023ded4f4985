"""GPUs, instances, workloads and tiers as shipped."""

from __future__ import annotations

import pytest

from sheetgen.catalog import Catalog
from sheetgen.catalog.stacks import LeverFile
from sheetgen.errors import CatalogError, ScenarioError
from sheetgen.question.sheet_question import ask

GIB = 2**30
ALIASES = (
    "t4 a10 a10g a30 a40 a100 a100-40gb a100-pcie l4 l40 l40s h100 h100-pcie h100-nvl h20 h200 h200-nvl "
    "gh200 b200 b300 gb200 gb300 rtx-3090 rtx-4090 rtx-5090 rtx-pro-6000 spark "
    "rtx-5070-ti rtx-4080 rtx-4060-ti vr200 mi455x "
    "mi300x mi325x mi350x mi355x gaudi3"
)


@pytest.mark.parametrize("alias", ALIASES.split())
def test_aliases_of_the_interface(catalog: Catalog, alias: str) -> None:
    assert alias in catalog.gpu(alias).aliases


@pytest.mark.parametrize(
    ("alias", "gpu_id"),
    [
        ("h100", "nvidia-h100-sxm5-80gb"),
        ("a100", "nvidia-a100-sxm4-80gb"),
        ("gh200", "nvidia-gh200-96gb"),
        ("a100-40gb", "nvidia-a100-sxm4-40gb"),
        ("h200", "nvidia-h200-sxm5-141gb"),
        ("rtx-pro-6000", "nvidia-rtx-pro-6000-server-96gb"),
        ("H100 SXM", "nvidia-h100-sxm5-80gb"),
    ],
)
def test_plain_names_are_the_sxm_parts(catalog: Catalog, alias: str, gpu_id: str) -> None:
    assert catalog.gpu(alias).id == gpu_id


@pytest.mark.parametrize(
    ("alias", "gib"),
    [
        ("h100", 79.19),
        ("a100", 79.25),
        ("l4", 22.04),
        ("l40s", 44.42),
        ("h200", 139.80),
        ("t4", 14.56),
        ("rtx-3090", 23.58),
        ("rtx-5090", 31.36),
        ("rtx-5070-ti", 15.47),
        ("spark", 121.63),
        ("h20", 95.0),
    ],
)
def test_measured_memory(catalog: Catalog, alias: str, gib: float) -> None:
    memory = catalog.gpu(alias).memory
    assert memory.basis == "measured"
    assert memory.engine_bytes == round(gib * GIB)


def test_mi325x_has_the_memory_that_vllm_prints(catalog: Catalog) -> None:
    assert f"{catalog.gpu('mi325x').memory.engine_bytes / GIB:.2f}" == "255.98"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"basis": "derived"}, "derived from nvidia_smi_mib it is 84716914370 (81,559 MiB less 0.94 %)"),
        ({"basis": "derived", "nvidia_smi_mib": None}, "give what nvidia-smi shows"),
        ({"engine_bytes": 85_600_000_000}, "is more than nvidia-smi shows, 85,520,809,984"),
        ({"nvidia_smi_mib": None}, "say stated or assumed"),
        ({}, ""),
    ],
)
def test_check_holds_how_a_memory_was_come_by(catalog: Catalog, changes: dict[str, object], words: str) -> None:
    gpu = catalog.gpu("h100")
    problems = [
        problem for _, problem in gpu.model_copy(update={"memory": gpu.memory.model_copy(update=changes)}).problems()
    ]
    assert len(problems) == bool(words) and words in "".join(problems)


@pytest.mark.parametrize("alias", ["vr200", "mi455x"])
def test_what_is_announced_is_listed_and_rented_nowhere(catalog: Catalog, alias: str) -> None:
    gpu = catalog.gpu(alias)
    assert gpu.memory.basis == "assumed" and gpu.confidence == "low"
    assert not [instance for instance in catalog.instances() if instance.gpu == gpu.id]
    with pytest.raises(ScenarioError, match="--providers, --vendors"):
        ask(catalog, {"models": "8b", "gpus": alias, "vendors": "all", "providers": "all"})


def test_who_rents_a_gpu_that_no_provider_requested_has(catalog: Catalog) -> None:
    with pytest.raises(ScenarioError, match="with --providers: ") as caught:
        ask(catalog, {"models": "8b", "gpus": "rtx4090"})
    for provider in str(caught.value).rstrip(".").split("--providers: ")[1].split(", "):
        assert ask(catalog, {"models": "8b", "gpus": "rtx4090", "providers": provider}).candidates


def test_gh200_are_machines_of_one_gpu_beside_a_fast_host(catalog: Catalog) -> None:
    """Whatever joins two of them is not rented: a replica has one GPU, or stages over machines."""
    candidates = ask(catalog, {"models": "8b", "gpus": "gh200", "providers": "all"}).candidates
    assert candidates and {
        (candidate.gpu_count, candidate.linked_gpus, candidate.tries_ranks) for candidate in candidates
    } == {(1, 1, False)}
    link = catalog.file(LeverFile).link(candidates[0].gpu)
    assert link is not None and link.bytes_per_second == 450e9  # NVLink-C2C, one way


def test_trays_of_a_rack_are_joined_by_nvlink_and_no_others(catalog: Catalog) -> None:
    racks = [instance for instance in catalog.instances() if instance.nvlink_domain_gpus]
    superchips = ("nvidia-gb200-192gb", "nvidia-gb300-288gb")
    trays = [instance for instance in catalog.instances() if instance.gpu_count == 4 and instance.gpu in superchips]
    assert racks == trays and {rack.nvlink_domain_gpus for rack in racks} == {72}


def test_precisions(catalog: Catalog) -> None:
    assert "bf16" not in catalog.gpu("t4").weights_run
    assert catalog.gpu("a100").weights_run["fp8"] == "weight_only"
    assert catalog.gpu("h100").weights_run["fp8"] == "native"
    assert "int8" not in catalog.gpu("b200").weights_run
    assert {"fp8", "fp8_e5m2"} <= set(catalog.gpu("a100").kv_run)
    assert not {"int8", "int4", "nvfp4"} & {dtype for gpu in catalog.gpus() for dtype in gpu.kv_run}


def test_prices(catalog: Catalog) -> None:
    p5 = catalog.instance("aws/p5.48xlarge")
    on_demand = p5.price("on-demand")
    assert on_demand is not None and (on_demand.usd_per_hour, on_demand.as_of) == (55.04, "2026-07-20")
    reserved = p5.price("reserved-3yr")
    assert reserved is not None and reserved.kind == "Standard RI, No Upfront"
    assert p5.price("spot") is None and p5.price("reserved-1yr") is None
    (block,) = catalog.instance("p5e.48xlarge").prices
    assert (block.purchase, block.usd_per_hour, block.history[0].usd_per_hour) == ("capacity-block", 47.76, 39.8)
    assert catalog.instance("p6e-gb200.36xlarge").prices == ()  # sold in whole UltraServers
    of_racks = [catalog.instance(f"u-p6e-gb200x{n}").offered[0].usd_per_hour / n for n in (36, 72)]
    assert of_racks == pytest.approx([10.582, 10.582], rel=1e-12)  # by the GPU, as the list has it
    hyperstack = catalog.instance("hyperstack/B200")  # its reserved price has no term: no price
    assert [p.purchase for p in hyperstack.prices] == ["on-demand"]


def test_offers_and_order(catalog: Catalog) -> None:
    rows = catalog.instances()
    assert list(dict.fromkeys(i.provider for i in rows))[:3] == ["aws", "gcp", "azure"]
    assert (rows[0].id, rows[1].id) == ("aws/g4dn.12xlarge", "aws/g4dn.16xlarge")
    offers = {i.id: i.offer for i in rows}
    assert offers["vast.ai/L4"] == "marketplace"
    assert offers["civo/H100 (provider average)"] == "average"
    assert offers["aws/p5.48xlarge"] == "list"
    assert catalog.instance("Standard_NV6ads_A10_v5").gpu_count == 0.167


def test_instance_names(catalog: Catalog) -> None:
    assert catalog.instance("AWS/P5.48XLARGE") is catalog.instance("p5.48xlarge")
    with pytest.raises(CatalogError, match=r"could be digitalocean/H100 or modal/H100"):
        catalog.instance("H100")
    with pytest.raises(CatalogError, match=r"Did you mean p5\.48xlarge"):
        catalog.instance("p5.48xlrge")


def test_workloads_and_tiers(catalog: Catalog) -> None:
    contexts = {w.id: (w.input_tokens, w.output_tokens, w.context_tokens) for w in catalog.workloads() if w.is_default}
    assert contexts == {
        "chat": (3072, 1024, 4096),
        "rag": (15360, 1024, 16384),
        "long-doc": (129024, 2048, 131072),
    }
    assert [tier.requests for tier in catalog.tiers()] == [1, 32, 128, 1024]
