"""The scenario file of a pulled workbook: `build --scenario` of it gives the same sheet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from sheetgen.catalog.reader import plain_value
from sheetgen.errors import shown

_SIMPLE = re.compile(r"[A-Za-z][\w./-]*( [\w./-]+)*")


class _Dumper(yaml.SafeDumper):
    """Quotes every text that the strict reader could take for something else; writes nothing twice by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    plain = _SIMPLE.fullmatch(value) and plain_value(value) == value
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def scenario_text(options: Mapping[str, Any], overrides: Mapping[str, Any], origin: str, version: str) -> str:
    """Options as lists where they are lists, what was typed under `typed`; the first lines say where it is from."""
    data: dict[str, Any] = {name: _listed(str(value)) for name, value in options.items()}
    if overrides:
        data["typed"] = overrides
    body = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)
    head = f"# What {shown(origin, 100)} asks, as sheetgen {version} read it.\n# sheetgen build --scenario THIS.yaml"
    return f"{head} builds the same sheet.\n{body}"


def _listed(value: str) -> str | list[str]:
    return value.split(",") if "," in value else value
