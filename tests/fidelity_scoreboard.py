"""How near the predictions of all runs and logs come, each without its own source, beside what is wanted.

python tests/fidelity_scoreboard.py     prints the figures
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas
from fidelity import SHOWN, TOKENS_WITHIN, Fidelity, inside_of_bands

H100_CLASS = ("Hopper", "Grace Hopper", "Blackwell", "Blackwell Ultra")
CLASSES = {"h100": "H100 and later, data centre", "shared": "memory shared with the host", "other": "other cards"}


@dataclass(frozen=True)
class Score:
    """One figure of the board: its value, over how many logs, and the limits that it is wanted within."""

    name: str
    value: float
    n_rows: int
    least: float = 0.0
    most: float = 1.0

    @property
    def is_met(self) -> bool:
        return self.least <= self.value <= self.most


def card_class(gpu_ids: pandas.Series, fidelity: Fidelity) -> pandas.Series:
    """Of each card one of CLASSES."""
    gpus = {name: fidelity.catalog.gpu(name) for name in set(gpu_ids)}
    by_id = {
        name: "shared" if gpu.memory.shared_with_host else "h100" if gpu.architecture in H100_CLASS else "other"
        for name, gpu in gpus.items()
    }
    return gpu_ids.map(by_id)


def verdicts(fidelity: Fidelity) -> pandas.DataFrame:
    """The logs with a predicted pool: whether the engine refused the start, and whether it is predicted to start."""
    held = fidelity.left_out_verdicts
    refused = fidelity.logs.set_index("id")["refused"].eq("yes")
    return held.assign(refused=held["id"].map(refused))


def scores(fidelity: Fidelity) -> Iterator[Score]:
    """Every figure of the board."""
    tokens, pools = fidelity.left_out
    yield Score("tokens within 1 %", (tokens["relative"].abs() <= TOKENS_WITHIN).mean(), len(tokens), 0.97)
    lines = pandas.concat([fidelity.held_out, pools], ignore_index=True)
    lines = lines[lines["figure"] == "KV pool"]
    classes = card_class(lines["gpu_id"], fidelity)
    for name, most in (("h100", 0.02), ("shared", 0.04), ("other", 0.04)):
        errors = lines["relative"][classes == name].abs()
        yield Score(f"pool, median error: {CLASSES[name]}", errors.median(), len(errors), most=most)
    shown = lines["relative"][lines["id"].str.startswith(SHOWN)].abs()
    yield Score("pool, median error: shown cases", shown.median(), len(shown), most=0.04)
    of_starts = verdicts(fidelity)
    refused = of_starts["refused"]
    generous = (of_starts["fits"] & refused).sum()
    yield Score("called fitting and refused", float(generous), int(refused.sum()), most=0)
    strict = ~of_starts["fits"][~refused]
    yield Score("started and called refused", strict.mean(), len(strict), most=0.03)
    inside = inside_of_bands(fidelity)
    classes = card_class(inside["gpu_id"], fidelity)
    for name, words in CLASSES.items():
        held = inside["inside"][classes == name]
        yield Score(f"pool inside its 80 % band: {words}", held.mean(), len(held), 0.75, 0.85)


def lines_of(fidelity: Fidelity) -> Iterator[list[str]]:
    """The board as rows of text: figure, value, logs, wanted."""
    for score in scores(fidelity):
        is_count = score.name.startswith("called fitting")
        value = f"{score.value:.0f}" if is_count else f"{score.value:.1%}"
        ends = [f"at least {score.least:.0%}"] if score.least else []
        ends += [f"at most {score.most:.0f}" if is_count else f"at most {score.most:.0%}"] if score.most < 1 else []
        yield [score.name, value, f"{score.n_rows}", ", ".join(ends) + ("" if score.is_met else " (missed)")]


if __name__ == "__main__":
    from sheetgen.catalog import Catalog

    for name, *rest in lines_of(Fidelity(Catalog())):
        print(f"{name:<62}{rest[0]:>8}{rest[1]:>6}  {rest[2]}")
