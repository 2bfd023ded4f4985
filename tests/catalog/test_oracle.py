"""The catalog against counts made with transformers 5.23.0 (tests/data/models_oracle.csv)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from sheetgen.catalog import Catalog, Model

ORACLE = Path(__file__).parent.parent / "data" / "models_oracle.csv"
ROWS = list(csv.DictReader(ORACLE.read_text().splitlines()))
# transformers copies the KV of these to every query head; engines keep the 8 heads of the checkpoint.
KV_COPIED_TO_HEADS = {"tiiuae/falcon-40b": 128, "tiiuae/falcon-180B": 232}


def name_of(row: dict[str, str]) -> str:
    model = row["model"]
    return f"eagle3-{model[:-1].split(' for ')[1].lower()}" if model.startswith("(") else model


def number(row: dict[str, str], start: str) -> int | None:
    """A cell by the start of its column's name."""
    column = next(key for key in row if key.startswith(start))
    return int(row[column]) if row[column] else None


def kv_elements(model: Model) -> float:
    s = model.shape()
    return (
        s["n_full_layers"] * s["full_kv_heads"] * s["full_kv_width"]
        + s["n_mla_layers"] * s["mla_width"]
        + s["other_elements_per_token"]
    )


def state_bytes(model: Model, element_bytes: float) -> float:
    s = model.shape()
    per_layer = s["conv_bytes_per_state_layer"] + s["state_elements_per_layer"] * element_bytes
    return s["n_state_layers"] * per_layer


@pytest.fixture(params=ROWS, ids=[row["model"] for row in ROWS])
def row(request: pytest.FixtureRequest) -> dict[str, str]:
    return request.param  # type: ignore[no-any-return]


def test_every_oracle_row_is_a_model_of_its_own(catalog: Catalog) -> None:
    assert len({catalog.model(name_of(row)).entry_id for row in ROWS}) == len(ROWS) == 130


def test_parameters(catalog: Catalog, row: dict[str, str]) -> None:
    params = catalog.model(name_of(row)).params
    if (total := number(row, "params_oracle")) is None:
        assert row["model"] == "moonshotai/Kimi-K3"  # no class in transformers: the vendor says 2.8T, 104B active
        assert (round(params.total / 1e11), round(params.active / 1e9)) == (28, 104)
        assert round((params.vision - 4096 * 4096 - 4096 * 7168 - 7168) / 1e6) == 401  # less the projector
        return
    assert params.total == total
    if row["config_status"] == "formula":
        return  # the oracle has a total only
    assert params.routed_experts == (number(row, "params_routed") or 0)
    assert params.vision == (number(row, "params_vision") or 0)
    assert params.active == (number(row, "params_active") or total - params.vision)


def test_growing_kv_and_indexer(catalog: Catalog, row: dict[str, str]) -> None:
    model = catalog.model(name_of(row))
    growing = number(row, "kv_elements_per_token_growing")
    if heads := KV_COPIED_TO_HEADS.get(row["model"]):
        assert growing is not None
        growing = growing * 8 // heads
    assert kv_elements(model) == growing
    indexer = [g for g in model.attention if g.kind == "indexer"]
    assert sum(g.n_layers * g.width for g in indexer) == (number(row, "indexer_elements") or 0)
    assert model.shape()["other_bytes_per_token"] == sum(g.n_layers * 132 for g in indexer)


def test_full_windows(catalog: Catalog, row: dict[str, str]) -> None:
    s = catalog.model(name_of(row)).shape()
    width = s["windowed_kv_heads"] * s["windowed_kv_width"]
    fixed = s["n_windowed_layers"] * width * s["window_tokens"]
    assert fixed == (number(row, "kv_elements_fixed") or 0)


def test_state(catalog: Catalog, row: dict[str, str]) -> None:
    model = catalog.model(name_of(row))
    if model.confidence != "unverified":
        assert state_bytes(model, 4) == (number(row, "state_bytes_ssm_fp32") or 0)
        assert state_bytes(model, 2) == (number(row, "state_bytes_ssm_16bit") or 0)


def test_layers_and_context(catalog: Catalog, row: dict[str, str]) -> None:
    model = catalog.model(name_of(row))
    if row["layers"]:
        assert model.n_layers == int(row["layers"])
    if row["max_position"] or model.kind == "draft":  # a draft follows its target
        assert model.max_context_tokens == number(row, "max_position")
    status = {"sourced config": "sourced", "partly derived config": "partly_derived"}
    expected = status.get(row["config_status"], row["config_status"].removesuffix(" config"))
    assert model.confidence == expected


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("8b", 131_072),
        ("70b", 327_680),
        ("405b", 516_096),
        ("100b", 368_640),
        ("49b", 200_704),
        ("deepseek-v3", 70_272),
        ("qwen3.5-27b", 65_536),
        ("gpt-oss-120b", 36_864),
    ],
)
def test_published_anchors(catalog: Catalog, name: str, bytes_per_token: int) -> None:
    assert 2 * kv_elements(catalog.model(name)) == bytes_per_token


def test_reference_shape(catalog: Catalog) -> None:
    model = catalog.model("100b")
    assert model.kind == "reference_shape"
    assert model.params.total == 99_831_531_520
    assert [catalog.model(name).experts for name in model.nearest] == [None] * len(model.nearest)
    assert all(95e9 < catalog.model(name).params.total < 130e9 for name in model.nearest)


def test_state_is_fp32_where_the_config_pins_it(catalog: Catalog) -> None:
    for name, width in (("qwen3.6-27b", 4), ("nemotron-3-nano", 4), ("kimi-k3", 4), ("qwen3-next", 2)):
        assert catalog.model(name).shape()["state_element_bytes"] == width
