"""The difference of two contents of a file."""

from __future__ import annotations

from store.files.comparing import as_text, differences


def test_what_is_text() -> None:
    assert as_text(None) == "" and as_text("ü\r\n".encode()) == "ü\r\n"
    assert as_text(b"PK\0\3") is None and as_text(b"\xff\xfe") is None


def test_a_missing_newline_at_the_end_is_a_difference() -> None:
    found = [(line.sign, line.number, line.text) for line in differences("a\nb\n", "a\nb")]
    assert found == [(" ", 1, "a"), ("-", 2, "b"), ("+", 2, "b  (no newline at the end)")]
    assert differences("a\nb", "a\nb") == [] and differences("", "") == []
    assert [line.sign for line in differences("", "a")] == ["+"]
