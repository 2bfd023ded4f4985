"""GPU names as drivers and engines print them, and the catalog GPU that each means."""

from __future__ import annotations

import re

# The first row that matches wins. `device_name=NVIDIA_H200` of vLLM's kernel files is read with blanks for `_`.
DEVICES = tuple(
    (re.compile(rf"(?<![A-Za-z]){pattern}(?![\w])"), gpu)
    for pattern, gpu in (
        (r"NVIDIA GB300", "gb300"),
        (r"NVIDIA GB200", "gb200"),
        (r"NVIDIA GB10", "gb10"),
        (r"NVIDIA B300(?: SXM\d?)?", "b300"),
        (r"NVIDIA B200", "b200"),
        (r"NVIDIA GH200 144G\w*", "gh200-144gb"),
        (r"NVIDIA GH200(?: \d+GB)?", "gh200"),
        (r"NVIDIA H200 NVL", "h200-nvl"),
        (r"NVIDIA H200", "h200"),
        (r"NVIDIA H20", "h20"),
        (r"NVIDIA H100 NVL", "h100-nvl"),
        (r"NVIDIA H100 PCIe", "h100-pcie"),
        (r"NVIDIA H100(?: 80GB HBM3)?", "h100"),
        (r"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        (r"NVIDIA A100(?: 80GB PCIe|-PCIE-80GB)", "a100-pcie"),
        (r"NVIDIA A100-SXM4-40GB", "a100-40gb"),
        (r"NVIDIA A100-SXM4-80GB", "a100"),
        (r"NVIDIA A30", "a30"),
        (r"NVIDIA A40", "a40"),
        (r"NVIDIA A10G", "a10g"),
        (r"NVIDIA A10", "a10"),
        (r"NVIDIA L40S", "l40s"),
        (r"NVIDIA L40", "l40"),
        (r"NVIDIA L4", "l4"),
        (r"(?:NVIDIA |Tesla )T4", "t4"),
        (r"Tesla V100-SXM2-32GB", "v100"),
        (r"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-ws"),
        (r"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        (r"NVIDIA RTX PRO 4500 Blackwell", "rtx-pro-4500"),
        (r"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        (r"NVIDIA RTX A6000", "rtx-a6000"),
        (r"NVIDIA GeForce RTX (?=3090(?! Ti))3090", "rtx-3090"),
        (r"NVIDIA GeForce RTX (?=4090(?! (?:D|Laptop)))4090", "rtx-4090"),
        (r"NVIDIA GeForce RTX (?=5090(?! (?:D|Laptop)))5090", "rtx-5090"),
        (r"AMD Instinct MI300X", "mi300x"),
        (r"AMD Instinct MI325X", "mi325x"),
        (r"AMD Instinct MI350X", "mi350x"),
        (r"AMD Instinct MI355X", "mi355x"),
    )
)
WORDS = ("NVIDIA ", "NVIDIA_", "Tesla ", "AMD Instinct", "AMD_Instinct")


def gpu_named(text: str) -> tuple[str, str] | None:
    """The GPU that `text` names, as the catalog calls it and as it stands there."""
    if not any(word in text for word in WORDS):
        return None
    plain = text.replace("_", " ")
    for pattern, gpu in DEVICES:
        if match := pattern.search(plain):
            return gpu, match[0]
    return None
