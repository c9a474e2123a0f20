"""A session's files as a session draft."""

from __future__ import annotations

import mimetypes
import os
from dataclasses import dataclass
from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import AttachmentDraft, MessageDraft, PartDraft, SessionDraft
from store.sources.base.growing import GrowingFile, UnitFiles
from store.sources.base.json_lines import LineError
from store.sources.base.protocol import Problem, Unit
from store.sources.base.requests import request_of
from store.sources.base.titles import first_prompt, shortened
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.viben.lines import Event, events_of, older_events
from store.sources.viben.messages import Thread
from store.sources.viben.places import AGENT, BOARD, CONFIG, META, ROLLOUT, TASK, UI
from store.sources.viben.settings import parse_object, parse_settings

KIND = "viben"
_TASK_STATES = {
    "running": "running", "in_progress": "running", "ai_review": "running", "queue": "queued",
    "backlog": "queued", "human_review": "waiting-input", "completed": "idle", "done": "ended",
    "pr_created": "ended", "error": "error", "stopped": "interrupted",
}  # fmt: skip
_SESSION_STATES = {
    "completed": "ended", "error": "error", "failed": "error", "paused": "interrupted",
}  # fmt: skip
"""``active`` tells nothing: the program never changes it when a run ends."""
_CONFIG_KEPT = ("agent_id", "prompt", "status", "task_count", "task_id", "metadata", "token_usage")


@dataclass(slots=True)
class Sides:
    """The tasks of a session and the files that they made, by their paths.

    Attributes:
        contents: Of the made files, by their folder.
    """

    tasks: dict[str, dict[str, Any]]
    metas: dict[str, dict[str, Any]]
    contents: dict[str, list[str]]


def session_draft(
    source_id: str, folder: str, unit: Unit, files: UnitFiles, problems: list[Problem]
) -> SessionDraft | None:
    """Return the draft of the session of a folder; None where nothing of it is left.

    Args:
        source_id: What the session is called.
        folder: Its folder.
        unit: As listed.
        files: What was read of the unit.
        problems: Takes what is damaged.
    """
    body = files.bodies.get(os.path.join(folder, CONFIG))
    if body is None and not files.lines:
        return None
    config = parse_settings(body or b"")
    if body is not None and not config:
        problems.append(Problem(os.path.join(folder, CONFIG), 0, "holds no settings"))
    records: list[bytes] = [record_bytes({"file": CONFIG, **_kept(config)})]
    events = _events(folder, files, records)
    thread = Thread()
    for event in events:
        thread.take(event)
    sides = _sides(unit, files, problems)
    draft = SessionDraft(
        source_id, os.path.join(folder, UI), KIND,
        created_at=epoch_ms(config.get("created_at")) or next((e.at for e in events if e.at), 0),
        updated_at=max([epoch_ms(config.get("updated_at")) or 0, *(e.at for e in events)]),
        workspace_root=string(config.get("workspace_path")), model=_model(config),
        messages=thread.messages, records=records,
        partial=not _has_ui(folder, files),
    )  # fmt: skip
    _name(draft, config)
    _describe(draft, config, thread, sides, records)
    _add_costs(draft, sides)
    _add_files(draft, sides, files, records)
    return draft


def _kept(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings but for the agent's own, which may hold keys."""
    return {key: value for key, value in config.items() if key != "agent_config"}


def _has_ui(folder: str, files: UnitFiles) -> bool:
    """Return whether the file is there that newer versions tell everything in."""
    ui = files.lines.get(os.path.join(folder, UI))
    return ui is not None and bool(ui.lines)


def _events(folder: str, files: UnitFiles, records: list[bytes]) -> list[Event]:
    """Return what happened; the lines' records are added to ``records``."""
    lines = {name: files.lines.get(os.path.join(folder, name)) for name in (UI, AGENT)}
    ui = lines[UI]
    if ui is not None and ui.lines:
        first = len(records)
        records += ui.records
        agent_first = len(records)
        agent = lines[AGENT]
        records += agent.records if agent is not None else []
        return events_of(ui, agent, first, agent_first)
    older: list[tuple[GrowingFile, int]] = []
    for name in (ROLLOUT, BOARD):
        file = files.lines.get(os.path.join(folder, name))
        if file is not None and file.lines:
            older.append((file, len(records)))
            records += file.records
    return older_events(older)


def _sides(unit: Unit, files: UnitFiles, problems: list[Problem]) -> Sides:
    sides = Sides({}, {}, {})
    for stamp in unit.stamps:
        body = files.bodies.get(stamp.path)
        folder, name = os.path.split(stamp.path)
        if body is None or name == CONFIG:
            continue
        if name == META:
            sides.metas[folder] = parse_settings(body)
        elif os.path.basename(folder) == "tasks" and name.endswith(".yaml"):
            sides.tasks[stamp.path] = {"id": name.removesuffix(".yaml"), **parse_settings(body)}
        elif name == TASK and os.path.basename(os.path.dirname(folder)) == "tasks":
            try:
                task = parse_object(body)
            except LineError as error:
                problems.append(Problem(stamp.path, 0, f"no task: {error}"))
                continue
            sides.tasks[stamp.path] = {"id": os.path.basename(folder), **task}
        else:
            sides.contents.setdefault(folder, []).append(stamp.path)
    return sides


def _name(draft: SessionDraft, config: dict[str, Any]) -> None:
    draft.tells_title = bool(config)
    named = string(config.get("title")) or request_of(string(config.get("prompt")) or "")
    if title := shortened(named) or first_prompt(draft.messages):
        draft.title = title
        given = next((key for key in ("title", "prompt") if string(config.get(key))), None)
        draft.title_from = given or "first-prompt"


def _model(config: dict[str, Any]) -> dict[str, Any] | None:
    agent = mapping(config.get("agent_config"))
    named = agent.get("model", config.get("model"))
    if isinstance(named, dict):
        provider = string(named.get("provider")) or "unknown"
        name = string(named.get("id")) or string(named.get("name"))
        return {"provider_id": provider, "model_id": name} if name else None
    if not isinstance(named, str) or not named:
        return None
    provider, slash, name = named.partition("/")
    return {"provider_id": provider if slash else "unknown", "model_id": name or provider}


def _describe(
    draft: SessionDraft, config: dict[str, Any], thread: Thread, sides: Sides, records: list[bytes]
) -> None:
    own: dict[str, Any] = {key: config[key] for key in _CONFIG_KEPT if config.get(key)}
    own |= thread.notes
    tasks = sorted(sides.tasks.values(), key=lambda task: str(task.get("task_index", "")))
    if tasks:
        own["tasks"] = tasks
        records.extend(record_bytes({"file": "task", **task}) for task in tasks)
    favourites = {string(task.get("id")) for task in tasks if task.get("favorite") is True}
    if favourites:
        own["is_starred"] = True
        for message in draft.messages:
            if message.role == "user" and _task_of(message) in favourites:
                message.metadata["backscroll"]["favorite"] = True
    if own:
        draft.metadata["backscroll"] = own
    activity = _activity(config, tasks, draft)
    if activity is not None:
        draft.metadata["activity"] = activity


def _activity(
    config: dict[str, Any], tasks: list[dict[str, Any]], draft: SessionDraft
) -> dict[str, Any] | None:
    """Return what the newest task, or else the session itself, says that it does."""
    newest = max(tasks, key=lambda task: epoch_ms(task.get("updated_at")) or 0, default=None)
    state = _TASK_STATES.get(str(newest.get("status"))) if newest is not None else None
    since = epoch_ms(newest.get("updated_at")) if newest is not None else None
    if state == "running" and _has_ended(draft.messages, str((newest or {}).get("id"))):
        # The program says about the end in its lines before it does in the task's file.
        state = None
    state = state or _SESSION_STATES.get(str(config.get("status")))
    if state is not None:
        return {"state": state, "from": "stored", "since": since or draft.updated_at}
    words = (
        ((newest or {}).get("status"), _TASK_STATES), (config.get("status"), _SESSION_STATES)
    )  # fmt: skip
    word = next(
        (said for one, known in words
         if (said := string(one)) and said != "active" and said not in known), None,
    )  # fmt: skip
    if word is None:
        return None
    since = since or draft.updated_at
    return {"state": "unknown", "from": "stored", "since": since, "word": word}


def _has_ended(messages: list[MessageDraft], task_id: str) -> bool:
    answers = [m for m in messages if m.role == "assistant" and _task_of(m) == task_id]
    last = answers[-1].parts[-1:] if answers else []
    return any(part.type in ("data-result", "data-error") for part in last)


def _task_of(message: MessageDraft) -> str | None:
    return string(mapping(message.metadata.get("backscroll")).get("task_id"))


def _add_costs(draft: SessionDraft, sides: Sides) -> None:
    """Take a task's cost where none of its lines told one."""
    for task in sides.tasks.values():
        cost, name = task.get("cost"), string(task.get("id"))
        answers = [m for m in draft.messages if m.role == "assistant" and _task_of(m) == name]
        told = any("cost_usd" in message.metadata for message in answers)
        if answers and not told and isinstance(cost, int | float) and not isinstance(cost, bool):
            answers[-1].metadata["cost_usd"] = cost


def _add_files(draft: SessionDraft, sides: Sides, files: UnitFiles, records: list[bytes]) -> None:
    """Put the files that a task made behind its answer."""
    for folder, meta in sorted(sides.metas.items()):
        answers = [m for m in draft.messages if _task_of(m) == string(meta.get("task_id"))]
        answers = [m for m in answers if m.role == "assistant"] or answers
        if not answers:
            continue
        records.append(record_bytes({"file": META, **meta}))
        part = _file_part(folder, meta, sides, files, draft)
        part.records = (len(records) - 1,)
        answers[-1].parts.append(part)


def _file_part(
    folder: str, meta: dict[str, Any], sides: Sides, files: UnitFiles, draft: SessionDraft
) -> PartDraft:
    name, path = string(meta.get("name")) or "file", string(meta.get("path"))
    at = epoch_ms(meta.get("created_at")) or draft.updated_at
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    own: dict[str, Any] = {"library_file": meta}
    for content in sides.contents.get(folder, ()):
        attached = f"{os.path.basename(folder)}/{os.path.basename(content)}"
        kind = mimetypes.guess_type(content)[0] or "application/octet-stream"
        draft.attachments.append(AttachmentDraft(attached, kind, files.bodies[content]))
        if "attachment" not in own or os.path.basename(content) == name:
            own["attachment"] = attached
    data = {
        "type": "file",
        "mediaType": media,
        "url": f"file://{path}" if path else "",
        "filename": name,
        "resultProviderMetadata": {"backscroll": own},
    }
    return PartDraft("file", data, at, at)
