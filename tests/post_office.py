"""A post office for the tests of mail: what it took, what it is to answer, and raw sockets that talk SMTP."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from sheetgen.mail.smtp import Credentials, Server

HOST = "localhost"
USER, PASSWORD = "ann", "correct-horse-battery"
Script = Callable[[socket.socket, io.BufferedReader], None]


@dataclass
class Post:
    """A post office: what it took, and the replies that it gives instead of 250."""

    port: int = 0
    recipients: dict[str, list[str]] = field(default_factory=dict)  # replies to come, by address
    messages: list[str] = field(default_factory=list)  # replies to come, to a message
    taken: list[tuple[str, tuple[str, ...], bytes]] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        replies = self.recipients.get(address, [])
        if replies:
            return replies.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.encrypted.append(
            session.ssl is not None or bool(server.transport and server.transport.get_extra_info("sslcontext"))
        )
        if self.messages:
            return self.messages.pop(0)
        assert envelope.mail_from is not None and isinstance(envelope.original_content, bytes)
        self.taken.append((envelope.mail_from, tuple(envelope.rcpt_tos), envelope.original_content))
        return "250 OK"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: AuthResult
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(mechanism)
        return AuthResult(success=(data.login, data.password) == (USER.encode(), PASSWORD.encode()), handled=False)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def talk(connection: socket.socket, lines: io.BufferedReader, *replies: bytes) -> None:
    """Greet, then answer one line with one reply."""
    connection.sendall(b"220 here\r\n")
    for reply in replies:
        if not lines.readline():
            return
        connection.sendall(reply + b"\r\n")


def at(port: int, security: str = "none", password: str | None = None, host: str = HOST) -> Server:
    login = Credentials(USER, password, "the file") if password else None
    return Server(host, port, security, login)
