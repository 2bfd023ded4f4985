"""A lever: one change, what is rented without it and with it, and what it costs beside money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sheetgen.formula import same_money
from sheetgen.levers.rented import Rented


@dataclass(frozen=True)
class Offload:
    """Weights in host memory, as an indication: bytes of each GPU that every step of decoding reads over the link.

    Seconds are the least that the link allows: each token of each request waits for them.
    """

    n_gpus: int
    bytes_per_gpu: float
    link: str
    link_bytes_per_second: int
    seconds_per_token: float
    nvme_seconds_per_token: float
    parked_kv_bytes_per_gpu: float
    parked_kv_seconds: float


@dataclass(frozen=True)
class Lever:
    """What one change buys for one load.

    `before` and `after` are nothing where nothing holds the load. `why_not` says why the change does not apply, and
    is empty where it does. `offload` has an indication in place of a price.
    """

    id: str
    family: str
    words: str  # "FP8 KV cache"
    changed: str  # "KV cache bf16 to fp8"
    note: str  # what the change costs beside money
    before: Rented | None
    after: Rented | None = None
    why_not: str = ""
    offload: Offload | None = None

    @property
    def priced(self) -> bool:
        """Whether the change applies and has a price."""
        return self.after is not None

    @cached_property
    def saved_usd(self) -> float | None:
        """Dollars a month, 0 where the month costs the same; negative where it costs more, nothing without a price."""
        if self.before is None or self.after is None:
            return None
        before, after = self.before.monthly_usd, self.after.monthly_usd
        return 0.0 if same_money(before, after) else before - after

    @property
    def saved_fraction(self) -> float | None:
        """The same as a share of what the month costs without the change."""
        saved = self.saved_usd
        return None if saved is None or self.before is None else saved / self.before.monthly_usd

    @property
    def now_fits(self) -> bool:
        """Whether something holds the load only with the change."""
        return self.before is None and self.after is not None


EveryLever = Sequence[Sequence[Lever]]  # of every load of a sheet, in their order
