"""`docker run` of an NVIDIA NIM (2.x, vLLM inside) for one point: environment, and vLLM's arguments in one of them."""

from __future__ import annotations

import shlex
from pathlib import Path

from sheetgen.launch.plan import Plan, Written
from sheetgen.launch.shell import Expanded, flag_groups
from sheetgen.launch.vllm import engine_flags, notes

MOUNTED = "/opt/model"
IMAGE = "${NIM_LLM_MODEL_FREE_IMAGE}"
# Inputs with a variable of their own; all others are arguments of the vLLM inside.
BY_VARIABLE = {
    "--tensor-parallel-size": "NIM_TENSOR_PARALLEL_SIZE",
    "--pipeline-parallel-size": "NIM_PIPELINE_PARALLEL_SIZE",
    "--max-model-len": "NIM_MAX_MODEL_LEN",
}
SHARE = "NIM_KVCACHE_PERCENT"  # read by 1.x; in 2.x the arguments win


def write(plan: Plan) -> Written:
    named = _vllm_names(plan)
    flags = engine_flags(named)
    env = {BY_VARIABLE[flag]: str(value) for flag, value in flags.items() if flag in BY_VARIABLE}
    inner = {flag: value for flag, value in flags.items() if flag not in BY_VARIABLE}
    env[SHARE] = str(flags["--gpu-memory-utilization"])
    env["NIM_PASSTHROUGH_ARGS"] = shlex.join([word for group in flag_groups(inner) for word in group])
    mount: list[tuple[str, ...]] = []
    if plan.served.is_folder:
        source = f"source={Path(plan.served.word).absolute()}"
        field = '"' + source.replace('"', '""') + '"' if {",", '"'} & set(source) else source
        mount = [("--mount", f"type=bind,{field},target={MOUNTED},readonly")]
        env = {"NIM_MODEL_PATH": MOUNTED, **env}
    else:
        env = {"NIM_MODEL_PATH": f"hf://{plan.served.word}", **env}
    groups = [
        ("docker", "run", "--rm"), ("--gpus", str(plan.n_gpus)), ("--shm-size", "16GB"), ("-p", "8000:8000"),
        ("-e", "NGC_API_KEY"), ("-e", "HF_TOKEN"), *mount, *(("-e", f"{name}={value}") for name, value in env.items()),
        (Expanded(f"{IMAGE}:{plan.trial.names.engine.default_version}"),),
    ]  # fmt: skip
    told = [
        f"{IMAGE} is the image without a model from build.nvidia.com; a container that brings its model needs no"
        " NIM_MODEL_PATH",
        f"NIM 1.x takes the share from {SHARE}, 2.x from NIM_PASSTHROUGH_ARGS, which win over other variables",
    ]
    return Written(groups, {**env, **inner}, env, notes=[*notes(named), *told])


def _vllm_names(plan: Plan) -> Plan:
    """The same plan with vLLM's flags for what NIM has variables for."""
    flags = {**plan.launcher.flags}
    for flag, name in BY_VARIABLE.items():
        flags = {k: flag if v == name else v for k, v in flags.items()}
    launcher = plan.launcher.model_copy(update={"flags": flags})
    return Plan(plan.trial, launcher, plan.served, plan.draft, plan.speculative_tokens)
