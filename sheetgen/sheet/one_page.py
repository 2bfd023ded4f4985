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
    sized_by: str  # "sized by speed (50 ms a token); memory alone: 2 × p4de.24xlarge, $40,073"
    unit_money: str  # "$159 per user and month, $0.21 prompt, $3.40 answer per million tokens at 70% utilization"
    runner_up: str  # "then 8× H200 on Azure: $92,000 (+12%)"
    users: str = ""  # "32": the people that the load stands for
    held: str = ""  # "room for 54"
    token_time: str = ""  # "48 ms a token (38–57)"
    throughput: str = ""  # "640 tokens/s (550–810)"
    per_user: str = ""  # "$159 per user"
    budget: str = ""  # "EUR 40,554 a month, EUR 486,643 a year, with 10% contingency"; "" where it says nothing new
    classes: tuple[str, ...] = ()  # $ a month in each of OnePage.price_classes; NONE where it is not known
    owned: str = ""  # "8× H100 SXM: $8,640 to $11,720"; "" where no price of the GPU is known
    break_even: str = ""  # "cheaper than renting on demand above 24% of the hours (22% to 29%)"; "" likewise
    is_quoted: bool = False  # owned at the reader's own price


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
    context_tokens: int = 0


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
    origin: str = "published"  # of its shape: published | derived | assumed


@dataclass(frozen=True)
class Bar:
    """Weights against KV cache of one load, and the memory that the GPUs chosen for it let the engine use."""

    model: str
    weights_bytes: float
    kv_bytes: float
    overhead_bytes: float
    capacity_bytes: float | None  # None where nothing holds it
    weights: str
    kv: str
    overhead: str
    capacity: str  # "570.1 GiB on 8× H100 SXM"; the verdict where nothing holds it
    limit: str = ""  # "570.1"
    workload: str = ""  # "RAG"
    context: str = ""  # "16k"
    headline: bool = False


@dataclass(frozen=True)
class BreakPoint:
    """The most requests in flight that the recommended hardware of a model holds at one context."""

    context_tokens: int
    requests: int


@dataclass(frozen=True)
class Breaks:
    """Where the recommended hardware of one model breaks: by more requests, and by longer ones.

    Memory alone is asked; `curve` is empty where nothing holds the load.
    """

    model: str
    curve: tuple[BreakPoint, ...]
    asked: BreakPoint  # the load answered
    held: BreakPoint  # at its context, the most requests
    longest: BreakPoint  # at its requests, the longest context
    next_request: str  # "request 55 does not fit"
    next_short: str  # "55"
    longest_fit: str  # "32 fit up to 27,648 tokens each"
    longest_short: str  # "27,648"


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
    classes: tuple[str, ...] = ()  # $ an hour in each of OnePage.price_classes; NONE where it is not known
    memory_origin: str = "derived"  # measured | published | derived | assumed
    price_origin: str = "published"  # assumed where the shape is


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
    bars: tuple[tuple[Bar, ...], ...]  # by model, a bar for each workload at the headline's requests
    breaks: tuple[Breaks, ...]  # by model
    fingerprints: tuple[Fingerprint, ...]
    levers: tuple[LeverLine, ...]
    instances: tuple[InstanceRow, ...]
    price_classes: tuple[str, ...]  # "on demand", "1 yr", ...
    subject: str  # the model whose numbers the fingerprints tell
    left_out: str
    assumptions: tuple[str, ...]
    sources: tuple[Source, ...]
    purchase: str = ""  # that of the answers, among price_classes

    @property
    def paid(self) -> tuple[Card, ...]:
        """The answers that there is a price of: what each purchase class, and owning, would cost instead."""
        return tuple(card for card in self.cards if card.classes)

    @property
    def owned_at(self) -> str:
        """At which prices of GPUs owning is worked out; "" where it is for none."""
        quoted = {card.is_quoted for card in self.paid if card.owned}
        words = {False: "at low to high street prices", True: "at your quote"}
        return " or ".join(words[one] for one in sorted(quoted))
