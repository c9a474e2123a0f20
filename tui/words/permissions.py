"""The rules of permission of a session as lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from store.text.figures import count_of
from store.text.stored_json import DamagedJson, as_dict, loads
from tui.kit.lines import BLANK, Line, Run, Value, heading
from tui.kit.text import one_line


def permission_rules(permissions_json: str) -> list[Any]:
    """Return the stored rules; none where they are no list."""
    try:
        rules = loads(permissions_json)
    except DamagedJson:
        return []
    return rules if isinstance(rules, list) else []


def scope_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scope that a hub resolved for a session of its role; empty without one."""
    own = as_dict(metadata.get("backscroll"))
    return as_dict(as_dict(own.get("data")).get("scope"))


def scope_words(scope: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each value of a scope, with what it is of: ``read``, ``write`` and so on."""
    return [
        (one_line(key, 20), one_line(
            each if isinstance(each, str) else json.dumps(each, ensure_ascii=False), 400))
        for key, value in scope.items()
        for each in (value if isinstance(value, list) else [value])]


def scope_lines(scope: Mapping[str, Any], width: int) -> list[Line]:
    """Return a heading, and a line for each value of a scope: what may be read and written."""
    lines = [heading("Scope of the role", [], width)]
    for key, words in scope_words(scope):
        runs: list[Run] = [(key.ljust(7), "tool"), (f" {words}", "text")]
        lines.append(Line(tuple(runs), value=Value("scope", lambda words=words: words)))  # type: ignore[misc]
    return [*lines, BLANK]


def permission_lines(permissions_json: str, width: int) -> list[Line]:
    """Return a heading with the number of rules, and a line for each."""
    rules = permission_rules(permissions_json)
    facts = [count_of(len(rules), "rule") if rules else "none"]
    lines = [heading("Permissions", facts, width)]
    for rule in rules:
        rule = rule if isinstance(rule, dict) else {"permission": rule}
        action = one_line(str(rule.get("action") or ""), 20)
        look = {"allow": "ok", "deny": "error"}.get(action, "tool")
        runs: list[Run] = [(action.ljust(7), look), (one_line(str(rule.get("permission"))), "text")]
        if rule.get("pattern"):
            runs.append((f"  {one_line(str(rule['pattern']))}", "muted"))
        lines.append(Line(tuple(runs), value=Value("rule", lambda rule=rule: json.dumps(rule))))  # type: ignore[misc]
    return [*lines, BLANK]
