"""`sheetgen mail` from end to end: drafts, sending, the codes that it exits with."""

from __future__ import annotations

import email
import email.policy
import json
import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from amounts import IN_LONG
from click.testing import Result
from command_lines import run_command
from packages import part_of, rewritten
from post_office import HOST, PASSWORD, USER, Post, free_port
from recalculation import edit

from sheetgen.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
FEW = ("--instances", "aws/g6e.xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g")
SHEET = ("--models", "8b", "--workloads", "rag", "--tiers", "32", *FEW, "--as-of", "2026-11-20")
SECRET = "wr0ng-secret"


def run(*arguments: object, **environment: str) -> Result:
    result = run_command(*arguments, COLUMNS="80", **environment)
    assert SECRET not in result.output and PASSWORD not in result.output
    return result


def read(path: Path) -> EmailMessage:
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    assert run("build", *SHEET, "--out", folder, "--name", "q3").exit_code == 0
    return folder


def test_a_draft_has_what_build_writes(built: Path, empty_folder: Path) -> None:
    old = empty_folder / "old.json"
    assert run("build", *SHEET, "--tiers", "16", "--format", "json", "--out", ".", "--name", "old").exit_code == 0
    result = run("mail", "--to", "vp@acme.com", *SHEET, "--name", "q3", "--since", old, "--out", "o")
    assert result.exit_code == 0 and result.stdout == "wrote o/q3.eml\n" and result.stderr == ""
    message = read(empty_folder / "o" / "q3.eml")
    attached = {part.get_filename(): part.get_content() for part in message.iter_attachments()}
    assert attached == {name: (built / name).read_bytes() for name in ("q3.pdf", "q3.xlsx")}
    text = message.get_body(("plain",))
    assert text is not None and "WHAT CHANGED SINCE old.json" in text.get_content()
    assert "16 → 32" in text.get_content()
    assert message["X-Unsent"] == "1" and message["To"] == "vp@acme.com"


@pytest.mark.long
def test_a_workbook_that_is_there_is_attached_as_it_is(built: Path, empty_folder: Path) -> None:
    result = run("mail", built / "q3.xlsx", "--to", "vp@acme.com", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (
        told["status"] == "draft"
        and told["file"] == "output/q3.eml"
        and set(told["attachments"]) == {"q3.pdf", "q3.xlsx"}
    )
    attached = {p.get_filename(): p.get_content() for p in read(empty_folder / "output" / "q3.eml").iter_attachments()}
    assert attached["q3.xlsx"] == (built / "q3.xlsx").read_bytes() and attached["q3.pdf"].startswith(b"%PDF-")


@pytest.mark.long
def test_without_pango_a_workbook_goes_out_alone(
    built: Path, empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sheetgen.errors import MissingLibraryError
    from sheetgen.writers import pdf

    def refuse(*_: object) -> bytes:
        raise MissingLibraryError("Pango is missing.")

    monkeypatch.setattr(pdf, "write_pdf", refuse)
    result = run("mail", built / "q3.xlsx", "--to", "vp@acme.com")
    assert result.exit_code == 0 and result.stderr == "Pango is missing.\n"
    message = read(empty_folder / "output" / "q3.eml")
    assert [part.get_filename() for part in message.iter_attachments()] == ["q3.xlsx"]
    for kind in ("plain", "html"):
        body = message.get_body((kind,))
        assert body is not None and ".pdf" not in body.get_content() and "q3.xlsx" in body.get_content()


@pytest.mark.long
def test_a_workbook_that_was_not_recalculated_is_refused(built: Path, empty_folder: Path) -> None:
    edit(built / "q3.xlsx", Path("edited.xlsx"), {"in_tier_1": 512})
    result = run("mail", "edited.xlsx", "--to", "vp@acme.com")
    assert result.exit_code == 1 and "are not what its inputs give" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and [p.name for p in empty_folder.iterdir()] == ["edited.xlsx"]


@pytest.mark.long
def test_a_workbook_whose_shown_answer_was_typed_over_is_refused(built: Path, empty_folder: Path) -> None:
    """A cell that no name is of: the results agree, and the page in the attachment would not."""

    def typed_over(data: bytes) -> bytes:
        new, n = re.subn(r'<c r="B7"[^>]*>.*?</c>', '<c r="B7" t="str"><v>1 laptop</v></c>', data.decode(), count=1)
        assert n == 1
        return new.encode()

    path = built / "q3.xlsx"
    rewritten(path, Path("over.xlsx"), {part_of(path, "Sizing sheet"): typed_over})
    result = run("mail", "over.xlsx", "--to", "vp@acme.com")
    assert result.exit_code == 1 and "1 formula was overwritten" in result.stderr
    assert [p.name for p in empty_folder.iterdir()] == ["over.xlsx"]


def test_a_request_whose_decision_asks_something_else_is_refused(empty_folder: Path) -> None:
    """People are typed on one of two sheets: the message would ask for others than the attachment's first sheet."""
    options = ("--workloads", "rag", "--users", "40", "--ask", "8b", *FEW, "--format", "xlsx", "--name", "q3")
    assert run("build", "--models", "8b", *options, "--out", ".").exit_code == 0
    edit(Path("q3.xlsx"), Path("typed.xlsx"), {"in_users": 80})
    result = run("mail", "typed.xlsx", "--to", "vp@acme.com")
    assert result.exit_code == 1 and "(Decision!B7, People 40)" in result.stderr
    if not IN_LONG:  # whose other half reads and builds the workbook once more
        return
    edit(Path("q3.xlsx"), Path("both.xlsx"), {"in_users": 80, "in_decision_users": 80})
    result = run("mail", "both.xlsx", "--to", "vp@acme.com")
    assert result.exit_code == 1 and "Decision" not in result.stderr, "not recalculated, but on both sheets alike"


@pytest.mark.long
def test_a_workbook_is_sent_under_no_other_name(built: Path, empty_folder: Path) -> None:
    """Facts are read from the workbook, names from the catalog: together they would say what is not so."""
    result = run("mail", built / "q3.xlsx", "--to", "vp@acme.com", "--models", "70b")
    assert result.exit_code == 1 and len(result.stderr.splitlines()) == 1
    assert "models names llama-3.1-70b" in result.stderr
    assert list(empty_folder.iterdir()) == []
    assert run("mail", built / "q3.xlsx", "--to", "vp@acme.com", "--models", "8b").exit_code == 0


@pytest.mark.long
def test_a_dry_run_leaves_nothing(empty_folder: Path) -> None:
    send = ("--from", "me@acme.com", "--smtp", f"{HOST}:{free_port()}", "--dry-run")
    result = run("mail", "--to", "vp@acme.com", *SHEET, *send, SHEETGEN_SMTP_USER=USER, SHEETGEN_SMTP_PASSWORD=SECRET)
    assert result.exit_code == 0 and "Nothing was sent or written." in result.stdout and "with a login" in result.stdout
    assert "To:       vp@acme.com" in result.stdout and "sizing-sheet.xlsx, " in result.stdout
    assert list(empty_folder.iterdir()) == []


def test_sent_and_partly_refused(post_office: Callable[..., Post], trusted: None, empty_folder: Path) -> None:
    post = post_office("tls")
    post.recipients["bob@acme.com"] = ["550 no such user"]
    login = {"SHEETGEN_SMTP_USER": USER, "SHEETGEN_SMTP_PASSWORD": PASSWORD}
    by = ("--from", "me@acme.com", "--smtp", f"{HOST}:{post.port}", "--security", "tls")
    to = ("--to", "vp@acme.com,bob@acme.com", "--cc", "cfo@acme.com")
    result = run("mail", *SHEET, *to, *by, "--json", **login)
    assert result.exit_code == 1 and result.stderr.splitlines() == [
        f"localhost:{post.port}: bob@acme.com: refused the recipient (550 no such user). It was not sent there."
    ]
    told = json.loads(result.stdout)
    assert told["status"] == "sent in part" and told["accepted"] == ["vp@acme.com", "cfo@acme.com"]
    assert list(told["refused"]) == ["bob@acme.com"]
    sender, recipients, data = post.taken[0]
    assert sender == "me@acme.com" and recipients == ("vp@acme.com", "cfo@acme.com") and post.encrypted == [True]
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert message["Cc"] == "cfo@acme.com" and message["X-Unsent"] is None and message["Date"] and message["Message-ID"]
    assert list(empty_folder.iterdir()) == []


@pytest.mark.long
def test_a_wrong_password_in_one_line(post_office: Callable[..., Post], trusted: None, empty_folder: Path) -> None:
    post = post_office("starttls")
    path = empty_folder / "login"
    path.write_text(f"machine {HOST} login {USER} password {SECRET}\n")
    path.chmod(0o600)
    by = ("--from", "me@acme.com", "--smtp", f"{HOST}:{post.port}", "--credentials", "login")
    result = run("mail", "--to", "vp@acme.com", *SHEET, *by)
    assert result.exit_code == 1 and result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert "(535); check login." in result.stderr


BAD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "header in an address": (("--to", "a@b.c\nBcc: e@f.g", *SHEET), 1, "to is 'a@b.c\\nBcc: e@f.g'."),
    "header in a subject": (("--to", "a@b.c", *SHEET, "--subject", "x\nBcc: e@f.g"), 1, "subject is 'x\\nBcc: e@f.g'."),
    "header in a sender": (("--to", "a@b.c", *SHEET, "--from", "x\r\n <a@b.c>"), 1, "from is 'x\\r\\n <a@b.c>'."),
    "nobody": (SHEET, 2, "Missing option '--to'"),
    "nothing": (("--to", "a@b.c"), 2, "Name a workbook, or what to build"),
    "no sender": (("--to", "a@b.c", *SHEET, "--smtp", "x"), 2, "Missing option '--from'"),
    "a login for nothing": (("--to", "a@b.c", *SHEET, "--credentials", "x"), 2, "name the server with --smtp"),
    "options beside a workbook": (
        ("x.xlsx", "--to", "a@b.c", "--tiers", "3"),
        2,
        "--tiers does not go with a workbook",
    ),
    "no such workbook": (("x.xlsx", "--to", "a@b.c"), 1, "x.xlsx: "),
    "no such sheet before": (("--to", "a@b.c", *SHEET, "--since", "x.xlsx"), 1, "x.xlsx: "),
    "no such login": (
        ("--to", "a@b.c", *SHEET, "--from", "a@b.c", "--smtp", "x", "--credentials", "nowhere"),
        1,
        "nowhere: cannot be read",
    ),
    "a name that leaves": (("--to", "a@b.c", *SHEET, "--name", "../x"), 1, "without a folder"),
    "a blank name": (("--to", "a@b.c", *SHEET, "--name", ""), 1, "name is ''."),
    "a blank folder": (("--to", "a@b.c", *SHEET, "--out", ""), 1, "out is blank."),
    "a login before the host": (
        ("--to", "a@b.c", *SHEET, "--from", "a@b.c", "--smtp", f"ann:{SECRET}@x:25"),
        1,
        "smtp holds an @.",
    ),
    "no such model": (("--to", "a@b.c", "--models", "lama-3.1-8b"), 1, "llama-3.1-8b"),
}


@pytest.mark.some(6)
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_told_in_a_line(case: str, empty_folder: Path) -> None:
    arguments, code, expected = BAD[case]
    result = run("mail", *arguments)
    assert result.exit_code == code and expected in result.stderr and result.stdout == ""
    assert code == 2 or len(result.stderr.splitlines()) == 1
    assert list(empty_folder.iterdir()) == []


def test_no_option_takes_a_password() -> None:
    names = {name for p in main.commands["mail"].params for name in p.opts}
    people = {"--users", "--requests-per-user-per-day"}
    assert not [n for n in names - people if "pass" in n or "user" in n or "secret" in n]
    with pytest.raises(AssertionError):
        run_output: Any = run("mail", "--to", SECRET)  # the helper sees a secret that is printed
        del run_output


def test_a_message_states_its_load_as_a_build_does(empty_folder: Path) -> None:
    commands = main.commands  # type: ignore[attr-defined]
    of_build, of_mail = ({parameter.name for parameter in commands[name].params} for name in ("build", "mail"))
    assert of_build - of_mail == {"format", "attach", "flags"}
    few = ("--models", "8b", "--ask", "8b", *FEW, "--as-of", "2026-11-20", "--out", ".")
    assert run("build", *few, "--users", "900", "--format", "json", "--name", "built").exit_code == 0
    (cell,) = (
        cell
        for cell in json.loads((empty_folder / "built.json").read_text())["cells"]
        if cell["workload"] == "rag"
    )  # fmt: skip
    told = run("mail", "--to", "vp@acme.com", *few, "--users", "900", "--dry-run").stdout
    assert "900 people" in told and f"${cell['monthly_usd']:,.0f} a month" in told
    own = run("mail", "--to", "vp@acme.com", *few, "--context", "8k", "--concurrent-requests", "9", "--dry-run")
    assert own.exit_code == 2  # a load of one's own at once is a tier, as it is of build
    if IN_LONG:  # drawn once more
        assert run("mail", "--to", "vp@acme.com", *few, "--context", "8k", "--dry-run").exit_code == 0
