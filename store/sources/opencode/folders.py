"""Where a JSON store keeps what: two layouts.

Versions 0.6 to 1.1 have ``storage/{session/<project>,message/<session>,part/<message>}``;
those before have a store for each project,
``project/<folder>/storage/session/{info,message/<session>,part/<session>/<message>}``.
Source: stores that versions 0.1.174, 0.5.29 and 1.0.0 wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INFO = "info"


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one JSON store.

    Attributes:
        storage: The folder of all.
        early: Whether it has the layout of a store for each project.
    """

    storage: Path
    early: bool

    @classmethod
    def of_session(cls, path: Path) -> Folders:
        """Return the store that a session's own file belongs to."""
        return cls(path.parent.parent.parent, path.parent.name == INFO)

    @classmethod
    def at(cls, storage: Path) -> Folders | None:
        """Return the store that a folder is; None where it has no shape of one.

        Newer versions keep side files in a ``storage`` folder that has no sessions.
        """
        if (storage / "session" / INFO).is_dir():
            return cls(storage, early=True)
        if (storage / "session").is_dir() and (storage / "message").is_dir():
            return cls(storage, early=False)
        return None

    def session_files(self) -> Iterator[Path]:
        """Yield the sessions' own files."""
        yield from sorted((self.storage / "session").glob(f"{self._groups}/ses_*.json"))

    @property
    def _groups(self) -> str:
        return INFO if self.early else "*"

    def is_group(self, name: str) -> bool:
        """Return whether a folder below ``session`` holds sessions' own files."""
        return name == INFO if self.early else True

    def messages(self, session_id: str) -> Path:
        """Return the folder of a session's messages."""
        base = self.storage / "session" if self.early else self.storage
        return base / "message" / session_id

    def parts(self, session_id: str, message_id: str) -> Path:
        """Return the folder of a message's parts."""
        if self.early:
            return self.storage / "session" / "part" / session_id / message_id
        return self.storage / "part" / message_id

    def watched(self) -> list[Path]:
        """Return the folders that change with sessions."""
        names = ("session",) if self.early else ("session", "message", "part")
        return [self.storage / name for name in names]
