"""Sets of sessions that have to do with each other, made by hand after the format pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.sources.claude_rows import File, tool
from tests.sources.codex_lines import START, Lines, thread_id
from tests.sources.samples import DATA

A, B, C, D = (thread_id(number) for number in (1, 2, 3, 4))


def _project(folder: Path) -> Path:
    return folder / "projects" / "-work"


def _talk(file: File, name: str = "", **marks: Any) -> None:
    for number in range(3):
        file.user(f"prompt {number}", uuid=f"{name}u{number}")
        file.assistant(f"answer {number}", id=f"msg_{name}{number}", uuid=f"{name}a{number}",
                       output=10 + number, **marks)  # fmt: skip


def marked_forks(folder: Path) -> Path:
    """A fork that names its parent on answers, one that does on every row, a fork of a fork."""
    parent, fork = File(session="p" * 8), File(session="f" * 8)
    branch, second = File(session="b" * 8), File(session="s" * 8)
    _talk(parent)
    _talk(fork, requestSessionId=parent.session)
    fork.user("own prompt")
    fork.assistant("own answer", id="msg_own")
    for number in range(2):
        origin = {"sessionId": parent.session, "messageUuid": f"u{number}"}
        mark: dict[str, Any] = {"forkedFrom": origin}
        branch.user(f"prompt {number}", uuid=f"u{number}", **mark)
        branch.assistant(f"answer {number}", id=f"msg_{number}", uuid=f"a{number}", **mark)
    branch.user("another way")
    branch.assistant("it is", id="msg_branch")
    _talk(second, requestSessionId=fork.session)
    second.user("third way")
    second.assistant("yes", id="msg_third")
    for file in (parent, fork, branch, second):
        file.write(_project(folder))
    return folder


def compacted_fork(folder: Path) -> Path:
    """A fork that was taken after a compaction: it begins with the summary, its counts are 0."""
    nothing = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0,
               "cache_creation_input_tokens": 0}  # fmt: skip
    for name, version, mark in (("marked", "2.1.332", True), ("unmarked", "2.1.112", False)):
        parent = File(session=f"{name}-parent", version=version)
        fork = File(session=f"{name}-fork", version=version)
        _talk(parent, name)
        more: dict[str, Any]
        for file in (parent, fork):
            more = {"usage": nothing} if file is fork else {}
            file.at = START
            file.row("system", uuid=f"{name}-boundary", subtype="compact_boundary", parent=None,
                     compactMetadata={"trigger": "manual", "preTokens": 100})  # fmt: skip
            file.user("This session continues: a summary.", uuid=f"{name}-summary",
                      isCompactSummary=True)  # fmt: skip
            if mark and file is fork:
                more["requestSessionId"] = parent.session
            file.assistant("after it", id=f"msg_{name}", uuid=f"{name}-after", **more)
        parent.at += 60_000
        fork.at += 1000
        parent.user("the parent goes on")
        parent.assistant("it does", id=f"msg_{name}_p")
        fork.user("the fork goes on")
        fork.assistant("it does too", id=f"msg_{name}_f")
        parent.write(_project(folder))
        fork.write(_project(folder))
    return folder


def unmarked_forks(folder: Path) -> Path:
    """Forks of versions without marks, known by their rows; and two sessions of one title."""
    parent, fork = File("plain-p", version="2.1.112"), File("plain-f", version="2.1.112")
    _talk(parent)
    _talk(fork)
    fork.user("own prompt")
    fork.assistant("own answer", id="msg_own")
    other = File("plain-o", version="2.1.112")
    other.user("prompt 0")
    other.assistant("answer 0", id="msg_other")
    for file in (parent, fork, other):
        file.write(_project(folder))
    return folder


def old_resume(folder: Path) -> Path:
    """An old resume in two files, a third that resumes the second, and summaries elsewhere."""
    first, second, third = (File(name, version="1.0.80") for name in ("r-1", "r-2", "r-3"))
    for number, file in enumerate((first, second, third)):
        for turn in range(number + 1):
            file.user(f"prompt {turn}")
            file.assistant(f"answer {turn}", id=f"msg_{turn}")
        file.at += 10_000
    leaf = first.last
    titled = File("t-1", version="1.0.80")
    titled.lines.append({"type": "summary", "summary": "The first of all", "leafUuid": leaf})
    titled.user("something else")
    titled.assistant("indeed", id="msg_else")
    for file in (first, second, third, titled):
        file.write(_project(folder))
    return folder


def agents(folder: Path) -> Path:
    """A session, an agent that it started, and an agent of that one."""
    main, agent, inner = File("main-s"), File("main-s"), File("main-s")
    main.user("go")
    main.assistant("I ask", tool("toolu_1", "Agent", prompt="look", description="Look"), id="m1")
    main.result("toolu_1", "found", {"agentId": "x1", "status": "completed"})
    main.assistant("done", id="m2")
    for file, prompt in ((agent, "look"), (inner, "look deeper")):
        file.user(prompt, isSidechain=True)
    agent.assistant(tool("toolu_2", "Agent", prompt="look deeper"), id="m3", isSidechain=True)
    agent.result("toolu_2", "deep", {"agentId": "x2"}, isSidechain=True)
    inner.assistant("deep", id="m4", isSidechain=True)
    main.write(_project(folder))
    below = _project(folder) / "main-s" / "subagents"
    agent.write(below, "agent-x1")
    inner.write(below, "agent-x2")
    (below / "agent-x1.meta.json").write_text('{"agentType":"Explore","toolUseId":"toolu_1"}')
    return folder


def codex_threads(folder: Path) -> Path:
    """A rewound thread in three files, forks of both modes, a fork of a fork, an agent."""
    def base(key: str, end: int) -> dict[str, object]:
        return {"thread_id": key, "end_ordinal_exclusive": end, "end_byte_offset": 1}

    first = Lines(A)
    first.turn("one", "re one", "r1")
    first.turn("two", "re two", "r2")
    first.write(folder)
    second = Lines(A, 7, START + 5000, history_base=base(A, 7))
    second.turn("three", "re three", "r3")
    second.write(folder, thread_id(8))
    third = Lines(A, 13, START + 7000, history_base=base(thread_id(8), 13))
    third.turn("four", "re four", "r4")
    third.write(folder, thread_id(9))
    fork = Lines(B, 13, START + 9000, history_base=base(thread_id(8), 13), forked_from_id=A)
    fork.turn("mine", "re mine", "r5")
    fork.write(folder)
    deep = Lines(C, 19, START + 12000, history_base=base(B, 19), forked_from_id=B)
    deep.turn("deeper", "re deeper", "r6")
    deep.write(folder)
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": B, "depth": 1}}}
    agent = Lines(D, source=spawn)
    agent.turn("task", "re task", "r7")
    agent.write(folder)
    return folder


def pi_forks(folder: Path) -> Path:
    """Two forks made by hand of a genuine session; one names it, the other does not."""
    project = folder / "--home-user-project--"
    project.mkdir(parents=True)
    source = min((DATA / "pi" / "sessions").rglob("*.jsonl"))
    lines = source.read_text().splitlines(keepends=True)
    (project / source.name).write_text("".join(lines))
    for number, extra in enumerate(({"parentSession": f"/elsewhere/{source.name}"}, {}), 1):
        name = f"01a21f20-0000-7000-8000-00000000000{number}"
        header = {**json.loads(lines[0]), "id": name,
                  "timestamp": f"2026-11-28T0{number}:00:00.000Z", **extra}  # fmt: skip
        last = json.loads(lines[-1])["id"]
        own = {"type": "message", "id": f"own{number}", "parentId": last,
               "timestamp": f"2026-11-28T0{number}:01:00.000Z", "message": {
                   "role": "user", "content": f"own {number}", "timestamp": 1795900000000}}
        body = [json.dumps(header) + "\n", *lines[1:], json.dumps(own) + "\n"]
        path = project / f"2026-11-28T0{number}-00-00-000Z_{name}.jsonl"
        path.write_text("".join(body))
    return folder


def gemini_copies(folder: Path) -> Path:
    """A session, a copy made by hand that went on, and one that was imported."""
    chats = folder / "tmp" / "project" / "chats"
    chats.mkdir(parents=True)
    (folder / "tmp" / "project" / ".project_root").write_text("/home/user/project")
    source = DATA / "gemini" / "tmp" / "project" / "chats"
    original = next(iter(sorted(source.glob("session-*-7ab9a0fa.jsonl"))))
    text = original.read_text()
    (chats / original.name).write_text(text)
    started = json.loads(text.splitlines()[0])["startTime"]
    for name, file in (("aaaaaaaa", "session-2026-11-28T01-00-aaaaaaaa.jsonl"),
                       ("bbbbbbbb", "session-1795900000000-bbbbbbbb.jsonl")):  # fmt: skip
        copy = text.replace("7ab9a0fa-e0e2-404e-91c5-01857b62a79a", f"{name}-0000-4000-8000-000000")
        copy = copy.replace(f'"startTime":"{started}"', '"startTime":"2026-11-28T01:00:00.000Z"')
        own = {"id": f"own-{name}", "timestamp": "2026-11-28T01:00:01.000Z", "type": "user",
               "content": [{"text": f"own {name}"}]}  # fmt: skip
        (chats / file).write_text(copy.rstrip("\n") + "\n" + json.dumps(own) + "\n")
    return folder


def copied_files(folder: Path) -> Path:
    """Files that claim to be one session: equal, shorter, and gone on in different ways."""
    names = {"-work/{}": 0, "-work/{} (1)": 1, "-work/{} (conflicted copy 2026-01-01)": 1,
             "-other/{}": 2, "-other/{} - Copy": 3, "-third/{}": 4, "-backup/{}": 5,
             "-backup/{}.sync-conflict-20260101-120000-ABCDEFG": 6}  # fmt: skip
    for place, way in names.items():
        file = File(session="c" * 8)
        _talk(file)
        if way < 5:
            file.at += 1000 * (9, 1, 12, 15, 10)[way]
            file.user(f"way {way}")
            file.assistant(f"answer of way {way}", id=f"msg_way{way}")
        if way == 6:
            file.lines = file.lines[:4]
        project, name = place.format("c" * 8).split("/")
        file.write(folder / "projects" / project, name)
    return folder


def copied_rollouts(folder: Path) -> Path:
    """The same of Codex: a conflicted copy went on another way, one is the beginning."""
    for name, way in ((" (1)", 1), (" - Copy", 2), ("", 0)):
        lines = Lines(A)
        lines.turn("one", "re one", "r1")
        if way < 2:
            lines.turn(f"way {way}", f"re way {way}", f"r way {way}")
        path = lines.write(folder)
        path.rename(path.with_name(f"{path.stem}{name}.jsonl"))
    return folder


COPIES: tuple[tuple[str, Callable[[Path], Path]], ...] = (
    ("claude-code", copied_files),
    ("codex", copied_rollouts),
)
"""Files that claim to be one session, as ``FAMILIES`` has sets."""

FAMILIES: tuple[tuple[str, Callable[[Path], Path]], ...] = (
    ("claude-code", marked_forks),
    ("claude-code", compacted_fork),
    ("claude-code", unmarked_forks),
    ("claude-code", old_resume),
    ("claude-code", agents),
    ("codex", codex_threads),
    ("pi", pi_forks),
    ("gemini", gemini_copies),
)
"""The kind of the source, and what makes the files in an empty folder and returns the root."""
