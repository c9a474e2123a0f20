from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from store.config import Settings
from store.errors import BackscrollError
from store.sources.registry import all_sources
from store.sync.targets import classify
from store.system.locations import cache_dir, library_path
from tests.tui.seeded import Said, make_store, text
from tests.tui.stores import Told, browser, put, settled, some
from tests.tui.verbs_app import running
from tui.__main__ import main
from tui.app import BackscrollApp
from tui.browser import Request, browser_request
from tui.start import startup
from tui.start.making import Making


@pytest.mark.parametrize(
    ("arguments", "request_"),
    [
        ([], Request()), (["--demo"], Request(demo=True)), (["x.db"], Request(target="x.db")),
        (["--store", "a", "b"], Request(target="b", store="a")),
        (["--store=a"], Request(store="a")), (["--", "-odd.db"], Request(target="./-odd.db")),
        (["--", "stats"], Request(target="./stats")),
        (["sync"], None), (["--help"], None), (["--store", "a", "sessions"], None),
    ],
)
def test_what_a_command_line_asks(arguments: list[str], request_: Request | None) -> None:
    assert browser_request(arguments) == request_


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--nope"], "unknown option --nope"),
     (["--sesions"], "unknown option --sesions; did you mean sessions?"),
     (["--stor=x"], "unknown option --stor=x; did you mean --store?"),
     (["a", "b"], "one target at a time, not also 'b'; and no command, file or folder is called"),
     (["a.db", "b"], "one target at a time, not also 'b'; see"), (["--store"], "needs a"),
     (["delete", "ses_1"], "called 'delete'. Did you mean `backscroll forget`?\n"),
     (["--store", "x.db", "rm", "--yes", "1"], "called 'rm'. Did you mean `backscroll forget`?\n"),
     (["Sesions", "--json"], "called 'Sesions'. Did you mean `backscroll sessions`?\n")],
)
def test_nonsense_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_a_folder_is_a_target_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list").mkdir()
    monkeypatch.chdir(tmp_path)
    assert browser_request(["list"]) == Request(target="list")
    both = browser_request(["list", "x"])
    assert both is not None and both.problem == "one target at a time, not also 'x'"


def test_without_a_terminal_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "needs a terminal" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["{}"], ["--store", "{}"]])
def test_without_a_terminal_what_cannot_be_opened_is_told_first(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, words = tmp_path / "missing", tmp_path / "words.txt"
    words.write_text("words")
    for path, why in ((missing, "does not exist"), (words, "a text file, not a SQLite database")):
        assert main([argument.format(path) for argument in arguments]) == 1
        assert why in capsys.readouterr().err
    store = put(tmp_path / "s.db", some(1))
    assert main([argument.format(store) for argument in arguments]) == 2
    assert "needs a terminal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "way_out"),
    [("seshions", "Did you mean `backscroll sessions`?"),
     ("list", "Did you mean `backscroll sessions`?"), ("zzz", "See `backscroll --help`.")],
)
def test_a_word_that_is_no_file_may_be_a_command(
    word: str, way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = f"no command, file or folder is called '{word}'. {way_out}"
    assert main([word]) == 1
    assert capsys.readouterr().err == f"backscroll: {told}\n"
    with pytest.raises(BackscrollError) as raised:
        startup.open_library(word, None)
    assert str(raised.value) == told


def test_a_store_opens_as_it_is(tmp_path: Path) -> None:
    path = put(tmp_path / "host.db", some(2))
    library = startup.open_library(str(path), None)
    assert (library.name, library.path, library.sync_targets) == ("host.db", path, None)


def test_nothing_found_shows_the_demo_and_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    library = startup.open_library(None, None)
    assert library.name == "demo"
    assert library.headline is not None
    assert library.headline.startswith("No agent sessions found in ~/.claude")
    assert library.headline.endswith("; showing the demo")
    named, more = re.fullmatch(
        r"No agent sessions found in (.+) and (\d+) other places "
        r"\(see backscroll sources --all\); .*",
        library.headline,
    ).groups()  # type: ignore[union-attr]
    _, looked = startup.found_sources()
    assert len(named.split(", ")) + int(more) == len(looked)
    assert library.path.parent == cache_dir()
    assert library.making is not None
    asyncio.run(library.making.done())
    assert not startup.is_empty(library.path)
    again = startup.open_library(None, None, demo=True)
    assert (again.name, again.headline) == ("demo", None)
    asyncio.run(again.close())


class Slowly(Making):
    """Stands still from its start until it may go on."""

    def __init__(self, making: Making) -> None:
        self.words = making.words
        self._process = making._process
        self._process.send_signal(signal.SIGSTOP)
        self.may_end = asyncio.Event()

    async def done(self) -> None:
        await self.may_end.wait()
        self._process.send_signal(signal.SIGCONT)
        await super().done()


async def test_the_first_paint_says_that_the_demo_is_being_made() -> None:
    library = startup.open_library(None, None, demo=True)
    assert library.making is not None
    library.making = Slowly(library.making)
    app = BackscrollApp(library, Settings(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        painted = [app.main.sessions.view.render_line(y).text.strip() for y in range(3)]
        library.making.may_end.set()
        pane = await settled(app, pilot)
        assert len(pane.view.model) > 12
        assert pane.selected_id is not None
    assert painted == ["", "Making the demo store…", ""]


async def test_a_demo_that_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = startup.open_library(None, None, demo=True)
    assert library.making is not None
    library.making.stop()
    library.making = Making("Making the demo store", "store.demo", [str(tmp_path / "nowhere.db")])
    app = BackscrollApp(library, Settings(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = await settled(app, pilot)
        (told,) = [note.message for note in app._notifications]
        assert told.startswith("Making the demo store failed: ") and "nowhere.db" in told
        assert pane.view.when_empty[0] == "There are no sessions in this store"


def test_a_first_run_says_what_the_library_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    library = startup.open_library(None, None)
    assert (library.path, library.sync_targets) == (library_path(), ())
    assert "keep_deleted" in (library.notice or "")


def test_a_folder_that_is_no_source_filters_the_library(tmp_path: Path) -> None:
    put(library_path(), [Told("ses_a", workspace=str(tmp_path / "proj"))])
    (tmp_path / "proj").mkdir()
    library = startup.open_library(str(tmp_path / "proj"), None)
    assert library.workspace == str(tmp_path / "proj")


def test_the_first_run_may_be_in_the_folder_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "proj").mkdir()
    with pytest.raises(BackscrollError, match=r"proj holds no agent's sessions.*~/.claude.*--demo"):
        startup.open_library(str(tmp_path / "proj"), None)
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    library = startup.open_library(str(tmp_path / "proj"), None)
    assert (library.path, library.sync_targets) == (library_path(), ())
    assert library.workspace == str(tmp_path / "proj")
    assert "keep_deleted" in (library.notice or "")


def test_a_folder_that_may_not_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("store.sources.registry.os.scandir", refuse)
    words = f"{tmp_path} cannot be read: Permission denied; check its permissions"
    with pytest.raises(BackscrollError) as told:
        startup.open_library(str(tmp_path), None)
    assert str(told.value) == words
    with pytest.raises(BackscrollError) as told:
        classify(tmp_path, all_sources())
    assert str(told.value) == words


@pytest.mark.parametrize("content", [None, b"", b"no database", bytes(range(256))])
def test_what_cannot_be_opened_is_said(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "thing.bin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BackscrollError, match="thing.bin"):
        startup.open_library(str(path), None)


async def test_ctrl_c_says_which_keys_quit(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(2)))
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        await pilot.press("ctrl+c")
        await pilot.pause()
        told = [notification.message for notification in app._notifications]
        assert told == ["q or ctrl+q quits Backscroll"]


async def test_escape_takes_the_selection_of_the_mouse_away(tmp_path: Path) -> None:
    said = [Said("user", [text("first words")]), Said("user", [text("second words")])]
    async with running(make_store(tmp_path / "s.db", said)) as run:
        view = run.transcript.view
        await run.press("2")
        await run.pilot.mouse_down(view, offset=(4, 3))
        await run.pilot.hover(view, offset=(30, 6))
        await run.pilot.mouse_up(view, offset=(30, 6))
        assert run.app.screen.get_selected_text()
        await run.press("escape")
        assert not run.app.screen.get_selected_text()
        assert view.has_focus
        await run.pilot.click(view, offset=(4, 3))
        await run.press("escape")
        assert run.app.main.panes.focused == "sessions"
