"""The cheapest that holds the load, or the reason nothing does.

Four axes, as in the workbook: models, profiles (GPU x TP), loads (model x workload x requests in flight) and offers
(instance x TP). What a replica holds is worked out per load and profile, what it costs per load and offer (`grid`);
the choice is the least of a row.
"""

from sheetgen.recommend.choose import NOTHING_FITS, TOO_SLOW
from sheetgen.recommend.grid import GRID, LOAD, TARGETS
from sheetgen.recommend.reasons import Reason, why_not
from sheetgen.recommend.solution import Choice, Columns, Offer, Profile, Solution, short_tokens
from sheetgen.recommend.solve import solve, tables

__all__ = [
    "GRID",
    "LOAD",
    "NOTHING_FITS",
    "TARGETS",
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
