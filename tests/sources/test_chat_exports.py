"""Exports in archives: read in a stream, never unpacked, the newest of several decides."""

from __future__ import annotations

import builtins
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.config import SourceSettings
from store.engine.database import Database, open_database
from store.sources.base.archives import ArchiveError, ZipArchive
from store.sources.base.chat_exports import elements
from store.sources.base.protocol import Problem
from store.sources.chatgpt import ChatgptSource
from store.sync.engine import Sync
from store.sync.targets import Target, default_targets
from tests.sources import grown
from tests.sources.chat_exports import listed, zipped
from tests.sources.samples import DATA
from tests.sources.test_chatgpt import node, talk

FOLDER, ZIP = DATA / "chatgpt" / "folder", DATA / "chatgpt" / "export.zip"


def one(name: str = "one", **more: Any) -> bytes:
    return listed([talk(name, node("p", None), **more)])


def problems_of(path: Path) -> list[Problem]:
    drafts, problems = grown.read_all(ChatgptSource(), path)
    assert drafts == {}
    return problems


def test_objects_of_a_list_come_one_by_one_whatever_the_pieces() -> None:
    texts = [b'{"a": "[}\\"{", "b": [{}, {"c": []}]}', b"{}", b'{"x": "\\\\"}']
    body = b"\xef\xbb\xbf [" + b" ,\n".join(texts) + b"] "
    for step in range(1, 40):
        pieces = [body[at : at + step] for at in range(0, len(body), step)]
        found = list(elements(pieces))
        assert [raw for _, raw in found] == texts
        assert all(body[at : at + len(raw)] == raw for at, raw in found)
    around = b'{"v": {"w": 1}, "conversations": [' + b",".join(texts) + b"]}"
    assert [raw for _, raw in elements([around])] == texts
    with pytest.raises(ArchiveError, match="ends in the middle"):
        list(elements([body[:-9]]))


def test_a_torn_list_gives_what_is_whole(tmp_path: Path) -> None:
    body = listed([talk("one", node("a", None)), talk("two", node("b", None))])
    (tmp_path / "conversations.json").write_bytes(body[:-20])
    drafts, problems = grown.read_all(ChatgptSource(), tmp_path)
    assert drafts.keys() == {"one"}
    assert [each.reason for each in problems] == ["the list of conversations ends in the middle"]


@pytest.mark.parametrize("stored", [True, False])
def test_any_place_of_a_zip_is_read_without_what_is_before(tmp_path: Path, stored: bool) -> None:
    body = os.urandom(1 << 16).hex().encode() * 50
    archive = ZipArchive(str(zipped(tmp_path / "x.zip", {"a": body}, stored=stored)))
    assert b"".join(archive.chunks("a")) == body
    for start in (0, 1, 1 << 20, 3_000_000, len(body) - 5, len(body)):
        assert archive.read("a", start, 70_000) == body[start : start + 70_000]


@pytest.mark.long
def test_a_bomb_is_a_problem(tmp_path: Path) -> None:
    zipped(tmp_path / "x.zip", {"conversations.json": b"[" + b" " * (70 << 20)})
    (problem,) = problems_of(tmp_path / "x.zip")
    assert problem.reason == "conversations.json unpacks to more than 64 MiB"


def test_names_that_climb_out_are_left_out(tmp_path: Path) -> None:
    names = ["../conversations.json", "/conversations.json", "C:\\conversations.json",
             "a/../../conversations.json"]  # fmt: skip
    path = zipped(tmp_path / "x.zip", dict.fromkeys(names, one()))
    reasons = [each.reason for each in problems_of(path)]
    assert len(reasons) == 4 and all(each.endswith("outside, left out") for each in reasons)
    assert os.listdir(tmp_path) == ["x.zip"]


def test_encrypted_entries_half_a_zip_and_links_are_problems(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "x.zip", {"conversations.json": one()}).read_bytes()
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x.zip").write_bytes(locked)
    assert problems_of(tmp_path / "x.zip")[0].reason == "conversations.json is encrypted"
    (tmp_path / "x.zip").write_bytes(whole[:-30])
    assert problems_of(tmp_path / "x.zip")[0].reason.startswith("is no whole zip")
    damaged = bytearray(whole)
    damaged[60:70] = b"\xff" * 10
    (tmp_path / "x.zip").write_bytes(damaged)
    assert len(problems_of(tmp_path / "x.zip")) == 1
    link = zipfile.ZipInfo("conversations.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert problems_of(tmp_path / "x.zip")[0].reason == "conversations.json is a link"


def test_who_the_account_belongs_to_is_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    read: list[str] = []
    real, chunks = os.open, ZipArchive.chunks

    def open_noted(path: str, *more: Any, **rest: Any) -> int:
        opened.append(os.path.basename(os.fspath(path)))
        return real(path, *more, **rest)

    def chunks_noted(self: ZipArchive, name: str, start: int = 0) -> Iterator[bytes]:
        read.append(name)
        return chunks(self, name, start)

    monkeypatch.setattr(os, "open", open_noted)
    monkeypatch.setattr(builtins, "open", lambda *given, **more: pytest.fail("opened otherwise"))
    monkeypatch.setattr(ZipArchive, "chunks", chunks_noted)
    grown.read_all(ChatgptSource(), FOLDER)
    grown.read_all(ChatgptSource(), ZIP)
    kept = {"conversations.json", "export.zip"}
    assert kept < set(opened)
    assert all(name.endswith(".png") for name in {*opened, *read} - kept)
    assert set(read) == {"conversations.json"}


def test_the_listing_holds_no_conversation(tmp_path: Path) -> None:
    text = "x" * 100_000
    talks = (talk(f"c{nth}", node("p", None, text=text)) for nth in range(20))
    zipped(tmp_path / "x.zip", {"conversations.json": listed(talks)})
    source = ChatgptSource()
    found = list(source.units(tmp_path, []))
    assert len(found) == 20 and sys.getsizeof(found) < 1000
    (places,) = [places for _, places, _ in source._files.values()]
    assert all(not isinstance(value, bytes) for each in places.values() for value in each[0])
    assert source.read(tmp_path, found[-1]).sessions[0].source_id == "c19"


# --- several exports ------------------------------------------------------------------------


def older() -> Any:
    return talk("one", node("p", None, text="ask", at=1788000001),
                node("gone", "p", "assistant", text="only here", at=1788000002),
                node("a", "p", "assistant", text="first", at=1788000003))  # fmt: skip


def newer() -> Any:
    return talk("one", node("p", None, text="ask", at=1788000001),
                node("a", "p", "assistant", text="first, whole", at=1788000003),
                node("q", "a", text="next", at=1788000100),
                at=1788000200.0, title="new")  # fmt: skip


NEWEST = [("p", "ask", True), ("gone", "only here", False), ("a", "first, whole", True),
          ("q", "next", True)]  # fmt: skip


def stored(database: Database) -> list[tuple[str, str, bool]]:
    return [
        (name, text, hidden is None) for name, text, hidden in database.connection.execute(
            "SELECT json_extract(m.metadata_json, '$.source.id'),"
            " json_extract(p.data_json, '$.text'), json_extract(m.metadata_json, '$.hidden_at')"
            " FROM chat_messages m JOIN chat_parts p ON p.message_id = m.id"
            " ORDER BY m.created_at, m.id")
    ]  # fmt: skip


def test_the_newest_of_one_folder_decides_and_nothing_is_lost(tmp_path: Path) -> None:
    zipped(tmp_path / "b.zip", {"conversations.json": listed([older()])})
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "conversations.json").write_bytes(listed([newer()]))
    draft = grown.only(ChatgptSource(), tmp_path)
    assert (draft.title, draft.path) == ("new", str(tmp_path / "a" / "conversations.json"))
    assert [(one.source_id, one.parts[0].data["text"], "hidden_at" not in one.metadata)
            for one in draft.messages] == NEWEST  # fmt: skip


@pytest.mark.parametrize("first", ["old", "new"])
def test_exports_opened_one_after_the_other_are_one_session(tmp_path: Path, first: str) -> None:
    zipped(tmp_path / "old.zip", {"conversations.json": listed([older()])})
    zipped(tmp_path / "new.zip", {"conversations.json": listed([newer()])})
    database = open_database(tmp_path / "library.db", create=True)
    names = sorted(["old", "new"], key=lambda name: name != first)
    for name in [*names, *names]:
        Sync(database).run([Target(ChatgptSource(), tmp_path / f"{name}.zip")])
    rows = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions").fetchall()
    assert rows == [("new",)]
    assert stored(database) == NEWEST
    database.close()


def test_a_folder_named_in_the_settings_takes_exports_that_are_dropped(tmp_path: Path) -> None:
    drop = tmp_path / "exports"
    drop.mkdir()
    settings = SourceSettings(paths={"chatgpt": [str(drop)]})
    (target,) = [each for each in default_targets(settings, [ChatgptSource()], {}, tmp_path)]
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database).run([target])
    zipped(drop / "x.zip", {"a/b/conversations.json": one("one")})
    shutil.copytree(FOLDER, drop / "deep" / "er")
    zipped(drop / "holiday.zip", {"photo.png": b"x"})
    sync = Sync(database)
    assert sync.run([target]).problems == 0
    assert len(sync.changed) == 13
    again = Sync(database)
    again.run([Target(ChatgptSource(), drop)])
    assert again.changed == []
    database.close()


def test_what_is_recognised(tmp_path: Path) -> None:
    source = ChatgptSource()
    for path in (FOLDER, ZIP, FOLDER / "conversations.json"):
        assert source.recognise(path) == path
    shutil.copytree(FOLDER, tmp_path / "unpacked")
    assert source.recognise(tmp_path) == tmp_path
    for body in (b"[]", b"{}", b"", json.dumps([{"chat_messages": []}]).encode(), b"[{]"):
        (tmp_path / "conversations.json").write_bytes(body)
        assert source.recognise(tmp_path / "conversations.json") is None
    assert source.recognise(FOLDER / "user.json") is None
    assert source.recognise(tmp_path / "missing") is None
