"""The type of arrays of numbers; the sides of one are stated where it is made."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
