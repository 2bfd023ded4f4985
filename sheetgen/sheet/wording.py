"""How the page says names, bytes, money and hardware: each in one place."""

from __future__ import annotations

from sheetgen.levers import Lever
from sheetgen.scenario.candidates import Candidate
from sheetgen.units import ONE_DECIMAL, PERCENT, UNIT_BYTES, UNIT_NAMES, USD, WHOLE, Display

NONE = "–"  # what stands where there is no number; never 0
MINUS = "−"
_PROVIDERS = {
    "aws": "AWS",
    "azure": "Azure",
    "gcp": "GCP",
    "oci": "OCI",
    "ovhcloud": "OVHcloud",
    "coreweave": "CoreWeave",
    "digitalocean": "DigitalOcean",
    "jarvislabs": "JarvisLabs",
    "tensordock": "TensorDock",
    "sfcompute": "SF Compute",
}
_THOUSANDS = Display('"$"#,##0.0"k"', 1, prefix="$", suffix="k")
_MILLIONS = Display('"$"#,##0.00"M"', 2, prefix="$", suffix="M")
_BILLIONS = Display('"$"#,##0.00"B"', 2, prefix="$", suffix="B")
_SHARE = Display("0.##%", 0, optional=2, suffix="%", percent=True, thousands=False)
_PLAIN = Display("0.########", 0, optional=8)


def size(n_bytes: float, units: str) -> str:
    """Bytes in GiB or GB, without the unit: it stands in the head."""
    return ONE_DECIMAL.text(n_bytes / UNIT_BYTES[units])


def named_size(n_bytes: float, units: str) -> str:
    """Bytes with their unit: 131.4 GiB."""
    return f"{size(n_bytes, units)} {UNIT_NAMES[units]}"


def small_size(n_bytes: float, units: str) -> str:
    """Bytes of one token: 320.0 KiB (2^10 bytes) or 327.7 kB (10^3)."""
    divisor, name = (1024, "KiB") if units == "gib" else (1000, "kB")
    return f"{ONE_DECIMAL.text(n_bytes / divisor)} {name}"


def middle_size(n_bytes: float, units: str) -> str:
    """Bytes of one request's state, whole: 147 MiB (2^20 bytes) or 154 MB (10^6)."""
    divisor, name = (2**20, "MiB") if units == "gib" else (10**6, "MB")
    return f"{WHOLE.text(n_bytes / divisor)} {name}"


def money(usd: float | None) -> str:
    """Whole dollars: $80,358."""
    return USD.text(usd)


def short_money(usd: float | None) -> str:
    """Dollars for a narrow column: $516, $80.4k, $2.06M, $1.73B."""
    if usd is None:
        return NONE
    if usd < 999.5:
        return USD.text(usd)
    if usd < 999_950:
        return _THOUSANDS.text(usd / 1e3)
    return _MILLIONS.text(usd / 1e6) if usd < 999_995_000 else _BILLIONS.text(usd / 1e9)


def share(value: float) -> str:
    """A share as a percentage, with decimals only where it has some: 10%, 12.5%."""
    return _SHARE.text(value)


def price_class(purchase: str, discount_fraction: float) -> str:
    """Of which prices: on-demand, or on-demand less 20% under a contract with a discount."""
    return f"{purchase} less {share(discount_fraction)}" if discount_fraction else purchase


def plain(value: float) -> str:
    """A number with decimals only where it has some: 730, 0.9."""
    return _PLAIN.text(value)


def change(before: float, after: float) -> str:
    """What a new price is against an old one: −38%, +12%, no change."""
    percent = Display("0%", percent=True, suffix="%", thousands=False).text(abs(after / before - 1))
    if after == before:
        return "no change"
    if percent == "0%":
        percent = "under 1%"
    return f"{MINUS if after < before else '+'}{percent}"


def saving(lever: Lever) -> str:
    """What a lever saves a month: $6,049 (50%), no change, $1,200 more (+12%), now fits."""
    share_saved = saved_share(lever)
    return f"{saved_money(lever)} ({share_saved})" if share_saved else saved_money(lever)


def saved_money(lever: Lever) -> str:
    """The same in dollars alone: $6,049, no change, $1,200 more, now fits."""
    usd = lever.saved_usd
    if usd is None:
        return "now fits" if lever.now_fits else NONE
    if usd == 0:
        return "no change"
    return money(usd) if usd > 0 else f"{money(-usd)} more"


def saved_share(lever: Lever) -> str:
    """The same as a share: 50%, +12% where it costs more; nothing where nothing is saved."""
    fraction = lever.saved_fraction
    if not fraction:
        return ""
    percent = PERCENT.text(abs(fraction))
    percent = "under 1%" if percent == "0%" else percent
    return percent if fraction > 0 else f"+{percent}"


def provider_name(provider: str) -> str:
    """A provider's id as it is written: AWS."""
    return _PROVIDERS.get(provider, " ".join(word.capitalize() for word in provider.split("-")))


def instance_name(candidate: Candidate) -> str:
    """An instance in short: p5.48xlarge, ND96isr H200 v5."""
    bare = candidate.instance.removeprefix(f"{candidate.provider}/")
    return bare.removeprefix("Standard_").replace("_", " ")


def rent(n_instances: int, candidate: Candidate) -> str:
    """What is rented: 2 × p5.48xlarge."""
    return f"{n_instances:,} × {instance_name(candidate)}"


def rented_gpus(n_instances: int, candidate: Candidate) -> str:
    """The GPUs of what is rented: 16× H100 SXM."""
    return f"{n_instances * candidate.gpu_count:,}× {candidate.gpu.short_name}"


def plural(count: int, noun: str) -> str:
    """1 replica, 2 replicas."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plural_does(count: int, noun: str, verb: str) -> str:
    """1 request fits, 2 requests fit."""
    return f"{plural(count, noun)} {verb}{'s' if count == 1 else ''}"
