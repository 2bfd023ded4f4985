"""Delivery over real sockets: each recipient gets a message once, or it is said who did not, and no secret shows."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from post_office import PASSWORD, Post, Script, at, free_port, talk

from sheetgen.mail import MailError, smtp
from sheetgen.mail.smtp import Delivery, Server, deliver

# aiosmtpd counts STARTTLS alone as TLS, and warns where the socket is encrypted from the start.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

ANN, BOB, EVE = "ann@acme.com", "bob@acme.com", "eve@acme.com"
MESSAGE = b"Subject: x\r\n\r\n.a line that begins with a dot\r\n"
Open = Callable[..., Post]
Scripted = Callable[[Script], tuple[int, list[int]]]


def send(server: Server, *recipients: str, attempts: int = 3, timeout: float = 5.0) -> Delivery:
    return deliver(server, "me@acme.com", recipients or (ANN,), MESSAGE, attempts=attempts, timeout=timeout)


def refusal(server: Server, *recipients: str, **more: object) -> str:
    with pytest.raises(MailError) as caught:
        send(server, *recipients, **more)
    told = "\n".join(caught.value.problems)
    assert PASSWORD not in told and base64.b64encode(PASSWORD.encode()).decode() not in told
    assert all(len(p) < 400 and p.isprintable() and p.endswith(".") for p in caught.value.problems)
    return told


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_encrypted_with_a_login(security: str, post_office: Open, trusted: None) -> None:
    post = post_office(security)
    done = send(at(post.port, security, PASSWORD), ANN, BOB)
    assert done == Delivery((ANN, BOB)) and post.encrypted == [True] and len(post.logins) == 1
    assert post.taken == [("me@acme.com", (ANN, BOB), MESSAGE)]


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_wrong_password(security: str, post_office: Open, trusted: None) -> None:
    post = post_office(security)
    wrong = "wr0ng-secret"
    told = refusal(at(post.port, security, wrong))
    assert told.startswith(f"localhost:{post.port}: ") and "(535); check the file. Nothing was sent." in told
    assert wrong not in told and not post.taken


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_that_is_not_trusted(security: str, post_office: Open) -> None:
    post = post_office(security)
    told = refusal(at(post.port, security, PASSWORD))
    assert "certificate" in told and "SSL_CERT_FILE" in told
    assert not post.logins and not post.taken


def test_a_certificate_of_another_host(post_office: Open, trusted: None) -> None:
    post = post_office("starttls")
    assert "certificate" in refusal(at(post.port, "starttls", PASSWORD, host="127.0.0.1"))
    assert not post.logins


def test_never_less_encrypted_than_asked(post_office: Open, trusted: None) -> None:
    post = post_office("none")
    assert "offers no encryption (STARTTLS)" in refusal(at(post.port, "starttls", PASSWORD))
    assert not post.taken and not post.logins
    assert "does not speak TLS as asked" in refusal(at(post.port, "tls", PASSWORD))


def test_a_server_without_a_login(post_office: Open) -> None:
    assert "offers no login" in refusal(at(post_office("none").port, "none", PASSWORD))


def test_a_challenge_that_is_no_base64(scripted: Scripted) -> None:
    def asks(connection: socket.socket, lines: Any) -> None:
        talk(connection, lines, b"250-hello\r\n250 AUTH CRAM-MD5", b"334 abc")

    port, seen = scripted(asks)
    assert "asks for the login in a form that cannot be read" in refusal(at(port, "none", PASSWORD), attempts=2)
    assert len(seen) == 1


def test_some_are_refused_for_good(post_office: Open) -> None:
    post = post_office("none")
    post.recipients[BOB] = ["550 no such\x1b[31m user"]
    done = send(at(post.port), ANN, BOB, EVE)
    assert done.accepted == (ANN, EVE) and done.attempts == 1
    assert [*done.refused] == [BOB] and "(550 no such[31m user)" in done.refused[BOB]
    assert [taken[1] for taken in post.taken] == [(ANN, EVE)]


def test_all_are_refused_each_for_its_reason(post_office: Open) -> None:
    post = post_office("none")
    post.recipients |= {ANN: ["550 gone"], BOB: ["553 never"]}
    told = refusal(at(post.port), ANN, BOB).splitlines()
    assert [f"{ANN}: " in told[0] and "(550 gone)" in told[0], f"{BOB}: " in told[1], len(told)] == [True, True, 2]


def test_one_put_off_is_sent_later_and_the_others_once(post_office: Open) -> None:
    post = post_office("none")
    post.recipients[BOB] = ["451 greylisted", "451 greylisted"]
    assert send(at(post.port), ANN, BOB) == Delivery((ANN, BOB), attempts=3)
    assert [taken[1] for taken in post.taken] == [(ANN,), (BOB,)]


def test_one_put_off_for_ever_is_told(post_office: Open) -> None:
    post = post_office("none")
    post.recipients[BOB] = ["452 full"] * 9
    done = send(at(post.port), ANN, BOB, attempts=2)
    assert (done.accepted, [*done.refused], done.attempts) == ((ANN,), [BOB], 2) and "(452 full)" in done.refused[BOB]


@pytest.mark.parametrize(("replies", "attempts"), [(["451 later"], 2), (["451 later", "421 closing"], 3)])
def test_a_message_refused_for_a_time_is_tried_again(replies: list[str], attempts: int, post_office: Open) -> None:
    post = post_office("none")
    post.messages = list(replies)
    assert send(at(post.port), ANN, BOB) == Delivery((ANN, BOB), attempts=attempts)
    assert len(post.taken) == 1


def test_a_message_refused_for_good(post_office: Open) -> None:
    post = post_office("none")
    post.messages = ["554 too large"]
    assert refusal(at(post.port)).endswith(" (554 too large). Nothing was sent.")
    assert not post.taken


def test_pauses_grow(post_office: Open) -> None:
    post, pauses = post_office("none"), list[float]()
    post.messages = ["451 later"] * 3
    told: list[str] = []
    deliver(at(post.port), "a@b.c", (ANN,), MESSAGE, attempts=4, report=told.append, sleep=pauses.append)
    assert pauses == [0.01, 0.02, 0.04] and len(told) == 3 and "(451 later); attempt 2 of 4" in told[0]


def test_nobody_listens() -> None:
    port = free_port()
    assert refusal(at(port)).startswith(f"localhost:{port}: cannot be reached (connection refused); ")


def test_no_such_host() -> None:
    assert "(no such host is known)" in refusal(at(25, host="mail.invalid"))


def test_a_slow_server(scripted: Scripted) -> None:
    def silent(connection: socket.socket, lines: Any) -> None:
        lines.readline()

    port, seen = scripted(silent)
    begin = time.monotonic()
    told = refusal(at(port), timeout=0.3, attempts=2)
    assert "--timeout after 2 attempts" in told
    assert len(seen) == 2 and time.monotonic() - begin < 3


def drip(connection: socket.socket, lines: Any) -> None:
    """A greeting of one byte a moment: each comes in time, the whole never."""
    for byte in b"220 " + b"x" * 40:
        connection.sendall(bytes([byte]))
        time.sleep(0.04)


def never_done(connection: socket.socket, lines: Any) -> None:
    while True:
        connection.sendall(b"220-here\r\n" * 1000)


def never_a_line(connection: socket.socket, lines: Any) -> None:
    while True:
        connection.sendall(b"2" * 60_000)


def slow_at_each_step(connection: socket.socket, lines: Any) -> None:
    connection.sendall(b"220 here\r\n")
    while lines.readline():
        time.sleep(0.05)
        connection.sendall(b"250 and so on\r\n")


@pytest.mark.parametrize(
    ("script", "expected", "timeout", "session", "n_tries"),
    [
        (drip, "did not answer in time; see --timeout after 2 attempts", 0.2, 10, 2),
        (never_done, "answers without an end; is it a mail server", 5.0, 10, 1),
        (never_a_line, "broke off (500 Line too long)", 5.0, 10, 1),
        (slow_at_each_step, "took more than 1 s in all; see --timeout", 1.0, 1, 1),
    ],
)
def test_a_server_that_would_hold_us_for_ever(
    script: Script,
    expected: str,
    timeout: float,
    session: int,
    n_tries: int,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smtp, "SESSION", session)
    port, seen = scripted(script)
    begin = time.monotonic()
    many = [f"{i}@acme.com" for i in range(100)]
    assert expected in refusal(at(port), *many, timeout=timeout, attempts=2)
    assert len(seen) == n_tries and time.monotonic() - begin < 2


def test_one_that_hangs_up_early_is_tried_again(scripted: Scripted) -> None:
    def drops(connection: socket.socket, lines: Any) -> None:
        talk(connection, lines, b"250 hello", b"250 sender", b"250 recipient")

    port, seen = scripted(drops)
    assert "closed the connection" in refusal(at(port))
    assert len(seen) == 3


@pytest.mark.parametrize("slow", [False, True])
def test_a_connection_lost_after_the_message_is_never_tried_again(slow: bool, scripted: Scripted) -> None:
    def drops(connection: socket.socket, lines: Any) -> None:
        talk(connection, lines, b"250 hello", b"250 sender", b"250 recipient", b"550 none", b"354 go")
        while lines.readline() not in (b".\r\n", b""):
            pass
        if slow:
            lines.readline()

    port, seen = scripted(drops)
    done = send(at(port), ANN, BOB, timeout=0.5)
    assert done == Delivery((), {BOB: "refused the recipient (550 none)"}, (ANN,), 1) and len(seen) == 1


def ends(reply: bytes) -> Script:
    """A server that takes the message and says `reply` of it."""

    def script(connection: socket.socket, lines: Any) -> None:
        talk(connection, lines, b"250 hello", b"250 sender", b"250 recipient", b"354 go")
        while lines.readline() not in (b".\r\n", b""):
            pass
        connection.sendall(reply)
        lines.readline()

    return script


@pytest.mark.parametrize("reply", [b"banana\r\n", b"\r\n", b"999 what\r\n", b"250 " + b"x" * 20_000 + b"\r\n"])
def test_no_answer_to_a_whole_message_leaves_it_unsure(reply: bytes, scripted: Scripted) -> None:
    port, seen = scripted(ends(reply))
    assert send(at(port)) == Delivery((), {}, (ANN,), 1) and len(seen) == 1  # a second try could be a second message


def test_any_success_is_one(scripted: Scripted) -> None:
    port, _ = scripted(ends(b"252 will try\r\n"))
    assert send(at(port)) == Delivery((ANN,))


def test_a_message_that_was_never_asked_for_is_not_sent(scripted: Scripted) -> None:
    def skips(connection: socket.socket, lines: Any) -> None:
        talk(connection, lines, b"250 hello", b"250 sender", b"250 recipient", b"250 fine")
        lines.readline()

    port, _ = scripted(skips)
    assert "(250 fine)" in refusal(at(port))


def test_a_message_too_large(scripted: Scripted) -> None:
    port, _ = scripted(lambda connection, lines: talk(connection, lines, b"250-h\r\n250 SIZE 9", b"552 too large"))
    assert "(552 too large)" in refusal(at(port))


def test_a_server_that_is_closed_for_a_time(scripted: Scripted) -> None:
    port, seen = scripted(lambda connection, lines: connection.sendall(b"421 busy\r\n"))
    assert "(421 busy) after 3 attempts" in refusal(at(port)) and len(seen) == 3


def test_a_server_that_speaks_something_else(scripted: Scripted) -> None:
    port, _ = scripted(lambda connection, lines: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"))
    assert f"localhost:{port}: " in refusal(at(port))


def test_a_reply_that_repeats_the_login_is_not_repeated() -> None:
    from sheetgen.mail.smtp import reply_failure

    server = at(25, "tls", PASSWORD)
    both = base64.b64encode(f"\0ann\0{PASSWORD}".encode()).decode()
    for secret in (PASSWORD, base64.b64encode(PASSWORD.encode()).decode(), both):
        assert reply_failure(550, f"no {secret}", server, "refused").words == "refused (550 no ***)"
    assert PASSWORD not in repr(server) + str(server) and "ann" not in repr(server)


def test_an_interruption_after_some_got_it_is_told(post_office: Open) -> None:
    post = post_office("none")
    post.recipients[BOB] = ["451 later"]

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    done = deliver(at(post.port), "a@b.c", (ANN, BOB), MESSAGE, sleep=interrupt)
    assert done == Delivery((ANN,), {BOB: "refused the recipient (451 later)"}, (), 1)
