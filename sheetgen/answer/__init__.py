"""The cheapest that holds the load, or the reason nothing does.

Four axes, as in the workbook: models, profiles (a GPU at a layout), loads (model x workload x requests at once) and
offers (an instance at a layout). What a replica holds is worked out per load and profile, what it costs per load and
offer; the choice is the least of a row.
"""

from sheetgen.answer.hosts import hosts_of
from sheetgen.answer.market_notes import needs_reservation, not_asked
from sheetgen.answer.reasons import why_not
from sheetgen.answer.solution import Choice, Fit, Solution, headline_rows, short_tokens
from sheetgen.answer.solve import NOTHING_FITS, TOO_SLOW, late_usd, solve, tables, was_measured

__all__ = [
    "NOTHING_FITS", "TOO_SLOW", "Choice", "Fit", "Solution", "headline_rows", "hosts_of", "late_usd",
    "needs_reservation", "not_asked", "short_tokens", "solve", "tables", "was_measured", "why_not",
]  # fmt: skip
