"""Code with colours; pygments is imported when the first code block is drawn."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tui.kit.lines import Run
from tui.kit.text import clean

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


def code_lines(code: str, language: str) -> list[list[Run]]:
    """Return the lines of a piece of code as runs.

    Args:
        code: As the session has it.
        language: What the fence names; "" or an unknown name leaves it plain. It is
            never guessed.
    """
    text = clean(code)
    lexer = _lexer(language.lower()) if language else None
    if lexer is None:
        return [[(line, "text")] for line in text.split("\n")]
    rest: list[str] = []
    if len(text) > LONGEST:
        cut = text.rfind("\n", 0, LONGEST)
        cut = cut if cut > 0 else LONGEST
        text, rest = text[:cut], text[cut:].lstrip("\n").split("\n")
    lines: list[list[Run]] = [[]]
    for token, value in lexer.get_tokens(text):
        ink = _ink(token)
        head, *others = value.split("\n")
        if head:
            lines[-1].append((head, ink))
        for other in others:
            lines.append([(other, ink)] if other else [])
    return lines + [[(line, "text")] for line in rest]
