"""Strings that try to steer a terminal, a store that has them everywhere, and what to look for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from store.engine.database import open_database
from tests.tui.stores import MINUTE, NOW

STEERING = {
    "nul": "a\x00b", "bel": "\a\a", "backspace": "abc\b\b\bxyz", "cr": "safe\rEVIL",
    "vt ff": "a\vb\fc", "shift out": "\x0eabc\x0f", "del": "a\x7fb", "esc": "\x1bc\x1b7\x1b(0",
    "sgr": "\x1b[38;5;201;7mred", "clear": "\x1b[2J\x1b[3J\x1b[13;37H", "modes": "\x1b[?1049l",
    "cursor": "\x1b[?25h\x1b[5 q", "query": "\x1b[6n\x1b[c\x1b[>q\x1b[21t", "resize": "\x1b[8;9;9t",
    "title": "\x1b]0;EVIL\x07", "title st": "\x1b]2;EVIL\x1b\\", "link": "\x1b]8;;file:///e\x07x",
    "clipboard": "\x1b]52;c;RVZJTA==\x07", "iterm": "\x1b]1337;File=inline=1:RVZJTA==\x07",
    "notify": "\x1b]777;notify;EVIL;x\x07\x1b]9;EVIL\x07", "dcs": "\x1bP$qm\x1b\\\x1bP+q544e\x1b\\",
    "apc": "\x1b_Gi=1,a=q;AAAA\x1b\\", "pm sos": "\x1b^EVIL\x1b\\\x1bXEVIL\x1b\\",
    "tmux": "\x1bPtmux;\x1b\x1b]52;c;RVZJTA==\x07\x1b\\", "paste end": "\x1b[201~\nrm -rf\n",
    "c1 csi": "\x9b2J\x9b31m", "c1 osc": "\x9d0;EVIL\x9c", "c1 dcs": "\x90q\x9c\x85\x84",
}
HIDING = {
    "bidi": "\u202eabc\u202c \u2066x\u2069 \u200e\u200f\u061c", "lines": "a\u2028b\u2029c",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff", "soft hyphen": "pass\u00adword",
    "tags": "x\U000e0001\U000e0045\U000e0056\U000e0049\U000e004c\U000e007f",
    "selectors": "a\ufe01\ufe0f\U000e0101\U000e01ef", "fillers": "\u3164\uffa0\u115f\u034f\u180e",
    "annotation": "\ufff9x\ufffay\ufffb", "surrogate": "\ud800x\udfff",
    "marks": "e" + "\u0301" * 90,
}
PLAIN = {
    "markup": "[/nope] [bold red][link=http://e]x[/] $[b] [@click=app.quit]q[/]", "tab": "a\tb",
    "markdown": "# h\n```\n\x1b[31m\n```\n[x](javascript:1) <script>",
    "format": "{0} %s {evil} %(x)s",
}
CORPUS = {**STEERING, **HIDING, **PLAIN}

NEVER = re.compile(
    "[\x80-\x9f\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]|\u0301{9}"
)
"""What no text shows as it is: in the corpus none of these is part of a word or an emoji."""
_CONTROL = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[PX^_\\]].*?(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-~]?|[\x00-\x1f\x7f]",
    re.DOTALL,
)


def controls(text: str) -> list[str]:
    """Return every escape sequence and control character but ends of lines and tabs."""
    found = _CONTROL.findall(text.replace("\r\n", "\n"))
    return [one for one in found if one not in ("\n", "\t")]


TOOLS = ("Bash", "Task", "WebFetch", "exec_command", "apply_patch", "shell", "update_plan", "Skill",
         "AskUserQuestion", "ExitPlanMode", "write_file", "mcp__a__b", "NotebookEdit", "WebSearch")
KINDS = ("error", "retry", "compaction", "patch", "snapshot", "agent", "plan", "question", "result",
         "todo", "event", "other")
ALL, FORK = "ses_" + "A" * 26, "ses_" + "B" * 26
"""The session with the whole corpus, and a fork of it."""
_READ = re.compile(r"""(?:get\(|\[)"([a-zA-Z_]+)"[\]),]""")


@lru_cache
def keys_that_are_read() -> tuple[str, ...]:
    """Return every key that the browser's code looks up in what a session holds."""
    tui = Path(__file__).parents[1] / "tui"
    code = [path.read_text() for folder in ("transcript", "inspector", "details", "tree", "cli")
            for path in (tui / folder).rglob("*.py")]
    keys = {key for text in code for key in _READ.findall(text)}
    return tuple(sorted(keys - {"type", "toolCallId", "state", "input", "output"}))


def everything() -> str:
    """Return the whole corpus as one text."""
    return " | ".join(CORPUS.values())


def page_attacks(address: str) -> list[str]:
    """Return strings that try to run a script in a page, or to load from an address."""
    return [
        f"<script>alert(1)</script><script src={address}/s.js></script>",
        f"<img src=x onerror=alert(2)><img src={address}/i.png srcset='{address}/j.png 2x'>",
        f'" onmouseover=alert(3) style=background:url({address}/b) x="',
        f"' autofocus onfocus=alert(4) x='</title></style><link rel=stylesheet href={address}/l>",
        f"</script><script>alert(5)</script>--></textarea><iframe src={address}/f></iframe>",
        f"<meta http-equiv=refresh content='0;url={address}/r'><base href={address}/>",
        f"</details></article><form action={address}/p><button>x</button></form>",
        f"[a](javascript:alert(7)) [b](  java\nscript:alert(8)) ![i]({address}/m)",
        "[c](data:text/html,<script>alert(10)</script>) [d](vbscript:x) [e](//e.example)",
        f"[https://good.example]({address}/t) [g](https://good@e.example) [r]: {address}/d",
        "[h](&#x6a;avascript:alert(11)) &#x202e;gpj.exe &#0; &#x1b;[31m <svg onload=alert(6)>",
        f'```"><img src={address}/c onerror=alert(12)>\nx\n```\n<a href=x ping={address}/g>',
        f"data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMTMpPg== @import '{address}/u';",
        "| a | b |\n|:-:|-:|\n| <b onclick=alert(14)> | `</td><script>alert(15)</script>` |",
        "<javascript:alert(9)> ${alert(16)} {{alert(17)}} \\u003cscript\\u003e %3Cscript%3E",
    ]


def hostile_store(path: Path, further: Sequence[str] = ()) -> Path:
    """Make a store with one session for each string of the corpus, and one with all of them.

    Strings in ``further`` have sessions, too.

    Each has its string in every field that takes text. The ids are harmless, but for one
    session: the newest, whose own id, and whose messages' and parts' ids, are hostile.
    """
    database = open_database(path, create=True)
    database.connection.execute("BEGIN")
    for number, words in enumerate((*CORPUS.values(), *further)):
        _put(database.connection, f"ses_{number:026d}", words, NOW - (number + 2) * MINUTE)
    _put(database.connection, ALL, everything(), NOW - MINUTE)
    _put(database.connection, FORK, everything(), NOW - 2 * MINUTE, parent=ALL)
    _put(database.connection, "evil" + _stored(STEERING["title"]), STEERING["clipboard"], NOW)
    database.connection.execute("COMMIT")
    database.close()
    return path


def _stored(words: str) -> str:
    """Return words as a TEXT column can hold them."""
    return words.encode("utf-8", "replace").decode().replace("\x00", "")


def _put(connection: Any, session: str, words: str, at: int, parent: str | None = None) -> None:
    plain = _stored(words)
    metadata = {
        "title": words, "git_branch": words, "source": {"kind": words, "id": words, "path": words},
        "user": {"title": words, "tags": [words, "t"], "labels": {f"{session}-m1": words}},
        words: {words: words}, "activity": {"state": words, "from": "stored"},
        "lineage": {"kind": "fork", "tool_call_id": words},
    }
    model = {"provider_id": words, "model_id": words}
    connection.execute(
        f"INSERT INTO chat_sessions VALUES ({','.join('?' * 18)})",
        (session, plain, f"/w/{plain}", json.dumps(model), parent, None, json.dumps([words]),
         json.dumps(metadata), 0, 0, 0, 0, 0, 7, 0.5, at, at, None),
    )  # fmt: skip
    about = {"model": model, "origin": "human", "git_branch": words, "agent": words}
    for number, (role, extra, parts) in enumerate(_messages(words)):
        message = f"{session}-m{number}"
        copied = {"inherited_from": f"{parent}-m{number}"} if parent and number < 2 else {}
        connection.execute(
            "INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, ?)",
            (message, session, role, json.dumps({**about, **copied, **extra}), at + number, at),
        )
        for place, part in enumerate(parts):
            connection.execute(
                "INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (f"{message}-p{place}", message, session, place, _stored(part["type"]),
                 json.dumps(part), plain, _stored(part.get("state", "")), at, at),
            )  # fmt: skip


def _messages(words: str) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    def call(name: str, given: Any, **more: Any) -> dict[str, Any]:
        return {"type": f"tool-{name}", "toolCallId": words, "input": given,
                "state": "output-available", "output": words, **more}

    known = {key: words for key in keys_that_are_read()}
    failed = {"state": "output-error", "errorText": words}
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": words}, {"type": "reasoning", "text": words},
        call(words, {words: words}), call("Bash", {"command": words, "description": words}),
        call("Edit", {"file_path": words, "old_string": words, "new_string": f"{words}!"}),
        call("Read", {"file_path": words}, **failed), call("Grep", {"pattern": words}, **failed),
        call("TodoWrite", {"todos": [{"content": words, "status": words}]}),
        {"type": "dynamic-tool", "toolName": words, "toolCallId": "d", "state": words,
         "input": words, "output": [{"type": "text", "text": words}]},
        {"type": "file", "mediaType": words, "filename": words, "url": words},
        {"type": "source-url", "sourceId": words, "url": words, "title": words},
        {"type": f"data-{words}", "data": {words: [words]}},
        *({"type": f"data-{kind}", "data": known} for kind in KINDS),
        *({"type": f"data-{kind}", "data": [known, words]} for kind in KINDS),
        *(call(tool, known, resultProviderMetadata={"backscroll": known}) for tool in TOOLS),
        *(call(tool, known, **failed, toolMetadata=known) for tool in TOOLS),
        {"type": words, **known},
    ]  # fmt: skip
    error = {"backscroll": {**known, "error": {"message": words}, "aborted_at": 5}}
    return [
        ("user", {}, [{"type": "text", "text": words}]), ("assistant", error, parts),
        ("user", {"origin": words}, [{"type": "text", "text": words}]), ("system", {}, parts[:1]),
        ("user", {"queued_at": 5}, [{"type": "text", "text": words}]),
    ]
