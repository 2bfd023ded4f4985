"""A command as text that can be pasted into a shell: every word quoted, one flag a line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from sheetgen.errors import ScenarioError, shown


class Expanded(str):
    """A word of ours in which the shell is to expand a variable; it goes in as it is, in double quotes."""

    __slots__ = ()


def quoted(word: str) -> str:
    """`word` as one word of a POSIX shell.

    Raises ScenarioError for a word with a character that does not show: pasted, it could be another command.
    """
    if isinstance(word, Expanded):
        return f'"{word}"'
    if not word.isprintable():
        raise ScenarioError(f"{shown(word, 200)!r} holds a control character, which no command can show. Rename it.")
    return shlex.quote(word)


def command(groups: Iterable[Iterable[str]], between: str = " \\\n  ") -> str:
    """Groups of words as a command, a line each; `between` is what parts the lines."""
    return between.join(" ".join(quoted(word) for word in group) for group in groups)


def here_document(name: str, text: str) -> str:
    """Shell lines that write `text` into the file `name` as it is."""
    return f"cat > {quoted(name)} <<'EOF'\n{text.rstrip()}\nEOF"


def flag_groups(flags: Mapping[str, object]) -> list[tuple[str, ...]]:
    """Flags with their values as groups of words; a flag whose value is True stands alone."""
    return [(flag,) if value is True else (flag, str(value)) for flag, value in flags.items()]
