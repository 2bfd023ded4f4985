"""A model, a GPU, a price, a provider are entered in the files that CONTRIBUTING names, and in no other: `check` finds
nothing, and no test that reads the catalogs hangs on what they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import contributed
import pytest

from sheetgen.catalog import Catalog
from sheetgen.catalog.check import faults_of, remarks_of

TESTS = Path(__file__).parents[1]
# By file, what of it once hung on the shipped entries.
ONCE_COUNTED = {
    "catalog/test_prices.py": "shipped_prices or new_types or new_rows_by_the_gpu or writer or offers_by_the_gpu",
    "catalog/test_hosted_prices.py": "shipped_file or means_the_same",
    "catalog/test_gpu_names.py": "as_printed or no_hint",
    "catalog/test_pasted_names.py": "as_written",
    "catalog/test_models_page.py": "page_says or cannot_be_known",
    "catalog/test_plausible.py": "class_without",
    "catalog/test_region_prices.py": "shipped_files",
    "catalog/test_regions.py": "unknown_region",
    "cli/test_catalog_prices.py": "shows_what_changes",
    "cli/test_market.py": "vendor_that_is_none",
    "importer/test_facts_round.py": "nearly_every",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return contributed.write(tmp_path_factory.mktemp("contributed") / "catalogs")


def run_tests(folder: Path, *options: str) -> str:
    """The output of pytest on the catalogs in `folder`; blank where nothing failed."""
    plain = ["-q", "-x", "-p", "no:cacheprovider", "--tb=short"]
    command = [sys.executable, contributed.__file__, str(folder), *plain, *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), *sys.path])}
    done = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def test_check_finds_nothing(folder: Path) -> None:
    catalog = Catalog(base=folder)
    assert not faults_of(catalog) and not list(remarks_of(catalog))
    assert {gpu.vendor for gpu in catalog.gpus()} > {gpu.vendor for gpu in Catalog().gpus()}
    assert {*contributed.MODELS} <= {*catalog.ids("models")} and catalog.gpu("ACME X1").id == "acme-x1-48gb"


@pytest.mark.long  # which runs the tests themselves once more, in a process of their own
def test_what_was_counted_is_read_from_the_catalogs(folder: Path) -> None:
    names = " or ".join(f"({names})" for names in ONCE_COUNTED.values())
    assert run_tests(folder, *(str(TESTS / file) for file in ONCE_COUNTED), "-k", names) == ""


@pytest.mark.long
@pytest.mark.parametrize("tests", ["catalog", "importer", "launch", "startup", "cli/test_market.py", "test_docs.py"])
def test_whole_folders_of_tests_hold(folder: Path, tests: str) -> None:
    assert run_tests(folder, str(TESTS / tests), "--deselect", __file__) == ""
