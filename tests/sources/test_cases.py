"""The small inputs that once failed, synced: what the library says of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.engine.database import Database, open_database
from store.queries.context import context_ids, visible_ids
from store.queries.counting import counts
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.cases import case_home

KINDS = {".claude": "claude-code", "claude": "claude-code", ".codex": "codex", ".gemini": "gemini",
         ".copilot": "copilot", "sessions": "pi", ".viben": "viben"}  # fmt: skip


class Case(NamedTuple):
    """A synced case.

    Attributes:
        problems: Why something was not read, one for each.
    """

    db: Database
    problems: list[str]

    def sessions(self) -> dict[str, str]:
        """Return the id of each session by its source id."""
        rows = self.db.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'), id FROM chat_sessions"
        )
        return dict(rows.fetchall())

    @property
    def session(self) -> str:
        """The only session's id."""
        (session_id,) = self.sessions().values()
        return session_id

    def title(self) -> str | None:
        (title,) = self.db.connection.execute(
            "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions"
        ).fetchone()
        return None if title is None else str(title)

    def parts(self, message_id: str) -> list[dict[str, Any]]:
        rows = self.db.connection.execute(
            'SELECT data_json FROM chat_parts WHERE message_id = ? ORDER BY "index"', (message_id,)
        )
        return [json.loads(text) for (text,) in rows]

    def calls(self) -> list[dict[str, Any]]:
        ids = visible_ids(self.db, self.session)
        return [part for one in ids for part in self.parts(one) if "toolCallId" in part]

    def texts(self, ids: list[str] | None = None) -> list[str]:
        """Return what some messages say, all visible ones of the only session's by default."""
        found = []
        for one in visible_ids(self.db, self.session) if ids is None else ids:
            said = [part["text"] for part in self.parts(one) if part["type"] == "text"]
            found += ["\n".join(said)] if said else []
        return found


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    home = case_home(request.param, tmp_path)
    if request.param.startswith("12"):
        projects = home / ".claude" / "projects"
        (projects / "-home-dev-link").symlink_to("-home-dev-app")
    db = open_database(tmp_path / "store.db", create=True)
    there = [Target(source(KINDS[one.name]), one) for one in home.iterdir() if one.name in KINDS]
    Sync(db, Settings(helpers=0)).run(there or [Target(source("gemini"), home)])
    problems = db.connection.execute("SELECT reason FROM source_problems").fetchall()
    yield Case(db, [reason for (reason,) in problems])
    db.close()


def of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [name], indirect=True, ids=[name])


@of("05-codex-output-json/20-codex-output")
def test_codex_outputs_are_text(case: Case) -> None:
    outputs = [call.get("output", call.get("errorText")) for call in case.calls()]
    assert outputs == [
        "a.txt\nb.txt\n", "cat: nofile: No such file or directory\n",
        "Success. Updated the following files:\nA a\n",
    ]  # fmt: skip


@of("07-damage-beside-whole-records/16-nul")
def test_records_beside_nuls_are_kept(case: Case) -> None:
    assert case.texts() == ["first", "a", "second", "b", "third", "after nul"]
    assert case.problems


@of("07-damage-beside-whole-records/17-glued")
def test_two_records_on_one_line_are_both_kept(case: Case) -> None:
    assert case.texts() == ["first", "a", "second", "b", "third", "c"]
    assert len(case.problems) == 1


@of("07-damage-beside-whole-records/62-copilot")
def test_a_record_behind_a_torn_one_is_kept(case: Case) -> None:
    assert case.texts() == ["ask\u2028two", "first answer", "again", "second answer"]
    assert len(case.problems) == 1


@of("08-record-without-id/34-gemini-noid")
def test_records_without_ids_are_shown_in_file_order(case: Case) -> None:
    assert case.texts() == ["no ids here", "indeed none"]
    assert case.problems == []


@of("10-codex-json-of-2025/36-codex-ts")
def test_codex_json_of_2025_is_read(case: Case) -> None:
    assert case.title() == "what is here"
    assert case.texts() == ["what is here", "one file"]
    (call,) = case.calls()
    assert (call["input"]["command"], call["output"]) == (["ls"], "a\n")


@of("12-symlinked-project/27-symlink")
def test_two_names_for_one_folder_are_one(case: Case) -> None:
    assert len(case.sessions()) == 1
    assert case.problems == []


@of("13-same-message-on-two-branches/12-replay")
def test_a_message_on_two_branches_is_one_in_each(case: Case) -> None:
    assert case.texts() == ["q1", "a1", "q2", "a2", "q3", "a3"]


@of("16-call-ids-repeated")
def test_a_call_is_known_by_its_message_and_id(case: Case) -> None:
    assert [call["input"]["command"] for call in case.calls()] == [
        "echo one", "echo two", "echo three"]
    assert [call["output"] for call in case.calls()] == ["out one", "out two", "out three"]


@of("17-gemini-hidden-summary")
def test_hiding_a_summary_never_brings_back_what_it_stood_for(case: Case) -> None:
    asked = {}
    for name, session_id in case.sessions().items():
        texts = case.texts(context_ids(case.db, session_id))
        asked[name[:8]] = [text.split()[0] for text in texts if text.split()[0].isupper()]
    assert asked == {"aaaaaaaa": ["ONE", "FOUR"], "bbbbbbbb": ["FOUR"]}


@of("18-pi-kept-from-shell")
def test_a_kept_shell_command_is_kept_whole(case: Case) -> None:
    ids = context_ids(case.db, case.session)
    held = json.dumps([case.parts(one) for one in ids])
    assert "echo hi" in held and "hi\\n" in held
    assert "old answer" not in held
    assert case.texts(ids)[-4:] == ["kept", "kept answer", "new", "new answer"]


@of("19-viben-result-first")
def test_a_result_before_its_call_is_joined_to_it(case: Case) -> None:
    (call,) = case.calls()
    assert (call["toolCallId"], call["state"], call["output"]) == (
        "tu1", "output-available", "out")


@pytest.mark.parametrize(
    ("case", "title", "turns"),
    [
        ("06-slash-command-with-arguments/08-slash-first", "/review the login module", 2),
        ("04-codex-ide-wrapper/01-ide-context", "Rename the parser to lexer", 1),
        ("14-hook-output-in-title/23-hooks", "fix the test", 1),
    ],
    indirect=["case"],
)
def test_titles_and_turns_as_the_library_has_them(case: Case, title: str, turns: int) -> None:
    assert case.title() == title
    assert counts(case.db, [case.session])[case.session].turns == turns


@of("02-prompt-still-waiting/74-waiting")
def test_a_waiting_prompt_is_counted_as_queued(case: Case) -> None:
    assert counts(case.db, [case.session])[case.session].queued == 1
