"""Pages of a realistic size for the tests of the writers: real models and prices of the day, crude arithmetic.

The numbers are near the truth, not held to it; what is tested with them is the drawing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sheetgen.report.page import (
    NONE,
    Bar,
    BreakPoint,
    Breaks,
    Card,
    FingerprintRow,
    InstanceRow,
    LeverRow,
    MatrixBlock,
    MatrixCell,
    MatrixRow,
    ModelFacts,
    Page,
    Source,
    words,
)
from sheetgen.report.wording import short_money

GIB = 2**30
TIERS = (1, 32, 128, 1024)
WORKLOADS = (
    ("Chat", "4k", 4096, "3,072 in + 1,024 out"),
    ("RAG", "16k", 16384, "15,360 in + 1,024 out"),
    ("Long documents", "128k", 131072, "129,024 in + 2,048 out"),
)


@dataclass(frozen=True)
class SampleModel:
    """A model's size: parameters in 10^9, KV bytes a token in bf16, and the same for full multi-head attention."""

    name: str
    billions: float
    kv_bytes_per_token: int
    full_bytes_per_token: int
    attention: str
    note: str = ""


MODELS = (
    SampleModel("Llama 3.1 8B", 8.03, 131_072, 524_288, "GQA, 8 of 32 heads"),
    SampleModel("Llama 3.1 70B", 70.55, 327_680, 2_621_440, "GQA, 8 of 64 heads"),
    SampleModel("Llama 3.1 405B", 405.85, 516_096, 8_257_536, "GQA, 8 of 128 heads"),
    SampleModel("Qwen3.6-27B", 27.78, 65_536, 1_572_864, "16 full of 64 layers", "+ 150 MiB state a request"),
    SampleModel("gpt-oss-120b", 116.83, 36_864, 589_824, "18 full, 18 windowed", "+ 128-token windows"),
    SampleModel("DeepSeek-V3", 671.03, 70_272, 4_997_120, "MLA, 576 wide"),
    SampleModel("Mixtral 8x7B v0.1", 46.70, 131_072, 524_288, "GQA, 8 of 32 heads"),
    SampleModel("Nemotron 3 Nano 30B-A3B", 31.58, 6_144, 851_968, "6 full of 52 layers", "+ 24 MiB state a request"),
)
INSTANCES = (  # name, provider, GPUs, GPU, GiB each, $ an hour, region, day
    ("g6.xlarge", "AWS", 1, "L4", 22.03, 0.805, "us-east-1", "2026-09-14"),
    ("g6e.xlarge", "AWS", 1, "L40S", 44.39, 1.861, "us-east-1", "2026-09-14"),
    ("g6e.12xlarge", "AWS", 4, "L40S", 44.39, 10.493, "us-east-1", "2026-09-14"),
    ("a2-ultragpu-1g", "GCP", 1, "A100 80GB", 79.25, 5.069, "us-central1", "2026-10-02"),
    ("NC40ads H100 v5", "Azure", 1, "H100 NVL", 93.10, 6.980, "eastus", "2026-06-18"),
    ("p4de.24xlarge", "AWS", 8, "A100 80GB", 79.25, 27.447, "us-east-1", "2026-09-14"),
    ("p5.48xlarge", "AWS", 8, "H100 SXM", 79.19, 55.040, "us-east-1", "2026-09-14"),
    ("p5en.48xlarge", "AWS", 8, "H200", 139.80, 63.296, "us-east-1", "2026-09-14"),
    ("ND96isr H200 v5", "Azure", 8, "H200", 139.80, 84.800, "eastus", "2026-06-18"),
    ("p6-b200.48xlarge", "AWS", 8, "B200", 178.36, 113.933, "us-east-1", "2026-03-02"),
)
FINGERPRINTS = (
    FingerprintRow(
        "During a long completion",
        "KV cache of a few long requests",
        "runs well, then preempts or dies late; KV usage climbs to 100%",
        "context (max_model_len) ↓, or KV cache to FP8; gpu_memory_utilization ↑",
        words("{}: {}", "Llama 3.1 70B", "one request at 128k is 40.0 GiB of 438.7 GiB"),
    ),
    FingerprintRow(
        "Under a concurrency spike",
        "KV cache of many requests",
        "fine alone; requests wait, are preempted, latency jumps",
        "max_num_seqs ↓ to shed, or replicas ↑; KV cache to FP8",
        "Llama 3.1 70B at 16k: the 88th request does not fit",
    ),
    FingerprintRow(
        "On the prefill of one long prompt",
        "Activations of the prefill",
        "dies at once on a long prompt while KV usage is low",
        "max_num_batched_tokens ↓ (8192 → 2048), chunked prefill on; utilization ↓",
        "8,192 batched tokens take 2.1 GiB of each GPU",
    ),
    FingerprintRow(
        "At start",
        "Weights",
        "dies while weights load, before any KV cache line",
        "tensor_parallel_size ↑ · quantization fp8",
        "755.9 GiB in bf16, 94.5 GiB of each GPU's 71.3 GiB",
    ),
    FingerprintRow(
        "At start",
        "KV pool for one request",
        '"larger than the available KV cache memory"',
        "max_model_len ↓ · gpu_memory_utilization ↑",
        "a 16k request takes 1.3 GiB of 48.5 GiB a GPU, a 128k one 10.0 GiB",
    ),
    FingerprintRow(
        "At start",
        "Workspace and CUDA graphs",
        "pool size printed, then dies capturing graphs",
        "gpu_memory_utilization ↓ · cudagraph_capture_sizes ↓",
        "graphs take about 1.0 GiB a GPU, of 9.5 GiB left out",
    ),
    FingerprintRow(
        "At start",
        "Sampler",
        '"warming up sampler with N dummy requests"',
        "max_num_seqs ↓ 256 · gpu_memory_utilization ↓",
        "1,024 requests take 1.9 GiB a GPU, 256 take 0.5 GiB",
    ),
)
ASSUMPTIONS = (
    "A tier is requests at once at peak, each charged its full context; cells are alternatives, never added up.",
    "vLLM 0.19.0, gpu_memory_utilization 0.90, blocks of 16 tokens, no prefix-cache hits, no draft model.",
    "GPU memory is what the engine sees, not the figure on the box; 0.3 to 2 GiB a GPU for activations and graphs.",
    "On-demand list prices, 730 hours a month, no discount, no storage, no egress.",
    "Tensor parallel 1, 2, 4 or 8 within an instance; pipeline stages only where one instance is too small.",
    "Sized by memory and by speed (50 ms a token, first token in 5 s).",
    "Prefix-cache hits: 0%; no draft model. Spare replicas (N+1): 0.",
    "Prices older than 180 days are marked.",
)
SOURCES = (
    Source("AWS Price List API, 2026-09-14", "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/index.json"),
    Source("Azure Retail Prices API, 2026-06-18", "https://prices.azure.com/api/retail/prices"),
    Source("Google Cloud SKUs, 2026-10-02", "https://cloud.google.com/skus"),
    Source("Model configs on Hugging Face, read 2026-11-20", "https://huggingface.co/meta-llama/Llama-3.1-70B"),
    Source("GQA: arXiv:2305.13245", "https://arxiv.org/abs/2305.13245"),
    Source("GPU memory as torch reports it, per GPU in the workbook"),
)


def page_of(n_models: int, paper: str = "a4", names: dict[str, str] | None = None) -> Page:
    """The page of the first `n_models` sample models, some of them renamed."""
    models = [replace(m, name=(names or {}).get(m.name, m.name)) for m in MODELS[:n_models]]
    blocks = tuple(
        MatrixBlock(
            name,
            context,
            split,
            tuple(
                MatrixRow(
                    f"{tier:,}",
                    (name, tier) == ("RAG", 32),
                    tuple(_cell(m, tokens, tier) for m in models),
                    tier,
                )
                for tier in TIERS
            ),
            tokens,
        )
        for name, context, tokens, split in WORKLOADS
    )
    return Page(
        title="LLM serving sizing sheet",
        question="RAG, 16,384 tokens a request, 32 requests at once",
        precision_line="weights bf16 · KV cache bf16 · vLLM 0.19.0 · every user counted as active",
        weights_note="",
        as_of="2026-11-20",
        price_banner="on-demand prices, the oldest of 2026-03-02",
        version="0.1.0",
        catalog="a3f1a3f1",
        unit="GiB",
        paper=paper,
        cards=tuple(_card(m) for m in models),
        matrix=blocks,
        models=tuple(_facts(m) for m in models),
        bars=tuple(_bars(m) for m in models),
        breaks=tuple(_breaks(m) for m in models),
        fingerprints=FINGERPRINTS,
        levers=_levers(models),
        fp8_quality="FP8 weights: close to lossless in published tests (arXiv:2411.02355).",
        instances=_instances(blocks),
        price_classes=("on demand", "1 yr", "3 yr", "spot"),
        purchase="on demand",
        subject=models[-1].name,
        left_out="214 of 301 catalog rows are no candidates: other providers 171, no price 31, memory unknown 12.",
        assumptions=ASSUMPTIONS,
        sources=SOURCES,
        confidence=("Memory checked on 34 engine start-ups", "Speed: 80 % of runs lie in the ranges shown"),
        assumed=("Everyone is active at once.", "Every request fills 100% of its context."),
    )


def _weights(model: SampleModel, bytes_per_param: float = 2) -> float:
    return model.billions * 1e9 * bytes_per_param


def _choice(model: SampleModel, kv_bytes: float) -> tuple[int, tuple[str, str, int, str, float, float, str, str]]:
    """The cheapest (count, instance): whole replicas of an instance, or several instances for one replica."""
    best = None
    for row in INSTANCES:
        usable = row[2] * (row[4] * 0.9 - 1.5) * GIB
        pool = usable - _weights(model)
        if pool > 2 * GIB:
            count = max(1, -(-kv_bytes // (0.93 * pool)))
        elif row[2] == 8:
            count = max(2, -(-(kv_bytes + _weights(model)) // usable))
        else:
            continue
        if best is None or count * row[5] < best[0] * best[1][5]:
            best = (int(count), row)
    assert best is not None
    return best


def _cell(model: SampleModel, tokens: int, tier: int) -> MatrixCell:
    kv = float(model.kv_bytes_per_token * tokens * tier)
    if tokens > 40_000 and model.name.startswith("Qwen"):
        return MatrixCell("over", "over 32k", f"{kv / GIB:,.1f}")
    count, row = _choice(model, kv)
    if count > 400:
        return MatrixCell("none", "nothing fits", f"{kv / GIB:,.1f}")
    usd = count * row[5] * 730
    return MatrixCell(
        "fits",
        "fits",
        f"{kv / GIB:,.1f}",
        f"{count * row[2]}× {row[3]}",
        words("{} × {}", f"{count}", row[0]),
        short_money(usd),
        short=words("{} × {}", f"{count}", re.sub(r"(\.\w+| v\d+)$", "", row[0])),
    )


def _card(model: SampleModel) -> Card:
    kv = model.kv_bytes_per_token * 16384 * 32
    count, row = _choice(model, kv)
    return Card(
        model=model.name,
        fits=True,
        rent=f"{count} × {row[0]}",
        monthly=f"${count * row[5] * 730:,.0f}",
        provider=f"{row[1]}, {row[6]}",
        per_year=f"${count * row[5] * 8760:,.0f} a year",
        hardware=words(
            "{}, {}", f"{count * row[2]}× {row[3]}", f"TP {row[2]}, {count} replica{'s' if count > 1 else ''}"
        ),
        memory=f"{_weights(model) / GIB:,.1f} GiB weights + {kv / GIB:,.1f} GiB KV cache",
        headroom="serves 41 within the targets; memory for 54 at once",
        first_token="first token 3.4 s (1.6–6.0)",
        sized_by="size set by the target (50 ms a token, first token in 5 s); without it: 2 × p4de.24xlarge, $40,073",
        per_million_tokens="$0.80 prompt, $17.23 answer per million tokens at 70% utilization",
        runner_up=f"next cheapest: 1 × ND96isr H200 v5 on Azure, ${count * row[5] * 730 * 1.12:,.0f} (+12%)",
        region=row[6],
        chance="70% sure",
        at_fp8="3 × NC80adis H100 v5, $30,572",
        fp8_rent="3 × NC80adis H100 v5",
        fp8_monthly="$30,572",
        not_asked=words("{}", "1 × ND96isr MI300X v5 (Azure, AMD), $35,040"),
        load="32 requests at once",
        held=words("serves {}", "41"),
        token_time="47 ms a token (37–55)",
        throughput="643 tokens/s (557–813)",
        per_user="$1,256 per user",
        classes=tuple(f"${count * row[5] * 730 * part:,.0f}" if part else "–" for part in (1, 0.83, 0.43, 0)),
        class_rents=tuple(words("{} × {}", f"{count}", row[0]) if part else NONE for part in (1, 0.83, 0.43, 0)),
        owned=words("{}: {}", f"{count * row[2]}× {row[3]}", "$8,640 to $11,720"),
        break_even=words("cheaper than renting on demand {}", "above 24% of the hours (22% to 29%)"),
    )


def _facts(model: SampleModel) -> ModelFacts:
    return ModelFacts(
        name=model.name,
        params=f"{model.billions:.1f} B",
        weights_bf16=f"{_weights(model) / GIB:,.1f}",
        weights_fp8=f"{_weights(model, 1.03) / GIB:,.1f}",
        weights_used="bf16",
        weights_in_use=f"{_weights(model) / GIB:,.1f}",
        kv_used="bf16",
        kv_per_token=words("{} {}", f"{model.kv_bytes_per_token / 1024:,.1f}", "KiB"),
        full_attention_per_token=f"{model.full_bytes_per_token / 1024:,.0f} KiB",
        ratio=f"{model.full_bytes_per_token / model.kv_bytes_per_token:.1f}× less",
        attention=model.attention,
        note=model.note,
    )


def _bars(model: SampleModel) -> tuple[Bar, ...]:
    return tuple(_bar(model, name, context, tokens) for name, context, tokens, _ in WORKLOADS)


def _bar(model: SampleModel, workload: str, context: str, tokens: int) -> Bar:
    kv = model.kv_bytes_per_token * tokens * 32
    count, row = _choice(model, kv)
    usable, overhead = count * row[2] * (row[4] * 0.9 - 1.5) * GIB, 1.5 * GIB * count * row[2]
    return Bar(
        model=model.name,
        workload=workload,
        context=context,
        headline=context == "16k",
        weights_bytes=_weights(model),
        kv_bytes=kv,
        weights=f"{_weights(model) / GIB:,.1f}",
        kv=f"{kv / GIB:,.1f}",
        overhead_bytes=overhead,
        capacity_bytes=usable + overhead,
        overhead=f"{overhead / GIB:,.1f}",
        limit=f"{(usable + overhead) / GIB:,.1f}",
        capacity=f"{(usable + overhead) / GIB:,.1f} GiB on {count * row[2]}× {row[3]}",
    )


def _breaks(model: SampleModel) -> Breaks:
    kv = model.kv_bytes_per_token * 16384 * 32
    count, row = _choice(model, kv)
    room = count * (row[2] * (row[4] * 0.9 - 1.5) * GIB - _weights(model)) / model.kv_bytes_per_token
    room = max(room, 33 * 16384)
    held, longest = int(room // 16384), int(room // 32)
    return Breaks(
        model.name,
        tuple(BreakPoint(2**n, max(1, int(room // 2**n))) for n in range(10, 18)),
        BreakPoint(16384, 32),
        BreakPoint(16384, held),
        BreakPoint(longest, 32),
        next_request=f"request {held + 1:,} does not fit",
        longest_fit=f"32 requests of {longest:,} tokens fit",
    )


def _levers(models: list[SampleModel]) -> tuple[LeverRow, ...]:
    changes = (
        ("FP8 weights and KV cache", "$25,342", "62%", "8 bits lose little"),
        ("70 ms a token, the first in 8 s", "$15,269", "38%", "later and slower: 14 tokens a second, not 20"),
        ("context 8k, not 16k", "no change", "", "what is beyond it is not seen"),
    )
    return tuple(
        LeverRow(models[i % len(models)].name, change, "1 × p5.48xlarge", "$40,179", *saved)
        for i, (change, *saved) in enumerate(changes)
    )


def _instances(blocks: tuple[MatrixBlock, ...]) -> tuple[InstanceRow, ...]:
    rents = [c.rent.parts[1] for b in blocks for r in b.rows for c in r.cells if c.rent]
    return tuple(
        InstanceRow(
            f"{row[1].lower()}/{row[0]}",
            row[0],
            row[1],
            f"{row[2]}× {row[3]}",
            f"{row[2] * row[4]:,.1f} GiB",
            f"${row[5]:,.2f}",
            row[6],
            row[7],
            row[7] < "2026-05-24",
            f"{rents.count(row[0])} cells",
            (f"${row[5]:,.2f}", f"${row[5] * 0.7:,.2f}", f"${row[5] * 0.5:,.2f}", "–"),
            "derived" if row[0].startswith("g6e.x") else "measured",
        )
        for row in INSTANCES
        if row[0] in rents
    )
