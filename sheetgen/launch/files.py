"""What a text or a file states as name and value: `a=1,b=2`, an engine's config.json, YAML options, an env file."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sheetgen.catalog.huggingface.read import read_bytes
from sheetgen.catalog.reader import read_text
from sheetgen.errors import ScenarioError, shown

MAX_BYTES = 1_000_000
MAX_TEXT = 20_000
MAX_PAIRS = 5_000
# Where a config.json or YAML of TensorRT-LLM keeps its settings; other parts say nothing of memory.
PARTS = (
    (), ("build_config",), ("builder_config",), ("plugin_config",), ("build_config", "plugin_config"),
    ("kv_cache_config",), ("build_config", "kv_cache_config"), ("pretrained_config", "mapping"),
    ("pretrained_config", "quantization"),
)  # fmt: skip
_ENV = re.compile(r"\s*(?:export\s+|-e\s+|--env\s+|ENV\s+)?([A-Za-z_][A-Za-z0-9_]{0,80})\s*=\s*(.*?)\s*\\?\s*")
_ITEM = re.compile(r"-{0,2}([A-Za-z_][A-Za-z0-9_-]{0,80})\s*=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Stated:
    """Names and values in their order; where they stand, for messages; the layers of the model that a file is of."""

    where: str
    is_file: bool
    pairs: tuple[tuple[str, str], ...]
    n_layers: int | None = None


def stated(text: str) -> Stated:
    """The pairs of `text`, or of the file that it names. Raises ScenarioError where it is neither."""
    bare = text.strip()
    if not bare:
        raise ScenarioError("kv_budget is blank. Give settings such as max_batch_size=8,max_seq_len=4096, or a file.")
    if "=" in bare and not _is_file(bare):
        return Stated("kv_budget", False, tuple(_inline(bare)))
    return _from_file(bare)


def _is_file(name: str) -> bool:
    try:
        return Path(name).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _inline(text: str) -> Iterator[tuple[str, str]]:
    if len(text) > MAX_TEXT:
        raise ScenarioError(f"kv_budget has {len(text):,} characters; {MAX_TEXT:,} are the most. Put it in a file.")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ",; \t\r\n", True, ""
    try:
        words = list(lexer)
    except ValueError:
        raise ScenarioError(f"kv_budget is {shown(text)!r}: a quote is not closed.") from None
    for word in words:
        match = _ITEM.fullmatch(word)
        if match is None:
            raise ScenarioError(f"kv_budget has {shown(word)!r}. Write name=value, such as max_batch_size=8.")
        yield match[1].replace("-", "_"), match[2]


def _from_file(name: str) -> Stated:
    where = shown(name, 200)
    try:
        path = Path(name).expanduser()
        if path.exists() and not path.is_file():
            raise ScenarioError(f"{where}: is not a file. Name the config.json, YAML or env file itself.")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = " Settings are written name=value." if "=" not in name else ""
        raise ScenarioError(f"{where}: cannot be read ({shown(reason)}).{hint}") from None
    if len(raw) > MAX_BYTES:
        raise ScenarioError(f"{where}: is larger than {MAX_BYTES:,} bytes, which no file of settings is.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{where}: is not UTF-8 text.") from None
    if text.lstrip().startswith("{"):
        return _nested(read_bytes(raw, where), where)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    matches = [_ENV.fullmatch(line) for line in lines]
    if lines and all(matches):
        return Stated(where, True, tuple((m[1], _unquoted(m[2])) for m in matches[:MAX_PAIRS] if m))
    data = read_text(text, where).data
    if not isinstance(data, dict):
        raise ScenarioError(f"{where}: is neither an engine's config.json, nor YAML options, nor lines of NAME=value.")
    return _nested(data, where)


def _unquoted(value: str) -> str:
    """A value of an env file, without the quotes around it."""
    if len(value) >= 2 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1]
    return value.split(" #", 1)[0].strip()


def _nested(data: Mapping[str, Any], where: str) -> Stated:
    """The scalars of those parts that hold settings; a name that several have is the first one's."""
    found: dict[str, str] = {}
    for part in PARTS:
        inside: Any = data
        for key in part:
            inside = inside.get(key) if isinstance(inside, dict) else None
        for name, value in (inside if isinstance(inside, dict) else {}).items():
            plain = _spelled(part, str(name))
            if isinstance(value, (str, int, float)) and plain not in found:
                found[plain] = json.dumps(value) if isinstance(value, bool) else str(value)
    pretrained = data.get("pretrained_config")
    layers = pretrained.get("num_hidden_layers") if isinstance(pretrained, dict) else None
    return Stated(where, True, tuple(found.items()), layers if type(layers) is int else None)


def _spelled(part: tuple[str, ...], name: str) -> str:
    """`dtype` in kv_cache_config is the cache's."""
    return "kv_cache_dtype" if part[-1:] == ("kv_cache_config",) and name == "dtype" else name
