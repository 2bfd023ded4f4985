"""Files that are no config, or wish to be more: one clear line each, and nothing is run."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sheetgen.errors import CatalogError
from sheetgen.importer.model_entry import import_config, import_file

GOOD: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
}


def refused(path: Path) -> str:
    with pytest.raises(CatalogError) as caught:
        import_file(path)
    (line,) = caught.value.problems
    assert line.isprintable() and len(line) < 2500 and str(path.parent) in line
    return line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not valid JSON"),
        ("not json", "is not valid JSON"),
        ("[1, 2]", "is a list, but a config.json is a mapping"),
        ("null", "is a null, but"),
        ('"text"', "is a text, but"),
        ('{"a": 1, "a": 2}', "a is given twice"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is nested deeper"),
        ('{"a":' * 40 + "1" + "}" * 40, "is nested deeper than 30 levels"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "holds a number that is too long"),
        ("{}", "model_type is missing"),
        ('{"model_type": 7}', "model_type is 7, but must be text"),
        ('{"model_type": null}', "model_type is missing"),
        ('{"model_type": ["llama"]}', "model_type is ['llama'], but must be text"),
        ('{"model_type": "\\u001b[31mred"}', "\\x1b[31mred"),
        ('{"model_type": "gemma3", "text_config": []}', "text_config is [], but must be a mapping"),
        ('{"model_type": "gemma3", "text_config": {}}', "text_config.num_hidden_layers is missing"),
        ('{"model_type": "llava", "text_config": {"model_type": "llava"}}', "text_config.model_type is 'llava'"),
    ],
)
def test_no_config(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    assert told in refused(path)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("num_hidden_layers", 10**9, "but must be from 1 to 2,000"),
        ("num_hidden_layers", -1, "but must be from 1 to 2,000"),
        ("num_hidden_layers", float("nan"), "but must be a whole number"),
        ("hidden_size", "4096", "is '4096', but must be a whole number"),
        ("hidden_size", 1e300, "but must be a whole number"),
        ("vocab_size", 10**18, "but must be from 1 to 1,000,000,000"),
        ("vocab_size", True, "but must be a whole number"),
        ("num_attention_heads", 0, "but must be from 1"),
        ("tie_word_embeddings", "yes", "but must be true or false"),
        ("layer_types", ["full_attention"] * 200_000, "has 200,000 items, but the model has 2 layers"),
        ("layer_types", "full_attention", "but must be a list"),
        ("layer_types", [{"kind": "full"}, 3], "layer_types[0] is "),
        ("rope_scaling", "yarn", "but must be a mapping"),
        ("rope_scaling", {"type": "linear", "factor": 1e9}, "but must be from"),
        ("rope_scaling", {"type": "linear", "factor": "8"}, "but must be a number"),
        ("quantization_config", ["fp8"], "but must be a mapping"),
        ("torch_dtype", 16, "but must be text"),
        ("num_key_value_heads", 3, "n_kv_heads 3 does not divide n_heads 4"),
    ],
)
def test_wrong_values(tmp_path: Path, key: str, value: object, told: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**GOOD, key: value}))
    line = refused(path)
    assert told in line and key.removeprefix("num_key_value_heads") in line


CONFIGS = Path(__file__).parents[1] / "data" / "configs"


@pytest.mark.parametrize("ratio", [0, -1, 2])
def test_an_image_does_not_shrink_to_nothing(tmp_path: Path, ratio: float) -> None:
    path = tmp_path / "config.json"
    config = json.loads((CONFIGS / "internvl2_5-8b.json").read_text())
    path.write_text(json.dumps({**config, "downsample_ratio": ratio}))
    assert f"downsample_ratio is {ratio}, " in refused(path)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("mixtral-8x7b-v0.1", "num_local_experts"),
        ("qwen3-30b-a3b", "num_experts"),
        ("trinity-mini", "num_experts"),
        ("deepseek-v3", "n_routed_experts"),
    ],
)
def test_a_mixture_without_its_number_of_experts_is_not_counted_as_dense(tmp_path: Path, name: str, key: str) -> None:
    """8x7B was counted as 7B where the key is missing; stated as null or 0 it is a dense model of the family."""
    config = json.loads((CONFIGS / f"{name}.json").read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in config.items() if k != key}))
    assert f"{key} is missing" in refused(path)


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    started = time.monotonic()
    assert " 5,000,000 bytes" in refused(path)
    assert time.monotonic() - started < 2


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe{}")
    assert "is not UTF-8 text" in refused(path)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"no config\.json"):
        import_file(tmp_path)


def test_a_missing_file_and_a_pipe(tmp_path: Path) -> None:
    assert "(No such file or directory)" in refused(tmp_path / "config.json")
    os.mkfifo(tmp_path / "pipe.json")
    assert "is not a file" in refused(tmp_path / "pipe.json")


def test_a_linked_folder_and_a_loop(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "config.json").write_text(json.dumps(GOOD))
    (tmp_path / "link").symlink_to(real)
    assert import_file(tmp_path / "link")[0].n_layers == 2
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read" in refused(tmp_path / "loop")


def test_remote_code_is_not_run(tmp_path: Path) -> None:
    """`auto_map` beside a known type is ignored; beside an unknown one it is the reason given."""
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**GOOD, "auto_map": {"AutoConfig": "evil.Config"}, "trust_remote_code": True}))
    assert import_file(path)[0].params.total > 0
    path.write_text(json.dumps({**GOOD, "model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}))
    assert "(auto_map)" in refused(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["=cmd()", "a\x1b[31mb", "<script>", "", "x" * 200, "a\nb"])
def test_names_that_a_page_may_not_hold(name: str) -> None:
    with pytest.raises(CatalogError) as caught:
        import_config(GOOD, name=name)
    assert all(line.startswith("config.json: name ") and line.isprintable() for line in caught.value.problems)


@pytest.mark.parametrize("folder", ["=cmd()", "a<b>c", "-x", "Ünï cödé", "x" * 200, "..a..b"])
def test_folders_with_odd_names_still_give_an_entry(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "config.json").write_text(json.dumps(GOOD))
    model, _ = import_file(tmp_path / folder)
    assert model.name and model.name[0] not in "=+-@{|" and len(model.id) <= 100


def test_the_cache_of_huggingface_hub_gives_the_repository(tmp_path: Path) -> None:
    folder = tmp_path / "models--acme--Tiny-1B-Instruct" / "snapshots" / "0123abcd"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(GOOD))
    model, _ = import_file(folder)
    assert (model.id, model.name, model.hf_id) == ("tiny-1b", "Tiny-1B-Instruct", "acme/Tiny-1B-Instruct")
    assert model.source == "config.json of acme/Tiny-1B-Instruct"
