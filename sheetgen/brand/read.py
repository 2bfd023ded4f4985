"""Read a brand file: strict, as catalogs are, every problem with its line.

```
name: Acme GmbH
logo: logo.png              # beside the file or in a folder below it; PNG, JPEG or SVG
colors: {heading: "#12263F", accent: "#0B5FFF", tint: "#EEF3FB"}
footer: Confidential. Planning only.
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator

from sheetgen.brand.colors import Colors
from sheetgen.brand.logo import Logo, read_logo
from sheetgen.catalog.base import Entry, Label, Loc, read_document, validate
from sheetgen.errors import CatalogError, shown

MAX_NAME, MAX_FOOTER = 60, 120  # a print footer in Excel holds 255 characters, codes and page numbers among them


@dataclass(frozen=True)
class Brand:
    """A company's template, checked and ready to draw."""

    name: str
    footer: str = ""
    colors: Colors = field(default_factory=Colors)
    logo: Logo | None = None


def read_brand(path: Path | str) -> Brand:
    """The brand that a file describes.

    Raises CatalogError, one line per problem, for what the file or its logo must not be.
    """
    path = Path(path)
    document = read_document(path)
    entry = validate(document, BrandFile)
    if entry.logo is None:
        return Brand(entry.name, entry.footer or "", entry.colors)
    try:
        logo = read_logo(_within(path.parent, entry.logo))
    except ValueError as error:
        raise CatalogError(f"{document.at(('logo',))}: logo {shown(entry.logo)!r} {error}.") from error
    return Brand(entry.name, entry.footer or "", entry.colors, logo)


def _footer_length(text: str) -> int:
    """Characters that a text takes in a print footer of Excel: UTF-16, an ampersand four for its codes."""
    return len(text.encode("utf-16-le")) // 2 + 3 * text.count("&")


def _line(most: int, what: str) -> AfterValidator:
    def check(value: str) -> str:
        line = " ".join(value.split())
        if _footer_length(line) > most:
            raise ValueError(
                f"takes {_footer_length(line)} characters (an & counts as 4); {what} may take {most}. Shorten it"
            )
        return line

    return AfterValidator(check)


def _beside(value: str) -> str:
    """A path below the file's folder, by its words alone: nothing is touched before this holds."""
    if ":" in value:
        raise ValueError("is a web address or a drive. Save the picture beside the file, and name it")
    if "\\" in value or not value.strip():
        raise ValueError("is no path: write folders with /, such as pictures/logo.png")
    parts = PurePosixPath(value)
    if parts.is_absolute() or ".." in parts.parts:
        raise ValueError("leaves the file's folder. Put the picture beside the file, or in a folder below it")
    return value


def _within(folder: Path, logo: str) -> Path:
    """The logo's file. A brand is handed around: no link in it may bring another file of the reader's onto a page."""
    try:
        path = (folder / logo).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ValueError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not path.is_relative_to(folder.resolve()):
        raise ValueError("is a link that leaves the file's folder. Put the picture itself there")
    return path


class BrandFile(Entry):
    """What stands in the file."""

    name: Annotated[Label, _line(MAX_NAME, "a name")]
    logo: Annotated[str, AfterValidator(_beside)] | None = None
    colors: Colors = Colors()
    footer: Annotated[Label, _line(MAX_FOOTER, "a footer")] | None = None

    def problems(self) -> Iterator[tuple[Loc, str]]:
        """Colours that cannot be read, or that are taken by a meaning."""
        for name, sentence in self.colors.wrong():
            yield ("colors", name), sentence
