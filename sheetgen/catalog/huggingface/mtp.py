"""The extra layers of multi-token prediction: outside the total, loaded by an engine that speculates with them.

Their embedding and output matrix are the model's own (checkpoints may hold a second copy), so they are not counted.
"""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.decoder import Decoder, norms, plain_layer
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.nemotron import hybrid_layer, mtp_kinds

_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
_NOTE = "MTP layers: without the second copy of embedding and output matrix that a checkpoint may hold"
_NOT_COUNTED = "the MTP layers are not counted"


def with_mtp(f: Fields, family: Family, decoder: Decoder) -> Decoder:
    """Adds `mtp_extra` where such layers are like the model's last one with a joining matrix before it."""
    key = next((key for key in _KEYS if f.raw(key)), None)
    if key is None or not (n := f.count(key)):
        return decoder
    if not family.mtp:
        return replace(decoder, notes=(*decoder.notes, _NOT_COUNTED))
    hidden = f.count("hidden_size")
    if family.mtp == "blocks":
        layers = [hybrid_layer(f, family, kind) for kind in mtp_kinds(f)]
        extra = sum(layer.body.total + layer.routed for layer in layers) + 2 * hidden * hidden + 3 * hidden
        return replace(decoder, mtp_extra=n * extra, notes=(*decoder.notes, _NOTE))
    sparse = bool(decoder.layers[-1].routed)
    kind = "full" if family.linear or family.attention == "gqa" else "mla"
    layer = plain_layer(f, family, len(decoder.layers) - 1, kind, sparse)
    joining = 2 * hidden * hidden + 3 * norms(f, family).total  # norms of both inputs and of the output
    if family.mtp == "each":
        extra = n * (layer.body.total + layer.routed + joining)
    else:  # one joining matrix before all layers
        extra = n * (layer.body.total + layer.routed) + joining
    return replace(decoder, mtp_extra=extra, notes=(*decoder.notes, _NOTE))
