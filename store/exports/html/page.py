"""``--to html``: one page with one session or several, opened from a file."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from store.conversation.speakers import speaker_of
from store.conversation.turns import starts_turn
from store.exports.facts import Facts, covered, facts_of
from store.exports.html.images import Pictures
from store.exports.html.markup import shown
from store.exports.html.parts import Children, Parts, aside, command, ending
from store.exports.reading import MessageReading, SessionReading
from store.exports.typed import typed
from store.text import figures
from store.text.neutral import neutral_line
from store.text.stored_json import as_dict
from store.usage import BUCKETS, spent_of

_FOLDER = Path(__file__).parent
_NOT_IN_ANCHOR = re.compile(r"[^A-Za-z0-9_-]+")
_ASIDE = {"meta": "context", "notification": "notification"}
_TURN_WORDS = 120
_KEYS = (
    ("j k", "messages"), ("] [", "turns"), ("/", "find"), ("n N", "hits"), ("e E", "errors"),
    ("o", "fold"), ("t", "tools"), ("i", "reasoning"), ("g G", "top, end"), ("D", "dark, light"),
)  # fmt: skip


def write_html(reading: SessionReading) -> Iterator[str]:
    """Yield the page in pieces, message by message."""
    readings = [typed(each, damaged=True) for each in (reading, *reading.further)]
    facts = [facts_of(each) for each in readings]
    style, script = (_FOLDER / "page.css").read_text(), (_FOLDER / "page.js").read_text()
    title = facts[0].title if len(facts) == 1 else f"{len(facts)} sessions"
    yield _top(neutral_line(title), style, script)
    page = _Page(readings, facts)
    if len(facts) > 1:
        yield page.contents()
    for number in range(len(readings)):
        yield from page.session(number)
    yield "</main>\n"
    yield page.turns()
    yield f"{_bottom()}<script>{script}</script>\n</body></html>\n"


def _top(title: str, style: str, script: str) -> str:
    """Return the head, with a policy that allows nothing but what is in the page."""
    policy = (
        "default-src 'none'; "
        f"style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="generator" content="Backscroll">
<meta name="color-scheme" content="dark light">
<link rel="icon" href="data:,">
<title>{shown(title)}</title>
<style>{style}</style>
</head>
<body>
<header class="bar"><b>backscroll</b> <span class="title">{shown(title)}</span>
<div class="find" role="search"><output id="count"></output>
<input id="find" type="search" placeholder="/ find in the page" aria-label="Find in the page"
 autocomplete="off" spellcheck="false">
<button id="previous" aria-label="Previous hit">↑</button>
<button id="next" aria-label="Next hit">↓</button></div>
<button id="theme" aria-label="Dark or light">◐</button></header>
<main>
"""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _bottom() -> str:
    keys = " ".join(f"<span><kbd>{shown(key)}</kbd> {words}</span>" for key, words in _KEYS)
    return f'<footer class="keys">{keys}</footer>\n'


class _Page:
    """Writes the sessions of a page, and remembers their turns for the list at its side."""

    def __init__(self, readings: list[SessionReading], facts: list[Facts]) -> None:
        self._readings, self._facts = readings, facts
        self._anchors: set[str] = set()
        self._names = [self._anchor("s", each.session_id) for each in facts]
        self._turns: list[list[tuple[str, str]]] = [[] for _ in facts]
        self._pictures = Pictures(readings[0].largest_image)
        self._children: Children = {
            (str(each.session["parent_id"]), str(call)): name
            for each, name in zip(readings, self._names, strict=True)
            if (call := as_dict(each.session["metadata"].get("lineage")).get("tool_call_id"))
        }

    def _anchor(self, kind: str, name: object) -> str:
        """Return a new anchor with the letters of an id that are harmless in one."""
        base = f"{kind}-{_NOT_IN_ANCHOR.sub('', str(name))[:80] or 'x'}"
        anchor, number = base, 2
        while anchor in self._anchors:
            anchor, number = f"{base}-{number}", number + 1
        self._anchors.add(anchor)
        return anchor

    def contents(self) -> str:
        """Return the list of sessions at the top of a page with several."""
        rows = [
            f'<li><a href="#{name}">{shown(neutral_line(facts.title))}</a>'
            f'<span class="about">{_about(facts)}</span>'
            f'<span class="facts">{" ".join(_sizes(facts))}</span></li>'
            for facts, name in zip(self._facts, self._names, strict=True)
        ]
        return f'<nav class="contents" aria-label="Sessions"><ol>{"".join(rows)}</ol></nav>\n'

    def session(self, number: int) -> Iterator[str]:
        """Yield a session: its facts, its messages, and how many are left out."""
        reading, facts = self._readings[number], self._facts[number]
        yield f'<section class="session" id="{self._names[number]}">\n{_head(facts)}'
        parts = Parts(facts.session_id, reading.session["workspace_root"], self._pictures,
                      self._children)
        day = ""
        for item in reading.messages:
            if not item.is_said:
                continue
            at = item.message["created_at"]
            if day != (day := _day(at)):
                yield f'<p class="divider day"><span>{shown(day)}</span></p>\n'
            yield from self._message(item, parts, self._turns[number])
        if reading.queued_left_out:
            yield f'<p class="divider hidden"><span>{reading.queued_left_out}</span></p>\n'
        if reading.hidden_left_out:
            what = figures.count_of(reading.hidden_left_out, "hidden message")
            yield f'<p class="divider hidden"><span>{what} left out</span></p>\n'
        yield "</section>\n"

    def _message(
        self, item: MessageReading, parts: Parts, turns: list[tuple[str, str]]
    ) -> Iterator[str]:
        row = item.message
        metadata, role = row["metadata"], row["role"]
        anchor = self._anchor("m", row["id"])
        hidden = bool(row.get("hidden_at") or metadata.get("hidden_at"))
        inner = "".join(_content(item, parts))
        if not inner:
            return
        if starts_turn(role, metadata) and not hidden:
            turns.append((anchor, _first_words(item)))
        kind = role if role in ("user", "assistant") else "system"
        mark = " hidden" if hidden else ""
        yield (f'<article class="m {kind}{mark}" id="{anchor}">'
               f'<a class="at" href="#{anchor}" aria-label="Link to this message">#</a>\n'
               f"{inner}</article>\n")

    def turns(self) -> str:
        """Return the list at the side: the turns of each session."""
        several = len(self._facts) > 1
        lists = []
        for facts, name, turns in zip(self._facts, self._names, self._turns, strict=True):
            items = "".join(f'<li><a href="#{anchor}"><span>{shown(words)}</span></a></li>'
                            for anchor, words in turns)
            listed = f"<ol>{items}</ol>"
            title = shown(neutral_line(facts.title))
            lists.append(
                f'<details open><summary><a href="#{name}">{title}</a></summary>{listed}</details>'
                if several else
                f'<p class="name">Turns <span class="x">{len(turns):,}</span></p>{listed}')
        return f'<nav class="turns" aria-label="Turns">{"".join(lists)}</nav>\n'


def _content(item: MessageReading, parts: Parts) -> Iterator[str]:
    row, metadata = item.message, item.message["metadata"]
    role, origin = row["role"], str(metadata.get("origin") or "")
    details = {**metadata, **as_dict(metadata.get("backscroll"))}
    headed, kind = False, ""
    for part in item.parts:
        data = part["data"]
        kind = str(data.get("type")) if isinstance(data, dict) else ""
        text = str(data.get("text") or "") if kind == "text" else ""
        if kind == "text" and details.get("interrupt"):
            yield f'<div class="p error"><p class="failed">✗ {shown(text.strip("[]"))}</p></div>\n'
        elif kind == "text" and role != "assistant" and origin in _ASIDE:
            yield aside(text, _ASIDE[origin], _clock(row["created_at"]))
        elif kind == "text" and origin in ("command", "shell"):
            yield command(text, details)
        else:
            made = "".join(parts.html(part, markdown=role == "assistant"))
            if made and not headed and (kind == "text" or role != "assistant"):
                headed = True
                yield _speaker(item)
            yield made
    yield ending(metadata, kind)


def _speaker(item: MessageReading) -> str:
    row, metadata = item.message, item.message["metadata"]
    role = row["role"] if row["role"] in ("user", "assistant") else "system"
    note = as_dict(metadata.get("backscroll"))
    hidden = row.get("hidden_at") or metadata.get("hidden_at")
    notes = ("sent while it worked" if note.get("sent_while_working") else "",
             "hidden" if hidden else "")
    beside = "".join(f' <span class="x">{each}</span>' for each in notes if each)
    facts = [f'<time datetime="{_iso(row["created_at"])}">{_clock(row["created_at"])}</time>']
    if role == "assistant":
        model = metadata.get("model")
        name = as_dict(model).get("model_id") if isinstance(model, dict) else model
        spent = spent_of(metadata)
        wrote = spent.output + spent.reasoning
        facts += [
            f"<span>{shown(fact)}</span>" for fact in (
                figures.model(name) if isinstance(name, str) else "",
                f"{figures.tokens(wrote)} out" if wrote else "")
            if fact
        ]  # fmt: skip
    who = shown(neutral_line(speaker_of(row["role"], metadata)))
    return (f'<p class="head {role}"><b>{who}</b>{beside}'
            f'<span class="facts">{"".join(facts)}</span></p>\n')


def _first_words(item: MessageReading) -> str:
    """Return the beginning of a prompt, for the list of turns."""
    for part in item.parts:
        data = part["data"]
        text = data.get("text") if isinstance(data, dict) else None
        if isinstance(text, str) and text.strip():
            return neutral_line(text)[:_TURN_WORDS]
    return "no words"


# Facts


def _head(facts: Facts) -> str:
    rows: list[tuple[str, str]] = [
        ("agent", facts.agent), ("model", figures.model(facts.model)),
        ("workspace", figures.home_path(facts.workspace)), ("branch", facts.branch),
        ("started", f"{figures.moment(facts.started)}"),
        ("lasted", figures.duration(max(0, facts.ended - facts.started))),
        ("turns", f"{facts.turns:,}"),
        ("tokens", _tokens(facts)),
        ("cost", " of ".join(filter(None, (_cost(facts), covered(facts.spent))))),
        ("session", facts.session_id),
    ]  # fmt: skip
    listed = "".join(f"<div><dt>{name}</dt><dd>{shown(neutral_line(value))}</dd></div>"
                     for name, value in rows if value)
    return (f'<header class="about"><h1>{shown(neutral_line(facts.title))}</h1>'
            f"<dl>{listed}</dl></header>\n")


def _tokens(facts: Facts) -> str:
    if not facts.spent.total:
        return ""
    each = [f"{figures.tokens(count)} {bucket.label}"
            for bucket, count in zip(BUCKETS, facts.spent.tokens, strict=True) if count]
    return f"{figures.tokens(facts.spent.total)}: {', '.join(each)}"


def _cost(facts: Facts) -> str:
    cost = facts.spent.cost_usd
    if cost is None:
        return "not known" if facts.spent.answers else ""
    return f"{'≈ ' if facts.spent.is_estimate else ''}{figures.money(cost)}"


def _about(facts: Facts) -> str:
    words = (facts.agent, figures.model(facts.model), figures.home_path(facts.workspace))
    return " · ".join(shown(neutral_line(word)) for word in words if word)


def _sizes(facts: Facts) -> Iterator[str]:
    yield f"<span>{figures.count_of(facts.turns, 'turn')}</span>"
    if facts.spent.total:
        yield f"<span>{figures.tokens(facts.spent.total)}</span>"
    if facts.spent.cost_usd is not None:
        yield f"<span>{_cost(facts)}</span>"
    yield f"<time>{shown(_day(facts.started))}</time>"


def _local(at: int) -> time.struct_time:
    return time.localtime(at / 1_000)


def _clock(at: int) -> str:
    return time.strftime("%H:%M", _local(at))


def _day(at: int) -> str:
    return time.strftime("%a %d %b %Y", _local(at))


def _iso(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", _local(at))
