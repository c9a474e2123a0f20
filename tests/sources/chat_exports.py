"""What the tests of chat exports share: archives made by hand."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft


def zipped(path: Path, files: Mapping[str, bytes], *, stored: bool = False) -> Path:
    """Make a zip.

    Args:
        path: The zip.
        files: Their bytes by name.
        stored: Whether they are not compressed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path


def listed(conversations: Iterable[Any]) -> bytes:
    return json.dumps(list(conversations)).encode()


def shown(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in draft.messages if "hidden_at" not in one.metadata]


def words(message: MessageDraft) -> str:
    return "".join(part.data["text"] for part in message.parts if part.type == "text")


def prompts(draft: SessionDraft) -> list[str]:
    return [words(one) for one in shown(draft) if one.metadata.get("origin") == "human"]


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in shown(draft) if one.role == "assistant" and words(one)]


def parts(draft: SessionDraft, kind: str) -> list[PartDraft]:
    return [part for one in shown(draft) for part in one.parts if part.type == kind]


def calls(draft: SessionDraft) -> list[dict[str, Any]]:
    """Return id, name and status of each call of the path that is shown."""
    found = []
    for part in (part for one in shown(draft) for part in one.parts if part.tool_call_id):
        extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
        found.append({"id": part.tool_call_id, "name": part.type.removeprefix("tool-"),
                      "status": extra.get("status", "no result")})  # fmt: skip
    return found


def branched(draft: SessionDraft) -> int:
    """Return how many messages that say something are on other branches."""
    return sum(1 for one in draft.messages if "hidden_at" in one.metadata and words(one))
