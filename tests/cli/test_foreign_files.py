"""A scenario that came from elsewhere names files of its reader's: each is read only where it is of the kind that is
meant, none is waited for, and no error holds more of one than its keys."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_lines import Run

SECRET = "hunter2"
FILES = {
    "passwd": f"root:x:0:0:{SECRET}:/root:/bin/bash\ndaemon:x:1:1:{SECRET}\n",
    "key.pem": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
    "list.yaml": f"- {SECRET}\n- [{SECRET}]\n",
    "text.yaml": f"{SECRET}\n",
    "secrets.yaml": f"password: {SECRET}\nname: [{SECRET}]\nlogo: /{SECRET}\ncolors: {SECRET}\nfooter: <{SECRET}>\n",
    "colors.yaml": f"name: '={SECRET}'\ncolors: {{accent: {SECRET}, heading: [{SECRET}], token: {SECRET}}}\n",
    "control.yaml": f'name: "{SECRET}\\x01"\n',
    "broken.yaml": f"name: {SECRET}: {SECRET}\n",
    "anchor.yaml": f"name: &{SECRET} x\n",
    "env.json": json.dumps({"password": SECRET, "tokens": [SECRET]}),
    "list.json": json.dumps([SECRET]),
    "broken.json": f'{{"password": {SECRET}}}',
}


@pytest.mark.parametrize("key", ["brand", "models", "draft_model"])
def test_no_error_repeats_a_file(key: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workdir = tmp_path / "scenarios"
    workdir.mkdir()
    monkeypatch.chdir(workdir)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for ending in ("yaml", "json"):
        (workdir / f"link.{ending}").symlink_to(tmp_path / "passwd")
        (workdir / f"loop.{ending}").symlink_to(workdir / f"loop.{ending}")
        (workdir / f"zero.{ending}").symlink_to("/dev/zero")
        os.mkfifo(workdir / f"pipe.{ending}")
    (workdir / "folder.yaml").mkdir()
    named = [f"../{name}" for name in FILES] + [str(tmp_path / "passwd"), "/dev/zero", "/dev/stdin"]
    named += ["./" + path.name for path in workdir.iterdir()] + [f"./{'a' * 300}.json", f"./{'a' * 300}"]
    for name in named:
        (workdir / "s.yaml").write_text(f"{'' if key == 'models' else 'models: [8b]'}\n{key}: {name}\n")
        result = run("build", "--scenario", "s.yaml")
        assert result.exit_code == 1 and result.stdout == "" and SECRET not in result.stderr, (name, result.output)
        assert Path(name).name[:60] in result.stderr or name == "/dev/stdin"


def test_no_error_repeats_what_stands_in_place_of_a_workbook(run: Run, workdir: Path) -> None:
    (workdir / "a.xlsx").write_text(FILES["passwd"])
    for command in (("pull", "a.xlsx"), ("diff", "a.xlsx", "a.xlsx"), ("mail", "a.xlsx", "--to", "a@b.c", "--dry-run")):
        result = run(*command)
        assert result.exit_code == 1 and SECRET not in result.output and "is no workbook" in result.stderr


def test_no_error_repeats_what_stands_in_place_of_a_benchmark(run: Run, workdir: Path) -> None:
    for name, text in FILES.items():
        (workdir / name).write_text(text)
        result = run("size", "--model", "8b", "--measured", name)
        assert result.exit_code == 1 and name in result.stderr and SECRET not in result.output, result.output


@pytest.mark.parametrize(
    "asked",
    [
        ("build", "--scenario"),
        ("plan",),
        ("catalog", "prices"),
    ],
)
def test_a_line_of_another_file_is_no_key(run: Run, workdir: Path, asked: tuple[str, ...]) -> None:
    (workdir / "shadow").write_text("root:*:20228:0:99999:7:::\n")
    result = run(*asked, "shadow")
    assert result.exit_code == 1 and "with a colon" in result.stderr and "20228" not in result.stderr
