"""One measured point of a deployment, beside its prediction: by how much all its predicted times are set right.

The point is a run of the same model, GPU, engine, precisions and parallel sizes: how many requests were in flight, how
long they were, and the milliseconds per output token (and to the first one) that a benchmark reported. What ships is
off by some 12 % (median); with one point of its configuration by 9 %: docs/speed.md.
"""

from sheetgen.calibration.factors import Anchored, anchored, frame_factors
from sheetgen.calibration.read import KEYS, Anchor, read_anchor

__all__ = ["KEYS", "Anchor", "Anchored", "anchored", "frame_factors", "read_anchor"]
