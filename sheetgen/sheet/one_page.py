"""The one page: every word and number that it shows, ready to draw. All writers draw this.

Numbers stand beside their text where a picture or a program needs them; the text is what a reader sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Card:
    """The answer for one model at the headline load."""

    model: str  # "Llama 3.1 70B"
    fits: bool
    rent: str  # "2 × p5.48xlarge", or "nothing fits"
    monthly: str  # "$80,358", or "–"
    provider: str  # "AWS, us-east-1"
    hardware: str  # "8× H100 SXM, TP 8, 1 replica"
    memory: str  # "131.4 GiB weights + 160.0 GiB KV cache"
    headroom: str  # "room for 41 requests, 22% free"
    speed: str  # "48 ms a token (38–57), 640 tokens/s"
    first_token: str  # "first token 1.9 s (0.9 s–3.2 s)"
    sized_by: str  # "bought by speed (50 ms a token); memory alone: 2 × p4de.24xlarge, $40,073"
    unit_money: str  # "$159 per user and month, $0.21 prompt, $3.40 answer per million tokens at 70% utilization"
    runner_up: str  # "then 8× H200 on Azure: $92,000 (+12%)"


@dataclass(frozen=True)
class MatrixCell:
    """One load on the matrix."""

    status: str  # fits | tight | none | over: the word and the colour
    word: str  # what the status says in words: "fits", "tight", "nothing fits", "over 32k"
    kv: str  # "160.0"  (unit in the head)
    kv_bytes: float
    hardware: str  # "8× H100 SXM"
    rent: str  # "2 × p5.48xlarge"
    monthly: str  # "$80.4k"
    monthly_usd: float | None
    by_speed: bool = False  # speed asked for more replicas than memory


@dataclass(frozen=True)
class MatrixRow:
    """One tier of one workload, a cell per model."""

    tier: str  # "32"
    requests: int
    headline: bool
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class MatrixBlock:
    """One workload."""

    workload: str  # "RAG"
    context: str  # "16k"
    split: str  # "15,360 in + 1,024 out"
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True)
class ModelFacts:
    """What stands at the head of a model's column, and in the KV family table."""

    name: str
    params: str  # "70.6 B"
    weights_bf16: str  # "131.4"
    weights_fp8: str  # "67.7"
    weights_used: str  # "bf16"
    kv_used: str  # "bf16"
    kv_per_token: str  # "320.0 KiB"
    kv_per_token_bytes: float
    full_attention_per_token: str  # "2,560 KiB"
    full_attention_bytes: float
    ratio: str  # "8.0× less"
    attention: str  # "GQA, 8 of 64 heads"
    note: str


@dataclass(frozen=True)
class Bar:
    """Weights against KV cache at the headline load, and the memory that the recommended GPUs let the engine use."""

    model: str
    weights_bytes: float
    kv_bytes: float
    overhead_bytes: float
    capacity_bytes: float | None
    weights: str
    kv: str
    overhead: str
    capacity: str  # "570.1 GiB usable on 8× H100 SXM"


@dataclass(frozen=True)
class Fingerprint:
    """Where a deployment dies, which bill overran, what to change and in which direction."""

    where: str
    bill: str
    looks_like: str
    change: str
    here: str  # with this sheet's numbers


@dataclass(frozen=True)
class LeverLine:
    """What one change buys at the headline load of one model."""

    model: str
    change: str  # "FP8 KV cache"
    rent: str
    monthly: str
    saving: str  # "$6,049", "no change" or "now fits"
    share: str = ""  # "50%"


@dataclass(frozen=True)
class InstanceRow:
    """An instance that the page recommends somewhere."""

    instance: str
    provider: str
    gpus: str  # "8× H100 SXM"
    memory: str  # "633.5 GiB seen"
    hourly: str
    region: str
    price_date: str
    stale: bool
    used_for: str  # "70B: RAG 32, ..." or "9 cells"


@dataclass(frozen=True)
class Source:
    """A line of the sources; `url` only where it is http or https."""

    text: str
    url: str | None = None

    @property
    def web_url(self) -> str | None:
        """`url` where it is a plain http or https address, else None: what a writer may make a link of."""
        if not self.url or any(c.isspace() or not c.isprintable() for c in self.url):
            return None
        try:
            parts = urlsplit(self.url)
        except ValueError:
            return None
        return self.url if parts.scheme in ("http", "https") and parts.netloc else None


@dataclass(frozen=True)
class OnePage:
    """The page."""

    title: str
    question: str  # "RAG (16k tokens), 32 requests in flight"
    precision_line: str  # "weights and KV cache at the checkpoint's own precision ..."
    as_of: str
    price_banner: str
    version: str
    catalog: str  # first 8 of its hash
    unit: str  # GiB or GB
    paper: str  # a4 | letter
    cards: tuple[Card, ...]
    matrix: tuple[MatrixBlock, ...]
    models: tuple[ModelFacts, ...]
    bars: tuple[Bar, ...]
    fingerprints: tuple[Fingerprint, ...]
    levers: tuple[LeverLine, ...]
    instances: tuple[InstanceRow, ...]
    left_out: str
    assumptions: tuple[str, ...]
    sources: tuple[Source, ...]
