"""The requests that a pool is said to hold, against a simulation of vLLM's block manager (block_manager.py).

The fair pattern: prompts are read one after the other, and all requests come to their last token together, the newest
by having a prompt of nearly the whole context. At the count given nothing is refused or preempted; at the next the
newest is not admitted while the others run, or somebody is preempted.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from amounts import amount
from block_manager import Engine, Group, Request
from brute_force import checkpoint_tokens, layout

from sheetgen.api import sized_point
from sheetgen.catalog import Catalog
from sheetgen.sizing.kv_cache import held_sequences

# By model a context whose last token opens a block of every kind, where windows touch most blocks.
CONTEXTS = {
    "gemma-3-27b": 32768, "gemma-2-27b": 8192, "gpt-oss-120b": 16384, "mistral-7b-v0.1": 16384,
    "mimo-v2-flash": 16384, "llama-4-scout-17b-16e": 65536, "deepseek-v3": 16384, "llama-3.1-8b": 8192,
    "qwen3.6-27b": None, "nvidia-nemotron-3-nano-30b-a3b-bf16": None, "ai21-jamba-1.5-mini": None,
}  # fmt: skip
RELEASES = ("0.19.0", "0.33.0")  # states in one block, one step under way; states at ends of blocks, two steps
ANSWER = 2  # tokens of the newest request


@cache
def known(model: str, context: int, version: str) -> dict[str, float]:
    asked = {"model": model, "gpu": "h200", "engine_version": version, "context_tokens": context}
    sized = sized_point(asked, Catalog())
    return {
        name: float(column[0])
        for name, column in sized.known.items()
        if name
        in (
            "kv_blocks_per_sequence",
            "kv_blocks_per_sequence_steady",
            "max_num_batched_tokens",
            "in_flight_batches",
            "state_blocks",
            "checkpoint_blocks",
        )
    }


def shape(model: str, version: str) -> tuple[int, list[Group], int, int]:
    """Its context, its KV groups, the tokens of a step and the steps under way."""
    shape = layout(model, 1, "bf16", leaves_checkpoints=version == "0.33.0")
    context = CONTEXTS[model] or 16384 // shape.blocks["growing"] * shape.blocks["growing"] + 2
    values = known(model, context, version)
    groups = [Group("growing", shape.blocks["growing"], shape.groups["growing"])] if shape.groups["growing"] else []
    if shape.groups["windowed"]:
        kind = "chunked" if shape.chunked else "sliding"
        groups.append(Group(kind, shape.blocks["windowed"], shape.groups["windowed"], shape.window))
    if shape.groups["state"]:
        aligned = values["state_blocks"] > 1
        groups.append(Group("aligned" if aligned else "state", shape.blocks["growing"], shape.groups["state"]))
    return context, groups, int(values["max_num_batched_tokens"]), int(values["in_flight_batches"])


def held(model: str, version: str, n_blocks: int) -> int:
    """The requests that sheetgen says a pool of so many blocks holds."""
    values = known(model, shape(model, version)[0], version)
    return int(held_sequences(n_blocks, values["kv_blocks_per_sequence"], values["kv_blocks_per_sequence_steady"]))


def together(engine: Engine, context: int, n_requests: int) -> bool:
    """True where so many requests are served together in the fair pattern, without refusal or preemption."""
    end, now = 40 * n_requests + 2 * context // engine.batched_tokens, 0
    for arrived in range(n_requests):
        newest = arrived == n_requests - 1
        if newest:
            prompt = context - ANSWER
            while now < end - steps(engine, prompt) - ANSWER + 2:
                engine.step()
                now += 1
        else:  # the prompt that comes to its last token at the end
            prompt = next(p for p in range(context - 1, 0, -1) if now + steps(engine, p) + context - p - 2 >= end)
        request = Request(prompt, context - prompt)
        engine.waiting.append(request)
        # Until its prompt is read: till the next one comes, the step that read the last of it is settled, too.
        while request.computed - (0 if newest else sum(request.flying)) < prompt:
            engine.step()
            now += 1
            if engine.refused or engine.preempted:
                return False
    running = list(engine.running)
    assert len(running) == n_requests and max(r.tokens for r in running) < context
    while engine.running and not engine.preempted:
        finished = engine.step()
        assert len(finished) in (0, n_requests) or engine.preempted, "all come to their last token together"
    return not engine.preempted


def steps(engine: Engine, prompt: int) -> int:
    """Steps that a prompt takes while the others decode."""
    request, n = Request(prompt, 1), 0
    while request.computed < prompt:
        request.computed += engine._chunk(request, engine.batched_tokens - len(engine.running))
        n += 1
    return n


@pytest.mark.some(5)
@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("model", CONTEXTS)
def test_the_count_is_served_together_and_one_more_is_not(model: str, version: str) -> None:
    context, groups, batched, in_flight = shape(model, version)
    values = known(model, context, version)
    charge, steady = int(values["kv_blocks_per_sequence"]), int(values["kv_blocks_per_sequence_steady"])
    # The charge is that of the start-up log. Where a window and the steps under way reach the context it has a block
    # more than the gate asks for while serving. With two steps under way the prompt that is read keeps a third state,
    # which it has not; and a chunk of attention one block more in a single step, as it ends, so not at the gate.
    gate = sum(g.count * g.gate(context - ANSWER, in_flight * batched, context) for g in groups)
    count_of = {g.kind: g.count for g in groups}
    third, ends = (count_of.get(kind, 0) * (in_flight - 1) for kind in ("aligned", "chunked"))
    # So has it no block for a state that a prompt leaves in the prefix cache, which the charge has from 0.33 on.
    left = count_of.get("aligned", 0) * int(values["checkpoint_blocks"]) if checkpoint_tokens(model) else 0
    more = (count_of.get("sliding", 0) if gate < charge else 0) + left
    for others in (0, 1, 4, 9):
        for spare in (third, steady - 1 - more - ends * (others + 1)):
            pool = charge + others * steady + spare
            count = held(model, version, pool)
            assert count == 1 + others
            assert together(Engine(groups, pool, batched, context, in_flight), context, count)
            assert not together(Engine(groups, pool, batched, context, in_flight), context, count + 1)


@pytest.mark.some(8)
@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("model", CONTEXTS)
def test_whenever_they_arrive_the_count_is_never_preempted(model: str, version: str, gate: bool) -> None:
    """All at once, then whenever one is done, of any length up to the context: several prompts share a step, and one
    may wait at the gate; nobody is sent back. Without the gate (before 0.19, or switched off) neither."""
    chance = random.Random(f"{model} {version} {gate}")
    context, groups, batched, in_flight = shape(model, version)
    values = known(model, context, version)
    third = sum(g.count for g in groups if g.kind == "aligned") * (in_flight - 1)
    for _ in range(amount(4, 40)):
        others = chance.randint(0, 9)
        pool = int(values["kv_blocks_per_sequence"] + others * values["kv_blocks_per_sequence_steady"]) + third
        engine = Engine(groups, pool, batched, context, in_flight, gate)
        count, n_done, steps = held(model, version, pool), 0, 0
        while n_done < 30:
            while len(engine.waiting) + len(engine.running) < count and (not steps or chance.random() < 0.5):
                prompt = chance.choice([context - 1, chance.randint(1, context - 1)])
                engine.waiting.append(Request(prompt, min(chance.randint(1, 400), context - prompt)))
            n_done, steps = n_done + len(engine.step()), steps + 1
            assert not engine.preempted
