"""The demo's session of 10,000 parts: one turn, repeated with other numbers.

It is made here rather than kept in ``demo.jsonl``, where it would be 99 % of the file.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from store.ids import STAMP_MASK, derived_id

KEY = "port-tests"
"""The session's id at its source."""
PARTS = 10_000
_PARTS_OF_A_TURN = 5
_TURNS = PARTS // _PARTS_OF_A_TURN - 3
_COMPACTION_EVERY = 250
_COMPACTIONS = _TURNS // _COMPACTION_EVERY
_LAST_PARTS = PARTS - _TURNS * _PARTS_OF_A_TURN - _COMPACTIONS - 1
_FIRST_CONTEXT = 14_000
_MODULES = ("parser", "lexer", "scope", "types", "emit", "cache", "errors", "cli")
_VERBS = ("ported", "split up", "tightened", "renamed", "simplified")

_Part = tuple[dict[str, Any], float]
"""A part's data, and the seconds that it took; ``facts`` in it become result metadata."""


class LongSession:
    """Makes the rows of the session.

    Attributes:
        messages: Values of the rows of ``chat_messages``.
        parts: Values of the rows of ``chat_parts``.
    """

    def __init__(self, session: dict[str, Any]) -> None:
        """Make all rows.

        Args:
            session: The session's row, with its times in epoch ms.
        """
        self.messages: list[tuple[Any, ...]] = []
        self.parts: list[tuple[Any, ...]] = []
        self._id, self._agent, self._model = session["id"], session["agent"], session["model"]
        self._now: int = session["created_at"]
        # The first call writes the prompt and the tools to the cache, later ones read them.
        self._cached, self._fresh = 0, _FIRST_CONTEXT
        for number in range(1, _TURNS + 1):
            self._turn(number)
            if number % _COMPACTION_EVERY == 0:
                self._compaction(number)
        self._message("user", 30, [_text("That was the last one. Thank you!")])
        self._message(
            "assistant", 3,
            [_said(f"Done, {n} of {_LAST_PARTS}.") for n in range(1, _LAST_PARTS + 1)],
        )  # fmt: skip

    def _turn(self, number: int) -> None:
        module, verb = _MODULES[number % len(_MODULES)], _VERBS[number % len(_VERBS)]
        path = f"/home/mira/code/tools/tests/test_{module}.py"
        listing = "\n".join(
            f"{n:6}\tassert {module}({n}) == {n * n}" for n in range(1, number % 25 + 4)
        )
        thought = f"Case {number} of {module} is like the one before it, but for the edges."
        self._message("user", 9, [_text(f"Turn {number}: go on with case {number} of {module}.")])
        self._message("assistant", 1, [
            ({"type": "reasoning", "text": thought, "state": "done"}, 1),
            _call("Read", {"file_path": path, "offset": number, "limit": 24}, listing, 0.1),
            _test_run(number, module),
            _said(f"I {verb} case **{number}** in `tests/test_{module}.py`; it passes now."),
        ])  # fmt: skip

    def _compaction(self, number: int) -> None:
        summary = f"{number} cases are ported, {_TURNS + 1 - number} are left."
        data = {"summary": summary, "tail_start_id": None, "auto": True, "summary_tokens": 24}
        self._cached, self._fresh = 0, _FIRST_CONTEXT // 4
        self._message("assistant", 3, [({"type": "data-compaction", "data": data}, 0)],
                      {"compaction": True})  # fmt: skip

    def _message(
        self, role: str, gap: int, parts: list[_Part], metadata: dict[str, Any] | None = None
    ) -> None:
        """Add a message and its parts.

        Args:
            role: ``user`` or ``assistant``.
            gap: Seconds since the end of the previous message.
            parts: Its parts, in order.
            metadata: Its metadata; origin, source, model and usage are added.
        """
        self._now += gap * 1000
        sent, number = self._now, len(self.messages)
        message_id = derived_id("msg", sent, 0, self._agent, KEY, str(number))
        for index, (data, seconds) in enumerate(parts):
            self._part(message_id, index, data, seconds)
        metadata = dict(metadata or ({"origin": "human"} if role == "user" else {}))
        metadata["source"] = {"id": f"{KEY}-{number}"}
        if role == "assistant":
            metadata["model"] = self._model
            metadata["usage"] = self._usage([data for data, _ in parts])
        self.messages.append((message_id, self._id, role, _json(metadata), sent, self._now))

    def _part(self, message_id: str, index: int, data: dict[str, Any], seconds: float) -> None:
        begun, call_id = self._now, None
        duration = round(seconds * 1000)
        self._now += duration
        if data["type"].startswith("tool-"):
            name = f"{KEY}/{len(self.messages)}-{index}"
            digest = hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
            call_id, facts = f"toolu_01{digest}", data.pop("facts")
            extras = {"backscroll": {"duration_ms": duration, **facts}}
            data |= {"toolCallId": call_id, "resultProviderMetadata": extras}
        # Cheaper than a digest for each of the parts; no message has a hundred.
        part_id = f"prt_{begun * 4096 & STAMP_MASK:012x}{message_id[16:28]}{index:02}"
        self.parts.append((
            part_id, message_id, self._id, index, data["type"], _json(data), call_id,
            data["state"] if call_id else None, begun, self._now,
        ))  # fmt: skip
        self._fresh += _size(data) // 4

    def _usage(self, parts: list[dict[str, Any]]) -> dict[str, int]:
        """Return plausible usage: what is new is written to the cache, the rest read from it."""
        thought = sum(_size(data) for data in parts if data["type"] == "reasoning") // 4
        written = sum(len(str(data.get("text", data.get("input", "")))) for data in parts)
        fresh, read, self._fresh = self._fresh, self._cached, 0
        self._cached += fresh
        return {
            "input": 4 + fresh % 90, "output": written // 4 + 20, "reasoning": thought,
            "cache_read": read, "cache_write": fresh,
        }  # fmt: skip


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _size(data: dict[str, Any]) -> int:
    """Return the characters that a part costs, as the demo counts its tokens."""
    return len(data.get("text", "")) + len(data.get("output", "")) + 40


def _text(text: str) -> _Part:
    return {"type": "text", "text": text}, 0


def _said(text: str) -> _Part:
    return {"type": "text", "text": text, "state": "done"}, len(text) / 400


def _call(
    name: str, arguments: dict[str, Any], output: str, seconds: float, **facts: Any
) -> _Part:
    """Return a finished call of a tool.

    Args:
        name: The tool.
        arguments: Its input.
        output: Its output.
        seconds: How long it ran.
        facts: What the source tells of the call, such as ``exit_code``.
    """
    return {
        "type": f"tool-{name}", "state": "output-available", "input": arguments, "output": output,
        "facts": {"status": "ok", **facts},
    }, seconds  # fmt: skip


def _test_run(number: int, module: str) -> _Part:
    arguments = {
        "command": f"pytest -q tests/test_{module}.py -k case_{number}",
        "description": f"Run case {number} of {module}",
    }
    if number % 37 == 0:
        error = f"Exit code 1\nE   assert {number} == {number + 1}\n1 failed in 0.31s"
        return {
            "type": "tool-Bash", "state": "output-error", "input": arguments, "errorText": error,
            "facts": {"status": "error", "exit_code": 1},
        }, 1.2  # fmt: skip
    dots = "." * (number % 60 + 1)
    output = f"{dots} [100%]\n{number % 60 + 1} passed in 0.{number % 90 + 10}s"
    return _call("Bash", arguments, output, 1.1, exit_code=0)
