"""Puts tests/ on the path of every test (below it too), and lets `recalculation` explain a failed assert."""

import pytest

pytest.register_assert_rewrite("recalculation")
