"""The message itself: headers, two bodies, attachments; as a draft for a mail program, or ready to send.

Addresses are read as people type them (`ann@acme.com`, `Ann Lee <ann@acme.com>`, several by commas), by a small grammar
of our own: the library's parser takes almost anything and mends it silently, and what an address becomes on the wire
(RCPT TO) must be what was typed.
"""

from __future__ import annotations

import datetime
import email
import hashlib
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage, Message
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from pathlib import Path

from sheetgen.brand import Brand, page_colors
from sheetgen.errors import cut, did_you_mean, escaped, shown
from sheetgen.mail import MailError
from sheetgen.plan.pages import PlanPage
from sheetgen.report.page import NONE, Option, Page, Text, WayRow, joined, words
from sheetgen.writers.html import strict_environment

SUBJECT, SUBJECT_OF_PLAN = "{request}", "{title}: {answer}"
MOST_NAMED = 3  # models in a subject
USUAL_CHARACTERS = 78  # of a line, RFC 5322; models are left out for it, but for the first
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
    per: str = "a month"  # what the money is of; "" where its lines say it


@dataclass(frozen=True)
class Letter:
    """The words of a message, before they are laid out."""

    page: Page | PlanPage
    name: str  # of the files, without an ending
    changes: Changes | None = None
    attached: tuple[str, ...] = ("pdf", "xlsx")  # their endings

    def subject(self, template: str | None = None) -> str:
        """The subject line; every {field} of the template filled in. Raises MailError for one that is not known."""
        usual = SUBJECT_OF_PLAN if isinstance(self.page, PlanPage) else SUBJECT
        template = usual if template is None else template
        if not template.isprintable():
            must = "It must not hold line breaks or control characters: one line."
            raise MailError(f"subject is {shown(template)!r}. {must}")
        try:
            parts = list(string.Formatter().parse(template))
        except ValueError:
            raise MailError(f"subject is {shown(template)!r}: a brace is open. Write {{{{ for a brace.") from None
        fields = self.fields(MOST_NAMED)
        for _, field, form, conversion in parts:
            if field is not None and (field not in fields or form or conversion):
                known = ", ".join(fields)
                raise MailError(f"subject has {{{shown(field)}}}. Known: {known}.{did_you_mean(field, fields)}")
        for named in range(MOST_NAMED, 0, -1):
            fields = self.fields(named)
            line = clean("".join(text + (fields[field] if field else "") for text, field, *_ in parts))
            if len(line) <= USUAL_CHARACTERS:
                break
        if not line:
            raise MailError("subject is blank. Write one, or leave it out.")
        return cut(line, MOST_CHARACTERS)

    def fields(self, named: int) -> Mapping[str, str]:
        """What a subject may name, of so many models; of a plan with a title that is cut from step to step."""
        if isinstance(self.page, PlanPage):
            return _plan_fields(self.page, self.name, TITLES[MOST_NAMED - named])
        page, cards = self.page, self.page.cards
        more = f" and {len(cards) - named} more" if len(cards) > named else ""
        answer = _answer(page, named) + (more if page.total is None and page.ask is None else "")
        return {
            "request": str(page.request.subject) or f"To choose: {answer}",
            "answer": answer,
            "load": f"{page.case.workload} at {page.headline_requests}" if page.headline_requests else page.question,
            "models": ", ".join(c.model for c in cards[:named]) + more,
            "rent": "; ".join(str(c.rent) for c in cards[:named]) + more,
            "monthly": "; ".join(str(c.monthly) for c in cards[:named]) + more,
            "question": page.question,
            "as_of": page.as_of,
            "name": self.name,
        }


TITLES = (MOST_CHARACTERS, 30, 12)  # characters of a plan's title in a subject, at most


def _plan_fields(page: PlanPage, name: str, most: int) -> Mapping[str, str]:
    """What the subject of a plan's message may name."""
    title, brief = cut(page.title, most), page.brief
    return {
        "answer": f"{brief.quarters}, {brief.short_asked} to approve, {brief.short_p50} expected",
        "title": title,
        "quarters": brief.quarters,
        "p50": str(brief.p50),
        "p90": str(brief.p90),
        "budget": brief.budget,
        "as_of": page.as_of,
        "name": name,
    }


def _answer(page: Page, named: int) -> str:
    """Llama 3.1 8B $5,095, 70B $40,179 a month; 405B: nothing fits. What all names begin with is said once."""
    asked = page.asked_for if page.total is not None or page.ask is not None else page.cards[:named]
    names = [one.model.split(" ") for one in asked]
    shared = 0
    while len(names) > 1 and all(len(name) > shared + 1 for name in names) and len({n[shared] for n in names}) == 1:
        shared += 1
    short = [" ".join(name[shared if i else 0 :]) for i, name in enumerate(names)]
    months = [one.approve[0] if one.approve else one.monthly for one in asked]
    priced = [f"{name} {month}" for name, month in zip(short, months, strict=True) if month]
    dead = [f"{name}: {one.rent}" for name, one, month in zip(short, asked, months, strict=True) if not month]
    return "; ".join([f"{', '.join(priced)} a month {page.contingency}".rstrip()] * bool(priced) + dead)


def clean(text: str) -> str:
    """`text` on one line, without characters that do not show: names come from catalogs and workbooks."""
    shows = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return escaped(" ".join(shows.split()))


@dataclass(frozen=True)
class Said:
    """What both bodies of a message say, whatever it carries."""

    title: str
    approver: str
    sentence: Text  # what is asked
    figure: Text  # of what is to be approved; NONE where one of several is to be chosen
    per: str  # "a month"
    beside: Text  # the figure: what it is a year, and binds
    replies: tuple[tuple[str, Text], ...]  # what one answers, and what that means
    warnings: tuple[Text, ...]
    points: tuple[tuple[str, Text], ...]  # each with its label
    owner: str
    basis: Text
    version: str
    catalog: str


def _of_sheet(page: Page, name: str, attached: Sequence[str]) -> Said:
    asked = page.request
    figure: Text = NONE
    beside: Text = NONE
    per = ""
    if asked.subject and asked.options:
        first = asked.options[0]
        figure, per, beside = first.price, first.per, first.facts[0]
    replies = tuple((one.reply, _reply(one, figure)) for one in asked.options if one.reply)
    ends = (1, len(asked.ways))
    shown = [one for i, one in enumerate(asked.ways, 1) if i in ends or (one.binds and one.is_best)]
    ways = joined("; ", [_way(one) for one in shown])
    excluded = words("{} and {}.", asked.excluded, asked.spare) if asked.spare else words("{}.", asked.excluded)
    points = (
        ("To pay less", words("{}.", ways) if ways else NONE),
        ("Each model", joined(" ", asked.serves) if page.total is not None else NONE),
        ("Not in the price", excluded if asked.options else NONE),
        ("Sure", _sure_means(page) if asked.options else NONE),
        ("Attached", _attached(name, attached, page.has_request)),
    )
    sentence = words("We ask to run {}:", asked.what) if figure else words("{}.", asked.sentence)
    return Said(
        page.title,
        page.approver,
        sentence,
        figure,
        per,
        beside,
        replies,
        asked.warnings,
        tuple((label, text) for label, text in points if text),
        page.owner,
        asked.basis if asked.options else NONE,
        page.version,
        page.catalog,
    )


def _reply(option: Option, figure: Text) -> Text:
    """What a reply means: its price, where that is not the figure above all replies, and what is said of it last."""
    said = option.facts[-1]
    return said if option.price == figure else words("{} {}. {}", option.price, option.per, said)


def _sure_means(page: Page) -> str:
    return page.sure_of.removeprefix("How sure: ")


def _way(one: WayRow) -> Text:
    """A way to pay less with what it commits to, or else what is given up, or what has to be done first."""
    lost = words("without {}", one.loses) if one.loses else one.needs
    return words("{} {} ({})", one.change, one.monthly, words("commits {}", one.commits) if one.binds else lost)


def _attached(name: str, attached: Sequence[str], is_asked: bool) -> str:
    """The files, and what each is for."""
    about = {
        "pdf": "page 1 is the request" if is_asked else "page 1 is all you need",
        "xlsx": "change a yellow cell, and the cost follows",
        "docx": "to edit or comment",
    }
    return "; ".join(f"{name}.{ending} ({about[ending]})" for ending in attached) + "."


def _of_plan(page: PlanPage, name: str, attached: Sequence[str]) -> Said:
    brief, asked = page.brief, page.tiles[0]
    until = f", by {page.sign_by}" if page.sign_by else ""
    return Said(
        page.title,
        page.approver,
        "We ask for your approval:",
        brief.asked,
        brief.quarters,
        words("{}.", joined("; ", asked.facts)),
        (("approved", words("{}{}.", brief.asked, until)), ("change", "Tell us what should change.")),
        (),
        (*brief.points, ("Attached", _attached(name, attached, is_asked=True))),
        page.owner,
        f"As of {page.as_of}; {brief.prices}.",
        page.version,
        page.catalog,
    )


def bodies(letter: Letter, templates: Path, brand: Brand | None = None) -> tuple[str, str]:
    """The text and the HTML. All that a catalog or a workbook says is one line of text; in HTML it is escaped."""
    is_html = lambda name: name is not None and ".html" in name  # noqa: E731
    environment = strict_environment(templates / "mail", clean, autoescape=is_html, keep_trailing_newline=True)
    colors = page_colors(brand.colors if brand else None)
    page, files = letter.page, (letter.name, letter.attached)
    said = _of_plan(page, *files) if isinstance(page, PlanPage) else _of_sheet(page, *files)
    shown = {"page": said, "changes": letter.changes, "brand": brand, "colors": colors}
    text, html = (environment.get_template(f"message.{kind}.j2").render(**shown) for kind in ("txt", "html"))
    return text, html


_POLICY = SMTP.clone(cte_type="7bit", max_line_length=78)  # any server takes it, with or without 8BITMIME
_OFFICE = "application/vnd.openxmlformats-officedocument."
_KINDS = {
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".pdf": "application/pdf",
}
_ENCODED = "=?"  # begins an encoded word: the library decodes `=?utf-8?q?=0ABcc:...?=` into a header of its own
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
    found: dict[str, tuple[str, Address]] = {}
    for what, texts in (("to", to), ("cc", cc)):
        for address in _read(what, texts, problems):
            found.setdefault(address.addr_spec.lower(), (what, address))
    writers = [] if sender is None else list(_read("from", (sender,), problems))
    if len(writers) > 1:
        problems.append(f"from names {len(writers)} addresses. Name one.")
    if problems:
        raise MailError(*dict.fromkeys(problems))
    first, second = (tuple(a for where, a in found.values() if where == what) for what in ("to", "cc"))
    return Envelope(writers[0] if writers else None, first, second)


def _read(what: str, texts: Iterable[str], problems: list[str]) -> Iterator[Address]:
    for text in texts:
        if not text.isprintable():
            problems.append(f"{what} is {shown(text)!r}. An address must not hold line breaks or control characters.")
            continue
        for part in _SPLIT.findall(text) if text.strip(" ,") else [text]:
            found = _ONE.fullmatch(part.strip())
            spec = next((found[g].strip() for g in "abc" if found[g] is not None), "") if found else ""
            is_long = len(spec) > LONGEST or spec.find("@") > LONGEST_NAME
            if found is None or not _SPEC.fullmatch(spec) or is_long or _ENCODED in spec:
                cure = _IN_ASCII if found and "@" in spec and not spec.isascii() else _AS_KNOWN
                problems.append(f"{what} is {shown(part.strip())!r}, which is no mail address. {cure}")
                continue
            name = re.sub(r"\\(.)", r"\1", found["quoted"]) if found["quoted"] is not None else found["plain"] or ""
            yield Address(" ".join(name.split()), addr_spec=spec)


@dataclass(frozen=True)
class Mail:
    """All of a message but when and how it is sent."""

    envelope: Envelope
    subject: str
    text: str
    html: str
    attachments: Mapping[str, bytes]  # by file name

    def draft(self) -> bytes:
        """An .eml that opens ready to be sent (X-Unsent). No date and no id: the mail program gives them, and the same
        sheet gives the same bytes."""
        return self._bytes({"X-Unsent": "1"})

    def ready(self, now: datetime.datetime) -> bytes:
        """The message as a server takes it. Raises MailError where nobody is named as its sender."""
        sender = self.envelope.sender
        if sender is None:
            raise MailError("from is missing: a server wants to know who writes. Name an address with --from.")
        # The sender's domain, for the id would else give away this machine's name.
        return self._bytes({"Date": format_datetime(now), "Message-ID": make_msgid(domain=sender.domain)})

    def _bytes(self, headers: Mapping[str, str]) -> bytes:
        message = EmailMessage(_POLICY)
        sender, to, cc = self.envelope.sender, self.envelope.to, self.envelope.cc
        message["Subject"] = _literal(self.subject)
        for name, addresses in (("From", [sender] if sender else []), ("To", to), ("Cc", cc)):
            if addresses:
                message[name] = [Address(_literal(a.display_name), addr_spec=a.addr_spec) for a in addresses]
        for name, value in headers.items():
            message[name] = value
        message.set_content(self.text, cte="quoted-printable")
        message.add_alternative(self.html, subtype="html", cte="quoted-printable")
        for name, data in self.attachments.items():
            main, _, sub = _KINDS[name[name.rindex(".") :]].partition("/")
            message.add_attachment(data, maintype=main, subtype=sub, filename=_literal(name))
        digest = hashlib.sha256(b"".join((self.text.encode(), self.html.encode(), *self.attachments.values())))
        for i, part in enumerate(p for p in message.walk() if p.is_multipart()):
            part.set_boundary(f"=_{i}_{digest.hexdigest()[:32]}")  # "=_" stands in no quoted-printable or base64
        return _as_built(message)


def _literal(text: str) -> str:
    """`text` in which nothing reads as an encoded word."""
    return text.replace(_ENCODED, "= ?")


def _as_built(message: EmailMessage) -> bytes:
    """The message as bytes, read back: no name and no subject may have added a header to it."""
    data = None
    with suppress(MessageError):  # a patched library (Debian's 3.11.2, 3.12.5 on) refuses by itself to write such a one
        data = message.as_bytes()
    if data is None or _headers(email.message_from_bytes(data)) != _headers(message):
        raise MailError("the message would get headers that are not its own. Change its subject, names and addresses.")
    return data


def _headers(message: Message) -> list[list[str]]:
    return [part.keys() for part in message.walk()]
