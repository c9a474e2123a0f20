"""Classes with fields for what the start needs: quicker to make than those of the library.

``dataclasses`` imports ``inspect``, which takes 5 ms, a sixth of the time to the first rows of the
session list; ``typing.NamedTuple`` compiles each annotation and a constructor. So these are for
modules that are imported before the first screen; all others take the library's. ``operator`` comes
with the first comparison, which the picture of the last screen does without.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar, dataclass_transform
    from typing import NamedTuple as NamedTuple

    _T = TypeVar("_T")
else:

    def dataclass_transform(**_said: object) -> object:
        """Do nothing: only type checkers ask what a decorator makes."""
        return lambda decorator: decorator

_NOTHING: Any = object()


class Field:
    """What ``field`` says of a field.

    Attributes:
        default: Its default, where it has one.
        factory: Returns its default; None where it has a value as its default, or none.
        metadata: Whatever its class keeps there.
    """

    __slots__ = ("default", "factory", "metadata")

    def __init__(
        self, default: Any = _NOTHING, factory: Callable[[], Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Take what is said.

        Args:
            default: Its default, where it has one.
            factory: Returns its default.
            metadata: Whatever its class keeps there.
        """
        self.default, self.factory, self.metadata = default, factory, metadata or {}


def field(
    *, default: Any = _NOTHING, default_factory: Callable[[], Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Declare a field that is more than a name and a default.

    Args:
        default: Its default, where it has one.
        default_factory: Returns the default of each new record.
        metadata: What the class wants to know of it, see ``fields``.
    """
    return Field(default, default_factory, metadata)


@dataclass_transform(field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """Return the class with slots for its annotated fields, a constructor, equality and a repr."""
    names = list(cls.__annotations__)
    body = {
        name: value for name, value in vars(cls).items()
        if name not in names and name not in ("__dict__", "__weakref__")
    }
    found = {name: _as_field(cls, name) for name in names}
    scope: dict[str, Any] = {"_NOTHING": _NOTHING}
    exec(_constructor(found, scope), scope)
    body = {"__init__": scope["__init__"], **_by_values(cls.__name__, names), **body}
    body |= {"__slots__": tuple(names), "__hash__": None, "__record_fields__": found}
    made: Any = type(cls)
    slotted: type[_T] = made(cls.__name__, cls.__bases__, body)
    return slotted


def fields(cls: type[Any]) -> dict[str, Field]:
    """Return the fields of a record by name, in the order of their declaration."""
    found: dict[str, Field] = cls.__record_fields__
    return found


def replaced(one: _T, **changes: Any) -> _T:
    """Return a copy of a record with other values of some fields."""
    names = fields(type(one))
    return type(one)(**{name: getattr(one, name) for name in names} | changes)


def _as_field(cls: type[Any], name: str) -> Field:
    given = vars(cls).get(name, _NOTHING)
    return given if isinstance(given, Field) else Field(given)


def _constructor(found: Mapping[str, Field], scope: dict[str, Any]) -> str:
    """Return the source of the constructor; what it needs of the fields is put into the scope."""
    parameters, lines = ["self"], list[str]()
    for one, said in found.items():
        value = one
        if said.factory is not None:
            scope[f"_new_{one}"] = said.factory
            parameters.append(f"{one}=_NOTHING")
            value = f"_new_{one}() if {one} is _NOTHING else {one}"
        elif said.default is not _NOTHING:
            scope[f"_default_{one}"] = said.default
            parameters.append(f"{one}=_default_{one}")
        else:
            parameters.append(one)
        lines.append(f"    self.{one} = {value}")
    return "\n".join([f"def __init__({', '.join(parameters)}):", *lines])


def _by_values(name: str, names: list[str]) -> dict[str, Any]:
    """Return equality and the repr."""
    values: Callable[[object], object] | None = None

    def equal(self: object, other: object) -> bool:
        nonlocal values
        if other.__class__ is not self.__class__:
            refused: bool = NotImplemented
            return refused
        if values is None:
            from operator import attrgetter

            values = attrgetter(*names)
        same: bool = values(self) == values(other)
        return same

    def shown(self: object) -> str:
        return f"{name}({', '.join([f'{one}={getattr(self, one)!r}' for one in names])})"

    return {"__eq__": equal, "__repr__": shown}


if not TYPE_CHECKING:
    from _collections import _tuplegetter  # What ``collections.namedtuple`` reads fields with.

    _new = tuple.__new__
    _CONSTRUCTORS = (
        lambda _cls: _new(_cls, ()),
        lambda _cls, a: _new(_cls, (a,)),
        lambda _cls, a, b: _new(_cls, (a, b)),
        lambda _cls, a, b, c: _new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: _new(_cls, (a, b, c, d, e, f, g, h)),
        lambda _cls, a, b, c, d, e, f, g, h, i: _new(_cls, (a, b, c, d, e, f, g, h, i)),
    )
    """Constructors of named tuples by their number of fields, whose names are put in.

    ``namedtuple`` compiles one for each class, which is most of what a class costs there.
    """

    def _tuple_constructor(name: str, names: tuple[str, ...], defaults: list[Any]) -> Any:
        """Return ``__new__`` of a named tuple.

        Args:
            name: The class's.
            names: Its fields.
            defaults: Of the last fields.
        """
        if len(names) < len(_CONSTRUCTORS):
            made = _CONSTRUCTORS[len(names)]
            code = made.__code__.replace(co_varnames=("_cls", *names))
            made = type(made)(code, globals())
        else:
            fields_given = ", ".join(names)
            made = eval(f"lambda _cls, {fields_given}: _new(_cls, ({fields_given}))")
        made.__name__, made.__qualname__ = "__new__", f"{name}.__new__"
        made.__defaults__ = tuple(defaults)
        return made

    def _make(cls, values):
        """Return a tuple of the class with values from an iterable."""
        made = _new(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes):
        """Return a copy with other values of some fields."""
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    def _repr(self) -> str:
        """Return the class's name and the fields with their values."""
        given = zip(self._fields, self, strict=True)
        return f"{type(self).__name__}({', '.join([f'{one}={value!r}' for one, value in given])})"

    def _asdict(self) -> dict[str, Any]:
        """Return the values by the fields' names."""
        return dict(zip(self._fields, self, strict=True))

    def _getnewargs(self) -> tuple[Any, ...]:
        """Return the values, for ``copy`` and ``pickle``."""
        return tuple(self)

    class _NamedTuples(type):
        """Makes the classes that name ``NamedTuple`` as their base."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            """Return a named tuple with the methods of the body; fields cannot be checked."""
            names = tuple(body.get("__annotations__", ()))
            defaults = {one: body.pop(one) for one in names if one in body}
            made = {
                "__doc__": f"{name}({', '.join(names)})", "__slots__": (), "_fields": names,
                "_field_defaults": defaults, "__match_args__": names,
                "__new__": _tuple_constructor(name, names, list(defaults.values())),
                "_make": classmethod(_make), "_replace": _replace, "_asdict": _asdict,
                "__repr__": _repr, "__getnewargs__": _getnewargs,
            }
            for at, one in enumerate(names):
                made[one] = _tuplegetter(at, f"Alias for field number {at}")
            return type(name, (tuple,), made | body)

    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
