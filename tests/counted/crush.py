"""Crush: costs of whole sessions, less those of the subagents that they hold; no tokens."""

from __future__ import annotations

from pathlib import Path

from tests.counted.answers import ANY_MODEL, Counted, rows


def counted(path: Path) -> list[Counted]:
    answers = rows(path, "SELECT session_id, model, created_at FROM messages"
                         " WHERE role = 'assistant'")  # fmt: skip
    found = [Counted(row["model"], row["created_at"] * 1000) for row in answers]
    sessions = rows(path, "SELECT id, cost, created_at, cost - (SELECT coalesce(sum(c.cost), 0)"
                          " FROM sessions c WHERE c.parent_session_id = s.id) AS own"
                          " FROM sessions s")  # fmt: skip
    for session in sessions:
        models = {row["model"] for row in answers if row["session_id"] == session["id"]}
        # Which of several models it was for, nobody knows.
        model = models.pop() if len(models) == 1 else ANY_MODEL
        found.append(Counted(model, session["created_at"] * 1000, usd=session["own"], answers=0))
    return found
