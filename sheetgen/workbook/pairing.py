"""Which tier, workload and model of one sheet is which of the other: by name and by number, never by place alone."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.workbook.sheet_facts import Load, SheetFacts, same

ASKED = "asked"  # the workload of `recommend`: a context of the user's own


@dataclass(frozen=True)
class Pairing:
    """Pairs (of A, of B); what stands alone is in neither."""

    tiers: tuple[tuple[int, int], ...]
    workloads: tuple[tuple[str, str], ...]
    models: tuple[str, ...]

    def loads(self) -> list[tuple[Load, Load]]:
        """Every load that both sheets have, in B's order."""
        return [
            ((model, wa, ta), (model, wb, tb))
            for model in self.models
            for wa, wb in self.workloads
            for ta, tb in self.tiers
        ]

    def in_a(self, workload: str, tier: int) -> tuple[str, int] | None:
        """A's name for a workload and tier of B."""
        wa = next((a for a, b in self.workloads if b == workload), None)
        ta = next((a for a, b in self.tiers if b == tier), None)
        return (wa, ta) if wa is not None and ta is not None else None


def pair(a: SheetFacts, b: SheetFacts) -> Pairing:
    """Tiers of the same number of requests are the same; of the others, those of the same rank."""
    return Pairing(_tiers(a, b), _workloads(a, b), tuple(m for m in b.models if m in a.models))


def _tiers(a: SheetFacts, b: SheetFacts) -> tuple[tuple[int, int], ...]:
    left = {i: n for i, n in enumerate(b.tiers, 1)}
    found: list[tuple[int, int]] = []
    alone: list[int] = []
    for i, requests in enumerate(a.tiers, 1):
        at = next((k for k, n in left.items() if same(n, requests)), None)
        if at is None:
            alone.append(i)
        else:
            found.append((i, at))
            del left[at]
    found += [(i, i) for i in alone if i in left]
    return tuple(sorted(found, key=lambda one: one[1]))


def _workloads(a: SheetFacts, b: SheetFacts) -> tuple[tuple[str, str], ...]:
    """The same id; the one load of `recommend` is the other sheet's workload of the same context and answer."""
    found = [(key, key) for key in b.workloads if key in a.workloads]
    left_a = [k for k in a.workloads if k not in b.workloads]
    left_b = [k for k in b.workloads if k not in a.workloads]
    for wa in left_a:
        for wb in left_b:
            lengths = [(w.context_tokens, w.output_tokens) for w in (a.workloads[wa], b.workloads[wb])]
            if ASKED in (wa, wb) and lengths[0] == lengths[1]:
                found.append((wa, wb))
                left_b.remove(wb)
                break
    return tuple(found)
