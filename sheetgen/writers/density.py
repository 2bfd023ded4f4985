"""How tightly the page is set: the steps from a roomy page to the fullest one that can still be read."""

from __future__ import annotations

from dataclasses import dataclass, replace

WIDE_MODELS = 3  # up to here a model has three columns and a card; above, two lines in one column and a row
MOST_BESIDE_WORKLOAD = 5  # models that leave room for a column of workloads; above, they are headings between rows


@dataclass(frozen=True)
class Density:
    """How tightly the page is set. All sizes in points; `n_*` is how many rows a list shows, the rest is counted."""

    name: str
    text: float
    small: float  # notes, the second line of a name
    head: float  # section headings
    pad: float  # above and below the text of a table cell
    gap: float  # above a section
    leading: float  # line height over text size
    n_instances: int
    n_levers: int
    compact: bool = False  # one line a model where there were two
    abreast: int = 1  # answers beside one another, where there are rows and not cards
    runner_up: bool = True  # what comes second, beside each answer
    symptoms: bool = True  # what each death looks like, beside its bill; without, the notes run in too

    def stretched(self, pad: float, gap: float) -> Density:
        """The same with `pad` points more in each cell, above and below, and `gap` more above each section."""
        return replace(self, pad=self.pad + pad, gap=self.gap + gap)


DENSITIES = (  # from the roomiest to the last resort; 7 pt is the floor
    Density("roomy", 9.0, 8.0, 10.0, 1.7, 10.0, 1.3, 12, 3),
    Density("normal", 8.4, 7.6, 9.5, 1.4, 9.0, 1.28, 12, 3),
    Density("dense", 7.9, 7.3, 9.0, 1.0, 7.0, 1.22, 12, 3),
    Density("denser", 7.5, 7.0, 8.5, 0.5, 5.0, 1.17, 10, 3),
    Density("compact", 7.5, 7.0, 8.5, 0.5, 4.5, 1.17, 8, 3, compact=True),
    Density("tight", 7.2, 7.0, 8.0, 0.3, 4.0, 1.15, 8, 3, compact=True),
    Density("tighter", 7.0, 7.0, 8.0, 0.1, 3.5, 1.12, 5, 3, compact=True),
    Density("tightest", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 5, 3, compact=True, symptoms=False),
    Density("shortest", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 5, 3, compact=True, runner_up=False, symptoms=False),
    Density("fewer", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 3, 2, compact=True, runner_up=False, symptoms=False),
    Density("pressed", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 5, 3, compact=True, abreast=2, symptoms=False),
    Density("last", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 0, 0, compact=True, abreast=2, symptoms=False),
)
_USUAL_WIDE, _USUAL_NARROW = 4, 6  # where in DENSITIES most pages land


def usual(n_models: int) -> int:
    """The index in DENSITIES to try first for a page of `n_models`."""
    return _USUAL_WIDE if n_models <= WIDE_MODELS else _USUAL_NARROW
