"""``search --open`` goes on in the browser, at the very part."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.engine.database import open_database
from tests.tui.seeded import SESSION, Said, make_store, text
from tests.tui.stores import browser, settled
from tui.__main__ import main
from tui.start.wanted import Place


@pytest.fixture
def path(tmp_path: Path) -> Path:
    talk = []
    for number in range(30):
        talk += [Said("user", [text(f"question {number}")]),
                 Said("assistant", [text(f"answer {number}"), text(f"more {number}")])]
    return make_store(tmp_path / "store.db", talk)


async def test_the_browser_opens_at_a_part(path: Path) -> None:
    db = open_database(path, write=False)
    message_id, part_id = db.connection.execute(
        "SELECT message_id, id FROM chat_parts WHERE data_json LIKE '%more 7%'").fetchone()
    db.close()
    app = browser(path)
    app.first_place = Place(SESSION, message_id, part_id)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(app, pilot)
        transcript = app.main.transcript
        assert transcript is not None
        shown = transcript.shown
        assert app.shown_session == SESSION
        assert shown.document.skeleton.key(shown.cursor) == (message_id, 1)
        assert app.main.panes.focused == "transcript"


def test_without_a_terminal_it_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "more 7", "--open", "--store", str(path)]) == 2
    assert "needs a terminal" in capsys.readouterr().err
