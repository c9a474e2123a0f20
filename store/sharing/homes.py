r"""Finds the names of users in paths: in home folders of any system, and where these are repeated.

``/home/ann/x``, ``/Users/ann``, ``C:\Users\ann`` (also with the backslashes of JSON), and
``-home-ann-code``, as Claude Code names the folders of its projects.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from store.sharing.rules import Secret

USER_NAME = "user name"
STANDS_FOR_USER = "user"
_NOBODY = frozenset({
    STANDS_FOR_USER, "shared", "public", "default", "all users", "you", "me", "your-name",
    "username",     "runner", "*", "..", ".", "name", "nobody", "linuxbrew", "yourname", "youruser",
})  # fmt: skip
_NAME = r"[^\s/\\:*?\"'<>|`,;(){}\[\]$%&=]{1,64}"
_IN_PATHS = re.compile(
    rf"(?:(?<![A-Za-z0-9])(?:/var|/mnt/\w|/cygdrive/\w|/\w)?/(?:home|Users|export/home)/"
    rf"|\b[A-Za-z]:(?:\\{{1,8}}|/)(?:Users|Documents and Settings)(?:\\{{1,8}}|/)"
    rf"|\\{{1,8}}(?:home|Users)\\{{1,8}}|%2F(?:home|Users)%2F)(?P<name>{_NAME})", re.IGNORECASE)
_DASHED = re.compile(r"(?:(?<![\w-])-|\b[A-Za-z]--)(?:home|Users)-(?P<name>[A-Za-z0-9_.]{1,64})")


class Homes:
    """The users whose home folders were seen, to recognise their names in other paths."""

    def __init__(self, home: Path | None = None) -> None:
        """Begin with the user of this machine.

        Args:
            home: The home folder; the user's own where None.
        """
        self._names: dict[str, None] = {}
        self._home: re.Pattern[str] | None = None
        self._other: re.Pattern[str] | None = None
        try:
            own = home or Path.home()
            self._learn(getpass.getuser() if home is None else own.name)
        except (RuntimeError, KeyError, OSError):
            return  # A user without a name or a home.
        if own.parent.name.lower() not in ("home", "users") and len(own.parts) > 2:
            self._home = re.compile(rf"{re.escape(str(own.parent))}/(?P<name>{re.escape(own.name)})"
                                    r"(?![\w.-])")

    def _learn(self, name: str) -> None:
        if len(name) < 2 or name.lower() in _NOBODY or name in self._names or name == "root":
            return
        self._names[name] = None
        names = "|".join(re.escape(one) for one in sorted(self._names, key=len, reverse=True)[:20])
        self._other = re.compile(
            rf"(?:(?<=[/\\])|(?:(?<![\w-])-|\b[A-Za-z]--)(?:[A-Za-z0-9_.]{{1,40}}-){{0,3}}?)"
            rf"(?P<name>{names})(?=[/\\\-\s\"'`:,;)\]}}]|$)")

    def names_in(self, text: str) -> list[Secret]:
        """Return where the names of users are in a text, in order."""
        if not ("/" in text or "\\" in text or "-" in text or "%2F" in text):
            return []
        for match in _IN_PATHS.finditer(text):
            self._learn(match["name"])
        found: dict[int, Secret] = {}
        for pattern in (self._home, self._other, _IN_PATHS, _DASHED):
            for match in pattern.finditer(text) if pattern is not None else ():
                start, end = match.span("name")
                if match["name"].lower() not in _NOBODY:
                    found.setdefault(start, Secret(USER_NAME, start, end))
        kept: list[Secret] = []
        for secret in sorted(found.values(), key=lambda one: one.start):
            if not kept or kept[-1].end <= secret.start:
                kept.append(secret)
        return kept
