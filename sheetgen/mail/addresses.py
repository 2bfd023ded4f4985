"""Mail addresses as people type them: `ann@acme.com`, `Ann Lee <ann@acme.com>`, several by commas.

Read by a small grammar of our own: the library's parser takes almost anything and mends it silently, and what an
address becomes on the wire (RCPT TO) must be what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.headerregistry import Address

from sheetgen.errors import shown
from sheetgen.mail import MailError

LONGEST, LONGEST_NAME = 254, 64  # characters of an address and of what stands before its @, RFC 5321
_ONE = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"\s*<(?P<a>[^<>]*)>|(?P<plain>[^<>"]*)<(?P<b>[^<>]*)>|(?P<c>[^<>"]*)')
_SPLIT = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,"]|")+')
_ATOMS = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
# Two standards spell ß and others differently in ASCII: which one the domain's owner took is not ours to guess.
_IN_ASCII = "Write it in ASCII: a domain with other letters has such a form, xn--..., which its owner can tell."
_AS_KNOWN = 'Write it as ann@acme.com or "Ann Lee <ann@acme.com>", several by commas.'
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SPEC = re.compile(rf"{_ATOMS}(?:\.{_ATOMS})*@{_LABEL}(?:\.{_LABEL})*")


@dataclass(frozen=True)
class Envelope:
    """Who writes to whom. Nobody is named twice."""

    sender: Address | None
    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()

    @property
    def recipients(self) -> tuple[str, ...]:
        """Every address that gets the message."""
        return tuple(a.addr_spec for a in (*self.to, *self.cc))


def envelope(sender: str | None, to: Iterable[str], cc: Iterable[str] = ()) -> Envelope:
    """The addresses, checked; what is wrong with any of them is reported in one go. Raises MailError."""
    problems: list[str] = []
    found = [list(_read(what, texts, problems)) for what, texts in (("to", to), ("cc", cc))]
    writers = [] if sender is None else list(_read("from", (sender,), problems))
    if len(writers) > 1:
        problems.append(f"from names {len(writers)} addresses. Name one.")
    if problems:
        raise MailError(*dict.fromkeys(problems))
    seen: set[str] = set()
    first, second = (tuple(a for a in some if _new(a, seen)) for some in found)
    return Envelope(writers[0] if writers else None, first, second)


def _new(address: Address, seen: set[str]) -> bool:
    key = address.addr_spec.lower()
    return not (key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _is_address(spec: str) -> bool:
    """Whether a server takes it as it is typed. `=?` would be decoded on the way into a header."""
    name = spec.partition("@")[0]
    return bool(_SPEC.fullmatch(spec)) and len(spec) <= LONGEST and len(name) <= LONGEST_NAME and "=?" not in spec


def _read(what: str, texts: Iterable[str], problems: list[str]) -> Iterator[Address]:
    for text in texts:
        if not text.isprintable():
            problems.append(f"{what} is {shown(text)!r}. An address must not hold line breaks or control characters.")
            continue
        for part in _SPLIT.findall(text) if text.strip(" ,") else [text]:
            found = _ONE.fullmatch(part.strip())
            spec = next((found[g].strip() for g in "abc" if found[g] is not None), "") if found else ""
            if found is None or not _is_address(spec):
                cure = _IN_ASCII if found and "@" in spec and not spec.isascii() else _AS_KNOWN
                problems.append(f"{what} is {shown(part.strip())!r}, which is no mail address. {cure}")
                continue
            name = re.sub(r"\\(.)", r"\1", found["quoted"]) if found["quoted"] is not None else found["plain"] or ""
            yield Address(" ".join(name.split()), addr_spec=spec)
