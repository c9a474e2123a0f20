"""Show or change the rules of permission of one session.

Only rules of the session's own scope are changed: those of an agent or a project are not in the
store. A host that runs the session decides what it makes of them. `backscroll undo` takes a change
back.

A rule has a permission (a tool's id, a capability, or *) and a pattern of commands, paths or hosts
(* without one).

--json prints {"session_id", "rules": [{"permission", "pattern", "action"}, ...], "scope": what a
hub lets the role of the session read and write, or null}.
"""

from __future__ import annotations

import argparse
from typing import Any

from store.engine.values import decoded
from store.queries.sessions import resolve
from store.verbs.permissions import EVERYTHING, Rule, change_rules, session_rules
from tui.cli.output import UsageError
from tui.cli.stores import needs_store, store_for_reading
from tui.cli.verbs import add_json, add_session, answer, working
from tui.words.permissions import scope_of, scope_words

EXAMPLES = (
    ("backscroll permissions 4f1c", "the rules of a session"),
    ("backscroll permissions 4f1c --allow Bash 'git *'", "allow a tool for some commands"),
    ("backscroll permissions 4f1c --remove Bash 'git *'", "take the rule away"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser)
    for name in ("allow", "deny", "ask", "remove"):
        parser.add_argument(
            f"--{name}", metavar=("PERMISSION", "PATTERN"), nargs="+", action="append", default=[],
            help="take a rule away" if name == "remove" else f"{name} it")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Show or change the rules."""
    scope: dict[str, Any] = {}
    add = [Rule(*_two(words), action) for action in ("allow", "deny", "ask")
           for words in getattr(options, action)]
    remove = [_two(words) for words in options.remove]
    if add or remove:
        with working(options) as work:
            session = work.session(options.session)
            rules = work.do(change_rules, session, add=add, remove=remove, now=work.now)
    else:
        with store_for_reading(options) as opened:
            row = resolve(needs_store(opened), options.session)
        session, rules = row.id, session_rules(row.permissions_json)
        scope = scope_of(decoded(row.metadata_json))
    answer(options, {"session_id": session, "rules": [rule._asdict() for rule in rules],
                     "scope": scope or None},
           *(map(str, rules) if rules else ["no rules of its own"]),
           *(f"scope of the role  {key}  {words}" for key, words in scope_words(scope)))
    return 0


def _two(words: list[str]) -> tuple[str, str]:
    if len(words) > 2:
        raise UsageError("give a permission and one pattern; quote a pattern with spaces")
    return words[0], words[1] if len(words) == 2 else EVERYTHING
