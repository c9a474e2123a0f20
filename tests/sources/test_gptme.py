"""gptme: the genuine sample comes out exactly as its EXPECTED.json says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.gptme import GptmeSource
from store.sync.targets import Target
from store.system.paths import expanded
from tests.sources import grown
from tests.sources.samples import DATA
from tests.sources.watched import reading

SAMPLE = DATA / "gptme" / "logs"
EXPECTED = json.loads((DATA / "gptme" / "EXPECTED.json").read_text())
DRAFTS, PROBLEMS = grown.read_all(GptmeSource(), SAMPLE)
SESSIONS = [pytest.param(DRAFTS[one["id"]], one, id=one["id"]) for one in EXPECTED["sessions"]]


def named(draft: SessionDraft, name: str) -> list[Any]:
    return [part.data["data"]["details"] for one in draft.messages for part in one.parts
            if part.type == "data-event" and part.data["data"]["name"] == name]  # fmt: skip


def answers(draft: SessionDraft) -> list[MessageDraft]:
    return [one for one in grown.visible(draft) if one.role == "assistant"]


def calls(messages: list[MessageDraft]) -> list[dict[str, Any]]:
    found = []
    for one in messages:
        for part in grown.calls([one]):
            extra = part.data.get("resultProviderMetadata", {}).get("backscroll", {})
            own = str(part.tool_call_id).startswith(one.source_id)
            found.append({"id": None if own else part.tool_call_id,
                          "name": part.type.removeprefix("tool-"),
                          "status": extra.get("status", "no result")})  # fmt: skip
    return found


def test_just_the_sessions_expected() -> None:
    assert len(DRAFTS) == EXPECTED["session_count"]
    assert DRAFTS.keys() == {one["id"] for one in EXPECTED["sessions"]}
    assert len(PROBLEMS) == sum(one["torn_lines"] for one in EXPECTED["sessions"])


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_session_row(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert (draft.title, draft.title_from) == (expected["title"], "name")
    assert draft.metadata["backscroll"]["workspace"] == expected["workspace"]
    assert draft.workspace_root == str(expanded(expected["workspace"]))
    assert (draft.created_at, draft.updated_at) == (expected["created_ms"], expected["updated_ms"])
    models = {"{provider_id}/{model_id}".format(**one.metadata["model"])
              for one in draft.messages if "model" in one.metadata}  # fmt: skip
    assert [*models] == expected["models"]
    assert "activity" not in draft.metadata


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_said(draft: SessionDraft, expected: dict[str, Any]) -> None:
    shown = grown.visible(draft)
    assert grown.prompts(shown) == expected["prompts"]
    assert len(named(draft, "system prompt")) == expected["hidden_system"]
    automatic = [one for one in shown if one.metadata.get("origin") == "meta"]
    assert len(automatic) == expected["automatic_user_messages"]
    assert len(answers(draft)) == expected["assistant_messages"]
    cut = [one for one in shown if "aborted_at" in one.metadata.get("backscroll", {})]
    assert len(cut) == expected["interrupted"]
    lines = {number for one in shown for number in (
        *one.records, *(n for part in one.parts for n in part.records))}  # fmt: skip
    # The last one tells of the copy of a picture.
    assert len([one for one in lines if b'"role"' in draft.records[one]]) == expected["messages"]
    assert [one["path"] for one in named(draft, "file")] == expected["files"]
    grown.check_records(draft)


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_calls_and_tokens(draft: SessionDraft, expected: dict[str, Any]) -> None:
    assert calls(grown.visible(draft)) == expected["tool_calls"]
    assert grown.tokens(draft.messages) == expected["tokens"]


@pytest.mark.parametrize(("draft", "expected"), SESSIONS)
def test_what_was_taken_back_is_hidden(draft: SessionDraft, expected: dict[str, Any]) -> None:
    hidden = [one for one in draft.messages if "hidden_at" in one.metadata]
    assert expected["lossless"] is None
    folder = SAMPLE / draft.source_id / "branches"
    for name, branch in expected["branches"].items():
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        assert len(lines) == branch["messages"]
    # Both branches were made by one command: the larger has all that the smaller has.
    largest: dict[str, Any] = max(
        expected["branches"].values(), key=lambda each: each["messages"], default={})
    lost = largest.get("not_on_main", [])
    told = [json.loads(draft.records[number]) for number in sorted({
        number for one in hidden for part in one.parts for number in part.records})]
    assert [{key: one[key] for key in ("role", "content")} for one in told] == lost
    shown = [one.source_id for one in draft.messages]
    for one in hidden:
        assert draft.messages[shown.index(one.source_id) - 1].metadata.get("origin") == "human" or (
            draft.messages[shown.index(one.source_id) - 1] in hidden)


def test_a_fork_is_found_by_the_command_in_its_events() -> None:
    fork, main = DRAFTS["forked-talk"], DRAFTS["main-talk"]
    assert main.lineage is None and fork.lineage is not None
    assert (fork.lineage.kind, fork.lineage.parent_source_id) == ("fork", "main-talk")
    own = [one for one in fork.messages if one.inherited_from is None]
    assert grown.prompts(own) == ["Say hello"]
    assert fork.lineage.parent_message_source_id == main.messages[-3].source_id


def test_calls_have_inputs_results_and_exit_codes() -> None:
    first, second, third = grown.calls(grown.visible(DRAFTS["main-talk"]))
    assert first.data["input"] == {"command": "ls -1; cat a.txt"}
    assert first.data["output"].startswith("Ran allowlisted command")
    assert grown.extra(second)["exit_code"] == 3 and second.tool_state == "output-error"
    assert third.data["input"] == {"path": "new.txt", "content": "hëllo"}
    native = grown.calls(DRAFTS["native"].messages)[0]
    assert native.data["input"] == {"command": "echo native; ls"}


def test_thoughts_are_apart_from_the_answer() -> None:
    (thought,) = [one for one in DRAFTS["main-talk"].messages for part in one.parts
                  if part.type == "reasoning"]  # fmt: skip
    assert [part.data["text"] for part in thought.parts] == [
        "They want French.", "Bonjour ! ça va 🎉"]


def test_the_bytes_of_a_picture_are_those_of_that_time() -> None:
    (file,) = [part for one in DRAFTS["native"].messages for part in one.parts
               if part.type == "file"]  # fmt: skip
    assert file.data["url"].startswith("data:image/png;base64,iVBOR")


def test_no_secret_is_opened_and_no_link_followed(tmp_path: Path) -> None:
    root = tmp_path / "gptme" / "logs"
    shutil.copytree(SAMPLE, root)
    project = tmp_path / "project"
    project.mkdir()
    (project / "conversation.jsonl").write_text("secret")
    (root / "native" / "workspace").symlink_to(project)
    (root / "native" / ".lock").write_text("1")
    (root.parent / "history").write_text("secret")
    found = reading(Target(GptmeSource(), root))
    assert not [one for one in found.files if one.startswith(str(project))]
    assert not found.names() & {".lock", "history", "model_selection_trace.json", "workspace"}
    draft = grown.read_all(GptmeSource(), root)[0]["native"]
    assert draft.workspace_root == str(project)


def test_secrets_of_the_settings_are_not_kept(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    shutil.copytree(SAMPLE / "native", root / "native")
    path = root / "native" / "config.toml"
    path.write_text(path.read_text() + 'KEY = "sk-secret"\n')
    draft = grown.only(GptmeSource(), root)
    assert "sk-secret" not in repr(draft)
    path.write_text('[chat]\nname = "x"\n[env]\nKEY = sk-secret\n')
    drafts, problems = grown.read_all(GptmeSource(), root)
    assert drafts["native"].title_from == "first-prompt"
    assert [one.reason for one in problems] == ["no TOML"]


def test_where_it_looks(tmp_path: Path) -> None:
    home = Path("/home/mira")
    assert GptmeSource().default_roots({}, home) == [home / ".local/share/gptme/logs"]
    assert GptmeSource().default_roots({"XDG_DATA_HOME": "/d"}, home) == [Path("/d/gptme/logs")]
    assert GptmeSource().default_roots({"GPTME_LOGS_HOME": "/l"}, home) == [Path("/l")]
    root = tmp_path / "gptme" / "logs"
    shutil.copytree(SAMPLE, root)
    for path in (tmp_path, tmp_path / "gptme", root):
        assert GptmeSource().recognise(path) == root
    assert GptmeSource().recognise(root / "native") == root / "native"


# --- conversations made by hand -------------------------------------------------------------


def line(role: str, content: str, second: int = 0, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "timestamp": f"2026-11-27T10:00:{second:02}.000000",
            **more}


def made(root: Path, *rows: dict[str, Any], name: str = "talk") -> Path:
    grown.write_lines(root / name / "conversation.jsonl", rows)
    return root / name


def only(root: Path) -> SessionDraft:
    return grown.only(GptmeSource(), root)


def test_code_that_was_not_run_is_text(tmp_path: Path) -> None:
    made(tmp_path, line("user", "go"), line("assistant", "```shell\nrm -rf x\n```"),
         line("user", "<system>No tool call detected</system>", 1),
         line("assistant", "````save a.md\n```shell\nls\n```\n````", 2),
         line("system", "Saved to a.md", 3))  # fmt: skip
    draft = only(tmp_path)
    assert grown.prompts(draft.messages) == ["go"]
    assert calls(draft.messages) == [{"id": None, "name": "save", "status": "ok"}]
    assert grown.calls(draft.messages)[0].data["input"]["content"] == "```shell\nls\n```"
    assert draft.messages[1].parts[0].data["text"] == "```shell\nrm -rf x\n```"


@pytest.mark.parametrize(("result", "status"), [
    ("Declined by user", "denied"), ("Error: no such tool", "error"),
    ("Ran command: `x`\n\n```stdout\nReturn code: 3\n```\n", "ok"),
    ("Ran command: `x`\n\nReturn code: 3\n", "error"), ("exited (code 2) at once", "error"),
])  # fmt: skip
def test_states_are_in_the_words_of_results(tmp_path: Path, result: str, status: str) -> None:
    made(tmp_path, line("user", "go"), line("assistant", "```shell\nx\n```"),
         line("system", result))  # fmt: skip
    assert [one["status"] for one in calls(only(tmp_path).messages)] == [status]


def test_results_are_joined_by_id_and_in_order(tmp_path: Path) -> None:
    made(tmp_path, line("user", "go"),
         line("assistant", '@shell(a): {"command": "x {"}\n@shell(b): {"command": "y"}'),
         line("system", "second", 1, call_id="b"), line("system", "first", 2, call_id="a"),
         line("assistant", "```shell\n1\n```\n```ipython\n2\n```", 3), line("system", "one", 4),
         line("system", "two", 5),
         line("assistant", "<tool-use>\n<shell>z</shell>\n</tool-use>", 6))  # fmt: skip
    draft = only(tmp_path)
    assert [part.data.get("output") for part in grown.calls(draft.messages)] == [
        "first", "second", "one", "two", None]
    assert grown.calls(draft.messages)[0].data["input"] == {"command": "x {"}
    assert calls(draft.messages)[-1]["status"] == "no result"


def test_notes_are_no_results(tmp_path: Path) -> None:
    made(tmp_path, line("user", "go"), line("assistant", "```shell\n1\n```"),
         line("system", "<budget:used>1</budget:used>", 1), line("system", "note", 2, ui_only=True))
    draft = only(tmp_path)
    assert calls(draft.messages) == []
    assert (len(named(draft, "system prompt")), len(named(draft, "notice"))) == (1, 1)


def test_an_interrupted_answer(tmp_path: Path) -> None:
    made(tmp_path, line("user", "go"), line("assistant", "half ... ^C Interrupted", 1))
    assert only(tmp_path).metadata["activity"]["state"] == "interrupted"
    made(tmp_path, line("user", "go"))
    assert only(tmp_path).metadata["activity"]["state"] == "running"


def test_a_command_that_is_about_to_be_done_is_not_shown(tmp_path: Path) -> None:
    made(tmp_path, line("user", "go"), line("assistant", "ok", 1), line("user", "/undo 2", 2))
    assert [one.role for one in only(tmp_path).messages] == ["user", "assistant"]
    made(tmp_path, line("user", "/home/mira is full"))
    assert grown.prompts(only(tmp_path).messages) == ["/home/mira is full"]


def test_a_compacted_conversation_shows_all_that_was_said(tmp_path: Path) -> None:
    first = [line("system", "prompt", hide=True), line("user", "one", 1),
             line("assistant", "1", 2, metadata={"usage": {"input_tokens": 5}}),
             line("user", "two", 3), line("assistant", "2", 4)]  # fmt: skip
    folder = made(tmp_path, first[0], line("system", "so far", 6), *first[3:],
                  line("user", "three", 7), line("assistant", "3", 8))  # fmt: skip
    grown.write_lines(folder / "lossless.jsonl", [*first, line("user", "/compact now", 5)])
    draft = only(tmp_path)
    assert grown.prompts(draft.messages) == ["one", "two", "three"]
    assert [one.metadata["origin"] for one in draft.messages if one.role == "user"] == [
        "human", "human", "command", "human"]
    away = [grown.words(one) for one in draft.messages
            if one.metadata.get("backscroll", {}).get("compacted_away")]  # fmt: skip
    assert away == ["one", "1", "/compact now"]
    place = next(nth for nth, one in enumerate(draft.messages) if "compaction" in one.metadata)
    assert grown.words(draft.messages[place - 1]) == "/compact now"
    assert grown.tokens(draft.messages)["input"] == 5


def test_output_includes_what_was_reasoned(tmp_path: Path) -> None:
    usage = {"input_tokens": 4, "cache_read_tokens": 3, "cache_creation_tokens": 2,
             "output_tokens": 10, "reasoning_tokens": 6}
    made(tmp_path, line("user", "go"), line("assistant", "ok", 1, metadata={
        "model": "a/b/c", "usage": usage, "cost": 0.5}))  # fmt: skip
    draft = only(tmp_path)
    assert grown.tokens(draft.messages) == {
        "input": 4, "output": 4, "reasoning": 6, "cache_read": 3, "cache_write": 2}
    assert draft.messages[1].metadata["cost_usd"] == 0.5
    assert draft.model == {"provider_id": "a", "model_id": "b/c"}


def test_no_more_was_reasoned_than_put_out(tmp_path: Path) -> None:
    usage = {"input_tokens": 1, "output_tokens": 4, "reasoning_tokens": 9}
    made(tmp_path, line("user", "go"), line("assistant", "ok", 1, metadata={"usage": usage}))
    found = grown.tokens(only(tmp_path).messages)
    assert (found["output"], found["reasoning"]) == (0, 4)


def test_a_result_that_was_taken_back_is_of_no_call_that_was_not(tmp_path: Path) -> None:
    go, ran = line("user", "go"), line("assistant", "```shell\nls\n```", 1)
    folder = made(tmp_path, go, ran, line("user", "on", 4))
    grown.write_lines(folder / "branches/main-undo-0.jsonl", [
        go, ran, line("system", "Ran command", 2), line("user", "no", 3)])
    draft = only(tmp_path)
    assert grown.calls(grown.visible(draft)) == []
    assert ["hidden_at" in one.metadata for one in draft.messages] == [
        False, False, True, True, False]  # fmt: skip


def test_events_tell_the_zone_of_the_lines(tmp_path: Path) -> None:
    folder = made(tmp_path, line("user", "go"))
    grown.write_lines(folder / "events.jsonl", [{
        "seq": 1, "ts": "2026-11-27T04:30:00.100+00:00", "type": "message_append",
        "payload": {"message": line("user", "go")}}])  # fmt: skip
    assert only(tmp_path).created_at == grown.ms(0) - 5 * 3600_000 - 1800_000


def test_equal_lines_are_messages_of_their_own(tmp_path: Path) -> None:
    made(tmp_path, line("user", "go"), line("assistant", "ok"), line("user", "go"))
    assert len({one.source_id for one in only(tmp_path).messages}) == 3


def test_of_forks_of_forks_each_is_under_its_own(tmp_path: Path) -> None:
    def events(*names: str) -> list[dict[str, Any]]:
        return [{"seq": nth, "type": "message_append",
                 "payload": {"message": line("user", f"/fork {name}")}}
                for nth, name in enumerate(names)]  # fmt: skip

    for name, forks in (("main", ("f1", "f2")), ("f1", ("f1", "g")), ("f2", ("f1", "f2")),
                        ("g", ("f1", "g"))):  # fmt: skip
        folder = made(tmp_path, line("user", "go"), line("assistant", name), name=name)
        grown.write_lines(folder / "events.jsonl", events(*forks))
    drafts, _ = grown.read_all(GptmeSource(), tmp_path)
    assert {name: one.lineage and one.lineage.parent_source_id for name, one in drafts.items()} == {
        "main": None, "f1": "main", "f2": "main", "g": "f1"}


def test_forks_without_events_are_known_by_their_beginning(tmp_path: Path) -> None:
    root, go, ok = tmp_path / "logs", line("user", "go"), line("assistant", "ok", 1)
    first, dated = line("user", "on", 2), "2026-11-27-calm-fox"
    for name, lines in (("a-fork", (go, ok, first, line("assistant", "1", 3))),
                        ("b-fork", (go, ok, first, line("user", "2", 4))),
                        (dated, (go, ok, line("user", "went on", 5))),
                        ("just-forked", (go, ok, line("user", "went on", 5))),
                        ("z-fork", (go, ok, first, line("assistant", "1", 3), line("user", "z"))),
                        ("other", (line("user", "go", 7), ok)),
                        ("named", (line("user", "go", 8),)),
                        ("2026-12-01-odd-owl", (line("user", "go", 8), ok))):  # fmt: skip
        made(root, *lines, name=name)
    library = grown.synced(GptmeSource(), root, tmp_path / "library.db")
    parents = dict(library.connection.execute(
        "SELECT json_extract(s.metadata_json, '$.source.id'), json_extract(p.metadata_json,"
        " '$.source.id') FROM chat_sessions AS s LEFT JOIN chat_sessions AS p"
        " ON p.id = s.parent_id"
    ).fetchall())  # fmt: skip
    assert parents == {"a-fork": dated, "b-fork": dated, dated: None, "just-forked": dated,
                       "z-fork": "a-fork", "other": None, "named": None,
                       "2026-12-01-odd-owl": "named"}  # fmt: skip
    library.close()


def test_a_conversation_that_is_written_anew_keeps_its_ids(tmp_path: Path) -> None:
    folder = made(tmp_path, line("user", "go"), line("assistant", "ok", 1), line("user", "on", 2))
    source = GptmeSource()
    (unit,) = source.units(tmp_path, [])
    follower = source.follower(tmp_path, unit)
    before = [one.source_id for one in follower.read(unit).sessions[0].messages]
    other = made(tmp_path / "other", line("user", "go"), line("assistant", "ok", 1))
    (other / "conversation.jsonl").replace(folder / "conversation.jsonl")
    (unit,) = source.units_at(tmp_path, [str(folder / "conversation.jsonl")]) or []
    assert [one.source_id for one in follower.read(unit).sessions[0].messages] == before[:2]


@pytest.mark.parametrize("step", [None, 41])
def test_lines_that_grow_read_as_a_whole(tmp_path: Path, step: int | None) -> None:
    shutil.copytree(SAMPLE, tmp_path / "logs")
    root = tmp_path / "logs"
    grown.grows_like_a_whole(GptmeSource, root, root / "native/conversation.jsonl", step=step)
