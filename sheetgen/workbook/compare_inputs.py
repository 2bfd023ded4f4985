"""What changed of a sheet's load, its inputs, and the facts of its models and GPUs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sheetgen.workbook.change import Change
from sheetgen.workbook.pairing import Pairing
from sheetgen.workbook.sheet_facts import SheetFacts, load_words, same
from sheetgen.workbook.words import ARROW, answer_words, change_fraction, from_to, setting_change, shown_value

OF_ENGINE = "n_params"  # columns whose heads are the ends of one phrase: parameters active, in layers ...


def load_changes(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[Change]:
    """Models, workloads and tiers: what is asked of the hardware."""
    for change in _lists("model", a.models, b.models, {**a.models, **b.models}):
        answer = b.answers.get((change.after, *b.headline)) if change.after and b.headline else None
        yield replace(change, words=f"added, {answer_words(answer)} at the headline") if answer else change
    paired_a, paired_b = {x for x, _ in pairing.workloads}, {x for _, x in pairing.workloads}
    names = {k: w.name for side in (a, b) for k, w in side.workloads.items()}
    yield from _lists(
        "workload",
        [k for k in a.workloads if k not in paired_a],
        [k for k in b.workloads if k not in paired_b],
        names,
    )
    for wa, wb in pairing.workloads:
        before, after = a.workloads[wa], b.workloads[wb]
        for name, label, old, new in (
            ("context", f"context of {after.name}", before.context_tokens, after.context_tokens),
            ("output", f"answer of {after.name}", before.output_tokens, after.output_tokens),
        ):
            if not same(old, new):
                yield _numbers(f"{name}_{wb}", label, old, new, "tokens")
    for ta, tb in pairing.tiers:
        if not same(a.tiers[ta - 1], b.tiers[tb - 1]):
            yield _numbers(f"tier_{tb}", f"in flight, tier {tb}", a.tiers[ta - 1], b.tiers[tb - 1])
    for i, requests in enumerate(a.tiers, 1):
        if all(ta != i for ta, _ in pairing.tiers):
            yield Change(f"tier_{i}", f"in flight, tier {i}", f"{shown_value(requests)} removed", before=requests)
    for i, requests in enumerate(b.tiers, 1):
        if all(tb != i for _, tb in pairing.tiers):
            yield Change(f"tier_{i}", f"in flight, tier {i}", f"{shown_value(requests)} added", after=requests)
    if a.headline and b.headline and pairing.in_a(*b.headline) != a.headline:
        before_load, after_load = load_words(a, *a.headline), load_words(b, *b.headline)
        yield Change("headline", "headline", f"{before_load}{ARROW}{after_load}", before_load, after_load)


def _lists(what: str, before: Collection[str], after: Collection[str], names: Mapping[str, str]) -> Iterator[Change]:
    for key in before:
        if key not in after:
            yield Change(f"{what}_{key}", f"{what} {names.get(key, key)}", "removed", before=key)
    for key in after:
        if key not in before:
            yield Change(f"{what}_{key}", f"{what} {names.get(key, key)}", "added", after=key)


def input_changes(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[Change]:
    """Inputs that both have; one that only one has is told where both files are of one kind."""
    alone = {f"{figure}_{w}" for figure in ("tpot_ms", "ttft_ms") for w in (*a.workloads, *b.workloads)
             if (w, w) not in pairing.workloads}  # fmt: skip
    mixed = a.kind != b.kind
    for name in dict.fromkeys((*b.settings, *a.settings)):
        before, after = a.settings.get(name), b.settings.get(name)
        if name in alone or (mixed and (before is None or after is None)):
            continue
        if before is None or after is None:
            one = after or before
            assert one is not None
            word = "added" if before is None else "removed"
            yield Change(name, one.label or name, f"{word}, {shown_value(one.value, one.shown_as)}",
                         before and before.value, after and after.value)  # fmt: skip
        elif not same(before.value, after.value) and not (mixed and before.built_with):
            label = (after.label if b.kind == "workbook" else before.label) or name
            more = {"change_fraction": change_fraction(before.value, after.value)}
            yield Change(name, label, setting_change(before, after), before.value, after.value, more)


def table_changes(a: SheetFacts, b: SheetFacts, table: str) -> Iterator[Change]:
    """Cells of rows and columns that both have, and rows that one has."""
    rows_a, rows_b = a.tables.get(table, {}), b.tables.get(table, {})
    if not rows_a or not rows_b:
        return
    names = {**a.names.get(table, {}), **b.names.get(table, {})}
    heads = {**a.heads.get(table, {}), **b.heads.get(table, {})}
    loads = {**a.models, **b.models} if table == "models" else {}
    for key in dict.fromkeys((*rows_b, *rows_a)):
        label = names.get(key) or key
        if key in rows_a and key in rows_b:
            for column in (c for c in rows_b[key] if c in rows_a[key]):
                before, after = rows_a[key][column], rows_b[key][column]
                if not same(before, after):
                    head = _head(column, heads.get(column, ""))
                    more = {"row": key, "column": column, "change_fraction": change_fraction(before, after)}
                    words = from_to(before, after)
                    yield Change(f"{key}.{column}", f"{label}, {head}", words, before, after, more)
        elif key not in loads:  # those of a load are told there
            word = "added" if key in rows_b else "removed"
            yield Change(key, label, word, key if key in rows_a else None, key if key in rows_b else None)


def _head(column: str, head: str) -> str:
    if not head:
        return column.replace("_", " ")
    return f"parameters {head}" if column.startswith(OF_ENGINE) and head[0].islower() else head


def _numbers(name: str, label: str, before: Any, after: Any, unit: str = "") -> Change:
    more = {"change_fraction": change_fraction(before, after)}
    return Change(name, label, from_to(before, after, unit=unit), before, after, more)
