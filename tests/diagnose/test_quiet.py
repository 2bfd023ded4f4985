"""Texts in which nothing of memory failed: healthy starts, other errors, and prose about errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from corpus import is_alarm, quiet, verdict_on

from sheetgen.catalog import Catalog
from sheetgen.diagnose.cause import HEALTHY, QUOTED, SOURCE, UNDETERMINED
from sheetgen.diagnose.diagnosis import diagnose, headline
from sheetgen.diagnose.prose import is_printed, is_quoted, is_text


def test_no_quiet_text_is_an_alarm(tmp_path: Path) -> None:
    """No part of memory is claimed; where prose quotes the words of a failure, the sentence says so."""
    path, kinds, unguarded = tmp_path / "x.log", Counter[str](), []
    for name, (kind, text) in quiet().items():
        path.write_text(text, encoding="utf-8")
        verdict = verdict_on(path)
        assert not is_alarm(verdict), (name, verdict.cause)
        kinds[kind] += 1
        if kind == "quoted" and verdict.cause.label not in (UNDETERMINED, HEALTHY) and QUOTED not in verdict.notes:
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


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
MAILS = (
    f'Hi all,\n\nhas anybody seen "{OOM}"?\n\nThanks, Ann\n',
    'Has anybody seen "CUDA out of memory"?\n',
    "Does somebody know what CUDA out of memory means?\n",
    f"Subject: {OOM}\n\nNothing to do today, it was another team's server.\n",
    "Re: CUDA out of memory\n\nAll is well now.\n> what did you do about it?\nI do not know.\n",
    f"Yesterday someone asked what `{OOM}` means. It did not happen to us.\n",
    f"- we do not alert on `{WORDS}` any more\n- the rest stays as it is\n",
)
SOURCES = (
    f'        raise ValueError("{WORDS}. Try increasing `gpu_memory_utilization` when initializing the engine.")\n',
    f'vllm/v1/core/kv_cache_utils.py:583:            raise ValueError("{WORDS}. Try increasing it")\n',
    f'+    raise ValueError(f"{WORDS}.")\n',
    f'            "{WORDS}. Try increasing "\n            "`gpu_memory_utilization` when initializing the engine."\n',
    f'    logger.error("{WORDS}")\n',
    'if "CUDA out of memory" in str(error):\n    return True\n',
    'OOM = re.compile("CUDA out of memory")\n',
    'const char * text = "CUDA out of memory";\n',
    '  throw std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB");\n',
    f"// {OOM}\n",
    f'    assert "{WORDS}" not in log\n',
)
COMMANDS = (
    'grep -rn "CUDA out of memory" server.log\nserver.log: no matches\n',
    'ann@node7:~/logs$ grep -c "CUDA out of memory" *.log\na.log:0\nb.log:0\n',
    "$ kubectl logs llm-0 | grep 'No available memory for the cache blocks'\n",
    "+ grep -q OutOfMemoryError: CUDA out of memory server.log\n+ echo fine\nfine\n",
    f"rg '{OOM}' .\n",
)
PRINTED = (  # which look like these and are lines of logs
    LOG,
    f'{{"level":"ERROR","msg":"ValueError: {WORDS}."}}\n',
    f'level=error msg="ValueError: {WORDS}."\n',
    f"Exception: ValueError('{WORDS}.')\n",
    f"ERROR 11-20 10:00:00 core.py:1] raise ValueError('{WORDS}')\n",
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3/dist-packages/vllm/v1/core/kv_cache_utils.py", line 583, in check\n'
    f'    raise ValueError("{WORDS}. Try increasing it")\n',
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3/dist-packages/vllm/v1/core/kv_cache_utils.py", line 583, in check\n'
    f'    raise ValueError("{WORDS}.")\nValueError: {WORDS}.\n',
    f"node7 engine: ValueError: {WORDS}.\n",
)


@pytest.mark.parametrize("text", [*MAILS, *SOURCES, *COMMANDS])
def test_words_that_are_quoted_sought_or_in_source_code_are_no_alarm(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text, encoding="utf-8")
    verdict = verdict_on(path)
    assert not is_alarm(verdict)
    assert verdict.notes == ((QUOTED,) if text in MAILS else (SOURCE,))
    told = headline(diagnose(str(path), {}, Catalog()))
    assert "ran out" not in told and (
        "quotes a failure" in told or "in source code or in a command" in told or "If " in told
    )


@pytest.mark.parametrize("text", PRINTED)
def test_lines_of_logs_that_look_like_source_code_are_claimed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text, encoding="utf-8")
    assert is_alarm(verdict_on(path)) and verdict_on(path).notes == ()
