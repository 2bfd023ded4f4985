"""Logs in every wrapping that container runtimes give them, and in every size."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.errors import ScenarioError
from sheetgen.startup.log_lines import LONGEST, Line, blocks_of, log_lines, open_log, rank_of

PLAIN = "(Worker_TP1 pid=7) INFO 10-23 [gpu_worker.py:298] Available KV cache memory: 44.59 GiB"


def lines(data: bytes, *words: str) -> list[Line]:
    return list(log_lines(blocks_of(io.BytesIO(data)), words))


WRAPPED = {
    "plain": PLAIN.encode(),
    "windows": PLAIN.encode() + b"\r\n",
    "utf-8 with a mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "utf-16": PLAIN.encode("utf-16"),
    "utf-16 big": b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    "docker": json.dumps({"log": PLAIN + "\n", "stream": "stderr", "time": "2026-01-01T00:00:00Z"}).encode(),
    "kubernetes": b"2026-04-19T10:21:55.609123456Z stdout F " + PLAIN.encode(),
    "json lines": json.dumps({"level": "INFO", "message": PLAIN}).encode(),
    "json in docker": json.dumps({"log": json.dumps({"message": PLAIN}) + "\n", "stream": "stdout"}).encode(),
    "colours": b"\x1b[1;36m(Worker_TP1 pid=7)\x1b[0;0m " + PLAIN[20:].encode() + b"\x1b[0m",
    "colours without escape": b"[1;36m(Worker_TP1 pid=7)[0;0m " + PLAIN[20:].encode(),
    "bar before": b"Capturing: 10%\rCapturing: 100%\r" + PLAIN.encode(),
}


@pytest.mark.parametrize("data", WRAPPED.values(), ids=WRAPPED.keys())
@pytest.mark.parametrize("words", [(), ("KV cache memory:",)])
def test_every_wrapping_gives_the_same_line(data: bytes, words: tuple[str, ...]) -> None:
    lines_ = [line for line in lines(data, *words) if "Available" in line.text]
    if data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        wrapped = b"first line\n" + data + b"\nlast line"
        lines_ += [line for line in lines(wrapped, *words) if "Available" in line.text]
        assert lines_[-1].number == 2
    for line in lines_:
        assert line.text.endswith("Available KV cache memory: 44.59 GiB") and line.rank == "TP1"
    assert lines_


def test_pieces_of_a_cut_line_come_together() -> None:
    docker = [{"log": "server_args=ServerArgs(a=1, ", "stream": "stdout"}, {"log": "b=2)\n", "stream": "stdout"}]
    other = {"log": "a line between\n", "stream": "stderr"}
    data = "\n".join(json.dumps(r) for r in (docker[0], other, docker[1])).encode()
    assert [(line.number, line.text) for line in lines(data, "server_args=")] == [
        (2, "a line between"),
        (1, "server_args=ServerArgs(a=1, b=2)"),
    ]
    cri = b"2026-04-19T10:21:55.6Z stdout P server_args=S(a=1,\n2026-04-19T10:21:55.7Z stdout F  b=2)\n"
    assert [line.text for line in lines(cri, "server_args=")] == ["server_args=S(a=1, b=2)"]
    command = b"$ vllm serve m \\\n   --tensor-parallel-size 2 \\\n   --port 1\nrest\n"
    assert lines(command, "vllm serve")[0].text.split() == [
        "$",
        "vllm",
        "serve",
        "m",
        "--tensor-parallel-size",
        "2",
        "--port",
        "1",
    ]


def test_no_control_characters_reach_the_reader() -> None:
    (line,) = lines(b"KV\x00 \x1b]0;title\x07\x1b[2J\x9b31m \xff\xfe\xe2\x80\xae cache\n")
    assert line.text.isprintable() and "title" not in line.text


def test_an_endless_line_is_cut_and_the_next_is_read() -> None:
    data = b"KV" + b"x" * (5 * LONGEST) + b"\nKV cache\nlast"
    lines_ = lines(data)
    assert [len(lines_[0].text) <= LONGEST, lines_[1].text, lines_[1].number] == [True, "KV cache", 2]


def test_memory_stays_bounded() -> None:
    class Endless(io.RawIOBase):
        left = 25  # MB, above what may be kept

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return b"GET /health 200 OK, nothing that matters\n" * 25_000 if self.left > 0 else b""

    tracemalloc.start()
    assert list(log_lines(blocks_of(Endless()), ("KV cache",))) == []  # type: ignore[arg-type]
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_gzip_by_its_first_bytes(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(gzip.compress(PLAIN.encode()))
    with open_log(str(file)) as stream:
        assert next(log_lines(blocks_of(stream))).rank == "TP1"
    file.write_bytes(gzip.compress(PLAIN.encode() * 100)[:-20])
    with pytest.raises(ScenarioError, match="damaged"), open_log(str(file)) as stream:
        list(log_lines(blocks_of(stream)))


@pytest.mark.parametrize("name", ["", "nothing.log", ".", "\0", "a" * 5000])
def test_what_cannot_be_read_is_told_in_one_line(name: str) -> None:
    with pytest.raises(ScenarioError) as caught, open_log(name) as stream:
        list(log_lines(blocks_of(stream)))
    assert len(caught.value.problems) == 1 and str(caught.value).isprintable()


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(data: bytes) -> None:
    for line in lines(data):
        assert line.text.isprintable()


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("(Worker_TP0_EP0 pid=4155524) INFO", "TP0 EP0"),
        ("(Worker_PP1_TP0 pid=4) INFO", "PP1 TP0"),
        ("(VllmWorker rank=3 pid=41) INFO", "rank 3"),
        ("(VllmWorkerProcess pid=100) INFO", "process 100"),
        ("(RayWorkerWrapper pid=55, ip=10.0.0.2) INFO", "process 55"),
        ("(EngineCore_DP1 pid=5) INFO", "DP1"),
        ("(EngineCore pid=5) INFO", ""),
        ("[2026-09-11 23:34:13 DP0 TP0 EP0] Load", "DP0 TP0 EP0"),
        ("[12/20/2025-04:21:50] [TRT-LLM] [RANK 1] [I] x", "rank 1"),
        ("INFO 05-30 worker.py:267]", ""),
    ],
)
def test_ranks(text: str, rank: str) -> None:
    assert rank_of(text) == rank
