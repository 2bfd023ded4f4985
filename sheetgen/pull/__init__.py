"""A workbook that somebody edited, carried back: what was changed, what follows from it, and whether it agrees."""
