"""Nothing that is to be masked is passed over, however its text is written."""

from __future__ import annotations

import json
import random

import pytest

from store.copying.masked_texts import masked_bytes, masked_json
from store.sharing.masks import Masking, Masks

KEY = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
MASK = "[masked GitHub token]"


def masks() -> Masks:
    return Masks(Masking(emails=True, home=True, own_rules={"ticket": "ACME-[0-9]+"}))


@pytest.mark.parametrize("encoding", [
    "utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])  # fmt: skip
@pytest.mark.parametrize("form", ["caf\xe9 says: {}\n", '{{"caf\xe9": "{}"}}'])
def test_a_text_is_masked_in_the_encoding_that_it_has(encoding: str, form: str) -> None:
    raw, clean = (form.format(one).encode(encoding) for one in (f"{KEY} ACME-77", "nothing"))
    found = masked_bytes(masks(), raw)
    assert masked_bytes(masks(), clean) == clean and masked_bytes(masks(), found) == found
    shown = found.decode(encoding, "replace")
    assert f"{MASK} [masked ticket]" in shown and KEY not in shown


@pytest.mark.parametrize("around", [b"\xff", b"\xe2\x82", b"\x80\x81\xfe", b"\x1b[31m\xf0\x9f"])
def test_bytes_that_are_no_character_hide_nothing_and_stay(around: bytes) -> None:
    raw = around + b"\nkey " + KEY.encode() + b"\n" + around
    assert masked_bytes(masks(), raw) == around + f"\nkey {MASK}\n".encode() + around


def test_of_what_is_no_text_readable_pieces_are_masked() -> None:
    noise = bytes(random.Random(7).choices(range(256), k=2_000_000))
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + noise
    assert masked_bytes(masks(), picture) == picture
    found = masked_bytes(masks(), picture + b"\0key=" + KEY.encode() + b"\0\xff" + noise)
    assert found == picture + f"\0key={MASK:{len(KEY)}}\0".encode() + b"\xff" + noise


@pytest.mark.parametrize(("piece", "masked"), [
    (b"\x0eada@example.org\0", b"\x0e[masked e-mail \0"), (b"\0a b\0", b"\0a b\0"),
    (b"\0/home/superuser/x.png: ACME-1 or ACME-22, and more\0",
     b"\0/home/user/x.png: [masked ticket] or [ma, and more\0"),
    (b"\0/home/superuser/x.png and more\0", b"\0/home/     user/x.png and more\0"),
])  # fmt: skip
def test_a_file_that_is_no_text_stays_as_long_as_it_is(piece: bytes, masked: bytes) -> None:
    picture = b"GIF89a\xff\0\xfe"
    assert masked_bytes(masks(), picture + piece + picture) == picture + masked + picture


@pytest.mark.parametrize("text", [
    '{"a":"%s","a":1}', '{"b":[{"a":{"c":"%s"},"a":{}}]}', '{"a":1, "a":"%s", "a":2, "\\ud800":1}',
    '{"password":"%s","password":"changeme"}', '{"a":{"b":"%s","b":0},"a":12345678901234567890}',
])  # fmt: skip
def test_a_name_that_comes_again_hides_nothing(text: str) -> None:
    found = masked_json(masks(), text % KEY)
    assert KEY not in found and json.loads(found.replace("\ufffd", "\\ud800")) == json.loads(text)
    assert masked_json(masks(), text % "x y") == text % "x y"
