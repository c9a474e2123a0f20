"""The system prompts and the tools of a session as blocks."""

from __future__ import annotations

from typing import Any

from store.queries.details import Overview, Timeline
from store.text.figures import count_of, size
from tui.kit.blocks import Block, Fixed, Text, plain, section
from tui.kit.lines import BLANK, Line, Run, Value, heading
from tui.kit.markdown import prose
from tui.kit.text import one_line
from tui.kit.tree import Node, Tree, open_at_first


def prompt_blocks(timeline: Timeline, bodies: dict[str, str]) -> list[Block]:
    """Return the system prompts by digest, with how many answers each had."""
    if not timeline.prompts:
        told = "The system prompt is not recorded by this source."
        return [Text(told, words=True, paint=plain("muted"))]
    blocks: list[Block] = []
    for digest, count in timeline.prompts.most_common():
        blocks += _prompt(digest, count, bodies.get(digest))
    return blocks


def _prompt(digest: str, count: int, body: str | None) -> list[Block]:
    facts = [digest[:12], count_of(count, "answer")]
    if body is None:
        note = Text("Only its digest is recorded.", words=True, paint=plain("muted"))
        return section("System prompt", facts, note)
    facts.append(size(len(body.encode("utf-8", "surrogatepass"))))
    value = Value("system prompt", lambda: body, ".md")
    return section("System prompt", facts, prose(body, value), value=value)


def tool_blocks(overview: Overview, timeline: Timeline, catalogue: Any) -> list[Block]:
    """Return the tools that were called, and the catalogue where the source keeps one.

    Args:
        overview: The session.
        timeline: Its turns, with their calls.
        catalogue: The decoded catalogue; None where there is none.
    """
    blocks: list[Block] = [Fixed(lambda width: _called_lines(timeline, width))]
    own = overview.metadata.get("backscroll")
    names = own.get("tools") if isinstance(own, dict) else None
    if catalogue:
        facts = [count_of(len(catalogue), "tool")] if isinstance(catalogue, list) else []
        blocks.append(Fixed(lambda width: [heading("Catalogue", facts, width)]))
        root = Node(None, _by_name(catalogue), None)
        open_at_first(root, depth=1)
        blocks.append(Tree(root, name="$.tools"))
    elif isinstance(names, list) and names:
        facts = [count_of(len(names), "tool")]
        blocks.append(Fixed(lambda width: [heading("Catalogue", facts, width)]))
        text = ", ".join(str(name) for name in names)
        blocks.append(Text(text, words=True, value=Value("catalogue", lambda: text)))
    else:
        told = "No tool catalogue is recorded; these are the tools that were called."
        blocks.append(Text(told, words=True, paint=plain("faint")))
    return blocks


def _by_name(catalogue: Any) -> Any:
    """Return a list of tools as an object by name, folded tool by tool."""
    if not isinstance(catalogue, list):
        return catalogue
    return {
        str(tool.get("name", at)) if isinstance(tool, dict) else str(at): tool
        for at, tool in enumerate(catalogue)
    }


def _called_lines(timeline: Timeline, width: int) -> list[Line]:
    calls = timeline.tools.total()
    lines = [heading("Called", [count_of(calls, "call")], width)]
    if not calls:
        return [*lines, Line((("no tool calls", "faint italic"),)), BLANK]
    label = min(28, max(len(one_line(name, 60)) for name in timeline.tools))
    most = max(timeline.tools.values())
    cells = max(4, width - label - 24)
    for name, count in timeline.tools.most_common():
        bar = "█" * max(1, round(count / most * cells))
        failed = timeline.failed[name]
        right: tuple[Run, ...] = ((f"✗ {failed:,}  ", "error"),) if failed else ()
        runs: tuple[Run, ...] = ((one_line(name, label).ljust(label) + " ", "text"), (bar, "tool"))
        lines.append(Line(runs, (*right, (f"{count:,}", "muted"))))
    return [*lines, BLANK]
