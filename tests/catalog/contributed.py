"""Catalogs as contributors leave them: the shipped ones with a GPU of a new maker and one that was refused, models of
three kinds of attention (one was left out with a reason, one is hosted), prices of types and classes that were not
there, and a provider with rows, a region and an area of its own.

python tests/catalog/contributed.py FOLDER [OPTION ...]     pytest, with FOLDER as the catalogs that are shipped
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from sheetgen.catalog import default_folder, write_index

GPUS = {  # by id: the GPU that it is a copy of, and what differs
    "acme-x1-48gb": (
        "nvidia-l40s-48gb",
        {"name": "ACME X1", "short_name": "X1", "aliases": "[acme-x1]", "vendor": "acme", "device_names": "[ACME X1]"},
    ),
    "nvidia-l20-48gb": (
        "nvidia-l40s-48gb",
        {"name": "NVIDIA L20", "short_name": "L20", "aliases": "[l20]", "device_names": "[NVIDIA L20]"},
    ),
}
MODELS = {
    "acme-window-7b": ("mistral-7b-v0.1", "acme/Window-7B"),
    "acme-state-47b": ("nemotron-h-47b-8k", "acme/State-47B"),
    "kimi-k2-0905": ("kimi-k2", "moonshotai/Kimi-K2-Instruct-0905"),
    "hermes-3-llama-3.1-405b": ("llama-3.1-405b", "NousResearch/Hermes-3-Llama-3.1-405B"),
    "laguna-m.1": ("laguna-s-2.1", "poolside/Laguna-M.1"),
}
ROW = """\
  - type: {type}
    gpu: {gpu}
    gpu_count: {gpu_count}
    unit: {unit}
    offer: {offer}
    region: {region}
    prices:
      - {{purchase: {purchase}, usd_per_hour: {usd}, as_of: '2026-07-20'}}
    source: 'aws/karpenter-provider-aws@1d927085 zz_generated.pricing_aws_gen.go (2026-07-20)'
    confidence: medium
    checked_on: 2026-11-29
"""
OF_ACME = {"unit": "instance", "offer": "list", "region": "south-1"}
ROWS = {
    "aws": [
        {"type": "p3dn.24xlarge", "gpu": "nvidia-v100-sxm2-32gb", "gpu_count": 8, "unit": "instance", "offer": "list",
         "region": "us-east-1", "purchase": "on-demand", "usd": 31.212},
    ],
    "acme": [
        {"type": "x1-8", "gpu": "acme-x1-48gb", "gpu_count": 8, "purchase": "on-demand", "usd": 24, **OF_ACME},
        {"type": "t4-1", "gpu": "t4", "gpu_count": 1, "purchase": "spot", "usd": 0.25, **OF_ACME},
        {"type": "l20-4", "gpu": "l20", "gpu_count": 4, "purchase": "on-demand", "usd": 9, **OF_ACME},
    ],
}  # fmt: skip
REGIONS = """\
provider: acme
regions:
  - {id: south-1, country: Antarctica, areas: [aq]}
  - {id: south-2, country: Antarctica, areas: [aq]}
prices:
  - purchase: on-demand
    as_of: '2026-07-20'
    source: a price list
    usd_per_hour:
      x1-8: {south-2: 26}
"""


def write(folder: Path) -> Path:
    """Write these catalogs into a new folder, with their index."""
    shutil.copytree(default_folder(), folder)
    for gpu, (like, fields) in GPUS.items():
        text = (folder / "gpus" / f"{like}.yaml").read_text(encoding="utf-8")
        for name, value in {"id": gpu, **fields}.items():
            text = re.sub(rf"(?m)^{name}: .*", f"{name}: {value}", text)
        (folder / "gpus" / f"{gpu}.yaml").write_text(text, encoding="utf-8")
    for model, (like, weights) in MODELS.items():
        text = (folder / "models" / f"{like}.yaml").read_text(encoding="utf-8")
        own = "id|name|hf_id|aliases|same_architecture|checkpoints|max_context_of|context_source"
        text = re.sub(rf"(?m)^({own}): *.*\n( +.*\n)*", "", text)
        text = f"id: {model}\nname: {weights.partition('/')[2]}\nhf_id: {weights}\ncontext_source: its card\n{text}"
        (folder / "models" / f"{model}.yaml").write_text(text, encoding="utf-8")
    for provider, rows in ROWS.items():
        path = folder / "instances" / f"{provider}.yaml"
        text = path.read_text(encoding="utf-8") if path.is_file() else f"provider: {provider}\norder: 99\ninstances:\n"
        path.write_text(text + "".join(ROW.format(**row) for row in rows), encoding="utf-8")
    (folder / "regions" / "acme.yaml").write_text(REGIONS, encoding="utf-8")
    left_out = (folder / "left_out.yaml").read_text(encoding="utf-8")
    left_out = re.sub(r"(?m)^  - names: \[laguna-m\.1\]\n(    .*\n)*", "", left_out)
    (folder / "left_out.yaml").write_text(left_out, encoding="utf-8")
    write_index(folder)
    return folder


def run_with(folder: Path, options: list[str]) -> int:
    """pytest's exit status, where the catalogs in `folder` are those that are shipped."""
    import pytest

    import sheetgen.catalog
    from sheetgen.catalog import load

    load.default_folder = sheetgen.catalog.default_folder = lambda: folder
    return int(pytest.main(options))


if __name__ == "__main__":
    sys.exit(run_with(Path(sys.argv[1]), sys.argv[2:]))
