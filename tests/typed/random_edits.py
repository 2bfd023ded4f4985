"""Random values typed into a workbook's cells, the same as `typed` of a scenario."""

from __future__ import annotations

import random

from cells_of import ANY_INPUT, Edits, Places, typed_columns, value_for
from workbook_cells import CellValue, number

from sheetgen.question.overrides import BANDS, TABLES

CHANCES = {"models": 0.08, "gpus": 0.04, "precisions": 0.1, "instances": 0.25}
ROWS_OF_INSTANCES = ("provider", "type", "instance_gpu", "gpu_count", "price_usd_per_hour", "price_date")


def instance_value(rng: random.Random, column: str, old: CellValue, gpus: list[str]) -> CellValue:
    if column == "instance_gpu":
        return rng.choice((*gpus, *gpus, "h1000", None))
    if column in ("provider", "type"):
        return rng.choice(("aws", "acme", "gcp")) if column == "provider" else f"{old}.{rng.randint(1, 9)}"
    if column == "gpu_count":
        return rng.choice((*(n for n in (1, 2, 3, 4, 6, 8) if n <= number(old)), None))  # the workbook takes no more
    if column == "price_usd_per_hour":
        return rng.choice((1.0, 1.0, 2.0, 2.5, 0, None))
    return value_for(rng, TABLES["instances"][column], old)


def random_edits(rng: random.Random, places: Places) -> Edits:
    """From one cell to a few hundred, prices with many ties."""
    edits, boldness = Edits(), rng.choice((0.3, 1.0, 2.0))
    for name, kind in ANY_INPUT.items():
        if rng.random() < 0.08 * boldness:
            old = places.values[places.columns[f"in_{name}"][0]]
            edits.input(name, value_for(rng, kind, old))
    for name in BANDS:
        if rng.random() < 0.1 * boldness:
            edits.input(name, rng.choice((0.5, 0.9, 1.1, 2.0)))
    for name, answers in (("output_chat", (0, 1, 500, 4096)), ("output_long_doc", (0, 131_072))):
        if rng.random() < 0.3 * boldness:
            edits.input(name, rng.choice(answers))
    gpus = list(places.rows("gpus"))
    for table, chance in CHANCES.items():
        columns = [c for c in typed_columns(places, table) if c != "model"]  # a name is what the rest is found by
        for key, row in places.rows(table).items():
            for column in columns:
                if rng.random() < chance * boldness * (1 if column in ROWS_OF_INSTANCES else 0.3):
                    old = places.values.get(row[column])
                    value = (
                        instance_value(rng, column, old, gpus)
                        if table == "instances"
                        else value_for(rng, TABLES[table][column], old)
                    )
                    edits.table(table, key, row, column, value)
    for i, row in enumerate(places.spare("instances")[: rng.choice((0, 0, 1, 3))]):
        own: dict[str, CellValue] = {
            "provider": "acme",
            "type": f"box.{i}",
            "instance_gpu": rng.choice(gpus),
            "gpu_count": rng.choice((1, 8)),
        }
        own["price_usd_per_hour"] = rng.choice((1.0, 3.0, None))
        edits.own(row, own)
    if rng.random() < 0.15 * boldness:  # by chance alone few loads are over a model's limit
        key, row = rng.choice(list(places.rows("models").items()))
        edits.table("models", key, row, "max_context_tokens", 65_536)
    return edits
