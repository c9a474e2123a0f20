"""The facts of a session as blocks: source, place, lineage, tokens, cost, permissions."""

from __future__ import annotations

from store.conversation.gone_marks import NO_LONGER, gone_messages
from store.queries.details import Overview, Timeline, model_name
from store.stats.families import Family
from store.text.figures import count_of, duration, moment, money, tokens
from store.text.stored_json import as_dict
from store.usage import Spent
from tui.kit.blocks import Block, Fixed
from tui.kit.lines import (
    BLANK,
    FACT_LABEL,
    Line,
    Link,
    Run,
    Value,
    fact,
    heading,
    identity,
    pair,
)
from tui.kit.masked import shown
from tui.kit.text import fit_path, one_line
from tui.kit.tree import Tree
from tui.kit.usage import bar_lines, cost_words
from tui.words.costs import family_lines
from tui.words.permissions import permission_lines, scope_lines, scope_of

LEAST_COST = 0.0005
"""Dollars; less than that is not shown."""
NO_MODEL = "unknown/unknown"
"""The reference of a session whose source names no model."""


_BELONGS = (("called", "workspace"), ("project", "project"), ("account", "account"))
"""What a hub's session belongs to, by name: the label of each, and its key."""


def title_of(overview: Overview) -> str:
    """Return the session's title: the user's, else the stored one, else its id."""
    user = overview.metadata.get("user")
    own = user.get("title") if isinstance(user, dict) else None
    return one_line(shown(str(own or overview.row.title or overview.row.id)))


def fact_blocks(
    overview: Overview, timeline: Timeline | None, family: Family | None = None
) -> list[Block]:
    """Return the facts.

    Args:
        overview: The facts of the session itself.
        timeline: Its turns; what they tell is missing while it is None.
        family: The session with all below it; None without any, or while it is read.
    """
    blocks: list[Block] = [
        Fixed(lambda width: _session_lines(overview, timeline, width)),
        Fixed(lambda width: _place_lines(overview, width)),
        Fixed(lambda width: _lineage_lines(overview, width)),
        Fixed(lambda width: _spent_lines(overview, timeline, width)),
    ]
    if family is not None:
        blocks.append(Fixed(lambda width: family_lines(family, width)))
    permissions = overview.row.permissions_json
    blocks.append(Fixed(lambda width: permission_lines(permissions, width)))
    if scope := scope_of(overview.metadata):
        blocks.append(Fixed(lambda width: scope_lines(scope, width)))
    rest = {key: item for key, item in overview.metadata.items() if key not in ("source", "title")}
    if rest:
        blocks.append(Fixed(lambda width: [heading("Metadata", [], width)]))
        blocks.append(Tree.of(rest, name="$.metadata"))
    return blocks


def _session_lines(overview: Overview, timeline: Timeline | None, width: int) -> list[Line]:
    row = overview.row
    lines = [heading("Session", [], width)]
    lines.append(identity("id", row.id, width))
    lines.append(fact("agent", row.agent, width))
    model = model_name(overview.model)
    lines.append(fact("model", "unknown" if model in (None, NO_MODEL) else model, width))
    for name, count in (timeline.models.most_common() if timeline else ()):
        if name != model:
            lines.append(fact("also", f"{name} · {count_of(count, 'answer')}", width, "muted"))
    lines.append(fact("began", moment(row.created_at), width))
    ended = f"{moment(row.updated_at)} · {duration(max(0, row.updated_at - row.created_at))}"
    lines.append(fact("last", ended, width))
    if row.archived_at is not None:
        lines.append(fact("archived", moment(row.archived_at), width, "fork"))
    return [*lines, BLANK]


def _place_lines(overview: Overview, width: int) -> list[Line]:
    row, metadata = overview.row, overview.metadata
    source = metadata.get("source")
    source = source if isinstance(source, dict) else {}
    own = as_dict(metadata.get("backscroll"))
    lines = [heading("Place", [], width)]
    for name, text in (
        ("workspace", row.workspace_root),
        *((label, own.get(key)) for label, key in _BELONGS),
        ("branch", metadata.get("git_branch")),
        ("source", source.get("kind")), ("path", source.get("path")),
        ("source id", source.get("id")), ("version", metadata.get("version")),
    ):
        if text:
            value = Value(name, lambda text=text: str(text))  # type: ignore[misc]
            shown = fit_path(one_line(str(text)), width - FACT_LABEL - 1)
            lines.append(pair(name, [(shown, "text")], width, label=FACT_LABEL, value=value))
    kept = count_of(overview.records, "original record")
    if overview.records:
        lines.append(fact("kept", kept, width, "muted"))
    gone = gone_messages(metadata)
    if gone:
        said = f"{count_of(gone, 'message')} {NO_LONGER}"
        lines.append(fact("lost", said, width, "fork"))
    return [*lines, BLANK] if len(lines) > 1 else []


def _lineage_lines(overview: Overview, width: int) -> list[Line]:
    lines = []
    parent = overview.parent
    if parent is not None:
        lineage = overview.metadata.get("lineage")
        kind = lineage.get("kind") if isinstance(lineage, dict) else None
        title = one_line(parent.title or parent.id)
        runs: list[Run] = [("↱ ", "fork"), (title, "user underline")]
        link = Link("session", parent.id, parent.message_id)
        lines.append(pair(f"{kind or 'child'} of", runs, width, label=FACT_LABEL, link=link,
                          value=Value("parent id", lambda: parent.id)))
    for kind, count in sorted(overview.children.items()):
        mark = "↳" if kind == "subagent" else "↱"
        plural = kind if kind == "unknown" else kind + ("s" if count > 1 else "")
        runs = [(f"{mark} ", "fork"), (f"{count:,}", "text")]
        lines.append(pair(plural, runs, width, label=FACT_LABEL))
    return [heading("Lineage", [], width), *lines, BLANK] if lines else []


def _spent_lines(overview: Overview, timeline: Timeline | None, width: int) -> list[Line]:
    row = overview.row
    rolled = row.spent
    cost, told_by = _cost(overview, timeline, rolled)
    facts = [f"{tokens(rolled.total)} tokens"]
    own = timeline.spent if timeline is not None and cost is None else Spent()
    if cost is not None:
        facts.append(money(cost) + (f" by {told_by}" if told_by else ""))
    elif own.estimated is not None:
        facts.append(cost_words(own))
    lines = [heading("Tokens", facts, width)]
    if rolled.total:
        lines += bar_lines(rolled, width)
    if timeline is not None and timeline.spent.total and timeline.spent.total != rolled.total:
        told = f"{tokens(timeline.spent.total)} in its own messages, copied ones left out"
        lines.append(fact("spent", told, width, "muted"))
    rest = 0.0 if cost is None or timeline is None else cost - _told_by_answers(timeline)
    if rest > LEAST_COST and cost is not None and rest < cost - LEAST_COST:
        lines.append(fact("beyond", f"{money(rest)} that no answer tells", width, "muted"))
    if cost is None:
        said = "estimated by its tokens" if own.estimated is not None else "not recorded"
        lines.append(fact("cost", said, width, "faint"))
    return [*lines, BLANK]


def _told_by_answers(timeline: Timeline) -> float:
    """Return what the answers tell that the session's figure is made of."""
    if timeline.noted is not None:
        return timeline.spent.cost or 0.0
    return sum(turn.spent.cost or 0.0 for turn in timeline.turns)


def _cost(
    overview: Overview, timeline: Timeline | None, rolled: Spent
) -> tuple[float | None, str]:
    """Return what a session cost, and who tells it.

    Args:
        overview: The session.
        timeline: Its turns; until they are read, a fork's total has its parent's in it.
        rolled: The sums of its row.
    """
    own = overview.metadata.get("backscroll")
    told = own.get("cost") if isinstance(own, dict) else None
    if isinstance(told, dict) and isinstance(told.get("usd"), int | float):
        noted = timeline.noted if timeline is not None else None
        usd = float(told["usd"]) if noted is None else noted
        return usd, one_line(str(told.get("from") or ""), 30)
    return rolled.cost, ""
