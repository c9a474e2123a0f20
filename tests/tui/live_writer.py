"""Another program that writes to a store: it does what each line of its input says.

A line is a JSON array: the name of a change, then numbers that choose what it hits. The
answer is a line of its own, once the change is committed. Run as
``python -m tests.tui.live_writer FILE``.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

STATES = ("input-streaming", "input-available", "approval-requested", "output-available",
          "output-error", "output-denied")


class Writer:
    """Writes as a host does, or, in a file of ours, as our own writers do."""

    def __init__(self, path: str, session: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        self.session = session
        columns = {row[1] for row in self.rows("PRAGMA table_info(chat_sessions)")}
        hides = {row[1] for row in self.rows("PRAGMA table_info(chat_messages)")}
        self.title_column, self.hidden_column = "title" in columns, "hidden_at" in hides
        (application,) = self.rows("PRAGMA application_id")[0]
        self.own = application != 0
        self.silent = False
        self.now = 1_800_000_000_000
        self.made = 0

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.connection.execute(sql, values).fetchall()

    def log(self, session: str, message: str | None) -> None:
        if self.own and not self.silent:
            self.rows("INSERT INTO changes(session_id, message_id, changed_at) VALUES (?,?,?)",
                      session, message, self.now)

    def messages(self) -> list[str]:
        return [row[0] for row in self.rows(
            "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at, id",
            self.session)]

    def message(self, number: int) -> str:
        """Return a message; large numbers mean one near the end."""
        ids = self.messages()
        return ids[-1 - number % 4] if number % 3 and len(ids) > 4 else ids[number % len(ids)]

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}_live{self.made:022d}"

    def bag(self, table: str, id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.rows(f"SELECT metadata_json FROM {table} WHERE id = ?", id)[0][0])
        return found

    def keep(self, table: str, id: str, bag: dict[str, Any]) -> None:
        self.rows(f"UPDATE {table} SET metadata_json = ? WHERE id = ?", json.dumps(bag), id)

    # Changes of the open session

    def add_message(self, number: int, at: int, role: str = "", **metadata: Any) -> str:
        role = role or ("user", "assistant")[number % 2]
        id = self.name("msg")
        self.rows(
            "INSERT INTO chat_messages(id, session_id, role, metadata_json, created_at,"
            " updated_at) VALUES (?,?,?,?,?,?)",
            id, self.session, role, json.dumps(metadata), at, at)
        for index in range(number % 3 + (1 if metadata else 0)):
            self.add_part(id, index, number + index)
        self.log(self.session, id)
        return id

    def add_part(self, message: str, index: int, number: int) -> None:
        if number % 3 == 0:
            data: dict[str, Any] = {
                "type": "tool-Bash", "toolCallId": f"c{self.made}", "state": STATES[number % 6],
                "input": {"command": f"make {number}"}, "output": "line\n" * (number % 9)}
        else:
            data = {"type": ("text", "reasoning")[number % 2],
                    "text": f"Words {number} [b]. " * (number % 17 + 1)}
        self.rows(
            'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json,'
            " tool_call_id, tool_state, created_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?)",
            self.name("prt"), message, self.session, index, data["type"], json.dumps(data),
            data.get("toolCallId"), data.get("state"), self.now, self.now)

    def new_message(self, number: int) -> None:
        self.now += 1000
        self.add_message(number, self.now)
        self.touch()

    def late_message(self, number: int) -> None:
        (at,) = self.rows("SELECT created_at FROM chat_messages WHERE id = ?",
                          self.message(number))[0]
        self.add_message(number, at - 1)

    def queued_message(self, number: int) -> None:
        self.add_message(number, self.now, "user", queued_at=self.now)

    def sent_or_cancelled(self, number: int) -> None:
        for id in self.messages():
            bag = self.bag("chat_messages", id)
            if "queued_at" in bag:
                if number % 2:
                    del bag["queued_at"]
                    self.rows("UPDATE chat_messages SET created_at = ? WHERE id = ?",
                              self.now + 1, id)
                else:
                    bag["queue_canceled_at"] = self.now
                    bag["hidden_at"] = self.now
                self.keep("chat_messages", id, bag)
                self.log(self.session, id)
                return

    def new_part(self, number: int) -> None:
        id = self.message(number)
        (index,) = self.rows(
            'SELECT coalesce(max("index"), -1) + 1 FROM chat_parts WHERE message_id = ?', id)[0]
        self.add_part(id, index, number)
        self.log(self.session, id)

    def part_of(self, number: int) -> tuple[str, str, dict[str, Any]] | None:
        found = self.rows(
            'SELECT id, message_id, data_json FROM chat_parts WHERE message_id = ?'
            ' ORDER BY "index" DESC', self.message(number))
        if not found:
            return None
        id, message, data = found[number % len(found)]
        return id, message, json.loads(data)

    def change_part(self, number: int) -> None:
        """Grow a part, or take its call to another state; no time moves for odd numbers."""
        found = self.part_of(number)
        if found is None:
            return
        id, message, data = found
        if "text" in data:
            data["text"] += f" more {number}" if number % 5 else ""
            data["text"] = data["text"][::-1] if number % 5 == 0 else data["text"]
        else:
            data["state"] = STATES[number % 6]
        self.now += 5
        at = self.now if number % 2 == 0 else 0
        self.rows("UPDATE chat_parts SET data_json = ?, tool_state = ?,"
                  " updated_at = max(updated_at, ?) WHERE id = ?",
                  json.dumps(data), data.get("state"), at, id)
        self.log(self.session, message)

    def turn_role(self, number: int) -> None:
        id = self.message(number)
        self.rows("UPDATE chat_messages SET role = CASE role WHEN 'user' THEN 'assistant'"
                  " ELSE 'user' END WHERE id = ?", id)
        self.log(self.session, id)

    def reorder(self, number: int) -> None:
        """Let a message have been written just before, with or after another."""
        id, other = self.message(number), self.message(number // 3)
        self.rows("UPDATE chat_messages SET created_at = ? + (SELECT created_at"
                  " FROM chat_messages WHERE id = ?) WHERE id = ?", number % 3 - 1, other, id)
        self.log(self.session, id)

    def swap_parts(self, number: int) -> None:
        id = self.message(number)
        found = self.rows(
            'SELECT id, "index" FROM chat_parts WHERE message_id = ? ORDER BY "index"', id)
        if len(found) > 1:
            (one, first), (two, second) = found[:2]
            for part, index in ((one, 10_000), (two, first), (one, second)):
                self.rows('UPDATE chat_parts SET "index" = ? WHERE id = ?', index, part)
            self.log(self.session, id)

    def move_part(self, number: int) -> None:
        """Give a part to another message, as its last one."""
        found, to = self.part_of(number), self.message(number // 2)
        if found is not None:
            self.rows('UPDATE chat_parts SET message_id = ?, "index" = 1 + (SELECT'
                      ' coalesce(max("index"), -1) FROM chat_parts WHERE message_id = ?)'
                      " WHERE id = ?", to, to, found[0])
            self.log(self.session, found[1])
            self.log(self.session, to)

    def delete_part(self, number: int) -> None:
        found = self.part_of(number)
        if found is not None:
            self.rows("DELETE FROM chat_parts WHERE id = ?", found[0])
            self.log(self.session, found[1])

    def delete_message(self, number: int) -> None:
        ids = self.messages()
        if len(ids) > 3:
            id = ids[number % len(ids)]
            self.rows("DELETE FROM chat_parts WHERE message_id = ?", id)
            self.rows("DELETE FROM chat_messages WHERE id = ?", id)
            self.log(self.session, id)

    def rewrite_message(self, number: int) -> None:
        id = self.message(number)
        self.rows("DELETE FROM chat_parts WHERE message_id = ?", id)
        for index in range(number % 4):
            self.add_part(id, index, number + index * 7)
        self.log(self.session, id)

    def hide(self, number: int) -> None:
        ids = self.messages()
        for id in ids[-1 - number % min(6, len(ids)):]:
            self.hide_one(id, self.now)

    def unhide(self, number: int) -> None:
        for id in self.messages():
            self.hide_one(id, None)

    def hide_one(self, id: str, at: int | None) -> None:
        if self.hidden_column:
            self.rows("UPDATE chat_messages SET hidden_at = ? WHERE id = ?", at, id)
        else:
            bag = {**self.bag("chat_messages", id), "hidden_at": at}
            self.keep("chat_messages", id, {k: v for k, v in bag.items() if v is not None})
        self.log(self.session, id)

    def usage(self, number: int) -> None:
        id = self.message(number)
        bag = self.bag("chat_messages", id)
        self.keep("chat_messages", id, bag | {"usage": {"input": number, "output": 7}})
        self.log(self.session, id)

    # Changes of sessions

    def touch(self) -> None:
        self.rows("UPDATE chat_sessions SET updated_at = ? WHERE id = ?", self.now, self.session)

    def any_session(self, number: int) -> str:
        ids = [row[0] for row in self.rows("SELECT id FROM chat_sessions ORDER BY id")]
        return str(ids[number % len(ids)])

    def rename(self, number: int) -> None:
        id = self.any_session(number)
        if self.title_column:
            self.rows("UPDATE chat_sessions SET title = ? WHERE id = ?", f"Name {number}", id)
        else:
            bag = self.bag("chat_sessions", id)
            self.keep("chat_sessions", id, bag | {"title": f"Name {number}"})
        self.log(id, None)

    def activity(self, number: int) -> None:
        id = self.any_session(number)
        state = ("running", "idle", "waiting-approval", "error")[number % 4]
        bag = self.bag("chat_sessions", id)
        self.keep("chat_sessions", id, bag | {"activity": {"state": state, "since": self.now}})
        self.log(id, None)

    def run(self, number: int) -> None:
        """Let the open session run a call by a process of this number."""
        bag = self.bag("chat_sessions", self.session)
        self.keep("chat_sessions", self.session, bag | {
            "activity": {"state": "running", "since": self.now, "pid": number}})
        self.now += 1000
        id = self.add_message(3, self.now, "assistant")
        self.add_part(id, 0, 7)
        data = {"type": "tool-Bash", "toolCallId": "c", "state": "input-available",
                "input": {"command": "wait"}}
        self.rows("UPDATE chat_parts SET type = ?, tool_state = ?, data_json = ?"
                  " WHERE message_id = ?", data["type"], data["state"], json.dumps(data), id)
        self.log(self.session, None)

    def archive(self, number: int) -> None:
        id = self.any_session(number)
        self.rows("UPDATE chat_sessions SET archived_at = CASE WHEN archived_at IS NULL THEN ?"
                  " END WHERE id = ?", self.now, id)
        self.log(id, None)

    def new_session(self, number: int) -> None:
        self.now += 10
        id = self.name("ses")
        parent = self.any_session(number) if number % 3 == 0 else None
        self.rows("INSERT INTO chat_sessions(id, agent, workspace_root, model_json, parent_id,"
                  " metadata_json, created_at, updated_at) VALUES (?,?,?,?,?,?,?,?)", id, "a",
                  f"/w/{number % 3}", "{}", parent, '{"title":"New"}', self.now, self.now)
        self.log(id, None)

    def delete_session(self, number: int) -> None:
        id = self.any_session(number)
        if id != self.session:
            self.rows("UPDATE chat_sessions SET parent_id = NULL WHERE parent_id = ?", id)
            self.rows("DELETE FROM chat_parts WHERE session_id = ?", id)
            self.rows("DELETE FROM chat_messages WHERE session_id = ?", id)
            self.rows("DELETE FROM chat_sessions WHERE id = ?", id)
            self.log(id, None)

    def grow_rollup(self, number: int) -> None:
        self.now += 10
        id = self.any_session(number)
        self.rows("UPDATE chat_sessions SET total_tokens = total_tokens + ?, updated_at = ?"
                  " WHERE id = ?", number, self.now, id)
        self.log(id, None)

    def other_facts(self, number: int) -> None:
        """Change whose a session is, and where it stands in the list."""
        id, parent = self.any_session(number), self.any_session(number // 3)
        self.rows("UPDATE chat_sessions SET agent = ?, model_json = ?, workspace_root = ?,"
                  " parent_id = ? WHERE id = ?", f"a{number}",
                  json.dumps({"provider_id": "p", "model_id": f"m{number}"}),
                  f"/w/{number % 4}", None if parent == id or number % 2 else parent, id)
        self.log(id, None)

    def step_back(self, number: int) -> None:
        """Let a session have been written to earlier than was said before."""
        id = self.any_session(number)
        self.rows("UPDATE chat_sessions SET updated_at = updated_at - ? WHERE id = ?",
                  number * 1000, id)
        self.log(id, None)

    # Upkeep

    def checkpoint(self, number: int) -> None:
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)" if number % 2 else "PRAGMA wal_checkpoint")

    def vacuum(self, number: int) -> None:
        self.rows("VACUUM")

    def trim_log(self, number: int) -> None:
        if self.own:
            self.rows("DELETE FROM changes WHERE seq < (SELECT max(seq) FROM changes)")

    def silently(self, number: int) -> None:
        """Change something and tell nobody, as a program that knows no log does."""
        self.silent = True
        CHANGES[number % len(TOLD)](self, number)
        self.silent = False


TOLD: tuple[Callable[[Writer, int], None], ...] = (
    Writer.new_message, Writer.late_message, Writer.queued_message, Writer.sent_or_cancelled,
    Writer.new_part, Writer.change_part, Writer.change_part, Writer.delete_part,
    Writer.delete_message, Writer.rewrite_message, Writer.hide, Writer.unhide, Writer.usage,
    Writer.rename, Writer.activity, Writer.archive, Writer.new_session, Writer.delete_session,
    Writer.grow_rollup, Writer.turn_role, Writer.reorder, Writer.swap_parts, Writer.move_part,
    Writer.other_facts, Writer.step_back,
)
CHANGES = (*TOLD, Writer.checkpoint, Writer.vacuum, Writer.trim_log, Writer.silently)
UPKEEP = frozenset({"checkpoint", "vacuum"})


def main(path: str, session: str) -> None:
    writer = Writer(path, session)
    changes = {change.__name__: change for change in (*CHANGES, Writer.run)}
    for line in sys.stdin:
        for name, number in json.loads(line):
            if name not in UPKEEP:
                writer.rows("BEGIN IMMEDIATE")
            changes[name](writer, number)
            if name not in UPKEEP:
                writer.rows("COMMIT")
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
