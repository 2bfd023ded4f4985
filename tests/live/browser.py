"""A headless Chromium that is told what to do by its debugging protocol, over two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REQUIRED = os.environ.get("SHEETGEN_REQUIRE_READERS") == "1" or bool(os.environ.get("CI"))
PATIENCE = 30  # seconds for an answer, on a machine that does other things too


def headless(folder: Path, *arguments: str) -> list[str]:
    """The command that starts Chromium without a window or a network of its own, with its profile in a folder."""
    assert BROWSER is not None, "no Chromium is installed, and it is required here"
    quiet = ("gpu", "quic", "background-networking", "component-update", "sync", "extensions", "default-apps")
    return [
        BROWSER,
        "--headless",
        *(f"--disable-{feature}" for feature in quiet),
        "--no-first-run",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # which root must not have
        f"--user-data-dir={folder / 'profile'}",
        *arguments,
    ]


class Browser:
    """One page of a browser; `problems` are the errors and violations of its policy that it reported."""

    def __init__(self, folder: Path) -> None:
        command = headless(folder, "--remote-debugging-pipe", "--hide-scrollbars", "about:blank")
        theirs, ours = os.pipe(), os.pipe()

        def connect() -> None:  # it reads from 3 and writes to 4
            spare = os.dup(ours[1])
            os.dup2(theirs[0], 3)
            os.dup2(spare, 4)

        quietly = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdout=quietly, stderr=quietly, preexec_fn=connect, pass_fds=(3, 4, theirs[0], ours[1])
        )
        os.close(theirs[0])
        os.close(ours[1])
        self._write, self._read = theirs[1], ours[0]
        self._rest, self._number, self._session = b"", 0, ""
        self.problems: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The browser's answer to a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._number:
                assert "error" not in reply, (method, reply["error"])
                return reply["result"]
            if reply.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(json.dumps(reply["params"])[:400])

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            self._rest += os.read(self._read, 1 << 20)
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        call = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in call, call
        return call["result"].get("value")

    def open(self, address: str) -> None:
        """The page of an address, with its answer complete."""
        is_here = address.partition("#")[0] == self.evaluate("location.href").partition("#")[0]
        self.evaluate("delete document.documentElement.dataset.complete")
        if is_here:
            part = json.dumps(f"#{address.partition('#')[2]}")
            self.evaluate(f"history.replaceState(null, '', {part}); dispatchEvent(new Event('hashchange')); 0")
        else:
            self.call("Page.navigate", url=address)
        self.wait_for("document.documentElement?.dataset.complete")

    def wait_for(self, expression: str) -> None:
        """Until an expression holds on the page."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"{expression} does not come about: {self.problems}"
            time.sleep(0.02)

    def look(self, width: int, scheme: str, height: int = 900) -> None:
        """Draw the page so wide, in light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def close(self) -> None:
        self._session = ""
        self.call("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)
