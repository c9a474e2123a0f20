"""LangGraph: the genuine sample is as ``EXPECTED.json`` has it, and hand-made checkpoints."""

from __future__ import annotations

import json
import pickle
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.protocol import FileStamp, Unit
from store.sources.langgraph import LanggraphSource
from store.sources.langgraph.serde import Serde, Unreadable
from store.sources.registry import all_sources, recognised
from store.sync.targets import Target
from tests.sources import grown, row_sources
from tests.sources.samples import DATA
from tests.sources.watched import reading

FILE = DATA / "langgraph" / "checkpoints.sqlite"
EXPECTED = json.loads((FILE.parent / "EXPECTED.json").read_text())
READ, PROBLEMS = grown.read_all(LanggraphSource(), FILE)
SESSIONS = [pytest.param(READ[one["id"]], one, id=one["id"]) for one in EXPECTED["sessions"]]
STATES = {"output-available": "ok", "output-error": "error", "approval-requested": "no result"}


def hidden(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if "hidden_at" in one.metadata]


def texts(messages: list[MessageDraft], role: str) -> list[str]:
    return [words for one in messages if one.role == role if (words := grown.words(one))]


def parts(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in draft.messages for part in one.parts if part.type == kind]


def test_just_the_threads_expected() -> None:
    assert PROBLEMS == []
    assert (EXPECTED["agent"], EXPECTED["file"]) == (LanggraphSource.kind, FILE.name)
    assert list(READ) == [one["id"] for one in EXPECTED["sessions"]]
    assert len(READ) == EXPECTED["session_count"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert expected["title"] is None
    assert draft.title == (expected["prompts"] or [None])[0]
    assert draft.workspace_root == expected["workspace"]
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    models = [one.metadata["model"]["model_id"] for one in draft.messages
              if "model" in one.metadata]  # fmt: skip
    assert sorted(set(models)) == expected["models"]
    assert any(part.type == "text" for one in draft.messages for part in one.parts) == (
        expected["is_chat"]
    )
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_turns_and_calls(draft: SessionDraft, expected: dict[str, Any]) -> None:
    shown = grown.visible(draft)
    assert grown.prompts(shown) == expected["prompts"]
    answers = texts(shown, "assistant")
    assert answers == expected["answers"] and len(answers) == expected["assistant_messages"]
    assert len([one for one in shown if one.role == "assistant"]) == expected["ai_rows"]
    assert [
        {"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
         "status": STATES[str(part.tool_state)]} for part in grown.calls(shown)
    ] == expected["tool_calls"]  # fmt: skip
    types = {"user": "human", "assistant": "ai"}
    assert [{"type": types[one.role], "text": grown.words(one)} for one in hidden(draft)] == (
        expected["hidden_messages"]
    )


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_tokens_are_of_each_message_once(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert grown.tokens(draft.messages) == expected["tokens"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_the_newest_checkpoint(draft: SessionDraft, expected: dict[str, Any]) -> None:
    states = {"error": "error", "waiting": "waiting-approval", "done": None}
    assert draft.metadata.get("activity", {}).get("state") == states[expected["state"]]
    asked = [part.data["data"]["details"] for part in parts(draft, "data-event")
             if part.data["data"]["name"] == "waits for an answer"]  # fmt: skip
    assert asked == expected["interrupt"]
    about = draft.metadata["backscroll"]
    assert about["head"] == expected["head"]
    assert about["checkpoints"] == expected["checkpoints"]
    assert about["leaves"] == expected["leaves"]
    assert about.get("subgraphs", []) == expected["subgraph_namespaces"]
    pending = [one for one in draft.messages
               if one.metadata.get("backscroll", {}).get("pending")]  # fmt: skip
    assert len(pending) == expected["unsaved_writes"]


def test_a_state_without_messages_is_shown_as_what_its_steps_changed() -> None:
    assert [part.data["data"] for part in parts(READ["counter"], "data-event")] == [
        {"name": "input", "details": {"__start__": {"n": 1}}},
        {"name": "step 0", "details": {"n": 1}}, {"name": "step 1", "details": {"n": 2}},
    ]  # fmt: skip


# --- hand-made checkpoints --------------------------------------------------------------------


class Ext:
    """A value of an extension type: its number, and what it holds."""

    def __init__(self, code: int, value: Any, *, raw: bool = False) -> None:
        self.code, self.body = code, value if raw else packed(value)


def packed(value: Any) -> bytes:
    """Return a value as MessagePack."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, Ext):
        return b"\xc9" + struct.pack(">Ib", len(value.body), value.code) + value.body
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        raw = value.encode()
        return b"\xdb" + struct.pack(">I", len(raw)) + raw
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    pairs = b"".join(packed(key) + packed(inner) for key, inner in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + pairs


def model(name: str, **fields: Any) -> Ext:
    return Ext(5, [f"langchain_core.messages.{name}", name, fields, "model_validate_json"])


def human(name: str | None, text: Any) -> Ext:
    return model("HumanMessage", type="human", id=name, content=text)


def ai(name: str, text: Any, *calls: dict[str, Any], **more: Any) -> Ext:
    return model("AIMessage", type="ai", id=name, content=text, tool_calls=list(calls), **more)


def tool(name: str, call_id: str, text: Any, **more: Any) -> Ext:
    return model("ToolMessage", type="tool", id=name, tool_call_id=call_id, content=text, **more)


def call(call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": "look", "args": args, "id": call_id, "type": "tool_call"}


class Threads:
    """A database as ``SqliteSaver`` makes it."""

    def __init__(self, path: Path, *, old: bool = False) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None, uri=True)
        task_path = "" if old else " task_path TEXT NOT NULL DEFAULT '',"
        self.connection.executescript(
            "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT NOT NULL DEFAULT '',"
            " checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB,"
            " metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));"
            " CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT NOT NULL DEFAULT '',"
            f" checkpoint_id TEXT, task_id TEXT,{task_path} idx INTEGER, channel TEXT, type TEXT,"
            " value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));"
        )
        self._written = 0

    def put(
        self, name: str, parent: str | None, values: dict[str, Any], *, graph: str = "",
        source: str = "loop", versions: list[str] | None = None, second: int | None = None,
    ) -> None:  # fmt: skip
        at = int(name) if second is None else second
        blob = packed({
            "v": 4, "ts": f"2026-11-28T10:00:{at:02}.000400+00:00", "id": name,
            "channel_values": values, "channel_versions": dict.fromkeys(
                versions or list(values), "1"),
        })  # fmt: skip
        self.insert(name, parent, "msgpack", blob, json.dumps(
            {"source": source, "step": at, "parents": {}}).encode(), graph)  # fmt: skip

    def insert(
        self, name: str, parent: str | None, kind: str, blob: Any, metadata: Any, graph: str = ""
    ) -> None:
        self.connection.execute("INSERT INTO checkpoints VALUES ('1', ?, ?, ?, ?, ?, ?)",
                                (graph, name, parent, kind, blob, metadata))  # fmt: skip

    def write(self, name: str, channel: str, value: Any, *, idx: int = 0, graph: str = "") -> None:
        self._written += 1
        self.connection.execute(
            "INSERT INTO writes(thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel,"
            " type, value) VALUES ('1', ?, ?, ?, ?, ?, 'msgpack', ?)",
            (graph, name, f"task{self._written:02}", idx, channel, packed(value)),
        )

    def draft(self) -> SessionDraft:
        drafts, problems = grown.read_all(LanggraphSource(), self.path)
        assert problems == []
        for draft in drafts.values():
            grown.check_records(draft)
        return drafts["1"]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Threads]:
    threads = Threads(tmp_path / "state.db")
    yield threads
    threads.connection.close()


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


def test_known_by_its_tables(made: Threads, tmp_path: Path) -> None:
    found = recognised(made.path, all_sources())
    assert found is not None and found[0].kind == "langgraph"
    assert LanggraphSource().default_roots({}, tmp_path) == []


def test_each_checkpoint_repeats_all_and_counts_once(made: Threads) -> None:
    used = {"input_tokens": 100, "output_tokens": 20,
            "input_token_details": {"cache_read": 30, "cache_creation": 10},
            "output_token_details": {"reasoning": 5}}  # fmt: skip
    answer = ai("a1", "yes", usage_metadata=used, response_metadata={
        "model_name": "m", "token_usage": {"prompt_tokens": 100}})  # fmt: skip
    made.put("01", None, chat(human("u1", "go")))
    made.put("02", "01", chat(human("u1", "go"), answer))
    made.put("03", "02", chat(human("u1", "go"), answer, human("u2", "and?")))
    draft = made.draft()
    assert [one.source_id for one in draft.messages] == ["u1", "a1", "u2"]
    assert [one.created_at - draft.created_at for one in draft.messages] == [0, 1000, 2000]
    assert grown.tokens(draft.messages) == {
        "input": 60, "output": 15, "reasoning": 5, "cache_read": 30, "cache_write": 10
    }  # fmt: skip


def test_two_leaves(made: Threads) -> None:
    used = {"input_tokens": 1, "output_tokens": 1}
    made.put("01", None, chat(human("u1", "go")))
    made.put("02", "01", chat(human("u1", "go"), ai("a1", "left", usage_metadata=used)))
    made.put("03", "01", chat(human("u1", "go"), ai("a2", "kept", usage_metadata=used)))
    made.put("04", "03", chat(human("u1", "go"), ai("a2", "kept", usage_metadata=used),
                              human("u2", "on")))  # fmt: skip
    draft = made.draft()
    assert [grown.words(one) for one in draft.messages] == ["go", "left", "kept", "on"]
    (left,) = hidden(draft)
    assert left.metadata["hidden_at"] == left.created_at + 1000
    assert grown.tokens(draft.messages)["input"] == 2
    assert draft.metadata["backscroll"]["leaves"] == 2


def test_a_call_that_two_branches_ran_has_the_result_of_the_shown_one(made: Threads) -> None:
    begun = [human("u1", "go"), ai("a1", "", call("c1"))]
    made.put("01", None, chat(*begun))
    made.put("02", "01", chat(*begun, tool("t1", "c1", "left")))
    made.put("03", "01", chat(*begun, tool("t2", "c1", "kept")))
    draft = made.draft()
    (shown,) = grown.calls(grown.visible(draft))
    (left,) = grown.calls(hidden(draft))
    assert (shown.data["output"], left.data["output"]) == ("kept", "left")


def test_a_replaced_message_is_one_and_keeps_its_usage(made: Threads) -> None:
    used = {"input_tokens": 7, "output_tokens": 1}
    made.put("01", None, chat(human("u1", "old"), ai("a1", "old", usage_metadata=used)))
    made.put("02", "01", chat(human("u1", "new"), ai("a1", "new")), source="update")
    draft = made.draft()
    assert [grown.words(one) for one in draft.messages] == ["new", "new"]
    assert grown.tokens(draft.messages)["input"] == 7


def test_messages_without_ids_are_known_by_place_and_words(made: Threads) -> None:
    first = model("HumanMessage", type="human", id=None, content="same")
    made.put("01", None, chat(first))
    made.put("02", "01", chat(first, first, {"role": "assistant", "content": "yes"}))
    draft = made.draft()
    assert [grown.words(one) for one in draft.messages] == ["same", "same", "yes"]
    assert hidden(draft) == []


@pytest.mark.parametrize("values", [
    {"history": [human("u1", "go")]}, {"__root__": [human("u1", "go")]},
    {"state": {"messages": [human("u1", "go")]}},
    {"log": [{"role": "user", "content": "go", "id": "u1"}], "n": 3},
])  # fmt: skip
def test_messages_under_another_key(made: Threads, values: dict[str, Any]) -> None:
    made.put("01", None, values)
    assert grown.prompts(made.draft().messages) == ["go"]


def test_calls_are_counted_by_tool_calls_alone(made: Threads) -> None:
    content = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "thinking", "thinking": "so", "signature": "x"},
        {"type": "text", "text": "I look."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]  # fmt: skip
    wrong = {"name": "look", "args": "{broken", "id": "c2", "error": "no JSON"}
    made.put("01", None, chat(human("u1", "go"), ai(
        "a1", content, call("c1", x=1), invalid_tool_calls=[wrong]),
        tool("t1", "c1", "no", status="error"),
        tool("t2", "c2", "what?", status="success", artifact={"a": 1})))  # fmt: skip
    draft = made.draft()
    first, second = grown.calls(draft.messages)
    assert (first.tool_state, first.data["errorText"], first.data["input"]) == (
        "output-error", "no", {"x": 1}
    )  # fmt: skip
    assert (second.tool_state, second.data["rawInput"]) == ("output-available", "{broken")
    assert grown.extra(second)["structured"] == {"a": 1}
    assert [part.data["text"] for part in parts(draft, "reasoning")] == ["hm", "so"]


def test_calls_as_older_versions_kept_them(made: Threads) -> None:
    older = {"tool_calls": [{"id": "c1", "type": "function", "function": {
        "name": "look", "arguments": '{"x": 1}'}}], "reasoning_content": "hm"}  # fmt: skip
    made.put("01", None, chat(human("u1", "go"), ai("a1", "", additional_kwargs=older),
                              tool("t1", "c1", ["a", {"type": "text", "text": "b"}])))  # fmt: skip
    (found,) = grown.calls(made.draft().messages)
    assert (found.type, found.data["input"]) == ("tool-look", {"x": 1})
    assert found.data["output"] == "a\nb"


def test_pictures_and_files(made: Threads) -> None:
    made.put("01", None, chat(human("u1", [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image", "base64": "aGk=", "mime_type": "image/gif"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "aGk="}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "a"}},
        {"type": "file", "file_id": "f1"}, {"type": "brand_new", "x": 1},
    ])))  # fmt: skip
    (message,) = made.draft().messages
    files = [part.data for part in message.parts if part.type == "file"]
    assert [file["mediaType"] for file in files] == [
        "image/png", "image/gif", "image/webp", "text/plain", "application/octet-stream"
    ]  # fmt: skip
    assert files[4]["url"] == "file-id:f1" and files[3]["filename"] == "a"
    assert message.parts[-1].data["data"] == {"name": "brand_new", "details": {"x": 1}}


def test_only_an_interrupt_of_the_newest_checkpoint_waits(made: Threads) -> None:
    question = Ext(2, ["langgraph.types", "Interrupt", {"value": "sure?", "id": "i1"}])
    made.put("01", None, chat(human("u1", "go")))
    made.write("01", "__interrupt__", [question], idx=-3)
    draft = made.draft()
    assert draft.metadata["activity"]["state"] == "waiting-input"
    assert parts(draft, "data-event")[0].data["data"]["details"] == "sure?"
    made.write("01", "__resume__", "yes", idx=-4)
    made.put("02", "01", chat(human("u1", "go"), ai("a1", "done")))
    draft = made.draft()
    assert "activity" not in draft.metadata and parts(draft, "data-event") == []


def test_what_finished_tasks_wrote_is_pending(made: Threads) -> None:
    begun = [human("u1", "go"), ai("a1", "", call("c1"), call("c2"))]
    made.put("01", None, chat(*begun, __pregel_tasks=[1]))
    made.write("01", "messages", [tool("t1", "c1", "one")])
    draft = made.draft()
    assert [part.tool_state for part in grown.calls(draft.messages)] == [
        "output-available", "input-available"
    ]  # fmt: skip
    assert grown.extra(grown.calls(draft.messages)[0])["pending"] is True
    assert draft.metadata["activity"]["state"] == "running"
    made.write("01", "messages", ai("a2", "alone"))
    assert made.draft().messages[-1].metadata["backscroll"]["pending"] is True


def test_a_run_that_was_killed_at_its_start_shows_its_prompt(made: Threads) -> None:
    made.put("01", None, {"__start__": chat(human(None, "go"))}, source="input")
    draft = made.draft()
    assert grown.prompts(draft.messages) == ["go"]
    assert draft.metadata["activity"]["state"] == "running"


def test_an_error_ends_the_thread(made: Threads) -> None:
    made.put("01", None, chat(human("u1", "go"), **{"branch:to:agent": None}))
    made.write("01", "__error__", "ValueError('no')", idx=-1)
    draft = made.draft()
    assert draft.metadata["activity"]["state"] == "error"
    assert parts(draft, "data-error")[0].data["data"] == {
        "name": "ValueError", "message": "ValueError('no')"
    }  # fmt: skip


def test_messages_of_a_subgraph_are_folded_under_its_thread(made: Threads) -> None:
    used = {"input_tokens": 5, "output_tokens": 1}
    made.put("01", None, chat(human("u1", "go")))
    made.put("02", None, chat(human("u1", "go"), ai("s1", "inside", usage_metadata=used)),
             graph="sub:uuid")  # fmt: skip
    made.put("03", "01", chat(human("u1", "go"), ai("a1", "done", usage_metadata=used)))
    draft = made.draft()
    assert [grown.words(one) for one in grown.visible(draft)] == ["go", "done"]
    (inside,) = hidden(draft)
    assert inside.metadata["backscroll"]["graph"] == "sub"
    assert grown.tokens(draft.messages)["input"] == 10
    assert draft.metadata["backscroll"]["subgraphs"] == ["sub:uuid"]


def test_messages_beside_the_shown_ones_are_counted_too(made: Threads) -> None:
    used = {"input_tokens": 5, "output_tokens": 1}
    notes = [human("u1", "go"), ai("n1", "noted", usage_metadata=used)]
    made.put("01", None, chat(human("u1", "go"), notes=notes))
    made.put("02", None, chat(human("u1", "go"), notes=[ai("s1", "in", usage_metadata=used)]),
             graph="sub")  # fmt: skip
    draft = made.draft()
    assert [grown.words(one) for one in grown.visible(draft)] == ["go"]
    assert {grown.words(one): one.metadata["backscroll"]["graph"] for one in hidden(draft)} == {
        "noted": "notes", "in": "sub"
    }  # fmt: skip
    assert grown.tokens(draft.messages)["input"] == 10
    assert [grown.words(one) for one in draft.messages] == ["go", "noted", "in"]


def test_a_state_of_changes_alone(made: Threads) -> None:
    snapshot = Ext(7, [human("u1", "go"), ai("a1", "one")])
    made.put("01", None, {"messages": snapshot})
    made.write("01", "messages", [human("u2", "on"), model("RemoveMessage", id="a1",
                                                           type="remove", content="")])  # fmt: skip
    made.put("02", "01", {}, versions=["messages"])
    made.write("02", "messages", ai("a2", "two"))
    made.put("03", "02", {}, versions=["messages"])
    draft = made.draft()
    assert [grown.words(one) for one in grown.visible(draft)] == ["go", "on", "two"]
    assert [grown.words(one) for one in hidden(draft)] == ["one"]


def test_changes_alone_from_the_beginning(made: Threads) -> None:
    made.put("01", None, {"__start__": 1})
    made.write("01", "messages", [human("u1", "go")])
    made.put("02", "01", {}, versions=["messages"])
    assert grown.prompts(made.draft().messages) == ["go"]


def test_old_files_of_json_and_without_task_paths(tmp_path: Path) -> None:
    made = Threads(tmp_path / "old.db", old=True)
    built = {"lc": 2, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
             "kwargs": {"content": "yes", "id": "a1", "tool_calls": []}}  # fmt: skip
    person = {**built, "lc": 1, "id": ["langchain_core", "messages", "HumanMessage"],
              "kwargs": {"content": "go", "id": "u1"}}  # fmt: skip
    blob = {"v": 1, "ts": "2024-06-01T10:00:00+00:00", "channel_values": chat(person, built)}
    made.insert("01", None, "json", json.dumps(blob).encode(), packed({"source": "loop"}))
    made.write("01", "__error__", "E", idx=-1)
    assert [grown.words(one) for one in made.draft().messages[:2]] == ["go", "yes"]
    made.connection.close()


def test_nothing_is_built_from_data(tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    class Bad:
        def __reduce__(self) -> Any:
            return (mark.touch, ())

    made = Threads(tmp_path / "state.db")
    bad = [Ext(code, ["os", "system", f"touch {mark}", "x"]) for code in range(-2, 9)]
    pathlib = Ext(3, ["pathlib", "Path", str(mark), "touch"])
    made.put("01", None, {"messages": [human("u1", "go")], "bad": [*bad, pathlib,
                          Ext(5, b"\xdd\xff\xff\xff\xff", raw=True)]})  # fmt: skip
    made.insert("02", "01", "pickle", pickle.dumps(Bad()), b"{}")
    made.insert("03", "02", "msgpack+aes", b"xx", b"{}")
    drafts, problems = grown.read_all(LanggraphSource(), made.path)
    told = " ".join(problem.reason for problem in problems)
    assert "checkpoint 02: pickle is never decoded" in told
    assert "checkpoint 03: msgpack+aes is encrypted" in told
    assert grown.prompts(grown.visible(drafts["1"])) == ["go"]
    assert not mark.exists()
    made.connection.close()


def test_an_encrypted_thread_is_named_as_such(made: Threads) -> None:
    made.insert("01", None, "msgpack+aes", b"xx", b"{}")
    drafts, _ = grown.read_all(LanggraphSource(), made.path)
    (event,) = parts(drafts["1"], "data-event")
    assert event.data["data"]["details"] == {"unreadable": "msgpack+aes is encrypted"}


def test_values_of_all_types() -> None:
    moment = struct.pack(">I", 1_795_861_924)
    value = {
        "uuid": Ext(0, ["uuid", "UUID", "0" * 32]), "set": Ext(0, ["builtins", "set", [1]]),
        "time": Ext(3, ["datetime", "datetime", "2026-11-28", "fromisoformat"]),
        "send": Ext(1, ["langgraph.types", "Send", ["node", {"a": 1}]]),
        "array": Ext(6, ["<f8", [2], "C", b"12345678"]), "at": Ext(-1, moment, raw=True),
        "other": Ext(77, "x"), "bytes": b"abc", "nan": float("nan"), "float": 1.5, "int": -3,
        "no": False, "text": "ü",
    }  # fmt: skip
    found = Serde().value("msgpack", packed({**value, 7: None}))
    assert found == {
        "uuid": "00000000-0000-0000-0000-000000000000", "set": [1], "time": "2026-11-28",
        "send": {"node": "node", "arg": {"a": 1}}, "array": {"dtype": "<f8", "shape": [2]},
        "at": "2026-11-28T10:32:04+00:00", "other": {"ext": 77, "bytes": 6},
        "bytes": "(3 bytes)", "nan": None, "float": 1.5, "int": -3, "no": False, "text": "ü",
        "7": None,
    }  # fmt: skip
    assert Serde().value("null", b"") is None
    assert Serde().value("bytes", b"ab") == "(2 bytes)"


@pytest.mark.parametrize("body", [
    b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\x00\x00\x00\x09abc",
    b"\xc9\xff\xff\xff\xff\x05", b"\x92\x01", b"\x01\x01", b"\xca\x00",
])  # fmt: skip
def test_bytes_that_lie_about_their_length(body: bytes) -> None:
    with pytest.raises(Unreadable):
        Serde().value("msgpack", body)


@pytest.mark.parametrize("body", [
    b"\x91" * 50_000 + b"\xc0", b"\x81\xa1a" * 50_000 + b"\xc0", b"\x91" * 99 + b"\xd9\x01a",
])  # fmt: skip
def test_values_nested_deeply(body: bytes) -> None:
    assert "nested deeper" in str(Serde().value("msgpack", body)) or len(body) < 200
    value: Any = None
    for _ in range(150):
        value = Ext(0, ["m", "C", value])
    assert Serde().value("msgpack", packed(value)) is not None


def test_damage_costs_only_itself(made: Threads) -> None:
    made.put("01", None, chat(human("u1", "go"), 7))
    made.put("02", "01", chat(human("u1", "go"), tool("t1", "nowhere", "x")))
    made.insert("0x", "02", "msgpack", b"\x92", b"{")
    made.connection.execute("INSERT INTO checkpoints(thread_id, checkpoint_id) VALUES (NULL, 'y')")
    drafts, problems = grown.read_all(LanggraphSource(), made.path)
    told = " ".join(problem.reason for problem in problems)
    assert "checkpoint 0x: ends in the middle" in told and "of call nowhere" in told
    assert drafts.keys() == {"1"}
    grown.check_records(drafts["1"])


# --- live, locked, damaged, left alone ----------------------------------------------------------


def grow(connection: sqlite3.Connection) -> None:
    """Go on with a thread, as a step of a graph does."""
    person = packed(chat(human("u9", "more")))
    blob = b"\x82" + packed("ts") + packed("2026-11-29T10:00:00+00:00") + packed(
        "channel_values") + person  # fmt: skip
    connection.execute(
        "INSERT INTO checkpoints SELECT thread_id, '', '1f200000-5746-6d2d-8006-ebba8d9d4ace',"
        " max(checkpoint_id), 'msgpack', ?, '{}' FROM checkpoints WHERE thread_id = 'edit-1'",
        (blob,),
    )


def test_a_thread_that_grows_reads_as_one_read_whole(tmp_path: Path) -> None:
    """All threads of the sample grow at once, a checkpoint at a time, with what tasks wrote."""
    made = Threads(tmp_path / "growing.db")
    made.connection.execute("ATTACH ? AS sample", (f"{FILE.as_uri()}?immutable=1",))
    source = LanggraphSource()
    names = made.connection.execute(
        "SELECT thread_id, checkpoint_id FROM sample.checkpoints ORDER BY checkpoint_id").fetchall()
    made.connection.execute("PRAGMA synchronous = OFF")
    for place, (thread, name) in enumerate(names):
        for table in ("checkpoints", "writes"):
            made.connection.execute(
                f"INSERT INTO {table} SELECT * FROM sample.{table} WHERE thread_id = ?"
                " AND checkpoint_id = ?", (thread, name),
            )  # fmt: skip
        unit = Unit(f"growing.db/{thread}", (FileStamp.now(str(made.path)),), 0)
        followed = source.read(made.path, unit)
        if place % 3 == 0:
            assert followed.sessions == LanggraphSource().read(made.path, unit).sessions
    assert grown.read_all(LanggraphSource(), made.path)[0].keys() == READ.keys()
    made.connection.close()


def test_changes_alone_that_grow(made: Threads) -> None:
    source = LanggraphSource()

    def followed() -> list[str]:
        (unit,) = source.units(made.path, [])
        (draft,) = source.read(made.path, unit).sessions
        assert [draft] == LanggraphSource().read(made.path, unit).sessions
        return [grown.words(one) for one in grown.visible(draft)]

    made.put("01", None, {"messages": Ext(7, [human("u1", "go")])})
    assert followed() == ["go"]
    for place in range(2, 6):
        made.write(f"{place - 1:02}", "messages", ai(f"a{place}", f"{place}"))
        made.put(f"{place:02}", f"{place - 1:02}", {}, versions=["messages"])
        assert followed() == ["go", *map(str, range(2, place + 1))]
    made.connection.execute("DELETE FROM checkpoints WHERE checkpoint_id > '03'")
    # What was written for the next one is not in the state yet.
    assert followed() == ["go", "2", "3", "4"]


def test_a_checkpoint_that_is_put_again(made: Threads) -> None:
    source = LanggraphSource()
    made.put("01", None, {"messages": [human("u1", "go")]})
    (unit,) = source.units_at(made.path, [str(made.path)]) or []
    (draft,) = source.read(made.path, unit).sessions
    assert grown.words(draft.messages[0]) == "go"
    made.connection.execute("DELETE FROM checkpoints")
    made.connection.execute("INSERT INTO checkpoints(thread_id) VALUES ('other')")
    made.put("01", None, {"messages": [human("u1", "go on")]})
    made.connection.execute("DELETE FROM checkpoints WHERE thread_id = 'other'")
    found = source.units_at(made.path, [str(made.path)]) or []
    assert [unit.key for unit in found] == [f"{made.path.name}/1"]
    (draft,) = source.read(made.path, unit).sessions
    assert grown.words(draft.messages[0]) == "go on"


def test_a_file_without_row_numbers(made: Threads) -> None:
    made.put("01", None, {"messages": [human("u1", "go")]})
    made.connection.executescript(
        "CREATE TABLE other (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT,"
        " parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY"
        " (thread_id, checkpoint_ns, checkpoint_id)) WITHOUT ROWID;"
        " INSERT INTO other SELECT * FROM checkpoints; DROP TABLE checkpoints;"
        " ALTER TABLE other RENAME TO checkpoints"
    )
    assert grown.prompts(made.draft().messages) == ["go"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return row_sources.copied(FILE, folder)


def test_a_live_writer_is_left_alone(file: Path) -> None:
    (unit,) = row_sources.check_live(LanggraphSource(), file, grow)
    assert unit.key == "checkpoints.sqlite/edit-1"


def test_a_killed_writers_wal_is_read(file: Path) -> None:
    row_sources.check_killed(LanggraphSource, file, grow)


def test_nothing_of_a_file_is_touched(file: Path, tmp_path: Path) -> None:
    row_sources.check_untouched(LanggraphSource(), file, tmp_path / "library.db")


def test_a_lock_is_waited_out(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row_sources.check_locked(LanggraphSource, file, tmp_path / "library.db", monkeypatch)


def test_damaged_files_are_named(file: Path) -> None:
    row_sources.check_damaged(LanggraphSource, file)


def test_a_file_that_goes_away_costs_only_itself(file: Path, tmp_path: Path) -> None:
    row_sources.check_disappears(LanggraphSource, file, tmp_path / "library.db")


def test_only_its_own_tables_are_asked_for(file: Path) -> None:
    row_sources.written(file, lambda one: one.executescript(
        "CREATE TABLE api_keys(secret); INSERT INTO api_keys VALUES ('hidden')"))  # fmt: skip
    found = reading(Target(LanggraphSource(), file))
    asked = [sql.lower() for sql in found.sql if not sql.lower().startswith("pragma")]
    assert any("from checkpoints" in sql for sql in asked)
    assert not any("api_keys" in sql for sql in asked)
