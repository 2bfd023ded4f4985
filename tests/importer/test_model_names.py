"""Which model a name means that may be a path: a config of the user's own, or an entry of the catalogs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_hostile_configs import GOOD

from sheetgen.catalog import Catalog
from sheetgen.errors import CatalogError, UnknownNameError
from sheetgen.importer.model_entry import import_config, import_file
from sheetgen.importer.model_names import resolve_model


@pytest.mark.parametrize("path", ["my/config.json", "./model", "/etc/model"])
def test_a_path_that_is_not_there(catalog: Catalog, path: str) -> None:
    with pytest.raises(CatalogError) as caught:
        resolve_model(path, catalog)
    (problem,) = caught.value.problems
    assert (
        problem == f"{Path(path).expanduser() if path[0] == '~' else path}: cannot be read (No such file or directory)."
    )


@pytest.mark.parametrize("name", ["", "zzzz", "x" * 10_000, "a\x00b\x1b[31m", "file:///etc/passwd"])
def test_what_is_no_path_is_looked_up_in_the_catalogs(catalog: Catalog, name: str) -> None:
    with pytest.raises(UnknownNameError, match="is not in the catalogs") as caught:
        resolve_model(name, catalog)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_a_name_of_the_catalogs(catalog: Catalog) -> None:
    model, weight_dtype = resolve_model("8b-fp8", catalog)
    assert (model.id, weight_dtype) == ("llama-3.1-8b", "fp8")


def test_a_folder_with_a_config_is_a_path(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CatalogError, match=r"mine/config\.json: model_type is missing"):
        resolve_model("mine", catalog)


def test_a_listed_name_is_no_path(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "8b").mkdir()
    (tmp_path / "8b" / "config.json").write_text(json.dumps(GOOD))
    monkeypatch.chdir(tmp_path)
    assert resolve_model("8b", catalog)[0].id == "llama-3.1-8b"


def test_an_imported_model_is_read_like_an_entry(tmp_path: Path) -> None:
    catalog, before = Catalog(), Catalog().catalog_sha256()
    (tmp_path / "mine.json").write_text(json.dumps(GOOD))
    model, weight_dtype = resolve_model(str(tmp_path / "mine.json"), catalog)
    assert (model.id, weight_dtype) == ("mine", None)
    document = catalog.read_document("models/mine.yaml")
    assert document.where == str(tmp_path / "mine.json") and document.data["n_layers"] == 2
    assert catalog.catalog_sha256() != before


def test_only_a_repository_is_a_source(tmp_path: Path) -> None:
    """A config that somebody wrote is unverified; one of a repository, fetched or in the cache, is sourced."""
    snapshot = tmp_path / "models--org--mine" / "snapshots" / "0a"
    snapshot.mkdir(parents=True)
    for folder in (tmp_path, snapshot):
        (folder / "config.json").write_text(json.dumps(GOOD))
    marks = {import_file(folder)[0].confidence for folder in (tmp_path, tmp_path / "config.json")}
    assert marks == {"unverified"} and import_config(GOOD, name="mine").confidence == "unverified"
    assert import_file(snapshot)[0].confidence == "sourced"
    assert import_config(GOOD, name="mine", hf_id="org/mine").confidence == "sourced"


@pytest.mark.parametrize("key", ["max_position_embeddings", "num_hidden_layers", "hidden_size", "vocab_size"])
def test_the_line_that_a_missing_key_asks_for_is_one_that_counts(key: str) -> None:
    """The line of the message is put into the config as it stands; no other key is suggested that is there already."""
    config = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(CatalogError, match=f"{key} is missing") as caught:
        import_config(config, name="mine")
    message = str(caught.value)
    assert "a whole number from 1 to" in message and "Did you mean" not in message
    (line,) = re.findall(rf'"{key}": [0-9]+', message)
    heads = {"num_attention_heads": 32, "num_key_value_heads": 8} if key == "hidden_size" else {}
    assert import_config({**config, **heads, **json.loads(f"{{{line}}}")}, name="mine").params.total


@pytest.mark.parametrize(
    ("architecture", "model_type"),
    [("Qwen3ForCausalLM", "qwen3"), ("Qwen3MoeForCausalLM", "qwen3_moe"), ("MixtralForCausalLM", "mixtral"),
     ("GptOssForCausalLM", "gpt_oss"), ("SomethingElse", "llama")],
)  # fmt: skip
def test_a_missing_model_type_is_suggested_by_the_class(architecture: str, model_type: str) -> None:
    config = {**GOOD, "architectures": [architecture]}
    del config["model_type"]
    with pytest.raises(CatalogError, match=re.escape(f'"model_type": "{model_type}"')):
        import_config(config, name="mine")


def test_a_misspelt_key_is_named() -> None:
    config = {**GOOD, "max_positional_embeddings": 4096}
    config.pop("max_position_embeddings")
    with pytest.raises(CatalogError, match=r"Did you mean max_positional_embeddings\?"):
        import_config(config, name="mine")
