"""A ``Session`` of the OpenAI Agents SDK that keeps its items in a store.

    from agents import Agent, Runner
    from backscroll import Store
    from store.adapters.openai_agents import BackscrollSession

    async with Store.open("host.db", create=True) as store:
        session = BackscrollSession("conversation-123", store)
        await Runner.run(Agent(name="Assistant"), "Hello", session=session)

The SDK gets its items back exactly as it gave them: each message has its items in
``metadata_json.openai_agents``, and the parts that they stand for beside them, which is what
Backscroll shows. A prompt is a message; what follows it up to the next prompt is one answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from store.engine.database import Database
from store.ids import IdMinter, derived_session_id
from store.models import Model
from store.queries import sessions
from store.recorder import writing
from store.recorder.batch import Batch, MessageWrite, PartWrite, SessionWrite
from store.recorder.creating import Wanted, create
from store.recorder.json_text import dump, parse
from store.recorder.large_json import is_large
from store.recorder.parts import Part
from store.recorder.recording import title_of
from store.sources.base.row_session import RowSession
from store.sources.openai_agents.items import Item, Messages
from store.store import Store
from store.verbs.cells import dump_edits
from store.verbs.log import note_change, record
from store.verbs.rewind import hide

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.memory.session_settings import SessionSettings

KEY = "openai_agents"
"""The key of ``metadata_json`` with the SDK's items, and with its name of the session."""
Items = list[dict[str, Any]]


class BackscrollSession:
    """The conversation history of one session; it fulfils the SDK's ``Session`` protocol.

    Attributes:
        session_id: The name that the program gave it.
        id: The id of its session in the store, for ``Store.messages`` and the others.
        session_settings: The SDK's settings; its ``limit`` counts where a call names none.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self, session_id: str, store: Store, *, agent: str = "openai-agents",
        model: str | Model | None = None, session_settings: SessionSettings | None = None,
    ) -> None:
        """Name a session; it is made when the first items are added.

        Args:
            session_id: Any name; the same name is the same session in every process.
            store: Where it is kept; it stays open.
            agent: The agent that runs in a new session.
            model: The model of a new session.
            session_settings: The SDK's settings.
        """
        self.session_id = session_id
        self.id = derived_session_id("openai-agents-adapter", session_id)
        self.session_settings = session_settings
        self._store = store
        self._wanted = Wanted(agent, model, metadata={KEY: {"session_id": session_id}})

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first.

        Args:
            limit: Only the newest so many; None for all.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        found = await self._store.read(_items, self.id)
        if limit is not None:
            found = found[-limit:] if limit > 0 else []
        return cast("list[TResponseInputItem]", found)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end.

        Raises:
            Refused: The store cannot be written.
        """
        if items:
            given = [dict(item) for item in items]
            await self._write(partial(_add, given=given, wanted=self._wanted))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out and return it; None where there is none."""
        return cast("TResponseInputItem | None", await self._write(_pop))

    async def clear_session(self) -> None:
        """Hide all messages, as a rewind does: ``Store.undo`` and ``restore`` show them again."""
        await self._write(_clear)

    async def _write(self, change: Any) -> Any:
        store = self._store
        return await store.write(
            change, session_id=self.id, ids=store.ids, now=store.clock())


def _rows(db: Database, session_id: str) -> list[tuple[str, str, dict[str, Any], int]]:
    """Return id, role, metadata and time of the visible messages, oldest first."""
    found = db.connection.execute(
        "SELECT m.id, m.role, m.metadata_json, m.created_at FROM chat_messages m"
        f" WHERE m.session_id = $1 AND {db.form.shown('m')} ORDER BY m.created_at, m.id",
        {"1": session_id},
    ).fetchall()
    return [(id, role, parse(metadata), at) for id, role, metadata, at in found]


def _own_items(metadata: dict[str, Any]) -> Items:
    own = metadata.get(KEY)
    items = own.get("items") if isinstance(own, dict) else None
    return items if isinstance(items, list) else []


def _items(db: Database, session_id: str) -> Items:
    return [item for _, _, metadata, _ in _rows(db, session_id) for item in _own_items(metadata)]


def _add(
    db: Database, given: Items, wanted: Wanted, *, session_id: str, ids: IdMinter, now: int
) -> None:
    if sessions.get(db, session_id) is None:
        create(db, wanted, id=session_id, now=now)
    rows = _rows(db, session_id)
    last = rows[-1] if rows and rows[-1][1] == "assistant" and _own_items(rows[-1][2]) else None
    newest = writing.newest_message_at(db, session_id)
    while given:
        count = _group(given)
        group, given = given[:count], given[count:]
        if last is not None and not _is_alone(group[0]):
            id, _, metadata, at = last
            _put(db, session_id, id, [*_own_items(metadata), *group], at, ids, now, new=False)
        else:
            newest = max(now, newest + 1)
            _put(db, session_id, ids.mint("msg"), group, newest, ids, now, new=True)
        last = None


def _is_alone(item: dict[str, Any]) -> bool:
    """Return whether an item is a message of its own: a prompt, or an instruction."""
    return item.get("type", "message") == "message" and item.get("role") != "assistant"


def _group(items: Items) -> int:
    """Return how many of the first items make one message."""
    if _is_alone(items[0]):
        return 1
    return next((at for at, item in enumerate(items) if _is_alone(item)), len(items))


def _put(
    db: Database, session_id: str, id: str, items: Items, at: int, ids: IdMinter, now: int, *,
    new: bool,
) -> None:
    """Write a message with the parts that its items stand for."""
    reader = Messages(RowSession(session_id, str(db.path)))
    for number, item in enumerate(items):
        reader.add(Item(str(number), item, now, number))
    drafts = reader.messages
    role = drafts[0].role if drafts and _is_alone(items[0]) else "assistant"
    stored = db.connection.execute(
        'SELECT id FROM chat_parts WHERE message_id = $1 ORDER BY "index", id', {"1": id}
    ).fetchall()
    writes = []
    for index, data in enumerate(part.data for draft in drafts for part in draft.parts):
        known = stored[index][0] if index < len(stored) else None
        part = Part(data, index, known or ids.mint("prt"), now)
        data_json = None if is_large(data) else dump(data)
        writes.append(PartWrite(part, part.columns, data_json, data, known is None, True))
    metadata: dict[str, Any] = {KEY: {"items": items}}
    if role == "user":
        metadata["origin"] = "human"
    title = title_of([write.data for write in writes]) if role == "user" else None
    writing.write(db, Batch(
        session_id, id, now, MessageWrite(id, role, dump(metadata), at, new), writes,
        [row[0] for row in stored[len(writes):]], SessionWrite(title=title)))


def _pop(db: Database, *, session_id: str, ids: IdMinter, now: int) -> dict[str, Any] | None:
    for id, _, metadata, at in reversed(_rows(db, session_id)):
        items = _own_items(metadata)
        if not items:
            continue
        if len(items) > 1:
            _put(db, session_id, id, items[:-1], at, ids, now, new=False)
        else:
            db.connection.execute("DELETE FROM chat_parts WHERE message_id = $1", {"1": id})
            db.connection.execute("DELETE FROM chat_messages WHERE id = $1", {"1": id})
            note_change(db, session_id, now)
        popped: dict[str, Any] = items[-1]
        return popped
    return None


def _clear(db: Database, *, session_id: str, ids: IdMinter, now: int) -> None:
    rows = _rows(db, session_id)
    if rows:
        edits = [edit for id, *_ in rows for edit in hide(db, id, now)]
        count = f"{len(rows)} message{'' if len(rows) == 1 else 's'}"
        record(db, "rewind", session_id, f"cleared {count}", dump_edits(edits), now)
        note_change(db, session_id, now)
