"""Chromium without a window, driven by its DevTools protocol over a pair of pipes, so that nothing but Python is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), "")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
)
SECONDS = 60


class Browser:
    """A browser with one page. It has no network: what a page asks of it fails, and is noted in `requested`."""

    def __init__(self, folder: Path) -> None:
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def connect() -> None:
            moved = (
                os.dup(commands),
                os.dup(answers),
            )  # away from 3 and 4, where the browser looks for its pipes
            for index, end in enumerate(moved, start=3):
                os.dup2(end, index)

        offline = "--host-resolver-rules=MAP * ~NOTFOUND"
        options = (
            *OPTIONS,
            offline,
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "about:blank",
        )
        self._process = subprocess.Popen(
            [PROGRAM, *options],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._last, self._session = b"", 0, ""
        self.requested: list[str] = []
        target = next(
            info for info in self("Target.getTargets")["targetInfos"] if info["type"] == "page"
        )
        self._session = self("Target.attachToTarget", targetId=target["targetId"], flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        """The next message; requests are noted."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], max(0, end - time.monotonic()))[0], (
                "the browser is silent"
            )
            self._buffer += os.read(self._read, 1 << 20)
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"][:200])
        return message

    def open(
        self,
        url: str,
        width: int = 1400,
        height: int = 900,
        *,
        dark: bool = False,
        script: bool = True,
    ) -> None:
        """Open a page in a window of this size, and wait until it is loaded and laid out."""
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])
        self("Emulation.setScriptExecutionDisabled", value=not script)
        self.requested.clear()
        self("Page.navigate", url="about:blank")
        self("Page.navigate", url=url)
        end = time.monotonic() + SECONDS
        while self.run("location.href === 'about:blank' || document.readyState !== 'complete'"):
            assert time.monotonic() < end, f"{url} does not load"
            time.sleep(0.02)
        if script:
            self.settle()

    def settle(self) -> None:
        """Wait for two frames, so that observers have run."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, code: str) -> Any:
        """The value of a JavaScript expression."""
        result = self("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        codes = {"Tab": 9, "Enter": 13}
        text = {"text": "\r"} if key == "Enter" else {}
        self(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            code=key,
            windowsVirtualKeyCode=codes[key],
            **text,
        )
        self(
            "Input.dispatchKeyEvent",
            type="keyUp",
            key=key,
            code=key,
            windowsVirtualKeyCode=codes[key],
        )

    def screenshot(self, file: Path, *, height: int = 0) -> None:
        """Save the page as a PNG, all of it or its first `height` pixels."""
        size = self("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(height or 16000, size["height"]),
            "scale": 1,
        }
        result = self("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(result["data"]))

    def close(self) -> None:
        """Quit the browser."""
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._write)
        os.close(self._read)
