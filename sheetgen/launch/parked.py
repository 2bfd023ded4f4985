"""Users whose KV cache is parked in host memory between two turns: how many, and how long one takes to come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import HostLink, Launcher, LeverFile
from sheetgen.formula import formula, ratio, round_down
from sheetgen.question.deployment import Resolved
from sheetgen.question.parse import LEAST, Kind
from sheetgen.units import GB, GIB, count

MOST_GIB = 1_000_000
GIB_OF_HOST = Kind(low=LEAST, high=MOST_GIB)


@formula("Parked users")
def parked_users(
    host_kv_bytes: Any,
    kv_bytes_per_sequence_steady_per_gpu: Any,
    tensor_parallel_size: Any,
    pipeline_parallel_size: Any,
) -> Any:
    """Users whose whole KV cache lies in host memory, each as every GPU of one data-parallel rank keeps its part.

    Source: host memory over the cache of a sequence. Check: Llama 3.1 70B in bf16, 16,384 tokens, TP 4, 100 GiB: 20.
    """
    each = kv_bytes_per_sequence_steady_per_gpu * tensor_parallel_size * pipeline_parallel_size
    return round_down(ratio(host_kv_bytes, each))


@formula("Time until a parked user is back")
def return_seconds(kv_bytes_per_sequence_steady_per_gpu: Any, link_bytes_per_second: Any) -> Any:
    """Least seconds until a parked KV cache is on the GPUs again: all of them read their parts at once.

    Source: bytes over the link's specified rate; copies reach less. Check: 1.25 GiB over PCIe 5 x16: 21 ms.
    """
    return kv_bytes_per_sequence_steady_per_gpu / link_bytes_per_second


@dataclass(frozen=True)
class Parked:
    """`link` and `seconds` are None where the GPU's link to its host is not known."""

    host_kv_bytes: int
    users: int
    context_tokens: int
    bytes_per_gpu: float
    n_gpus: int
    gpu: str
    link: HostLink | None
    seconds: float | None

    @property
    def words(self) -> list[str]:
        if self.link is None or self.seconds is None:
            back = f"back at work: not known, as the {self.gpu}'s link to its host is not known here"
        else:
            rate = f"{self.link.name}, {self.link.bytes_per_second / GB:,.4g} GB/s one way"
            back = f"back at work after at least {1000 * self.seconds:,.3g} ms, over {rate}"
        each = f"{self.bytes_per_gpu * self.n_gpus / GIB:,.2f} GiB each"
        return [
            f"{count(self.users, 'parked user')} of {self.context_tokens:,} tokens, {each}",
            back,
            "it serves no requests at once: those keep their cache in the GPUs' memory, as counted above",
        ]

    def record(self) -> dict[str, Any]:
        """As plain values; bytes are whole."""
        return {
            "host_kv_bytes": self.host_kv_bytes,
            "parked_users": self.users,
            "context_tokens": self.context_tokens,
            "kv_bytes_per_user": round(self.bytes_per_gpu * self.n_gpus),
            "link": self.link and self.link.name,
            "link_bytes_per_second": self.link and self.link.bytes_per_second,
            "link_source": self.link and self.link.source,
            "return_seconds": self.seconds,
        }


def parked(host_kv_bytes: int, known: Mapping[str, Any], names: Resolved, catalog: Catalog) -> Parked:
    """What so much host memory of a replica parks of the point whose quantities are `known`."""
    link = catalog.file(LeverFile).link(names.gpu)
    values = {**known, "host_kv_bytes": host_kv_bytes}
    seconds = None
    if link is not None:
        seconds = float(return_seconds.of({**values, "link_bytes_per_second": link.bytes_per_second}))
    return Parked(
        host_kv_bytes,
        int(parked_users.of(values)),
        int(known["context_tokens"]),
        float(known["kv_bytes_per_sequence_steady_per_gpu"]),
        int(known["tensor_parallel_size"] * known["pipeline_parallel_size"]),
        names.gpu.short_name,
        link,
        seconds,
    )


def launch_note(launcher: Launcher, host_kv_bytes: int, n_gpus: int) -> str:
    """What an engine's command takes for it, beside its flags."""
    if launcher.host_kv is None:
        return "users parked in host memory: what this engine takes for it is not known here"
    gib, gb_of_gpu = f"{host_kv_bytes / GIB:.6g}", int(host_kv_bytes / n_gpus / GB)
    if "{gb_of_gpu}" in launcher.host_kv and not gb_of_gpu:  # 0 would stand for the engine's own amount
        return "users parked in host memory: this engine takes it in whole GB for each GPU, and here is less than one"
    flags = launcher.host_kv.replace("{gib}", gib).replace("{gb_of_gpu}", str(gb_of_gpu))
    return f"users parked in host memory: {flags}"
