"""The schema of GPUs, of instances with their prices, of owning GPUs, and of what the sheet is sized for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from sheetgen.catalog.base import Count, Date, DtypeName, Entry, Id, Label, Many, Problem, Some, Text, first_day
from sheetgen.errors import did_you_mean
from sheetgen.units import OWNING_TERMS, PURCHASES

Confidence = Literal["high", "medium", "low"]
if TYPE_CHECKING:
    PurchaseId = str
else:
    PurchaseId = Literal[tuple(PURCHASES)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Target = Annotated[float | int, Field(gt=0, le=3_600_000, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=1e-4, le=1e6, allow_inf_nan=False)]
Usd = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]


class Memory(Entry):
    """Three readings of one memory: sold as, shown by the driver, seen by the engine (sizing uses this).

    shared_with_host: whether it is the host's memory, too.
    """

    marketed_gb: Price
    nvidia_smi_mib: Count | None = None
    engine_bytes: Count
    basis: Literal["measured", "derived", "stated", "assumed", "unknown"]
    shared_with_host: bool = False
    source: Text


UNSEEN_SHARE = 0.0094  # of what nvidia-smi shows, that engines do not see: the median of nine measured GPUs


class Flops(Entry):
    """Dense peaks, operations per second; null where the GPU has none or none is published."""

    bf16: Count | None
    fp16: Count | None
    fp8: Count | None
    fp4: Count | None
    int8: Count | None


class Slice(Entry):
    """One MIG profile of a GPU: its memory as the driver shows it, its eighths of all memory and bandwidth, its SMs."""

    memory_gib: Price
    memory_eighths: Annotated[int, Field(ge=1, le=8)]
    n_sms: Count
    basis: Literal["stated", "derived"] = "stated"


class Mig(Entry):
    """The MIG profiles of a GPU by their names (`1g.10gb`), and the SMs of the whole GPU."""

    n_sms: Count
    slices: dict[Label, Slice]
    source: Text


MIG = "-mig-"  # between a GPU's id and a profile: the id of a slice


class Gpu(Entry):
    """One accelerator: memory, speed, and the precisions that it runs.

    The first alias is what people call it. device_names: what drivers and engines print for it.
    """

    id: Id
    name: Label
    short_name: Label
    aliases: Many[Id] = ()
    vendor: Label
    architecture: Label
    compute_capability: Label | None = None
    form_factor: Label
    release_year: Annotated[int, Field(ge=2000, le=2100)]
    data_center: bool
    memory: Memory
    memory_bandwidth_bytes_per_second: Count
    peak_dense_flops: Flops
    weights_run: dict[DtypeName, Literal["native", "weight_only"]]
    kv_run: Many[DtypeName]
    kv_typed: dict[DtypeName, Literal[0, 1, 2]] = Field(default_factory=dict)  # by a reader, over the engine's kernels
    tdp_watts: Count | None = None
    interconnect: Label
    # Each way and GPU, to all others of a node: PCIe where bridges join pairs.
    interconnect_bytes_per_second: Count | None
    # Each way, between the two that a bridge joins; None where machines have none, or not all of them.
    pair_link_bytes_per_second: Count | None = None
    host_link: Label | None = None  # to its host, by its name in levers.yaml; None where it is not known
    most_of_a_machine: Count | None = None  # where a machine takes few of them: 1 of a GH200
    source: Text
    checked_on: Date
    confidence: Confidence
    device_names: Many[Label] = ()
    mig: Mig | None = None
    notes: Many[Text] = ()

    @property
    def entry_id(self) -> str:
        """The id of its file: of a slice, that of the whole GPU."""
        return self.id.partition(MIG)[0]

    @property
    def is_slice(self) -> bool:
        """Whether it is a MIG slice of a GPU."""
        return self.id != self.entry_id

    def names(self) -> tuple[list[str], list[str]]:
        """The names that are its own, and those that only follow from them."""
        follows = self.id.removeprefix(f"{self.vendor}-"), self.name, self.short_name, *self.device_names
        return [self.id, *self.aliases], [gpu_key(name) for name in follows]

    @property
    def sold_together(self) -> int:
        """The fewest that one can buy: those of a board or a rack; cards are sold one by one.

        Source: NVIDIA HGX (A100, H100 and H200 on boards of 4 or 8, B200 and B300 of 8), OCP's OAM base boards of 8,
        and racks of 72 (GB200 NVL72, AMD Helios).
        """
        form = self.form_factor
        if self.is_slice or "PCIe" in form:
            return 1
        boards = {"SXM4": 4, "SXM5": 4, "SXM6": 8, "OAM": 8}
        of_a_board = next((size for name, size in boards.items() if form.startswith(name)), 1)
        return 72 if "rack" in form and of_a_board == 1 else of_a_board

    def peak_flops_for(self, weight_dtype: str) -> int | None:
        """Operations per second, dense, that weights of this precision are multiplied with; None where unknown.

        What the GPU holds in fewer bits than it computes in runs at 16 bits. MXFP4 weights meet 8-bit activations.
        A peak that nobody publishes is half of the next narrower one, as tensor cores have it.
        """
        p = self.peak_dense_flops
        fp8 = p.fp8 or (p.fp4 // 2 if p.fp4 else None)
        narrow = {"fp8": fp8, "fp8_e5m2": fp8, "int8": p.int8, "nvfp4": p.fp4, "mxfp4": fp8 if p.fp4 else None}
        return narrow.get(weight_dtype) or p.bf16 or p.fp16 or (fp8 // 2 if fp8 else None)

    def slice(self, profile: str) -> Gpu:
        """The GPU that one of its MIG profiles is to an engine: its share of memory, bandwidth and arithmetic, and no
        way to another. Raises KeyError for a profile that it does not have."""
        assert self.mig is not None
        part = self.mig.slices[profile]
        memory = {
            "marketed_gb": float(profile.partition(".")[2].removesuffix("gb")),
            "nvidia_smi_mib": None,
            "engine_bytes": round(part.memory_gib * 2**30),
            "basis": part.basis,
            "source": self.mig.source,
        }
        peaks = {name: peak and peak * part.n_sms // self.mig.n_sms for name, peak in self.peak_dense_flops}
        bandwidth = self.memory_bandwidth_bytes_per_second * part.memory_eighths // 8
        changes = {
            "id": f"{self.id}{MIG}{profile}",
            "name": f"{self.name} MIG {profile}",
            "short_name": f"{self.short_name} MIG {profile}",
            "aliases": tuple(f"{alias}{MIG}{profile}" for alias in self.aliases),
            "memory": self.memory.model_copy(update=memory),
            "memory_bandwidth_bytes_per_second": bandwidth,
            "peak_dense_flops": self.peak_dense_flops.model_copy(update=peaks),
            "tdp_watts": None,
            "interconnect": "none: a MIG slice reaches no other GPU but by the host",
            "interconnect_bytes_per_second": None,
            "pair_link_bytes_per_second": None,
            "host_link": None,
            "most_of_a_machine": 1,
            "source": self.mig.source,
            "device_names": tuple(f"{name} MIG {profile}" for name in self.device_names),
            "mig": None,
        }
        return self.model_copy(update=changes)

    @property
    def slices(self) -> tuple[Gpu, ...]:
        """All MIG profiles of it as GPUs."""
        return tuple(map(self.slice, self.mig.slices)) if self.mig else ()

    def problems(self) -> Iterator[Problem]:
        for profile in self.mig.slices if self.mig else ():
            if not re.fullmatch(r"[1-7]g\.[0-9]{1,3}gb", profile):
                yield ("mig", "slices", profile), f"{profile} is no MIG profile, such as 1g.10gb"
        yield from self._memory_problems()
        marketed = self.memory.marketed_gb
        if not 0.8 * marketed * 1e9 <= self.memory.engine_bytes <= marketed * 2**30:
            what = f"engine_bytes {self.memory.engine_bytes:,} is not what a {marketed:g} GB GPU can have"
            yield ("memory", "engine_bytes"), what

    def _memory_problems(self) -> Iterator[Problem]:
        """What speaks against how its memory was come by: a figure is seen, or follows from the driver's."""
        memory, shown_bytes = self.memory, (self.memory.nvidia_smi_mib or 0) * 2**20
        at = ("memory", "engine_bytes")
        if memory.basis == "derived" and not shown_bytes:
            yield ("memory", "basis"), "basis is derived, but nvidia_smi_mib is missing: give what nvidia-smi shows"
        elif memory.basis == "derived" and memory.engine_bytes != (seen := round(shown_bytes * (1 - UNSEEN_SHARE))):
            share = f"{memory.nvidia_smi_mib:,} MiB less {100 * UNSEEN_SHARE:.2f} %"
            yield at, f"engine_bytes is {memory.engine_bytes}, but derived from nvidia_smi_mib it is {seen} ({share})"
        elif shown_bytes and memory.engine_bytes > shown_bytes:
            yield at, f"engine_bytes {memory.engine_bytes:,} is more than nvidia-smi shows, {shown_bytes:,}"
        elif not shown_bytes and memory.basis == "measured" and not memory.shared_with_host:
            yield (
                ("memory", "nvidia_smi_mib"),
                "basis is measured, but nvidia_smi_mib is missing: say stated or assumed",
            )


def gpu_key(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


class Devices:
    """The GPUs that a text names as drivers and engines print them.

    words: a text without any of them names no device.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        makers = sorted({name.split()[0] for name in names})
        self.words = tuple(f"{maker}{end}" for maker in makers for end in (" ", "_"))
        longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        # A size or letter behind it, a `Ti` or a laptop's GPU is another device.
        self._pattern = re.compile(rf"(?<![A-Za-z])({longest_first})(?!\w| (?:Ti|D|Laptop)\b)")

    def find(self, text: str) -> tuple[str, str] | None:
        """The GPU that `text` names, as the catalog calls it and as it stands there; `_` counts as a blank."""
        if not any(word in text for word in self.words):
            return None
        match = self._pattern.search(text.replace("_", " "))
        return (self._names[match[1]], match[1]) if match else None


class PastPrice(Entry):
    """A price that held before; `source` where it was read elsewhere than its row says."""

    usd_per_hour: Price
    as_of: Date | None
    source: Text | None = None


class InstancePrice(Entry):
    """What an hour costs when bought in one way, and when that was read.

    `history` has what it cost before, the newest first. It is shown, and nothing is priced by it.
    """

    purchase: PurchaseId
    usd_per_hour: Price
    as_of: Date | None
    kind: Label | None = None
    history: Many[PastPrice] = ()

    def problems(self) -> Iterator[Problem]:
        days = [first_day(past.as_of) for past in self.history]
        for i, (newer, older) in enumerate(itertools.pairwise(days), start=1):
            if older > newer:
                yield ("history", i), f"history is not in order: {older} stands below {newer or 'no date'}"


class InstanceRow(Entry):
    type: Label
    gpu: Id
    gpu_count: Annotated[int | float, Field(gt=0, le=1024)]
    vcpu: Amount | None = None
    ram_gib: Amount | None = None
    local_nvme_gb: Amount | None = None
    network_gbps: Amount | None = None
    nvlink_domain_gpus: Count | None = None  # of all machines whose GPUs one NVLink switch joins: those of a rack
    unit: Literal["instance", "per_gpu", "per_chip"]
    offer: Literal["list", "marketplace", "average"] = "list"
    region: Label
    sold_as: Many[PurchaseId] = ()  # the only classes in which it can be had, whatever others have a list price
    prices: Many[InstancePrice] = ()
    source: Text
    confidence: Confidence
    checked_on: Date
    notes: Many[Text] = ()

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("prices", "purchase", "the {} price")


class Instance(InstanceRow):
    """A row with its provider: `aws/p5.48xlarge`."""

    provider: Id

    @property
    def id(self) -> str:
        return f"{self.provider}/{self.type}"

    def price(self, purchase: str) -> InstancePrice | None:
        """The price in that purchase class, or nothing: a missing price is never 0."""
        return next((p for p in self.prices if p.purchase == purchase), None)

    @property
    def offered(self) -> tuple[InstancePrice, ...]:
        """The prices at which it can be had."""
        return tuple(p for p in self.prices if not self.sold_as or p.purchase in self.sold_as)

    def region_of(self, purchase: str) -> str:
        """The region of its price in that purchase class."""
        return self.region

    def prices_by_region(self, purchase: str) -> dict[str, InstancePrice]:
        """The price in that purchase class in each region that is asked about."""
        price = self.price(purchase)
        return {self.region_of(purchase): price} if price else {}


class PlacedInstance(Instance):
    """A row at the prices of the regions that a question names, which may be another one for each purchase class."""

    regions: dict[str, str]
    every: dict[str, dict[str, InstancePrice]]  # by class and region, dearer regions too

    def region_of(self, purchase: str) -> str:
        return self.regions.get(purchase, self.region)

    def prices_by_region(self, purchase: str) -> dict[str, InstancePrice]:
        return self.every.get(purchase, {})


class InstanceFile(Entry):
    """One provider's rows. `order` places the provider in the catalog, which decides ties."""

    id_field: ClassVar[str] = "provider"
    provider: Id
    order: Annotated[int, Field(ge=0)] = 10_000
    instances: Many[InstanceRow]

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("instances", "type")


MOST_WORKLOADS = 3  # of a sheet


class Workload(Entry):
    id: Id
    name: Label
    input_tokens: Count
    output_tokens: Count
    about: Text
    source: Text
    request_name: Label = "request"  # what people call one of its requests; its plural takes an s
    tpot_target_ms: Target | None = None  # drives the number of replicas; None: no target
    ttft_target_ms: Target | None = None
    requests_per_user_per_day: Annotated[float, Field(gt=0, le=100_000)] = 20
    history_hit_fraction: Annotated[float, Field(ge=0, le=1)] = 0  # of the prompt, each request's own
    is_default: bool = True  # whether a sheet shows it where no workload is named

    @property
    def context_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def token_target_ms(self) -> float | None:
        """The target of a further token; none where the answer has no further one."""
        return self.tpot_target_ms if self.output_tokens > 1 else None


class WorkloadFile(Entry):
    file_name: ClassVar[str] = "workloads.yaml"
    workloads: Annotated[tuple[Workload, ...], Field(strict=False, min_length=1, max_length=12)]

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("workloads", "id", "workload {}")
        usual = [i for i, one in enumerate(self.workloads) if one.is_default]
        if not 1 <= len(usual) <= MOST_WORKLOADS:
            at = ("workloads", usual[-1], "is_default") if usual else ("workloads",)
            yield at, f"{len(usual)} workloads are default, of which a sheet shows 1 to {MOST_WORKLOADS}"


class Tier(Entry):
    requests: Annotated[int, Field(ge=1, le=1_000_000)]
    name: Label
    reason: Text


class TierFile(Entry):
    file_name: ClassVar[str] = "tiers.yaml"
    tiers: Annotated[tuple[Tier, ...], Field(strict=False, min_length=1, max_length=4)]

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("tiers", "requests", "a tier of {:,} requests")


class Term(Entry):
    """One figure that holds for every GPU: its value, its unit, why, where it is from, and the day it is of."""

    id: Id
    value: Annotated[float, Field(allow_inf_nan=False)]
    unit: Label
    as_of: Date | None
    reason: Text
    source: Text
    confidence: Confidence


class Capex(Entry):
    """What one GPU sells for, in US dollars: a range, for no maker publishes a price."""

    low: Usd
    base: Usd
    high: Usd
    price_of: Literal["module", "installed"]
    as_of: Date
    source: Text

    def problems(self) -> Iterator[Problem]:
        if not self.low <= self.base <= self.high:
            yield (), f"low {self.low:,.0f}, base {self.base:,.0f}, high {self.high:,.0f} are not in this order"


class Power(Entry):
    """kW of one GPU with its share of the server: what the machine draws, or all-in with the cooling."""

    kw: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    kw_of: Literal["it", "all-in"]
    as_of: Date
    source: Text


class OwnedGpu(Entry):
    gpu: Id
    capex_usd: Capex | None = None
    power: Power | None = None
    confidence: Confidence
    notes: Many[Text] = ()


class OwningFile(Entry):
    file_name: ClassVar[str] = "owning.yaml"
    checked_on: Date
    terms: Some[Term]
    gpus: Many[OwnedGpu]

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("terms", "id")
        yield from self.twice("gpus", "gpu")
        for i, term in enumerate(self.terms):
            if term.id not in OWNING_TERMS:
                near = did_you_mean(term.id, OWNING_TERMS)
                yield ("terms", i, "id"), f"id {term.id} is no term of owning.{near}".rstrip(".")
                continue
            low, high = OWNING_TERMS[term.id]
            if not low <= term.value <= high:
                yield ("terms", i, "value"), f"{term.id} is {term.value:g}, but must be from {low:,g} to {high:,g}"
        for name in OWNING_TERMS:
            if all(term.id != name for term in self.terms):
                yield ("terms",), f"the term {name} is missing"
