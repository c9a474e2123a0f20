"""A seeded store for searches: prose, code, paths, tool outputs and CJK, as sessions have them.

Words follow Zipf's law over vocabularies that are large enough for rare words: identifiers are
made of words, each workspace has its own files, and each file its own identifiers, so that
what is said in a session hangs together. Words that the bench looks for are known without
reading the store. Stores of any size have the same newest sessions, but for the last one of a
small store: what a search for the newest hits has to read is the same.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from store.engine.database import open_database
from tests.bench.kept import generator_key, kept_store

SEED = 20_261_128
NEWEST = 1_795_000_000_000
PARTS_PER_SESSION = 400
WORKSPACES = 60
FILES_PER_WORKSPACE = 300
RARE_WORD = "zanzibarquux"
"""In some twenty parts of a million."""
RARE_EVERY = 50_000
INSIDE = "okentumblewe"
"""Inside ``PLANTED``, and nowhere at the start of a word."""
PLANTED = "parseTokenTumbleweedCache"
"""An identifier in some 200 parts of a million."""
PLANTED_EVERY = 5_000
_PROSE = (
    "the of and to in is for that it this with as on be are from we at not by an or if can will"
    " was which when should now so file test error function value code line type name list use"
    " run set get add new return change need call data string number check make read write find"
    " first then only all one let look into path there have has does but no more also because"
    " message session part store index query search result user default option key case time"
)
_COMMON = _PROSE.split()
_SYLLABLES = (
    "ba be bi bo ca ce co cu da de di do fa fe fi fo ga ge gi ha he hi ho ja jo ka ke ki la le li"
    " lo ma me mi mo na ne ni no pa pe pi po ra re ri ro sa se si so ta te ti to va ve vi vo wa we"
    " an en in on un ar er ir or ur al el il ol st tr pr cr gr bl cl fl sh ch th qu"
)
_CJK = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过"
    "子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机"
    "当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反"
    "你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五"
    "果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运"
    "搜索会话历史记录错误日志修复数据库迁移回滚令牌缓存配置服务器请求响应测试覆盖率部署"
)
_COMPOUNDS = (
    "搜索 会话 历史 记录 错误 日志 修复 数据库 配置 服务器 请求 响应 测试 文件"
    " 缓存 迁移 回滚 部署 覆盖率 令牌"
)
_JAPANESE = "メッセージ一覧を開く セッションの履歴を検索する 設定を読み込む エラーを修正しました"
_DIRECTORIES = "src lib app core api tests docs internal pkg cmd server client web utils models"
_ENDINGS = ("py", "ts", "tsx", "go", "rs", "md", "json", "yaml", "sql", "css")
_COMMANDS = (
    "pytest -q {path}", "grep -rn {name} {path}", "git diff {path}", "cat {path}", "ruff check .",
    "npm test -- {path}", "cargo build", "go test ./...", "sed -n 1,80p {path}", "ls -la {folder}",
)  # fmt: skip
_PIECES = _SYLLABLES.split()
Row = tuple[Any, ...]


class Vocabulary:
    """Words that are drawn by Zipf's law: the common ones first, then made-up ones."""

    def __init__(self, chance: random.Random, size: int) -> None:
        """Make the words."""
        made = dict.fromkeys(_COMMON)
        while len(made) < size:
            made["".join(chance.choices(_PIECES, k=chance.choice((2, 3, 3, 4))))] = None
        self.words = list(made)
        self.of_identifiers = self.words[:6000]
        self._sums = list(accumulate(1 / (rank + 3) ** 0.95 for rank in range(size)))

    def draw(self, chance: random.Random, count: int) -> list[str]:
        """Return some words, common ones more often."""
        return chance.choices(self.words, cum_weights=self._sums, k=count)


class Workspace:
    """A folder with files, each with names of its own."""

    def __init__(self, chance: random.Random, number: int, vocabulary: Vocabulary) -> None:
        """Make the files and their names."""
        rare = vocabulary.words[len(_COMMON):]
        self.root = f"/home/mira/code/{chance.choice(rare)}-{number:02d}"
        self.files: list[str] = []
        self.names: list[list[str]] = []
        for _ in range(FILES_PER_WORKSPACE):
            folders = chance.choices(_DIRECTORIES.split(), k=chance.randint(1, 3))
            stem = "_".join(chance.choices(rare, k=chance.randint(1, 2)))
            self.files.append("/".join([*folders, f"{stem}.{chance.choice(_ENDINGS)}"]))
            self.names.append([_identifier(chance, vocabulary) for _ in range(25)])


def _identifier(chance: random.Random, vocabulary: Vocabulary) -> str:
    words = [chance.choice(vocabulary.of_identifiers) for _ in range(chance.randint(2, 3))]
    if chance.random() < 0.5:
        return "_".join(words)
    return words[0] + "".join(word.capitalize() for word in words[1:])


class Writer:
    """Makes the rows of the store, session by session."""

    def __init__(self, parts: int) -> None:
        """Prepare to make so many parts."""
        self.parts = parts
        self.chance = random.Random(SEED)
        self.vocabulary = Vocabulary(self.chance, 40_000)
        self.workspaces = [Workspace(self.chance, number, self.vocabulary)
                           for number in range(WORKSPACES)]  # fmt: skip
        self.sessions: list[Row] = []
        self.messages: list[Row] = []
        self.rows: list[Row] = []
        self._place = 0

    def write(self, connection: Any) -> None:
        """Insert all rows; the sessions' times overlap, as with several agents at once."""
        count = -(-self.parts // PARTS_PER_SESSION)
        for age in range(count - 1, -1, -1):
            self._session(age)
            if len(self.rows) > 20_000 or not age:
                connection.executemany(
                    "INSERT INTO chat_sessions(id, agent, workspace_root, model_json,"
                    " metadata_json, created_at, updated_at, archived_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self.sessions,
                )  # fmt: skip
                connection.executemany(
                    "INSERT INTO chat_messages VALUES (?, ?, ?, ?, ?, ?)", self.messages
                )
                connection.executemany(
                    "INSERT INTO chat_parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self.rows
                )
                self.sessions, self.messages, self.rows = [], [], []

    def _session(self, age: int) -> None:
        """Make a session.

        Args:
            age: How many are newer; all of it follows from that.
        """
        chance = self.chance
        chance.seed(SEED + age)
        workspace = self.workspaces[age % WORKSPACES]
        session = f"ses_{0xFFFFFFFF - age:012x}search00000000"
        self._place = age * PARTS_PER_SESSION
        parts = min(PARTS_PER_SESSION, self.parts - self._place)
        start = NEWEST - (age + 1) * 1_800_000
        at = start
        title = " ".join(self.vocabulary.draw(chance, 5)).capitalize()
        left, place = parts, 0
        while left:
            user = place % 5 == 0
            size = 1 if user else min(left, chance.choice((1, 2, 3, 4, 6, 12)))
            message = f"msg_{0xFFFFFF - age:06x}{place:06x}search00000000"
            role = "user" if user else "assistant"
            self.messages.append((message, session, role, "{}", at, at))
            for index in range(size):
                data = self._part(workspace, user=user)
                state = data.get("state") if "toolCallId" in data else None
                self.rows.append((
                    f"prt_{self._place:012x}search00000000", message, session, index, data["type"],
                    orjson.dumps(data).decode(), data.get("toolCallId"), state, at, at,
                ))  # fmt: skip
                self._place += 1
                at += chance.randint(500, 20_000)
            left -= size
            place += 1
        agent = ("claude-code", "codex", "opencode", "gemini")[age % 4]
        told = {"title": title, "source": {"kind": agent, "id": f"{age:x}"}}
        archived = at if age % 10 == 9 else None
        self.sessions.append((
            session, agent, workspace.root, '{"provider_id":"any","model_id":"sonnet"}',
            orjson.dumps(told).decode(), start, at, archived,
        ))  # fmt: skip

    def _part(self, workspace: Workspace, *, user: bool) -> dict[str, Any]:
        chance = self.chance
        file = min(int(chance.expovariate(0.02)), FILES_PER_WORKSPACE - 1)
        names, path = workspace.names[file], workspace.files[file]
        kind = chance.random()
        if user or kind < 0.3:
            text = self._planted(self._prose(names, path, chance.randint(8, 120)))
            return {"type": "text", "text": text, "state": "done"}
        if kind < 0.45:
            text = self._prose(names, path, chance.randint(20, 150))
            return {"type": "reasoning", "text": text, "state": "done"}
        call = f"call_{self._place:x}"
        full = f"{workspace.root}/{path}"
        base = {"toolCallId": call, "state": "output-available"}
        if kind < 0.7:
            command = chance.choice(_COMMANDS).format(
                path=path, name=chance.choice(names), folder=path.rpartition("/")[0])
            output = self._planted(self._output(workspace, names, path))
            return {"type": "tool-Bash", **base, "input": {"command": command}, "output": output}
        if kind < 0.88:
            output = self._code(names, chance.randint(5, 60), numbered=True)
            return {"type": "tool-Read", **base, "input": {"file_path": full}, "output": output}
        old, new = (self._code(names, chance.randint(2, 10)) for _ in range(2))
        return {"type": "tool-Edit", **base,
                "input": {"file_path": full, "old_string": old, "new_string": new},
                "output": f"The file {full} has been updated."}  # fmt: skip

    def _planted(self, text: str) -> str:
        if self._place % RARE_EVERY == 17:
            return f"{text} {RARE_WORD}"
        if self._place % PLANTED_EVERY < 2:
            return f"{text}\n{PLANTED}(value)"
        return text

    def _prose(self, names: Sequence[str], path: str, count: int) -> str:
        chance = self.chance
        if chance.random() < 0.08:
            return self._cjk(count)
        words = self.vocabulary.draw(chance, count)
        for place in range(0, count, 9):
            words[place] = f"`{chance.choice(names)}`" if chance.random() < 0.7 else path
        for place in range(7, count, 12):
            words[place] += ".\n\n" if place % 36 == 31 else "."
        return " ".join(words)

    def _cjk(self, count: int) -> str:
        chance = self.chance
        if chance.random() < 0.2:
            return "。".join(chance.choices(_JAPANESE.split(), k=1 + count // 20))
        characters = chance.choices(_CJK_CHARACTERS, cum_weights=_CJK_SUMS, k=count)
        for place in range(0, count, 5):
            characters[place] = chance.choices(_WORDS_CJK, cum_weights=_WORDS_CJK_SUMS)[0]
        for place in range(8, count, 11):
            characters[place] = "，" if place % 2 else "。"
        return "".join(characters)

    def _code(self, names: Sequence[str], lines: int, *, numbered: bool = False) -> str:
        chance = self.chance
        made = []
        for number in range(lines):
            one, other = chance.choice(names), chance.choice(names)
            line = chance.choice((
                f"    {one} = {other}(self.{one}, {number})", f"def {one}({other}, value=None):",
                f"        return {other}.get({one!r}, {chance.random():.3f})",
                f"    if {one} is not None and {other}:", f"import {one}", "",
                f"    # {' '.join(self.vocabulary.draw(chance, 6))}",
            ))  # fmt: skip
            made.append(f"{number + 1:5}\t{line}" if numbered else line)
        return "\n".join(made)

    def _output(self, workspace: Workspace, names: Sequence[str], path: str) -> str:
        chance = self.chance
        made = []
        for _ in range(chance.choice((1, 2, 4, 8, 15, 30))):
            made.append(chance.choice((
                f"{path}:{chance.randint(1, 900)}: {chance.choice(names)} = {chance.random():.4f}",
                f"PASSED {path}::test_{chance.choice(names)} [{chance.randint(1, 99)}%]",
                f"commit {chance.getrandbits(160):040x}",
                f"-rw-r--r-- 1 mira mira {chance.randint(100, 90_000)} {path}",
                f"Error: {' '.join(self.vocabulary.draw(chance, 5))} in {workspace.root}/{path}",
            )))  # fmt: skip
        return "\n".join(made)


_WORDS_CJK = _COMPOUNDS.split()
_WORDS_CJK_SUMS = list(accumulate(1 / (rank + 1) ** 2 for rank in range(len(_WORDS_CJK))))
_CJK_CHARACTERS = list(dict.fromkeys(_CJK))
_CJK_SUMS = list(accumulate(1 / (rank + 5) for rank in range(len(_CJK_CHARACTERS))))


def needles(parts: int) -> dict[str, str]:
    """Return what the bench searches for in the store of so many parts, by what it is."""
    writer = Writer(parts)
    workspace = writer.workspaces[3]
    return {
        "a rare word": RARE_WORD,
        "a common word": "function",
        "an absent word": "xylophagous",
        "the inside of an identifier": INSIDE,
        "a path": workspace.files[120],
        "2 CJK characters": "令牌",
        "a common phrase": '"of the"',
    }


def write(path: Path, parts: int) -> None:
    """Write the store to a new file; its indexes are made after its rows."""
    connection = open_database(path, create=True).file
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        " AND tbl_name IN ('chat_messages', 'chat_parts')"
    ).fetchall()
    connection.execute("BEGIN")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    Writer(parts).write(connection)
    for _, statement in indexes:
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def search_store(parts: int) -> Path:
    """Return the kept store with so many parts."""
    key = generator_key(sys.modules[__name__])
    return kept_store(f"search-{parts}", key, lambda path: write(path, parts))


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of the store that are searched."""
    from store.search.text import decode_part, sections

    connection = open_database(path, write=False).file
    for kind, data in connection.execute("SELECT type, data_json FROM chat_parts"):
        for section in sections(decode_part(kind, data), "user", None):
            yield section.text
