"""The demo's sessions whose text is the point: scripts of the world, and hostile text."""

from __future__ import annotations

from store.demo.cast import DAY, GEMINI, GLM, NOTES, SONNET, SONNET_PRICE, TOOLS, claude_path
from store.demo.script import Scene, assistant, note, say, think, tool, user

_CODE = "\n".join(
    f"def case_{n:03}(value: int) -> int:\n"
    f"    \"\"\"Return the value of case {n}.\"\"\"\n"
    f"    return value * {n} + {n * n}\n"
    for n in range(1, 61)
)

TRAVEL = Scene(
    key="ryoko",
    title="京都旅行の計画 🧳",
    agent="opencode",
    model=GLM,
    workspace=NOTES,
    ended=5 * DAY,
    path="/home/mira/.local/share/opencode/opencode.db",
    messages=(
        user("来月の京都旅行の予定表を作ってください。四日間、二人、予算は八万円です。🍁"),
        assistant(
            think("日数と予算を分けて、移動の少ない順に並べる。", 3),
            say("四日間の予定です。\n\n"
                "| 日 | 午前 | 午後 | 費用 |\n"
                "|---|---|---|--:|\n"
                "| 一日目 | 伏見稲荷 ⛩️ | 錦市場 | ¥12,000 |\n"
                "| 二日目 | 嵐山 🎋 | 金閣寺 | ¥18,500 |\n"
                "| 三日目 | 哲学の道 | 銀閣寺 | ¥15,000 |\n"
                "| 四日目 | 京都鉄道博物館 🚂 | 帰宅 | ¥9,800 |\n\n"
                "合計は **¥55,300** で、予算の内です。👨‍👩‍👧‍👦 👍🏽 🇯🇵"),
        ),
        user("한국어로도 요약해 주세요."),
        assistant(say("나흘 일정, 두 사람, 합계 55,300엔입니다. 예산 안에 들어갑니다. ✅")),
    ),
)

ARABIC = Scene(
    key="murajaa",
    title="مراجعة الترجمة العربية",
    agent="gemini",
    model=GEMINI,
    workspace=NOTES,
    ended=6 * DAY,
    path="/home/mira/.gemini/tmp/notes/chats/session-murajaa.json",
    messages=(
        user("راجع ترجمة صفحة الإعدادات من فضلك، واحتفظ بأسماء الملفات كما هي: config.toml"),
        assistant(
            tool("read_file", {"file_path": "locale/ar.json"},
                 '{"save": "حفظ", "cancel": "إلغاء", "theme": "المظهر"}', 0.1),
            say("الترجمة جيدة. أقترح تغيير كلمة واحدة: «المظهر» بدل «السمة».\n\n"
                "ובעברית: הקובץ `he.json` עדיין חסר."),
        ),
    ),
)

HOSTILE = Scene(
    key="odd-text",
    title="Escapes, [bold]markup[/] and other odd text",
    agent="claude-code",
    model=SONNET,
    workspace=TOOLS,
    ended=8 * DAY,
    price=SONNET_PRICE,
    path=claude_path(TOOLS, "odd-text"),
    messages=(
        user("Show me what a terminal must not obey."),
        assistant(
            tool("Bash", {"command": "printf '\\033[31mred\\033[0m\\a'",
                 "description": "Print an escape sequence"},
                 "\u001b[31mred\u001b[0m\u0007 \u001b]0;new title\u0007 \u001b[2J\u001b[H", 0.1,
                 exit_code=0),
            say("An override: file\u202egpj.exe, console markup: [red]not red[/red], a link "
                "[click](javascript:alert(1)), a zero width\u200bspace and a bell\u0007."),
            note("weather-report", city="Bern", degrees=21, sky=["sun", "some clouds"]),
        ),
        user("And a long file."),
        assistant(
            say(f"```python\n{_CODE}```\n"),
            tool("Bash", {"command": "python -c \"print('x' * 20000)\"",
                 "description": "Print a long line"}, "x" * 20_000, 0.1, exit_code=0),
        ),
    ),
)

SCENES = (TRAVEL, ARABIC, HOSTILE)
