"""Sixty random edits, from mild to absurd: the recalculated workbook says what `solve` says of the same question."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import books
from books import Sheets, reshape, with_gpu, with_instance, with_limits, with_settings, with_workload
from recalculation import ErrorValue, edit, recalculate_with_formualizer, values

from sheetgen.recommend import solve
from sheetgen.scenario.question import Question

PRECISIONS = ("auto", "auto", "bf16", "fp16", "fp32", "fp8", "fp8_e5m2", "int8", "int4", "nvfp4", "mxfp4")
TINY = {**books.SMALL, "models": "8b,gemma-3-27b", "tiers": "1,64", "headline": "chat:64"}


MODEL_COLUMNS = (
    ("Layers", "n_layers", (7, 61)), ("Query heads", "n_heads", (2, 20, 12)),
    ("Vocabulary", "vocab_size", (1000, 10**6)), ("Hidden size", "hidden_size", (512, 20_000)),
    ("Longest context", "max_context_tokens", (5000, 10**6)),
    ("Full-attention layers", "n_full_layers", (1, 3, 90)),
    ("KV heads (full)", "full_kv_heads", (1, 3, 64)),
    ("Key + value width", "full_kv_width", (64, 1024)), ("Windowed layers", "n_windowed_layers", (0, 5, 31)),
    ("KV heads (window)", "windowed_kv_heads", (1, 16)), ("Width (window)", "windowed_kv_width", (64, 512)),
    ("Window", "window_tokens", (128, 8192)), ("Chunked (0 or 1)", "window_is_chunked", (0, 1)),
    ("MLA layers", "n_mla_layers", (3, 61)), ("Latent width", "mla_width", (576,)),
    ("FP8 latent entry", "mla_fp8_entry_bytes", (0, 656)), ("Compressed layers", "n_other_layers", (0, 4)),
    ("Other elements", "other_elements_per_token", (0, 1001)), ("Other bytes", "other_bytes_per_token", (0, 132)),
    ("Recurrent layers", "n_state_layers", (0, 24)), ("Convolution state", "conv_bytes_per_state_layer", (0, 61_440)),
    ("Recurrent state", "state_elements_per_layer", (786_432,)),
    ("Bytes of a state element", "state_element_bytes", (2, 4)),
)  # fmt: skip


def random_edit(rng: random.Random, question: Question, sheets: Sheets) -> tuple[dict[Any, Any], Question]:
    """Cells to type into, and the same as a Question: from mild to absurd, prices with many ties."""
    typed: dict[Any, Any] = {}
    settings: dict[str, Any] = {}
    for name, choices in (
        ("kv_cache_dtype", PRECISIONS), ("weight_dtype", PRECISIONS), ("gpu_memory_utilization", (0.9, 0.9, 0.5, 1.0)),
        ("hours_per_month", (730, 1, 744)), ("extra_headroom_fraction", (0, 0.07, 0.5)), ("spare_replicas", (0, 1, 3)),
        ("average_context_fraction", (1, 0.33)), ("prefix_cache_hit_fraction", (0, 0.9)), ("kv_reserved", (0, 1)),
        ("hybrid_kv_manager", (1, 0)), ("block_size", (16, 1, 48, 256)), ("active_fraction", (1, 0.1)),
    ):  # fmt: skip
        if rng.random() < 0.4:
            settings[name] = typed[f"in_{name}"] = rng.choice(choices)
    question = with_settings(question, **settings)
    for w, name in enumerate(("chat", "long_doc")):
        if rng.random() < 0.5:
            context = rng.choice((1500, 4097, 33_000, 131_072, 131_073, 500_000))
            answer = rng.choice((0, 1, 1024))
            typed |= {f"in_context_{name}": context, f"in_output_{name}": answer}
            question = with_workload(question, w, context, answer)
    if rng.random() < 0.5:
        tiers = tuple(rng.sample(range(1, 3000), 2))
        typed |= {"in_tier_1": tiers[0], "in_tier_2": tiers[1]}
        question = books.with_cells(dataclasses.replace(question, tiers=tiers))
    for m, model in enumerate(question.models):
        for head, column, choices in MODEL_COLUMNS:
            if rng.random() < 0.1:
                value = rng.choice(choices)
                typed[sheets.at("Models", model.model.name, head)] = value
                question = reshape(question, m, **{column: value})
    for i, gpu in enumerate(question.gpus):
        if rng.random() < 0.3:
            memory = i + rng.choice((10**9, gpu.memory.engine_bytes // 3, 10**12))  # no two alike: limits go by it
            seqs, tokens = rng.choice((1, 7, 999)), 512
            heads = ("Memory, bytes", "Most sequences", "Batched tokens")
            typed |= {sheets.at("GPUs", gpu.id, h): v for h, v in zip(heads, (memory, seqs, tokens), strict=True)}
            question = with_limits(with_gpu(question, gpu.id, memory), gpu.id, seqs, tokens)
        if rng.random() < 0.1:
            typed[sheets.at("GPUs", gpu.id, "KV bf16")] = 0
            question = with_gpu(question, gpu.id, kv_run=tuple(d for d in gpu.kv_run if d != "bf16"))
    for one in question.candidates:
        if rng.random() < 0.6:
            kind, gpu = one.instance.split("/")[1], rng.choice(question.gpus)
            most = {1: 1, 2: 3, 4: 7}.get(one.gpu_count, 1024)  # more would take sizes that have no column
            count, price = (
                rng.choice([n for n in (1, 2, 3, 4, 8, 16) if n <= most]),
                rng.choice((1.0, 1.0, 2.0, 4.0, None)),
            )
            cells = zip(("GPU", "GPUs", "$ per hour"), (gpu.id, count, price), strict=True)
            typed |= {sheets.at("Instances", kind, head): value for head, value in cells}
            new = {"gpu": gpu, "gpu_count": count, "usd_per_hour": price}
            question = with_instance(question, one.instance, **new)
    candidates = [c for c in question.candidates if c.usd_per_hour is not None]
    for i in range(rng.choice((0, 0, 1, 3))):
        gpu, count = rng.choice(question.gpus), rng.choice((1, 2, 8))
        new = {"Type": f"box.{i}", "Provider": "acme", "GPU": gpu.id, "GPUs": count, "$ per hour": 1.0}
        typed |= {sheets.at("Instances", sheets.spare() + i, head): value for head, value in new.items()}
        box = {"instance": f"acme/box.{i}", "provider": "acme", "gpu": gpu, "gpu_count": count, "usd_per_hour": 1.0}
        candidates.append(dataclasses.replace(question.candidates[0], **box))
    return typed, dataclasses.replace(question, candidates=tuple(candidates))


def test_sixty_random_edits_give_what_solve_gives(tmp_path: Path) -> None:
    path, question = books.build(tmp_path, "tiny", TINY)
    sheets, n_cells, words = Sheets(path), 0, set()
    for seed in range(60):
        typed, asked = random_edit(random.Random(seed), question, sheets)
        file = edit(path, tmp_path / "edited.xlsx", typed)
        found, solved = values(recalculate_with_formualizer(file, tmp_path / "formualizer.xlsx")), solve(asked)
        errors = [key for key, value in found.items() if isinstance(value, ErrorValue)]
        assert not errors, f"seed {seed}: errors in {errors[:5]} after {typed}"
        n, wrong = books.differences(found, sheets, solved)
        assert not wrong, f"seed {seed}: {len(wrong)} of {n} differ after {typed}\n" + "\n".join(wrong[:10])
        n_cells += n
        words |= {load["Fit"] for load in books.expected(solved)}
    assert words == {"fits", "tight", "none fits", "over limit"}, "the edits do not reach every verdict"
    print(f"60 random edits: {n_cells} cells against solve")
