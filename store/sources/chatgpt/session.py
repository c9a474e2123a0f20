"""From one conversation of ChatGPT to its session: the path that is shown, and other branches.

Source: the page of chat exports, "ChatGPT". An export tells no tokens, no folder and no branch.
"""

from __future__ import annotations

from typing import Any

import orjson

from store.sources.base.chat_exports import Conversation
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.message_tree import LaidOut, TreeNode, laid_out, newest_leaf, path_to
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, string, utc_ms
from store.sources.chatgpt.content import Reader

KIND = "chatgpt"


def session_draft(conversation: Conversation) -> SessionDraft:
    """Return the session of a conversation; nodes that only an older version has are kept."""
    head = conversation.versions[0]
    nodes: dict[str, dict[str, Any]] = {}
    for version in reversed(conversation.versions):
        nodes |= {key: mapping(node) for key, node in mapping(version.get("mapping")).items()}
    created = utc_ms(head.get("create_time")) or 0
    tree = [TreeNode(key, string(node.get("parent")), utc_ms(_message(node).get("create_time")))
            for key, node in nodes.items()]  # fmt: skip
    current = head.get("current_node")
    path = path_to(tree, current if current in nodes else newest_leaf(tree))
    order = laid_out(tree, path, created)
    built = _Messages(conversation, nodes, order)
    draft = SessionDraft(
        conversation.id, conversation.path, KIND, created, utc_ms(head.get("update_time")) or max(
            [created, *(each.at for each in order)]),
        messages=built.found, tells_title=True,
        records=[_json({key: value for key, value in head.items() if key != "mapping"}),
                 *(_json({**nodes[each.id], "id": each.id}) for each in order),
                 *conversation.files],
    )  # fmt: skip
    title = string(head.get("title"))
    draft.title = shortened(title) if title else first_prompt(draft.messages)
    draft.title_from = "title" if title else FIRST_PROMPT if draft.title else None
    models = [each.metadata["model"] for each in draft.messages
              if "model" in each.metadata and "hidden_at" not in each.metadata]  # fmt: skip
    default = string(head.get("default_model_slug"))
    draft.model = models[-1] if models else _model(default) if default else None
    draft.archived_at = draft.updated_at if head.get("is_archived") is True else None
    draft.metadata["backscroll"] = _extra(head)
    return draft


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def _model(slug: str) -> dict[str, Any]:
    return {"provider_id": "openai", "model_id": slug}


def _extra(head: dict[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    gizmo = string(head.get("gizmo_id"))
    if gizmo:
        extra["project" if head.get("gizmo_type") == "snorlax" else "custom_gpt"] = gizmo
    for key in ("default_model_slug", "voice"):
        if string(head.get(key)):
            extra[key] = head[key]
    for key in ("is_starred", "is_do_not_remember"):
        if head.get(key) is True:
            extra[key] = True
    return extra


def _message(node: dict[str, Any]) -> dict[str, Any]:
    return mapping(node.get("message"))


class _Messages:
    """The messages of a conversation, calls with their results.

    Attributes:
        found: The drafts.
    """

    def __init__(
        self, conversation: Conversation, nodes: dict[str, dict[str, Any]], order: list[LaidOut]
    ) -> None:
        self.found: list[MessageDraft] = []
        self._conversation, self._nodes = conversation, nodes
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._quiet = [0]
        for number, place in enumerate(order, 1):
            self._take(place, number)
        if self.found:
            last = self.found[-1]
            last.records = (*last.records, *self._quiet)

    def _take(self, place: LaidOut, number: int) -> None:
        node = self._nodes[place.id]
        message = _message(node)
        role = mapping(message.get("author")).get("role")
        reader = Reader(self._conversation, place.at, number, len(self._nodes) + 1)
        draft = MessageDraft(place.id, "system", place.at, place.at)
        if role == "tool":
            if self._joined(place, string(node.get("parent")), reader, message):
                return
            draft.role = "assistant"
            draft.parts = [reader.lone_result(place.id, message), *reader.pictures(message)]
        elif role == "assistant":
            draft.role = "assistant"
            self._answer(draft, reader, message)
        elif message:
            draft.parts = reader.parts(message)
            if role == "user":
                draft.role = "user"
                draft.metadata["origin"] = "meta" if _is_aside(message) else "human"
            elif role != "system":
                draft.parts.append(reader.event("role", {"role": role}))
        if not draft.parts and draft.role == "system":
            self._quiet.append(number)
            return
        draft.records = (*self._quiet, *(() if draft.parts else (number,)))
        self._quiet = []
        if place.hidden_at is not None:
            draft.metadata["hidden_at"] = place.hidden_at
        self.found.append(draft)

    def _answer(self, draft: MessageDraft, reader: Reader, message: dict[str, Any]) -> None:
        metadata = mapping(message.get("metadata"))
        slug = string(metadata.get("model_slug"))
        if slug:
            draft.metadata["model"] = _model(slug)
        if string(message.get("recipient")) not in (None, "all"):
            part = reader.call(draft.source_id, message)
            draft.parts = [part]
            self._calls[draft.source_id] = part, draft
        else:
            draft.parts = reader.parts(message)
        extra: dict[str, Any] = {}
        reason = string(mapping(metadata.get("finish_details")).get("type"))
        if reason:
            extra["finish_reason"] = reason
        if message.get("status") == "finished_partial_completion" or reason == "interrupted":
            extra["aborted_at"] = draft.created_at
        if extra:
            draft.metadata["backscroll"] = extra

    def _joined(
        self, place: LaidOut, parent: str | None, reader: Reader, message: dict[str, Any]
    ) -> bool:
        """Put a result into its call: the message before it, of the same branch, without one."""
        part, owner = self._calls.get(parent or "", (None, None))
        if part is None or owner is None or part.tool_state != "input-available":
            return False
        if owner.metadata.get("hidden_at") is None and place.hidden_at is not None:
            return False
        reader.settle(part, message)
        owner.parts += reader.pictures(message)
        owner.updated_at = max(owner.updated_at, part.updated_at)
        return True


def _is_aside(message: dict[str, Any]) -> bool:
    """Return whether a message in the person's name was made by the program."""
    hidden = mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    kind = mapping(message.get("content")).get("content_type")
    return hidden is True or kind == "user_editable_context"
