"""The values that fields of queries have in a store, for completion."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from store.engine.database import Database
from store.engine.values import decoded, tag_names, text
from store.language.completion import Known, KnownValues
from store.queries.helpers import no_helpers
from store.text.stored_json import as_dict

_SESSIONS = 1_000
"""The newest sessions, whose values are offered."""
_SESSIONS_OF_TOOLS = 40
"""The newest sessions, whose tools are offered."""
_LONGEST = 200
"""Characters of a value; longer ones are not offered."""


def known_values(db: Database) -> KnownValues:
    """Return the values that some fields have: agents, folders, branches, statuses, tools, tags.

    They are those of the newest sessions, the most frequent first, however large the store is;
    a small store's with how many sessions have them.
    """
    rows = db.connection.execute(
        "SELECT s.id, s.agent, s.workspace_root, s.model_json, s.metadata_json"
        f" FROM chat_sessions s WHERE {no_helpers(db)}"
        f" ORDER BY s.updated_at DESC, s.id DESC LIMIT {_SESSIONS}"
    ).fetchall()
    found: dict[str, Counter[str]] = {}

    def add(field: str, value: Any) -> None:
        if isinstance(value, str) and 0 < len(value) <= _LONGEST:
            found.setdefault(field, Counter())[value] += 1

    home = os.path.expanduser("~").rstrip("/") + "/"
    for _, agent, workspace, model_json, metadata_json in rows:
        metadata = decoded(text(metadata_json))
        user, source = metadata.get("user"), metadata.get("source")
        folder = text(workspace) or ""
        add("agent", text(agent))
        add("workspace", "~/" + folder[len(home):] if folder.startswith(home) else folder)
        add("model", decoded(text(model_json)).get("model_id"))
        add("branch", metadata.get("git_branch"))
        add("owner", metadata.get("owner"))
        own = as_dict(metadata.get("backscroll"))
        add("project", own.get("project"))
        add("account", own.get("account"))
        for word in _statuses(metadata):
            add("status", word)
        add("source", source.get("kind") if isinstance(source, dict) else None)
        for tag in tag_names(user):
            add("tag", tag)
        labels = user.get("labels") if isinstance(user, dict) else None
        for label in labels.values() if isinstance(labels, dict) else ():
            add("label", label)
    for tool in _tools(db, [row[0] for row in rows[:_SESSIONS_OF_TOOLS]]):
        add("tool", tool)
    whole = len(rows) < _SESSIONS
    return {
        field: [Known(value, _sessions(count) if whole and field != "tool" else "")
                for value, count in counts.most_common()]
        for field, counts in found.items()
    }


def _statuses(metadata: dict[str, Any]) -> set[str]:
    """Return the agent's own words for what a session and its tasks do."""
    own = as_dict(metadata.get("backscroll"))
    tasks = own.get("tasks")
    said = [own.get("status"), own.get("state"), as_dict(own.get("branch")).get("status")]
    said += [as_dict(each).get("status") for each in (tasks if isinstance(tasks, list) else ())]
    return {word for word in said if isinstance(word, str)}


def _sessions(count: int) -> str:
    return f"{count:,} session" + ("s" if count > 1 else "")


def _tools(db: Database, ids: list[Any]) -> list[str]:
    """Return the names of the tools that some sessions call, by frequency."""
    named = (
        f"CASE WHEN p.type = 'dynamic-tool' THEN {db.sql.fact('p.data_json', 'toolName')}"
        " ELSE substr(p.type, 6) END"
    )
    rows = db.connection.execute(
        f"SELECT {named} AS name FROM chat_parts p"
        f" WHERE p.session_id IN ({','.join('?' * len(ids))})"
        " AND (substr(p.type, 1, 5) = 'tool-' OR p.type = 'dynamic-tool')"
        " GROUP BY name ORDER BY count(*) DESC, name", ids,
    ).fetchall()
    return [name for (value,) in rows if (name := text(value))]
