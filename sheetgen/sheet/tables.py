"""The page as tables under titles, for writers that draw one table like another: what each has, in which order.

Titles and heads are sheetgen's own; what comes from a catalog is in the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sheetgen.sheet.page import Bar, Card, Column, MatrixBlock, MatrixCell, Page, Table, Text, joined, words

MARKS = {"fits": "✓", "tight": "▲", "none": "✗", "over": "✗"}  # a status without its colour


def table(title: str, heads: Iterable[str | Column], rows: Iterable[Iterable[Text]], level: int = 2) -> Table:
    """Heads of numbers are Columns; a plain one is of words."""
    columns = tuple(head if isinstance(head, Column) else Column(head) for head in heads)
    return Table(title, columns, tuple(map(tuple, rows)), level)


def tables_of(page: Page) -> Iterator[Table]:
    """Every table of the page, the answer first."""
    unit, classes = page.unit, page.price_classes
    yield table(
        "What to rent",
        ("Model", "Rent", _number("$ a month"), _number("Users"), "Where", "Hardware", "Memory", "Headroom",
         "Runner-up"),
        ((c.model, c.rent, c.monthly, c.users, c.provider, c.hardware, c.memory, c.headroom, c.runner_up)
         for c in page.cards),
    )  # fmt: skip
    yield table(
        "",
        ("Model", "Time per token", "First token", "What asked for it", "Unit cost"),
        ((c.model, c.speed, c.first_token, c.sized_by, _costs(c)) for c in page.cards),
    )
    yield table("Every load: what to rent, $ a month, and its KV cache", (), ())
    yield from (_loads(block, page) for block in page.matrix)
    yield table(
        "Models",
        ("Model", *map(_number, ("Parameters", f"BF16 weights, {unit}", f"FP8 weights, {unit}")), "Used here",
         *map(_number, ("KV a token", "if full attention", "Ratio")), "Attention"),
        ((m.name, m.params, m.weights_bf16, m.weights_fp8, f"{m.weights_used}, KV {m.kv_used}", m.kv_per_token,
          m.full_attention_per_token, m.ratio, f"{m.attention}; {m.note}" if m.note else m.attention)
         for m in page.models),
    )  # fmt: skip
    bills = map(_number, (f"Weights, {unit}", f"KV cache, {unit}", f"Overhead, {unit}"))
    bars = (_bar(bar) for of_model in page.bars for bar in of_model)
    yield table("Where the memory goes", ("Model", "Load", *bills, "The engine may use"), bars)
    yield table(
        "Where it breaks",
        ("Model", "One request too many", "The longest context"),
        ((b.model, b.next_request, b.longest_fit) for b in page.breaks),
    )
    yield table(
        "Out of memory: where it dies tells which bill overran",
        ("Where it dies", "Bill", "Looks like", "Change, and which way", "On this sheet"),
        ((f.where, f.bill, f.looks_like, f.change, f.here) for f in page.fingerprints),
    )
    yield table(
        "What one change buys",
        ("Model", "Change", "Then rent", _number("$ a month"), _number("Saves")),
        ((v.model, v.change, v.rent, v.monthly, words("{} ({})", v.saving, v.share) if v.share else v.saving)
         for v in page.levers),
    )  # fmt: skip
    if page.paid:
        yield table(
            "How to pay for it",
            ("Model", *(_number(f"{name}, $ a month") for name in classes), "Owned, $ a month", "Owning is"),
            ((c.model, *c.classes, c.owned, c.break_even) for c in page.paid),
        )
    yield table(
        "Instances on this page",
        ("Instance", "GPUs", _number("Memory"), _number("$ an hour"), *(_number(f"$ {name}") for name in classes),
         "Where", "Price of", "Used for"),
        ((i.instance, i.gpus, i.memory, i.hourly, *i.classes, ", ".join(filter(None, (i.provider, i.region))),
          i.price_date + (" (old)" if i.stale else ""), i.used_for) for i in page.instances),
    )  # fmt: skip


def _number(head: str) -> Column:
    return Column(head, right=True)


def _loads(block: MatrixBlock, page: Page) -> Table:
    rows = (
        (words("◆ {}", row.tier) if row.headline else row.tier, *(_load(cell, page.unit) for cell in row.cells))
        for row in block.rows
    )
    title = f"{block.workload} {block.context} ({block.split})"
    return table(title, (_number("In flight"), *(m.name for m in page.models)), rows, level=3)


def _load(cell: MatrixCell, unit: str) -> Text:
    mark, kv = MARKS[cell.status], words("KV {} {}", cell.kv, unit)
    if cell.dead:
        said = words("{} {}", mark, cell.word)
        return joined(" · ", [said, kv]) if cell.status == "none" else said
    tight = ["tight"] if cell.status == "tight" else []
    return joined(" · ", [words("{} {}", mark, cell.rent), cell.monthly, *tight, kv])


def _costs(card: Card) -> Text:
    return words("{}; {}", card.unit_money, card.budget) if card.budget else card.unit_money


def _bar(bar: Bar) -> tuple[Text, ...]:
    load = f"{'◆ ' if bar.headline else ''}{bar.workload} {bar.context}"
    return bar.model, load, bar.weights, bar.kv, bar.overhead, bar.capacity
