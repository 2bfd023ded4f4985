"""Users parked in host memory: counted apart from requests at once, and back over the GPU's host link."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner
from command_lines import REPLICA

from sheetgen.catalog import Catalog
from sheetgen.catalog.stacks import LeverFile
from sheetgen.cli import main
from sheetgen.units import GIB

POINT = (*REPLICA, "--concurrent-requests", "8")


def run(*arguments: str) -> Any:
    return CliRunner(env={"COLUMNS": "1000"}).invoke(main, ["size", *arguments])


def sized(*arguments: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return record


def test_they_are_no_room_for_requests_in_flight() -> None:
    plain, offloaded = sized(*POINT), sized(*POINT, "--kv-offload-gib", "100")
    parked = offloaded.pop("parked")
    assert offloaded == plain  # what fits, and at which speed, is of the GPUs' memory
    assert parked["host_kv_bytes"] == 100 * GIB and parked["kv_bytes_per_user"] == plain["kv_bytes_per_sequence"]
    assert parked["parked_users"] == 100 * GIB // plain["kv_bytes_per_sequence"] == 20
    link = Catalog().file(LeverFile).link(Catalog().gpu("h100"))
    assert link is not None and (parked["link"], parked["link_source"]) == (link.name, link.source)
    assert parked["return_seconds"] == pytest.approx(plain["kv_bytes_per_sequence"] / 4 / link.bytes_per_second)


def test_a_rank_keeps_its_own_users_and_copies_of_heads() -> None:
    """16 GPUs keep 8 KV heads twice, so a parked user takes twice the memory; data-parallel ranks share it."""
    wide = sized(*POINT, "--tensor-parallel-size", "16", "--kv-offload-gib", "100")["parked"]
    assert wide["kv_bytes_per_user"] == 10 * GIB and wide["parked_users"] == 10
    ranks = sized("--model", "8b", "--data-parallel-size", "2", "--kv-offload-gib", "10")["parked"]
    assert ranks["parked_users"] == sized("--model", "8b", "--kv-offload-gib", "10")["parked"]["parked_users"] == 20


def test_in_words() -> None:
    text = run(*POINT, "--kv-offload-gib", "100").stdout
    below = text.partition("PARKED IN HOST MEMORY, 100 GiB of it\n")[2]
    assert "20 parked users" in below and "5.00 GiB each" in below
    assert " 21.3 ms, over PCIe 5 x16" in below
    assert "it serves no requests at once" in below
    assert "PARKED" not in run(*POINT).stdout


def test_an_unknown_link_has_no_time() -> None:
    parked = sized("--model", "8b", "--gpu", "spark", "--kv-offload-gib", "10")["parked"]
    assert parked["parked_users"] == 20 and parked["return_seconds"] is None and parked["link"] is None
    assert "link to its host is not known" in run("--model", "8b", "--gpu", "spark", "--kv-offload-gib", "10").stdout


def test_a_launch_names_the_engines_flag() -> None:
    text = run(*POINT, "--kv-offload-gib", "100", "--flags", "all").stdout
    assert ": add --kv-offloading-size 100 --kv-offloading-backend native\n" in text
    assert "add --enable-hierarchical-cache --hicache-size 26\n" in text  # GB of each of four ranks
    assert len(re.findall("is not known here", text)) == 3
    little = " ".join(run(*POINT, "--kv-offload-gib", "2", "--flags", "sglang").stdout.replace("\n# ", " ").split())
    assert "in whole GB for each GPU" in little and "hicache-size" not in little
    assert "parked" not in run(*POINT, "--flags", "all").stdout


def test_host_memory_among_the_settings_of_an_engine() -> None:
    settings = "max_batch_size=8,max_seq_len=4096"
    plain = sized("--model", "8b", "--gpu", "l40s", "--kv-budget", settings)
    sizes = sized("--model", "8b", "--gpu", "l40s", "--kv-budget", f"{settings},host_cache_size={8 * GIB}")
    assert sizes["parked"]["parked_users"] == 16 and "parked" not in plain
    same = ("holds", "full_sequences_that_fit", "budget_bytes", "verdict", "notes")
    assert [sizes["kv_budget"][name] for name in same] == [plain["kv_budget"][name] for name in same]


@pytest.mark.parametrize("value", ["0", "-1", "x", "nan", "1e9"])
def test_what_is_no_size(value: str) -> None:
    result = run(*POINT, "--kv-offload-gib", value)
    assert result.exit_code == 1 and result.stderr.startswith("kv_offload_gib is ") and result.stderr.count("\n") == 1


def test_a_batch_does_not_ignore_it() -> None:
    assert run("--batch", "x.csv", "--kv-offload-gib", "9").exit_code == 2
