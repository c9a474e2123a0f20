from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, OptionList

from tui.keys.dispatch import CommandApp
from tui.keys.queue import Work, enqueue, holds_key, release_key


class Choice(ModalScreen[str]):
    """A dialog of Textual's own widgets."""

    AUTO_FOCUS = "OptionList"

    def compose(self) -> ComposeResult:
        yield OptionList("one", "two", "three")

    @on(OptionList.OptionSelected)
    def chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(str(event.option.prompt))


class TwoSteps(Widget, can_focus=True):
    """Handles a key or a button in two steps; the second is slow."""

    class Second(Message):
        pass

    def __init__(self, ended: Callable[[], object]) -> None:
        super().__init__()
        self.ended = ended

    @on(events.Key)
    @on(events.MouseUp)
    def first(self) -> None:
        self.post_message(self.Second())

    @on(Second)
    async def second(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        self.ended()


class Commanded(CommandApp):
    """Runs ``work`` by key; types into one line."""

    AUTO_FOCUS = ""

    def __init__(self, **work: Work) -> None:
        super().__init__()
        self.work = work
        self.seen: list[str] = []

    def compose(self) -> ComposeResult:
        yield Input()

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        self.seen.append(event.value)

    @on(Input.Submitted)
    def submitted(self) -> None:
        self.seen.append("submitted")
        self.screen.set_focus(None)

    def _command(self, key: str, *, typing: bool = False) -> Work | None:
        return None if typing else self.work.get(key)

    def type(self, *keys: str) -> None:
        for key in keys:
            self.post_message(events.Key(key, key if len(key) == 1 else None))


async def drained(app: Commanded) -> None:
    while app.message_queue_size:
        await asyncio.sleep(0)
    await app.inputs.drained()


async def test_each_command_waits_for_the_one_before() -> None:
    async def slow() -> None:
        app.seen.append("slow")
        await asyncio.sleep(0.01)
        app.seen.append("slow ends")

    app = Commanded(s=slow, q=lambda: app.seen.append("quick"))
    async with app.run_test():
        app.screen.set_focus(None)
        app.type("s", "q", "s")
        await drained(app)
        assert app.seen == ["slow", "slow ends", "quick", "slow", "slow ends"]


async def test_a_released_key_lets_the_next_run() -> None:
    free = asyncio.Event()

    async def waits() -> None:
        assert holds_key()
        release_key()
        assert not holds_key()
        await free.wait()
        app.seen.append("waited")

    app = Commanded(w=waits, q=lambda: app.seen.append("quick"))
    async with app.run_test() as pilot:
        app.screen.set_focus(None)
        app.type("w", "q")
        await drained(app)
        assert app.seen == ["quick"]
        free.set()
        await pilot.pause()
        assert app.seen == ["quick", "waited"]
    assert not holds_key()


async def test_text_and_what_follows_from_it_come_before_the_next_key() -> None:
    app = Commanded(a=lambda: app.seen.append("command"))
    async with app.run_test():
        app.query_one(Input).focus()
        app.type("a", "b", "enter", "a")
        await drained(app)
        assert app.seen == ["a", "ab", "submitted", "command"]


async def test_what_a_widget_posts_to_itself_comes_before_the_next_key() -> None:
    app = Commanded(a=lambda: app.seen.append("command"))
    async with app.run_test():
        steps = TwoSteps(lambda: app.seen.append("steps"))
        await app.screen.mount(steps)
        steps.focus()
        app.type("x", "a")
        await drained(app)
        assert app.seen == ["steps", "command"]


async def test_a_button_that_is_let_go_outside_is_waited_for_where_it_was_pressed() -> None:
    app = Commanded(a=lambda: app.seen.append("command"))
    async with app.run_test() as pilot:
        steps = TwoSteps(lambda: app.seen.append("steps"))
        await app.screen.mount(steps)
        app.screen.set_focus(None)
        await pilot.pause()
        app.capture_mouse(steps)
        app.post_message(events.MouseUp(None, 0, 0, 0, 0, 1, False, False, False))
        app.type("a")
        await drained(app)
        assert app.seen == ["steps", "command"]


async def test_keys_behind_a_command_that_asks_are_for_its_dialog() -> None:
    async def ask() -> None:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        app.push_screen(Choice(), answered.set_result)
        app.seen.append(await answered)

    app = Commanded(a=ask, q=lambda: app.seen.append("quick"))
    async with app.run_test() as pilot:
        app.screen.set_focus(None)
        app.type("a", "down", "down", "enter", "q")
        await drained(app)
        await pilot.pause()
        assert sorted(app.seen) == ["quick", "three"]


async def test_work_that_a_command_asks_for_comes_before_the_keys_that_wait() -> None:
    app = Commanded(
        a=lambda: enqueue(app.screen, lambda: app.seen.append("follows")),
        b=lambda: app.seen.append("next"))
    async with app.run_test():
        app.screen.set_focus(None)
        app.type("a", "b")
        await drained(app)
        assert app.seen == ["follows", "next"]


async def test_a_command_that_fails_is_an_error_of_the_app() -> None:
    def fail() -> None:
        raise ValueError("broken")

    app = Commanded(f=fail, q=lambda: app.seen.append("quick"))
    failed: list[BaseException] = []
    app._handle_exception = failed.append  # type: ignore[method-assign, assignment]
    async with app.run_test() as pilot:
        app.screen.set_focus(None)
        app.type("f", "q")
        await drained(app)
        await pilot.pause()
        assert [str(error.__cause__ or error) for error in failed] == [
            "Worker raised exception: ValueError('broken')"]
        assert app.seen == ["quick"]


async def test_input_waits_while_the_queue_is_paused() -> None:
    app = Commanded(a=lambda: app.seen.append("a"), b=lambda: app.seen.append("b"))
    async with app.run_test() as pilot:
        app.screen.set_focus(None)
        app.inputs.pause()
        app.type("a", "b")
        await pilot.pause()
        assert app.seen == []
        app.inputs.resume()
        await drained(app)
        assert app.seen == ["a", "b"]


def test_outside_a_command_nothing_is_released() -> None:
    release_key()
    assert not holds_key()
