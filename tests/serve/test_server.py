"""``backscroll serve`` as a process: its links, its end, and what it says."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar, WSMsgType

from tests.serve.processes import children, gone
from tests.tui.stores import put, some
from tests.tui.terminals import on_a_terminal
from tui.cli import main as run_command

LINK = re.compile(r"http://([^/]+)/\?token=([\w-]{43})")


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGKILL])
async def test_no_process_of_a_page_outlives_the_server(tmp_path: Path, way: int) -> None:
    path = put(tmp_path / "s.db", some(2))
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tui", "serve", "--store", str(path),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None
    link = (await server.stdout.readline()).decode().strip()
    found = LINK.fullmatch(link)
    assert found is not None
    host, token = found.groups()
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        async with client.get(link, allow_redirects=False) as answer:
            key = answer.headers["Location"].removeprefix("/#")
        async with client.ws_connect(
            f"http://{host}/ws/{key}?width=80&height=24", headers={"Origin": f"http://{host}"}
        ) as terminal:
            drawn = b""
            while b"Session" not in drawn:
                message = await terminal.receive()
                assert message.type is WSMsgType.BINARY, message
                drawn += message.data
            (page,) = children(server.pid)
            for pid in (server.pid, page):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                for secret in (token, key, "token"):
                    assert secret.encode() not in line + environment
            async with asyncio.timeout(60):
                while not (helpers := children(page)):  # What keeps the index.
                    await asyncio.sleep(0.01)
            server.send_signal(way)
            await server.wait()
            for pid in (page, *helpers):
                await gone(pid)
    _, said = await server.communicate()
    assert token.encode() not in said
    assert server.returncode == (0 if way != signal.SIGKILL else -signal.SIGKILL)
    written = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert len(written) > 1  # The store, and what is kept beside it.
    assert not [each for each in written if token.encode() in each.read_bytes()]


def test_enter_prints_another_link(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    command = [sys.executable, "-m", "tui", "serve", "--store", str(path)]
    with on_a_terminal(command, dict(os.environ)) as terminal:
        terminal.wait_for(b"Press Enter for another link, Ctrl+C to stop.")
        (first,) = LINK.findall(terminal.received.decode())
        terminal.received = b""
        terminal.send(b"\r")
        terminal.wait_for(b"token=")
        (second,) = LINK.findall(terminal.received.decode())
        assert second[0] == first[0] and second[1] != first[1]
        terminal.send(b"\x03")
        assert terminal.exit_code() == 0


def test_the_link_is_opened_from_a_private_file(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    opener = tmp_path / "opener"
    opener.write_text('#!/bin/sh\nfile="${1#file://}"\necho "opened $1"\n'
                      'stat -c "mode %a" "$file"; cat "$file"; echo; echo seen; sleep 600\n')
    opener.chmod(0o755)
    environment = dict(os.environ) | {"BROWSER": f"{opener} %s", "DISPLAY": ":none"}
    command = [sys.executable, "-m", "tui", "serve", "--store", str(path), "--open"]
    with on_a_terminal(command, environment, size=(200, 24)) as terminal:
        said = terminal.wait_for(b"seen").decode()
        ((_, token),) = set(LINK.findall(said))
        (opened,) = re.findall(r"opened (\S+)", said)
        assert token not in opened and "mode 600" in said and said.count(token) == 2
        terminal.send(b"\x03")
        assert terminal.exit_code() == 0
    assert not Path(opened.removeprefix("file://")).exists()


def test_another_address_is_warned_of(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    command = [sys.executable, "-m", "tui", "serve", "--store", str(path), "--listen", "0.0.0.0"]
    with on_a_terminal(command, dict(os.environ)) as terminal:
        terminal.wait_for(b"Ctrl+C to stop")
        said = terminal.received.decode()
        assert "can be reached from other machines" in said and "not encrypted" in said
        terminal.send(b"\x03")
        assert terminal.exit_code() == 0


@pytest.mark.parametrize(("arguments", "said"), [
    (["--port", "70000"], "no port"),
    (["--port", "-1"], "no port"),
    (["--listen", "192.0.2.1", "--demo"], "cannot listen on 192.0.2.1"),
    (["--listen", "a..b", "--demo"], "cannot listen on a..b: it is no name of a machine"),
    (["--read-only"], "no library yet"),
    (["nothing-of-that-name"], "no command, file or folder is called"),
])
def test_mistakes_are_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["serve", *arguments]) in (1, 2)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["aiohttp", "textual_serve"])
def test_without_the_extra_a_sentence_says_how_to_install_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda one: None if one == name else find(one))
    assert run_command(["serve", "--demo"]) == 1
    assert capsys.readouterr().err == (
        f"backscroll: The package `{name.replace('_', '-')}` is missing. Install it: pip install"
        " 'backscroll[serve]'\n")
