"""A command as text that can be pasted into a shell, and the checkpoint that it names for a model in a precision."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.catalog.names import is_path
from sheetgen.catalog.stacks import Launcher
from sheetgen.errors import ScenarioError, shown
from sheetgen.scenario.deployment import Resolved

UNQUANTIZED = ("bf16", "fp16", "fp32")
DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


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


@dataclass(frozen=True)
class Checkpoint:
    """What stands for the model in a command.

    word: a Hugging Face id, a folder, or a blank in capitals where no checkpoint of the precision is known. `words`
    go beside it; dtype is what 16- or 32-bit weights are to be read as, where that is not their own.
    """

    word: str
    is_folder: bool = False
    is_known: bool = True
    words: tuple[str, ...] = ()
    dtype: str | None = None
    notes: tuple[str, ...] = ()


def checkpoint_for(
    typed: str, names: Resolved, launcher: Launcher, catalog: Catalog, loads_unquantized: bool = False
) -> Checkpoint:
    """The checkpoint for `typed`, the model as the user named it.

    loads_unquantized: whether the GPUs hold the 16-bit weights, which an engine that quantizes while it loads needs.
    Raises ScenarioError for a name or path with characters that do not show.
    """
    quoted(typed.strip())
    model, dtype = names.model, names.weight_dtype
    words = launcher.weight_dtypes.get(dtype, ())
    listed = any(typed.strip().lower() in folder.index.models for folder in catalog.folders)
    if is_path(typed) and not listed:
        return _folder(typed, model, dtype, words)
    own = _own_id(typed, model, catalog)
    base = own or model.hf_id
    named = catalog.resolve_model(typed)[1] if own else None
    if base and dtype == (named or model.weight_dtype):
        return Checkpoint(base, words=words)
    if base and named is None and dtype in UNQUANTIZED and model.weight_dtype in UNQUANTIZED:
        return Checkpoint(base, words=words, dtype=DTYPE_NAMES[dtype])
    if own is None or own == model.hf_id:
        known = known_checkpoint(model, dtype)
        if known:
            return Checkpoint(known, words=words)
    while_loading = launcher.quantizes_while_loading.get(dtype)
    if base and named is None and while_loading and model.weight_dtype in UNQUANTIZED and loads_unquantized:
        note = (
            f"no checkpoint of {base} in {dtype} is known here, so the engine makes one while it loads:"
            " slower to start, and the 16-bit weights pass through the GPU"
        )
        return Checkpoint(base, words=while_loading, notes=(note,))
    blank = f"{dtype.upper()}-CHECKPOINT-OF-{(base or model.id).rsplit('/', 1)[-1]}"
    why = f"no checkpoint of {base or model.name} in {dtype} is known here: put its id or folder in place of {blank}"
    return Checkpoint(blank, is_known=False, words=words, notes=(why,))


def known_checkpoint(model: Model, dtype: str) -> str | None:
    """The id of the checkpoint in that precision whose size is charged, or of another one; None where none has one."""
    size = model.checkpoint_bytes(dtype)
    known = [c for c in model.checkpoints if c.weight_dtype == dtype and c.hf_id]
    return next((c.hf_id for c in known if c.size_bytes == size), known[0].hf_id if known else None)


def _own_id(typed: str, model: Model, catalog: Catalog) -> str | None:
    """The Hugging Face id that was typed, in its catalog spelling where it has one; None for an id or alias of ours."""
    name = typed.strip()
    if "/" not in name:
        return None
    spelled = (model.hf_id, *model.same_architecture, *(c.hf_id for c in model.checkpoints))
    return next((one for one in spelled if one and one.lower() == name.lower()), name)


def _folder(typed: str, model: Model, dtype: str, words: tuple[str, ...]) -> Checkpoint:
    """The folder of a config on disk: an engine loads what lies in it, whatever precision was sized."""
    path = Path(typed).expanduser()
    folder = path if path.is_dir() else path.parent
    word = str(folder) if str(folder) not in ("", ".") else "./"
    word = word if word.startswith(("/", ".")) else f"./{word}"  # never read as a flag or as an id
    notes = ["the weights are expected beside the config in that folder"]
    if dtype != model.weight_dtype:
        notes.append(f"sized with {dtype} weights; the config says {model.weight_dtype}, and the engine loads that")
    return Checkpoint(word, is_folder=True, words=words if dtype == model.weight_dtype else (), notes=tuple(notes))
