"""Code as coloured pieces; pygments is imported when the first of it is shown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LONGEST = 16_000
"""What follows stays plain: colouring takes about 1.7 ms for 1,000 characters."""
_INKS = (
    ("Comment", "faint italic"), ("Keyword.Constant", "tool"), ("Keyword", "reasoning"),
    ("Name.Function", "user"), ("Name.Class", "user"), ("Name.Decorator", "tool"),
    ("Name.Builtin", "assistant"), ("Name.Tag", "user"), ("Name.Attribute", "assistant"),
    ("Name.Variable", "assistant"), ("Literal.String", "ok"), ("Literal.Number", "tool"),
    ("Operator.Word", "reasoning"), ("Generic.Inserted", "ok"), ("Generic.Deleted", "error"),
    ("Generic.Heading", "text bold"), ("Generic.Subheading", "text bold"),
    ("Generic.Error", "error"), ("Generic.Prompt", "faint"), ("Error", "text"),
)


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _ink(token: Any) -> str:
    name = str(token).removeprefix("Token.")
    return next((ink for prefix, ink in _INKS if name.startswith(prefix)), "text")


def warm() -> None:
    """Do now what the first code block would wait for; runs on any thread."""
    list(_lexer("python").get_tokens("x = 1"))
    _lexer("bash")


def coloured(code: str, language: str) -> list[list[tuple[str, str]]]:
    """Return the lines of a piece of code, each as ``(text, role of its colour)``.

    Args:
        code: Text without anything that must not be shown.
        language: What the fence names; "" or an unknown name leaves it plain. It is
            never guessed.
    """
    lexer = _lexer(language.lower()) if language else None
    if lexer is None:
        return [[(line, "text")] for line in code.split("\n")]
    rest: list[str] = []
    if len(code) > LONGEST:
        cut = code.rfind("\n", 0, LONGEST)
        cut = cut if cut > 0 else LONGEST
        code, rest = code[:cut], code[cut:].lstrip("\n").split("\n")
    lines: list[list[tuple[str, str]]] = [[]]
    for token, value in lexer.get_tokens(code):
        ink = _ink(token)
        head, *others = value.split("\n")
        if head:
            lines[-1].append((head, ink))
        for other in others:
            lines.append([(other, ink)] if other else [])
    return lines + [[(line, "text")] for line in rest]
