"""The server to send by, and the credentials for it: from the environment or a file, never from a command line."""

from __future__ import annotations

import netrc
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sheetgen.errors import shown
from sheetgen.mail import MailError

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
