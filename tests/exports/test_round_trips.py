"""Every session of every sample, to every agent and back: it says the same.

For each pair of where a session is from and what it is exported to: each file keeps its
agent's recipe (its checker), and what that agent's source reads from it into a fresh store
tells the same turns, texts, summaries and tool calls, in the same order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from store.demo import make_demo
from store.engine.database import Database, open_database
from store.exports.reading import SessionReading, read_session
from store.exports.registry import FORMATS, file_name, writer
from store.ids import derived_session_id
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.exports import (
    claude_checker,
    cline_checker,
    codex_checker,
    continue_checker,
    gemini_checker,
    kimi_checker,
    opencode_checker,
    openhands_checker,
    pi_checker,
    qwen_checker,
)
from tests.exports.normal_form import NOT_CARRIED, Event, told, view_of
from tests.sources.samples import DATA, SAMPLES
from tests.store.talks import Talk

NOW = 1_790_000_000_000
CHECKERS: dict[str, Callable[[str, str], Any]] = {
    "claude-code": claude_checker.check,
    "codex": lambda text, name: codex_checker.check(text.splitlines(), name),
    "opencode": lambda text, name: opencode_checker.check(text),
    "gemini": gemini_checker.check,
    "pi": pi_checker.check,
    "qwen": qwen_checker.check,
    "continue": continue_checker.check,
    "openhands": openhands_checker.check,
    "kimi": kimi_checker.check,
    "cline": cline_checker.check,
}
FOLDERS = {
    "claude-code": "projects/-home-mira-code",
    "codex": "sessions/2026/09/21",
    "opencode": "exports",
    "gemini": "tmp/project/chats",
    "pi": "--home-mira-code--",
    "qwen": "projects/-home-mira-code/chats",
    "continue": "",
    "openhands": "",
    "kimi": "wd_code_0123456789ab",
    "cline": "sessions",
}
"""Where each agent keeps its sessions below the folder that is synced."""
KINDS = list(dict.fromkeys(sample.kind for sample in SAMPLES))


@pytest.fixture(scope="module", params=[*KINDS, "demo", "grida"])
def origin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("origin")
    if request.param == "demo":
        database = open_database(make_demo(folder / "demo.db", lambda: NOW), write=False)
    elif request.param == "grida":
        database = open_database(DATA / "grida" / "sessions.db", write=False)
    else:
        database = open_database(folder / "library.db", create=True)
        targets = [each.target() for each in SAMPLES if each.kind == request.param]
        Sync(database, Settings(helpers=0)).run(targets)
    yield database
    database.close()


@pytest.mark.parametrize("form", CHECKERS)
@pytest.mark.one_in(10)
def test_a_session_says_the_same_there_and_back(
    origin: Database, form: str, tmp_path: Path
) -> None:
    ids = [row[0] for row in origin.connection.execute("SELECT id FROM chat_sessions")]
    expected: dict[str, list[Event]] = {}
    for session_id in ids:
        reading = read_session(origin, session_id, view_of(form))
        text = "".join(writer(form)(reading))
        before = _without_prompt(told(origin, session_id, form), reading)
        if _is_empty(form, text):
            assert before == []
            continue
        CHECKERS[form](_whole(form, text, reading), reading.export_id)
        _put(form, text, reading, tmp_path)
        name = json.loads(text)["info"]["id"] if form == "opencode" else str(reading.agent_id)
        expected[derived_session_id(form, name)] = before
    assert expected
    back = _synced(form, tmp_path)
    names = {row[0] for row in back.connection.execute("SELECT id FROM chat_sessions")}
    assert names == set(expected)
    for session_id, events in expected.items():
        assert told(back, session_id, form) == events
    back.close()


def _whole(form: str, text: str, reading: SessionReading) -> str:
    """Return an export, of OpenHands with its events, which are a file each."""
    return text + "".join(reading.beside.values()) if form == "openhands" else text


def _exported(form: str, reading: SessionReading) -> str:
    return _whole(form, "".join(writer(form)(reading)), reading)


def _put(form: str, text: str, reading: SessionReading, root: Path) -> None:
    """Write an export where its agent would have it, with the files that belong to it."""
    name = file_name(FORMATS[form], reading.export_id, reading.session)
    for each, body in {name: text, **reading.beside}.items():
        path = root / FOLDERS[form] / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)


def _without_prompt(events: list[Event], reading: SessionReading) -> list[Event]:
    """Take the last prompt out where the export says that it is handed over instead."""
    remarks = [each for each in reading.remarks if "last prompt" in each]
    if not remarks:
        return events
    (remark,) = remarks
    kind, role, text = events[-1]
    assert (kind, role) == ("said", "user") and remark.endswith(text)
    return events[:-1]


def _is_empty(form: str, text: str) -> bool:
    return not (json.loads(text)["messages"] if form == "opencode" else text)


def _synced(form: str, root: Path) -> Database:
    """Read what was exported into a store that knows nothing of it."""
    roots = sorted((root / FOLDERS[form]).iterdir()) if form == "opencode" else [root]
    targets = [Target(source(form), each) for each in roots]
    database = open_database(root / "back.db", create=True)
    Sync(database, Settings(helpers=0)).run(targets)
    assert database.connection.execute("SELECT * FROM source_problems").fetchall() == []
    return database


def test_what_is_not_carried_is_named_for_agents_only() -> None:
    assert set(NOT_CARRIED) <= set(CHECKERS)
    assert set(CHECKERS) == {name for name, each in FORMATS.items() if each.view} | {"opencode"}


@pytest.mark.parametrize("form", CHECKERS)
def test_a_last_prompt_with_a_picture_stays_whole(form: str, tmp_path: Path) -> None:
    """It is no line to type: without an answer it stays in the file."""
    talk = Talk(open_database(tmp_path / "talk.db", create=True))
    session = talk.session()
    talk.message(session, "user", "hello")
    talk.message(session, "assistant", "hi")
    picture = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0K"}
    talk.message(session, "user", parts=[{"type": "text", "text": "what is this?"}, picture])
    reading = read_session(talk.db, session, view_of(form))
    text = _exported(form, reading)
    talk.db.close()
    assert not any("last prompt" in each for each in reading.remarks)
    assert "what is this?" in text and "iVBORw0K" in text


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("form", CHECKERS)
def test_a_text_file_reaches_the_model_and_is_a_file_again(
    form: str, alone: bool, tmp_path: Path
) -> None:
    """Codex, opencode and pi send no text files: there its words are sent, with its name."""
    content = 'line one\n</file>\n"two" \u00e4\n'
    body = base64.b64encode(content.encode()).decode()
    file = {"type": "file", "mediaType": "text/plain", "filename": 'no"tes.txt',
            "url": f"data:text/plain;base64,{body}"}  # fmt: skip
    talk = Talk(open_database(tmp_path / "talk.db", create=True))
    session = talk.session(workspace_root="/home/mira/code")
    words = [] if alone else [{"type": "text", "text": "read this"}]
    talk.message(session, "user", parts=[*words, file])
    talk.message(session, "assistant", "hi")
    reading = read_session(talk.db, session, view_of(form))
    own = "".join(writer(form)(reading))
    text = _whole(form, own, reading)
    CHECKERS[form](text, reading.export_id)
    if form != "gemini":  # which takes its bytes
        assert json.dumps(content, ensure_ascii=False)[1:-1].replace('"', "") in text.replace(
            "\\u00e4", "\u00e4").replace('"', "")
    _put(form, own, reading, tmp_path / "out")
    talk.db.close()
    back = _synced(form, tmp_path / "out")
    ((name,),) = back.connection.execute("SELECT id FROM chat_sessions").fetchall()
    (asked, _) = read_session(back, name, "context").messages
    assert asked.message["metadata"]["origin"] == "human"
    found = [part["data"] for part in asked.parts if part["type"] == "file"]
    assert [one["mediaType"] for one in found] == ["text/plain"]
    with urlopen(found[0]["url"]) as opened:
        assert opened.read().decode() == content
    assert form == "gemini" or found[0]["filename"].replace(" ", '"') == file["filename"]
    assert [part["data"]["text"] for part in asked.parts if part["type"] == "text"] == [
        one["text"] for one in words]
    back.close()


@pytest.mark.parametrize("form", CHECKERS)
def test_a_file_that_says_it_is_text_and_is_not_is_named(form: str, tmp_path: Path) -> None:
    talk = Talk(open_database(tmp_path / "talk.db", create=True))
    session = talk.session()
    for body in ("abc", "gICA", "%%%"):
        file = {"type": "file", "mediaType": "text/plain", "filename": "odd.txt",
                "url": f"data:text/plain;base64,{body}"}  # fmt: skip
        talk.message(session, "user", parts=[{"type": "text", "text": "read this"}, file])
        talk.message(session, "assistant", "hi")
    reading = read_session(talk.db, session, view_of(form))
    text = _exported(form, reading)
    talk.db.close()
    assert text.count("read this") >= 3
    assert form == "gemini" or text.count("odd.txt") >= 2


@pytest.mark.parametrize("form", CHECKERS)
def test_words_that_are_none_are_left_out(form: str, tmp_path: Path) -> None:
    """APIs refuse blank text."""
    talk = Talk(open_database(tmp_path / "talk.db", create=True))
    session = talk.session()
    blank = {"type": "text", "text": " \n "}
    talk.message(session, "user", parts=[{"type": "text", "text": "hello"}, blank])
    talk.message(session, "assistant", "hi")
    talk.message(session, "user", parts=[blank])
    reading = read_session(talk.db, session, view_of(form))
    text = _exported(form, reading)
    talk.db.close()
    assert not any("last prompt" in each for each in reading.remarks)
    assert "hello" in text and json.dumps(blank["text"])[1:-1] not in text


@pytest.mark.parametrize("form", CHECKERS)
def test_a_line_is_a_line_for_every_reader(form: str, tmp_path: Path) -> None:
    """What some readers end a line at, and what a terminal obeys, stands escaped."""
    odd = "a\u2028b\u2029c\x85d\u202ee\x9b1mf"
    talk = Talk(open_database(tmp_path / "talk.db", create=True))
    session = talk.session()
    for role, said in (("user", odd), ("assistant", odd), ("user", "more"), ("assistant", "end")):
        talk.message(session, role, said)
    text = _exported(form, read_session(talk.db, session, view_of(form)))
    talk.db.close()
    assert text.splitlines() == text.split("\n")[:-1]
    assert not any(character in text for character in odd if not character.isascii())
    assert json.dumps(odd)[1:-1] in text
