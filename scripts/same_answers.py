"""Holds one state of the house to another: the same questions, and whether the same answers come out.

    python scripts/same_answers.py record before/     what this checkout answers, a file for each question
    python scripts/same_answers.py compare before/ after/     what differs; exit 1 where anything does

Run from the root of a checkout (with PYTHONPATH=. where another one is installed). It asks 108 questions on the command
line: options, five engines, mixtures, hybrids, drafts, rates, losses to survive, racks, the reverse, plans, mistakes.
And it makes five sheets, of which it keeps every defined name's value, every cell's value, the JSON, CSV, HTML and
Markdown as they are, and the words of the PDF.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ |= {"SOURCE_DATE_EPOCH": "1795392000", "COLUMNS": "100"}  # 2026-11-23

LOG, CONFIG = "tests/startup/logs/vllm-0.31.0.log", "tests/data/configs/apertus-70b-2509.json"
QUESTIONS = """
size --model 8b
size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32 --json
size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
size --model 405b --gpu h200 --tensor-parallel-size 8 --pipeline-parallel-size 2 --context 128k --users 4 --json
size --model deepseek-v3 --gpu h200 --tensor-parallel-size 8 --context 32k --users 64 --json
size --model gpt-oss-120b --gpu h100 --context 64k --users 20 --weight-dtype auto --kv-cache-dtype fp8 --json
size --model gemma-3-27b --gpu a100 --context 32k --users 12 --engine vllm --engine-version 0.8.5 --json
size --model qwen3-next-80b-a3b --gpu h200 --tensor-parallel-size 2 --context 128k --users 8 --json
size --model 70b --gpu h100 --tensor-parallel-size 4 --engine sglang --context 16k --users 32 --json
size --model 8b --gpu l4 --engine tensorrt-llm --context 8k --users 8 --json
size --model 8b --gpu a10g --engine tgi --context 4k --users 4 --json
size --model 8b --gpu rtx-4090 --engine llama.cpp --weight-dtype int4 --context 8k --json
size --model 70b --gpu h100 --tensor-parallel-size 8 --engine lmdeploy --context 8k --users 16 --json
size --model 70b --gpu mi300x --context 16k --users 32 --json
size --model 70b --gpu h100 --tensor-parallel-size 16 --json
size --model 49b --gpu l40s --tensor-parallel-size 4 --gpu-memory-utilization 0.95 --block-size 32 --users 9
size --model 70b --gpu h100 --tensor-parallel-size 4 --flags all --context 16k --users 32
size --model 8b --gpu h100 --draft-model eagle3-llama-3.1-8b --json
size --model 8b --gpu h100 --kv-allocation reserved --average-context-fraction 0.5 --json
size --model 70b --gpu h100 --context 300k
size --model 70bb --gpu h1000
size --model 8b --gpu h100 --gpu-memory-utilization 1.4 --users -3
size --model falcon-h1-7b --gpu a100 --context 32k --users 16 --json
size --from-log @log --json
recommend --model 70b --context 16k --users 200
recommend --model 70b --context 16k --users 200 --json
recommend --model 405b --context 128k --users 32 --json
recommend --model kimi-k2 --context 32k --users 64 --json
recommend --model gpt-oss-120b --context 8k --users 1 --json
recommend --model deepseek-v3 --context 16k --users 128 --weight-dtype fp8 --kv-cache-dtype fp8
recommend --model 8b --context 4k --users 1000 --purchase reserved-3yr --discount-fraction 0.2 --json
recommend --model 70b --context 16k --users 32 --ttft-ms off --tpot-ms 30 --survive replica --json
recommend --model 70b --context 16k --users 32 --providers gcp --region us --engine sglang --json
recommend --model mixtral-8x7b --context 16k --users 50 --gpus l40s,a100 --active-fraction 0.2
recommend --model gemma-3-27b --context 64k --users 40 --instances aws/p5.48xlarge,aws/g6e.48xlarge --json
recommend --model qwen3-235b-a22b --context 32k --users 64 --purchase spot --json
size --model 70b --gpu h100 --tensor-parallel-size 8 --context 16k --requests-per-second 2.5 --json
size --model 70b --gpu h100 --tensor-parallel-size 8 --context 16k --requests-per-day 200k
size --model 70b --gpu h100 --tensor-parallel-size 4 --draft-model eagle3-llama-3.x-70b --context 8k --users 16 --json
size --model deepseek-v3.2 --gpu b200 --tensor-parallel-size 8 --context 64k --users 32 --kv-cache-dtype fp8 --json
size --model deepseek-v3 --gpu h200 --data-parallel-size 8 --context 16k --users 256 --json
size --model qwen3.8-flash-next --gpu b300 --tensor-parallel-size 2 --context 16k --users 32 --json
size --model glm-5.3-flash --gpu b200 --tensor-parallel-size 8 --context 16k --users 64 --json
size --model nvidia-nemotron-3-super-120b-a12b-bf16 --gpu h100 --tensor-parallel-size 4 --context 64k --users 16 --json
size --model gemma-3-27b --gpu h100 --tensor-parallel-size 2 --pipeline-parallel-size 2 --context 64k --users 8 --json
size --model 405b --gpu gb200 --tensor-parallel-size 8 --context 32k --users 32 --json
size --model 8b --gpu spark --context 4k --users 8 --json
size --model 8b --gpu h100 --kv-cache-memory-bytes 20000000000 --context 8k --users 16 --json
size --model kimi-k3 --gpu b300 --tensor-parallel-size 8 --context 32k --users 16 --engine sglang
recommend --model 8b --context 4k --requests-per-second 12 --json
recommend --model 70b --context 16k --requests-per-day 200k
recommend --model 70b --context 16k --requests-per-second 3 --survive zone --zones 3 --json
recommend --model 8b --context 8k --users 64 --survive machine
recommend --model deepseek-v3 --context 32k --users 256 --survive replica --json
recommend --model qwen3.8-2.4t-a95b --context 4k --users 1 --gpus gb200 --providers all --json
recommend --model qwen3-next-80b-a3b --context 64k --users 64 --json
recommend --model falcon-h1-7b --context 32k --users 32
recommend --model 70b --draft-model eagle3-llama-3.x-70b --context 16k --users 32 --json
recommend --model 70b --context 16k --users 32 --discount-fraction 0.05,aws=0.1,reserved-1yr=0.15,azure=0.3 --json
recommend --model 8b --engine tensorrt-llm --context 8k --users 100 --json
recommend --model 8b --engine lmdeploy --context 8k --users 100 --json
recommend --model 8b --engine tgi --context 4k --users 20 --json
recommend --model 405b --context 16k --users 128 --disaggregated --json
recommend --model 405b --context 16k --users 128 --disaggregated
recommend --model 70b --context 16k --budget-usd 50000
recommend --model 70b --context 16k --budget-usd 50000 --json
recommend --model 70b --context 16k --have h100:16
recommend --model deepseek-v3 --context 16k --have h200:16,b200:8 --survive machine --json
recommend --model 405b --context 128k --users 200 --tpot-ms 5
recommend --model 70b --context 16k --users 32 --details
recommend --model 70b --context 16k --users 32 --vendors nvidia,amd --flags vllm
recommend --model 70b --context 16k --users 32 --currency EUR --fx-rate 0.9 --contingency-fraction 0.1 --json
plan @plan --out @out --format md,csv,json
plan check @plan
plan @plan --out @out --format md,png
build --models 8b --workloads rag --tiers 32 --requests-per-second 20 --format json,md --out @out
build --models deepseek-v3 --together --workloads chat,rag --tiers 32 --format md --out @out
recommend --model 70b --context 16k --users 0
explain kv_bytes_per_token --model 70b
explain monthly_usd --model 70b --context 16k --users 200
explain tpot_seconds --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
explain n_replicas --model 70b --context 16k --users 200
explain no_such_number --model 70b
list models --json
list gpus
list instances --json
list engines
show 70b
show h100 --json
show aws/p5.48xlarge
check
diagnose tests/diagnose/logs/001.log
diagnose tests/diagnose/logs/052.log --json
catalog import @config
build --models 70b --workloads rag --tiers 8 --format csv,wrong
build --models 70b --workloads rag --tiers 8 --survive everything --hours-per-month 900 --units tb
build --scenario @scenario --json --out @out
mail @sheet --to vp@acme.com --dry-run
pull @sheet --out @out
pull @edited --out @out --json
pull @edited --out @out
diff @sheet @edited
diff @sheet @other
diff @sheet @other --block md
diff @sheet @other --json
build --help
size --help
recommend --help
"""
SHEETS = {
    "three": "--models 8b,70b,405b",
    "five": "--models 8b,49b,70b,100b,405b --providers aws --paper letter",
    "odd": "--models deepseek-v3,gpt-oss-120b,qwen3-next-80b-a3b --weight-dtype fp8 --kv-cache-dtype fp8 "
    "--providers gcp --purchase reserved-1yr",
    "sglang": "--models 70b,gemma-3-27b --engine sglang --contexts rag=32k --tiers 8,200 --discount-fraction 0.2 "
    "--currency EUR --fx-rate 0.92 --contingency-fraction 0.15 --survive replica",
    "one": "--models 70b --workloads rag --tiers 32 --units gb --ttft-ms off --headline rag:32",
}
SCENARIO = """models: 70b, 8b
contexts: rag=32k
tiers: 32, 200
weight-dtype: fp8
providers: aws, gcp
format: csv
typed:
  inputs: {context_bytes: 700000000, output_rag: 512}
  models: {llama-3.1-70b: {full_kv_heads: 4}}
  gpus: {nvidia-h100-sxm5-80gb: {gpu_memory_bytes: 84000000000}}
  instances: {aws/p5.48xlarge: {price_usd_per_hour: 50, price_date: 2026-10-01}}
  own_instances: [{provider: mine, type: box, instance_gpu: nvidia-h200-sxm-141gb, gpu_count: 8, price_usd_per_hour: 9}]
"""


def asked(line: str, there: Path) -> list[str]:
    """A question's words, with the files that it names by @."""
    names = {
        "@log": LOG,
        "@config": CONFIG,
        "@edited": str(there / "edited.xlsx"),
        "@plan": str(there / "plan.yaml"),
        "@scenario": str(there / "scenario.yaml"),
        "@out": str(there / "out"),
        "@sheet": str(there / "three.xlsx"),
        "@other": str(there / "one.xlsx"),
    }
    return [names.get(word, word) for word in line.split()]


def answered(arguments: list[str], there: Path) -> str:
    """What the command prints and how it ends; where the files lie is not part of it."""
    from click.testing import CliRunner

    from sheetgen.cli import main

    result = CliRunner().invoke(main, arguments)
    raised = "" if isinstance(result.exception, SystemExit | None) else f"raised {result.exception!r}\n"
    text = f"{raised}exit {result.exit_code}\n--- stdout\n{result.stdout}\n--- stderr\n{result.stderr}"
    for file in sorted((there / "out").glob("*.*")):
        if file.suffix in (".yaml", ".md", ".csv", ".json"):
            text += f"--- {file.name}\n{file.read_text(encoding='utf-8')}"
    shutil.rmtree(there / "out", ignore_errors=True)
    return steady(text.replace(str(there), "THERE").replace(str(Path.cwd()), "HERE"))


def steady(text: str) -> str:
    """`text` without the hash of the catalogs, which a new field of an entry changes."""
    from sheetgen.catalog import Catalog

    sha256 = Catalog().catalog_sha256()
    return text.replace(sha256, "CATALOG").replace(sha256[:8], "CATALOG")


def edit(book: Path, edited: Path) -> None:
    """A workbook as somebody might send it back: inputs and facts typed over, not recalculated."""
    import openpyxl

    opened = openpyxl.load_workbook(book)
    for name, value in {
        "in_tier_2": 48,
        "in_discount_fraction": 0.1,
        "in_survive": 1,
        "in_context_rag": 20000,
        "in_output_chat": 500,
        "in_context_bytes": 7e8,
        "in_as_of": "2026-11-01",
        "in_hours_per_month": 700,
        "in_decision_users": 77,
    }.items():
        sheet, area = next(iter(opened.defined_names[name].destinations))
        opened[sheet][area].value = value
    opened.save(edited)


def workbook_values(data: bytes) -> tuple[str, str]:
    """The value of every defined name, and of every cell, a line each."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    names = []
    for name, defined in sorted(book.defined_names.items()):
        for sheet, area in defined.destinations:
            cells = book[sheet][area]
            rows = cells if isinstance(cells, tuple) else ((cells,),)
            names.append(f"{name} = {[[c.value for c in row] for row in rows]!r}")
    cells = [
        f"{sheet.title}!{cell.coordinate} = {cell.value!r}"
        for sheet in book
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    ]
    return "\n".join(names), "\n".join(cells)


def pdf_words(data: bytes) -> str:
    """The words of every page."""
    import pypdf

    return "\n\f\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


def record(folder: Path) -> None:
    """Ask everything, and keep the answers in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        there = Path(name)
        (there / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        for sheet, options in SHEETS.items():
            formats = "xlsx,pdf,md,csv,json"
            words = ["build", *options.split(), "--format", formats, "--out", name, "--name", sheet]
            (folder / f"sheet-{sheet}.txt").write_text(answered(words, there), encoding="utf-8")
            for ending in ("md", "csv", "json"):
                text = (there / f"{sheet}.{ending}").read_text(encoding="utf-8")
                (folder / f"sheet-{sheet}.{ending}").write_text(steady(text), encoding="utf-8")
            names, cells = workbook_values((there / f"{sheet}.xlsx").read_bytes())
            (folder / f"sheet-{sheet}.names").write_text(steady(names), encoding="utf-8")
            (folder / f"sheet-{sheet}.cells").write_text(steady(cells), encoding="utf-8")
            words_of_pdf = pdf_words((there / f"{sheet}.pdf").read_bytes())
            (folder / f"sheet-{sheet}.pdf-words").write_text(steady(words_of_pdf), encoding="utf-8")
        answered(["plan", "init", "--out", name], there)
        edit(there / "three.xlsx", there / "edited.xlsx")
        for i, line in enumerate(QUESTIONS.strip().splitlines(), 1):
            text = f"{line}\n{answered(asked(line, there), there)}"
            (folder / f"{i:03}-{line.split()[0]}.txt").write_text(text, encoding="utf-8")


def compare(before: Path, after: Path) -> int:
    """Print what differs, at most 40 lines a file; 1 where anything does."""
    names = sorted({p.name for p in before.iterdir()} | {p.name for p in after.iterdir()})
    differ = 0
    for name in names:
        was, now = (p.read_text(encoding="utf-8") if (p := at / name).exists() else "" for at in (before, after))
        if was == now:
            continue
        differ += 1
        print(f"== {name}: {len(was):,} characters before, {len(now):,} after")
        for line in list(difflib.unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=0))[2:42]:
            print("  " + (line if len(line) <= 240 else json.dumps(line[:240])))
    print(f"{len(names) - differ} of {len(names)} answers are the same")
    return int(differ > 0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["record", at]:
            record(Path(at))
        case ["compare", before, after]:
            sys.exit(compare(Path(before), Path(after)))
        case _:
            sys.exit(__doc__)
