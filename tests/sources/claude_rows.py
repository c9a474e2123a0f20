"""Makes small Claude Code files by hand, and reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.protocol import Problem
from store.sources.claude_code import ClaudeCodeSource

START = 1_795_000_000_000
SESSION = "11111111-1111-4111-8111-111111111111"


def iso(at: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


class File:
    """Rows of one file; each new row hangs off the one before unless told otherwise."""

    def __init__(self, session: str = SESSION, version: str = "2.1.332", cwd: str = "/w") -> None:
        self.session, self.version, self.cwd = session, version, cwd
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None
        self.at = START
        self.count = 0

    def row(self, kind: str, *, uuid: str | None = None, **fields: Any) -> str:
        self.count += 1
        self.at += 1000
        own = uuid or f"{self.session[:4]}-row-{self.count}"
        row = {
            "parentUuid": fields.pop("parent", self.last),
            "isSidechain": False,
            "type": kind,
            "uuid": own,
            "timestamp": iso(self.at),
            "sessionId": self.session,
            "cwd": self.cwd,
            "version": self.version,
            "gitBranch": "main",
            **fields,
        }
        self.lines.append(row)
        self.last = own
        return own

    def note(self, kind: str, **fields: Any) -> None:
        self.lines.append({"type": kind, "sessionId": self.session, **fields})

    def user(self, content: Any, **fields: Any) -> str:
        return self.row("user", message={"role": "user", "content": content}, **fields)

    def assistant(
        self,
        *content: dict[str, Any] | str,
        id: str,
        output: int = 10,
        model: str = "claude-opus-5-5",
        **fields: Any,
    ) -> str:
        """Write one row per block, as the program does."""
        own = ""
        usage = {
            "input_tokens": 5,
            "output_tokens": output,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        }
        usage = fields.pop("usage", usage)
        for block in content:
            if isinstance(block, str):
                block = {"type": "text", "text": block}
            message = {"id": id, "role": "assistant", "model": model, "content": [block]}
            own = self.row("assistant", message={**message, "usage": usage}, **fields)
        return own

    def result(self, call: str, content: Any = "ok", structured: Any = None, **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if "is_error" in fields:
            block["is_error"] = fields.pop("is_error")
        if structured is not None:
            fields["toolUseResult"] = structured
        return self.user([block], **fields)

    def text(self) -> str:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)

    def write(self, folder: Path, name: str | None = None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name or self.session}.jsonl"
        path.write_text(self.text(), encoding="utf-8")
        return path


def tool(call: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def read(root: Path) -> tuple[dict[str, SessionDraft], list[Problem]]:
    source = ClaudeCodeSource(line_limit=1 << 20)
    problems: list[Problem] = []
    drafts: dict[str, SessionDraft] = {}
    for unit in source.units(root, problems):
        reading = source.read(root, unit)
        problems += reading.problems
        drafts |= {draft.source_id: draft for draft in reading.sessions}
    return drafts, problems


def read_one(file: File, folder: Path) -> SessionDraft:
    drafts, problems = read(file.write(folder))
    assert problems == []
    return drafts[file.session]


def shape(draft: SessionDraft) -> list[tuple[str, str]]:
    """Return role and text of each message that is shown."""
    return [
        (message.role, said(message))
        for message in draft.messages
        if "hidden_at" not in message.metadata
    ]


def said(message: MessageDraft) -> str:
    return "|".join(part.data.get("text") or part.type for part in message.parts)


def call(draft: SessionDraft, call_id: str) -> PartDraft:
    (found,) = [p for m in draft.messages for p in m.parts if p.tool_call_id == call_id]
    return found


def extra(part: PartDraft) -> dict[str, Any]:
    found: dict[str, Any] = part.data["resultProviderMetadata"]["backscroll"]
    return found
