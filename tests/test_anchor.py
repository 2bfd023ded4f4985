"""A measured point sets the speed of its configuration right: exactly there, and by the same factor elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

import sheetgen
from sheetgen.answer.calibration import read_anchor
from sheetgen.errors import CatalogError, ScenarioError

R1 = {"model": "deepseek-r1", "gpu": "h200", "tensor_parallel_size": 8}
POINT = {"concurrent_requests": 64, "input_tokens": 1024, "output_tokens": 1024, "tpot_ms": 22.4}
LINE = "concurrent_requests=64,input_tokens=1k,output_tokens=1024,tpot_ms=22.4"
THERE = {"concurrent_requests": 64, "context_tokens": 2048, "input_tokens": 1024, "output_tokens": 1024}


def test_the_point_itself_is_met() -> None:
    plain = sheetgen.size(**R1, **THERE)
    answer = sheetgen.size(**R1, **THERE, anchor={**POINT, "ttft_ms": 310})
    assert (answer["tpot_seconds"], answer["ttft_seconds"]) == (0.0224, 0.31)
    assert (plain["speed_scope"], answer["speed_scope"]) == ("fitted", "anchored")
    assert answer["speed_factor"] == pytest.approx(0.0224 / plain["tpot_seconds"], rel=1e-11)
    assert answer["ttft_factor"] == pytest.approx(0.31 / plain["ttft_seconds"], rel=1e-11)
    assert answer["kv_bytes"] == plain["kv_bytes"] and answer["verdict"] == plain["verdict"]
    only = sheetgen.size(**R1, **THERE, anchor=POINT)
    assert only["tpot_seconds"] == 0.0224 and only["ttft_factor"] == 1
    assert only["ttft_seconds"] == plain["ttft_seconds"]


def test_other_loads_change_by_the_same_factor() -> None:
    for load in ({"concurrent_requests": 8}, {"concurrent_requests": 900, "context_tokens": "16k"}):
        plain, answer = sheetgen.size(**R1, **load), sheetgen.size(**R1, **load, anchor=LINE)
        assert answer["tpot_seconds"] == pytest.approx(answer["speed_factor"] * plain["tpot_seconds"], rel=1e-11)
    typed = sheetgen.size(**R1, speed_factor=answer["speed_factor"], **load)
    assert typed == answer


@pytest.mark.parametrize("name", ["point.json", "point.yaml", "a=b.yaml"])
def test_all_spellings_mean_the_same(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    lines = "concurrent-requests: 64\ninput_tokens: 1k\noutput_tokens: 1024\ntpot_ms: 22.4\n"
    file.write_text(json.dumps({**POINT, "ttft_ms": None}, indent=2) if name.endswith("json") else lines)
    mine = read_anchor(POINT)
    assert mine == read_anchor(LINE) == read_anchor(file) == read_anchor(str(file))
    assert mine == read_anchor(" concurrent_requests=64, input-tokens=1024 ,output_tokens=1024,tpot_ms=22.4,")
    assert (mine.tpot_seconds, mine.ttft_seconds, mine.input_tokens) == (0.0224, None, 1024)


REFUSED: dict[str, tuple[Any, str]] = {
    "unknown key": (LINE.replace("tpot_ms", "tpot"), "unknown key 'tpot'. Did you mean tpot_ms?"),
    "missing": (LINE.split(",tpot")[0], "anchor: tpot_ms is missing."),
    "missing two": ("output_tokens=9,tpot_ms=8", "concurrent_requests, input_tokens are missing"),
    "twice": (LINE + ",tpot_ms=3", "tpot_ms is given twice"),
    "zero": ({**POINT, "tpot_ms": 0}, "tpot_ms is '0'. It must be a number of milliseconds above 0."),
    "negative": ({**POINT, "ttft_ms": -3}, "ttft_ms is '-3'"),
    "infinite": (LINE.replace("22.4", "inf"), "tpot_ms is 'inf'"),
    "not a number": (LINE.replace("22.4", "22ms"), "tpot_ms is '22ms'"),
    "true": ({**POINT, "tpot_ms": True}, "tpot_ms is True. It must be a number."),
    "none": ({**POINT, "input_tokens": None}, "input_tokens is None"),
    "half a request": ({**POINT, "concurrent_requests": 1.5}, "concurrent_requests is '1.5'"),
    "no tokens": ({**POINT, "input_tokens": 0}, "input_tokens is '0'"),
    "one token": ({**POINT, "output_tokens": 1}, "There is a time between tokens from 2 on."),
    "seconds for milliseconds": ({**POINT, "tpot_ms": 0.0224}, "Check its unit (ms)."),
    "microseconds": ({**POINT, "ttft_ms": 310_000}, "ttft_ms is 310,000: the measured point is "),
    "no pair": ("input_tokens=1,024", "anchor has '024'. Write name=value"),
    "no file": ("nowhere.yaml", "anchor is 'nowhere.yaml', which is no file."),
    "blank": ("", "anchor is ''"),
    "a number": (22.4, "anchor is 22.4. Give a mapping"),
    "a share": ({**POINT, "prefix_cache_hit_fraction": 2}, "prefix_cache_hit_fraction is '2'"),
    "too long": ({**POINT, "input_tokens": "1m"}, "anchor: context_tokens is 1,049,600, over the 163,840"),
    "waits": ({**POINT, "concurrent_requests": 5000, "ttft_ms": 9000}, "is one of waiting. Leave ttft_ms out."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case: str) -> None:
    anchor, expected = REFUSED[case]
    with pytest.raises(ScenarioError) as error:
        sheetgen.size(**R1, anchor=anchor)
    assert len(error.value.problems) == 1 and expected in str(error.value) and str(error.value).startswith("anchor")


def test_a_files_problems_have_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "point.yaml"
    for text, expected in (
        ("concurrent_requests: 64\ntpot_m: 3\n", "point.yaml:2: unknown key 'tpot_m'. Did you mean tpot_ms?"),
        ("[1, 2]\n", "point.yaml:1: holds no point."),
        ("tpot_ms: 3\ntpot_ms: 4\n", "point.yaml:2: tpot_ms is given twice"),
        ("a: [\n", "is not valid YAML"),
    ):
        file.write_text(text)
        with pytest.raises((ScenarioError, CatalogError), match=r"point\.yaml:") as error:
            read_anchor(file)
        assert expected in str(error.value) and len(error.value.problems) == 1


def test_a_point_that_waits_gives_its_tpot() -> None:
    crowd = {**POINT, "concurrent_requests": 5000}
    load = {"concurrent_requests": 5000, "context_tokens": 2048, "input_tokens": 1024, "output_tokens": 1024}
    answer = sheetgen.size(**R1, **load, anchor=crowd)
    assert answer["tpot_seconds"] == 0.0224 and answer["queue"] and answer["ttft_factor"] == 1


def test_a_factor_and_a_point_contradict_each_other() -> None:
    with pytest.raises(ScenarioError, match="speed_factor is given, and anchor sets it"):
        sheetgen.size(**R1, speed_factor=1.1, anchor=POINT)
    assert sheetgen.size(**R1, ttft_factor=1.1, anchor=POINT)["ttft_factor"] == 1.1
    with pytest.raises(ScenarioError, match="ttft_factor is given, and anchor sets it"):
        sheetgen.size(**R1, ttft_factor=1.1, anchor={**POINT, "ttft_ms": 300})


def test_the_settings_of_the_deployment_hold_at_the_point() -> None:
    """A pool that is smaller, or fewer sequences at once, changes what is predicted there."""
    factor = sheetgen.size(**R1, anchor=POINT)["speed_factor"]
    few = sheetgen.size(**R1, **THERE, max_num_seqs=16, anchor=POINT)
    assert few["tpot_seconds"] == pytest.approx(0.0224, rel=1e-11) and few["speed_factor"] > factor
    assert sheetgen.size(**R1, context_tokens=512, max_model_len=1024, anchor=POINT)["speed_factor"] == factor


def test_names_that_are_unknown_are_told_first() -> None:
    with pytest.raises(ScenarioError, match="'h1000' is not in the catalogs"):
        sheetgen.size(model="8b", gpu="h1000", anchor=POINT)


def test_one_point_for_the_rows_of_a_frame() -> None:
    frame = pandas.DataFrame(
        {
            "model": ["deepseek-r1", "deepseek-r1", "deepseek-ai/DeepSeek-R1", "nope"],
            "gpu": ["h200", "h200", "nvidia-h200-sxm5-141gb", "h200"],
            "tensor_parallel_size": 8,
            "concurrent_requests": [64, 900, 1, 1],
            "context": [2048, 4096, "x", 1],
            "max_num_seqs": [None, 128, None, 5],
        }
    )
    sized = sheetgen.size_frame(frame, anchor=POINT)
    assert sized["error"].notna().tolist() == [False, False, True, True]
    for row in (0, 1):
        inputs = {k: v for k, v in frame.loc[row].items() if v is not None and v == v}
        answer = sheetgen.size(**inputs, anchor=POINT)
        for name in ("tpot_seconds", "ttft_seconds", "speed_factor", "ttft_factor", "output_tokens_per_second_high"):
            assert sized[name][row] == answer[name], name
    assert sized["tpot_seconds"][0] == 0.0224
    several = frame.assign(tensor_parallel_size=[8, 16, 8, 8])
    with pytest.raises(ScenarioError, match=r"the rows have 2 of these\. Give columns speed_factor"):
        sheetgen.size_frame(several, anchor=POINT)
    with pytest.raises(ScenarioError, match="speed_factor is given"):
        sheetgen.size_frame(frame.assign(speed_factor=1), anchor=POINT)
    assert len(sheetgen.size_frame(frame.iloc[:0], anchor=POINT)) == 0


def test_columns_of_factors() -> None:
    frame = pandas.DataFrame({"model": "8b", "speed_factor": [1, 2, None, 1000], "ttft_factor": [1, None, 3, 1]})
    sized = sheetgen.size_frame(frame)
    tpot, ttft = sized["tpot_seconds"] / sized["tpot_seconds"][0], sized["ttft_seconds"] / sized["ttft_seconds"][0]
    assert tpot[:3].tolist() == pytest.approx([1, 2, 1]) and ttft[:3].tolist() == pytest.approx([1, 1, 3])
    assert sized["speed_scope"].tolist()[:3] == ["fitted", "anchored", "fitted"]  # of TPOT; TTFT has its own
    assert sized["error"][3] == "speed_factor is 1,000. It must be a number from 0.01 to 100."
