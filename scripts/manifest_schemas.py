"""Renew tests/data/schemas from clones of kserve, llm-d-modelservice and compose-spec, named in that order:

    python scripts/manifest_schemas.py KSERVE LLM_D_MODELSERVICE COMPOSE_SPEC

Descriptions are left out. A Kubernetes API drops fields that it does not know without a word, so the resource's schema
is closed here: an unknown field is a fault. Of an InferenceService the parts stay that a predictor with containers has.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import yaml

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
SCHEMAS = Path(__file__).parent.parent / "tests/data/schemas"
PREDICTOR = (
    "annotations", "containers", "labels", "maxReplicas", "minReplicas", "nodeSelector", "tolerations", "volumes",
)  # fmt: skip


def committed(clone: str, path: str) -> bytes:
    """A file of the newest commit of a clone."""
    return subprocess.run(["git", "-C", clone, "show", f"HEAD:{path}"], capture_output=True, check=True).stdout


def without_descriptions(schema: Json, closed: bool) -> Json:
    """A schema without its prose; closed: objects with named properties have no others."""
    if isinstance(schema, list):
        return [without_descriptions(part, closed) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {
        name: without_descriptions(part, closed)
        for name, part in schema.items()
        if not (name == "description" and isinstance(part, str))
    }
    if closed and isinstance(parts.get("properties"), dict) and parts.get("type") == "object":
        parts.setdefault("additionalProperties", False)
    return parts


def inference_service(clone: str) -> Json:
    """The schema of an InferenceService, v1beta1."""
    resource = yaml.safe_load(committed(clone, "config/crd/full/serving.kserve.io_inferenceservices.yaml"))
    (schema,) = (v["schema"]["openAPIV3Schema"] for v in resource["spec"]["versions"] if v["name"] == "v1beta1")
    predictor = schema["properties"]["spec"]["properties"]["predictor"]["properties"]
    schema["properties"]["spec"]["properties"] = {
        "predictor": {"type": "object", "properties": {name: predictor[name] for name in PREDICTOR}}
    }
    del schema["properties"]["status"]
    schema["properties"]["metadata"] = {"type": "object"}  # every resource's, which its schema leaves out
    return without_descriptions(schema, closed=True)


def main() -> None:
    kserve, llm_d, compose = sys.argv[1:]
    schemas = {
        "kserve": inference_service(kserve),
        "llm-d": json.loads(committed(llm_d, "charts/llm-d-modelservice/values.schema.json")),
        "compose": json.loads(committed(compose, "schema/compose-spec.json")),
    }
    SCHEMAS.mkdir(exist_ok=True)
    for kind, schema in schemas.items():
        text = json.dumps(without_descriptions(schema, closed=False), separators=(",", ":"))
        (SCHEMAS / f"{kind}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    commits = [
        subprocess.run(
            ["git", "-C", clone, "rev-parse", "--short=12", "HEAD"], capture_output=True, check=True, text=True
        )
        for clone in (kserve, llm_d, compose)
    ]
    sources = zip(
        ("kserve/kserve", "llm-d-incubation/llm-d-modelservice", "compose-spec/compose-spec"), commits, strict=True
    )
    lines = [f"- {name} at {commit.stdout.strip()}" for name, commit in sources]
    text = "# Schemas of the manifests\n\nWritten by `scripts/manifest_schemas.py`; all under Apache-2.0.\n\n"
    (SCHEMAS / "README.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
