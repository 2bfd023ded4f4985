"""Which row of an edited table is which row of the table as built: by name, else by its place between others."""

from __future__ import annotations

from collections.abc import Sequence


def pair(built: Sequence[str], found: Sequence[str]) -> dict[str, str | None]:
    """By each name as built the name as found, None where the row is gone. Both in the order of their sheets.

    A row whose name was typed over still stands between the same neighbours: where as many rows of unknown names
    stand between two known ones as are missing there, they are those. All others are the reader's own.
    """
    known = set(found)
    paired: dict[str, str | None] = {name: name if name in known else None for name in built}
    places = {name: i for i, name in enumerate(found)}
    gap: list[str] = []
    after = -1
    for name in (*built, None):
        if name is not None and paired[name] is None:
            gap.append(name)
            continue
        until = len(found) if name is None else places[name]
        between = [one for one in found[after + 1 : until] if one not in paired]
        if name is None:  # the reader's own rows stand below
            between = between[: len(gap)]
        if len(between) == len(gap):
            paired.update(zip(gap, between, strict=True))
        gap, after = [], until
    return paired
