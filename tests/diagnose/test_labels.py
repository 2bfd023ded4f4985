"""The labelled logs: how many come out right, and that the rules do not know them by heart."""

from __future__ import annotations

import measure_diagnose as measure
import pytest
from amounts import amount
from corpus import Labelled, corpus, more, signatures, verdict_on

from sheetgen.diagnose.cause import HEALTHY, NOT_AN_OOM, UNDETERMINED, Verdict


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    return {log.file: verdict_on(log.path) for log in corpus()}


@pytest.fixture(scope="module")
def on_more() -> dict[str, Verdict]:
    return measure.verdicts_on_more()


def share_right(verdicts: dict[str, Verdict], *decidable: str) -> float:
    right, n = measure.share(verdicts, *decidable)
    chosen = [log for log in corpus() if log.decidable in decidable]
    wrong = [(log.file, log.label, verdicts[log.file].cause) for log in chosen if not log.is_right(verdicts[log.file])]
    print(f"\n{'+'.join(decidable)}: {right} of {n} right ({100 * right / n:.1f} %)", wrong)
    return right / n


def test_what_a_file_decides_is_told(verdicts: dict[str, Verdict]) -> None:
    assert share_right(verdicts, "yes") >= 0.95
    assert share_right(verdicts, "yes", "weak") >= 0.90


def test_what_no_file_decides_is_not_guessed(verdicts: dict[str, Verdict]) -> None:
    chosen = [log for log in corpus() if log.decidable == "no"]
    sure = [log.file for log in chosen if not log.is_right(verdicts[log.file])]
    print(f"\nno: {len(chosen) - len(sure)} of {len(chosen)} undetermined or below 0.5; sure of", sure)
    assert len(sure) <= 1
    for log in chosen:
        assert verdicts[log.file].cause.missing or log.file in sure, log.file


def test_another_failure_is_never_called_an_oom(verdicts: dict[str, Verdict]) -> None:
    others = [log for log in corpus() if log.label == NOT_AN_OOM]
    assert len(others) >= 8
    for other in others:
        assert verdicts[other.file].cause.label in (NOT_AN_OOM, UNDETERMINED), other.file


def test_a_healthy_log_is_never_called_an_oom(verdicts: dict[str, Verdict]) -> None:
    for log in corpus():
        if log.label == HEALTHY:
            assert verdicts[log.file].cause.label == HEALTHY


def test_the_second_set(on_more: dict[str, Verdict]) -> None:
    """Logs of other threads: right more often than when they were held out, and never another kind of failure."""
    for kinds, least in ((("yes",), 0.95), (("yes", "weak"), 0.9), (("no",), 0.85)):
        right, n = measure.share(on_more, *kinds, labelled=more())
        print(f"\n{'+'.join(kinds)}: {right} of {n} right ({100 * right / n:.1f} %)")
        assert right / n >= least, measure.wrong_of(on_more, more())
    for log in more():
        label = on_more[log.file].cause.label
        assert log.label not in (NOT_AN_OOM, HEALTHY) or label in (log.label, UNDETERMINED), log.file


def test_the_sets_share_no_thread() -> None:
    first, second = ({log.thread for log in logs} for logs in (corpus(), more()))
    assert not first & second
    assert len(second) == len(more())
    half = [sum(log.part == part for log in more()) for part in ("mended", "held_out")]
    assert half[0] == half[1]
    for kinds, (_, n) in measure.HELD_AFTER.items():
        assert n == sum(log.part == "held_out" and log.decidable in kinds for log in more())


@pytest.mark.parametrize("logs", [corpus(), more()], ids=["first", "second"])
def test_every_verdict_shows_its_line(
    logs: tuple[Labelled, ...], verdicts: dict[str, Verdict], on_more: dict[str, Verdict]
) -> None:
    for log in logs:
        verdict = {**verdicts, **on_more}[log.file]
        n_lines = len(log.path.read_text(encoding="utf-8").splitlines())
        if verdict.cause.label != UNDETERMINED:
            assert verdict.evidence, log.file
        for evidence in verdict.evidence:
            assert 1 <= evidence.line_number <= n_lines and evidence.text.isprintable()


def test_cross_validation_by_thread(verdicts: dict[str, Verdict]) -> None:
    """A rule is judged on logs of threads other than the one that it was taken from.

    Two figures: the rules that name a thread, on the logs of all other threads that they decide; and each thread's
    logs judged by a set of rules from which all that name this thread were taken away. Without its own message a log
    may become undetermined; it must not become another label.
    """
    right, n_judged = measure.judged_elsewhere(verdicts)
    alone = measure.without_their_own(verdicts, corpus()[:: amount(3, 1)])
    counts = {how: len(logs) for how, logs in alone.items()}
    print(f"\nrules on logs of other threads: {right} of {n_judged} right ({100 * right / n_judged:.1f} %)")
    print(f"rules of other threads alone: {counts}; misled: {[fault.file for fault in alone['wrong']]}")
    assert right / n_judged >= 0.90
    assert n_judged >= 30
    assert counts["wrong"] <= 0.12 * sum(counts.values())
    assert f"{right} of {n_judged} right" in measure.PAGE.read_text(encoding="utf-8")


def test_the_page_has_these_figures(verdicts: dict[str, Verdict], on_more: dict[str, Verdict]) -> None:
    """docs/diagnose.md is written by measure_diagnose.py."""
    page = measure.PAGE.read_text(encoding="utf-8")
    assert measure.rows_of(verdicts, corpus()) in page
    assert measure.rows_of(on_more, more()) in page
    assert measure.held_rows() in page
    assert f"{len(signatures())} texts of engines" in page
