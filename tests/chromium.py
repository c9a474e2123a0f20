"""A headless Chromium for tests of pages: opens, presses keys, waits, and reports what happened.

It speaks the DevTools protocol over the pipes of ``--remote-debugging-pipe``, so that no port is
opened and no library is needed::

    async with Chromium() as browser:
        page = await browser.open("http://127.0.0.1:8000/")
        await page.until("document.querySelector('.terminal')")
        await page.press("ctrl+p")
        assert page.problems == []

Without Chromium the tests that ask for it are skipped, or fail where ``REQUIRED`` is set.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import pytest

REQUIRED = "BACKSCROLL_TESTS_NEED_CHROMIUM"
PATIENCE = 60.0
"""Seconds until a condition or an answer that never comes fails the test."""
_LONGEST = 256 * 1024 * 1024
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-default-apps", "--hide-scrollbars",
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--force-color-profile=srgb", "--disable-lcd-text", "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)  # fmt: skip
_CODES = {
    "enter": ("Enter", 13, "\r"), "escape": ("Escape", 27, ""), "tab": ("Tab", 9, ""),
    "backspace": ("Backspace", 8, ""), "delete": ("Delete", 46, ""), "space": (" ", 32, " "),
    "up": ("ArrowUp", 38, ""), "down": ("ArrowDown", 40, ""), "left": ("ArrowLeft", 37, ""),
    "right": ("ArrowRight", 39, ""), "home": ("Home", 36, ""), "end": ("End", 35, ""),
    "pageup": ("PageUp", 33, ""), "pagedown": ("PageDown", 34, ""),
    **{f"f{number}": (f"F{number}", 111 + number, "") for number in range(1, 13)},
}  # fmt: skip
"""Named keys: DevTools' name, virtual key code, and the text that they type."""
_MODIFIERS = {"alt": 1, "ctrl": 2, "meta": 4, "shift": 8}


class ChromiumFailed(Exception):
    """Chromium ended, refused a command, or a script threw."""


def chromium_path() -> str:
    """Return the program; skips the test without one, or fails it where ``REQUIRED`` is set."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get(REQUIRED):
        pytest.fail(f"Chromium is not installed, and {REQUIRED} is set")
    pytest.skip("Chromium is not installed")


@dataclass(slots=True)
class Request:
    """What a page asked for; ``data:`` URLs are not counted.

    Attributes:
        url: The address.
        kind: DevTools' type: ``Document``, ``Image``, ``Script``, ``WebSocket``, ...
        status: The status of the answer; None where none came, and for files.
        failure: Why it failed or was blocked; None if it did not.
    """

    url: str
    kind: str
    status: int | None = None
    failure: str | None = None


@dataclass(slots=True)
class Page:
    """An open page (a tab).

    Attributes:
        requests: Everything that it asked for, the page itself first.
        console: Lines of its console, as ``(level, text)``.
        problems: Errors and warnings: of the console, of scripts that threw, of requests that
            failed, and of what the Content Security Policy blocked.
        dialogs: Texts of ``alert`` and the like; each is dismissed.
        popups: Addresses of windows that it opened.
    """

    browser: Chromium
    session: str
    target: str
    requests: list[Request] = field(default_factory=list)
    console: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    popups: list[str] = field(default_factory=list)
    _by_id: dict[str, Request] = field(default_factory=dict)
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _scripts: bool = True

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a DevTools command for this page."""
        return await self.browser.send(method, parameters, session=self.session)

    async def goto(self, url: str) -> None:
        """Load an address and wait for its ``load`` event.

        Raises:
            ChromiumFailed: It cannot be loaded at all.
        """
        self._loaded.clear()
        answer = await self.send("Page.navigate", url=url)
        if answer.get("errorText"):
            raise ChromiumFailed(f"{url}: {answer['errorText']}")
        if "loaderId" in answer:
            await asyncio.wait_for(self._loaded.wait(), PATIENCE)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited.

        Raises:
            ChromiumFailed: The script threw.
        """
        answer = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
            userGesture=True,
        )  # fmt: skip
        if "exceptionDetails" in answer:
            raise ChromiumFailed(_thrown(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def until(self, condition: str) -> Any:
        """Return the first true value of a JavaScript expression.

        Raises:
            ChromiumFailed: It stays false, or throws, for ``PATIENCE`` seconds.
        """
        end, last = time.monotonic() + PATIENCE, "false"
        while time.monotonic() < end:
            try:
                if value := await self.evaluate(condition):
                    return value
                last = "false"
            except ChromiumFailed as error:
                last = str(error)
            await asyncio.sleep(0.02)
        raise ChromiumFailed(f"never true: {condition} ({last})")

    async def happened(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is true of this object, such as its console.

        Args:
            condition: Called until it returns something true.
            what: What is waited for, for the error.

        Raises:
            ChromiumFailed: It stays false for ``PATIENCE`` seconds.
        """
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise ChromiumFailed(f"never happened: {what}")
            await asyncio.sleep(0.02)

    async def press(self, *keys: str) -> None:
        """Press keys, each written as ``j``, ``N``, ``enter``, ``ctrl+p`` or ``shift+tab``."""
        for key in keys:
            head, plus, name = key.rpartition("+")
            held = [one for one in head.split("+") if one] if name else []
            name = name or ("+" if plus else key)
            bits = sum(_MODIFIERS[one] for one in held)
            if name in _CODES:
                shown, code, text = _CODES[name]
            else:
                shown, code, text = name, ord(name.upper()) if name.isalnum() else 0, name
            typed = "" if bits & ~_MODIFIERS["shift"] else text
            event = {"key": shown, "windowsVirtualKeyCode": code, "modifiers": bits}
            if name.isascii() and name.isalpha() and len(name) == 1:
                event["code"] = f"Key{name.upper()}"
            elif name in _CODES:
                event["code"] = "Space" if name == "space" else shown
            down = {"type": "keyDown", "text": typed} if typed else {"type": "rawKeyDown"}
            await self.send("Input.dispatchKeyEvent", **event, **down)
            await self.send("Input.dispatchKeyEvent", **event, type="keyUp")

    async def type(self, text: str) -> None:
        """Press the key of each character."""
        await self.press(*("enter" if each == "\n" else each for each in text))

    async def click(self, selector: str) -> None:
        """Click the middle of the first element that a CSS selector matches."""
        place = await self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, **where)

    async def resize(self, width: int, height: int, *, scale: float = 1) -> None:
        """Set the size of the window.

        Args:
            width: In CSS pixels.
            height: In CSS pixels.
            scale: Device pixels for each of them.
        """
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=scale, mobile=False,
        )  # fmt: skip

    async def prefer(self, scheme: Literal["light", "dark"]) -> None:
        """Set what ``prefers-color-scheme`` returns."""
        await self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    async def without_scripts(self) -> None:
        """Turn JavaScript off for what is loaded next; ``evaluate`` still works."""
        await self.send("Emulation.setScriptExecutionDisabled", value=True)
        self._scripts = False

    async def screenshot(self, path: Path | None = None, *, whole: bool = False) -> bytes:
        """Return a PNG of the page.

        Args:
            path: Where to write it, too.
            whole: Whether to include what is below the window.
        """
        await self.send("Page.bringToFront")
        if self._scripts:
            # What was done before is drawn with the second frame.
            await self.evaluate(
                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        answer = await self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        picture = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(picture)
        return picture

    async def pdf(self, path: Path | None = None) -> bytes:
        """Return the page as it prints on A4, and write it to a path."""
        answer = await self.send(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        document = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(document)
        return document

    async def close(self) -> None:
        """Close the page."""
        await self.browser.send("Target.closeTarget", {"targetId": self.target})
        self.browser.pages.pop(self.session, None)

    async def _start(self) -> None:
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.send(f"{domain}.enable")

    async def _hear(self, method: str, event: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Runtime.consoleAPICalled":
                words = " ".join(
                    str(one.get("value", one.get("description", one.get("type"))))
                    for one in event["args"]
                )
                self.console.append((event["type"], words))
                if event["type"] in ("error", "warning", "assert"):
                    self.problems.append(f"console {event['type']}: {words}")
            case "Runtime.exceptionThrown":
                self.problems.append(f"script: {_thrown(event['exceptionDetails'])}")
            case "Log.entryAdded":
                entry = event["entry"]
                self.console.append((entry["level"], entry["text"]))
                if entry["level"] in ("error", "warning"):
                    address = entry.get("url", "")
                    self.problems.append(f"{entry['source']}: {entry['text']} {address}".rstrip())
            case "Page.javascriptDialogOpening":
                self.dialogs.append(event["message"])
                await self.browser.post("Page.handleJavaScriptDialog", {"accept": False},
                                        session=self.session)
            case "Page.windowOpen":
                self.popups.append(event["url"])
            case _:
                self._hear_network(method, event)

    def _hear_network(self, method: str, event: dict[str, Any]) -> None:
        name = event.get("requestId", "")
        match method:
            case "Network.requestWillBeSent":
                url = event["request"]["url"]
                if not url.startswith("data:"):
                    self._by_id[name] = Request(url, event.get("type", ""))
                    self.requests.append(self._by_id[name])
            case "Network.webSocketCreated":
                self._by_id[name] = Request(event["url"], "WebSocket")
                self.requests.append(self._by_id[name])
            case "Network.responseReceived" | "Network.webSocketHandshakeResponseReceived":
                if name in self._by_id:
                    self._by_id[name].status = event["response"].get("status") or None
            case "Network.loadingFailed" | "Network.webSocketFrameError":
                if name in self._by_id:
                    why = event.get("blockedReason") or event.get("errorText")
                    self._by_id[name].failure = why or event.get("errorMessage") or "failed"


class Chromium:
    """A Chromium with a profile of its own, which ends with the ``async with``."""

    pages: dict[str, Page]

    def __init__(self) -> None:
        """Find the program, or skip the test."""
        self._program = chromium_path()
        self.pages = {}
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0

    async def __aenter__(self) -> Self:
        """Start it."""
        self._profile = tempfile.TemporaryDirectory(
            prefix="backscroll-chromium-", ignore_cleanup_errors=True)
        commands, ours_out = _pipe()
        ours_in, events = _pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        self._process = await asyncio.create_subprocess_exec(
            "bash", "-c", f'exec "$@" 3<&{commands} 4>&{events} {commands}<&- {events}>&-', "bash",
            self._program, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, pass_fds=(commands, events),
            start_new_session=True, env=os.environ | {"HOME": self._profile.name},
        )  # fmt: skip
        os.close(commands)
        os.close(events)
        loop = asyncio.get_running_loop()
        self._reader = asyncio.StreamReader(limit=_LONGEST)
        self._in, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(ours_in, "rb", 0))
        self._out, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(ours_out, "wb", 0))
        self._listening = asyncio.create_task(self._listen())
        await self.send("Browser.setDownloadBehavior", {"behavior": "deny"})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it with all its processes, and remove the profile."""
        self._listening.cancel()
        self._out.close()
        self._in.close()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._profile.cleanup()

    async def open(
        self, url: str, *, width: int = 1280, height: int = 900,
        scheme: Literal["light", "dark"] = "dark", scripts: bool = True,
    ) -> Page:
        """Return a new page after its ``load`` event.

        Args:
            url: ``http:`` on this machine, or ``file:``.
            width: Of the window, in CSS pixels.
            height: Of the window.
            scheme: What ``prefers-color-scheme`` returns.
            scripts: Whether JavaScript runs.
        """
        target = (await self.send("Target.createTarget", {"url": "about:blank"}))["targetId"]
        attached = await self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, attached["sessionId"], target)
        self.pages[page.session] = page
        await page._start()
        await page.resize(width, height)
        await page.prefer(scheme)
        if not scripts:
            await page.without_scripts()
        await page.goto(url)
        return page

    async def send(
        self, method: str, parameters: dict[str, Any] | None = None, *, session: str | None = None
    ) -> dict[str, Any]:
        """Return the answer to a DevTools command.

        Args:
            method: Such as ``Page.navigate``.
            parameters: Its parameters.
            session: Of a page; None for the browser itself.

        Raises:
            ChromiumFailed: The command was refused, or Chromium has ended.
        """
        answer = await self.post(method, parameters, session=session)
        return await asyncio.wait_for(answer, PATIENCE)

    async def post(
        self, method: str, parameters: dict[str, Any] | None = None, *, session: str | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        """Send a DevTools command and return its answer to come.

        Args:
            method: Such as ``Page.navigate``.
            parameters: Its parameters.
            session: Of a page; None for the browser itself.
        """
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        if self._listening.done():
            raise ChromiumFailed("Chromium has ended")
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        self._out.write(json.dumps(message).encode() + b"\0")
        return answer

    async def _listen(self) -> None:
        try:
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                if "id" in message:
                    self._settle(message)
                elif page := self.pages.get(message.get("sessionId", "")):
                    await page._hear(message["method"], message["params"])
        except asyncio.IncompleteReadError:
            for answer in self._answers.values():
                answer.set_exception(ChromiumFailed("Chromium has ended"))

    def _settle(self, message: dict[str, Any]) -> None:
        answer = self._answers.pop(message["id"], None)
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(ChromiumFailed(message["error"]["message"]))
        else:
            answer.set_result(message.get("result", {}))


def _pipe() -> tuple[int, int]:
    """Return a pipe whose descriptors are above those that Chromium expects."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 20) for each in ends)
    for each in ends:
        os.close(each)
    return moved[0], moved[1]


def _thrown(details: dict[str, Any]) -> str:
    exception = details.get("exception", {})
    return str(exception.get("description") or exception.get("value") or details["text"])
