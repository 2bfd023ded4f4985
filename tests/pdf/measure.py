"""Times `build --format pdf` (after the catalogs are read) against WeasyPrint alone: importing it and rendering the
same HTML. Each runs in a new process, by turns:

    python tests/pdf/measure.py [ROUNDS [MODELS]]

Two ratios, each of the fastest rounds: of the time on the clock, and of the processor's, which other programs on the
machine disturb less (with that of processes it started).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

ALLOWED = 1.4
_TIMED = """
import json, os, sys, time
{before}
def now():
    return time.perf_counter(), sum(os.times()[:4])
begun = now()
{timed}
print(json.dumps([end - begin for begin, end in zip(begun, now())]))
"""
_BUILD = _TIMED.format(
    before="""
from pathlib import Path
from answers import page_for
from answers import record_for
from sheetgen.catalog import Catalog, guidance
from sheetgen.catalog.hosted import hosted_file
from sheetgen.catalog.stacks import LeverFile, StackFile
from sheetgen.sheet_files import draw
from sheetgen.api import answered
from sheetgen.question.sheet_question import ask
catalog = Catalog()
asked = {"models": sys.argv[1], "as_of": "2026-11-20"}
question = ask(catalog, asked)
catalog.models()
question.reference.assumptions, catalog.file(LeverFile), catalog.file(StackFile)
guidance.fingerprints(catalog), hosted_file(catalog)
""",
    timed="""
files, _ = draw(answered(ask(catalog, asked)), ["pdf"], catalog)
Path(sys.argv[2]).write_bytes(files["pdf"])
""",
)
_ALONE = _TIMED.format(
    before="from pathlib import Path\nhtml = Path(sys.argv[1]).read_text(encoding='utf-8')",
    timed="import weasyprint\nweasyprint.HTML(string=html).write_pdf(sys.argv[2])",
)


def _html_of(models: str) -> str:
    """The HTML whose layout the PDF is, with its fonts in the files beside the templates."""
    from sheets import TEMPLATES, page_of

    from sheetgen.writers.html import render_html
    from sheetgen.writers.pdf import lay_out

    page = page_of(models)
    spacing = lay_out(page, templates=TEMPLATES).spacing
    html = render_html(page, templates=TEMPLATES, spacing=spacing)
    return html.replace("asset:", (TEMPLATES / "fonts").resolve().as_uri() + "/")


def rounds(models: str) -> Iterator[dict[str, tuple[float, float]]]:
    """Seconds of the build and of the HTML alone, on the clock and the processor's: after each round the least so far.
    What else runs on the machine only adds to a time, so that more rounds come nearer to the truth."""
    with TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(_html_of(models), encoding="utf-8")
        pdf = str(Path(folder, "page.pdf"))
        programs = {"build": (_BUILD, models, pdf), "alone": (_ALONE, str(page), pdf)}
        least = {name: (inf, inf) for name in programs}
        while True:
            for name, (program, *arguments) in programs.items():
                done = subprocess.run(
                    [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
                )
                clock, processor = json.loads(done.stdout.splitlines()[-1])
                least[name] = min(least[name][0], clock), min(least[name][1], processor)
            yield dict(least)


if __name__ == "__main__":
    n_rounds, models = int(sys.argv[1]) if len(sys.argv) > 1 else 7, sys.argv[2] if len(sys.argv) > 2 else "8b,70b,405b"
    times = next(islice(rounds(models), n_rounds - 1, None))
    for n, kind in enumerate(("clock", "processor")):
        build, alone = times["build"][n], times["alone"][n]
        print(
            f"{kind}: build {build:.2f} s, the HTML alone {alone:.2f} s, ratio {build / alone:.2f} (at most {ALLOWED})"
        )
