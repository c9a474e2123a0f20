"""The demo's session of 10,000 parts."""

from __future__ import annotations

from store.demo.cast import HOUR, SONNET, SONNET_PRICE, TOOLS, claude_path
from store.demo.script import Message, Part, Scene, assistant, failed, note, say, think, tool, user

PARTS = 10_000
_MODULES = ("parser", "lexer", "scope", "types", "emit", "cache", "errors", "cli")
_VERBS = ("ported", "split up", "tightened", "renamed", "simplified")
_PARTS_OF_A_TURN = 5
_COMPACTION_EVERY = 250


def _test_run(number: int, module: str) -> Part:
    arguments = {
        "command": f"pytest -q tests/test_{module}.py -k case_{number}",
        "description": f"Run case {number} of {module}",
    }
    if number % 37 == 0:
        error = f"Exit code 1\nE   assert {number} == {number + 1}\n1 failed in 0.31s"
        return failed("Bash", arguments, error, 1.2, exit_code=1)
    dots = "." * (number % 60 + 1)
    output = f"{dots} [100%]\n{number % 60 + 1} passed in 0.{number % 90 + 10}s"
    return tool("Bash", arguments, output, 1.1, exit_code=0)


def _turn(number: int) -> tuple[Message, Message]:
    module, verb = _MODULES[number % len(_MODULES)], _VERBS[number % len(_VERBS)]
    path = f"{TOOLS}/tests/test_{module}.py"
    lines = range(1, number % 25 + 4)
    listing = "\n".join([f"{n:6}\tassert {module}({n}) == {n * n}" for n in lines])
    return (
        user(f"Turn {number}: go on with case {number} of {module}.", gap=9),
        assistant(
            think(f"Case {number} of {module} is like the one before it, but for the edges.", 1),
            tool("Read", {"file_path": path, "offset": number, "limit": 24}, listing, 0.1),
            _test_run(number, module),
            say(f"I {verb} case **{number}** in `tests/test_{module}.py`; it passes now."),
            gap=1,
        ),
    )


def _messages() -> tuple[Message, ...]:
    messages: list[Message] = []
    compactions = 0
    turns = PARTS // _PARTS_OF_A_TURN - 2
    for number in range(1, turns):
        messages += _turn(number)
        if number % _COMPACTION_EVERY == 0:
            compactions += 1
            summary = f"{number} cases are ported, {turns - number} are left."
            messages.append(
                assistant(note("compaction", summary=summary, tail_start_id=None, auto=True,
                               summary_tokens=24), metadata={"compaction": True})
            )
    left = PARTS - (turns - 1) * _PARTS_OF_A_TURN - compactions
    messages.append(user("That was the last one. Thank you!", gap=30))
    messages.append(assistant(*[say(f"Done, {n} of {left - 1}.") for n in range(1, left)]))
    return tuple(messages)


def long_scene() -> Scene:
    """Return the long session; it is made anew because it is large."""
    return Scene(
        key="port-tests",
        title="Port the test suite, case by case",
        agent="claude-code",
        model=SONNET,
        workspace=TOOLS,
        branch="port",
        ended=7 * HOUR,
        price=SONNET_PRICE,
        path=claude_path(TOOLS, "port-tests"),
        messages=_messages(),
    )
