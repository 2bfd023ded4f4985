"""A brand at the head of the page: the logo at the right, the name before it, as low as the title beside them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from sheetgen.brand import Brand
from sheetgen.writers.fonts import FONTS, width_em

LOGO = "logo.png"  # its name among the page's assets
LOGO_BOX = (120.0, 18.5)  # points: the most that the logo takes, a little less than the title's line
NAME_SIZES = ((10.0, 1.0), (8.0, 1.8), (7.0, 9.0))  # points, and the lines that a name may take at that size
TITLE_SIZE = 15.0  # of h1, in one_page.css
GAP = 6.0  # points between name and logo
_FAR = 14.0  # points between the title and the name
_SPARE = 1.02  # kerning and rounding


def letterhead(brand: Brand, title: str, content: float, fonts: Path, *, embed: bool) -> dict[str, Any]:
    """Sizes in points, and where the page finds the logo: inside itself with `embed`, else as `asset:<LOGO>`.

    `title` stands at the left of the same line, `content` points wide; the name has the room between.
    """
    from markupsafe import Markup

    logo = None
    room = content - width_em(title, fonts / FONTS[700]) * TITLE_SIZE - _FAR
    if brand.logo is not None:
        width, height = brand.logo.within(*LOGO_BOX)
        inside = f"data:image/png;base64,{base64.b64encode(brand.logo.png).decode('ascii')}"
        logo = {
            "src": Markup(inside if embed else f"asset:{LOGO}"),
            "width": round(width, 2),
            "height": round(height, 2),
        }
        room -= width + GAP
    room = max(room, content / 4)
    ems = width_em(brand.name, fonts / FONTS[600]) * _SPARE
    size = next(points for points, lines in NAME_SIZES if points * ems <= lines * room or points == NAME_SIZES[-1][0])
    return {"size": size, "width": round(min(size * ems, room), 2), "gap": GAP, "logo": logo}
