"""One answer of a model is counted once, in however many files and sessions it stands."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.errors import Ambiguous
from store.language.query import parse
from store.queries import details, sessions
from store.queries.sessions import SessionFilter
from store.sources.registry import source
from store.stats.statistics import Figures
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources.claude_rows import SESSION, File, tool
from tests.sources.codex_lines import START, Lines, thread_id
from tests.store.counted import counted, counted_by

OTHER = "22222222-2222-4222-8222-222222222222"
SAMPLES = Path(__file__).parents[1] / "data"
A, B, C = thread_id(1), thread_id(2), thread_id(3)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the folder of a Claude Code project that has no session yet."""
    folder = tmp_path / "claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    return folder


Synced = Callable[..., Database]
Spent = Callable[[Path], Figures]


@pytest.fixture
def synced(opened: Callable[[Path], Database]) -> Synced:
    """A function that reads sessions into a library, and opens it, or a copy on a server."""

    def read(root: Path, kind: str = "claude-code") -> Database:
        path = root.parent / "library.db"
        with contextlib.closing(open_database(path, create=True)) as db:
            Sync(db).run([Target(source(kind), root)])
        return opened(path)

    return read


@pytest.fixture
def spent(synced: Synced) -> Spent:
    """A function that says what a project folder's tree spent, in all and in the details."""

    def read(folder: Path) -> Figures:
        db = synced(folder.parents[1])
        whole = counted(db)
        ids = [row[0] for row in db.connection.execute("SELECT id FROM chat_sessions")]
        by_details = sum(details.timeline(db, session).spent.total for session in ids)
        alone = sum(counted(db, [name]).total for name in ids)
        assert by_details == alone == whole.total
        return whole

    return read


def answers(*numbers: int, session: str = File().session) -> File:
    """Return a session with a prompt and an answer for each number; each costs its number."""
    file = File(session)
    for number in numbers:
        file.user(f"prompt {number}")
        file.assistant(f"answer {number}", id=f"msg_{number}", requestId=f"req_{number}",
                       usage=usage(number))  # fmt: skip
    return file


def usage(output: int, given: int = 0) -> dict[str, int]:
    return {"input_tokens": given, "output_tokens": output}


@pytest.mark.parametrize(
    "name", ["{} (1)", "{} - Copy", "{} copy 2", "{} (conflicted copy 2026-11-20)", "renamed"]
)
def test_a_copy_of_a_file(root: Path, spent: Spent, name: str) -> None:
    file = answers(1, 10)
    file.write(root)
    file.lines += answers(1, 10, 100).lines[4:]
    file.write(root, name.format(file.session))
    assert spent(root).total == 111


def test_a_copy_in_another_project(root: Path, spent: Spent) -> None:
    file = answers(1, 10)
    file.write(root)
    file.lines += answers(1, 10, 100).lines[4:]
    file.write(root.parent / "-elsewhere", OTHER)
    whole = spent(root)
    assert (whole.total, whole.answers, whole.copies) == (111, 3, 2)


def test_a_gateway_numbers_the_answers_of_each_session(root: Path, spent: Spent) -> None:
    for place, session in enumerate((File().session, OTHER)):
        file = File(session)
        file.user("hi")
        file.assistant("hello", id="msg_1", requestId=f"req_{place}", usage=usage(5))
        file.assistant("hello", id="msg_1", requestId=f"again_{place}", usage=usage(5))
        file.write(root)
    whole = spent(root)
    assert (whole.total, whole.answers, whole.copies) == (20, 4, 0)


def test_a_gateway_without_requests_is_told_apart_by_time_and_words(
    root: Path, spent: Spent
) -> None:
    for place, session in enumerate((File().session, OTHER)):
        file = File(session)
        file.at += place * 60_000
        file.user("hi")
        file.assistant(f"hello {place}", id="msg_1", usage=usage(5))
        file.write(root)
    assert spent(root).total == 10


def test_a_copy_that_has_lost_its_request(root: Path, spent: Spent) -> None:
    file = answers(1, 10)
    file.write(root)
    for line in file.lines:
        line.pop("requestId", None)
        line["uuid"] += "-copied"
        line["parentUuid"] = line["parentUuid"] and line["parentUuid"] + "-copied"
        line["sessionId"] = OTHER
    file.write(root, OTHER)
    assert spent(root).total == 11


def test_a_resumed_copy_with_new_times_and_no_requests(root: Path, spent: Spent) -> None:
    for place, session in enumerate((File().session, OTHER)):
        file = File(session, version="0.2.126")
        file.at += place * 600_000
        file.user("hi")
        file.assistant("hello", id="msg_abc", usage=usage(5))
        if place:
            file.user("more")
            file.assistant("sure", id="msg_def", usage=usage(7))
        file.write(root)
    assert spent(root).total == 12


def test_an_answer_is_counted_with_its_largest_usage(root: Path, spent: Spent) -> None:
    file = answers(1)
    file.assistant("cut", id="msg_2", requestId="req_2", usage=usage(1))
    file.write(root, OTHER)
    file.lines[-1]["message"]["usage"] = usage(50)
    file.write(root)
    assert spent(root).total == 51


def test_a_helper_that_repeats_an_answer_of_its_parent(root: Path, spent: Spent) -> None:
    file = answers(1, 10)
    file.write(root)
    helper = answers(1, 10)
    for line in helper.lines:
        line |= {"isSidechain": True, "agentId": "aprompt_suggestion-1"}
    helper.user("suggest")
    helper.assistant("next", id="msg_3", requestId="req_3", usage=usage(100))
    helper.write(root / file.session / "subagents", "agent-aprompt_suggestion-1")
    whole = spent(root)
    assert (whole.total, whole.copies) == (111, 2)


def test_a_replayed_conversation_in_one_file(root: Path, spent: Spent) -> None:
    file = answers(1, 10)
    first = file.lines[:]
    file.last = None
    for line in answers(1, 10, 100).lines:
        file.at += 1000
        copied = {key: value for key, value in line.items() if key not in ("uuid", "parentUuid")}
        kind = copied.pop("type")
        file.row(kind, **{key: copied[key] for key in ("message", "requestId") if key in copied})
    assert len(file.lines) == len(first) + 6
    file.write(root)
    whole = spent(root)
    assert (whole.total, whole.answers, whole.copies) == (111, 3, 2)


def fork(file: File, session: str = OTHER, *, marked: bool = True) -> File:
    """Return a session that has the rows of another, as ``--fork-session`` writes it.

    Args:
        file: The parent.
        session: The fork's id.
        marked: Whether answers name the session that asked for them.
    """
    copied = File(session)
    copied.at, copied.last = file.at, file.last
    copied.lines = [{**line, "sessionId": session} for line in file.lines if "uuid" in line]
    for line in copied.lines if marked else ():
        if line["type"] == "assistant":
            line["requestSessionId"] = file.session
    return copied


@pytest.mark.parametrize("marked", [True, False])
class TestRunningTotals:
    @pytest.fixture(autouse=True)
    def _synced(self, synced: Synced) -> None:
        self.synced = synced

    def cost(self, root: Path, *files: File) -> dict[str, float]:
        for file in files:
            file.write(root)
        db = self.synced(root.parents[1])
        whole = counted(db)
        titles = {key: each.told_usd for key, each in counted_by(db, "session").items()}
        sessions = dict(db.connection.execute(
            f"SELECT {db.form.source_id('s')}, id FROM chat_sessions s").fetchall())
        alone = {name: counted(db, [own]).told_usd for name, own in sessions.items()}
        assert alone == pytest.approx({name: titles[own] for name, own in sessions.items()})
        return {"all": round(whole.told_usd, 6)} | {
            name: round(value, 6) for name, value in alone.items()
        }

    def test_a_fork_goes_on_with_its_parents_total(self, root: Path, marked: bool) -> None:
        parent = answers(1, 10)
        parent.note("cost-state", totalCostUSD=0.5, startTime=7)
        child = fork(parent, marked=marked)
        child.user("own")
        child.assistant("own", id="msg_own", requestId="req_own", usage=usage(2))
        child.note("cost-state", totalCostUSD=0.75, startTime=7)
        assert self.cost(root, parent, child) == {
            "all": 0.75, parent.session: 0.5, OTHER: 0.25
        }  # fmt: skip

    def test_both_go_on(self, root: Path, marked: bool) -> None:
        parent = answers(1)
        parent.note("cost-state", totalCostUSD=0.5, startTime=7)
        child = fork(parent, marked=marked)
        for file, name in ((parent, "a"), (child, "b")):
            file.user("own")
            file.assistant("own", id=f"msg_{name}", requestId=f"req_{name}", usage=usage(2))
        parent.note("cost-state", totalCostUSD=0.9, startTime=7)
        child.note("cost-state", totalCostUSD=0.6, startTime=7)
        assert self.cost(root, parent, child) == {
            "all": 1.0, parent.session: 0.9, OTHER: 0.1
        }  # fmt: skip

    def test_without_the_parent_the_fork_costs_its_total(self, root: Path, marked: bool) -> None:
        parent = answers(1)
        parent.note("cost-state", totalCostUSD=0.5, startTime=7)
        child = fork(parent, marked=marked)
        child.user("own")
        child.assistant("own", id="msg_own", requestId="req_own", usage=usage(2))
        child.note("cost-state", totalCostUSD=0.75, startTime=7)
        assert self.cost(root, child) == {"all": 0.75, OTHER: 0.75}

    def test_a_new_counter_begins_at_nothing(self, root: Path, marked: bool) -> None:
        file = answers(1)
        file.note("cost-state", totalCostUSD=0.5, startTime=7)
        file.user("more")
        file.assistant("more", id="msg_2", requestId="req_2", usage=usage(2))
        file.note("cost-state", totalCostUSD=0.25, startTime=8)
        assert self.cost(root, file) == {"all": 0.75, file.session: 0.75}


def test_a_call_in_an_answer_without_an_id_of_the_api(root: Path, spent: Spent) -> None:
    file = File()
    file.user("run it")
    for place in range(2):
        file.row("assistant", message={"role": "assistant", "content": [tool("t", command="ls")],
                                       "usage": usage(3)})  # fmt: skip
        file.result("t", f"out {place}")
    file.write(root)
    shutil.copy(root / f"{file.session}.jsonl", root / f"{OTHER}.jsonl")
    whole = spent(root)
    assert (whole.total, whole.answers, whole.copies) == (6, 2, 2)


class TestCodexForks:
    """A fork by Codex 0.98, whose parent's ``session_meta`` got one more key."""

    @pytest.fixture(autouse=True)
    def _synced(self, synced: Synced) -> None:
        self.synced = synced

    def total(self, tmp_path: Path, *forks: str, parent: bool) -> int:
        home = tmp_path / "codex"
        lines = Lines(A, None)
        for place in (1, 2):
            lines.user(f"prompt {place}")
            lines.says(f"answer {place}")
            lines.count(1000 * place, 10**place)
        if parent:
            lines.write(home)
        for number, name in enumerate(forks):
            fork = Lines(name, None, START + 60_000 * (number + 1), forked_from_id=A)
            fork.at -= 100
            for line in lines.lines:
                payload = dict(line["payload"])
                if line["type"] == "session_meta":
                    payload["multi_agent_version"] = 2
                fork.add(line["type"], payload)
                fork.at -= 100
            fork.at += 5000
            fork.user("mine")
            fork.says("yours")
            fork.count(5000 + number, 1000)
            fork.write(home)
        return counted(self.synced(home, "codex")).total

    def test_with_its_parent(self, tmp_path: Path) -> None:
        assert self.total(tmp_path, B, parent=True) == 1110

    def test_without_its_parent(self, tmp_path: Path) -> None:
        assert self.total(tmp_path, B, parent=False) == 1110

    @pytest.mark.parametrize("parent", [True, False])
    def test_two_forks(self, tmp_path: Path, parent: bool) -> None:
        assert self.total(tmp_path, B, C, parent=parent) == 2110


class TestTwoFilesOfOneSession:
    """Files that claim one id and have different turns are both shown, one as a copy."""

    def check(self, db: Database, path: Path, copy: Path, total: int) -> None:
        rows = db.connection.execute(
            f"SELECT s.id, {db.form.fact('s', 'source.path')},"
            f" {db.form.fact('s', 'source.copy_of')}, '' FROM chat_sessions s").fetchall()
        rows = [(*row[:3], "".join(text for (text,) in db.connection.execute(
            "SELECT data_json FROM chat_parts WHERE type = 'text' AND session_id = ?",
            (row[0],)).fetchall())) for row in rows]
        assert {row[1] for row in rows} == {str(path), str(copy)}
        assert sorted(row[2] is None for row in rows) == [False, True]
        for words in ("shared", "only here", "only there"):
            assert any(words in row[3] for row in rows), words
        assert all("shared" in row[3] for row in rows)
        whole = counted(db)
        assert whole.total == total
        with pytest.raises(Ambiguous) as caught:
            sessions.resolve(db, rows[0][1] and self.name(db))
        found = {detail for choice in caught.value.choices for detail in choice.details}
        assert {str(path), str(copy)} <= found
        said, choices = str(caught.value), caught.value.choices
        assert [one.at for one in choices] == sorted((one.at for one in choices), reverse=True)
        assert str(path) in said and str(copy) in said and said.count(" (202") == 2
        asked = parse(f"id:{self.name(db)}", now=START)
        listed = sessions.page(db, SessionFilter(archived="include", fields=asked.conditions))
        assert [row.id for row in listed] == [one.id for one in choices]
        again = sum(1 for row in rows if sessions.resolve(db, row[0]).id == row[0])
        assert again == 2

    def name(self, db: Database) -> str:
        (found,) = {row[0] for row in db.connection.execute(
            f"SELECT {db.form.source_id('s')} FROM chat_sessions s").fetchall()}
        return str(found)

    @pytest.mark.parametrize("where", ["beside", "elsewhere"])
    def test_claude_code(self, root: Path, synced: Synced, where: str) -> None:
        def file(*own: tuple[str, int]) -> File:
            made = File()
            for text, number in (("shared", 1), *own):
                made.user(text)
                made.assistant(f"re {text}", id=f"msg_{text}", requestId=f"req_{text}",
                               usage=usage(number))  # fmt: skip
            return made

        path = file(("only here", 10)).write(root)
        other = file(("only there", 100))
        if where == "beside":
            copy = other.write(root, f"{SESSION} (1)")
        else:
            copy = other.write(root.parent / "-elsewhere")
        self.check(synced(root.parents[1]), path, copy, 111)

    @pytest.mark.parametrize("where", ["beside", "archived"])
    def test_codex(self, tmp_path: Path, synced: Synced, where: str) -> None:
        def lines(text: str) -> Lines:
            made = Lines(A, None)
            made.turn("shared", "re shared", "r1")
            made.turn(text, f"re {text}", text)
            return made

        home = tmp_path / "codex"
        path = lines("only here").write(home)
        other = lines("only there")
        other.at = START
        if where == "beside":
            copy = path.with_stem(f"{path.stem} (1)")
            copy.write_text(other.text())
        else:
            copy = other.write(home, folder="archived_sessions")
        self.check(synced(home, "codex"), path, copy, 3 * 110)


def test_numbered_answers_without_requests_are_told_apart_by_their_times(
    root: Path, spent: Spent
) -> None:
    for place, session in enumerate((File().session, OTHER)):
        file = File(session)
        file.at += place * 60_000
        for number in range(2):
            file.user("hi")
            file.assistant("ok", id=f"msg_{number}", usage=usage(5))
        file.write(root)
    whole = spent(root)
    assert (whole.total, whole.answers, whole.copies) == (20, 4, 0)


def test_numbered_answers_of_one_moment_are_told_apart_by_what_was_asked(
    root: Path, spent: Spent
) -> None:
    for place, session in enumerate((File().session, OTHER)):
        file = File(session)
        file.user("hi")
        file.assistant(f"hello {place}", id="msg_1", usage=usage(5) | {"input_tokens": place + 1})
        file.write(root)
    assert spent(root).answers == 2
