"""What a page holds; ``test_html_page.py`` opens it in Chromium."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.exports.files import prepare
from store.exports.html.images import Pictures, recognised
from store.exports.html.markup import linked, safe_address
from store.exports.html.parts import Parts, _lines
from store.exports.html.prose import prose
from store.exports.registry import FORMATS
from store.prices.loading import load_prices
from tests.exports.exporting import exported, session_id
from tests.hostile import CORPUS, NEVER, controls, hostile_store, page_attacks
from tui.kit.palette import DARK, LIGHT

ADDRESS = "http://127.0.0.1:9"
ELEMENTS = {
    "a", "article", "b", "blockquote", "br", "code", "dd", "details", "div", "dl", "dt", "em",
    "figcaption", "figure", "footer", "h1", "h3", "h4", "h5", "h6", "header", "hr", "i", "img",
    "kbd", "li", "main", "nav", "ol", "p", "pre", "s", "section", "span", "strong", "summary",
    "table", "tbody", "td", "th", "thead", "time", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "alt", "aria-label", "class", "datetime", "decoding", "height", "href", "id", "loading",
    "open", "rel", "src", "start", "width",
}  # fmt: skip


def png(width: int = 2, height: int = 1) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x7a\xa2\xf7" * width for _ in range(min(height, 9)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def part(data: dict[str, Any], *, markdown: bool = True, largest: int = 2_000_000) -> str:
    row = {"data": data, "type": data.get("type"), "created_at": 0, "updated_at": 0}
    return "".join(Parts("s", "/w", Pictures(largest), {}).html(row, markdown=markdown))


def test_a_page_has_the_session_and_its_facts(demo: Database) -> None:
    page = exported(demo, "retry-loop", "html", "display")
    assert page.startswith("<!doctype html>\n") and page.endswith("</body></html>\n")
    assert "<title>Retry loop in the sync worker</title>" in page
    for name, value in (("agent", "claude-code"), ("model", "sonnet-4.5"), ("cost", "$0.402"),
                        ("branch", "main"), ("lasted", "4m 40s"), ("turns", "4")):  # fmt: skip
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page
    assert page.count('<article class="m user') == 4
    assert '<b>Bash</b> <span class="what">pytest -q tests/sync</span>' in page
    assert '<span class="status failed">✗ exit 1</span><span>3.2 s</span>' in page
    assert '<span class="add"><i>' in page and '<span class="del"><i>' in page
    assert "<li class=\"done\"><span>✔</span> Find where a 401 is turned into a retry</li>" in page
    assert "1 waiting prompt is left out, not sent yet" in page
    assert "4 hidden messages left out" in page and "far too much" not in page


def test_a_cost_that_nobody_tells_is_estimated_and_marked(demo: Database) -> None:
    for name, prices, cost in (
        ("broken-anchors", load_prices(data_file=Path("none")), r"≈ \$0\.\d{3}"),
        ("broken-anchors", None, "not known"),
        ("retry-loop", None, r"\$0\.402"),
    ):
        one = session_id(demo, name)
        page = "".join(prepare(demo, one, FORMATS["html"], prices=prices).pieces())
        assert re.search(f"<dt>cost</dt><dd>{cost}</dd>", page)
        demo.connection.execute("COMMIT")


def test_hidden_messages_are_in_it_on_request(demo: Database) -> None:
    page = exported(demo, "retry-loop", "html", "hidden")
    assert len(re.findall(r'<article class="m (?:user|assistant) hidden"', page)) == 4
    assert "left out</span>" not in page


def test_the_list_at_the_side_leads_to_each_turn(demo: Database) -> None:
    page = exported(demo, "retry-loop", "html", "display")
    side = page[page.index('<nav class="turns"') :]
    anchors = re.findall(r'<li><a href="#(m-[\w-]+)">', side)
    assert len(anchors) == 4 and all(f'id="{each}"' in page for each in anchors)


def test_several_sessions_make_one_page(demo: Database) -> None:
    ids = [session_id(demo, name) for name in ("retry-loop", "search-page", "odd-text")]
    page = "".join(prepare(demo, ids[0], FORMATS["html"], further=ids[1:]).pieces())
    assert "<title>3 sessions</title>" in page
    assert page.count('<section class="session"') == 3
    assert re.findall(r"<h1>(.*?)</h1>", page) == [
        "Retry loop in the sync worker", "Rewrite the search page",
        "Escapes, [bold]markup[/] and other odd text"]  # fmt: skip
    names = re.findall(r'id="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_a_call_leads_to_the_session_that_it_started(demo: Database) -> None:
    parent = session_id(demo, "retry-loop")
    child = demo.connection.execute(
        "SELECT id FROM chat_sessions WHERE parent_id = ? AND"
        " json_extract(metadata_json, '$.lineage.kind') = 'subagent'", (parent,)).fetchone()[0]
    page = "".join(prepare(demo, parent, FORMATS["html"], further=[child]).pieces())
    assert f'<a class="child" href="#s-{child}">opens ↳</a>' in page


def test_secrets_are_masked_unless_told(demo: Database, tmp_path: Path) -> None:
    database = open_database(hostile_store(tmp_path / "s.db", ["key sk-ant-api03-" + "Ab1" * 31]))
    one = database.connection.execute(
        "SELECT id FROM chat_sessions ORDER BY updated_at LIMIT 1").fetchone()[0]
    for masked, there in ((None, False), (False, True)):
        page = "".join(prepare(database, one, FORMATS["html"], masked=masked).pieces())
        assert ("sk-ant-api03-Ab1" in page) is there
        database.connection.execute("COMMIT")
    database.close()


def test_the_policy_allows_only_the_page_itself(demo: Database) -> None:
    page = exported(demo, "odd-text", "html", "display")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert page.count("<script>") == page.count("<style>") == 1
    body = page.split("</style>")[1].split("<script>")[0]
    assert not re.search(r"<[^>]*\s(?:style|on\w+)=", body)


def test_the_colours_are_those_of_the_browser() -> None:
    style = (Path(__file__).parents[2] / "store/exports/html/page.css").read_text()
    for role in DARK._fields[:-1]:
        pair = f"light-dark({getattr(LIGHT, role)}, {getattr(DARK, role)})"
        assert f"--{role}: {pair};" in style


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = hostile_store(tmp_path_factory.mktemp("h") / "h.db", page_attacks(ADDRESS))
    database = open_database(path, write=False)
    ids = [row[0] for row in database.connection.execute("SELECT id FROM chat_sessions")]
    made = prepare(database, ids[0], FORMATS["html"], view="hidden", further=ids[1:], masked=False)
    yield "".join(made.pieces())
    database.close()


@pytest.mark.long
def test_hostile_text_is_only_text(hostile_page: str) -> None:
    body = hostile_page.split("<main>", 1)[1].rsplit("<script>", 1)[0]
    assert controls(body) == [] and NEVER.findall(body) == []
    names = set(re.findall(r"</?([a-zA-Z][^\s>/]*)", body))
    assert names <= ELEMENTS
    attributes = set(re.findall(r"""\s([a-zA-Z-]+)="[^"]*\"""", " ".join(
        re.findall(r"<[a-zA-Z][^>]*>", body))))
    assert attributes <= ATTRIBUTES
    for address in re.findall(r'href="([^"]*)"', body):
        assert re.match(r"#[\w-]+$|https?://|mailto:", address), address
    assert len(CORPUS) < hostile_page.count('<section class="session"')


@pytest.mark.parametrize("address", [
    "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "//e.example",
    "https://good.example@evil.example/", "http://", "https://a b", "java\nscript:x", "mailto:",
    "https://e.example/\u202egpj", "ftp://e.example", "/etc", "x.html", "http://[",
    "HTTPS://u:p@e.example", "https://e.example/" + "a" * 3000,
])  # fmt: skip
def test_other_addresses_are_no_links(address: str) -> None:
    assert safe_address(address) is None


def test_links_are_web_and_mail_only() -> None:
    rel = 'rel="noopener noreferrer nofollow"'
    assert linked("on https://e.example/?b=1&c, now") == (
        f'on <a href="https://e.example/?b=1&amp;c" {rel}>https://e.example/?b=1&amp;c</a>, now')
    assert linked("<b> javascript:x") == "&lt;b&gt; javascript:x"
    assert prose("[mail](mailto:a@e.example)") == (
        f'<p><a href="mailto:a@e.example" {rel}>mail</a></p>')
    assert prose("[code](src/a.py)") == '<p>code <span class="target">(src/a.py)</span></p>'
    assert prose("[https://good.example](https://evil.example)") == (
        f'<p><a href="https://evil.example" {rel}>https://good.example</a>'
        ' <span class="target">(https://evil.example)</span></p>')
    assert "<img" not in prose("![x](https://e.example/x.png)")


def test_markdown_is_rendered_and_html_in_it_is_text() -> None:
    assert prose("# A\n\n*b* **c** `d`") == (
        "<h3>A</h3><p><em>b</em> <strong>c</strong> <code>d</code></p>")
    assert prose("<b>x</b>") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert prose("3. a\n4. b").startswith('<ol start="3"><li>a</li>')
    assert '<th class="right">n</th>' in prose("| n |\n|--:|\n| 1 |")
    assert prose("```python\nif x:\n```") == (
        '<pre><code><span class="k">if</span> x:</code></pre>')
    assert prose(">" * 500 + " deep") == f'<div class="plain">{"&gt;" * 500} deep</div>'


def test_pictures_are_known_by_their_bytes() -> None:
    webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\x04\0\0\x02\0\0"
    jpeg = b"\xff\xd8\xff\xe0\0\4ab\xff\xc0\0\x11\x08" + struct.pack(">HH", 3, 7) + b"\0" * 9
    found = [recognised(each) for each in (png(), b"GIF89a\5\0\6\0", webp, jpeg)]
    assert [(each.media, each.width, each.height) for each in found if each] == [
        ("image/png", 2, 1), ("image/gif", 5, 6), ("image/webp", 5, 3), ("image/jpeg", 7, 3)]
    for bad in (b"", b"<svg onload=x>", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF",
                png(60_000, 60_000), b"\xff\xd8\xff\xe0\0\0" * 9):  # fmt: skip
        assert recognised(bad) is None


def test_pictures_are_shown_within_a_size() -> None:
    encoded = base64.b64encode(png()).decode()
    file = {"type": "file", "mediaType": "image/svg+xml", "filename": "a.png",
            "url": f"data:image/svg+xml;base64,{encoded}"}  # fmt: skip
    shown = part(file)
    assert f'<img src="data:image/png;base64,{encoded}" width="2" height="1"' in shown
    assert 'alt="a.png  image/svg+xml  ' in shown
    for other in (part(file, largest=0), part(file, largest=20),
                  part({**file, "url": "https://e.example/x.png"}),
                  part({**file, "url": "data:image/png;base64,PHN2Zz4="})):  # fmt: skip
        assert "<img" not in other and "a.png" in other and "left out" in other
    output = {"type": "tool-Read", "state": "output-available", "input": {"file_path": "/w/a.png"},
              "output": [{"type": "image", "source": {"type": "base64", "data": encoded}}]}
    assert "<img" in part(output)


def test_long_outputs_say_what_is_left_out() -> None:
    lines = _lines("\n".join(map(str, range(5000))))
    assert len(lines) == 1001 and lines[0] == "0" and lines[-1] == "4999"
    assert lines[750] == '<span class="cut">… 4,000 lines left out</span>'
    (long,) = [one for one in _lines("x" * 1_000_000) if "cut" in one]
    assert "900,000 characters left out" in long


def test_a_failed_call_is_open_at_its_end_and_others_are_folded() -> None:
    call = {"type": "tool-Bash", "input": {"command": "make"}, "state": "output-available"}
    output = "\n".join(f"line {number}" for number in range(20))
    folded = part({**call, "output": output})
    assert "<details><summary>" in folded and "line 0\nline 1\n" in folded
    failed = part({**call, "state": "output-error", "errorText": output})
    assert "<details open><summary>" in failed
    assert "<summary>… 12 earlier lines</summary>" in failed


def test_parts_of_every_kind_have_words() -> None:
    assert "unknown part" in part({"type": "data-weather", "data": {"city": "Bern"}})
    assert "compacted 168k to 412 tokens by itself" in part({
        "type": "data-compaction",
        "data": {"summary": "s", "auto": True, "pre_tokens": 168_000, "post_tokens": 412}})
    error = {"type": "data-error", "data": {"message": "m", "name": 529}}
    assert "✗ <b>error</b> 529" in part(error)
    assert "try 2 of 3" in part({"type": "data-retry", "data": {"attempt": 2, "max_attempts": 3}})
    assert 'href="https://e.example/"' in part(
        {"type": "source-url", "url": "https://e.example/", "title": "E"})
    assert "sent while it worked" in part(
        {"type": "steering-message", "parts": [{"type": "text", "text": "use tabs"}]})
    assert "1 of 2 done" in part({"type": "data-todo", "data": [
        {"content": "a", "status": "completed"}, {"content": "b"}]})
    assert part({"type": "step-start"}) == ""
