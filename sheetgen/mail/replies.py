"""What a server or a connection says, in words: never more of it than a line, and no secret in it."""

from __future__ import annotations

import base64
import smtplib
import socket
import ssl
from dataclasses import dataclass

from sheetgen.errors import shown
from sheetgen.mail.letter import clean
from sheetgen.mail.server import Server


@dataclass(frozen=True)
class Failure:
    """Why something was not taken, in words without a full stop; whether trying again may help."""

    words: str
    is_temporary: bool


def of_reply(code: int, reply: bytes | str, server: Server, what: str) -> Failure:
    """A reply of SMTP: 4xx is for a time, 5xx for good."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    said = clean(_redacted(text, server)).rstrip(".")
    return Failure(f"{what} ({code}{f' {shown(said, 120)}' if said else ''})", 400 <= code < 500 or code == -1)


def of_error(error: Exception, server: Server) -> Failure:
    """What ended a session before the message was over."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        if 400 <= error.smtp_code < 500:
            return Failure(f"could not check the login ({error.smtp_code})", True)
        source = server.credentials.source if server.credentials else ""
        # Its own words stay out: some servers repeat what they were sent.
        return Failure(f"refused the user name or the password ({error.smtp_code}); check {source}", False)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return Failure(_lacks(error, server), False)
    if isinstance(error, smtplib.SMTPSenderRefused):
        too_large = error.smtp_code == 552  # the size is told with the sender
        what = "refused the message" if too_large else f"refused {error.sender} as the sender"
        return of_reply(error.smtp_code, error.smtp_error, server, what)
    if isinstance(error, smtplib.SMTPConnectError):
        return of_reply(error.smtp_code, error.smtp_error, server, "does not take mail now")
    if isinstance(error, smtplib.SMTPResponseException):
        return of_reply(error.smtp_code, error.smtp_error, server, "broke off")
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return _disconnected(error, server)
    if isinstance(error, smtplib.SMTPException):
        return Failure(_lacks(error, server), False)
    return _of_network(error, server)


def _lacks(error: smtplib.SMTPException, server: Server) -> str:
    if "STARTTLS" in str(error):
        return "offers no encryption (STARTTLS), and nothing is sent without; try --security tls"
    return "offers no login that this program knows (PLAIN, LOGIN, CRAM-MD5)"


def _disconnected(error: smtplib.SMTPServerDisconnected, server: Server) -> Failure:
    if "timed out" in str(error):
        return Failure("did not answer in time; see --timeout", True)
    return Failure("closed the connection before the message was over", True)


def _of_network(error: Exception, server: Server) -> Failure:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure(
            f"shows a certificate that is not trusted ({clean(error.verify_message)}); where your company signs its "
            "own, name its authority's file in SSL_CERT_FILE",
            False,
        )
    if isinstance(error, ssl.SSLError):
        return Failure("does not speak TLS as asked; check the port, or try the other --security", False)
    if isinstance(error, TimeoutError):
        return Failure("cannot be reached (no answer in time); check host and port of --smtp", False)
    if isinstance(error, socket.gaierror):
        return Failure("cannot be reached (no such host is known); check the name in --smtp", False)
    if isinstance(error, (ConnectionResetError, BrokenPipeError)):
        return Failure("closed the connection before the message was over", True)
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
