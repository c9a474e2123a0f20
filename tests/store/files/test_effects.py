"""What a call did to a file: texts before and after, and edits that are made again."""

from __future__ import annotations

from typing import Any

import pytest

from store.conversation.calls import describe
from store.conversation.touched import touched
from store.files.comparing import differences
from store.files.effects import DoesNotFit, effect_of, text_read
from store.text.diffs import DiffLine, tally

OLD = "one\ntwo\nthree\ntwo\n"


def call(name: str, given: Any, **more: Any) -> dict[str, Any]:
    return {"type": f"tool-{name}", "toolCallId": "c", "state": "output-available",
            "input": given, "output": "ok", **more}  # fmt: skip


def beside(**structured: Any) -> dict[str, Any]:
    return {"resultProviderMetadata": {"backscroll": {"structured": structured}}}


def after(data: dict[str, Any], text: str | None = OLD, number: int = 0) -> str | None:
    effect = effect_of(data, number)
    if effect.after is not None:
        return effect.after
    return effect.apply(text) if effect.apply is not None else None


PATCH = """*** Begin Patch
*** Update File: a.py
@@
 one
-two
+2
 three
*** Add File: b.py
+new
*** End Patch"""


@pytest.mark.parametrize(("data", "made"), [
    (call("Edit", {"file_path": "a", "old_string": "three", "new_string": "3"}),
     "one\ntwo\n3\ntwo\n"),
    (call("Edit", {"file_path": "a", "old_string": "two", "new_string": "2",
                   "replace_all": True}), "one\n2\nthree\n2\n"),
    (call("edit", {"filePath": "a", "oldString": "one\n", "newString": ""}), "two\nthree\ntwo\n"),
    (call("MultiEdit", {"file_path": "a", "edits": [
        {"old_string": "one", "new_string": "1"}, {"old_string": "1\n", "new_string": "0\n"},
    ]}), "0\ntwo\nthree\ntwo\n"),
    (call("str_replace_editor", {"command": "str_replace", "path": "a", "old_str": "three",
                                 "new_str": "3"}), "one\ntwo\n3\ntwo\n"),
    (call("str_replace_based_edit_tool", {"command": "insert", "path": "a", "insert_line": 1,
                                          "insert_text": "x\n"}), "one\nx\ntwo\nthree\ntwo\n"),
    (call("Write", {"file_path": "a", "content": "whole"}), "whole"),
    (call("str_replace_editor", {"command": "create", "path": "a", "file_text": "made"}), "made"),
    (call("replace", {"file_path": "a", "old_string": "", "new_string": "made"}), "made"),
    (call("apply_patch", {"input": PATCH}), "one\n2\nthree\ntwo\n"),
    (call("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
     "one\n2\nthree\ntwo\n"),
    (call("replace_in_file", {"path": "a", "diff":
        "------- SEARCH\ntwo\n=======\n2\n+++++++ REPLACE"}), "one\n2\nthree\ntwo\n"),
    (call("apply_diff", {"path": "a", "diff": "<<<<<<< SEARCH\n:start_line:3\n-------\nthree\n"
                         "=======\n3\n>>>>>>> REPLACE"}), "one\ntwo\n3\ntwo\n"),
    (call("Edit", {"file_path": "a"}, **beside(structuredPatch=[
        {"oldStart": 3, "newStart": 3, "lines": [" three", "-two", "+2"]}])),
     "one\ntwo\nthree\n2\n"),
    (call("edit", {"filePath": "a", "oldString": "x", "newString": "y"},
          **beside(filediff={"file": "a", "before": "b", "after": "c"})), "c"),
    (call("bash", {"command": "sed -i s/a/b/ a"}), None),
])  # fmt: skip
def test_a_call_makes_the_text_again(data: dict[str, Any], made: str | None) -> None:
    assert after(data) == made


def test_a_patch_that_adds_a_file_has_its_text() -> None:
    assert after(call("apply_patch", {"input": PATCH}), None, 1) == "new\n"


def test_line_ends_of_the_file_stay() -> None:
    text = "one\r\ntwo\r\nthree\r\n"
    edit = call("Edit", {"file_path": "a", "old_string": "one\ntwo", "new_string": "1\n2"})
    assert after(edit, text) == "1\r\n2\r\nthree\r\n"
    assert after(call("apply_patch", {"input": PATCH}), text) == "one\r\n2\r\nthree\r\n"
    one = call("Edit", {"file_path": "a", "old_string": "two", "new_string": "2\nand\r\n3"})
    assert after(one, text) == "one\r\n2\r\nand\r\n3\r\nthree\r\n"
    assert after(one, "one\ntwo\r\n") == "one\n2\nand\r\n3\r\n"
    insert = call("str_replace_editor", {"command": "insert", "path": "a", "insert_line": 1,
                                         "new_str": "1\n2\n"})
    assert after(insert, text) == "one\r\n1\r\n2\r\ntwo\r\nthree\r\n"


@pytest.mark.parametrize("data", [
    call("Edit", {"file_path": "a", "old_string": "nowhere", "new_string": "3"}),
    call("Edit", {"file_path": "a", "old_string": "two", "new_string": "2"}),
    call("apply_patch", {"input": PATCH.replace("-two", "-four")}),
    call("str_replace_editor", {"command": "insert", "path": "a", "insert_line": 99,
                                "new_str": "x"}),
])  # fmt: skip
def test_an_edit_that_does_not_fit_is_not_guessed(data: dict[str, Any]) -> None:
    with pytest.raises(DoesNotFit):
        after(data)


def test_a_person_changed_the_edit() -> None:
    edit = call("Edit", {"file_path": "a", "old_string": "one", "new_string": "1"}, **beside(
        userModified=True, structuredPatch=[
            {"oldStart": 1, "newStart": 1, "lines": ["-one", "+uno", " two"]}]))
    assert after(edit) == "uno\ntwo\nthree\ntwo\n"


@pytest.mark.parametrize(("data", "text"), [
    (call("Read", {"file_path": "a"}, **beside(
        file={"content": "x\n", "startLine": 1, "numLines": 2, "totalLines": 2})), "x\n"),
    (call("Read", {"file_path": "a"}, **beside(
        file={"content": "x\n", "startLine": 1, "numLines": 2, "totalLines": 9})), None),
    (call("read", {"filePath": "a"}, output="<content>\n1: x\n2: \n\n(End of file - total 2 lines)"
          "\n</content>"), "x\n\n"),
    (call("read", {"filePath": "a", "offset": 1}, output="<content>\n1: x\n\n(End of file - total"
          " 1 lines)\n</content>"), None),
    (call("read", {"filePath": "a"}, output="x"), None),
    (call("view", {"file_path": "a"}, output="<file>\n     1|x\n     2|y\n</file>\n"), "x\ny\n"),
    (call("read_file", {"path": "a"}, output="1 | x\n\n(File has 1 lines total.)"), "x\n"),
    (call("Read", {"file_path": "a"}, output="     1\u2192x\n     2\u2192\n\n<system-reminder>"),
     "x\n"),
    (call("Read", {"file_path": "a"}, output="1\tx\n3\ty"), None),
    (call("Read", {"file_path": "a"}, output="2\tx\n3\ty"), None),
    (call("Read", {"file_path": "a"}, output={"content": "x", "was_truncated": False}), "x"),
    (call("Read", {"file_path": "a"}, output={"content": "x", "was_truncated": True}), None),
])  # fmt: skip
def test_only_a_reading_that_says_that_it_is_whole_counts(
    data: dict[str, Any], text: str | None
) -> None:
    assert text_read(data) == text


@pytest.mark.parametrize(("output", "text"), [
    ("x\n", "x\n"), ("x\n" * 1_500, None), ("[... output truncated ...]\nx\n", None),
])  # fmt: skip
def test_a_plain_reading_counts_where_it_is_short(output: str, text: str | None) -> None:
    data = call("read_file", {"path": "a"}, output=output)
    assert text_read(data) is None
    assert text_read(data, plain=True) == text


REPEATED = (
    "*** Begin Patch\n*** Update File: a\n@@\n-one\n-two\n-three\n+one\n+2\n+three\n*** End Patch"
)
COUNTED: list[tuple[dict[str, Any], str, str]] = [
    # A block of removed lines and one of added ones that repeats them.
    (call("apply_patch", {"input": REPEATED}), "one\ntwo\nthree\n", "one\n2\nthree\n"),
    (call("shell", {"command": ["apply_patch", REPEATED]}), "one\ntwo\nthree\n", "one\n2\nthree\n"),
    (call("Edit", {"file_path": "a", "old_string": "one\n", "new_string": "0\none\n"}, **beside(
        userModified=True, structuredPatch=[
            {"oldStart": 1, "newStart": 1, "lines": ["-one", "+0", "+one", " two"]}])),
     "one\ntwo\n", "0\none\ntwo\n"),
    (call("Edit", {"file_path": "a", "old_string": "one\ntwo", "new_string": "one\n2\ntwo"}),
     "one\ntwo\n", "one\n2\ntwo\n"),
    (call("replace_in_file", {"path": "a", "diff": "<<<<<<< SEARCH\none\ntwo\n=======\none\n2\n"
                              ">>>>>>> REPLACE"}), "one\ntwo\n", "one\n2\n"),
    (call("search_replace", {"file_path": "a", "content": "<<<<<<< SEARCH\none\n=======\n1\n"
                             ">>>>>>> REPLACE"}), "one\ntwo\n", "1\ntwo\n"),
    (call("Write", {"file_path": "a", "content": "one\n"}, **beside(
        type="update", structuredPatch=[])), "one\n", "one\n"),
    (call("Write", {"file_path": "a", "content": "<<<<<<< SEARCH\none\n=======\n1\n"
                    ">>>>>>> REPLACE\n"}), "",
     "<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n"),
    # The source counted each place.
    (call("edit", {"filePath": "a", "oldString": "one", "newString": "1", "replaceAll": True},
          **beside(filediff={"additions": 2, "deletions": 2})), "one\none\n", "1\n1\n"),
]  # fmt: skip


def test_a_difference_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out = []

    def noted(old: str, new: str) -> list[DiffLine]:
        worked_out.append((old, new))
        return differences(old, new)

    monkeypatch.setattr("store.conversation.touched.between", noted)
    shown = describe(call("Edit", {"file_path": "a", "old_string": "1\n", "new_string": "2\n3\n"}))
    assert (shown.changed, worked_out) == ((2, 1), [("1\n", "2\n3\n")])


@pytest.mark.parametrize(("data", "old", "new"), COUNTED)
def test_lines_are_counted_by_one_rule(data: dict[str, Any], old: str, new: str) -> None:
    found = touched(data)
    assert found is not None
    counted = [file.counts() or (0, 0) for file in found.files]
    expected = tally(differences(old, new))
    assert (sum(plus for plus, _ in counted), sum(minus for _, minus in counted)) == expected
    shown = [f"{sign}{count}" for sign, count in zip("+-", expected, strict=True) if count]
    assert [text for text, _ink in describe(data).marks if text[1:].isdigit()] == shown
    effect = effect_of(data, 0)
    after = effect.after if effect.apply is None else effect.apply(old or None)
    assert after == new
