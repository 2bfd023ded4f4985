"""Lets the helpers explain a failed assert (pyproject.toml puts their folders on the path); says what tests counted."""

import pytest

pytest.register_assert_rewrite("recalculation", "books", "money_cells", "agreement")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded as `counted` ends the run, from every process of it."""
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "counted":
                terminalreporter.write_line(text)
