"""Sends a message to a server: every recipient gets it once, is refused with a reason, or is reported as unsure.

Replies of a server are reported in words: at most one line of them, and never a secret.
"""

from __future__ import annotations

import base64
import contextlib
import io
import netrc
import os
import re
import smtplib
import socket
import ssl
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sheetgen.errors import shown
from sheetgen.input_files import read_bounded
from sheetgen.mail import MailError
from sheetgen.mail.message import clean

USER, PASSWORD = "SHEETGEN_SMTP_USER", "SHEETGEN_SMTP_PASSWORD"
_MOST_OF_LOGINS = 1_000_000  # bytes of a netrc file
PORTS = {"starttls": 587, "tls": 465, "none": 25}
_HOST = re.compile(r"(?P<host>\w(?:[\w.-]*\w)?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class Credentials:
    """A login; repr shows neither part."""

    user: str = field(repr=False)
    password: str = field(repr=False)
    source: str = ""  # where it was read, for messages


@dataclass(frozen=True)
class Server:
    """A mail server, its encryption, and the login."""

    host: str
    port: int
    security: str
    credentials: Credentials | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def server(
    text: str, security: str | None, path: str | None, environment: Mapping[str, str], notes: list[str]
) -> Server:
    """The server `HOST[:PORT]`. Port 465 means TLS from the start, any other STARTTLS, unless `security` says
    otherwise.

    Raises MailError for invalid text or login; warnings are added to `notes`.
    """
    if "@" in text:  # the part before it may be a password, and is not repeated
        raise MailError(
            "smtp holds an @. Write HOST or HOST:PORT alone: a login on a command line can be read by others. "
            f"It goes into {USER} and {PASSWORD}, or into --credentials."
        )
    match = _HOST.fullmatch(text)
    odd = match and "[" not in text and any(not 0 < len(label) <= 63 for label in match["host"].split("."))
    if not match or odd or (match["port"] and not 0 < int(match["port"]) < 65536):
        raise MailError(f"smtp is {shown(text)!r}. Write HOST or HOST:PORT, such as smtp.acme.com:587.")
    port = int(match["port"]) if match["port"] else None
    how = security or ("tls" if port == PORTS["tls"] else "starttls")
    host = match["host"].strip("[]")
    login = _from_file(path, host, notes) if path is not None else _from_environment(environment)
    if login is not None:
        for kind, secret in (("user name", login.user), ("password", login.password)):
            if not (secret.isascii() and secret.isprintable()):
                cannot = "holds characters that cannot be sent. Only printable ASCII can; mind line ends."
                raise MailError(f"{login.source}: the {kind} {cannot}")
        if how == "none":
            raise MailError(
                f"security is none, and {login.source} holds a password: it would be sent where all can read it. "
                "Use --security starttls or tls, or send without a login."
            )
    return Server(host, port or PORTS[how], how, login)


def _from_environment(environment: Mapping[str, str]) -> Credentials | None:
    user, password = (environment.get(name, "") for name in (USER, PASSWORD))
    if bool(user) != bool(password):
        there, missing = (USER, PASSWORD) if user else (PASSWORD, USER)
        raise MailError(f"{there} is set, and {missing} is not. Set both, or neither to send without a login.")
    return Credentials(user, password, f"{USER} and {PASSWORD}") if user else None


class _Logins(netrc.netrc):
    """The logins in the text of a netrc file; the library takes the name of a file alone."""

    def __init__(self, text: str) -> None:
        self.hosts, self.macros = {}, {}
        self._parse("", io.StringIO(text), False)  # type: ignore[attr-defined]


def _from_file(path: str, host: str, notes: list[str]) -> Credentials:
    """The login for this host in a netrc file. Messages never quote the file: any word may be the password."""
    where = shown(path, 200)
    try:
        text = read_bounded(Path(path), _MOST_OF_LOGINS, pipes=True).decode()
        entries = _Logins(text)
        mode = Path(path).stat().st_mode
    except UnicodeDecodeError:
        raise MailError(f"{where}: cannot be read (is no text in UTF-8). Name a file with the login.") from None
    except (OSError, ValueError) as error:
        raise MailError(f"{where}: {error}. Name a file with the login.") from None
    except netrc.NetrcParseError as error:
        raise MailError(f"{where}:{error.lineno}: {_LINES}") from None
    entry = entries.hosts.get(host)  # never the entry `default`, which could send a login to the wrong host
    if entry is None:
        raise MailError(f"{where}: has no entry for {host}. Add: machine {host} login USER password PASSWORD.")
    if os.name == "posix" and stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        notes.append(f"{where}: others on this machine can read it. Close it with: chmod 600.")
    if not entry[0] or not entry[2]:
        raise MailError(f"{where}: the entry for {host} lacks a login or a password. {_LINES}")
    return Credentials(entry[0], entry[2], where)


_LINES = "Write lines such as: machine smtp.acme.com login USER password PASSWORD (as .netrc, in quotes if need be)."


_CLOSED = "closed the connection before the message was over"
FIRST_PAUSE = 4.0  # seconds; each further pause is twice as long
SESSION = 10  # times --timeout: the most for one connection
_MOST_LINES, _MOST_BYTES = 100, 1 << 16  # of one reply; real ones have twenty lines
_PIECE = 1 << 14  # bytes sent at once, each piece within --timeout seconds


@dataclass(frozen=True)
class Delivery:
    """The result for each recipient. `unsure`: the whole message was sent, but the server did not confirm it."""

    accepted: tuple[str, ...]
    refused: dict[str, str] = field(default_factory=dict)  # address: reason
    unsure: tuple[str, ...] = ()
    attempts: int = 1


class Failure(Exception):
    """A failure in words without a full stop; is_temporary: trying again may help."""

    def __init__(self, words: str, is_temporary: bool) -> None:
        super().__init__(words)
        self.words, self.is_temporary = words, is_temporary


def reply_failure(code: int, reply: bytes | str, server: Server, problem: str) -> Failure:
    """The failure that an SMTP reply means: 4xx is temporary, 5xx permanent."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    words = clean(_redacted(text, server)).rstrip(".")
    return Failure(f"{problem} ({code}{f' {shown(words, 120)}' if words else ''})", 400 <= code < 500 or code == -1)


_CHECK = "check host and port of --smtp"
# By kinds of errors, of which the first that fits counts: the words, and whether to try again.
_OF_ERROR: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, bool], ...] = (
    (smtplib.SMTPServerDisconnected, _CLOSED, True),
    (smtplib.SMTPException, "offers no login that this program knows (PLAIN, LOGIN, CRAM-MD5)", False),
    (ssl.SSLError, "does not speak TLS as asked; check the port, or try the other --security", False),
    (TimeoutError, f"cannot be reached (no answer in time); {_CHECK}", False),
    (socket.gaierror, "cannot be reached (no such host is known); check the name in --smtp", False),
    ((ConnectionResetError, BrokenPipeError), _CLOSED, True),
)


def session_failure(error: Exception, server: Server) -> Failure:
    """The failure that an error of a session means."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, smtplib.SMTPAuthenticationError):
        if 400 <= error.smtp_code < 500:
            return Failure(f"could not check the login ({error.smtp_code})", True)
        source = server.credentials.source if server.credentials else ""
        # Without the server's own words: some servers repeat the login.
        return Failure(f"refused the user name or the password ({error.smtp_code}); check {source}", False)
    if isinstance(error, smtplib.SMTPResponseException):
        problem = "does not take mail now" if isinstance(error, smtplib.SMTPConnectError) else "broke off"
        return reply_failure(error.smtp_code, error.smtp_error, server, problem)
    if isinstance(error, smtplib.SMTPServerDisconnected) and isinstance(error.__context__, TimeoutError):
        return Failure("did not answer in time; see --timeout", True)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"shows a certificate that is not trusted ({clean(error.verify_message)})"
        return Failure(f"{why}; where your company signs its own, name its authority's file in SSL_CERT_FILE", False)
    for kind, words, is_temporary in _OF_ERROR:
        if isinstance(error, kind):
            return Failure(words, is_temporary)
    reason = (getattr(error, "strerror", None) or type(error).__name__).lower()
    return Failure(f"cannot be reached ({clean(reason)}); {_CHECK}", False)


def _redacted(text: str, server: Server) -> str:
    """`text` without the login, plain or in base64, as a server may repeat it and messages are passed on."""
    if server.credentials is None:
        return text
    user, password = server.credentials.user, server.credentials.password
    for secret in (f"\0{user}\0{password}", password):
        encoded = base64.b64encode(secret.encode()).decode()
        text = text.replace(secret, "***").replace(encoded, "***").replace(encoded.rstrip("="), "***")
    return text


def deliver(
    server: Server,
    sender: str,
    recipients: Sequence[str],
    message: bytes,
    *,
    attempts: int = 4,
    timeout: float = 30.0,
    report: Callable[[str], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery:
    """Send the message; temporary failures (4xx, a connection that breaks before the end of the message) are retried.

    Raises MailError if nobody got it; if some did, the Delivery has the reasons for the others.
    """
    accepted: list[str] = []
    refused: dict[str, str] = {}
    pending = {address: "" for address in recipients}
    tried = 0
    try:
        while pending and tried < attempts:
            if tried:
                pause = FIRST_PAUSE * 2 ** (tried - 1)
                report(f"{server}: {next(iter(pending.values()))}; attempt {tried + 1} of {attempts} in {pause:g} s")
                sleep(pause)
            tried += 1
            session = _Session(server)
            try:
                session.send(sender, tuple(pending), message, timeout)
                for address in tuple(pending):
                    failure = session.failed.get(address)
                    if failure is not None and failure.is_temporary:
                        pending[address] = failure.words
                        continue
                    del pending[address]
                    if failure is None:
                        accepted.append(address)
                    else:
                        refused[address] = failure.words
            except (OSError, smtplib.SMTPException, Failure, KeyboardInterrupt) as error:
                if session.handed_over:  # the recipients without a failure may have the message: no second attempt
                    refused |= {address: failure.words for address, failure in session.failed.items()}
                    unsure = tuple(address for address in pending if address not in session.failed)
                    return Delivery(tuple(accepted), refused, unsure, tried)
                if isinstance(error, KeyboardInterrupt):
                    raise
                failure = session_failure(error, server)
                pending = dict.fromkeys(pending, failure.words)
                if not failure.is_temporary:
                    break
    except KeyboardInterrupt:
        if not accepted:
            raise
        pending = {a: why or "interrupted" for a, why in pending.items()}
    refused |= pending
    if not accepted:
        after = f" after {tried} attempts" if tried > 1 else ""
        alike = len(set(refused.values())) == 1  # then one line suffices
        lines = [f"{'' if alike else f'{address}: '}{why}{after}" for address, why in refused.items()]
        raise MailError(*(f"{server}: {line}. Nothing was sent." for line in (lines[:1] if alike else lines)))
    return Delivery(tuple(accepted), refused, (), tried)


class _Bounded(smtplib.SMTP):
    """A connection with limits on the time and size of each reply, and on the time of the whole session; sockets limit
    only the time between two bytes."""

    def __init__(self, host: str, port: int, timeout: float, **more: Any) -> None:
        self._wait, self._ends = timeout, time.monotonic() + SESSION * timeout
        super().__init__(host, port, timeout=timeout, **more)

    def _allow(self, until: float) -> None:
        """Let the socket wait until `until` or the session's end; raises TimeoutError or Failure if that is past."""
        now = time.monotonic()
        if now >= self._ends:
            raise Failure(f"took more than {SESSION * self._wait:g} s in all; see --timeout", False)
        if now >= until:
            raise TimeoutError
        if self.sock is not None:
            self.sock.settimeout(min(until, self._ends) - now)

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None:
            self.file = _Lines(self)
        self.file.begin_reply(time.monotonic() + self._wait)
        try:
            return super().getreply()
        except Failure:
            self.close()
            raise

    def send(self, s: Any) -> None:
        data = s.encode(self.command_encoding) if isinstance(s, str) else bytes(s)
        for begin in range(0, len(data), _PIECE):
            self._allow(time.monotonic() + self._wait)
            super().send(data[begin : begin + _PIECE])


class _BoundedTls(_Bounded, smtplib.SMTP_SSL):
    """A limited connection that is encrypted from the start."""


class _Lines:
    """A server's replies line by line and with limits, in place of the file object that smtplib reads."""

    def __init__(self, connection: _Bounded) -> None:
        self._connection, self._held = connection, bytearray()

    def begin_reply(self, until: float) -> None:
        self._until, self._n_lines, self._n_bytes = until, 0, 0

    def readline(self, most: int) -> bytes:
        while (end := self._held.find(b"\n") + 1) == 0 and len(self._held) < most:
            self._connection._allow(self._until)
            try:
                more = self._connection.sock.recv(4096)  # type: ignore[union-attr]
            except TimeoutError:
                self._connection._allow(self._until)  # raises Failure if it is the session's end
                raise
            if not more:
                end = len(self._held)
                break
            self._held += more
        line = bytes(self._held[: end or most])
        del self._held[: len(line)]
        self._n_lines, self._n_bytes = self._n_lines + 1, self._n_bytes + len(line)
        if self._n_lines > _MOST_LINES or self._n_bytes > _MOST_BYTES:
            raise Failure("answers without an end; is it a mail server", False)
        return line

    def close(self) -> None:
        self._held.clear()


@dataclass
class _Session:
    """One connection for one message."""

    server: Server
    handed_over: bool = False  # the whole message was sent: a later failure must not be retried
    failed: dict[str, Failure] = field(default_factory=dict)  # by recipient that the server refused

    def send(self, sender: str, recipients: Sequence[str], message: bytes, timeout: float) -> None:
        """Send the message. Raises Failure and the errors of smtplib and sockets; refused recipients are in
        `failed`."""
        host, port, login = self.server.host, self.server.port, self.server.credentials
        context = ssl.create_default_context()  # checks certificate and name; SSL_CERT_FILE adds an authority
        is_tls = self.server.security == "tls"
        smtp = _BoundedTls(host, port, timeout, context=context) if is_tls else _Bounded(host, port, timeout)
        try:
            smtp.ehlo_or_helo_if_needed()
            if self.server.security == "starttls":
                if not smtp.has_extn("starttls"):
                    problem = "offers no encryption (STARTTLS), and nothing is sent without"
                    raise Failure(f"{problem}; try --security tls", False)
                smtp.starttls(context=context)
                smtp.ehlo_or_helo_if_needed()
            if login is not None:
                try:
                    smtp.login(login.user, login.password)
                except ValueError:  # a challenge that is no base64
                    raise Failure("asks for the login in a form that cannot be read", False) from None
            self._transaction(smtp, sender, recipients, message)
            with contextlib.suppress(smtplib.SMTPException, OSError, Failure):
                smtp.quit()
        finally:
            smtp.close()

    def _transaction(self, smtp: _Bounded, sender: str, recipients: Sequence[str], message: bytes) -> None:
        code, reply = smtp.mail(sender, [f"size={len(message)}"] if smtp.has_extn("size") else [])
        if code != 250:
            problem = "refused the message" if code == 552 else f"refused {sender} as the sender"  # 552: its size
            raise reply_failure(code, reply, self.server, problem)
        for address in recipients:
            code, reply = smtp.rcpt(address)
            if code == 421:
                raise reply_failure(code, reply, self.server, "broke off")
            if code not in (250, 251):
                self.failed[address] = reply_failure(code, reply, self.server, "refused the recipient")
        taken = [address for address in recipients if address not in self.failed]
        if not taken:
            return
        code, reply = smtp.docmd("DATA")
        if code == 354:  # with any other reply the server does not want the message
            smtp.send(re.sub(rb"(?m)^\.", b"..", message).removesuffix(b"\r\n") + b"\r\n.\r\n")
            self.handed_over = True
            code, reply = smtp.getreply()
            if not 200 <= code < 600:  # it has the message, but its answer is no reply
                raise reply_failure(code, reply, self.server, "broke off")
            if code < 300:
                return
        self.failed |= dict.fromkeys(taken, reply_failure(code, reply, self.server, "refused the message"))
