"""How N GPUs can have been laid out: the parallel sizes of one replica, and how many replicas there are."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.errors import ScenarioError
from sheetgen.units import TENSOR_PARALLEL_SIZES

GPUS_OF_A_NODE = 8  # of the HGX and DGX boards that claims name


@dataclass(frozen=True)
class Layout:
    """One way to lay out N GPUs: tensor_parallel_size x data_parallel_size x n_replicas of them."""

    tensor_parallel_size: int
    data_parallel_size: int
    n_replicas: int

    def requests_per_replica(self, n_requests: int) -> int:
        """Requests of the fullest replica."""
        return -(-n_requests // self.n_replicas)

    @property
    def words(self) -> str:
        """`TP 4 x 2`, with the ranks of data-parallel attention where there are any."""
        ranks = f" DP {self.data_parallel_size}" if self.data_parallel_size > 1 else ""
        return f"TP {self.tensor_parallel_size}{ranks}" + (f" x {self.n_replicas}" if self.n_replicas > 1 else "")


def layouts(n_gpus: int, is_moe: bool, tensor_parallel_size: int | None = None) -> tuple[Layout, ...]:
    """The layouts of `n_gpus`: replicas of TP 1, 2, 4 or 8, and for models with experts replicas of 2, 4 or 8 GPUs
    whose attention is data-parallel; those of one TP where it is stated. Whether a model's heads divide is not asked
    here: sizing refuses those that do not.

    Raises ScenarioError where a stated tensor_parallel_size does not divide the GPUs.
    """
    if tensor_parallel_size is not None:
        if n_gpus % tensor_parallel_size:
            raise ScenarioError(
                f"tensor_parallel_size is {tensor_parallel_size:,}, which does not divide the {n_gpus:,} GPUs of the"
                " claim."
            )
        pairs = [(tensor_parallel_size, 1)]
        if is_moe and tensor_parallel_size == 1:
            pairs += [(1, size) for size in TENSOR_PARALLEL_SIZES[1:]]
    else:
        pairs = [(t, 1) for t in TENSOR_PARALLEL_SIZES] + [(1, t) for t in TENSOR_PARALLEL_SIZES[1:] if is_moe]
    return tuple(Layout(tp, dp, n_gpus // (tp * dp)) for tp, dp in pairs if n_gpus % (tp * dp) == 0)
