"""Repairs JSON that is still being written, with the AI SDK's results (6.0.326).

The scan is one pass that goes on where it stopped, so a tool input that arrives in
thousands of deltas costs as much as its length, however often it is looked at.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, Final

from store.recorder.json_text import NotJson, join_halves, parse


class Missing:
    """The type of ``MISSING``: JavaScript's ``undefined``, where None is its ``null``."""


MISSING: Final = Missing()


class _In(IntEnum):
    ROOT = 0
    FINISH = 1
    STRING = 2
    ESCAPE = 3
    UNICODE = 4
    LITERAL = 5
    NUMBER = 6
    OBJECT_START = 7
    OBJECT_KEY = 8
    OBJECT_AFTER_KEY = 9
    OBJECT_BEFORE_VALUE = 10
    OBJECT_AFTER_VALUE = 11
    OBJECT_AFTER_COMMA = 12
    ARRAY_START = 13
    ARRAY_AFTER_VALUE = 14
    ARRAY_AFTER_COMMA = 15


_STRING_RUN = re.compile(r'[^"\\]+')
_KEY_RUN = re.compile(r'[^"]+')
_HEX = frozenset("0123456789abcdefABCDEF")
_NUMBER_INSIDE = frozenset("eE-.")
_LITERALS = ("true", "false", "null")
_VALUE_INSIDE = {
    '"': _In.STRING, "f": _In.LITERAL, "t": _In.LITERAL, "n": _In.LITERAL, "-": _In.NUMBER,
    "{": _In.OBJECT_START, "[": _In.ARRAY_START, **dict.fromkeys("0123456789", _In.NUMBER),
}
_CLOSERS: dict[_In, str] = {
    _In.STRING: '"',
    **{state: "}" for state in _In if _In.OBJECT_START <= state <= _In.OBJECT_AFTER_COMMA},
    **{state: "]" for state in _In if _In.ARRAY_START <= state <= _In.ARRAY_AFTER_COMMA},
}


class PartialJson:
    """A JSON text that grows, and the value that it has so far.

    Attributes:
        append: Takes the next piece; nothing is scanned yet.
    """

    def __init__(self, text: str = "") -> None:
        """Start with what there is."""
        self._pieces: list[str] = [text] if text else []
        self.append = self._pieces.append
        self._text = ""
        self._reset()

    def _reset(self) -> None:
        self._stack = [_In.ROOT]
        self._scanned = 0
        self._valid = 0
        self._literal = ""
        self._digits = 0

    @property
    def text(self) -> str:
        """The whole text so far, split surrogate pairs joined."""
        if self._pieces:
            grown = self._text + "".join(self._pieces)
            self._pieces.clear()
            self._text = join_halves(grown)
            if len(self._text) != len(grown):
                self._reset()
        return self._text

    def value(self) -> Any:
        """Return the value so far, ``MISSING`` where the text cannot be repaired."""
        text = self.text
        self._scan(text)
        for candidate in ([text] if self._may_be_whole(text) else []) + [self._repaired(text)]:
            try:
                found = parse(candidate)
            except NotJson:
                continue
            if not _is_forbidden(found, candidate):
                return found
        return MISSING

    def _may_be_whole(self, text: str) -> bool:
        end = len(text)
        while end and text[end - 1] in " \t\r\n":
            end -= 1
        return text[end - 1 : end] in ("}", "]") or len(self._stack) <= 2

    def _repaired(self, text: str) -> str:
        endings = [_CLOSERS.get(state, "") for state in reversed(self._stack)]
        if self._stack[-1] is _In.LITERAL:
            whole = next(word for word in _LITERALS if word.startswith(self._literal))
            endings[0] = whole[len(self._literal) :]
        return text[: self._valid] + "".join(endings)

    def _scan(self, text: str) -> None:
        position, length, stack = self._scanned, len(text), self._stack
        while position < length:
            state = stack[-1]
            if state is _In.STRING and (run := _STRING_RUN.match(text, position)):
                position = self._valid = run.end()
                continue
            if state is _In.OBJECT_KEY and (run := _KEY_RUN.match(text, position)):
                position = run.end()
                continue
            if state is _In.FINISH:
                break
            self._step(state, text[position], position + 1)
            position += 1
        self._scanned = length

    def _step(self, state: _In, char: str, end: int) -> None:
        if state in _STEPS:
            _STEPS[state](self, char, end)
        elif state in (_In.ROOT, _In.OBJECT_BEFORE_VALUE, _In.ARRAY_AFTER_COMMA):
            self._value_start(char, end, _AFTER[state])
        elif state in _AWAITED:
            awaited, then = _AWAITED[state]
            if char == awaited:
                self._stack[-1] = then

    def _value_start(self, char: str, end: int, after: _In) -> None:
        inside = _VALUE_INSIDE.get(char)
        if inside is None:
            return
        if char != "-":
            self._valid = end
        if inside is _In.LITERAL:
            self._literal = char
        self._stack[-1] = after
        self._stack.append(inside)

    def _close(self, end: int) -> None:
        self._valid = end
        self._stack.pop()

    def _after_value(self, char: str, end: int) -> None:
        """Take what follows a value that a scalar has just ended, in whatever holds it."""
        holder = self._stack[-1]
        if holder is _In.OBJECT_AFTER_VALUE:
            self._object_after_value(char, end)
        elif holder is _In.ARRAY_AFTER_VALUE:
            if char == ",":
                self._stack[-1] = _In.ARRAY_AFTER_COMMA
            elif char == "]":
                self._close(end)

    def _object_after_value(self, char: str, end: int) -> None:
        if char == ",":
            self._stack[-1] = _In.OBJECT_AFTER_COMMA
        elif char == "}":
            self._close(end)

    def _object_start(self, char: str, end: int) -> None:
        if char == '"':
            self._stack[-1] = _In.OBJECT_KEY
        elif char == "}":
            self._close(end)

    def _string(self, char: str, end: int) -> None:
        if char == '"':
            self._close(end)
        else:
            self._stack.append(_In.ESCAPE)

    def _escape(self, char: str, end: int) -> None:
        self._stack.pop()
        if char == "u":
            self._digits = 0
            self._stack.append(_In.UNICODE)
        else:
            self._valid = end

    def _unicode(self, char: str, end: int) -> None:
        if char in _HEX:
            self._digits += 1
            if self._digits == 4:
                self._close(end)

    def _array_start(self, char: str, end: int) -> None:
        # The SDK takes any character here as kept, so "[-" is beyond repair for a moment.
        self._valid = end
        if char == "]":
            self._stack.pop()
        else:
            self._value_start(char, end, _In.ARRAY_AFTER_VALUE)

    def _array_after_value(self, char: str, end: int) -> None:
        if char == ",":
            self._stack[-1] = _In.ARRAY_AFTER_COMMA
            return
        self._valid = end
        if char == "]":
            self._stack.pop()

    def _number(self, char: str, end: int) -> None:
        if char in "0123456789":
            self._valid = end
        elif char not in _NUMBER_INSIDE:
            self._stack.pop()
            fitting = {",": True, "}": self._stack[-1] is _In.OBJECT_AFTER_VALUE,
                       "]": self._stack[-1] is _In.ARRAY_AFTER_VALUE}
            if fitting.get(char):
                self._after_value(char, end)

    def _in_literal(self, char: str, end: int) -> None:
        grown = self._literal + char
        if any(word.startswith(grown) for word in _LITERALS):
            self._literal, self._valid = grown, end
        else:
            self._stack.pop()
            self._after_value(char, end)


_STEPS = {
    _In.OBJECT_START: PartialJson._object_start,
    _In.OBJECT_AFTER_VALUE: PartialJson._object_after_value,
    _In.STRING: PartialJson._string,
    _In.ESCAPE: PartialJson._escape,
    _In.UNICODE: PartialJson._unicode,
    _In.ARRAY_START: PartialJson._array_start,
    _In.ARRAY_AFTER_VALUE: PartialJson._array_after_value,
    _In.NUMBER: PartialJson._number,
    _In.LITERAL: PartialJson._in_literal,
}
_AFTER = {
    _In.ROOT: _In.FINISH,
    _In.OBJECT_BEFORE_VALUE: _In.OBJECT_AFTER_VALUE,
    _In.ARRAY_AFTER_COMMA: _In.ARRAY_AFTER_VALUE,
}
_AWAITED = {
    _In.OBJECT_AFTER_COMMA: ('"', _In.OBJECT_KEY),
    _In.OBJECT_KEY: ('"', _In.OBJECT_AFTER_KEY),
    _In.OBJECT_AFTER_KEY: (":", _In.OBJECT_BEFORE_VALUE),
}


def _is_forbidden(value: object, text: str) -> bool:
    """Tell whether the SDK's secure parser refuses the value for a prototype key."""
    if not ("__proto__" in text or "constructor" in text or "\\u00" in text):
        return False
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            maker = node.get("constructor")
            if "__proto__" in node or (isinstance(maker, dict) and "prototype" in maker):
                return True
            waiting.extend(node.values())
    return False
