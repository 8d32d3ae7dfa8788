# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages in a real browser: Debian's headless Chromium, over its DevTools protocol on a pair of pipes.

Source: https://chromedevtools.github.io/devtools-protocol, --remote-debugging-pipe: one JSON object after the other on
file descriptors 3 and 4, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any

PROGRAM = "chromium-headless-shell"

SECONDS = 60.0
"""Limit for one answer of the browser. The start alone takes 5 s on a slow machine."""


class Browser:
    """One browser with one page."""

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        command_read, self._commands = os.pipe()
        self._answers, answer_write = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4. As root, Chromium starts only without its sandbox.
        wiring = f'exec 3<&{command_read} 4>&{answer_write}; exec "$@"'
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["bash", "-c", wiring, "bash", PROGRAM, *options, f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(command_read, answer_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        self._numbers, self._pending, self._session = itertools.count(1), b"", ""
        self.errors: list[str] = []
        """Errors of the page: exceptions, errors in its log, and files that it could not load."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setDeviceMetricsOverride", width=1600, height=1200, deviceScaleFactor=1, mobile=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._commands)
        self._process.terminate()
        # The browser's other processes write to the profile until the browser has ended.
        self._process.wait()
        os.close(self._answers)
        self._profile.cleanup()

    def show(self, url: str, user: str = "") -> None:
        """Go to a page, as a user with a password (`name:password`), and wait until the page has loaded."""
        headers = {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}
        self._call("Network.setExtraHTTPHeaders", headers=headers)
        self.errors.clear()
        said = self._call("Page.navigate", url=url)
        assert not said.get("errorText"), f"{url}: {said['errorText']}"
        deadline = time.monotonic() + SECONDS
        while self.value("document.readyState + ' ' + location.href") != f"complete {url}":
            assert time.monotonic() < deadline, f"{url} has not loaded after {SECONDS} s"
            time.sleep(0.2)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        said = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """The text of an element as it is shown: without its hidden parts."""
        return str(self.value(f"document.querySelector({json.dumps(selector)}).innerText"))

    def table(self, selector: str) -> list[dict[str, str]]:
        """The rows of a table as they are shown, by the titles of its columns."""
        rows = self.value(
            f"[...document.querySelectorAll({json.dumps(selector + ' tr')})].map("
            "row => row.checkVisibility() && row.getBoundingClientRect().height > 0"
            " ? [...row.cells].map(cell => cell.innerText.trim()) : [])"
        )
        titles, *others = [row for row in rows if row] or [[]]
        return [dict(zip(titles, row, strict=False)) for row in others]

    def _call(self, method: str, **parameters: Any) -> Any:
        """Run one command of the protocol. Returns its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        details = event.get("params", {})
        if event["method"] == "Network.loadingFailed":
            self.errors.append(details["errorText"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.errors.append(details["exceptionDetails"]["text"])
        elif event["method"] == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.errors.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        """The next message from the browser. `method` is for the error message."""
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{PROGRAM}: no answer to {method} within {SECONDS} s"
            data = os.read(self._answers, 65536)
            assert data, f"{PROGRAM} has ended: is Debian's package {PROGRAM} installed (make setup)?"
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        return dict(json.loads(message))
