"""What a tool call did to one file: its text before and after, or how one is made of the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from store.conversation.outcomes import details_of
from store.conversation.touched import (
    FileTouch,
    edit_blocks,
    search_blocks,
    touched,
    written_text,
)
from store.text.diffs import DiffLine
from store.text.stored_json import as_dict, as_list

MOST_CHARACTERS = 32 << 20
"""Longer texts are not edited again."""

_BEFORE = ("originalFile", "originalContent", "original_content", "oldContent", "old_content",
           "before", "beforeContent", "previousContent", "previous_content")
_AFTER = ("newContent", "new_content", "after", "afterContent", "updatedContent",
          "updated_content")
_OLD = ("old_string", "oldString", "oldText", "old_str", "old_text", "search")
_NEW = ("new_string", "newString", "newText", "new_str", "new_text", "replace")
_ALL = ("replace_all", "replaceAll", "allow_multiple")
_RANGES = ("offset", "limit", "start_line", "end_line", "startLine", "endLine", "view_range",
           "line_range", "start", "end", "lines", "pages")


class DoesNotFit(Exception):
    """An edit cannot be made in a text; the message says why."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call did to a file.

    Attributes:
        before: The whole text before, where the source has it beside the result.
        made: Whether the call made the file, which was not there before.
        after: The whole text after, where the call or its result has it.
        is_written: Whether ``after`` is what the call asked to write.
        apply: Returns the text after for the text before (None: there was no file); it raises
            ``DoesNotFit``. None where the call does not say what it changed.
    """

    before: str | None = None
    made: bool = False
    after: str | None = None
    is_written: bool = False
    apply: Callable[[str | None], str] | None = None


NO_EFFECT = Effect()


def effect_of(data: Mapping[str, Any], number: int, *, prose: bool = False) -> Effect:
    """Return what a call did to one of its files.

    Args:
        data: The decoded part.
        number: Which of the files of the part, as in ``FileUse.number``.
        prose: Whether edits are in the text of answers, as aider writes them.
    """
    if prose and data.get("type") == "text":
        files: Sequence[FileTouch] = list(edit_blocks(str(data.get("text") or "")))
    else:
        touch = touched(data)
        files = touch.files if touch is not None else ()
    if number >= len(files):
        return NO_EFFECT
    file = files[number]
    arguments = _arguments(data)
    beside = as_dict(details_of(data).get("structured"))
    whole = _recorded(beside, file.path, only=len(files) == 1)
    before, after = _first(whole, _BEFORE), _first(whole, _AFTER)
    made = before is None and beside.get("type") in ("create", "add")
    if file.kind == "write":
        text = written_text(arguments) if len(files) == 1 else None
        if text is None and after is None:
            text = _added_text(file.diff())
        return Effect(before, made, text if text is not None else after, text is not None)
    if file.kind in ("delete", "change"):
        return Effect(before)
    if after is not None:
        return Effect(before, made, after)
    edits = list(_replacements(arguments)) if len(files) == 1 else []
    if len(edits) == 1 and not edits[0].old:
        # Agents take an edit without an old text for the whole text of a new file.
        return Effect(before, made, edits[0].new, True)
    return Effect(before, made, apply=_applying(file, arguments, beside, edits))


def text_read(data: Mapping[str, Any], *, plain: bool = False) -> str | None:
    """Return the whole text that a call read; None for a part of it, or where that is not known.

    A result that numbers its lines does not say whether the last one has a newline: it gets one.

    Args:
        data: The decoded part.
        plain: Whether results of this agent are a file's text and nothing else.
    """
    file = as_dict(as_dict(details_of(data).get("structured")).get("file"))
    text = file.get("content")
    if isinstance(text, str) and file.get("startLine") == 1:
        whole = file.get("numLines") == file.get("totalLines") is not None
        return text if whole else None
    output = data.get("output")
    if any(name in _arguments(data) for name in _RANGES):
        return None
    if isinstance(output, dict):
        whole = output.get("was_truncated") is False and output.get("offset", 0) == 0
        text = output.get("content")
        return text if whole and isinstance(text, str) else None
    if not isinstance(output, str):
        return None
    numbered = _numbered_text(output)
    if numbered is not None or not plain:
        return numbered
    short = len(output) <= MOST_READ and output.count("\n") < MOST_LINES_READ
    return output if short and not _CUT.search(output) else None


MOST_READ, MOST_LINES_READ = 20_000, 1_000
"""Characters and lines of a reading that says nothing of its end and still counts as whole:
agents cut longer ones."""
_CUT = re.compile(r"truncated|<system-reminder>|\[\.\.\.|\bShowing lines\b|\bmore lines\b", re.I)
_END = re.compile(r"\n*\((?:End of file - total|File has) \d+ lines(?: total\.)?\)\s*$")
_WRAPPED = re.compile(r"<(file|content)>\n(?P<lines>.*?)\n*</\1>", re.S)
_HEADED = re.compile(r"Here's the result of running `cat -n` on [^\n]*:\n")
_NUMBERED = re.compile(r" {0,8}0*(\d{1,9})(?:\u2192|\t|\| ?|: | \| |[:|]?$)")


def _numbered_text(output: str) -> str | None:
    """Return the text of a result that numbers all lines of a file; None for other results."""
    wrapped = _WRAPPED.search(output)
    body = wrapped["lines"] if wrapped is not None else output
    body = body.partition("\n\n<system-reminder>")[0]
    headed = _HEADED.match(body)
    body = body[headed.end() :] if headed is not None else body
    ended = _END.search(body)
    body = (body[: ended.start()] if ended is not None else body).removesuffix("\n")
    rows = body.split("\n")
    if ended is None and (len(rows) >= MOST_LINES_READ or len(body) > MOST_READ):
        return None
    lines = []
    for number, line in enumerate(rows, 1):
        head = _NUMBERED.match(line)
        if head is None or head[1] != str(number):
            return None
        lines.append(line[head.end() :])
    # An empty last line is what follows the last newline, where a tool numbers that too.
    if len(lines) > 1 and not lines[-1] and ended is None:
        lines.pop()
    return "\n".join([*lines, ""])


def _arguments(data: Mapping[str, Any]) -> dict[str, Any]:
    given = data.get("input") if data.get("input") is not None else data.get("rawInput")
    return {"input": given} if isinstance(given, str) else as_dict(given)


def _recorded(beside: dict[str, Any], path: str, *, only: bool) -> list[dict[str, Any]]:
    """Return the objects beside a result that may hold the whole text of a file.

    Args:
        beside: What the source has beside the result.
        path: The file, as its agent wrote it.
        only: Whether the call touched no other file.
    """
    listed = [as_dict(one) for one in as_list(beside.get("files") or beside.get("fileEdits"))]
    own = [one for one in listed if path in one.values()]
    return [*own, as_dict(beside.get("filediff")), beside] if only else own


def _first(places: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str | None:
    found = (place[name] for place in places for name in names if name in place)
    return next((text for text in found if isinstance(text, str)), None)


def _added_text(lines: Sequence[DiffLine]) -> str | None:
    """Return the text of a file that a patch makes; None for another patch."""
    if any(line.sign in ("-", " ") for line in lines):
        return None
    texts = [line.text for line in lines if line.sign == "+"]
    return "\n".join([*texts, ""]) if texts else None


# Edits


@dataclass(frozen=True, slots=True)
class _Replacement:
    old: str
    new: str
    all: bool
    first: bool = False
    """Take the first of several places, as agents do whose blocks are whole lines."""


def _applying(
    file: FileTouch, arguments: dict[str, Any], beside: dict[str, Any],
    replaced: Sequence[_Replacement],
) -> Callable[[str | None], str] | None:
    """Return what makes an edit again; None where the call does not say what it changed.

    Args:
        file: The touch.
        arguments: The call's input.
        beside: What the source has beside its result.
        replaced: The texts that the call replaces.
    """
    inserted = _insertion(arguments)
    lines = file.diff()
    if not replaced and inserted is None and not any(line.sign in "+-" for line in lines):
        return None
    by_person = beside.get("userModified") is True

    def apply(text: str | None) -> str:
        if text is not None and len(text) > MOST_CHARACTERS:
            raise DoesNotFit("the file is too large to make its edits again")
        if inserted is not None:
            return _inserted(text, *inserted)
        if replaced and not by_person:
            try:
                return _replaced(text, replaced)
            except DoesNotFit:
                if not beside.get("structuredPatch"):
                    raise
        return patched(text, lines)

    return apply


def _replacements(arguments: Mapping[str, Any]) -> Iterator[_Replacement]:
    for edit in as_list(arguments.get("edits")) or [arguments]:
        edit = as_dict(edit)
        old, new = _first([edit], _OLD), _first([edit], _NEW)
        if old is not None:
            every = any(edit.get(name) is True for name in _ALL)
            count = edit.get("expected_replacements")
            yield _Replacement(old, new or "", every or (type(count) is int and count > 1))
    for old, new in search_blocks(arguments):
        yield _Replacement(old, new, all=False, first=True)


def _replaced(text: str | None, edits: Sequence[_Replacement]) -> str:
    made = text or ""
    for edit in edits:
        if not edit.old:
            if made:
                raise DoesNotFit("the edit is of an empty file, and this one is not")
            made = edit.new
            continue
        if text is None:
            raise DoesNotFit("there was no file to edit")
        old, new = edit.old, edit.new
        count = made.count(old)
        # Agents edit such files with plain newlines, and write them back with their own.
        if "\r\n" in made and (not count or made.count("\n") == made.count("\r\n")):
            old, new = (re.sub(r"\r?\n", "\r\n", each) for each in (old, new))
            count = made.count(old)
        if not count:
            raise DoesNotFit("the text that the edit replaces is not in it")
        if count > 1 and not edit.all and not edit.first:
            raise DoesNotFit(f"the text that the edit replaces is in it {count} times")
        made = made.replace(old, new) if edit.all else made.replace(old, new, 1)
    return made


def _insertion(arguments: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return the line behind which a call inserts a text, and the text."""
    line = arguments.get("insert_line")
    text = _first([arguments], ("insert_text", *_NEW))
    if type(line) is int and line >= 0 and text is not None and not _first([arguments], _OLD):
        return line, text
    return None


def _inserted(text: str | None, line: int, new: str) -> str:
    if text is None:
        raise DoesNotFit("there was no file to edit")
    rows = text.split("\n")
    if line > len(rows):
        raise DoesNotFit("the file has fewer lines than the edit counts")
    ending = _ending(rows)
    added = [row.removesuffix("\r") + ending if ending else row
             for row in new.removesuffix("\n").split("\n")]
    return "\n".join([*rows[:line], *added, *rows[line:]])


def _ending(rows: Sequence[str]) -> str:
    """Return what the rows of a text have before their newline."""
    return "\r" if len(rows) > 1 and rows[0].endswith("\r") else ""


def patched(text: str | None, lines: Sequence[DiffLine]) -> str:
    """Return a text with the hunks of a patch applied.

    Args:
        text: The text before; None where there was no file.
        lines: The hunks, separated by lines with the sign ``@``.

    Raises:
        DoesNotFit: A hunk's lines are not in the text.
    """
    if text is None:
        made = _added_text(lines)
        if made is None:
            raise DoesNotFit("there was no file to edit")
        return made
    rows = text.split("\n")
    ending = _ending(rows)
    out: list[str] = []
    at = 0
    label = ""
    for is_gap, group in groupby(lines, key=lambda line: line.sign == "@"):
        hunk = list(group)
        if is_gap:
            label = hunk[-1].text
            continue
        place = _place(rows, hunk, at, len(out), label)
        out += rows[at:place]
        at = place
        for line in hunk:
            if line.sign == "+":
                out.append(line.text.removesuffix("\r") + ending if ending else line.text)
            else:
                # A line of context is the file's own: they may differ in blanks at the end.
                out += [rows[at]] if line.sign == " " else []
                at += 1
    return "\n".join([*out, *rows[at:]])


def _place(rows: list[str], hunk: Sequence[DiffLine], at: int, written: int, label: str) -> int:
    """Return the row where a hunk begins.

    Args:
        rows: The text before.
        hunk: Its lines.
        at: The first row that no hunk has passed.
        written: Rows of the text after that are made already.
        label: What the hunk's head names, such as a function.

    Raises:
        DoesNotFit: Its lines are not in the text.
    """
    old = [line.text.rstrip() for line in hunk if line.sign != "+"]
    first = hunk[0]
    near = None
    if first.number is not None:
        # Removed lines have the numbers of the text before, others those of the text after.
        near = first.number - 1 - (0 if first.sign == "-" else written - at)
    if not old:
        if near is None or not at <= near <= len(rows):
            if rows == [""]:
                return 0
            raise DoesNotFit("the patch does not say where its lines belong")
        return near
    if label and near is None:
        named = (row for row in range(at, len(rows)) if label.strip() in rows[row])
        at = next(named, at)
    found = [row for row in range(at, len(rows) - len(old) + 1)
             if rows[row].rstrip() == old[0]
             and [each.rstrip() for each in rows[row : row + len(old)]] == old]
    if not found:
        raise DoesNotFit("the lines that the patch replaces are not in it")
    return found[0] if near is None else min(found, key=lambda row: abs(row - near))
