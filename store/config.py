"""The settings, from one ``config.toml``: every one has a default, no mistake stops the app.

The classes here are the one declaration of each setting: its name, type, bounds,
default, and its sentence under ``Attributes``. Three things come from them:

- ``quick_config`` reads the file without pydantic, for the first paint;
- ``load_config`` checks the whole file with pydantic and names each mistake with its line;
- ``described`` lists all settings for the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from store.queries.list_options import DEFAULT_GROUP, DEFAULT_SORT, GROUPS, SORTS
from store.system.locations import config_path
from store.system.paths import expanded, read_regular
from store.text.toml_text import NotToml, parse_toml

if TYPE_CHECKING:
    from datetime import tzinfo

    from pydantic import BaseModel

    from store.prices.lines import BadPrices



class OneOf:
    """A bound of a setting: one of some names."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names that are allowed."""
        self.names = tuple(names)

    def allows(self, value: object) -> bool:
        """Say whether a value is one of them."""
        return value in self.names

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of a literal, with its usual error message."""
        from pydantic_core.core_schema import literal_schema

        return literal_schema(list(self.names))


class AtLeast:
    """A bound of a setting: a smallest number."""

    def __init__(self, least: int) -> None:
        """Take the smallest number that is allowed."""
        self.least = least

    def allows(self, value: object) -> bool:
        """Say whether a value is that large."""
        return isinstance(value, int) and value >= self.least

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of the number, with the bound."""
        return handler(source) | {"ge": self.least}


class Between(AtLeast):
    """A bound of a setting: a smallest and a largest number."""

    def __init__(self, least: int, most: int) -> None:
        """Take the smallest and the largest number."""
        super().__init__(least)
        self.most = most

    def allows(self, value: object) -> bool:
        """Say whether a value is a number between them."""
        return isinstance(value, int) and self.least <= value <= self.most

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of the number, with the bounds."""
        return handler(source) | {"ge": self.least, "le": self.most}


class ZoneName:
    """A bound of a setting: ``local``, or a time zone's name that this computer knows."""

    def allows(self, value: object) -> bool:
        """Say whether a value names a time zone."""
        try:
            return isinstance(value, str) and (zone_of(value) is not None or value == LOCAL_ZONE)
        except (OSError, ValueError, KeyError):
            return False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of a text, with a message for other names."""
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: str) -> str:
        if not self.allows(value):
            raise ValueError(f"there is no time zone {value!r} on this computer")
        return value


class PriceLine:
    """A bound of a setting: the prices of a model, as ``store.prices.lines`` reads them."""

    def allows(self, value: object) -> bool:
        """Say whether a value has prices that can be used."""
        return isinstance(value, dict) and self._fault(value) is None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return pydantic's schema of a table, with the place of what does not fit."""
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: dict[str, Any]) -> dict[str, Any]:
        from pydantic_core import PydanticCustomError

        fault = self._fault(value)
        if fault is None:
            return value
        said = {"reason": fault.reason, "path": fault.path}
        raise PydanticCustomError("prices", "{reason}", said)

    def _fault(self, value: dict[str, Any]) -> BadPrices | None:
        from store.prices.lines import BadPrices, checked_line

        try:
            list(checked_line("", value))
        except BadPrices as error:
            return error
        return None


LOCAL_ZONE = "local"
"""The computer's own time zone, as a setting."""


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone; None for the computer's own, as ``datetime`` takes it.

    Raises:
        KeyError: No zone has this name.
        ValueError: It is not a name.
        OSError: Its file cannot be read.
    """
    if name == LOCAL_ZONE:
        return None
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


@dataclass_transform(eq_default=True, kw_only_default=True)
class Section:
    """A table of the file: the attributes of a subclass are its settings and defaults.

    What a dataclass does, without its price at import, which every start would pay.
    """

    def __init__(self, **given: Any) -> None:
        """Set what is given, all else to its default."""
        for name in self.names():
            default = getattr(type(self), name)
            value = given.pop(name) if name in given else _copied(default)
            setattr(self, name, value)
        if given:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(given)}")

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the settings, in the order of the declaration."""
        return [name for base in reversed(cls.__mro__) for name in base.__dict__.get(
            "__annotations__", ())]

    def __eq__(self, other: object) -> bool:
        """Say whether all settings are the same."""
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return all settings."""
        held = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({held})"


def _copied(default: Any) -> Any:
    if isinstance(default, Section):
        return type(default)()
    return default.copy() if isinstance(default, list | dict) else default


Milliseconds = Annotated[int, AtLeast(1)]


class UiSettings(Section):
    """``[ui]``: how it looks.

    Attributes:
        theme: A Textual theme's name, or auto, dark, light. Without it: the theme
            that you chose last, else the one that fits the terminal's colours.
        group: How the session list is grouped until you choose another way.
        sort: How the session list is sorted until you choose another way.
        mouse: Use the mouse.
        helpers: List the runs that agents started for themselves too.
    """

    theme: str | None = None
    group: Annotated[str, OneOf(GROUPS)] = DEFAULT_GROUP
    sort: Annotated[str, OneOf(SORTS)] = DEFAULT_SORT
    mouse: bool = True
    helpers: bool = False


class LiveSettings(Section):
    """``[live]``: how changes are noticed.

    Attributes:
        poll_ms: Milliseconds between two checks for changes while the terminal has the focus.
        unfocused_poll_ms: Milliseconds between two checks while it has not.
        repaint_ms: At least so many milliseconds between two repaints of a growing part.
    """

    poll_ms: Milliseconds = 50
    unfocused_poll_ms: Milliseconds = 250
    repaint_ms: Milliseconds = 50


class NotifySettings(Section):
    """``[notify]``: what is reported when a watched session finishes, fails or waits.

    Attributes:
        bell: Ring the terminal's bell.
        desktop: Ask the terminal for a desktop notification, by OSC 9 or OSC 777.
        sessions: Which sessions are watched: those opened since the start, or all.
    """

    bell: bool = False
    desktop: Literal["off", "osc9", "osc777"] = "off"
    sessions: Literal["opened", "all"] = "opened"


PollFiles = Literal["auto", "always", "never"]


class SourceSettings(Section):
    """``[sources]``: what sync reads.

    Attributes:
        enabled: Kinds of sources that are read; an empty list means all.
        disabled: Kinds of sources that are never read.
        paths: Further files, folders and URLs of database servers, by kind of source.
        excluded_workspaces: Folders whose sessions are never added to the library.
        sync_on_start: Sync when ``backscroll`` is started without an argument.
        watch: Follow running sessions.
        poll_files: Check the size and time of files beside the system's events; ``always`` is for
            file systems without events.
        keep_originals: Keep each original record, compressed.
        keep_deleted: Keep sessions whose source's file was deleted.
    """

    enabled: list[str] = []  # noqa: RUF012 - copied for each instance
    disabled: list[str] = []  # noqa: RUF012
    paths: dict[str, list[str]] = {}  # noqa: RUF012
    excluded_workspaces: list[str] = []  # noqa: RUF012
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


class StatsSettings(Section):
    """``[stats]``: how days and months are counted in statistics.

    Attributes:
        zone: The time zone in which hours, days, weeks and months begin, such as
            ``Europe/Berlin``; local is the computer's own.
        month_starts: The day on which a month begins, as on your bill. Where a month is too short
            for it, the next one begins on its last day.
    """

    zone: Annotated[str, ZoneName()] = LOCAL_ZONE
    month_starts: Annotated[int, Between(1, 31)] = 1


class BackupSettings(Section):
    """``[backup]``: a backup of the store each night.

    It is made by the first ``backscroll`` that runs after three at night, in the background.

    Attributes:
        folder: Where the backups go; without it none are made.
        keep: How many backups of a store are kept.
    """

    folder: str | None = None
    keep: Annotated[int, AtLeast(1)] = 7


class EventSettings(Section):
    """``[events]``: how much of an event log is kept, where ``backscroll events --on`` began one.

    Old events are cut once a day, in the background; the present state of each session stays.

    Attributes:
        keep_days: Events older than this are cut; 0 keeps them however old they are.
        max_mb: Above this many megabytes, the events of the sessions that changed longest ago are
            cut; 0 keeps them however many they are.
    """

    keep_days: Annotated[int, AtLeast(0)] = 0
    max_mb: Annotated[int, AtLeast(0)] = 0


class MaskSettings(Section):
    """``[masks]``: what is kept back when sessions are shared.

    Attributes:
        view: Mask the view from the start; a key changes it.
        emails: Mask e-mail addresses too.
        home: Replace the names of users in paths by ``user``.
        let_through: Texts that are never masked, such as a key for tests.
        rules: Own rules: by the name of what they recognise, a regular expression.
    """

    view: bool = False
    emails: bool = False
    home: bool = False
    let_through: list[str] = []  # noqa: RUF012 - copied for each instance
    rules: dict[str, str] = {}  # noqa: RUF012


class TeamSettings(Section):
    """``[team]``: a store on a server that several people share.

    ``backscroll sync --store postgresql://...`` brings your sessions there, masked as ``[masks]``
    says.

    Attributes:
        owner: Your name there, as others see it and as ``owner:`` finds it; without it, the name
            that you log in with.
    """

    owner: str | None = None


class Settings(Section):
    """The whole ``config.toml``.

    Attributes:
        store: The store to open instead of the library.
        read_only: Change nothing in the browser, as with ``--read-only``.
        prices: What models cost, in dollars per million tokens, by the model's id; each line goes
            before that of the package. ``backscroll prices --help`` shows how.
        keys: Keys by command id, which replace the command's own; an empty list is no key.
    """

    store: str | None = None
    read_only: bool = False
    ui: UiSettings = UiSettings()
    live: LiveSettings = LiveSettings()
    notify: NotifySettings = NotifySettings()
    sources: SourceSettings = SourceSettings()
    stats: StatsSettings = StatsSettings()
    prices: dict[str, Annotated[dict[str, Any], PriceLine()]] = {}  # noqa: RUF012
    masks: MaskSettings = MaskSettings()
    team: TeamSettings = TeamSettings()
    backup: BackupSettings = BackupSettings()
    events: EventSettings = EventSettings()
    keys: dict[str, list[str]] = {}  # noqa: RUF012 - copied for each instance


class Mistake(NamedTuple):
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


class Config(Settings):
    """The settings as read, with what was wrong in the file.

    Attributes:
        path: Where the file is, or would be.
        mistakes: Each setting named here has its default.
    """

    path: Path = Path()
    mistakes: list[Mistake] = []  # noqa: RUF012


def quick_config(path: Path | None = None) -> Settings:
    """Read the configuration without pydantic; what does not fit has its default.

    The settings are the same as those of ``load_config``, which reports the mistakes.

    Args:
        path: The file; None takes the platform's place.
    """
    try:
        found = parse_toml(read_regular(path or config_path()).decode("utf-8"))
    except (OSError, UnicodeDecodeError, NotToml):
        return Settings()
    settings = _taken(Settings, with_flat_keys(found))
    assert isinstance(settings, Settings)
    return settings


_NOTHING = object()


def _taken(kind: Any, value: Any) -> Any:
    """Return what a setting of a type takes of a value of TOML, ``_NOTHING`` if none of it."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return _taken_settings(kind, value) if isinstance(value, dict) else _NOTHING
    kind, *bounds = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    if not all(bound.allows(value) for bound in bounds):
        return _NOTHING
    outer, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if outer is Literal:
        return value if value in inner else _NOTHING
    if outer is UnionType:
        return value if any(type(value) is one for one in inner) else _NOTHING
    if outer is list:
        whole = isinstance(value, list) and all(type(one) is inner[0] for one in value)
        return value if whole else _NOTHING
    if outer is dict:
        taken = {key: _taken(inner[1], one) for key, one in value.items()} \
            if isinstance(value, dict) else {}
        return {key: one for key, one in taken.items() if one is not _NOTHING}
    return value if type(value) is kind else _NOTHING


def _taken_settings(kind: Any, table: dict[str, Any]) -> Any:
    kinds = get_type_hints(kind, include_extras=True)
    taken = {
        name: _taken(kinds[name], table[name]) for name in kind.names() if name in table
    }
    return kind(**{name: value for name, value in taken.items() if value is not _NOTHING})


class Described(NamedTuple):
    """A setting, for the documentation.

    Attributes:
        name: With its tables, as ``live.poll_ms``.
        type: As in the declaration, with its bounds or choices in words.
        default: As TOML; empty where nothing is the default.
        sentence: What it does.
    """

    name: str
    type: str
    default: str
    sentence: str


def described() -> list[Described]:
    """Return every setting, in the order of the declaration."""
    return list(_described(Settings, ""))


def _described(kind: Any, above: str) -> Iterator[Described]:
    kinds = get_type_hints(kind, include_extras=True)
    sentences = _sentences(kind.__doc__ or "")
    for name in kind.names():
        declared, default = kinds[name], getattr(kind, name)
        if isinstance(default, Section):
            yield from _described(declared, f"{above}{name}.")
            continue
        import json  # Only for the documentation.

        written = "" if default is None else json.dumps(default)
        yield Described(above + name, _type_words(declared), written, sentences[name])


def _type_words(kind: Any) -> str:
    kind, *bounds = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    for bound in bounds:
        if isinstance(bound, OneOf):
            return ", ".join(bound.names)
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if get_origin(kind) is dict and get_origin(get_args(kind)[1]) is Annotated:
        return "tables of numbers by name"
    words = {
        bool: "true, false", int: "number", str: "text", str | None: "text",
        list[str]: "list of texts", dict[str, str]: "texts by name",
        dict[str, list[str]]: "lists of texts by name",
    }[kind]
    return " ".join([words, *map(_bound_words, bounds)])


def _bound_words(bound: Any) -> str:
    if isinstance(bound, ZoneName):
        return f"({LOCAL_ZONE}, or a time zone's name)"
    return f"from {bound.least}" + (f" to {bound.most}" if isinstance(bound, Between) else "")


def _sentences(doc: str) -> dict[str, str]:
    """Return what a docstring says under ``Attributes``, by name."""
    _, _, listed = doc.partition("Attributes:")
    found = re.findall(r"^        (\w+): (.*(?:\n            .*)*)", listed, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


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
        return Config(path=path, mistakes=[Mistake(path, at, f"is not valid TOML: {error}")])
    return _checked(path, text, decoded)


def _checked(path: Path, text: str, decoded: dict[str, Any]) -> Config:
    from pydantic import ValidationError

    model = _model_of(Settings)
    decoded = with_flat_keys(decoded)
    mistakes: list[Mistake] = []
    while True:
        try:
            model.model_validate(decoded)
            break
        except ValidationError as error:
            for item in error.errors():
                within = item.get("ctx", {}).get("path", ())
                location = tuple(str(step) for step in (*item["loc"], *within))
                mistakes.append(Mistake(path, line_of(text, location), _reason(location, item)))
                _remove(decoded, item["loc"])
    return Config(**vars(_taken_settings(Settings, decoded)), path=path, mistakes=mistakes)


def _model_of(kind: type[Section]) -> type[BaseModel]:
    """Return the pydantic model of a table, which names what does not fit."""
    from pydantic import BaseModel, create_model

    class Strict(BaseModel):
        model_config = {"extra": "forbid", "strict": True}

    kinds = get_type_hints(kind, include_extras=True)
    given: dict[str, Any] = {
        name: (_model_of(kinds[name]) if isinstance(default, Section) else kinds[name], default)
        for name in kind.names() for default in [getattr(kind, name)]
    }
    return create_model(kind.__name__, __base__=Strict, **given)


def _reason(location: tuple[str, ...], item: Mapping[str, Any]) -> str:
    name = ".".join(location)
    if item["type"] == "extra_forbidden":
        return f"there is no setting {name}"
    message = str(item["msg"])
    return f"{name}: {message[:1].lower()}{message[1:]}; the default is used"


def with_flat_keys(decoded: dict[str, Any]) -> dict[str, Any]:
    """Return what TOML gave, with ``[keys]`` by command id and each a list.

    One key may be given without brackets.
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


_TABLE = r"\s*\[+\s*([^\]]+?)\s*\]+"
_KEY = r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*="""


def line_of(text: str, location: tuple[str, ...]) -> int:
    """Return the line, from 1, of a setting; its table's where it has none.

    Args:
        text: The TOML.
        location: Names from the outermost table inwards; what follows the key is ignored.
    """
    wanted = ".".join(location)
    above, best, best_length = "", 0, -1
    for number, line in enumerate(text.splitlines(), 1):
        if table := re.match(_TABLE, line):
            name = above = _plain(table[1])
        elif key := re.match(_KEY, line):
            name = f"{above}.{_plain(key[1])}" if above else _plain(key[1])
        else:
            continue
        if f"{wanted}.".startswith(f"{name}.") and len(name) > best_length:
            best, best_length = number, len(name)
    return best


def _plain(name: str) -> str:
    return re.sub(r"""\s*\.\s*""", ".", name).replace('"', "").replace("'", "")
