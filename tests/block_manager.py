"""vLLM's scheduler and block manager, simulated in plain Python from the rules of its source (0.33.0); no sheetgen.

Read there: v1/core/sched/scheduler.py (`schedule`), v1/core/kv_cache_manager.py (`allocate_slots`),
v1/core/single_type_kv_cache_manager.py and v1/kv_cache_interface.py (`max_admission_blocks_per_request`). Prefixes are
not shared, nothing is drafted, requests come first served. Left out is the null block: the one block of a pool that
vLLM sets aside, which neither its log nor a sizing takes off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Table = Sequence[int]


def ceil_div(n: int, by: int) -> int:
    return -(-n // by)


@dataclass(frozen=True)
class Group:
    """KV groups of one kind: growing, sliding, chunked, state (one block) or aligned (states at ends of blocks)."""

    kind: str
    block: int
    count: int = 1
    window: int = 0

    def skipped(self, processed: int) -> int:
        """Tokens that no later step reads (get_num_skipped_tokens)."""
        if self.kind == "sliding":
            return max(0, processed - self.window + 1)
        if self.kind == "chunked":
            return processed // self.window * self.window
        return max(0, processed - 1) if self.kind == "aligned" else 0

    def gate(self, tokens: int, in_flight: int, max_model_len: int) -> int:
        """Blocks that admission asks for (apply_admission_cap)."""
        blocks = ceil_div(tokens, self.block)
        if self.kind == "sliding":
            blocks = min(blocks, ceil_div(min(self.window - 1 + in_flight, max_model_len), self.block) + 1)
        if self.kind == "chunked":
            blocks = min(blocks, ceil_div(min(self.window + in_flight, max_model_len), self.block))
        return min(1, blocks) if self.kind in ("state", "aligned") else blocks


@dataclass(eq=False)
class Request:
    """A request: its length in tokens, its progress, and the blocks that it holds."""

    prompt: int
    output: int
    tokens: int = 0  # of the prompt and, so far, of the answer
    computed: int = 0
    flying: list[int] = field(default_factory=list)  # tokens of the steps that are not settled, the oldest first
    tables: dict[Group, Table] = field(default_factory=dict)  # which blocks of its sequence it holds, by group

    def __post_init__(self) -> None:
        self.tokens = self.prompt


class Engine:
    """The scheduler over a pool of blocks.

    in_flight: steps under way, 1, or 2 with asynchronous scheduling. gate: whether a request is admitted only if its
    whole prompt fits.
    """

    def __init__(
        self,
        groups: list[Group],
        n_blocks: int,
        batched_tokens: int,
        max_model_len: int,
        in_flight: int = 1,
        gate: bool = True,
    ) -> None:
        self.groups, self.free, self.batched_tokens, self.gate = groups, n_blocks, batched_tokens, gate
        self.max_model_len, self.in_flight = max_model_len, in_flight
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.preempted = 0
        self.refused = 0  # steps in which the first of the queue was not admitted for want of blocks

    def step(self) -> list[Request]:
        """One step of `schedule`. Returns the requests that it finished."""
        budget, before, index = self.batched_tokens, self.preempted, 0
        scheduled: dict[Request, int] = {}
        while index < len(self.running) and budget > 0:
            request = self.running[index]
            new = self._chunk(request, budget)
            while not (fits := self._allocate(request, new)) and index < len(self.running):
                self._preempt(self.running.pop())
            if not fits:
                break
            scheduled[request], budget, index = new, budget - new, index + 1
        while self.waiting and budget > 0 and self.preempted == before:
            request = self.waiting[0]
            new, in_flight = self._chunk(request, budget), self.in_flight * self.batched_tokens
            asked = sum(g.count * g.gate(request.tokens, in_flight, self.max_model_len) for g in self.groups)
            if new == 0 or (self.gate and asked > self.free) or not self._allocate(request, new):
                self.refused += new > 0
                break
            self.running.append(self.waiting.pop(0))
            scheduled[request], budget = new, budget - new
        return self._settle(scheduled)

    def _preempt(self, request: Request) -> None:
        self._free(request)
        request.computed, request.flying = 0, []
        self.waiting.insert(0, request)
        self.preempted += 1

    def _chunk(self, request: Request, budget: int) -> int:
        """Tokens of its next step: what is left of the prompt within the budget, or one."""
        end = min(request.computed + budget, request.tokens)
        if end < request.tokens:  # states at ends of blocks: chunks end there, but for the last
            end = min([end // g.block * g.block for g in self.groups if g.kind == "aligned"], default=end)
        return max(0, end - request.computed)

    def _allocate(self, request: Request, new: int) -> bool:
        """Free what slid out of windows on the settled tokens, then take the blocks of this step, if there are any."""
        settled, end = request.computed - sum(request.flying), request.computed + new
        wanted: dict[Group, Table] = {}
        for g in self.groups:
            table = request.tables.get(g, ())
            gone, last = g.skipped(settled) // g.block, table[-1] if table else -1
            kept: Table
            more: Table
            if g.kind == "state":
                kept, more = table, () if table else (0,)
            elif g.kind == "aligned":  # the state after this step; what lies between stays empty
                kept, state = tuple(i for i in table if i >= gone), ceil_div(end, g.block) - 1
                more = (state,) if state > last else ()
            else:
                kept = range(max(gone, table[0]), last + 1) if table else ()
                more = range(max(last + 1, gone), ceil_div(end, g.block))
            self.free += g.count * (len(table) - len(kept))
            request.tables[g] = kept
            wanted[g] = more
        needed = sum(g.count * len(blocks) for g, blocks in wanted.items())
        if needed > self.free:
            return False
        self.free -= needed
        for g, more in wanted.items():
            if more:
                kept = request.tables[g]
                in_one = isinstance(more, range)
                request.tables[g] = range((*kept[:1], *more[:1])[0], more[-1] + 1) if in_one else (*kept, *more)
        return True

    def _free(self, request: Request) -> None:
        self.free += self.held(request)
        request.tables = {}

    def held(self, request: Request) -> int:
        """Blocks that a request holds."""
        return sum(g.count * len(table) for g, table in request.tables.items())

    def _settle(self, scheduled: dict[Request, int]) -> list[Request]:
        """Run the step: its tokens are computed, and a request whose prompt has been read writes one token."""
        for request in self.running:
            new = scheduled.get(request, 0)
            request.computed += new
            request.flying = [*request.flying, new][1 - self.in_flight :] if self.in_flight > 1 else []
            request.tokens += request.computed == request.tokens
        done = [request for request in self.running if request.tokens == request.prompt + request.output]
        for request in done:
            self.running.remove(request)
            self._free(request)
        return done
