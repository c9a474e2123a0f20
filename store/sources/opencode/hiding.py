"""Hidden messages: what a pending ``revert`` points at, and all that follows it.

Source: the opencode format page, section 2.6. The rows stay until the next prompt; it is
their place that counts, not their ids, which have wrapped.
"""

from __future__ import annotations

from store.sources.base.drafts import MessageDraft
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.opencode.stored import StoredSession


def hide_reverted(stored: StoredSession, drafts: list[MessageDraft]) -> list[MessageDraft]:
    """Return the messages with those hidden that a pending revert hides.

    Where it points into a message, that one is cut in two: its parts before the place
    stay visible, the rest becomes a hidden message of its own.
    """
    revert = mapping(stored.info.get("revert"))
    target, part_id = string(revert.get("messageID")), string(revert.get("partID"))
    names = [draft.source_id for draft in drafts]
    if target not in names:
        return drafts
    start = names.index(target)
    if part_id is not None and _cut(stored, drafts, start, part_id):
        start += 1
    at = _reverted_at(stored, drafts)
    for draft in drafts[start:]:
        draft.metadata["hidden_at"] = at
    return drafts


def _reverted_at(stored: StoredSession, drafts: list[MessageDraft]) -> int:
    """Return when: the revert moves the session's time; never before what it hides."""
    updated = ms_or_0(mapping(stored.info.get("time")).get("updated"))
    return max(updated, max(draft.created_at for draft in drafts) + 1)


def _cut(stored: StoredSession, drafts: list[MessageDraft], at: int, part_id: str) -> bool:
    """Cut a message before a part; return whether something of it stays visible."""
    message, draft = stored.messages[at], drafts[at]
    ids = [part.id for part in message.parts]
    if part_id not in ids:
        return False
    hidden = {part.record for part in message.parts[ids.index(part_id) :]}
    kept = [part for part in draft.parts if not hidden.intersection(part.records)]
    if all(part.type == "step-start" for part in kept):
        return False
    rest = MessageDraft(
        f"{draft.source_id}:reverted", draft.role, draft.created_at, draft.updated_at,
        {key: draft.metadata[key] for key in ("model", "agent", "origin") if key in draft.metadata},
        [part for part in draft.parts if hidden.intersection(part.records)],
        records=message.records,
    )  # fmt: skip
    draft.parts = kept
    drafts.insert(at + 1, rest)
    return True
