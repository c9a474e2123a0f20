"""The names of the commands of the command line, and what each does in a line."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "sync": ("tui.cli.sync", "read the sessions of your agents into the store"),
    "sources": ("tui.cli.sources", "show where sessions are looked for and what was found"),
    "sessions": ("tui.cli.sessions", "list sessions"),
    "search": ("tui.cli.search", "search everything that was typed, said, run and printed"),
    "show": ("tui.cli.show", "print a session as a transcript"),
    "files": ("tui.cli.files", "show and save the files of a session as they were"),
    "export": ("tui.cli.export", "write a session as a page, Markdown, JSON or an agent's file"),
    "import": ("tui.cli.imports", "import exported sessions"),
    "copy": ("tui.cli.copy", "copy sessions to another store, a file or on a server"),
    "fork": ("tui.cli.fork", "copy a session up to a message into a new one"),
    "rewind": ("tui.cli.rewind", "hide the messages after one"),
    "restore": ("tui.cli.restore", "show the messages that a rewind hid"),
    "archive": ("tui.cli.archive", "archive sessions"),
    "unarchive": ("tui.cli.unarchive", "restore archived sessions"),
    "rename": ("tui.cli.rename", "rename a session"),
    "star": ("tui.cli.star", "star sessions"),
    "tag": ("tui.cli.tag", "tag a session"),
    "permissions": ("tui.cli.permissions", "show or change the rules of a session"),
    "undo": ("tui.cli.undo", "undo the last change"),
    "redo": ("tui.cli.redo", "redo what was undone"),
    "stats": ("tui.cli.stats", "print tokens and cost, each answer counted once"),
    "prices": ("tui.cli.prices", "show what models cost, and take newer prices"),
    "tree": ("tui.cli.tree", "print sessions with their forks and subagents"),
    "resume": ("tui.cli.resume", "resume a session in its agent"),
    "record": ("tui.cli.record", "record a UI message stream from stdin into the store"),
    "forget": ("tui.cli.forget", "remove sessions permanently"),
    "doctor": ("tui.cli.doctor", "examine the store, and mend what loses nothing"),
    "backup": ("tui.cli.backup", "copy the store to a file while others write to it"),
    "restore-backup": ("tui.cli.restore_backup", "put a backup in the place of the store"),
    "checkpoint": ("tui.cli.checkpoint", "empty the store's write-ahead log"),
    "vacuum": ("tui.cli.vacuum", "give the space of removed sessions back to the disk"),
    "prune": ("tui.cli.prune", "remove old sessions permanently"),
    "events": ("tui.cli.events", "log each change of the store, and show the log"),
    "rebuild": ("tui.cli.rebuild", "make a fresh store of the event log"),
    "serve": ("tui.cli.serve", "show the browser in a web page"),
    "mcp": ("tui.cli.mcp", "serve your sessions to coding agents (MCP)"),
    "completion": ("tui.cli.completion", "print the completion of a shell"),
}
"""Module and one line of help, by command."""

COMMAND_NAMES = tuple(COMMANDS)


_USUAL_WORDS = {
    "sessions": ("list", "ls", "history", "all", "recent"),
    "show": ("cat", "view", "print", "less"), "search": ("find", "grep", "query"),
    "forget": ("delete", "rm", "remove", "del", "erase", "drop"),
    "rename": ("mv", "title", "name"), "copy": ("cp", "push", "clone"), "fork": ("branch",),
    "sync": ("update", "pull", "refresh", "scan", "fetch"), "stats": ("cost", "usage", "tokens"),
    "resume": ("continue", "attach"), "export": ("save", "download", "share"), "serve": ("web",),
    "import": ("load", "add"), "doctor": ("check", "verify", "repair"), "tag": ("label",),
    "prune": ("clean", "cleanup", "gc"), "archive": ("hide",), "sources": ("agents", "status"),
}
"""What other programs call the same, by command."""


def near_command(word: str) -> str | None:
    """Return the command that is called so elsewhere, or whose name is most like a word."""
    from store.text.likeness import nearest

    usual = {each: command for command, words in _USUAL_WORDS.items() for each in words}
    return usual.get(word.lower()) or nearest(word, COMMAND_NAMES)


def no_command(word: str) -> str | None:
    """Return that a word is no command, with the one that may be meant.

    Args:
        word: What stands where a command may, and is no file or folder.

    Returns:
        None for what was meant for a file, a folder or an id.
    """
    if not word.replace("-", "").isalpha():
        return None
    near = near_command(word)
    hint = f"Did you mean `backscroll {near}`?" if near else "See `backscroll --help`."
    return f"no command, file or folder is called {word!r}. {hint}"
