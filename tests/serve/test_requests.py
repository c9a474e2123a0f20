"""Who is let in by ``backscroll serve``, and what is answered; the browser is a short script."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, CookieJar, WSMsgType, WSServerHandshakeError

from store.system.programs import CommandLine
from tests.serve.processes import gone
from tui.serve import browsing
from tui.serve.browsing import page_environment
from tui.serve.gate import MOST_VISITORS, Gate, is_loopback, names_of
from tui.serve.server import answering
from tui.serve.web import FILES, MOST_MESSAGE, MOST_PAGES, Web

ECHO = """
import os, sys
def draw(text):
    os.write(1, b"D" + len(text).to_bytes(4, "big") + text)
os.write(1, b"__GANGLION__\\n")
draw(b"size %s %s pid %d" % (os.environb[b"COLUMNS"], os.environb[b"ROWS"], os.getpid()))
while chunk := os.read(0, 65536):
    draw(b"got " + chunk)
"""
DEAF = "import os, time; os.write(1, b'__GANGLION__\\n'); time.sleep(600)"
FAILS = "import sys; print('backscroll: \\x1b[31mno such store', file=sys.stderr); sys.exit(1)"


@dataclass
class Visiting:
    """A server with a client that may have used its link."""

    web: Web
    client: ClientSession
    told: list[str]
    key: str = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.web.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    async def enter(self) -> None:
        async with self.client.get(self.web.new_link(), allow_redirects=False) as answer:
            assert answer.status == 303
            self.key = urlsplit(answer.headers["Location"]).fragment

    async def status(self, path: str, **headers: str) -> int:
        async with self.client.get(self.url + path, headers=headers, allow_redirects=False) as got:
            return got.status

    def terminal(self, key: str | None = None, **headers: str) -> Any:
        origin = {"Origin": self.url} | headers
        path = f"/ws/{self.key if key is None else key}?width=100&height=30"
        return self.client.ws_connect(self.url + path, headers=origin)

    async def refused(self, key: str | None = None, **headers: str) -> int:
        with pytest.raises(WSServerHandshakeError) as error:
            await self.terminal(key, **headers)
        return error.value.status


@asynccontextmanager
async def visiting(script: str = ECHO, *, enter: bool = True) -> AsyncIterator[Visiting]:
    told: list[str] = []
    pages = Web(Gate(), CommandLine.of_user([sys.executable, "-c", script]), "127.0.0.1",
                told=told.append)
    async with answering(pages), ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        visit = Visiting(pages, client, told)
        if enter:
            await visit.enter()
        yield visit


async def first_bytes(terminal: Any) -> str:
    message = await terminal.receive()
    assert message.type is WSMsgType.BINARY, message
    return str(message.data.decode())


async def test_a_link_works_once_and_its_token_is_gone_from_the_address() -> None:
    async with visiting(enter=False) as visit:
        link = visit.web.new_link()
        async with visit.client.get(link, allow_redirects=False) as answer:
            assert answer.status == 303
            location = answer.headers["Location"]
            assert location.startswith("/#") and link.partition("token=")[2] not in location
            cookie = answer.headers["Set-Cookie"]
            for word in ("HttpOnly", "SameSite=Strict", "Path=/", f"backscroll-{visit.web.port}="):
                assert word in cookie
            assert len(link.partition("token=")[2]) >= 43  # 32 bytes
        async with visit.client.get(link, allow_redirects=False) as again:
            assert again.status == 403 and "used already" in await again.text()
        assert await visit.status("/") == 200


async def test_without_a_link_nothing_is_answered() -> None:
    async with visiting(enter=False) as visit:
        visit.web.new_link()
        for path in ("/", "/?token=", "/?token=wrong", "/?token=%ff%00", "/static/page.js",
                     "/static/", "/ws/x", "/download/x", "/nothing", "/favicon.ico"):
            assert await visit.status(path) == 403, path
        assert await visit.status("/", Cookie=f"backscroll-{visit.web.port}=wrong") == 403
        assert await visit.refused() == 403
        # A link that was only looked at, or fetched ahead, still works.
        link = visit.web.new_link()
        async with visit.client.head(link) as answer:
            assert answer.status == 403
        async with visit.client.get(link, headers={"Sec-Purpose": "prefetch;prerender"}) as answer:
            assert answer.status == 403
        async with visit.client.get(link) as answer:
            assert answer.status == 200


async def test_a_new_link_replaces_one_that_was_not_used() -> None:
    async with visiting(enter=False) as visit:
        stale, fresh = visit.web.new_link(), visit.web.new_link()
        used: list[bool] = []
        visit.web.used = lambda: used.append(True)
        assert await visit.status(stale.removeprefix(visit.url)) == 403 and not used
        assert await visit.status(fresh.removeprefix(visit.url)) == 303 and used == [True]


async def test_only_the_page_itself_is_asked_for_again() -> None:
    """Else a page whose cookie does not come would be asked for without end."""
    async with visiting(enter=False) as visit:
        for path, script in (("/", True), ("/?again", False), ("/x", False)):
            async with visit.client.get(visit.url + path) as answer:
                assert ("<script>" in await answer.text()) == script


async def test_a_process_sends_the_page_nothing_but_what_is_drawn() -> None:
    meta = b'{"type": "open_url", "url": "http://evil.example", "new_tab": true}'
    packets = b"".join(
        kind + len(content).to_bytes(4, "big") + content
        for kind, content in ((b"M", meta), (b"P", b"x"), (b"D", b"drawn")))
    script = f"import os; os.write(1, b'__GANGLION__\\n' + {packets!r}); os.read(0, 1)"
    async with visiting(script) as visit, visit.terminal() as terminal:
        assert await first_bytes(terminal) == "drawn"


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:1",
    "127.0.0.1:{port}.evil.example", "", "[::1]:{port}",
])
async def test_other_host_names_are_refused(host: str) -> None:
    async with visiting() as visit:
        named = host.format(port=visit.web.port)
        for path in ("/", "/static/page.js", visit.web.new_link().removeprefix(visit.url)):
            assert await visit.status(path, Host=named) == 403
        assert await visit.refused(Host=named, Origin=f"http://{named}") == 403
        assert await visit.status("/", Host=f"localhost:{visit.web.port}") == 200


@pytest.mark.parametrize("origin", [
    "http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1",
    "http://localhost:{port}", "http://127.0.0.1:{port}.evil.example", "",
])
async def test_other_origins_are_refused(origin: str) -> None:
    async with visiting() as visit:
        named = origin.format(port=visit.web.port)
        assert await visit.status("/", Origin=named) == 403
        assert await visit.refused(Origin=named) == 403


async def test_the_terminal_needs_cookie_origin_and_key() -> None:
    async with visiting() as visit:
        async with visit.terminal() as terminal:
            assert (await first_bytes(terminal)).startswith("size 100 30 pid ")
        for key in ("none", visit.key[:-1], visit.key + "x", "%C3%A9"):
            assert await visit.refused(key) == 403
        async with ClientSession() as stranger:
            with pytest.raises(WSServerHandshakeError) as error:
                await stranger.ws_connect(
                    f"{visit.url}/ws/{visit.key}", headers={"Origin": visit.url})
            assert error.value.status == 403
        with pytest.raises(WSServerHandshakeError) as error:
            await visit.client.ws_connect(f"{visit.url}/ws/{visit.key}")
        assert error.value.status == 403


async def test_the_key_of_one_visitor_is_not_that_of_another() -> None:
    async with visiting() as visit:
        first = visit.key
        visit.client.cookie_jar.clear()
        await visit.enter()
        assert await visit.refused(first) == 403


async def test_only_known_files_are_served() -> None:
    async with visiting() as visit:
        for name, (_, kind) in FILES.items():
            async with visit.client.get(f"{visit.url}/static/{name}") as answer:
                assert answer.status == 200 and answer.content_type == kind
                content = await answer.read()
                assert content and b"fonts.googleapis" not in content
        for path in ("/static/..%2f..%2fpage.py", "/static/index.html", "/static/%2e%2e/gate.py",
                     "/static/%2Fetc%2Fpasswd", "/download/x", "/static/", "/static"):
            assert await visit.status(path) == 404, path
        for method in ("POST", "PUT", "HEAD", "OPTIONS"):
            async with visit.client.request(method, visit.url + "/") as answer:
                assert answer.status == 405


async def test_every_answer_has_the_headers() -> None:
    async with visiting() as visit:
        link = visit.web.new_link().removeprefix(visit.url)
        for path, host in ((link, visit.host), ("/", visit.host), ("/static/page.js", visit.host),
                           ("/none", visit.host), ("/", "evil.example; script-src *")):
            async with visit.client.get(
                visit.url + path, headers={"Host": host}, allow_redirects=False
            ) as answer:
                policy = answer.headers["Content-Security-Policy"]
                for rule in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'",
                             "form-action 'none'"):
                    assert rule in policy
                assert "script-src *" not in policy and "unsafe-eval" not in policy
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["X-Frame-Options"] == "DENY"
                for what in ("Opener", "Resource"):
                    assert answer.headers[f"Cross-Origin-{what}-Policy"] == "same-origin"
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cache-Control"] == "no-store"
                assert answer.headers["Server"] == "backscroll"


async def test_what_is_typed_reaches_the_process_and_sizes_are_bounded() -> None:
    async with visiting() as visit, visit.terminal() as terminal:
        await first_bytes(terminal)
        await terminal.send_json(["stdin", "jé\x1b[A"])
        assert "D\x00\x00\x00\x06jé\x1b[A" in await first_bytes(terminal)
        await terminal.send_json(["resize", {"width": 10**9, "height": -5}])
        resized = json.loads((await first_bytes(terminal))[len("got ") + 5:])
        assert resized == {"type": "resize", "width": 500, "height": 5}
        await terminal.send_json(["ping", "17"])
        assert (await terminal.receive()).data == '["pong", "17"]'


@pytest.mark.parametrize("message", [
    "{", "[]", "17", '["stdin"]', '["stdin", 1]', '["resize", {"width": "1"}]',
    '["deliver_chunk_request", "x"]', '["quit"]', "[" * 100_000, '["ping", "%s"]' % ("x" * 100),
])
async def test_other_messages_close_the_page(message: str) -> None:
    async with visiting() as visit, visit.terminal() as terminal:
        await first_bytes(terminal)
        await terminal.send_str(message)
        closed = await terminal.receive()
        assert closed.type in (WSMsgType.CLOSE, WSMsgType.CLOSED) and terminal.close_code == 1008


async def test_messages_that_are_too_large_or_binary_close_the_page() -> None:
    async with visiting() as visit:
        async with visit.terminal() as terminal:
            await first_bytes(terminal)
            await terminal.send_str(json.dumps(["stdin", "x" * MOST_MESSAGE]))
            await terminal.receive()
            assert terminal.close_code == 1009
        async with visit.terminal() as terminal:
            await first_bytes(terminal)
            await terminal.send_bytes(b'["stdin", "x"]')
            await terminal.receive()
            assert terminal.close_code == 1008


async def test_each_page_has_a_process_that_ends_with_it() -> None:
    async with visiting() as visit:
        async with visit.terminal() as one, visit.terminal() as two:
            first, second = await first_bytes(one), await first_bytes(two)
            pids = [int(each.split()[-1]) for each in (first, second)]
            assert pids[0] != pids[1]
            await one.close()
            await gone(pids[0])
            await two.send_json(["stdin", "x"])
            assert "x" in await first_bytes(two)
        await gone(pids[1])


async def test_pages_are_counted() -> None:
    async with visiting() as visit:
        terminals = []
        for _ in range(MOST_PAGES):
            terminals.append(await visit.terminal())
            await first_bytes(terminals[-1])
        async with visit.terminal() as refused:
            assert "8 pages are open" in await first_bytes(refused)
        await terminals[0].close()
        async with asyncio.timeout(60):
            while True:
                async with visit.terminal() as again:
                    if (await first_bytes(again)).startswith("size"):
                        break
        for terminal in terminals:
            await terminal.close()


async def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "END_PATIENCE_S", 0.05)
    async with visiting(DEAF) as visit:
        terminal = await visit.terminal()
        async with asyncio.timeout(60):
            while not (pids := [page.pid for page in visit.web.browsers if page.pid]):
                await asyncio.sleep(0)
        (pid,) = pids
        await terminal.close()
        await gone(pid)


async def test_a_page_that_gives_no_sign_of_life_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.serve.web.HEARTBEAT_S", 0.1)
    async with visiting() as visit:
        headers = {"Origin": visit.url}
        terminal = await visit.client.ws_connect(
            f"{visit.url}/ws/{visit.key}", headers=headers, autoping=False)
        while (await terminal.receive()).type in (WSMsgType.BINARY, WSMsgType.PING):
            pass
        async with asyncio.timeout(60):
            while visit.web.browsers:
                await asyncio.sleep(0)


async def test_why_a_process_could_not_start_is_shown_without_its_controls() -> None:
    async with visiting(FAILS) as visit:
        async with visit.terminal() as terminal:
            shown = await first_bytes(terminal)
            assert "no such store" in shown and "\x1b[31m" not in shown
            assert (await terminal.receive()).type is WSMsgType.CLOSE
        async with asyncio.timeout(60):
            while not visit.told:
                await asyncio.sleep(0)
        assert "no such store" in visit.told[0]


async def test_what_a_process_prints_as_errors_is_bounded() -> None:
    async with visiting("import sys; sys.exit('x' * 200_000 + 'the end')") as visit:
        async with visit.terminal() as terminal:
            assert len(await first_bytes(terminal)) < 2 * browsing.MOST_ERRORS
            await terminal.receive()
        async with asyncio.timeout(60):
            while not visit.told:
                await asyncio.sleep(0)
        assert visit.told[0].endswith("the end") and len(visit.told[0]) <= browsing.MOST_ERRORS


async def test_an_odd_size_in_the_address_is_the_smallest() -> None:
    async with visiting() as visit:
        for size in ("9" * 5000, "-1", "NaN", "%D9%A3"):
            path = f"/ws/{visit.key}?width={size}"
            async with visit.client.ws_connect(
                visit.url + path, headers={"Origin": visit.url}
            ) as terminal:
                assert (await first_bytes(terminal)).startswith("size 20 5 ")


async def test_the_end_of_the_server_ends_the_processes() -> None:
    async with visiting() as visit:
        terminal = await visit.terminal()
        pid = int((await first_bytes(terminal)).split()[-1])
    await gone(pid)


def test_the_process_knows_neither_token_nor_the_server_s_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/x")
    gate = Gate()
    token = gate.new_token()
    visitor = gate.exchange(token)
    environment = page_environment(80, 24)
    assert visitor is not None and "TMUX" not in environment
    held = " ".join([*environment.values(), *os.environ.values()])
    assert not [one for one in (token, *visitor) if one in held]


def test_visitors_are_bounded_and_each_token_is_used_up() -> None:
    gate = Gate()
    visitors = []
    for _ in range(MOST_VISITORS + 1):
        token = gate.new_token()
        visitors.append(gate.exchange(token))
        assert gate.exchange(token) is None
    assert gate.visitor(visitors[0].cookie) is None if visitors[0] else False
    assert visitors[-1] is not None and gate.visitor(visitors[-1].cookie) == visitors[-1]
    assert gate.exchange("") is None and gate.visitor("") is None


def test_the_names_that_are_answered_to() -> None:
    assert names_of("127.0.0.1", "127.0.0.1", 81) == {"127.0.0.1:81", "localhost:81"}
    assert names_of("::1", "::1", 81) == {"[::1]:81", "localhost:81"}
    assert names_of("box.lan", "10.0.0.2", 81) == {"box.lan:81", "10.0.0.2:81"}
    machine = socket.gethostname().lower()
    assert names_of("0.0.0.0", "10.0.0.2", 81) == {f"{machine}:81", "10.0.0.2:81"}
    assert "127.0.0.1:81" in names_of("::", "::ffff:127.0.0.1", 81)
    assert names_of("127.0.0.1", "127.0.0.1", 80) >= {"127.0.0.1", "localhost:80"}


def test_loopback() -> None:
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("127.9.9.9")
    assert not is_loopback("0.0.0.0") and not is_loopback("10.0.0.1") and not is_loopback("::")


def test_the_command_line_of_a_page_is_no_shell_s(tmp_path: Path) -> None:
    from argparse import Namespace

    from tui.browser import browser_request
    from tui.cli.serve import page_line

    for target in ("; touch x", "$(touch x)", "`touch x`", "-x", "--store=y", "a b\n'\"", "*",
                   "stats", "help"):
        line = page_line(Namespace(target=target, store="--x;", demo=False, read_only=True))
        assert line[1:4] == ("-P", "-m", "tui.serve.page")
        request = browser_request(line[4:])
        assert request is not None and request.problem is None and request.read_only
        wanted = f"./{target}" if target in ("-x", "--store=y", "stats", "help") else target
        assert (request.target, request.store) == (wanted, "--x;")


async def raw(visit: Visiting, request: str) -> str:
    """Send bytes as they are, and return all that is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", visit.web.port)
    writer.write(request.encode("latin-1"))
    try:
        return (await reader.read()).decode("latin-1")
    except ConnectionError:
        return ""
    finally:
        writer.close()


def head(visit: Visiting, target: str = "/", *more: str) -> str:
    """Return a request that closes its connection, with the visitor's cookie."""
    cookie = "; ".join(f"{one.key}={one.value}" for one in visit.client.cookie_jar)
    lines = (f"GET {target} HTTP/1.1", f"Host: {visit.host}", f"Cookie: {cookie}",
             "Connection: close", *more)
    return "\r\n".join(lines) + "\r\n\r\n"


async def test_a_link_that_is_used_many_times_at_once_lets_in_one() -> None:
    async with visiting(enter=False) as visit:
        target = visit.web.new_link().removeprefix(visit.url)
        answers = await asyncio.gather(*(raw(visit, head(visit, target)) for _ in range(8)))
        codes = sorted(answer.split()[1] for answer in answers)
        assert codes == ["303", *["403"] * 7]


async def test_a_request_that_names_two_hosts_or_origins_is_refused() -> None:
    async with visiting() as visit:
        own = f"Origin: {visit.url}"
        assert " 200 " in await raw(visit, head(visit, "/", own))
        for request in (
            head(visit, "http://evil.example/"), head(visit, f"{visit.url}/"),
            head(visit, "/", own, "Origin: http://evil.example"),
            head(visit, "/", "Origin: http://evil.example", own),
        ):  # fmt: skip
            assert " 403 " in await raw(visit, request)
        assert " 403 " in await raw(visit, "GET / HTTP/1.0\r\n\r\n")
        assert await visit.refused(**{"Sec-WebSocket-Protocol": "chat"}) == 403


async def test_malformed_requests_are_refused_and_print_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Anybody can send them, before any cookie is looked at."""
    async with visiting(enter=False) as visit:
        for request in (
            "\x16\x03\x01\x00\xa5\r\n\r\n", "GET /?token=secret FOO\r\n\r\n",
            head(visit, "/", "No colon"), head(visit, "/" + "x" * 10_000),
            head(visit, "/\xff"), head(visit, "/", "Host: evil.example"),
        ):  # fmt: skip
            assert " 400 " in (await raw(visit, request)).splitlines()[0]
        assert visit.told == [] and caplog.records == []
    assert capfd.readouterr().err == ""


async def test_a_failure_of_the_server_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fails(self: Web, request: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(Web, "_index", fails)
    async with visiting() as visit:
        assert await visit.status("/") == 500
        (told,) = visit.told
        assert told.startswith("this should not happen: KeyError: 'odd'. Details are in ")
    assert capfd.readouterr().err == ""


async def test_connections_are_counted_and_do_not_stay_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.serve.server.MOST_CONNECTIONS", 3)
    monkeypatch.setattr("tui.serve.server.IDLE_S", 0.05)
    async with visiting(enter=False) as visit:
        waiting = [await asyncio.open_connection("127.0.0.1", visit.web.port) for _ in range(3)]
        waiting[0][1].write(b"GET / HTTP/1.1\r\nHost:")
        assert await raw(visit, head(visit)) == ""
        async with asyncio.timeout(60):
            for reader, writer in waiting:
                assert await reader.read() == b""
                writer.close()
            while not (answer := await raw(visit, head(visit))):
                pass
        assert " 403 " in answer


async def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*given: object, **more: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(browsing, "start_piped", fails)
    async with visiting() as visit:
        async with visit.terminal() as terminal:
            assert "could not be started: Too many open files" in await first_bytes(terminal)
            assert (await terminal.receive()).type is WSMsgType.CLOSE
        assert [one.partition(": ")[2] for one in visit.told] == ["Too many open files"]


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, wanted: bytes) -> bool:
        compared.append((given, wanted))
        return given == wanted

    monkeypatch.setattr("tui.serve.gate.hmac.compare_digest", compare)
    gate = Gate()
    tokens = [gate.new_token()]
    first = gate.exchange(tokens[0])
    tokens.append(gate.new_token())
    second = gate.exchange(tokens[1])
    assert first is not None and second is not None and gate.visitor(first.cookie) == first
    # Each visitor's cookie, too, so that the time does not tell which of them it was.
    assert compared == [*((one.encode(), one.encode()) for one in tokens), *(
        (first.cookie.encode(), each.cookie.encode()) for each in (first, second))]
