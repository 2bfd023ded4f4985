"""Hand a message to a server: every recipient gets it once, is refused with a reason, or is reported as unsure.

What a server or a connection says is passed on in words: never more of it than a line, and no secret in it.
"""

from __future__ import annotations

import base64
import contextlib
import netrc
import os
import re
import smtplib
import socket
import ssl
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sheetgen.errors import shown
from sheetgen.mail import MailError
from sheetgen.mail.message import clean

USER, PASSWORD = "SHEETGEN_SMTP_USER", "SHEETGEN_SMTP_PASSWORD"
PORTS = {"starttls": 587, "tls": 465, "none": 25}
_HOST = re.compile(r"(?P<host>\w(?:[\w.-]*\w)?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class Credentials:
    """A login. Neither part is ever shown: repr has none."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    source: str = ""  # where they are from, for messages


@dataclass(frozen=True)
class Server:
    """Where to send, how it is encrypted, and who logs in."""

    host: str
    port: int
    security: str
    credentials: Credentials | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def server(
    text: str, security: str | None, path: str | None, environment: Mapping[str, str], notes: list[str]
) -> Server:
    """The server of `HOST[:PORT]`. Port 465 means TLS from the start, any other STARTTLS, unless stated otherwise.

    Raises MailError. What a reader should know, but that is no error, is added to `notes`.
    """
    if "@" in text:  # what stands before it may be a password, and is not repeated
        raise MailError(
            "smtp holds an @. Write HOST or HOST:PORT alone: a login on a command line can be read by others. "
            f"It goes into {USER} and {PASSWORD}, or into --credentials."
        )
    found = _HOST.fullmatch(text)
    odd = found and "[" not in text and any(not 0 < len(label) <= 63 for label in found["host"].split("."))
    if not found or odd or (found["port"] and not 0 < int(found["port"]) < 65536):
        raise MailError(f"smtp is {shown(text)!r}. Write HOST or HOST:PORT, such as smtp.acme.com:587.")
    port = int(found["port"]) if found["port"] else None
    how = security or ("tls" if port == PORTS["tls"] else "starttls")
    host = found["host"].strip("[]")
    login = _from_file(path, host, notes) if path is not None else _from_environment(environment)
    if login is not None and how == "none":
        raise MailError(
            f"security is none, and {login.source} holds a password: it would be sent where all can read it. "
            "Use --security starttls or tls, or send without a login."
        )
    return Server(host, port or PORTS[how], how, login)


def _from_environment(environment: Mapping[str, str]) -> Credentials | None:
    values = {name: environment.get(name, "") for name in (USER, PASSWORD)}
    missing = [name for name, value in values.items() if not value]
    if len(missing) == 2:
        return None
    if missing:
        there = USER if missing == [PASSWORD] else PASSWORD
        raise MailError(f"{there} is set, and {missing[0]} is not. Set both, or neither to send without a login.")
    return _checked(values[USER], values[PASSWORD], f"{USER} and {PASSWORD}")


def _from_file(path: str, host: str, notes: list[str]) -> Credentials:
    """The entry for this host. No word of the file gets into a message: it may be the password."""
    where = shown(path, 200)
    try:
        entries = netrc.netrc(path)
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is no text in UTF-8"
        raise MailError(f"{where}: cannot be read ({reason}). Name a file with the login.") from None
    except netrc.NetrcParseError as error:
        raise MailError(f"{where}:{error.lineno}: {_LINES}") from None
    found = entries.hosts.get(host)  # never the entry `default`: a login goes to the host that it is for
    if found is None:
        raise MailError(f"{where}: has no entry for {host}. Add: machine {host} login USER password PASSWORD.")
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
        notes.append(f"{where}: others on this machine can read it. Close it with: chmod 600.")
    if not found[0] or not found[2]:
        raise MailError(f"{where}: the entry for {host} lacks a login or a password. {_LINES}")
    return _checked(found[0], found[2], where)


_LINES = "Write lines such as: machine smtp.acme.com login USER password PASSWORD (as .netrc, in quotes if need be)."


def _checked(user: str, password: str, source: str) -> Credentials:
    for what, text in (("user name", user), ("password", password)):
        if not (text.isascii() and text.isprintable()):
            cannot = "holds characters that cannot be sent. Only printable ASCII can; mind line ends."
            raise MailError(f"{source}: the {what} {cannot}")
    return Credentials(user, password, source)


_CLOSED = "closed the connection before the message was over"
FIRST_PAUSE = 4.0  # seconds; each next one is twice as long


@dataclass(frozen=True)
class Delivery:
    """What became of each recipient. `unsure`: the whole message went, and the server did not say whether it has it."""

    accepted: tuple[str, ...]
    refused: dict[str, str] = field(default_factory=dict)  # address: why
    unsure: tuple[str, ...] = ()
    attempts: int = 1


@dataclass(frozen=True)
class Failure:
    """Why something was not taken, in words without a full stop; whether trying again may help."""

    words: str
    is_temporary: bool


def of_reply(code: int, reply: bytes | str, server: Server, what: str) -> Failure:
    """A reply of SMTP: 4xx is for a time, 5xx for good."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    words = clean(_redacted(text, server)).rstrip(".")
    return Failure(f"{what} ({code}{f' {shown(words, 120)}' if words else ''})", 400 <= code < 500 or code == -1)


def of_error(error: Exception, server: Server) -> Failure:
    """What ended a session before the message was over."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        if 400 <= error.smtp_code < 500:
            return Failure(f"could not check the login ({error.smtp_code})", True)
        source = server.credentials.source if server.credentials else ""
        # Its own words stay out: some servers repeat what they were sent.
        return Failure(f"refused the user name or the password ({error.smtp_code}); check {source}", False)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return Failure(_lacks(error), False)
    if isinstance(error, smtplib.SMTPSenderRefused):
        too_large = error.smtp_code == 552  # the size is stated with the sender
        what = "refused the message" if too_large else f"refused {error.sender} as the sender"
        return of_reply(error.smtp_code, error.smtp_error, server, what)
    if isinstance(error, smtplib.SMTPConnectError):
        return of_reply(error.smtp_code, error.smtp_error, server, "does not take mail now")
    if isinstance(error, smtplib.SMTPResponseException):
        return of_reply(error.smtp_code, error.smtp_error, server, "broke off")
    if isinstance(error, smtplib.SMTPServerDisconnected):
        if "timed out" in str(error):
            return Failure("did not answer in time; see --timeout", True)
        return Failure(_CLOSED, True)
    if isinstance(error, smtplib.SMTPException):
        return Failure(_lacks(error), False)
    return _of_network(error)


def _lacks(error: smtplib.SMTPException) -> str:
    if "STARTTLS" in str(error):
        return "offers no encryption (STARTTLS), and nothing is sent without; try --security tls"
    return "offers no login that this program knows (PLAIN, LOGIN, CRAM-MD5)"


def _of_network(error: Exception) -> Failure:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"shows a certificate that is not trusted ({clean(error.verify_message)})"
        return Failure(f"{why}; where your company signs its own, name its authority's file in SSL_CERT_FILE", False)
    if isinstance(error, ssl.SSLError):
        return Failure("does not speak TLS as asked; check the port, or try the other --security", False)
    if isinstance(error, TimeoutError):
        return Failure("cannot be reached (no answer in time); check host and port of --smtp", False)
    if isinstance(error, socket.gaierror):
        return Failure("cannot be reached (no such host is known); check the name in --smtp", False)
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return Failure(_CLOSED, True)
    reason = (getattr(error, "strerror", None) or type(error).__name__).lower()
    return Failure(f"cannot be reached ({clean(reason)}); check host and port of --smtp", False)


def _redacted(text: str, server: Server) -> str:
    """`text` without the login, as it is or in base64: what a server repeats ends in a message that is passed on."""
    if server.credentials is None:
        return text
    user, password = server.credentials.user, server.credentials.password
    for secret in (f"\0{user}\0{password}", password):
        encoded = base64.b64encode(secret.encode()).decode()
        text = text.replace(secret, "***").replace(encoded, "***").replace(encoded.rstrip("="), "***")
    return text


class _Watched:
    """Notes when the end of a message has left: what fails before it can be tried again, what fails after cannot."""

    handed_over = False

    def send(self, s: Any) -> None:
        super().send(s)  # type: ignore[misc]
        self.handed_over = self.handed_over or (isinstance(s, bytes) and s.endswith(b"\r\n.\r\n"))


class _Plain(_Watched, smtplib.SMTP): ...


class _Tls(_Watched, smtplib.SMTP_SSL): ...


def deliver(
    server: Server, sender: str, recipients: Sequence[str], message: bytes, *, attempts: int = 4, timeout: float = 30.0,
    report: Callable[[str], None] = lambda _: None, sleep: Callable[[float], None] = time.sleep,
) -> Delivery:  # fmt: skip
    """Send; what fails for a time (4xx, a connection that breaks before the message is over) is tried again.

    Raises MailError where nobody got it. Where some did, never: then the Delivery says who did not, and why.
    """
    accepted: list[str] = []
    refused: dict[str, str] = {}
    pending = {address: "" for address in recipients}
    tried = 0
    session: _Session | None = None
    try:
        while pending and tried < attempts:
            if tried:
                session = None
                pause = FIRST_PAUSE * 2 ** (tried - 1)
                report(f"{server}: {next(iter(pending.values()))}; attempt {tried + 1} of {attempts} in {pause:g} s")
                sleep(pause)
            tried += 1
            session = _Session(server, timeout, message)
            try:
                for address, failure in session.send(sender, tuple(pending)):
                    if failure is None:
                        accepted.append(address)
                        del pending[address]
                    elif failure.is_temporary:
                        pending[address] = failure.words
                    else:
                        refused[address] = failure.words
                        del pending[address]
            except (OSError, smtplib.SMTPException) as error:  # smtplib's are OSErrors by accident of its history
                if session.handed_over:
                    return _unsure(accepted, refused, pending, session, tried)
                failure = of_error(error, server)
                pending = dict.fromkeys(pending, failure.words)
                if not failure.is_temporary:
                    break
    except KeyboardInterrupt:
        if session is not None and session.handed_over:
            return _unsure(accepted, refused, pending, session, tried)
        if not accepted:
            raise
        pending = {a: why or "interrupted" for a, why in pending.items()}
    refused |= pending
    if not accepted:
        raise MailError(*_nobody(server, refused, tried))
    return Delivery(tuple(accepted), refused, (), tried)


def _unsure(
    accepted: Sequence[str], refused: dict[str, str], pending: dict[str, str], session: _Session, tried: int
) -> Delivery:
    failed = {address: failure.words for address, failure in session.failed.items()}
    unsure = tuple(address for address in pending if address not in failed)
    return Delivery(tuple(accepted), refused | failed, unsure, tried)


def _nobody(server: Server, refused: dict[str, str], tried: int) -> Iterator[str]:
    """One line where all failed alike, else one for each."""
    after = f" after {tried} attempts" if tried > 1 else ""
    alike = len(set(refused.values())) == 1
    for address, why in list(refused.items())[: 1 if alike else None]:
        yield f"{server}: {'' if alike else f'{address}: '}{why}{after}. Nothing was sent."


class _Session:
    """One connection, one message."""

    def __init__(self, server: Server, timeout: float, message: bytes) -> None:
        self._server, self._timeout, self._message = server, timeout, message
        self._smtp: _Plain | _Tls | None = None
        self.failed: dict[str, Failure] = {}  # recipients that the server did not take

    @property
    def handed_over(self) -> bool:
        return self._smtp is not None and self._smtp.handed_over

    def send(self, sender: str, recipients: Sequence[str]) -> list[tuple[str, Failure | None]]:
        """Each recipient with None or what failed. Raises what smtplib and sockets raise for the whole."""
        self._smtp = smtp = self._connected()
        try:
            outcome = self._transaction(smtp, sender, recipients)
            with contextlib.suppress(smtplib.SMTPException, OSError):
                smtp.quit()
            return outcome
        finally:
            smtp.close()

    def _connected(self) -> _Plain | _Tls:
        host, port, login = self._server.host, self._server.port, self._server.credentials
        context = ssl.create_default_context()  # checks certificate and name; SSL_CERT_FILE adds an authority
        smtp: _Plain | _Tls
        if self._server.security == "tls":
            smtp = _Tls(host, port, timeout=self._timeout, context=context)
        else:
            smtp = _Plain(host, port, timeout=self._timeout)
        try:
            smtp.ehlo_or_helo_if_needed()
            if self._server.security == "starttls":
                smtp.starttls(context=context)
                smtp.ehlo_or_helo_if_needed()
            if login is not None:
                smtp.login(login.user, login.password)
        except BaseException:
            smtp.close()
            raise
        return smtp

    def _transaction(
        self, smtp: _Plain | _Tls, sender: str, recipients: Sequence[str]
    ) -> list[tuple[str, Failure | None]]:
        options = [f"size={len(self._message)}"] if smtp.has_extn("size") else []
        code, reply = smtp.mail(sender, options)
        if code != 250:
            raise smtplib.SMTPSenderRefused(code, reply, sender)
        failed = self.failed
        for address in recipients:
            code, reply = smtp.rcpt(address)
            if code == 421:
                raise smtplib.SMTPResponseException(code, reply)
            if code not in (250, 251):
                failed[address] = of_reply(code, reply, self._server, "refused the recipient")
        taken = [address for address in recipients if address not in failed]
        if taken:
            try:
                code, reply = smtp.data(self._message)
            except smtplib.SMTPDataError as error:  # it did not ask for the message, whatever its code
                refused = of_reply(error.smtp_code, error.smtp_error, self._server, "refused the message")
                failed |= dict.fromkeys(taken, refused)
            else:
                if not 200 <= code < 600:  # it has the message, and what it says of it is no reply
                    raise smtplib.SMTPResponseException(code, reply)
                if code >= 300:
                    failed |= dict.fromkeys(taken, of_reply(code, reply, self._server, "refused the message"))
        return [(address, failed.get(address)) for address in recipients]
