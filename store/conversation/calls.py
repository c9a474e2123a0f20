"""A tool call in words: its name, what it acted on, how it ended, what it returned.

For screens, pages and documents alike. What a call is named and what it acted on is neutral text
on one line; its body and its result are as the session has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from store.conversation.outcomes import Outcome, Status, details_of, outcome, tool_name
from store.conversation.readable import output_text, readable
from store.conversation.replies import Answer, answers_in, approved_plan, reply_in, untagged
from store.conversation.touched import (
    EDITORS,
    PATHS,
    READERS,
    SEARCHES,
    SHELLS,
    WRITERS,
    changed_count,
    changed_lines,
    joined_command,
    may_touch,
    patch_text,
    plain_name,
)
from store.text import figures
from store.text.diffs import DiffLine, files_in
from store.text.neutral import neutral, neutral_line
from store.text.stored_json import as_dict, as_list

BodyKind = Literal["text", "diff", "todo", "markdown", "code"]


@dataclass(slots=True)
class Call:
    """A tool call, ready to be laid out.

    Attributes:
        name: The tool as people call it.
        what: What it did, in one line.
        marks: Runs after it, such as ``+9 -3``.
        word: How it ended, "" for a plain success.
        changed: How many lines of files it added and removed.
        milliseconds: How long it took; None where unknown.
        size: How much came back, in words.
        reply: A person's words in answer to the call.
        answers: What a person answered to its questions.
        output: All that the call gave back, as text.
        body: What opens below: text, diff lines, or ``(state, text)`` of a check list.
        result: What the call gave back, where the body is something else; or the fixed text
            around a person's words.
        lead_lines: Body lines that show when outputs are short.
        from_end: Whether the short form shows the end of the body.
        call_id: ``toolCallId``.
    """

    name: str
    what: str
    status: Status
    word: str = ""
    marks: list[tuple[str, str]] = field(default_factory=list)
    changed: tuple[int, int] = (0, 0)
    milliseconds: float | None = None
    size: str = ""
    kind: BodyKind = "text"
    reply: str = ""
    answers: str = ""
    output: str = ""
    body: Any = ""
    result: str = ""
    lead_lines: int = 4
    from_end: bool = False
    language: str = ""
    call_id: str = ""

    @property
    def result_matters(self) -> bool:
        """Whether the result says more than that the call succeeded."""
        return self.status == "failed" or (
            self.status in ("denied", "interrupted") and not self.reply
        )

    @property
    def searched(self) -> str:
        """All that shows when the call is open whole."""
        if self.kind == "diff":
            body = "\n".join(line.text for line in self.body)
        elif self.kind == "todo":
            body = "\n".join(text for _state, text in self.body)
        else:
            body = self.body
        shown = (f"{self.name} {self.what}", self.reply, body, self.result)
        return "\n".join(filter(None, shown))


def shortened(text: str, root: str | None) -> str:
    """Return a path from the workspace on, or with ``~`` for the home."""
    text = neutral_line(text)
    if root and text.startswith(root.rstrip("/") + "/"):
        return text[len(root.rstrip("/")) + 1:]
    return figures.home_path(text)


def ended_in(call: Call) -> str:
    """Return the call's duration for people, "" where it is unknown or nothing."""
    return figures.duration(call.milliseconds) if call.milliseconds is not None else ""


# Any call


_TELLING = (
    "command", "cmd", "argv", "file_path", "filePath", "path", "absolute_path", "notebook_path",
    "query", "pattern", "url", "subject", "description", "prompt", "question", "skill", "title",
    "name", "text", "message", "task_id", "bash_id", "shell_id", "id",
)
"""The most telling argument, first found first."""


def describe(
    data: dict[str, Any], root: str | None = None, times: tuple[int, int] = (0, 0)
) -> Call:
    """Return what a tool part did.

    Args:
        data: The part.
        root: The session's workspace; paths below it are shown from there.
        times: ``created_at`` and ``updated_at`` of the part, epoch ms.
    """
    name = tool_name(data)
    given = data.get("input") if data.get("input") is not None else data.get("rawInput")
    call = Call(_shown_name(name), "", "ok", call_id=str(data.get("toolCallId") or ""))
    refused = as_dict(data.get("approval")).get("reason")
    call.body = output_text(data.get("errorText") or data.get("output") or refused)
    _ending(call, outcome(data, call.body, times))
    plain = plain_name(name)
    arguments = as_dict(given)
    call.what = shortened(_telling(arguments, given), root)
    call.output = call.body
    succeeded = data.get("state") == "output-available"
    call.reply, result = reply_in(call.body, succeeded=succeeded)
    call.body = "" if call.reply else result
    for names, fill in SPECIAL:
        if plain in names:
            fill(call, arguments, as_dict(details_of(data).get("structured")), root)
            break
    if may_touch(plain) and call.status not in ("failed", "denied"):
        call.changed = changed_count(data, call.body if call.kind == "diff" else None)
        signs = zip("+-", call.changed, ("ok", "error"), strict=True)
        call.marks += [(f"{sign}{count}", ink) for sign, count, ink in signs if count]
    if result and not call.result and call.body != result:
        call.result = result
    if call.kind == "text" and call.body and not call.size:
        lines = call.body.count("\n") + 1
        call.size = f"{lines} lines" if lines > call.lead_lines else ""
    call.name, call.what, call.word, call.size = map(
        _row, (call.name, call.what, call.word, call.size)
    )
    call.marks = [(_row(text), ink) for text, ink in call.marks]
    return call


def _row(text: str) -> str:
    return neutral(text).replace("\n", " ")


def _shown_name(name: str) -> str:
    if name.startswith("mcp__"):
        return neutral_line(" ".join(name[5:].split("__")))
    return neutral_line(name)


def _telling(arguments: dict[str, Any], given: Any) -> str:
    if not arguments:
        return given if isinstance(given, str) else readable(given)
    for name in _TELLING:
        value = arguments.get(name)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return joined_command(value)
        if isinstance(value, str) and value.strip():
            return value
    return ", ".join(f"{name}: {readable(value)}" for name, value in arguments.items())


def _ending(call: Call, ended: Outcome) -> None:
    """Fill in status, word, duration, and drop from the output what is shown beside it."""
    call.body = call.body[ended.head :]
    call.status, call.word = ended.status, ended.word
    call.milliseconds = ended.milliseconds
    call.from_end = ended.status == "failed"


# Tools that agents share: shells, files, searches, lists, subagents


_QUESTIONS = frozenset({
    "askuserquestion", "question", "ask_user", "ask_question", "ask_user_question",
    "ask_followup_question", "request_user_input",
})
_ANSWERED_PLAINLY = frozenset({"ask_question", "ask_followup_question"})
"""Tools of Cline, Roo and Kilo, whose result is what the person said and nothing else."""


def asks_a_person(data: dict[str, Any]) -> bool:
    """Return whether a tool part is an agent's question to the person."""
    return plain_name(tool_name(data)) in _QUESTIONS


_AGENTS = frozenset({"task", "agent", "subagent", "spawn_agent", "delegate"})


def _shell(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    if "\n" in str(given.get("command", "")).strip():
        call.marks = [(f"+{str(given['command']).strip().count(chr(10))} lines", "faint")]


def _read(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    if call.status != "ok":
        return
    call.lead_lines = 0
    file = as_dict(structured.get("file"))
    lines = file.get("numLines")
    if not isinstance(lines, int):
        lines = call.body.count("\n") + 1 if call.body else 0
    call.size = f"{lines} line{'s' * (lines != 1)}" if lines else ""
    start = given.get("offset")
    if isinstance(start, int) and start > 1:
        call.marks = [(f"from {start}", "faint")]
    call.kind = "code"


def _listing(
    call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None
) -> None:
    pattern = given.get("pattern") or given.get("query")
    if isinstance(pattern, str):
        call.what = neutral_line(pattern)
    where = given.get("path") or given.get("glob") or given.get("include")
    if isinstance(where, str) and where:
        call.marks = [(f"in {shortened(where, root)}", "muted")]
    if call.status == "ok":
        call.lead_lines = 0
        lines = call.body.count("\n") + 1 if call.body else 0
        call.size = f"{lines} line{'s' * (lines != 1)}"


def _edit(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    call.what = _path_of(given, structured, root) or call.what
    _show_lines(call, changed_lines(given, structured), 12)


def _show_lines(call: Call, lines: list[DiffLine], lead: int) -> None:
    """Show the lines of a change, where there was one."""
    if call.status in ("failed", "denied") or not lines:
        return
    call.kind, call.body, call.lead_lines, call.size = "diff", lines, lead, ""


def _path_of(given: dict[str, Any], structured: dict[str, Any], root: str | None) -> str:
    path = next((given[name] for name in PATHS if isinstance(given.get(name), str)), None)
    path = path or _patched(given, structured, root)
    return shortened(path, root) if path else ""


def _patched(given: dict[str, Any], structured: dict[str, Any], root: str | None) -> str | None:
    """Return which files a patch is about: the first, and how many more."""
    names = [as_dict(file).get("path") for file in as_list(structured.get("files"))]
    paths = [name for name in names if isinstance(name, str)]
    paths = paths or [file.path for file in files_in(patch_text(given) or "") if file.path]
    if not paths:
        return None
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return shortened(paths[0], root) + more


def _write(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    call.what = _path_of(given, structured, root) or call.what
    lines = changed_lines(given, structured, writes=True)
    _show_lines(call, lines, 12 if structured.get("structuredPatch") else 6)


def _todo(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    items = todo_items(given.get("todos") or given.get("plan") or given.get("items"))
    if not items:
        return
    done = sum(state == "completed" for state, _text in items)
    now = next((text for state, text in items if state == "in_progress"), "")
    why = given.get("explanation")
    about = [f"{done} of {len(items)} done", now, neutral_line(why) if isinstance(why, str) else ""]
    call.what = "  ".join(filter(None, about))
    call.kind, call.body, call.lead_lines, call.size = "todo", items, 20, ""


_TODO_STATES = {
    "completed": "completed", "done": "completed", "in_progress": "in_progress",
    "pending": "pending", "todo": "pending", "cancelled": "cancelled", "canceled": "cancelled",
}  # fmt: skip


def todo_items(value: Any) -> list[tuple[str, str]]:
    """Return ``(state, text)`` of a check list: completed, in_progress, pending, cancelled.

    Any other state is pending, and its word stands behind the text.
    """
    items = []
    for item in as_list(value):
        item = as_dict(item)
        text = item.get("content") or item.get("step") or item.get("text") or item.get("title")
        if isinstance(text, str):
            word = str(item.get("status") or ("completed" if item.get("done") else "pending"))
            state = _TODO_STATES.get(re.sub(r"[ -]", "_", word.lower()))
            text = text if state else f"{text} ({word})"
            items.append((state or "pending", neutral_line(text)))
    return items


def _agent(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    kind = given.get("subagent_type") or given.get("agent") or given.get("agent_type")
    about = given.get("description") or given.get("prompt") or given.get("message") or ""
    call.what = neutral_line(f"{kind}: {about}" if kind and about else str(about or kind or ""))
    total = structured.get("totalDurationMs")
    if isinstance(total, int | float):
        call.milliseconds = total
    tokens = structured.get("totalTokens")
    call.size = f"{figures.tokens(tokens)} tokens" if isinstance(tokens, int) else ""
    if call.status == "ok":
        call.kind, call.lead_lines = "markdown", 3


def _question(
    call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None
) -> None:
    questions = [as_dict(item) for item in as_list(given.get("questions")) or [given]]
    asked = [str(item.get("question") or "") for item in questions]
    call.what = neutral_line("  ".join(filter(None, asked))) or call.what
    if call.status == "ok":
        answers = answers_in(call.output, structured, questions)
        if not answers and call.name.lower() in _ANSWERED_PLAINLY and call.output.strip():
            answers = [Answer(asked[0], untagged(call.output))]
        call.answers = "\n".join(answer.text for answer in answers)
        call.body = call.answers or call.body


def _plan(call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None) -> None:
    plan = given.get("plan")
    approved = approved_plan(call.output, structured) if call.status == "ok" else None
    if approved is not None:
        plan, call.result = approved.plan, approved.rest
        if approved.edited:
            call.marks = [("edited", "user")]
    if isinstance(plan, str) and plan.strip():
        first = plan.strip().split("\n", 1)[0].lstrip("# ")
        call.what, call.kind, call.body, call.lead_lines = neutral_line(first), "markdown", plan, 8


_META = re.compile(r"""\b(name|description)\s*:\s*(["'`])(.*?)(?<!\\)\2""", re.S)
"""Name and description in a workflow's script: ``meta = {name: '…', description: '…'}``."""


def _workflow(
    call: Call, given: dict[str, Any], structured: dict[str, Any], root: str | None
) -> None:
    script = given.get("script")
    meta: dict[str, str] = {}
    if isinstance(script, str):
        for key, _, value in _META.findall(script[:4000]):
            meta.setdefault(key, value)
    name = structured.get("workflowName") or given.get("name") or meta.get("name")
    about = structured.get("summary") or meta.get("description")
    words = [word for word in (name, about) if isinstance(word, str) and word]
    if words:
        call.what = neutral_line(": ".join(words))


Filler = Callable[[Call, dict[str, Any], dict[str, Any], "str | None"], None]
SPECIAL: tuple[tuple[frozenset[str], Filler], ...] = (
    (SHELLS, _shell),
    (READERS, _read),
    (SEARCHES, _listing),
    (EDITORS, _edit),
    (WRITERS, _write),
    (frozenset({"todowrite", "todo_write", "update_plan", "todoread", "write_todos"}), _todo),
    (_AGENTS, _agent),
    (frozenset({"workflow"}), _workflow),
    (_QUESTIONS, _question),
    (frozenset({"exitplanmode", "exit_plan_mode"}), _plan),
)
"""Which function describes which tools; names in lower case, without MCP prefixes."""
