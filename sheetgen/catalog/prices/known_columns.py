"""The columns of price lists as `templates/price_lists.toml` has them: the forms that are known by theirs, and what a
list of any form may call one."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter, with_config

from sheetgen.shipped import shipped_table


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Format:
    """One kind of list. `provider` is None where a column names it; `decimals` is how far its prices are kept.

    name: the column with the instance type, or with the GPU where prices are by the GPU (`per_gpu`). names, amounts:
    columns of an offer's other fields, those of amounts with their unit. prices: by purchase class a column and its
    hours; terms: what the catalogs call their terms. purchase, spot: the column that says of which class a line's one
    price is, by its name or by a yes. type_starts: how every type begins.
    """

    title: str
    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    prices: dict[str, tuple[str, int]]
    provider: str | None = None
    region: str | None = None
    date: str = "source_date"
    names: dict[str, str] = field(default_factory=dict)
    amounts: dict[str, tuple[str, float]] = field(default_factory=dict)
    type_starts: str = ""
    decimals: int | None = None
    terms: dict[str, str] = field(default_factory=dict)
    provider_column: str = "provider"
    purchase: str | None = None
    spot: str | None = None
    per_gpu: bool = False


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Columns:
    forms: tuple[Format, ...]
    names: dict[str, tuple[str, ...]]
    plain: dict[str, tuple[str, ...]]


_KNOWN = TypeAdapter(Columns).validate_python(shipped_table("price_lists.toml"))
FORMATS, NAMES, PLAIN = _KNOWN.forms, _KNOWN.names, _KNOWN.plain
