"""From one conversation of Claude.ai to its session: the newest branch, and the others.

Source: the page of chat exports, "Claude.ai". An export tells no tokens, no model and no folder;
the service's own JSON, which browser extensions save, has a model and the branch that is shown.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson

from store.sources.base.chat_exports import Conversation
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.message_tree import LaidOut, TreeNode, laid_out, newest_leaf, path_to
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, string, utc_ms
from store.sources.claude_ai.content import parts_of

KIND = "claude-ai"
LEFT = "left_messages"
"""The member of a stored version with messages that only an older one has."""


def session_draft(conversation: Conversation) -> SessionDraft:
    """Return the session of a conversation; messages that only an older version has are kept."""
    head = conversation.versions[0]
    messages: dict[str, dict[str, Any]] = {}
    before: dict[str, str | None] = {}
    newest: list[str] = []
    for version in reversed(conversation.versions):
        newest = []
        for message in map(mapping, version["chat_messages"]):
            name = name_of(message)
            messages[name], before[name] = message, newest[-1] if newest else None
            newest.append(name)
        for message in version.get(LEFT, ()):
            messages.setdefault(name_of(message), message)
            before.setdefault(name_of(message), None)
    is_tree = any(string(each.get("parent_message_uuid")) for each in messages.values())
    tree = [
        TreeNode(name, string(each.get("parent_message_uuid")) if is_tree else before[name],
                 utc_ms(each.get("created_at")))
        for name, each in messages.items()
    ]  # fmt: skip
    leaf = string(head.get("current_leaf_message_uuid"))
    if leaf not in messages:
        own = set(newest)
        leaf = newest_leaf([each for each in tree if each.id in own]) if is_tree else (
            newest[-1] if newest else None)  # fmt: skip
    created = utc_ms(head.get("created_at")) or 0
    order = laid_out(tree, path_to(tree, leaf), created)
    left = [] if is_tree or len(newest) == len(messages) else [_json({"order": newest})]
    draft = SessionDraft(
        conversation.id, conversation.path, KIND, created,
        utc_ms(head.get("updated_at")) or max([created, *(each.at for each in order)]),
        messages=[_message(messages[place.id], place, number)
                  for number, place in enumerate(order, 1)],
        records=[_json({key: value for key, value in head.items()
                        if key not in ("chat_messages", LEFT)}),
                 *(_json(messages[place.id]) for place in order), *left],
        tells_title=True,
    )  # fmt: skip
    title = string(head.get("name"))
    draft.title = shortened(title) if title else first_prompt(draft.messages)
    draft.title_from = "title" if title else FIRST_PROMPT if draft.title else None
    model = string(head.get("model"))
    draft.model = {"provider_id": "anthropic", "model_id": model} if model else None
    extra: dict[str, Any] = {"is_starred": True} if head.get("is_starred") is True else {}
    if string(head.get("summary")):
        extra["summary"] = head["summary"]
    draft.metadata["backscroll"] = extra
    return draft


def stored_version(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the conversation that a session's records hold, at least one.

    Where messages have no parents, a last record says which of them the newest version has.
    """
    messages, last = records[1:], records[-1]
    told = len(records) > 1 and "order" in last and "sender" not in last
    order = last["order"] if told else list(map(name_of, messages))
    shown = set(order)
    known = {name_of(each): each for each in messages[: -1 if told else None]}
    return {**records[0], "chat_messages": [known[name] for name in order if name in known],
            LEFT: [each for name, each in known.items() if name not in shown]}  # fmt: skip


def name_of(message: dict[str, Any]) -> str:
    """Return a message's id; one that has none is called by its content."""
    name = string(message.get("uuid"))
    return name or f"#{blake2b(_json(message), digest_size=8).hexdigest()}"


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


def _message(message: dict[str, Any], place: LaidOut, record: int) -> MessageDraft:
    human = message.get("sender") in ("human", "user")
    draft = MessageDraft(place.id, "user" if human else "assistant", place.at, place.at)
    if human:
        draft.metadata["origin"] = "human"
    if place.hidden_at is not None:
        draft.metadata["hidden_at"] = place.hidden_at
    draft.parts = parts_of(message, place.id, place.at, record)
    # The first message has the record of the conversation too.
    draft.records = (0,) if record == 1 else ()
    if not draft.parts:
        draft.records = (*draft.records, record)
    draft.updated_at = max(place.at, utc_ms(message.get("updated_at")) or 0)
    return draft
