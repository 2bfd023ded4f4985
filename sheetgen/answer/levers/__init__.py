"""The savings from one change to a load: the same question asked again with the change, beside what it costs.

Every lever is a whole answer: `solve` chooses again among all candidates, for all loads of a sheet at once.
"""

from sheetgen.answer.levers.changes import levers_of_sheet
from sheetgen.answer.levers.lever import FP8_LEVERS, EveryLever, Lever, Offload, Rented, at_fp8, best, in_order, is_less

__all__ = [
    "FP8_LEVERS", "EveryLever", "Lever", "Offload", "Rented", "at_fp8", "best", "in_order", "is_less",
    "levers_of_sheet",
]  # fmt: skip
