"""The Meta and JSON views: metadata, usage, ids and links; and the part as it is stored."""

from __future__ import annotations

from typing import Any

from store.conversation.gone_marks import NO_LONGER, is_gone
from store.text.figures import count_of, moment, size
from store.usage import spent_of
from tui.inspector.subject import Subject
from tui.kit.blocks import Block, Fixed, Text, section
from tui.kit.lines import (
    BLANK,
    FACT_LABEL,
    Line,
    Link,
    Run,
    Value,
    cut,
    fact,
    heading,
    identity,
    pair,
)
from tui.kit.masked import shown
from tui.kit.text import one_line
from tui.kit.tree import Tree
from tui.kit.usage import BUCKETS, cost_words
from tui.words.permissions import permission_lines, permission_rules, scope_lines

_OWN_SECTIONS = ("usage", "model")
_PROVIDER_KEYS = (
    "callProviderMetadata", "resultProviderMetadata", "providerMetadata", "toolMetadata",
)


def json_blocks(subject: Subject) -> list[Block]:
    """Return the part's ``data_json`` as a tree; as text where it is not a JSON object."""
    text = subject.detail.part.data_json
    value = Value("part", lambda: text, ".json")
    facts = [size(len(text.encode("utf-8", "surrogatepass")))]
    if subject.detail.rewritten:
        facts.append("jsonb: keys and numbers are not as they were written")
    if not subject.data:
        top = Fixed(lambda width: [heading("data_json", [*facts, "no JSON object"], width)])
        return [top, Text(text, value=value)]
    facts.append(count_of(len(subject.data), "key"))
    top = Fixed(lambda width: [heading("data_json", facts, width, value=value)])
    return [top, Tree(subject.root("$", subject.data))]


def meta_blocks(subject: Subject) -> list[Block]:
    """Return the facts of part and message, usage, links, attachments, metadata."""
    blocks: list[Block] = [
        Fixed(lambda width: _part_lines(subject, width)),
        Fixed(lambda width: _message_lines(subject, width)),
        Fixed(lambda width: _usage_lines(subject, width)),
        Fixed(lambda width: _link_lines(subject, width)),
        Fixed(lambda width: _attachment_lines(subject, width)),
    ]
    permissions = subject.detail.permissions_json
    if permission_rules(permissions):
        blocks.append(Fixed(lambda width: permission_lines(permissions, width)))
    if scope := subject.detail.scope:
        blocks.append(Fixed(lambda width: scope_lines(scope, width)))
    rest = {key: item for key, item in subject.metadata.items() if key not in _OWN_SECTIONS}
    if rest:
        blocks += _tree_section("Message metadata", rest, "$.metadata", subject)
    for key in _PROVIDER_KEYS:
        if subject.data.get(key):
            blocks += _tree_section(key, subject.data[key], f"$.{key}", subject)
    return blocks


def _tree_section(title: str, tree: Any, path: str, subject: Subject) -> list[Block]:
    return section(title, [], Tree(subject.root(path, tree), name=path))


def _part_lines(subject: Subject, width: int) -> list[Line]:
    part = subject.detail.part
    lines = [heading("Part", [f"#{subject.detail.position} of {subject.detail.parts}"], width)]
    lines += [identity("id", part.id, width), fact("type", part.type, width)]
    if part.tool_call_id:
        lines.append(identity("call", part.tool_call_id, width))
    if subject.state:
        lines.append(fact("state", subject.state, width))
    lines += [
        fact("index", str(part.index), width),
        fact("created", moment(part.created_at), width),
        fact("updated", moment(part.updated_at), width),
    ]
    if is_gone(subject.metadata, part.index):
        lines.append(fact("kept", NO_LONGER, width, "fork"))
    return [*lines, BLANK]


def _message_lines(subject: Subject, width: int) -> list[Line]:
    message, metadata = subject.detail.message, subject.metadata
    lines = [heading("Message", [one_line(message.role, 40)], width)]
    lines += [
        identity("id", message.id, width),
        fact("created", moment(message.created_at), width),
        fact("updated", moment(message.updated_at), width),
    ]
    if message.hidden_at is not None:
        lines.append(fact("hidden", moment(message.hidden_at), width, "fork"))
    if is_gone(metadata):
        lines.append(fact("kept", NO_LONGER, width, "fork"))
    model = metadata.get("model")
    if isinstance(model, dict):
        names = (model.get("provider_id"), model.get("model_id"), model.get("variant"))
        lines.append(fact("model", " · ".join(str(name) for name in names if name), width))
    return [*lines, BLANK]


def _usage_lines(subject: Subject, width: int) -> list[Line]:
    usage = spent_of(subject.metadata)
    if not usage.total and not isinstance(subject.metadata.get("usage"), dict):
        return []
    lines = [heading("Usage of the message", [], width)]
    for bucket in BUCKETS:
        count = f"{getattr(usage, bucket.key):,}"
        lines.append(fact(bucket.label, count.rjust(12), width, bucket.ink))
    turn = subject.detail.turn
    if turn is not None and (cost := cost_words(turn)):
        lines.append(fact("turn cost", cost.rjust(12), width))
    return [*lines, BLANK]


def _link_lines(subject: Subject, width: int) -> list[Line]:
    session_id = subject.detail.part.session_id
    message_id = subject.detail.message.id
    lines = [heading("Links", [], width)]
    snapshot = subject.metadata.get("snapshot_id")
    if isinstance(snapshot, str) and snapshot:
        files = Link("files", session_id, message_id)
        lines.append(_link("files", f"as they were, snapshot {snapshot}", files, snapshot, width,
                           "◆"))
    here = Link("turn", session_id, message_id)
    lines.append(_link("message", "show it in the transcript", here, message_id, width, "●"))
    for child in subject.detail.children:
        title = shown(child.title) or "untitled"
        link = Link("session", child.id, child.message_id)
        lines.append(_link("child", title, link, child.id, width, "↳"))
    parent = subject.detail.parent
    if parent is not None:
        title = parent.title or (parent.id if parent.agent else f"{parent.id} (not in this store)")
        link = Link("session", parent.id, parent.message_id)
        lines.append(_link("parent", title, link, parent.id, width, "↱"))
    lines.append(identity("session", session_id, width))
    return [*lines, BLANK]


def _link(
    name: str, title: str, link: Link, identity: str, width: int, mark: str
) -> Line:
    runs: list[Run] = [(f"{mark} ", "fork"), (one_line(title, 200), "user underline")]
    value = Value(f"{name} id", lambda: identity)
    return pair(name, runs, width, label=FACT_LABEL, link=link, value=value)


def _attachment_lines(subject: Subject, width: int) -> list[Line]:
    if not subject.detail.attachments:
        return []
    lines = [heading("Attachments", [], width)]
    for name, (media, count) in subject.detail.attachments.items():
        runs: list[Run] = [
            ("↓ ", "user"), (one_line(name), "user underline"), (f"  {one_line(media)}", "faint"),
        ]
        link = Link("attachment", name)
        lines.append(Line(cut(runs, width), ((size(count), "muted"),), link=link))
    return [*lines, BLANK]
