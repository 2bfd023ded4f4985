"""Options that several commands share, and the scenario file, which may hold those of a sheet. All values stay text
here: `question` reads them and reports what is wrong.
"""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sheetgen.cli.output import as_called, note, say
from sheetgen.errors import ELSEWHERE, MEANT, CatalogError, ScenarioError, did_you_mean, shown, shown_key
from sheetgen.input_files import beside
from sheetgen.sheet_files import OF_OUTPUT

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog
    from sheetgen.question.inputs import Option
    from sheetgen.question.parse import Options, Raw

F = TypeVar("F", bound=Callable[..., Any])

# Groups of options, as the table of inputs calls them; every command that takes one takes it with the same words.
MARKET = ("market", "chance", "headroom", "billing")
PACE = ("measured", "factors")
LOAD = ("rate", "active", "at_once")
DEPLOYMENT = (*LOAD, "gpu", "precision", "parallel", "engine", "limits", "split", "caches", *PACE)
ANSWER = ("precision", "targets", *PACE, *MARKET, "money", "engine")  # of what is recommended
# A load of one's own in place of workloads, with a sheet's words.
OWN_LOAD = (
    ("context_tokens", "TOKENS", "A load of your own in place of workloads: tokens of its requests, 16k or 16384."),
    (
        "input_tokens",
        "TOKENS",
        "Its prompt, where times are of shorter requests than memory is for. Default: the context less the answer.",
    ),
    ("output_tokens", "TOKENS", "Its answer. Default: 1,024 of the context, or half of a small one."),
)
SHEET = ("sheet", *OWN_LOAD, "rate", "active", *ANSWER)  # of what a sheet is built from
OF_ENGINE = (("engine",), ("engine_version",), ("gpu_memory_utilization",))  # where not all of the engine's are taken
SHORT = {"context_tokens": "--context"}
LONG = {short.removeprefix("--"): name for name, short in SHORT.items()}
TYPED = "typed"  # values typed over a sheet's cells: only in a scenario file; `ask` reads them
# The headings of a long help, each with its groups of options and the names of options that belong to no group.
HEADINGS = {
    "Message": (
        "to",
        "cc",
        "sender",
        "subject",
        "since",
        "pdf",
        "smtp",
        "security",
        "credentials",
        "attempts",
        "timeout",
        "dry_run",
    ),
    "Model and load": (
        *LOAD,
        "load",
        "split",
        "model",
        "models",
        "workloads",
        "contexts",
        "tiers",
        "headline",
        "together",
        "budget_usd",
        "have",
        "batch",
        "from_log",
    ),
    "Targets": ("targets", "chance", *PACE),
    "Hardware and provider": ("gpu", "parallel", "market", "headroom", "disaggregated"),
    "Money": ("billing", "money"),
    "Engine": ("engine", "precision", "limits", "caches", "kv_budget", "kv_offload_gib", "flags"),
    "Output": (),  # and all else
}
LISTS = ("NAMES", "NUMBERS", "SHARES", "AMOUNTS", "ADDRESSES", "ENGINES", "LIST")  # metavars of words with commas
SWITCH = "0|1"  # the metavar of an option that may stand alone, as an engine's own flag does: 1
MOST_IN_A_LIST = 20  # options of a help without headings


def in_either_number(name: str, names: Iterable[str]) -> str | None:
    """The entry of `names` that equals `name` but for the number of its words: requests_per_users is requests_per_user;
    None where no entry does."""
    in_singular = {re.sub(r"s(?=[-_]|$)", "", allowed): allowed for allowed in names}
    return name if name in in_singular.values() else in_singular.get(re.sub(r"s(?=[-_]|$)", "", name))


class Command(click.Command):
    """A command that makes its shared options when they are first read: the list of all commands does not need them.
    An option may be written in the other number and with underscores: --model for --models."""

    _made: list[Any]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name: parameter for parameter in self.params for name in parameter.opts if name.startswith("--")}
        for option, value in pairwise(args):
            if option in options and _takes_a_value(options[option]) and value.partition("=")[0] in options:
                raise click.BadOptionUsage(option, f"Option {option!r} requires an argument, not {value!r}.", ctx)
        try:
            return super().parse_args(ctx, [*args])
        except click.BadOptionUsage as error:
            lacking, name = options.get(error.option_name), error.option_name
            if lacking is None or not error.message.endswith("requires an argument."):
                raise
            problem = f"Option {name!r} requires an argument: {name} {lacking.make_metavar(ctx)}."
            raise click.BadOptionUsage(name, problem, ctx) from None
        except click.NoSuchOption as error:
            wrong = _as_written(error.option_name, args)
            right = in_either_number(wrong.lower().replace("_", "-"), options)
            if right is None:
                name = wrong.strip("-").replace("-", "_")
                meant = in_either_number(f"--{ELSEWHERE.get(name, name)}".replace("_", "-"), options)
                # None is taken for what begins so: another option that did would break a script.
                longer = [option for option in options if len(wrong) > 2 and option.startswith(wrong)]
                if near := longer if meant is None else [meant]:
                    problem = f"No such option {wrong!r}.{MEANT.format(' or '.join(map(repr, near)))}"
                    raise click.NoSuchOption(wrong, problem, ctx=ctx) from None
                raise
            parts = [argument.partition("=") for argument in args]
            respelled = ["".join((right if name == wrong else name, *value)) for name, *value in parts]
            return self.parse_args(ctx, respelled)
        except click.UsageError as error:
            if not error.message.startswith("Got unexpected extra argument"):
                raise
            _, extra, _ = self.make_parser(ctx).parse_args([*args])
            if not (meant := self._meant(extra, args, options)):
                raise
            raise click.UsageError(f"{error.message}.{MEANT.format(meant)}", ctx) from None

    def _meant(self, extra: Sequence[str], args: Sequence[str], options: Mapping[str, click.Parameter]) -> str:
        """The options that words without one were meant for; "" where none is near."""
        place = args.index(extra[0])
        before = options.get(args[place - 2]) if place > 1 else None
        if before is not None and _takes_a_value(before) and before.metavar in (*LISTS, "TEXT"):
            n_words = next((n for n, word in enumerate(args[place:]) if word not in extra), len(args) - place)
            words = [word.strip(",") for word in args[place - 1 : place + n_words]]
            value = ",".join(words) if before.metavar in LISTS else shlex.quote(" ".join(words))
            return f"{args[place - 2]} {value}"
        from sheetgen.catalog import Catalog
        from sheetgen.question.parse import people

        catalog, has_arguments = Catalog(), any(isinstance(part, click.Argument) for part in self.params)
        meant: dict[str, list[str]] = {}
        for word in extra:
            names: tuple[str, ...] = ()
            if people(word) > 0:
                names = ("--users",)
            elif catalog.lists_gpu(word):
                names = ("--gpu", "--gpus")
            elif catalog.lists_model(word) or not has_arguments:
                names = ("--model", "--models")
            for name in names:
                if name in options and name not in args and (name not in meant or name.endswith("s")):
                    meant.setdefault(name, []).append(word)
        return " ".join(f"{name} {','.join(words)}" for name, words in meant.items())

    def get_help(self, ctx: click.Context) -> str:
        return as_called(super().get_help(ctx))

    @property
    def params(self) -> list[click.Parameter]:
        """The parameters in the order of the help."""
        self._made = [
            parameter for made in self._made for parameter in ([made] if isinstance(made, click.Parameter) else made())
        ]
        return self._made

    @params.setter
    def params(self, params: list[Any]) -> None:
        self._made = params

    def sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """The options with their help, by heading."""
        from sheetgen.question.inputs import BY_OPTION

        by_heading: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                option = BY_OPTION[parameter.name].option if parameter.name in BY_OPTION else None
                groups = {parameter.name, option and option.group}
                by_heading[next((h for h, own in HEADINGS.items() if groups & {*own}), "Output")].append(record)
        return {heading: records for heading, records in by_heading.items() if records}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of a long help under headings."""
        sections = self.sections(ctx)
        if sum(map(len, sections.values())) <= MOST_IN_A_LIST:
            super().format_options(ctx, formatter)
            return
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _as_written(option: str, args: Sequence[str]) -> str:
    """The option as it stands among the arguments: click names the first letter of `-tp` alone."""
    is_short = not option.startswith("--")
    words = [arg.partition("=")[0] for arg in args if is_short and arg.startswith(option)]
    return words[0] if words else option


command = functools.partial(click.command, cls=Command)


def _takes_a_value(parameter: click.Parameter) -> bool:
    """True where the next word is the option's value, whatever it is."""
    return isinstance(parameter, click.Option) and not parameter.is_flag and parameter.metavar != SWITCH


class Group(click.Group):
    """A group of such commands, listed in the order of a day's work."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_help(self, ctx: click.Context) -> str:
        return as_called(super().get_help(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with the whole first sentence of its help."""
        rows = [(name, self.commands[name].get_short_help_str(sys.maxsize)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


# Metavars of options and arguments that name files. A blank name would be the current folder, or no file at all.
_FILES = ("FILE", "FILE.yaml", "FILE.pdf", "FILE.csv", "IN.csv", "OUT.csv", "OLD", "LAST", "SHEET", "PLAN", "A", "B")
_ARGUMENTS = ("PLAN.yaml", "EDITED.xlsx", "LOG", "CONFIG", "FILE_OR_URL...", "[SHEET.xlsx|PLAN.yaml|PLAN.xlsx]")
PLACES = {"DIR": "folder", "[PATH...]": "folder or a file"} | dict.fromkeys((*_FILES, *_ARGUMENTS), "file")


def refuse_blank(name: str, value: object, metavar: str | None, is_required: bool = False) -> None:
    """Refuse a blank name of a file or a folder."""
    values = value if isinstance(value, tuple) else [value]
    if metavar in PLACES and any(isinstance(part, str) and not part.strip() for part in values):
        raise ScenarioError(f"{name} is blank. Name a {PLACES[metavar]}{'' if is_required else ', or leave it out'}.")


def _help_of(option: Option, in_size: bool, own: str = "") -> str:
    """The help of an option: its own where a command has one, that of `size` where that differs."""
    return own or (in_size and option.in_size) or option.help


class DescribedOption(click.Option):
    """An option whose help is read when it is shown."""

    def __init__(self, spellings: Sequence[str], about: Callable[[], str], **attributes: Any) -> None:
        super().__init__(spellings, default=None, **attributes)
        self.about = about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self.about()
        return super().get_help_record(ctx)


def text_options(*parts: str | tuple[str, ...], without: str = "") -> Callable[[F], F]:
    """A decorator that adds `--long-name METAVAR` for each option of the groups in `parts`; a tuple there is a single
    option: its name, and where they differ from the usual its metavar and help. In `size` some options have another
    help. A repeated option gives a list of texts."""

    def make() -> Iterator[click.Option]:
        from sheetgen.question.inputs import BY_OPTION, asked_in

        for part in parts:
            for asked in asked_in(part) if isinstance(part, str) else (BY_OPTION[part[0]],):
                name, option = asked.asked_as, asked.option
                assert option is not None
                metavar, *own = part[1:] if isinstance(part, tuple) and len(part) > 1 else (option.metavar,)
                spellings = [f"--{name.replace('_', '-')}", *([SHORT[name]] if name in SHORT else []), name]
                flag: dict[str, Any] = {"metavar": metavar} if metavar else {"is_flag": True, "flag_value": "yes"}
                if metavar == SWITCH:
                    flag |= {"is_flag": False, "flag_value": "1"}
                if option.repeated:
                    flag |= {"multiple": True, "callback": lambda _, __, texts: list(texts) or None}
                about = functools.partial(_help_of, option, "parallel" in parts, *own)
                if name != without:
                    yield DescribedOption(spellings, about, **flag)

    def with_options(function: F) -> F:
        function.__click_params__ = [*getattr(function, "__click_params__", []), make]  # type: ignore[attr-defined]
        return function

    return with_options


model_option = functools.partial(
    click.option,
    "--model",
    metavar="NAME",
    help="Model by catalog id, alias, Hugging Face id, or path of a config.json.",
)
flags_option = click.option(
    "--flags",
    metavar="ENGINES",
    help="Launch flags: vllm, sglang, tensorrt-llm, nim, lmdeploy, all; of recommend also compose, kserve, llm-d, "
    "with --quiet the file alone.",
)
brand_option = click.option(
    "--brand",
    metavar="FILE.yaml",
    help="Your company's name, logo, colours and footer line, for workbook and PDF; see templates/brand/.",
)


def one_load(options: Options) -> None:
    """Refuse more than one of the options that state a load."""
    from sheetgen.question.stated_load import A_LOAD

    if len(given := [f"--{name.replace('_', '-')}" for name in A_LOAD if options.get(name) is not None]) > 1:
        raise click.UsageError(f"{' and '.join(given)}: each is a load by itself. Keep one.")


def common(function: Callable[..., Any], checks: bool = True) -> Callable[..., Any]:
    """Add the options that every command takes, and open the catalogs for it. With --catalogs stderr says what these
    change.

    checks: whether a folder with a broken file is refused, though the command may not read that file.
    """

    @click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout.")
    @click.option(
        "--catalogs", multiple=True, metavar="DIR", help="A folder that adds to the catalogs or overrides them."
    )
    @click.option("--quiet", "-q", is_flag=True, help="No notes, only the result.")
    @functools.wraps(function)
    def run(*arguments: object, catalogs: tuple[str, ...], quiet: bool, **options: Raw) -> Any:
        from sheetgen.catalog import Catalog

        for parameter in click.get_current_context().command.params:
            called = parameter.metavar if isinstance(parameter, click.Argument) else parameter.opts[0].lstrip("-")
            value = options.get(parameter.name or "")
            refuse_blank((called or "").strip("[.]"), value, parameter.metavar, parameter.required)
        catalog = Catalog(*catalogs)
        if catalogs:
            _say_overlays(catalog, quiet, checks)
        result = function(*arguments, catalog=catalog, quiet=quiet, **options)
        if not quiet:
            _say_percentages(options)
        _note_gpus(options, catalog, quiet)
        return result

    return run


def _say_percentages(options: Options) -> None:
    """Say which shares were written as numbers above 1, and are read as percentages."""
    from sheetgen.question.inputs import BY_OPTION

    for name, value in options.items():
        kind = BY_OPTION[name].kind if name in BY_OPTION and value is not None else None
        for part in str(value).split(",") if kind else ():
            if kind and kind.is_percentage(figure := part.rpartition("=")[2].strip()):
                say(f"{name}: {figure} is read as {figure}%.", err=True)


def _note_gpus(options: Options, catalog: Catalog, quiet: bool) -> None:
    """Tell a person which GPU a name means that other GPUs have in common with it, such as h100 of three."""
    named = {
        part.partition(":")[0].strip()
        for key in ("gpu", "gpus", "have")
        for part in (options.get(key) or "").split(",")
    }
    for name in sorted(named - {""}):
        if others := catalog.others_called(name):
            note(f"{name} is taken as {catalog.gpu(name).name}. Others: {', '.join(others)}.", quiet)


def _say_overlays(catalog: Catalog, quiet: bool, checks: bool) -> None:
    """Say how many prices, models and GPUs each folder adds and replaces, and which of its files are not read; nothing
    about broken folders that are not refused."""
    from sheetgen.catalog.check import CHANGES, file_faults, overlays

    faults = [fault for folder in catalog.folders[1:] for fault in file_faults(folder)]
    broken = [problem for file, problem in faults if file.endswith(".yaml")]  # files of other endings are not read
    if broken and checks:
        raise CatalogError(*broken)
    for _, unread in faults if checks and not quiet else ():
        say(unread, err=True)
    for overlay in () if broken else overlays(catalog):
        parts = (("prices", overlay.prices), ("models", overlay.models), ("GPUs", overlay.gpus))
        changes = [
            f"{name} {', '.join(f'{counts[kind]:,} {kind}' for kind in CHANGES if counts[kind])}"
            for name, counts in parts
            if counts
        ]
        changes += [f"{', '.join(overlay.files)} read instead"] if overlay.files else []
        if not changes:
            raise CatalogError(f"{overlay.folder}: adds nothing: its files have no entry.")
        if not quiet:
            say(f"{overlay.folder}: {'; '.join(changes)}.", err=True)


def scenario_option(function: F) -> F:
    """--scenario FILE.yaml, read by `with_scenario`."""
    return click.option(
        "--scenario", metavar="FILE.yaml", help="All of these options in a file; flags win.", default=None
    )(function)


def with_scenario(path: str | None, options: Options, also: Sequence[str] = (TYPED, *OF_OUTPUT)) -> dict[str, Raw]:
    """`options` merged over those of the file of `--scenario`. For a sheet the file may also hold `also`: typed cells
    and where its files are written. A load on the command line replaces the file's.

    Raises ScenarioError with file and line for a key that is no option, or a value that is no plain one.
    """
    from sheetgen.question.stated_load import A_LOAD

    given = {name: value for name, value in options.items() if value is not None}
    stated = {} if path is None else _of_scenario(path, (*options, *also))
    if (context := click.get_current_context(silent=True)) and not context.params.get("quiet"):
        _say_percentages(stated)
    if not {*A_LOAD}.isdisjoint(given):
        stated = {name: value for name, value in stated.items() if name not in A_LOAD}
    merged = {**stated, **given}
    if merged.get("ask") and str(merged.get("together")).lower() == "yes":
        raise ScenarioError("ask names one model to approve, and together the total of all. Leave one of them out.")
    return merged


def _of_scenario(path: str, allowed: Sequence[str]) -> dict[str, Raw]:
    from sheetgen.catalog import read_document
    from sheetgen.measured.read_measured import measured_beside
    from sheetgen.question.inputs import BY_OPTION, REPEATED
    from sheetgen.question.overrides import Written

    document = read_document(Path(path), pipes=True)
    if not isinstance(document.data, dict):
        raise ScenarioError(f"{document.at(())}: holds no options. Write lines such as models: [8b, 70b].")
    problems = []
    scenario: dict[str, Raw] = {}
    for key, value in document.data.items():
        place, written = document.at((key,)), key.replace("-", "_")
        name = LONG.get(written) or in_either_number(written, allowed) or written
        if name not in allowed:
            problems.append(f"{place}: unknown option {shown_key(key)}.{did_you_mean(name, allowed)}")
        elif name == TYPED:
            scenario[name] = Written(value, lambda loc: f"{document.at((TYPED, *loc))}: ")
        elif name == "together" and isinstance(value, bool):
            scenario[name] = "yes" if value else "no"
        elif not _is_plain(value) and not (name == "attach" and isinstance(value, bool)):
            option = BY_OPTION[name].option if isinstance(value, dict) and name in BY_OPTION else None
            pairs = f", such as {option.pairs}" if option and option.pairs else ""
            problems.append(f"{place}: {shown(key)} must be text, a number, or a list of these{pairs}.")
        elif name in scenario:
            problems.append(f"{place}: {shown(name)} is given twice, in two spellings. Keep one.")
        elif name == "engine_version" and isinstance(value, float):
            problem = f"engine_version {value} is a number, in which 0.10 is 0.1"
            problems.append(f"{place}: {problem}. Write it in quotes: '0.10'.")
        elif value is not None:
            if name in REPEATED:
                given = value if isinstance(value, list) else [value]
                scenario[name] = [measured_beside(Path(path), str(file)) for file in given]
                continue
            scenario[name] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            refuse_blank(name, scenario[name], {"out": "DIR", "brand": "FILE.yaml"}.get(name))
            if name == "brand":  # it stands beside the scenario
                scenario[name] = beside(Path(path), scenario[name])
    if problems:
        raise ScenarioError(*problems)
    return scenario


def _is_plain(value: object) -> bool:
    values = value if isinstance(value, list) else [value]
    are_plain = (isinstance(item, (str, int, float)) and not isinstance(item, bool) for item in values)
    return value is None or (bool(values) and all(are_plain))
