"""What of a part, its message and its session can be copied."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from store.conversation.readable import output_text
from store.engine.database import Database
from store.engine.values import decoded
from store.rows import PartRow, SessionRow, is_tool_type
from store.text.exact_json import encode
from store.text.figures import count_of
from tui.kit.text import one_line
from tui.words.calls import describe
from tui.words.copying import copyables

if TYPE_CHECKING:
    from store.sharing.masks import Masks

_FENCE = re.compile(r"^(`{3,}|~{3,})([^\n`]*)\n(.*?)^\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to copy.

    Attributes:
        key: The letter that takes it, empty for none.
        name: What it is.
        hint: How it starts, or how long it is.
        read: Returns its text; None for the session, which is read from the store.
        masked: Whether it is for sharing: its secrets are masked.
    """

    key: str
    name: str
    hint: str
    read: Callable[[], str] | None
    masked: bool = False


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Return language and text of each fenced code block."""
    return [(match[2].strip(), match[3].rstrip("\n")) for match in _FENCE.finditer(text)]


def is_tool(part: PartRow) -> bool:
    """Say whether a part is a tool call."""
    return is_tool_type(part.type)


def part_text(part: PartRow) -> str:
    """Return what a part says: its text, its call and result, or its JSON."""
    data = decoded(part.data_json)
    if isinstance(data.get("text"), str):
        return str(data["text"])
    if is_tool(part):
        return _tool_markdown(part, data)
    return part.data_json


def _tool_markdown(part: PartRow, data: dict[str, Any]) -> str:
    call = describe({"type": part.type, **data}, None, (part.created_at, part.updated_at))
    head = f"**{call.name}** {call.what}".rstrip()
    output = str(data.get("errorText") or output_text(data.get("output")) or "")
    if not output.strip():
        return head
    longest = max((len(run) for run in re.findall("`{3,}", output)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{head}\n\n{fence}\n{output.rstrip()}\n{fence}"


def message_markdown(parts: Sequence[PartRow]) -> str:
    """Return a message's parts as Markdown, its reasoning as a quote."""
    out = []
    for part in parts:
        if part.type == "step-start":
            continue
        text = part_text(part).strip()
        if part.type == "reasoning":
            text = "> " + text.replace("\n", "\n> ")
        if text:
            out.append(text)
    return "\n\n".join(out)


def choices(
    session_id: str, message_id: str, part_id: str | None, parts: Sequence[PartRow]
) -> list[Choice]:
    """Return what can be copied, in the order in which it is offered.

    Args:
        session_id: The session.
        message_id: The message that has the focus.
        part_id: The part that has the focus; None for the whole message.
        parts: The message's parts.
    """
    part = next((part for part in parts if part.id == part_id), None)
    found: list[Choice] = []
    if part is not None:
        found += _of_part(part)
    text = message_markdown(parts)
    found.append(Choice("m", "message", f"Markdown, {count_of(len(parts), 'part')}", lambda: text))
    sources = [part] if part is not None and part.type == "text" else parts
    blocks = [block for source in sources if not is_tool(source)
              for block in code_blocks(part_text(source))]
    for number, (language, code) in enumerate(blocks, 1):
        key = "b" if number == 1 else ""
        name = "code block" if len(blocks) == 1 else f"code block {number}"
        hint = f"{one_line(language, 20) or 'plain'}  {one_line(code, 80)}"
        found.append(Choice(key, name, hint, lambda code=code: code))  # type: ignore[misc]
    found += _ids(session_id, message_id, part)
    found.append(Choice("S", "session as Markdown", "the whole transcript", None))
    return found


FOR_SHARING = "for sharing: secrets masked"


def masked_choices(
    part_id: str | None, parts: Sequence[PartRow], masks: Masks
) -> list[Choice]:
    """Return what can be copied for other people.

    Args:
        part_id: The part that has the focus; None for the whole message.
        parts: The message's parts.
        masks: What is masked.
    """
    def masked(of: Sequence[PartRow]) -> str:
        rows = [
            replace(each, data_json=encode(masks.mask_json(decoded(each.data_json))))
            for each in of
        ]
        return masks.mask(message_markdown(rows))

    chosen = [part for part in parts if part.id == part_id]
    found = [
        Choice("P", "part, masked", FOR_SHARING, lambda: masked(chosen), masked=True)
    ] if chosen else []
    return [
        *found, Choice("M", "message, masked", FOR_SHARING, lambda: masked(parts), masked=True),
        session_masked(),
    ]


def session_masked() -> Choice:
    """Return the choice of a whole session for other people."""
    return Choice("X", "session, masked", f"Markdown {FOR_SHARING}", None, masked=True)


def session_choices(row: SessionRow) -> list[Choice]:
    """Return what of a session can be copied, without its messages."""
    source = decoded(row.metadata_json).get("source")
    known = source if isinstance(source, dict) else {}
    named = [
        ("t", "title", row.title), ("i", "session id", row.id),
        ("s", "id at its source", known.get("id")), ("f", "folder", row.workspace_root),
        ("p", "file it came from", known.get("path")),
    ]
    found = [
        Choice(key, name, one_line(value, 120), lambda value=value: value)  # type: ignore[misc]
        for key, name, value in named if isinstance(value, str) and value
    ]
    return [
        *found, Choice("S", "session as Markdown", "the whole transcript", None), session_masked()]


def _of_part(part: PartRow) -> list[Choice]:
    text = part_text(part)
    whole = Choice("p", "part", one_line(text, 120), lambda: text)
    if not is_tool(part):
        found = [whole]
    else:
        data = decoded(part.data_json)
        found = [
            Choice(key, name, one_line(piece, 120), lambda piece=piece: piece)  # type: ignore[misc]
            for key, name, piece in copyables(data)
        ]
        output = str(data.get("errorText") or output_text(data.get("output")) or "")
        if output:
            lines = count_of(output.count("\n") + 1, "line")
            found.append(Choice("o", "output", lines, lambda: output))
        found.append(whole)
    found.append(Choice("j", "part as JSON", one_line(part.data_json, 120),
                        lambda: part.data_json))
    return found


def _ids(session_id: str, message_id: str, part: PartRow | None) -> list[Choice]:
    named = [("i", "session id", session_id), ("", "message id", message_id)]
    if part is not None:
        named.append(("", "part id", part.id))
        if part.tool_call_id:
            named.append(("", "call id", part.tool_call_id))
    return [
        Choice(key, name, one_line(identity, 120), lambda identity=identity: identity)  # type: ignore[misc]
        for key, name, identity in named
    ]


def session_markdown(db: Database, session_id: str, masks: Masks | None = None) -> str:
    """Return a session as Markdown, without its hidden messages.

    Args:
        db: The store.
        session_id: The session.
        masks: What is masked; None for nothing.
    """
    from store.exports.markdown import write_markdown
    from store.exports.reading import read_session, with_masks

    reading = read_session(db, session_id, "display")
    return "".join(write_markdown(reading if masks is None else with_masks(reading, masks)))
