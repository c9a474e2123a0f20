"""The settings, from one ``config.toml``: every one has a default, no mistake stops the app.

The settings themselves are plain dataclasses, so that the first paint can have the defaults
without pydantic; pydantic checks a file that is there (``load_config``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from store.queries.list_options import DEFAULT_GROUP, DEFAULT_SORT, GROUPS, SORTS, OneOf
from store.system.locations import config_path
from store.system.paths import expanded, read_regular
from store.text.toml_text import NotToml, parse_toml

_STRICT = {"extra": "forbid"}


@dataclass(slots=True)
class UiSettings:
    """``[ui]``: how it looks.

    Attributes:
        theme: A Textual theme's name; None follows the terminal's and the last choice.
        group: How the list is grouped at the first start.
        sort: How the list is sorted at the first start.
        mouse: Whether the mouse is used.
        helpers: Whether lists show runs that agents started for themselves.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    theme: str | None = None
    group: Annotated[str, OneOf(GROUPS)] = DEFAULT_GROUP
    sort: Annotated[str, OneOf(SORTS)] = DEFAULT_SORT
    mouse: bool = True
    helpers: bool = False


@dataclass(slots=True)
class LiveSettings:
    """``[live]``: how changes are noticed.

    Attributes:
        poll_ms: Between two looks at the store while the terminal has the focus.
        unfocused_poll_ms: The same while it has not.
        repaint_ms: At least this long between two repaints of a growing part.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    poll_ms: int = 50
    unfocused_poll_ms: int = 250
    repaint_ms: int = 50


@dataclass(slots=True)
class NotifySettings:
    """``[notify]``: what is told when a watched session finishes, fails or waits.

    Attributes:
        bell: Ring the terminal's bell.
        desktop: Ask the terminal for a desktop notification, by OSC 9 or OSC 777.
        sessions: ``opened`` watches those that were shown in this run, ``all`` every one.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    bell: bool = False
    desktop: Literal["off", "osc9", "osc777"] = "off"
    sessions: Literal["opened", "all"] = "opened"


PollFiles = Literal["auto", "always", "never"]


@dataclass(slots=True)
class SourceSettings:
    """``[sources]``: what sync reads.

    Attributes:
        enabled: Kinds that are read; empty means all that are known.
        disabled: Kinds that are never read.
        paths: Extra files, folders and URLs of servers, by kind.
        excluded_workspaces: Folders whose sessions never come into the library.
        sync_on_start: Whether ``backscroll`` without an argument syncs.
        watch: Whether running sessions are followed.
        poll_files: Whether the size and time of files are looked at beside what the system
            tells: ``auto``, ``always`` (for file systems that tell nothing), or ``never``.
        keep_originals: Whether each original record is kept, compressed.
        keep_deleted: Whether sessions stay when their source's file goes away.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    enabled: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    paths: dict[str, list[str]] = field(default_factory=dict)
    excluded_workspaces: list[str] = field(default_factory=list)
    sync_on_start: bool = True
    watch: bool = True
    poll_files: PollFiles = "auto"
    keep_originals: bool = True
    keep_deleted: bool = True

    def reads(self, kind: str) -> bool:
        """Say whether sessions of this kind are read."""
        return kind not in self.disabled and (not self.enabled or kind in self.enabled)

    def excludes(self, workspace: str | None) -> bool:
        """Say whether a workspace, or a folder above it, is excluded."""
        if not workspace:
            return False
        folder = Path(workspace)
        excluded = [expanded(name) for name in self.excluded_workspaces]
        return any(folder.is_relative_to(name) for name in excluded)


@dataclass(slots=True)
class Settings:
    """The whole ``config.toml``.

    Attributes:
        store: The store to open in place of the library.
        keys: Command id to its keys, which then replace the command's own; empty is no key.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    store: str | None = None
    ui: UiSettings = field(default_factory=UiSettings)
    live: LiveSettings = field(default_factory=LiveSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    sources: SourceSettings = field(default_factory=SourceSettings)
    keys: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing in the file that does not fit.

    Attributes:
        line: From 1; 0 where the whole file is meant.
    """

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        """Return one line for the user."""
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.reason}"


@dataclass(slots=True)
class Config(Settings):
    """The settings as read, with what was wrong in the file.

    Attributes:
        path: Where the file is, or would be.
        mistakes: Each setting named here has its default.
    """

    path: Path = field(default_factory=config_path)
    mistakes: list[Mistake] = field(default_factory=list)


def load_config(path: Path | None = None) -> Config:
    """Read the configuration; what does not fit is named in ``mistakes``, never an error.

    Args:
        path: The file; None takes the platform's place. A missing one means the defaults,
            and then pydantic is not imported.
    """
    path = path or config_path()
    try:
        text = read_regular(path).decode("utf-8")
    except FileNotFoundError:
        return Config(path=path)
    except (OSError, UnicodeDecodeError) as error:
        return Config(path=path, mistakes=[Mistake(path, 0, f"cannot be read: {error}")])
    try:
        decoded = parse_toml(text)
    except NotToml as error:
        line = re.search(r"line (\d+)", str(error))
        at = int(line[1]) if line else text.count("\n") + 1
        return Config(path=path, mistakes=[Mistake(path, at, f"is no TOML: {error}")])
    return _checked(path, text, decoded)


def _checked(path: Path, text: str, decoded: dict[str, Any]) -> Config:
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[Settings] = TypeAdapter(Settings)
    decoded = with_flat_keys(decoded)
    mistakes: list[Mistake] = []
    while True:
        try:
            settings = adapter.validate_python(decoded)
            break
        except ValidationError as error:
            for item in error.errors():
                location = tuple(str(step) for step in item["loc"])
                mistakes.append(Mistake(path, line_of(text, location), _reason(location, item)))
                _remove(decoded, item["loc"])
    return Config(
        store=settings.store, ui=settings.ui, live=settings.live, notify=settings.notify,
        sources=settings.sources, keys=settings.keys, path=path, mistakes=mistakes,
    )  # fmt: skip


def _reason(location: tuple[str, ...], item: Mapping[str, Any]) -> str:
    name = ".".join(location)
    if item["type"] == "unexpected_keyword_argument":
        return f"there is no setting {name}"
    message = str(item["msg"])
    return f"{name}: {message[:1].lower()}{message[1:]}; its default holds"


def with_flat_keys(decoded: dict[str, Any]) -> dict[str, Any]:
    """Return what TOML gave, with ``[keys]`` by command id and each a list.

    One key may stand there without brackets.
    """
    keys = decoded.get("keys")
    return decoded | {"keys": _flat(keys)} if isinstance(keys, dict) else decoded


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Join dotted names again: ``list.open = "o"`` is a table within a table to TOML."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[above + name] = [value] if isinstance(value, str) else value
    return flat


def _remove(decoded: dict[str, Any], location: tuple[int | str, ...]) -> None:
    """Take the named value out; where that cannot be, what holds it."""
    for depth in range(len(location), 0, -1):
        holder: Any = decoded
        for step in location[: depth - 1]:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and location[depth - 1] in holder:
            del holder[location[depth - 1]]
            return


_TABLE = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")


def line_of(text: str, location: tuple[str, ...]) -> int:
    """Return the line, from 1, on which a setting stands; its table's where it has none.

    Args:
        text: The TOML.
        location: Names from the outermost table inwards; what follows the key is ignored.
    """
    wanted = ".".join(location)
    above, best, best_length = "", 0, -1
    for number, line in enumerate(text.splitlines(), 1):
        if table := _TABLE.match(line):
            name = above = _plain(table[1])
        elif key := _KEY.match(line):
            name = f"{above}.{_plain(key[1])}" if above else _plain(key[1])
        else:
            continue
        if f"{wanted}.".startswith(f"{name}.") and len(name) > best_length:
            best, best_length = number, len(name)
    return best


def _plain(name: str) -> str:
    return re.sub(r"""\s*\.\s*""", ".", name).replace('"', "").replace("'", "")
