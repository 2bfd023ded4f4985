"""The message itself: headers, two bodies, attachments; as a draft for a mail program, or ready to send."""

from __future__ import annotations

import datetime
import email
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage, Message
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

from sheetgen.mail import MailError
from sheetgen.mail.addresses import Envelope

_POLICY = SMTP.clone(cte_type="7bit", max_line_length=78)  # any server takes it, with or without 8BITMIME
_KINDS = {
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pdf": "application/pdf",
}
_ENCODED = "=?"  # begins an encoded word: the library decodes `=?utf-8?q?=0ABcc:...?=` into a header of its own


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
