"""`sheetgen mail`: a message with the workbook and the PDF, as a draft or sent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sheetgen.cli.options import SHEET, brand_option, command, common, text_options, with_scenario
from sheetgen.cli.output import note, print_json, say, step, warn_of_letters
from sheetgen.errors import MissingLibraryError, ScenarioError, shown
from sheetgen.input_files import ending_of
from sheetgen.sheet_files import OF_OUTPUT, brand_of, draw, place_of, with_tiers
from sheetgen.writers.formats import templates_folder
from sheetgen.writers.safe_files import check_places, write_files

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog
    from sheetgen.mail.message import Envelope, Mail
    from sheetgen.mail.smtp import Server
    from sheetgen.question.parse import Raw

MAIL_SCHEMA = 1
PLANS = (".yaml", ".yml", ".json")
OF_PLAN = ("pdf", "docx")  # what goes with a plan
WITH_A_PLAN = ("brand", "out", "name")  # options that go with it, and with a workbook


@command()
@click.argument("workbook", metavar="[SHEET.xlsx|PLAN.yaml|PLAN.xlsx]", required=False)
@click.option("--to", multiple=True, required=True, metavar="ADDRESSES", help="Who gets it; repeatable, or by commas.")
@click.option("--cc", multiple=True, metavar="ADDRESSES", help="Who gets a copy.")
@click.option("--from", "sender", metavar="ADDRESS", help="Who writes. A draft may leave it to the mail program.")
@click.option(
    "--subject",
    metavar="TEXT",
    help="May name {request} {answer} {load} {models} {rent} {monthly} {question} {as_of} {name}.",
)
@click.option("--since", metavar="OLD", help="Say what changed since that sheet or plan: its workbook, or JSON.")
@click.option("--actuals", metavar="FILE.csv", help="Of a plan with --since: what was spent, as `plan` takes it.")
@click.option("--pdf", metavar="FILE.pdf", help="Attach this PDF. Default: one drawn of the same numbers.")
@click.option("--smtp", metavar="HOST[:PORT]", help="Send it by this server. Default: write a draft, NAME.eml.")
@click.option(
    "--security",
    type=click.Choice(("starttls", "tls", "none")),
    help="How the connection is encrypted. Default tls on port 465, else starttls; never less than requested.",
)
@click.option("--credentials", metavar="FILE", help="The login in a file: machine HOST login USER password PASSWORD.")
@click.option("--attempts", type=click.IntRange(1, 20), default=4, help="Tries while it fails for a time. Default 4.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 3600),
    default=30.0,
    help="Seconds for each reply; ten times that for all. Default 30.",
)
@click.option("--dry-run", is_flag=True, help="Show the message; write nothing, connect to nothing.")
@text_options(*SHEET)
@click.option("--out", metavar="DIR", help="Folder for the draft. Default output.")
@click.option("--name", metavar="NAME", help="Name of the files. Default sizing-sheet, or the workbook's own.")
@click.option("--scenario", metavar="FILE.yaml", help="The options of the sheet in a file; flags win.")
@brand_option
@common
def mail(
    workbook: str | None,
    to: tuple[str, ...],
    cc: tuple[str, ...],
    sender: str | None,
    subject: str | None,
    since: str | None,
    actuals: str | None,
    pdf: str | None,
    smtp: str | None,
    security: str | None,
    credentials: str | None,
    attempts: int,
    timeout: float,
    dry_run: bool,
    as_json: bool,
    catalog: Catalog,
    quiet: bool,
    **options: Raw,
) -> None:
    """A message with the answer and its figures, workbook and PDF attached: a draft for a mail program, or sent.

    Without SHEET.xlsx the sheet is built, by the options of `build`. With it, that workbook is attached as it is, and
    the PDF and the words are those of what it says now; one that was not recalculated is refused.

    A plan (plan.yaml, its JSON, or its workbook as edited) is worked out anew and goes with its PDF and its Word
    document; its subject may name {title} {answer} {quarters} {p50} {p90} {budget} {as_of} {name}.

    The login for --smtp comes from SHEETGEN_SMTP_USER and SHEETGEN_SMTP_PASSWORD, or from --credentials; without
    either it is sent without one. Exit 1 where anyone did not get it, and each is named.

    \b
    Examples:
      sheetgen mail --to vp@acme.com --models 8b,70b,405b
      sheetgen mail --to vp@acme.com --models 8b,70b --ask 70b --users 900
      sheetgen mail output/q3.xlsx --to vp@acme.com --cc "Ann Lee <ann@acme.com>" --since output/q2.xlsx
      sheetgen mail --to vp@acme.com,cfo@acme.com --from me@acme.com --scenario q3.yaml --smtp smtp.acme.com:587
      sheetgen mail q3.xlsx --to vp@acme.com --subject "GPUs: {answer}" --dry-run
      sheetgen mail plan.yaml --to vp@acme.com --since plans/q4.json --dry-run
    """
    from sheetgen.mail.message import envelope
    from sheetgen.mail.smtp import server as server_of

    for name, value in (("security", security), ("credentials", credentials)):
        if value is not None and smtp is None:
            raise click.UsageError(f"--{name} is for sending: name the server with --smtp.")
    is_plan = workbook is not None and _is_plan(workbook)
    if actuals is not None and not is_plan:
        raise click.UsageError("--actuals is of a plan: name its plan.yaml.")
    addresses, notes = envelope(sender, to, cc), list[str]()
    if smtp is not None and addresses.sender is None:
        raise click.UsageError("Missing option '--from'. A server wants to know who writes.")
    server = server_of(smtp, security, credentials, os.environ, notes) if smtp is not None else None
    if server is None and not dry_run:
        check_places([Path(f"{place_of(options.get('out'), options.get('name'))}.eml")])
    if workbook is not None and is_plan:
        message, target = _plan_message(addresses, workbook, pdf, since, actuals, subject, catalog, options)
    else:
        message, target = _message(addresses, workbook, pdf, since, subject, catalog, options, notes)
    for line in notes:
        say(line, err=True)
    if dry_run:
        _show(message, server, as_json, quiet)
    elif server is None:
        write_files({target: message.draft()})
        _report(message, "draft", f"wrote {target}", as_json, quiet, file=str(target))
    else:
        _send(message, server, attempts, timeout, as_json, quiet)


def _message(
    addresses: Envelope,
    workbook: str | None,
    pdf: str | None,
    since: str | None,
    subject: str | None,
    catalog: Catalog,
    options: dict[str, Raw],
    notes: list[str],
) -> tuple[Mail, Path]:
    """The message, and the path of its draft. Where the PDF cannot be drawn it goes without, and `notes` say why."""
    from sheetgen.api import answer_of, answered
    from sheetgen.mail.message import Letter, Mail, bodies
    from sheetgen.question.sheet_question import ask
    from sheetgen.readback.package import read_file
    from sheetgen.readback.pulled import pull
    from sheetgen.readback.pulled_words import another_build
    from sheetgen.report.build_page import build_page

    files = dict[str, bytes]()
    if workbook is None:
        given = with_scenario(options.pop("scenario"), options)
        aside = {key: given.pop(key, None) for key in ("brand", *OF_OUTPUT)}
        if not given.get("models"):
            raise click.UsageError("Name a workbook, or what to build, such as --models 8b,70b,405b.")
        step("working it out")
        answer = answered(ask(catalog, with_tiers(given, catalog)))
    else:
        _refuse_options(options, "a workbook: that is attached as it is", (*WITH_A_PLAN, "models"))
        step(f"reading {shown(workbook)}, and working it out anew")
        files["xlsx"] = read_file(Path(workbook))
        pulled = pull(workbook, catalog, options["models"])
        if "ask" in pulled.options and (apart := pulled.asked_apart):
            raise ScenarioError(
                f"{shown(workbook, 200)}: Decision asks a question of its own ({'; '.join(apart)}), and the message is "
                "of Inputs. Type the same on both."
            )
        if other := pulled.other_results:
            raise ScenarioError(
                f"{shown(workbook, 200)}: {len(other):,} of its {len(pulled.snapshot.results):,} results are not what "
                "its inputs give: it was not recalculated, or formulas were overwritten. Open and save it once; "
                "`sheetgen pull` names them, and with --format xlsx writes a workbook that agrees."
            )
        if pulled.n_lost:
            raise ScenarioError(
                f"{shown(workbook, 200)}: {another_build(pulled)}: what stands in their place would contradict the "
                "message. `sheetgen pull` with --format xlsx writes a workbook that agrees."
            )
        if pulled.is_of_another_build:
            notes.append(f"{shown(workbook, 200)}: {another_build(pulled)}.")
        if overwritten := pulled.audit.overwritten if pulled.audit else ():
            first, n = overwritten[0], len(overwritten)
            raise ScenarioError(
                f"{shown(workbook, 200)}: {n:,} formula{'s were' if n > 1 else ' was'} overwritten, the first at "
                f"{first.place}: what stands there would contradict the message. `sheetgen pull` names them, and with "
                "--format xlsx writes a workbook that agrees."
            )
        answer = answer_of(pulled.solved)
        aside = {**options, "name": Path(workbook).stem if options["name"] is None else options["name"]}
    place, brand = place_of(aside["out"], aside["name"]), brand_of(aside["brand"])
    letter = Letter(build_page(answer.record, answer.question), place.name)
    line = letter.subject(subject)  # what is wrong with it is reported before the slow part
    if pdf is not None:
        files["pdf"] = _pdf(pdf)
    missing = [ending for ending in ("xlsx", "pdf") if ending not in files]
    if missing:
        step(f"drawing {', '.join(missing)}")
        drawn, problems = draw(answer, missing, catalog, brand)
        files |= drawn
        notes += problems
        warn_of_letters(answer.question, drawn, brand)
    letter = replace(letter, attached=tuple(ending for ending in ("pdf", "xlsx") if ending in files))
    if since is not None:
        from sheetgen.cli.diff_text import changes_since

        letter = replace(letter, changes=changes_since(since, files["xlsx"], f"{place.name}.xlsx", catalog))
    attached = {f"{place.name}.{ending}": files[ending] for ending in letter.attached}
    return Mail(addresses, line, *bodies(letter, templates_folder(), brand), attached), Path(f"{place}.eml")


def _plan_message(
    addresses: Envelope,
    file: str,
    pdf: str | None,
    since: str | None,
    actuals: str | None,
    subject: str | None,
    catalog: Catalog,
    options: dict[str, Raw],
) -> tuple[Mail, Path]:
    """The message of a plan, and the path of its draft."""
    from sheetgen.cli.plan_commands import draw_plan, solved_file
    from sheetgen.mail.message import Letter, Mail, bodies

    _refuse_options(options, "a plan: write it there", WITH_A_PLAN)
    place, brand = place_of(options["out"], options["name"] or Path(file).stem), brand_of(options["brand"])
    solved = solved_file(file, catalog, since, actuals=actuals)
    letter = Letter(solved.page, place.name, attached=OF_PLAN)
    line = letter.subject(subject)
    files = {} if pdf is None else {"pdf": _pdf(pdf)}
    drawn, missing = draw_plan([ending for ending in OF_PLAN if ending not in files], solved, brand)
    if missing:
        raise MissingLibraryError(*missing)
    files |= drawn
    if solved.since is not None and solved.whole.bridge is not None:
        from sheetgen.cli.diff_text import plan_changes_since

        last, head = solved.since, solved.whole.answer.plan.head
        letter = replace(letter, changes=plan_changes_since(last.file, last.record["as_of"], solved.whole.bridge, head))
    attached = {f"{place.name}.{ending}": files[ending] for ending in OF_PLAN}
    return Mail(addresses, line, *bodies(letter, templates_folder(), brand), attached), Path(f"{place}.eml")


def _is_plan(file: str) -> bool:
    from sheetgen.readback.plan_book import is_plan_book

    return ending_of(Path(file)) in PLANS or is_plan_book(file)


def _refuse_options(options: dict[str, Raw], beside: str, allowed: Sequence[str]) -> None:
    """Refuse options of `build` beside a file that is sent as it is."""
    for option, value in options.items():
        if value is not None and option not in allowed:
            raise click.UsageError(f"--{option.replace('_', '-')} does not go with {beside}.")


def _pdf(path: str) -> bytes:
    """An existing PDF. Raises ScenarioError where the file is none."""
    from sheetgen.readback.package import read_file

    data = read_file(Path(path))
    if not data.startswith(b"%PDF-"):
        raise ScenarioError(f"{shown(path, 200)}: is no PDF. Name one, or leave --pdf out and it is drawn.")
    return data


def _send(message: Mail, server: Server, attempts: int, timeout: float, as_json: bool, quiet: bool) -> None:
    import datetime

    from sheetgen.mail.smtp import deliver

    sender, data = message.envelope.sender, message.ready(datetime.datetime.now().astimezone())
    assert sender is not None  # ready() has refused that
    done = deliver(
        server,
        sender.addr_spec,
        message.envelope.recipients,
        data,
        attempts=attempts,
        timeout=timeout,
        report=lambda line: note(line, quiet),
    )
    whole = not done.refused and not done.unsure
    _report(
        message,
        "sent" if whole else "sent in part" if done.accepted else "unsure",
        f"sent to {', '.join(done.accepted)} by {server}" if done.accepted else "",
        as_json,
        quiet and whole,
        server=str(server),
        accepted=list(done.accepted),
        refused=done.refused,
        unsure=list(done.unsure),
        attempts=done.attempts,
    )
    for address, why in done.refused.items():
        say(f"{server}: {address}: {why}. It was not sent there.", err=True)
    if done.unsure:
        broke = "the connection broke after the message was handed over, so they may have it"
        say(f"{server}: {', '.join(done.unsure)}: {broke}. Ask before you send it again.", err=True)
    if not whole:
        raise SystemExit(1)


def _show(message: Mail, server: Server | None, as_json: bool, quiet: bool) -> None:
    login = ", with a login" if server and server.credentials else ""
    by = f"by {server} ({server.security}{login})" if server else "a draft"
    envelope = message.envelope
    heads = [
        ("From", str(envelope.sender or "")),
        ("To", ", ".join(map(str, envelope.to))),
        ("Cc", ", ".join(map(str, envelope.cc))),
        ("Subject", message.subject),
        *(("Attached", f"{name}, {len(data):,} bytes") for name, data in message.attachments.items()),
        ("Would go", by),
    ]
    shown_heads = "\n".join(f"{head + ':':<10}{value}" for head, value in heads if value)
    words = f"{shown_heads}\n\n{message.text}\nNothing was sent or written."
    _report(message, "dry run", words, as_json, quiet, server=str(server) if server else None, text=message.text)


def _report(message: Mail, status: str, words: str, as_json: bool, quiet: bool, **more: object) -> None:
    """Report what became of the message, in words or as JSON."""
    envelope = message.envelope
    if not as_json:
        if words and not quiet:
            say(words)
        return
    print_json(
        {
            "schema_version": MAIL_SCHEMA,
            "status": status,
            "from": str(envelope.sender) if envelope.sender else None,
            "to": list(map(str, envelope.to)),
            "cc": list(map(str, envelope.cc)),
            "subject": message.subject,
            "attachments": {name: len(data) for name, data in message.attachments.items()},
            **more,
        }
    )
