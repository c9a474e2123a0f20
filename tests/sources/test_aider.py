"""aider: the genuine sample, and what it lacks made by hand after the format page."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from store.sources.aider import AiderSource
from store.sources.aider.blocks import blocks_of, typed_at
from store.sources.base.drafts import SessionDraft
from store.sources.base.protocol import Problem
from tests.sources.grown import (
    check_records,
    only,
    prompts,
    read_all,
    snapshot,
    synced,
    tokens,
    words,
)

DATA = Path(__file__).parent.parent / "data" / "aider"
HISTORY = ".aider.chat.history.md"
START = "# aider chat started at 2026-11-27 10:00:00\n\n"


def local(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp).timestamp() * 1000)


def history(tmp_path: Path, text: str, *, typed: str = "") -> Path:
    path = tmp_path / "repo" / HISTORY
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if typed:
        (path.parent / ".aider.input.history").write_text(typed)
    return path


def read(tmp_path: Path, text: str, *, typed: str = "") -> SessionDraft:
    return only(AiderSource(), history(tmp_path, text, typed=typed))


def events(draft: SessionDraft) -> list[dict[str, object]]:
    return [p.data["data"] for m in draft.messages for p in m.parts if p.type == "data-event"]


def test_default_roots(tmp_path: Path) -> None:
    source = AiderSource()
    assert source.default_roots({}, tmp_path) == [tmp_path / HISTORY]
    repo = tmp_path / "code"
    (repo / ".git").mkdir(parents=True)
    (repo / "deep").mkdir()
    found = source.default_roots({"AIDER_CHAT_HISTORY_FILE": "/h.md", "PWD": str(repo / "deep")},
                                 tmp_path)  # fmt: skip
    assert found == [Path("/h.md"), repo / HISTORY, tmp_path / HISTORY]


def test_recognised_by_content(tmp_path: Path) -> None:
    source = AiderSource()
    path = history(tmp_path, START + "#### hi  \n")
    assert source.recognise(path) == path
    assert source.recognise(path.parent) == path
    (path.parent / ".git").mkdir()
    assert source.recognise(path.parent) is None  # It stays a workspace.
    assert only(source, path.parent).workspace_root == str(path.parent)
    (tmp_path / "README.md").write_text("# aider chat started at some time\n")
    assert source.recognise(tmp_path / "README.md") is None
    assert source.recognise(tmp_path / "missing") is None


def test_the_sample() -> None:
    drafts, problems = read_all(AiderSource(), DATA / HISTORY)
    assert problems == []
    first, second = drafts.values()
    assert first.created_at == local("2026-11-27 22:29:08")
    assert first.updated_at == local("2026-11-27 22:29:11.428")
    assert second.created_at == local("2026-11-27 22:29:13")
    assert (first.title, second.title) == ("MOCK:aider change it", "MOCK:hello2 and now?")
    for draft in (first, second):
        assert draft.model == {"provider_id": "openai", "model_id": "mock-1"}
        assert draft.metadata["version"] == "0.86.2"
        assert [m.role for m in draft.messages] == ["system", "user", "assistant", "system"]
        check_records(draft)
    assert tokens(first.messages) == {"input": 655, "output": 24, "reasoning": 0,
                                      "cache_read": 0, "cache_write": 0}  # fmt: skip
    assert tokens(second.messages)["input"] == 703
    assert "backscroll" not in first.messages[2].metadata
    assert words(first.messages[2]).endswith("ALPHA\n>>>>>>> REPLACE\n```")
    assert events(first)[-1]["commits"] == [{"hash": "f0bac1d", "subject": "feat: mock commit"}]
    assert events(first)[-1]["files"] == ["a.txt"]
    assert first.lineage is None
    assert second.lineage is not None
    assert (second.lineage.kind, second.lineage.parent_source_id) == (
        "continuation", first.source_id,
    )  # fmt: skip


def test_records_are_the_file() -> None:
    drafts, _ = read_all(AiderSource(), DATA / HISTORY)
    body = (DATA / HISTORY).read_bytes()
    assert b"\n" + b"".join(b"\n".join(d.records) for d in drafts.values()) == body


def test_prompts_of_many_lines_and_prompts_in_a_row(tmp_path: Path) -> None:
    text = START + "#### one  \n####   \n#### more  \n\n#### two  \n\nsaid\n\nand more\n"
    draft = read(tmp_path, text)
    assert prompts(draft.messages) == ["one\n\nmore", "two"]
    assert words(draft.messages[-1]) == "said\n\nand more"


def test_commands_and_shell_lines(tmp_path: Path) -> None:
    draft = read(
        tmp_path, START + "#### /add a.py b.py  \n> Added\n\n#### !ls -1  \n\n#### /ok?  \n"
    )
    typed = [m for m in draft.messages if m.role == "user"]
    assert [m.metadata for m in typed] == [
        {"origin": "command", "backscroll": {"command": {"name": "/add", "args": "a.py b.py"}}},
        {"origin": "shell", "backscroll": {"shell": "ls -1"}},
        {"origin": "human"},
    ]
    assert draft.title == "/ok?"


def test_counts_costs_and_caches(tmp_path: Path) -> None:
    draft = read(tmp_path, START + (
        "> Main model: anthropic/claude-x with diff edit format, infinite output\n\n"
        "#### one  \n\nsaid\n\n"
        "> Tokens: 5.2k sent, 1.1k cache write, 2.0k cache hit, 310 received."
        " Cost: $0.0125 message, $0.02 session.  \n\n"
        "#### two  \n\n> Tokens: 1,200 sent, 0 received.  \n"
    ))  # fmt: skip
    first, second = [m for m in draft.messages if m.role == "assistant"]
    assert first.metadata["usage"] == {"input": 2100, "output": 310, "reasoning": 0,
                                       "cache_read": 2000, "cache_write": 1100}  # fmt: skip
    assert first.metadata["cost_usd"] == 0.0125
    assert first.metadata["backscroll"] == {"usage_rounded": True}
    assert (second.parts, second.metadata["usage"]["input"]) == ([], 1200)
    assert draft.model == {"provider_id": "anthropic", "model_id": "claude-x"}
    check_records(draft)


def test_errors_and_interruptions(tmp_path: Path) -> None:
    draft = read(tmp_path, START + (
        "> Model: gpt-x with whole edit format\n#### one  \n\n"
        "> litellm.BadRequestError: no such model\n\n#### two  \n\nhalf an\n\n"
        "> ^C KeyboardInterrupt  \n"
    ))  # fmt: skip
    (error,) = [p for m in draft.messages for p in m.parts if p.type == "data-error"]
    assert error.data["data"]["message"] == "litellm.BadRequestError: no such model"
    answer = next(m for m in draft.messages if m.role == "assistant")
    assert "aborted_at" in answer.metadata["backscroll"]
    assert draft.model == {"provider_id": "unknown", "model_id": "gpt-x"}


def test_times_of_prompts(tmp_path: Path) -> None:
    typed = ("\n# 2026-11-27 09:00:00.000000\n+one\n\n# 2026-11-27 10:00:05.250000\n+one\n"
             "\n# 2026-11-27 10:00:05.250100\n+one\n\n# 2026-11-27 10:00:09\n+two\n+lines\n"
             "\n# no time\n+three\n")  # fmt: skip
    draft = read(tmp_path, START + "#### one  \n\nsaid\n\n#### two  \n#### lines  \n", typed=typed)
    assert [m.created_at for m in draft.messages] == [
        local("2026-11-27 10:00:05.250"), local("2026-11-27 10:00:05.250"),
        local("2026-11-27 10:00:09"),
    ]  # fmt: skip
    assert len(typed_at(typed.encode())) == 3


def test_sessions_of_one_second_and_text_before_the_first(tmp_path: Path) -> None:
    odd = "# aider chat started at 2026-99-99 10:00:00\n#### three  \n"
    text = f"{START}#### one  \n\n{START}#### two  \n\n{odd}"
    path = history(tmp_path, "An old note that is no session.\n" + text)
    drafts, problems = read_all(AiderSource(), path)
    assert [key.split("-", 1)[1] for key in drafts] == ["20261127T100000", "20261127T100000-2"]
    first, second = drafts.values()
    assert prompts(first.messages) == ["one"]
    assert prompts(second.messages) == ["two", "three"]
    assert [problem.line for problem in problems] == [1]


def test_an_empty_session_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = history(tmp_path, START)
    assert only(AiderSource(), path).messages == []
    path.write_bytes(START.encode() + b"#### on\xff  \n\n\xfe\x00 said")
    draft = only(AiderSource(), path)
    assert prompts(draft.messages) == ["on\ufffd"]
    path.write_text("")
    assert read_all(AiderSource(), path) == ({}, [])
    path.write_text("no header at all, but more than a few bytes\n")
    drafts, problems = read_all(AiderSource(), path)
    assert drafts == {} and len(problems) == 1


def test_a_history_that_went_away_costs_itself(tmp_path: Path) -> None:
    path = history(tmp_path, START + "#### one  \n")
    source = AiderSource()
    (unit,) = source.units(path, [])
    path.write_text(START.replace("10:00:00", "11:00:00"))
    assert source.read(path, unit).problems[0].reason.startswith("the session is no longer")
    path.unlink()
    assert len(source.read(path, unit).problems) == 1
    problems: list[Problem] = []
    assert list(source.units(path, problems)) == [] and len(problems) == 1


@pytest.mark.parametrize("step", [1, 7, 400])
def test_a_history_followed_is_a_history_read(tmp_path: Path, step: int) -> None:
    shutil.copytree(DATA, tmp_path / "repo")
    path = tmp_path / "repo" / HISTORY
    body = path.read_bytes()
    path.write_bytes(b"")
    source = AiderSource()
    last: dict[str, SessionDraft] = {}
    for start in range(0, len(body), step):
        with path.open("ab") as file:
            file.write(body[start : start + step])
        for unit in source.units_at(path, [str(path)]) or ():
            for draft in source.follower(path, unit).read(unit).sessions:
                last[draft.source_id] = draft
    assert last == read_all(AiderSource(), path)[0]


def test_only_the_last_session_moves(tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path / "repo")
    path = tmp_path / "repo" / HISTORY
    source = AiderSource()
    before = list(source.units(path, []))
    with path.open("a") as file:
        file.write("\n#### and more  \n")
    after = source.units_at(path, [str(path)])
    assert after is not None
    assert [one.stamps == two.stamps for one, two in zip(before, after, strict=True)] == [
        True, False,
    ]  # fmt: skip
    assert source.units_at(path, [str(path.parent / "a.txt")]) == []
    path.write_text(path.read_text().replace("MOCK:aider change it", "Mock: a longer prompt"))
    assert prompts(read_all(source, path)[0][next(iter(read_all(source, path)[0]))].messages) == [
        "Mock: a longer prompt"
    ]


def test_blocks_joined_are_the_text() -> None:
    text = (DATA / HISTORY).read_text()
    blocks = list(blocks_of(text))
    assert "\n".join(line for block in blocks for line in block.lines) == text


def test_source_is_untouched(tmp_path: Path) -> None:
    before = snapshot(DATA)
    database = synced(AiderSource(), DATA / HISTORY, tmp_path / "store.db")
    total = database.connection.execute("SELECT sum(total_tokens) FROM chat_sessions").fetchone()
    database.close()
    assert total[0] == 655 + 24 + 703 + 3
    assert snapshot(DATA) == before
