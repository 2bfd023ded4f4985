"""docs/engines.md: which rules of which engine are in, and how far logs prove them. Made with docs/fidelity.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas
from fidelity import DOCS, TOKENS_WITHIN, Fidelity, summary
from fidelity_page import _percent, _size, _table

from sheetgen.catalog.engines import Engine, release_of

ENGINES_DOCS: Path = DOCS.with_name("engines.md")
LOGGED = {"tensorrt-llm": "trtllm"}  # as the logs call it
HEAD = ("Engine", "Rules since", "What changed", "Tokens", "Within 1 %", "Pools", "Median", "Worst")
TEXT = """\
# Engines: what is in, how far it is proven, how a version is added

An engine's accounting is a file of `catalogs/engines`: what holds for the oldest release that was read, and under
`versions` what changed from a release on. A release between two entries follows the earlier one, one after the last
follows the last and says so.

## How far each entry is proven

Public start-up logs (docs/fidelity.md) by the entry that their version falls under. Tokens: logs whose tokens
follow from the pool that they state. Pools: logs whose pool is predicted from their arguments, median and worst
error; 34 runs of vLLM 0.19 on H100 are held out by model, and have a mean error of {h100}. A dash: no log was seen.

{table}
Logs without a version are counted where `engine_logs_rows.csv` puts them; {n_without} of vLLM have none, and stand
under no entry.

## How a version is added

1. `python scripts/engine_rules.py vllm==0.34.0` downloads the wheel, reads it (it never runs it) and prints each
   constant that is not the catalog's and each rule whose code changed since the release recorded last, with file and
   line. A path of a wheel or of a folder does as well.
2. Read what it names, and follow calls that left those functions: a rule that moved is reported as gone. Put what
   changed into `versions` of the engine's file: the release, the fields, and a source that names the file and the
   function. A rule that no field says is a field of `Engine` and a row of `CONSTANTS`, and the formula that reads it.
3. Start-up logs of the release go into `tests/data/measured/engine_logs.csv` with their source, and a row of
   `engine_logs_rows.csv` says what each stands for; a constant that they decide has its logs in `calibrated_on.csv`.
   `python tests/fidelity.py` makes this page and docs/fidelity.md anew; a log further off than 1 % in tokens has its
   reason in `reasons.csv`. The bands in the engine's file follow, and its `pools_checked`.
4. `python scripts/engine_rules.py ... --record` writes the rules of that wheel down, once they are in.
5. `default_version` moves last, in a change of its own, and `CHANGELOG.md` says which figures it moves.

## Read, and not counted

- KV `auto` follows what a checkpoint states where the checkpoint is named (`nvidia/Qwen3-14B-NVFP4`, a config.json);
  `--weight-dtype nvfp4` names none, and keeps 16 bits. Not counted, for it depends on the GPU: with vLLM the GLM-5
  family (from 0.32) and GLM-5.3-Flash (0.33) keep FP8 on B200 and B300 (`fp8_kv`; `size` says so, and a launch command
  asks for the 16 bits that were sized), and with SGLang 0.5.23 every model of
  DeepSeek's sparse attention there; `--kv-cache-dtype fp8` says it. SGLang does so for Muse Spark anywhere. vLLM 0.17
  to 0.21 take the FP8 of a compressed-tensors checkpoint even where another precision is requested.
- KV precisions `turboquant_*`, `octave_*`, `ultraquant_4bit` and `nvfp4_ds_mla` (352 bytes an entry) are refused by
  name; so are SGLang's four-bit pools, which keep scales twice or a workspace. Convolutions of recurrent layers grow
  with drafted tokens (2 % of a state), and groups of Mamba-2 are copied where ranks outnumber them. HiSparse (KV on
  the host) is not sized; a log that has it says so.
- Groups of unequal pages that are packed block by block (from 0.29): with a layout other than the default, and always
  for GLM-5.3-Flash, Qwen3.8-Flash-Next and dots3-note, whose index keys have no other. The first two are counted so,
  but that GLM-5.3-Flash's blocks are multiples of 128 tokens (`--block-size 128` sizes that), and that the n-grams of
  Qwen3.8-Flash-Next take one block more while a prompt is read; dots3-note is counted in equal pages.
- TensorRT-LLM 1.2.1 itself: the index has no wheel of it, so its entry stands on logs and documentation.
- The reserve for images decoded on the GPU (`--mm-ipc-gpu-memory-gb`, from 0.25; 0 by default), and what a GPU's
  video decoder holds, come off the pool, also off one set in bytes (multimodal/gpu_ipc_memory.py). A log with it says
  so.
- `cold_start_embeddings`, an embedding's worth that a cold start of Model Runner V2 takes at its peak, is a pattern of
  four start-up logs and was not read in code. A warm start, which finds its compiled model, has up to as much more for
  its pool than is predicted.
- llama.cpp of this autumn has the same defaults (4 slots, 512 tokens a step). Its slots share one cache where no
  `--parallel` is given, and since 13 September 2026 that is made as large as fits, up to the model's context times the
  slots (ggml-org/llama.cpp#28849): the cache is sized here by the requests. LMDeploy 0.18.0 has the defaults of 0.10.0.
- SGLang keeps less back for models with a latent cache; which models' windows it keeps apart is an input
  (`--hybrid-kv-manager 1`). A sheet of several models takes one pair of ratios for its pools (`pool_ratios_of`). The
  default stays 0.5.9: a sheet takes one share for all its GPUs, and 0.5.23 leaves those of 24 GB 0.68 to 0.70.

Made by `python tests/fidelity.py`; held to the code by `tests/test_fidelity.py`.
"""


def engines_document(fidelity: Fidelity) -> str:
    version = fidelity.logs.set_index("id")["engine_version"]
    pools = fidelity.pools[fidelity.pools["figure"] == "KV pool"]
    lines = [_lines(fidelity, name, version, pools) for name in ("vllm", "sglang", "tensorrt-llm", "lmdeploy")]
    runs = fidelity.held_out[fidelity.held_out["figure"] == "KV pool"]["relative"].abs().mean()
    without = fidelity.logs[(fidelity.logs["engine"] == "vllm") & version.isna().to_numpy()]
    table = "\n".join(_table(HEAD, [row for rows in lines for row in rows]))
    return TEXT.format(table=table, h100=_size(runs), n_without=len(without))


def _lines(fidelity: Fidelity, name: str, version: pandas.Series, pools: pandas.DataFrame) -> Iterator[list[str]]:
    engine: Engine = fidelity.catalog.entry("engines", name, Engine)
    is_engine = fidelity.logs.set_index("id")["engine"] == LOGGED.get(name, name)
    starts = [None, *(change.from_version for change in engine.versions)]
    changed = ["the oldest read", *(", ".join(sorted(_fields(change))) for change in engine.versions)]
    entry = version.map(lambda text: _entry(text, starts)).where(is_engine, -1)
    for number, since in enumerate(starts):
        of_entry = entry.index[entry == number]
        tokens = fidelity.tokens[fidelity.tokens["id"].isin(of_entry)]["relative"]
        errors = pools[pools["id"].isin(of_entry)]["relative"]
        s = summary(errors) if len(errors) else None
        near = f"{(tokens.abs() <= TOKENS_WITHIN).sum()}" if len(tokens) else "–"
        yield [
            engine.name,
            since or "–",
            changed[number],
            f"{len(tokens) or '–'}",
            near,
            f"{len(errors) or '–'}",
            _size(s["median"]) if s else "–",
            _percent(s["worst"], 1) if s else "–",
        ]


def _fields(change: object) -> set[str]:
    return {f"`{field}`" for field in change.changed}  # type: ignore[attr-defined]


def _entry(text: object, starts: list[str | None]) -> int:
    """The last entry that a version is not before; -1 without a version."""
    release = release_of(str(text))
    if release is None:
        return -1
    return max(number for number, since in enumerate(starts) if since is None or (release_of(since) or ()) <= release)
