"""A real browser without a window, driven by Chromium's own DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

COMMANDS: Final = ("chromium", "chromium-browser", "google-chrome")
MISSING: Final = "there is no Chromium: apt-get install chromium"

_END: Final = b"\0"
"""Behind each message."""


def find_chromium() -> str | None:
    """The command of an installed one."""
    return next((path for name in COMMANDS if (path := shutil.which(name)) is not None), None)


class Browser:
    """One page of one browser. `close` it once."""

    def __init__(self, command: str, profile: Path) -> None:
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [
                _SHELL,
                "-c",
                f'exec "$@" 3<&{to_browser} 4>&{from_browser}',
                "bash",
                command,
                *_ARGUMENTS,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._received = b""
        self._number = 0
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Page.enable")

    def show(self, page: Path, *, width: int, theme: str) -> None:
        """Open a file in a window of this width, with the reader's theme `light` or `dark`."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self._ask("Page.navigate", url=page.as_uri())
        self.run(
            "new Promise(done =>"
            " document.readyState === 'complete' ? done() : addEventListener('load', done))"
        )

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; that of a promise once it is kept."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """The whole page as PNG."""
        height = self.run("document.documentElement.scrollHeight")
        width = self.run("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        answer = self._ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End the browser."""
        os.close(self._to)
        os.close(self._from)
        self._process.kill()
        self._process.wait()

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + _END)
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while _END not in self._received:
            data = os.read(self._from, 1 << 16)
            assert data, "the browser has ended"
            self._received += data
        message, _, self._received = self._received.partition(_END)
        received: dict[str, Any] = json.loads(message)
        return received


_SHELL: Final = "bash"
"""Renumbers the pipes: the browser reads descriptor 3 and writes 4. Other shells know one digit alone."""
_ARGUMENTS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # a container's root has no user namespaces
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
)
