"""A session of llm, from its messages to a draft."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from store.sources.base.databases import decoded
from store.sources.base.drafts import LineageDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.plain_parts import data_part, settle_call, text_part
from store.sources.base.protocol import Library
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.stated_calls import file_data
from store.sources.base.values import mapping, string
from store.sources.llm.legacy import LOG_PREFIX, nodes_of, read_legacy, read_log
from store.sources.llm.nodes import Node, Part, Request, filled, is_prompt, time_of, usage_of
from store.sources.llm.threads import Thread, threads_there

KIND = "llm"
_CANCELLED = "CancelToolCall"
_LARGEST = 32 << 20
"""Bytes of the largest attachment that is brought along."""


def read_session(
    reader: RowReader, session: RowSession, library: Library
) -> SessionDraft | None:
    """Return a session; None where it is not there any more.

    Args:
        reader: Runs the statements.
        session: Names the session; takes records and problems.
        library: Tells of threads that are gone.
    """
    thread: Thread | None = None
    name: str | None = None
    if session.id.startswith(LOG_PREFIX):
        nodes = read_log(reader, session)
    else:
        rows: list[Row] = []
        if threads_there(reader):
            rows = reader.rows("SELECT * FROM threads WHERE id = $1", session.id)
        if reader.columns("conversations"):
            for row in reader.rows("SELECT * FROM conversations WHERE id = $1", session.id):
                session.keep("conversations", row)
                name = string(row.get("name"))
        if rows:
            session.keep("threads", rows[0])
            thread = Thread(reader, session, rows[0], library)
            nodes, name = thread.nodes, name or string(rows[0].get("name"))
        else:
            nodes = nodes_of(session, read_legacy(reader, session.id))
    if not session.records:
        return None
    builder = Builder(reader, session)
    builder.add_all(nodes)
    return _draft(session, builder, nodes, name, thread)


def _draft(
    session: RowSession,
    builder: Builder,
    nodes: list[Node],
    name: str | None,
    thread: Thread | None,
) -> SessionDraft:
    requests = [request for node in nodes for request in node.requests]
    logged = time_of(thread.row.get("datetime_utc")) if thread is not None else 0
    created = min((one.at for one in requests if one.at), default=logged)
    draft = SessionDraft(
        session.id, session.path, KIND, created,
        max([created, *(one.end for one in requests)]), title=name,
        title_from="title" if name else None, messages=builder.messages,
        records=session.records, system_prompts=builder.system_prompts, tells_title=True,
    )  # fmt: skip
    models = [one.metadata["model"] for one in builder.messages if "model" in one.metadata]
    draft.model = models[-1] if models else None
    parent = string(thread.row.get("forked_from")) if thread is not None else None
    if parent is not None:
        copied = [one.inherited_from for one in builder.messages if one.inherited_from]
        draft.lineage = LineageDraft("fork", parent, copied[-1] if copied else None)
    return draft


class Builder:
    """What a session's messages become."""

    def __init__(self, reader: RowReader, session: RowSession) -> None:
        """Start with no messages.

        Args:
            reader: Runs the statements.
            session: Takes problems.
        """
        self.messages: list[MessageDraft] = []
        self.system_prompts: dict[str, str] = {}
        self._reader, self._session = reader, session
        self._digest: str | None = None
        self._silent: list[int] = []
        """Records of what makes no message: the next one has them."""
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}

    def add_all(self, nodes: list[Node]) -> None:
        """Take all messages."""
        times = filled([node.at for node in nodes])
        for place, (node, at) in enumerate(zip(nodes, times, strict=True)):
            end = max(at, node.end)
            before = nodes[place - 1].role if place else ""
            if node.role == "system":
                self._system(node)
            elif node.role == "tool":
                self._results(node, at)
            else:
                self._message(node, at, end, after_tool=before == "tool")
        if self._silent and self.messages:
            self.messages[-1].records += tuple(self._silent)
        elif self._silent:
            made = MessageDraft("system", "system", times[0], times[0])
            made.records = tuple(self._silent)
            self.messages.append(made)

    def _system(self, node: Node) -> None:
        text = "\n".join(str(part.get("text") or "") for part in node.parts)
        self._digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self.system_prompts[self._digest] = text
        self._silent.append(node.record)

    def _message(self, node: Node, at: int, end: int, *, after_tool: bool) -> None:
        role = node.role
        draft = MessageDraft(
            node.name, "system", at, end, inherited_from=node.inherited_from,
            records=(*self._silent, node.record),
        )  # fmt: skip
        self._silent = []
        self.messages.append(draft)
        if node.hidden_at is not None:
            draft.metadata["hidden_at"] = max(node.hidden_at, at + 1)
        if role == "user":
            draft.role = "user"
            draft.metadata["origin"] = "meta" if after_tool and not is_prompt(node) else "human"
            typed = next((part["typed"] for part in node.parts if "typed" in part), None)
            if typed is not None:
                draft.metadata["backscroll"] = {"display": typed}
        elif role == "assistant":
            draft.role = "assistant"
            _describe(draft, node.requests)
            if self._digest is not None:
                draft.metadata["system_prompt_digest"] = self._digest
        elif role:
            draft.metadata["backscroll"] = {"role": role}
        for part in node.parts:
            self._part(draft, part, node.record)

    def _part(self, draft: MessageDraft, part: Part, record: int) -> None:
        kind, at, text = part["type"], draft.created_at, part.get("text")
        if kind == "text":
            draft.parts.append(text_part(text if isinstance(text, str) else "", at, record))
        elif kind == "reasoning":
            data: dict[str, Any] = {
                "type": "reasoning", "text": text if isinstance(text, str) else "", "state": "done"
            }  # fmt: skip
            if part.get("redacted"):
                data["providerMetadata"] = {"backscroll": {"redacted": True}}
            draft.parts.append(PartDraft("reasoning", data, at, at, records=(record,)))
        elif kind == "attachment":
            file = self._file(part.get("id"))
            draft.parts.append(PartDraft("file", file, at, at, records=(record,)))
        elif kind == "tool_call":
            self._call(draft, part, record)
        elif kind == "tool_result":
            self._result(draft, part, at, record)
        else:
            rest = {key: value for key, value in part.items() if key != "type"}
            event = {"name": kind, **({"details": rest} if rest else {})}
            draft.parts.append(data_part("event", event, at, record))

    def _call(self, draft: MessageDraft, part: Part, record: int) -> PartDraft:
        name = string(part.get("name")) or "unknown"
        call_id = string(part.get("tool_call_id")) or f"{draft.source_id}:{len(draft.parts)}"
        given = part.get("arguments")
        data: dict[str, Any] = {
            "type": f"tool-{name}", "toolCallId": call_id, "state": "input-available",
            "input": {} if given is None else given,
        }  # fmt: skip
        if part.get("server_executed") is True:
            data["providerExecuted"] = True
        made = PartDraft(data["type"], data, draft.created_at, draft.created_at, call_id,
                         data["state"], (record,))  # fmt: skip
        draft.parts.append(made)
        self._calls[call_id] = made, draft
        return made

    def _results(self, node: Node, at: int) -> None:
        """Give calls their results; what answers no call is a message of its own."""
        unclaimed = [part for part in node.parts if not self._is_known(part)]
        alone: MessageDraft | None = None
        if unclaimed or not node.parts:
            alone = MessageDraft(node.name, "assistant", at, at, records=(node.record,),
                                 inherited_from=node.inherited_from)  # fmt: skip
            if node.hidden_at is not None:
                alone.metadata["hidden_at"] = max(node.hidden_at, at + 1)
            self.messages.append(alone)
        for part in node.parts:
            owner = self._calls[str(part["tool_call_id"])][1] if self._is_known(part) else alone
            assert owner is not None
            self._part(owner, part, node.record) if owner is alone else self._result(
                owner, part, at, node.record
            )

    def _is_known(self, part: Part) -> bool:
        return part["type"] == "tool_result" and part.get("tool_call_id") in self._calls

    def _result(self, draft: MessageDraft, part: Part, at: int, record: int) -> None:
        call_id = string(part.get("tool_call_id"))
        known = self._calls.get(call_id) if call_id is not None else None
        if known is None:
            self._session.complain(f"a result is of call {call_id}, which is missing")
            made, owner = self._call(draft, {**part, "arguments": {}}, record), draft
        else:
            made, owner = known
        text = part.get("output")
        text = text if isinstance(text, str) else "" if text is None else str(text)
        wrong = string(part.get("exception"))
        if wrong is None:
            files = [self._file(one) for one in part.get("attachments") or ()]
            output = [{"type": "text", "text": text}, *files] if files else text
            settle_call(made, "ok", output, at, record)
        elif wrong.startswith(_CANCELLED):
            settle_call(made, "denied", text, at, record)
        else:
            settle_call(made, "error", text or wrong, at, record, {"exception": wrong})
        owner.updated_at = max(owner.updated_at, made.updated_at)

    def _file(self, name: object) -> dict[str, Any]:
        """Return an attachment: its bytes, its address, or where it was."""
        rows = self._reader.rows(
            "SELECT type, path, url, CASE WHEN length(content) <= $2 THEN content END AS content"
            " FROM attachments WHERE id = $1", str(name), _LARGEST,
        )  # fmt: skip
        row: Mapping[str, Any] = rows[0] if rows else {}
        if not rows:
            self._session.complain(f"attachment {name} is missing")
        mime = string(row.get("type")) or "application/octet-stream"
        file: dict[str, Any] = {"mime": mime}
        path, content = string(row.get("path")), row.get("content")
        if isinstance(content, bytes):
            file["url"] = f"data:{mime};base64,{base64.b64encode(content).decode()}"
        elif string(row.get("url")):
            file["url"] = row["url"]
        elif path is not None:
            file["url"] = f"file://{quote(path.encode('utf-8', 'surrogatepass'))}"
        if path is not None:
            file["filename"] = re.split(r"[/\\]", path)[-1] or path
        return file_data(file)


def _describe(draft: MessageDraft, requests: list[Request]) -> None:
    used = [usage for one in requests if (usage := usage_of(one.row)) is not None]
    if used:
        draft.metadata["usage"] = {key: sum(one[key] for one in used) for key in used[0]}
    if not requests:
        return
    row = requests[-1].row
    model = string(row.get("model"))
    if model is not None:
        draft.metadata["model"] = {"provider_id": "unknown", "model_id": model}
    extra: dict[str, Any] = {}
    if string(row.get("resolved_model")) and row["resolved_model"] != model:
        extra["resolved_model"] = row["resolved_model"]
    options = mapping(decoded(row.get("options_json")))
    if options:
        extra["options"] = options
    if string(row.get("schema_id")):
        extra["schema_id"] = row["schema_id"]
    if extra:
        draft.metadata["backscroll"] = extra

