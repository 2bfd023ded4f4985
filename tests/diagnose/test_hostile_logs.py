"""Logs that are none, are broken, are huge, or mean harm."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from corpus import LOGS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sheetgen.catalog import Catalog
from sheetgen.catalog.signatures import Signature
from sheetgen.cli import main
from sheetgen.diagnose import log_facts
from sheetgen.diagnose.diagnosis import diagnose
from sheetgen.errors import ScenarioError
from sheetgen.startup import log_lines

DEATH = (LOGS / "010.log").read_bytes()
STATS = (
    b"INFO 01-02 12:00:00 [loggers.py:118] Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation "
    b"throughput: "
    b"239.2 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: 41.%d%%, Prefix cache hit rate: 0.0%%\n"
)
ACCESS = b'INFO:     10.0.0.1:57224 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def told(path: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `sheetgen diagnose` for a log."""
    result = CliRunner(env={"COLUMNS": "1000"}).invoke(main, ["diagnose", str(path)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    "data,words",
    [
        (b"", "is empty"),
        (bytes(range(256)) * 40, "is no text but binary data"),
        (b"\x7fELF\x02\x01\x01" + bytes(500), "is"),
        (("CUDA out of memory\n" * 40).encode("utf-16-le"), "is UTF-16 without its mark"),
        (bytes(5000), "is no text but binary data"),
        (gzip.compress(bytes(5000)), "is no text but binary data"),
        (gzip.compress(DEATH * 50, mtime=0)[:-30], "cannot be read (a damaged .gz)"),
    ],
    ids=["empty", "binary", "elf", "utf-16", "zeros", "zeros in a gz", "cut gz"],
)
def test_what_is_no_log_gets_one_clear_line(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(data)
    code, out, err = told(path)
    assert code == 1 and not out
    assert words in err and err.count("\n") == 1 and err.startswith(str(path))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none.log", "cannot be read"), (tmp_path, "is a folder")):
        code, out, err = told(path)
        assert code == 1 and not out and err.count("\n") == 1 and problem in err


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1 - - [02/Jan/2026] GET / 200\n" * 50,
        'Traceback (most recent call last):\n  File "manage.py", line 8, in main\nValueError: bad form\n',
        "the quick brown fox\n",
        "\n\n\n",
        "memory memory out of memory memory\n",
        "x" * 3_000_000,
    ],
)
def test_an_unrelated_log_is_undetermined(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text, encoding="utf-8")
    record = diagnose(str(path), {}, Catalog()).record()
    assert (
        record["label"] == "undetermined" and record["confidence"] < 0.5 and record["missing"] and not record["fixes"]
    )
    assert told(path)[0] == 0


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1", "cp1252", "shift_jis"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    note = {"latin-1": "naïve café\n", "cp1252": "naïve café\n", "shift_jis": "メモリ\n"}.get(encoding, "ok\n")
    path.write_bytes((note + DEATH.decode()).encode(encoding))
    assert diagnose(str(path), {}, Catalog()).verdict.cause.label == "startup_kv_pool_too_small"


def test_gz_and_stdin(tmp_path: Path) -> None:
    path = tmp_path / "x.log.gz"
    path.write_bytes(gzip.compress(DEATH, mtime=0))
    assert diagnose(str(path), {}, Catalog()).verdict.cause.label == "startup_kv_pool_too_small"
    for data in (DEATH, gzip.compress(DEATH, mtime=0)):
        result = CliRunner().invoke(main, ["diagnose", "-", "--json"], input=data)
        assert json.loads(result.stdout)["label"] == "startup_kv_pool_too_small"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=2000), position=st.integers(0, 2000), cut=st.integers(0, 400))
def test_broken_bytes_never_raise(data: bytes, position: int, cut: int, tmp_path: Path) -> None:
    """Anything at all, in, before and instead of a log: a verdict, or one line."""
    path = tmp_path / "x.log"
    log = (LOGS / "141.log").read_bytes()
    path.write_bytes(log[:position] + data + log[position : len(log) - cut])
    try:
        diagnosis = diagnose(str(path), {}, Catalog())
    except ScenarioError as error:
        assert len(error.problems) == 1
    else:
        assert 0 <= diagnosis.verdict.cause.confidence <= 1


def test_every_truncation_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    for name in ("001.log", "029.log", "064.log", "089.log"):
        log = (LOGS / name).read_bytes()
        for end in range(1, len(log), 163):
            path.write_bytes(log[:end])
            assert diagnose(str(path), {}, Catalog()).record()["label"]


HARM = (
    b"\x1b]0;title\x07\x1b[2J\x1b[31mERROR\x1b[0m <script>alert(1)</script> `rm -rf /` $(id) =cmd|'/c calc'!A0 "
    b"\xe2\x80\xae "
    b"../../etc/passwd {{7*7}} \x00\x9b31m <script>alert(3)</script> torch.OutOfMemoryError: CUDA out of memory. "
    b"Tried to allocate 2.00 GiB. "
    b"vllm/<img src=x onerror=alert(2)>\r\n"
    b"non-default args: {'model': '/etc/passwd', 'tokenizer': '../../../../root/.ssh/id_rsa'}\n"
    b"INFO llm_engine.py:70] vLLM API server version 0.11.0\n"
)


def test_a_log_injects_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.log"
    path.write_bytes(HARM)
    result = CliRunner().invoke(main, ["diagnose", str(path), "--html", "out.html"])
    assert result.exit_code == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.stdout)
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p"}
    record = CliRunner().invoke(main, ["diagnose", str(path), "--json"]).stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", record)
    evidence = [line["text"] for line in json.loads(record)["evidence"]]
    assert evidence and all(text.isprintable() for text in evidence), "an escape of JSON's hides none, either"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "x.log"]


def test_a_file_name_injects_nothing(tmp_path: Path) -> None:
    code, out, err = told(tmp_path / "a\x1b[31m.log")
    assert code == 1 and "\x1b" not in out + err


def blocks(n_bytes: int) -> Iterator[bytes]:
    """A long log of a server: access lines, statistics that differ, requests with their own names, and its death."""
    made = 0
    number = 0
    while made < n_bytes:
        lines = [ACCESS] * 40 + [STATS % (number % 90 + i, i % 10) for i in range(4)]
        lines += [b"INFO [async_llm.py:261] Added request chatcmpl-%032x.\n" % (number * 7919 + i) for i in range(8)]
        block = b"".join(lines) * 200
        number += 1
        made += len(block)
        yield block
    yield DEATH


CHILD = """import sys
from sheetgen.cli import main
try:
    main()
finally:
    # Not getrusage: its peak has in it what the parent held when it forked.
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
"""


@pytest.mark.parametrize("mib", [16])
def test_a_long_log_takes_little_memory(mib: int) -> None:
    """1 GiB takes no more memory: see docs/diagnose.md for how that was measured, and `measure_large.py`."""
    label, peak_mib, _ = run_large(mib)
    assert label == "startup_kv_pool_too_small"
    assert peak_mib <= 300


def run_large(mib: int) -> tuple[str, float, float]:
    """Label, peak memory in MiB and seconds of a log of that size, from a pipe."""
    began = time.monotonic()
    command = [sys.executable, "-c", CHILD, "diagnose", "-", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin and child.stdout and child.stderr
        for block in blocks(mib << 20):
            child.stdin.write(block)
        child.stdin.close()
        out, err = child.stdout.read(), child.stderr.read()
    assert child.returncode == 0, err
    return json.loads(out)["label"], int(err.split()[-1]) / 1024, time.monotonic() - began


def test_one_endless_line(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"vllm " * 4_000_000 + b"\n" + DEATH)
    assert diagnose(str(path), {}, Catalog()).verdict.cause.label == "startup_kv_pool_too_small"


def test_lines_without_end_are_passed_over_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.log.gz"
    path.write_bytes(gzip.compress(b"\n" * 30_000_000 + DEATH, compresslevel=1, mtime=0))
    began = time.process_time()
    assert diagnose(str(path), {}, Catalog()).verdict.cause.label == "startup_kv_pool_too_small"
    assert time.process_time() - began < 6, "200 CPU s a GB; 3 to 4.6 s were seen beside other work"


def test_a_log_made_to_take_hours_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every line of it must be looked at, for no two are alike but in what is asked of them."""
    monkeypatch.setattr(log_lines, "_FREE_SECONDS", 0.2)
    path = tmp_path / "x.log"
    letters = random.Random(1)
    texts = ("".join(letters.choices("abcdefghijkl", k=9)) for _ in range(40_000))
    path.write_text("".join(f"ValueError: {text}\n" for text in texts))
    began = time.process_time()
    code, out, err = told(path)
    assert code == 1 and not out and re.search(r" line [\d,]+ \(\d+ MiB\)", err) and err.count("\n") == 1
    assert time.process_time() - began < 3


@pytest.mark.parametrize("seed", range(20))
def test_the_search_by_letters_loses_no_line(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that hold a word are found in any block, also the rest of one that goes on, and keep their numbers."""
    chance, words = random.Random(seed), ("KV cache size", "exited (", "Killed", "GPU 0 has", "vLLM")
    pieces = ["\n", "K", " ", "vLLM", "Kill", "led", "cache size", "KV ", "exited (", "{", "\\\n", "\n\n"]
    text = "".join(chance.choices(pieces, k=2500)).encode()
    blocks = [text[i : i + 500] for i in range(0, len(text), 500)]
    by_letters = list(log_lines.log_lines(blocks, words))
    whole = [word.encode() for word in ("KV cache size", "exited (", "Killed", "GPU ", "vLLM")]
    monkeypatch.setattr(log_lines.Search, "finds", lambda _, line: any(word in line for word in whole))
    assert by_letters == list(log_lines.log_lines(blocks, words)) and len(by_letters) > 50


def test_thousands_of_deaths_are_looked_through_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Once no failure that is kept can give way to another, none is looked for at each line."""
    looked: list[Any] = []
    is_minor = log_facts._is_minor

    def watched(expected: Signature) -> bool:
        looked.append(expected)
        return is_minor(expected)

    monkeypatch.setattr(log_facts, "_is_minor", watched)
    path = tmp_path / "x.log"
    path.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n" * 3000)
    assert len(diagnose(str(path), {}, Catalog()).verdict.run.failures) == 400
    assert 0 < len(looked) < 3000
