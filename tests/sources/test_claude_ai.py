"""Claude.ai's data export: folder and zip come out exactly as their EXPECTED.json says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.base.drafts import SessionDraft
from store.sources.claude_ai import ClaudeAiSource
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown
from tests.sources.chat_exports import (
    answers,
    branched,
    calls,
    listed,
    parts,
    prompts,
    shown,
    words,
    zipped,
)
from tests.sources.samples import DATA

SAMPLE = DATA / "claude-ai"
ZIP = "data-2026-11-20-10-00-00-batch-0000.zip"
EXPECTED: list[tuple[str, dict[str, Any]]] = [
    (name, one) for name in ("folder", ZIP)
    for one in json.loads((SAMPLE / f"EXPECTED.{name}.json").read_text())["sessions"]
]  # fmt: skip
READ = {name: grown.read_all(ClaudeAiSource(), SAMPLE / name) for name in ("folder", ZIP)}
SESSIONS = [pytest.param(READ[name][0][one["id"]], one, id=f"{name[:6]} {one['title']}")
            for name, one in EXPECTED]  # fmt: skip
ROOT = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize("name", ["folder", ZIP])
def test_just_the_sessions_expected(name: str) -> None:
    drafts, problems = READ[name]
    assert problems == []
    assert drafts.keys() == {one["id"] for where, one in EXPECTED if where == name}
    assert len(drafts) == {"folder": 6, ZIP: 3}[name]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    title = expected["title"] or expected["prompts"][0]
    assert (draft.title, draft.title_from) == (
        title, "title" if expected["title"] else "first-prompt")
    assert draft.workspace_root == expected["workspace"] is None
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert (draft.archived_at is not None) == expected["archived"]
    assert draft.model is None and expected["models"] == []
    assert not any("model" in one.metadata for one in draft.messages)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft) == expected["prompts"]
    assert [words(one) for one in answers(draft)] == expected["answers"]
    assert len(answers(draft)) == expected["assistant_messages"]
    assert [part.data["text"] for part in parts(draft, "reasoning")] == expected["reasoning"]
    assert calls(draft) == expected["tool_calls"]
    assert branched(draft) == expected["hidden_branch_messages"]
    assert expected["tokens"] is None
    assert not any("usage" in one.metadata for one in draft.messages)
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_attachments_and_artifacts(draft: SessionDraft, expected: dict[str, Any]) -> None:
    events = [part.data["data"] for part in parts(draft, "data-event")]
    assert [{"kind": "attachment" if each["name"] == "context" else "file",
             "name": each["details"]["name"], "text": each["details"].get("content")}
            for each in events] == expected["attachments"]  # fmt: skip
    artifacts: dict[str, list[str]] = {}
    for part in parts(draft, "tool-artifacts"):
        given = part.data["input"]
        artifacts.setdefault(given["id"], []).append(given["command"])
    assert artifacts == expected["artifacts"]


# --- hand-made conversations ----------------------------------------------------------------


def said(name: str, parent: str | None, second: int, *blocks: Any, sender: str = "human",
         **more: Any) -> dict[str, Any]:  # fmt: skip
    message = {"uuid": name, "sender": sender, "created_at": grown.at(second), "text": "",
               "content": list(blocks) or [{"type": "text", "text": name}]}  # fmt: skip
    return message | ({} if parent is None else {"parent_message_uuid": parent}) | more


def talk(name: str, *messages: Any, second: int = 50, **more: Any) -> dict[str, Any]:
    return {"uuid": name, "name": name, "created_at": grown.at(0), "updated_at": grown.at(second),
            "chat_messages": list(messages)} | more  # fmt: skip


def read(folder: Path, *conversations: Any) -> dict[str, SessionDraft]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conversations.json").write_bytes(listed(conversations))
    drafts, problems = grown.read_all(ClaudeAiSource(), folder)
    assert problems == []
    return drafts


def test_results_without_ids_are_paired_by_name_and_order(tmp_path: Path) -> None:
    blocks = [{"type": "tool_use", "name": "a", "input": {}},
              {"type": "tool_use", "name": "b", "input": {}},
              {"type": "tool_result", "name": "b", "content": "bad", "is_error": True},
              {"type": "tool_result", "name": "a", "content": [{"type": "text", "text": "good"}]},
              {"type": "tool_result", "name": "c", "content": [{"type": "knowledge", "url": "u",
                                                                "text": "t", "more": 1}]},
              {"type": "token_budget", "left": 7}]  # fmt: skip
    draft = read(tmp_path, talk("one", said("x", ROOT, 1, *blocks, sender="assistant")))["one"]
    assert calls(draft) == [{"id": "x/0", "name": "a", "status": "ok"},
                            {"id": "x/1", "name": "b", "status": "error"},
                            {"id": "x/4", "name": "c", "status": "ok"}]  # fmt: skip
    found = [part.data for part in draft.messages[0].parts]
    assert (found[0]["output"], found[1]["errorText"]) == ("good", "bad")
    assert found[2]["output"] == "u\nt"
    assert found[3]["data"]["name"] == "token_budget"


def test_the_newest_branch_is_shown_or_the_one_that_is_named(tmp_path: Path) -> None:
    tree = [said("p", ROOT, 1), said("old", "p", 2, sender="assistant"),
            said("new", "p", 3, sender="assistant")]  # fmt: skip
    drafts = read(tmp_path, talk("one", *tree), talk(
        "two", *tree, current_leaf_message_uuid="old", model="claude-x"))
    assert [one.source_id for one in shown(drafts["one"])] == ["p", "new"]
    assert [one.source_id for one in shown(drafts["two"])] == ["p", "old"]
    assert drafts["two"].model == {"provider_id": "anthropic", "model_id": "claude-x"}


def test_the_copy_of_the_text_counts_only_alone(tmp_path: Path) -> None:
    bare = said("b", None, 2, text="all", content=None)
    draft = read(tmp_path, talk("one", said("a", None, 1, text="lossy"), bare))["one"]
    assert [words(one) for one in shown(draft)] == ["a", "all"]


@pytest.mark.parametrize("tree", [True, False])
def test_what_only_an_older_export_has_is_hidden(tmp_path: Path, tree: bool) -> None:
    root, behind = (ROOT, "p") if tree else (None, None)
    older = talk("one", said("p", root, 1), said("gone", behind, 2, sender="assistant"), second=3)
    newer = talk("one", said("p", root, 1), said("a", behind, 5, sender="assistant"), second=6)
    database = open_database(tmp_path / "library.db", create=True)
    oldest = talk("one", said("p", root, 1), second=1)
    for name, one in (("new", newer), ("old", older), ("oldest", oldest)):
        zipped(tmp_path / f"{name}.zip", {"conversations.json": listed([one])})
        Sync(database).run([Target(ClaudeAiSource(), tmp_path / f"{name}.zip")])
    rows = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source.id'),"
        " json_extract(metadata_json, '$.hidden_at') IS NULL FROM chat_messages"
        " ORDER BY created_at, id").fetchall()  # fmt: skip
    assert rows == [("p", 1), ("gone", 0), ("a", 1)]
    database.close()


def test_chats_of_another_shape_are_named(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {
        "conversations.json": listed([talk("one", said("p", ROOT, 1))]),
        "design_chats/a.json": b"{}", "design_chats/b.json": b"{}",
    })  # fmt: skip
    drafts, problems = grown.read_all(ClaudeAiSource(), path)
    assert drafts.keys() == {"one"}
    assert [each.reason for each in problems] == ["2 files in design_chats/ are not read"]


def test_the_account_and_its_memories_are_never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: set[str] = set()
    real = os.open

    def open_noted(path: str, *more: Any, **rest: Any) -> int:
        opened.add(os.path.basename(os.fspath(path)))
        return real(path, *more, **rest)

    monkeypatch.setattr(os, "open", open_noted)
    source = ClaudeAiSource()
    assert source.recognise(SAMPLE / "folder") == SAMPLE / "folder"
    grown.read_all(source, SAMPLE / "folder")
    assert opened == {"conversations.json"}
