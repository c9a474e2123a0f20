"""From one file to its session: title, model, where it was forked from."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import Depends
from store.sources.base.json_lines import Record
from store.sources.base.protocol import SESSION_FACT
from store.sources.base.titles import first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.pi.messages import Messages
from store.sources.pi.siblings import Siblings
from store.sources.pi.tree import Tree

KIND = "pi"
EXPORTED = "backscroll"
"""The ``customType`` of the entry in which our export says what was copied."""
_ID_IN_NAME = re.compile(r"[^_]*_(.+)\.jsonl")
"""The time has no underscore; an id that was chosen by hand may."""


@dataclass(slots=True)
class Kept:
    """What was made of a file's lines the last time, to continue with.

    Attributes:
        lines: The list that grows with the file; another one where it was read anew.
        left: ``Tree.left`` of that time.
    """

    lines: list[Record] | None = None
    tree: Tree = field(default_factory=Tree)
    left: dict[str, int] = field(default_factory=dict)
    built: Messages | None = None

    def bring_up(self, lines: list[Record]) -> Messages:
        """Take what the lines are more than before; return the session's messages."""
        if lines is not self.lines or len(lines) < self.tree.lines:
            self.lines, self.tree, self.built = lines, Tree(), None
        self.tree.grow(lines)
        headed = self.built is not None and self.built.header == self.tree.header_number
        if self.built is None or not headed or self.tree.left != self.left:
            # Where another branch was taken up, what is left is another part of the tree.
            self.built, self.left = Messages(self.tree), self.tree.left
        return self.built


_ENDS = {"aborted": "interrupted", "error": "error", "toolUse": "running"}
"""What a session does whose last answer stopped for such a reason."""


def session_draft(
    path: str,
    lines: list[Record],
    records: list[bytes],
    kept: Kept,
    siblings: Siblings,
    depends: Depends,
) -> SessionDraft | None:
    """Return the draft of a file's session; None where no line names one.

    Args:
        path: The file.
        lines: Its lines that are JSON objects.
        records: All its lines.
        kept: What was made of them the last time.
        siblings: The other files of its folder.
        depends: Takes what it tells others, and would want to know of them.
    """
    built, tree = kept.bring_up(lines), kept.tree
    session_id = string(tree.header.get("id")) or id_in_name(path)
    if session_id is None or not (tree.header or tree.entries):
        return None
    messages = built.build()
    started = epoch_ms(tree.header.get("timestamp"))
    times = [entry.at for entry in tree.entries] + ([started] if started else [])
    draft = SessionDraft(
        session_id,
        path,
        KIND,
        created_at=started or next(filter(None, times), 0),
        updated_at=max(times, default=0),
        workspace_root=string(tree.header.get("cwd")),
        messages=messages,
        records=list(records),
        system_prompts=dict(built.prompts.texts),
    )
    draft.title, draft.title_from = _title(tree, messages)
    draft.tells_title = any(entry.type == "session_info" for entry in tree.entries)
    draft.model = _model(tree, messages)
    draft.metadata["backscroll"] = _extra(tree)
    activity = _activity(tree)
    if activity is not None:
        draft.metadata["activity"] = activity
    _link(draft, tree, siblings, depends)
    return draft


def id_in_name(path: str) -> str | None:
    """Return the session's id that a file's name ends with."""
    found = _ID_IN_NAME.fullmatch(os.path.basename(path))
    return found[1] if found else None


def _title(tree: Tree, messages: list[MessageDraft]) -> tuple[str | None, str | None]:
    names = [entry.data.get("name") for entry in tree.entries if entry.type == "session_info"]
    if names and string(names[-1]):
        return shortened(str(names[-1])), "session-name"
    prompt = first_prompt(messages)
    return prompt, "first-prompt" if prompt else None


def _model(tree: Tree, messages: list[MessageDraft]) -> dict[str, Any] | None:
    """Return the model that the session uses now, with its level of thinking."""
    model: dict[str, Any] | None = None
    level = string(tree.header.get("thinkingLevel"))
    if string(tree.header.get("modelId")):
        provider = string(tree.header.get("provider")) or "unknown"
        model = {"provider_id": provider, "model_id": tree.header["modelId"]}
    answers = {m.source_id: m.metadata["model"] for m in messages if "model" in m.metadata}
    for entry in tree.entries:
        if entry.id in tree.left:
            continue
        if entry.type == "model_change" and string(entry.data.get("modelId")):
            provider = string(entry.data.get("provider")) or "unknown"
            model = {"provider_id": provider, "model_id": entry.data["modelId"]}
        elif entry.type == "thinking_level_change":
            level = string(entry.data.get("thinkingLevel"))
        model = answers.get(entry.id, model)
    return {**model, "variant": level} if model and level and level != "off" else model


def _extra(tree: Tree) -> dict[str, Any]:
    extra: dict[str, Any] = {"format_version": tree.header.get("version", 1)}
    labels = {
        entry.data["targetId"]: entry.data.get("label")
        for entry in tree.entries
        if entry.type == "label" and string(entry.data.get("targetId"))
    }
    labels = {name: label for name, label in labels.items() if label}
    if labels:
        extra["labels"] = labels
    if tree.broken is not None and tree.left:
        extra["broken_at"] = tree.broken
    return extra


def _activity(tree: Tree) -> dict[str, Any] | None:
    """Return what the last message of the active path says; None where it ended well.

    An answer is written when it is finished, so after a prompt or a result one is awaited.
    """
    path = (each for each in reversed(tree.entries) if each.id not in tree.left)
    last = next((each for each in path if each.type == "message"), None)
    message = mapping(last.data.get("message")) if last is not None else {}
    if last is None or message.get("role") not in ("user", "assistant", "toolResult"):
        return None
    if message["role"] != "assistant":
        return {"state": "running", "from": "guessed", "since": last.at}
    state = _ENDS.get(str(message.get("stopReason")))
    came = "guessed" if state == "running" else "stored"
    return None if state is None else {"state": state, "from": came, "since": last.at}


def _link(draft: SessionDraft, tree: Tree, siblings: Siblings, depends: Depends) -> None:
    """Say what the session was forked from, and which of its messages are copies.

    A fork copies entries with their ids and times: what is older than its own header is a
    copy, and what its parent has too, for one that was made by hand.
    """
    fact = siblings.shared_fact(draft.path, draft.source_id)
    depends.facts += [fact] if fact is not None else []
    is_export = _link_export(draft, tree)
    named = string(tree.header.get("parentSession")) or string(tree.header.get("branchedFrom"))
    if is_export and named is None:
        return
    if named is None:
        gone = siblings.older_gone(draft.path, draft.source_id)
        parent = siblings.older(draft.path) if gone is None else None
        parent_id = gone or siblings.id_of(parent) or id_in_name(parent or "")
        depends.wants.update([fact.name] if fact is not None else [])
    else:
        parent = siblings.named(draft.path, named)
        parent_id = siblings.id_of(parent) or id_in_name(named)
        depends.wants.update([SESSION_FACT + parent_id] if parent_id and parent is None else [])
    if parent_id is None or parent_id == draft.source_id:
        return
    theirs = siblings.entry_ids(parent) if parent is not None else siblings.gone_ids(parent_id)
    copied = [
        message
        for message in draft.messages
        if message.created_at < draft.created_at or message.source_id.partition(":")[0] in theirs
    ]
    for message in copied:
        message.inherited_from = message.source_id
    shown = [message for message in copied if "hidden_at" not in message.metadata] or copied
    kind = LineageDraft("continuation", parent_id)
    draft.lineage = LineageDraft("fork", parent_id, shown[-1].source_id) if copied else kind


def _link_export(draft: SessionDraft, tree: Tree) -> bool:
    """Take over what our export notes of its copies; return whether it is one."""
    is_export = False
    for entry in tree.entries:
        if entry.type == "custom" and entry.data.get("customType") == EXPORTED:
            is_export = True
            copies = mapping(mapping(entry.data.get("data")).get("copies"))
            for message in draft.messages:
                message.inherited_from = string(copies.get(message.source_id))
    return is_export
