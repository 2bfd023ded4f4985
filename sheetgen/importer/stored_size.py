"""The bytes of a quantized checkpoint's files, matrix by matrix, with scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sheetgen.importer.layers import Decoder, Layer, Matrix, Tally
from sheetgen.importer.module_names import HEADS, names_inside, prefixes, with_expert
from sheetgen.importer.quantization import Recipe, Stored

ELEMENT_BYTES = 2  # of unquantized elements


@dataclass(frozen=True)
class StoredSize:
    """The bytes of all files, the elements of the body's matrices that stay in 16 bits, and elements by precision."""

    files_bytes: int
    left_in_16_bits: int
    elements: Counter[str]


class _Walk:
    """Finds the formats of one model's matrices, and adds up their bytes."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.modules = recipe, recipe.modules
        self.elements: Counter[str] = Counter()
        self.left_in_16_bits = 0
        self.prefixes = prefixes(self.modules.words)
        self._inside: dict[str, list[str]] = {}

    def layer_bytes(self, layer: Layer, names: Sequence[str], numbers: Sequence[int]) -> int:
        """The bytes of a layer with these names; `numbers` are its possible numbers in a list."""
        routed_bias = layer.routed - sum(m.n_in * m.n_out * m.n for m in layer.experts)
        size = (layer.body.unquantized + routed_bias) * ELEMENT_BYTES
        size += self.matrices_bytes(layer.body.matrices, names, numbers)
        return size + sum(self._experts_bytes(matrix, names, numbers) for matrix in layer.experts)

    def matrices_bytes(self, matrices: Iterable[Matrix], names: Sequence[str], numbers: Sequence[int]) -> int:
        """The bytes of matrices in a part with these names; what stays in 16 bits is counted on the way."""
        size = 0
        for matrix in matrices:
            full = (f"{name}.{inside}" for name in names for inside in self._names_inside(matrix.name))
            stored = self._stored(full, numbers, self.recipe.linears)
            size += self._add(matrix, stored, matrix.n)
            if stored is None:
                self.left_in_16_bits += matrix.n_in * matrix.n_out * matrix.n
        return size

    def _experts_bytes(self, matrix: Matrix, names: Sequence[str], numbers: Sequence[int]) -> int:
        """The bytes of a matrix of all experts, which may be listed one by one; else the first counts for all."""
        of_all = self.recipe.experts or self.recipe.linears
        single = [f"{name}.{inside}" for name in names for inside in self._names_inside(matrix.name)]
        if not self.modules.names_experts:
            return self._add(matrix, self._stored(with_expert(single, 0), numbers, of_all), matrix.n)
        formats = Counter(self._stored(with_expert(single, i), numbers, of_all) for i in range(matrix.n))
        return sum(self._add(matrix, stored, n) for stored, n in formats.items())

    def head_bytes(self, n_elements: int, hidden: int) -> int:
        """The bytes of the output head."""
        stored = self._stored(HEADS, (), self.recipe.head)
        return self._add(Matrix("lm_head", hidden, n_elements // hidden), stored, 1)

    def _names_inside(self, name: str) -> list[str]:
        if name not in self._inside:
            self._inside[name] = names_inside(name, self.modules.words)
        return self._inside[name]

    def _stored(self, names: Iterable[str], numbers: Sequence[int], otherwise: Stored | None) -> Stored | None:
        place = self.modules.first(names, numbers)
        return otherwise if place is None else self.recipe.rules[place].stored

    def _add(self, matrix: Matrix, stored: Stored | None, n: int) -> int:
        n_elements = matrix.n_in * matrix.n_out
        self.elements[stored.dtype if stored else ""] += n_elements * n
        return n * (stored.bytes_of(matrix.n_in, matrix.n_out) if stored else n_elements * ELEMENT_BYTES)


def measure_checkpoint(decoder: Decoder, recipe: Recipe, hidden: int, tower_elements: int) -> StoredSize:
    """The size of a checkpoint's files; the elements of towers stay in 16 bits."""
    walk = _Walk(recipe)
    n = len(decoder.layers)
    size = sum(
        walk.layer_bytes(layer, [f"{prefix}.{i}" for prefix in walk.prefixes], (i,))
        for i, layer in enumerate(decoder.layers)
    )
    size += _rest_bytes(walk, decoder.rest)
    size += (decoder.embedding + decoder.per_layer_embedding + tower_elements) * ELEMENT_BYTES
    if decoder.lm_head:
        size += walk.head_bytes(decoder.lm_head, hidden)
    elements, left = Counter(walk.elements), walk.left_in_16_bits  # of the model, without multi-token prediction
    mtp_bytes = decoder.copied_ends * ELEMENT_BYTES
    for i, layer in enumerate(decoder.mtp):
        mtp_bytes += walk.layer_bytes(layer, list(_mtp_names(walk, n, i)), (i, n + i))
    mtp_bytes += walk.matrices_bytes(decoder.joining.matrices, ("mtp", "mtp.0"), (0, n))
    mtp_bytes += decoder.joining.unquantized * ELEMENT_BYTES
    return StoredSize(size + mtp_bytes, left, elements)


def _rest_bytes(walk: _Walk, rest: Tally) -> int:
    return rest.unquantized * ELEMENT_BYTES + walk.matrices_bytes(rest.matrices, ("model", "model.language_model"), ())


def _mtp_names(walk: _Walk, n_layers: int, i: int) -> Iterator[str]:
    """The names of a layer for multi-token prediction, numbered after the model's layers or in a part of its own."""
    yield from (f"{prefix}.{n_layers + i}" for prefix in walk.prefixes)
    yield from (f"mtp.layers.{i}", f"mtp.{i}", f"model.mtp.layers.{i}")
