"""How tightly the page is set: the steps from a roomy page to the fullest one that can still be read."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Density:
    """How tightly the page is set. All sizes in points; `n_*` is how many rows a list shows, the rest is counted."""

    name: str
    text: float
    small: float  # notes, the second line of a name
    head: float  # section headings
    answer: float  # what to rent and what it costs: never below 15
    pad: float  # above and below the text of a table cell
    gap: float  # above a section
    leading: float  # line height over text size
    chart: float  # height of the curves
    n_instances: int
    n_levers: int = 3
    why: int = 0  # lines below each answer: 2 all of it, 1 what asked for the hardware and what comes second
    compact: bool = False  # one line an answer, its hardware in small print beside it
    symptoms: bool = False  # what each death looks like, beside its bill
    run_in: bool = False  # the notes in one paragraph
    beside: bool = False  # bars beside curves where they would stand below one another
    appendix: bool = False  # instances, assumptions and sources on a second page
    brief: bool = False  # a row for the KV cache of a workload's first load, where each load would have a third line
    pay: bool = True  # what the answers cost in each purchase class, and owned


_TIGHTEST = Density("tightest", 7.0, 7.0, 8.0, 15.0, 0.0, 2.5, 1.1, 32.0, 2, compact=True, run_in=True, beside=True)
_LEAST = replace(_TIGHTEST, name="least", gap=2.0, chart=28.0, n_levers=2, pay=False)
_TWO = Density("two tight", 7.0, 7.0, 8.0, 15.0, 0.0, 2.5, 1.1, 34.0, 30, compact=True, run_in=True, appendix=True)
DENSITIES = (  # from the roomiest to the last resort; 7 pt is the floor
    Density("roomy", 9.0, 8.0, 10.0, 19.0, 1.7, 10.0, 1.3, 70.0, 12, why=2, symptoms=True),
    Density("normal", 8.4, 7.6, 9.5, 18.0, 1.2, 9.0, 1.28, 62.0, 12, why=2, symptoms=True),
    Density("airy", 8.0, 7.4, 9.2, 17.0, 0.9, 7.5, 1.25, 58.0, 12, why=2),
    Density("dense", 7.7, 7.2, 9.0, 16.5, 0.6, 6.5, 1.22, 54.0, 10, why=1),
    Density("denser", 7.4, 7.0, 8.8, 16.0, 0.4, 5.0, 1.17, 50.0, 5, why=1),
    Density("tight", 7.2, 7.0, 8.4, 15.5, 0.2, 4.5, 1.15, 46.0, 5, why=1, run_in=True),
    Density("tighter", 7.0, 7.0, 8.2, 15.0, 0.1, 4.0, 1.13, 42.0, 4, why=1, run_in=True),
    Density("close", 7.0, 7.0, 8.0, 15.0, 0.0, 3.0, 1.11, 38.0, 3, why=1, run_in=True),
    Density("short", 7.0, 7.0, 8.2, 15.0, 0.1, 3.5, 1.12, 42.0, 4, run_in=True),
    Density("compact", 7.0, 7.0, 8.2, 15.0, 0.1, 3.5, 1.12, 40.0, 4, compact=True, run_in=True),
    Density("beside", 7.0, 7.0, 8.0, 15.0, 0.1, 3.0, 1.12, 38.0, 3, compact=True, run_in=True, beside=True),
    _TIGHTEST,
    replace(_TIGHTEST, name="paid", n_instances=0),
    replace(_LEAST, name="paid least", n_instances=0, pay=True),
    replace(_LEAST, name="listed", chart=32.0, n_instances=3, n_levers=3),
    _LEAST,
    Density("two pages", 7.4, 7.2, 9.0, 16.0, 0.5, 6.0, 1.18, 52.0, 30, why=1, appendix=True),
    Density("two short", 7.2, 7.0, 8.6, 15.5, 0.2, 4.5, 1.15, 46.0, 30, appendix=True),
    Density("two compact", 7.0, 7.0, 8.2, 15.0, 0.1, 3.5, 1.12, 42.0, 30, compact=True, run_in=True, appendix=True),
    _TWO,
    replace(_TWO, name="two tightest", gap=2.0, chart=28.0, n_levers=2),
    replace(_TWO, name="brief", gap=2.8, leading=1.12, chart=36.0, brief=True),
    replace(_TWO, name="briefer", chart=30.0, n_levers=2, brief=True),
    replace(_TWO, name="last", gap=1.8, chart=26.0, n_levers=1, brief=True),
)
_FEW_LOADS, _MOST_OF_FEW = 4, 5  # a page of so few loads begins as one of five models
_USUAL = {  # by models, from one on: the density at which most pages of three workloads and four tiers land
    "a4": ("denser", "tight", "tighter", "tightest", "paid", "two tight", "two tight", "two tightest"),
    "letter": ("tight", "tighter", "close", "tightest", "paid least", "two tightest", "brief", "briefer"),
}


def usual(n_models: int, paper: str = "a4", n_loads: int = 12) -> int:
    """The index in DENSITIES to try first for a page of `n_models`: a right guess saves a layout.

    With few loads, many models have their page without an appendix.
    """
    names = _USUAL.get(paper, _USUAL["a4"])
    most = _MOST_OF_FEW if n_loads <= _FEW_LOADS else len(names)
    return [density.name for density in DENSITIES].index(names[min(n_models, most) - 1])
