"""The choice worked out again in plain Python, from the words of the specification, row by row.

Nothing of `sheetgen.sizing`, `estimate`, `cost`, `scenario` or `recommend` is used: the raw YAML files are
read, the candidates are picked, the memory is added up and every instance, TP, DP and PP is tried, in every
purchase class. Money is exact (Decimal) and memory too (Fraction), so that a tie is a tie and a floor a floor.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from statistics import NormalDist, median
from typing import Any, NamedTuple

import yaml
from brute_speed import band, chunk_tokens, expert_bytes, largest_batch, parts, tpot, ttft

CATALOGS = Path(__file__).parent.parent / "catalogs"
GIB = 2**30
HOURS = 730
# vLLM 0.33, the default: one model runner (V2) for all, two batches in flight, states kept for the prefix cache.
UTILIZATION = Fraction(92, 100)
IN_FLIGHT = 2
GROUP_STRETCH = Fraction(3, 2)
STATE_BLOCKS, CHECKPOINT_BLOCKS = 2, 1  # the second is given back once the prompt is read
BLOCK = 16
NEAR_TIE = Decimal("0.05")
MOST_STAGES = 4
LEAST_LINK = 200e9  # bytes a second between GPUs whose data-parallel ranks share experts
LEAST_NETWORK = 400  # gigabits a second of machines that share a replica
CLASSES = ("on-demand", "reserved-1yr", "reserved-3yr", "spot", "capacity-block")
# bytes per element: a quantized linear, what quantization leaves alone, one KV element
BYTES: dict[str, tuple[int | Fraction, int, int | None]] = {
    "bf16": (2, 2, 2),
    "fp16": (2, 2, 2),
    "fp8": (1, 2, 1),
    "int8": (1, 2, None),
    "int4": (Fraction(133, 256), 2, None),  # half a byte, a 2-byte scale and a half-byte zero per 128
    "nvfp4": (Fraction(9, 16), 2, None),
    "mxfp4": (Fraction(17, 32), 2, None),
}


@cache
def read(relative: str) -> Any:
    return yaml.load((CATALOGS / relative).read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)


def yes(text: str) -> bool:
    return text == "true"


@dataclass(frozen=True)
class Offer:
    """A candidate instance, at its price in one purchase class."""

    instance: str
    provider: str
    gpu: str
    count: int
    price: Decimal
    network: Decimal  # gigabits a second; 0 where nobody says
    order: int  # in the catalog
    linked: int  # GPUs that NVLink joins: the machine's, or its rack's

    def joins(self, replica: Replica) -> bool:
        """The stages of a replica: a rack by NVLink, others by their network, a whole machine a stage."""
        if self.linked > self.count and replica.tp * replica.pp <= self.linked:
            return True
        return self.count == replica.tp and self.network >= LEAST_NETWORK

    def machines(self, replica: Replica) -> int:
        """That a replica takes: as many as have its GPUs; where they are no rack, one for each stage."""
        return -(-replica.tp * replica.dp * replica.pp // self.count)


# What a reader calls an area, by the names of its regions: not by what the catalogs say of them.
IN_EU = (
    "eu-central-1 eu-north-1 eu-south-1 eu-south-2 eu-west-1 eu-west-3 francecentral francesouth germanynorth "
    "germanywestcentral italynorth northeurope norwayeast norwaywest polandcentral spaincentral swedencentral "
    "westeurope europe-north1 europe-west1 europe-west3 europe-west4 europe-west8 europe-west9 europe-west10 "
    "eu-central-2 switzerlandnorth switzerlandwest europe-west6 eu-west-2 uksouth ukwest europe-west2"
)
IN_AP = (
    "ap-east-1 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2 ap-southeast-1 ap-southeast-2 "
    "ap-southeast-3 ap-southeast-4 ap-southeast-5 australiacentral australiacentral2 australiaeast australiasoutheast "
    "centralindia eastasia indonesiacentral japaneast japanwest jioindiacentral jioindiawest koreacentral koreasouth "
    "malaysiawest southeastasia southindia asia-east1 asia-northeast1 asia-northeast3 asia-south1 asia-south2 "
    "asia-southeast1 asia-southeast2 australia-southeast1"
)
IN_US = (
    "us-east-1 us-east-1-atl-2a us-east-1-dfw-2a us-east-2 us-west-1 us-west-2 us-west-2-phx-2a centralus eastus "
    "eastus2 northcentralus southcentralus westcentralus westus westus2 westus3 us-central1 us-east1 us-east4 us-east5 "
    "us-south1 us-west1 us-west3 us-west4 us"
)
AREAS = {
    "eu": frozenset(IN_EU.split()),
    "uk": frozenset(("eu-west-2", "uksouth", "ukwest", "europe-west2")),
    "ap": frozenset(IN_AP.split()),
    "us": frozenset(IN_US.split()),
    "eu-central-1": frozenset(("eu-central-1",)),
}


FAR = 3  # times: from the row's own price, and beyond what providers take for the GPU


@cache
def taken(gpu: str, purchase: str) -> tuple[Fraction, Fraction]:
    """The least and the most that any provider takes for an hour of a GPU; the least too as on demand has it, at the
    class's usual share."""
    names, shares = read("index.yaml")["gpus"], []
    of_gpu: dict[str, list[Fraction]] = defaultdict(list)
    for file in sorted((CATALOGS / "instances").glob("*.yaml")):
        for row in read(f"instances/{file.name}")["instances"]:
            prices = {p["purchase"]: Fraction(p["usd_per_hour"]) for p in row.get("prices", [])}
            if purchase in prices and "on-demand" in prices:
                shares.append(prices[purchase] / prices["on-demand"])
            if names[row["gpu"]] == names[gpu]:
                for name, usd in prices.items():
                    of_gpu[name].append(usd / Fraction(row["gpu_count"]))
    share = median(shares) if shares else Fraction(1)
    low = [*of_gpu[purchase], *(usd * share for usd in of_gpu["on-demand"])]
    return min(low), max(max(prices) for prices in of_gpu.values() if prices)


def is_plausible(usd: Decimal, row: Any, purchase: str) -> bool:
    """True where a price of a region may choose hardware."""
    own = [Fraction(p["usd_per_hour"]) for p in row["prices"] if p["purchase"] == purchase]
    least, most = taken(row["gpu"], purchase)
    of_gpu = Fraction(usd) / Fraction(row["gpu_count"])
    is_near = all(month / FAR <= Fraction(usd) <= month * FAR for month in own)
    return is_near and least / FAR <= of_gpu <= most * FAR


def prices_in(provider: str, row: Any, purchase: str, area: str) -> list[Decimal]:
    """Prices of a row in one class: the row's own, or of all regions of an area, but implausible ones."""
    own = [p for p in row["prices"] if p["purchase"] == purchase]
    own = [p for p in own if not purchase.startswith("reserved") or p.get("kind")]
    prices = [Decimal(p["usd_per_hour"]) for p in own if not area or row["region"] in AREAS[area]]
    for block in read(f"regions/{provider}.yaml")["prices"] if area else ():
        if block["purchase"] == purchase:
            of_type = block["usd_per_hour"].get(row["type"], {})
            there = [Decimal(usd) for region, usd in of_type.items() if region in AREAS[area]]
            prices += [usd for usd in there if is_plausible(usd, row, purchase)]
    return prices


class OwnRow(NamedTuple):
    """A row of a price list of one's own, sold on demand alone: a machine, or one GPU (`n_gpus` 0)."""

    provider: str
    type: str
    gpu: str
    n_gpus: int
    price: str
    area: str

    def offers(self, discount: str, order: int) -> list[Offer]:
        """The machine; of one GPU a machine of each size that a replica may have."""
        price = Decimal(self.price) * (1 - Decimal(discount))
        name = f"{self.provider}/{self.type}"
        if self.n_gpus:
            return [Offer(name, self.provider, self.gpu, self.n_gpus, price, Decimal(0), order, self.n_gpus)]
        sizes = enumerate((1, 2, 4, 8))
        return [
            Offer(f"{name} x{n}", self.provider, self.gpu, n, n * price, Decimal(0), order + i, n) for i, n in sizes
        ]


@cache
def candidates(
    discount: str = "0", purchase: str = "on-demand", area: str = "", own: tuple[OwnRow, ...] = ()
) -> tuple[Offer, ...]:
    """Rows of aws, azure and gcp with a price in the class, whole instances of NVIDIA data-centre GPUs of 22 GiB or
    more whose memory is known; per provider, GPU and count the cheapest. A contract takes `discount` off every price;
    a reserved price without a stated term is no price. In an area each row has its cheapest price there. Rows of one's
    own take part whatever their provider."""
    providers = sorted(("aws", "azure", "gcp"), key=lambda p: int(read(f"instances/{p}.yaml")["order"]))
    names = read("index.yaml")["gpus"]
    offers: list[Offer] = []
    for provider in providers:
        for row in read(f"instances/{provider}.yaml")["instances"]:
            gpu = read(f"gpus/{names[row['gpu']]}.yaml")
            count = Decimal(row["gpu_count"])
            sold = purchase in row.get("sold_as", [purchase])
            prices = prices_in(provider, row, purchase, area) if sold else []
            whole = row["unit"] == "instance" and count >= 1 and count == int(count)
            data_centre = gpu["vendor"] == "nvidia" and yes(gpu["data_center"])
            is_listed = gpu["memory"]["basis"] in ("measured", "derived", "stated")
            large = int(gpu["memory"]["engine_bytes"]) >= 22 * GIB
            if whole and data_centre and is_listed and large and prices and row["offer"] == "list":
                name, network = f"{provider}/{row['type']}", row.get("network_gbps", "null")
                price = min(prices) * (1 - Decimal(discount))
                gigabits = Decimal(0 if network == "null" else network)
                linked = max(int(count), int(row.get("nvlink_domain_gpus", 0)))
                offers.append(Offer(name, provider, gpu["id"], int(count), price, gigabits, len(offers), linked))
    for row in own:
        if purchase == "on-demand" and area in ("", row.area):
            offers += row.offers(discount, len(offers))
    best: dict[Any, Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.gpu, offer.count)
        if key not in best or offer.price < best[key].price:
            best[key] = offer
    return tuple(offer for offer in offers if best[(offer.provider, offer.gpu, offer.count)] is offer)


def runs(gpu: str, weight_dtype: str, kv_dtype: str) -> bool:
    entry = read(f"gpus/{gpu}.yaml")
    return weight_dtype in entry["weights_run"] and kv_dtype in entry["kv_run"]


@cache
def batch_limits(gpu: str) -> tuple[int, int]:
    """The engine's default max_num_seqs and max_num_batched_tokens on this GPU."""
    tokens = chunk_tokens("vllm", read(f"gpus/{gpu}.yaml"))
    return 1024 if tokens > 2048 else 256, tokens


def weights_in_use(model: str, asked: str) -> str:
    """The precision that is meant: as published, or as one deploys, FP8 where the published weights have 16 bits and a
    checkpoint of them in FP8 is listed."""
    entry = read(f"models/{model}.yaml")
    published = str(entry["weight_dtype"])
    listed = [c for c in entry.get("checkpoints") or [] if "of" not in c and c["hf_id"] != "null"]
    deployed = published in ("bf16", "fp16") and any(c["weight_dtype"] == "fp8" for c in listed)
    return {"recommended": "fp8" if deployed else published, "published": published, "auto": published}.get(
        asked, asked
    )


def weights(model: str, dtype: str) -> int | Fraction:
    """Bytes loaded: of a known checkpoint of these weights (one without scales for the cache first; the vendor's own,
    then NVIDIA's, then RedHatAI's), else by the formula."""
    entry = read(f"models/{model}.yaml")
    own = entry["hf_id"]

    def rank(checkpoint: Any) -> tuple[bool, int]:
        name, has_scales = checkpoint["hf_id"], "kv_cache_dtype" in checkpoint
        if name == "null":
            return has_scales, 4
        order = [own.split("/")[0], "nvidia", "RedHatAI"]
        owner = name.split("/")[0]
        return has_scales, -1 if name == own else order.index(owner) if owner in order else 3

    p = {k: int(v) for k, v in entry["params"].items() if k != "note"}
    published = [c for c in entry.get("checkpoints") or [] if c["weight_dtype"] == dtype and "of" not in c]
    size = int(min(published, key=rank)["size_bytes"]) if published else None
    if size is not None and not p.get("mtp_extra"):
        return size
    linear, other, _ = BYTES[dtype]
    quantized = p["body"] + p["routed_experts"] - p.get("unquantized", 0)
    counted = math.ceil(quantized * linear + (p["total"] - quantized) * other)
    if size is None:
        return counted
    # Layers that wait for speculation, and a second embedding and head with them, are not loaded.
    waiting = p["mtp_extra"] * Fraction(linear) + (p["embedding"] + p["lm_head"]) * other
    return max(Fraction(min(size, counted)), size - waiting)


def layer_weights(model: str, dtype: str, tp: int) -> tuple[Fraction, list[int], int]:
    """Bytes of all layers on one rank; embedding and head; and the rotary tables that each GPU has."""
    entry = read(f"models/{model}.yaml")
    p = entry["params"]
    linear, other, _ = BYTES[dtype]
    ends = [int(p["embedding"]) * other, int(p["lm_head"]) * other]
    copied = int(p.get("copied", 0)) * Fraction(linear)
    twice = 0  # key and value projections beyond one copy, where ranks outnumber heads
    for g in entry["attention"]:
        if g["kind"] in ("full", "windowed", "chunked"):
            heads = int(g["n_kv_heads"])
            width = int(g["key_width"]) + int(g["value_width"])
            twice += int(g["n_layers"]) * (max(1, -(-heads // tp)) * tp - heads) * width
    twice_bytes = twice * int(entry["hidden_size"]) * Fraction(linear)
    absorbed = sum(int(g["n_layers"]) * int(g.get("absorbed_elements", 0)) for g in entry["attention"])
    rank = (weights(model, dtype) - sum(ends) - copied + twice_bytes + absorbed * other) / tp + copied
    if entry.get("experts") in (None, "null") and entry.get("intermediate_size") not in (None, "null"):
        down = int(entry["hidden_size"]) * int(entry["intermediate_size"]) * Fraction(linear) / tp
        up = down * (1 if entry.get("gated_ffn") == "false" else 2)
        for tensor in (down, up):  # torch rounds large tensors up to 2 MiB, unless more than half of it is left
            rest = math.ceil(tensor / 2**21) * 2**21 - tensor
            rank += int(entry["n_layers"]) * (rest if tensor >= 10 * 2**20 and rest <= 2**20 else 0)
    return rank, ends, int(entry.get("rope_table_elements", 0)) * other


def without_hbm(architecture: str) -> bool:
    """GPUs with GDDR memory, by their chip."""
    return architecture.split()[0] in ("Ada", "Turing") or architecture.endswith(
        ("GA102", "GA106", "GB202", "GB203", "GB10")
    )


def graphs(n_layers: int, seqs: int, architecture: str) -> int:
    """CUDA graphs as the engine estimates them before it takes its pool: 0.05 GiB, and of each layer as much for each
    batch size that vLLM captures, of decoding up to `seqs` and of mixed batches up to twice as many."""
    captured = [1, 2, 4, *range(8, 257, 8), *range(272, 513, 16)]
    sizes = len([size for most in (seqs, 2 * seqs) for size in captured if size <= most])
    workspace = Fraction("0.258" if without_hbm(architecture) else "0.119") * 2**20
    return round(Fraction(5, 100) * GIB) + math.ceil(n_layers * sizes * workspace)


def overheads(model: str, dtype: str, tp: int, seqs: int, batched: int, architecture: str) -> tuple[Fraction, Fraction]:
    """Activations, CUDA graphs and memory outside torch on a GPU without stages, and on a stage."""
    entry = read(f"models/{model}.yaml")
    other = BYTES[dtype][1]
    hidden, vocab = int(entry["hidden_size"]), int(entry["vocab_size"])

    def number(key: str) -> int:
        return 0 if entry.get(key) in (None, "null") else int(entry[key])

    copy = Fraction({"fp8": "1", "fp8_e5m2": "1", "int8": "1", "nvfp4": "9/16"}.get(dtype, "0"))
    matrices = 2 if entry.get("gated_ffn") == "false" else 3
    sampler = seqs * vocab * (other + 12) + vocab * 528 + (batched + seqs) * hidden * other
    tables = seqs * vocab * Fraction(33, 8)  # a count of 4 bytes and a bit of the prompt
    compiled = Fraction(vocab * hidden * other, tp)
    wide = Fraction((matrices * other + copy) * number("intermediate_size")) / tp
    forward = batched * (wide + Fraction(395, 100) * hidden * other)
    peak = max(Fraction(sampler), forward, compiled)
    if entry.get("experts") not in (None, "null"):
        own = Fraction(number("moe_intermediate_size") or number("intermediate_size"), tp)
        rows = batched * int(entry["experts"]["top_k"])
        peak += rows * (max(own, Fraction(hidden)) + max(2 * own, Fraction(hidden))) * other
    encoding = Fraction(0)
    if entry.get("encoder") not in (None, "null"):
        tokens, elements = (int(entry["encoder"][k]) for k in ("max_item_tokens", "max_item_elements"))
        images = max(1, batched // tokens)
        peak += images * (tokens * hidden + elements) * other
        if "max_item_patches" in entry["encoder"]:  # four copies of its residual stream, two widths of its own layer
            patches, width, own_ffn = (
                int(entry["encoder"][k]) for k in ("max_item_patches", "hidden_size", "intermediate_size")
            )
            encoding = images * (patches * (4 * width + Fraction(2 * own_ffn, tp)) + elements) * other
    beside = round(Fraction(4, 100) * GIB) + tables
    peak = max(peak + beside, encoding + beside)
    on_pcie = without_hbm(architecture) or architecture.split()[0] in ("Ampere", "Volta")
    apart = (
        {1: "0.25", 2: "0.74", 4: "1.7", 8: "2.1"}[tp] if on_pcie else {1: "0.25", 2: "2.07", 4: "2.17", 8: "2.25"}[tp]
    )
    kept = math.ceil(peak) + graphs(int(entry["n_layers"]), seqs, architecture)
    alone = kept + round(Decimal(apart) * GIB)
    staged = kept + round(Decimal("0.07" if tp == 1 else apart) * GIB) + 2 * batched * hidden * other
    return Fraction(alone), Fraction(staged)


def groups(model: str, tp: int, kv_dtype: str, draft: str = "", gpu: str = "") -> tuple[Any, Any, Any, int, bool]:
    """Layers of one tensor-parallel rank: (layers, bytes of one layer a token) of growing and of windowed
    layers, (layers, bytes) of state layers, the window, and whether it is chunked. A draft's layers see every token."""
    b = BYTES[kv_dtype][2]
    assert b is not None
    grow_layers, grow_bytes = 0, Fraction(0)
    window_layers, window_bytes, window, chunked = 0, 0, 0, False
    state_layers, state_bytes = 0, 0
    of_draft = read(f"models/{draft}.yaml")["attention"] if draft else []
    for g in (*read(f"models/{model}.yaml")["attention"], *of_draft):
        n, kind = int(g["n_layers"]), g["kind"]
        if kind in ("full", "windowed", "chunked"):
            heads = max(1, -(-int(g["n_kv_heads"]) // tp))
            layer = heads * (int(g["key_width"]) + int(g["value_width"])) * b
            if kind == "full":
                grow_layers, grow_bytes = grow_layers + n, grow_bytes + n * layer
            else:
                window_layers, window_bytes = window_layers + n, layer
                window, chunked = int(g["window_tokens"]), kind == "chunked"
        elif kind == "mla":  # one latent, on every rank
            entry = 0 if keeps_plain_latents(gpu) else int(g.get("fp8_entry_bytes", 0))
            layer = entry if entry and b == 1 else int(g["latent_width"]) * b
            grow_layers, grow_bytes = grow_layers + n, grow_bytes + n * layer
        elif kind == "indexer":
            grow_bytes += n * int(g["entry_bytes"])
        elif kind == "compressed":
            elements = Fraction(int(g["width"]) + int(g.get("index_width", 0)), int(g["tokens_per_entry"]))
            grow_layers, grow_bytes = grow_layers + n, grow_bytes + n * elements * b
        elif kind == "recurrent":
            size = {"fp32": 4, "bf16": 2, "fp16": 2}[g["state_dtype"]]
            state_layers += n
            layer = int(g["conv_elements"]) * 2 + int(g["state_elements"]) * size
            state_bytes = -(-layer // tp)
    growing = (grow_layers, grow_bytes / grow_layers if grow_layers else 0)
    return growing, (window_layers, window_bytes), (state_layers, state_bytes), window, chunked


WITHOUT_FP8_LATENTS = ("Ampere", "Turing", "Volta")  # for which vLLM keeps no latents in FP8
WITHOUT_SPARSE = ("Ampere", "Ada", "Turing", "Volta")  # architectures for which vLLM has no kernel of sparse attention


def keeps_plain_latents(gpu: str) -> bool:
    """True where sparse attention keeps FP8 latents without scales: on SM100 and SM103."""
    return bool(gpu) and read(f"gpus/{gpu}.yaml")["architecture"] in ("Blackwell", "Blackwell Ultra")


class Layout(NamedTuple):
    """How vLLM lays the cache of one rank out: groups of layers of one size, with pages of one size."""

    page_bytes: Fraction  # one page of one group
    window: int
    chunked: bool
    groups: dict[str, int]  # of each kind: growing, windowed, state
    blocks: dict[str, int]  # tokens in a page of each kind
    waiting: tuple[tuple[int, int, int], ...] = ()  # of what waits to be compressed: groups, window, tokens in a page


def checkpoint_tokens(model: str) -> int:
    """Tokens between the states that a prompt leaves in the prefix cache from within it; 0 where it leaves none."""
    return max(int(g.get("checkpoint_tokens", 0)) for g in read(f"models/{model}.yaml")["attention"])


@cache
def layout(
    model: str, tp: int, kv_dtype: str, draft: str = "", gpu: str = "", leaves_checkpoints: bool = True
) -> Layout:
    """The layers of a model in groups of one size, with pages of one size; before 0.33 no prompt leaves checkpoints."""
    if any(g["kind"] == "compressed" for g in read(f"models/{model}.yaml")["attention"]):
        return packed_layout(model, draft, tp, kv_dtype)
    (n_grow, grow), (n_win, win), (n_state, state), window, chunked = groups(model, tp, kv_dtype, draft, gpu)
    counts = [n for n in (n_grow, n_win, n_state) if n]
    size = max(counts) if max(counts) < min(counts) * GROUP_STRETCH else min(counts)
    grow_block = win_block = BLOCK
    if n_grow and n_win:
        grow_block *= max(1, math.floor(Fraction(win) / Fraction(grow)))
        win_block *= max(1, math.floor(Fraction(grow) / Fraction(win)))
    if n_grow and n_state:
        step = max(BLOCK, checkpoint_tokens(model) * leaves_checkpoints)
        grow_block = max(grow_block, step * math.ceil(Fraction(state) / (Fraction(grow) * step)))
    page = max(grow_block * grow if n_grow else 0, win_block * win if n_win else 0, 0 if n_grow else state)
    kinds = {"growing": n_grow, "windowed": n_win, "state": n_state}
    return Layout(
        Fraction(page) * size,
        window,
        chunked,
        {kind: -(-n // size) for kind, n in kinds.items()},
        {"growing": grow_block, "windowed": win_block},
    )


def packed_layout(model: str, draft: str, tp: int, kv_dtype: str) -> Layout:
    """DeepSeek V4, as vLLM's model classes state each layer's pages and its planner packs them: blocks of 256 tokens,
    windows of 64, keys and weights that wait to be compressed as 32-bit floats in pages for 4 and 8 tokens."""
    by_kind = {(g["kind"], g.get("tokens_per_entry")): g for g in read(f"models/{model}.yaml")["attention"]}
    window, coarse, fine = (by_kind[key] for key in (("windowed", None), ("compressed", "128"), ("compressed", "4")))
    n_window, n_coarse, n_fine = (int(g["n_layers"]) for g in (window, coarse, fine))
    width, index_width = int(fine["width"]), int(fine["index_width"])
    byte = 1 if kv_dtype.startswith("fp8") else 2

    def page(content: int) -> int:
        return -(-content // 576) * 576

    entry = 448 + 64 * 2 + 8 if byte == 1 else width * 2
    pages = {
        "fine": page(64 * entry) + page(64 * (index_width + 4)),
        "coarse": page(2 * entry),
        "window": page(64 * entry),
        "fine waiting": page(4 * 2 * 2 * width * 4) + page(4 * 2 * 2 * index_width * 4),
        "coarse waiting": page(8 * 2 * width * 4),
    }
    counts = (n_window, n_fine, n_coarse)
    repeats = min(range(n_fine, max(counts) + 1), key=lambda size: (sum(-n % size for n in counts), -size))
    n_windows, n_waiting = -(-n_window // repeats), -(-n_coarse // repeats)
    block = max(
        n_fine * pages["fine"] + n_coarse * pages["coarse"],
        -(-n_window // n_windows) * pages["window"],
        n_fine * pages["fine waiting"],
        -(-n_coarse // n_waiting) * pages["coarse waiting"],
    )
    if draft:
        block += 256 * int(groups(draft, tp, kv_dtype)[0][0] * groups(draft, tp, kv_dtype)[0][1])
    return Layout(
        Fraction(block),
        int(window["window_tokens"]),
        False,
        {"growing": 1, "windowed": n_windows, "state": 0},
        {"growing": 256, "windowed": 64},
        ((1, 8, 4), (n_waiting, 128, 8)),
    )


def charge(
    model: str, tp: int, kv_dtype: str, context: int, batched: int, draft: str = "", gpu: str = "", stages: int = 1
) -> tuple[Fraction, Fraction]:
    """Bytes that vLLM's admission charges one sequence on one rank, windows with a batch for each stage and one more;
    and what it keeps while it decodes."""
    shape = layout(model, tp, kv_dtype, draft, gpu)
    kept = shape.groups["growing"] * -(-context // shape.blocks["growing"]) + STATE_BLOCKS * shape.groups["state"]
    checkpoints = CHECKPOINT_BLOCKS if checkpoint_tokens(model) else 0
    pages, block = kept + checkpoints * shape.groups["state"], shape.blocks["windowed"]
    if shape.groups["windowed"]:
        held = min(context, shape.window - (0 if shape.chunked else 1) + (stages - 1 + IN_FLIGHT) * batched)
        pages += shape.groups["windowed"] * (-(-held // block) + (0 if shape.chunked else 1))
        kept += shape.groups["windowed"] * min(pages_read(shape.window, shape.chunked, block), -(-context // block))
    for n_groups, window, tokens in shape.waiting:
        pages += n_groups * (-(-min(context, window - 1 + (stages - 1 + IN_FLIGHT) * batched) // tokens) + 1)
        kept += n_groups * min(pages_read(window, False, tokens), -(-context // tokens))
    return shape.page_bytes * pages, shape.page_bytes * kept


@cache
def pages_read(window: int, chunked: bool, block: int) -> int:
    """Most pages that the steps in flight read of a windowed layer while it decodes, wherever the token stands."""
    tokens = window + IN_FLIGHT - 1
    if chunked:
        return len({token // block for token in range(tokens)})
    firsts = range(block)
    return max((first + tokens - 1) // block - first // block + 1 for first in firsts)


def hold(pool: Fraction, need: Fraction, kept: Fraction) -> int:
    """Sequences of a pool: the last one asks for all that admission charges, those before it hold what they keep."""
    return 1 + math.floor((pool - need) / kept) if pool >= need else 0


@cache
def workload(context: int, asked: bool) -> tuple[int, int, float, float]:
    """Prompt, answer and targets of TPOT and TTFT in ms: a load of one's own is half and half below 2,048 tokens, else
    answers 1,024; the others are the catalog's, the shortest that reaches the context; targets grow with the load."""
    if asked:
        answer = context // 2 if context < 2048 else 1024
        prompt = context - answer
    else:
        entries = read("workloads.yaml")["workloads"]
        lengths = sorted(((int(w["input_tokens"]), int(w["output_tokens"])) for w in entries), key=sum)
        prompt, answer = next((pair for pair in lengths if sum(pair) >= context), lengths[-1])
        context = prompt + answer
    return prompt, answer, 50 * max(1, context / 16384) ** (1 / 3), 1000 + 0.4 * prompt


PEAK_HOUR, BURST = 0.12, 1.3  # of a day's requests those of the busiest hour, and of its mean rate the busiest minutes


def asked_per_day(context: int, asked: bool) -> float:
    """Requests of a person: a load of one's own 20, those of the catalog their own."""
    prompt, reply = workload(context, asked)[:2]
    entries = [] if asked else read("workloads.yaml")["workloads"]
    lengths = {(int(w["input_tokens"]), int(w["output_tokens"])): w["requests_per_user_per_day"] for w in entries}
    return float(lengths.get((prompt, reply), 20))


class Start(NamedTuple):
    """A start-up log of a deployment without data-parallel ranks: the pool of a GPU, and to how many bytes it holds."""

    model: str
    weight_dtype: str
    gpu: str
    tp: int
    pool_bytes: int
    error_bytes: float


@dataclass(frozen=True)
class Load:
    """A load as asked: of a catalog's workload (by its context) or, `asked`, of one's own; targets in milliseconds
    where others than the workload's are asked for, `math.inf` for none; of a rate the requests per second, and which
    share of them may wait."""

    model: str
    context: int
    requests: int
    weight_dtype: str
    kv_dtype: str
    asked: bool = False
    tpot_ms: float | None = None
    ttft_ms: float | None = None
    may_span: bool = True  # machines, where nothing else holds it
    survive: str = "none"  # the loss of a replica, machine or zone, of so many zones
    zones: int = 3
    draft: str = ""
    rate: float = 0.0
    wait: float = 0.05
    confidence: float = 0.7
    purchase: str = "on-demand"
    people: int = 0  # of whom a rate is
    starts: tuple[Start, ...] = ()

    def start(self, gpu: str, tp: int, dp: int) -> Start | None:
        """The start-up log of the deployment, if any."""
        same = (self.model, self.weight_dtype, gpu, tp, 1)
        return next((start for start in self.starts if (*start[:4], dp) == same), None)

    @property
    def targets(self) -> tuple[float, float]:
        usual = workload(self.context, self.asked)[2:]
        own = (self.tpot_ms, self.ttft_ms)
        tpot_ms, ttft_ms = (u if target is None else target for target, u in zip(own, usual, strict=True))
        return tpot_ms / 1000, ttft_ms / 1000


@dataclass(frozen=True, eq=False)
class Replica:
    """A replica on one kind of GPU: what memory holds of a rank, and how fast it is."""

    tp: int
    dp: int
    pp: int
    sequences: int  # of one rank, all its stages
    times: dict[str, float]

    @lru_cache(maxsize=4096)  # noqa: B019  # many offers have the same replica, and all are kept
    def requests(self, seconds: float, first: float) -> int:
        """Requests that it serves within the targets of a token and of the first one."""
        enough = -(-self.sequences // self.pp)
        batch = largest_batch(self.times, ttft, first, largest_batch(self.times, tpot, seconds, enough))
        return self.dp * min(self.sequences, batch * self.pp)


@cache
def room(wait: float) -> float:
    """z, at which 1 / (1 + z P(z) / p(z)) of the requests wait: by halving."""
    low, high = 0.0, 10.0
    for _ in range(200):
        z = (low + high) / 2
        below, density = math.erfc(-z / math.sqrt(2)) / 2, math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        low, high = (z, high) if 1 / (1 + z * below / density) > wait else (low, z)
    return low


def turn(load: Load, replica: Replica, in_flight: int) -> float:
    """Seconds of a request where a replica has `each` at once."""
    batch = in_flight / (replica.dp * replica.pp)
    answer_tokens = workload(load.context, load.asked)[1]
    return ttft(replica.times, batch) + (answer_tokens - 1) * tpot(replica.times, batch)


MOST_PROMPTS = 0.8  # of a replica's time


def prompt_seconds(replica: Replica) -> float:
    """Work of a prompt on a replica, whose ranks and stages work side by side."""
    return replica.times["tpot_left"] * replica.times["prompt"] / (replica.times["ranks"] * replica.pp)


def prompt_replicas(load: Load, replica: Replica) -> int:
    """Replicas whose prompts take no more of their time than they may."""
    return math.ceil(load.rate * prompt_seconds(replica) / MOST_PROMPTS * (1 - 1e-12))


def mean_places(load: Load, replica: Replica, in_flight: int) -> float:
    """Places of a rate that are taken on average."""
    return load.rate * turn(load, replica, in_flight)


def chance_places(load: Load, replica: Replica, in_flight: int) -> int:
    """Places of a rate with allowance for chance."""
    offered = mean_places(load, replica, in_flight)
    return math.ceil((offered + room(load.wait) * math.sqrt(offered)) * (1 - 1e-12))


def places(load: Load, replica: Replica, in_flight: int) -> int:
    """Requests at once to plan for: as stated; of a rate those of full replicas, with allowance for chance, and no
    fewer than those of as many replicas as the prompts take."""
    if not load.rate:
        return load.requests
    return max(chance_places(load, replica, in_flight), in_flight * prompt_replicas(load, replica))


@cache
def layouts(model: str) -> tuple[tuple[int, int], ...]:
    """TP x DP of at most 8: TP divides the query heads, and KV heads or is divided by them; DP for experts alone."""
    entry = read(f"models/{model}.yaml")
    heads = int(entry["n_heads"])
    kv = [int(g["n_kv_heads"]) for g in entry["attention"] if "n_kv_heads" in g]
    sizes = [t for t in (1, 2, 4, 8) if heads % t == 0 and all(k % t == 0 or t % k == 0 for k in kv)]
    ranks = (1,) if entry.get("experts") in (None, "null") else (1, 2, 4, 8)
    return tuple((tp, dp) for tp in sizes for dp in ranks if tp * dp <= 8)


@cache
def parts_of_stage(model: str, stages: int) -> tuple[Fraction, Fraction]:
    """The most of the layers' weights on one stage, and of the layers with a cache: layer by layer where they differ.
    Of a division that is not even the last but one and those before it take one layer more."""
    entry = read(f"models/{model}.yaml")
    n, runs = int(entry["n_layers"]), entry.get("layers_in_order") or []
    if not runs:
        return (Fraction(-(-n // stages), n),) * 2
    layers = [(int(run["params"]), int(yes(run["caches"]))) for run in runs for _ in range(int(run["n"]))]
    sizes = [n // stages] * stages
    for i in range(n % stages):
        sizes[-2 - i] += 1
    held = []
    for size in sizes:
        held.append([sum(column) for column in zip(*layers[:size], strict=True)])
        layers = layers[size:]
    weights_of, caches_of = zip(*held, strict=True)
    return Fraction(max(weights_of), sum(weights_of)), Fraction(max(caches_of), sum(caches_of))


BAND_END = 1.2816  # standard deviations to an end of an 80 % band


def slower(ends: tuple[float, float], confidence: float) -> float:
    """The factor of a time that is not exceeded with that chance: both sides of a band have a spread of their own."""
    z = NormalDist().inv_cdf(confidence)
    spread = (math.log(ends[1]) if z >= 0 else -math.log(ends[0])) / BAND_END
    return math.exp(z * spread)


def pool_error(hardware: dict[str, Any], confidence: float) -> float:
    """Bytes that a pool has more than predicted with that chance: this version is none that constants were set
    on, so by all other logs."""
    engine, z = read("engines/vllm.yaml"), NormalDist().inv_cdf(confidence)
    scope = "cards" if without_hbm(hardware["architecture"]) else "other"
    scope = "shared" if yes(hardware["memory"].get("shared_with_host", False)) else scope
    [band] = [band for band in engine["bands"] if (band["figure"], band["scope"]) == ("kv_pool", scope)]
    end = float(band["low"]) if z >= 0 else -float(band["high"])
    return 2**30 * end * z / BAND_END


def memory_budget(gpu: str) -> int:
    """Bytes of a GPU that the engine may use."""
    return math.floor(int(read(f"gpus/{gpu}.yaml")["memory"]["engine_bytes"]) * UTILIZATION)


def predicted_pool(model: str, weight_dtype: str, gpu: str, tp: int) -> int:
    """The KV pool of a GPU without data-parallel ranks, in whole bytes; below 0 where the weights do not fit."""
    rank, ends, tables = layer_weights(model, weight_dtype, tp)
    architecture = read(f"gpus/{gpu}.yaml")["architecture"]
    alone = overheads(model, weight_dtype, tp, *batch_limits(gpu), architecture)[0]
    return math.floor(memory_budget(gpu) - alone - math.ceil(rank + Fraction(sum(ends), tp) + tables))


@lru_cache(maxsize=4096)
def replica(
    model: str,
    context: int,
    weight_dtype: str,
    kv_dtype: str,
    asked: bool,
    draft: str,
    gpu: str,
    tp: int,
    dp: int,
    spans: bool,
    confidence: float = 0.5,
    start: Start | None = None,
) -> Replica | None:
    """A replica inside one machine or on the fewest stages of 2 to 4, each a machine; None where memory does not hold
    the weights and one request. Times and memory are those that hold with the chance asked for."""
    entry, hardware = read(f"models/{model}.yaml"), read(f"gpus/{gpu}.yaml")
    if hardware["architecture"].startswith(WITHOUT_SPARSE) and {"indexer", "compressed"} & {
        layer_group["kind"] for layer_group in entry["attention"]
    }:
        return None
    is_latent = any(layer_group["kind"] == "mla" for layer_group in entry["attention"])
    if is_latent and kv_dtype.startswith("fp8") and hardware["architecture"].startswith(WITHOUT_FP8_LATENTS):
        return None
    seqs, batched = batch_limits(gpu)
    need, keep = charge(model, tp, kv_dtype, context, batched, draft, gpu)
    error = Fraction(pool_error(hardware, confidence))
    budget = memory_budget(gpu) + error
    rank, ends, tables = layer_weights(model, weight_dtype, tp)
    experts = Fraction(expert_bytes(entry["params"], BYTES[weight_dtype], weights(model, weight_dtype)))
    rank -= experts / tp * (1 - Fraction(1, dp))  # attention and all else is on every data-parallel rank
    alone, staged = overheads(model, weight_dtype, tp, seqs, batched, hardware["architecture"])
    if draft:  # divided over the ranks, and whole on a stage
        beside = math.ceil(Fraction(weights(draft, read(f"models/{draft}.yaml")["weight_dtype"]), tp))
        alone, staged = alone + beside, staged + beside
    held, stages = 0, 1
    if not spans:
        pool = budget - alone - math.ceil(rank + Fraction(sum(ends), tp) + tables)
        if start:
            most = Fraction(start.error_bytes * abs(NormalDist().inv_cdf(confidence)) / BAND_END)
            pool = start.pool_bytes + max(-most, min(most, error))
        held = hold(pool, need, keep)
    else:
        for stages in range(2, MOST_STAGES + 1):  # the fullest: most layers, the larger of embedding and head
            heaviest, part = parts_of_stage(model, stages)
            pool = budget - staged - rank * heaviest - Fraction(max(ends), tp) - tables
            need, keep = charge(model, tp, kv_dtype, context, batched, draft, gpu, stages)
            held = hold(pool, need * part, keep * part)
            if held >= 1:
                break
    if held < 1:
        return None
    prompt, reply = workload(context, asked)[:2]
    loaded = float(weights(model, weight_dtype))
    times = parts(model, gpu, tp, weight_dtype, kv_dtype, prompt, reply, loaded, BYTES, stages, dp, draft=draft)
    for figure in ("tpot", "ttft"):
        times[f"{figure}_left"] *= slower(band(figure, model, gpu, tp, stages, dp, bool(draft)), confidence)
    return Replica(tp, dp, stages, min(held, seqs), times)


@dataclass(frozen=True)
class Plan:
    """One way to serve the load: so many replicas on so many instances."""

    load: Load
    offer: Offer
    replica: Replica
    requests: int  # of one replica, within memory and targets
    replicas: int
    instances: int
    native: bool  # the GPU computes in the weights' precision
    places: int  # requests at once to plan for
    needed: int = 0  # replicas without a loss

    @property
    def monthly(self) -> Decimal:
        return self.instances * self.offer.price * HOURS

    @property
    def gpus(self) -> int:
        """All that are rented."""
        return self.instances * self.offer.count

    @property
    def idle(self) -> Fraction:
        """The share of a replica's ranks for which there is no request, where replicas are filled one by one."""
        return 1 - min(Fraction(1), Fraction(self.places) / self.replica.dp)

    @property
    def room(self) -> int:
        """Replicas that the rented instances hold."""
        if (spanned := self.offer.machines(self.replica)) > 1:
            return self.instances // spanned
        return self.instances * (self.offer.count // (self.replica.tp * self.replica.dp))

    @property
    def served(self) -> float:
        """At once, of a rate per second: the one whose places, with allowance for chance, are all that there are."""
        n = self.left(self.instances) * self.requests
        if not self.load.rate:
            return n
        z, replica = room(self.load.wait), self.replica
        by_places = ((math.sqrt(z * z + 4 * n) - z) / 2) ** 2 / turn(self.load, replica, self.requests)
        return min(by_places, self.left(self.instances) * MOST_PROMPTS / prompt_seconds(replica))

    def left(self, instances: int) -> int:
        """Replicas on so many instances, as full as they can be, after the worst loss of one thing."""
        replica, load, spanned = self.replica, self.load, self.offer.machines(self.replica)
        if spanned > 1:  # a machine of a replica lost is the replica lost; a zone has whole ones
            units, per_machine = instances // spanned, 1
        else:
            units, per_machine = instances, self.offer.count // (replica.tp * replica.dp)
        if load.survive == "replica":
            return max(0, units * per_machine - 1)
        zones = {"none": math.inf, "machine": units, "zone": load.zones}[load.survive]
        lost = 0 if zones == math.inf else max(len(range(zone, units, int(zones))) for zone in range(int(zones)))
        return (units - lost) * per_machine

    @property
    def memory_holds(self) -> int:
        return self.room * self.replica.dp * self.replica.sequences


def plan(load: Load, offer: Offer, replica: Replica, seconds: float, first: float) -> Plan | None:
    """So many of the instances that they serve the load; None where a lone request misses a target."""
    requests = replica.requests(seconds, first)
    if requests < 1:
        return None
    in_flight = places(load, replica, requests)
    needed = -(-in_flight // requests)
    spanned = offer.machines(replica)
    carried = 1 if spanned > 1 else offer.count // (replica.tp * replica.dp)
    native = read(f"gpus/{offer.gpu}.yaml")["weights_run"][load.weight_dtype] == "native"
    machines = -(-needed // carried) * spanned
    while True:  # one more until enough are left
        rental = Plan(load, offer, replica, requests, needed, machines, native, in_flight)
        if rental.left(machines) >= needed:
            break
        machines += 1 if load.survive == "replica" else spanned
        machines = -(-machines // spanned) * spanned
    more = {"none": 0, "replica": 1}.get(load.survive, (machines // spanned - -(-needed // carried)) * carried)
    return replace(rental, replicas=needed + more, needed=needed)


def plans(load: Load, offers: tuple[Offer, ...], seconds: float, first: float) -> tuple[list[Plan], bool]:
    """Every way that serves the load on the offers, and whether memory holds it on one that is too slow."""
    able = [offer for offer in offers if runs(offer.gpu, load.weight_dtype, load.kv_dtype)]
    asked = (load.model, load.context, load.weight_dtype, load.kv_dtype, load.asked, load.draft)
    pairs: list[tuple[Offer, Replica]] = []
    for offer in able:
        linked = float(read(f"gpus/{offer.gpu}.yaml")["interconnect_bytes_per_second"]) >= LEAST_LINK
        for tp, dp in layouts(load.model):
            if tp * dp <= offer.linked and (dp == 1 or linked):
                inside = replica(*asked, offer.gpu, tp, dp, False, load.confidence, load.start(offer.gpu, tp, dp))
                pairs += [(offer, inside)] if inside else []
    if not pairs and load.may_span:
        for offer, (tp, dp) in itertools.product(able, layouts(load.model)):
            across = replica(*asked, offer.gpu, tp, 1, True, load.confidence) if dp == 1 else None
            if across and offer.joins(across):
                pairs.append((offer, across))
    tried = [plan(load, offer, replica, seconds, first) for offer, replica in pairs]
    return [rental for rental in tried if rental], None in tried


def choose(served: list[Plan], near_tie: Decimal = NEAR_TIE) -> tuple[Plan, Plan]:
    """The chosen and the very cheapest."""
    lowest = min(plan.monthly for plan in served)
    cheapest = min((plan for plan in served if plan.monthly == lowest), key=lambda plan: (plan.gpus, plan.offer.order))
    near = [plan for plan in served if plan.monthly <= lowest * (1 + near_tie) and plan.gpus <= cheapest.gpus]

    def rank(plan: Plan) -> tuple[Any, ...]:
        how = (-plan.served, plan.monthly, plan.replica.tp, plan.replica.dp, plan.offer.order)
        return (plan.instances, not plan.native, plan.idle, *how)

    return min(near, key=rank), cheapest


@dataclass(frozen=True)
class Answer:
    """The hardware recommended, and the answers beside it."""

    best: Plan
    cheapest: Plan
    runner_up: Plan | None
    by_purchase: dict[str, Plan | None]
    sized_by: str
    load: Load  # as it was answered: in the class and at the confidence in force


EVEN = 0.5


def answer(load: Load, discount: str = "0") -> Answer | str:
    """The answer, or the verdict where nothing serves the load: at an even chance where nothing serves it at the
    confidence asked for; on demand where the class that was asked for is no answer."""
    own = answer_in_class(load, discount)
    if load.purchase == "on-demand":
        return own
    usual = answer_in_class(replace(load, purchase="on-demand"), discount)
    if not candidates(discount, load.purchase):
        return usual
    if isinstance(usual, str):
        return own
    return own if isinstance(own, Answer) and stands(own, usual, load) else usual


def binds(purchase: str) -> bool:
    """Money is bound before anybody has seen the load served: a term, or days that are paid ahead."""
    return purchase not in ("on-demand", "spot")


def stands(own: Answer, usual: Answer, load: Load) -> bool:
    """An answer in a class beside the one on demand: nobody binds money at an even chance; nor takes a class that costs
    no less at the confidence asked for."""
    if own.load.confidence < load.confidence:
        return not binds(load.purchase) and own.best.monthly < usual.best.monthly
    return usual.load.confidence < load.confidence or own.best.monthly < usual.best.monthly


def answer_in_class(load: Load, discount: str) -> Answer | str:
    """The answer among what is sold in the class."""
    answer = answer_at(load, discount)
    if isinstance(answer, str) and load.confidence > EVEN:
        return answer_at(replace(load, confidence=EVEN), discount, load.confidence)
    return answer


def answer_at(load: Load, discount: str, asked: float | None = None) -> Answer | str:
    """The answer at the confidence of the load; asked: the one asked for, which nothing serves."""
    seconds, first = load.targets
    served, slow = plans(load, candidates(discount, load.purchase), seconds, first)
    if not served:
        return "no count meets the target" if slow else "nothing fits"
    best, cheapest = choose(served)
    mine = (best.offer.gpu, best.offer.provider)
    others = [rental for rental in served if (rental.offer.gpu, rental.offer.provider) != mine]
    by_purchase: dict[str, Plan | None] = {}
    for purchase in CLASSES:
        sure = replace(load, confidence=asked) if asked and binds(purchase) and purchase != load.purchase else load
        of_class = plans(sure, candidates(discount, purchase), seconds, first)[0]
        by_purchase[purchase] = choose(of_class)[0] if of_class else None
    usual = None if asked else by_purchase["on-demand"]  # none is as sure as a term has to be
    for purchase, committed in by_purchase.items():  # a commitment that saves nothing is no answer
        if purchase.startswith("reserved") and purchase != load.purchase and committed and usual:
            by_purchase[purchase] = committed if committed.monthly < usual.monthly else None
    runner_up = choose(others)[0] if others else None
    if runner_up and (runner_up.monthly > 3 * best.monthly or runner_up.instances > max(8, 3 * best.instances)):
        runner_up = None  # nobody would rent that instead
    return Answer(best, cheapest, runner_up, by_purchase, _sized_by(load, best, discount), load)


def owning_pays_off(up_front_usd: float | None, each_month_usd: float, rent_usd: float) -> int | None:
    """The first month in which what was paid for owning is no more than the rent so far; none where it never is, and
    of GPUs that have no price to buy."""
    if up_front_usd is None or rent_usd <= each_month_usd:
        return None
    month = math.ceil(up_front_usd / (rent_usd - each_month_usd) * (1 - 1e-12))
    assert up_front_usd + month * each_month_usd <= month * rent_usd * (1 + 1e-12)
    return month


def cheapest_at(load: Load, confidence: float, discount: str = "0") -> Plan | None:
    """Of all that cost the least and serve a load at a confidence, the one that is chosen; or nothing."""
    served = plans(replace(load, confidence=confidence), candidates(discount, load.purchase), *load.targets)[0]
    return choose(served, Decimal(0))[0] if served else None


def rate_in_words(load: Load) -> tuple[float, int] | None:
    """Of requests at once the rate and the people of whom they are: each request as slow as its targets allow, places
    to spare for chance, people in two figures, rounded down; none without a target."""
    answer_tokens, asks = workload(load.context, load.asked)[1], asked_per_day(load.context, load.asked)
    seconds, first = load.targets
    turn_seconds = first + ((answer_tokens - 1) * seconds if answer_tokens > 1 else 0)
    if turn_seconds == math.inf:
        return None
    z = room(load.wait)
    mean = ((math.sqrt(z * z + 4 * load.requests) - z) / 2) ** 2
    people = mean / turn_seconds * 3600 / BURST / PEAK_HOUR / asks
    step = 10 ** max(0, len(str(math.floor(people))) - 2)
    return mean / turn_seconds, math.floor(people / step) * step


def rate_of_people(people: int, asks: float) -> float:
    """Requests a second in the busiest minutes."""
    return people * asks * PEAK_HOUR * BURST / 3600


def serves(load: Load, best: Plan, confidence: float) -> bool:
    """True where what is rented for a load still serves it at another confidence."""
    old = best.replica
    asked = (load.model, load.context, load.weight_dtype, load.kv_dtype, load.asked, load.draft)
    start = load.start(best.offer.gpu, old.tp, old.dp)
    replica_ = replica(*asked, best.offer.gpu, old.tp, old.dp, old.pp > 1, confidence, start)
    requests = replica_.requests(*load.targets) if replica_ else 0
    return (
        replica_ is not None
        and requests > 0
        and best.left(best.instances) * requests >= places(load, replica_, requests)
    )


def _sized_by(load: Load, best: Plan, discount: str) -> str:
    """Memory, or the target that asks for more replicas, or for dearer hardware."""
    seconds = load.targets[0]
    replica, never, offers = best.replica, math.inf, candidates(discount, load.purchase)
    if load.survive != "none":
        unharmed = replace(load, survive="none")
        if choose(plans(unharmed, offers, *load.targets)[0])[0].monthly < best.monthly:
            return "survival"
    alone = choose(plans(load, offers, never, never)[0])[0]
    if alone.monthly < best.monthly:
        without_first = choose(plans(load, offers, seconds, never)[0])[0]
        return "ttft" if without_first.monthly < best.monthly else "tpot"
    if load.rate:
        needed = -(-chance_places(load, replica, best.requests) // best.requests)
        if prompt_replicas(load, replica) > needed:
            return "prefill"
        if math.ceil(mean_places(load, replica, best.requests)) <= best.requests * (needed - 1):
            return "rate"
    if best.needed == -(-best.places // (replica.dp * replica.sequences)):
        return "memory"
    batch = best.requests // (replica.dp * replica.pp)
    return "tpot" if tpot(replica.times, batch + 1) > seconds else "ttft"
