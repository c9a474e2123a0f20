"""The tree of a session's family: parent, forks, subagents, continuations, labels."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.geometry import Region
from textual.strip import Strip

from store.engine.database import Database
from store.queries.lineage import FamilyNode, family
from store.queries.tree_facts import NodeFacts, labels_of, last_message, node_facts
from tui.kit.blocks import Fixed
from tui.kit.key_hints import keyed
from tui.kit.line_bar import LineBar
from tui.kit.line_view import LineView
from tui.kit.lines import Line
from tui.kit.masked import shown
from tui.kit.text import one_line
from tui.stacked import StackedScreen
from tui.tree.block import TreeBlock, TreeRow, column_heads, rows_of_tree
from tui.verbs.doing import ask_store, asking, counted
from tui.verbs.sessions import OneSession, SessionActions
from tui.verbs.undo import redo, undo

if TYPE_CHECKING:
    from store.verbs.undo import Step


class TreeView(LineView):
    """Lines of a tree, which calls back after it has drawn some of them."""

    def __init__(self, drawn: Callable[[], None]) -> None:
        """Make an empty view.

        Args:
            drawn: Called after lines were drawn, by a key, the wheel or a resize.
        """
        super().__init__(ground="background")
        self._after_drawing = drawn

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines, and call back."""
        strips = super().render_lines(crop)
        self._after_drawing()
        return strips


class FactsReader:
    """Reads the facts of the sessions that were drawn without them.

    Attributes:
        facts: What was read, by session id.
    """

    def __init__(
        self, read: Callable[[list[FamilyNode]], Awaitable[dict[str, NodeFacts] | None]],
        changed: Callable[[], object],
    ) -> None:
        """Make a reader that knows nothing yet.

        Args:
            read: Returns the facts of some sessions; None where the store refuses.
            changed: Called after more facts are known.
        """
        self.facts: dict[str, NodeFacts] = {}
        self._read, self._changed = read, changed
        self._wanted: dict[str, FamilyNode] = {}
        self._reading = False

    def want(self, *nodes: FamilyNode) -> None:
        """Have the facts of sessions read, again where they are known."""
        self._wanted.update((node.id, node) for node in nodes)

    @property
    def is_due(self) -> bool:
        """Whether something is wanted that is not being read."""
        return bool(self._wanted) and not self._reading

    async def run(self) -> None:
        """Read until nothing is wanted any more."""
        if self._reading:
            return
        self._reading = True
        try:
            while self._wanted:
                nodes, self._wanted = list(self._wanted.values()), {}
                found = await self._read(nodes)
                if found is None:
                    return
                self.facts.update(found)
                self._changed()
        finally:
            self._reading = False


def _read(
    db: Database, session_id: str, helpers: bool
) -> tuple[list[FamilyNode], list[TreeRow]]:
    """Read a family and arrange its lines, on the store's thread."""
    nodes = family(db, session_id, helpers=helpers)
    labels = {node.id: labels_of(db, node.id) for node in nodes if node.labels}
    return nodes, rows_of_tree(nodes, labels)


class TreeScreen(StackedScreen):
    """Shows one family with its own keys."""

    SCOPE = "tree"
    actions: SessionActions

    def __init__(self, session_id: str) -> None:
        """Take the session that is shown."""
        super().__init__(TreeView(self._read_soon))
        self.session_id = session_id
        self._root: str | None = None
        self._block: TreeBlock | None = None
        self._facts = FactsReader(self._read_facts, self.view.refresh)
        self.actions = SessionActions(self, OneSession(self, self.current_session))

    def on_mount(self) -> None:
        """Read the family."""
        self.run_worker(self._load(first=True), exit_on_error=False)

    def on_resize(self) -> None:
        """Fit the head to the columns."""
        self._show_head()

    async def _load(self, *, first: bool = False) -> None:
        app = self.host
        found = await ask_store(app, _read, self.session_id, app.settings.ui.helpers)
        if found is not None and not found.value[0] and self._root is not None:
            found = await ask_store(app, _read, self._root, app.settings.ui.helpers)
        if found is None:
            return
        nodes, rows = found.value
        at = self.session_id if first else self.current_session()
        self._block = TreeBlock(
            nodes, rows, self.session_id, app.library.clock(), self._facts.facts, self._facts.want)
        self._root = nodes[0].id if nodes else None
        if not first:
            self._facts.want(*self._seen(rows, nodes))
        forks = keyed("transcript.fork", "in the transcript forks it at a message")
        empty = Fixed(lambda width: [
            Line(),
            Line((("Nothing was branched off this session yet.", "text"),)),
            Line(((f"{forks}.", "muted"),)),
        ])
        self.view.show([self._block, empty] if len(nodes) == 1 else [self._block], stay=not first)
        self._go_to(at)
        self._show_head()

    def _seen(self, rows: Sequence[TreeRow], nodes: Sequence[FamilyNode]) -> list[FamilyNode]:
        top = self.view.scroll_offset.y
        return [nodes[row.node] for row in rows[top:top + self.view.size.height + 1]]

    def _go_to(self, session_id: str | None) -> None:
        if self._block is None:
            return
        row = self._row_here()
        if row is not None and self._block.nodes[row.node].id == session_id:
            return
        for number, row in enumerate(self._block.rows):
            if self._block.nodes[row.node].id == session_id:
                self.view.move_to(number)
                return

    def _show_head(self) -> None:
        nodes = self._block.nodes if self._block is not None else ()
        if not nodes:
            return
        kinds = [node.kind for node in nodes]
        about = [counted(len(nodes), "session")]
        about += [
            counted(kinds.count(kind), kind)
            for kind in ("fork", "subagent", "continuation") if kind in kinds
        ]
        title = one_line(shown(nodes[0].title) or "untitled")
        self.query_one("#stacked-title", LineBar).show(Line(
            (("Tree  ", "text bold"), (title, "text")),
            ((", ".join(about), "muted"),),
        ))
        self.query_one("#stacked-head", LineBar).show(column_heads(self.view.cells))

    def _read_soon(self) -> None:
        if self._facts.is_due:
            self.run_worker(self._facts.run(), exit_on_error=False)

    async def _read_facts(self, nodes: list[FamilyNode]) -> dict[str, NodeFacts] | None:
        found = await ask_store(self.host, node_facts, nodes)
        return None if found is None else found.value

    # What the keys act on

    def _row_here(self) -> TreeRow | None:
        rows = self._block.rows if self._block is not None else ()
        return rows[self.view.cursor] if 0 <= self.view.cursor < len(rows) else None

    def current_session(self) -> str | None:
        """Return the session on the cursor's line."""
        row = self._row_here()
        if row is None or self._block is None:
            return None
        return self._block.nodes[row.node].id

    @property
    def has_labels(self) -> bool:
        """Whether a message of the family has a label."""
        return self._block is not None and any(row.label for row in self._block.rows)

    def store_changed(self) -> None:
        """Read the family again."""
        self.run_worker(  # Its overloads hide the result type of a function.
            self._load, group="tree", exclusive=True, exit_on_error=False  # type: ignore[arg-type]
        )

    async def undo(self) -> None:
        """Undo the last change, and go to its session."""
        self._after_step(await undo(self.host))

    async def redo(self) -> None:
        """Redo what was undone last, and go to its session."""
        self._after_step(await redo(self.host))

    def _after_step(self, step: Step | None) -> None:
        if step is not None:
            self.run_worker(
                partial(self._load_at, step.session_id),  # type: ignore[arg-type]
                group="tree", exclusive=True, exit_on_error=False,
            )

    async def resume(self) -> None:
        """Resume the session on the line in its agent."""
        from tui.verbs.resuming import go_on

        session_id = self.current_session()
        if session_id is not None:
            await asking(self, go_on(self.host, session_id))

    async def _load_at(self, session_id: str) -> None:
        await self._load()
        self._go_to(session_id)

    # Commands

    def open_selected(self) -> None:
        """Open the session, at the label where the line is one."""
        row, session_id = self._row_here(), self.current_session()
        if row is not None and session_id is not None:
            self.open_in_transcript(session_id, row.label.message_id if row.label else None)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Open what is clicked a second time."""
        event.stop()
        if self._clicked == self.view.cursor:
            self.open_selected()
        self._clicked = self.view.cursor

    _clicked = -1

    def go_to_parent(self) -> None:
        """Go to the session's parent."""
        row = self._row_here()
        if row is None or self._block is None:
            return
        node = self._block.nodes[row.node]
        before = self.view.cursor
        self._go_to(node.id if row.label else node.parent_id)
        if self.view.cursor == before:
            self.app.notify("This session has no parent here", timeout=2, markup=False)

    def go_to_next_label(self) -> None:
        """Go to the next line that is a label, from the first again after the last."""
        if self._block is None:
            return
        lines = [number for number, row in enumerate(self._block.rows) if row.label]
        after = [number for number in lines if number > self.view.cursor]
        self.view.move_to((after or lines)[0])

    async def change_label(self) -> None:
        """Change the label of the line, or label the session's last message."""
        from tui.verbs.labels import change_label

        row, session_id = self._row_here(), self.current_session()
        if row is None or session_id is None:
            return
        message_id = row.label.message_id if row.label else None
        if message_id is None:
            found = await ask_store(self.host, last_message, session_id)
            message_id = found.value if found is not None else None
        if message_id is None:
            self.app.notify("This session has no message to label", markup=False)
            return
        await asking(self, change_label(self.host, session_id, message_id))

    def compare(self) -> None:
        """Compare the session with the one that is shown."""
        from tui.compare.screen import CompareScreen

        other = self.current_session()
        if other is not None:
            self.app.push_screen(CompareScreen(self.session_id, other))

    def on_screen_resume(self) -> None:
        """Take the keyboard back after a dialog."""
        self.set_focus(self.view)
