"""The colour of each agent in plots: always the same, whatever else is shown."""

from __future__ import annotations

from collections.abc import Iterable

from tui.kit.plots import Series
from tui.kit.text import one_line
from tui.words.sessions import short_kind

OTHERS = "others"
OTHERS_INK = "faint"
_INKS = {
    "claude-code": "tool", "codex": "user", "opencode": "assistant", "gemini": "fork",
    "copilot": "text", "pi": "ok",
}
"""Roles with colours that differ at a glance; that of ``reasoning`` is close to two of them."""
_SPARE = ("fork", "ok", "text", "assistant", "user", "tool")
"""Roles for other agents, as far as no agent that is shown has them."""


def agent_inks(agents: Iterable[str]) -> dict[str, str]:
    """Return the role of each agent's colour; that of others where there are more than colours."""
    known = list(dict.fromkeys(agents))
    taken = {_INKS[agent] for agent in known if agent in _INKS}
    spare = iter([ink for ink in _SPARE if ink not in taken])
    return {agent: _INKS.get(agent) or next(spare, OTHERS_INK) for agent in known}


def agent_series(agents: Iterable[str], most: int) -> list[tuple[str, Series]]:
    """Return the first agents with what plots show of them; all further ones as ``others``.

    Args:
        agents: By their names, those to show first.
        most: How many there are at most, the others among them.
    """
    names = list(dict.fromkeys(agents))
    shown = names if len(names) <= most else names[: most - 1]
    inks = agent_inks(shown)
    found = [(name, Series(short_kind(one_line(name, 24)) or "unknown", inks[name]))
             for name in shown]
    if len(names) > len(shown):
        found.append((OTHERS, Series(OTHERS, OTHERS_INK)))
    return found
