"""A catalog of one GPU that nobody publishes the arithmetic of."""

from __future__ import annotations

import re
from pathlib import Path

from sheetgen.catalog import default_folder


def without_a_peak(folder: Path, gpu: str = "nvidia-t4-16gb") -> Path:
    """A folder of catalogs whose `gpu` has no published peaks."""
    text = (default_folder() / "gpus" / f"{gpu}.yaml").read_text(encoding="utf-8")
    nothing = "peak_dense_flops: {bf16: null, fp16: null, fp8: null, fp4: null, int8: null}"
    changed, n_changed = re.subn(r"^peak_dense_flops: .*$", nothing, text, flags=re.M)
    assert n_changed == 1
    (folder / "gpus").mkdir(parents=True, exist_ok=True)
    (folder / "gpus" / f"{gpu}.yaml").write_text(changed, encoding="utf-8")
    return folder
