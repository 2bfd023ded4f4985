"""docs/models.md: every model of the catalogs, its parameters, and how far they are proven.

python tests/models_page.py     writes docs/models.md
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sheetgen.catalog import Catalog, Model
from sheetgen.catalog.model import stem

DATA = Path(__file__).parent / "data"
MODELS_DOCS = Path(__file__).parents[1] / "docs" / "models.md"
PROOFS = {
    "to the unit": "transformers 5.23.0 counts the same for the same config, to the unit",
    "counted": "counted from a config by the importer, whose families are held to transformers to the unit on random "
    "configs (tests/data/huggingface_oracle.csv)",
    "published": "the total that its authors, or the files of its checkpoint, give",
    "derived": "by formula, or from what is published in part",
}
TEXT = """\
# Models: what is in, and how far its parameters are proven

{proofs}
What people look for and is not entered, with the reason: `catalogs/left_out.yaml`.

| Model | Id | Parameters | Active | Proof |
|---|---|--:|--:|---|
{rows}

Made by `python tests/models_page.py` from the catalogs and tests/data; held to them by
`tests/catalog/test_models_page.py`.
"""


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _counts(model_column: str, count_column: str, file: str) -> dict[str, set[int]]:
    """By the id that a name asks for, what a file of counts has for it; not what it counts without a class of it."""
    layers: dict[str, set[int]] = {}
    for row in _rows(DATA / file):
        has_class = row.get("config_status") != "formula" and "no class in transformers" not in row.get("note", "")
        if row[count_column].isdigit() and (has_class or count_column == "params_published"):
            layers.setdefault(stem(row[model_column]), set()).add(int(row[count_column]))
    return layers


def proofs(models: tuple[Model, ...]) -> dict[str, str]:
    """By id, which of PROOFS holds for a model: the first that does."""
    by_class = [
        _counts("model", "params_oracle", "models_oracle.csv"),
        _counts("id", "params_transformers", "configs/SOURCES-b.csv"),
    ]
    published = _counts("id", "params_published", "configs/SOURCES-b.csv")
    configs = {file.stem for file in (DATA / "configs").glob("*.json")}

    def proof(model: Model) -> str:
        names = {model.id, *(stem(n) for n in (model.hf_id, *model.same_architecture) if n)}
        if any(model.params.total in counts.get(name, set()) for counts in by_class for name in names):
            return "to the unit"
        if model.confidence in ("formula", "partly_derived"):
            return "derived"
        if any(model.params.total in published.get(name, set()) for name in names):
            return "published"
        return "counted" if model.id in configs else "derived"

    return {model.id: proof(model) for model in models}


def _lines(models: tuple[Model, ...], proof: dict[str, str]) -> Iterator[str]:
    for m in sorted(models, key=lambda model: model.id):
        yield f"| {m.name} | `{m.id}` | {m.params.total:,} | {m.params.active:,} | {proof[m.id]} |"


def models_document(catalog: Catalog) -> str:
    models = catalog.models()
    proof = proofs(models)
    count = Counter(proof.values())
    of_proof = "".join(f"- **{name}** ({count[name]} of {len(models)}): {words}.\n" for name, words in PROOFS.items())
    return TEXT.format(proofs=of_proof, rows="\n".join(_lines(models, proof)))


if __name__ == "__main__":
    MODELS_DOCS.write_text(models_document(Catalog()), encoding="utf-8")
