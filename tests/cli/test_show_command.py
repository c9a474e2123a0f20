from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.cli.conftest import Run
from tests.sources.samples import DATA


def test_prints_a_readable_transcript(run: Run, demo: Path) -> None:
    result = run("show", "retry-loop")
    lines = result.out.splitlines()
    assert lines[0] == "Retry loop in the sync worker"
    assert lines[1].startswith("claude-code · claude-sonnet-4-5 · /home/mira/code/api · main")
    assert any(line.startswith("▌ You  2026-") for line in lines)
    assert "  ▸ Read src/sync/worker.py  ✔ ok, 0.1 s  37 lines" in lines
    assert "  ▸ Bash pytest -q tests/sync  ✗ exit 1, 3.2 s" in lines
    assert "  ▸ Bash git push --force origin main  ✗ denied" in lines
    assert "      … 29 more lines" in lines and "      … 9 earlier lines" in lines
    assert "      -from sync.errors import Retry" in lines
    assert "      ● Give up after one refresh that does not help" in lines
    assert "\x1b" not in result.out


def test_calls_and_parts_are_told_as_in_the_browser(run: Run, demo: Path) -> None:
    lines = run("show", "retry-loop").out.splitlines()
    assert "  ▸ Edit src/sync/worker.py  +8 -1  ✔ ok, 0.2 s" in lines
    assert "  ▸ TodoWrite 3 of 4 done  ✔ ok, 0.1 s" in lines
    assert "  ▸ Agent Explore: explore: where tokens expire  ✔ ok, 48 s  21k tokens" in lines
    assert any(line.startswith("  ▸ thought  The user sees an endless retry.") for line in lines)
    lines = run("show", "odd-text").out.splitlines()
    assert '  ▸ weather-report {"city":"Bern","degrees":21,"sky":["sun","some clouds"]}' in lines


def test_hidden_messages_are_left_out_and_counted(run: Run, demo: Path) -> None:
    result = run("show", "retry-loop")
    assert "far too much" not in result.out
    assert result.err == "4 hidden messages omitted. Use --hidden to include them.\n"
    result = run("show", "retry-loop", "--hidden")
    assert "far too much" in result.out and "  hidden\n" in result.out
    assert result.err == ""


def test_queued_messages_come_last(run: Run, demo: Path) -> None:
    assert run("show", "retry-loop").out.endswith(
        "\n▌ You  queued\nthen also update the changelog\n"
    )


def test_full_shortens_nothing(run: Run, demo: Path) -> None:
    assert "more lines" in run("show", "search-page").out
    result = run("show", "search-page", "--full")
    assert "more lines" not in result.out and "line 120 of the old page" in result.out
    assert "19,600 more characters" in run("show", "odd-text").out


def test_context_view_starts_with_the_summary(run: Run, demo: Path) -> None:
    out = run("show", "search-page", "--context").out
    assert out.index("── compacted ──") < out.index("Fine.") < out.index("Go on with the highlight")
    assert "310 kB" not in out


def test_controls_are_harmless(run: Run, demo: Path) -> None:
    out = run("show", "odd-text").out
    assert "\x1b" not in out and "\x07" not in out and "\u202e" not in out
    assert "      red␇ ␛]0;new title␇ ␛[2J␛[H" in out.splitlines()


def test_json_is_documented(run: Run, demo: Path) -> None:
    document = run("show", "retry-loop", "--json").json
    assert list(document) == ["session", "view", "messages", "queued", "hidden_left_out"]
    assert document["view"] == "display" and document["hidden_left_out"] == 4
    assert len(document["messages"]) == 11 == document["session"]["message_count"]
    assert document["queued"][0]["parts"][0]["data"]["text"] == "then also update the changelog"


@pytest.mark.parametrize("name", ["retry-loop", "ses_eb37c8923e7b9hPlQDHL7nyoSb", "ses_eb37",
                                  "lange"])
def test_names_are_ids_source_ids_and_prefixes(run: Run, demo: Path, name: str) -> None:
    assert run("show", name).code == 0


def test_a_name_that_fits_several_lists_them(run: Run, demo: Path) -> None:
    result = run("show", "ses_")
    assert result.code == 1 and result.out == ""
    first, *choices, last = result.err.splitlines()
    assert first == "backscroll: ses_ matches several sessions. Name one by its id:"
    assert last == "  ... and more" and len(choices) == 5
    ids = [line.split()[0] for line in choices]
    listed = [row["id"] for row in run("sessions", "--archived", "include", "--json").json]
    assert ids == [name for name in listed if name in ids]
    assert run("show", ids[0]).code == 0


def test_an_id_that_two_sessions_have(run: Run, demo: Path) -> None:
    with sqlite3.connect(demo) as connection:
        for place, name in enumerate(("aaaa", "bbbb")):
            source = json.dumps({"kind": name, "id": "twice", "path": f"/of/{name}\nline.jsonl"})
            connection.execute(
                "INSERT INTO chat_sessions(id, agent, model_json, metadata_json, created_at,"
                " updated_at) VALUES (?, ?, '{}',"
                " json_object('title', ?, 'source', json(?)), ?, ?)",
                (f"ses_{name}", name, f"Title {name}", source, 0, 86_400_000_000 + place),
            )
    result = run("show", "twice")
    assert result.code == 1
    first, *choices = result.err.splitlines()
    assert first == "backscroll: twice matches several sessions. Name one by its id:"
    assert [line.split()[0] for line in choices] == ["ses_bbbb", "ses_aaaa"]
    assert "1972-09-2" in choices[0]
    assert choices[0].endswith("  bbbb  /of/bbbb line.jsonl  Title bbbb")
    for command in (("export", "--to", "json"), ("tree",), ("star",), ("rename",), ("stats",)):
        verb, *rest = command
        again = run(verb, "twice", *rest, *(["title"] if verb == "rename" else []))
        assert (again.code, again.err) == (1, result.err), verb


def test_a_beginning_that_two_messages_have(run: Run, demo: Path) -> None:
    result = run("fork", "retry-loop", "msg_")
    assert result.code == 1
    first, *choices = result.err.splitlines()
    assert first == "backscroll: msg_ matches several messages. Name one by its id:"
    assert all(line.split()[3] in ("user", "assistant", "system") for line in choices[:5])
    assert all(line.startswith("  msg_") for line in choices[:5])


def test_an_unknown_name(run: Run, demo: Path) -> None:
    result = run("show", "nope")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("backscroll: No session with id")


def test_hidden_and_context_do_not_go_together(run: Run, demo: Path) -> None:
    result = run("show", "retry-loop", "--hidden", "--context")
    assert result.code == 2 and "exclude each other" in result.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colour_unless_no_color_is_set(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from tui.cli import main

    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["show", "odd-text"]) == 0
    assert "\x1b[1mEscapes, [bold]markup[/] and other odd text\x1b[0m" in terminal.getvalue()
    assert "\x1b[31mred" not in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    main(["show", "odd-text"])
    assert "\x1b" not in terminal.getvalue()


def test_data_that_is_no_json_is_shown(run: Run, demo: Path) -> None:
    with sqlite3.connect(demo) as connection:
        connection.execute(
            "UPDATE chat_parts SET data_json = 'not json {' WHERE session_id = "
            "(SELECT id FROM chat_sessions WHERE metadata_json LIKE '%\"weekly-review\"%')"
        )
    connection.close()
    result = run("show", "weekly-review")
    assert result.code == 0 and "      not json {" in result.out.splitlines()


def test_files_are_listed_with_edits_and_lines(run: Run, demo: Path) -> None:
    result = run("show", "retry-loop", "--files")
    lines = result.out.splitlines()
    assert lines[0] == "1 file  1 edited, 1 read"
    assert any(line.startswith("  src/sync/worker.py  1 edit  +8  -1  1 read  turn ")
               for line in lines)
    document = json.loads(run("show", "retry-loop", "--files", "--json").out)
    assert document["view"] == "display" and document["session"]["title"].startswith("Retry")
    worker = next(file for file in document["files"] if file["shown"] == "src/sync/worker.py")
    assert worker["path"] == "/home/mira/code/api/src/sync/worker.py"
    assert (worker["edits"], worker["reads"], worker["added"], worker["removed"]) == (1, 1, 8, 1)
    assert [call["kind"] for call in worker["calls"]] == ["read", "edit"]
    assert all(call["message_id"].startswith("msg_") for call in worker["calls"])


def test_commands_are_listed_with_their_ends(run: Run, demo: Path) -> None:
    lines = run("show", "retry-loop", "--commands").out.splitlines()
    assert any(line.endswith("$ pytest -q tests/sync  exit 1, 3.2 s") for line in lines)
    assert any(line.endswith("$ git push --force origin main  denied, 4 s") for line in lines)
    document = json.loads(run("show", "retry-loop", "--commands", "--json").out)
    ends = {use["command"]: (use["status"], use["exit_code"]) for use in document["commands"]}
    assert ends["pytest -q tests/sync"] == ("failed", 1)
    assert ends["git push --force origin main"] == ("denied", None)


def test_hidden_calls_are_listed_where_wanted(run: Run, demo: Path) -> None:
    shown = json.loads(run("show", "retry-loop", "--files", "--json").out)
    assert (len(shown["files"]), shown["left_out"]) == (1, 1)
    whole = json.loads(run("show", "retry-loop", "--files", "--json", "--hidden").out)
    assert whole["left_out"] == 0
    hidden = [file for file in whole["files"] if file["calls"][0]["hidden"]]
    assert [(file["edits"], file["added"], len(file["calls"])) for file in hidden] == [(0, 0, 1)]
    result = run("show", "retry-loop", "--files")
    assert "1 hidden call omitted. Use --hidden to include them." in result.err
    assert "The calls of 1 subagent are not included." in result.err
    assert run("show", "retry-loop", "--files", "--commands").code == 2


def test_what_was_spent_without_an_answer_is_no_message(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    lines = Path(DATA / "droid" / "sessions")
    database = open_database(store, create=True)
    Sync(database, Settings(helpers=0)).run([Target(source("droid"), lines)])
    (name,) = database.connection.execute(
        "SELECT s.id FROM chat_sessions s WHERE json_extract(s.metadata_json, '$.title') LIKE"
        " '%delegate%'").fetchone()
    database.close()
    shown = run("--store", store, "show", name)
    # Five messages of the file are the assistant's or the user's; the sixth row is the spending.
    assert shown.out.count("▌ Assistant") == 3
    document = run("--store", store, "export", name, "--to", "markdown").out
    assert document.count("## Assistant") == 3
    recording = run("--store", store, "export", name, "--to", "asciicast").out
    assert recording.count("Assistant") == 3
