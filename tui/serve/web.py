"""Answers the requests of a served browser: the page, its files, and the terminal's connection.

Every answer but that to an unused link needs the cookie of a visitor, a ``Host`` that is listened
on and, where there is one, the page's own ``Origin``. Only the files in ``FILES`` are served.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from store.system.programs import CommandLine
from tui.serve.browsing import Browsing, bounded_size
from tui.serve.gate import Gate, Visitor, is_any, names_of, same, shown_host

MOST_PAGES = 8
"""Pages that are open at a time, each with its process."""
MOST_MESSAGE = 1 << 20
"""Bytes of one message of a page; a paste that is larger closes the page."""
HEARTBEAT_S = 15.0
"""Seconds between two signs of life; a page that gives none is closed."""

_AGAIN = 'if (location.hash) location.replace("/?again" + location.hash);'
"""A link that is followed from another site: the browser keeps the new cookie back in what that
site has led to, and sends it in what this page asks for itself."""
_AGAIN_HASH = base64.b64encode(hashlib.sha256(_AGAIN.encode()).digest()).decode()

_OWN, _THEIRS = files("tui.serve"), files("textual_serve")
FILES: dict[str, tuple[Any, str]] = {
    "page.css": (_OWN / "static/page.css", "text/css"),
    "page.js": (_OWN / "static/page.js", "text/javascript"),
    "xterm.css": (_THEIRS / "static/css/xterm.css", "text/css"),
    "textual.js": (_THEIRS / "static/js/textual.js", "text/javascript"),
    "RobotoMono.ttf": (_THEIRS / "static/fonts/RobotoMono-VariableFont_wght.ttf", "font/ttf"),
}
"""All files that are served under /static/, with their types."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refusal(web.HTTPForbidden):
    """Refuses a request; the text is shown."""

    def __init__(self, words: str, script: str = "") -> None:
        """Say why, and what a page may do about it."""
        body = f"<!doctype html><title>Backscroll</title><p>{words}</p>"
        super().__init__(text=body + (f"<script>{script}</script>" if script else ""),
                         content_type="text/html")


NO_LINK = ("This page needs its link. It works once; press Enter where backscroll serve runs for"
           " another one.")
USED = ("This link is not valid, or it was used already. Press Enter where backscroll serve runs"
        " for another one.")


@dataclass
class Web:
    """The pages of one server.

    Attributes:
        gate: Who is let in.
        line: Starts the process of a page.
        listened: The address that is listened on.
        port: The port; known once it is bound.
        used: Called when a link was used.
        told: Called with why the process of a page failed.
        browsers: What runs for the open pages.
    """

    gate: Gate
    line: CommandLine
    listened: str
    port: int = 0
    used: Callable[[], None] = lambda: None
    told: Callable[[str], None] = lambda words: None
    browsers: set[Browsing] = field(default_factory=set)
    _open: int = 0
    _sockets: set[web.WebSocketResponse] = field(default_factory=set)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers do not keep those of two ports apart."""
        return f"backscroll-{self.port}"

    def new_link(self) -> str:
        """Return a link that works once; an unused one before it no longer works."""
        name = socket.gethostname().lower() if is_any(self.listened) else self.listened
        return f"http://{shown_host(name)}:{self.port}/?token={self.gate.new_token()}"

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(middlewares=[self._checked], client_max_size=1024)
        app.add_routes([
            web.get("/", self._index, allow_head=False),
            web.get("/static/{name}", self._file, allow_head=False),
            web.get("/ws/{key}", self._terminal, allow_head=False),
        ])
        app.on_response_prepare.append(self._headers)
        app.on_shutdown.append(self._close_pages)
        return app

    async def _headers(self, request: web.BaseRequest, answer: web.StreamResponse) -> None:
        """Set the headers that every answer has."""
        known = self._host_is_known(request)
        connects = f"ws://{request.headers['Host']}" if known else "'none'"
        answer.headers.update({
            "Content-Security-Policy": (
                "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
                f" script-src 'self' 'sha256-{_AGAIN_HASH}'; style-src 'self' 'unsafe-inline';"
                f" font-src 'self'; connect-src {connects}"),
            "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
            "Server": "backscroll",
        })  # fmt: skip

    # Who is let in

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._host_is_known(request):
            raise Refusal("This name is not the one that Backscroll listens on.")
        own = f"http://{request.headers['Host']}"
        if any(origin != own for origin in request.headers.getall("Origin", [])):
            raise Refusal("Another site may not ask for this page.")
        if request.path == "/" and "token" in request.query:
            return self._let_in(request)
        if self._visitor(request) is None:
            again = request.path == "/" and not request.query_string
            raise Refusal(NO_LINK, _AGAIN if again else "")
        return await handler(request)

    def _visitor(self, request: web.Request) -> Visitor | None:
        return self.gate.visitor(request.cookies.get(self.cookie, ""))

    def _host_is_known(self, request: web.BaseRequest) -> bool:
        transport = request.transport
        if transport is None:
            return False
        reached, hosts = transport.get_extra_info("sockname"), request.headers.getall("Host", [])
        # A path that is a whole address, as a proxy gets it, names a host of its own.
        return request.raw_path.startswith("/") and len(hosts) == 1 and (
            hosts[0].lower() in names_of(self.listened, reached[0], self.port))

    def _let_in(self, request: web.Request) -> web.StreamResponse:
        """Exchange the token of a link for a cookie; the address shown has no token any more."""
        if request.method != "GET" or "prefetch" in request.headers.get("Sec-Purpose", ""):
            raise Refusal("A link is not used before it is opened.")
        visitor = self.gate.exchange(request.query["token"])
        if visitor is None:
            raise Refusal(USED)
        self.used()
        answer = web.Response(status=303, headers={"Location": f"/#{visitor.key}"})
        answer.set_cookie(self.cookie, visitor.cookie, path="/", httponly=True, samesite="Strict")
        return answer

    # What is answered

    async def _index(self, request: web.Request) -> web.StreamResponse:
        page = (_OWN / "static/index.html").read_text(encoding="utf-8")
        return web.Response(text=page, content_type="text/html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        known = FILES.get(request.match_info["name"])
        if known is None:
            raise web.HTTPNotFound
        return web.Response(body=known[0].read_bytes(), content_type=known[1])

    async def _terminal(self, request: web.Request) -> web.StreamResponse:
        """Run a browser for as long as its page is connected."""
        if "Origin" not in request.headers or "Sec-WebSocket-Protocol" in request.headers:
            raise Refusal("Only this page may open its terminal.")
        visitor = self._visitor(request)
        if visitor is None or not same(request.match_info["key"], visitor.key):
            raise Refusal(NO_LINK)
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MOST_MESSAGE)
        if self._open >= MOST_PAGES:
            await page.prepare(request)
            await page.send_bytes(
                f"{MOST_PAGES} pages are open, which is the most. Close one first.".encode())
            await page.close()
            return page
        self._open += 1
        browsing = Browsing(self.line, write=page.send_bytes, close=_closing(page))
        try:
            await page.prepare(request)
            self._sockets.add(page)
            self.browsers.add(browsing)
            try:
                await browsing.start(*bounded_size(
                    _number(request.query.get("width")), _number(request.query.get("height"))))
            except OSError as error:
                words = f"The page's process could not be started: {error.strerror}"
                self.told(words)
                await page.send_bytes(words.encode())
                await page.close()
            async for message in page:
                if message.type is not WSMsgType.TEXT or not await _heed(
                        message.data, page, browsing):
                    await page.close(code=WSCloseCode.POLICY_VIOLATION)
        finally:
            await asyncio.shield(self._end(browsing, page))
        return page

    async def _end(self, browsing: Browsing, page: web.WebSocketResponse) -> None:
        try:
            await browsing.stop()
        finally:
            self._open -= 1
            self._sockets.discard(page)
            self.browsers.discard(browsing)
        if browsing.errors:
            self.told(browsing.errors.decode("utf-8", "replace").strip())

    async def _close_pages(self, app: web.Application) -> None:
        """Close every page, and end its process."""
        await asyncio.gather(
            *(page.close(code=WSCloseCode.GOING_AWAY) for page in self._sockets),
            *(browsing.stop() for browsing in self.browsers), return_exceptions=True)


def _closing(page: web.WebSocketResponse) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await page.close()

    return close


def _number(text: str | None) -> int:
    """Return a size that an address names; 0 where it names none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else 0


async def _heed(text: str, page: web.WebSocketResponse, browsing: Browsing) -> bool:
    """Act on a message of textual-serve's page.

    Args:
        text: The message.
        page: Where it came from.
        browsing: The process behind the page.

    Returns:
        Whether it was one.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return False
    match message:
        case ["stdin", str(typed)]:
            await browsing.send_bytes(typed.encode("utf-8", "replace"))
        case ["resize", {"width": int(width), "height": int(height)}]:
            await browsing.set_terminal_size(*bounded_size(width, height))
        case ["ping", str(sent)] if len(sent) < 64:
            await page.send_json(["pong", sent])
        case ["focus"]:
            await browsing.focus()
        case ["blur"]:
            await browsing.blur()
        case _:
            return False
    return True
