"""One load of the user's own: a context and a number of users, in place of the catalog's workloads and tiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.errors import ScenarioError
from sheetgen.formula import round_up
from sheetgen.scenario import parse
from sheetgen.scenario.amounts import DEFAULTS, OUTPUT_TOKENS

MOST_USERS = 1_000_000_000


def one_workload(options: Mapping[str, Any]) -> tuple[Workload]:
    """The workload behind `context_tokens`, `input_tokens` and `output_tokens`, split as in `size`."""

    def given(name: str, least: int = 0) -> int | None:
        value = options.get(name)
        if value is None:
            return None
        return 0 if str(value).strip() == "0" and least == 0 else parse.tokens(value, name)

    context = given("context_tokens", 1) or int(DEFAULTS["context_tokens"])
    asked_in, asked_out = given("input_tokens"), given("output_tokens")
    output = min(OUTPUT_TOKENS, context // 2) if asked_out is None else asked_out
    if asked_in is not None and asked_out is None:
        output = context - asked_in
    prompt = context - output if asked_in is None else asked_in
    if min(prompt, output) < 0 or prompt + output > context:
        raise ScenarioError(
            f"input_tokens and output_tokens do not fit in the context of {context:,} tokens. Together they "
            f"may be {context:,} at most."
        )
    words = f"{context:,} tokens of context"
    asked = _Asked.model_construct(
        id="asked", name=words, input_tokens=prompt, output_tokens=output, about=words, source="the question",
        context=context,
    )  # fmt: skip
    return (asked,)


class _Asked(Workload):
    """A workload whose input and output may leave a part of the context unused."""

    context: int

    @property
    def context_tokens(self) -> int:
        return self.context


def requests_in_flight(options: Mapping[str, Any], active_fraction: float) -> tuple[int]:
    """Requests in flight at the peak: users x the share of them that is active, rounded up."""
    users = options.get("users")
    people = 1 if users is None else parse.whole(users, "users", most=MOST_USERS)
    return (int(round_up(people * active_fraction)),)


def over_limit(context_tokens: int, limit: int, model_id: str) -> ScenarioError:
    """What to raise where the one context is more than the model allows."""
    return ScenarioError(
        f"context_tokens is {context_tokens:,}, over the {limit:,} that {model_id} allows. Use {limit} or less."
    )
