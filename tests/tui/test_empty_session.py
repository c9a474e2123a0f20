from __future__ import annotations

from pathlib import Path

from store.engine.database import open_database
from tests.tui.seeded import SESSION, START, Said, make_store, text
from tests.tui.stores import browser, settled
from tests.tui.verbs_app import MOST_PAUSES, running
from tui.inspector.pane import InspectorPane


async def test_the_inspector_shows_no_part_of_the_session_before(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [Said("user", [text("hello")])])
    with open_database(path).file as connection:
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

        def inspected() -> str | None:
            return inspector.subject.detail.part.session_id if inspector.subject else None

        async def opened(session_id: str, wanted: str | None) -> str | None:
            """Return what is inspected once it is what is wanted, or after a long time."""
            pane.go_to(session_id)
            app.main.open_session(session_id)
            await settled(app, pilot)
            for _ in range(MOST_PAUSES):
                if inspected() == wanted:
                    break
                await pilot.pause()
            await inspector.settled()
            return inspected()

        assert await opened(SESSION, SESSION) == SESSION
        assert await opened("ses_empty", None) is None
        assert "There is no part to show" in inspector.view.render_line(0).text
        assert await opened(SESSION, SESSION) == SESSION


async def test_the_inspector_shows_no_part_of_the_message_before(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [Said("user", [text("hello")]), Said("assistant", [])])
    async with running(path, (200, 50)) as run:
        inspector = run.app.main.query_one(InspectorPane)
        assert inspector.subject is None
        assert "There is no part to show" in inspector.view.render_line(0).text
        await run.press("enter", "k")
        await inspector.settled()
        assert inspector.subject is not None
        await run.press("j")
        assert inspector.subject is None
        assert "There is no part to show" in inspector.view.render_line(0).text
