"""Which rank's figure stands for each quantity, and what follows from several figures together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sheetgen.startup.read import Figure, StartupLog

# What is compared, in the order of the table; all but the last three in bytes per GPU.
QUANTITIES = {
    "gpu_memory_bytes": "memory that the engine sees",
    "weights_bytes_per_gpu": "weights",
    "activation_bytes_per_gpu": "activation peak",
    "non_torch_bytes_per_gpu": "non-torch (NCCL, CUDA)",
    "cuda_graph_bytes_per_gpu": "CUDA graphs",
    "kv_pool_bytes_per_gpu": "KV pool",
    "kv_tokens": "KV tokens",
    "n_gpu_blocks": "KV blocks",
    "max_concurrency": "maximum concurrency",
}
_SMALLEST = ("kv_pool_bytes_per_gpu", "kv_tokens", "n_gpu_blocks", "max_concurrency", "gpu_memory_bytes")


@dataclass(frozen=True)
class Measured:
    """One figure for each quantity that the log states or that follows from it, and how the rank was chosen."""

    figures: dict[str, Figure]
    notes: tuple[str, ...]


def measure(log: StartupLog) -> Measured:
    """The figures that hold for the whole engine: those of the rank with the smallest pool, which sets the tokens."""
    known = {name: dict(ranks) for name, ranks in log.figures.items()}
    notes: list[str] = []
    if log.engine == "sglang":
        _sglang_pool(known, notes)
    _derive(known)
    pools = known.get("kv_pool_bytes_per_gpu", {})
    rank = min(pools, key=lambda r: pools[r].value) if pools else ""
    figures = {name: _one(name, known[name], rank) for name in QUANTITIES if known.get(name)}
    if "kv_tokens" not in figures and "n_gpu_blocks" in figures and log.engine == "vllm":
        _tokens_of_blocks(figures, log, notes)
    return Measured(figures, (*_rank_notes(pools, known, rank), *notes))


def _one(name: str, ranks: Mapping[str, Figure], rank: str) -> Figure:
    """The chosen rank's figure; where it states none, the one that leaves the least room."""
    if rank in ranks:
        return ranks[rank]
    pick = min if name in _SMALLEST else max
    return pick(ranks.values(), key=lambda figure: figure.value)


def _rank_notes(pools: Mapping[str, Figure], known: Mapping[str, Mapping[str, Figure]], rank: str) -> list[str]:
    seen = {name for ranks in known.values() for name in ranks}
    if len(pools) > 1:
        values = [figure.value for figure in pools.values()]
        if max(values) > min(values):
            return [f"{rank or 'the first rank'} has the smallest KV pool of {len(pools)} ranks; it sets the tokens."]
        return [f"the {len(pools)} ranks in the log have the same KV pool."]
    if len(pools) == 1 and len(seen - {""}) > 1 and rank:
        return [f"only {rank} states its KV pool; the smallest of all ranks sets the tokens."]
    return []


def _derive(known: dict[str, dict[str, Figure]]) -> None:
    """What versions state only together: non-torch in the consumed memory, the activation in torch's peak."""
    for whole, target in (
        ("consumed_bytes_per_gpu", "non_torch_bytes_per_gpu"),
        ("peak_torch_bytes_per_gpu", "activation_bytes_per_gpu"),
    ):
        for rank, figure in known.get(whole, {}).items():
            weights = known.get("weights_bytes_per_gpu", {})
            loaded = weights.get(rank) or next(iter(weights.values()), None)
            if loaded is not None and rank not in known.get(target, {}):
                text = f"(less the weights of line {loaded.line_number}) {figure.text}"
                found = Figure(target, figure.value - loaded.value, rank, figure.line_number, text)
                known.setdefault(target, {})[rank] = found


def _sglang_pool(known: dict[str, dict[str, Figure]], notes: list[str]) -> None:
    """SGLang states keys and values apart, and the states of recurrent layers in a pool of their own."""
    for rank, keys in known.get("k_bytes_per_gpu", {}).items():
        values = known.get("v_bytes_per_gpu", {}).get(rank)
        both = keys.value + (values.value if values else 0)
        pool = Figure("kv_pool_bytes_per_gpu", both, rank, keys.line_number, keys.text)
        known.setdefault("kv_pool_bytes_per_gpu", {})[rank] = pool
    if "kv_tokens" not in known and "pool_tokens" in known:
        known["kv_tokens"] = known["pool_tokens"]
    states = [f.value for part in ("conv_state", "ssm_state") for f in _first(known, f"{part}_bytes_per_gpu")]
    if states:
        notes.append(f"the states of recurrent layers have {sum(states) / 2**30:.2f} GiB beside the KV pool.")


def _first(known: Mapping[str, Mapping[str, Figure]], name: str) -> list[Figure]:
    return list(known.get(name, {}).values())[:1]


def _tokens_of_blocks(figures: dict[str, Figure], log: StartupLog, notes: list[str]) -> None:
    """vLLM V0 prints blocks, not tokens."""
    given = log.arguments.get("block_size")
    size = given.value if given and isinstance(given.value, int) and 0 < given.value <= 4096 else 16
    blocks = figures["n_gpu_blocks"]
    tokens = Figure("kv_tokens", blocks.value * size, blocks.rank, blocks.line_number, blocks.text)
    figures["kv_tokens"] = tokens
    notes.append(f"the log states blocks; the tokens are blocks x {size}.")
