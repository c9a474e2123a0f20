"""Documents without most of their messages."""

from __future__ import annotations

import orjson

from store.sources.base.thinning import KEPT_FIRST, KEPT_LAST, thinned

MESSAGES = [{"role": "user", "n": n} for n in range(100)]
KEPT = [*MESSAGES[:KEPT_FIRST], *MESSAGES[-KEPT_LAST:]]


def test_the_first_and_the_last_messages_are_kept_and_all_else() -> None:
    document = {"id": "a", "messages": MESSAGES, "title": "after them", "few": [1, 2]}
    assert orjson.loads(thinned(orjson.dumps(document))) == document | {"messages": KEPT}
    assert orjson.loads(thinned(orjson.dumps(MESSAGES))) == KEPT


def test_no_session_is_left_out_and_nothing_that_is_no_document_changes() -> None:
    sessions = [{"title": "t", "mapping": {}} for _ in range(100)]
    others = (b"", b"[]", b"3", b"{\"a\": [1,", b"\xff\xfe", b"[" * 9_999)
    for body in (orjson.dumps(sessions), *others):
        assert thinned(body) == body
