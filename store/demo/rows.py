"""Plays the demo's scenes against a clock and writes their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import orjson

from store.demo.script import Message, Part, Scene
from store.ids import STAMP_MASK, derived_id, derived_session_id

SessionValues = tuple[Any, ...]
_USAGE_KEYS = ("input", "output", "reasoning", "cache_read", "cache_write")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _length(part: Part) -> int:
    """Return the characters that a part costs, as the demo counts its tokens."""
    return len(str(part.data.get("text", ""))) + len(str(part.data.get("output", ""))) + 40


class Player:
    """Turns one scene into rows.

    Attributes:
        message_ids: Ids by the names that the scene gives to its messages.
        session: Values of the session's row, in the order of the contract's columns.
        messages: Values of the rows of ``chat_messages``.
        parts: Values of the rows of ``chat_parts``.
    """

    def __init__(self, scene: Scene, now: int, parent: Player | None = None) -> None:
        """Play a scene.

        Args:
            scene: What is played.
            now: Epoch ms; the scene ended ``scene.ended`` seconds before.
            parent: The scene it comes from, played already.
        """
        self.scene = scene
        self.id = derived_session_id(scene.agent, scene.key)
        self.parent = parent
        self.message_ids: dict[str, str] = {}
        self.copies: dict[str, str] = {}
        self.messages: list[tuple[Any, ...]] = []
        self.parts: list[tuple[Any, ...]] = []
        self._totals = dict.fromkeys(_USAGE_KEYS, 0)
        # The first call writes the prompt and the tools to the cache, later ones read them.
        self._context = 0
        self._waiting = scene.context
        self._batches = self._batch_times(now)
        self._start = now - round(scene.ended * 1000) - self._length()
        self._now = self._start
        if scene.inherits:
            self._inherit()
        for number, message in enumerate(scene.messages):
            self._play(number, message)
        self.session = self._session_values(now)

    def _length(self) -> int:
        seconds = sum(
            message.gap + sum(part.seconds for part in message.parts)
            for message in self.scene.messages
            if not message.queued
        )
        return round(seconds * 1000)

    def _batch_times(self, now: int) -> dict[str, int]:
        """Return ``hidden_at`` for each batch: when the first message after it was sent."""
        at = now - round(self.scene.ended * 1000) - self._length()
        times: dict[str, int] = {}
        for message in self.scene.messages:
            at += round((message.gap + sum(part.seconds for part in message.parts)) * 1000)
            if message.batch:
                times[message.batch] = at + 9_000
        return times

    def _play(self, number: int, message: Message) -> None:
        self._now += 0 if message.queued else round(message.gap * 1000)
        sent = self._now + (1 + number if message.queued else 0)
        names = (self.scene.agent, self.scene.key, str(number))
        message_id = derived_id("msg", sent, 0, *names)
        if message.name:
            self.message_ids[message.name] = message_id
        for index, part in enumerate(message.parts):
            self._play_part(message_id, index, part, sent)
        metadata = self._metadata(message, number, sent)
        self.messages.append(
            (message_id, self.id, message.role, _json(metadata), sent, max(sent, self._now))
        )

    def _play_part(self, message_id: str, index: int, part: Part, sent: int) -> None:
        begun = max(self._now, sent)
        self._now += round(part.seconds * 1000)
        # Cheaper than a digest for each of the demo's parts; no message has a hundred.
        part_id = f"prt_{begun * 4096 & STAMP_MASK:012x}{message_id[16:28]}{index:02}"
        data, call_id = dict(part.data), None
        if str(data["type"]).startswith("tool-"):
            call_id = self.call_id(part.call or f"{len(self.messages)}-{index}")
            data["toolCallId"] = call_id
            if part.extras:
                extras = {"duration_ms": round(part.seconds * 1000), **part.extras}
                data["resultProviderMetadata"] = {"backscroll": extras}
        if part.data["type"] == "data-compaction":
            tail = data["data"].get("tail_start_id")
            data["data"] = {**data["data"], "tail_start_id": self.message_ids.get(tail)}
            self._context, self._waiting = 0, self.scene.context // 4
        self.parts.append(
            (
                part_id, message_id, self.id, index, data["type"], _json(data), call_id,
                data["state"] if call_id else None, begun, max(begun, self._now),
            )
        )
        self._waiting += _length(part) // 4

    def call_id(self, name: str) -> str:
        """Return the id of a tool call by its name in the scene."""
        digest = hashlib.blake2b(f"{self.scene.key}/{name}".encode(), digest_size=12)
        return f"toolu_01{digest.hexdigest()}"

    def _metadata(self, message: Message, number: int, sent: int) -> dict[str, Any]:
        metadata = dict(message.metadata)
        metadata["source"] = {"id": f"{self.scene.key}-{number}"}
        if message.batch:
            metadata["hidden_at"] = self._batches[message.batch]
        if message.queued:
            metadata["queued_at"] = sent
        if message.role == "assistant":
            metadata["model"] = dict(message.model or self.scene.model)
            metadata.setdefault("usage", self._usage(message))
            for key in _USAGE_KEYS:
                self._totals[key] += metadata["usage"].get(key, 0)
            if self.scene.system_prompt:
                metadata["system_prompt_digest"] = digest_of(self.scene.system_prompt)
        return metadata

    def _usage(self, message: Message) -> dict[str, int]:
        """Return plausible usage: what is new is written to the cache, the rest read from it."""
        thought = sum(_length(p) for p in message.parts if p.data["type"] == "reasoning") // 4
        output = sum(len(str(p.data.get("text", p.data.get("input", "")))) for p in message.parts)
        fresh, read, self._waiting = self._waiting, self._context, 0
        self._context += fresh
        values = (4 + fresh % 90, output // 4 + 20, thought, read, fresh)
        return dict(zip(_USAGE_KEYS, values, strict=True))

    def _inherit(self) -> None:
        """Copy the parent's visible messages up to the point of the fork, times kept."""
        assert self.parent is not None and self.scene.at is not None
        last = self.parent.message_ids[self.scene.at]
        for values in self.parent.messages:
            metadata = orjson.loads(values[3])
            if "hidden_at" not in metadata and "queued_at" not in metadata:
                self._copy(values, metadata)
            if values[0] == last:
                return

    def _copy(self, values: tuple[Any, ...], metadata: dict[str, Any]) -> None:
        metadata["inherited_from"] = values[0]
        copied = derived_id("msg", values[4], 0, self.id, values[0])
        self.copies[values[0]] = copied
        self.messages.append((copied, self.id, values[2], _json(metadata), *values[4:]))
        for key in _USAGE_KEYS:
            self._totals[key] += metadata.get("usage", {}).get(key, 0)
        assert self.parent is not None
        for part in self.parent.parts:
            if part[1] == values[0]:
                part_id = f"{part[0][:16]}{copied[16:28]}{part[3]:02}"
                self.parts.append((part_id, copied, self.id, *part[3:]))

    def _session_values(self, now: int) -> SessionValues:
        scene, totals = self.scene, self._totals
        parent_message = None
        if self.parent is not None:
            parent_message = self.parent.message_ids.get(scene.at or "")
        archived = None if scene.archived is None else now - round(scene.archived * 1000)
        return (
            self.id, scene.agent, scene.workspace, _json(dict(scene.model)),
            self.parent.id if self.parent else None, parent_message,
            _json(list(scene.permissions)), _json(self._session_metadata()),
            *(totals[key] for key in _USAGE_KEYS), sum(totals.values()), self._cost(),
            self._start, now - round(scene.ended * 1000), archived,
        )

    def _cost(self) -> float:
        if self.scene.price is None:
            return 0.0
        price_in, price_out, price_read, price_write = self.scene.price
        totals = self._totals
        dollars = (
            totals["input"] * price_in
            + (totals["output"] + totals["reasoning"]) * price_out
            + totals["cache_read"] * price_read
            + totals["cache_write"] * price_write
        )
        return round(dollars / 1e6, 4)

    def _session_metadata(self) -> dict[str, Any]:
        scene = self.scene
        state, known = scene.activity
        metadata: dict[str, Any] = {
            "title": scene.title,
            "title_from": scene.title_from,
            "source": {"kind": scene.agent, "id": scene.key, "path": scene.path},
            "git_branch": scene.branch,
            "activity": {"state": state, "from": known},
        }
        if scene.user:
            metadata["user"] = scene.user
        if self.parent is not None:
            lineage: dict[str, str] = {"kind": scene.lineage}
            if scene.call:
                lineage["tool_call_id"] = self.parent.call_id(scene.call)
            metadata["lineage"] = lineage
        return metadata


def digest_of(prompt: str) -> str:
    """Return the digest under which a system prompt is kept."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def played(scenes: tuple[Scene, ...], now: int) -> Iterator[Player]:
    """Play scenes in order; a parent stands before its children."""
    players: dict[str, Player] = {}
    for scene in scenes:
        parent = players[scene.parent] if scene.parent else None
        players[scene.key] = Player(scene, now, parent)
        yield players[scene.key]
