"""`sheetgen catalog import`, and `--model` with a path."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_lines import Run

from sheetgen.catalog import Catalog, default_folder
from sheetgen.importer.config_reader import is_hub_id

CONFIGS = Path(__file__).parents[1] / "data" / "configs"


@pytest.fixture
def folder(workdir: Path) -> Path:
    """A folder as a download leaves it, whose name is no name of the catalogs."""
    target = workdir / "My-Qwen"
    target.mkdir()
    (target / "config.json").write_text((CONFIGS / "qwen3-8b.json").read_text())
    return target


def test_yaml_on_stdout_is_a_catalog_file(run: Run, folder: Path, tmp_path: Path) -> None:
    result = run("catalog", "import", folder)
    assert result.exit_code == 0, result.output
    (tmp_path / "c" / "models").mkdir(parents=True)
    (tmp_path / "c" / "models" / "my-qwen.yaml").write_text(result.stdout)
    model = Catalog(tmp_path / "c").model("my-qwen")
    assert model.params.total == 8_190_735_360
    assert run("check", tmp_path / "c").exit_code == 0


def test_json_holds_nothing_else(run: Run, folder: Path) -> None:
    data = json.loads(run("catalog", "import", folder / "config.json", "--json").stdout)
    assert data["params"]["total"] == 8_190_735_360
    assert data["id"] == "my-qwen"


def test_the_date_follows_source_date_epoch(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert "checked_on: 2023-11-14\n" in run("catalog", "import", folder).stdout
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "abc")
    result = run("catalog", "import", folder)
    assert result.exit_code == 1
    assert result.stderr.startswith("SOURCE_DATE_EPOCH is 'abc'. ")


def test_to_a_catalog_folder(run: Run, folder: Path, workdir: Path) -> None:
    result = run("catalog", "import", folder, "--to", "mine", "--id", "big-one", "--name", "Big One")
    assert result.exit_code == 0 and "mine/models/big-one.yaml: " in result.stdout
    assert run("size", "--catalogs", "mine", "--model", "big-one", "--gpu", "h100").stdout.startswith("Big One on")
    assert run("catalog", "import", folder, "--to", "mine", "--id", "big-one", "--name", "Big One").exit_code == 0
    again = run("catalog", "import", folder, "--to", "mine", "--id", "big-one")
    assert again.exit_code == 1 and "--force" in again.stderr
    assert run("catalog", "import", folder, "--to", "mine", "--id", "big-one", "--force", "--quiet").stdout == ""
    assert sorted(path.name for path in (workdir / "mine" / "models").iterdir()) == ["big-one.yaml"]


def test_into_the_shipped_catalogs(run: Run, folder: Path, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sheetgen.catalog.default_folder", lambda: workdir / "mine")
    words = run("catalog", "import", folder, "--to", "mine", "--id", "a").stdout.split()
    assert "check --write-index" in " ".join(words)


def test_out_names_the_entry(run: Run, folder: Path, workdir: Path) -> None:
    assert run("catalog", "import", folder, "--out", "q8.yaml").exit_code == 0
    assert (workdir / "q8.yaml").read_text().startswith("id: q8\n")


def test_faults_are_one_line_and_exit_1(run: Run, workdir: Path) -> None:
    (workdir / "empty").mkdir()
    (workdir / "bad.json").write_text('{"model_type": "lama"}')
    for name, told in (
        ("empty", "empty: the folder has no config.json."),
        ("bad.json", "bad.json: model_type is 'lama', which sheetgen cannot count. Did you mean llama?"),
        ("nope.json", "nope.json: cannot be read (No such file or directory)."),
    ):
        result = run("catalog", "import", name)
        assert result.exit_code == 1 and result.stdout == ""
        assert result.stderr.startswith(told) and result.stderr.count("\n") == 1
    assert run("catalog", "import").exit_code == 2
    assert run("catalog", "import", "bad.json", "--out", "a", "--to", "b").exit_code == 2


def test_bad_ids_and_places(run: Run, folder: Path, workdir: Path) -> None:
    assert "is no id" in run("catalog", "import", folder, "--id", "../up").stderr
    (workdir / "file").write_text("")
    result = run("catalog", "import", folder, "--to", "file")
    assert result.exit_code == 1 and "cannot be written" in result.stderr
    for option, value, words in (("--to", "", "to is blank."), ("--out", "a" * 300, "File name too long")):
        result = run("catalog", "import", folder, option, value)
        assert result.exit_code == 1 and words in result.stderr and result.stderr.count("\n") == 1
    for place, words in (("", "out is blank."), ("a" * 300, "File name too long")):
        assert words in run("plan", "init", "--out", place).stderr


def test_without_huggingface_hub(run: Run, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    result = run("catalog", "import", "acme/tiny")
    assert result.exit_code == 1 and "install huggingface_hub" in result.stderr and result.stderr.count("\n") == 1


class FakeHub:
    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.asked: list[dict[str, str]] = []

    def hf_hub_download(self, **asked: str) -> str:
        self.asked.append(asked)
        if self.path is None:
            raise ConnectionError("no route to host\nand more")
        path = self.path.with_name(asked["filename"])
        if not path.exists():
            raise EntryNotFoundError
        return str(path)


class EntryNotFoundError(Exception):
    """As the library calls what a repository has not."""


def test_by_hugging_face_id(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub(folder / "config.json")
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    text = run("catalog", "import", "acme/Tiny-8B-Instruct").stdout
    assert text.startswith("id: tiny-8b\nname: Tiny-8B-Instruct\nhf_id: acme/Tiny-8B-Instruct\n")
    files = ("config.json", "hf_quant_config.json")
    assert hub.asked == [{"repo_id": "acme/Tiny-8B-Instruct", "filename": file} for file in files]
    stated = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head"]}
    (folder / files[1]).write_text(json.dumps({"quantization": stated}))
    text = run("catalog", "import", "acme/Tiny-8B-NVFP4").stdout
    assert "weight_dtype: nvfp4\nkv_cache_dtype: fp8\n" in text


def test_offline(run: Run, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", FakeHub(None))
    result = run("catalog", "import", "acme/tiny")
    assert result.exit_code == 1 and "(no route to host)" in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_is_a_hub_id(workdir: Path) -> None:
    assert is_hub_id("acme/tiny") and is_hub_id("Qwen/Qwen3-8B")
    assert not any(map(is_hub_id, ("tiny", "a/b/c", "./a", "/a/b", "a/b.json", "../a", "a/../b", "a b/c")))


# --model with a path


def test_every_command_takes_a_path(run: Run, folder: Path) -> None:
    for path in (folder / "config.json", "./My-Qwen"):
        size = run("size", "--model", path, "--gpu", "h100")
        assert size.exit_code == 0 and size.stdout.startswith("My-Qwen on 1x NVIDIA H100")
    assert "My-Qwen" in run("recommend", "--model", folder, "--context", "16k", "--concurrent-requests", "10").stdout
    assert f"{folder.name}/config.json" in run("explain", "kv_bytes_per_token", "--model", "./My-Qwen").stdout
    assert "model, in My-Qwen/config.json" in run("show", "./My-Qwen").stdout
    built = run("build", "--models", "./My-Qwen,8b", "--format", "json", "--out", "out")
    assert built.exit_code == 0, built.output
    cells = json.loads((Path("out") / "sizing-sheet.json").read_text())["cells"]
    assert {cell["model"] for cell in cells} == {"my-qwen", "llama-3.1-8b"}


def test_a_path_gives_what_the_entry_gives(run: Run, workdir: Path) -> None:
    """Any .json file, whatever its name; a folder wins over a name that only resembles it."""
    config = json.loads((CONFIGS / "qwen3-8b.json").read_text())
    (workdir / "odd name.json").write_text(json.dumps(config))
    asked = ("--gpu", "h100", "--context", "8k", "--concurrent-requests", "8", "--json")
    ours = json.loads(run("size", "--model", "odd name.json", *asked).stdout)
    theirs = json.loads(run("size", "--model", "qwen3-8b", *asked).stdout)
    for key in ("n_params", "kv_bytes_per_token", "kv_bytes_per_sequence"):
        assert ours[key] == theirs[key]
    folder = workdir / "Qwen3-8B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 10}))
    assert json.loads(run("size", "--model", "./Qwen3-8B", *asked).stdout)["n_params"] < ours["n_params"] / 2


def test_the_weight_dtype_is_the_checkpoints(run: Run, workdir: Path) -> None:
    config = json.loads((CONFIGS / "qwen3-8b.json").read_text())
    for quantization, dtype in (
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"type": "float", "num_bits": 8}},
            "nvfp4",
        ),
    ):
        (workdir / "q.json").write_text(json.dumps({**config, "quantization_config": quantization}))
        out = run("size", "--model", "q.json", "--gpu", "h100").stdout
        kv = "fp8" if "kv_cache_scheme" in quantization else "bf16"
        assert f"weights {dtype.upper()}, KV cache {kv}" in out


def test_a_path_that_is_no_model(run: Run, workdir: Path) -> None:
    result = run("size", "--model", "./nope", "--gpu", "h100")
    assert result.exit_code == 1 and result.stderr.startswith("./nope: ")
    (workdir / "package.json").write_text('{"name": "left-pad"}')
    result = run("size", "--model", "package.json", "--gpu", "h100")
    assert result.exit_code == 1 and result.stderr.startswith("package.json: model_type is missing")


def test_a_link_to_a_file_elsewhere_is_checked_as_the_file_that_it_stands_for(run: Run, workdir: Path) -> None:
    shipped = default_folder() / "models" / "llama-3.1-8b.yaml"
    (workdir / "elsewhere").mkdir()
    (workdir / "elsewhere" / "x.yaml").write_text(shipped.read_text(), "utf-8")
    (workdir / "c" / "models").mkdir(parents=True)
    (workdir / "c" / "models" / shipped.name).symlink_to(workdir / "elsewhere" / "x.yaml")
    (workdir / "c" / "workloads.yaml").symlink_to(workdir / "elsewhere" / "x.yaml")
    assert run("check", f"c/models/{shipped.name}").exit_code == 0
    broken = run("check", "c/workloads.yaml")
    assert broken.exit_code == 1 and "c/workloads.yaml:1: field 'workloads' is missing." in broken.stderr
