"""Real SMTP servers on loopback: one with TLS and a login, and ones that refuse, are slow, or hang up."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from post_office import HOST, Post, Script, free_port

from sheetgen.mail import smtp as smtp_module
from sheetgen.report.page import Page
from sheetgen.writers import pdf
from sheetgen.writers.formats import Options


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine trusts the servers' authority, as a company's would."""
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp_module, "FIRST_PAUSE", 0.01)
    for name in ("SHEETGEN_SMTP_USER", "SHEETGEN_SMTP_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="package", autouse=True)
def drawn_once() -> Iterator[None]:
    """These tests mail the same page again and again: one that is the same to the last word is laid out once."""
    write, kept = pdf.write_pdf, dict[str, bytes]()

    def write_once(page: Page, options: Options) -> bytes:
        key = repr((page, options.brand, options.archive))
        if key not in kept:
            kept[key] = write(page, options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pdf, "write_pdf", write_once)
        yield


@pytest.fixture
def post_office(authority: trustme.CA) -> Iterator[Callable[..., Post]]:
    """Open one: `starttls` and `tls` ask for a login, `none` does not."""
    with contextlib.ExitStack() as closing:

        def open_one(security: str = "starttls") -> Post:
            post = Post(port=free_port())
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(HOST).configure_cert(context)
            extra: dict[str, Any] = {}
            if security != "none":
                login = {"authenticator": post.authenticate, "auth_required": True}
                if security == "tls":
                    # aiosmtpd counts only STARTTLS as TLS: its rule is off, the socket itself is encrypted.
                    extra = {"ssl_context": context, "auth_require_tls": False, **login}
                else:
                    extra = {"tls_context": context, "require_starttls": True, **login}
            controller = Controller(post, hostname=HOST, port=post.port, **extra)
            controller.start()
            closing.callback(controller.stop, no_assert=True)
            return post

        yield open_one


@pytest.fixture
def scripted() -> Iterator[Callable[[Script], tuple[int, list[int]]]]:
    """A server of one's own: `script(connection, lines)` for each connection; the list counts these."""
    with contextlib.ExitStack() as closing:

        def open_one(script: Script) -> tuple[int, list[int]]:
            listening = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
            listening.settimeout(10)
            seen: list[int] = []

            def serve() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = listening.accept()
                        seen.append(1)
                        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
                            connection.settimeout(10)
                            script(connection, lines)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            closing.callback(thread.join, 5)
            closing.callback(listening.shutdown, socket.SHUT_RDWR)
            return int(listening.getsockname()[1]), seen

        yield open_one


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
