"""What the folders of workspaces say: where they are, which chats are theirs, old side chats.

Source: the Cursor format page, section 2 (title, workspace, branch; older still). Of each
database two values are selected.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.databases import Databases, decoded, record_bytes
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.growing import denial, entries_of
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.plain_parts import text_part
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.base.vscode import STATE, stored_value
from store.sources.cursor.bubbles import model_of, place_of, words_of
from store.system.paths import read_regular

KIND = "cursor"
STORAGE, PLACE = "workspaceStorage", "workspace.json"
_COMPOSERS = "composer.composerData"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_ENDINGS = ("", "-wal")


class Found(NamedTuple):
    """The workspace of a chat, and what its list says of the chat."""

    folder: str
    entry: dict[str, Any]


class _Kept(NamedTuple):
    stamps: list[FileStamp]
    entries: dict[str, dict[str, Any]]


def databases_in(user: str, looked: list[FileStamp] | None = None) -> list[str]:
    """Return the databases of the workspaces of a ``User`` folder.

    Args:
        user: The folder.
        looked: Takes the databases that are not there.
    """
    folders = entries_of(os.path.join(user, STORAGE))
    paths = [os.path.join(folder.path, STATE) for folder in folders]
    there = [path for path in paths if os.path.isfile(path)]
    if looked is not None:
        looked += map(FileStamp.now, sorted({*paths} - {*there}))
    return there


def stamps_of(database: str) -> list[FileStamp]:
    """Return the stamps of a database and of what is not yet in its file."""
    stamps = (FileStamp.now(database + end) for end in _ENDINGS)
    return [stamp for stamp in stamps if stamp.inode]


def place_at(
    folder: str, problems: list[Problem], looked: list[FileStamp] | None = None
) -> str | None:
    """Return which folder, or file of several, a workspace is.

    Args:
        folder: The folder of what is stored for it.
        problems: Takes why the file that says so cannot be read.
        looked: Takes that file.
    """
    path = os.path.join(folder, PLACE)
    if looked is not None:
        looked.append(FileStamp.now(path))
    try:
        data = mapping(parse_json(read_regular(path))[0])
    except OSError as error:
        problems += denial(path, error)
        return None
    except LineError:
        return None
    return place_of(data.get("folder")) or place_of(data.get("workspace"))


class Workspaces:
    """The lists of chats of workspaces; each is read again when its database moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._databases = Databases()
        self._kept: dict[str, _Kept] = {}

    def of_chat(self, user: str, chat: str, looked: list[FileStamp]) -> Found | None:
        """Return the workspace whose list names a chat: one that lists it, else has it open.

        Args:
            user: The ``User`` folder.
            chat: The chat's id.
            looked: Takes what was looked into.
        """
        looked.append(FileStamp.now(os.path.join(user, STORAGE)))
        for database in databases_in(user, looked):
            entry = self._entries(database).get(chat)
            if entry is not None:
                looked += stamps_of(database)
                return Found(os.path.dirname(database), entry)
        return None

    def _entries(self, database: str) -> dict[str, dict[str, Any]]:
        stamps, known = stamps_of(database), self._kept.get(database)
        if known is not None and known.stamps == stamps:
            return known.entries
        data = mapping(decoded(self._value(database, _COMPOSERS)))
        entries: dict[str, dict[str, Any]] = {}
        opened = data.get("selectedComposerIds")
        for name in opened if isinstance(opened, list) else ():
            entries |= {name: {}} if string(name) else {}
        listed = data.get("allComposers")
        for entry in map(mapping, listed if isinstance(listed, list) else ()):
            name = string(entry.get("composerId"))
            entries |= {name: entry} if name else {}
        self._kept[database] = _Kept(stamps, entries)
        return entries

    def _value(self, database: str, key: str) -> str | None:
        try:
            return stored_value(self._databases, Path(database), key)
        except (StoreError, sqlite3.Error, OSError):
            return None

    def side_chats(self, database: str, problems: list[Problem]) -> list[SessionDraft]:
        """Return the chats of the oldest versions, a session for each tab.

        Args:
            database: A workspace's.
            problems: Takes why it cannot be read.
        """
        try:
            value = stored_value(self._databases, Path(database), _TABS)
        except (StoreError, sqlite3.Error, OSError) as error:
            problems.append(Problem(database, 0, f"cannot be read: {error}"))
            return []
        tabs = mapping(decoded(value)).get("tabs")
        place = place_at(os.path.dirname(database), problems)
        drafts = [_side_chat(database, tab, place)
                  for tab in map(mapping, tabs if isinstance(tabs, list) else ())]  # fmt: skip
        return [draft for draft in drafts if draft is not None]


def _side_chat(database: str, tab: dict[str, Any], place: str | None) -> SessionDraft | None:
    name, bubbles = string(tab.get("tabId")), tab.get("bubbles")
    if name is None or not isinstance(bubbles, list) or not bubbles:
        return None
    at = epoch_ms(tab.get("lastSendTime")) or 0
    rest = {key: value for key, value in tab.items() if key != "bubbles"}
    draft = SessionDraft(
        name, database, KIND, at, at, workspace_root=place, names_count=True,
        records=[record_bytes(rest), *map(record_bytes, bubbles)],
    )  # fmt: skip
    for nth, bubble in enumerate(map(mapping, bubbles)):
        said = bubble.get("rawText")
        text = words_of(bubble) or (said if isinstance(said, str) else "")
        parts = [text_part(text, at, nth + 1)] if text else []
        is_prompt = bubble.get("type") == "user"
        message = MessageDraft(
            string(bubble.get("id")) or str(nth),
            "user" if is_prompt else "assistant",
            at,
            at,
            {"origin": "human"} if is_prompt else {},
            parts,
            records=() if parts else (nth + 1,),
        )
        model = None if is_prompt else model_of(bubble.get("modelType"))
        if model is not None:
            draft.model = message.metadata["model"] = model
        draft.messages.append(message)
    draft.names_count = any(not string(mapping(bubble).get("id")) for bubble in bubbles)
    draft.title = shortened(str(tab.get("chatTitle"))) if string(tab.get("chatTitle")) else None
    draft.title_from = "name" if draft.title else None
    if draft.title is None:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    draft.metadata["backscroll"] = {"surface": "ide-old-chat"}
    return draft
