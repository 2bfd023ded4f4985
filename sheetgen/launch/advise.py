"""One line on the stack that suits a point's KV pattern, with its numbers, its reason and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sheetgen.catalog.stacks import Rule, StackFile
from sheetgen.launch.check import Checked
from sheetgen.launch.facts import facts_of, shown_facts

CAVEAT = "Whether a stack knows the model's architecture is not checked here: read its list of models."


@dataclass(frozen=True)
class Advice:
    """engine is None where no stack can serve the point. room: sequences that each stack's flags hold at once."""

    engine: str | None
    rule: Rule | None
    line: str
    room: Mapping[str, int]


def advise(checked: Mapping[str, Checked], stacks: StackFile) -> Advice:
    """The first rule that holds for the point and one of whose stacks can serve it.

    checked: every launcher's check of the same point. Of a rule's stacks the one with the most room is named, or its
    first where it can serve at all.
    """
    some = next(iter(checked.values()))
    facts = facts_of(some.asked)
    room = {engine: _room(one) for engine, one in checked.items() if one.printed is not None}
    for rule in stacks.rules:
        able = [engine for engine in rule.suits if engine in room]
        if able and all(one.holds(facts) for one in rule.when):
            able = _ranked(able, rule, room, checked, stacks.room_tie_fraction)
            sentence = rule.says.format(**shown_facts(facts))
            return Advice(able[0], rule, _line(able, sentence, room, checked), room)
    return Advice(None, None, "no stack: under none of them would the engine start. See what each one lacks.", room)


def _ranked(
    able: list[str], rule: Rule, room: Mapping[str, int], checked: Mapping[str, Checked], tie: float
) -> list[str]:
    """The rule's first, then those that hold all requests, then by room; about equal rooms stay in the rule's order."""
    most = max(room[engine] for engine in able)

    def rank(engine: str) -> tuple[bool, bool, int]:
        behind = 0 if room[engine] >= most * (1 - tie) else most - room[engine]
        return engine != rule.first, not checked[engine].fits, behind

    return sorted(able, key=rank)


def _room(one: Checked) -> int:
    """Sequences of this context that the flags' pool holds, on all data-parallel ranks."""
    assert one.printed is not None
    return int(one.printed.known["sequences_in_pool"] * one.printed.known["data_parallel_size"])


def _line(able: list[str], sentence: str, room: Mapping[str, int], checked: Mapping[str, Checked]) -> str:
    first, *others = able
    point = checked[first].asked.answer
    name = {engine: checked[engine].asked.names.engine.name for engine in able}
    asked = point["concurrent_requests"]
    all_of = "" if checked[first].fits else f" of the {asked:,} asked for"
    held = f"its pool holds {room[first]:,} requests of {point['context_tokens']:,} tokens{all_of}"
    others.sort(key=lambda engine: -room[engine])
    beside = ", ".join(f"{room[engine]:,} {name[engine]}" for engine in others)
    return f"{name[first]}: {sentence}; {held}{f' ({beside})' if beside else ''}."
