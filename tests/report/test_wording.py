"""Names and numbers in words."""

from __future__ import annotations

import pytest

from sheetgen.report import notes, wording


@pytest.mark.parametrize(
    "usd,words",
    [
        (None, "–"),
        (0.4, "$0"),
        (516.1, "$516"),
        (999.4, "$999"),
        (999.5, "$1.0k"),
        (80_358, "$80.4k"),
        (80_350, "$80.4k"),
        (241_954, "$242.0k"),
        (999_949, "$999.9k"),
        (999_950, "$1.00M"),
        (2_063_744, "$2.06M"),
        (2_065_000, "$2.07M"),
        (64_512_000, "$64.51M"),
    ],
)
def test_short_money_rounds_half_up(usd: float | None, words: str) -> None:
    assert wording.short_money(usd) == words


@pytest.mark.parametrize(
    "before,after,words",
    [
        (100, 62, "−38%"),
        (100, 112, "+12%"),
        (100, 100, "no change"),
        (100, 100.2, "+under 1%"),
        (200, 99, "−51%"),
    ],
)
def test_changes(before: float, after: float, words: str) -> None:
    assert wording.change(before, after) == words


def test_sizes() -> None:
    assert wording.named_size(2**40, "gib") == "1,024.0 GiB"
    assert wording.named_size(2**40, "gb") == "1,099.5 GB"
    assert wording.small_size(70272, "gib") == "68.6 KiB"
    assert wording.middle_size(153_944_064, "gib") == "147 MiB"
    assert wording.middle_size(153_944_064, "gb") == "154 MB"


@pytest.mark.parametrize("provider,name", [("aws", "AWS"), ("runpod-secure", "Runpod Secure"), ("oci", "OCI")])
def test_providers(provider: str, name: str) -> None:
    assert wording.provider_name(provider) == name


@pytest.mark.parametrize("text,day", [("2026-07-20", "2026-07-20"), ("2026-07", "2026-07-01"), ("2025", "2025-01-01")])
def test_a_vague_date_is_taken_as_its_first_day(text: str, day: str) -> None:
    first_day = notes.day_of(text)
    assert first_day is not None and first_day.isoformat() == day


def test_no_date_is_no_age() -> None:
    import datetime

    assert notes.day_of(None) is None and notes.day_of("") is None
    assert not notes.is_stale(None, datetime.date(2026, 11, 20), 180)
    assert notes.is_stale("2026-01", datetime.date(2026, 11, 20), 180)
