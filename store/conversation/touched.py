"""What a tool call touched: the files that it read or changed, the command that it ran.

A file that a shell command reads or writes is not known, but for a patch that it applies: Codex
runs ``apply_patch`` in a shell. A search names a folder or a pattern, so its place is a touch of
the kind ``search``, which is no reading of a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from store.conversation.outcomes import Outcome, details_of, outcome_of, tool_name
from store.rows import is_tool_type
from store.text.diffs import (
    DiffLine,
    FileDiff,
    added,
    between,
    files_in,
    from_patch,
    from_unified,
    tally,
)
from store.text.stored_json import as_dict, as_list

Kind = Literal["read", "search", "write", "edit", "delete", "move", "change"]
"""``change``: in an agent's own list of what differs after a step, however it was changed."""

PATHS = (
    "file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file", "filepath",
    "filename", "file_name", "file", "targetFile", "relativeWorkspacePath",
)
"""Arguments that name a file, first found first."""
SHELLS = frozenset({
    "bash", "shell", "exec_command", "run_shell_command", "local_shell", "execute", "terminal",
    "run_terminal_cmd", "shell_command", "exec", "powershell", "run_command", "shellexec",
    "run_in_terminal", "execute_command", "execute_bash", "run_bash", "bash_tool",
    "run_commands", "run_terminal_command_v2",
})
READERS = frozenset({
    "read", "read_file", "view", "view_file", "cat", "open_file", "fs_read", "view_image",
    "read_text_file", "read_media_file", "fileread", "file_read", "notebookread",
    "read_many_files", "read_multiple_files", "read_files",
    "read_file_v2", "copilot_readfile",
})
SEARCHES = frozenset({
    "grep", "glob", "search", "search_file_content", "find", "ls", "list", "list_directory",
    "grep_search", "file_search", "codebase_search", "search_files", "list_files",
    "search_codebase", "ripgrep_raw_search", "glob_file_search", "copilot_findtextinfiles",
    "copilot_findfiles", "copilot_listdirectory", "copilot_searchcodebase",
})
EDITORS = frozenset({
    "edit", "multiedit", "replace", "str_replace", "apply_patch", "applypatch", "patch",
    "notebookedit", "str_replace_editor", "str_replace_based_edit_tool", "edit_file",
    "search_replace", "fileedit", "file_edit", "multi_edit", "notebook_edit", "filepatch",
    "replace_string_in_file", "insert_edit_into_file", "editor_tool",
    "editor", "file_editor", "replace_in_file", "apply_diff", "insert_content",
    "edit_file_v2", "copilot_replacestring", "copilot_multireplacestring", "copilot_insertedit",
    "copilot_applypatch",
})
WRITERS = frozenset({
    "write", "write_file", "create", "create_file", "filewrite", "file_write", "fs_write",
    "save_file", "write_to_file", "save", "copilot_createfile", "filecreate", "file_create",
})
DELETERS = frozenset({"delete", "delete_file", "remove_file", "filedelete", "file_delete"})
MOVERS = frozenset({"move", "move_file", "rename_file", "filemove", "file_move"})

_KINDS: tuple[tuple[frozenset[str], Kind], ...] = (
    (READERS, "read"), (SEARCHES, "search"), (EDITORS, "edit"), (WRITERS, "write"),
    (DELETERS, "delete"), (MOVERS, "move"),
)
_KIND_OF: dict[str, Kind] = {name: kind for names, kind in _KINDS for name in names}
_ACTIONS: dict[str, Kind] = {
    "view": "read", "read": "read", "create": "write", "write": "write", "delete": "delete",
}
"""What the argument ``command`` or ``action`` of an editor makes of the call."""
_CHANGE_WORDS: dict[str, Kind] = {
    "add": "write", "added": "write", "create": "write", "created": "write", "new": "write",
    "delete": "delete", "deleted": "delete", "remove": "delete", "removed": "delete",
    "move": "move", "moved": "move", "rename": "move", "renamed": "move",
}
"""Words for what happened to a file; any other one is an edit."""


@dataclass(frozen=True, slots=True)
class FileTouch:
    """A file that a call touched.

    Attributes:
        path: As the agent wrote it.
        moved_to: The new path, empty where it stays.
        told: Lines added and removed as the source counted them.
        changes: Builds the lines of the change.
    """

    path: str
    kind: Kind
    moved_to: str = ""
    told: tuple[int, int] | None = None
    changes: Callable[[], list[DiffLine]] | None = field(default=None, compare=False, repr=False)

    @property
    def is_use(self) -> bool:
        """Whether the call read or changed the file, and not only searched in it."""
        return self.kind != "search"

    @property
    def is_change(self) -> bool:
        """Whether the file is another one after the call."""
        return self.is_use and self.kind != "read"

    def diff(self) -> list[DiffLine]:
        """Return the lines of the change; none where they are not recorded."""
        return self.changes() if self.changes is not None else []

    def counts(self) -> tuple[int, int] | None:
        """Return how many lines were added and removed; None where that is not recorded."""
        if self.told is not None:
            return self.told
        lines = self.diff()
        return tally(lines) if lines else None


@dataclass(frozen=True, slots=True)
class Touched:
    """What a call touched.

    Attributes:
        tool: The tool's name.
        outcome: How the call ended; files of a call that failed or was denied did not change.
        folder: The working directory that the call names, as it is written; empty without.
        command: The command that it ran; None for calls of other tools.
    """

    tool: str
    outcome: Outcome
    files: tuple[FileTouch, ...] = ()
    command: str | None = None
    folder: str = ""


def touched(data: Mapping[str, Any], times: tuple[int, int] = (0, 0)) -> Touched | None:
    """Return what a part touched; None for one that touches neither a file nor a shell.

    Args:
        data: The decoded part: a tool call, or a list of files as aider and opencode have
            it (``data-event``, ``data-patch``).
        times: ``created_at`` and ``updated_at`` of the part, epoch ms.
    """
    kind = data.get("type")
    if kind in _LISTS:
        return _listed(str(kind), as_dict(data.get("data")))
    if not isinstance(kind, str) or not is_tool_type(kind):
        return None
    name = tool_name(data)
    plain = plain_name(name)
    if not may_touch(plain):
        return None
    given = data.get("input") if data.get("input") is not None else data.get("rawInput")
    arguments = {"input": given} if isinstance(given, str) else as_dict(given)
    structured = as_dict(details_of(data).get("structured"))
    command = command_of(arguments) if plain in SHELLS else None
    files = tuple(_files(plain, arguments, structured, command))
    if command is None and not files:
        return None
    ended = outcome_of(data, times)
    if command is not None and _goes_on(ended, arguments, structured, data.get("output")):
        ended = replace(ended, status="ended", word="in the background")
    folder = _folder(arguments, structured, command)
    return Touched(name, ended, files, command, folder)


def changed_count(
    data: Mapping[str, Any], lines: list[DiffLine] | None = None
) -> tuple[int, int]:
    """Return how many lines of files a call adds and removes, as far as that is recorded.

    Args:
        data: The decoded tool call.
        lines: What ``changed_lines`` found of it; None where that was not asked.
    """
    found = touched(data)
    files = [file for file in found.files if file.is_change] if found is not None else []
    if lines and len(files) == 1 and files[0].told is None and files[0].changes is not None:
        return tally(lines)
    counts = [file.counts() or (0, 0) for file in files]
    return sum(plus for plus, _ in counts), sum(minus for _, minus in counts)


def plain_name(name: str) -> str:
    """Return a tool's name in lower case, without the prefix of an MCP server or a group."""
    return name.lower().rsplit("__", 1)[-1].rsplit(".", 1)[-1].replace("-", "_")


def may_touch(plain: str) -> bool:
    """Return whether a tool with this plain name touches files or runs commands."""
    return plain in SHELLS or plain in _KIND_OF


# Commands


_CD = re.compile(r"""\s*cd\s+(?:'([^'\n]*)'|"([^"\n]*)"|([^\s;&|'"]+))\s*(?:&&|;)""")
_PATCHES = re.compile(r"(?:^|[\s;&|(])apply_?patch\b")


def command_of(arguments: Mapping[str, Any]) -> str | None:
    """Return the command among a shell call's arguments; None where there is none."""
    for name in ("command", "cmd", "argv", "input"):
        value = arguments.get(name)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return joined_command(value)
        if isinstance(value, str) and value.strip():
            return value
    several = [item for item in as_list(arguments.get("commands")) if isinstance(item, str)]
    return "\n".join(several) or None


_STILL_RUNS = re.compile(r"^Process running with session ID", re.M)


def _goes_on(
    ended: Outcome, arguments: Mapping[str, Any], structured: Mapping[str, Any], output: object
) -> bool:
    """Return whether a command went on after its call had ended, as Codex and others say it.

    Args:
        ended: How the call ended.
        arguments: The call's input.
        structured: What the source has beside its result.
        output: The call's output.
    """
    if ended.status != "ok" or ended.exit_code is not None:
        return False
    asked = any(arguments.get(name) is True for name in ("run_in_background", "is_background"))
    told = isinstance(output, str) and _STILL_RUNS.search(output[:1_000]) is not None
    return asked or told or bool(structured.get("backgroundTaskId"))


def joined_command(words: list[str]) -> str:
    """Return the words of a command as one line; of ``sh -c``, what the shell runs."""
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return " ".join(words)


_FOLDERS = ("workdir", "cwd", "working_directory")
_SHELL_FOLDERS = (*_FOLDERS, "directory", "dir_path")


def _folder(
    arguments: Mapping[str, Any], structured: Mapping[str, Any], command: str | None
) -> str:
    for where in (arguments, structured):
        for name in _FOLDERS if command is None else _SHELL_FOLDERS:
            if name in where and isinstance(value := where[name], str) and value:
                return value.removeprefix("file://")
    return ""


# Files


def _files(
    plain: str, arguments: dict[str, Any], structured: dict[str, Any], command: str | None
) -> Iterator[FileTouch]:
    if plain in SHELLS:
        told = list(_told_files(structured)) if structured else []
        yield from told or patched_in(command or "")
        return
    kind = _KIND_OF[plain]
    if kind == "edit":
        action = str(arguments.get("command") or arguments.get("action") or "").lower()
        kind = _ACTIONS.get(action, kind)
    if kind in ("read", "search"):
        yield from (FileTouch(path, kind) for path in _paths(arguments))
        return
    told = list(_told_files(structured))
    path = _path(arguments)
    if len(told) > 1 or (told and path is None):
        yield from told
    elif path is None:
        yield from _moved(arguments) if kind == "move" else _patched(patch_text(arguments) or "")
    elif kind == "delete":
        yield FileTouch(path, kind)
    elif kind == "move":
        yield from _moved({"source": path, **arguments})
    else:
        counts = _told_counts(structured, told)
        writes = plain in WRITERS
        yield FileTouch(
            path, kind, "", counts, lambda: changed_lines(arguments, structured, writes=writes)
        )


def _path(arguments: Mapping[str, Any]) -> str | None:
    return next(_texts(arguments, PATHS), None)


def _texts(arguments: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            yield value.removeprefix("file://")


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths that a reading call names."""
    path = _path(arguments)
    if path is not None:
        yield path
        return
    for name in ("paths", "file_paths", "filePaths", "files", "include", "operations"):
        for item in as_list(arguments.get(name)):
            if isinstance(item, dict):
                yield from list(_texts(item, PATHS))[:1]
            elif isinstance(item, str) and item:
                yield item


def _moved(arguments: Mapping[str, Any]) -> Iterator[FileTouch]:
    source = next(_texts(arguments, ("source", "from", "old_path", "oldPath", "src")), None)
    names = ("destination", "to", "new_path", "newPath", "dest", "target", "dst")
    target = next(_texts(arguments, names), None)
    if source is not None:
        yield FileTouch(source, "move", target or "")


def _told_files(structured: Mapping[str, Any]) -> Iterator[FileTouch]:
    """Yield the files that the source lists beside a result."""
    hunks = as_list(structured.get("structuredPatch"))
    entries = [as_dict(one) for one in as_list(structured.get("files") or
                                               structured.get("fileEdits"))]
    for entry in entries:
        path = next(_texts(entry, ("path", *PATHS)), None)
        if path is None:
            continue
        word = next((str(entry[name]).lower() for name in ("change", "type", "kind", "status")
                     if isinstance(entry.get(name), str)), "")
        moved = next(_texts(entry, ("moved_to", "movePath", "move_path")), "")
        kind = _CHANGE_WORDS.get(word, "edit")
        lines = _told_lines(entry, hunks, path if len(entries) > 1 else None)
        yield FileTouch(path, "move" if moved else kind, moved, _numbers(entry), lines)


def _told_lines(
    entry: Mapping[str, Any], hunks: list[Any], path: str | None
) -> Callable[[], list[DiffLine]] | None:
    """Return what builds the lines of a listed file; None where they are not recorded.

    Args:
        entry: The file's entry in the list.
        hunks: The hunks of all files of the call.
        path: The file among several; None where it is the only one.
    """
    text = next((entry[name] for name in ("diff", "patch", "unified_diff")
                 if isinstance(entry.get(name), str)), None)
    if text is not None:
        return lambda: from_unified(text)
    own = [hunk for hunk in hunks if path is None or as_dict(hunk).get("file") == path]
    return (lambda: from_patch(own)) if own else None


def _numbers(entry: Mapping[str, Any]) -> tuple[int, int] | None:
    plus, minus = entry.get("additions"), entry.get("deletions")
    if type(plus) is int and type(minus) is int and plus >= 0 and minus >= 0:
        return plus, minus
    return None


def _told_counts(
    structured: Mapping[str, Any], told: list[FileTouch]
) -> tuple[int, int] | None:
    """Return the lines added and removed that the source counted itself."""
    if _is_unchanged(structured):
        return 0, 0
    stat = as_dict(structured.get("diffStat"))
    if not stat.get("user_added_lines") and not stat.get("user_removed_lines"):
        counted = {"additions": stat.get("model_added_lines"),
                   "deletions": stat.get("model_removed_lines")}
        if (numbers := _numbers(counted)) is not None:
            return numbers
    found = _numbers(as_dict(structured.get("filediff"))) or _numbers(structured)
    return found or (told[0].told if told else None)


def _is_unchanged(structured: Mapping[str, Any]) -> bool:
    """Return whether a file was written with the text that it held before.

    Claude Code has a patch without hunks then.
    """
    return structured.get("type") == "update" and structured.get("structuredPatch") == []


_PATCH_ARGUMENTS = ("patch", "patchText", "input", "diff")
_OLD = ("old_string", "oldString", "oldText", "old_str", "old_text")
_NEW = ("new_string", "newString", "newText", "new_str", "insert_text", "new_source",
        "new_text")


def patch_text(arguments: Mapping[str, Any]) -> str | None:
    """Return the patch among a call's arguments; None where there is none."""
    return next((text for name in _PATCH_ARGUMENTS
                 if isinstance(text := arguments.get(name), str)), None)


def _patched(patch: str) -> Iterator[FileTouch]:
    """Yield the files of a patch."""
    for file in files_in(patch):
        if file.path:
            yield FileTouch(file.path, file.change, file.moved_to, None, _lines_of(file))


def _lines_of(file: FileDiff) -> Callable[[], list[DiffLine]] | None:
    # A patch that deletes a file does not hold its lines.
    return (lambda: file.lines) if file.lines or file.change != "delete" else None


def patched_in(command: str) -> Iterator[FileTouch]:
    """Yield the files of a patch that a shell command applies."""
    start = command.find("*** Begin Patch")
    if start < 0 or not _PATCHES.search(command[:start]):
        return
    end = command.find("*** End Patch", start)
    entered = _CD.match(command)
    folder = next(filter(None, entered.groups()), "") if entered else ""
    for file in _patched(command[start : end if end >= 0 else None]):
        if folder and not is_absolute(file.path):
            moved = f"{folder}/{file.moved_to}" if file.moved_to else ""
            yield FileTouch(f"{folder}/{file.path}", file.kind, moved, None, file.changes)
        else:
            yield file


def changed_lines(
    arguments: Mapping[str, Any], structured: Mapping[str, Any], *, writes: bool = False
) -> list[DiffLine]:
    """Return the lines of a change: as the source shows them, else as the call asked for them.

    Args:
        arguments: The call's input.
        structured: What the source has beside its result.
        writes: Whether the tool writes whole files.
    """
    lines = from_patch(structured.get("structuredPatch"))
    if lines:
        return lines
    shown = structured.get("diff")
    if isinstance(shown, str) and "@@ -" in shown:
        return from_unified(shown)
    replaced = list(search_blocks(arguments, writes=writes))
    patch = None if replaced else patch_text(arguments)
    if patch is not None:
        return from_unified(patch)
    for edit in () if replaced else as_list(arguments.get("edits")) or [arguments]:
        edit = as_dict(edit)
        old, new = next(_strings(edit, _OLD), None), next(_strings(edit, _NEW), None)
        if old is not None or new is not None:
            replaced.append((old or "", new or ""))
    for old, new in replaced:
        if lines:
            lines.append(DiffLine("@", None, ""))
        lines += between(old, new) if old else added(new)
    text = written_text(arguments)
    return lines if lines or text is None or _is_unchanged(structured) else added(text)


def _strings(edit: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    return (text for name in names if isinstance(text := edit.get(name), str))


_BLOCK = re.compile(
    r"^[<-]{5,9} ?SEARCH>?[ \t]*\n(?::(?:start|end)_line:[^\n]*\n)*(?:-{5,9}\n)?"
    r"(?P<old>.*?)^={5,9}[ \t]*\n(?P<new>.*?)^[>+]{5,9} ?REPLACE>?[ \t]*$",
    re.S | re.M,
)


def search_blocks(
    arguments: Mapping[str, Any], *, writes: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each ``SEARCH`` and ``REPLACE`` block of a call.

    Args:
        arguments: The call's input.
        writes: Whether the tool writes whole files: such blocks are text of the file then.
    """
    for name in ("diff",) if writes else ("diff", "content"):
        text = arguments.get(name)
        for block in _BLOCK.finditer(text) if isinstance(text, str) else ():
            yield block["old"], block["new"]


def written_text(arguments: Mapping[str, Any]) -> str | None:
    """Return the whole text that a call writes to a file; None where it has none."""
    return next(_strings(arguments, ("content", "file_text", "contents", "text")), None)


# Lists of files that are no tool calls


_START, _MIDDLE, _END = (
    re.compile(rf"{sign}{{5,9}}{word}[ \t]*$")
    for sign, word in (("<", " SEARCH"), ("=", ""), (">", " REPLACE"))
)
_FENCE = re.compile(r"^(?:```|~~~)\S*[ \t]*$")
_ADDED = re.compile(r"^Added (.+) to the chat\.?[ \t]*$", re.M)


_LISTS = ("data-event", "data-patch")


def _listed(kind: str, event: dict[str, Any]) -> Touched | None:
    """Return the files of a list: changed by a step, or what aider edited or was given."""
    if kind == "data-patch":
        names = (name for name in as_list(event.get("files")) if isinstance(name, str) and name)
        changed = tuple(FileTouch(name, "change") for name in names)
        return Touched("patch", Outcome("ok"), changed) if changed else None
    edited = [name for name in as_list(event.get("files")) if isinstance(name, str) and name]
    text = event.get("details")
    known = event.get("name") in ("edited", "committed")
    read = _ADDED.findall(text) if isinstance(text, str) and event.get("name") == "info" else []
    files = (*(FileTouch(path, "read") for path in read),
             *(FileTouch(path, "edit") for path in edited if known))
    return Touched("aider", Outcome("ok"), files) if files else None


def edit_blocks(text: str) -> Iterator[FileTouch]:
    """Yield the edits that an answer of aider asks for: ``SEARCH`` and ``REPLACE`` blocks.

    The file's name is the line before the block, or before the fence around it; a block
    without one is of the same file as the block before it.
    """
    if "<<<<< SEARCH" not in text:
        return
    path = above = ""
    old: list[str] | None = None
    new: list[str] | None = None
    for line in text.split("\n"):
        if _START.match(line):
            path, old, new = above or path, [], None
        elif old is not None and new is None and _MIDDLE.match(line):
            new = []
        elif old is not None and new is not None and _END.match(line):
            if path:
                yield FileTouch(path, "edit", "", None, _replaced("\n".join(old), "\n".join(new)))
            old, above = None, ""
        elif old is not None:
            (old if new is None else new).append(line)
        elif line.strip() and not _FENCE.match(line):
            above = line.strip().strip("`*#").strip()


def _replaced(old: str, new: str) -> Callable[[], list[DiffLine]]:
    return lambda: between(old, new) if old else added(new)


# Paths


_DRIVE = re.compile(r"^[A-Za-z]:[\\/]|^\\\\")


def is_absolute(path: str) -> bool:
    """Return whether a path of any system starts at a root or a home folder."""
    return path.startswith(("/", "~")) or _DRIVE.match(path) is not None


def resolved(path: str, *folders: str | None) -> str:
    """Return a path without ``.`` and ``..``, from the nearest folder that is known.

    Two spellings of one file give the same text. Nothing is asked of the disk.

    Args:
        path: As the agent wrote it.
        folders: The folders that it may start from, the nearest first; each but the last may
            be relative to those after it.
    """
    for folder in folders:
        if is_absolute(path):
            break
        if folder:
            path = f"{folder}/{path}"
    if _DRIVE.match(path):
        import ntpath

        return ntpath.normpath(path)
    import posixpath

    made = posixpath.normpath(path)
    # Two slashes at the start are the same root here.
    return made[1:] if made.startswith("//") else made
