"""Published worked examples (tests/data/figures.yaml) beside what sheetgen computes for the same inputs.

python tests/published_figures.py     writes docs/published-figures.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sheetgen.api import size
from sheetgen.catalog import Catalog
from sheetgen.sizing import kv_cache, memory
from sheetgen.units import DTYPES, GB, GIB, MIB

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "published-figures.md"
FIGURES: dict[str, Any] = yaml.safe_load((HERE / "data" / "figures.yaml").read_text(encoding="utf-8"))
UNITS = {"KB": 1024, "KiB": 1024, "MiB": MIB, "GB": GIB, "GiB": GIB}  # in these sources, KB and GB are binary
CATALOG = Catalog()


@dataclass(frozen=True)
class Figure:
    """One published figure. `ours` is exact; `published` is its number where it states one, in ours' unit."""

    section: str
    case: str
    stated: str
    ours: float
    shown: str
    agrees: bool
    published: float | None
    tolerance: float
    exact: float | None
    why: str


def figures() -> list[Figure]:
    """Every entry of figures.yaml, in its order."""
    return [*_per_token(), *_ratios(), *_weights(), *_caches(), *_fits(), *_speeds()]


def kv_per_token(entry: dict[str, Any]) -> float:
    """KV bytes of one token: by the catalog's model, or by the formula where the entry brings its own shape."""
    if "layers" not in entry:
        return float(size(model=entry["model"], kv_cache_dtype=entry["kv_dtype"])["kv_bytes_per_token"])
    return kv_per_token_of(entry["layers"], entry["kv_heads"], 2 * entry["head_dim"], entry["kv_dtype"])


def kv_per_token_of(layers: int, kv_heads: int, kv_width: int, kv_dtype: str) -> float:
    """KV bytes of one token in layers of full attention alone, by the formula."""
    shape = {"n_full_layers": layers, "full_kv_heads": kv_heads, "full_kv_width": kv_width}
    element = {"kv_dtype_bytes": DTYPES[kv_dtype].kv_bytes}
    return float(kv_cache.kv_bytes_per_token.of(dict.fromkeys(kv_cache.kv_bytes_per_token.inputs, 0) | shape | element))


def kv_of_load(entry: dict[str, Any]) -> float:
    """KV bytes of users x context, in blocks of one token: the sources do not round up to blocks."""
    if "layers" in entry:
        return float(entry["users"] * entry["context"] * kv_per_token(entry))
    load = {"kv_cache_dtype": entry["kv_dtype"], "context": entry["context"], "concurrent_requests": entry["users"]}
    return float(size(model=entry["model"], block_size=1, **load)["kv_bytes"])


def number_in(stated: str, relative_to: float = 0) -> float | None:
    """The bytes that a text such as '128 KB', '~6,400 KB' or '8x the GQA model' states."""
    if times := re.match(r"(\d+)x the GQA model", stated):
        return int(times[1]) * relative_to
    match = re.match(r"~?([\d,.]+) (KB|KiB|MiB|GB|GiB)", stated)
    return float(match[1].replace(",", "")) * UNITS[match[2]] if match else None


def _per_token() -> Iterator[Figure]:
    gqa = kv_per_token({"model": "llama-3.1-70b", "kv_dtype": "fp16"})
    for entry in FIGURES["kv_bytes_per_token"]:
        ours = kv_per_token(entry)
        case = f"{entry['model']}, {entry['kv_dtype']}"
        if "layers" in entry:
            case += f" ({entry['layers']} layers, {entry['kv_heads']} KV heads of {entry['head_dim']})"
        yield Figure(
            "KV bytes per token",
            case,
            entry["stated"],
            ours,
            f"{ours:,.0f} B = {ours / 1024:,.0f} KiB",
            entry["agrees"],
            number_in(entry["stated"], gqa),
            0,
            entry["exact"],
            entry.get("why") or entry.get("note", ""),
        )


def _ratios() -> Iterator[Figure]:
    latent = kv_per_token({"model": "deepseek-v3", "kv_dtype": "bf16"})
    for entry in FIGURES["kv_ratios"]:
        if "layers" in entry:
            width = entry["key_dim"] + entry["value_dim"]
            other = kv_per_token_of(entry["layers"], entry["kv_heads"], width, "bf16")
        else:
            other = kv_per_token({**entry, "kv_dtype": "bf16"})
        yield Figure(
            "KV bytes per token",
            entry["case"],
            entry["stated"],
            other / latent,
            f"{other / latent:.1f}x",
            entry["agrees"],
            10,
            0,
            entry["exact"],
            entry["why"],
        )


def _weights() -> Iterator[Figure]:
    for entry in FIGURES["weights_bytes"]:
        ours = size(model=entry["model"], weight_dtype=entry["weight_dtype"], gpu="spark")["weights_bytes"]
        yield Figure(
            "Weights",
            f"{entry['model']}, {entry['weight_dtype']}",
            entry["stated"],
            float(ours),
            f"{ours / GIB:.2f} GiB",
            entry["agrees"],
            number_in(entry["stated"]),
            0,
            entry["exact_gib"] * GIB,
            entry["why"],
        )


def _caches() -> Iterator[Figure]:
    for entry in FIGURES["kv_cache_bytes"]:
        ours = kv_of_load(entry)
        case = f"{entry['model']}, {entry['kv_dtype']}, {entry['users']} x {entry['context']:,} tokens"
        if "stated_gb" in entry:
            stated, published = f"{entry['stated_gb']:g} GB", entry["stated_gb"] * GB
            shown = f"{ours / GB:,.3g} GB" if ours < 100 * GB else f"{ours / GB:,.1f} GB"
            exact = entry["exact_gb"] * GB if "exact_gb" in entry else None
        else:
            stated, published, exact = entry["stated"], number_in(entry["stated"]), entry["exact"]
            shown = f"{ours / GIB:,.4g} GiB"
        yield Figure(
            "KV cache of a load",
            case,
            stated,
            ours,
            shown,
            entry["agrees"],
            published,
            entry.get("tol", 0),
            exact,
            entry.get("why", ""),
        )


def _fits() -> Iterator[Figure]:
    """The entries of `fit`, in their order: each has inputs of its own."""
    seven, naive, two_h200, one_h200, four_h100, three_h200, small = FIGURES["fit"]
    section = "What fits"
    charge = float(size(model="llama-2-7b", context=4096, kv_cache_dtype="fp16")["kv_bytes_per_sequence"])
    ours = float(memory.sequences_in_pool((seven["memory_gib"] - seven["weights_gib"]) * GIB, charge, charge))
    case = f"{seven['model']} on {seven['memory_gib']} GiB, {seven['weights_gib']} GiB weights, 4k each"
    yield Figure(
        section,
        case,
        f"{seven['sequences']} sequences",
        ours,
        f"{ours:.0f} sequences",
        True,
        seven["sequences"],
        0,
        seven["sequences"],
        "",
    )

    token = kv_per_token({"layers": 64, "kv_heads": 4, "head_dim": 256, "kv_dtype": "fp8"})
    budget = memory.memory_budget_bytes(naive["memory_gib"] * GIB, 0, naive["utilization"], 0, 0)
    ours = (budget - naive["weights_gib"] * GIB) / (token * naive["context"])
    case = f"naive 27b on {naive['memory_gib']} GiB x {naive['utilization']}, 128k each, fp8 KV"
    yield Figure(
        section,
        case,
        f"{naive['requests']} requests",
        ours,
        f"{ours:.2f} requests",
        True,
        naive["requests"],
        0.02,
        None,
        naive["note"],
    )

    load = {"model": "llama-3.1-70b", "kv_dtype": "fp16", "users": 32, "context": 16000}
    sized = size(
        model="70b", gpu="h200", tensor_parallel_size=2, weight_dtype="fp8", context=16000, concurrent_requests=32
    )
    yield _fit(section, two_h200, bool(sized["fits"]), "fits" if sized["fits"] else "does not fit")
    yield _fit(section, one_h200, *_alone(kv_of_load(load), (("h200", 1), ("h100", 2))))
    load = {"model": "llama-3.1-70b", "kv_dtype": "fp16", "users": 128, "context": 8000}
    yield _fit(section, four_h100, *_alone(kv_of_load(load), (("h100", 4), ("h200", 2))))

    sized = size(
        model="70b", gpu="h200", weight_dtype="fp8", kv_cache_dtype="fp8", context=12206, concurrent_requests=64
    )
    spare = (2 * CATALOG.gpu("h200").memory.marketed_gb * GB - 70 * GB - 128 * GB) / GB
    shown = f"{sized['min_gpus']} H200 ({spare:.0f} GB to spare of the marketed memory)"
    yield Figure(
        section,
        three_h200["case"],
        three_h200["stated"],
        float(sized["min_gpus"]),
        shown,
        False,
        3,
        0,
        2,
        three_h200["why"],
    )

    ours = float(memory.sequences_in_pool(24 * GB - 6 * GB, 0.5 * GIB, 0.5 * GIB))
    yield Figure(
        section,
        small["case"],
        f"{small['stated_sequences']} sequences",
        ours,
        f"{ours:.0f} sequences",
        False,
        small["stated_sequences"],
        0,
        small["exact_sequences"],
        small["why"],
    )


def _alone(kv: float, gpus: tuple[tuple[str, int], ...]) -> tuple[bool, str]:
    """The verdict on a KV cache alone in what the engine may use of any of these GPUs, and its words."""
    machines = [(n, CATALOG.gpu(name)) for name, n in gpus]
    usable = [n * memory.memory_budget_bytes(gpu.memory.engine_bytes, 0, 0.9, 0, 0) for n, gpu in machines]
    fits = any(kv <= most for most in usable)
    words = ", ".join(
        f"{most / GB:.0f} GB of {n}x {gpu.short_name}" for most, (n, gpu) in zip(usable, machines, strict=True)
    )
    return fits, f"{'fits' if fits else 'does not fit'}: {kv / GB:.0f} GB, usable are {words}"


def _fit(section: str, entry: dict[str, Any], fits: bool, shown: str) -> Figure:
    """A yes or no. Where the source is wrong it said the opposite of `fits`."""
    stated = entry["fits"] if entry["agrees"] else not entry["fits"]
    return Figure(
        section,
        entry["case"],
        "fits" if stated else "does not fit",
        float(fits),
        shown,
        entry["agrees"],
        float(stated),
        0,
        float(entry["fits"]),
        entry.get("why", ""),
    )


def _speeds() -> Iterator[Figure]:
    read, ratio, lift, *measured = FIGURES["speed"]
    h100, h200 = (CATALOG.gpu(name).memory_bandwidth_bytes_per_second for name in ("h100", "h200"))
    section = "Arithmetic of speed"
    kv = float(size(model="8b", context=4096)["kv_bytes"])
    ours = kv / h100 * 1000
    yield Figure(
        section,
        read["case"],
        f"{read['stated_ms']} ms",
        ours,
        f"{ours:.3f} ms",
        False,
        read["stated_ms"],
        0,
        read["exact_ms"],
        read["why"],
    )
    yield Figure(
        section,
        ratio["case"],
        ratio["stated"],
        h200 / h100,
        f"{h200 / h100:.3f}",
        True,
        ratio["published"],
        0.03,
        ratio["exact"],
        "",
    )
    slow, fast = (size(model="8b", gpu=name, context=4096)["tpot_seconds"] for name in ("h100", "h200"))
    yield Figure(
        section,
        lift["case"],
        lift["stated"],
        slow / fast,
        f"{slow / fast - 1:.0%}",
        lift["agrees"],
        lift["published"],
        0,
        lift["exact"],
        lift["why"],
    )
    # Each was of a prompt of 29 tokens and an answer of 200, counted while it answered: they agree where they lie in
    # the prediction's band.
    for entry in measured:
        asked = {"weight_dtype": entry["weight_dtype"], "input_tokens": 29, "output_tokens": 200, "context": 229}
        sized = size(model="8b", gpu="spark", engine="tensorrt-llm", **asked)
        ours, low, high = (1 / sized[f"tpot_seconds{end}"] for end in ("", "_high", "_low"))
        stated = entry["measured_tok_s"]
        yield Figure(
            section,
            entry["case"],
            f"{stated} tokens/s, measured",
            ours,
            f"{ours:.1f} tokens/s, 80 % band {low:.1f} to {high:.1f}",
            low <= stated <= high,
            stated,
            max(high - ours, ours - low) / stated,
            None,
            "",
        )


def document() -> str:
    """docs/published-figures.md."""
    rows = figures()
    lines = [
        "# Published figures",
        "",
        "Worked examples that others published, and what sheetgen computes for the same inputs. Where both differ,",
        "the reason stands beside it. KB and GB of the sources mean what they meant there. A load is counted in blocks",
        "of one token, as the sources do; in the engine's blocks of 16, 1,000 tokens take 1,008.",
        "",
        f"{sum(r.agrees for r in rows)} agree, {sum(not r.agrees for r in rows)} do not.",
        "A measured speed agrees where it lies in the band of the prediction.",
    ]
    for section in dict.fromkeys(r.section for r in rows):
        lines += ["", f"## {section}", ""]
        lines += ["| Case | Published | sheetgen | Agrees | Why |", "| --- | --- | --- | --- | --- |"]
        words = {True: "yes", False: "**no**"}
        lines += [
            f"| {r.case} | {r.stated} | {r.shown} | {words[r.agrees]} | {r.why} |".replace("~", "about ")
            for r in rows
            if r.section == section
        ]
    lines += ["", "## Rules", "", *(f"- {rule}" for rule in FIGURES["rules"])]
    lines += ["", "Made by `python tests/published_figures.py`; held to the code by `tests/test_published_figures.py`."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCS.parent.mkdir(exist_ok=True)
    DOCS.write_text(document(), encoding="utf-8")
