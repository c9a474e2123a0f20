from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.exports.opencode.session_file import OpencodeFile, opencode_file
from store.exports.reading import View, read_session
from store.exports.registry import writer
from store.ids import IdMinter
from store.queries.context import context_ids, visible_ids
from store.queries.lineage import family
from store.queries.sessions import get, resolve
from store.resume.opencode import plan
from store.resume.planning import note_exported, write_file
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from tests.exports.opencode_checker import check
from tests.store.talks import Talk

DATA = Path(__file__).parent.parent / "data"
MAIN, REVERTED = "ses_de0dc5c59ffePt6O6ToYCV1VqC", "ses_de0dc1d6fffeYlXjZT39QSHvEK"
FORK, LEGACY = "ses_de0dc2aebffeqrRUfTScJE5XwU", "ses_de0dbc716ffeRm1fH2ozt1LJdy"
LATER = 1_900_000_000_000
CLAUDE = DATA / "claude-code" / "home" / ".claude"


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.db"
    database = open_database(path, create=True)
    opencode = source("opencode")
    targets = [Target(opencode, DATA / "opencode"), Target(opencode, DATA / "opencode/legacy"),
               Target(source("claude-code"), CLAUDE)]  # fmt: skip
    Sync(database, Settings(helpers=0)).run(targets)
    database.close()
    return path


@pytest.fixture
def library(synced: Path, tmp_path: Path) -> Iterator[Database]:
    copy = tmp_path / "library.db"
    reading = open_database(synced, write=False)
    reading.connection.execute("VACUUM INTO ?", (str(copy),))
    reading.close()
    database = open_database(copy)
    yield database
    database.close()


def exported(db: Database, session_id: str, view: View = "display") -> OpencodeFile:
    return opencode_file(read_session(db, session_id, view), clock=lambda: LATER)


def checked(db: Database, session_id: str) -> dict[str, Any]:
    return check("\n".join(exported(db, session_id).lines))


def without_ids(value: Any) -> Any:
    """Drop what an export renews: ids, references to them, and the note of where it is from."""
    if isinstance(value, list):
        return [without_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    renewed = ("id", "sessionID", "messageID", "parentID", "tail_start_id")
    rest = {key: without_ids(item) for key, item in value.items() if key not in renewed}
    if isinstance(rest.get("metadata"), dict) and "backscroll" in rest["metadata"]:
        del rest["metadata"]["backscroll"]
        if not rest["metadata"]:
            del rest["metadata"]
    return rest


@pytest.mark.parametrize("name", ["main", "fork", "delegating", "archived"])
def test_what_opencode_wrote_goes_back_as_its_own_export_has_it(
    library: Database, name: str
) -> None:
    genuine = json.loads((DATA / "opencode" / "exports" / f"export-{name}.json").read_text())
    made = checked(library, resolve(library, genuine["info"]["id"]).id)
    assert without_ids(made["messages"]) == without_ids(genuine["messages"])
    assert made["info"]["title"] == genuine["info"]["title"]
    assert made["info"]["directory"] == genuine["info"]["directory"]
    assert made["info"]["version"] == genuine["info"]["version"]


def test_answers_name_the_new_ids_of_their_prompts(library: Database) -> None:
    genuine = json.loads((DATA / "opencode" / "exports" / "export-main.json").read_text())
    made = checked(library, resolve(library, MAIN).id)
    old = [message["info"]["id"] for message in genuine["messages"]]
    new = [message["info"]["id"] for message in made["messages"]]
    for before, after in zip(genuine["messages"], made["messages"], strict=True):
        if "parentID" in before["info"]:
            assert new.index(after["info"]["parentID"]) == old.index(before["info"]["parentID"])


def test_hidden_messages_stay_out_and_nothing_pending_goes_along(library: Database) -> None:
    made = checked(library, resolve(library, REVERTED).id)
    texts = [p["text"] for m in made["messages"] for p in m["parts"] if p["type"] == "text"]
    assert texts[0] == "MOCK:hello first question" and len(made["messages"]) == 2
    assert "revert" not in made["info"] and "share" not in made["info"]


def test_the_json_store_of_old_goes_out_as_it_was(library: Database) -> None:
    made = checked(library, resolve(library, LEGACY).id)
    part = made["messages"][1]["parts"][1]
    assert part["type"] == "reasoning" and part["text"] == "Look at the files first."
    assert made["messages"][1]["info"]["tokens"]["output"] == 60
    assert made["info"]["version"] == "1.1.65"


def test_a_fork_made_here_goes_out_with_the_original_rows(library: Database) -> None:
    session = resolve(library, MAIN).id
    at = visible_ids(library, session)[4]
    made = in_transaction(library, fork, session, at, ids=IdMinter(lambda: LATER), now=LATER)
    whole = checked(library, session)["messages"]
    assert without_ids(checked(library, made.session_id)["messages"]) == without_ids(whole[:5])


def test_every_claude_session_becomes_one_that_opencode_takes(library: Database) -> None:
    rows = library.connection.execute(
        "SELECT id FROM chat_sessions"
        " WHERE json_extract(metadata_json, '$.source.kind') = 'claude-code'"
    ).fetchall()
    assert rows
    for (session_id,) in rows:
        check("".join(writer("opencode")(read_session(library, session_id, "display"))))


def test_every_session_of_the_demo_passes_the_checker(demo: Database) -> None:
    for (session_id,) in demo.connection.execute("SELECT id FROM chat_sessions").fetchall():
        check("".join(writer("opencode")(read_session(demo, session_id, "display"))))


def shown(db: Database, session_id: str) -> list[Any]:
    """Return turns, texts, calls and their results, in order."""
    found: list[Any] = []
    for message_id in visible_ids(db, session_id):
        (role,) = db.connection.execute(
            "SELECT role FROM chat_messages WHERE id = ?", (message_id,)
        ).fetchone()
        for kind, text in db.connection.execute(
            'SELECT type, data_json FROM chat_parts WHERE message_id = ? ORDER BY "index"',
            (message_id,),
        ):
            data = json.loads(text)
            if kind in ("text", "reasoning") and data["text"]:
                found.append((role, kind, data["text"]))
            elif kind.startswith("tool-"):
                found.append((role, kind, data["toolCallId"], data["input"], data["state"],
                              data.get("output"), data.get("errorText")))  # fmt: skip
    return found


@pytest.mark.parametrize("name", [MAIN, FORK, LEGACY])
def test_an_exported_session_reads_back_as_the_same(
    library: Database, tmp_path: Path, name: str
) -> None:
    session = resolve(library, name).id
    file = tmp_path / "session.json"
    made = exported(library, session)
    file.write_text("\n".join(made.lines))
    opencode = source("opencode")
    assert opencode.recognise(file) == file
    Sync(library, Settings(helpers=0)).run([Target(opencode, file)])
    assert shown(library, resolve(library, made.session_id).id) == shown(library, session)


def test_a_claude_session_reads_back_as_the_same(library: Database, tmp_path: Path) -> None:
    session = resolve(library, "8ab87d4f").id
    made = exported(library, session)
    file = tmp_path / "session.json"
    file.write_text("\n".join(made.lines))
    Sync(library, Settings(helpers=0)).run([Target(source("opencode"), file)])
    assert shown(library, resolve(library, made.session_id).id) == shown(library, session)


def test_a_compaction_of_another_agent_becomes_the_pair_that_opencode_knows(
    talk: Talk, tmp_path: Path
) -> None:
    session = talk.session(workspace_root="/home/mira/code")
    talk.message(session, "user", "one")
    kept = talk.message(session, "assistant", "done")
    marker = talk.message(session, "system", "")
    data = {"type": "data-compaction",
            "data": {"summary": "We did one.", "tail_start_id": kept, "auto": True}}  # fmt: skip
    talk.db.connection.execute(
        "UPDATE chat_parts SET type = 'data-compaction', data_json = ? WHERE message_id = ?",
        (json.dumps(data), marker),
    )
    talk.message(session, "user", "two")
    made = check("\n".join(exported(talk.db, session).lines))
    request, summary = made["messages"][2:4]
    assert request["parts"][0]["type"] == "compaction" and request["parts"][0]["auto"] is True
    assert request["parts"][0]["tail_start_id"] == made["messages"][1]["info"]["id"]
    assert summary["info"]["summary"] is True
    assert summary["info"]["parentID"] == request["info"]["id"]
    assert summary["parts"][0]["text"] == "We did one."
    file = tmp_path / "session.json"
    file.write_text(json.dumps(made))
    Sync(talk.db, Settings(helpers=0)).run([Target(source("opencode"), file)])
    again = resolve(talk.db, made["info"]["id"]).id
    assert len(context_ids(talk.db, again)) == 4
    assert context_ids(talk.db, again)[1] == visible_ids(talk.db, again)[1]


def test_a_call_without_a_result_says_so(talk: Talk) -> None:
    session = talk.session(workspace_root="/home/mira/code")
    talk.message(session, "user", "go")
    message = talk.call(session, "Read", input=5, output=2)
    talk.db.connection.execute(
        "UPDATE chat_parts SET data_json = json_remove(json_set(data_json, '$.state',"
        " 'input-available'), '$.output') WHERE message_id = ?",
        (message,),
    )
    made = check("\n".join(exported(talk.db, session).lines))
    state = made["messages"][1]["parts"][1]["state"]
    assert state["status"] == "error" and state["error"] == "This call has no recorded result."


ENVIRONMENT = {"PATH": ""}


def data_folder(tmp_path: Path) -> Path:
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_bytes((DATA / "opencode" / "opencode.db").read_bytes())
    return folder


def test_a_session_that_is_in_opencodes_database_is_resumed_as_it_is(
    tmp_path: Path, empty: Database
) -> None:
    folder = data_folder(tmp_path)
    Sync(empty, Settings(helpers=0)).run([Target(source("opencode"), folder)])
    made = plan(empty, resolve(empty, MAIN), ENVIRONMENT, tmp_path)
    assert made.command == ("opencode", "--session", MAIN)
    assert made.started == "opencode"
    assert (made.file, made.cwd, made.program) == (None, "/home/user/project", None)


def test_a_rewound_session_is_imported_as_a_new_one_and_linked(
    tmp_path: Path, empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSCROLL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = data_folder(tmp_path)
    opencode = Target(source("opencode"), folder)
    Sync(empty, Settings(helpers=0)).run([opencode])
    session = resolve(empty, MAIN).id
    in_transaction(empty, rewind, session, visible_ids(empty, session)[4], now=LATER)
    row = get(empty, session)
    assert row is not None
    made = plan(empty, row, ENVIRONMENT, tmp_path)
    assert made.file is not None and made.prompt is None
    write_file(made)
    in_transaction(empty, note_exported, session, made)
    assert made.before == ("opencode", "import", str(made.path))
    assert made.command == ("opencode", "--session", made.file.session_id)
    document = check(made.path.read_text())
    assert len(document["messages"]) == 5 and made.path.stat().st_mode & 0o777 == 0o600
    Sync(empty, Settings(helpers=0)).run([Target(source("opencode"), made.path)])
    imported = resolve(empty, made.file.session_id).id
    shown = [(node.id, node.kind, node.depth) for node in family(empty, session)]
    assert (imported, "continuation", 1) in shown
    originals = empty.connection.execute(
        "SELECT json_extract(metadata_json, '$.inherited_from') FROM chat_messages"
        " WHERE session_id = ? ORDER BY created_at, id",
        (imported,),
    ).fetchall()
    assert [one for (one,) in originals] == visible_ids(empty, session)


def test_a_last_prompt_that_nothing_answered_is_handed_over(
    talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    session = talk.session(workspace_root="/home/mira/code")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "done")
    talk.message(session, "user", "and then?")
    made = plan(talk.db, resolve(talk.db, session), ENVIRONMENT, tmp_path)
    assert made.prompt == "and then?" and made.command[-1] == "--prompt=and then?"
    assert made.file is not None
    assert len(check("\n".join(made.file.lines))["messages"]) == 2


def test_what_older_versions_wrote_has_all_that_import_wants(tmp_path: Path) -> None:
    """Version 0.5 named no agent, no model and no reason for the end of a step."""
    library = open_database(tmp_path / "library.db", create=True)
    Sync(library, Settings(helpers=0)).run([Target(source("opencode"), DATA / "opencode/0.5.29")])
    ids = [row[0] for row in library.connection.execute("SELECT id FROM chat_sessions")]
    documents = [check("".join(writer("opencode")(read_session(library, name)))) for name in ids]
    library.close()
    infos = [message["info"] for document in documents for message in document["messages"]]
    assert {info["role"] for info in infos} == {"user", "assistant"}
    # What it did write stays as it was.
    assert {info["mode"] for info in infos if info["role"] == "assistant"} == {"build", "general"}
