"""Transcripts that Cursor writes beside its stores: words and calls, without results or times.

Source: the Cursor format page, section 4. They count only for chats that no database has.

They have neither ids nor times, so that nothing tells a prompt that was typed twice from a file
that holds its content twice but the answers: a model does not say the same again, word for word.
``store.sources.base.repeats`` looks at those of lines.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from store.sources.base.content_blocks import blocks_of
from store.sources.base.databases import decoded
from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.growing import LINES, entries_of, stamp_of
from store.sources.base.json_lines import Record
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.protocol import FileStamp
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import mapping, string
from store.sources.cursor.cli import asked
from store.sources.cursor.workspaces import KIND

FOLDER, HELPERS, PROJECTS = "agent-transcripts", "subagents", "projects"
TEXT = ".txt"
_REDACTED = "[REDACTED]"
_NO_CHANCE = 20
"""Characters of answers that are not the same twice by chance."""
_MARK = re.compile(
    r"^(?:(user|assistant):|\[Thinking\](.*)|\[Tool call\] (.+)|\[Tool result\](.*))[ \t]*$",
    re.M,
)
_ARGUMENT = re.compile(r"^[ \t]*([\w-]+)(?:: ?|=)(.*)$")


def is_transcript(first: dict[str, Any]) -> bool:
    """Return whether a file's first line is one of a transcript."""
    return (
        first.keys() <= {"role", "message"}
        and first.get("role") in ("user", "assistant")
        and ("content" in mapping(first.get("message")))
    )


def files_in(folder: str) -> Iterator[str]:
    """Yield the transcripts of a project, those of helpers too."""
    for entry in entries_of(folder):
        if entry.name.endswith((LINES, TEXT)):
            yield entry.path
            continue
        for inner in entries_of(entry.path) if entry.is_dir() else ():
            if inner.name.endswith((LINES, TEXT)):
                yield inner.path
        helpers = os.path.join(entry.path, HELPERS)
        for inner in entries_of(helpers) if os.path.isdir(helpers) else ():
            if inner.name.endswith(LINES):
                yield inner.path


def name_of(path: str) -> str:
    """Return the id of a transcript's chat."""
    return os.path.splitext(os.path.basename(path))[0]


def stamp_at(path: str) -> FileStamp | None:
    """Return the stamp of a file; None where it is gone."""
    try:
        return stamp_of(path, os.stat(path))
    except OSError:
        return None


def lines_draft(path: str, lines: list[Record], records: list[bytes], at: int) -> SessionDraft:
    """Return the chat of a transcript of JSON lines.

    Args:
        path: The file.
        lines: Its lines that are JSON objects.
        records: All its lines.
        at: When the file was written, epoch ms.
    """
    found: list[MessageDraft] = []
    ended = False
    for line in lines:
        role, content = line.data.get("role"), mapping(line.data.get("message")).get("content")
        ended = line.data.get("type") == "turn_ended"
        if role not in ("user", "assistant"):
            continue
        name = str(len(found))
        parts = [_part(block, f"{name}:{nth}", at, line.number)
                 for nth, block in enumerate(blocks_of(content))]  # fmt: skip
        found.append(_message(name, role == "user", parts, at, line.number))
    return _draft(path, found, list(records), at, ended=ended)


def text_draft(path: str, body: bytes, at: int) -> SessionDraft:
    """Return the chat of an old transcript of plain text.

    Args:
        path: The file.
        body: Its bytes.
        at: When it was written, epoch ms.
    """
    text = body.decode("utf-8", "replace").replace("\r\n", "\n")
    found: list[MessageDraft] = []
    marks = [*_MARK.finditer(text)]
    for nth, mark in enumerate(marks):
        end = marks[nth + 1].start() if nth + 1 < len(marks) else len(text)
        said = text[mark.end() : end].strip("\n")
        if mark[1] is not None:
            found.append(_message(str(nth), mark[1] == "user", _texts(said, at), at, 0))
            continue
        if not found or found[-1].role != "assistant":
            found.append(MessageDraft(str(nth), "assistant", at, at))
        parts = found[-1].parts
        below, prose = _parted(text[mark.end() + 1 : end])
        if mark[2] is not None:
            if not mark[2].strip() and not said.lstrip("\n").startswith((" ", "\t")):
                below, prose = said, ""
            thought = "\n".join(filter(None, (mark[2].strip(), below)))
            parts += [reasoning_part(thought, at, 0)] if thought else []
        elif mark[3] is not None:
            parts.append(call_part(mark[3].strip(), str(nth), _arguments(below), at, 0))
        elif below and parts and parts[-1].tool_call_id is not None:
            parts[-1].tool_state = parts[-1].data["state"] = "output-available"
            parts[-1].data["output"] = below
        parts += _texts(prose, at)
    found = [each for each in found if each.parts]
    _leave_out_copies(found)
    return _draft(path, found, [body], at, ended=True)


def _parted(said: str) -> tuple[str, str]:
    """Return what belongs to a mark, and the words of the answer that follow it.

    Those begin at the first line that is not indented: after a blank line, or after indented ones.
    """
    lines = said.rstrip().split("\n")
    indented = next((line for line in lines if line.strip()), "")[:1].isspace()
    for number, line in enumerate(lines):
        blank_above = number > 0 and not lines[number - 1].strip()
        if line.strip() and not line[0].isspace() and (indented or blank_above):
            return "\n".join(lines[:number]).rstrip(), "\n".join(lines[number:])
    return said.strip("\n"), ""


def _arguments(below: str) -> dict[str, Any]:
    """Return a call's arguments: a JSON object, or a line each, which others go on with."""
    given = decoded(textwrap.dedent(below).strip())
    if isinstance(given, dict):
        return given
    found: dict[str, Any] = {}
    for line in below.split("\n"):
        argument = _ARGUMENT.match(line)
        if argument is not None:
            found[argument[1]] = argument[2]
        elif found:
            found[[*found][-1]] += f"\n{line}"
    return found


def _texts(said: str, at: int) -> list[PartDraft]:
    return [text_part(said, at, 0)] if said else []


def _part(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    kind, text = block.get("type"), block.get("text")
    if kind == "text":
        return text_part(text if isinstance(text, str) else "", at, record)
    if kind == "tool_use":
        return call_part(block.get("name"), string(block.get("id")) or name, block.get("input"),
                         at, record)  # fmt: skip
    return data_part("event", {"name": str(kind or "block"), "details": block}, at, record)


def _message(
    name: str, is_prompt: bool, parts: list[PartDraft], at: int, record: int
) -> MessageDraft:
    """Return a message: a prompt without its tags, an answer without what was left out.

    Args:
        name: Its id.
        is_prompt: Whether a person wrote it.
        parts: Its parts.
        at: Epoch ms.
        record: The number of its record.
    """
    metadata: dict[str, Any] = {}
    if is_prompt:
        typed = [asked(part.data["text"]) for part in parts if part.type == "text"]
        metadata["origin"] = "human" if any(each is not None for each in typed) else "meta"
        for part in parts:
            if part.type == "text":
                part.data["text"] = asked(part.data["text"]) or part.data["text"]
    else:
        parts = [part for part in parts if part.data.get("text") != _REDACTED]
    return MessageDraft(name, "user" if is_prompt else "assistant", at, at, metadata, parts,
                        records=() if parts else (record,))  # fmt: skip


def _draft(
    path: str, found: list[MessageDraft], records: list[bytes], at: int, *, ended: bool
) -> SessionDraft:
    draft = SessionDraft(name_of(path), path, KIND, at, at, messages=found, records=records,
                         partial=True, names_count=True)  # fmt: skip
    draft.title = first_prompt(found)
    draft.title_from = FIRST_PROMPT if draft.title else None
    above, folder = os.path.split(os.path.dirname(path))
    draft.metadata["backscroll"] = {"surface": "transcript"}
    if folder == HELPERS:
        draft.lineage = LineageDraft("subagent", os.path.basename(above))
    if ended:
        draft.metadata["activity"] = {"state": "ended", "from": "stored", "since": at}
    return draft


def _leave_out_copies(found: list[MessageDraft]) -> None:
    """Leave out what repeats all that was said before it, where that is no chance."""
    said = [_said(message) for message in found]
    weight, end = 0, 0
    while 2 * end < len(said):
        texts = (str(part.data.get("text", "")) for part in found[end].parts)
        weight += sum(map(len, texts)) if found[end].role == "assistant" else 0
        end += 1
        while weight >= _NO_CHANCE and said[:end] == said[end : 2 * end]:
            del said[end : 2 * end], found[end : 2 * end]


def _said(message: MessageDraft) -> tuple[str, list[str]]:
    """Return who said what; a call's id is not looked at, as most have none."""
    return message.role, [
        "".join(str(part.data.get(key, "")) for key in ("text", "input", "output"))
        for part in message.parts
    ]
