"""A thread of Zed, from its row to a draft.

Source: the Zed format page. A thread has one time and one model: those of its last save.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.protocol import Problem
from store.sources.base.row_reader import Row
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.values import mapping, number, string, utc_ms
from store.sources.zed.messages import Messages
from store.system.compression import DamagedFrame, unpack_stream

KIND = "zed"
_PLACEHOLDER = "New Thread"
_BUCKETS = (("input", "input_tokens"), ("output", "output_tokens"),
            ("cache_read", "cache_read_input_tokens"),
            ("cache_write", "cache_creation_input_tokens"))  # fmt: skip
_PAST_MS = re.compile(r"(\.\d{3})\d+")


def time_ms(stamp: object) -> int | None:
    """Return a time as epoch ms; of nine decimals the first three count."""
    return utc_ms(_PAST_MS.sub(r"\1", stamp) if isinstance(stamp, str) else stamp)


def read_row(
    path: str, row: Row, sidebar: Row, problems: list[Problem]
) -> SessionDraft | None:
    """Return the session of a row; None for a draft of which nothing was sent.

    Args:
        path: The database.
        row: The thread's row.
        sidebar: What the sidebar says of it.
        problems: Takes what is damaged.
    """
    body = row.pop("data")
    try:
        data = _content(row.get("data_type"), body)
    except (LineError, DamagedFrame) as error:
        problems.append(Problem(path, 0, f"thread {row['id']}: {error}"))
        draft = _draft(path, row, sidebar, {})
        draft.records = [record_bytes({"table": "threads", **row})]
        draft.partial = True
        _name(draft, row, {}, sidebar)
        return draft
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        return None
    draft = _draft(path, row, sidebar, data)
    made = Messages(draft.created_at)
    for place, message in enumerate(messages):
        made.take(place, message)
    draft.messages = made.finished()
    kept = {"table": "threads", **row, "data": _kept(data)}
    draft.records = [record_bytes(kept), *map(record_bytes, messages)]
    _name(draft, row, data, sidebar)
    _count(draft, data)
    activity = made.activity(draft.updated_at)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _content(kind: object, body: object) -> dict[str, Any]:
    """Return the JSON of a row.

    Raises:
        LineError: It is no JSON object.
        DamagedFrame: It cannot be unpacked.
    """
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if kind not in ("json", "zstd") or not isinstance(raw, bytes):
        raise LineError(f"content of an unknown form: {str(kind)[:40]}")
    data, _ = parse_json(unpack_stream(raw) if kind == "zstd" else raw)
    if not isinstance(data, dict):
        raise LineError("no JSON object")
    return data


def _kept(data: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a thread beside its messages.

    Unsent words are left out, and so are uncommitted diffs, and addresses that may hold a token.
    """
    kept = {key: value for key, value in data.items() if key not in ("messages", "draft_prompt")}
    if "initial_project_snapshot" in kept:
        kept["initial_project_snapshot"] = {"worktree_snapshots": [
            {"worktree_path": tree.get("worktree_path"), "git_state": {
                name: mapping(tree.get("git_state")).get(name)
                for name in ("head_sha", "current_branch")}}
            for tree in _trees(data)]}  # fmt: skip
    return kept


def _trees(data: dict[str, Any]) -> list[dict[str, Any]]:
    trees = mapping(data.get("initial_project_snapshot")).get("worktree_snapshots")
    return [mapping(each) for each in trees] if isinstance(trees, list) else []


def _folders(row: Row) -> list[str]:
    """Return the folders in the order in which the person has them; the column is sorted."""
    paths = (string(row.get("folder_paths")) or "").split("\n")
    order = (string(row.get("folder_paths_order")) or "").split(",")
    places = [int(each) if each.strip().isdecimal() and len(each) < 9 else place
              for place, each in enumerate(order)]  # fmt: skip
    places += range(len(places), len(paths))
    return [path for _, path in sorted(zip(places, paths, strict=False)) if path]


def _draft(path: str, row: Row, sidebar: Row, data: dict[str, Any]) -> SessionDraft:
    updated = time_ms(row.get("updated_at")) or time_ms(data.get("updated_at")) or 0
    created = time_ms(row.get("created_at")) or updated
    updated = max(created, updated)
    folders, trees = _folders(row), _trees(data)
    snapshots = [str(tree["worktree_path"]) for tree in trees if string(tree.get("worktree_path"))]
    workspace = next(iter((*folders, *snapshots)), None)
    draft = SessionDraft(str(row["id"]), path, KIND, created, updated, workspace_root=workspace,
                         tells_title=bool(sidebar))  # fmt: skip
    model = mapping(data.get("model"))
    if string(model.get("model")):
        provider = string(model.get("provider")) or "unknown"
        draft.model = {"provider_id": provider, "model_id": model["model"]}
    if number(sidebar.get("archived")) and folders:
        # A thread without a folder is archived by Zed itself.
        draft.archived_at = time_ms(sidebar.get("updated_at")) or updated
    extra: dict[str, Any] = {"folders": folders} if len(folders) > 1 else {}
    git = [{"worktree": tree.get("worktree_path"), "branch": branch} for tree in trees
           if (branch := string(mapping(tree.get("git_state")).get("current_branch")))]  # fmt: skip
    for tree in git:
        if tree["worktree"] == workspace:
            draft.metadata["git_branch"] = tree["branch"]
    if git:
        extra["git"] = git
    extra |= {name: data[name] for name in ("version", "profile") if string(data.get(name))}
    if data.get("imported") is True:
        extra["imported"] = True
    draft.metadata["backscroll"] = extra
    context = mapping(data.get("subagent_context"))
    parent = string(row.get("parent_id")) or string(context.get("parent_thread_id"))
    if parent is not None and parent != draft.source_id:
        draft.lineage = LineageDraft("subagent", parent)
    return draft


def _name(draft: SessionDraft, row: Row, data: dict[str, Any], sidebar: Row) -> None:
    own = string(sidebar.get("title_override"))
    given = (row.get("summary"), data.get("title"), data.get("summary"))
    title = own or next((each for each in given if string(each)), None)
    if title:
        draft.title = shortened(title)
        named = "placeholder" if title == _PLACEHOLDER else "title"
        draft.title_from = "custom-title" if own else named
    else:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None


def _count(draft: SessionDraft, data: dict[str, Any]) -> None:
    """Add what the thread spent, as an answer without words.

    The sum over all requests is right; of each prompt only the last request is noted.
    """
    requests = data.get("request_token_usage")
    asked: Iterable[Any] = (
        requests.values() if isinstance(requests, dict)
        else requests if isinstance(requests, list) else ()
    )  # fmt: skip
    usage = _spent([data.get("cumulative_token_usage")])
    if not any(usage.values()):
        usage = _spent(asked)
    if not any(usage.values()):
        return
    at = draft.updated_at
    used = MessageDraft("usage", "assistant", at, at, {
        "usage": usage, "backscroll": {"no_answer": True, "initiator": "session"}})  # fmt: skip
    if draft.model is not None:
        used.metadata["model"] = draft.model
    used.records = (0,)
    draft.messages.append(used)


def _spent(given: Iterable[Any]) -> dict[str, int]:
    found = {"input": 0, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0}
    for each in map(mapping, given):
        for bucket, name in _BUCKETS:
            found[bucket] += max(0, number(each.get(name)))
    return found
