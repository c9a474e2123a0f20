"""The store for programs that run agents: sessions, recording, verbs, watching, search.

    from backscroll import Store

    async with Store.open("host.db", create=True) as store:
        session = await store.create_session("my-agent", "anthropic/claude-sonnet-4-5")
        async with store.recorder(session) as recorder:
            await recorder.user_message("Fix the test")
            async for chunk in stream:
                await recorder.feed(chunk)
        messages = await store.messages(session)

Rooms are imported by the calls that need them, as the browser opens a store at its start; on a
thread, as the imports of search take longer than an event loop may stand still.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
)
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

from store.engine.async_database import AsyncDatabase
from store.errors import BackscrollError, Invalid, Refused, StoreError
from store.system.clock import Clock, system_clock

if TYPE_CHECKING:
    from store.engine.database import Database
    from store.events.reading import Event
    from store.models import Model, PermissionRule, Session, UIMessage
    from store.queries.sessions import SessionFilter
    from store.recorder.part_list import SdkVersion
    from store.recorder.policy import SavePolicy
    from store.recorder.recorder import Recorder
    from store.search.hits import Hits, Order
    from store.search.searching import Searcher
    from store.verbs.rewind import Batch
    from store.verbs.undo import Step
    from store.watch import Watch

P = ParamSpec("P")
T = TypeVar("T")
PAGE = 128
"""Sessions or hits that a call returns at most, where nothing else is asked for."""
View = Literal["all", "display", "hidden", "context"]


class _Closing(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closing)


class Opening(Coroutine[Any, Any, C]):
    """Something that is being opened: ``await`` it, or use it in ``async with`` to close it."""

    def __init__(self, opening: Coroutine[Any, Any, C]) -> None:
        """Wrap the coroutine that opens it."""
        self._opening = opening
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        """Open it and return it."""
        return self._opening.__await__()

    def send(self, value: Any) -> Any:
        """Continue the coroutine."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._opening.close()

    async def __aenter__(self) -> C:
        """Open it and return it."""
        self._opened = await self._opening
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        if self._opened is not None:
            await self._opened.close()


class Store(AsyncDatabase):
    """A store that is open.

    ``session`` is a ``Session``, its id, its id at its source, or an unambiguous beginning of
    one; ``message`` the id of a ``UIMessage`` or of a message's row. Every call raises a
    ``BackscrollError``: ``NotFound`` for a name that the store does not have, ``Refused`` for
    what is not possible now, ``Invalid`` for a value that cannot be taken, ``StoreError`` for a
    file that cannot be used. The message says what to do.
    """

    _searcher: Searcher | None = None
    _watches: frozenset[Watch] = frozenset()

    @classmethod
    def open(
        cls, path: str | Path, *, create: bool = False, clock: Clock = system_clock,
        read_only: str | None = None,
    ) -> Opening[Store]:
        """Open a store; ``await`` it, or use it in ``async with``.

        Args:
            path: The SQLite file, its ``sqlite:///`` URL, or a ``postgresql://`` one. ``~`` is
                not expanded.
            create: Make it, with our schema, where it is missing; migrate it where it is old.
            clock: Returns the present as epoch ms.
            read_only: Why nothing may be written, whatever the file allows; None to allow it.

        Raises:
            StoreError: The store is missing or is none, or the server cannot be reached.
        """
        return Opening(cls._open(path, create, clock, read_only))

    @classmethod
    async def _open(
        cls, path: str | Path, create: bool, clock: Clock, read_only: str | None
    ) -> Store:
        from store.engine.database import SERVERS

        file = await asyncio.to_thread(_file_of, path, create=create)
        if str(file) in SERVERS:
            return await super().open(file, clock=clock, read_only=read_only)
        if not create and not file.exists() and file.parent.exists():
            raise StoreError(
                f"{path} does not exist; name a store that does, let `backscroll sync` make one,"
                " or give create=True to make an empty one")
        return await super().open(file, create=create, clock=clock, read_only=read_only)

    # -- sessions

    async def create_session(
        self,
        agent: str,
        model: str | Model | Mapping[str, Any] | None = None,
        *,
        parent: str | Session | None = None,
        parent_message: str | None = None,
        tool_call: str | None = None,
        permissions: Iterable[PermissionRule] | None = None,
        metadata: Mapping[str, Any] | None = None,
        workspace: str | Path | None = None,
        title: str | None = None,
    ) -> Session:
        """Make a session without messages.

        Args:
            agent: The agent that runs in it; it does not change later.
            model: ``{provider_id, model_id, variant?}`` or ``provider/model``; None if it is
                not known yet. Recorded messages that name another one replace it.
            parent: The session that started this one as a subagent.
            parent_message: The message of the parent that started it.
            tool_call: The id of the parent's tool call that started it.
            permissions: The session's own rules.
            metadata: Anything else, as JSON.
            workspace: The folder that the session is about.
            title: Its title; without one it is the first line of the first prompt.

        Raises:
            Invalid: A value cannot be stored; the message names it.
            NotFound: The store has no such parent.
            Refused: The store is read only.
        """
        await _imported("store.recorder.creating")
        from store.recorder.creating import Wanted, create

        if not isinstance(permissions, Iterable | None):
            raise Invalid("permissions must be a list of rules")
        if not isinstance(workspace, str | PurePath | None):
            raise Invalid(f"workspace must be a path, not {type(workspace).__name__}")
        wanted = Wanted(
            agent, model, parent=self._name(parent), parent_message=parent_message,
            tool_call=tool_call, permissions=tuple(permissions or ()), metadata=metadata,
            workspace=None if workspace is None else str(workspace), title=title)
        return await self.write(create, wanted, id=self.ids.mint("ses"), now=self.clock())

    async def session(self, session: str | Session) -> Session:
        """Return a session as it is now.

        Args:
            session: The session.

        Raises:
            NotFound: The store has no such session.
        """
        await _imported("store.models")
        from store.models import Session
        from store.queries import sessions

        return Session.of(await self.read(sessions.resolve, self._name(session)))

    async def sessions(
        self, filter: SessionFilter | str | None = None, *, before: Session | None = None,
        limit: int = PAGE,
    ) -> list[Session]:
        """Return sessions, the one that changed last first; archived ones only if asked for.

        Args:
            filter: Which sessions: a ``SessionFilter``, or a query such as ``agent:codex`` or
                ``is:archived`` (docs/search.md). None for all.
            before: The last session of the page before; None for the first page.
            limit: How many at most; a negative number means all.

        Raises:
            Invalid: The query cannot be read; the message says why.
        """
        await _imported("store.search.listed")
        from store.models import Session, limit_of
        from store.queries.sessions import SessionFilter
        from store.search.listed import sessions_asked_for

        if not isinstance(filter, SessionFilter | str | None):
            raise Invalid("filter must be a SessionFilter, a query or None")
        if not isinstance(before, Session | None):
            raise Invalid("before must be the last Session of the page before")
        cursor = None if before is None else (before.updated_at, before.id)
        return await self.read(
            sessions_asked_for, filter, before=cursor, limit=limit_of(limit), now=self.clock())

    async def messages(
        self, session: str | Session, *, view: View = "display"
    ) -> list[UIMessage]:
        """Return a session's messages, as the AI SDK's ``useChat`` takes them.

        The same as ``backscroll export --to ui-messages``.

        Args:
            session: The session.
            view: ``display`` without hidden and queued messages; ``context`` what the model
                would be sent now; ``hidden`` with messages that a rewind hid; ``all``.

        Raises:
            NotFound: The store has no such session.
        """
        await _imported("store.exports.ui_messages")
        from store.exports.ui_messages import ui_messages
        from store.models import one_of

        one_of("view", view, ("display", "context", "hidden", "all"))
        return await self.read(ui_messages, self._name(session), view=view)

    def recorder(
        self,
        session: str | Session,
        *,
        policy: SavePolicy | None = None,
        sdk: SdkVersion = 6,
        problem: Callable[[str], None] | None = None,
        unknown: Callable[[str], None] | None = None,
    ) -> Opening[Recorder]:
        """Record into a session; ``await`` it, or use it in ``async with``.

        Args:
            session: The session.
            policy: When what was recorded is saved; at once by default.
            sdk: The AI SDK version whose reducer is followed where 6 and 7 disagree.
            problem: Called with one line for each chunk that the SDK's reader would refuse.
            unknown: Called with the type of each chunk that the SDK's reader would ignore.

        Raises:
            NotFound: The store has no such session.
            Refused: The session has a recorder, here or in another process.
        """
        return Opening(self._recorder(self._of(session), policy, sdk, problem, unknown))

    async def _recorder(
        self, session: str, policy: SavePolicy | None, sdk: SdkVersion,
        problem: Callable[[str], None] | None, unknown: Callable[[str], None] | None,
    ) -> Recorder:
        await _imported("store.recorder.recorder")
        from store.recorder.odd_chunks import no_report
        from store.recorder.policy import SavePolicy
        from store.recorder.recorder import Recorder

        if not isinstance(policy, SavePolicy | None):
            raise Invalid("policy must be a SavePolicy, such as SavePolicy(save_on='step')")
        return await Recorder.open(
            self, session=session, policy=policy, sdk=sdk,
            problem=problem or no_report, unknown=unknown or no_report)

    # -- verbs

    async def fork(
        self, session: str | Session, message: str | None = None, *, before: bool = False
    ) -> Session:
        """Make a session with the messages of another one up to a message.

        Args:
            session: The session.
            message: The last message of the fork; None for the session's last one.
            before: Leave the message out; it must be a prompt.

        Raises:
            NotFound: The store has no such session or message.
            Refused: The session runs, or the message is hidden or queued.
        """
        await _imported("store.verbs.fork", "store.verbs.naming")
        from store.models import Session, text_of
        from store.queries import sessions
        from store.verbs.fork import fork
        from store.verbs.naming import on_message

        made = await self.write(
            on_message, partial(fork, before=before, ids=self.ids, now=self.clock()),
            self._name(session), None if message is None else text_of("message", message))
        return Session.of(await self.read(sessions.resolve, made.session_id))

    async def rewind(self, session: str | Session, message: str) -> Batch:
        """Hide the messages after one; ``restore`` shows them again.

        Args:
            session: The session.
            message: The last message that stays.

        Raises:
            NotFound: The store has no such session or message.
            Refused: The session runs, or nothing comes after the message.
        """
        await _imported("store.verbs.rewind", "store.verbs.naming")
        from store.models import text_of
        from store.verbs.naming import on_message
        from store.verbs.rewind import rewind

        return await self.write(
            on_message, partial(rewind, now=self.clock()), self._name(session),
            text_of("message", message))

    async def restore(self, session: str | Session, *, batch: int | None = None) -> Batch:
        """Show the messages again that a rewind hid.

        Args:
            session: The session.
            batch: ``hidden_at`` of the rewind; None for the newest.

        Raises:
            NotFound: The store has no such session.
            Refused: Nothing is hidden.
        """
        await _imported("store.verbs.rewind", "store.verbs.naming")
        from store.verbs.naming import on_session
        from store.verbs.rewind import restore

        return await self.write(
            on_session, partial(restore, batch=batch, now=self.clock()), self._name(session))

    async def archive(self, session: str | Session) -> list[str]:
        """Archive a session and its subagents; returns the ids of all that were archived.

        Raises:
            NotFound: The store has no such session.
            Refused: It is archived already.
        """
        return await self._shelve("archive", session)

    async def unarchive(self, session: str | Session) -> list[str]:
        """Take a session, and what was archived with it, out of the archive; returns their ids.

        Raises:
            NotFound: The store has no such session.
            Refused: It is not archived.
        """
        return await self._shelve("unarchive", session)

    async def _shelve(self, verb: str, session: str | Session) -> list[str]:
        await _imported("store.verbs.shelf", "store.verbs.naming")
        from store.verbs import shelf
        from store.verbs.naming import on_session

        change = shelf.archive if verb == "archive" else shelf.unarchive
        now = self.clock()
        return await self.write(
            on_session, lambda db, found: change(db, [found], now=now), self._name(session))

    async def rename(self, session: str | Session, title: str) -> str:
        """Give a session a title; returns it as it was stored, on one line.

        Args:
            session: The session.
            title: The title.

        Raises:
            NotFound: The store has no such session.
            Refused: The title is empty, or the session has it already.
        """
        await _imported("store.verbs.marks", "store.verbs.naming")
        from store.models import text_of
        from store.verbs.marks import rename
        from store.verbs.naming import on_session

        return await self.write(
            on_session, partial(rename, title=text_of("title", title), now=self.clock()),
            self._name(session))

    async def delete(self, session: str | Session) -> list[str]:
        """Delete a session and its subagents; returns their ids. ``undo`` brings them back.

        Forks of it stay. The rows of the newest 20 deletions are kept for ``undo``.

        Raises:
            NotFound: The store has no such session.
            Refused: It runs, or is read from an agent's own files.
        """
        await _imported("store.verbs.delete", "store.verbs.naming")
        from store.verbs.delete import delete
        from store.verbs.naming import on_session

        self._refuse_recorded(await self.session(session))
        return await self.write(
            on_session, partial(delete, now=self.clock()), self._name(session))

    def _refuse_recorded(self, session: Session) -> None:
        from store.recorder.recorder import is_recorded

        if is_recorded(self, session.id):
            raise Refused(f"session {session.id} is being recorded; close its recorder first")

    async def undo(self) -> Step:
        """Take back the newest verb of this store, whoever did it.

        Raises:
            Refused: There is nothing to undo.
        """
        await _imported("store.verbs.undo")
        from store.verbs.undo import undo

        return await self.write(undo, now=self.clock())

    async def redo(self) -> Step:
        """Do again what was undone last.

        Raises:
            Refused: There is nothing to redo, or another verb came in between.
        """
        await _imported("store.verbs.undo")
        from store.verbs.undo import redo

        return await self.write(redo, now=self.clock())

    # -- following and searching

    def watch(self, session: str | Session | None = None, *, every: float = 0.1) -> Watch:
        """Return the changes from now on, whoever makes them: ``async for change in ...``.

        Call it in a running event loop. It ends when the store closes.

        Args:
            session: The session whose changes are wanted, by its whole id; None for all.
            every: Seconds between two looks at the file.
        """
        from store.watch import Watch

        self._refuse_closed()
        watch = Watch(self, self._name(session), every)
        self._watches |= {watch}
        watch.begun.add_done_callback(lambda _: self._forget_watch(watch))
        return watch

    def _forget_watch(self, watch: Watch) -> None:
        self._watches -= {watch}

    async def events(
        self, session: str | Session | None = None, *, after: int = 0, follow: bool = False,
        every: float = 0.1,
    ) -> AsyncIterator[Event]:
        """Yield the events of the event log: ``async for event in store.events(session)``.

        Args:
            session: The session, also one that was deleted; None for all.
            after: The ``seq`` of the last event that is known, 0 for none; of all sessions
                its ``id``.
            follow: Go on with what comes, until the store closes.
            every: Seconds between two looks at the file.

        Raises:
            NotFound: The store has no such session.
            Refused: It has no event log.
        """
        await _imported("store.events.paging", "store.models", "store.watch")
        from store.events.paging import page_of
        from store.models import whole_number
        from store.watch import require_seconds

        require_seconds("every", every)
        after, name = whole_number("after", after), self._name(session)
        pulse: tuple[int, int] | None = None
        while True:
            try:
                now = await self.pulse()
                found = [] if now == pulse else await self.read(page_of, name, after)
            except BackscrollError:
                if self.closed and follow:
                    return
                raise
            for event in found:
                yield event
            if found:
                after = found[-1].id if name is None else found[-1].seq
            elif follow:
                pulse = now
                await asyncio.sleep(every)
            else:
                return

    async def write(
        self, change: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function in one transaction; see ``AsyncDatabase``.

        Args:
            change: The function; its first argument is the database.
            args: Its further positional arguments.
            kwargs: Its keyword arguments.
        """
        # A watch that was made before a write of this store reports it.
        for watch in self._watches:
            await watch.ready()
        return await super().write(change, *args, **kwargs)

    async def search(
        self, query: str, *, limit: int = PAGE, order: Order = "newest", cursor: str | None = None
    ) -> Hits:
        """Search all messages and titles.

        Args:
            query: Words, phrases and fields, as in docs/search.md.
            limit: How many hits at most.
            order: The ``newest`` first, or the ``best``.
            cursor: ``Hits.cursor`` of the page before; None for the first page.

        Raises:
            Invalid: The query asks for nothing or cannot be read; the message says why.
        """
        await _imported("store.search.searching")
        from store.language.query import parse
        from store.models import limit_of, one_of, text_of
        from store.search.searching import Searcher

        self._refuse_closed()
        one_of("order", order, ("newest", "best"))
        limit = limit_of(limit)
        asked = parse(text_of("query", query), now=self.clock())
        if asked.problems:
            raise Invalid(f"{query!r}: {asked.problems[0].message}")
        if not asked:
            raise Invalid("the query is empty; give at least a word")
        async with self._changing.held():
            self._refuse_closed()
            if self._searcher is None:
                self._searcher = await Searcher.open(self.path)
                if self.closed:
                    await self._searcher.close()
        return await self._searcher.hits(asked, limit=limit, order=order, cursor=cursor)

    async def close(self) -> None:
        """Close the store; what was recorded and not saved is lost, so close recorders first."""
        try:
            await super().close()
        finally:
            if self._searcher is not None:
                await self._searcher.close()

    def _name(self, session: Any) -> Any:
        return None if session is None else self._of(session)

    def _of(self, session: str | Session) -> str:
        from store.models import session_id_of

        return session_id_of(session)


async def _imported(*modules: str) -> None:
    """Import modules on a thread, those that are not imported yet."""
    for module in modules:
        if module not in sys.modules:
            await asyncio.to_thread(import_module, module)


def _file_of(path: str | Path, *, create: bool = False) -> Path:
    """Return the file that a path or URL names; of a server, the place of its store.

    Args:
        path: The path or URL.
        create: Make a store's tables on a server where there are none.

    Raises:
        StoreError: It is the URL of something that cannot be opened.
    """
    if isinstance(path, Path):
        return path
    if not isinstance(path, str):
        raise Invalid(f"a store is opened by its path, not by {type(path).__name__}")
    scheme, slashes, rest = path.partition("://")
    if not slashes or "/" in scheme:
        return Path(path)
    if scheme == "sqlite":
        return Path(rest.removeprefix("/"))
    from store.engine.opening import open_target
    from store.engine.server_url import server_url

    if server_url(path) is not None:
        database = open_target(path, create=create)
        database.close()
        return database.path
    raise StoreError(f"{scheme}:// cannot be opened; give the path of a SQLite file")
