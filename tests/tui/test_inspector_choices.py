from __future__ import annotations

from pathlib import Path

import pytest

from store.queries.inspection import message_parts
from store.store import Store
from tests.tui.inspected import Talk, make_store, part_id
from tests.tui.inspector_app import InspectorApp
from tui.dialogs.copy_as import CopyAsScreen
from tui.dialogs.copy_choices import choices, code_blocks, message_markdown


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return make_store(tmp_path / "store.db")


def offered(talk: Talk, message: int, index: int) -> dict[str, str]:
    message_id = f"msg_inspected_{message:05}"
    parts = message_parts(talk.db, message_id)
    found = choices(talk.session_id, message_id, part_id(talk, message, index), parts)
    return {choice.name: choice.read() if choice.read else "" for choice in found}


def test_a_tool_call_offers_output_command_json_and_ids(talk: Talk) -> None:
    found = offered(talk, 2, 1)
    assert found["command"] == "pytest -q tests/sync"
    assert found["output"].startswith("line 0\n")
    assert found["part"].startswith("**Bash** pytest -q tests/sync\n\n```\nline 0")
    assert found["call id"] == "toolu_01mdGEHb0000000000NyyF"
    assert found["message"].startswith("I will **look**.\n\n**Bash**")
    assert "session as Markdown" in found


def test_a_text_offers_its_code_blocks(talk: Talk) -> None:
    assert offered(talk, 1, 0)["code block"] == "print(1)"


def test_code_blocks_of_all_fences() -> None:
    text = "a\n```py\nx = '``'\n```\n~~~\nplain\n~~~\n````md\n```\ninner\n```\n````\n"
    assert code_blocks(text) == [("py", "x = '``'"), ("", "plain"), ("md", "```\ninner\n```")]


def test_reasoning_is_quoted_in_a_message(talk: Talk) -> None:
    message = talk.message("assistant", {"type": "reasoning", "text": "a\nb"})
    assert message_markdown(message_parts(talk.db, message)) == "> a\n> b"


@pytest.mark.parametrize(
    ("key", "starts"),
    [("c", "pytest -q tests/sync"), ("S", '---\ntitle: "Inspected"\n'), ("i", "ses_inspected")],
)
async def test_a_letter_copies_its_line(
    talk: Talk, key: str, starts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    async def copy(app: object, text: str, name: str = "") -> None:
        copied.append(text)

    monkeypatch.setattr("tui.kit.clipboard.copy", copy)
    store = await Store.open(talk.db.path)
    app = InspectorApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await app.push_screen(
            CopyAsScreen(store, talk.session_id, "msg_inspected_00002", part_id(talk, 2, 1))
        )
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        assert not isinstance(app.screen, CopyAsScreen)
    await store.close()
    assert len(copied) == 1 and copied[0].startswith(starts)
