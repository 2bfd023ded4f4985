"""An answer's deployment as files of orchestrators: Docker Compose, KServe, llm-d. Each runs the start command of a
replica, as often as the answer has replicas, on machines of its kind."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

import yaml

from sheetgen.catalog.stacks import Launcher
from sheetgen.errors import ScenarioError
from sheetgen.launch.start_lines import FIRST_PORT, PORT_FLAGS, Started
from sheetgen.shipped import shipped_folder
from sheetgen.units import count

if TYPE_CHECKING:
    from jinja2 import Template

LABELLED = ("aws", "azure", "gcp")  # providers whose Kubernetes nodes carry their instance type in a label
INSTANCE_LABEL = "node.kubernetes.io/instance-type"
GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
MANIFESTS = ("compose", "kserve", "llm-d")  # each a template of templates/manifests
GIB_OF_SAFETENSORS = 1.1  # of a checkpoint's folder, beside its weights: tokenizer, config, what is downloaded twice


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

    @property
    def gib_of_files(self) -> int:
        """GiB of the checkpoint's folder, rounded up."""
        return math.ceil(GIB_OF_SAFETENSORS * self.weights_gib)

    @property
    def words_of_chart(self) -> list[str]:
        """The flags that the chart of llm-d does not write itself. Raises ScenarioError where it cannot start the
        replica."""
        engine, n_stages = self.started.engine, self.started.chosen.pipeline_parallel_size
        if engine != "vllm" or n_stages > 1:
            raise ScenarioError(
                "flags has 'llm-d', whose chart starts vLLM without pipeline stages, and this answer has"
                f" {engine}, {count(n_stages, 'stage')}. Use kserve."
            )
        own = ("--tensor-parallel-size", "--data-parallel-size")
        return [word for group in self.started.written.groups[1:] if group[0] not in own for word in group]


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
    filled = _template(kind).render(
        deployment=deployment,
        started=started,
        chosen=chosen,
        vendor=started.candidate.gpu.vendor,
        first_port=FIRST_PORT,
    )
    text = yaml.safe_dump(yaml.safe_load(filled), sort_keys=False, width=10_000)
    return f"{remark}.\n{text}"


def _template(kind: str) -> Template:
    """The template of a manifest: YAML, each text in it as JSON."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # which most commands do without

    folder = FileSystemLoader(shipped_folder("templates") / "manifests")
    environment = Environment(loader=folder, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}  # in their order, as Python keeps them
    return environment.get_template(f"{kind}.yaml.j2")
