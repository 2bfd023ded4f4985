"""Lets the helpers explain a failed assert (pyproject.toml puts their folders on the path)."""

import pytest

pytest.register_assert_rewrite("recalculation", "books", "money_cells")
