"""What data parts say: screens and pages use the same words."""

from __future__ import annotations

from store.conversation.data_parts import (
    compaction_of,
    error_of,
    event_of,
    patch_of,
    retry_of,
    todo_of,
    words_of,
)


def test_errors_retries_and_compactions_have_words() -> None:
    assert error_of("data-error", {"data": {"message": "full", "status": 529}}) == ("529", "full")
    assert error_of("data-error", {"type": "data-error", "text": "x"}) == ("", "x")
    again = {"attempt": 2, "max_attempts": 3, "status": 500, "delay_ms": 2000}
    assert retry_of({"data": again}) == ("try 2 of 3", "", ["status 500", "again after 2 s"])
    sizes = {"pre_tokens": 168_000, "summary_tokens": 412, "auto": True}
    assert compaction_of({"data": sizes}) == ("168k to 412 tokens", "by itself", "")
    assert compaction_of({"data": {"summary": " "}}) == ("", "on request", "")


def test_other_parts_have_a_name_and_words() -> None:
    assert event_of("data-event", {"data": {"name": "ide_file", "details": "a.py"}}) == (
        "ide file", "a.py")  # fmt: skip
    assert event_of("data-snapshot", {"data": {"hash": "h"}}) == ("snapshot", "hash: h")
    assert words_of("data-question", {"data": {"text": "which?"}}) == ("question", "which?")
    assert words_of("data-weather", {}) is None


def test_check_lists_and_patches_are_read_in_each_form() -> None:
    items = [{"content": "a", "status": "completed"}]
    for data in (items, {"todos": items}, {"items": items}, {"plan": items}):
        assert todo_of({"data": data}) == [("completed", "a")]
    assert todo_of({"data": {"x": 1}}) == []
    states = ("In Progress", "done", "in-progress", "blocked", None)
    assert todo_of({"data": [{"step": "s", "status": state} for state in states]}) == [
        ("in_progress", "s"), ("completed", "s"), ("in_progress", "s"), ("pending", "s (blocked)"),
        ("pending", "s"),
    ]  # fmt: skip
    patch = {"files": ["/w/a.py", "/v/b.py"], "diff": "@@ -1 +1 @@\n-a\n+b"}
    names, lines = patch_of({"data": patch}, "/w")
    assert names == "a.py, /v/b.py" and [line.sign for line in lines] == ["-", "+"]
    assert patch_of({"data": {"hash": "h"}}, None) == ("hash: h", [])
