"""The strict YAML reader: what it reads, what it refuses, and on which line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sheetgen.catalog import read_document
from sheetgen.catalog.base import read_text
from sheetgen.errors import CatalogError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8.03e9", 8.03e9),
        ("1e9", 1e9),
        ("-3", -3),
        ("010", 10),
        (".5", 0.5),
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2026-11-20", "2026-11-20"),
        ("0x10", "0x10"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("9" * 50, "9" * 50),
        ("true", True),
        ("~", None),
        ("null", None),
        ("", None),
        ("'8'", "8"),
        ('"no"', "no"),
        ("[1, a]", [1, "a"]),
        ("{}", {}),
    ],
)
def test_values(text: str, value: object) -> None:
    data = read_text(f"a: {text}\n", "f.yaml").data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_lines() -> None:
    document = read_text("a: 1\nb:\n  - x\n  - c: 2\n    d: [3,\n        4]\n", "f.yaml")
    assert document.at(("a",)) == "f.yaml:1"
    assert document.at(("b", 1, "d")) == "f.yaml:5"
    assert document.at(("b", 1, "d", 1)) == "f.yaml:6"
    assert document.at(("b", 1, "missing")) == "f.yaml:4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: a is given twice (first on line 1)"),
        ("a: 1\nb: {c: 1, c: 2}\n", "f.yaml:2: c is given twice"),
        ("a: &x 1\nb: *x\n", "f.yaml:1: uses an anchor or alias"),
        ("a: [*x]\n", "f.yaml:1: uses an anchor or alias"),
        ("a: 1\nb: !!python/object:os.system x\n", "f.yaml:2: uses a tag"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: starts a second document"),
        ("a: 1\n  b: 2\n", "f.yaml:2: is not valid YAML"),
        ("a: [1, 2\n", "is not valid YAML"),
        ("a: 1\nb: x\x07y\n", "f.yaml:2: holds a control character"),
        ('a: 1\nb: "x\\x1by"\n', "f.yaml:2: holds a control character"),
        ('a: "x\\u202ey"\n', "f.yaml:1: holds a control character"),
        ("a: 1\nb: " + "x" * 10_000 + "\n", "f.yaml:2: holds a string of 10,000 characters"),
        ("a: " + "[" * 60 + "]" * 60, "f.yaml:1: is nested deeper than 20 levels"),
        ("? [a]\n: 1\n", "f.yaml:1: has a key that is not plain text"),
        ("a: 1\n<<: {b: 2}\nc: *d\n", "f.yaml:3: uses an anchor or alias"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_text(text, "f.yaml")
    assert message in str(caught.value)


def test_billion_laughs() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    with pytest.raises(CatalogError, match="anchor or alias"):
        read_text(bomb, "f.yaml")


def test_files(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_text("# " + "x" * 1_000_001)
    with pytest.raises(CatalogError, match=r"larger than 1,000,000 bytes"):
        read_document(big)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(CatalogError, match=r"latin.yaml:2: is not UTF-8"):
        read_document(latin)
    with pytest.raises(CatalogError, match="cannot be read"):
        read_document(tmp_path / "none.yaml")
    bom = tmp_path / "bom.yaml"
    bom.write_bytes("\ufeffa: 1\n".encode())
    assert read_document(bom).data == {"a": 1}
