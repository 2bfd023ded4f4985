"""Bytes per precision, binary and decimal units, and how each kind of number is shown.

Bytes inside; GiB (2^30) and GB (10^9) only on the page, and always named.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from sheetgen.errors import SheetgenError, shown

# Numbers of pipeline stages at which the order of layers counts, by the names that formulas read.
ENDS = ("low", "high")  # of a band
STAGES_IN_ORDER = {"two_stages": 2, "three_stages": 3, "four_stages": 4, "eight_stages": 8}
GIB = 2**30
GB = 10**9
MIB = 2**20
GBPS = 10**9 // 8  # bytes a second
UNIT_BYTES = {"gib": GIB, "gb": GB}
UNIT_NAMES = {"gib": "GiB", "gb": "GB"}
SMALL_UNITS = {"gib": (2**10, "KiB"), "gb": (10**3, "kB")}  # for what one token takes


@dataclass(frozen=True)
class Dtype:
    """How many bytes one stored element takes in a precision.

    linear_bytes: a weight of a quantized linear layer, its scales included.
    other_bytes: a weight that quantization leaves alone (embeddings, lm_head, norms, vision).
    activation_copy_bytes: an element of the quantized copy that a linear layer makes of its input; 0 where
    the weights alone are quantized.
    kv_bytes: one element of the KV cache. kv_scale_bytes: scale of one head's key or value, per token.
    """

    name: str
    linear_bytes: float
    other_bytes: float
    activation_copy_bytes: float
    kv_bytes: float
    kv_scale_bytes: float
    about: str


# Scales: int4 group of 128 (a 2-byte scale and a half-byte zero point), NVFP4 one byte per 16 elements,
# MXFP4 one byte per 32. KV of int8/int4 keeps one 4-byte scale per token and head for keys and for values:
# with head_dim 128 that is the 1.94x and 3.75x that vLLM reports instead of 2x and 4x.
# Source: Hugging Face checkpoints of each format, counted tensor by tensor; vLLM 0.33, customize_spec of its attention
# backends (tests/data/kv_page_bytes.csv).
DTYPES: dict[str, Dtype] = {
    d.name: d
    for d in (
        Dtype("bf16", 2, 2, 0, 2, 0, "16-bit brain float"),
        Dtype("fp16", 2, 2, 0, 2, 0, "16-bit float"),
        Dtype("fp32", 4, 4, 0, 4, 0, "32-bit float"),
        Dtype("fp8", 1, 2, 1, 1, 0, "8-bit float e4m3"),
        Dtype("fp8_e5m2", 1, 2, 1, 1, 0, "8-bit float e5m2"),
        Dtype("int8", 1, 2, 1, 1, 4, "8-bit integer; KV with a scale per token and head"),
        Dtype("int4", 0.51953125, 2, 0, 0.5, 4, "4-bit integer in groups of 128; KV with a scale per token and head"),
        Dtype("nvfp4", 0.5625, 2, 0.5625, 0.5625, 0, "4-bit float, an 8-bit scale per 16"),
        Dtype("mxfp4", 0.53125, 2, 0, 0.53125, 0, "4-bit float, an 8-bit scale per 32"),
    )
}
DTYPE_ALIASES = {"fp8_e4m3": "fp8"}
ENGINE_DTYPES = {  # as PyTorch and the engines' flags write a precision
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float8_e4m3": "fp8",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8_e5m2",
}  # fmt: skip
KV_ALIASES = {"int8_per_token_head": "int8", "int4_per_token_head": "int4"}  # of the KV cache alone, by vLLM's names
SAME_SIZE = {"fp8_per_token_head": "int8", "nvfp4_4over6": "nvfp4"}  # as another precision of the KV cache
# Of the KV cache alone, by the names that vLLM 0.33.0 has for them (config/cache.py), with what they take.
KV_NOT_SIZED = {
    "fp8_ds_mla": "an entry of sparse attention with its scales; say fp8, which is that where the kernel has it",
    "nvfp4_ds_mla": "352 bytes an entry of sparse attention, on B200 and B300 alone",
    **dict.fromkeys(
        ("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc"),
        "keys and values of a head are packed together, and the outer layers keep 16 bits",
    ),
    **dict.fromkeys(
        ("octave_k3v4", "octave_k3v3", "octave_k3v3_compact", "ultraquant_4bit"),
        "keys and values of a head are packed together",
    ),
    **{name: f"the same size as {dtype}: say that" for name, dtype in SAME_SIZE.items()},
}
UNQUANTIZED = ("bf16", "fp16", "fp32")
AUTO, PUBLISHED, RECOMMENDED = "auto", "published", "recommended"  # auto of the weights is published, by its old name
DTYPE_CHOICES = (AUTO, *DTYPES, *DTYPE_ALIASES)
WEIGHT_CHOICES = (RECOMMENDED, PUBLISHED, *DTYPE_CHOICES)
DEFAULT_WEIGHTS = RECOMMENDED  # of build, recommend and plan; size always takes what was published
TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)  # GPUs that share a replica's layers, as engines are run inside a node


class Layout(NamedTuple):
    """How the GPUs of a replica share its work: each of the data-parallel ranks has its own attention, split over
    tensor-parallel ranks; experts are divided over all of them."""

    tensor_parallel_size: int
    data_parallel_size: int = 1

    @property
    def n_gpus(self) -> int:
        return self.tensor_parallel_size * self.data_parallel_size

    def words(self, stages: int = 1) -> str:
        """TP 8, or TP 1, PP 2, DP 8."""
        sizes = {"TP": self.tensor_parallel_size, "PP": stages, "DP": self.data_parallel_size}
        return ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1 or name == "TP")


# Within a node; the plain ones first. Data parallelism is for mixtures of experts.
LAYOUTS = tuple(
    Layout(t, d) for d in TENSOR_PARALLEL_SIZES for t in TENSOR_PARALLEL_SIZES if t * d <= TENSOR_PARALLEL_SIZES[-1]
)
PLAIN_LAYOUTS = tuple(layout for layout in LAYOUTS if layout.data_parallel_size == 1)


@dataclass(frozen=True)
class Purchase:
    """A way to pay for an hour of an instance: as a page says it, in full and beside others.

    committed: paid in every hour of its term, run or not. prepaid: bought ahead for fixed days. always_listed: named on
    the page where it has no price too.
    """

    words: str
    committed: bool = False
    prepaid: bool = False
    always_listed: bool = True

    @property
    def binds(self) -> bool:
        """True where money is bound before anybody knows that the load is served."""
        return self.committed or self.prepaid


PURCHASES: dict[str, Purchase] = {  # in the order of every list
    "on-demand": Purchase("on demand"),
    "reserved-1yr": Purchase("1 yr", committed=True),
    "reserved-3yr": Purchase("3 yr", committed=True),
    "spot": Purchase("spot"),
    "capacity-block": Purchase("capacity block", prepaid=True, always_listed=False),
}
CHANCE_STEP = 0.05  # step to which a chance is printed, as it is known no better
EVEN, SURE = 0.5, 0.9  # confidences shown beside the one asked for
COMMITTED = tuple(name for name, purchase in PURCHASES.items() if purchase.committed)
SPOT, CAPACITY_BLOCK = "spot", "capacity-block"
ON_DEMAND = "on-demand"  # the class of list prices, used where none is named
BESIDE_ON_DEMAND = tuple(name for name in PURCHASES if name != ON_DEMAND)
OWNING_TERMS: dict[str, tuple[float, float]] = {  # what a term may be, in owning.yaml and as an input
    "owned_years": (1, 20),
    "residual_fraction": (0, 1),
    "cost_of_capital_fraction": (0, 1),
    "support_fraction": (0, 1),
    "installed_multiplier": (1, 10),
    "system_power_multiplier": (1, 5),
    "usd_per_kwh": (0, 10),
    "pue": (1, 5),
    "colo_usd_per_kw_month": (0, 10_000),
}


@dataclass(frozen=True)
class Display:
    """One kind of number: an Excel number format and the Python text that agree, rounded half up.

    A spreadsheet shows `decimals`, then as many of `optional` more as are not zeros, and 15 digits in all. whole_from:
    the number from which there are no decimals.
    """

    excel: str
    decimals: int = 0
    optional: int = 0
    prefix: str = ""
    suffix: str = ""
    percent: bool = False
    thousands: bool = True
    divisor: float = 1  # the unit of the number; a spreadsheet's cell is divided already
    whole_from: float = math.inf

    def __hash__(self) -> int:  # a tenth of the time that all fields would take
        return hash(self.excel)

    def decimals_of(self, number: float | Decimal) -> int:
        """The decimals that are always shown of a number, which is divided already."""
        return 0 if number >= self.whole_from else self.decimals

    def in_currency(self, prefix: str) -> Display:
        """The same for amounts of another currency, by its prefix."""
        return replace(self, excel=self.excel.replace(f'"{self.prefix}"', f'"{prefix}"'), prefix=prefix)

    def text(self, value: object) -> str:
        """The text that a spreadsheet shows for `value` in this format; text stays as it is."""
        if isinstance(value, str):
            return value
        if isinstance(value, date):
            return value.isoformat()[:10]
        if value is None or math.isnan(value):  # type: ignore[arg-type]
            return "–"
        number = self._number(float(value))  # type: ignore[arg-type]
        rounded = self._rounded(number)
        places = max(self.decimals_of(number), -rounded.normalize().as_tuple().exponent)  # type: ignore[operator]
        if rounded == 0:
            rounded = abs(rounded)  # a spreadsheet shows no negative zero
        sign = "-" if rounded < 0 else ""
        digits = f"{abs(rounded):{',' if self.thousands else ''}.{places}f}"
        return f"{sign}{self.prefix}{digits}{self.suffix}"

    def as_shown(self, value: float) -> float:
        """The number that the text of `value` states."""
        return float(self._rounded(self._number(value))) * self.divisor / (100 if self.percent else 1)

    def _number(self, value: float) -> Decimal:
        return Decimal(repr(value / self.divisor)) * (100 if self.percent else 1)

    def _rounded(self, number: Decimal) -> Decimal:
        last_place = max(-self.decimals_of(number) - self.optional, min(0, number.adjusted() - 14))
        return number.quantize(Decimal(1).scaleb(last_place), ROUND_HALF_UP, _WIDE)


_WIDE = Context(prec=400)  # digits, enough for every float
WHOLE = Display("#,##0")
PLAIN = Display("0", thousands=False)
ONE_DECIMAL = Display("#,##0.0", 1)
NARROW = Display("[<100]#,##0.0;#,##0", 1, whole_from=100)  # of a narrow column
TWO_DECIMALS = Display("#,##0.00", 2)
AS_IT_IS = Display("General", optional=15, thousands=False)  # bytes and shares in one column
FACTOR = Display("0.00######", 2, optional=6, thousands=False)
PERCENT = Display("0%", suffix="%", percent=True, thousands=False)
EXACT_PERCENT = Display("0.0#%", 1, suffix="%", optional=1, percent=True, thousands=False)
SECONDS = Display("#,##0.0000", 4)
USD = Display('"$"#,##0', 0, prefix="$")
USD_CENTS = Display('"$"#,##0.00', 2, prefix="$")
TEXT = Display("@")
DATE = Display("yyyy-mm-dd")
PRICE_DATE = Display("yyyy-mm-dd;@")  # the first day of a month or a year where no day was read


def count(number: float, word: str) -> str:
    """1 row, 2 rows."""
    return f"{number:,.0f} {word}{'' if number == 1 else 's'}"


def number_text(value: float) -> str:
    """A number as text: all digits of a whole number, 12 of another, never an exponent."""
    return f"{value:,}" if isinstance(value, int) else f"{Decimal(f'{value:.12g}'):,f}"


def listed(words: Sequence[str], last: str = " and ") -> str:
    """AWS, Azure and GCP."""
    return last.join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def rate_places(rate: float) -> int:
    """Decimals that show three digits of a rate, and all of a whole number."""
    return 0 if rate >= 99.95 else 1 if rate >= 9.995 else 2 if rate >= 0.1 else 4


def rate_text(rate: float) -> str:
    """A rate in three digits: 4.5, 12.3, 1,200."""
    places = rate_places(rate)
    text = f"{rate:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2100, 1, 1)  # from which workbooks count


def today() -> date:
    """SOURCE_DATE_EPOCH's day, or today in UTC.

    Raises SheetgenError for what is no second of a day from 2000 to the first of 2100.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch:
        return datetime.now(UTC).date()
    try:
        day = datetime.fromtimestamp(int(epoch) if re.fullmatch("[0-9]+", epoch) else math.inf, UTC).date()
    except (ValueError, OverflowError, OSError):
        day = date.max
    if not FIRST_DAY <= day <= LAST_DAY:
        raise SheetgenError(
            f"SOURCE_DATE_EPOCH is {shown(epoch)!r}. It must be the seconds of a day from {FIRST_DAY} to {LAST_DAY}."
        )
    return day
