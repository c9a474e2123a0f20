"""What is masked in texts that other people see: in exports, copies, answers and in the view.

``Masking`` is what was chosen; ``Masks`` applies it, and counts and lists what it has masked. The
same secret has the same mask for as long as a ``Masks`` is used, so that a reader can follow.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from store.errors import Refused
from store.language.patterns import BadPattern, BoundedPattern, compiled
from store.sharing.finding import secrets_in, words_of
from store.sharing.homes import STANDS_FOR_USER, USER_NAME, Homes
from store.sharing.rules import EMAIL, RULES, Secret, names_secret
from store.text.exact_json import NotJson, decode

MOST_LISTED = 10_000
"""Masks that are listed; all are counted."""
_MASK = "[masked "
_AROUND = 60
_CLEAN_LENGTH, _MOST_CLEAN = 100, 20_000
_SLOWEST_PER_CHARACTER_S = 2e-6


class Place(NamedTuple):
    """Which text of a session is meant.

    Attributes:
        message_id: None for the session itself.
        part_id: None for the message itself.
    """

    message_id: str | None = None
    part_id: str | None = None


@dataclass(frozen=True, slots=True)
class Masked:
    """One place where something is masked.

    Attributes:
        kind: What it is.
        mask: What is shown in its place.
        value: What is masked; never shown.
        place: The text that it is in.
        context: The masked text around it, and where the mask is in that.
    """

    kind: str
    mask: str
    value: str
    place: Place
    context: tuple[str, int]

    @property
    def hint(self) -> str:
        """Its first characters and its length: enough to recognise it, too little to use it."""
        shown = self.value[: min(4, len(self.value) // 4)]
        return f"{shown}… ({len(self.value):,} characters)"


@dataclass(frozen=True, slots=True)
class Masking:
    """What is masked.

    Attributes:
        secrets: Mask what the built-in rules and the own ones recognise.
        emails: Mask e-mail addresses.
        home: Replace the names of users in paths by ``user``.
        own_rules: Patterns of own rules by their names.
        let_through: What is never masked, by its value.
    """

    secrets: bool = True
    emails: bool = False
    home: bool = False
    own_rules: Mapping[str, str] = field(default_factory=dict)
    let_through: frozenset[str] = frozenset()

    @property
    def any(self) -> bool:
        """Whether anything is masked at all."""
        return self.secrets or self.emails or self.home


class BadRule(Refused):
    """An own rule that cannot be used.

    Attributes:
        name: The rule.
    """

    def __init__(self, name: str, reason: str) -> None:
        """Name the rule, and say what is wrong."""
        super().__init__(f"the rule {name!r} cannot be used: {reason}")
        self.name = name


def checked_rule(name: str, pattern: str) -> BoundedPattern:
    """Return the pattern of an own rule.

    Raises:
        BadRule: It is wrong, or matches nothing at all.
    """
    try:
        made = compiled(pattern)
    except BadPattern as error:
        raise BadRule(name, str(error)) from None
    if made.spans(""):
        raise BadRule(name, "it matches an empty text")
    return made


class Masks:
    """Masks texts, and keeps what it has masked.

    Attributes:
        masking: What is masked.
        counts: How often each kind was masked.
        found: Each place, up to ``MOST_LISTED``, in the order in which the texts came.
        place: Which text is masked next.
    """

    def __init__(self, masking: Masking | None = None) -> None:
        """Choose what is masked.

        Args:
            masking: What was chosen; secrets alone where None.

        Raises:
            BadRule: An own rule cannot be used.
        """
        self.masking = masking or Masking()
        self.counts: Counter[str] = Counter()
        self.found: list[Masked] = []
        self.place = Place()
        secrets = self.masking.secrets
        rules = (*(RULES if secrets else ()), *([EMAIL] if self.masking.emails else ()))
        self._words = words_of(rules) if rules else None
        self._own = {
            name: checked_rule(name, pattern)
            for name, pattern in (self.masking.own_rules if secrets else {}).items()
        }
        self._homes = Homes() if self.masking.home else None
        self._let_through = frozenset(map(_essence, self.masking.let_through))
        self._masks: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._clean: set[str] = set()

    def find(self, text: str) -> list[Secret]:
        """Return what is masked in a text, in order; none overlaps another."""
        found = secrets_in(text, self._words) if self._words is not None else []
        # What stands before a mask, such as ``TOKEN=``, was not masked with it.
        found = [one for one in found
                 if not (text.startswith(_MASK, one.end) and text[one.end - 1] in "=:@/(")]
        for name, pattern in self._own.items():
            found = _with(found, _own_found(name, pattern, text))
        if self._let_through:
            found = [one for one in found
                     if _essence(text[one.start : one.end]) not in self._let_through]
        if self._homes is not None:
            names = self._homes.names_in(text)
            found = sorted(
                [*found, *(one for one in names if not _overlaps(found, one))], key=_start_of)
        return found

    def mask(self, text: str) -> str:
        """Return a text with its secrets replaced by what they are, and keep them."""
        if text in self._clean or not self.masking.any:
            return text
        found = self.find(text)
        if not found:
            if len(text) <= _CLEAN_LENGTH and len(self._clean) < _MOST_CLEAN and (
                self._homes is None
            ):
                self._clean.add(text)
            return text
        pieces, done, length = list[str](), 0, 0
        placed = list[tuple[Secret, int]]()
        for secret in found:
            mask = self._mask_for(secret.kind, text[secret.start : secret.end])
            placed.append((secret, length + secret.start - done))
            pieces += [text[done : secret.start], mask]
            length += secret.start - done + len(mask)
            done = secret.end
        masked = "".join([*pieces, text[done:]])
        if _is_json(text) and not _is_json(masked):
            return json.dumps(self.mask_json(json.loads(text)), ensure_ascii=False)
        for secret, at in placed:
            self._keep(secret.kind, text[secret.start : secret.end], masked, at)
        return masked

    def mask_json(self, value: Any) -> Any:
        """Return decoded JSON with the secrets in its texts replaced, those of keys, too.

        A text under a key such as ``password`` is masked by the key's name, one behind
        ``--password`` in a list by that, and the value of a named variable by its name.
        """
        if isinstance(value, str):
            return self._mask_data_url(value) if value.startswith("data:") else self.mask(value)
        if isinstance(value, list):
            return [
                self._mask_named(_option(value[number - 1]) if number else "", one)
                for number, one in enumerate(value)
            ]
        if isinstance(value, dict):
            named = _named(value)
            return {
                self.mask(str(key)): self._mask_named(
                    named if named and str(key).lower() == "value" else str(key), one)
                for key, one in value.items()
            }
        return value

    def mask_member(self, key: str, value: Any) -> Any:
        """Return the value of a member of JSON as ``mask_json`` would with its object."""
        return self._mask_named(key, value)

    def _mask_named(self, name: str, value: Any) -> Any:
        masked = self.mask_json(value)
        if not isinstance(value, str) or masked != value or not self.masking.secrets:
            return masked
        if not names_secret(name, value) or _essence(value) in self._let_through:
            return masked
        mask = self._mask_for("password or key", value)
        self._keep("password or key", value, f"{name}: {mask}", len(name) + 2)
        return mask

    def _mask_data_url(self, url: str) -> str:
        """Return a ``data:`` URL, masked as a whole where its text has secrets."""
        head, comma, body = url.partition(",")
        if not comma or not head.endswith(";base64") or len(head) > 200:
            return self.mask(url)
        if not re.match(r"data:(?:text/|application/(?:json|x-|yaml|toml|xml|octet))", head):
            return url
        try:
            text = b64decode(body).decode("utf-8", "replace")
        except ValueError:
            return self.mask(url)
        found = self.find(text)
        if not found:
            return url
        mask = self._mask_for(found[0].kind, text[found[0].start : found[0].end])
        self._keep("encoded secret", body, mask, 0)
        return mask

    def _mask_for(self, kind: str, value: str) -> str:
        """Return the mask of a secret: the first of a kind has no number."""
        if kind == USER_NAME:
            return STANDS_FOR_USER
        essence = _essence(value)
        if essence not in self._masks:
            self._numbers[kind] += 1
            number = f" {self._numbers[kind]}" if self._numbers[kind] > 1 else ""
            self._masks[essence] = f"{_MASK}{kind}{number}]"
        return self._masks[essence]

    def _keep(self, kind: str, value: str, masked: str, at: int) -> None:
        self.counts[kind] += 1
        if len(self.found) < MOST_LISTED:
            start = max(0, at - _AROUND)
            mask = self._mask_for(kind, value)
            around = masked[start : at + len(mask) + _AROUND]
            self.found.append(Masked(kind, mask, value, self.place, (around, at - start)))


def _own_found(name: str, pattern: BoundedPattern, text: str) -> list[Secret]:
    """Return where an own rule matches; the whole text where it was not read to its end.

    A text that a slow pattern could not search is kept back rather than let through.
    """
    spans = pattern.spans(text, slowest_s=max(0.1, len(text) * _SLOWEST_PER_CHARACTER_S))
    if not pattern.read_all:
        return [Secret(f"text that the rule {name!r} is too slow for", 0, len(text))]
    return [Secret(name, start, end) for start, end in spans if start < end]


def _with(found: list[Secret], more: list[Secret]) -> list[Secret]:
    """Return secrets with others added, those that overlap as one of the first's kind."""
    if not more:
        return found
    joined: list[Secret] = []
    for secret in sorted([*found, *more], key=lambda one: (one.start, -one.end)):
        if joined and secret.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, secret.end))
        else:
            joined.append(secret)
    return joined


def _start_of(secret: Secret) -> int:
    return secret.start


def _overlaps(found: list[Secret], secret: Secret) -> bool:
    return any(one.start < secret.end and secret.start < one.end for one in found)


_ESCAPED = re.compile(r"\\+[nrt]|[\s\\]|\x1b\[[0-9;]*m")


def _essence(value: str) -> str:
    """Return a secret without what differs where it is written in another way."""
    return _ESCAPED.sub("", value)


def _is_json(text: str) -> bool:
    start = text[:200].lstrip()[:1]
    if start not in ("{", "[", '"'):
        return False
    try:
        decode(text)
    except NotJson:
        return False
    return True


def _option(value: Any) -> str:
    """Return the name that an option of a command line gives to what follows it."""
    named = isinstance(value, str) and len(value) < 60 and value.startswith("-")
    return value.lstrip("-") if named else ""


def _named(value: Mapping[Any, Any]) -> str:
    """Return the name that an object gives to its value; "" where it gives none."""
    lowered = {str(key).lower(): one for key, one in value.items()}
    if "value" not in lowered:
        return ""
    if {"name", "domain"} <= lowered.keys():
        return "cookie token"  # As browsers' tools write their cookies.
    name = lowered.get("name", lowered.get("key"))
    return name if isinstance(name, str) else ""
