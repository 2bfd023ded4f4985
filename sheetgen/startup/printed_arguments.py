"""Arguments as engines print them, read without evaluating anything, and the engines' names of our inputs.

`{'a': 1, 'b': [..]}`, `Namespace(a=1, ...)`, `ServerArgs(a=1, ...)`, `with config: a='x', b=torch.bfloat16, ...`:
the pairs at the top level, in one pass over the text; nested values stay text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from sheetgen.shipped import shipped_table
from sheetgen.units import DTYPE_ALIASES, ENGINE_DTYPES, KV_ALIASES, SAME_SIZE

_PRINTED = shipped_table("arguments.toml")
ENGINE_NAMES: Mapping[str, str] = _PRINTED["names"]
RENAMED: dict[str, dict[str, str]] = {
    engine: {theirs: ours for ours, names in arguments.items() for theirs in names}
    for engine, arguments in _PRINTED["arguments"].items()
}
QUANTIZATIONS: Mapping[str, str] = _PRINTED["quantizations"]
NOT_SIZED: Mapping[str, str] = _PRINTED["not_sized"]
DTYPES = {
    **{name: name for name in ("auto", "bf16", "fp16", "fp8", "fp8_e5m2", "int8", "nvfp4")},
    **ENGINE_DTYPES, **DTYPE_ALIASES, **KV_ALIASES, **SAME_SIZE,
}  # fmt: skip

Value = str | int | float | bool | None

_KEY = re.compile(r"\s*(?:'([\w.-]{1,80})'|\"([\w.-]{1,80})\"|([A-Za-z_][\w.-]{0,80}))\s*[:=](?!=)")
_WORDS: dict[str, Value] = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}
_INT = re.compile(r"[+-]?\d{1,18}")
_FLOAT = re.compile(r"[+-]?(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18})(?:[eE][+-]?\d{1,2})?")
_HUMAN = {"k": 1000, "m": 10**6, "g": 10**9, "K": 1024, "M": 1024**2, "G": 1024**3}
MOST_PAIRS = 2000
LONGEST_COMMAND = 20_000


def pairs(text: str) -> dict[str, Value]:
    """The name-value pairs between the outermost brackets of `text`, or in all of it if it does not begin with one."""
    arguments: dict[str, Value] = {}
    for part in _parts(text):
        if len(arguments) >= MOST_PAIRS:
            break
        if match := _KEY.match(part):
            arguments.setdefault(match[1] or match[2] or match[3], value(part[match.end() :]))
    return arguments


def _parts(text: str) -> Iterator[str]:
    """The parts of a text between top-level commas, up to the closing bracket."""
    opening = re.match(r"\s*(?:\{|[\w.]{1,80}\()", text)
    start, depth, quote, skip, before = opening.end() if opening else 0, 0, "", False, ","
    for i in range(start, len(text)):
        letter = text[i]
        if skip:
            skip = False
        elif letter == "\\" and quote:
            skip = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and before in "=:,[({":  # not an apostrophe
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth < 0:
                yield text[start:i]
                return
        elif letter == "," and depth == 0:
            yield text[start:i]
            start = i + 1
        before = before if letter == " " else letter
    yield text[start:]


def value(text: str) -> Value:
    """The value of a printed literal: a quoted text, a number, True, False or None; any other text unchanged."""
    bare = text.strip()
    if len(bare) >= 2 and bare[0] in "'\"" and bare[-1] == bare[0]:
        return bare[1:-1]
    if _INT.fullmatch(bare):
        return int(bare)
    return float(bare) if _FLOAT.fullmatch(bare) else _WORDS.get(bare, bare)


def command_flags(text: str, first: str = "") -> dict[str, Value]:
    """The flags of a command line by name, with underscores for dashes; a positional first word has the name `first`.

    `32k` is 32,000 and `32K` is 32,768, as in vLLM.
    """
    text = text[:LONGEST_COMMAND]
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote
        words = text.split()
    flags: dict[str, Value] = {}
    i = 0
    while i < len(words) and len(flags) < MOST_PAIRS:
        word, i = words[i], i + 1
        if not word.startswith("-") or len(word) < 2 or word[1].isdigit():
            if first and not flags and i <= 2:
                flags[first] = word
            continue
        name, has_value, given = word.lstrip("-").partition("=")
        if not has_value and i < len(words) and not re.match(r"-{1,2}[A-Za-z]", words[i]):
            given, has_value, i = words[i], "=", i + 1
        count = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([kKmMgG])", given)
        plain = int(float(count[1]) * _HUMAN[count[2]]) if count else value(given)
        flags[name.replace("-", "_")] = plain if has_value else True
    return flags
