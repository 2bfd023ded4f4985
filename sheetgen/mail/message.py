"""The message: headers, text and HTML bodies, attachments; as a draft for a mail program, or ready to send.

Addresses are read as people type them (`ann@acme.com`, `Ann Lee <ann@acme.com>`, several by commas) by a small grammar
of our own: the library's parser silently corrects almost anything, but the address that is sent (RCPT TO) must be the
one that was typed.
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

from sheetgen.brand import Brand
from sheetgen.errors import cut, did_you_mean, escaped, shown
from sheetgen.mail import MailError
from sheetgen.plan.pages import PlanPage
from sheetgen.report.page import NONE, Option, Page, Text, WayRow, joined, words
from sheetgen.writers.html import strict_environment
from sheetgen.writers.layout import page_colors

SUBJECT, SUBJECT_OF_PLAN = "{request}", "{title}: {answer}"
MOST_WORDS, OF_FRAME = 180, 11  # of a mail; those of its greetings, numbers and version among them
_OWNING, _ENOUGH, _PURPOSES, _SURE, _MODELS = "Owning", "Enough for", "Purposes", "Sure", "Models"
_PERSON, _IN_FULL, _HOURS = "Cost", "Commitments in full", "Hours"
LEFT_TO_PAGE = (
    _OWNING,
    _ENOUGH,
    _SURE,
    _HOURS,
    _MODELS,
    _PERSON,
    _IN_FULL,
    _PURPOSES,
)  # what a mail has as far as its words allow, the most needed first
MOST_NAMED = 3  # models in a subject
USUAL_CHARACTERS = 78  # of a line, RFC 5322; longer subjects name fewer models, but at least one
MOST_CHARACTERS = 200  # of a subject


@dataclass(frozen=True)
class Money:
    """A model's cost on the earlier sheet and on this one; why: a change of hardware, and the causes."""

    model: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class Changes:
    """The changes since an earlier sheet; `more` is the number of lines left out."""

    since: str  # "old.xlsx, as of 2026-08-01"
    money: tuple[Money, ...] = ()
    lines: tuple[str, ...] = ()
    more: int = 0
    per: str = "a month"  # the period of the money; "" if the lines state it


@dataclass(frozen=True)
class Letter:
    """The content of a message, before it is laid out."""

    page: Page | PlanPage
    name: str  # of the attached files, without extension
    changes: Changes | None = None
    attached: tuple[str, ...] = ("pdf", "xlsx")  # extensions

    def subject(self, template: str | None = None) -> str:
        """The subject line, with every {field} of the template filled in. Raises MailError for an unknown field."""
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
                allowed = ", ".join(fields)
                raise MailError(f"subject has {{{shown(field)}}}. Known: {allowed}.{did_you_mean(field, fields)}")
        for named in range(MOST_NAMED, 0, -1):
            fields = self.fields(named)
            line = clean("".join(text + (fields[field] if field else "") for text, field, *_ in parts))
            if len(line) <= USUAL_CHARACTERS:
                break
        if not line:
            raise MailError("subject is blank. Write one, or leave it out.")
        return cut(line, MOST_CHARACTERS)

    def fields(self, named: int) -> Mapping[str, str]:
        """The fields for a subject, with `named` models; for a plan, fewer models mean a shorter answer and title."""
        if isinstance(self.page, PlanPage):
            return _plan_fields(self.page, self.name, *TITLES[MOST_NAMED - named])
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


# By step the most characters of a plan's title in a subject, and whether what is expected follows what is asked for.
TITLES = ((MOST_CHARACTERS, True), (MOST_CHARACTERS, False), (34, False))


def _plan_fields(page: PlanPage, name: str, most: int, is_full: bool) -> Mapping[str, str]:
    """The fields for the subject of a plan's message; the title has at most `most` characters."""
    title, brief = cut(page.title, most), page.brief
    return {
        "answer": f"{brief.quarters}, {brief.short_asked} to approve" + f", {brief.short_p50} expected" * is_full,
        "title": title,
        "quarters": brief.quarters,
        "p50": str(brief.p50),
        "p90": str(brief.p90),
        "budget": brief.budget,
        "as_of": page.as_of,
        "name": name,
    }


def _answer(page: Page, named: int) -> str:
    """The answer in a subject: `Llama 3.1 8B $5,095, 70B $40,179 a month; 405B: nothing fits`. Words that all names
    begin with are written once."""
    asked = page.asked_for if page.total is not None or page.ask is not None else page.cards[:named]
    names = [card.model.split(" ") for card in asked]
    shared = 0
    while len(names) > 1 and all(len(name) > shared + 1 for name in names) and len({n[shared] for n in names}) == 1:
        shared += 1
    short = [" ".join(name[shared if i else 0 :]) for i, name in enumerate(names)]
    months = [card.approve[0] if card.approve else card.monthly for card in asked]
    priced = [f"{name} {month}" for name, month in zip(short, months, strict=True) if month]
    dead = [f"{name}: {card.rent}" for name, card, month in zip(short, asked, months, strict=True) if not month]
    return "; ".join([f"{', '.join(priced)} a month {page.contingency}".rstrip()] * bool(priced) + dead)


def clean(text: str) -> str:
    """`text` on one line, without invisible characters: names come from catalogs and workbooks."""
    shows = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return escaped(" ".join(shows.split()))


@dataclass(frozen=True)
class Contents:
    """The contents of both bodies of a message, for a sheet or a plan."""

    title: str
    approver: str
    sentence: Text  # the request
    figure: Text  # the amount to approve; NONE where one of several options is to be chosen
    per: str  # "a month"
    beside: Text  # beside the figure: per year, and the commitment
    replies: tuple[tuple[str, Text], ...]  # the word to reply with, and its meaning
    warnings: tuple[Text, ...]
    points: tuple[tuple[str, Text], ...]  # label and text
    owner: str
    basis: Text
    version: str
    catalog: str


def _sheet_contents(page: Page, name: str, attached: Sequence[str]) -> Contents:
    asked = page.request
    figure: Text = NONE
    beside: Text = NONE
    per = ""
    if asked.subject and asked.options:
        first = asked.options[0]
        figure, per, beside = first.price, first.per, first.facts[0]
    own = [way for way in asked.ways if not way.is_elsewhere]  # the others stand with their conditions
    shown = {way.change: way for way in reversed([*own[:1], *(way for way in own[1:] if way.binds)])}
    sentence = words("Please approve {}:", asked.what) if figure else words("{}.", asked.sentence)

    then = str(asked.failure or "").partition(": ")[2]

    def replies(kept: Sequence[str]) -> tuple[tuple[str, Text], ...]:
        certain = asked.certain if _SURE in kept else asked.sure
        return tuple((option.reply, _reply(option, figure, per, certain)) for option in asked.options if option.reply)

    def points(kept: Sequence[str]) -> tuple[tuple[str, Text], ...]:
        """The points, of those that a long mail leaves to its page with these."""
        told = [way for way in reversed(shown.values()) if way.kind != "own" or _OWNING in kept]
        own_ways = [words("{}.", joined("; ", [*_ways(told, _IN_FULL in kept, _HOURS in kept)]))] * bool(told)
        labelled: tuple[tuple[str, Text], ...] = (
            (_SURE, str(asked.sure_of).removeprefix("Sure ") if not asked.certain and _SURE in kept else NONE),
            (
                "Pay less",
                joined(" ", own_ways + _told(asked.less_only) + _told(asked.owning if _OWNING in kept else NONE)),
            ),
            (_ENOUGH, words("{}.", asked.enough) if asked.enough and _ENOUGH in kept else NONE),
            (_PERSON, asked.per_person if _PERSON in kept else NONE),
            ("Largest uncertainty", words("{}.", asked.uncertainty) if asked.uncertainty else NONE),
            ("Failure", then),
            (_MODELS, asked.reasons[-1] if asked.reasons and _MODELS in kept else NONE),
            ("Each model", joined(" ", asked.serves) if page.total is not None else NONE),
            ("Excluded", words("{}.", asked.excluded) if asked.options else NONE),
            ("Attached", _attached(name, attached, page.has_request, _PURPOSES in kept)),
        )
        return tuple((label, text) for label, text in labelled if text)

    if figure and asked.options[0].rent:
        beside = words("{} {}.", beside, asked.options[0].rent)

    def is_long(kept: Sequence[str]) -> bool:
        texts = [page.approver, sentence, figure, per, beside, page.owner, asked.prices, *asked.warnings]
        texts += [part for pair in (*replies(kept), *points(kept)) for part in pair]
        return OF_FRAME + len(" ".join(str(part) for part in texts if part).split()) > MOST_WORDS

    kept: tuple[str, ...] = ()
    for point in LEFT_TO_PAGE:
        if not asked.subject or not is_long((*kept, point)):
            kept = (*kept, point)
    return Contents(
        page.title,
        page.approver,
        sentence,
        figure,
        per,
        beside,
        replies(kept),
        asked.warnings,
        points(kept),
        page.owner,
        (asked.prices or asked.basis) if asked.options else NONE,
        page.version,
        page.catalog,
    )


def _reply(option: Option, figure: Text, per: str, certain: Text) -> Text:
    """The meaning of a reply: the option's price, if it differs from the figure above, and all facts but the first,
    a year's price. certain: its certainty with the targets that it is of, in the place of the facts of the figure."""
    remark = joined(" ", option.facts[1:])
    if option.price == figure:
        return certain or remark
    is_same = option.per == per
    return words("{}. {}", option.price if is_same else words("{} {}", option.price, option.per), remark)


def _told(text: Text) -> list[Text]:
    return [text] if text else []


def _ways(ways: Sequence[WayRow], is_full: bool, has_hours: bool) -> Iterator[Text]:
    """Ways to pay less, each with its commitment and when that pays off, or what it gives up, or what it needs first.
    What the amounts of a commitment are is said of the first; is_full: of each, with a year of a long term. has_hours:
    of working hours how many they are."""
    is_first = True
    for way in ways:
        lost: Text = words("gives up {}", way.loses) if way.loses else way.needs
        if way.kind == "hours":  # whose name says what is given up: how many hours are left
            lost = way.loses.partition(": ")[2] if has_hours else ""
        if way.binds:
            is_worded, is_first = is_first or is_full, False
            commits = words("commits {}", way.commits) if is_worded else way.commits
            paid = way.pays_off if is_worded else way.pays_off.removeprefix("pays off in ")
            there = way.loses.removeprefix("cancelling, ") if way.place else ""  # what else a term gives up
            if way.kind == "own":
                there = way.loses.removeprefix("cash, ")  # the amount is cash
            lost = joined("; ", [*filter(None, (there, commits, way.year if is_full else "", paid))])
        yield words("{} {} ({})", way.change, way.monthly, lost) if lost else words("{} {}", way.change, way.monthly)


def _attached(name: str, attached: Sequence[str], is_asked: bool, has_purposes: bool = True) -> str:
    """The attached files, each with its purpose."""
    about = {
        "pdf": "page 1 is the request" if is_asked else "page 1 is all you need",
        "xlsx": "Decision answers any load",
        "docx": "to edit or comment",
    }
    return "; ".join(f"{name}.{ending}" + f" ({about[ending]})" * has_purposes for ending in attached) + "."


def _plan_contents(page: PlanPage, name: str, attached: Sequence[str]) -> Contents:
    brief, asked = page.brief, page.tiles[0]
    until = f", by {page.sign_by}" if page.sign_by else ""
    return Contents(
        page.title,
        page.approver,
        "We ask for your approval:",
        brief.asked,
        brief.quarters,
        words("{}.", joined("; ", asked.facts)),
        (("approved", words("{}{}.", brief.asked, until)), ("change", "Tell us what should change.")),
        (),
        (*brief.points, ("Attached", _attached(name, attached, is_asked=True, has_purposes=False))),
        page.owner,
        f"As of {page.as_of}; {brief.prices}.",
        page.version,
        page.catalog,
    )


def bodies(letter: Letter, templates: Path, brand: Brand | None = None) -> tuple[str, str]:
    """The text and HTML bodies. Texts from a catalog or a workbook become one line; in HTML they are escaped."""
    is_html = lambda name: name is not None and ".html" in name  # noqa: E731
    environment = strict_environment(templates / "mail", clean, autoescape=is_html, keep_trailing_newline=True)
    colors = page_colors(brand)
    page, files = letter.page, (letter.name, letter.attached)
    contents = _plan_contents(page, *files) if isinstance(page, PlanPage) else _sheet_contents(page, *files)
    shown = {"page": contents, "changes": letter.changes, "brand": brand, "colors": colors}
    text, html = (environment.get_template(f"message.{kind}.j2").render(**shown) for kind in ("txt", "html"))
    return text, html


_POLICY = SMTP.clone(cte_type="7bit", max_line_length=78)  # for any server, with or without 8BITMIME
_OFFICE = "application/vnd.openxmlformats-officedocument."
_KINDS = {
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".pdf": "application/pdf",
}
_ENCODED = "=?"  # begins an encoded word: the library decodes `=?utf-8?q?=0ABcc:...?=` into a header of its own
LONGEST, LONGEST_NAME = 254, 64  # characters of an address, and of its part before the @, RFC 5321
_ONE = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"\s*<(?P<a>[^<>]*)>|(?P<plain>[^<>"]*)<(?P<b>[^<>]*)>|(?P<c>[^<>"]*)')
_SPLIT = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,"]|")+')
_ATOMS = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
# Two standards spell ß and others differently in ASCII, so the form that the domain's owner uses cannot be guessed.
_IN_ASCII = "Write it in ASCII: a domain with other letters has such a form, xn--..., which its owner can tell."
_AS_KNOWN = 'Write it as ann@acme.com or "Ann Lee <ann@acme.com>", several by commas.'
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SPEC = re.compile(rf"{_ATOMS}(?:\.{_ATOMS})*@{_LABEL}(?:\.{_LABEL})*")


@dataclass(frozen=True)
class Envelope:
    """The sender and the recipients of a message, each recipient once."""

    sender: Address | None
    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()

    @property
    def recipients(self) -> tuple[str, ...]:
        """All addresses that get the message."""
        return tuple(a.addr_spec for a in (*self.to, *self.cc))


def envelope(sender: str | None, to: Iterable[str], cc: Iterable[str] = ()) -> Envelope:
    """The checked addresses. Raises MailError with the problems of all of them."""
    problems: list[str] = []
    by_address: dict[str, tuple[str, Address]] = {}
    for header, texts in (("to", to), ("cc", cc)):
        for address in _read(header, texts, problems):
            by_address.setdefault(address.addr_spec.lower(), (header, address))
    writers = [] if sender is None else list(_read("from", (sender,), problems))
    if len(writers) > 1:
        problems.append(f"from names {len(writers)} addresses. Name one.")
    if problems:
        raise MailError(*dict.fromkeys(problems))
    first, second = (tuple(a for where, a in by_address.values() if where == header) for header in ("to", "cc"))
    return Envelope(writers[0] if writers else None, first, second)


def _read(header: str, texts: Iterable[str], problems: list[str]) -> Iterator[Address]:
    """The addresses in some texts; messages on invalid ones are added to `problems`."""
    for text in texts:
        if not text.isprintable():
            problems.append(f"{header} is {shown(text)!r}. An address must not hold line breaks or control characters.")
            continue
        for part in _SPLIT.findall(text) if text.strip(" ,") else [text]:
            match = _ONE.fullmatch(part.strip())
            spec = next((match[g].strip() for g in "abc" if match[g] is not None), "") if match else ""
            is_long = len(spec) > LONGEST or spec.find("@") > LONGEST_NAME
            if match is None or not _SPEC.fullmatch(spec) or is_long or _ENCODED in spec:
                cure = _IN_ASCII if match and "@" in spec and not spec.isascii() else _AS_KNOWN
                problems.append(f"{header} is {shown(part.strip())!r}, which is no mail address. {cure}")
                continue
            name = re.sub(r"\\(.)", r"\1", match["quoted"]) if match["quoted"] is not None else match["plain"] or ""
            yield Address(" ".join(name.split()), addr_spec=spec)


@dataclass(frozen=True)
class Mail:
    """A complete message, except for its date and id."""

    envelope: Envelope
    subject: str
    text: str
    html: str
    attachments: Mapping[str, bytes]  # by file name

    def draft(self) -> bytes:
        """An .eml file that opens ready to be sent (X-Unsent).

        Date and id are left to the mail program, so that the same sheet gives the same bytes.
        """
        return self._bytes({"X-Unsent": "1"})

    def ready(self, now: datetime.datetime) -> bytes:
        """The message for a server, with date and id. Raises MailError without a sender."""
        sender = self.envelope.sender
        if sender is None:
            raise MailError("from is missing: a server wants to know who writes. Name an address with --from.")
        # With the sender's domain: the default id would reveal this machine's name.
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
            part.set_boundary(f"=_{i}_{digest.hexdigest()[:32]}")  # "=_" is never in quoted-printable or base64
        return _as_built(message)


def _literal(text: str) -> str:
    """`text` without anything that reads as an encoded word."""
    return text.replace(_ENCODED, "= ?")


def _as_built(message: EmailMessage) -> bytes:
    """The message as bytes. Raises MailError if it reads back with other headers, as names or subject might add."""
    data = None
    with suppress(MessageError):  # patched libraries (Debian's 3.11.2, 3.12.5 on) refuse to write such a message
        data = message.as_bytes()
    if data is None or _headers(email.message_from_bytes(data)) != _headers(message):
        raise MailError("the message would get headers that are not its own. Change its subject, names and addresses.")
    return data


def _headers(message: Message) -> list[list[str]]:
    return [part.keys() for part in message.walk()]
