"""Do the tests notice? Changes one operator or number of a module at a time, and runs tests against each change.

    python scripts/mutate.py sheetgen/sizing/cost.py tests/sizing --most 20

A change that no test fails for is a survivor, printed with its line: a test that is missing, or a change that changes
nothing. The package is copied; nothing in the repository is touched. The same seed draws the same changes.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, object]]:
    """Places of the functions' bodies that can be changed: a node, its field, and what to put there."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
                yield node, "op", SWAPS[type(node.op)]()
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                yield node, "ops", [SWAPS[type(node.ops[0])](), *node.ops[1:]]
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                yield node, "value", node.value + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    text = (ROOT / asked.module).read_text(encoding="utf-8")
    every = list(changes(ast.parse(text)))
    drawn = random.Random(asked.seed).sample(range(len(every)), min(asked.most, len(every)))
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "sheetgen", copy / "sheetgen", ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("catalogs", "templates"):
            (copy / part).symlink_to(ROOT / part)
        paths = f"{folder}{os.pathsep}{ROOT / 'tests'}"  # scripts of tests import each other
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        run = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *asked.tests]
        if subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, check=False).returncode:
            sys.exit("the tests fail without any change")
        for i in drawn:
            tree = ast.parse(text)
            node, field, value = list(changes(tree))[i]
            before = ast.unparse(node)
            setattr(node, field, value)
            (copy / asked.module).write_text(ast.unparse(tree), encoding="utf-8")
            if subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, check=False).returncode == 0:
                survivors += 1
                print(f"{asked.module}:{getattr(node, 'lineno', 0)}: {before} -> {ast.unparse(node)}", flush=True)
    print(f"{asked.module}: {len(drawn) - survivors} of {len(drawn)} changes noticed, of {len(every)} that there are")


if __name__ == "__main__":
    main()
