"""A Hugging Face config as a catalog entry with all parameters counted and all caches by kind; and the entry as
YAML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

from sheetgen.catalog.base import Document, RawMapping, RawRecord, RawValue, scalar, validate
from sheetgen.catalog.families import Family, FamilyFile
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model, stem
from sheetgen.catalog.nearest_names import hint, model_parts, nearest
from sheetgen.errors import CatalogError, shown
from sheetgen.importer.config_reader import Fields, config_path, read_config, read_quantization_beside
from sheetgen.importer.layers import NOTHING, Decoder, plain_decoder
from sheetgen.importer.quantization import Precision, precision_of
from sheetgen.importer.rope import max_context, rope_tables
from sheetgen.importer.special import BUILDERS, eagle3, with_mtp
from sheetgen.importer.stored_size import measure_checkpoint
from sheetgen.importer.towers import largest_item, vision_params
from sheetgen.units import today


def import_config(
    config: RawMapping,
    *,
    name: str,
    hf_id: str | None = None,
    model_id: str | None = None,
    source: str | None = None,
    where: str = "config.json",
    beside: RawMapping | None = None,
    families: FamilyFile | None = None,
) -> Model:
    """The catalog entry for a config.

    where: its name in messages. beside: the hf_quant_config.json in its folder. families: the shipped ones if None.
    Raises CatalogError with the key and value that cannot be read; nothing is guessed.
    """
    for key, value in (("name", name), ("hf_id", hf_id or ""), ("source", source or "")):
        if not value.isprintable():
            raise CatalogError(f"{where}: {key} {shown(value)!r} holds a control character. Take it out.")
    outer = Fields(config, where)
    decoder, text, family, tower = decoder_of(outer, families)
    precision = precision_of(outer, text, None if beside is None else Fields(beside, f"{where} (hf_quant_config.json)"))
    vision, vision_notes = vision_params(outer, text, tower)
    weight_dtype, checkpoint, left_in_16_bits = _stored(outer, text, decoder, precision, vision)
    encoder, encoder_notes = largest_item(outer, tower)
    # Equal layers together, in the order of their first occurrence.
    layers_of = Counter(tuple(shape.items()) for layer in decoder.layers for shape in layer.groups)
    groups = [{**dict(shape), "n_layers": n} for shape, n in layers_of.items()]
    sizes = [(layer.body.total + layer.routed, layer.groups[0]["kind"] != "no_cache") for layer in decoder.layers]
    runs = [(len(list(same)), params, caches) for (params, caches), same in groupby(sizes)] if decoder.in_order else []
    dual = ["rope tables of dual chunk attention are not counted"] if text.raw("dual_chunk_attention_config") else []
    experts = decoder.experts and dict(zip(("n", "top_k", "shared"), decoder.experts, strict=True))
    notes = [*decoder.notes, *dual, *precision.notes, *vision_notes, *encoder_notes]
    data: RawRecord = {
        "id": model_id or _id_of(hf_id or name),
        "name": name,
        "hf_id": hf_id,
        "kind": decoder.kind,
        "confidence": "sourced" if hf_id else "unverified",  # a file of no repository is anybody's
        "source": source or f"config.json of {hf_id or name}",
        "checked_on": today().isoformat(),
        "n_layers": len(decoder.layers),
        "hidden_size": text.count("hidden_size"),
        "intermediate_size": max((layer.dense_width for layer in decoder.layers), default=0) or None,
        "moe_intermediate_size": max((layer.moe_width for layer in decoder.layers), default=0) or None,
        "n_heads": decoder.n_heads,
        "vocab_size": text.count("vocab_size"),
        "max_context_tokens": None if decoder.kind == "draft" else max_context(text),
        "weight_dtype": weight_dtype,
        "kv_cache_dtype": family.kv_cache or precision.kv_cache,
        "parallel_hybrid": decoder.parallel_hybrid,
        "attention": groups,
        "layers_in_order": [dict(zip(("n", "params", "caches"), run, strict=True)) for run in runs],
        "params": _params(decoder, vision, left_in_16_bits),
        "experts": experts,
        "gated_ffn": family.gated,
        "rope_table_elements": rope_tables(text, family, {g["kind"] for g in groups}),
        "encoder": encoder,
        "checkpoints": [{"hf_id": hf_id, **checkpoint}] if checkpoint else [],
        "notes": notes,
    }
    return validate(Document(where, data, {}), Model)


def decoder_of(outer: Fields, families: FamilyFile | None = None) -> tuple[Decoder, Fields, Family, str]:
    """A config's language model counted, its fields, its family, and the name of the tower beside it."""
    text, family, tower = _language_model(outer, families or _shipped_families())
    names = text.raw("architectures")  # an EAGLE-3 head has a class such as `LlamaForCausalLMEagle3`
    if isinstance(names, list) and any("eagle3" in str(name).lower() for name in names):
        return eagle3(text, family), text, family, tower
    build = BUILDERS[family.builder] if family.builder else plain_decoder
    return with_mtp(text, family, build(text, family)), text, family, tower


@cache
def _shipped_families() -> FamilyFile:
    return Catalog().file(FamilyFile)


def _language_model(outer: Fields, families: FamilyFile) -> tuple[Fields, Family, str]:
    """The fields of a config's language model, its family, and the name of the tower beside it."""
    if not outer.has("model_type"):
        counted = (*families.by_type, *families.wrapper_of)
        allowed = f"one of the {len(counted)} of catalogs/{FamilyFile.file_name}: {', '.join(_EXAMPLES)} and others"
        outer.refuse_missing("model_type", allowed, _type_of_class(outer.raw("architectures"), counted))
    model_type = outer.text("model_type")
    wrapper = families.wrapper_of.get(model_type)
    if wrapper is None:
        family = _family(outer, model_type, families)
        return outer.reading(family.defaults, family.rename), family, ""
    if outer.raw(wrapper.key) is None and outer.has("hidden_size"):  # older configs have the language model at the top
        text, text_type = outer, f"{model_type}_text"
    else:
        text = outer.part(wrapper.key)
        text_type = text.text("model_type", f"{model_type}_text")
    family = _family(text, text_type, families)
    data = dict(text.data)
    if data.get("tie_word_embeddings") is None and "tie_word_embeddings" in outer.data:
        data["tie_word_embeddings"] = outer.data["tie_word_embeddings"]  # the wrapper's applies to its language model
    defaults = {**family.nested, **family.defaults}
    return Fields(data, outer.where, text.inside, defaults, family.rename), family, wrapper.tower


_EXAMPLES = ("llama", "mistral", "qwen3", "qwen3_moe", "gpt_oss", "deepseek_v3")  # of model_type


def _type_of_class(names: RawValue, counted: Iterable[str]) -> str:
    """The counted model_type of the class that a config's `architectures` names, or an example."""
    by_letters = {name.replace("_", ""): name for name in counted}
    classes = names if isinstance(names, list) else []
    letters = (str(name).partition("For")[0].removesuffix("Model").lower() for name in classes)
    return next((by_letters[name] for name in letters if name in by_letters), _EXAMPLES[0])


def _family(fields: Fields, model_type: str, families: FamilyFile) -> Family:
    """The family of a model_type. Raises CatalogError for one that is not counted."""
    if family := families.by_type.get(model_type):
        return family
    if reason := families.reasons.get(model_type):
        fields.refuse("model_type", f"is {shown(model_type)!r}, which sheetgen does not count: {reason}.")
    counted = {name: name for name in (*families.by_type, *families.wrapper_of)}
    why = ", and its own code (auto_map) is not run" if fields.raw("auto_map") else ""
    near = hint(nearest(model_type, counted, model_parts))
    fields.refuse("model_type", f"is {shown(model_type)!r}, which sheetgen cannot count{why}.{near}")


def _stored(
    outer: Fields, text: Fields, decoder: Decoder, precision: Precision, vision: int
) -> tuple[str, RawRecord, int]:
    """The name of the weights' precision, the row of a quantized checkpoint (else empty), and the number of elements of
    the body's matrices that stay in 16 bits."""
    if precision.recipe is None:
        return precision.base, {}, 0
    recipe = precision.recipe.of_experts(decoder.experts[0] if decoder.experts else 0)
    size = measure_checkpoint(decoder, recipe, text.count("hidden_size"), vision)
    if unknown := recipe.modules.unknown(len(decoder.layers)):
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        problem = (
            f"names {shown(unknown[0])!r}{more}, which is no part of the model that sheetgen knows. Import the"
            " unquantized config, and say --weight-dtype."
        )
        raise CatalogError(f"{outer.where}: {recipe.place} {problem}")
    quantized = {dtype: n for dtype, n in size.elements.items() if dtype}
    if not quantized:
        return precision.base, {}, 0
    weight_dtype = recipe.dtype or max(quantized, key=lambda dtype: quantized[dtype])
    row = {
        "weight_dtype": weight_dtype,
        "kv_cache_dtype": precision.kv_cache if precision.kv_cache != precision.base else None,
        "format": recipe.name,
        "size_bytes": size.files_bytes,
        "source": "counted from its config, matrix by matrix, with scales",
    }
    return weight_dtype, row, size.left_in_16_bits


def _params(decoder: Decoder, vision: int, left_in_16_bits: int) -> dict[str, int]:
    """The parameters by part of the model. left_in_16_bits: those of the body's matrices that are not quantized."""
    body = sum((layer.body for layer in decoder.layers), NOTHING) + decoder.rest
    routed = sum(layer.routed for layer in decoder.layers)
    text = decoder.embedding + body.total + routed + decoder.lm_head + decoder.per_layer_embedding
    n, top_k, _ = decoder.experts or (1, 1, 0)
    return {
        "total": text + vision,
        "embedding": decoder.embedding,
        "body": body.total,
        "routed_experts": routed,
        "lm_head": decoder.lm_head,
        "vision": vision,
        "per_layer_embedding": decoder.per_layer_embedding,
        "mtp_extra": decoder.mtp_extra,
        "copied": body.copied,
        "unquantized": body.unquantized + left_in_16_bits,
        "active": text - decoder.looked_up - routed + routed * top_k // n,
    }


def _id_of(name: str) -> str:
    """A catalog id from a name; characters that are not allowed become dashes."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", stem(name))
    return re.sub(r"\.{2,}", ".", plain).strip("-._")[:100] or "model"


_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)")


def import_file(
    path: str | Path,
    *,
    name: str | None = None,
    model_id: str | None = None,
    families: FamilyFile | None = None,
    pipes: bool = False,
) -> tuple[Model, str]:
    """The entry for a config.json or the folder of one, or with `pipes` for a pipe, and the file's name for
    messages."""
    config, where = read_config(path, pipes)
    file = config_path(path)
    beside = read_quantization_beside(file)
    hf_id = _cached_id(file)
    label = name or (hf_id.split("/")[1] if hf_id else _label_of(file))
    file_name = _printable(file.name) if file.suffix else "config.json"
    source = f"config.json of {hf_id}" if hf_id else f"{file_name} of {_label_of(file)}"
    model = import_config(
        config, name=label, hf_id=hf_id, model_id=model_id, source=source, where=where, beside=beside, families=families
    )
    return model, where


def names_of_file(path: str | Path) -> list[str]:
    """The names of the model of a config: its id in the Hugging Face cache, the name of its folder or file, and the
    name in the config."""
    config, _ = read_config(path)
    stated = str(config.get("_name_or_path") or "").rstrip("/")
    return list(filter(None, (_cached_id(config_path(path)), _label_of(config_path(path)), stated.rsplit("/", 1)[-1])))


def _cached_id(file: Path) -> str | None:
    """The Hugging Face id of a file in the cache of huggingface_hub; None outside it."""
    cached = filter(None, map(_CACHED.fullmatch, reversed(file.absolute().parts)))
    return next((f"{match[1]}/{match[2]}" for match in cached), None)


def _label_of(file: Path) -> str:
    """The name of a file, or of its folder if it is called config.json; `model` for a pipe such as /dev/fd/63."""
    if file.name.lower() == "config.json":
        return _printable(file.resolve().parent.name)
    return _printable(file.stem) if file.suffix else "model"


def _printable(text: str) -> str:
    """`text` as a name: without control characters, < and >, and leading characters that start a formula."""
    kept = "".join(c for c in text if c.isprintable() and c not in "<>").lstrip("=+-@{| ").strip()
    return kept[:100] or "model"


def write_yaml(model: Model) -> str:
    """The entry as YAML that `sheetgen check` accepts and that reads back as the same entry, one line per field."""
    data = model.model_dump(mode="json", exclude_defaults=True)
    lines: list[str] = []
    for key in type(model).model_fields:
        if key in data:
            lines += _field(key, data[key])
    return "\n".join(lines) + "\n"


def _field(key: str, value: RawValue) -> list[str]:
    """The lines of one field: a block for params, notes and lists of mappings, else one line."""
    if isinstance(value, dict) and key == "params":
        return [f"{key}:", *(f"  {name}: {scalar(item)}" for name, item in value.items())]
    if isinstance(value, dict):
        return [f"{key}: {_flow(value)}"]
    if isinstance(value, list) and (key == "notes" or isinstance(value[0], dict)):  # an empty one is its default
        return [f"{key}:", *(f"  - {_flow(item) if isinstance(item, dict) else scalar(item)}" for item in value)]
    if isinstance(value, list):
        return [f"{key}: [{', '.join(map(scalar, value))}]"]
    return [f"{key}: {scalar(value)}"]


def _flow(value: RawRecord) -> str:
    return "{" + ", ".join(f"{scalar(key)}: {scalar(item)}" for key, item in value.items() if item is not None) + "}"
