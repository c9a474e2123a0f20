"""Own rules, names of users in paths, mistakes in the config, and every format of an export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.config import load_config
from store.engine.database import open_database
from store.engine.opening import open_target
from store.errors import Refused
from store.exports.files import prepare
from store.exports.registry import FORMATS
from store.exports.selection import LEFT_OUT, Selection
from store.sharing.homes import Homes
from store.sharing.masks import BadRule, Masking, Masks
from store.sharing.settings import checked_masking, mistakes_in
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sharing.corpus import FALSE, TRUE
from tests.tui.seeded import SESSION, Said, make_store, message_id, text, tool


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with every secret of the corpus in prompts, answers, calls and its title."""
    said = []
    for number, (given, _) in enumerate(TRUE):
        said += [
            Said("user", [text(f"see\n{given}")]),
            Said("assistant", [
                {"type": "reasoning", "text": f"because of\n{given}\n"},
                text(f"```\n{given}\n```"),
                tool("Bash", {"command": f"cat <<E\n{given}\nE", "lines": [given]},
                     f"\x1b[1m>\x1b[0m\n{given}\n", call=f"c{number}"),
                {"type": "file", "mediaType": "text/plain", "filename": "x.txt",
                 "url": "data:,x"},
            ]),
        ]
    path = tmp_path_factory.mktemp("masks") / "s.db"
    return make_store(path, said, session={"metadata_json": json.dumps({"title": TRUE[9][0]})})


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_no_secret_is_in_any_format(store: Path, format: object) -> None:
    database = open_target(store)
    try:
        made = prepare(database, SESSION, format, masked=True)  # type: ignore[arg-type]
        written = "".join(made.pieces())
    finally:
        database.close()
    left = [secret[:30] for _, secret in TRUE if secret in written or (
        "\n" in secret and secret.replace("\n", "\\n") in written)]
    assert left == []
    assert made.masks.counts.total() > 3 * len(TRUE)


def test_masks_leave_a_session_without_secrets_as_it_is(tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.db", [
        Said("user", [text("\n".join(FALSE))]),
        Said("assistant", [tool("Bash", {"a": FALSE}, "x")]),
    ])
    database = open_target(path)
    try:
        for format in ("json", "jsonl", "ui-messages", "markdown"):
            made = list[str]()
            for masked in (False, True):
                if database.connection.in_transaction:
                    database.connection.execute("ROLLBACK")
                made.append("".join(
                    prepare(database, SESSION, FORMATS[format], masked=masked).pieces()))
            assert len(set(made)) == 1
    finally:
        database.close()


def test_a_range_without_outputs_goes_out(store: Path) -> None:
    database = open_target(store)
    try:
        made = prepare(database, SESSION, FORMATS["json"], selection=Selection(
            message_id(2), message_id(5), images=False, outputs="none"))
        rows = json.loads("".join(made.pieces()))["messages"]
    finally:
        database.close()
    assert [one["message"]["id"] for one in rows] == [message_id(n) for n in (2, 3, 4, 5)]
    parts = [part["data"] for one in rows for part in one["parts"]]
    assert {part["output"] for part in parts if "output" in part} == {LEFT_OUT}
    assert "file" not in {part["type"] for part in parts}


# Own rules


def test_an_own_rule_is_applied_and_counted_by_its_name() -> None:
    masks = Masks(Masking(own_rules={"customer": r"KD-\d{6}"}))
    assert masks.mask("for KD-123456 and KD-654321, KD-1") == (
        "for [masked customer] and [masked customer 2], KD-1")
    assert masks.counts == {"customer": 2}


@pytest.mark.parametrize("pattern", ["(", "a{99999999}", "x*", "(?P<a>b", "[z-a]"])
def test_a_wrong_rule_is_refused(pattern: str) -> None:
    with pytest.raises(BadRule, match="customer"):
        Masks(Masking(own_rules={"customer": pattern}))


def test_a_slow_rule_is_stopped_and_lets_nothing_through() -> None:
    masks = Masks(Masking(own_rules={"slow": r"(a|aa|aaa)+$"}))
    masked = masks.mask("a" * 4_000 + "b")
    assert "aaaa" not in masked and "too slow" in masked


def test_a_mistake_in_the_config_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[masks]\nhome = true\n[masks.rules]\nfine = "x+"\n"not so" = "("\n')
    config = load_config(path)
    assert config.masks.home and not config.mistakes
    (mistake,) = mistakes_in(config)
    assert mistake.line == 5 and "not so" in mistake.reason
    with pytest.raises(Refused, match="not so"):
        checked_masking(config)


# Names of users


@pytest.mark.parametrize(("given", "shown"), [
    ("/home/ann/x", "/home/user/x"), ("cd /Users/ann && ls", "cd /Users/user && ls"),
    ("C:\\Users\\ann\\x", "C:\\Users\\user\\x"),
    ("C:\\\\Users\\\\ann\\\\x", "C:\\\\Users\\\\user\\\\x"),
    ("C:/Users/ann/x", "C:/Users/user/x"), ("/mnt/c/Users/ann/x", "/mnt/c/Users/user/x"),
    ("file:///home/ann/x", "file:///home/user/x"), ("%2Fhome%2Fann%2Fx", "%2Fhome%2Fuser%2Fx"),
    ("~/.claude/projects/-home-ann-code-x/", "~/.claude/projects/-home-user-code-x/"),
    ("-Users-ann-code", "-Users-user-code"), ("C--Users-ann-code", "C--Users-user-code"),
    ('{"cwd":"/home/ann"}', '{"cwd":"/home/user"}'), ("/var/mail/ann", "/var/mail/user"),
    ("/run/media/ann/x", "/run/media/user/x"), ("/home/user/x", "/home/user/x"),
    ("ann went home", "ann went home"), ("/usr/share/annex", "/usr/share/annex"),
    ("a-home-run", "a-home-run"), ("/homes/ann2", "/homes/ann2"),
])  # fmt: skip
def test_names_of_users_are_replaced_in_paths_alone(given: str, shown: str) -> None:
    masks = Masks(Masking(secrets=False, home=True))
    masks._homes = Homes(Path("/home/ann"))
    assert masks.mask(given) == shown


def test_the_original_records_of_an_agent_are_masked_too(tmp_path: Path) -> None:
    key, password = TRUE[1][1], TRUE[3][1][:20] + "7a"
    common: dict[str, Any] = {"sessionId": "5f5f5f5f-1111-4222-8333-444444444444", "cwd": "/w",
              "version": "2.0.1",
              "isSidechain": False, "userType": "external"}  # fmt: skip
    records: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u-1", "parentUuid": None, "timestamp": "2026-11-01T00:00:00.000Z",
         "message": {"role": "user", "content": f"AWS_SECRET_ACCESS_KEY={key}"}},
        {"type": "assistant", "uuid": "u-2", "parentUuid": "u-1",
         "timestamp": "2026-11-01T00:00:01.000Z", "message": {
             "id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "content": [
                 {"type": "tool_use", "id": "toolu_1", "name": "Login",
                  "input": {"password": password}}]}},
        {"type": "user", "uuid": "u-3", "parentUuid": "u-2",
         "timestamp": "2026-11-01T00:00:02.000Z",
         "message": {"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "toolu_1", "content": f"token={key}"}]}},
    ]  # fmt: skip
    folder = tmp_path / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    (folder / f"{common['sessionId']}.jsonl").write_text(
        "".join(json.dumps(common | record) + "\n" for record in records))
    database = open_database(tmp_path / "library.db", create=True)
    try:
        Sync(database).run([Target(source("claude-code"), tmp_path / ".claude")])
        (session_id,) = database.connection.execute("SELECT id FROM chat_sessions").fetchone()
        plain = "".join(prepare(database, session_id, FORMATS["claude-code"]).pieces())
        database.connection.execute("ROLLBACK")
        masked = "".join(
            prepare(database, session_id, FORMATS["claude-code"], masked=True).pieces())
    finally:
        database.close()
    assert key in plain and password in plain
    assert key not in masked and password not in masked and "[masked " in masked
    assert [json.loads(line)["type"] for line in masked.splitlines()] == [
        json.loads(line)["type"] for line in plain.splitlines()]


def test_keys_of_json_are_masked_and_a_text_of_json_stays_json() -> None:
    token, password = "ghp_" + "a1B2" * 9, "Zx9" + "L4I85fRdI"
    assert token not in json.dumps(Masks().mask_json({token: 1}))
    masks = Masks(Masking(own_rules={"quoted": r'"a":"b"'}))
    assert isinstance(json.loads(masks.mask(json.dumps({"a": "b"}, separators=(",", ":")))), dict)
    assert len({Masks().mask(f"password={each}") for each in (password, password + "1")}) == 1
