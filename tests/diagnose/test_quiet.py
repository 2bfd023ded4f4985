"""Texts in which nothing of memory failed: healthy starts, other errors, and prose about errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from corpus import is_alarm, quiet, verdict_on

from sheetgen.diagnose.cause import HEALTHY, QUOTED, UNDETERMINED
from sheetgen.diagnose.prose import is_printed, is_quoted, is_text


def test_no_quiet_text_is_an_alarm(tmp_path: Path) -> None:
    """No part of memory is claimed; where prose quotes the words of a failure, the sentence says so."""
    path, kinds, unguarded = tmp_path / "x.log", Counter[str](), []
    for name, (kind, text) in quiet().items():
        path.write_text(text, encoding="utf-8")
        verdict = verdict_on(path)
        assert not is_alarm(verdict), (name, verdict.bill)
        kinds[kind] += 1
        if kind == "quoted" and verdict.bill.label not in (UNDETERMINED, HEALTHY) and QUOTED not in verdict.notes:
            unguarded.append(name)
        assert kind != "healthy" or verdict.failure is None, name
    assert sum(kinds.values()) >= 300 and min(kinds.values()) >= 60
    assert len(unguarded) <= 0.05 * kinds["quoted"], unguarded


LOG = "(EngineCore pid=5) ERROR 11-20 10:00:00 [core.py:1] ValueError: No available memory for the cache blocks.\n"
WORDS = "No available memory for the cache blocks"


def test_the_words_of_a_log_are_claimed(tmp_path: Path) -> None:
    """That the test above can fail: the same words, printed, stated alone, and below a description, are claimed."""
    path = tmp_path / "x.log"
    story = "I get this error when I start the server, and I do not know what I should do about it.\n"
    for text in (LOG, f"ValueError: {WORDS}.\n", story + LOG, f"# Bug\n\n{story}\n{LOG}"):
        path.write_text(text, encoding="utf-8")
        assert is_alarm(verdict_on(path)), text
    path.write_text(f"{story}\n{story}\nValueError: {WORDS}.\n", encoding="utf-8")
    assert not is_alarm(verdict_on(path)) and verdict_on(path).notes == (QUOTED,)


def test_what_stands_around_the_words_tells() -> None:
    def quoted(line: str) -> bool:
        return is_quoted(line, line.index(WORDS), line.index(WORDS) + len(WORDS))

    assert quoted(f"It is what the server says when it has none: {WORDS}, and it does not start.")
    assert quoted(f"the message `{WORDS}` is new") and quoted(f"## {WORDS}")
    assert quoted(f"- raise the share if it says {WORDS}")
    assert not quoted(LOG) and not quoted(f"ValueError: {WORDS}") and not quoted(WORDS)
    assert not quoted(f"Jan 02 03:04:05 node7 engine[7867]: failed to start the server as it is: {WORDS}")
    assert is_printed(LOG) and not is_printed(WORDS)
    assert is_text("# Notes\n\nThis is what we have seen in the first week of it.\n") and not is_text(LOG * 3)
