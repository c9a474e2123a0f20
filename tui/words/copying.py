"""What of a tool call is worth a place in the clipboard: what one would paste comes first.

Agents name their tools and arguments differently, so the arguments decide, not the tool: a call
with a command ran it, one with a pattern searched for it, one with the content of a file wrote it.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, NamedTuple

from store.conversation.calls import todo_items
from store.conversation.readable import readable
from store.conversation.touched import PATHS
from store.text.stored_json import as_dict, as_list


class Copyable(NamedTuple):
    """A piece of a call that can be copied.

    Attributes:
        key: Its letter in "copy as…", "" for none.
        name: What it is, such as ``command`` or ``path``.
        text: All of it, as the agent gave it.
    """

    key: str
    name: str
    text: str


_EDITOR_VERBS = frozenset({
    "view", "read", "create", "write", "append", "insert", "edit", "str_replace", "replace",
    "delete", "undo_edit", "rename",
})
"""What the argument ``command`` of an editor tool says; nobody would paste it."""
_PIECES: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("c", "command", frozenset({"command", "cmd", "argv"})),
    ("d", "patch", frozenset({"patch", "patchText", "diff"})),
    ("g", "pattern", frozenset({"pattern", "patterns", "regex", "regexp", "filePattern",
                                "glob_pattern"})),
    ("u", "address", frozenset({"url", "urls"})),
    ("q", "query", frozenset({"query", "queries", "search_term", "q"})),
    ("n", "new text", frozenset({"content", "contents", "file_text", "text"})),
    ("f", "path", frozenset(PATHS) | {"paths", "dir_path",
                           "dirPath", "directory", "directory_path", "relative_path",
                           "relative_workspace_path", "target_directory", "folder"}),
    ("l", "glob", frozenset({"glob", "include", "includePattern", "include_pattern",
                             "file_pattern"})),
    ("n", "new text", frozenset({"new_string", "newString", "newText", "new_str"})),
    ("e", "old text", frozenset({"old_string", "oldString", "oldText", "old_str"})),
    ("r", "prompt", frozenset({"prompt", "message", "question"})),
    ("a", "plan", frozenset({"plan"})),
    ("w", "folder", frozenset({"cwd", "cd", "workdir", "working_directory"})),
)
"""Letter, name and arguments of each piece; the first that a call has is the one to paste."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.M)
_BOXES = {"completed": "x", "cancelled": "-"}


def copyables(data: dict[str, Any]) -> list[Copyable]:
    """Return what of a call can be copied: what one would paste first, then the rest.

    Args:
        data: A tool part.
    """
    given = data.get("input") if data.get("input") is not None else data.get("rawInput")
    arguments = as_dict(given)
    if not arguments:
        text = given if isinstance(given, str) else readable(given)
        return _of_patch(text) or ([Copyable("n", "input", text)] if text else [])
    found = [
        Copyable(key, name, text)
        for key, name, arguments_of in _PIECES
        for argument, value in arguments.items()
        if argument in arguments_of and (text := _text(argument, value, arguments))
    ]
    if isinstance(patch := arguments.get("input"), str):
        found = [*_of_patch(patch), *found]
    todo = _check_list(arguments)
    if todo:
        found.append(Copyable("n", "check list", todo))
    found += _others(arguments, {piece.text for piece in found})
    return _one_letter_each(found or [Copyable("n", "input", readable(arguments))])


def _text(argument: str, value: Any, arguments: dict[str, Any]) -> str:
    """Return an argument as one would paste it, "" where one would not."""
    if isinstance(value, str):
        verb = argument == "command" and value.strip() in _EDITOR_VERBS and len(arguments) > 1
        return "" if verb or not value.strip() else value
    words = [item for item in as_list(value) if isinstance(item, str)]
    if not words or len(words) != len(value):
        return ""
    if argument not in ("command", "cmd", "argv"):
        return "\n".join(words)
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _of_patch(text: str) -> list[Copyable]:
    """Return a patch of ``apply_patch`` and the files that it changes; nothing for other text."""
    paths = [Copyable("f", "path", path) for path in _PATCHED.findall(text)]
    return [Copyable("d", "patch", text), *paths] if paths else []


def _check_list(arguments: dict[str, Any]) -> str:
    """Return the items of a to-do list as Markdown, "" where there is none."""
    items = todo_items(arguments.get("todos") or arguments.get("plan") or arguments.get("items"))
    return "\n".join(f"- [{_BOXES.get(state, ' ')}] {text}" for state, text in items)


def _others(arguments: dict[str, Any], known: set[str]) -> list[Copyable]:
    """Return the other arguments that are texts, by their names."""
    return [
        Copyable("", name, value) for name, value in arguments.items()
        if isinstance(value, str) and value.strip() and value not in known
        and value.strip() not in _EDITOR_VERBS
    ]


def _one_letter_each(pieces: list[Copyable]) -> list[Copyable]:
    """Leave each letter to the first piece that has it."""
    taken: set[str] = set()
    kept = []
    for piece in pieces:
        kept.append(piece._replace(key="") if piece.key in taken else piece)
        taken.add(piece.key)
    return kept
