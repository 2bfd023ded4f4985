"""`size --batch`: unknown columns stay as typed, errors stand in their rows, numbers equal `size`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import sheetgen
from sheetgen.cli.batch import print_csv

ROWS = (
    "id,model,gpu,context_tokens,concurrent_requests,weight_dtype,remark\n"
    '007,70b,h200,16k,8,,"a, b"\n'
    "008,nope,h100,16k,8,auto,=1+1\n"
    "009,8b,,abc,,fp8,\n"
    "010,8b,,,,fp8,NA\n"
)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_batch(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text("\ufeff" + ROWS, encoding="utf-8")
    result = run("size", "--batch", "in.csv", "--out", "sub/out.csv")
    assert result.exit_code == 1 and result.stdout == ""  # all rows are written, and two could not be sized
    assert result.stderr.startswith("2 of 4 rows ")
    rows = read((workdir / "sub" / "out.csv").read_text())
    assert [r["id"] for r in rows] == ["007", "008", "009", "010"]
    assert [r["remark"] for r in rows] == ["a, b", "'=1+1", "", "NA"]
    assert [bool(r["error"]) for r in rows] == [False, True, True, False]
    assert "'nope' is not in the catalogs" in rows[1]["error"]
    assert rows[2]["context_tokens"] == "abc" and "context_tokens is 'abc'" in rows[2]["error"]
    assert rows[1]["context_tokens"] == "16k" and rows[1]["weights_bytes"] == ""
    first = sheetgen.size(model="70b", gpu="h200", context="16k", concurrent_requests=8)
    for name, value in first.items():
        text = rows[0][name]
        if type(value) is float:
            assert float(text) == value, name
        else:
            assert text == ("" if value is None else str(value)), name


def test_flags_stand_in_for_missing_columns(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text("context_tokens\n1k\n2k\n")
    rows = read(run("size", "--batch", "in.csv", "--model", "8b", "--gpu", "l40s").stdout)
    assert [r["context_tokens"] for r in rows] == ["1024", "2048"] and {r["gpu"] for r in rows} == {"l40s"}


def test_columns(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text(ROWS)
    every = read(run("size", "--batch", "in.csv").stdout)
    names = ["fits", "id", "context_tokens", "min_gpus"]
    result = run("size", "--batch", "in.csv", "--columns", ",".join(names))
    assert result.exit_code == 1 and result.stderr.startswith("2 of 4 rows ")
    assert read(result.stdout) == [{name: row[name] for name in names} for row in every]
    records = json.loads(run("size", "--batch", "in.csv", "--columns", "id,verdict", "--json").stdout)
    assert [list(row) for row in records] == [["id", "verdict"]] * 4
    for unknown in ("id,fitz", ""):
        refused = run("size", "--batch", "in.csv", "--columns", unknown)
        assert refused.exit_code == 1 and refused.stdout == ""
    assert run("size", "--model", "8b", "--columns", "fits").exit_code == 2


def test_parquet(run, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text(ROWS)
    asked = ("size", "--batch", "in.csv", "--columns", "id,fits,queue,tpot_seconds,error", "--out", "out.parquet")
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        missing = run(*asked)
    assert missing.exit_code == 1 and "pip install pyarrow" in missing.stderr and not (workdir / "out.parquet").exists()
    parquet = pytest.importorskip("pyarrow.parquet")
    run(*asked)
    table = parquet.read_table(workdir / "out.parquet")
    types = dict(zip(table.schema.names, map(str, table.schema.types), strict=True))
    strings = dict.fromkeys(("id", "queue", "error"), "large_string")
    assert types == strings | {"fits": "bool", "tpot_seconds": "double"}
    rows = json.loads(run(*asked[:-2], "--json").stdout)
    assert table.to_pylist() == rows


def test_batch_as_json(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text(ROWS)
    rows = json.loads(run("size", "--batch", "in.csv", "--json").stdout)
    assert len(rows) == 4 and rows[0]["kv_bytes_per_token"] == 327_680 and rows[1]["fits"] is None
    assert rows[0]["error"] is None and rows[3]["fits"] is True


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is no CSV table"),
        ("gpu\nh100\n", "has no column model"),
        ("model,gpu,model\n8b,h100,8b\n", "column 'model' stands twice"),
        ("model;gpu;users\n8b;h100;1\n", "Is it separated by ';'?"),
        ("model\tgpu\n8b\th100\n", "Is it separated by tabs?"),
        (" Model ,gpu\n8b,h100\n", "column ' Model ' is not read. Did you mean model?"),
        ("model,Context Tokens\n8b,1k\n", "Did you mean context_tokens?"),
        ("model,tp\n8b,2\n", "column 'tp' is not read. Did you mean tensor_parallel_size?"),
        ("models,model,user\n8b,8b,2\n", "column 'user' is not read. Did you mean users?"),
        (b"model\n\xff\xfe\n", "is not UTF-8 text"),
    ],
)
def test_files_that_are_no_table(content: str | bytes, expected: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("size", "--batch", "in.csv", "--out", "out.csv")
    assert result.exit_code == 1 and expected in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (workdir / "out.csv").exists()


def test_an_unwritable_target_leaves_nothing(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text("model\n8b\n")
    result = run("size", "--batch", "in.csv", "--out", "in.csv/out.csv")
    assert result.exit_code == 1 and "cannot be written" in result.stderr
    assert [p.name for p in workdir.iterdir()] == ["in.csv"]


def test_numbers_that_are_not_finite_or_absurd(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    cells = ["inf", "1e400", "-Infinity", "1e300", "NaN", '"1,0"', '"1,000"']
    (workdir / "in.csv").write_text("model,users,context_tokens\n" + "".join(f"8b,{c},\n8b,,{c}\n" for c in cells))
    (workdir / "in.csv").write_text((workdir / "in.csv").read_text().replace("users", "concurrent_requests", 1))
    rows = json.loads(run("size", "--batch", "in.csv", "--json").stdout)
    for cell, users, context in zip(cells, rows[::2], rows[1::2], strict=True):
        typed = cell.strip('"')
        if typed == "1,000":
            assert (users["concurrent_requests"], context["context_tokens"]) == (1000, 1000)
            continue
        assert users["concurrent_requests"] == context["context_tokens"] == typed
        assert users["error"].startswith("concurrent_requests is ") and users["kv_bytes"] is None
        assert context["error"].startswith("context_tokens is ") and context["concurrent_requests"] is None
    assert read(run("size", "--batch", "in.csv").stdout)[0]["concurrent_requests"] == "inf"


def test_rows_that_are_longer_or_shorter_than_the_header(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text("model,gpu,error\n8b,h100,old,lost,\n8b,h100,old,,\n\n8b\nzz,,old\n")
    result = run("size", "--batch", "in.csv")
    long, blank, short, unknown = read(result.stdout)
    assert result.exit_code == 1 and result.stderr.startswith("2 of 4 rows ")
    assert long["error"].startswith("the row has 5 cells and the header 3: ")
    assert long["weights_bytes"] == long["model_id"] == long["verdict"] == ""
    assert blank["error"] == short["error"] == "" and blank["weights_bytes"] == short["weights_bytes"] != ""
    assert "'zz' is not in the catalogs" in unknown["error"]
    assert json.loads(run("size", "--batch", "in.csv", "--json").stdout)[0]["fits"] is None


def test_texts_that_a_spreadsheet_would_run_are_quoted(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """Heads and cells of the user's own columns, and inputs that were refused; numbers stay numbers."""
    (workdir / "in.csv").write_text("=A1,model,remark,gpu\n=1+1,8b,-5,h100\n@x,8b,-a,=cmd()\n+1.5e3,8b,\t=2,\n")
    rows = read(run("size", "--batch", "in.csv").stdout)
    assert [row["'=A1"] for row in rows] == ["'=1+1", "'@x", "+1.5e3"]
    assert [row["remark"] for row in rows] == ["-5", "'-a", "'\t=2"] and rows[1]["gpu"] == "'=cmd()"
    record = json.loads(run("size", "--batch", "in.csv", "--json").stdout)
    assert [row["=A1"] for row in record] == ["=1+1", "@x", "+1.5e3"] and record[1]["gpu"] == "=cmd()"


def test_cells_come_back_byte_by_byte(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text("model,remark\n8b,\x1b[31mred\n")
    assert read(run("size", "--batch", "in.csv").stdout)[0]["remark"] == "\x1b[31mred"


def test_a_terminal_is_sent_no_control_character(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    print_csv(b'model,remark\n8b,"\x1b[31mred\nand\rmore"\n')
    assert terminal.getvalue() == 'model,remark\n8b,"\\x1b[31mred\nand\\rmore"\n'


def test_one_measured_point_for_all_rows(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    point = "concurrent_requests=32,input_tokens=1024,output_tokens=1024,tpot_ms=9.5"
    head = "model,gpu,concurrent_requests,context_tokens\n"
    (workdir / "in.csv").write_text(head + "8b,h100,1,2k\n8b,h100,32,2k\n8b,h100,x,1\n")
    rows = read(run("size", "--batch", "in.csv", "--measured", point).stdout)
    first = sheetgen.size(model="8b", context="2k", measured=point)
    assert [float(r["tpot_seconds"]) for r in rows[:2]] == [first["tpot_seconds"], 0.0095]
    assert rows[2]["error"]
    assert [r["speed_scope"] for r in rows] == ["anchored", "anchored", ""]
    (workdir / "in.csv").write_text("model,gpu\n8b,h100\n8b,h200\n")
    result = run("size", "--batch", "in.csv", "--measured", point, "--out", "out.csv")
    assert result.exit_code == 1 and "does not say its gpu" in result.stderr and not (workdir / "out.csv").exists()
    rows = read(run("size", "--batch", "in.csv", "--measured", f"{point},gpu=h200").stdout)
    assert [r["speed_scope"] for r in rows] == ["fitted", "anchored"]
    (workdir / "in.csv").write_text("model,speed_factor\n8b,1.5\n")
    result = run("size", "--batch", "in.csv", "--measured", point)
    assert result.exit_code == 1 and "speed_factor is given" in result.stderr


def test_factors_as_columns_and_rates_in_12_digits(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "in.csv").write_text(
        "model,speed_factor,ttft_factor,requests_per_second,concurrent_requests\n8b,1.5,,,\n8b,,0.8,1e5,1\n8b,,,,\n"
    )
    rows = read(run("size", "--batch", "in.csv").stdout)
    tpot = [float(r["tpot_seconds"]) for r in rows]
    assert tpot[0] == pytest.approx(1.5 * tpot[2]) and tpot[1] == tpot[2]
    assert rows[1]["queue"].startswith("the queue grows") and rows[1]["ttft_seconds"] == ""
    assert float(rows[0]["ttft_seconds"]) == float(rows[2]["ttft_seconds"]) > 0
    for row in rows:
        for name, text in row.items():
            if "_second" in name and text:
                assert len(text.replace(".", "").lstrip("0")) <= 12, (name, text)


def test_the_input_is_never_overwritten(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "in.csv"
    table.write_text("model\n8b\n")
    result = run("size", "--batch", table, "--out", table)
    assert result.exit_code == 1 and "is the input" in result.output
    assert table.read_text() == "model\n8b\n"
    result = run("size", "--batch", tmp_path)
    assert result.exit_code == 1 and "is a folder" in result.output


def test_a_rate_reads_back_what_it_wrote(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    """Its requests at once are a fraction, which is refused of a load that is at once."""
    (workdir / "in.csv").write_text("model,requests_per_second,requests_per_day\n8b,2.5,\n8b,,3000\n")
    for source, target in (("in", "once"), ("once", "twice")):
        assert run("size", "--batch", f"{source}.csv", "--out", f"{target}.csv").exit_code == 0
    assert (workdir / "twice.csv").read_text() == (workdir / "once.csv").read_text()
    rows = read((workdir / "once.csv").read_text())
    assert all(not row["error"] and float(row["concurrent_requests"]) % 1 for row in rows)
    (workdir / "in.csv").write_text("model,concurrent_requests\n8b,2.5\n")
    assert "concurrent_requests is 2.5." in read(run("size", "--batch", "in.csv").stdout)[0]["error"]
