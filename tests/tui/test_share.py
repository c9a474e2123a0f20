"""The screen that shares a session: choices, masks that are let through, preview and file."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from textual.widgets import Input

from store.engine.opening import open_target
from store.exports.registry import FORMATS
from store.sharing.masks import Masking
from tests.tui.seeded import SESSION, message_id
from tests.tui.test_masked_view import KEY, PASSWORD, secretive
from tests.tui.verbs_app import Running, drawn, running
from tui.share.outgoing import Choices, Outgoing
from tui.share.screen import ShareScreen


async def share(run: Running) -> ShareScreen:
    await run.open(SESSION, message_id(0))
    await run.press("at")
    assert isinstance(run.app.screen, ShareScreen)
    return run.app.screen


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.one_in(3)
async def test_what_goes_out_is_seen_before(tmp_path: Path, size: tuple[int, int]) -> None:
    async with running(secretive(tmp_path / "s.db"), size=size) as run:
        screen = await share(run)
        seen = drawn(screen)
        assert "markdown" in seen and "GitHub token" in seen and "What goes out" in seen
        assert "[masked GitHub token]" in seen and KEY[4:12] not in seen
        assert screen.seen is not None and PASSWORD not in screen.seen.text
        assert f"GitHub token {screen.seen.counts['GitHub token']}" in seen


async def test_choices_change_what_goes_out(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        screen = await share(run)
        await run.press("j", "l", "j", "j", "h")
        assert (screen.choices.messages, screen.choices.outputs) == ("from", "none")
        assert screen.seen is not None and "[left out]" in screen.seen.text
        await run.press("j", "enter")
        assert not screen.choices.secrets and KEY in screen.seen.text
        assert "not masked" in drawn(screen)


async def test_a_single_mask_is_let_through(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        screen = await share(run)
        await run.press("exclamation_mark")
        listed = drawn(run.app.screen)
        assert "GitHub token" in listed and "(40 characters)" in listed and KEY[4:] not in listed
        await run.press("enter", "j", "enter", "escape")
        assert screen.seen is not None and KEY in screen.seen.text
        assert PASSWORD not in screen.seen.text
        await run.press("exclamation_mark")
        assert "let through" in drawn(run.app.screen)
        await run.press("enter", "k", "enter", "escape")
        assert KEY not in screen.seen.text


async def test_the_file_is_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        screen = await share(run)
        assert screen.seen is not None
        text, there = screen.seen.text, tmp_path / "there.md"
        there.write_text("mine")
        await run.press("w")
        run.app.screen.query_one(Input).value = str(there)
        await run.quiet()
        await run.press("enter")
        assert there.read_text() == "mine"
        await run.press("enter")
        assert there.read_text() == text
        assert "Shared" in run.last
        assert not isinstance(run.app.screen, ShareScreen)


async def test_marked_sessions_go_out_together(tmp_path: Path) -> None:
    from tests.tui.stores import put, some

    async with running(put(tmp_path / "s.db", some(3)), size=(120, 40)) as run:
        await run.press("1", "space", "space", "at")
        screen = run.app.screen
        assert isinstance(screen, ShareScreen)
        assert screen.choices.format.several and "2 sessions" in drawn(screen)


async def test_the_key_that_saves_leads_here_too(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        await run.open(SESSION, message_id(0))
        await run.press("w", "G", "enter")
        assert isinstance(run.app.screen, ShareScreen)
        await run.press("j", "l")
        assert run.app.screen.choices.messages == "from"


async def test_a_page_is_seen_with_all_that_it_says(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        screen = await share(run)
        while screen.choices.format.name != "html":
            await run.press("l")
        assert screen.seen is not None
        page = Outgoing(
            screen._outgoing.store, (SESSION,), None, screen._outgoing.masking,
        )
        page.write(screen.choices, tmp_path / "p.html", replace=False)
        words = re.sub(r"<(style|script|title)>.*?</\1>|<[^>]+>", " ",
                       (tmp_path / "p.html").read_text(), flags=re.S)
        said = set(unescape(words).split()) - {"◐", "↑", "↓"}
        assert said <= set(screen.seen.text.split())
        assert "[masked GitHub token]" in screen.seen.text and KEY not in screen.seen.text


async def test_what_older_choices_made_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = list[str]()

    async def copy(_app: object, text: str, _name: str) -> None:
        copied.append(text)

    monkeypatch.setattr("tui.share.screen.clipboard.copy", copy)
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        screen = await share(run)
        await run.press("y")
        assert screen.seen is not None and copied == [screen.seen.text]
        screen.choices = replace(screen.choices, secrets=False)
        await run.press("y")
        assert len(copied) == 1 and "still being made" in run.last
        screen.choices = screen.seen.choices
        screen.seen = screen.seen._replace(is_cut=True)
        await run.press("y")
        assert len(copied) == 1 and "too much to copy" in run.last


async def test_a_session_that_is_gone_is_told(tmp_path: Path) -> None:
    async with running(secretive(tmp_path / "s.db"), size=(120, 40)) as run:
        screen = await share(run)
        await run.press("w")
        screen._outgoing.sessions[:] = ["gone"]  # type: ignore[index]
        await run.press("enter")
        assert "No session with id" in drawn(run.app.screen)


def test_choices_are_laid_over_what_the_config_masks(tmp_path: Path) -> None:
    outgoing = Outgoing(
        secretive(tmp_path / "s.db"), (SESSION,), None, Masking(let_through=frozenset({KEY})))
    with closing(open_target(outgoing.store)) as database:
        made = outgoing.prepared(database, Choices(
            FORMATS["html"], images=False, emails=True, let_through=frozenset({PASSWORD})))
    assert made.masks.masking.emails and made.reading.largest_image == 0
    assert made.masks.masking.let_through == {KEY, PASSWORD}
