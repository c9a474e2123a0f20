from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from store.models import (
    Activity,
    MessageMetadata,
    ModelRef,
    PermissionRule,
    SessionMetadata,
    Trigger,
    Usage,
    read_json,
    read_permissions,
)

MESSAGE = {
    "usage": {"input": 1, "output": 2, "reasoning": 3, "cache_read": 4, "cache_write": 5, "x": 6},
    "model": {"provider_id": "anthropic", "model_id": "m", "variant": "high", "more": [1]},
    "agent": "plan",
    "queued_at": 1,
    "queue_enqueued_at": 2,
    "queue_canceled_at": 3,
    "snapshot_id": "snap",
    "trigger": {
        "source": "schedule", "fired_at": 4, "schedule_id": "s", "delivery_id": "d",
        "headers": {"a": "b"}, "auth_subject": "me", "later": True,
    },
    "system_prompt_digest": "ab" * 32,
    "hidden_at": 5,
    "compaction": True,
    "origin": "human",
    "source": {"id": "m1"},
    "inherited_from": "msg_x",
    "backscroll": {"effort": "high"},
    "of_a_later_version": {"deep": [1, {"b": None}]},
}  # fmt: skip

SESSION = {
    "title": "t", "title_from": "summary",
    "source": {"kind": "claude-code", "id": "1", "path": "/a", "more": 1},
    "lineage": {"kind": "subagent", "tool_call_id": "toolu_1"},
    "git_branch": "main", "version": "2.1", "ephemeral": False,
    "user": {"title": "mine", "star": True, "tags": ["a"], "labels": {"k": "v"}},
    "activity": {"state": "waiting-approval", "from": "stored"},
    "backscroll": {"x": 1}, "unknown_key": "kept",
}  # fmt: skip


def test_message_metadata_comes_back_as_it_came() -> None:
    metadata = MessageMetadata.model_validate(MESSAGE)
    assert json.loads(metadata.to_json()) == MESSAGE
    assert metadata.usage is not None
    assert metadata.usage.total == 15
    assert metadata.trigger is not None
    assert metadata.trigger.schedule_id == "s"


def test_session_metadata_comes_back_as_it_came() -> None:
    metadata = SessionMetadata.model_validate(SESSION)
    assert json.loads(metadata.to_json()) == SESSION
    assert metadata.effective_title == "mine"
    assert metadata.activity is not None
    assert metadata.activity.from_ == "stored"


@pytest.mark.parametrize("user", [None, {"title": None}, {"title": ""}])
def test_without_a_title_of_the_user_the_sources_holds(user: dict[str, Any] | None) -> None:
    assert SessionMetadata.model_validate({"title": "t", "user": user}).effective_title == "t"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text().filter(lambda key: key not in MESSAGE), json_values, max_size=4))
def test_unknown_keys_are_never_dropped(unknown: dict[str, Any]) -> None:
    text = json.dumps(MESSAGE | unknown)
    metadata, problems = read_json(MessageMetadata, text)
    assert not problems
    assert json.loads(metadata.to_json()) == MESSAGE | unknown


def test_usage_adds_up_bucket_by_bucket() -> None:
    one = Usage(input=1, output=2, reasoning=3, cache_read=4, cache_write=5)
    both = one + Usage(input=10, cache_write=1)
    assert both.model_dump() == {
        "input": 11, "output": 2, "reasoning": 3, "cache_read": 4, "cache_write": 6,
    }  # fmt: skip
    assert both.total == 26


def test_a_whole_number_of_javascript_is_a_number() -> None:
    assert Usage.model_validate({"input": 3.0}).input == 3
    with pytest.raises(ValidationError):
        Usage.model_validate({"input": 3.5})


def test_a_model_may_have_a_tier_in_place_of_an_id() -> None:
    model = ModelRef.model_validate({"provider_id": "openrouter", "tier": "smart"})
    assert (model.model_id, model.tier) == (None, "smart")
    with pytest.raises(ValidationError):
        ModelRef.model_validate({"model_id": "m"})


def test_a_permission_rule_has_the_four_names() -> None:
    rule = {"permission": "Bash", "pattern": "git *", "action": "ask", "source": "session"}
    assert json.loads(PermissionRule.model_validate(rule).to_json()) == rule
    short = PermissionRule.model_validate({"permission": "*", "pattern": "*", "action": "deny"})
    assert short.source == "session"
    assert short.added_at is None
    for name in ("permission", "pattern", "action"):
        with pytest.raises(ValidationError):
            PermissionRule.model_validate({k: v for k, v in rule.items() if k != name})
    with pytest.raises(ValidationError):
        PermissionRule.model_validate(rule | {"action": "maybe"})


def test_a_trigger_needs_its_source_and_time() -> None:
    assert Trigger(source="webhook", fired_at=1).fired_at == 1
    with pytest.raises(ValidationError):
        Trigger.model_validate({"source": "api"})


def test_every_activity_is_one_of_ten() -> None:
    with pytest.raises(ValidationError):
        Activity.model_validate({"state": "sleeping"})
    assert json.loads(Activity.model_validate({"state": "idle", "from": "guessed"}).to_json()) == {
        "state": "idle", "from": "guessed",
    }  # fmt: skip


def test_what_does_not_fit_is_named_and_the_rest_is_read() -> None:
    metadata, problems = read_json(
        MessageMetadata, '{"usage": "many", "origin": "human", "model": {"x": 1}, "z": 1}'
    )
    assert metadata.usage is None
    assert metadata.origin == "human"
    assert metadata.model_extra == {"z": 1}
    assert [problem.split(":")[0] for problem in problems] == ["usage", "model.provider_id"]


@pytest.mark.parametrize("text", ["", None])
def test_no_text_is_no_metadata(text: str | None) -> None:
    assert read_json(MessageMetadata, text) == (MessageMetadata(), [])


@pytest.mark.parametrize("text", ["{", "[1]", "null", "3"])
def test_what_is_no_object_is_a_problem_not_an_error(text: str) -> None:
    metadata, problems = read_json(SessionMetadata, text)
    assert metadata.title is None
    assert len(problems) == 1


def test_permissions_keep_the_rules_that_fit() -> None:
    text = '[{"permission":"a","pattern":"b","action":"allow"}, {"permission":"c"}, 3]'
    rules, problems = read_permissions(text)
    assert [rule.permission for rule in rules] == ["a"]
    assert {line.split(":")[0][:6] for line in problems} == {"rule 1", "rule 2"}
    assert read_permissions(None) == ([], [])
    assert read_permissions("{}")[1] == ["no JSON array but dict"]
