"""How each role of a cell looks in the workbook: finance's colours, quiet tints, one font."""

from __future__ import annotations

from typing import Any

from sheetgen.brand import Colors

INK, BAR, RULE, GREY = "#111827", "#1F2937", "#D1D5DB", "#6B7280"
INPUT_FILL, INPUT_INK, LINK_INK = "#FFF9DB", "#1D4ED8", "#15803D"

_BASE: dict[str, Any] = {"font_color": INK, "valign": "vcenter"}
_BOTTOM = {"bottom": 1, "bottom_color": RULE}
_LAST = {"bottom": 2, "bottom_color": "#9CA3AF"}

_ROLES: dict[str, dict[str, Any]] = {
    "text": {},
    "title": {"bold": True, "font_size": 18},
    "subtitle": {"font_color": GREY},
    "section": {"bold": True, "font_color": "#FFFFFF", "bg_color": BAR, "indent": 1, "align": "left"},
    "head": {"bold": True, "bg_color": "#E5E7EB", "text_wrap": True, "align": "center", "bottom": 1,
             "bottom_color": GREY},
    "label": {},
    "right_label": {"align": "right"},
    "unit": {"font_color": GREY},
    "remark": {"font_color": GREY, "font_size": 9},
    "remark_wrapped": {"font_color": GREY, "font_size": 9, "text_wrap": True},
    "small": {"font_color": GREY, "font_size": 8},
    "off_page": {"font_color": GREY, "font_size": 8},
    "shown": {"font_color": GREY, "font_size": 9},
    "assumption": {"font_color": GREY, "font_size": 9},
    "input": {"font_color": INPUT_INK, "bg_color": INPUT_FILL, "border": 1, "border_color": "#E3C65B", "locked": False},
    "fixed": {},
    "computed": {},
    "state": {},  # what became of an input since the workbook was built
    "link": {"font_color": LINK_INK},
    "answer": {"bold": True, "font_size": 15, "font_color": "#1D4ED8"},
    "answer_money": {"bold": True, "font_size": 15, "align": "left", "indent": 1},
    "right_link": {"font_color": LINK_INK, "align": "right"},
    "left_number": {"align": "left", "indent": 1},
    "light": {"bold": True},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "wrapped_bold": {"text_wrap": True, "valign": "top", "bold": True},
    "link_text": {"font_color": "#1D4ED8", "underline": 1},
    "workload": {"bold": True, **_BOTTOM},
    "context": {"font_color": GREY, "align": "left", **_BOTTOM},
    "tier": {"font_color": LINK_INK, **_BOTTOM},
    "kv": {"font_color": LINK_INK, **_BOTTOM},
    "fit": {"align": "center", **_BOTTOM},
    "rent": {"align": "left", "shrink": True, **_BOTTOM},
    "money": {"font_color": LINK_INK, **_BOTTOM},
}  # fmt: skip
for _name in ("workload", "context", "tier", "kv", "fit", "rent", "money"):
    _ROLES[f"{_name}_last"] = {**_ROLES[_name], **_LAST}

FLUSH = ("title", "subtitle")

STATUS: dict[str, dict[str, Any]] = {
    "fits": {"bg_color": "#DCFCE7", "font_color": "#14532D"},
    "tight": {"bg_color": "#FEF3C7", "font_color": "#78350F"},
    "none fits": {"bg_color": "#FEE2E2", "font_color": "#7F1D1D"},
    "over limit": {"bg_color": "#E5E7EB", "font_color": "#374151"},
}
for _word, _look in STATUS.items():
    _ROLES["legend_" + _word.split()[0]] = {**_look, "align": "center"}


# What a brand's colours are for. Inputs, links between sheets and states are not among them: they mean something.
BRANDED = {
    "title": ("font_color", "heading"),
    "section": ("bg_color", "heading"),
    "head": ("bg_color", "tint"),
    "answer": ("font_color", "accent"),
}


def style(role: str, number_format: str, colors: Colors | None = None) -> dict[str, Any]:
    """The properties of a role with a number format. Text cells of inputs keep F2 and Enter from making formulas."""
    look = {**_BASE, **_ROLES[role], "num_format": number_format}
    if colors is not None and role in BRANDED:
        part, name = BRANDED[role]
        look[part] = getattr(colors, name) or look[part]
    if number_format == "@":
        # "@" on a formula cell makes Excel show the formula's text once it is edited: General shows text as well.
        look["num_format"] = "General"
        look["quote_prefix"] = role in ("input", "label", "text", "remark", "remark_wrapped", "wrapped")
        if role not in FLUSH and look.get("align", "left") == "left":
            look |= {"align": "left", "indent": 1}  # in line with the bars, and off the number before it
    elif role in ("computed", "state", "link", "fixed", "kv", "money"):
        look["align"] = "right"  # the dash for no number, too
    return look
