"""lionagi: sessions that ``li mirror`` copied from other agents, and runs without a name.

As 0.36.0 writes them: a mirrored call keeps its arguments as a piece of JSON, the folder
of a mirrored session stands in the place of its artifacts, and a run of ``li agent`` is
named ``agent``, which the program shows as its id.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.lionagi import LionagiSource
from tests.sources import grown, row_sources
from tests.sources.test_lionagi import CODEX, FILE, R1, append


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return row_sources.copied(FILE, tmp_path)


def change(state: Path, sql: str, *values: Any) -> None:
    connection = sqlite3.connect(state)
    with connection:
        connection.execute(sql, values)
    connection.close()


def drafts(state: Path) -> dict[str, SessionDraft]:
    return grown.read_all(LionagiSource(), state)[0]


@pytest.mark.parametrize(
    ("preview", "given"),
    [
        ('{"command":"ls *.py"}', {"command": "ls *.py"}),
        ('{"command":"ls', {"_mirror_preview": '{"command":"ls', "_truncated": True}),
    ],
)
def test_arguments_of_a_mirrored_call(state: Path, preview: str, given: object) -> None:
    kept = {"_mirror_preview": preview, "_truncated": isinstance(given, dict) and len(given) > 1}
    content = json.dumps({"function": "Bash", "arguments": kept})
    connection = sqlite3.connect(state)
    with connection:
        connection.execute(
            "INSERT INTO messages(id, created_at, node_metadata, content, role, lion_class)"
            " SELECT 'new', 1790003700.0, node_metadata, ?, role, lion_class FROM messages"
            " WHERE json_extract(content, '$.function') IS NOT NULL"
            " AND json_extract(content, '$.output') IS NULL LIMIT 1", (content,),
        )  # fmt: skip
        append(connection, R1, "new")
    connection.close()
    part = grown.call(drafts(state)[R1], "new")
    assert (part.type, part.data["input"]) == ("tool-Bash", given)


def test_the_folder_of_a_mirrored_session(state: Path) -> None:
    sql = "UPDATE sessions SET project = NULL, artifacts_path = ?, node_metadata = ? WHERE id = ?"
    change(state, sql, "/home/user/project", '{"process_identity_mode": "external"}', CODEX)
    assert drafts(state)[CODEX].workspace_root == "/home/user/project"
    change(state, "UPDATE sessions SET node_metadata = 'null' WHERE id = ?", CODEX)
    assert drafts(state)[CODEX].workspace_root is None


def test_a_run_without_a_name_is_called_by_its_prompt(state: Path) -> None:
    change(state, "UPDATE sessions SET user_label = NULL, show_topic = NULL, show_play_name = NULL,"
           " playbook_name = NULL, agent_name = NULL, name = 'agent', invocation_kind = 'agent'"
           " WHERE id = ?", CODEX)  # fmt: skip
    draft = drafts(state)[CODEX]
    prompt = grown.prompts(draft.messages)[0]
    assert (draft.title, draft.title_from) == (prompt, "first-prompt")
