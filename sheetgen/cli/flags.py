"""What `sheetgen size` prints below the bills: launch flags, the stack that suits, and a KV budget read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.launch.flags import CAVEAT, Advice, Flags, advice_record, engines_asked, flags_for, flags_record
from sheetgen.launch.kv_budget import KvBudget, Settings, budget, budget_record, inputs_of
from sheetgen.units import GIB


@dataclass(frozen=True)
class Extras:
    """What --flags and --kv-budget add to one point; `requested` are its inputs, completed from the settings."""

    catalog: Catalog
    requested: dict[str, Any]
    engines: tuple[str, ...]
    settings: Settings | None

    @classmethod
    def of(cls, requested: Mapping[str, Any], flags: str | None, kv_budget: str | None, catalog: Catalog) -> Extras:
        """Raises ScenarioError for an engine or a setting that is unknown, or a file that cannot be read."""
        engines = () if flags is None else engines_asked(flags, catalog)
        if kv_budget is None:
            return cls(catalog, dict(requested), engines, None)
        settings, inputs = inputs_of(kv_budget, requested, catalog)
        return cls(catalog, inputs, engines, settings)

    def record(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The keys that they add to the point's record."""
        found: dict[str, Any] = {}
        if self.settings is not None:
            found["kv_budget"] = budget_record(budget(self.settings, self.requested, point, self.catalog))
        if self.engines:
            flags, advice = flags_for(self.engines, self.requested, point, self.catalog)
            found |= {"flags": flags_record(flags), "stack": advice_record(advice)}
        return found

    def text(self, point: Mapping[str, Any]) -> str:
        """The same below the bills."""
        text = ""
        if self.settings is not None:
            text += "\n" + budget_text(budget(self.settings, self.requested, point, self.catalog))
        if self.engines:
            text += "\n" + flags_text(*flags_for(self.engines, self.requested, point, self.catalog))
        return text


def budget_text(one: KvBudget) -> str:
    """What the settings ask for, and whether it is there."""
    answer, named = one.trial.answer, ", ".join(f"{name} {value}" for name, value in one.settings.read.items())
    engine = one.trial.names.engine
    token = answer["kv_bytes_per_token"]
    lines = [
        "",
        f"KV BUDGET of {engine.name} {engine.default_version}: {named}",
        f"  {one.n_sequences:,} sequences of {answer['max_model_len']:,} tokens, {one.budget_tokens:,} tokens in all, "
        f"{token:,} bytes each ({answer['kv_cache_dtype']}): {one.budget_bytes / GIB:,.2f} GiB, "
        f"{one.budget_bytes:,} bytes",
    ]
    if answer["kv_bytes"] != one.budget_bytes and one.budget_tokens == one.n_sequences * answer["max_model_len"]:
        lines.append(
            f"  with whole blocks, windows and states as the engine takes them: {answer['kv_bytes'] / GIB:,.2f} GiB, "
            f"{answer['kv_bytes']:,} bytes"
        )
    return "\n".join([*lines, f"  {one.verdict}", *(f"  note: {note}" for note in one.settings.notes)])


def flags_text(flags: dict[str, Flags], advice: Advice) -> str:
    """The commands one below the other, each with its check, and the line on stacks."""
    parts = ["", "LAUNCH FLAGS, each sized again under its engine with max_num_seqs at the requests asked for"]
    for one in flags.values():
        parts += ["", *_block(one)]
    sources = f"\n  {', '.join(advice.rule.sources)}" if advice.rule else ""
    return "\n".join([*parts, "", "STACK", f"  {advice.line}{sources}", f"  {CAVEAT}"])


def _block(one: Flags) -> list[str]:
    lines = [f"# {one.name}: {one.checked.verdict}", *(f"# {line}" for line in _held(one))]
    if one.written is None:
        lines.append("# No command: the engine would not start with these inputs.")
    for remedy in one.checked.remedies:
        lines.append(f"# would hold: {one.flag(remedy)} ({remedy.says})")
    lines += [f"# note: {note}" for note in one.notes]
    if one.written is not None:
        lines.append(one.text(one.written))
        for name, other in one.written.other.items():
            lines += ["", f"# {name}", *(f"# note: {note}" for note in other.notes), one.text(other)]
    return lines


def _held(one: Flags) -> list[str]:
    """What the printed flags hold, by the prediction."""
    printed = one.checked.printed
    if printed is None:
        return []
    answer = printed.answer
    each = " on each data-parallel rank" if answer["data_parallel_size"] > 1 else ""
    return [
        f"These flags hold {answer['max_num_seqs']:,} sequence{'' if answer['max_num_seqs'] == 1 else 's'}{each}: "
        f"KV pool {answer['kv_pool_bytes_per_gpu'] / GIB:,.2f} GiB on each GPU, {answer['kv_tokens']:,} tokens, "
        f"{answer['max_concurrency']:,.2f} sequences of {answer['max_model_len']:,} tokens."
    ]
