"""ChatGPT's data export: folder and zip come out exactly as their EXPECTED.json says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import SessionDraft
from store.sources.chatgpt import ChatgptSource
from tests.sources import grown
from tests.sources.chat_exports import (
    answers,
    branched,
    calls,
    listed,
    parts,
    prompts,
    shown,
    zipped,
)
from tests.sources.samples import DATA

SAMPLE = DATA / "chatgpt"
EXPECTED: list[tuple[str, dict[str, Any]]] = [
    (name, one) for name in ("folder", "export.zip")
    for one in json.loads((SAMPLE / f"EXPECTED.{name}.json").read_text())["sessions"]
]  # fmt: skip
READ = {name: grown.read_all(ChatgptSource(), SAMPLE / name) for name in ("folder", "export.zip")}
SESSIONS = [pytest.param(READ[name][0][one["id"]], one, id=f"{name} {one['title']}")
            for name, one in EXPECTED]  # fmt: skip
MARKS = re.compile(" \ue200[^\ue201]*\ue201")


@pytest.mark.parametrize("name", ["folder", "export.zip"])
def test_just_the_sessions_expected(name: str) -> None:
    drafts, problems = READ[name]
    assert problems == []
    assert drafts.keys() == {one["id"] for where, one in EXPECTED if where == name}
    assert len(drafts) == {"folder": 12, "export.zip": 6}[name]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    title = expected["title"] or expected["prompts"][0]
    assert (draft.title, draft.title_from) == (
        title, "title" if expected["title"] else "first-prompt")
    assert draft.workspace_root == expected["workspace"] is None
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    assert (draft.archived_at is not None) == expected["archived"]
    extra = draft.metadata["backscroll"]
    assert extra.get("project") == expected["project"]
    assert extra["default_model_slug"] == expected["default_model"]
    used = [one.metadata["model"]["model_id"] for one in shown(draft) if "model" in one.metadata]
    used = list(dict.fromkeys(used)) or [draft.model["model_id"]] if draft.model else []
    assert used == expected["models"]
    assert draft.model == {"provider_id": "openai", "model_id": used[-1]}


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert prompts(draft) == expected["prompts"]
    said = answers(draft)
    assert len(said) == expected["assistant_messages"]
    # Marks of citations are not shown: the pages are parts of their own.
    assert [{"text": "".join(part.data["text"] for part in one.parts if part.type == "text"),
             "state": "interrupted" if "aborted_at" in one.metadata.get("backscroll", {}) else "ok"}
            for one in said] == [
        {**one, "text": MARKS.sub("", one["text"])} for one in expected["answers"]]  # fmt: skip
    assert [part.data["text"] for part in parts(draft, "reasoning")] == expected["reasoning"]
    assert calls(draft) == [
        {key: one[key] for key in ("id", "name", "status")} for one in expected["tool_calls"]]
    assert branched(draft) == expected["hidden_branch_messages"]
    assert expected["tokens"] is None
    assert not any("usage" in one.metadata for one in draft.messages)
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_pictures(draft: SessionDraft, expected: dict[str, Any]) -> None:
    found = [("tool" if one.role == "assistant" else one.role, part.data)
             for one in shown(draft) for part in one.parts if part.type == "file"]  # fmt: skip
    assert [{"by": by, **data["providerMetadata"]["chatgpt"]} for by, data in found] == (
        expected["images"])
    assert all(data["url"].startswith("data:image/png;base64,") for _, data in found)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_branch_points(draft: SessionDraft, expected: dict[str, Any]) -> None:
    nodes = [json.loads(record) for record in draft.records[1:]]
    assert sum(len(node.get("children", ())) > 1 for node in nodes) == expected["branch_points"]


# --- hand-made conversations ----------------------------------------------------------------


def node(name: str, parent: str | None, role: str = "user", text: str = "", at: float | None = None,
         **more: Any) -> dict[str, Any]:  # fmt: skip
    content = more.pop("content", {"content_type": "text", "parts": [text or name]})
    message = {"author": {"role": role, "name": more.pop("tool", None)}, "content": content,
               "create_time": at, "recipient": "all"} | more  # fmt: skip
    return {"id": name, "parent": parent, "children": [], "message": message}


def talk(name: str, *nodes: dict[str, Any], at: float = 1788000000.5, **more: Any) -> Any:
    return {"id": name, "title": name, "create_time": 1788000000.0, "update_time": at,
            "mapping": {each["id"]: each for each in nodes}, "current_node": nodes[-1]["id"],
            } | more  # fmt: skip


def read(folder: Path, *conversations: Any) -> dict[str, SessionDraft]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conversations.json").write_bytes(listed(conversations))
    drafts, problems = grown.read_all(ChatgptSource(), folder)
    assert problems == []
    return drafts


def test_a_loop_a_missing_parent_and_no_current_node(tmp_path: Path) -> None:
    nodes = [node("a", "b", at=1788000001), node("b", "a", "assistant", at=1788000002),
             node("c", "lost", at=1788000003), node("d", "c", "assistant", at=1788000004)]
    draft = read(tmp_path, talk("one", *nodes, current_node="nowhere"))["one"]
    assert [one.source_id for one in shown(draft)] == ["c", "d"]
    assert {one.source_id for one in draft.messages} == {"a", "b", "c", "d"}
    grown.check_records(draft)


def test_what_is_hidden_was_left_when_the_other_branch_began(tmp_path: Path) -> None:
    draft = read(tmp_path, talk(
        "one", node("p", None, at=1788000001), node("old", "p", "assistant", at=1788000002),
        node("more", "old", at=1788000003), node("new", "p", "assistant", at=1788000009),
    ))["one"]  # fmt: skip
    assert {one.source_id: one.metadata.get("hidden_at") for one in draft.messages} == {
        "p": None, "old": 1788000009000, "more": 1788000009000, "new": None}


@pytest.mark.parametrize(("said", "status"), [
    ("success", "ok"), ("failed_with_in_kernel_exception", "error"), ("cancelled", "interrupted"),
    (None, "ok"),
])  # fmt: skip
def test_states_of_python(tmp_path: Path, said: str | None, status: str) -> None:
    result = {} if said is None else {"aggregate_result": {"status": said}}
    draft = read(tmp_path, talk(
        "one", node("p", None), node("call", "p", "assistant", recipient="python",
                                     content={"content_type": "code", "text": "1/0"}),
        node("out", "call", "tool", tool="python", metadata=result),
        node("again", "out", "tool", tool="python"),
    ))["one"]  # fmt: skip
    assert calls(draft) == [{"id": "call", "name": "python", "status": status},
                            {"id": "again", "name": "python", "status": "ok"}]  # fmt: skip


def test_content_that_nothing_is_known_of_is_named(tmp_path: Path) -> None:
    draft = read(tmp_path, talk(
        "one", node("p", None, content={"content_type": "hologram", "beam": 7}),
        node("a", "p", "assistant", content={"content_type": "multimodal_text", "parts": [
            None, "", {"content_type": "image_asset_pointer",
                       "asset_pointer": "sediment://file_gone"}, {"content_type": "scent"}]}),
    ))["one"]  # fmt: skip
    names = [part.data["data"]["name"] for one in draft.messages for part in one.parts]
    assert names == ["hologram", "picture, not in the export", "scent"]


def test_marks_of_citations_become_pages(tmp_path: Path) -> None:
    draft = read(tmp_path, talk("one", node("p", None), node(
        "a", "p", "assistant", "So. \ue200cite\ue202turn0\ue201 And【1†source】 on.",
        metadata={"content_references": [{"items": [{"url": "https://e.example", "title": "E"}]}],
                  "citations": [{"metadata": {"url": "https://f.example"}}]},
    )))["one"]  # fmt: skip
    assert parts(draft, "text")[1].data["text"] == "So. And on."
    assert [(part.data["url"], part.data["title"]) for part in parts(draft, "source-url")] == [
        ("https://e.example", "E"), ("https://f.example", "https://f.example")]


def test_numbered_files_and_an_object_around_the_list(tmp_path: Path) -> None:
    inner = {"conversations": [talk("two", node("b", None))]}
    path = zipped(tmp_path / "x.zip", {
        "deep/er/conversations-000.json": listed([talk("one", node("a", None))]),
        "deep/er/conversations-001.json": json.dumps(inner).encode(),
        "deep/er/shared_conversations.json": b"[]",
    })  # fmt: skip
    drafts, problems = grown.read_all(ChatgptSource(), path)
    assert problems == [] and drafts.keys() == {"one", "two"}
