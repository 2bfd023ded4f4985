"""Every fix names a flag that its engine has, and the flag goes the right way."""

from __future__ import annotations

import pytest
from corpus import signatures

from sheetgen.catalog import Catalog, guidance
from sheetgen.catalog.guidance import EngineFlag
from sheetgen.diagnose.cause import Cause, Verdict
from sheetgen.diagnose.fixes import Fix, fixes_for, flag_of, setting_of
from sheetgen.diagnose.log_facts import Run
from sheetgen.startup.startup_log import Argument, StartupLog

CATALOG = Catalog()
FILE = CATALOG.file(guidance.FingerprintFile)
SHARES = guidance.assumptions(CATALOG)
ENGINES = ("vllm", "sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp", "ollama")
LABELS = tuple(fingerprint.label for fingerprint in FILE.fingerprints)
CASES = {
    "prefill_long_prompt": ("peak", "refused", "full"),
    "concurrency_spike": ("pool", "swap", "admission", "room"),
    "startup_kv_pool_too_small": ("length", "state", "total", "empty"),
    "startup_workspace_or_cuda_graph": (None, "profile"),
    "lora_draft_model": ("lora", "draft"),
    "healthy": ("full", "places"),  # with a queue
}
HAS = {engine: {flag.flag for flag in flags} for engine, flags in FILE.flags.items()}
DIRECTIONS = {"raise", "lower", "set", "unset", "free"}


def fixes(label: str, engine: str, case: str | None = None) -> tuple[Fix, ...]:
    verdict = Verdict(Cause(label, 0.9, case), Run(), None, "unknown", ())
    return fixes_for(verdict, engine, FILE, SHARES, None, None)


def every() -> list[tuple[str, str, str | None]]:
    return [(label, engine, case) for label in LABELS for engine in ENGINES for case in CASES.get(label, (None,))]


def test_every_label_but_another_failure_has_its_fixes() -> None:
    """A healthy log has those for a queue alone."""
    assert set(LABELS) == set(guidance.LABELS) - {"not_an_oom"}
    assert not any(fixes("healthy", engine) for engine in ENGINES)


@pytest.mark.parametrize("label,engine,case", every())
def test_every_fix_names_a_flag_of_its_engine(label: str, engine: str, case: str | None) -> None:
    remedies = fixes(label, engine, case)
    for fix in remedies:
        assert fix.direction in DIRECTIONS
        assert fix.reason and fix.cost
        assert fix.direction == "free" or fix.flag in HAS[engine], fix.flag
    assert len({fix.flag for fix in remedies}) == len(remedies)


def test_every_engine_has_a_way_out_of_every_cause() -> None:
    without = {
        (label, engine) for label, engine, _ in every() if not any(fixes(label, engine, c) for c in _cases(label))
    }
    # llama.cpp has no allocator of PyTorch's.
    assert without == {("fragmentation", "llama.cpp"), ("fragmentation", "ollama")}


def _cases(label: str) -> tuple[str | None, ...]:
    return CASES.get(label, (None,))


def test_every_flag_has_its_source() -> None:
    for engine, flags in FILE.flags.items():
        assert engine in ENGINES
        assert len({flag.flag for flag in flags}) == len(flags), engine
        for flag in flags:
            assert len(flag.source) > 5, flag.flag
    for flag in signatures():
        assert flag.source, flag.id


SHARE = {
    # A pool too small wants more of the GPU; what lives beside the pool wants less.
    ("startup_kv_pool_too_small", None): "raise",
    ("startup_kv_pool_too_small", "length"): "raise",
    ("startup_kv_pool_too_small", "empty"): "raise",
    ("long_completion", None): "raise",
    ("concurrency_spike", "pool"): "raise",
    ("startup_workspace_or_cuda_graph", None): "lower",
    ("startup_workspace_or_cuda_graph", "profile"): "lower",
    ("sampler_logits_peak", None): "lower",
    ("prefill_long_prompt", "peak"): "lower",
    ("multimodal_encoder_profile", None): "lower",
    ("lora_draft_model", "lora"): "lower",
    ("lora_draft_model", "draft"): "lower",
    ("fragmentation", None): "lower",
    ("gpu_shared_by_other_process", None): "lower",
}  # fmt: skip
SHARES_OF = {
    "vllm": "--gpu-memory-utilization", "sglang": "--mem-fraction-static", "tensorrt-llm": "free_gpu_memory_fraction",
    "nim": "NIM_KVCACHE_PERCENT", "tgi": "--cuda-memory-fraction", "lmdeploy": "--cache-max-entry-count",
}  # fmt: skip
# TGI's share is PyTorch's cap, peaks and all: what the pool leaves of it is another number.
LEAVES = {"tgi": "TGI_WIGGLE_ROOM"}


@pytest.mark.parametrize("label,case", SHARE)
@pytest.mark.parametrize("engine", SHARES_OF)
def test_the_share_of_the_gpu_goes_the_right_way(label: str, case: str | None, engine: str) -> None:
    beside_the_pool = SHARE[label, case] == "lower" and label != "gpu_shared_by_other_process"
    flag = LEAVES.get(engine, SHARES_OF[engine]) if beside_the_pool else SHARES_OF[engine]
    advised = [fix for fix in fixes(label, engine, case) if fix.flag == flag]
    assert [fix.direction for fix in advised] == [SHARE[label, case]]
    if engine in LEAVES and beside_the_pool:
        assert SHARES_OF[engine] not in [fix.flag for fix in fixes(label, engine, case)]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_share_is_left_alone_where_it_does_not_help(engine: str) -> None:
    for label, case in (
        ("startup_weights_do_not_fit", None),
        ("prefill_long_prompt", "refused"),
        ("concurrency_spike", "admission"),
        ("host_ram_oom", None),
    ):
        assert SHARES_OF.get(engine) not in [fix.flag for fix in fixes(label, engine, case)], label


@pytest.mark.parametrize("engine", ENGINES)
def test_a_refused_prompt_raises_a_limit_and_nothing_else_goes_up(engine: str) -> None:
    refused = fixes("prefill_long_prompt", engine, "refused")
    assert refused and refused[0].direction == "raise"
    assert all(
        fix.direction == "lower" or fix.direction == "set" for fix in fixes("prefill_long_prompt", engine, "peak")
    )


def test_the_direction_of_each_setting_follows_the_cause() -> None:
    """max_model_len, max_num_seqs and the tokens of a step are never raised for want of memory."""
    for label, engine, case in every():
        if case in ("refused", "admission", "places"):
            continue
        fingerprint = next(f for f in FILE.fingerprints if f.label == label)
        for advice in fingerprint.fixes:
            flag = flag_of(advice, engine, SHARES.get("gpu_memory_utilization"))
            if flag is None or advice.case not in (None, case):
                continue
            name = setting_of(advice, flag, engine)
            if flag in ("--ctx-size", "num_ctx") and label in ("concurrency_spike", "long_completion"):
                assert advice.direction == "raise"  # llama.cpp's context is the pool that all slots share
            elif name in ("max_model_len", "max_num_seqs", "max_num_batched_tokens"):
                assert advice.direction == "lower", (label, engine, flag)
            elif name == "tensor_parallel_size" and label != "host_ram_oom":
                assert advice.direction == "raise", (label, engine, flag)


def test_the_page_says_no_more_than_before() -> None:
    """Advice for `diagnose` alone stays off the page and out of the workbook."""
    shown = guidance.fingerprints(CATALOG)
    assert len(shown) == 8
    assert all(fix.on_page for fingerprint in shown for fix in fingerprint.fixes)


def test_a_full_table_of_slots_is_no_want_of_memory() -> None:
    assert [(fix.flag, fix.direction) for fix in fixes("concurrency_spike", "sglang", "slots")] == [
        ("--max-running-requests", "lower")
    ]


GRAPHS = "startup_workspace_or_cuda_graph"
VERSIONS = [
    ("vllm", "0.6.3", GRAPHS, None, set(), {"--cudagraph-capture-sizes", "--cuda-graph-sizes"}),
    ("vllm", "0.10.2", GRAPHS, None, {"--cuda-graph-sizes"}, {"--cudagraph-capture-sizes"}),
    ("vllm", "0.14.0", GRAPHS, None, {"--cudagraph-capture-sizes"}, {"--cuda-graph-sizes"}),
    ("vllm", "0.6.3.post1", "prefill_long_prompt", "peak", {"--max-num-batched-tokens"}, {"--enable-chunked-prefill"}),
    ("tgi", "1.4.0", "prefill_long_prompt", "refused", {"--max-input-length"}, {"--max-input-tokens"}),
    ("tgi", "3.3.7", "prefill_long_prompt", "refused", {"--max-input-tokens"}, {"--max-input-length"}),
    ("vllm", "0.11.0", "prefill_long_prompt", "peak", {"--max-num-batched-tokens"}, {"--enable-chunked-prefill"}),
    ("vllm", "0.6.3", "host_ram_oom", None, {"--swap-space", "--max-parallel-loading-workers"}, set()),
    ("vllm", "0.19.1", "host_ram_oom", None, {"--cpu-offload-gb"}, {"--swap-space", "--max-parallel-loading-workers"}),
    ("vllm", "0.7.3", "lora_draft_model", "draft", {"--num-speculative-tokens"}, {"--speculative-config"}),
    ("vllm", "0.8.5", "lora_draft_model", "draft", {"--speculative-config"}, {"--num-speculative-tokens"}),
    ("vllm", "0.4.2", "multimodal_encoder_profile", None, set(), {"--limit-mm-per-prompt", "--mm-processor-kwargs"}),
    ("sglang", "0.4.6.post5", GRAPHS, None, {"--cuda-graph-max-bs"}, {"--cuda-graph-max-bs-decode"}),
    ("sglang", "0.5.23", GRAPHS, None, {"--cuda-graph-max-bs-decode"}, {"--cuda-graph-max-bs"}),
    ("sglang", "0.5.6", "multimodal_encoder_profile", None, {"--mm-process-config"}, {"--limit-mm-data-per-request"}),
    ("sglang", "0.4.6", "lora_draft_model", "lora", {"--max-loras-per-batch"}, {"--max-lora-rank"}),
]


@pytest.mark.parametrize("engine,version,label,case,there,gone", VERSIONS)
def test_a_flag_is_one_of_the_release_that_ran(
    engine: str, version: str, label: str, case: str | None, there: set[str], gone: set[str]
) -> None:
    verdict = Verdict(Cause(label, 0.9, case), Run(), None, "unknown", ())
    startup = StartupLog(engine, version, {}, {})
    flags = {fix.flag for fix in fixes_for(verdict, engine, FILE, SHARES, startup, None)}
    assert there <= flags and not gone & flags


@pytest.mark.parametrize(
    "name,flag", [("cuda_graph_max_bs", "--cuda-graph-max-bs"), ("tp_size", "--cuda-graph-max-bs-decode")]
)
def test_without_a_version_the_log_says_what_a_flag_is_called(name: str, flag: str) -> None:
    verdict = Verdict(Cause("startup_workspace_or_cuda_graph", 0.9), Run(), None, "unknown", ())
    startup = StartupLog("sglang", None, {name: Argument(name, 8, 1, 2)}, {})
    flags = [fix.flag for fix in fixes_for(verdict, "sglang", FILE, SHARES, startup, None)]
    assert flag in flags and len([flag for flag in flags if "graph-max-bs" in flag]) == 1


@pytest.mark.parametrize(
    "version,serves",
    [
        ("0.10", False),
        ("0.11.0", True),
        ("0.11.0rc2+cu129", True),
        ("v0.11.5", True),
        ("0.12.0", True),
        ("0.12.9.post1", True),
        ("0.13", False),
        ("1.0", False),
        (None, True),
        ("nightly", True),
    ],
)
def test_the_releases_of_a_flag(version: str | None, serves: bool) -> None:
    assert EngineFlag(flag="--x", since="0.11.0", until="0.12", source="a source").serves(version) is serves
