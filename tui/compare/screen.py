"""Two branches of a family beside each other, turn by turn, from where they part."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events

from store.engine.database import Database
from store.queries.compare import BranchTurn, Comparison, compare
from store.queries.sessions import get
from store.text import figures
from tui.compare.turns import turn_blocks
from tui.kit.blocks import Block, Columns, Fixed
from tui.kit.glyphs import glyphs
from tui.kit.line_bar import LineBar
from tui.kit.lines import BLANK, Line, Run, heading
from tui.kit.masked import shown
from tui.kit.text import fit, one_line
from tui.stacked import StackedScreen
from tui.verbs.doing import ask_store, counted

SIDE_BY_SIDE_FROM = 90


@dataclass(frozen=True, slots=True)
class Branches:
    """Two branches with their titles and folders."""

    titles: tuple[str, str]
    roots: tuple[str | None, str | None]
    comparison: Comparison


def _read(db: Database, left: str, right: str) -> Branches:
    rows = get(db, left), get(db, right)
    titles = [one_line(shown(row.title if row else None) or "untitled") for row in rows]
    roots = [row.workspace_root if row else None for row in rows]
    return Branches((titles[0], titles[1]), (roots[0], roots[1]), compare(db, left, right))


class CompareScreen(StackedScreen):
    """Shows two branches; one side of them is chosen."""

    SCOPE = "compare"
    side: int

    def __init__(self, left: str, right: str) -> None:
        """Take both sessions."""
        super().__init__()
        self.sessions = (left, right)
        self.side = 1
        self.pairs: list[tuple[BranchTurn | None, BranchTurn | None]] = []
        self._titles = ("", "")
        self._roots: tuple[str | None, str | None] = (None, None)
        self._common = (0, 0)
        self._whole = False
        self._starts: list[int] = []
        self._wide: bool | None = None

    def on_mount(self) -> None:
        """Read both."""
        self.run_worker(self._load(), exit_on_error=False)

    def on_resize(self) -> None:
        """Set the branches side by side where there is room."""
        if self._titles[0] and self._wide != (self.size.width >= SIDE_BY_SIDE_FROM):
            self._arrange()
        self._show_head()

    async def _load(self) -> None:
        found = await ask_store(self.host, _read, *self.sessions)
        if found is None:
            self.dismiss()
            return
        comparison = found.value.comparison
        self._titles, self.pairs = found.value.titles, comparison.rows
        self._roots = found.value.roots
        self._common = comparison.common_messages, comparison.common_turns
        self._arrange()
        self._show_head()

    def _arrange(self) -> None:
        at = self._pair_here()
        self._wide = self.size.width >= SIDE_BY_SIDE_FROM
        blocks: list[Block] = [Fixed(lambda width: [self._common_line(width), BLANK])]
        self._starts, top, cells = [], 2, self.view.cells
        for number, pair in enumerate(self.pairs):
            self._starts.append(top)
            for block in self._pair_blocks(number, pair):
                blocks.append(block)
                top += block.height(cells)
        if not self.pairs:
            blocks.append(Fixed(lambda width: [
                Line((("Neither branch has anything of its own yet.", "text"),))]))
        self.view.show(blocks)
        if self._starts:
            self._to_pair(at or 0)

    def _pair_blocks(
        self, number: int, pair: tuple[BranchTurn | None, BranchTurn | None]
    ) -> list[Block]:
        name = f"Turn {self._common[1] + number + 1}"
        before = self.pairs[number - 1] if number else (None, None)
        sides = [
            turn_blocks(
                turn, whole=self._whole, ends=not number or before[n] is not None,
                root=self._roots[n],
            )
            for n, turn in enumerate(pair)
        ]
        blocks: list[Block] = [Fixed(lambda width: [heading(name, (), width)])]
        if self._wide:
            blocks.append(Columns(sides[0], sides[1], 0.5))
        else:
            for side, title in zip(sides, self._titles, strict=True):
                words = (fit(title, 60), "muted bold")
                blocks.append(Fixed(lambda width, words=words: [Line((words,))]))  # type: ignore[misc]
                blocks += side
        blocks.append(Fixed(lambda width: [BLANK]))
        return blocks

    def _common_line(self, width: int) -> Line:
        messages, turns = self._common
        words = f"Both begin with the same {counted(messages, 'message')}"
        words += f" ({counted(turns, 'turn')})." if turns else "."
        return Line(((words, "muted"),))

    def _show_head(self) -> None:
        if not self._titles[0]:
            return
        own = [sum(turn.tokens for pair in self.pairs if (turn := pair[n])) for n in (0, 1)]
        turns = [sum(pair[n] is not None for pair in self.pairs) for n in (0, 1)]
        about = f"{counted(len(self.pairs), 'turn')} since they part"
        self.query_one("#stacked-title", LineBar).show(
            Line((("Compare", "text bold"),), ((about, "muted"),)))
        cells = self.view.cells
        sides = (cells - Columns.GAP) // 2
        runs: list[Run] = []
        for n in (0, 1):
            facts = f"  {counted(turns[n], 'turn')} {figures.tokens(own[n])}"
            chosen = n == self.side
            mark = f"{glyphs().thick_bar} " if chosen else "  "
            title = fit(self._titles[n], max(8, sides - len(facts) - 2))
            words = f"{mark}{title}"
            runs.append((words, "user bold" if chosen else "text bold"))
            runs.append((facts, "faint"))
            if n == 0:
                runs.append((" " * max(1, sides + Columns.GAP - len(words) - len(facts)), "text"))
        self.query_one("#stacked-head", LineBar).show(Line(tuple(runs)))

    # Where the cursor is

    def _pair_here(self) -> int | None:
        before = [n for n, start in enumerate(self._starts) if start <= self.view.cursor]
        return before[-1] if before else (0 if self._starts else None)

    def _to_pair(self, number: int) -> None:
        number = max(0, min(number, len(self._starts) - 1))
        self.view.move_to(self._starts[number])
        top = self._starts[number] - 1 if number else 0
        self.view.scroll_to(y=top, animate=False, force=True, immediate=True)

    def go_to_next_turn(self) -> None:
        """Go to the next turn."""
        self._to_pair((self._pair_here() or 0) + 1)

    def go_to_previous_turn(self) -> None:
        """Go to the start of this turn, then to the one before."""
        at = self._pair_here() or 0
        self._to_pair(at if self.view.cursor > self._starts[at] else at - 1)

    def choose(self, side: int) -> None:
        """Select the left branch, 0, or the right one, 1."""
        self.side = side
        self._show_head()

    def on_click(self, event: events.Click) -> None:
        """Choose the side that is clicked; open it with a double click."""
        if self._wide and event.widget is self.view:
            self.choose(int(event.x >= self.size.width // 2))
            if event.chain == 2:
                self.open_turn()

    def open_turn(self) -> None:
        """Open the turn in the chosen branch."""
        at = self._pair_here()
        turn = self.pairs[at][self.side] if at is not None else None
        if turn is None:
            self.app.notify("This branch has no such turn", severity="warning", markup=False)
        else:
            self.close_others()
            self.open_in_transcript(self.sessions[self.side], turn.message_id)

    def close_others(self) -> None:
        """Close the tree below, where the comparison was opened from there."""
        for screen in self.app.screen_stack[1:-1]:
            if isinstance(screen, StackedScreen):
                screen.dismiss()

    def toggle_whole(self) -> None:
        """Show turns whole or short."""
        self._whole = not self._whole
        self._arrange()

    def swap(self) -> None:
        """Change left and right."""
        self.sessions = self.sessions[1], self.sessions[0]
        self.side = 1 - self.side
        self.run_worker(self._load(), exit_on_error=False)

    def choose_other(self) -> None:
        """Choose another branch for the right side."""
        self.run_worker(self._other(), group="verb", exit_on_error=False)

    async def _other(self) -> None:
        from tui.verbs.branches import choose_branch

        other = await choose_branch(self.host, self.sessions[0])
        if other is not None:
            self.sessions = self.sessions[0], other
            await self._load()
