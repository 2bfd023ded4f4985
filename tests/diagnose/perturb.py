"""The same failure in another log: other numbers, paths, models, times, wrappings, unrelated lines, order of ranks."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)( ?(?:GiB|MiB|GB)\b)")
_TOKENS = re.compile(r"(?<=[(= ])(\d{3,9})(?=\)| tokens| `|, \(|$)")
_PLACES = re.compile(r"(?<=pid=)\d+|(?<=line )\d+|(?<=\.py:)\d+|0x[0-9a-f]{8,}|(?<=:)\d{5}(?= -)|(?<=Process )\d{4}")
_TIME = re.compile(r"\d\d:\d\d:\d\d")
_PATH = re.compile(
    r"(?:/usr/local/lib/python3\.1\d/dist-packages|/opt/\w+/lib/python3\.\d+/site-packages|\.\.\./site-packages)"
)
_MODEL = re.compile(r"(?<=model=')[^']{1,80}(?=')|(?<=for model )\S{3,60}")
_RANK = re.compile(r"\((?:Vllm|Ray)?Worker[^)]{0,40}\)|\[RANK \d\]| TP\d\]")
UNRELATED = (
    'INFO:     10.1.2.3:45678 - "GET /health HTTP/1.1" 200 OK',
    'INFO:     10.1.2.3:45679 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "Special tokens have been added in the vocabulary, make sure the associated word embeddings are trained.",
    "UserWarning: pynvml is deprecated. If you are running out of memory, consider reading the documentation.",
    "If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization`.",
    "10.4.4.4 - - [02/Jan/2026:11:11:11 +0000] nginx upstream keepalive 32",
    "level=info component=sidecar msg=\"config reloaded\"",
)  # fmt: skip
Perturbation = Callable[[list[str], random.Random], list[str]]


def numbers(lines: list[str], dice: random.Random) -> list[str]:
    """Sizes and tokens grow or shrink together, so that what was too small still is; places are anywhere."""
    factor = dice.choice((0.53, 0.79, 1.37, 2.11))

    def scaled(match: re.Match[str]) -> str:
        digits = len(match[1].partition(".")[2])
        rest = match[2] if match.lastindex and match.lastindex > 1 else ""
        return (f"{float(match[1]) * factor:.{digits}f}" if digits else str(int(float(match[1]) * factor))) + rest

    places = [
        _PLACES.sub(lambda m: str(dice.randrange(10, 9999)) if m[0].isdigit() else "0x7fdead00beef", s) for s in lines
    ]
    return [_TOKENS.sub(scaled, _SIZE.sub(scaled, line)) for line in places]


def times(lines: list[str], dice: random.Random) -> list[str]:
    """Another day; the seconds between lines stay out of the rules."""
    return [
        _TIME.sub(f"{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}", line) for line in lines
    ]


def paths(lines: list[str], dice: random.Random) -> list[str]:
    home = dice.choice(("/srv/app/.venv/lib/python3.11/site-packages", "C:/env/Lib/site-packages", "/workspace/dist"))
    return [_PATH.sub(home, line) for line in lines]


def models(lines: list[str], dice: random.Random) -> list[str]:
    """Another model wherever one is named, and a line that names it."""
    name = dice.choice(("acme/fox-13b", "/mnt/weights/zeta", "org/Mix-8x22B-v3"))
    return [f"tokenizer of {name} loaded from cache", *(_MODEL.sub(name, line) for line in lines)]


def unrelated(lines: list[str], dice: random.Random) -> list[str]:
    """Lines of others before, between and after."""
    out: list[str] = []
    for line in lines:
        out += [*dice.choices(UNRELATED, k=dice.randrange(0, 4)), line]
    return out + dice.choices(UNRELATED, k=5)


def compose(lines: list[str], dice: random.Random) -> list[str]:
    name = dice.choice(("vllm-1", "llm", "server-0"))
    return [f"{name}  | {line}" for line in lines]


def docker(lines: list[str], dice: random.Random) -> list[str]:
    return [json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05.6Z"}) for line in lines]


def kubernetes(lines: list[str], dice: random.Random) -> list[str]:
    return [f"2026-01-02T03:04:{dice.randrange(60):02}.123456789Z stderr F {line}" for line in lines]


def journal(lines: list[str], dice: random.Random) -> list[str]:
    return [f"Jan 02 03:04:05 node7 engine[{dice.randrange(9999)}]: {line}" for line in lines]


def colours(lines: list[str], dice: random.Random) -> list[str]:
    return [f"\x1b[1;3{dice.randrange(8)}m{line[:9]}\x1b[0m{line[9:]}" if len(line) > 40 else line for line in lines]


def ranks(lines: list[str], dice: random.Random) -> list[str]:
    """Each rank keeps its order, the ranks are mixed anew; lines of none stay with the line before them."""
    groups: dict[str, list[list[str]]] = {}
    now = ""
    for line in lines:
        match = _RANK.search(line[:200])
        now = match[0] if match else now
        groups.setdefault(now, []).append([line])
    if len(groups) < 2:
        return lines
    out: list[str] = []
    queues = list(groups.values())
    while queues:
        queue = dice.choice(queues)
        out += queue.pop(0)
        queues = [q for q in queues if q]
    return out


PERTURBATIONS: dict[str, Perturbation] = {
    f.__name__: f
    for f in (numbers, times, paths, models, unrelated, compose, docker, kubernetes, journal, colours, ranks)
}
