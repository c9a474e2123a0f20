"""Rules of permission of one session; those of an agent or a project are not in the store.

``permissions_json`` is a list of ``{permission, pattern, action, source, added_at}``, as the
contract says. Only rules whose source is the session are changed; others stay as they are.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from store.engine.database import Database
from store.engine.transactions import beside_others
from store.errors import Refused, no_session
from store.verbs.cells import dump_edits, set_column, touch_host
from store.verbs.log import note_change, record

ACTIONS = ("allow", "deny", "ask")
EVERYTHING = "*"
_LONGEST = 1000


class Rule(NamedTuple):
    """What a session may do.

    Attributes:
        permission: A tool's id, the name of a capability, or ``*``.
        pattern: A glob of commands, paths or hosts.
        action: One of ``ACTIONS``.
    """

    permission: str
    pattern: str
    action: str

    def __str__(self) -> str:
        """Return it in words."""
        more = "" if self.pattern == EVERYTHING else f" {self.pattern}"
        return f"{self.action} {self.permission}{more}"


def rule_in(words: str) -> Rule:
    """Return the rule that somebody typed, such as ``allow Bash git *``.

    Raises:
        Refused: It is none.
    """
    action, _, rest = " ".join(words.split()).partition(" ")
    permission, _, pattern = rest.partition(" ")
    return checked(Rule(permission, pattern or EVERYTHING, action))


def checked(rule: Rule) -> Rule:
    """Return a rule that can be stored.

    Raises:
        Refused: The message says what is wrong with it.
    """
    if rule.action not in ACTIONS:
        raise Refused(f"a rule begins with {', '.join(ACTIONS)}, such as: allow Bash git *")
    if not rule.permission:
        raise Refused("name a tool, or * for all, such as: deny WebFetch")
    for text in rule:
        if len(text) > _LONGEST or any(unicodedata.category(one) == "Cc" for one in text):
            raise Refused("a rule is one line of text")
    return rule


def session_rules(permissions_json: str) -> list[Rule]:
    """Return the rules of a session's own scope; none where the text is damaged."""
    try:
        entries = json.loads(permissions_json)
    except (ValueError, RecursionError):
        return []
    return [_rule_of(one) for one in entries if _is_own(one)] if isinstance(entries, list) else []


@beside_others
def set_rules(db: Database, session_id: str, rules: Iterable[Rule], *, now: int) -> list[Rule]:
    """Replace the rules of a session's own scope, and return those that it has now.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        rules: The rules, in order; of several with one permission and pattern the last counts.
        now: Epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: A rule is wrong, nothing would change, or what is stored is no list.
    """
    entries = _entries(db, session_id)
    wanted: dict[tuple[str, str], Rule] = {}
    for rule in map(checked, rules):
        wanted.pop(rule[:2], None)
        wanted[rule[:2]] = rule
    known = {_rule_of(one): one for one in entries if _is_own(one)}
    if list(known) == list(wanted.values()):
        raise Refused("the session has these rules already" if known else "it has no such rules")
    after = [one for one in entries if not _is_own(one)] + [
        known.get(rule) or {**rule._asdict(), "source": "session", "added_at": now}
        for rule in wanted.values()
    ]
    edits = [set_column(db, "chat_sessions", session_id, "permissions_json", json.dumps(
        after, ensure_ascii=False, separators=(",", ":")))]
    edits += touch_host(db, session_id, now)
    note_change(db, session_id, now)
    count = len(wanted)
    summary = f"set {count} rules of permission" if count > 1 else (
        "set a rule of permission" if count else "removed all rules of permission")
    record(db, "permissions", session_id, summary, dump_edits(edits), now)
    return list(wanted.values())


@beside_others
def change_rules(
    db: Database, session_id: str, *, add: Sequence[Rule] = (),
    remove: Sequence[tuple[str, str]] = (), now: int,
) -> list[Rule]:
    """Add rules to a session's own scope and remove others; return those that it has now.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        add: Rules, which replace those of the same permission and pattern.
        remove: Permissions and patterns.
        now: Epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: A rule to remove is none of the session's own, or nothing would change.
    """
    own = [_rule_of(one) for one in _entries(db, session_id) if _is_own(one)]
    for permission, pattern in remove:
        if (permission, pattern) not in {rule[:2] for rule in own}:
            raise Refused(f"the session has no rule of its own for {permission} {pattern};"
                          " rules of an agent or a project are not changed here")
    left = [rule for rule in own if rule[:2] not in set(remove)]
    return set_rules(db, session_id, [*left, *add], now=now)


def _entries(db: Database, session_id: str) -> list[Any]:
    db.lock_session(session_id)
    row = db.connection.execute(
        "SELECT permissions_json FROM chat_sessions WHERE id = $1", {"1": session_id}).fetchone()
    if row is None:
        raise no_session(session_id)
    try:
        entries = json.loads(row[0])
    except (ValueError, TypeError, RecursionError):
        entries = None
    if not isinstance(entries, list):
        raise Refused(f"the rules of {session_id} are no JSON list, so they are left alone")
    return entries


def _is_own(entry: object) -> bool:
    return isinstance(entry, dict) and entry.get("source", "session") == "session"


def _rule_of(entry: dict[str, Any]) -> Rule:
    return Rule(str(entry.get("permission") or ""), str(entry.get("pattern") or EVERYTHING),
                str(entry.get("action") or ""))
