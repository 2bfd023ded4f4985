"""The walk of one number: a 70B at FP8 with 80 requests at once, at three contexts, as a picture for docs/.

python tests/walk.py     writes docs/walk.svg and docs/walk.md
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from sheetgen.answer.solution import Fit
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.report.wording import money, named_size, plural, rent, rented_gpus

DOCS = Path(__file__).parent.parent / "docs"
CONTEXTS = (3_000, 6_000, 12_000)
LOAD = {
    "model": "70b", "weight_dtype": "fp8", "kv_cache_dtype": "fp8", "concurrent_requests": 80, "as_of": "2026-11-20",
    "tpot_ms": "off", "ttft_ms": "off",  # the walk of a number of bytes: memory alone decides
}  # fmt: skip
WEIGHTS, KV, TRACK, INK, QUIET = "#24476f", "#d98c1f", "#e9edf1", "#17212b", "#5b6875"
WIDTH, LEFT, ROW, BAR, TOP = 760, 96, 78, 22, 84


@dataclass(frozen=True)
class Step:
    """One context of the walk, and what the sheet recommends for it."""

    context_tokens: int
    weights_bytes: float
    kv_bytes: float
    fit: Fit

    @property
    def monthly_usd(self) -> float:
        return self.fit.choice.monthly_usd

    @property
    def words(self) -> str:
        choice, candidate = self.fit.choice, self.fit.candidate
        return (
            f"{rented_gpus(choice.n_instances, candidate)} ({rent(choice.n_instances, candidate.instance)}), "
            f"TP {self.fit.layout.tensor_parallel_size}, {plural(choice.n_replicas, 'replica')}"
        )


def steps(catalog: Catalog) -> list[Step]:
    """The steps of the walk, one for each context."""
    steps = []
    for context in CONTEXTS:
        solved = recommended({**LOAD, "context": context}, catalog)
        fit = Fit.of(solved, 0)
        assert fit is not None
        sizes = float(solved.models["weights_bytes"][0]), float(solved.loads["kv_bytes"][0])
        steps.append(Step(context, *sizes, fit))
    return steps


def picture(walk: list[Step]) -> str:
    """The walk as SVG: a bar of weights and KV cache for each context, and what to rent for it."""
    most = max(s.weights_bytes + s.kv_bytes for s in walk)
    scale = (WIDTH - LEFT - 24) / most
    height = TOP + ROW * len(walk) + 8
    drawn = [
        _text(20, 30, "Llama 3.1 70B, weights and KV cache in FP8, 80 requests at once", 17, bold=True),
        _rect(20, 46, 10, 10, WEIGHTS),
        _text(36, 55, f"weights {named_size(walk[0].weights_bytes, 'gib')}", 12, QUIET),
        _rect(170, 46, 10, 10, KV),
        _text(186, 55, "KV cache: follows the context", 12, QUIET),
    ]
    for i, step in enumerate(walk):
        y = TOP + ROW * i
        weights, kv = step.weights_bytes * scale, step.kv_bytes * scale
        drawn += [
            _text(20, y + 16, f"{step.context_tokens:,}", 16, bold=True),
            _text(20, y + 32, "tokens each", 11, QUIET),
            _rect(LEFT, y, WIDTH - LEFT - 24, BAR, TRACK),
            _rect(LEFT, y, weights, BAR, WEIGHTS),
            _rect(LEFT + weights, y, kv, BAR, KV),
            _text(LEFT + weights + 6, y + 16, str(named_size(step.kv_bytes, "gib")), 12, "#17212b", bold=True),
            _text(LEFT, y + BAR + 18, step.words, 13),
            _text(WIDTH - 24, y + BAR + 18, f"{money(step.monthly_usd)} a month", 13, bold=True, end=True),
        ]
    title = "KV cache halves and doubles with the context, and the recommended GPUs move with it"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="Inter, Helvetica, Arial, sans-serif">\n'
        f"<title>{escape(title)}</title>\n{_rect(0, 0, WIDTH, height, '#ffffff')}\n" + "\n".join(drawn) + "\n</svg>\n"
    )


def _text(
    x: float, y: float, words: str, size: int, colour: str = INK, *, bold: bool = False, end: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"{weight}{anchor}>{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def article(walk: list[Step]) -> str:
    """docs/walk.md."""
    rows = "\n".join(
        f"| {s.context_tokens:,} | {named_size(s.kv_bytes, 'gib')} | {s.kv_bytes:,.0f} | {s.words} |"
        f" {money(s.monthly_usd)} |"
        for s in walk
    )
    return f"""# A number's walk

A Llama 3.1 70B with weights and KV cache in FP8 keeps 163,840 bytes for each token: 2 x 80 layers x 8 KV heads x
128 x 1 byte. 80 requests at once at 6,000 tokens keep 80 x 6,000 x 163,840 bytes. Halve the context and the KV
cache halves; double it and it doubles, and the recommended GPUs move. The size is set by memory here
(`--tpot-ms off --ttft-ms off`), without targets of speed.

![KV cache and recommended GPUs at three contexts](walk.svg)

| Context | KV cache | in bytes | Rent | $ a month |
| ---: | ---: | ---: | --- | ---: |
{rows}

At 3,000 tokens the KV cache is 0.27 % more than half: the cache is paged in blocks of 16 tokens, 3,000 tokens take
188 blocks (3,008 tokens), while 6,000 and 12,000 are whole blocks. The weights do not change.

Made by `python tests/walk.py` from the catalogs of 2026-11-20; `tests/test_walk.py` holds it to them.
"""


def files(catalog: Catalog) -> dict[str, str]:
    walk = steps(catalog)
    return {"walk.svg": picture(walk), "walk.md": article(walk)}


def write(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(DOCS, files(Catalog()))
