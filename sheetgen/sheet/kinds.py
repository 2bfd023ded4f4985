"""What each sheet of the workbook is, input, workings, output or control: its second line says so, and its tab."""

from __future__ import annotations

INPUT, WORKINGS, OUTPUT, CONTROL = "Input", "Workings", "Output", "Control"
KINDS = {
    "Sizing sheet": OUTPUT, "What-if": OUTPUT,
    "Inputs": INPUT, "Models": INPUT, "GPUs": INPUT, "Instances": INPUT,
    "Money": OUTPUT, "Speed": OUTPUT,
    "Workings": WORKINGS, "Contexts": WORKINGS, "Profiles": WORKINGS, "Candidates": WORKINGS,
    "Levers": OUTPUT, "OOM guide": OUTPUT,
    "Checks": CONTROL, "Notes and sources": CONTROL, "Change log": CONTROL,
    "Catalog": WORKINGS, "What-if data": WORKINGS,
}  # fmt: skip
# Once more for the choices of What-if: what stands at the heads is said on the sheet that they repeat.
TWINS = {
    "What-if contexts": "Contexts", "What-if loads": "Workings",
}  # fmt: skip
TABS = {INPUT: ("yellow", "#FACC15"), OUTPUT: ("green", "#16A34A"), WORKINGS: ("grey", "#9CA3AF"),
        CONTROL: ("black", "#1F2937")}  # fmt: skip


def kind_of(name: str) -> str:
    """The kind of a sheet by its name; "" for one that is none of the workbook's."""
    return WORKINGS if name in TWINS else KINDS.get(name, "")


def second_line(name: str, about: str) -> str:
    """The line under a sheet's title: what kind of sheet it is, and what it is for."""
    kind = kind_of(name)
    twin = f" Heads are explained on {TWINS[name]}." if name in TWINS else ""
    return f"{kind}. {about}{twin}" if kind else about


def legend() -> str:
    """The colours of the tabs in words."""
    return "Tabs: " + "; ".join(f"{color}: {kind.lower()}" for kind, (color, _) in TABS.items()) + "."
