"""The browser uses Textual by its public names; the few exceptions are listed with a reason."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import textual
from textual.message_pump import MessagePump

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "tui/live/notifying.py: _driver",  # The only way to write a sequence in Textual's order.
    "tui/app.py: _handle_exception",  # The only hook for errors that no handler caught.
    "tui/app.py: _watch_app_focus",  # It takes the focus away when the window loses it.
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_of_textual() -> set[str]:
    """Return the private methods and attributes of Textual's app, screens and widgets."""
    folder = Path(inspect.getfile(textual)).parent
    found: set[str] = set()
    for module in ("app", "dom", "message_pump", "screen", "scroll_view", "widget"):
        for node in ast.walk(ast.parse((folder / f"{module}.py").read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return {name for name in found if is_private(name)}


def is_of_textual(node: ast.expr) -> bool:
    """Return whether an expression is the app, a screen or ``super()``, by its name."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name.lstrip("_") in ("app", "screen")


def private_uses(code: str, names: set[str]) -> Iterator[str]:
    """Yield the private names of Textual that code imports or reads."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            for alias in node.names:
                parts = [*module.split("."), *alias.name.split(".")]
                parts = [part for part in parts if part]
                if parts and parts[0] == "textual":
                    yield from filter(is_private, parts)
        elif isinstance(node, ast.Attribute) and node.attr in names and is_of_textual(node.value):
            yield node.attr


def overridden(module: str) -> Iterator[str]:
    """Yield the private methods of Textual that the classes of a module override."""
    for kind in vars(import_module(module)).values():
        if not (inspect.isclass(kind) and issubclass(kind, MessagePump)):
            continue
        if kind.__module__ != module:
            continue
        bases = [base for base in kind.__mro__ if base.__module__.startswith("textual")]
        for name, value in vars(kind).items():
            own = inspect.isfunction(value) and value.__module__ == module
            if own and is_private(name) and any(name in vars(base) for base in bases):
                yield name


def test_private_names_of_textual_are_those_allowed() -> None:
    names, found = names_of_textual(), set()
    for path in sorted((ROOT / "tui").rglob("*.py")):
        file = path.relative_to(ROOT)
        used = set(private_uses(path.read_text("utf-8"), names))
        if path.stem != "__main__":
            used |= set(overridden(".".join(file.with_suffix("").parts).removesuffix(".__init__")))
        found |= {f"{file.as_posix()}: {name}" for name in used}
    assert found == ALLOWED


def test_private_names_are_found() -> None:
    names = names_of_textual()
    assert {"_driver", "_compositor", "_parent", "_task", "_size"} <= names
    code = (
        "from textual._context import active_app\nfrom textual.app import _x\n"
        "self.app._driver\nscreen._compositor\nsuper()._size\nself._own\napp._mine\n"
    )
    found = sorted(private_uses(code, names))
    assert found == ["_compositor", "_context", "_driver", "_size", "_x"]
