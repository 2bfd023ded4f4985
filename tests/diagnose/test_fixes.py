"""Every fix names a flag that its engine has, and the flag goes the right way."""

from __future__ import annotations

import pytest

from sheetgen.catalog import Catalog, guidance
from sheetgen.diagnose.facts import Run
from sheetgen.diagnose.fixes import Fix, fixes_for, flag_of, setting_of
from sheetgen.diagnose.rules import Bill
from sheetgen.diagnose.verdict import Verdict

CATALOG = Catalog()
FILE = guidance.fingerprint_file(CATALOG)
SHARES = guidance.assumptions(CATALOG)
ENGINES = ("vllm", "sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp")
LABELS = tuple(one.label for one in FILE.fingerprints)
CASES = {
    "prefill_long_prompt": ("peak", "refused"),
    "concurrency_spike": ("pool", "swap", "admission"),
    "startup_kv_pool_too_small": ("length", "state", "total"),
    "startup_workspace_or_cuda_graph": (None, "profile"),
    "lora_draft_model": ("lora", "draft"),
}
HAS = {engine: {one.flag for one in flags} for engine, flags in FILE.flags.items()}
DIRECTIONS = {"raise", "lower", "set", "unset", "free"}


def fixes(label: str, engine: str, case: str | None = None) -> tuple[Fix, ...]:
    verdict = Verdict(Bill(label, 0.9, case), Run(), None, "unknown", ())
    return fixes_for(verdict, engine, FILE.fingerprints, SHARES, None, None)


def every() -> list[tuple[str, str, str | None]]:
    return [(label, engine, case) for label in LABELS for engine in ENGINES for case in CASES.get(label, (None,))]


def test_every_bill_but_two_has_its_fixes() -> None:
    assert set(LABELS) == set(guidance.LABELS) - {"not_an_oom", "healthy"}


@pytest.mark.parametrize("label,engine,case", every())
def test_every_fix_names_a_flag_of_its_engine(label: str, engine: str, case: str | None) -> None:
    found = fixes(label, engine, case)
    for fix in found:
        assert fix.direction in DIRECTIONS
        assert fix.reason and fix.cost
        assert fix.direction == "free" or fix.flag in HAS[engine], fix.flag
    assert len({fix.flag for fix in found}) == len(found)


def test_every_engine_has_a_way_out_of_every_bill() -> None:
    without = {
        (label, engine) for label, engine, _ in every() if not any(fixes(label, engine, c) for c in _cases(label))
    }
    # llama.cpp has no allocator of PyTorch's.
    assert without == {("fragmentation", "llama.cpp")}


def _cases(label: str) -> tuple[str | None, ...]:
    return CASES.get(label, (None,))


def test_every_flag_has_its_source() -> None:
    for engine, flags in FILE.flags.items():
        assert engine in ENGINES
        assert len({one.flag for one in flags}) == len(flags), engine
        for one in flags:
            assert len(one.source) > 5, one.flag
    for one in FILE.signatures:
        assert one.source, one.id


SHARE = {
    # A pool too small wants more of the GPU; what lives beside the pool wants less.
    ("startup_kv_pool_too_small", None): "raise",
    ("startup_kv_pool_too_small", "length"): "raise",
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


@pytest.mark.parametrize("label,case", SHARE)
@pytest.mark.parametrize("engine", SHARES_OF)
def test_the_share_of_the_gpu_goes_the_right_way(label: str, case: str | None, engine: str) -> None:
    found = [fix for fix in fixes(label, engine, case) if fix.flag == SHARES_OF[engine]]
    assert [fix.direction for fix in found] == [SHARE[label, case]]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_share_is_left_alone_where_it_does_not_help(engine: str) -> None:
    for label, case in (
        ("startup_weights_do_not_fit", None), ("prefill_long_prompt", "refused"),
        ("concurrency_spike", "admission"), ("host_ram_oom", None),
    ):  # fmt: skip
        assert SHARES_OF.get(engine) not in [fix.flag for fix in fixes(label, engine, case)], label


@pytest.mark.parametrize("engine", ENGINES)
def test_a_refused_prompt_raises_a_limit_and_nothing_else_goes_up(engine: str) -> None:
    refused = fixes("prefill_long_prompt", engine, "refused")
    assert refused and refused[0].direction == "raise"
    assert all(
        fix.direction == "lower" or fix.direction == "set" for fix in fixes("prefill_long_prompt", engine, "peak")
    )


def test_the_direction_of_each_setting_follows_the_bill() -> None:
    """max_model_len, max_num_seqs and the tokens of a step are never raised for want of memory."""
    for label, engine, case in every():
        if case in ("refused", "admission"):
            continue
        one = next(f for f in FILE.fingerprints if f.label == label)
        for advice in one.fixes:
            flag = flag_of(advice, engine, SHARES.get("gpu_memory_utilization"))
            if flag is None or advice.case not in (None, case):
                continue
            name = setting_of(advice, flag, engine)
            if flag == "--ctx-size" and label in ("concurrency_spike", "long_completion"):
                assert advice.direction == "raise"  # llama.cpp's context is the pool that all slots share
            elif name in ("max_model_len", "max_num_seqs", "max_num_batched_tokens"):
                assert advice.direction == "lower", (label, engine, flag)
            elif name == "tensor_parallel_size" and label != "host_ram_oom":
                assert advice.direction == "raise", (label, engine, flag)


def test_the_page_says_no_more_than_before() -> None:
    """What is for `diagnose` alone stays off the page and out of the workbook."""
    shown = guidance.fingerprints(CATALOG)
    assert len(shown) == 7
    assert all(fix.on_page for one in shown for fix in one.fixes)
