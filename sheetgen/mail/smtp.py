"""Hand a message to a server: every recipient gets it once, is refused with a reason, or is told to be unsure."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sheetgen.mail.error import MailError
from sheetgen.mail.replies import Failure, of_error, of_reply
from sheetgen.mail.server import Server

FIRST_PAUSE = 4.0  # seconds; each next one is twice as long


@dataclass(frozen=True)
class Delivery:
    """What became of each recipient. `unsure`: the whole message went, and the server did not say whether it has it."""

    accepted: tuple[str, ...]
    refused: dict[str, str] = field(default_factory=dict)  # address: why
    unsure: tuple[str, ...] = ()
    attempts: int = 1


class _Watched:
    """Notes when the end of a message has left: what fails before it can be tried again, what fails after cannot."""

    handed_over = False

    def send(self, s: Any) -> None:
        super().send(s)  # type: ignore[misc]
        self.handed_over = self.handed_over or (isinstance(s, bytes) and s.endswith(b"\r\n.\r\n"))


class _Plain(_Watched, smtplib.SMTP):
    pass


class _Tls(_Watched, smtplib.SMTP_SSL):
    pass


def deliver(
    server: Server,
    sender: str,
    recipients: Sequence[str],
    message: bytes,
    *,
    attempts: int = 4,
    timeout: float = 30.0,
    tell: Callable[[str], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery:
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
                tell(f"{server}: {next(iter(pending.values()))}; attempt {tried + 1} of {attempts} in {pause:g} s")
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
    told = {address: failure.words for address, failure in session.failed.items()}
    unsure = tuple(address for address in pending if address not in told)
    return Delivery(tuple(accepted), refused | told, unsure, tried)


def _nobody(server: Server, refused: dict[str, str], tried: int) -> Iterator[str]:
    """One line where all failed alike, else one for each."""
    after = f" after {tried} attempts" if tried > 1 else ""
    if len(set(refused.values())) == 1:
        yield f"{server}: {next(iter(refused.values()))}{after}. Nothing was sent."
    else:
        for address, why in refused.items():
            yield f"{server}: {address}: {why}{after}. Nothing was sent."


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
        host, port, how = self._server.host, self._server.port, self._server.security
        context = ssl.create_default_context()  # checks certificate and name; SSL_CERT_FILE adds an authority
        smtp: _Plain | _Tls
        if how == "tls":
            smtp = _Tls(host, port, timeout=self._timeout, context=context)
        else:
            smtp = _Plain(host, port, timeout=self._timeout)
        try:
            smtp.ehlo_or_helo_if_needed()
            if how == "starttls":
                smtp.starttls(context=context)
                smtp.ehlo_or_helo_if_needed()
            if self._server.credentials is not None:
                smtp.login(self._server.credentials.user, self._server.credentials.password)
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
        heard = [address for address in recipients if address not in failed]
        if heard:
            try:
                code, reply = smtp.data(self._message)
            except smtplib.SMTPDataError as error:  # it did not ask for the message, whatever its code
                failed |= dict.fromkeys(
                    heard, of_reply(error.smtp_code, error.smtp_error, self._server, "refused the message")
                )
            else:
                if not 200 <= code < 600:  # it has the message, and what it says of it is no reply
                    raise smtplib.SMTPResponseException(code, reply)
                if code >= 300:
                    failed |= dict.fromkeys(heard, of_reply(code, reply, self._server, "refused the message"))
        return [(address, failed.get(address)) for address in recipients]
