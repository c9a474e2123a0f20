"""The places where sessions are read from: what is there, and what the store has of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from store.config import load_config
from store.engine.database import Database
from store.engine.server_url import Root, ServerUrl, as_root
from store.sources.base.protocol import Problem, Source
from store.sources.registry import all_sources
from store.sync.jsontext import clean
from store.sync.problems import problems
from store.sync.roots import (
    configured_root,
    default_roots,
    identity,
    may_be_there,
    units_of,
    why_unreadable,
)
from store.sync.server_places import known_place
from store.sync.targets import default_targets
from store.sync.units import UnitState, stored_units


@dataclass(slots=True)
class Place:
    """A root of a source.

    Attributes:
        kind: The source's kind; ``label`` is its program's name.
        path: The path, or a server's URL without its password.
        found: Whether it exists; for a server, whether it can be read.
        reason: Why it cannot be read now; None if it can.
        usual: Whether the source looks there by itself.
        enabled: Whether the configuration enables this source.
        files: Number of units (for a server, of sessions); ``size_bytes`` is the size of all
            their files (for a server, an estimate).
        sessions: Number of sessions that the store has from there.
        changed_at: Epoch ms of the newest unit; None if there are none.
        problems: Number of lines, files and folders that the last syncs could not read.
    """

    kind: str
    label: str
    path: str
    found: bool
    enabled: bool
    files: int = 0
    sessions: int = 0
    size_bytes: int = 0
    changed_at: int | None = None
    problems: int = 0
    reason: str | None = None
    usual: bool = False

    @property
    def matters(self) -> bool:
        """Whether something is or was there, or a user named it."""
        return bool(self.found or self.sessions or self.problems or self.reason or not self.usual)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON by name; ``reason`` only if there is one."""
        fields = asdict(self)
        del fields["usual"]
        if self.reason is None:
            del fields["reason"]
        return fields


def places(
    database: Database | None, environment: Mapping[str, str], home: Path,
    counting: Set[str] | None = None,
) -> list[Place]:
    """Return all places: the default ones, configured ones, and those that were synced.

    Args:
        database: The store; None if it does not exist yet.
        environment: The process's environment variables.
        home: The user's home folder.
        counting: The ids of the only sessions that count, such as those that a team's store
            has; None counts all that the store has.
    """
    settings = load_config().sources
    counted: dict[tuple[str, str], int] = {}
    for problem in problems(database) if database is not None else ():
        key = (problem.kind, problem.root)
        counted[key] = counted.get(key, 0) + 1
    found = []
    for source, root, usual in _roots(database, environment, home):
        place = Place(
            source.kind, source.label, str(root), may_be_there(root), settings.reads(source.kind),
            problems=counted.get((source.kind, clean(str(root))), 0), usual=usual,
        )  # fmt: skip
        _look(source, root, place)
        place.sessions = _sessions(database, source.kind, root, counting)
        found.append(place)
    return found + [*_unknown(database, counted, counting)]


def _unknown(
    database: Database | None, counted: Mapping[tuple[str, str], int], counting: Set[str] | None
) -> Iterator[Place]:
    """Yield synced places of source kinds that this version does not know."""
    known = {source.kind for source in all_sources()}
    for kind, root in _synced(database):
        if kind not in known:
            place = Place(kind, kind, root, Path(root).exists(), False,
                          problems=counted.get((kind, root), 0))  # fmt: skip
            place.sessions = _sessions(database, kind, Path(root), counting)
            yield place


def _roots(
    database: Database | None, environment: Mapping[str, str], home: Path
) -> Iterator[tuple[Source, Root, bool]]:
    """Yield each root once, with whether its source looks there by itself."""
    settings, sources = load_config().sources, all_sources()
    existing = default_targets(settings, sources, environment, home)
    seen: set[tuple[str, str]] = set()
    given = _synced(database)
    usual = [
        (source.label, root)
        for source in sources
        for root in default_roots(source, environment, home)
    ]
    by_itself = {(label, identity(root)) for label, root in usual}
    for source in sources:
        roots = [target.root for target in existing if target.source.kind == source.kind]
        roots += [root for label, root in usual if label == source.label]
        roots += [configured_root(source, one) for one in settings.paths.get(source.kind, ())]
        roots += [as_root(root) for kind, root in given if kind == source.kind]
        for root in roots:
            if isinstance(root, ServerUrl) and database is not None and settings.reads(source.kind):
                root = known_place(database, source, root, write=False)
            name = (source.kind, identity(root))
            if name not in seen:
                seen.add(name)
                yield source, root, (source.label, name[1]) in by_itself


def _synced(database: Database | None) -> list[tuple[str, str]]:
    """Return the kind and root of everything that was synced into the store."""
    if database is None or database.form.name != "own":
        return []
    return database.connection.execute(
        "SELECT kind, root FROM source_units UNION SELECT kind, root FROM source_problems"
        " ORDER BY kind, root"
    ).fetchall()


def _look(source: Source, root: Root, place: Place) -> None:
    noticed: list[Problem] = []
    place.reason = why_unreadable(root)
    if place.found and (place.enabled or isinstance(root, Path)):
        for unit in units_of(source, root, noticed):
            place.files += 1
            place.size_bytes += unit.size
            place.changed_at = max(place.changed_at or 0, unit.changed_at)
    if isinstance(root, ServerUrl) and noticed and not place.files:
        place.found, place.reason = False, noticed[0].reason


def _sessions(
    database: Database | None, kind: str, root: Root, counting: Set[str] | None
) -> int:
    """Return how many sessions the store has from a root, of those that count."""
    if database is None or database.form.name != "own":
        return 0
    states = stored_units(database, kind, root).values()
    found = {name for state in states for name in UnitState.parse(state).sessions}
    return len(found if counting is None else found & counting)
