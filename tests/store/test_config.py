from __future__ import annotations

import os
from pathlib import Path

import pytest

from store.config import Settings, described, load_config, quick_config, zone_of
from store.system.locations import (
    cache_dir,
    config_path,
    data_dir,
    library_path,
    log_path,
    private_file,
    private_folder,
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    config = load_config(tmp_path / "none.toml")
    assert config.mistakes == []
    assert config.ui == Settings().ui
    assert config.sources.keep_originals is True
    assert config.keys == {}


def test_every_setting_can_be_set(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, '''
store = "/s.db"
[ui]
theme = "nord"
group = "day"
mouse = false
[live]
poll_ms = 100
[sources]
enabled = ["codex", "claude-code"]
excluded_workspaces = ["/secret"]
keep_originals = false
[sources.paths]
claude-code = ["/a", "/b"]
[keys]
"list.open" = ["o", "enter"]
app.quit = "Q"
list.archive = []
'''))
    assert config.mistakes == []
    assert config.store == "/s.db"
    assert (config.ui.theme, config.ui.group, config.ui.mouse) == ("nord", "day", False)
    assert config.live.poll_ms == 100
    assert config.sources.paths == {"claude-code": ["/a", "/b"]}
    assert config.keys == {"list.open": ["o", "enter"], "app.quit": ["Q"], "list.archive": []}


def test_each_mistake_names_its_line_and_the_rest_holds(tmp_path: Path) -> None:
    path = written(tmp_path, '''store = 3
[ui]
theme = "nord"
grup = "day"
group = "sideways"
[keys]
list.open = "o"
x.y = 3
[sources.paths]
codex = 4
claude-code = ["/a"]
[nonsense]
a = 1
''')
    config = load_config(path)
    assert config.ui.theme == "nord"
    assert config.ui.group == "workspace"
    assert config.keys == {"list.open": ["o"]}
    assert config.sources.paths == {"claude-code": ["/a"]}
    assert {mistake.line for mistake in config.mistakes} == {1, 4, 5, 8, 10, 12}
    lines = {mistake.line: str(mistake) for mistake in config.mistakes}
    assert lines[4] == f"{path}:4: there is no setting ui.grup"
    assert lines[5].startswith(f"{path}:5: ui.group: ")
    assert "workspace" in lines[5]


def test_what_is_no_toml_names_its_line(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "[ui]\ntheme = \n"))
    assert [mistake.line for mistake in config.mistakes] == [2]
    assert config.ui == Settings().ui


@pytest.mark.parametrize("text", [
    f"x = {'[' * 5000}{']' * 5000}", f"[live]\npoll_ms = {'9' * 5000}",
    f"x = {'{a=' * 5000}1{'}' * 5000}",
])  # fmt: skip
def test_depth_and_long_numbers_are_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    assert len(load_config(written(tmp_path, text)).mistakes) == 1
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "backscroll").mkdir()
    written(tmp_path / "backscroll", text)
    assert quick_config() == Settings()


@pytest.mark.parametrize("text", ["ui = 4", "keys = 3", "sources = []", "[[ui]]\ntheme='a'"])
def test_a_table_of_the_wrong_kind_is_one_mistake(tmp_path: Path, text: str) -> None:
    config = load_config(written(tmp_path, text))
    assert [mistake.line for mistake in config.mistakes] == [1]
    assert config.ui == Settings().ui


def test_a_file_that_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    assert "cannot be read" in load_config(tmp_path).mistakes[0].reason
    path = tmp_path / "latin.toml"
    path.write_bytes(b'store = "\xff"')
    assert load_config(path).mistakes[0].line == 0


def test_which_sources_and_workspaces_are_read(tmp_path: Path) -> None:
    sources = load_config(written(tmp_path, '''[sources]
disabled = ["pi"]
excluded_workspaces = ["/secret"]
''')).sources
    assert sources.reads("codex")
    assert not sources.reads("pi")
    assert sources.excludes("/secret/deep")
    assert sources.excludes("/secret")
    assert not sources.excludes("/secrets")
    assert not sources.excludes(None)


def test_xdg_variables_name_the_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    assert library_path() == tmp_path / "data" / "backscroll" / "library.db"
    assert config_path() == tmp_path / "config" / "backscroll" / "config.toml"
    assert cache_dir() == tmp_path / "cache" / "backscroll"
    assert log_path() == tmp_path / "state" / "backscroll" / "backscroll.log"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert data_dir().is_absolute()


def test_what_we_make_only_its_owner_reads(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        folder = private_folder(tmp_path / "a" / "b")
        file = private_file(folder / "c" / "f.db")
    finally:
        os.umask(old)
    assert [oct(p.stat().st_mode & 0o777) for p in (folder, folder.parent, file.parent)] == [
        "0o700"
    ] * 3
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("kept")
    assert private_file(file).read_text() == "kept"


VALUES = (
    '"day"', '"Europe/Berlin"', '"../zone"', '""', "3", "31", "32", "0", "-1", "3.5", "true", "[]",
    '["a"]', "[1]", "{}", '{a=["b"]}',
)  # fmt: skip


@pytest.mark.parametrize("setting", [each.name for each in described()])
@pytest.mark.one_in(6)
def test_the_first_paint_has_the_settings_that_the_full_check_gives(
    setting: str, tmp_path: Path
) -> None:
    for value in VALUES:
        config = load_config(written(tmp_path, f"{setting} = {value}\n"))
        quick = quick_config(tmp_path / "config.toml")
        assert vars(quick) == {name: getattr(config, name) for name in vars(quick)}, value
        assert (quick != Settings()) <= (config.mistakes == []), value
        assert all(mistake.line == 1 for mistake in config.mistakes)


def test_time_zones_and_the_day_that_a_month_begins_on(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, '[stats]\nzone = "Asia/Tokyo"\nmonth_starts = 28\n'))
    assert (config.stats.zone, config.stats.month_starts) == ("Asia/Tokyo", 28)
    assert str(zone_of("Asia/Tokyo")) == "Asia/Tokyo" and zone_of("local") is None
    config = load_config(written(tmp_path, '[stats]\nzone = "Mars/Olympus"\nmonth_starts = 32\n'))
    assert (config.stats.zone, config.stats.month_starts) == ("local", 1)
    assert [mistake.line for mistake in config.mistakes] == [2, 3]
    assert "no time zone 'Mars/Olympus'" in str(config.mistakes[0])


def test_prices_are_checked_line_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, """[prices."gpt-5.5"]
input = 4
output = 24.5
date = 2026-11-28

[prices.mine]
input = 1
cache_read = "free"
[prices.large]
input = 1
above.200000 = { input = 2 }
[prices.gpt-6]
above.7 = { input = 2 }
[prices.none]
[prices.lost.1]
input = 1
[prices.endless]
output = inf
[prices]
flat = 3
""")
    config = load_config(path)
    assert sorted(config.prices) == ["gpt-5.5", "large"]
    assert vars(quick_config(path))["prices"] == config.prices
    assert [str(mistake).removeprefix(f"{path}:") for mistake in config.mistakes] == [
        "8: prices.mine.cache_read: a number is needed; the default is used",
        "13: prices.gpt-6.above.7: the size of a request is one of 32000, 64000, 100000, 128000,"
        " 200000, 256000, 272000, 512000, 1000000; the default is used",
        "14: prices.none: has no price; one of input, output, cache_read, cache_write_5m,"
        " cache_write_1h is needed; the default is used",
        "15: prices.lost.1: there is no such field; an id with a dot needs quotation marks;"
        " the default is used",
        "18: prices.endless.output: must be 0 to 100,000 dollars per million tokens;"
        " the default is used",
        "20: prices.flat: input should be a valid dictionary; the default is used",
    ]


def test_every_setting_has_a_sentence() -> None:
    found = {each.name: each for each in described()}
    assert found["live.poll_ms"].type == "number from 1"
    assert found["ui.sort"].default == '"recent"'
    assert all(each.sentence.endswith(".") for each in found.values())
