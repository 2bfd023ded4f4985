"""An answer's deployment as files of orchestrators: Docker Compose, KServe, llm-d. Each runs the start command of a
replica, as often as the answer has replicas, on machines of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import yaml

from sheetgen.catalog.stacks import Launcher
from sheetgen.errors import ScenarioError
from sheetgen.launch.start_lines import FIRST_PORT, PORT_FLAGS, Started
from sheetgen.units import count

LABELLED = ("aws", "azure", "gcp")  # providers whose Kubernetes nodes carry their instance type in a label
INSTANCE_LABEL = "node.kubernetes.io/instance-type"
SECRET = {"name": "huggingface", "key": "HF_TOKEN"}  # of Kubernetes, to be there before
GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
OF_AMD = {"devices": ["/dev/kfd", "/dev/dri"], "group_add": ["video"]}  # of a container: all GPUs, by their devices
MODEL_LOADS_SECONDS = 3600  # until a replica that has not answered is started anew
PROBE_SECONDS = 10
SHARED_MEMORY = {"name": "shared-memory", "mountPath": "/dev/shm"}  # ranks of tensor parallelism talk through it
GIB_OF_SAFETENSORS = 1.1  # of a checkpoint's folder, beside its weights: tokenizer, config, what is downloaded twice


class _WithoutAliases(yaml.SafeDumper):
    """YAML in which what stands twice is written twice, as people write manifests."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class Deployment(NamedTuple):
    """The replicas of an answer and the container image of their engine. weights_gib: of one replica."""

    started: Started
    image: str
    model_id: str
    weights_gib: float

    @property
    def words(self) -> list[str]:
        """The start command of one replica, with the address and port that a container answers on."""
        port = [PORT_FLAGS[self.started.engine], str(FIRST_PORT)]
        host = ["--host", "0.0.0.0"] if self.started.engine == "sglang" else []  # it answers its own machine alone
        return [*(word for group in self.started.written.groups for word in group), *host, *port]

    @property
    def name(self) -> str:
        """The model's id as Kubernetes takes names: lower case letters, digits and hyphens, at most 53 of them."""
        return re.sub(r"[^a-z0-9]+", "-", self.model_id.lower())[:53].strip("-")

    @property
    def gpu_resource(self) -> str:
        return GPU_RESOURCES[self.started.candidate.gpu.vendor]

    @property
    def node_selector(self) -> dict[str, str]:
        """The label of the answer's machines; none for providers whose clusters are not labelled so."""
        provider, instance_type = self.started.chosen.instance.split("/", 1)
        return {INSTANCE_LABEL: instance_type} if provider in LABELLED else {}


def compose(deployment: Deployment) -> dict[str, object]:
    """A Compose file for one machine: its replicas, each on its own GPUs and port."""
    started, n_gpus = deployment.started, deployment.started.chosen.gpus_per_replica
    entrypoint, *words = (word.replace("$", "$$") for word in deployment.words)  # `$` would be a variable
    is_amd, services = started.candidate.gpu.vendor == "amd", {}
    for replica in range(started.on_one):
        gpus = [str(gpu) for gpu in range(replica * n_gpus, (replica + 1) * n_gpus)]
        services[f"replica-{replica}"] = {
            "image": deployment.image,
            "entrypoint": [entrypoint],
            "command": words,
            "ports": [f"{FIRST_PORT + replica}:{FIRST_PORT}"],
            "ipc": "host",
            "environment": {"HF_TOKEN": "${HF_TOKEN:-}", **({"HIP_VISIBLE_DEVICES": ",".join(gpus)} if is_amd else {})},
            "volumes": ["huggingface:/root/.cache/huggingface"],
            "restart": "unless-stopped",
            **(OF_AMD if is_amd else {"deploy": {"resources": {"reservations": {"devices": [_nvidia(gpus)]}}}}),
        }
    return {"services": services, "volumes": {"huggingface": {}}}


def _nvidia(gpus: list[str]) -> dict[str, object]:
    """These GPUs of a machine, by their numbers, as NVIDIA's driver gives them to a container."""
    return {"driver": "nvidia", "device_ids": gpus, "capabilities": ["gpu"]}


def kserve(deployment: Deployment) -> dict[str, object]:
    """An InferenceService with as many pods as the answer has replicas."""
    chosen = deployment.started.chosen
    entrypoint, *words = deployment.words
    gpus = {deployment.gpu_resource: str(chosen.gpus_per_replica)}
    health = {"httpGet": {"path": "/health", "port": FIRST_PORT}, "periodSeconds": PROBE_SECONDS}
    container = {
        "name": "kserve-container",
        "image": deployment.image,
        "command": [entrypoint],
        "args": words,
        "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {**SECRET, "optional": True}}}],
        "ports": [{"containerPort": FIRST_PORT, "protocol": "TCP"}],
        "resources": {"limits": gpus, "requests": gpus},
        "startupProbe": {**health, "failureThreshold": MODEL_LOADS_SECONDS // PROBE_SECONDS},
        "readinessProbe": health,
        "volumeMounts": [SHARED_MEMORY],
    }
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": deployment.name,
            "annotations": {"serving.kserve.io/deploymentMode": "RawDeployment"},
        },
        "spec": {
            "predictor": {
                "minReplicas": chosen.replicas_held,
                "maxReplicas": chosen.replicas_held,
                **({"nodeSelector": deployment.node_selector} if deployment.node_selector else {}),
                "containers": [container],
                "volumes": [{"name": SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory"}}],
            }
        },
    }


def llm_d(deployment: Deployment) -> dict[str, object]:
    """Values of the chart llm-d-modelservice. It writes `vllm serve MODEL`, port and parallel sizes itself."""
    started, chosen = deployment.started, deployment.started.chosen
    if started.engine != "vllm" or chosen.pipeline_parallel_size > 1:
        raise ScenarioError(
            "flags has 'llm-d', whose chart starts vLLM without pipeline stages, and this answer has"
            f" {started.engine}, {count(chosen.pipeline_parallel_size, 'stage')}. Use kserve."
        )
    first, *groups = started.written.groups
    own = ("--tensor-parallel-size", "--data-parallel-size")
    words = [word for group in groups if group[0] not in own for word in group]
    return {
        "modelArtifacts": {
            "name": deployment.name,
            "uri": f"hf://{first[-1]}",
            "size": f"{-(-GIB_OF_SAFETENSORS * deployment.weights_gib // 1):.0f}Gi",
            "authSecretName": SECRET["name"],
            "labels": {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": deployment.name},
        },
        "accelerator": {"type": started.candidate.gpu.vendor},
        "decode": {
            "create": True,
            "replicas": chosen.replicas_held,
            **({"nodeSelector": deployment.node_selector} if deployment.node_selector else {}),
            "parallelism": {
                "tensor": chosen.tensor_parallel_size,
                "data": chosen.data_parallel_size,
                "dataLocal": chosen.data_parallel_size,
            },
            "containers": [
                {
                    "name": "vllm",
                    "image": deployment.image,
                    "modelCommand": "vllmServe",
                    "args": words,
                    "mountModelVolume": True,
                    "volumeMounts": [SHARED_MEMORY],
                }
            ],
            "volumes": [{"name": SHARED_MEMORY["name"], "emptyDir": {"medium": "Memory"}}],
        },
        "prefill": {"create": False},
    }


MANIFESTS: Mapping[str, Callable[[Deployment], dict[str, object]]] = {
    "compose": compose,
    "kserve": kserve,
    "llm-d": llm_d,
}


def split_manifests(flags: str) -> tuple[tuple[str, ...], str]:
    """The manifests among the words of `--flags`, and the other words, which are engines."""
    words = [word.strip() for word in flags.split(",")]
    asked = tuple(dict.fromkeys(word.lower() for word in words if word.lower() in MANIFESTS))
    return asked, ",".join(word for word in words if word.lower() not in MANIFESTS)


def image_of(launcher: Launcher, version: str, vendor: str) -> str:
    """The engine's published container image for GPUs of a vendor. Raises ScenarioError where none is recorded."""
    image = launcher.images.get(vendor)
    if image is None:
        raise ScenarioError(
            f"no container image of {launcher.engine} for {vendor} GPUs is in the catalogs, so no manifest can name"
            f" one. Use --flags {launcher.engine}, whose command runs without one."
        )
    return image.format(version=version)


def manifest(kind: str, deployment: Deployment) -> str:
    """One manifest as YAML, with a remark on how many machines it is for.

    Raises ScenarioError where a replica spans machines, which none of these files starts by itself.
    """
    started = deployment.started
    chosen = started.chosen
    if chosen.spans_machines:
        raise ScenarioError(
            f"flags has {kind!r}, and a replica of this answer spans {chosen.pipeline_parallel_size:,} machines, which"
            f" needs a cluster of its own. Use --flags {started.engine}, or --span-machines never."
        )
    machines = f"{count(chosen.n_instances, 'machine')} {chosen.instance}"
    remark = f"# {started.model}: {count(chosen.replicas_held, 'replica')} on {machines}"
    if kind == "compose" and chosen.replicas_held > 1:
        remark += "; this file on each of them, and a balancer in front of all replicas"
    text = yaml.dump(MANIFESTS[kind](deployment), Dumper=_WithoutAliases, sort_keys=False, width=10_000)
    return f"{remark}.\n{text}"
