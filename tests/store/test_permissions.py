"""Rules of permission of a session, and their undo."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction, open_database
from store.errors import NotFound, Refused
from store.verbs.permissions import Rule, change_rules, rule_in, session_rules, set_rules
from store.verbs.undo import redo, undo

MANIFEST = {"permission": "*", "pattern": "*", "action": "ask", "source": "manifest", "extra": 1.5}
OWN = {"permission": "Bash", "pattern": "ls *", "action": "allow"}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with contextlib.closing(open_database(tmp_path / "library.db", create=True)) as database:
        database.connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, permissions_json, created_at,"
            " updated_at) VALUES ('s', 'a', '{}', ?, 1, 1)", (json.dumps([MANIFEST, OWN]),))
        yield database


def stored(db: Database) -> Any:
    ((text,),) = db.connection.execute("SELECT permissions_json FROM chat_sessions").fetchall()
    return json.loads(text)


def test_only_rules_of_the_session_change(db: Database) -> None:
    rule = Rule("WebFetch", "*", "deny")
    rules = in_transaction(db, change_rules, "s", add=[rule], now=7)
    assert rules == [Rule("Bash", "ls *", "allow"), rule]
    assert stored(db) == [MANIFEST, OWN, {**rule._asdict(), "source": "session", "added_at": 7}]
    assert session_rules(json.dumps(stored(db))) == rules
    in_transaction(db, change_rules, "s", add=[Rule("Bash", "ls *", "deny")],
                   remove=[("WebFetch", "*")], now=8)
    assert [one["action"] for one in stored(db)] == ["ask", "deny"]
    assert in_transaction(db, set_rules, "s", [], now=9) == [] and stored(db) == [MANIFEST]


def test_undo_and_redo(db: Database) -> None:
    before = stored(db)
    in_transaction(db, change_rules, "s", add=[rule_in("ask  Read /etc/*")], now=7)
    after = stored(db)
    in_transaction(db, undo, now=8)
    assert stored(db) == before
    in_transaction(db, redo, now=9)
    assert stored(db) == after
    assert db.connection.execute("SELECT count(*) FROM changes").fetchone()[0] >= 3


def test_what_is_refused(db: Database) -> None:
    for words in ("", "allow", "permit Bash", "allow \x1b[0m", "deny Bash " + "x" * 2000):
        with pytest.raises(Refused):
            in_transaction(db, set_rules, "s", [rule_in(words)], now=1)
    with pytest.raises(Refused, match="agent or a project"):
        in_transaction(db, change_rules, "s", remove=[("*", "*")], now=1)
    with pytest.raises(Refused, match="already"):
        in_transaction(db, change_rules, "s", add=[Rule("Bash", "ls *", "allow")], now=1)
    with pytest.raises(NotFound):
        in_transaction(db, set_rules, "nope", [], now=1)
    db.connection.execute("UPDATE chat_sessions SET permissions_json = '{}'")
    with pytest.raises(Refused, match="no JSON list"):
        in_transaction(db, set_rules, "s", [Rule("Bash", "*", "ask")], now=1)
    assert session_rules("{") == [] and session_rules('[1, null, {"permission": 2}]') == [
        Rule("2", "*", "")]
