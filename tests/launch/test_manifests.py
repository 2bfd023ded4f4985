"""The files for Compose, KServe and llm-d: valid by their own schemas, and starting what the answer has."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from sheetgen.cli import main
from sheetgen.launch.manifests import Deployment

SCHEMAS = Path(__file__).parents[1] / "data/schemas"
KINDS = ("compose", "kserve", "llm-d")
ANSWERS = {
    "two machines": "--model 70b --users 1800",
    "four on a machine": "--model 8b --users 20000 --instances aws/p5.48xlarge",
    "experts among ranks": "--model deepseek-v3 --users 3000 --instances aws/p5en.48xlarge",
    "AMD": "--model 70b --users 1800 --vendors amd --providers all",
    "a draft": "--model 70b --users 100 --draft-model llama-3.1-8b",
    "another cloud": "--model 8b --users 200 --providers lambda",
}


def answered(options: str, flags: str) -> dict:
    result = CliRunner().invoke(main, ["recommend", *options.split(), "--flags", flags, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(options: str, flags: str) -> str:
    result = CliRunner().invoke(main, ["recommend", *options.split(), "--flags", flags])
    assert result.exit_code != 0 and not result.stdout
    return result.stderr


def test_quiet_prints_the_file_alone() -> None:
    arguments = ["recommend", *ANSWERS["four on a machine"].split(), "--flags", "compose"]
    quiet = CliRunner().invoke(main, [*arguments, "--quiet"])
    assert yaml.safe_load(quiet.stdout) == yaml.safe_load(
        answered(ANSWERS["four on a machine"], "compose")["manifests"]["compose"]
    )
    assert CliRunner().invoke(main, arguments).stdout.endswith(f"\n\n{quiet.stdout}")
    several = CliRunner().invoke(main, [*arguments[:-1], "compose,kserve", "--quiet"]).stdout
    assert [sorted(document)[0] for document in yaml.safe_load_all(several)] == ["services", "apiVersion"]


def validator_of(kind: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(gzip.decompress((SCHEMAS / f"{kind}.json.gz").read_bytes())))


@pytest.mark.parametrize("options", ANSWERS.values(), ids=ANSWERS)
def test_each_is_valid_and_starts_the_command_of_the_answer(options: str) -> None:
    answer = answered(options, ",".join((*KINDS, "vllm")))
    words = answer["flags"]["vllm"]["command"].replace("'", "").split()
    gpus = answer["tensor_parallel_size"] * answer["data_parallel_size"]
    for kind in KINDS:
        document = yaml.safe_load(answer["manifests"][kind])
        validator_of(kind).validate(document)
        if kind == "compose":
            services = list(document["services"].values())
            on_all = len(services) * answer["n_instances"]
            assert on_all >= answer["n_replicas"] > on_all - len(services)
            for service in services:
                started = " ".join([*service["entrypoint"], *service["command"]]).replace("$$", "$").split()
                assert started == [*words, "--port", "8000"]
            ports = [service["ports"][0].split(":")[0] for service in services]
            assert len(set(ports)) == len(services)
        elif kind == "kserve":
            predictor = document["spec"]["predictor"]
            (container,) = predictor["containers"]
            assert predictor["minReplicas"] == predictor["maxReplicas"] >= answer["n_replicas"]
            assert list(container["resources"]["limits"].values()) == [str(gpus)]
            started = " ".join([*container["command"], *container["args"]]).split()
            assert started == [*words, "--port", "8000"]
        else:
            decode = document["decode"]
            assert decode["replicas"] >= answer["n_replicas"]
            assert decode["parallelism"]["tensor"] * decode["parallelism"]["dataLocal"] == gpus
            of_the_chart = {"--tensor-parallel-size", "--data-parallel-size"}
            left = [word for flag, word in zip(["", *words], words, strict=False) if not {flag, word} & of_the_chart]
            started = " ".join([*decode["containers"][0]["args"]]).split()
            assert left[3:] == started
            assert document["modelArtifacts"]["uri"] == f"hf://{words[2]}"


def test_replicas_of_a_machine_have_each_their_gpus() -> None:
    answer = answered(ANSWERS["four on a machine"], "compose")
    services = yaml.safe_load(answer["manifests"]["compose"])["services"].values()
    used = [
        gpu
        for service in services
        for device in service["deploy"]["resources"]["reservations"]["devices"]
        for gpu in device["device_ids"]
    ]
    assert len(used) == len(set(used)) == len(services) * answer["tensor_parallel_size"]


def test_a_node_is_selected_where_its_cloud_labels_it() -> None:
    label = "node.kubernetes.io/instance-type"
    for options, selected in ((ANSWERS["two machines"], True), (ANSWERS["another cloud"], False)):
        answer = answered(options, "kserve")
        predictor = yaml.safe_load(answer["manifests"]["kserve"])["spec"]["predictor"]
        assert predictor.get("nodeSelector") == ({label: answer["instance"].split("/")[1]} if selected else None)


def test_what_no_manifest_can_start_is_refused() -> None:
    assert "tensorrt-llm" in refused("--model 8b --users 20 --engine tensorrt-llm", "kserve")
    assert "llm-d" in refused("--model 8b --users 20 --engine sglang", "llm-d")
    assert "spans" in refused(
        "--model kimi-k2 --users 20 --instances aws/p4d.24xlarge --weight-dtype published", "compose"
    )


def test_nothing_is_written_where_nothing_fits() -> None:
    answer = answered("--model kimi-k2 --users 20 --instances aws/g6.xlarge --span-machines never", "compose")
    assert answer["manifests"] == {} and answer["verdict"] != "fits"


FAULTS = {
    "compose": lambda document: document["services"]["replica-0"].update(comand=[]),
    "kserve": lambda document: document["spec"]["predictor"]["containers"][0].update(arg=[]),
    "llm-d": lambda document: document["decode"]["parallelism"].update(tensor="two"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schemas_notice_a_fault(kind: str) -> None:
    document = yaml.safe_load(answered(ANSWERS["two machines"], kind)["manifests"][kind])
    FAULTS[kind](document)
    assert not validator_of(kind).is_valid(document)


@pytest.mark.parametrize("kind", ("compose", "kserve"))
def test_a_word_stays_a_word_whatever_it_holds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    word = "a\" b: {{ 7 * 7 }} 'c' <&> é # x"
    monkeypatch.setattr(Deployment, "words", ["vllm", word])
    manifest = yaml.safe_load(answered(ANSWERS["two machines"], kind)["manifests"][kind])
    if kind == "compose":
        assert manifest["services"]["replica-0"]["command"] == [word]
    else:
        assert manifest["spec"]["predictor"]["containers"][0]["args"] == [word]
