"""Server and login: from the environment or a file, and no word of either in a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from sheetgen.mail import MailError
from sheetgen.mail.smtp import PASSWORD, USER, Credentials, server

SECRET = "s3cr3t-w0rd"
LOGIN = {USER: "ann", PASSWORD: SECRET}


@pytest.mark.parametrize(
    ("text", "security", "expected"),
    [
        ("smtp.acme.com", None, ("smtp.acme.com", 587, "starttls")),
        ("smtp.acme.com:465", None, ("smtp.acme.com", 465, "tls")),
        ("smtp.acme.com:2525", "tls", ("smtp.acme.com", 2525, "tls")),
        ("relay", "none", ("relay", 25, "none")),
        ("[::1]:2525", None, ("::1", 2525, "starttls")),
    ],
)
def test_hosts(text: str, security: str | None, expected: tuple[str, int, str]) -> None:
    server_ = server(text, security, None, {}, [])
    assert (server_.host, server_.port, server_.security) == expected and server_.credentials is None


@pytest.mark.parametrize(
    "text",
    ["", " ", "a b", "smtp.acme.com:0", "smtp:99999", "smtps://x", "ann:pw", "a\nb", "x" * 64, "-x", "::1", "a..b"],
)
def test_hosts_that_are_refused(text: str) -> None:
    with pytest.raises(MailError, match=r"Write HOST or HOST:PORT"):
        server(text, None, None, {}, [])


@pytest.mark.parametrize("text", [f"ann:{SECRET}@smtp.acme.com:587", f"smtps://ann:{SECRET}@x", f"{SECRET}@"])
def test_a_password_before_the_host_is_not_repeated(text: str) -> None:
    with pytest.raises(MailError, match=r"HOST or HOST:PORT") as caught:
        server(text, None, None, {}, [])
    assert SECRET not in str(caught.value)


def test_a_login_of_the_environment() -> None:
    credentials = server("x", None, None, LOGIN, []).credentials
    assert credentials == Credentials("ann", SECRET, f"{USER} and {PASSWORD}") and SECRET not in repr(credentials)
    for name in LOGIN:
        with pytest.raises(MailError, match=r"is set, and \w+ is not") as caught:
            server("x", None, None, {**LOGIN, name: ""}, [])
        assert SECRET not in str(caught.value)


def test_a_login_of_a_file_is_for_its_host_alone(tmp_path: Path) -> None:
    path, notes = tmp_path / "login", list[str]()
    path.write_text(f'machine other.org login eve password x\nmachine smtp.acme.com login ann password "{SECRET} 2"\n')
    path.chmod(0o600)
    credentials = server("smtp.acme.com:465", None, str(path), LOGIN, notes).credentials
    assert (
        credentials is not None and (credentials.user, credentials.password) == ("ann", f"{SECRET} 2") and notes == []
    )
    with pytest.raises(MailError, match=r"login: has no entry for mail\.evil\.org"):
        server("mail.evil.org", None, str(path), LOGIN, notes)
    path.write_text(f"{path.read_text()}default login ann password {SECRET}\n")
    with pytest.raises(MailError, match=r"login: has no entry for mail\.evil\.org"):
        server("mail.evil.org", None, str(path), LOGIN, notes)
    path.chmod(0o644)
    assert server("smtp.acme.com", None, str(path), {}, notes).credentials == credentials.__class__(
        "ann", f"{SECRET} 2", str(path)
    )
    assert len(notes) == 1 and "chmod 600" in notes[0] and SECRET not in notes[0]


@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET}\n",
        f"machine x login ann pasword {SECRET}\n",
        f"machine x {SECRET}\n",
        f"machine x login ann password {SECRET}é\n",
        f"machine x password {SECRET}\n",
        f"machine x login ann password \x01{SECRET}\n",
        SECRET,
        "",
        "machine",
    ],
)
def test_a_file_that_is_wrong_is_not_quoted(text: str, tmp_path: Path) -> None:
    path = tmp_path / "login"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(MailError) as caught:
        server("x", None, str(path), {}, [])
    told = str(caught.value)
    assert SECRET not in told and told.startswith(str(path)) and "\n" not in told
    path.write_bytes(b"\xff\xfe" + SECRET.encode())
    with pytest.raises(MailError, match="cannot be read") as caught:
        server("x", None, str(path), {}, [])
    assert SECRET not in str(caught.value)


def test_a_password_never_goes_in_clear() -> None:
    with pytest.raises(MailError, match="where all can read it") as caught:
        server("x", "none", None, LOGIN, [])
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("secret", [f"{SECRET}\n", f"{SECRET}é", f"{SECRET}\x00"])
def test_what_cannot_be_sent_as_a_password(secret: str) -> None:
    with pytest.raises(MailError, match="the password holds characters") as caught:
        server("x", None, None, {**LOGIN, PASSWORD: secret}, [])
    assert SECRET not in str(caught.value)
