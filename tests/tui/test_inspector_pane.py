from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.store import Store
from tests.tui.inspected import OUTPUT, Talk, bash, make_store, part_id
from tests.tui.inspector_app import InspectorApp, inspecting
from tui.kit.lines import Link


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return make_store(tmp_path / "store.db")


async def test_call_shows_name_state_times_ids_input_output_turn_and_session(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, _):
        lines = app.screen_lines()
    assert lines[0].split() == ["Bash", "tool", "call", "Call", "JSON", "Raw", "Meta"]
    assert lines[1].strip() == "pytest -q tests/sync"
    shown = "\n".join(lines)
    assert "state     output-available  ✗ exit 1" in shown
    assert "duration  3.2 s" in shown
    assert "toolu_01mdGEHb0000000000NyyF" in shown
    assert "#2 of 3" in shown
    assert 'command: "pytest -q tests/sync"' in shown
    assert "timeout: 120000" in shown
    assert f"39 lines  {len(OUTPUT)} B" in shown
    assert "Turn  2 model calls" in shown
    assert "in 20  out 40  think 10" in shown
    assert "cache 120 read  10 write" in shown
    assert "$0.250" in shown
    assert "Session  1.0k tokens  $0.500" in shown
    assert "cache read   60% " in shown


async def test_a_cut_output_says_how_many_lines_more_and_o_shows_them(talk: Talk) -> None:
    async with inspecting(talk, 2, 1, (46, 40)) as (app, pilot):
        rest = [line for line in app.screen_lines() if "more lines" in line]
        shown = sum(line.strip().startswith("line ") for line in app.screen_lines())
        assert rest and rest[0].strip().startswith(f"… {39 - shown} more lines  v opens")
        app.pane.view.move_to(20)
        await pilot.press("o")
        await pilot.press("G")
        assert "more lines" not in app.shown
        await pilot.press("g")
        app.pane.view.move_to(20)
        await pilot.press("o")
        await pilot.pause()
        assert "more lines" in app.shown


async def test_wide_panes_put_input_and_output_side_by_side(talk: Talk) -> None:
    async with inspecting(talk, 2, 1, (140, 50)) as (app, _):
        row = next(line for line in app.screen_lines() if line.startswith(" state"))
    assert "Output  39 lines" in row


async def test_tabs_go_round_by_key_and_by_mouse(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        await pilot.press("ctrl+right")
        assert app.pane.tab == "JSON"
        assert 'state: "output-available"' in app.shown
        await pilot.press("ctrl+left", "ctrl+left")
        assert app.pane.tab == "Meta"
        await pilot.click("Tabs", offset=(app.size.width - 1 - 8, 0))
        assert app.pane.tab == "Raw"
        await pilot.press("backspace")
        assert app.pane.tab == "Call"


async def test_raw_shows_the_part_s_own_record_and_text_where_it_is_no_json(talk: Talk) -> None:
    async with inspecting(talk, 2, 0) as (app, pilot):
        await pilot.press("]", "]")
        await pilot.pause()
        assert 'type: "assistant"' in app.shown and "n: 1" in app.shown
        assert "no json" not in app.shown
    async with inspecting(talk, 2, 1) as (app, pilot):
        await pilot.press("]", "]")
        await pilot.pause()
        assert "not JSON, shown as it is" in app.shown and "no json at all" in app.shown


async def test_raw_says_when_nothing_was_kept(talk: Talk) -> None:
    async with inspecting(talk, 4, 0) as (app, pilot):
        await pilot.press("]", "]")
        await pilot.pause()
        assert "The store keeps no original record" in app.shown


async def test_meta_shows_usage_and_links_and_enter_follows_them(talk: Talk) -> None:
    child = Talk(talk.db, "ses_child")
    talk.db.connection.execute(
        "UPDATE chat_sessions SET parent_id = ?, metadata_json = ? WHERE id = ?",
        (talk.session_id, '{"title":"Explore","lineage":{"kind":"subagent",'
         '"tool_call_id":"toolu_01mdGEHb0000000000NyyF"}}', child.session_id),
    )
    async with inspecting(talk, 2, 1, (46, 60)) as (app, pilot):
        await pilot.press("ctrl+left")
        shown = app.shown
        assert "cache read            60" in shown
        assert "↳ Explore" in shown
        view = app.pane.view
        link = Link("session", "ses_child", None)
        number = next(n for n in range(60) if view.line_at(n).link == link)
        view.move_to(number)
        await pilot.press("enter")
        assert [event.session_id for event in app.opened] == ["ses_child"]


async def test_json_folds_finds_and_copies_path_and_value(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        await pilot.press("]")
        view = app.pane.view
        number = next(n for n in range(20) if "input:" in view.line_at(n).text)
        view.move_to(number)
        await pilot.press("left")
        assert "command" not in app.shown.split("input:")[1].split("\n")[1]
        await pilot.press("slash", *"giveup", "enter")
        await pilot.pause()
        assert "match 1 of 1" in app.shown
        value = app.pane.copying.value_here
        assert value is not None and value.path == "$.output"
        assert value.read() == OUTPUT
        await pilot.press("slash", *"Nowhere")
        await pilot.pause()
        assert "“nowhere” is not in JSON" in app.shown and "no match" in app.shown
        await pilot.press("enter", "n")
        await pilot.pause()
        assert "match 0" not in app.shown and "“nowhere” is not in JSON" in app.shown
        await pilot.press("ctrl+right")
        await pilot.pause()
        assert "“nowhere” is not in Raw" in app.shown
        await pilot.press("ctrl+left", "slash", *"120000", "enter")
        await pilot.pause()
        assert app.pane.copying.value_here is not None
        assert app.pane.copying.value_here.path == "$.input.timeout"
        assert "timeout: 120000" in app.shown


async def test_typed_search_is_no_command_and_escape_ends_it(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        await pilot.press("slash", *"]jbw")
        assert app.pane.tab == "Call"
        assert app.pane.finder.needle == "]jbw"
        await pilot.press("escape")
        await pilot.pause()
        assert app.pane.finder.needle == ""
        assert app.focused is app.pane.view


async def test_going_back_ends_the_search_first(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        assert not app.pane.go_back()
        await pilot.press("slash", *"line 3", "enter")
        assert app.pane.view.found == (1, 9)
        assert app.pane.go_back()
        assert app.pane.finder.needle == "" and not app.pane.go_back()


async def test_attachment_is_loaded_when_asked_for(tmp_path: Path) -> None:
    talk = make_store(tmp_path / "a.db")
    talk.message("assistant", bash("make", "short…", attachment="out.txt"))
    talk.attach("out.txt", b"the whole output\nsecond line\n")
    async with inspecting(talk, 7, 0) as (app, pilot):
        assert "out.txt" in app.shown and "the whole output" not in app.shown
        view = app.pane.view
        view.move_to(next(n for n in range(40) if view.line_at(n).link is not None))
        await pilot.press("enter")
        await pilot.pause()
        assert "the whole output" in app.shown and "2 lines" in app.shown


async def test_requests_that_are_overtaken_are_skipped(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        store = app.pane.store
        assert store is not None
        read: list[str] = []
        real = store.read

        async def counted(query: object, *args: object) -> object:
            read.append(str(args[-1]))
            return await real(query, *args)  # type: ignore[arg-type]

        store.read = counted  # type: ignore[method-assign, assignment]
        ids = [part_id(talk, 2, 0), part_id(talk, 2, 2), part_id(talk, 4, 0), part_id(talk, 6, 0)]
        for part in ids:
            await app.pane.show_part(store, talk.session_id, part)
        await app.pane.settled()
        await pilot.pause()
        assert read[-1] == ids[-1]
        assert len(read) < len(ids)
        assert app.pane.subject is not None and app.pane.subject.detail.part.id == ids[-1]


async def test_the_same_part_again_keeps_cursor_tab_and_folds(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        await pilot.press("]")
        app.pane.view.move_to(4)
        await pilot.press("left")
        before = app.shown
        store = app.pane.store
        assert store is not None
        await app.pane.show_part(store, talk.session_id, part_id(talk, 2, 1))
        await app.pane.settled()
        await pilot.pause()
        assert app.shown == before


async def test_a_part_that_is_gone_is_said(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        store = app.pane.store
        assert store is not None
        await app.pane.show_part(store, talk.session_id, "prt_gone")
        await app.pane.settled()
        await pilot.pause()
        assert "the part prt_gone is no longer in the store" in app.shown.replace("\n", " ")


async def test_raw_shows_controls_as_escapes(tmp_path: Path) -> None:
    talk = make_store(tmp_path / "raw.db")
    part = {"type": "text", "text": "x"}
    evil = talk.message("assistant", {**part}, {**part})
    talk.db.connection.execute("DELETE FROM original_records")
    record = r'{"type":"assistant","text":"a\u001b[31m\u202eb"}'
    talk.records(evil, record, "torn \x1b]0;x\x07\u200b")
    for index, shown in enumerate((r'"a\x1b[31m\u202eb"', r"torn \x1b]0;x\x07\u200b")):
        async with inspecting(talk, 7, index) as (app, pilot):
            await pilot.press("]", "]")
            await pilot.pause()
            assert app.pane.tab == "Raw" and shown in app.shown
            assert "␛" not in app.shown and "\x1b" not in app.shown


async def test_odd_parts_show_their_json_and_markup_stays_text(tmp_path: Path) -> None:
    talk = make_store(tmp_path / "odd.db")
    talk.message("assistant", {"type": "custom-thing", "payload": {"a": "[bold]x[/nope]\x1b[31m"}})
    talk.db.connection.execute(
        "UPDATE chat_parts SET data_json = 'no json' WHERE id = ?", (part_id(talk, 6, 0),)
    )
    async with inspecting(talk, 7, 0) as (app, _):
        assert "[bold]x[/nope]␛[31m" in app.shown
        assert "\x1b" not in app.shown
    async with inspecting(talk, 6, 0) as (app, pilot):
        await pilot.press("]")
        assert "no JSON object" in app.shown and "no json" in app.shown


async def test_ten_megabytes_are_shown_line_by_line(tmp_path: Path) -> None:
    talk = make_store(tmp_path / "big.db")
    talk.message("assistant", bash("cat big", "0123456789abcdef" * 640_000))
    async with inspecting(talk, 7, 0) as (app, pilot):
        app.pane.view.move_to(14)
        await pilot.press("o", "G")
        assert app.pane.view.virtual_size.height > 200_000
        app.pane.view.move_by(-30)
        await pilot.pause()
        assert "0123456789abcdef" in app.shown


async def test_text_is_rendered_as_markdown(talk: Talk) -> None:
    async with inspecting(talk, 2, 0) as (app, _):
        assert "I will look." in app.shown
        assert app.screen_lines()[0].startswith(" Assistant  text")


async def test_nothing_selected_says_what_to_do(tmp_path: Path) -> None:
    app = InspectorApp()
    async with app.run_test(size=(46, 20)) as pilot:
        await pilot.pause()
        assert "There is no part to show" in app.shown
        app.pane.focus()
        await pilot.press("y", "v", "w", "]")
        assert app.pane.tab == "JSON"


async def test_loading_survives_a_cancelled_caller(talk: Talk) -> None:
    store = await Store.open(talk.db.path)
    app = InspectorApp()
    async with app.run_test(size=(46, 30)):
        caller = asyncio.create_task(
            app.pane.show_part(store, talk.session_id, part_id(talk, 2, 1))
        )
        await asyncio.sleep(0)
        caller.cancel()
        await app.pane.settled()
        assert app.pane.subject is not None
    await store.close()


async def test_selected_text_joins_wrapped_rows(tmp_path: Path) -> None:
    from textual.geometry import Offset
    from textual.selection import Selection

    talk = make_store(tmp_path / "sel.db")
    talk.message("assistant", bash("x", "a" * 60 + "\nsecond"))
    async with inspecting(talk, 7, 0) as (app, _):
        view = app.pane.view
        first = next(n for n in range(40) if view.line_at(n).text.startswith("aaa"))
        selection = Selection(
            Offset(0, view.offset_at(first)), Offset(6, view.offset_at(first + 2)))
        got = view.get_selection(selection)
        assert got is not None and got[0] == "a" * 60 + "\nsecond"


async def test_the_mouse_selects_text_and_a_drag_is_no_click(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        view = app.pane.view
        row = next(n for n in range(20) if "command:" in view.line_at(n).text)
        cursor = view.cursor
        await pilot.mouse_down("#inspector-view", offset=(3, row))
        await pilot.hover("#inspector-view", offset=(9, row))
        await pilot.mouse_up("#inspector-view", offset=(9, row))
        await pilot.pause()
        assert app.screen.get_selected_text() == "command"
        assert view.cursor == cursor


async def test_a_click_moves_the_cursor_and_a_fold_mark_folds(talk: Talk) -> None:
    async with inspecting(talk, 2, 1) as (app, pilot):
        await pilot.press("]")
        view = app.pane.view
        row = next(n for n in range(20) if "input:" in view.line_at(n).text)
        await pilot.click("#inspector-view", offset=(1, row))
        await pilot.pause()
        assert view.cursor == row
        assert "▸ input: {command, timeout}" in app.shown
        await pilot.click("#inspector-view", offset=(12, 1))
        assert view.cursor == 1 and "▸ input:" in app.shown
