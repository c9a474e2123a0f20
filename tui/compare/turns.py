"""One turn of a branch as lines: prompt, tool calls, answer, usage; short or whole."""

from __future__ import annotations

from store.queries.compare import BranchTurn
from store.system.records import replaced
from store.text import figures
from tui.kit.blocks import Block, Fixed
from tui.kit.glyphs import glyphs
from tui.kit.key_hints import keyed
from tui.kit.lines import Line, Run
from tui.kit.markdown import layout
from tui.kit.text import one_line
from tui.kit.wrap import plain_lines
from tui.verbs.doing import counted
from tui.words.calls import describe

PROMPT_LINES, CALL_LINES, ANSWER_LINES = 3, 6, 8
SHORT_CHARACTERS = 2_000
"""How much of a text is laid out while only its first lines are shown."""
WHOLE_CHARACTERS = 32_000
BAR = 2


def turn_blocks(
    turn: BranchTurn | None, *, whole: bool, ends: bool = False, root: str | None = None
) -> list[Block]:
    """Return the blocks of one branch's turn.

    Args:
        turn: The turn; None where the branch has none there.
        whole: Show all of its texts and calls.
        ends: Say that the branch has ended, where there is no turn.
        root: The session's workspace; paths below it are shown from there.
    """
    if turn is None:
        words = "the branch ends here" if ends else ""
        return [Fixed(lambda width: [Line(((words, "faint italic"),))])]

    def build(width: int) -> list[Line]:
        room = max(8, width - BAR)
        prompt = plain_lines(_text(turn.prompt, whole), room, "text")
        answer = layout(_text(turn.answer, whole), room, room)
        lines = _barred(prompt, "user", PROMPT_LINES, whole)
        lines += _barred(_calls(turn, root), "tool", CALL_LINES, whole)
        lines += _barred(answer, "assistant", ANSWER_LINES, whole)
        return [*lines, _usage(turn)]

    return [Fixed(build)]


def _text(text: str, whole: bool) -> str:
    return text.strip()[:WHOLE_CHARACTERS if whole else SHORT_CHARACTERS]


def _barred(lines: list[Line], role: str, most: int, whole: bool) -> list[Line]:
    """Return lines with a speaker's bar; of many only the first, and how many there are."""
    while lines and not lines[-1].text.strip():
        lines.pop()
    if not whole and len(lines) > most + 1:
        left = len(lines) - most
        hint = f"  {keyed('compare.fold', 'shows all')}"
        more = (f"{glyphs().more} {left:,} more", "muted"), (hint, "faint")
        lines = [*lines[:most], Line(more)]
    bar = (f"{glyphs().bar} ", role)
    return [
        replaced(line, runs=(bar, *line.runs), lead=line.lead + len(bar[0])) for line in lines
    ]


def _calls(turn: BranchTurn, root: str | None) -> list[Line]:
    """Return a line for each call: the tool, what it was to do, and whether that failed."""
    lines = []
    for part in turn.parts:
        call = describe(part, root)
        runs: list[Run] = [(one_line(call.name), "text bold"), (f" {one_line(call.what)}", "muted")]
        if call.status in ("failed", "denied", "interrupted"):
            runs.insert(0, (f"{glyphs().failed} ", "error"))
        lines.append(Line(tuple(runs)))
    return lines


def _usage(turn: BranchTurn) -> Line:
    words: list[str] = [counted(len(turn.calls), "call")] if turn.calls else []
    words += [f"{figures.tokens(turn.tokens)} tokens"] if turn.tokens else []
    runs: list[Run] = [(" " * BAR + f" {glyphs().dot} ".join(words), "faint")]
    if turn.failed:
        runs.append((f"  {glyphs().failed} {turn.failed} failed", "error"))
    return Line(tuple(runs))
