"""``--read-only``: nothing is written, and what would be written says why it is not."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest

from store.engine.schema import CURRENT_VERSION
from store.errors import Refused, StoreError
from store.system.locations import library_path
from tests.tui.seeded import SESSION, Said, make_store, text
from tests.tui.stores import browser, put, settled, some
from tests.tui.verbs_app import drawn, running
from tui.browser import browser_request
from tui.dialogs.save import SaveScreen
from tui.host import cannot_save
from tui.keys.pane import owners_of
from tui.keys.registry import COMMANDS
from tui.kit import external
from tui.kit.clipboard import MOST_IN_PAGE, Clipboard
from tui.start import startup
from tui.state.limits import BY_OPTION, BY_SETTING, NO_PROGRAMS, Limits, limits_of

READ_ONLY = Limits(BY_OPTION)
SERVED = Limits(BY_OPTION, in_page=True)
TALK = [Said("user", [text("one")]), Said("assistant", [text("two")])]
OFF_IN_A_PAGE = {
    "file.save",
    "transcript.open", "inspector.open", "inspector.edit", "inspector.save", "app.export",
    "app.picture", "share.write", "stats.save",
}
"""Commands that change no session, and are off in a page that is read only."""


def files(folder: Path) -> dict[str, bytes]:
    """All files, but for what SQLite needs beside a store that others may write meanwhile."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*")) if path.is_file()
    }  # fmt: skip
    return {name: content for name, content in found.items()
            if not name.endswith("-shm") and (content or not name.endswith("-wal"))}


def changes(group: str, command_id: str) -> bool:
    """Whether a command changes what the store has, or what is remembered of it."""
    marks_in_list = {"list.mark", "list.mark-below", "list.mark-all", "list.unmark"}
    changing = group == "Change" and command_id not in marks_in_list
    changing = changing and not command_id.startswith("share.")  # Of what goes out.
    return changing or command_id in ("app.mark", "search.save")


async def test_every_verb_refuses_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(tmp_path / "s.db", TALK)
    before, make_folder = files(tmp_path), tempfile.mkdtemp
    copies: list[str] = []

    def counted(*given: Any, **more: Any) -> str:
        copies.append(str(make_folder(*given, **more)))
        return copies[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", counted)  # As for a pager or an editor.
    async with running(path, limits=SERVED) as run:
        assert "read only" in drawn(run.app.screen).splitlines()[0]
        seen = set()
        for keys in (
            (), ("@",), ("escape", "enter"), ("enter",), ("escape", "escape", "T"),
            ("escape", "S", "tab"), ("escape", "$"),
        ):  # fmt: skip
            run.app.close_toasts()
            await run.press(*keys)
            focus = run.app.focused or run.app.screen
            for owner in owners_of(focus):
                for command in run.app.commands.of(owner.SCOPE):
                    off = changes(command.group, command.id) or command.id in OFF_IN_A_PAGE
                    if off and not command.id.startswith("dialog"):
                        seen.add(command.id)
                        await owner.run_command(command)
                        await run.quiet()
        refused = {told for told in run.told if told in (BY_OPTION, NO_PROGRAMS)}
        assert refused == {BY_OPTION, NO_PROGRAMS}
        assert not [told for told in run.told if told.startswith(("Archived", "Mark", "Saved"))]
        assert {"list.archive", "transcript.fork", "inspector.edit", "tree.label", "app.undo",
                "app.mark", "app.continue", "app.import", "app.forget", "stats.save",
                "share.write"} <= seen
    assert files(tmp_path) == before and copies == []


def test_whatever_saves_a_file_or_starts_a_program_is_tried_here() -> None:
    """A new such command asks ``cannot_save`` or ``cannot_run``, and is named above."""
    words = re.compile(r"\b(saves?|writes?|pager|editor)\b", re.IGNORECASE)
    found = {
        command.id for command in COMMANDS
        if words.search(command.help) and command.scope != "dialog"
        and not changes(command.group, command.id)
    }  # fmt: skip
    assert found - {"app.share"} == OFF_IN_A_PAGE  # It only leads to "share.write".


async def test_the_store_and_its_helpers_refuse_too(tmp_path: Path) -> None:
    app = browser(put(tmp_path / "s.db", some(2)), limits=SERVED)
    async with app.run_test() as pilot:
        pane = await settled(app, pilot)
        store = await app.library.ready()
        with pytest.raises(Refused, match="--read-only"):
            await store.write(lambda database: None)
        assert store.read_only == BY_OPTION
        with pytest.raises(Refused, match="A web page cannot start"):
            external.open_in_pager(app, "text")
        await app.sync_now([str(tmp_path)])
        assert cannot_save(pane) == BY_OPTION
        app.push_screen(SaveScreen("text", "value", ".txt", tmp_path))
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert BY_OPTION in drawn(app.screen)
    assert not (tmp_path / "value.txt").exists()


async def test_at_a_terminal_values_can_still_be_saved_elsewhere(tmp_path: Path) -> None:
    async with running(make_store(tmp_path / "s.db", TALK), limits=READ_ONLY) as run:
        await run.open(SESSION)
        screen = run.app.main
        assert cannot_save(screen) is None and run.app.library.limits.no_programs is None
        commands = run.app.commands.by_id
        assert commands["app.export"].available(screen) is None
        assert commands["app.continue"].available(screen) == BY_OPTION


async def test_searches_are_remembered_until_the_end_only(tmp_path: Path) -> None:
    async with running(make_store(tmp_path / "s.db", TALK), limits=READ_ONLY) as run:
        await run.press("S", "t", "w", "o", "enter", "enter")
        await run.press("S")
        model, _ = run.app._made_search()
        assert model.keeper.kept.recent == ("two",)
    async with running(tmp_path / "s.db") as run:
        model, _ = run.app._made_search()
        assert model.keeper.kept.recent == ()


def test_the_option_and_the_setting() -> None:
    request = browser_request(["--read-only", "--store", "x.db"])
    assert request is not None and request.read_only and request.store == "x.db"
    assert limits_of(option=True, setting=True).read_only == BY_OPTION
    assert limits_of(option=False, setting=True).read_only == BY_SETTING
    assert limits_of(option=False, setting=False) == Limits()


def test_no_library_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    for target in (None, str(tmp_path)):
        with pytest.raises(StoreError, match="no library yet at .*without --read-only"):
            startup.open_library(target, None, limits=READ_ONLY)
    assert not library_path().exists()


def test_an_empty_library_is_shown_as_it_is(tmp_path: Path) -> None:
    put(library_path(), [])
    before = files(tmp_path)
    library = startup.open_library(None, None, limits=READ_ONLY)
    assert library.name == "library" and library.headline is None
    library.database.close()
    assert files(tmp_path) == before


def test_an_old_library_is_not_migrated(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(1))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {CURRENT_VERSION - 1}")
    connection.close()
    before = path.read_bytes()
    for arguments in ((str(path), None), (None, str(path))):
        with pytest.raises(StoreError, match="older version .* to migrate it"):
            startup.open_library(*arguments, limits=READ_ONLY)
    assert path.read_bytes() == before


def test_a_library_is_shown_without_syncing_it_and_a_copy_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(library_path(), some(1))
    library = startup.open_library(None, None, limits=READ_ONLY)
    assert library.sync_targets is None and not library.is_kept
    library.database.close()
    monkeypatch.setattr(startup, "_source_of", lambda path: path)
    copy = startup.open_library(str(tmp_path), None, limits=READ_ONLY)
    assert copy.sync_targets == (tmp_path,) and copy.is_kept and copy.no_change == BY_OPTION
    copy.database.close()


def test_a_page_gets_what_is_copied_and_the_machine_does_not() -> None:
    sent: list[str] = []

    def never(text: str) -> None:
        raise AssertionError(text)

    there = Clipboard(sent.append, {"TMUX": "x", "DISPLAY": ":0"}, never, in_page=True)
    large = "x" * 200_000
    assert there.copy(large, "the output").message == (
        "sent the output (200,000 characters) to the clipboard of the web page")
    assert sent == [large]
    too_large = there.copy("x" * (MOST_IN_PAGE + 1))
    assert too_large.way == "none" and too_large.path is None and len(sent) == 1
