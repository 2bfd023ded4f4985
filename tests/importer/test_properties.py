"""Properties of every config: counts, groups, order of layers, and refusals by name."""

from __future__ import annotations

import random

import pytest
from amounts import amount
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_count import Config, dense, hybrid, latent, routed, sparse, total

from sheetgen.catalog import Catalog
from sheetgen.catalog.families import FamilyFile
from sheetgen.errors import CatalogError
from sheetgen.importer.model_entry import import_config

FAMILIES = Catalog().file(FamilyFile)
ANY = st.one_of(dense(), sparse(), latent(), hybrid())
MANY = settings(max_examples=amount(40, 150), deadline=None)


@given(ANY)
@MANY
def test_parameters_equal_a_plain_count(config: Config) -> None:
    p = import_config(config, name="x").params
    assert p.total == total(config)
    assert p.routed_experts == routed(config)
    assert p.total == p.embedding + p.body + p.routed_experts + p.lm_head
    assert p.copied <= p.body and p.unquantized <= p.body
    experts = config.get("n_routed_experts") or config.get("num_experts") or 1
    chosen = config.get("num_experts_per_tok", 1)
    assert p.active == p.total - p.routed_experts + p.routed_experts * chosen // experts


@given(ANY)
@MANY
def test_groups_add_up_to_the_layers(config: Config) -> None:
    model = import_config(config, name="x")
    assert sum(g.n_layers for g in model.attention) == model.n_layers == config["num_hidden_layers"]
    listed = config.get("layer_types", [])
    by_kind = {g.kind: g.n_layers for g in model.attention}
    assert by_kind.get("windowed", 0) == listed.count("sliding_attention")
    assert by_kind.get("recurrent", 0) == listed.count("linear_attention")


@given(st.one_of(dense(), hybrid()), st.integers(0, 1000))
@MANY
def test_the_order_of_layers_does_not_matter(config: Config, seed: int) -> None:
    other = dict(config)
    if "layer_types" in config:
        other["layer_types"] = random.Random(seed).sample(config["layer_types"], len(config["layer_types"]))
    a, b = import_config(config, name="x"), import_config(other, name="x")
    assert a.params == b.params
    assert sorted(map(str, a.attention)) == sorted(map(str, b.attention))


@given(dense(), st.text(min_size=1, max_size=20))
@MANY
def test_an_unknown_model_type_is_named(config: Config, word: str) -> None:
    if word in FAMILIES.by_type or word in FAMILIES.wrapper_of:
        return
    with pytest.raises(CatalogError) as caught:
        import_config({**config, "model_type": word}, name="x", where="c.json")
    (line,) = caught.value.problems
    assert line.startswith("c.json: model_type is ") and "cannot count" in line and line.isprintable()


@given(dense(), st.text(min_size=1, max_size=20).filter(lambda word: "attention" not in word))
@MANY
def test_an_unknown_layer_type_is_named(config: Config, word: str) -> None:
    n = config["num_hidden_layers"]
    listed = ["full_attention"] * (n - 1) + [word]
    if word in ("full", "sliding", "mamba", "conv"):
        return
    with pytest.raises(CatalogError) as caught:
        import_config({**config, "layer_types": listed}, name="x", where="c.json")
    (line,) = caught.value.problems
    assert line.startswith(f"c.json: layer_types[{n - 1}] is ") and "full_attention" in line and line.isprintable()


@given(ANY, st.data())
@MANY
def test_a_missing_or_wrong_size_is_named(config: Config, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]))
    wrong = data.draw(st.sampled_from([None, -1, 0, 1.5, "4096", float("nan"), float("inf"), True, [1], {}, 10**30]))
    with pytest.raises(CatalogError) as caught:
        import_config({**config, key: wrong}, name="x", where="c.json")
    assert caught.value.problems[0].startswith(f"c.json: {key} ")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"quantization_config": {"quant_method": "fp9"}}, "quantization_config.quant_method is 'fp9'"),
        ({"quantization_config": {"bits": 4}}, "quantization_config.quant_method is missing"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "quantization_config.bits is 3"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}}, "MIXED_PRECISION"),
        ({"rope_scaling": {"rope_type": "spiral", "factor": 2}}, "rope_scaling.rope_type is 'spiral'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling.factor is missing"),
        ({"torch_dtype": "bfloat61"}, "Did you mean bfloat16?"),
        ({"model_type": "lama"}, "Did you mean llama?"),
        ({"model_type": "mine", "auto_map": {"AutoModel": "evil.Model"}}, "its own code (auto_map) is not run"),
        ({"num_key_value_heads": 3}, "n_kv_heads 3 does not divide n_heads 4"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "sliding_window is missing"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 items, but the model has 2 layers"),
        ({"layer_types": ["slidng_attention"] * 2}, "Did you mean sliding_attention?"),
        ({"layer_types": ["linear_attention"] * 2}, "has linear layers, which a qwen3 is not known to have"),
        ({"layer_types": ["chunked_attention"] * 2}, "attention_chunk_size is missing"),
        ({"head_dim": None, "hidden_size": 66}, "hidden_size 66 is not a multiple of the 4 heads"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, but must be from 1 to 2,000"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(change: Config, told: str) -> None:
    config = {
        "model_type": "qwen3",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "max_position_embeddings": 4096,
    }
    import_config(config, name="x")
    with pytest.raises(CatalogError) as caught:
        import_config({**config, **change}, name="x", where="c.json")
    (line,) = caught.value.problems
    assert line.startswith("c.json: ") and told in line


def test_two_shapes_of_one_kind_are_refused_by_name() -> None:
    block = {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 2.0, "no_op": False}}
    other = {**block, "attention": {"n_heads_in_group": 2, "no_op": False}}
    config = {
        "model_type": "nemotron-nas",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "max_position_embeddings": 4096,
        "block_configs": [block, other],
    }
    with pytest.raises(CatalogError, match="a second full group"):
        import_config(config, name="x")
