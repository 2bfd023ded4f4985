"""Speed in words: what users get of the recommended hardware, and whether memory or speed bought it."""

from __future__ import annotations

from sheetgen.recommend import Solution
from sheetgen.scenario.question import Question
from sheetgen.sheet.wording import money, plain, rent
from sheetgen.units import Display

_SECONDS = Display("0.0", 1, suffix=" s")
_MILLISECONDS = Display("#,##0", 0)
_ONE = Display("#,##0.0", 1)
FROM_SECONDS = 10  # times of so many seconds and more are shown in whole ones


def milliseconds(seconds: float) -> str:
    """Milliseconds, with a decimal below ten: 48, 6.3."""
    ms = seconds * 1e3
    return (_ONE if ms < 10 else _MILLISECONDS).text(ms)


def duration(seconds: float) -> str:
    """A time as people say it: 48 ms, 1.9 s, 47 s."""
    if seconds < 0.9995:
        return f"{milliseconds(seconds)} ms"
    return f"{_MILLISECONDS.text(seconds)} s" if seconds >= FROM_SECONDS else _SECONDS.text(seconds)


def speed_line(solved: Solution, row: int) -> str:
    """`48 ms a token (38–57), 640 tokens/s (550–810)`, with their 80 % bands."""
    choice = solved.choices[row]
    (low, high), _, (least, most) = choice.bands
    rate = _MILLISECONDS.text(choice.output_tokens_per_second)
    return (
        f"{milliseconds(choice.tpot_seconds)} ms a token ({milliseconds(low)}–{milliseconds(high)}), "
        f"{rate} tokens/s ({_MILLISECONDS.text(least)}–{_MILLISECONDS.text(most)})"
    )


def first_token_line(solved: Solution, row: int) -> str:
    """`first token 1.9 s (0.9 s–3.2 s)`, with its 80 % band; under load an indication."""
    choice = solved.choices[row]
    low, high = choice.bands[1]
    return f"first token {duration(choice.ttft_seconds)} ({duration(low)}–{duration(high)})"


def bought_by(solved: Solution, row: int) -> str:
    """What asked for the hardware: `sized by memory; it meets 50 ms a token`, or
    `sized by speed (50 ms a token); memory alone: 1 × g7e.24xlarge, $12,098`."""
    choice, question = solved.choices[row], solved.question
    target = target_words(question, row)
    if choice.without_targets is not None:
        offer, count, usd = choice.without_targets
        return f"sized by speed ({target}); memory alone: {rent(count, solved.candidate(offer))}, {money(usd)}"
    if choice.sized_by == "speed":
        return f"sized by speed ({target}), at the price that memory asks for, too"
    met = f"; it meets {target}" if target and question.settings.speed_targets else ""
    return f"sized by memory{met}"


def target_words(question: Question, row: int) -> str:
    """The targets in force for a load: 50 ms a token."""
    workload = question.workloads[question.loads[row].workload]
    words = []
    if workload.tpot_target_ms:
        words.append(f"{plain(workload.tpot_target_ms)} ms a token")
    if workload.ttft_target_ms:
        words.append(f"first token in {plain(workload.ttft_target_ms)} ms")
    return ", ".join(words)


def sizing_rule(question: Question) -> str:
    """What the sheet is sized by, for the line under its title."""
    asked = {w.id: (w.tpot_target_ms, w.ttft_target_ms) for w in question.workloads}
    if not question.settings.speed_targets or not any(any(t) for t in asked.values()):
        return "sized by memory, not speed"
    tpot = "/".join(dict.fromkeys(plain(t) for t, _ in asked.values() if t))
    ttft = "/".join(dict.fromkeys(plain(t) for _, t in asked.values() if t))
    words = [*([f"{tpot} ms a token"] if tpot else []), *([f"first token in {ttft} ms"] if ttft else [])]
    return f"sized by memory and by speed ({', '.join(words)})"
