from __future__ import annotations

from pathlib import Path

import pytest

from store.conversation.turns import starts_turn
from store.engine.database import Database
from store.engine.values import decoded
from store.errors import NotFound
from store.queries import details
from store.queries.inspection import part_detail
from store.usage import Spent, spent_of
from tests.tui.inspected import START, USAGE, Talk, bash, fill_store, make_long, part_id, text


@pytest.fixture
def talk(db: Database) -> Talk:
    return fill_store(db)


def counted(talk: Talk) -> details.Timeline:
    found = details.timeline(talk.db, talk.session_id)
    found.count(details.tool_calls(talk.db, list(found.turn_of)))
    return found


def test_turns_begin_at_prompts_and_sum_their_answers(talk: Talk) -> None:
    found = counted(talk)
    first, second = found.turns
    assert (first.number, first.prompt[:14], first.messages) == (1, "Find out why.\n", 4)
    assert first.spent == Spent(20, 40, 10, 120, 10, 0.25)
    assert first.tools == {"Bash": 1}
    assert first.milliseconds == 4_200
    assert (second.number, second.prompt, second.spent.total) == (2, "Second prompt", 100)
    assert second.spent.cost is None
    assert found.spent.total == 300
    assert found.prompts == {"d1": 2, "d2": 1}
    assert found.models == {"anthropic/sonnet": 1}


def test_failed_and_dynamic_calls_are_counted_by_tool(tmp_path: Path) -> None:
    talk = make_long(tmp_path / "long.db", 25)
    found = counted(talk)
    assert len(found.turns) == 25
    assert found.tools["fetch"] == 3 and found.failed == {"fetch": 3}
    assert sum(turn.failed for turn in found.turns) == 3
    assert found.spent.total == 25 * sum(USAGE.values())


def test_hidden_queued_and_copied_turns(talk: Talk) -> None:
    talk.message("user", text("Hidden"), hidden_at=START)
    talk.message("user", text("Queued"), queued_at=START)
    talk.message("user", text("Copied"), inherited_from="msg_x")
    talk.message("assistant", text("Copied too"), usage=USAGE, inherited_from="msg_y")
    found = counted(talk)
    marks = [(turn.number, turn.prompt, turn.hidden, turn.copied) for turn in found.turns[2:]]
    assert marks == [(2, "Hidden", True, False), (3, "Copied", False, True)]
    assert found.turns[-1].spent.total == 100
    # The original of the copied answer is not in the store, so that it counts here.
    assert found.spent.total == 400


def test_what_stands_before_the_first_prompt_is_turn_0(tmp_path: Path) -> None:
    talk = make_long(tmp_path / "empty.db", 0)
    talk.message("assistant", bash("ls", "x"))
    talk.message("user", text("Now"))
    found = counted(talk)
    assert [(turn.number, turn.prompt) for turn in found.turns] == [(0, ""), (1, "Now")]


def test_overview_tells_lineage_and_model(talk: Talk) -> None:
    for name, kind in (("ses_a", "fork"), ("ses_b", "subagent"), ("ses_c", "fork")):
        Talk(talk.db, name)
        talk.db.connection.execute(
            "UPDATE chat_sessions SET parent_id = ?, metadata_json = ? WHERE id = ?",
            (talk.session_id, f'{{"lineage":{{"kind":"{kind}"}}}}', name),
        )
    found = details.overview(talk.db, talk.session_id)
    assert found.children == {"fork": 2, "subagent": 1}
    assert found.parent is None
    assert details.model_name(found.model) == "anthropic/sonnet high"
    child = details.overview(talk.db, "ses_a")
    assert child.parent is not None and child.parent.title == "Inspected"
    with pytest.raises(NotFound):
        details.overview(talk.db, "ses_none")


def test_system_prompts_by_digest(talk: Talk) -> None:
    assert details.system_prompts(talk.db, ["d1", "d2"]) == {"d1": "You are **calm**."}


@pytest.mark.file
def test_a_hosts_file_has_no_system_prompts(talk: Talk) -> None:
    talk.db.connection.execute("DROP TABLE system_prompts")
    assert details.system_prompts(talk.db, ["d1"]) == {}


def test_part_detail_tells_place_turn_and_session(talk: Talk) -> None:
    found = part_detail(talk.db, talk.session_id, part_id(talk, 2, 1))
    assert (found.position, found.parts, found.turn_messages) == (2, 3, 2)
    assert found.turn == Spent(20, 40, 10, 120, 10, 0.25)
    assert found.session == Spent(100, 200, 50, 600, 50, 0.5)
    prompt = part_detail(talk.db, talk.session_id, part_id(talk, 5, 0))
    assert prompt.turn == Spent(10, 20, 5, 60, 5)
    with pytest.raises(NotFound, match="prt_none"):
        part_detail(talk.db, talk.session_id, "prt_none")


def test_part_detail_finds_the_child_that_the_call_started(talk: Talk) -> None:
    Talk(talk.db, "ses_kid")
    talk.db.connection.execute(
        "UPDATE chat_sessions SET parent_id = ?, metadata_json = ? WHERE id = 'ses_kid'",
        (talk.session_id, '{"lineage":{"tool_call_id":"toolu_01mdGEHb0000000000NyyF"}}'),
    )
    call = part_detail(talk.db, talk.session_id, part_id(talk, 2, 1))
    assert [child.id for child in call.children] == ["ses_kid"]
    assert part_detail(talk.db, talk.session_id, part_id(talk, 2, 0)).children == []


def test_odd_metadata_counts_as_nothing() -> None:
    assert decoded("no json") == {} and decoded("[1]") == {}
    assert decoded('{"a":"\\ud83d"}') == {"a": "\ud83d"}
    odd = {"usage": {"input": "x", "output": True, "reasoning": 1e300, "cache_read": 2.0}}
    summed = {"usage": {"input": 5, "cache_read": 2}, "backscroll": {"usage": {"input": 50}}}
    assert spent_of(summed) == Spent(input=50, cache_read=2)
    assert spent_of(odd) == Spent(cache_read=2, output=1)
    assert not starts_turn("user", {"origin": "command"})
    assert not starts_turn("user", {"origin": "meta"})
    assert not starts_turn("assistant", {})
