"""The values that options, scenarios and typed cells take, as Python, JSON and YAML have them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TypeAlias

OptionValue: TypeAlias = "str | float | bool | datetime.date | Sequence[OptionValue] | Mapping[str, OptionValue] | None"
Options: TypeAlias = dict[str, OptionValue]
