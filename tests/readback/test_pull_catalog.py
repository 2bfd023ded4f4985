"""A workbook built with another catalog than today's: what it says wins, and stays in the scenario."""

from __future__ import annotations

import shutil
from pathlib import Path

import books
import pytest
from answers import document
from cells_of import LEAN, TINY
from test_pull_workbook import again

from sheetgen.catalog import Catalog, default_folder, write_index
from sheetgen.readback.pulled import pull
from sheetgen.readback.pulled_words import lines

WITHOUT_INSTANCES = {name: value for name, value in LEAN.items() if name != "instances"}


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The shipped catalog with a price and a model changed, an instance gone, and a cheaper one added."""
    base = tmp_path_factory.mktemp("today") / "catalogs"
    shutil.copytree(default_folder(), base)
    aws = (("type: g6e.12xlarge\n", "type: g6e.99xlarge\n"), ("usd_per_hour: 55.04", "usd_per_hour: 44.0"))
    gemma = (("n_heads: 32", "n_heads: 64"),)
    for name, changes in (("instances/aws.yaml", aws), ("models/gemma-3-27b.yaml", gemma)):
        text = (base / name).read_text()
        for old, new in changes:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (base / name).write_text(text)
    write_index(base)
    return Catalog(base=base)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(TINY, id="named instances", marks=pytest.mark.long),
        pytest.param(WITHOUT_INSTANCES, id="the catalog's choice"),
    ],
)
def test_what_the_workbook_says_wins_over_todays_catalog(
    options: dict[str, str], today: Catalog, tmp_path: Path
) -> None:
    path, question = books.build(tmp_path, "old", options)
    pulled = pull(path, today)
    assert pulled.other_catalog and not pulled.other_results
    assert pulled.overrides["instances"]["aws/p5.48xlarge"] == {"price_usd_per_hour": 55.04}
    assert pulled.overrides["models"]["gemma-3-27b"]["n_heads"] == 32
    (own,) = pulled.overrides["own_instances"]
    assert own["type"] == "g6e.12xlarge" and own["price_usd_per_hour"] == 10.49264
    assert "aws/g6e.99xlarge" not in [c.instance for c in pulled.solved.question.candidates]
    first = next(lines(pulled))
    today_sha = today.catalog_sha256()
    assert question.catalog_sha256[:8] in first and today_sha[:8] in first and "5 values" in first
    assert again(pulled, today) == document(pulled.solved)


@pytest.mark.long
def test_a_gpu_that_no_instance_of_today_has_is_rented_as_the_workbook_says(today: Catalog, tmp_path: Path) -> None:
    few = {**TINY, "instances": "aws/g6e.12xlarge,aws/p5.48xlarge"}
    path, _ = books.build(tmp_path, "old", few)
    pulled = pull(path, today)
    assert "nvidia-l40s-48gb" in [gpu.id for gpu in pulled.solved.question.gpus]
    assert "aws/g6e.12xlarge" in [cell["instance"] for cell in document(pulled.solved)["cells"]]
    assert not pulled.other_results and pulled.notes == ()
    assert again(pulled, today) == document(pulled.solved)
