"""Random changes of the three tables, as any program may make them, with values of every kind."""

from __future__ import annotations

import json
import random
from itertools import count

from store.engine.database import Database

LENGTHS = (0, 1, 5, 63, 64, 65, 70, 200, 1000)
METADATA = (
    "{}", '{"hidden_at":1}', '{"queued_at":2}', '{"backscroll":{"aborted_at":1}}', "[", "",
    '{"queue_canceled_at":1}', '{"hidden_at":"x","queued_at":null}',
)  # fmt: skip


class Changes:
    """Makes one change after the other."""

    def __init__(self, db: Database, rng: random.Random, *, plain: bool = False) -> None:
        """Change nothing yet.

        Args:
            db: The store.
            rng: What is changed.
            plain: Whether all values are such as any engine holds as they are.
        """
        self.do, self.rng, self.ids = db.connection.execute, rng, count()
        self.is_server = db.server is not None
        self.is_file, self.plain = not self.is_server and not plain, plain

    def text(self, length: int | None = None) -> str:
        length = self.rng.choice(LENGTHS) if length is None else length
        return "".join(self.rng.choice(
            'ab\xe9\u65e5\U0001f600{}:,' + ('"\\\0' if self.is_file else ""))
            for _ in range(length))

    def value(self) -> str | bytes:
        is_text = self.plain or self.rng.random() >= 0.1
        return self.text() if is_text else self.rng.randbytes(self.rng.randrange(99))

    def json(self, value: str | bytes) -> str | bytes:
        """Return a value for a column of JSON, which on a server must be valid."""
        if self.is_file:
            return value
        text = value if isinstance(value, str) else value.decode("utf-8", "replace")
        try:
            json.loads(text)
        except ValueError:
            return json.dumps(text, ensure_ascii=self.rng.random() < 0.5)
        return text

    def one(self, query: str) -> tuple[str, ...]:
        rows = self.do(query).fetchall()
        return self.rng.choice(rows) if rows else ()

    def change(self) -> None:
        """Make one change of any kind that is possible."""
        session = self.one("SELECT id FROM chat_sessions")
        message = self.one("SELECT id, session_id FROM chat_messages")
        part = self.one("SELECT id, data_json FROM chat_parts")
        kinds = [self.new_session, *[self.grow] * 8]
        if session:
            kinds += [*[self.new_message] * 3, self.change_session, self.delete_session]
        if message:
            kinds += [*[self.new_part] * 3, self.change_message, self.delete_message, self.move]
        if part:
            kinds += [self.delete_part, self.rename_part]
            if self.is_file:
                kinds.append(self.replace_part)
            elif self.is_server:
                kinds.append(self.empty)
        self.session, self.message, self.part = session, message, part
        self.rng.choice(kinds)()

    def new_session(self) -> None:
        self.do(
            "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, cost_usd, created_at,"
            " updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (f"ses_{next(self.ids)}" + self.rng.choice(["", "x" if self.plain else "\0x"]),
             self.value(), self.json(self.value()), self.json(self.rng.choice(METADATA)),
             self.rng.random() * self.rng.choice([1, 1e300, 1e-300]), next(self.ids), 1))

    def new_message(self) -> None:
        self.do("INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, 1)",
                (f"msg_{next(self.ids)}", self.session[0], self.value(),
                 self.json(self.rng.choice(METADATA)), next(self.ids)))

    def new_part(self) -> None:
        self.do("INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, NULL, ?, 1, ?)",
                (f"prt_{next(self.ids)}", *self.message, self.rng.randrange(5), self.value(),
                 self.json(self.value()), self.rng.choice([None, "input-streaming"]),
                 self.rng.choice([2, 1.5 if self.is_file else 3])))

    def change_session(self) -> None:
        self.do("UPDATE chat_sessions SET archived_at = ?, cost_usd = ?, metadata_json = ?"
                " WHERE id = ?",
                (self.rng.choice([None, 5]), self.rng.random(), self.json(self.text()),
                 *self.session))

    def change_message(self) -> None:
        self.do("UPDATE chat_messages SET metadata_json = ?, updated_at = ? WHERE id = ?",
                (self.json(self.rng.choice(METADATA)), next(self.ids), self.message[0]))

    def grow(self) -> None:
        """Change a part's text as a stream does, or to anything."""
        if not self.part:
            return
        data = self.part[1] if isinstance(self.part[1], str) else self.text()
        way = self.rng.random()
        if way < 0.4:
            kept = max(0, len(data) - self.rng.choice([0, 1, 10, 22]))
            end = self.rng.choice(["", '"}', '","state":"streaming"}'])
            data = data[:kept] + self.text() + end
        elif way < 0.8 and '","input":' in data:
            raw, _, parsed = data.partition('","input":')
            more = self.text(10).replace('"', "")
            data = f'{raw}{more}","input":{parsed[:-3]}{more}"}}'
        elif way < 0.8:
            raw = self.text(self.rng.choice([0, 100, 200])).replace('"', "")
            data = f'{{"rawInput":"{raw}","input":{{"x":"{raw}"}}}}'
        self.do(
            "UPDATE chat_parts SET data_json = ?, updated_at = ?, tool_state = ? WHERE id = ?",
            (self.json(data if way < 0.9 else self.value()), next(self.ids),
             self.rng.choice([None, "input-streaming", "input-streaming"]), self.part[0]))

    def delete_session(self) -> None:
        if self.rng.random() < 0.3:
            self.do("DELETE FROM chat_sessions WHERE id = ?", self.session)

    def delete_message(self) -> None:
        self.do("DELETE FROM chat_messages WHERE id = ?", self.message[:1])

    def delete_part(self) -> None:
        self.do("DELETE FROM chat_parts WHERE id = ?", self.part[:1])

    def move(self) -> None:
        """Move a message to another session."""
        self.do("BEGIN")
        for table, column in (("chat_messages", "id"), ("chat_parts", "message_id")):
            self.do(f"UPDATE {table} SET session_id = ? WHERE {column} = ?",
                    (*self.session, self.message[0]))
        self.do("COMMIT")

    def rename_part(self) -> None:
        self.do("UPDATE chat_parts SET id = id || 'x' WHERE id = ?", self.part[:1])

    def replace_part(self) -> None:
        self.do("INSERT OR REPLACE INTO chat_parts SELECT id, message_id, session_id, 9, type,"
                " 'new', NULL, NULL, 4, 4 FROM chat_parts WHERE id = ?", self.part[:1])
        self.do("INSERT OR REPLACE INTO chat_messages SELECT id, session_id, 'r', '{}', 4, 4"
                " FROM chat_messages WHERE id = ?", self.message[:1] or ("none",))

    def empty(self) -> None:
        """Empty a table, as only a server does in one step."""
        if self.rng.random() < 0.1:
            self.do("TRUNCATE TABLE chat_parts")
