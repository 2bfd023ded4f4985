"""The command line. Importing it loads click alone: each command loads what it needs when it runs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click

from sheetgen import __version__
from sheetgen.cli.ask import diagnose, explain, recommend, size
from sheetgen.cli.build import build, diff, pull
from sheetgen.cli.catalog_commands import catalog
from sheetgen.cli.entries import check, list_entries, show
from sheetgen.cli.live_command import live
from sheetgen.cli.mail_command import mail
from sheetgen.cli.options import Group
from sheetgen.cli.output import as_called, progress, say, take_any_text
from sheetgen.cli.plan_commands import plan
from sheetgen.cli.schema_command import schema
from sheetgen.errors import MEANT, SheetgenError, escaped, shown
from sheetgen.input_files import pipes_kept
from sheetgen.writers.formats import gc_paused
from sheetgen.writers.safe_files import FINISHED, Stopped, stopped_by, stops_cleanly

_QUIET = f"{__name__}.quiet"


class Commands(Group):
    """The commands; problems that a user can fix are reported in one line each, with exit code 1. `help build` is
    `build --help`."""

    def main(self, *args: Any, **extra: Any) -> Any:
        # No plugin changes a catalog, and looking for plugins takes pydantic longer than reading one.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        if sys.stdout is None:
            _give_up("the result cannot be written: stdout is closed.")
        take_any_text()
        FINISHED.clear()
        try:
            with stops_cleanly(), gc_paused(), pipes_kept():
                return super().main(*args, **extra)
        except BaseException as error:
            if (number := stopped_by()) is not None:  # click and Python make other errors of it: Abort, RuntimeError
                raise SystemExit(128 + number) from None
            if not isinstance(error, OSError) or error.filename is not None:
                raise
            _give_up(f"the result cannot be written ({error.strerror or error}).")

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except Stopped as stopped:  # click would say that it was aborted
            raise SystemExit(128 + stopped.number) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        ctx.meta[_QUIET] = not {"-q", "--quiet"}.isdisjoint(args)
        with _escaped_usage():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in self.commands:
            from sheetgen.catalog import Catalog

            if Catalog().lists_model(args[0]):
                ctx.fail(f"No such command {args[0]!r}.{MEANT.format(f'recommend --model {args[0]}')}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _escaped_usage(), progress(ctx.meta[_QUIET]):
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            number = error.number if isinstance(error, Stopped) else signal.SIGINT
            wrote = f"{', '.join(map(str, FINISHED))}: written before" if FINISHED else "Nothing was written"
            say(f"stopped by {signal.Signals(number).name}. {wrote}.", err=True)
            ctx.exit(128 + number)
        except (SheetgenError, MemoryError, ImportError, OSError, RuntimeError) as error:
            if not (problems := _fixable_problems(error)):
                raise
            for problem in problems:
                say(problem, err=True)
            ctx.exit(1)


def _fixable_problems(error: BaseException) -> Sequence[str]:
    """The problems that a user can fix, a line each; empty where the error is a bug."""
    if isinstance(error, SheetgenError):
        return error.problems
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "sheetgen").partition(".")[0]
        cure = "Install sheetgen with its libraries: python -m pip install ."
        return () if library == "sheetgen" else (f"the library {library} is not installed. {cure}",)
    if _lacks_memory(error):
        return ("there is too little memory: sheetgen needs 500 MB, and more for many models or a PDF.",)
    if isinstance(error, OSError) and isinstance(error.filename, (str, os.PathLike)):
        return (f"{shown(error.filename, 200)}: {error.strerror}.",)  # such as a name too long
    return ()


# What the system says where a library or a thread finds no memory.
_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "can't start new thread")


def _lacks_memory(error: BaseException) -> bool:
    """True where an error, or one of its causes, is a lack of memory."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and cause not in causes:
        causes.append(cause)
    return any(
        isinstance(reason, MemoryError) or any(words in str(reason).lower() for words in _NO_MEMORY)
        for reason in causes
    )


@contextlib.contextmanager
def _escaped_usage() -> Iterator[None]:
    """Repeat wrong arguments in usage errors without their control characters."""
    try:
        yield
    except click.UsageError as error:
        message = as_called(error.format_message())
        # click begins the lines of a list of choices with a tab.
        safe = "\n".join(escaped(re.sub(r"^\t", "  ", line)) for line in message.split("\n"))
        if safe == error.format_message():
            raise
        raise click.UsageError(safe, error.ctx) from error


def _give_up(problem: str) -> NoReturn:
    """Print one line, and no second failure when Python at its end flushes what could not be written."""
    with contextlib.suppress(OSError):
        say(problem, err=True)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    sys.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="sheetgen", message="%(prog)s %(version)s")
def main() -> None:
    """What it takes to serve a language model: GPU memory, the cheapest instance that fits, $ a month.

    \b
    Examples:
      sheetgen build --models 8b,70b,405b
      sheetgen recommend --model 70b --context 16k --users 200
      sheetgen size --model 70b --gpu h100 --tensor-parallel-size 4 --context 16k --users 32
      sheetgen pull edited-sheet.xlsx
      sheetgen diff last-quarter.xlsx this-quarter.xlsx
      sheetgen plan plan.yaml
      sheetgen live --out live.html
      sheetgen diagnose server.log
      sheetgen mail this-quarter.xlsx --to vp@acme.com --since last-quarter.xlsx
      sheetgen COMMAND --help
    """


for command in (
    build,
    recommend,
    size,
    pull,
    diff,
    plan,
    live,
    diagnose,
    mail,
    explain,
    list_entries,
    show,
    check,
    catalog,
    schema,
):
    main.add_command(command)
