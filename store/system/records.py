"""Classes with fields for what the start needs: quicker to make than those of the library.

``dataclasses`` imports ``inspect``, which takes 5 ms, a sixth of the time to the first rows of the
session list; ``typing.NamedTuple`` compiles each annotation, which doubles what a class costs. So
these are for modules that are imported before the first screen; all others take the library's.
``collections`` and ``operator`` come with the first class that needs them, which the picture of the
last screen has not.
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

    class _NamedTuples(type):
        """Makes the classes that name ``NamedTuple`` as their base."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            """Return a named tuple with the methods of the body; fields cannot be checked."""
            from collections import namedtuple

            annotations = body.get("__annotations__", {})
            defaults = [body.pop(one) for one in annotations if one in body]
            made = namedtuple(name, annotations, defaults=defaults, module=body["__module__"])
            for attribute, value in body.items():
                if attribute != "__module__":
                    setattr(made, attribute, value)
            return made

    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
