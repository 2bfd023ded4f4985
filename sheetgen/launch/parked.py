"""Users whose KV cache is parked in host memory between two turns: their number, and the time to load one again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import HostLink, Launcher, LeverFile
from sheetgen.formula import Quantity, formula, ratio, round_down
from sheetgen.question.deployment import Resolved
from sheetgen.question.parse import LEAST, Kind
from sheetgen.units import GB, GIB, count

MOST_GIB = 1_000_000
GIB_OF_HOST = Kind(low=LEAST, high=MOST_GIB)


@formula("Parked users")
def parked_users(
    host_kv_bytes: Quantity,
    kv_bytes_per_sequence_steady_per_gpu: Quantity,
    tensor_parallel_size: Quantity,
    pipeline_parallel_size: Quantity,
) -> Any:
    """The number of users whose whole KV cache fits host memory; each has a part on every GPU of one DP rank.

    Source: host memory over the cache of a sequence. Check: Llama 3.1 70B in bf16, 16,384 tokens, TP 4, 100 GiB: 20.
    """
    bytes_per_user = kv_bytes_per_sequence_steady_per_gpu * tensor_parallel_size * pipeline_parallel_size
    return round_down(ratio(host_kv_bytes, bytes_per_user))


@formula("Time until a parked user is back")
def return_seconds(kv_bytes_per_sequence_steady_per_gpu: Quantity, link_bytes_per_second: Quantity) -> Quantity:
    """The least seconds to load a parked KV cache onto the GPUs, which all read their parts at once.

    Source: bytes over the link's specified rate; copies reach less. Check: 1.25 GiB over PCIe 5 x16: 21 ms.
    """
    return kv_bytes_per_sequence_steady_per_gpu / link_bytes_per_second


@dataclass(frozen=True)
class Parked:
    """The users parked in host memory; `link` and `seconds` are None where the GPU's link to its host is unknown."""

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
        size = f"{self.bytes_per_gpu * self.n_gpus / GIB:,.2f} GiB each"
        return [
            f"{count(self.users, 'parked user')} of {self.context_tokens:,} tokens, {size}",
            back,
            "it serves no requests at once: those keep their cache in the GPUs' memory, as counted above",
        ]

    def record(self) -> RawRecord:
        """The figures as JSON; bytes are whole."""
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


def parked(host_kv_bytes: int, quantities: RawMapping, names: Resolved, catalog: Catalog) -> Parked:
    """The users of a point that `host_kv_bytes` of host memory per replica can park."""
    link = catalog.file(LeverFile).link(names.gpu)
    values = {**quantities, "host_kv_bytes": host_kv_bytes}
    seconds = None
    if link is not None:
        seconds = float(return_seconds.of({**values, "link_bytes_per_second": link.bytes_per_second}))
    return Parked(
        host_kv_bytes,
        int(parked_users.of(values)),
        int(quantities["context_tokens"]),
        float(quantities["kv_bytes_per_sequence_steady_per_gpu"]),
        int(quantities["tensor_parallel_size"] * quantities["pipeline_parallel_size"]),
        names.gpu.short_name,
        link,
        seconds,
    )


def launch_note(launcher: Launcher, host_kv_bytes: int, n_gpus: int) -> str:
    """A note with the engine's own flags for a KV cache in host memory."""
    if launcher.host_kv is None:
        return "users parked in host memory: what this engine takes for it is not known here"
    gib, gb_of_gpu = f"{host_kv_bytes / GIB:.6g}", int(host_kv_bytes / n_gpus / GB)
    if "{gb_of_gpu}" in launcher.host_kv and not gb_of_gpu:  # 0 would stand for the engine's own amount
        return "users parked in host memory: this engine takes it in whole GB for each GPU, and here is less than one"
    flags = launcher.host_kv.replace("{gib}", gib).replace("{gb_of_gpu}", str(gb_of_gpu))
    return f"users parked in host memory: {flags}"
