from __future__ import annotations

from pathlib import Path

from store.database import open_database
from tests.tui.seeded import SESSION, START, Said, make_store, text
from tests.tui.stores import browser, settled
from tui.panes.inspector import InspectorPane


async def test_the_inspector_shows_no_part_of_the_session_before(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [Said("user", [text("hello")])])
    with open_database(path).connection as connection:
        connection.execute(
            "INSERT INTO chat_sessions (id, agent, model_json, metadata_json, created_at,"
            " updated_at) SELECT 'ses_empty', agent, model_json, '{\"title\":\"Never used\"}', ?, ?"
            " FROM chat_sessions",
            (START - 1, START - 1),
        )
    app = browser(path)
    async with app.run_test(size=(200, 50)) as pilot:
        pane = await settled(app, pilot)
        inspector = app.main.query_one(InspectorPane)

        async def opened(session_id: str) -> str | None:
            pane.go_to(session_id)
            app.main.go_into(session_id)
            await app.workers.wait_for_complete()
            await settled(app, pilot)
            await app.workers.wait_for_complete()
            await pilot.pause()
            await inspector.settled()
            return inspector.subject.detail.part.session_id if inspector.subject else None

        assert await opened(SESSION) == SESSION
        assert await opened("ses_empty") is None
        assert "There is no part to show" in inspector.view.render_line(0).text
        assert await opened(SESSION) == SESSION
