"""The demo's sessions in the site's workspace and among the notes."""

from __future__ import annotations

from store.demo.cast import (
    DAY,
    GPT,
    HAIKU,
    HAIKU_PRICE,
    HOUR,
    MINUTE,
    NOTES,
    OPUS,
    OPUS_PRICE,
    SITE,
    SONNET,
    SONNET_PRICE,
    claude_path,
)
from store.demo.script import (
    Scene,
    assistant,
    denied,
    image,
    note,
    pending,
    say,
    think,
    tool,
    user,
)

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAC"
    "hwGA60e6kgAAAABJRU5ErkJggg=="
)

THEME = Scene(
    key="dark-theme",
    title="Dark theme tokens",
    agent="claude-code",
    model=OPUS,
    workspace=SITE,
    ended=DAY,
    price=OPUS_PRICE,
    path=claude_path(SITE, "dark-theme"),
    context=42_000,
    messages=(
        user("Turn the colours of the site into tokens, so that a dark theme is one file."),
        assistant(
            think("Collect every colour literal, group by role, name the roles.", 9),
            tool("Bash", {"command": "rg -o '#[0-9a-fA-F]{6}' css | sort | uniq -c | sort -rn | "
                 "head -5", "description": "Count the colours"},
                 "     41 css/main.css:#1b1f24\n     38 css/main.css:#ffffff\n"
                 "     17 css/main.css:#d0d7de\n      9 css/code.css:#f6f8fa\n"
                 "      4 css/main.css:#0969da", 0.3, exit_code=0),
            say("62 literals stand for eight roles:\n\n"
                "| token | light | dark | contrast |\n"
                "|:--|:--|:--|--:|\n"
                "| `--ground` | `#ffffff` | `#14161b` | |\n"
                "| `--text` | `#1b1f24` | `#d5d9e0` | 12.9 |\n"
                "| `--muted` | `#57606a` | `#a3abb9` | 7.6 |\n"
                "| `--link` | `#0969da` | `#7aa2f7` | 7.0 |\n\n"
                "> Every pair keeps a contrast of 4.5 and more in both themes.\n"),
        ),
        user("Go on, and keep the print style as it is."),
        assistant(
            tool("Write", {"file_path": f"{SITE}/css/tokens.css", "content":
                 ":root {\n  --ground: #ffffff;\n  --text: #1b1f24;\n}\n\n"
                 "@media (prefers-color-scheme: dark) {\n  :root {\n    --ground: #14161b;\n"
                 "    --text: #d5d9e0;\n  }\n}\n"},
                 f"File created successfully at: {SITE}/css/tokens.css", 0.2),
            say("The tokens are in `css/tokens.css`; `print.css` is untouched."),
        ),
    ),
)

ANCHORS = Scene(
    key="broken-anchors",
    title="Broken anchors in the docs",
    agent="pi",
    model=SONNET,
    workspace=SITE,
    branch="docs",
    ended=2 * DAY,
    path="/home/mira/.pi/agent/sessions/broken-anchors.jsonl",
    messages=(
        user("Half the links to headings are broken since the new Markdown renderer. Fix them."),
        assistant(
            tool("bash", {"command": "npm run check-links 2>&1 | tail -3"},
                 "docs/setup.md: #installing-on-linux not found\n"
                 "docs/api.md: #error-codes not found\n212 links, 87 broken", 6.2, exit_code=0),
            say("The new renderer drops the article: `#installing-on-linux` became "
                "`#installing-linux`. I can restore the old ids or rewrite 87 links."),
            denied("bash", {"command": "rm -rf docs/.cache && npm ci"}, "The cache is shared."),
        ),
        user("Restore the old ids."),
        assistant(
            tool("edit", {"path": "render/slug.js", "oldText": "  .filter(notAnArticle)\n",
                 "newText": ""}, "Successfully replaced text in render/slug.js.", 0.1),
            say("All 212 links resolve again."),
        ),
    ),
)

IMAGES = Scene(
    key="avif-first",
    title="Image pipeline: avif first",
    agent="codex",
    model=GPT,
    workspace=SITE,
    ended=2 * DAY + 5 * HOUR,
    user={"star": True, "tags": ["performance"]},
    path="/home/mira/.codex/sessions/2026/rollout-avif-first.jsonl",
    messages=(
        user("Here is what the start page loads today. Make the pipeline prefer avif.",
             image("network.png", "image/png", PIXEL),
             image("budget.pdf", "application/pdf", "data:application/pdf;base64,JVBERi0xLjQK")),
        assistant(
            say("The hero image alone is 1.9 MB. With avif first, and webp for the rest:"),
            tool("shell", {"command": ["bash", "-lc", "node build/images.js --report"]},
                 "hero      1,912 kB -> 214 kB  avif\nteam        840 kB -> 122 kB  avif\n"
                 "logo         12 kB ->   9 kB  webp\ntotal     2,764 kB -> 345 kB", 21.4,
                 exit_code=0),
            image("hero.avif", "image/avif", "https://example.org/build/hero.avif"),
            say("A page load drops from 2.8 MB to 345 kB."),
        ),
    ),
)

_SUMMARY = """\
The search page is being rewritten without the framework.

- `search/index.js` builds the index at publish time (done, 14 tests).
- `search/page.js` draws results; keyboard movement works, the highlight does not yet.
- The user wants **no** request before the first key press.
"""

COMPACTED = Scene(
    key="search-page",
    title="Rewrite the search page",
    agent="claude-code",
    model=SONNET,
    workspace=SITE,
    branch="search",
    ended=4 * DAY,
    price=SONNET_PRICE,
    path=claude_path(SITE, "search-page"),
    context=158_000,
    messages=(
        user("Rewrite the search page without the framework. No request before the first key."),
        assistant(
            tool("Read", {"file_path": f"{SITE}/search/page.jsx"},
                 "\n".join(f"{n:6}\tline {n} of the old page" for n in range(1, 121)), 0.1),
            say("The page is 120 lines and pulls in 310 kB. I begin with the index."),
        ),
        user("Fine.", name="kept"),
        assistant(say("The index is built at publish time now, 14 tests pass.")),
        assistant(
            note("compaction", summary=_SUMMARY, tail_start_id="kept", auto=True,
                 summary_tokens=412, pre_tokens=168_204),
            metadata={"compaction": True, "usage": {"input": 412, "output": 0, "reasoning": 0,
                      "cache_read": 0, "cache_write": 0}},
            gap=8,
        ),
        user("Go on with the highlight."),
        assistant(
            tool("Bash", {"command": "npm test -- search", "description": "Run the search tests"},
                 "\u001b[32m✓\u001b[0m search (17)\n\nTest Files  1 passed (1)", 2.2, exit_code=0),
            say("The highlight follows the query; 17 tests pass."),
        ),
    ),
)

QUESTION = Scene(
    key="newsletter",
    title="Newsletter sign-up form",
    agent="claude-code",
    model=OPUS,
    workspace=SITE,
    ended=34 * MINUTE,
    activity=("waiting-input", "guessed"),
    price=OPUS_PRICE,
    path=claude_path(SITE, "newsletter"),
    messages=(
        user("Add a sign-up form for the newsletter to the footer."),
        assistant(
            say("One thing first, because it decides what we store:"),
            pending("AskUserQuestion", {"questions": [{
                "question": "Is a double opt-in wanted?", "header": "Opt-in", "options": [
                    {"label": "Yes", "description": "A mail with a link confirms the address"},
                    {"label": "No", "description": "The address counts at once"},
                ], "multiSelect": False}]}),
        ),
    ),
)

REVIEW = Scene(
    key="weekly-review",
    title="Weekly review from the logs",
    agent="claude-code",
    model=HAIKU,
    workspace=NOTES,
    ended=3 * DAY,
    price=HAIKU_PRICE,
    path=claude_path(NOTES, "weekly-review"),
    messages=(
        user("<command-name>/review</command-name>", metadata={"origin": "command"}),
        user("Write the weekly review from my git logs, five bullets at most."),
        assistant(
            tool("Bash", {"command": "git -C ~/code/api log --since=1.week --oneline | wc -l",
                 "description": "Count this week's commits"}, "37", 0.1, exit_code=0),
            say("- **api**: 37 commits, most of them in the sync worker\n"
                "- **site**: dark theme, links to headings\n"
                "- open: the move to Postgres waits for staging\n"
                "- slept badly on Tuesday, says the log of 3 am\n"
                "- next: jitter, changelog, release 2.4"),
        ),
    ),
)

SCENES = (THEME, ANCHORS, IMAGES, COMPACTED, QUESTION, REVIEW)
