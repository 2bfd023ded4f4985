"""The page as Markdown, to be pasted into a planning document. Texts from a catalog stay plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sheetgen.sheet.one_page import Bar, Card, MatrixBlock, MatrixCell, OnePage, Source
from sheetgen.writers.formats import Options
from sheetgen.writers.visible import visible

_SPECIAL = re.compile(r"([\\`*\[\]<>|~&]|\$(?=[^\s\d])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_LEADING = re.compile(r"^([#+\-=]|\d+[.)](?=\s|$))")
_AUTOLINK = re.compile(r"(:(?=//))|((?<=www)\.)|((?<=mailto):)", re.IGNORECASE)
_MARKS = {"fits": "✓", "tight": "▲", "none": "✗", "over": "✗"}


def write_markdown(page: OnePage, options: Options) -> bytes:
    """The page as GitHub-flavoured Markdown, the answer first; a brand's name before it, its footer line after it."""
    unit, brand = plain(page.unit), options.brand
    parts = [
        plain(brand.name) if brand else "",
        f"# {plain(page.title)}",
        f"**{plain(page.question)}**",
        f"{plain(page.precision_line)}. As of {plain(page.as_of)}; {plain(page.price_banner)}.",
        "## What to rent",
        table(
            ("Model", "Rent", "$ a month", "Users", "Where", "Hardware", "Memory", "Headroom", "Runner-up"),
            [
                (c.model, c.rent, c.monthly, c.users, c.provider, c.hardware, c.memory, c.headroom, c.runner_up)
                for c in page.cards
            ],
            right=(2, 3),
        ),
        table(
            ("Model", "Time per token", "First token", "What asked for it", "Unit cost"),
            [(c.model, c.speed, c.first_token, c.sized_by, _costs(c)) for c in page.cards],
        ),
        "## Every load: what to rent, $ a month, and its KV cache",
        *(text for block in page.matrix for text in _block(block, [m.name for m in page.models], page.unit)),
        "## Models",
        table(
            (
                "Model",
                "Parameters",
                f"BF16 weights, {unit}",
                f"FP8 weights, {unit}",
                "Used here",
                "KV a token",
                "if full attention",
                "Ratio",
                "Attention",
            ),
            [
                (
                    m.name,
                    m.params,
                    m.weights_bf16,
                    m.weights_fp8,
                    f"{m.weights_used}, KV {m.kv_used}",
                    m.kv_per_token,
                    m.full_attention_per_token,
                    m.ratio,
                    f"{m.attention}; {m.note}" if m.note else m.attention,
                )
                for m in page.models
            ],
            right=(1, 2, 3, 5, 6, 7),
        ),
        "## Where the memory goes" if page.bars else "",
        table(
            ("Model", "Load", f"Weights, {unit}", f"KV cache, {unit}", f"Overhead, {unit}", "The engine may use"),
            [_bar(bar) for of_model in page.bars for bar in of_model],
            right=(2, 3, 4),
        ),
        "## Where it breaks" if page.breaks else "",
        table(
            ("Model", "One request too many", "The longest context"),
            [(b.model, b.next_request, b.longest_fit) for b in page.breaks],
        ),
        "## Out of memory: where it dies tells which bill overran",
        table(
            ("Where it dies", "Bill", "Looks like", "Change, and which way", "On this sheet"),
            [(f.where, f.bill, f.looks_like, f.change, f.here) for f in page.fingerprints],
        ),
        "## What one change buys",
        table(
            ("Model", "Change", "Then rent", "$ a month", "Saves"),
            [
                (v.model, v.change, v.rent, v.monthly, f"{v.saving} ({v.share})" if v.share else v.saving)
                for v in page.levers
            ],
            right=(3, 4),
        ),
        "## How to pay for it" if page.paid else "",
        table(
            ("Model", *(f"{name}, $ a month" for name in page.price_classes), "Owned, $ a month", "Owning is"),
            [(c.model, *c.classes, c.owned or "–", c.break_even or "–") for c in page.paid],
            right=range(1, 1 + len(page.price_classes)),
        ),
        "## Instances on this page",
        table(
            (
                "Instance",
                "GPUs",
                "Memory",
                "$ an hour",
                *(f"$ {name}" for name in page.price_classes),
                "Where",
                "Price of",
                "Used for",
            ),
            [
                (
                    i.instance,
                    i.gpus,
                    i.memory,
                    i.hourly,
                    *i.classes,
                    ", ".join(filter(None, (i.provider, i.region))),
                    i.price_date + (" (old)" if i.stale else ""),
                    i.used_for,
                )
                for i in page.instances
            ],
            right=range(2, 4 + len(page.price_classes)),
        ),
        plain(page.left_out),
        "## Assumptions",
        _bullets(plain(a) for a in page.assumptions),
        "## Sources",
        _bullets(_source(s) for s in page.sources),
        f"sheetgen {plain(page.version)}, catalog {plain(page.catalog)}. 1 GiB = 2³⁰ bytes, 1 GB = 10⁹.",
        plain(brand.footer) if brand else "",
    ]
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def _block(block: MatrixBlock, names: Sequence[str], unit: str) -> Iterable[str]:
    yield f"### {plain(block.workload)} {plain(block.context)} ({plain(block.split)})"
    rows = [(f"◆ {r.tier}" if r.headline else r.tier, *(_load(c, unit) for c in r.cells)) for r in block.rows]
    yield table(("In flight", *names), rows, right=(0,))


def _load(cell: MatrixCell, unit: str) -> str:
    mark = _MARKS.get(cell.status, "")
    if cell.status in ("none", "over"):
        return f"{mark} {cell.word}" + (f" · KV {cell.kv} {unit}" if cell.status == "none" else "")
    tight = " · tight" if cell.status == "tight" else ""
    return f"{mark} {cell.rent} · {cell.monthly}{tight} · KV {cell.kv} {unit}"


def _costs(card: Card) -> str:
    return f"{card.unit_money}; {card.budget}" if card.budget else card.unit_money


def _bar(bar: Bar) -> tuple[str, ...]:
    mark = "◆ " if bar.headline else ""
    return bar.model, f"{mark}{bar.workload} {bar.context}", bar.weights, bar.kv, bar.overhead, bar.capacity


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table; `right` are the columns of numbers. Nothing where there are no rows."""
    body = [f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows]
    if not body:
        return ""
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    return "\n".join([f"| {' | '.join(plain(h) for h in head)} |", f"| {' | '.join(rule)} |", *body])


def plain(text: str) -> str:
    """`text` on one line as Markdown that shows just that: no cell, markup, HTML or link can come of it."""
    line = _SPECIAL.sub(r"\\\1", " ".join(visible(text).split()))
    line = _AUTOLINK.sub(r"\\\g<0>", line)
    return _LEADING.sub(lambda m: f"{m[1][:-1]}\\{m[1][-1]}", line)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _source(source: Source) -> str:
    text = plain(source.text)
    url = source.web_url
    # Angle brackets and backslashes would let the address out of its own brackets.
    return f"[{text}](<{url}>)" if url and not any(c in "<>\\" for c in url) else text
