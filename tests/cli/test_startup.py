"""Start-up stays light, and `size` reads no more of the catalogs than it needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sheetgen.cli import main

HEAVY = ("pandas", "numpy", "openpyxl", "xlsxwriter", "weasyprint", "pydantic", "yaml", "jinja2")


def loaded_after(code: str) -> list[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    data = json.loads(done.stderr.splitlines()[-1])
    assert isinstance(data, list)
    return data


def test_importing_sheetgen_loads_nothing_heavy() -> None:
    assert loaded_after("import sheetgen; sheetgen.__version__") == []


@pytest.mark.parametrize("arguments", [["--help"], ["build", "--help"], ["size", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"from sheetgen.cli import main\ntry: main({arguments!r})\nexcept SystemExit as end: assert end.code == 0"
    assert loaded_after(code) == []


def test_size_loads_no_pandas() -> None:
    assert loaded_after("import sheetgen; sheetgen.size(model='8b')") == ["numpy", "pydantic", "yaml"]


def test_size_opens_one_model_and_one_gpu() -> None:
    script = (
        "import sys, json\nopened = []\n"
        "def note(event, arguments):\n"
        "    if event == 'open' and isinstance(arguments[0], str) and '/catalogs/' in arguments[0]:\n"
        "        opened.append(arguments[0].split('/catalogs/')[1])\n"
        "import sheetgen.api\nsys.addaudithook(note)\n"
        "sheetgen.api.size(model='meta-llama/Llama-3.1-70B-Instruct', gpu='h200')\nprint(json.dumps(sorted(opened)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    opened = json.loads(done.stdout)
    assert [f for f in opened if f.startswith(("models/", "gpus/"))] == [
        "gpus/nvidia-h200-sxm5-141gb.yaml",
        "models/llama-3.1-70b.yaml",
    ]
    assert not [f for f in opened if f.startswith("instances/")]


def test_python_m_sheetgen() -> None:
    command = [sys.executable, "-m", "sheetgen", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("sheetgen 1.")


def test_every_command_has_help_with_an_example(run) -> None:  # type: ignore[no-untyped-def]
    words = [[name] for name in main.commands if name not in ("catalog", "plan")] + [["catalog", "import"]]
    words += [["plan", name] for name in ("init", "check", "build", "actuals")]
    for command in words:
        name = " ".join(command)
        text = run(*command, "--help").output
        assert f"  sheetgen {name} " in text or f"  sheetgen {name}\n" in text, f"{name}: no example"
        has_options = "--json" in text and "--catalogs" in text and "--quiet" in text
        assert has_options or name == "schema", f"{name}: lacks an option of every command that reads catalogs"
    assert list(main.commands) == [
        *(
            "build",
            "recommend",
            "size",
            "pull",
            "diff",
            "plan",
            "live",
            "diagnose",
            "mail",
            "explain",
            "list",
            "show",
            "check",
            "catalog",
            "schema",
        ),
    ]


def test_the_commands_of_help_and_messages_are_as_called(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """`run` of a clone names itself, as no `sheetgen` is installed there."""
    monkeypatch.setenv("SHEETGEN_CALLED_AS", "./run")
    lines = [line.strip() for command in main.commands for line in run(command, "--help").stdout.splitlines()]
    assert not [line for line in lines if line.startswith("sheetgen ")] and "./run live" in lines
    assert "`./run list models` has all" in run("size", "--model", "no-such-model").stderr
    usage = run("help", "plan", "init").stdout
    assert "  ./run plan init --out ." in usage and usage == run("plan", "init", "--help").stdout
    command = [sys.executable, "-m", "sheetgen", "size"]
    assert subprocess.run(command, capture_output=True, text=True).stderr.startswith("Usage: ./run size ")


def test_every_command_is_listed_with_its_whole_sentence(run) -> None:  # type: ignore[no-untyped-def]
    assert "..." not in run("--help").stdout.split("Commands:")[1]
