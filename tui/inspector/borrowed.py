"""What the transcript lays out, Markdown and diffs, as blocks of the inspector."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tui.inspector.blocks import Block, Fixed, Text, plain
from tui.inspector.lines import Line, Run, Value
from tui.transcript import diff
from tui.transcript.diff import DiffLine
from tui.transcript.lines import Line as LaidOut

MEASURE = 100
"""Most cells of a line of prose."""

LONGEST_MARKDOWN = 200_000
"""Characters beyond which a text is shown as it is, not rendered."""

_FLAGS = {"b": "bold", "i": "italic", "u": "underline", "s": "strike", "r": "reverse"}


def _look(ink: str, ground: str) -> str:
    role, _, flags = ink.partition(" ")
    words = [role, *(_FLAGS[flag] for flag in flags if flag in _FLAGS)]
    return " ".join([*words, f"on:{ground}"] if ground else words)


def _line(laid: LaidOut, value: Value, fold: Hashable | None = None) -> Line:
    runs: list[Run] = [(text, _look(ink, "")) for text, ink in laid.runs]
    return Line(tuple(runs), value=value, ground=laid.ground or None, fold=fold, soft=laid.soft)


def prose(text: str, value: Value, look: str = "text") -> Block:
    """Return a text as rendered Markdown; a very long one as it is."""
    if len(text) > LONGEST_MARKDOWN:
        return Text(text, value=value, words=True, paint=plain(look))
    role, *flags = look.split()
    ink = f"{role} {''.join(flag[0] for flag in flags)}".strip()

    def build(width: int) -> Sequence[Line]:
        # Imported late: the parser is not needed for the first paint.
        from tui.transcript import markdown

        laid = markdown.layout(text, min(width, MEASURE), width, ink)
        return [_line(line, value) for line in laid]

    return Fixed(build)


def changes(lines: Sequence[DiffLine], value: Value, fold: Hashable, limit: int | None) -> Block:
    """Return a diff with its line numbers; ``limit`` lines of it at most."""

    def build(width: int) -> Sequence[Line]:
        laid = [_line(line, value, fold) for line in diff.layout(list(lines), width)]
        if limit is None or len(laid) <= limit + 1:
            return laid
        told = f"… {len(laid) - limit:,} more lines"
        rest = Line(((told, "muted"), ("  v opens all, o shows them here", "faint")),
                    value=value, fold=fold)
        return [*laid[:limit], rest]

    return Fixed(build)


def diff_text(lines: Sequence[DiffLine]) -> str:
    """Return a diff as text, for copying."""
    return "\n".join(f"{line.sign}{line.text}" for line in lines)
