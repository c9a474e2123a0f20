"""Fields of a query select sessions, in stores of each form."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.language.query import parse
from store.queries.known_values import known_values
from store.queries.matching_sessions import session_condition, session_test
from tests.store import making

DAY = 86_400_000
NOW = 1_795_000_000_000
HOME = "/home/mira"


def filled(db: Database) -> Database:
    """Sessions ``a`` to ``e``; the ids say nothing else."""
    connection = db.connection

    def add(id: str, at: int, metadata: dict[str, object], **more: object) -> None:
        making.add_session(connection, id, at, metadata_json=json.dumps(metadata), **more)

    add("ses_a", NOW - DAY, {
        "title": "Retry loop in the sync worker", "git_branch": "fix/retry",
        "source": {"kind": "claude-code", "id": "3f2a-77", "path": "/x"},
        "user": {"tags": ["work", "ui-kit"], "star": True, "labels": {"msg_a1": "To do later"}},
    }, agent="claude-code", workspace_root="/home/mira/code/api", cost_usd=0.75,
        total_tokens=1_200_000,
        model_json='{"provider_id": "anthropic", "model_id": "claude-opus-4"}')
    add("ses_b", NOW - 40 * DAY, {
        "title": "old", "user": {"title": "Straße und 検索"}, "source": {"kind": "codex"},
        "activity": {"state": "error", "from": "stored"},
    }, agent="codex", workspace_root="C:\\code\\Api", total_tokens=9_000,
        model_json='{"model_id": "gpt-5-codex"}')
    add("ses_c", NOW - 2 * DAY, {"lineage": {"kind": "fork"}}, agent="codex",
        parent_id="ses_a", workspace_root=None)
    add("ses_d", NOW - 3 * DAY, {"lineage": {"kind": "subagent"},
                                 "user": {"tags": ["build"]}}, agent="opencode",
        parent_id="ses_a", archived_at=NOW, workspace_root="/home/mira/code/api-old")
    # A server's columns of JSON take nothing that is none.
    is_file = db.server is None
    making.add_session(connection, "ses_e", NOW, agent="gemini",
                       metadata_json="{" if is_file else "[]", model_json="[" if is_file else "7",
                       workspace_root="/home/mira/my folder")
    making.add_message(connection, "ses_b", "msg_hidden_one", at=NOW - 40 * DAY)
    return db


def select(db: Database, text: str) -> str:
    query = parse(text, now=NOW, zone=UTC, home=HOME)
    assert not query.problems, query.problems
    condition, values = session_condition(db, query)
    rows = db.connection.execute(
        f"SELECT {db.sql.rowid('s')}, s.id FROM chat_sessions s WHERE {condition}",
        values).fetchall()
    test = session_test(db, query, NOW)
    found = {rowid for rowid, _ in rows} if test is None else test([rowid for rowid, _ in rows])
    return "".join(sorted(id[-1] for rowid, id in rows if rowid in found))


@pytest.fixture(params=[making.own, making.contract, "server"], scope="module")
def sessions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    with contextlib.ExitStack() as stack:
        if request.param == "server":
            target = stack.enter_context(request.getfixturevalue("server_stores").lent())
        else:
            target = request.param(tmp_path_factory.mktemp("store") / "s.db")
        yield filled(stack.enter_context(contextlib.closing(open_target(target, write=True))))


@pytest.mark.parametrize(("text", "found"), [
    ("", "abcde"),
    ("agent:codex", "bc"), ("agent:CODEX", "bc"), ("agent:claude", "a"), ("agent:code", "abc"),
    ("agent:=code", ""), ("agent:=codex", "bc"), ("agent:c*x", "bc"), ("-agent:codex", "ade"),
    ("agent:codex agent:gemini", "bce"), ("agent:codex,gemini", "bce"),
    ("-agent:codex,gemini", "ad"), ("-agent:codex -agent:gemini", "ad"),
    ("source:claude", "a"), ("model:opus", "a"), ("model:gpt-?-codex", "b"),
    ("workspace:api", "abd"), ("workspace:~/code/api", "ad"), ("workspace:~/code/api/", "a"),
    ("workspace:=~/code/api", "a"), ("dir:code/api", "abd"), ('workspace:"my folder"', "e"),
    ("workspace:~/code/*", "ad"), ("workspace:*-old", "d"), ("workspace:c:/code", "b"),
    ("branch:retry", "a"), ("title:retry", "a"), ('title:"retry loop"', "a"),
    ("title:retry title:sync", "a"), ("title:retry title:other", ""),
    ("title:strasse", "b"), ("title:検", "b"), ("title:old", ""),
    ("tag:work", "a"), ("tag:ui", "a"), ("tag:work tag:build", ""), ("tag:work,build", "ad"),
    ("-tag:work", "bcde"), ("label:todo", ""), ('label:"to do"', "a"),
    ("id:ses_b", "b"), ("id:3f2a", "a"), ("id:f2a", ""), ("id:msg_hidden", "b"),
    ("id:=msg_hidden_one", "b"), ("id:=msg_hidden", ""),
    ("cost:>0.5", "a"), ("cost:0.75", "a"), ("cost:=0.75", "a"), ("cost:<0.5", "bcde"),
    ("tokens:1M", "a"), ("tokens:>=9k tokens:<1M", "b"), ("-tokens:>1k", "cde"),
    ("after:3d", "acde"), ("after:2d", "ace"), ("before:3d", "b"), ("-after:3d", "b"),
    ("after:2d before:1d", "c"), ("since:today", "e"),
    ("is:archived", "d"), ("-is:archived", "abce"), ("is:starred", "a"), ("is:fork", "c"),
    ("is:subagent", "d"), ("is:fork,subagent", "cd"), ("is:fork is:archived", ""),
    ("is:error", "abcde"),  # of parts: left to the search
    ("is:interrupted", ""), ("is:idle", "acde"), ("-is:idle", "b"), ("is:idle,archived", "acde"),
    ("-is:interrupted,archived", "abce"),
    ("agent:codex is:fork words of text -other", "c"),
])
def test_fields_select_sessions(sessions: Database, text: str, found: str) -> None:
    assert select(sessions, text) == found


def test_a_fork_without_a_kind_has_messages_older_than_itself(of_any_form: Database) -> None:
    db = of_any_form
    for id, first in (("ses_f", NOW - DAY), ("ses_g", NOW + 1)):
        making.add_session(db.connection, id, NOW, parent_id="ses_x")
        making.add_message(db.connection, id, f"msg_{id}", at=first)
    assert (select(db, "is:fork"), select(db, "is:subagent")) == ("f", "")


@pytest.mark.parametrize(("text", "found"), [
    ("status:failed", "ad"), ("status:completed", "bc"), ("status:=completed", "b"),
    ("-status:completed", "ade"), ("status:merged,failed", "ade"), ("is:starred", "bc"),
    ("-is:starred", "ade"), ("project:harb", "a"), ("account:=ada", "a"), ("-account:ada", "bcde"),
    ("owner:gra", "b"), ("owner:ace", ""), ("-owner:=grace", "acde"),
])
def test_the_agents_own_words_and_stars(of_any_form: Database, text: str, found: str) -> None:
    db = of_any_form
    for id, metadata in {
        "ses_a": {"backscroll": {"status": "failed", "project": "harbour", "account": "ada"}},
        "ses_b": {"owner": "grace",
                  "backscroll": {"branch": {"status": "completed"}, "is_starred": True}},
        "ses_c": {"backscroll": {"tasks": [7, {"status": 7}, {"status": "completed_empty"}]},
                  "user": {"star": True}},
        "ses_d": {"backscroll": {"status": "active", "is_starred": True,
                                 "tasks": [{"status": "failed"}]}, "user": {"star": False}},
        "ses_e": {"backscroll": {"state": "merged", "tasks": "no list"}},
    }.items():
        making.add_session(db.connection, id, NOW, metadata_json=json.dumps(metadata))
    assert select(db, text) == found
    assert {known.value for known in known_values(db)["status"]} == {
        "failed", "completed", "completed_empty", "active", "merged"}


def test_a_host_may_have_anything_in_its_columns(tmp_path: Path) -> None:
    db = open_database(making.loose(tmp_path / "s.db"))
    for number, value in enumerate((None, b"\xff\x00", 7, 1.5, "x", "{", "[[]]")):
        making.add_session(
            db.connection, f"ses_{number}", 1, agent=value, workspace_root=value,
            model_json=value, metadata_json=value, cost_usd=value, total_tokens=value)
    for text in ("agent:x", "model:x", "workspace:x", "title:x", "tag:x", "label:x", "id:ses",
                 "cost:>1", "tokens:>1", "is:starred", "is:fork", "is:running", "branch:x",
                 "status:x"):
        select(db, text)
    assert select(db, "agent:7") == "2" and select(db, "cost:>1") == "23"


@pytest.mark.parametrize("value", ["a" * 5_000, "*a" * 2_000, "\0", "\ud800", "%_[x]\\", "?" * 99])
def test_hostile_values_end(sessions: Database, value: str) -> None:
    for field in ("title", "workspace", "agent", "id", "tag"):
        select(sessions, f'{field}:"{value}"')
