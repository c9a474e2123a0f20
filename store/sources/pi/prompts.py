"""System messages of newer versions: replayed in order they are the system prompt.

Source: pi's own description of its session files: the first request keeps a message with
every section, later ones name the sections that changed; ``null`` takes one away. A
compaction holds the state at its place whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.content_blocks import text_of
from store.sources.base.values import mapping
from store.sources.pi.tree import Entry


@dataclass(frozen=True, slots=True)
class _State:
    """The prompt at one place of the tree: words said apart from sections, and sections."""

    said: tuple[str, ...] = ()
    sections: tuple[tuple[str, str], ...] = ()

    def after(self, message: dict[str, Any]) -> _State:
        sections = dict(self.sections)
        for name, words in mapping(message.get("sections")).items():
            if isinstance(words, str):
                sections[name] = words
            else:
                sections.pop(name, None)
        words = text_of(message.get("content"))
        return _State((*self.said, words) if words else self.said, tuple(sections.items()))

    @property
    def text(self) -> str:
        return "\n\n".join((*(words for _, words in self.sections), *self.said))


@dataclass(slots=True)
class Prompts:
    """The system prompts of one session, each branch's by what is before it.

    Attributes:
        texts: By their SHA-256.
    """

    texts: dict[str, str] = field(default_factory=dict)
    _states: dict[str, _State] = field(default_factory=dict)
    _digests: dict[_State, str] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        """Take the next entry in file order."""
        state = self._states.get(entry.parent or "")
        message = mapping(entry.data.get("message"))
        if entry.type == "message" and message.get("role") == "system":
            state = (state or _State()).after(message)
        elif entry.type == "compaction" and entry.data.get("systemMessage"):
            state = _State().after(mapping(entry.data["systemMessage"]))
        if state is not None:
            self._states[entry.id] = state

    def digest(self, entry: Entry) -> str | None:
        """Return the digest of the prompt that an answer was given under; None where unknown."""
        state = self._states.get(entry.id)
        if state is None or not state.text:
            return None
        found = self._digests.get(state)
        if found is None:
            found = hashlib.sha256(state.text.encode("utf-8", "surrogatepass")).hexdigest()
            self._digests[state] = found
            self.texts[found] = state.text
        return found
