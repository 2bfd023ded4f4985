"""Parameters of the vision tower and its projector; what a config does not determine is said in a note."""

from __future__ import annotations

from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.towers import TOWERS


def vision_params(outer: Fields, text: Fields, tower: str) -> tuple[int, tuple[str, ...]]:
    """Their number, and remarks on towers that are not counted."""
    if not tower:
        return 0, ()
    notes = ["the audio tower is not counted"] if outer.raw("audio_config") else []
    if tower == "gemma3n":
        return 0, ("the vision tower is not counted: its config names a timm model only", *notes)
    if not outer.raw("vision_config"):
        return 0, ("no vision_config: the vision tower is not counted", *notes)
    return TOWERS[tower](outer, text), tuple(notes)
