"""What is drawn takes as many columns as terminals give it; what stands right of it is aligned."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyte
import pytest

from tests.hostile import CORPUS
from tests.tui.stores import Told, put
from tests.tui.terminals import on_a_terminal
from tui.kit.text import cells, clean, fit

MIXED = (
    "abc", "漢字 かな カナ ｱｲｳ ｆｕｌｌ", "한국어 각",
    "é e\u0301 a\u0323\u0301b n\u0303", "か\u3099 は\u309a",
    "❤ ❤️ ❤︎ ☎️ ⚙️ ✔️ ℹ️ ↔️ ▶️ ⁉️ 〰️ ㊗️ ☠️ ©️ ♀️", "1️⃣ #️⃣ *️⃣ 5\u20e3", "👍 👍🏽 🤝🏽 🫱🏻‍🫲🏿",
    "👨‍👩‍👧 👩🏽‍💻 🏳️‍🌈 ❤️‍🔥 🧔‍♂️ 🕵️‍♀️ 👁️‍🗨️ 🧑‍🧑‍🧒", "🇩🇪 🇩🇪🇫🇷 🇩 x", "🏴\U000e0067\U000e0062"
    "\U000e0065\U000e006e\U000e0067\U000e007f", "🫠 🪿 \U0001fae8 \U0001fae9 \U0001fabf \U0001f6dc",
    "⌚ ⏩ ⭐ ✨ ⚡",
    "שלום עולם", "العربية ﷺ", "می‌خواهم", "क्ष क्‍ष", "ไทยก็่", "─│├●★✗✔…½①⓪ \ue0b0 \u2800",
    "e" + "\u0301" * 40,
    "𝒳 𝔸 🄰 🃏 🀄", "a\u200bb\u00adc\u2060d", "x\ty", "\x1b[31mred\x1b[0m", "\U0001f600" * 30,
)  # fmt: skip
TEXTS = [clean(text).replace("\n", " ")[:70] for text in (*MIXED, *CORPUS.values())]


def column_in_pyte(text: str) -> int:
    screen = pyte.Screen(200, 2)
    pyte.Stream(screen).feed(text)
    return int(screen.cursor.x)


@pytest.mark.parametrize("text", TEXTS)
def test_pyte_gives_as_many_columns(text: str) -> None:
    assert column_in_pyte(text) == cells(text)
    assert column_in_pyte(fit(text, 9)) == cells(fit(text, 9)) <= 9


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_tmux_gives_as_many_columns(tmp_path: Path) -> None:
    texts, columns = tmp_path / "texts.json", tmp_path / "columns.json"
    texts.write_text(json.dumps(TEXTS))
    program = Path(__file__).with_name("report_columns.py")
    command = [sys.executable, str(program), str(texts), str(columns)]
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-u"]
    size = ["-x", "200", "-y", "5"]
    done = "; tmux wait-for -S measured"
    subprocess.run([*tmux, "new-session", "-d", *size, shlex.join(command) + done], check=True)
    subprocess.run([*tmux, "wait-for", "measured"], check=True, timeout=60)
    got = json.loads(columns.read_text())
    assert {text: (cells(text), column) for text, column in zip(TEXTS, got, strict=True)
            if column != cells(text)} == {}


def test_what_stands_right_of_a_title_is_aligned(tmp_path: Path) -> None:
    sessions = [
        Told(f"ses_{number:026d}", text.replace("\x1b", ""), age=number + 1, tokens=77)
        for number, text in enumerate(MIXED)
    ]
    store = put(tmp_path / "s.db", sessions)
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tui", "--store", str(store)]
    with on_a_terminal(command, environment, (100, 150)) as terminal:
        terminal.wait_for(b" keys")
        terminal.send(b"\x11")
        terminal.wait_for_end()
    screen = pyte.Screen(100, 150)
    stream = pyte.ByteStream(screen)
    stream.feed(terminal.received.partition(b"\x1b[?1049l")[0].replace(b"\x1b[?2026$p", b"")
                .replace(b"\x1b[?2048$p", b"").replace(b"\x1b[>25u", b""))
    rows = [row for row in screen.display if " 77" in row]
    # pyte stops at some marks of Indic scripts and the like, which are not among these titles.
    assert len(rows) >= 25
    assert len({row.index(" 77") for row in _in_cells(rows)}) == 1, "\n".join(rows)


def _in_cells(rows: list[str]) -> list[str]:
    """Return rows with one character a column: a wide one takes two."""
    return ["".join((c + " ")[: cells(c)] for c in row) for row in rows]
