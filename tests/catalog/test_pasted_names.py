"""Models by their names as hubs, logs, caches and hosts write them; derivatives under names of their own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.catalog.hosted import hosted_file
from sheetgen.catalog.model import Model, stem
from sheetgen.catalog.nearest_names import agreement, model_parts
from sheetgen.errors import CatalogError
from sheetgen.importer.model_entry import import_file

with (Path(__file__).parents[1] / "data" / "model_names.csv").open(encoding="utf-8") as file:
    WRITTEN = list(csv.DictReader(file))


@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: row["written"])
def test_as_written(catalog: Catalog, row: dict[str, str]) -> None:
    assert bool(row["id"]) != bool(row["refused"]) and row["source"]
    if row["refused"]:
        if catalog.lists_model(stem(row["written"])):
            pytest.skip("has been entered: give the row its id")
        with pytest.raises(CatalogError) as caught:
            catalog.resolve_model(row["written"])
        assert row["refused"] in str(caught.value) and len(str(caught.value)) < 500
        return
    if row["sized_as"] and row["id"] in catalog.ids("models"):
        pytest.skip("has been entered: it is sized as itself")
    model, dtype = catalog.resolve_model(row["written"])
    assert (model.id, model.sized_as or "", dtype or "") == (row["id"], row["sized_as"], row["weight_dtype"])


def derivatives(catalog: Catalog) -> list[tuple[Model, str]]:
    """Every entry with other weights of its architecture, whose name is not only spelled otherwise."""
    return [
        (model, name) for model in catalog.models() for name in model.same_architecture if model.weights_named(name)
    ]


def test_every_derivative_has_a_name_of_its_own_that_leads_back_to_it(catalog: Catalog) -> None:
    pairs = derivatives(catalog)
    assert len(pairs) > 100
    for entry, name in pairs:
        model = catalog.model(name)
        assert (model.id, model.name, model.hf_id) == (stem(name), name.rsplit("/", 1)[-1], name)
        context = {"max_context_tokens": model.max_context_tokens}  # which may be its own
        assert (model.sized_as, model.is_listed, model.shape()) == (entry.id, True, entry.shape() | context)
        assert catalog.model(model.id).id == model.id and catalog.model(model.id).sized_as == entry.id
        assert all(checkpoint.of == name for checkpoint in model.own_checkpoints)


def test_only_a_name_of_training_or_of_a_day_is_taken_for_the_shape(catalog: Catalog) -> None:
    tuned = catalog.model("my-org/Llama-3.1-8B-Instruct-dpo-2511")
    assert (tuned.sized_as, tuned.is_listed, tuned.name) == ("llama-3.1-8b", False, "Llama-3.1-8B-Instruct-dpo-2511")
    for other in ("vision", "embedding", "moe", "eagle", "4b", "width", "1m"):
        with pytest.raises(CatalogError):
            catalog.model(f"my-org/Llama-3.1-8B-{other}")


def test_a_derivative_is_called_by_its_name_and_has_hosts_of_its_own() -> None:
    catalog = Catalog()
    hosted = {
        name: {price.name for price in hosted_file(catalog).of(name)} for name in ("qwen2.5-32b", "qwen2.5-coder-32b")
    }
    assert hosted["qwen2.5-coder-32b"] and not set.intersection(*hosted.values())
    record = sheetgen.recommend(model="Qwen/Qwen2.5-Coder-32B-Instruct")
    (model,), (cell, *_) = record["models"], record["cells"]
    assert (model["id"], model["name"]) == ("qwen2.5-coder-32b", "Qwen2.5-Coder-32B-Instruct")
    assert model["sized_as"] == "qwen2.5-32b"
    assert cell["hosted"] and {host["model"] for host in cell["hosted"]} <= hosted["qwen2.5-coder-32b"]
    sized = [sheetgen.size(model=name, gpu="h100") for name in ("qwen2.5-coder-32b", "qwen2.5-32b")]
    same = [
        {key: value for key, value in answer.items() if key not in ("model", "model_id", "sized_as")}
        for answer in sized
    ]
    assert same[0] == same[1] and [answer["sized_as"] for answer in sized] == ["qwen2.5-32b", None]


@pytest.mark.parametrize(
    ("model_type", "words"),
    [
        ("xlm-roberta", "an encoder keeps no cache"),
        ("llada2_moe", "by diffusion"),
        ("rwkv7", "it has no attention"),
        ("nemotron_h_puzzle", "widths of their own"),
        ("deepseek_v41", "n-gram tables"),
        ("qwen3_moe_plus", "It could be qwen3_moe"),
        ("nothing_like_it", "which sheetgen cannot count."),
    ],
)
def test_a_family_that_is_not_counted_is_refused_by_its_name(tmp_path: Path, model_type: str, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": model_type, "hidden_size": 64}))
    with pytest.raises(CatalogError) as caught:
        import_file(str(path))
    assert words in str(caught.value) and len(str(caught.value)) < 400


def test_agreement_is_of_words_and_numbers() -> None:
    def near(name: str, other: str) -> float:
        return agreement(model_parts(name), model_parts(other))

    assert near("llama-3.1-8b", "Llama_3.1-8B") == 1
    assert near("lama-3.1-8b", "llama-3.1-8b") > near("lama-3.1-8b", "llama-3.1-70b")
    assert near("glm-5.1", "glm-5.2") > near("glm-5.1", "glm-4.6")
    assert near("falcon-40", "falcon-40b") > near("falcon-40", "falcon-7b")
    assert near("b200", "l40") == 0


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("qwen2.5-72b", 32_768),
        ("Qwen/Qwen2.5-72B-Instruct", 32_768),  # its config, where YaRN is off
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", 32_768),
        ("RedHatAI/Qwen2.5-7B-Instruct-FP8-dynamic", 32_768),
        ("Qwen/Qwen2.5-72B", 131_072),  # the base model
        ("Qwen/Qwen2.5-7B", 131_072),
        ("Qwen/Qwen2.5-1.5B-Instruct", 32_768),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", 32_768),
        ("Qwen/Qwen2-72B-Instruct", 32_768),
        ("Qwen/Qwen2-Math-7B-Instruct", 4096),
    ],
)
def test_the_context_is_that_of_the_checkpoint_that_is_named(name: str, context: int, catalog: Catalog) -> None:
    """A base model's config and its Instruct checkpoint's differ; what is launched is the one whose context it is."""
    model = catalog.model(name)
    assert model.max_context_tokens == context
    assert context == 131_072 or "Qwen2.5-72B" not in name or model.hf_id == "Qwen/Qwen2.5-72B-Instruct"
    assert context != 131_072 or model.hf_id == name
