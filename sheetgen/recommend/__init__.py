"""The cheapest that holds the load, or the reason nothing does.

Four tables, as in the workbook: shards (model x TP), profiles (GPU x TP), cells (model x workload x tier) and
candidates (instance x TP). What a replica holds is worked out per cell and profile, what it costs per cell and
candidate; the choice is the least of a row.
"""

from sheetgen.recommend.choose import NOTHING_FITS, TOO_SLOW
from sheetgen.recommend.reasons import Reason, why_not
from sheetgen.recommend.solution import Choice, Columns, Offer, Profile, Solution, short_tokens
from sheetgen.recommend.solve import LOAD, solve, tables

__all__ = [
    "LOAD",
    "NOTHING_FITS",
    "TOO_SLOW",
    "Choice",
    "Columns",
    "Offer",
    "Profile",
    "Reason",
    "Solution",
    "short_tokens",
    "solve",
    "tables",
    "why_not",
]
