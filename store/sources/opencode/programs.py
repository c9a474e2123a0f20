"""opencode, and the programs that keep their sessions in its tables: where they differ.

Source: the opencode and Kilo format pages, section 1 (folders, file names) and 2 (tables).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OpencodeProgram:
    """One program that writes opencode's tables.

    Attributes:
        kind: The source's kind.
        name: Of its data folder; its databases' names begin with it.
        variable: Of the environment, for a database elsewhere.
        first_version: The number that its versions begin with, the lowest one.
        tables: Tables that only its databases have.
        before: The name that databases of its channels had before they had its own.
    """

    kind: str
    name: str
    variable: str
    first_version: int
    tables: Set[str] = field(default_factory=frozenset)
    before: str | None = None

    def folder(self, environment: Mapping[str, str], home: Path) -> Path:
        """Return its data folder: below ``XDG_DATA_HOME``, else ``~/.local/share``, anywhere."""
        data = environment.get("XDG_DATA_HOME")
        return (Path(data) if data else home / ".local" / "share") / self.name

    def databases_in(self, folder: Path) -> list[Path]:
        """Return the files of a folder that may be its databases, by name.

        A channel's file of the former name counts only where there is none of its own.
        """
        found = {path.name: path for path in folder.glob(f"{self.name}*.db")}
        if self.before is not None:
            for path in folder.glob(f"{self.before}-*.db"):
                found.setdefault(self.name + path.name.removeprefix(self.before), path)
        return sorted(path for path in found.values() if path.is_file())


OPENCODE = OpencodeProgram("opencode", "opencode", "OPENCODE_DB", 0)
KILO = OpencodeProgram(
    "kilo", "kilo", "KILO_DB", 7,
    tables=frozenset({"kilo_board", "kilo_board_message"}), before="opencode",
)  # fmt: skip
FORKS = (KILO,)
"""The programs that took opencode's tables over."""


def program_of_database(tables: Set[str], path: Path) -> OpencodeProgram:
    """Return the program that wrote a database with opencode's tables.

    Args:
        tables: The names of its tables; older versions have none that tell.
        path: The file; then its name and its folder's tell.
    """
    for program in FORKS:
        if tables & program.tables:
            return program
        if path.name.startswith(program.name) or path.parent.name == program.name:
            return program
    return OPENCODE


def program_of_version(version: object) -> OpencodeProgram:
    """Return the program that printed an exported session, by its version: opencode is at 1."""
    major = str(version).partition(".")[0]
    number = int(major) if major.isdecimal() and major.isascii() and len(major) < 9 else 0
    return next((each for each in FORKS if number >= each.first_version), OPENCODE)
