"""The message: whole when read back, the same bytes again, and nothing that a name or an option says gets out of it."""

from __future__ import annotations

import datetime
import email
import email.policy
from collections.abc import Callable
from dataclasses import replace
from email.errors import MessageError
from email.message import EmailMessage
from html.parser import HTMLParser

import pytest
from answers import page_for
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.answer.solve import solve
from sheetgen.brand import Brand
from sheetgen.catalog import Catalog
from sheetgen.mail import MailError
from sheetgen.mail.message import Changes, Letter, Mail, Money, bodies, envelope
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Page, formatted
from sheetgen.writers.formats import templates_folder

HOSTILE = 'Evil</td><script>alert(1)</script><img src="http://x/y.png" onerror=z>\r\nBcc: eve@evil.org\x1b[31m\u202e'


@pytest.fixture(scope="module")
def page() -> Page:
    catalog = Catalog()
    solved = solve(ask(catalog, {"models": "8b,405b", "workloads": "rag", "tiers": "32", "as_of": "2026-11-20"}))
    shown: Page = formatted(page_for(solved, ((),) * len(solved.question.loads)))
    return shown


@pytest.fixture(scope="module")
def hostile(page: Page) -> Letter:
    cards = tuple(replace(c, model=HOSTILE, rent=HOSTILE, provider=HOSTILE) for c in page.cards)
    options = tuple(option._replace(name=HOSTILE, reply=HOSTILE, rent=HOSTILE) for option in page.request.options)
    changes = Changes(HOSTILE, (Money(HOSTILE, "$1", "$2", HOSTILE),), (HOSTILE,), 3)
    asked = replace(page.request, sentence=HOSTILE, options=options, basis=HOSTILE)
    return Letter(replace(page, cards=cards, question=HOSTILE, request=asked, owner=HOSTILE), "sheet", changes)


def mail_of(letter: Letter, subject: str | None = None, brand: Brand | None = None) -> Mail:
    text, html = bodies(letter, templates_folder(), brand)
    people = envelope("Ann Lee <ann@acme.com>", ["vp@acme.com", '"Groß, Jörg" <j@acme.com>'], ["cfo@acme.com"])
    return Mail(
        people, letter.subject(subject), text, html, {"sheet.pdf": b"%PDF-1.7\xff\x00", "sheet.xlsx": b"PK\x00"}
    )


def read(data: bytes) -> EmailMessage:
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(message, EmailMessage) and not message.defects
    assert all(not part.defects for part in message.walk())
    return message


def test_a_draft_is_whole(page: Page) -> None:
    mail = mail_of(Letter(page, "sheet"))
    text = read(mail.draft())
    assert text["X-Unsent"] == "1" and text["Date"] is None and text["Message-ID"] is None and text["Bcc"] is None
    assert text["From"] == "Ann Lee <ann@acme.com>" and text["Cc"] == "cfo@acme.com"
    assert [(a.display_name, a.addr_spec) for a in text["To"].addresses] == [
        ("", "vp@acme.com"),
        ("Groß, Jörg", "j@acme.com"),
    ]
    assert text["Subject"] == mail.subject
    assert [part.get_content_type() for part in text.walk()] == [
        *("multipart/mixed", "multipart/alternative", "text/plain", "text/html", "application/pdf"),
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ]
    assert {a.get_filename(): a.get_content() for a in text.iter_attachments()} == mail.attachments
    plain, html = (text.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None and plain.get_content().replace("\r\n", "\n") == mail.text
    assert html is not None and html.get_content().replace("\r\n", "\n") == mail.html
    assert mail.draft() == mail_of(Letter(page, "sheet")).draft()
    lines = mail.draft().split(b"\r\n")
    assert (
        max(map(len, lines)) <= 998 and mail.draft().isascii() and all(b"\n" not in x and b"\r" not in x for x in lines)
    )


def test_one_that_is_sent_has_date_and_id(page: Page) -> None:
    now = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
    text = read(mail_of(Letter(page, "sheet")).ready(now))
    assert text["Date"] == "Fri, 20 Nov 2026 12:00:00 +0000" and text["X-Unsent"] is None
    assert text["Message-ID"].endswith("@acme.com>")
    mail = replace(mail_of(Letter(page, "sheet")), envelope=envelope(None, ["a@b.c"]))
    assert "From" not in read(mail.draft())
    with pytest.raises(MailError, match="from is missing"):
        mail.ready(now)


def test_both_bodies_say_the_answer_and_its_figures(page: Page) -> None:
    mail = mail_of(
        Letter(page, "sheet", Changes("old.xlsx", (Money("8B", "$1,000", "$2,000", "load +$1,000"),), ("x: y",)))
    )
    for text in (mail.text, Text.of(mail.html)):
        for card in page.cards:
            assert [
                text_ for text_ in (card.model, card.monthly, f"{card.row.sure} sure") if str(text_) not in text
            ] == []
        assert all(
            str(part) in text
            for part in (page.request.sentence, page.request.prices or page.request.basis, page.request.excluded)
        )
        for told in ("old.xlsx", "$1,000", "$2,000", "load +$1,000", "x: y", "sheet.pdf", "sheet.xlsx"):
            assert told in text
    assert page.cards[0].monthly in mail.subject and mail.text.startswith("Hello,\n")
    assert "* 8B: $1,000 " in mail.text and " $2,000 a month; load +$1,000\n" in mail.text
    branded = mail_of(Letter(page, "sheet"), brand=Brand("Acme", footer="Confidential."))
    assert f"\nAcme, sheetgen {page.version}, catalog {page.catalog}\nConfidential.\n" in branded.text
    assert all(words in Text.of(branded.html) for words in ("Acme", "Confidential."))


def answered(**more: str) -> Page:
    asked = {"models": "8b,70b,405b", "workloads": "rag", "tiers": "32", "as_of": "2026-11-20", **more}
    return page_for(solve(ask(Catalog(), asked)))


def test_three_models_stand_in_a_short_subject_and_are_three_replies() -> None:
    page = answered()
    subject, text = Letter(page, "sheet").subject(), mail_of(Letter(page, "sheet")).text
    assert len(subject) <= 78 and all(str(card.monthly) in subject for card in page.cards)
    assert subject.startswith("To choose: Llama 3.1 8B $") and ", 70B $" in subject and subject.endswith(" a month")
    for number, card in enumerate(page.cards, 1):
        assert f"{number} {card.model}: {card.monthly} " in text


MOST_WORDS = 180  # with the names of what is attached and the version


def test_a_mail_has_owning_and_says_of_each_term_what_else_it_gives_up() -> None:
    """The second term gives up the same as the first; who rents which machines stands beside the figure."""
    european = {"users": "500", "tiers": "", "region": "eu", "currency": "EUR", "fx_rate": "0.92"}
    page = answered(models="gpt-oss-120b", ask="gpt-oss-120b", **european)
    text = mail_of(Letter(page, "sheet")).text
    [own] = [way for way in page.request.ways if way.kind == "own"]
    first, second = [way for way in page.request.ways if way.kind == "term"]
    assert str(own.monthly) in text and first.loses.removeprefix("cancelling, ") in text
    assert f"{second.monthly} ({second.loses}; " in text and second.loses == "the same"
    told = " ".join(text.split())
    assert own.loses.removeprefix("cash, ") in told  # staff, space, the old price, US power and space
    assert str(page.request.failure).partition(": ")[2] in told and "surviving: €" in told
    assert f"cancel any day. {page.request.options[0].rent}." in text
    page = answered(ask="70b", users="300", tiers="")
    assert f"cancel any day. {page.request.options[0].rent}." in mail_of(Letter(page, "sheet")).text


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "load",
    [{}, {"users": "640"}, {"requests_per_second": "4"}, {"users": "400", "requests_per_user_per_day": "40"}],
)
def test_a_mail_of_one_model_has_the_figure_and_three_replies(load: dict[str, str]) -> None:
    page = answered(ask="70b", approver="Jane Doe", owner="Platform", **load)
    letter, asked = Letter(page, "sheet"), page.request
    assert f" {page.cards[1].monthly} a month " in letter.subject()
    mail = mail_of(letter)
    assert (
        mail.text.startswith("Dear Jane Doe,\n") and f" {asked.what}:\n\n{page.cards[1].monthly} a month\n" in mail.text
    )
    assert len(mail.text.split()) <= MOST_WORDS and "sheet.pdf" in mail.text and "\nPlatform\n" in mail.text
    for text in (mail.text, Text.of(mail.html)):
        told = [part for option in asked.options for part in (option.reply, option.price)]
        told += [str(option.facts[-1]).rstrip(".") for option in asked.options[1:]]
        told += [asked.excluded, asked.ways[0].monthly, asked.prices, asked.uncertainty]
        told += [way.commits for way in asked.ways if way.binds] + [str(asked.failure).partition(": ")[2]]
        assert str(asked.certain) in text or str(asked.sure) in text  # which a long mail has without its targets
        assert [str(text_) for text_ in told if str(text_) not in text] == []
        assert str(asked.less_only) in text  # the conditions on which others take less
        # Which a long mail leaves to its page.
        is_short = len(mail.text.split()) + len(str(asked.reasons[-1]).split()) <= MOST_WORDS
        assert str(asked.reasons[-1]) in text or not is_short
        of_purposes = 9  # words, of both files
        assert "page 1 is the request" in text or len(mail.text.split()) + of_purposes > MOST_WORDS


class Text(HTMLParser):
    """The text of the HTML as a reader sees it, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    @classmethod
    def read(cls, html: str) -> Text:
        parser = cls()
        parser.feed(html)
        return parser

    @classmethod
    def of(cls, html: str) -> str:
        return "".join(cls.read(html).words)


def test_a_hostile_name_stays_text(hostile: Letter) -> None:
    mail = mail_of(hostile, "Sheet {answer} {question} {rent}", Brand('<b onclick="x">Acme', footer=HOSTILE))
    seen = Text.read(mail.html)
    assert not {"script", "img", "a", "link", "iframe", "form"} & {tag for tag, _ in seen.tags}
    assert not any(name.startswith("on") or name in ("src", "href") for _, attrs in seen.tags for name, _ in attrs)
    assert "<script>alert(1)</script>" in "".join(seen.words)
    message = read(mail.draft())
    assert message["Bcc"] is None and "Bcc: eve@evil.org" in message["Subject"]
    assert sorted(set(message.keys())) == ["Cc", "Content-Type", "From", "MIME-Version", "Subject", "To", "X-Unsent"]
    for text in (mail.subject, mail.text, mail.html):
        assert not {"\x1b", "\u202e", "\r"} & set(text)
    assert not [line for line in mail.text.split("\n") if line.startswith("Bcc")]


def test_what_is_fetched_is_nothing(page: Page) -> None:
    html = mail_of(Letter(page, "sheet")).html
    assert not [word for word in ("http:", "https:", "url(", "<link", "@import", "src=", "cid:") if word in html]


@given(st.text(max_size=300))
def test_no_name_breaks_a_header(name: str) -> None:
    people = envelope(None, ["a@b.c"])
    subject = "".join(c for c in name if c.isprintable())  # as letter.clean leaves it
    text = read(Mail(people, subject, "t", "<p>h", {}).draft())
    assert set(text.keys()) <= {"Subject", "To", "X-Unsent", "MIME-Version", "Content-Type"}
    assert text["To"] == "a@b.c"


ENCODED = [
    "=?utf-8?q?a=0ABcc:_eve@evil.org?=",
    "=?utf-8?b?YQ0KQmNjOiBlQHYub3Jn?= x",
    "x =?us-ascii?Q?=00=0D=0A=0D=0Ab?=",
]


@pytest.mark.parametrize("encoded", ENCODED)
def test_an_encoded_word_is_text(encoded: str) -> None:
    """The library decodes one, line breaks and all, wherever it stands in a header."""
    people = envelope(f"{encoded} <me@acme.com>", [f'"{encoded}" <a@b.c>', "d@e.f"], [f"{encoded} <g@h.i>"])
    mail = Mail(people, encoded, "t", "<p>h", {f"{encoded}.pdf".replace("/", ""): b"%PDF-"})
    for data in (mail.draft(), mail.ready(datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC))):
        text = read(data)
        assert set(text.keys()) <= {
            *("Subject", "From", "To", "Cc", "X-Unsent", "MIME-Version", "Content-Type", "Date", "Message-ID"),
        }
        assert text["Subject"] == encoded.replace("=?", "= ?")
        assert [a.addr_spec for a in text["To"].addresses] == ["a@b.c", "d@e.f"]
        (attached,) = text.iter_attachments()
        assert set(attached.keys()) <= {
            *("Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "MIME-Version"),
        }


@pytest.mark.parametrize(
    ("subject", "attachments"), [(ENCODED[0], {}), ("s", {f"{ENCODED[0]}.pdf": b"%PDF-"})], ids=("subject", "name")
)
def test_without_our_rule_an_encoded_word_adds_no_header_either(
    subject: str, attachments: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such a word some Pythons make a header, some an exception, and some (3.13, Debian's 3.11.2) harmless text."""
    monkeypatch.setattr("sheetgen.mail.message._literal", lambda text: text)
    mail = Mail(envelope(None, ["a@b.c"]), subject, "t", "<p>h", attachments)
    try:
        data = mail.draft()
    except MailError as error:
        assert "headers that are not its own" in str(error)
    else:
        assert not [part for part in email.message_from_bytes(data).walk() if "Bcc" in part]


def add_header(message: EmailMessage) -> bytes:
    return message.as_bytes().replace(b"\r\nTo: ", b"\r\nBcc: eve@evil.org\r\nTo: ")


def add_header_to_a_part(message: EmailMessage) -> bytes:
    return message.as_bytes().replace(b"\r\nContent-Disposition: ", b"\r\nX-Evil: 1\r\nContent-Disposition: ")


def refuse(message: EmailMessage) -> bytes:
    """As a library does that looks at what it writes."""
    raise MessageError("folded header contains newline")


@pytest.mark.parametrize("written", (add_header, add_header_to_a_part, refuse))
def test_a_header_that_got_in_is_seen(
    written: Callable[[EmailMessage], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tampered(EmailMessage):
        def as_bytes(self, *arguments: object, **options: object) -> bytes:
            self.__class__ = EmailMessage  # type: ignore[assignment]
            return written(self)

    mail = Mail(envelope(None, ["a@b.c"]), "s", "t", "<p>h", {"a.pdf": b"%PDF-"})
    assert mail.draft()
    monkeypatch.setattr("sheetgen.mail.message.EmailMessage", Tampered)
    with pytest.raises(MailError, match="headers that are not its own"):
        mail.draft()


BAD = {
    "line break": ("a@b.c\nBcc: eve@evil.org", "line breaks"),
    "carriage return": ("Ann\r\nBcc: eve@evil.org <a@b.c>", "line breaks"),
    "vertical tab": ("a@b.c\x0b", "line breaks"),
    "line separator": ("Ann\u2028x <a@b.c>", "line breaks"),
    "nul": ("a@b.c\x00", "line breaks"),
    "no domain": ("ann@", "is no mail address"),
    "no at": ("ann", "is no mail address"),
    "blank": (" ", "is no mail address"),
    "a space": ("ann lee@acme.com", "is no mail address"),
    "a command in it": ('"a> NOTIFY=NEVER"@acme.com', "is no mail address"),
    "an open bracket": ("Ann <a@b.c", "is no mail address"),
    "brackets twice": ("Ann <a@b.c> <d@e.f>", "is no mail address"),
    "by semicolon": ("a@b.c; d@e.f", "is no mail address"),
    "an open quote": ('"Ann <a@b.c>', "is no mail address"),
    "a group": ("all: a@b.c;", "is no mail address"),
    "not ASCII": ("jörg@acme.com", "Write it in ASCII"),
    "a domain in other letters": ("Jörg <ann@münchen.de>", "Write it in ASCII: a domain"),
    "a dash domain": ("a@-b.c", "is no mail address"),
    "a dash at the end": ("a@b.c-", "is no mail address"),
    "a label too long": ("a@" + "b" * 64 + ".c", "is no mail address"),
    "too long": ("a@" + "b." * 130 + "c", "is no mail address"),
    "a name too long": ("a" * 65 + "@b.c", "is no mail address"),
    "an encoded word": ("=?utf-8?q?a=0ABcc=3A_x=40y.z?=@b.c", "is no mail address"),
    "commas alone": (",,", "is no mail address"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("where", ["to", "cc", "from"])
def test_addresses_that_are_refused(case: str, where: str) -> None:
    text, expected = BAD[case]
    given_ = {"to": ["vp@acme.com"], "cc": [], "from": None} | {where: text if where == "from" else [text]}
    with pytest.raises(MailError) as caught:
        envelope(given_["from"], given_["to"], given_["cc"])  # type: ignore[arg-type]
    assert caught.value.problems[0].startswith(f"{where} is ") and expected in caught.value.problems[0]
    assert all(p.isprintable() and len(p) < 250 for p in caught.value.problems)


def test_addresses_that_are_taken() -> None:
    texts = ["a@b.c, Ann Lee <ann@acme.com>", '"Lee, Ann" <A.Lee+x@acme.co.uk>', "A@B.C", '"He said \\"hi\\"" <h@i.j>']
    recipients = envelope("me@localhost", texts, ["ann@ACME.com", "z@y.x"])
    assert recipients.recipients == ("a@b.c", "ann@acme.com", "A.Lee+x@acme.co.uk", "h@i.j", "z@y.x")  # nobody twice
    assert [a.display_name for a in recipients.to] == ["", "Ann Lee", "Lee, Ann", 'He said "hi"']
    with pytest.raises(MailError, match="from names 2 addresses"):
        envelope("a@b.c, d@e.f", ["x@y.z"])


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("a\nBcc: eve@evil.org", "must not hold line breaks"),
        ("a\r\n\r\nbody", "must not hold line breaks"),
        ("\u2028", "must not hold line breaks"),
        ("{anser}", "Did you mean answer?"),
        ("{answer.__class__}", "Known: "),
        ("{answer!r}", "Known: "),
        ("{answer:>9}", "Known: "),
        ("{}", "Known: "),
        ("{answer", "a brace is open"),
        ("  ", "is blank"),
    ],
)
def test_subjects_that_are_refused(template: str, expected: str, page: Page) -> None:
    with pytest.raises(MailError) as caught:
        Letter(page, "sheet").subject(template)
    assert expected in str(caught.value) and str(caught.value).isprintable()


def test_a_subject_of_ones_own(page: Page) -> None:
    letter = Letter(page, "q3")
    assert letter.subject("{{GPUs}} {name} {as_of}: {monthly}") == (
        f"{{GPUs}} q3 2026-11-20: {page.cards[0].monthly}; {page.cards[1].monthly}"
    )
    assert len(letter.subject("x" * 5000)) == 200


def test_a_long_subject_leaves_models_out(page: Page) -> None:
    cards = tuple(replace(page.cards[0], model=f"Model {n} of a long name") for n in range(5))
    single, five = (Letter(replace(page, cards=c), "sheet").subject("Sheet: {models}") for c in (cards[:1], cards))
    assert single == "Sheet: Model 0 of a long name"
    assert five == "Sheet: Model 0 of a long name, Model 1 of a long name and 3 more" and len(five) <= 78
    assert Letter(replace(page, cards=cards), "sheet").subject("{models} and {models}").count("and 4 more") == 2
