"""A trajectory of SWE-agent to its session.

Source: the SWE-agent format page, section "SWE-agent". Each step repeats the whole prompt, which is
never kept; demonstrations in the history are not of this run. There are no ids and no times.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.content_blocks import text_of
from store.sources.base.databases import decoded, record_bytes
from store.sources.base.drafts import MessageDraft, PartDraft, Role, SessionDraft
from store.sources.base.plain_parts import call_part, data_part, text_part
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import mapping, named_model, number, string
from store.sources.swe_agent.shared import KIND, dollars, no_answer, settle

_NOT_KEPT = frozenset({"query", "messages"})
_NO_INFO = frozenset({"trajectory", "history", "attempts", "replay_config", "environment"})
_MOST_MS = 30 * 24 * 3600 * 1000


def is_trajectory(data: Any) -> bool:
    """Return whether a document is one of this program."""
    if not isinstance(data, dict):
        return False
    attempts = data.get("attempts")
    listed = data.get("trajectory")
    if not isinstance(listed, list):
        return isinstance(attempts, list) and any(
            isinstance(mapping(one).get("trajectory"), list) for one in attempts)
    if not listed:
        return isinstance(data.get("info"), dict)
    return any("action" in mapping(step) and "observation" in mapping(step) for step in listed)


def steps_draft(path: str, data: dict[str, Any], written_ms: int) -> SessionDraft:
    """Return the session of a trajectory.

    Args:
        path: Its file.
        data: The document.
        written_ms: When the file was written, epoch ms.
    """
    info, config = mapping(data.get("info")), mapping(decoded(data.get("replay_config")))
    agent = mapping(config.get("agent"))
    model = named_model(mapping(agent.get("model")).get("name"))
    attempts = data.get("attempts")
    runs = [mapping(one) for one in attempts] if isinstance(attempts, list) else []
    runs = [one for one in runs if isinstance(one.get("trajectory"), list)] or [data]
    taken = _Steps(model, written_ms, {key: each for key, each in data.items()
                                       if key not in _NO_INFO})  # fmt: skip
    taken.begin(_history(data) or _history(runs[0]), config)
    for nth, run in enumerate(runs):
        if len(runs) > 1:
            taken.event(f"attempt-{nth + 1}", "attempt", {"number": nth + 1})
        for place, step in enumerate(map(mapping, run.get("trajectory") or ())):
            taken.step(f"{nth}:{place}" if len(runs) > 1 else f"{place}", step)
    ended, stats = string(info.get("exit_status")), mapping(info.get("model_stats"))
    taken.spent(stats)
    draft = SessionDraft(
        path, path, KIND, written_ms, written_ms, workspace_root=taken.folder,
        messages=taken.found, model=model, records=taken.records, names_count=True,
    )  # fmt: skip
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    draft.metadata["backscroll"] = {
        "format": KIND, "exit_status": ended or "", "submission": info.get("submission") or "",
        "api_calls": number(stats.get("api_calls")),
    }  # fmt: skip
    if ended is None:
        draft.metadata["activity"] = {"state": "running", "from": "guessed", "since": written_ms}
    elif not ended.startswith("submitted"):
        draft.metadata["activity"] = {"state": "error", "from": "stored", "since": written_ms}
    return draft


def _history(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was said in a run, without demonstrations."""
    given = run.get("history")
    said = map(mapping, given if isinstance(given, list) else ())
    return [one for one in said if one.get("is_demo") is not True
            and one.get("message_type") != "demonstration"]  # fmt: skip


class _Steps:
    """The messages of steps.

    Attributes:
        found: The drafts, in order.
        records: What they were made of.
        folder: Where the commands were run; None where no step tells.
    """

    def __init__(self, model: dict[str, Any] | None, at: int, about: dict[str, Any]) -> None:
        self.found: list[MessageDraft] = []
        self.records = [record_bytes(about)]
        self.folder: str | None = None
        self._model, self._at = model, at

    def _add(self, name: str, role: Role, parts: list[PartDraft]) -> MessageDraft:
        draft = MessageDraft(name, role, self._at, self._at, {}, parts)
        if not parts:
            draft.records = (len(self.records) - 1,)
        self.found.append(draft)
        return draft

    def _keep(self, record: dict[str, Any]) -> int:
        self.records.append(record_bytes(record))
        return len(self.records) - 1

    def event(self, name: str, kind: str, details: object) -> None:
        """Add what the program did.

        Args:
            name: The message's id.
            kind: What it is.
            details: What is known of it.
        """
        part = data_part("event", {"name": kind, "details": details}, self._at,
                         len(self.records) - 1)  # fmt: skip
        self._add(name, "system", [part])

    def begin(self, history: list[dict[str, Any]], config: dict[str, Any]) -> None:
        """Add the system prompt and the task.

        Args:
            history: What was said, without demonstrations.
            config: What the run was started with.
        """
        prompt = next((one for one in history if one.get("role") == "system"), None)
        if prompt is not None:
            self._keep(prompt)
            self.event("system", "system prompt", text_of(prompt.get("content")))
        asked = next((one for one in history if one.get("role") == "user"), None)
        problem = mapping(config.get("problem_statement"))
        task = next((problem[key] for key in ("text", "github_url", "path")
                     if string(problem.get(key))), None)  # fmt: skip
        words = text_of(asked.get("content")) if asked is not None else ""
        if task is None and not words:
            return
        record = self._keep(asked if asked is not None else {"problem_statement": problem})
        parts = [text_part(task or words, self._at, record)]
        if task is not None and words and words != task:
            parts.append(data_part("event", {"name": "instructions", "details": words},
                                   self._at, record))  # fmt: skip
        self._add("task", "user", parts).metadata["origin"] = "human"

    def step(self, name: str, step: dict[str, Any]) -> None:
        """Add a step: what was thought, the command, and what it printed.

        Args:
            name: The step's place.
            step: The step.
        """
        record = self._keep({key: each for key, each in step.items() if key not in _NOT_KEPT})
        state = mapping(decoded(step.get("state")))
        self.folder = self.folder or string(state.get("working_dir"))
        action, thought = string(step.get("action")), string(step.get("thought"))
        words = thought or ("" if action and action.strip() else string(step.get("response")))
        parts = [text_part(words.strip(), self._at, record)] if words else []
        observed = step.get("observation")
        output = observed if isinstance(observed, str) else str(observed or "")
        if action and action.strip():
            tool = action.split(maxsplit=1)[0]
            given = {"command": action.removesuffix("\n")}
            part = call_part(tool, f"{name}:call", given, self._at, record)
            seconds = step.get("execution_time")
            took = seconds * 1000 if isinstance(seconds, int | float) else 0
            extra = {"duration_ms": int(took)} if 0 < took < _MOST_MS else {}
            settle(part, "ok", output, self._at, record, **extra)
            parts.append(part)
        elif output:
            parts.append(data_part("event", {"name": "observation", "details": output},
                                   self._at, record))  # fmt: skip
        answer = self._add(name, "assistant", parts)
        if self._model is not None:
            answer.metadata["model"] = self._model

    def spent(self, stats: dict[str, Any]) -> None:
        """Add what all requests of the run spent."""
        tokens = {
            "input": max(0, number(stats.get("tokens_sent"))),
            "output": max(0, number(stats.get("tokens_received"))),
            "reasoning": 0, "cache_read": 0, "cache_write": 0,
        }  # fmt: skip
        cost = dollars(stats.get("instance_cost"))
        if not any(tokens.values()) and cost is None:
            return
        used = no_answer("usage", self._at, 0, initiator="session")
        used.metadata["usage"] = tokens
        if cost is not None:
            used.metadata["cost_usd"] = cost
        if self._model is not None:
            used.metadata["model"] = self._model
        self.found.append(used)
