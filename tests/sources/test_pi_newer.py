"""pi 1.6: what it counts beside the answers, its system messages, ids chosen by hand.

The sample was written by the program's own session manager.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.pi import PiSource
from tests.sources.grown import check_records, grows_like_a_whole, read_all

ROOT = Path(__file__).parent.parent / "data" / "pi" / "1.6.0"
FIRST = "01a22021-5fba-7028-98ae-8b7f11810f61"
FORK = "01a22021-6051-7028-98ae-8b810ba64eb2"


def drafts() -> dict[str, SessionDraft]:
    found, problems = read_all(PiSource(), ROOT)
    assert problems == []
    return found


def message(draft: SessionDraft, source_id: str) -> MessageDraft:
    return next(one for one in draft.messages if one.source_id == source_id)


def spent(draft: SessionDraft, bucket: str) -> int:
    return sum(one.metadata.get("usage", {}).get(bucket, 0) for one in draft.messages)


def test_all_that_was_used_is_counted() -> None:
    draft = drafts()[FIRST]
    # Ten answers, a call's own model, the summaries of a branch and of a compaction, a
    # request that kept the cache warm.
    assert spent(draft, "input") == sum(range(10, 18)) + 100 + 7 + 70
    assert spent(draft, "reasoning") == 5 + 50
    assert spent(draft, "output") == sum(range(20, 28)) + 200 + 8 + 80 - 55
    assert spent(draft, "cache_read") == 12 * 3
    assert spent(draft, "cache_write") == 12 * 2
    check_records(draft)


def test_what_was_used_beside_the_answers_says_what_it_was_for() -> None:
    draft = drafts()[FIRST]
    beside = {
        one.metadata["backscroll"]["initiator"]: one.source_id
        for one in draft.messages
        if one.metadata.get("backscroll", {}).get("no_answer")
    }
    assert beside == {
        "tool": "87c17bcb:usage",
        "branch_summary": "a223b052:usage",
        "cache_warm": "27680f76:usage",
        "compaction": "7d29ae5c:usage",
    }
    assert message(draft, "27680f76:usage").metadata["model"] == {
        "provider_id": "anthropic", "model_id": "claude-x"}  # fmt: skip


def test_a_system_message_is_the_prompt_of_the_answers_and_no_message() -> None:
    draft = drafts()[FIRST]
    digest = message(draft, "9bef8db2").metadata["system_prompt_digest"]
    assert draft.system_prompts == {digest: "You are helpful.\n\n/tmp"}
    assert all(one.source_id != "37b9bd91" for one in draft.messages)
    # A branch that begins anew has no prompt of its own.
    assert "system_prompt_digest" not in message(draft, "8ae5116d").metadata


def test_the_call_says_how_long_it_took() -> None:
    call = message(drafts()[FIRST], "5ac4443b").parts[1]
    assert call.data["resultProviderMetadata"]["backscroll"]["duration_ms"] == 1234
    assert message(drafts()[FIRST], "5ac4443b").metadata["backscroll"]["effort"] == "high"


def test_a_parent_is_known_by_an_id_chosen_by_hand(tmp_path: Path) -> None:
    found = drafts()
    lineage = found["my_own.id"].lineage
    assert lineage is not None
    assert (lineage.kind, lineage.parent_source_id) == ("fork", FIRST)
    folder = tmp_path / "--w--"
    folder.mkdir()
    (folder / "2026-11-28T03-09-48-000Z_ab.jsonl").write_text(
        '{"type":"session","version":3,"id":"ab","timestamp":"2026-11-28T03:09:48.000Z",'
        '"cwd":"/w","parentSession":"/s/2026-11-28T03-09-47-999Z_my_own.id.jsonl"}\n'
        '{"type":"message","id":"00000001","parentId":null,'
        '"timestamp":"2026-11-28T03:09:40.000Z","message":{"role":"user","content":"q"}}\n'
    )
    (child,) = read_all(PiSource(), tmp_path)[0].values()
    assert child.lineage is not None
    assert (child.lineage.kind, child.lineage.parent_source_id) == ("fork", "my_own.id")


def test_copies_of_what_was_used_are_known_as_copies() -> None:
    found = drafts()
    fork = found["my_own.id"]
    own = [one for one in fork.messages if one.inherited_from is None]
    assert [one.parts[0].data["text"] for one in own] == ["q"]
    assert {one.source_id for one in fork.messages} >= {
        one.source_id for one in found[FIRST].messages
    }
    assert [one.source_id for one in found[FORK].messages if one.inherited_from is None] == [
        "4f0b93f0", "000b0095"]  # fmt: skip


@pytest.mark.parametrize("step", [None, 60, 1777])
def test_followed_it_is_the_same_through_all_its_branches(tmp_path: Path, step: int | None) -> None:
    root = tmp_path / "sessions"
    shutil.copytree(ROOT, root)
    (file,) = root.rglob(f"*{FIRST}.jsonl")
    grows_like_a_whole(PiSource, root, file, step=step)
