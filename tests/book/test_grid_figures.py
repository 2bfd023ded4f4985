"""The twelve loads of each of three models on the first sheet: KV caches, weights and bytes a token are those that are
published and those of `size`."""

from __future__ import annotations

from pathlib import Path

import books
from amounts import IN_LONG

from sheetgen import size

KIB, GIB = 2**10, 2**30
CONTEXTS = {"Chat": 4096, "RAG": 16384, "Long document": 131072}
TIERS = (1, 32, 128, 1024)
# By model: layers x 8 KV heads x head size 128, keys and values in 2 bytes; Llama 3.1's paper, table 3.
KV_BYTES_A_TOKEN = {"8b": 32 * 4096, "70b": 80 * 4096, "405b": 126 * 4096}
NAMES = {"8b": "Llama 3.1 8B", "70b": "Llama 3.1 70B", "405b": "Llama 3.1 405B"}


def test_the_grid_says_what_size_says(default_book: Path) -> None:
    sheet = books.opened_values(default_book)["Sizing sheet"]
    rows = dict(enumerate(sheet.iter_rows(max_col=9, values_only=True)))
    n_cells = 0
    for key, name in NAMES.items():
        top = next(number for number, row in rows.items() if row[0] == name and "weights" in str(row[1]))
        plain, fp8 = (size(model=key, weight_dtype=dtype, context_tokens=4096) for dtype in ("bf16", "fp8"))
        assert plain["kv_bytes_per_token"] == fp8["kv_bytes_per_token"] == KV_BYTES_A_TOKEN[key]
        in_gib = [f"{sized['weights_bytes'] / GIB:.1f}".removesuffix(".0") for sized in (plain, fp8)]
        words = f"weights {in_gib[0]} GiB in BF16, {in_gib[1]} in FP8, here in FP8"
        assert rows[top][1] == f"{words}; KV cache {KV_BYTES_A_TOKEN[key] // KIB} KiB a token in BF16"
        for i, (workload, context) in enumerate(CONTEXTS.items()):
            row = rows[top + 1 + 2 * i]
            assert row[0] == workload
            for t, at_once in enumerate(TIERS):
                kv_bytes = at_once * context * KV_BYTES_A_TOKEN[key]
                assert row[2 + 2 * t] == kv_bytes / GIB
                if IN_LONG or t == i:  # each workload at another load
                    sized = size(model=key, context_tokens=context, concurrent_requests=at_once)
                    assert sized["kv_bytes"] == kv_bytes
                n_cells += 1
    assert n_cells == 36
