from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from store.engine.database import in_transaction, open_database
from store.queries.stats import Grouping, context_tokens, spending
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.targets import Target
from store.verbs.fork import fork
from store.verbs.rewind import rewind
from tests.store.talks import Talk

SAMPLE = Path(__file__).parent.parent / "data" / "claude-code"


def test_copies_are_counted_once_and_hidden_turns_stay_spent(talk: Talk) -> None:
    session = talk.session()
    first = talk.message(session)
    talk.call(session, input=10, output=2)
    last = talk.message(session, "assistant", usage={"input": 3, "cache_read": 40})
    for _ in range(2):
        talk.now += 100_000
        made = in_transaction(talk.db, fork, session, last, ids=talk.ids, now=talk.now)
    talk.message(made.session_id, "assistant", usage={"output": 5})
    in_transaction(talk.db, rewind, session, first, now=talk.now + 100_000)
    (whole,) = spending(talk.db)
    assert (whole.sessions, whole.answers, whole.copies, whole.total) == (3, 3, 4, 60)
    assert whole.spent == {
        "input": 13, "output": 7, "reasoning": 0, "cache_read": 40, "cache_write": 0,
    }  # fmt: skip
    by_session = {group.group: group.total for group in spending(talk.db, by="session")}
    assert by_session == {session: 55, made.session_id: 5} | {
        other: 0 for other in by_session if other not in (session, made.session_id)
    }


def test_of_copies_without_their_original_one_counts(talk: Talk) -> None:
    for _ in range(2):
        talk.message(
            talk.session(), "assistant", usage={"input": 7}, inherited_from="msg_forgotten"
        )
    (whole,) = spending(talk.db)
    assert (whole.answers, whole.copies, whole.total) == (1, 1, 7)


def test_groups(own_talk: Talk) -> None:
    talk = own_talk
    one = talk.session(workspace_root="/a", agent="x")
    talk.message(one, "assistant", usage={"input": 1}, model={"model_id": "opus"})
    two = talk.session(workspace_root="/b", agent="x")
    talk.message(two, "assistant", usage={"input": 9})
    assert [(g.group, g.total) for g in spending(talk.db, by="workspace")] == [("/b", 9), ("/a", 1)]
    assert [(g.group, g.total) for g in spending(talk.db, by="agent")] == [("x", 10)]
    assert [(g.group, g.total) for g in spending(talk.db, by="model")] == [("m", 9), ("opus", 1)]
    assert [g.total for g in spending(talk.db, session_ids=[one])] == [1]
    assert spending(talk.db, session_ids=["ses_none"]) == []


def test_context_is_what_the_newest_visible_answer_left(talk: Talk) -> None:
    session = talk.session()
    assert context_tokens(talk.db, session) is None
    first = talk.message(session, "assistant", usage={"input": 5, "cache_read": 100, "output": 9})
    talk.message(session, "assistant", usage={"input": 500})
    assert context_tokens(talk.db, session) == 500
    in_transaction(talk.db, rewind, session, first, now=talk.now)
    assert context_tokens(talk.db, session) == 114


def test_after_a_compaction_its_summary_is_in_context(talk: Talk) -> None:
    session = talk.session()
    talk.message(session, "assistant", usage={"input": 9000, "cache_read": 500, "output": 80})
    used = {"input": 9600, "output": 70, "reasoning": 5}
    talk.message(session, "assistant", usage=used, compaction=True)
    assert context_tokens(talk.db, session) == 70
    # Grida counts the summary itself as what its marker was given.
    talk.message(session, "assistant", usage={"input": 42}, compaction=True)
    assert context_tokens(talk.db, session) == 42
    talk.message(session, "assistant", usage={"input": 100, "output": 1, "reasoning": 2})
    assert context_tokens(talk.db, session) == 103


def test_what_copies_cost_is_counted_once(own_talk: Talk) -> None:
    talk = own_talk
    one = talk.session()
    first = talk.message(one, "assistant", usage={"input": 5}, cost_usd=0.25,
                         model={"model_id": "opus"})  # fmt: skip
    talk.message(one, "assistant", usage={"input": 1}, cost_usd=0.5, model={"model_id": "haiku"})
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 0.75")
    two = talk.session()
    talk.message(two, "assistant", usage={"input": 5}, cost_usd=0.25, inherited_from=first,
                 model={"model_id": "opus"})  # fmt: skip
    talk.message(two, "assistant", usage={"input": 1}, cost_usd=1.0, model={"model_id": "haiku"})
    # A source may know of more than its answers tell.
    talk.db.connection.execute("UPDATE chat_sessions SET cost_usd = 1.5 WHERE id = ?", (two,))

    def costs(by: Grouping) -> dict[str, float]:
        return {group.group: group.cost_usd for group in spending(talk.db, by=by)}

    assert costs("all") == {"": 2.0}
    assert costs("session") == {one: 0.75, two: 1.25}
    assert costs("model") == {"opus": 0.25, "haiku": 1.75}
    assert list(costs("day").values()) == [1.75]


def test_the_opencode_sample_costs_what_its_own_answers_did(tmp_path: Path) -> None:
    sample = SAMPLE.parent / "opencode"
    expected = json.loads((sample / "EXPECTED.json").read_text())["opencode.db"]
    copy = shutil.copytree(sample, tmp_path / "opencode")
    db = open_database(tmp_path / "library.db", create=True)
    Sync(db).run([Target(source("opencode"), copy / "opencode.db")])
    (whole,) = spending(db)
    db.close()
    assert whole.cost_usd == pytest.approx(expected["cost_without_fork_copies"])


def test_the_claude_code_sample_adds_up_to_what_was_served(tmp_path: Path) -> None:
    expected = json.loads((SAMPLE / "EXPECTED.json").read_text())["tokens_all_files_deduplicated"]
    db = open_database(tmp_path / "library.db", create=True)
    Sync(db).run([Target(source("claude-code"), SAMPLE / "home" / ".claude")])
    (whole,) = spending(db)
    db.close()
    assert whole.spent == {
        "input": expected["input"],
        "output": expected["output"] - expected["reasoning"],
        "reasoning": expected["reasoning"],
        "cache_read": expected["cache_read"],
        "cache_write": expected["cache_write"],
    }
