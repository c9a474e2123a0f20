"""What is found of a corpus of secrets, however they are written, and that the rest stays."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from store.sharing.masks import Masking, Masks
from tests.sharing.corpus import FALSE, TRUE

_CODE = re.compile(r"\x1b\[[0-9;]*m")


def _coloured(text: str, secret: str) -> str:
    at = text.index(secret) + len(secret) // 2
    return f"{text[:at]}\x1b[1;31m{text[at:]}"


def _spelled(text: str, secret: str) -> str:
    """Write a letter within the secret as JSON may write it."""
    at = text.index(secret) + len(secret) // 2
    return f"{text[:at]}\\u{ord(text[at]):04x}{text[at + 1:]}"


WRITTEN: dict[str, tuple[Callable[[str, str], str], Callable[[str], str]]] = {
    "as it is": (lambda text, _: text, str),
    "in JSON": (lambda text, _: json.dumps({"out": text}), lambda made: json.loads(made)["out"]),
    "in JSON in JSON": (
        lambda text, _: json.dumps(json.dumps({"out": text})),
        lambda made: json.loads(json.loads(made))["out"]),
    "with a colour": (_coloured, lambda made: _CODE.sub("", made)),
    "with a colour in JSON": (
        lambda text, secret: json.dumps({"out": _coloured(text, secret)}),
        lambda made: _CODE.sub("", json.loads(made)["out"])),
    "behind other text": (lambda text, _: f"some words\n{text}\nand more", str),
    "in lines of Windows": (lambda text, _: text.replace("\n", "\r\n"), str),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_no_secret_survives(written: str) -> None:
    write, read = WRITTEN[written]
    left = []
    for text, secret in TRUE:
        made = write(text, secret)
        secret = secret.replace("\n", "\r\n") if written == "in lines of Windows" else secret
        masked = Masks().mask(made)
        if secret in read(masked):
            left.append((text[:80], secret[:20]))
    assert left == []


def test_a_letter_that_is_spelled_out_hides_no_token() -> None:
    for text, secret in TRUE:
        if len(secret) >= 20 and "\n" not in text and "\\" not in text and secret.isalnum():
            assert secret[:8] not in Masks().mask(_spelled(text, secret)), text[:80]


def test_secrets_in_urls_are_found_where_they_are_encoded() -> None:
    for text, secret in TRUE:
        if "://" in text and "\n" not in text:
            assert secret not in unquote(Masks().mask(quote(text, safe=""))), text[:80]


@pytest.mark.parametrize("text", FALSE)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Masks().mask(text) == text
    assert Masks().mask_json({"text": text}) == {"text": text}


@given(st.lists(st.sampled_from([*FALSE, *(text for text, _ in TRUE)]), max_size=6))
@example(["MTe7DDGuEQPMdobYzB1oPIShde.GP7nP7.H7bFx1jGzgVYfak9PSNYV5qQZUEX4hBDjbx3x8",
          "sha512-g7TmPfT+Xin1cwIftPg7KCcTFUaFLMHbcUN1wIwoum8yN4F0XUH74CKcLMYef6KyV7V6lYDyjoFQ2NeLTjobsX=="])
@example(["Enter your password:", "VERCEL_TOKEN=VzFppsBGuFeJaA9cFtpfNbDJ"])
@settings(max_examples=60)
def test_masked_json_stays_json_and_is_masked_once(texts: list[str]) -> None:
    made = json.dumps({"input": {"lines": texts}, "output": "\n".join(texts)})
    masked = Masks().mask(made)
    assert isinstance(json.loads(masked), dict)
    again = Masks()
    assert again.mask_json(json.loads(masked)) == json.loads(masked)


def test_the_same_secret_has_the_same_mask_and_others_another() -> None:
    (one, first), (two, second) = TRUE[0], TRUE[3]
    masks = Masks()
    said = masks.mask(f"{one}\n{two}\n{one}\n")
    assert first not in said and second not in said
    lines = said.splitlines()
    assert lines[0] == lines[2]
    mask = re.search(r"\[masked [^]]+\]", masks.mask(f'api_key = "{first}"'))
    assert mask is not None and mask[0] in lines[0]


def test_each_mask_is_listed_with_a_hint_that_gives_little_away() -> None:
    masks = Masks()
    for text, _ in TRUE:
        masks.mask(text)
    assert masks.counts.total() == len(masks.found) >= len(TRUE)
    for each in masks.found:
        around, at = each.context
        assert around[at:].startswith(each.mask)
        assert len(each.hint.partition("…")[0]) <= 4 and each.value not in each.hint


def test_what_is_let_through_stays() -> None:
    text, secret = TRUE[1]
    assert Masks(Masking(let_through=frozenset({secret}))).mask(text) == text


def test_members_options_and_named_values_are_masked_by_their_names() -> None:
    secret: str = TRUE[3][1][:24] + "7a"
    value: dict[str, Any] = {
        "args": ["login", "--password", secret], "env": [{"name": "DB_PASSWORD", "value": secret}],
        "db.password": secret, "headers": {"X-Auth-Token": secret},
        "cookies": [{"name": "sid", "value": secret, "domain": ".x.net"}], "plain": "words"}
    masked = Masks().mask_json(value)
    assert secret not in json.dumps(masked)
    assert masked["plain"] == "words" and masked["env"][0]["name"] == "DB_PASSWORD"


def test_a_file_of_text_in_base64_is_masked_and_an_image_is_not() -> None:
    text, secret = TRUE[1]
    masks = Masks()
    url = f"data:text/plain;base64,{b64encode(text.encode()).decode()}"
    assert masks.mask_json({"url": url})["url"].startswith("[masked")
    image = f"data:image/png;base64,{b64encode(text.encode()).decode()}"
    assert secret in b64decode(masks.mask_json({"url": image})["url"].partition(",")[2]).decode()


def test_a_password_at_the_end_of_a_text_in_json_is_masked() -> None:
    made = json.dumps({"out": "  password: Zx9" + "L4I85fRdI"})
    assert json.loads(Masks().mask(made)) == {"out": "  password: [masked password or key]"}
