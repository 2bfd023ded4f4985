"""Schemas of GPUs, of instances with their prices, of owning GPUs, and of workloads and tiers."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from sheetgen.catalog.base import Count, Date, DtypeName, Entry, Id, Label, Many, Problem, Some, Text, first_day
from sheetgen.errors import did_you_mean
from sheetgen.units import OWNING_TERMS, PURCHASES, TENSOR_PARALLEL_SIZES

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
    """A GPU's memory as marketed, as the driver shows it, and as the engine sees it (the figure that sizing uses).

    shared_with_host: the processes of the host use the same memory.
    """

    marketed_gb: Price
    nvidia_smi_mib: Count | None = None
    engine_bytes: Count
    basis: Literal["measured", "derived", "stated", "assumed", "unknown"]
    shared_with_host: bool = False
    source: Text


UNSEEN_SHARE = 0.0094  # of the memory that nvidia-smi shows, hidden from engines: the median of nine measured GPUs


class Flops(Entry):
    """Dense peaks in operations per second; null where the GPU lacks the format or no peak is published."""

    bf16: Count | None
    fp16: Count | None
    fp8: Count | None
    fp4: Count | None
    int8: Count | None


class Slice(Entry):
    """One MIG profile of a GPU: memory in GiB as the driver shows it, eighths of memory and bandwidth, SMs."""

    memory_gib: Price
    memory_eighths: Annotated[int, Field(ge=1, le=8)]
    n_sms: Count
    basis: Literal["stated", "derived"] = "stated"


class Mig(Entry):
    """The MIG profiles of a GPU by name (`1g.10gb`), and the SMs of the whole GPU."""

    n_sms: Count
    slices: dict[Label, Slice]
    source: Text


MIG = "-mig-"  # between a GPU's id and a profile: the id of a slice


GPUS_OF_A_MACHINE = 8  # of boards with SXM or OAM modules


class Gpu(Entry):
    """One accelerator: memory, speed, and the precisions that it runs.

    The first alias is its common name. device_names: its names in the output of drivers and engines.
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
    kv_typed: dict[DtypeName, Literal[0, 1, 2]] = Field(default_factory=dict)  # a reader's own, over Engine.runs_kv
    tdp_watts: Count | None = None
    interconnect: Label
    # One way, per GPU, to all others of a node: PCIe where bridges join pairs.
    interconnect_bytes_per_second: Count | None
    # One way, between two GPUs joined by a bridge; None where no machine has bridges, or not every machine.
    pair_link_bytes_per_second: Count | None = None
    host_link: Label | None = None  # the link to the host, by its name in levers.yaml; None where unknown
    most_of_a_machine: Count | None = None  # the most GPUs in one machine, where that is few: 1 for a GH200
    source: Text
    checked_on: Date
    confidence: Confidence
    device_names: Many[Label] = ()
    mig: Mig | None = None
    notes: Many[Text] = ()

    @property
    def entry_id(self) -> str:
        """The id of the catalog file: for a slice, that of the whole GPU."""
        return self.id.partition(MIG)[0]

    @property
    def is_slice(self) -> bool:
        """True for a MIG slice of a GPU."""
        return self.id != self.entry_id

    def names(self) -> tuple[list[str], list[str]]:
        """The GPU's own names (id and aliases), and the names derived from its other fields."""
        derived = self.id.removeprefix(f"{self.vendor}-"), self.name, self.short_name, *self.device_names
        return [self.id, *self.aliases], [gpu_key(name) for name in derived]

    @property
    def sold_together(self) -> int:
        """The fewest GPUs that can be bought: those of a board or a rack; cards are sold one by one.

        Source: NVIDIA HGX (A100, H100 and H200 on boards of 4 or 8, B200 and B300 of 8), OCP's OAM base boards of 8,
        and racks of 72 (GB200 NVL72, AMD Helios).
        """
        form = self.form_factor
        if self.is_slice or "PCIe" in form:
            return 1
        boards = {"SXM4": 4, "SXM5": 4, "SXM6": 8, "OAM": 8}
        of_a_board = next((size for name, size in boards.items() if form.startswith(name)), 1)
        return 72 if "rack" in form and of_a_board == 1 else of_a_board

    @property
    def of_a_machine(self) -> int | None:
        """The number of GPUs in one machine; None for cards and racks, of which machines have any number."""
        return GPUS_OF_A_MACHINE if 1 < self.sold_together <= GPUS_OF_A_MACHINE else self.most_of_a_machine

    @property
    def assumed_shapes(self) -> tuple[int, ...]:
        """The numbers of GPUs of the machines that are assumed of a price by the GPU."""
        most = self.most_of_a_machine or TENSOR_PARALLEL_SIZES[-1]
        return tuple(size for size in TENSOR_PARALLEL_SIZES if size <= most)

    def peak_flops_for(self, weight_dtype: str) -> int | None:
        """The dense peak in operations per second for multiplying weights of this precision; None where unknown.

        Weights in fewer bits than the GPU computes in run at 16 bits. MXFP4 weights meet 8-bit activations.
        A peak that is not published is taken as half of the next narrower one, as on tensor cores.
        """
        peaks = self.peak_dense_flops
        fp8 = peaks.fp8 or (peaks.fp4 // 2 if peaks.fp4 else None)
        mxfp4 = fp8 if peaks.fp4 else None
        narrow = {"fp8": fp8, "fp8_e5m2": fp8, "int8": peaks.int8, "nvfp4": peaks.fp4, "mxfp4": mxfp4}
        return narrow.get(weight_dtype) or peaks.bf16 or peaks.fp16 or (fp8 // 2 if fp8 else None)

    def slice(self, profile: str) -> Self:
        """One MIG profile as a GPU of its own, with its share of memory, bandwidth and arithmetic, and no link to
        others.

        Raises KeyError for a profile that the GPU does not have.
        """
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
    def slices(self) -> tuple[Self, ...]:
        """The GPU's MIG profiles, each as a GPU of its own."""
        return tuple(map(self.slice, self.mig.slices)) if self.mig else ()

    def problems(self) -> Iterator[Problem]:
        for profile in self.mig.slices if self.mig else ():
            if not re.fullmatch(r"[1-7]g\.[0-9]{1,3}gb", profile):
                yield ("mig", "slices", profile), f"{profile} is no MIG profile, such as 1g.10gb"
        yield from self._memory_problems()
        marketed = self.memory.marketed_gb
        if not 0.8 * marketed * 1e9 <= self.memory.engine_bytes <= marketed * 2**30:
            problem = f"engine_bytes {self.memory.engine_bytes:,} is not what a {marketed:g} GB GPU can have"
            yield ("memory", "engine_bytes"), problem

    def _memory_problems(self) -> Iterator[Problem]:
        """Contradictions between the stated basis of the memory figure and the figure of nvidia-smi."""
        memory, shown_bytes = self.memory, (self.memory.nvidia_smi_mib or 0) * 2**20
        loc = ("memory", "engine_bytes")
        if memory.basis == "derived" and not shown_bytes:
            yield ("memory", "basis"), "basis is derived, but nvidia_smi_mib is missing: give what nvidia-smi shows"
        elif memory.basis == "derived" and memory.engine_bytes != (seen := round(shown_bytes * (1 - UNSEEN_SHARE))):
            share = f"{memory.nvidia_smi_mib:,} MiB less {100 * UNSEEN_SHARE:.2f} %"
            yield loc, f"engine_bytes is {memory.engine_bytes}, but derived from nvidia_smi_mib it is {seen} ({share})"
        elif shown_bytes and memory.engine_bytes > shown_bytes:
            yield loc, f"engine_bytes {memory.engine_bytes:,} is more than nvidia-smi shows, {shown_bytes:,}"
        elif not shown_bytes and memory.basis == "measured" and not memory.shared_with_host:
            yield (
                ("memory", "nvidia_smi_mib"),
                "basis is measured, but nvidia_smi_mib is missing: say stated or assumed",
            )


def gpu_key(name: str) -> str:
    """A GPU's name in the spelling of the index: lower case, with dashes for spaces and underscores."""
    return re.sub(r"[\s_]+", "-", name.strip().lower())


class Devices:
    """Finds GPUs in a text by the names that drivers and engines print.

    words: a text without any of them names no device.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        makers = sorted({name.split()[0] for name in names})
        self.words = tuple(f"{maker}{end}" for maker in makers for end in (" ", "_"))
        longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        # A name followed by a size, a letter, `Ti` or `Laptop` is another device.
        self._pattern = re.compile(rf"(?<![A-Za-z])({longest_first})(?!\w| (?:Ti|D|Laptop)\b)")

    def find(self, text: str) -> tuple[str, str] | None:
        """The catalog's name of the GPU that `text` names, and the name in the text; `_` counts as a blank."""
        if not any(word in text for word in self.words):
            return None
        match = self._pattern.search(text.replace("_", " "))
        return (self._names[match[1]], match[1]) if match else None


class PastPrice(Entry):
    """An earlier price in USD per hour; `source` only where it differs from the row's."""

    usd_per_hour: Price
    as_of: Date | None
    source: Text | None = None


class InstancePrice(Entry):
    """The price of an hour in one purchase class, and the date when it was read.

    `history` has earlier prices, the newest first; they are only displayed.
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
    nvlink_domain_gpus: Count | None = None  # GPUs of all machines that one NVLink switch joins, such as a rack's
    unit: Literal["instance", "per_gpu", "per_chip"]
    offer: Literal["list", "marketplace", "average"] = "list"
    region: Label
    sold_as: Many[PurchaseId] = ()  # the only classes in which it is available; others have a list price alone
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
        """The price in that purchase class; None where there is none (a missing price is never 0)."""
        return next((p for p in self.prices if p.purchase == purchase), None)

    @property
    def offered(self) -> tuple[InstancePrice, ...]:
        """The prices at which the instance is available."""
        return tuple(p for p in self.prices if not self.sold_as or p.purchase in self.sold_as)

    @property
    def is_whole(self) -> bool:
        """True for a whole instance; False for a GPU's share of one."""
        return self.unit == "instance"

    def machine(self, n_gpus: int) -> Self:
        """A machine of `n_gpus` GPUs, made of this row, which is priced by the GPU; an answer names it `type x8`."""
        prices = (price.model_copy(update={"usd_per_hour": price.usd_per_hour * n_gpus}) for price in self.prices)
        changes = {"type": f"{self.type} x{n_gpus}", "gpu_count": n_gpus, "unit": "instance", "prices": (*prices,)}
        return self.model_copy(update=changes)

    def region_of(self, purchase: str) -> str:
        """The region of the price in that purchase class."""
        return self.region

    def prices_by_region(self, purchase: str) -> dict[str, InstancePrice]:
        """The price in that purchase class in each region that the question names."""
        price = self.price(purchase)
        return {self.region_of(purchase): price} if price else {}


class PlacedInstance(Instance):
    """A row at the prices of the regions that a question names; each purchase class may be of another region."""

    regions: dict[str, str]  # by purchase class, the cheapest region
    every: dict[str, dict[str, InstancePrice]]  # by purchase class and region, dearer regions too

    def region_of(self, purchase: str) -> str:
        return self.regions.get(purchase, self.region)

    def prices_by_region(self, purchase: str) -> dict[str, InstancePrice]:
        return self.every.get(purchase, {})


class InstanceFile(Entry):
    """One provider's rows. `order` is the provider's position in the catalog, which decides ties."""

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
    request_name: Label = "request"  # the word for one of its requests; its plural takes an s
    tpot_target_ms: Target | None = None  # determines the number of replicas; None: no target
    ttft_target_ms: Target | None = None
    requests_per_user_per_day: Annotated[float, Field(gt=0, le=100_000)] = 20
    history_hit_fraction: Annotated[float, Field(ge=0, le=1)] = 0  # of the prompt: its own history in the cache
    is_default: bool = True  # on a sheet whose question names no workload

    @property
    def context_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def token_target_ms(self) -> float | None:
        """The TPOT target; None where the answer has no token after the first."""
        return self.tpot_target_ms if self.output_tokens > 1 else None


class WorkloadFile(Entry):
    file_name: ClassVar[str] = "workloads.yaml"
    workloads: Annotated[tuple[Workload, ...], Field(strict=False, min_length=1, max_length=12)]

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("workloads", "id", "workload {}")
        usual = [i for i, workload in enumerate(self.workloads) if workload.is_default]
        if not 1 <= len(usual) <= MOST_WORKLOADS:
            loc = ("workloads", usual[-1], "is_default") if usual else ("workloads",)
            yield loc, f"{len(usual)} workloads are default, of which a sheet shows 1 to {MOST_WORKLOADS}"


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
    """One figure for owning any GPU: value, unit, reason, source and date."""

    id: Id
    value: Annotated[float, Field(allow_inf_nan=False)]
    unit: Label
    as_of: Date | None
    reason: Text
    source: Text
    confidence: Confidence


class Capex(Entry):
    """The purchase price of one GPU in USD, as a range: makers publish no prices."""

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
    """Power in kW of one GPU with its share of the server: the machine's alone, or all-in with cooling."""

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
