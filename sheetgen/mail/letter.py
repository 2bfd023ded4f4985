"""What a message says: the answer, three figures of it, what changed. From the same page that the PDF draws.

Its bodies are templates/mail/ filled in.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sheetgen.brand import Brand
from sheetgen.brand.colors import page_colors
from sheetgen.errors import did_you_mean, escaped, shown
from sheetgen.mail import MailError
from sheetgen.sheet.page import Card, Page
from sheetgen.writers.strict import strict_environment

SUBJECT = "Sizing sheet: {answer}; {question}, as of {as_of}"
MOST_NAMED = 3  # models in a subject
MOST_CHARACTERS = 200  # of a subject


@dataclass(frozen=True)
class Money:
    """A model's dollars a month on the sheet before and on this one; why: another hardware, and the causes."""

    model: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class Changes:
    """What changed since an earlier sheet. `more`: how many lines were left out."""

    since: str  # "old.xlsx, as of 2026-08-01"
    money: tuple[Money, ...] = ()
    lines: tuple[str, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class Letter:
    """The words of a message, before they are laid out."""

    page: Page
    name: str  # of the files, without an ending
    changes: Changes | None = None

    def subject(self, template: str | None = None) -> str:
        """The subject line; every {field} of the template filled in. Raises MailError for one that is not known."""
        template = SUBJECT if template is None else template
        if not template.isprintable():
            raise MailError(
                f"subject is {shown(template)!r}. It must not hold line breaks or control characters: one line."
            )
        fields = self.fields()
        try:
            parts = list(string.Formatter().parse(template))
        except ValueError:
            raise MailError(f"subject is {shown(template)!r}: a brace is open. Write {{{{ for a brace.") from None
        line = ""
        for text, field, form, conversion in parts:
            line += text
            if field is None:
                continue
            if field not in fields or form or conversion:
                known = ", ".join(fields)
                raise MailError(f"subject has {{{shown(field)}}}. Known: {known}.{did_you_mean(field, fields)}")
            line += fields[field]
        line = clean(line)
        if not line:
            raise MailError("subject is blank. Write one, or leave it out.")
        return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 1] + "…"

    def fields(self) -> Mapping[str, str]:
        """What a subject may name."""
        cards = self.page.cards
        many = len(cards) - MOST_NAMED
        more = f" and {many} more" if many > 0 else ""
        return {
            "answer": "; ".join(_answer(c) for c in cards[:MOST_NAMED]) + more,
            "models": ", ".join(c.model for c in cards[:MOST_NAMED]) + more,
            "rent": "; ".join(str(c.rent) for c in cards[:MOST_NAMED]) + more,
            "monthly": "; ".join(str(c.monthly) for c in cards[:MOST_NAMED]) + more,
            "question": self.page.question,
            "as_of": self.page.as_of,
            "name": self.name,
        }


def _answer(card: Card) -> str:
    return f"{card.model} on {card.rent}, {card.monthly} a month" if card.fits else f"{card.model}: {card.rent}"


def clean(text: str) -> str:
    """`text` on one line, without characters that do not show: names come from catalogs and workbooks."""
    shows = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return escaped(" ".join(shows.split()))


def bodies(letter: Letter, templates: Path, brand: Brand | None = None) -> tuple[str, str]:
    """The text and the HTML. All that a catalog or a workbook says is one line of text; in HTML it is escaped."""
    is_html = lambda name: name is not None and ".html" in name  # noqa: E731
    environment = strict_environment(templates / "mail", clean, autoescape=is_html, keep_trailing_newline=True)
    colors = page_colors(brand.colors if brand else None)
    shown = {"page": letter.page, "name": letter.name, "changes": letter.changes, "brand": brand, "colors": colors}
    text, html = (environment.get_template(f"message.{kind}.j2").render(**shown) for kind in ("txt", "html"))
    return text, html
