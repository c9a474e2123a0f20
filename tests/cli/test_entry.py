"""The command as it is installed: in odd folders, on odd terminals, on systems without POSIX."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import backscroll
import store
from tui.__main__ import main as run

PATIENCE_S = 120
COMMAND = [sys.executable, "-m", "backscroll"]
SESSION = (
    '{"parentUuid":null,"sessionId":"one","type":"user","uuid":"u","cwd":"/work",'
    '"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"hello"}}\n'
)
WRONG = "raise SystemExit('the package of this folder was imported')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has packages of our names, which PYTHONPATH puts first."""
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    for name in ("store", "tui"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text(WRONG)
    monkeypatch.chdir(project)
    monkeypatch.setenv("PYTHONPATH", ".")
    sessions = tmp_path / "home" / ".claude" / "projects" / "-work"
    sessions.mkdir(parents=True)
    (sessions / "one.jsonl").write_text(SESSION)
    return project


def test_packages_of_the_folder_are_not_ours(folder: Path) -> None:
    done = subprocess.run([*COMMAND, "sync"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 new")
    listed = subprocess.run([*COMMAND, "sessions"], capture_output=True, text=True, check=False)
    assert "hello" in listed.stdout, listed.stderr


def test_a_watcher_and_its_children_start_there_too(folder: Path) -> None:
    watching = subprocess.Popen(
        [*COMMAND, "sync", "--watch", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        assert watching.stdout is not None
        for told in watching.stdout:
            if '"watching"' in told:
                break
        else:
            raise AssertionError("it ended")
    finally:
        watching.terminate()
        watching.communicate(timeout=PATIENCE_S)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_host_gets_our_names_in_such_a_folder(folder: Path) -> None:
    done = python("""if True:
        import asyncio, pathlib, sys
        from backscroll import Refused, SessionFilter, Store
        assert "tui" not in sys.modules and "pydantic" not in sys.modules
        async def main():
            path = pathlib.Path("host.db")
            async with await Store.open(path, create=True) as store:
                print(store.form.name, SessionFilter.__module__, issubclass(Refused, Exception))
        asyncio.run(main())
    """)
    assert (done.stdout, done.stderr) == ("own store.queries.sessions True\n", "")


def test_a_host_with_a_module_of_that_name_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "store.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import store; "
    done = python(code + "from backscroll import Store")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ImportError: this program has imported another module 'store'")
    assert str(tmp_path / "store.py") in line and "rename" in line
    done = python(code + "import backscroll; sys.exit(backscroll.main())")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"backscroll: {line.removeprefix('ImportError: ')}\n"


def test_every_public_name_of_the_store_is_there() -> None:
    assert backscroll.__all__ == store.__all__
    for name in backscroll.__all__:
        assert getattr(backscroll, name) is getattr(store, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = backscroll.nothing
    assert set(backscroll.__all__) <= set(dir(backscroll))
    for package in (backscroll, store):
        assert package.__file__ is not None
        assert Path(package.__file__).with_name("py.typed").exists()


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_it_says_its_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert capsys.readouterr().out == f"backscroll {backscroll.__version__}\n"


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help"]) == 0
    assert capsys.readouterr().out.startswith("usage: backscroll [TARGET]")
    assert run(["help", "show"]) == 0
    assert capsys.readouterr().out.startswith("usage: backscroll show")


@pytest.mark.parametrize("term", ["dumb", "unknown", "", None])
def test_a_terminal_that_cannot_draw_is_refused(term: str | None, folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TERM"}
    if term is not None:
        environment["TERM"] = term
    ours, theirs = pty.openpty()
    done = subprocess.run(
        COMMAND, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True,
        env=environment, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "TERM is" in line and "xterm-256color" in line and (term or "not set") in line


def test_windows_is_sent_to_wsl() -> None:
    code = "import os, sys; os.name = 'nt'; import backscroll; sys.exit(backscroll.main())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == backscroll.NEEDS_WSL + "\n"


WITHOUT_POSIX = """
import importlib.util, os, pkgutil, select, signal, sys
# What others take from POSIX, they have.
import asyncio, concurrent.futures.process, multiprocessing, platformdirs
import pydantic, rich.console, subprocess, textual.app, textual.drivers.linux_driver, watchfiles
import textual.widgets, pathlib, shutil, tempfile, getpass, socket, uuid, webbrowser
has_extra = importlib.util.find_spec("mcp") is not None
if has_extra:
    import mcp.server
for name in ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "readline"):
    sys.modules[name] = None
for name in ("nice", "uname", "fork", "getuid", "geteuid", "kill", "O_NONBLOCK", "O_CLOEXEC"):
    delattr(os, name)
for name in ("poll", "epoll"):
    delattr(select, name)
for name in ("SIGHUP", "SIGTSTP", "SIGCONT", "SIGWINCH", "SIGKILL", "SIGUSR1"):
    delattr(signal, name)
import store, tui
for package in (store, tui):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        needs_extra = found.name.startswith("tui.mcp.") and not has_extra
        if not found.name.endswith("__main__") and not needs_extra:
            importlib.import_module(found.name)
from store.sync.__main__ import main
sys.exit(main(["--store", sys.argv[1], "--nice", "5", "--helpers", "0", sys.argv[2]]))
"""


@pytest.mark.long
def test_it_is_imported_and_syncs_without_what_posix_alone_has(tmp_path: Path) -> None:
    projects = tmp_path / "claude" / "projects" / "-work"
    projects.mkdir(parents=True)
    (projects / "one.jsonl").write_text(SESSION)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path / "s.db"), str(tmp_path / "claude")],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        cwd=Path(backscroll.__file__).parents[1],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
