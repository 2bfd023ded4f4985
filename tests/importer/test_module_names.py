"""Meanings of an item of a quantization's lists: names, wildcards and regular expressions, and no bomb."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.importer.module_names import ModuleList, plain, regular, wildcard

NAMES = [
    f"model.layers.{i}.{part}"
    for i in (0, 1, 10, 61)
    for part in ("self_attn.q_proj", "mlp.gate_proj", "mlp.experts.3.down_proj", "mlp.shared_experts.up_proj")
] + ["lm_head"]


def meant(items: ModuleList) -> list[str]:
    return [name for name in NAMES if items.first([name], [int(n) for n in re.findall(r"layers\.(\d+)", name)]) == 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lm_head", ["lm_head"]),
        ("model.layers.1", [name for name in NAMES if ".layers.1." in name]),  # not the layer 10
        ("self_attn", [name for name in NAMES if "self_attn" in name]),
        ("mlp.gate", []),  # the router, not gate_proj
    ],
)
def test_a_name_stands_for_all_that_is_in_it(text: str, expected: list[str]) -> None:
    assert meant(ModuleList([plain(text)])) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.layers.1*", r".*layers\.1"),  # as fnmatch reads it: the layer 10, too
        ("model.layers.1.*", r".*layers\.1\."),
        ("model.layers.0.self_attn*", r".*layers\.0\.self_attn"),
        ("*.mlp.shared_experts.*", r".*shared_experts"),
        ("model.layers.*.self_attn", r".*self_attn"),
        ("layers.61*", r".*layers\.61"),
        ("*", r".*"),
        ("mtp*", r"never"),
    ],
)
def test_a_wildcard(text: str, expected: str) -> None:
    assert meant(ModuleList([wildcard(text)])) == [name for name in NAMES if re.match(expected, name)]


WRITTEN = [
    r".*self_attn.*",
    r".*mlp\.(gate|up|gate_up|down)_proj.*",
    r"^model\.layers\.(0|1)\..*",
    r".*\.(q|k|v|o)_proj$",
    r"(?:model\.)?layers\.\d+\.mlp\.experts\.[0-9]+\.down_proj",
    r"model\.layers\.1\d\.",
    r"(?!.*experts).*proj",
    r"^(?!.*(lm_head|layers\.61)).*$",
    r".+\.mlp\.(experts\.\d+|shared_experts)\.(up|down)_proj",
    r"lm_head|.*shared_experts.*",
    r"model.layers.[0-9]{2}.self_attn",
    r".*layers\.(?:0|10)\.[a-z_]+\.q_proj",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_regular_expression_means_what_re_match_says(text: str) -> None:
    pattern = regular(text)
    assert pattern is not None
    for name in NAMES:
        assert pattern.matches(name) == bool(re.match(text, name)), name


@pytest.mark.parametrize(
    "text", [r"(a+)+$", r"(.*a)*b", r"x{1,200}", r"(?<=a)b", r"\bword", r"(a", r"a)", "[", "a" * 2000]
)
def test_what_is_not_taken_apart_is_not_read(text: str) -> None:
    assert regular(text) is None


@given(st.text(alphabet=r"ab.*+?|()[]\d^$!:,{}0", max_size=40))
def test_whatever_is_read_agrees_with_re(text: str) -> None:
    pattern = regular(text)
    if pattern is not None:
        for name in ("ab.ab", "a.b0.a", "bb", "0.a"):
            assert pattern.matches(name) == bool(re.match(text, name))


def test_no_pattern_takes_long() -> None:
    started = time.perf_counter()
    for text in (".*a" * 300, ".*(a|aa)" * 7 + "x", r"\d+[a-z]+" * 2 + "x"):
        pattern = regular(text)
        assert pattern is None or not pattern.matches("a" * 200)
    assert time.perf_counter() - started < 1


def test_the_first_item_holds() -> None:
    items = ModuleList([wildcard("model.layers.1.self_attn*"), plain("self_attn"), plain("lm_head")])
    assert items.first(["model.layers.1.self_attn.q_proj"], [1]) == 0
    assert items.first(["model.layers.0.self_attn.q_proj"], [0]) == 1
    assert items.unknown(62) == []  # an output matrix is left alone whether the model has one or not
    assert ModuleList([plain("model.layers.3.strange_part")]).unknown(62) == ["model.layers.3.strange_part"]
