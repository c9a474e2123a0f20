"""Tells the user outside the panes that a watched session has finished or waits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tui.kit.text import fit, one_line, one_row

if TYPE_CHECKING:
    from textual.screen import Screen

    from store.config import NotifySettings
    from store.queries.listing import ListRow

TITLE_CELLS = 60
_WORKING = ("running", "retrying")
_WAITING = ("waiting-approval", "waiting-input")
_WORDS = {
    "waiting-approval": "needs your approval", "waiting-input": "waits for your answer",
    "error": "has failed", "interrupted": "was interrupted",
}


def sequence(how: str, words: str, *, tmux: bool) -> str:
    """Return the escape sequence of a desktop notification.

    Args:
        how: ``osc9`` (iTerm2, Windows Terminal, kitty, WezTerm) or ``osc777`` (foot, urxvt).
        words: The text; it is made harmless here.
        tmux: Wrap it so that tmux passes it on (``allow-passthrough on``).
    """
    plain = one_row(words).replace(";", ",")
    body = f"9;{plain}" if how == "osc9" else f"777;notify;backscroll;{plain}"
    told = f"\x1b]{body}\x07"
    return "\x1bPtmux;" + told.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else told


def _state(states: Mapping[str, tuple[str, str]], session_id: str) -> str:
    return states.get(session_id, ("idle", ""))[0]


def _change(old: str, new: str, title: str) -> str:
    """Return the notification for a change of a session's activity; empty for none."""
    waits = new in _WAITING and old not in _WAITING
    ended = old in _WORKING and new not in (*_WORKING, "queued")
    if not waits and not ended:
        return ""
    return f"{fit(one_line(title), TITLE_CELLS)} {_WORDS.get(new, 'has finished')}"


class Notifier:
    """Compares what sessions do with what they did, and rings or notifies on the change."""

    def __init__(self, screen: Screen[None]) -> None:
        """Make a notifier that is silent until settings are given."""
        self._screen = screen
        self.settings: NotifySettings | None = None
        self._states: dict[str, tuple[str, str]] | None = None
        self._watched: set[str] = set()

    def look(self, active: Iterable[ListRow], shown: str | None) -> list[str]:
        """Take what sessions do now.

        Args:
            active: The sessions that do something.
            shown: The session in the transcript; it is watched from then on.

        Returns:
            What was notified.
        """
        if shown is not None:
            self._watched.add(shown)
        before = self._states
        self._states = {row.id: (row.activity or "idle", row.title or "untitled")
                        for row in active}
        if before is None or self.settings is None:
            return []
        now = self._states
        told = [
            words for session_id, (_, title) in {**now, **before}.items()
            if self._is_watched(session_id)
            and (words := _change(_state(before, session_id), _state(now, session_id), title))
        ]
        for words in told:
            self._tell(words)
        return told

    def _is_watched(self, session_id: str) -> bool:
        assert self.settings is not None
        return self.settings.sessions == "all" or session_id in self._watched

    def _tell(self, words: str) -> None:
        settings = self.settings
        assert settings is not None
        if settings.bell:
            self._screen.app.bell()
        # Textual has no public way to write a sequence between the writes of its own thread.
        driver = self._screen.app._driver if settings.desktop != "off" else None
        if driver is not None:
            driver.write(sequence(settings.desktop, words, tmux="TMUX" in os.environ))
