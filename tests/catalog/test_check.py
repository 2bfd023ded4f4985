"""`sheetgen check`: the shipped catalogs are sound, and a broken one says where and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, default_folder, read_document, validate, write_index
from sheetgen.catalog.base import checked
from sheetgen.catalog.check import faults_of
from sheetgen.catalog.hardware import InstanceFile
from sheetgen.catalog.model import Model
from sheetgen.errors import CatalogError
from sheetgen.plan.schema import Policy

MODEL = "models/llama-3.1-8b.yaml"
GPU = "gpus/nvidia-h100-sxm5-80gb.yaml"
ROWS = "instances/acme.yaml"


def edit(folder: Path, file: str, old: str, new: str) -> list[str]:
    """Replace the first `old` in a file. Returns the problems that `check` then finds, without the folder's name."""
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return [p.removeprefix(f"{folder}/") for *_, p in faults_of(Catalog(base=folder))]


def test_shipped_catalogs_are_sound(catalog: Catalog) -> None:
    assert faults_of(catalog) == []


def test_a_small_catalog_is_sound(small: Path) -> None:
    assert faults_of(Catalog(base=small)) == []


@pytest.mark.parametrize("part", ["# text", [], 7])
def test_a_part_that_is_no_mapping_is_named(part: object) -> None:
    """A text in the place of a plan's policy, or of a service, was a traceback."""
    entry, [(place, problem)] = checked(part, Policy, ("policy",))
    assert entry is None and place == ("policy",)
    assert problem == f"policy is {str(part)!r}, but must be a mapping of fields."


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (
            MODEL,
            "n_layers: 32\n",
            "n_layer: 32\n",
            f"{MODEL}:16: unknown field n_layer. Did you mean n_layers?",
        ),
        (
            MODEL,
            "n_kv_heads: 8",
            "n_kv_head: 8",
            f"{MODEL}:27: unknown field n_kv_head. Did you mean n_kv_heads?",
        ),
        (MODEL, "kind: full", "kindd: full", f"{MODEL}:27: unknown field kindd. Did you mean kind? Known: kind."),
        (MODEL, "n_kv_heads: 8", "n_kv_heads: 5", f"{MODEL}:27: n_kv_heads 5 does not divide n_heads 32."),
        (
            MODEL,
            "n_layers: 32\n",
            "n_layers: '32'\n",
            f"{MODEL}:16: n_layers is '32', but must be a whole number.",
        ),
        (
            MODEL,
            "n_layers: 32\n",
            "n_layers: 0\n",
            f"{MODEL}:16: n_layers is 0, but should be greater than 0.",
        ),
        (
            MODEL,
            "- hf_id: RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic",
            "- hf_id: meta-llama/Llama-3.1-8B-Instruct",
            f"{MODEL}:24: weight_dtype is bf16, but meta-llama/Llama-3.1-8B-Instruct is stored in fp8",
        ),
        (
            MODEL,
            "n_layers: 32\n",
            "n_layers: 33\n",
            f"{MODEL}:16: n_layers is 33, but the attention groups have 32",
        ),
        (
            MODEL,
            "  body: 6979588096",
            "  body: 6979588097",
            f"{MODEL}:29: total is 8,030,261,248, but its parts add",
        ),
        (
            MODEL,
            "weight_dtype: bf16",
            "weight_dtype: bf61",
            f"{MODEL}:24: weight_dtype 'bf61' is not one of bf16",
        ),
        (
            MODEL,
            "context_source: 'model card: 128k, of the pretrained and the instruction-tuned weights'\n",
            "",
            f"{MODEL}:22: source is the config of meta-llama/Meta-Llama-3.1-8B, and hf_id is meta-llama/Llama-3.1-8B-",
        ),
        (MODEL, "{kind: full", "{kind: ful", f"{MODEL}:27: kind is 'ful', but must be one of full"),
        (MODEL, "confidence: sourced", "confidence: sorced", "Did you mean sourced?"),
        (
            MODEL,
            "id: llama-3.1-8b",
            "id: llama-3.1-9b",
            f"{MODEL}:1: id is llama-3.1-9b, but the file is named",
        ),
        (
            MODEL,
            "checked_on: 2026-11-20",
            "checked_on: 20.11.2026",
            f"{MODEL}:15: checked_on '20.11.2026' is no date",
        ),
        (MODEL, "source: '", "source: 'file:///etc/passwd ", f"{MODEL}:14: source"),
        (MODEL, "source: '", "source: 'javascript:alert(1) ", "neither http nor https"),
        (MODEL, "name: Llama 3.1 8B", "name: '=cmd()'", f"{MODEL}:2: name '=cmd()' starts with a character"),
        (MODEL, "name: Llama 3.1 8B", "name: '+1'", f"{MODEL}:2: name '+1' starts with a character"),
        (MODEL, "name: Llama 3.1 8B", "name: '@x'", f"{MODEL}:2: name '@x' starts with a character"),
        (MODEL, "name: Llama 3.1 8B", "name: '{=1}'", f"{MODEL}:2: name '{{=1}}' starts with a character"),
        (
            MODEL,
            "name: Llama 3.1 8B",
            "name: <script>",
            f"{MODEL}:2: name '<script>' holds a line break or one of",
        ),
        (MODEL, "name: Llama 3.1 8B", "name: file:///etc/passwd", "neither http nor https"),
        (
            MODEL,
            "name: Llama 3.1 8B",
            "name: " + "x" * 10_000,
            f"{MODEL}:2: holds a string of 10,000 characters",
        ),
        (MODEL, "name: Llama 3.1 8B", "name: " + "x" * 200, "has 200 characters; a name may have 120"),
        (MODEL, "name: Llama 3.1 8B", 'name: "a\\x00b"', f"{MODEL}:2: holds a control character. Take it out"),
        (
            MODEL,
            "name: Llama 3.1 8B",
            "name: a\nname: b",
            f"{MODEL}:3: name is given twice (first on line 2)",
        ),
        (MODEL, "license: llama3.1\n", "license: [\n", "is not valid YAML"),
        (
            GPU,
            "  engine_bytes: 85029615043",
            "  engine_bytes: 8502961504",
            f"{GPU}:14: engine_bytes 8,502,961,504 is",
        ),
        (GPU, "fp8: native", "fp9: native", "fp9"),
        (
            GPU,
            "data_center: true",
            "data_center: yes",
            f"{GPU}:10: data_center is 'yes', but must be true or false.",
        ),
        (
            ROWS,
            "gpu: h100",
            "gpu: h1000",
            f"{ROWS}:4: gpu is 'h1000', which is not in catalogs/gpus. Did you mean h100?",
        ),
        (
            ROWS,
            "purchase: on-demand",
            "purchase: ondemand",
            f"{ROWS}:9: purchase is 'ondemand', but must be one of",
        ),
        (
            ROWS,
            "usd_per_hour: 2.5",
            "usd_per_hour: 0",
            f"{ROWS}:9: usd_per_hour is 0, but should be greater than or equal to 0.0001.",
        ),
        (ROWS, "usd_per_hour: 2.5", "usd_per_hour: 2,5", "unknown field 5"),
        (ROWS, "    unit: instance\n", "", f"{ROWS}:3: field 'unit' is missing."),
        (
            ROWS,
            "provider: acme",
            "provider: acne",
            f"{ROWS}:1: provider is acne, but the file is named acme.yaml.",
        ),
        (
            MODEL,
            "source: '",
            "source: config.json of mine # '",
            f"{MODEL}:14: source is 'config.json of mine', a file of yours. Say where it was published.",
        ),
        (GPU, "host_link: PCIe 5 x16\n", "", f"{GPU}:22: host_link is missing: PCIe 3 x16, "),
        (
            GPU,
            "host_link: PCIe 5 x16",
            "host_link: PCIe 5 x61",
            f"{GPU}:24: host_link 'PCIe 5 x61' is none of levers.yaml. Did you mean PCIe 5 x16?",
        ),
        (
            "left_out.yaml",
            "names: [laguna-m.1]",
            "names: [laguna-m.1, Meta-Llama-3.1-8B]",
            f"{MODEL}:1: Meta-Llama-3.1-8B is entered here, and left_out.yaml refuses it. Take it out there.",
        ),
        (
            "left_out.yaml",
            "names: [laptop]",
            "names: [laptop, h100]",
            f"{GPU}:1: nvidia-h100-sxm5-80gb is entered here, and left_out.yaml refuses it: a laptop's GPU",
        ),
        ("workloads.yaml", "input_tokens: 3072", "input_token: 3072", "Did you mean input_tokens?"),
        ("tiers.yaml", "requests: 32", "requests: 1.5", "requests is '1.5', but must be a whole number."),
        (MODEL, "aliases: [8b]", "aliases: [8b, 9b]", "index.yaml: is older than the files"),
    ],
)
def test_problems(small: Path, file: str, old: str, new: str, problem: str) -> None:
    problems = edit(small, file, old, new)
    assert any(problem in line for line in problems), problems
    assert all(line.isprintable() and len(line) < 400 for line in problems)


def test_a_name_of_tools_that_is_read_as_another(small: Path) -> None:
    """Of two GPUs, the longer name is read; with `_` a name is never printed whole."""
    text = (small / GPU).read_text().replace("NVIDIA H100 80GB HBM3]", "NVIDIA H100 80GB_HBM3]")
    (small / GPU).write_text(text)
    write_index(small)
    problems = [problem.removeprefix(f"{small}/") for *_, problem in faults_of(Catalog(base=small))]
    assert problems == [
        f"{GPU}:28: 'NVIDIA H100 80GB_HBM3', as tools print it, is read as a part of it. Give the name as printed."
    ]


def test_other_weights_belong_to_one_model(small: Path) -> None:
    """Of two organisations: by their bare name nobody could say which."""
    text = (small / MODEL).read_text()
    body = text[text.index("kind: model") :]
    head = "id: mine\nname: Mine\nhf_id: someone/Mine\nsame_architecture:\n  - someone/Hermes-3-Llama-3.1-8B\n"
    (small / "models" / "mine.yaml").write_text(head + body[: body.index("checkpoints:")])
    write_index(small)
    problems = [problem.removeprefix(f"{small}/models/") for *_, problem in faults_of(Catalog(base=small))]
    words = "Hermes-3-Llama-3.1-8B is a name of {} as well. Name it in one of them."
    assert problems == [
        f"llama-3.1-8b.yaml:10: NousResearch/{words.format('mine')}",
        f"mine.yaml:5: someone/{words.format('llama-3.1-8b')}",
    ]


def test_machines_of_a_rack_say_so_alike(small: Path) -> None:
    row = (small / ROWS).read_text().split("instances:\n")[1]
    other = row.replace("type: one", "type: other").replace("gpu_count: 1\n", "gpu_count: 4\n")
    tray = other.replace("type: other\n", "type: tray\n    nvlink_domain_gpus: 72\n")
    problem = edit(small, ROWS, row, row + tray + other)
    assert problem == [
        f"{ROWS}:24: acme/tray, of as many nvidia-h100-sxm5-80gb, has nvlink_domain_gpus: 72, and acme/other has not. "
        "Say the same of both."
    ]


def test_all_problems_in_one_run(small: Path) -> None:
    edit(small, MODEL, "n_layers: 32\n", "n_layer: 32\n")
    edit(small, MODEL, "hidden_size: 4096", "hidden_size: big")
    problem = edit(small, GPU, "tdp_watts", "tdp_wats")
    assert len(problem) == 3  # the misspelt field, the word, the other file
    assert [line.split(":")[0] for line in problem] == [GPU, MODEL, MODEL]


def test_same_name_twice(small: Path) -> None:
    text = (small / MODEL).read_text().replace("id: llama-3.1-8b", "id: other").replace("meta-llama/", "other/")
    (small / "models" / "other.yaml").write_text(text)
    problems = [problem for *_, problem in faults_of(Catalog(base=small))]
    assert any("both llama-3.1-8b and other" in line for line in problems)
    with pytest.raises(CatalogError, match="8b names both"):
        write_index(small)


def test_duplicate_rows_and_prices(small: Path) -> None:
    text = (small / ROWS).read_text()
    price = "      - {purchase: on-demand, usd_per_hour: 2.5, as_of: '2026-11'}\n"
    (small / ROWS).write_text(text.replace(price, price * 2) + text.split("instances:\n")[1])
    with pytest.raises(CatalogError) as caught:
        validate(read_document(small / ROWS), InstanceFile)
    assert any("on-demand price is given twice" in line for line in caught.value.problems)
    assert any("type one is given twice" in line for line in caught.value.problems)


def test_files_that_are_not_read(small: Path) -> None:
    (small / "models" / "x.yml").write_text("id: x\n")
    (small / "engines").mkdir()
    (small / "engines" / "vllm.yaml").write_text("a: 1\na: 2\n")
    problems = [problem for *_, problem in faults_of(Catalog(base=small))]
    assert any("models/x.yml: " in line for line in problems)
    assert any("vllm.yaml:2: a is given twice" in line for line in problems)


def test_folders_add_and_override(small: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    (extra / "models").mkdir(parents=True)
    (extra / "instances").mkdir()
    text = (small / MODEL).read_text()
    (extra / "models" / "mine.yaml").write_text(
        text.replace("id: llama-3.1-8b", "id: mine").replace("aliases: [8b]", "aliases: [my-model]")
    )
    (extra / MODEL).write_text(text.replace("name: Llama 3.1 8B", "name: Ours"))
    row = (small / ROWS).read_text().replace("2.5", "1.5")
    (extra / ROWS).write_text(row + row.split("instances:\n")[1].replace("type: one", "type: two"))
    both = Catalog(extra, base=small)
    assert both.model("8b").name == "Ours"
    assert both.model("my-model").id == "mine"
    assert {m.id for m in both.models()} == {"llama-3.1-8b", "mine"}
    assert [i.id for i in both.instances()] == ["acme/one", "acme/two"]
    price = both.instance("one").price("on-demand")
    assert price is not None and price.usd_per_hour == 1.5
    assert both.instance("one").gpu == "nvidia-h100-sxm5-80gb"
    (extra / "tiers.yaml").write_text("tiers:\n  - {requests: 7, name: Seven, reason: ours}\n")
    assert [tier.requests for tier in both.tiers()] == [7]
    assert both.catalog_sha256() != Catalog(base=small).catalog_sha256()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (MODEL, "hidden_size: ", "hidden_siz: ", "unknown field hidden_siz. Did you mean hidden_size?"),
        (MODEL, "  total: ", "  totl: ", "unknown field totl. Did you mean total?"),
        (ROWS, "gpu_count: 1", "gpu_count: one", "gpu_count is 'one', but must be a number."),
    ],
)
def test_one_fault_is_one_line(file: str, old: str, new: str, message: str, small: Path) -> None:
    """A misspelt field is not missing as well, and a value that may be of two kinds is wrong once."""
    (problem,) = edit(small, file, old, new)
    assert message in problem


def test_a_name_belongs_to_one_entry(small: Path, tmp_path: Path) -> None:
    """Of two folders, and of one; the checkpoint that both are of (hf_id) is no such name."""
    extra = tmp_path / "extra"
    (extra / "models").mkdir(parents=True)
    (extra / "gpus").mkdir()
    text = (small / MODEL).read_text()
    (extra / "models" / "mine.yaml").write_text(text.replace("id: llama-3.1-8b", "id: mine"))
    (extra / "gpus" / "h100.yaml").write_text(
        next((small / "gpus").glob("*h100-sxm5*")).read_text().replace("id: nvidia-h100-sxm5-80gb", "id: h100")
    )
    line_number = next(i for i, line in enumerate(text.splitlines(), start=1) if line.startswith("aliases"))
    taken = f"{extra}/models/mine.yaml:{line_number}: 8b is a name of llama-3.1-8b already. Give each its own name."
    for ask in (lambda c: c.model("mine"), lambda c: c.gpu("h100"), lambda c: c.instances()):
        with pytest.raises(CatalogError) as raised:
            ask(Catalog(extra, base=small))
        assert raised.value.problems[0] == taken
        assert any("h100.yaml:1: h100 is a name of" in p for p in raised.value.problems)
    assert [problem for *_, problem in faults_of(Catalog(extra, base=small))] == list(raised.value.problems)
    (extra / "gpus" / "h100.yaml").unlink()
    (extra / "models" / "mine.yaml").write_text(text.replace("id: llama-3.1-8b", "id: mine").replace("8b]", "9b]"))
    assert Catalog(extra, base=small).model("9b").id == "mine" and faults_of(Catalog(extra, base=small)) == []
    (extra / "models" / "other.yaml").write_text(text.replace("id: llama-3.1-8b", "id: other").replace("8b]", "9b]"))
    with pytest.raises(CatalogError, match=r"other\.yaml:\d+: 9b is a name of mine"):
        Catalog(extra, base=small).model("8b")


def test_a_folder_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, problem in (("file", "is no folder"), ("none", "cannot be read"), ("a\0b", "cannot be read")):
        with pytest.raises(CatalogError, match=problem):
            Catalog(tmp_path / name)


def test_entries_are_frozen(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="frozen"):
        catalog.model("8b").n_layers = 1  # type: ignore[misc]


def test_shape_has_one_value_a_column(catalog: Catalog) -> None:
    columns = {tuple(model.shape()) for model in catalog.models()}
    assert len(columns) == 1
    assert all(isinstance(v, (int, float)) for m in catalog.models() for v in m.shape().values())


def test_two_shapes_of_one_kind(small: Path) -> None:
    group = "  - {kind: full, n_layers: 32, n_kv_heads: 8, key_width: 128, value_width: 128}\n"
    two = group.replace("32", "16") + group.replace("32", "16").replace("heads: 8", "heads: 4")
    text = (small / MODEL).read_text().replace(group, two)
    (small / MODEL).write_text(text)
    with pytest.raises(CatalogError, match="a second full group"):
        validate(read_document(small / MODEL), Model)


def test_read_yaml(catalog: Catalog) -> None:
    assert catalog.read_document("tiers.yaml").data["tiers"][0]["requests"] == 1
    with pytest.raises(CatalogError, match=r"catalogs/none\.yaml: is missing"):
        catalog.read_document("none.yaml")


@pytest.mark.parametrize(
    ("relative", "old", "new", "message"),
    [
        ("engines/vllm.yaml", "min_memory_gib: 0,", "min_memory_gib: 50,", "must end with a row for every GPU"),
        ("engines/vllm.yaml", "tp1: 0.25", "tp1: -5.0", "vllm.yaml:"),
        ("engines/vllm.yaml", "gpu_memory_utilization: 0.90", "gpu_memory_utilization: 90.0", "vllm.yaml:"),
        ("engines/vllm.yaml", "from_version: 0.24.0", "from_version: foo", "is no version"),
        ("workloads.yaml", "id: rag", "id: chat", "chat is given twice"),
        ("tiers.yaml", "requests: 128", "requests: 32", "32 requests is given twice"),
        ("instances/aws.yaml", "as_of: '2026-07-20'", "as_of: '2026-02-31'", "no day of the calendar"),
        ("models/llama-3.1-8b.yaml", "max_context_tokens: 131072", "max_context_tokens: null", "only a draft"),
    ],
)
def test_what_an_attack_found_is_a_line(tmp_path, relative, old, new, message):
    target = tmp_path / "over" / relative
    target.parent.mkdir(parents=True)
    text = (default_folder() / relative).read_text(encoding="utf-8")
    assert old in text
    target.write_text(text.replace(old, new, 1), encoding="utf-8")
    problems = [problem for *_, problem in faults_of(Catalog(tmp_path / "over"))]
    assert any(message in p for p in problems), problems
