"""The columns of price lists, from `templates/price_lists.toml`: those of the known forms, and the names that columns
of any other list may have."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter, with_config

from sheetgen.shipped import shipped_table


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Format:
    """One kind of list. `provider` is None where a column names it; prices are rounded to `decimals`.

    name: the column with the instance type, or with the GPU where prices are per GPU (`per_gpu`). names, amounts: the
    columns of an offer's other fields, those of amounts with their unit. prices: by purchase class a column and the
    hours of its price; terms: the catalogs' names of their terms. purchase, spot: the column with the purchase class of
    a line's one price, by name or as yes and no. type_starts: the prefix of every type.
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
    """The file: the known forms, and for other lists the columns' names by role (`names`), and by name of a column the
    values of a plain machine (`plain`; any other value is another product)."""

    forms: tuple[Format, ...]
    names: dict[str, tuple[str, ...]]
    plain: dict[str, tuple[str, ...]]


_KNOWN = TypeAdapter(Columns).validate_python(shipped_table("price_lists.toml"))
FORMATS, NAMES, PLAIN = _KNOWN.forms, _KNOWN.names, _KNOWN.plain
