"""Prices of models by id: which line of the table an answer's model has.

A line holds for ids (exact, or patterns with ``*``), for one tier, and for some providers or all.
Lines come in layers: those of the configuration go before those of a file that was taken, and
these before the ones in the package. The first layer with a line for the id decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

STANDARD: Final = "standard"
"""The tier of an answer that says nothing of one."""


REQUEST_SIZES: Final = (
    32_000, 64_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000, 1_000_000,
)  # fmt: skip
"""Sizes of a request above which prices may be others; sums of tokens are kept by them."""
_SAME_TIER = {
    "": STANDARD, "default": STANDARD, "auto": STANDARD, "normal": STANDARD, "on_demand": STANDARD,
    "batches": "batch",
}  # fmt: skip


def tier_of(said: object) -> str:
    """Return the tier that an agent names, in the words of the table."""
    name = said.strip().lower()[:32] if isinstance(said, str) else ""
    return _SAME_TIER.get(name, name)


@dataclass(frozen=True, slots=True)
class Above:
    """The prices of a whole request that is larger than a number of tokens.

    Attributes:
        tokens: Input, cache read and cache write of the request together; more than this.
        input: Dollars per million, as the others; None where nothing is known.
        output: With reasoning.
        cache_read: Read from the cache.
        cache_write_5m: Written to the cache for 5 minutes, or for as long as is usual there.
        cache_write_1h: Written to the cache for an hour.
    """

    tokens: int
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """A line of the table: dollars per million tokens, None where nothing is known.

    No price is made from another one: a cache price that nobody published is unknown.

    Attributes:
        input: Input that was not in the cache.
        output: Output, with reasoning.
        cache_read: Read from the cache.
        cache_write_5m: Written to the cache for 5 minutes, or for as long as is usual there.
        cache_write_1h: Written to the cache for an hour.
        above: Prices of larger requests, the smallest size first.
        tier: The tier that the line is for.
        providers: Providers that the line is for; empty means all, and ``""`` an answer that
            names no provider.
        pattern: The id that the line is for; ``*`` is any text.
        source: Where the prices come from.
        date: When they were taken from there, ``2026-11-28``.
    """

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None
    above: tuple[Above, ...] = ()
    tier: str = STANDARD
    providers: tuple[str, ...] = ()
    pattern: str = ""
    source: str = ""
    date: str = ""

    def rates(self, asked: int) -> Price | Above:
        """Return the prices of a request by its size: input, cache read and cache write."""
        found: Price | Above = self
        for larger in self.above:
            if asked > larger.tokens:
                found = larger
        return found


class PriceTable:
    """Prices in layers, looked up by a model's id.

    Attributes:
        layers: Lines of the configuration, of a file that was taken, and of the package.
        date: The newest date of a line; empty without lines.
        thresholds: All sizes from which a request costs more, in tokens, ascending.
        problem: Why a file that was taken could not be read; None if it could.
    """

    def __init__(
        self, layers: Iterable[Iterable[Price]], problem: str | None = None
    ) -> None:
        """Take the lines, the layer that goes before the others first."""
        self.problem = problem
        self.layers = tuple(tuple(layer) for layer in layers)
        lines = [line for layer in self.layers for line in layer]
        self.date = max((line.date for line in lines), default="")
        self.thresholds = tuple(sorted({one.tokens for line in lines for one in line.above}))
        self._indexes = [_Index.of(layer) for layer in self.layers]
        self._known: dict[tuple[str, str, str], Price | None] = {}

    @cached_property
    def digest(self) -> str:
        """A hash of all lines; another one means that estimates may have changed."""
        from hashlib import sha256  # It loads OpenSSL, which a list of sessions does without.

        return sha256(repr(self.layers).encode("utf-8", "replace")).hexdigest()[:16]

    def price(
        self, model_id: str, provider_id: str | None = None, tier: str = STANDARD
    ) -> Price | None:
        """Return the line for an answer's model; None where the model or its tier is unknown.

        Args:
            model_id: As the agent wrote it.
            provider_id: Who served it; None or ``unknown`` where the agent does not say.
            tier: The tier that the answer was served in, as the agent says it.
        """
        key = model_id, provider_id or "", tier_of(tier)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, model_id: str, provider_id: str, tier: str) -> Price | None:
        if len(model_id) > _LONGEST_ID:
            return None
        stated = canonical_provider(provider_id)
        forms = [
            (name, stated or canonical_provider(hint)) for name, hint in _forms(model_id.lower())
        ]
        for index in self._indexes:
            found = index.find(forms, tier)
            if found is not None:
                return found
        return None


_KEPT = 4096
"""Answers of look-ups that are kept; a store has a few dozen models."""
_LONGEST_ID = 256
"""Characters of an id; a longer one is no model's."""


@dataclass(slots=True)
class _Index:
    """The lines of one layer, by id and by pattern."""

    exact: dict[tuple[str, str], list[Price]] = field(default_factory=dict)
    patterns: list[tuple[re.Pattern[str], Price]] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Sequence[Price]) -> _Index:
        index = cls()
        for line in lines:
            name = line.pattern.lower()
            if "*" in name:
                index.patterns.append((_compiled(name), line))
            else:
                index.exact.setdefault((name, line.tier), []).append(line)
        index.patterns.sort(key=lambda one: len(one[1].pattern), reverse=True)
        return index

    def find(self, forms: Sequence[tuple[str, str]], tier: str) -> Price | None:
        """Return the line for an id: exact before pattern, and the longest pattern first."""
        for name, provider in forms:
            found = _of_provider(self.exact.get((name, tier), ()), provider)
            if found is not None:
                return found
        for pattern, line in self.patterns:
            if line.tier == tier:
                for name, provider in forms:
                    if pattern.fullmatch(name) and _of_provider([line], provider):
                        return line
        return None


def _of_provider(lines: Iterable[Price], provider: str) -> Price | None:
    """Return the first line for a provider by name, else the first for all."""
    everywhere = None
    for line in lines:
        if provider in line.providers:
            return line
        if not line.providers and everywhere is None:
            everywhere = line
    return everywhere


def _compiled(pattern: str) -> re.Pattern[str]:
    # Possessive, as no text is tried twice: a pattern of many stars would take for ever.
    pieces = re.sub(r"\*+", "*", pattern).split("*")
    body = "".join(f"(?>.*?{re.escape(piece)})" for piece in pieces[1:-1])
    return re.compile(f"{re.escape(pieces[0])}{body}.*{re.escape(pieces[-1])}", re.DOTALL)


_DATED = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$|[-@](?:default|latest)$")
_VERSION = re.compile(r"-v\d+(?::\d+)?$")
_CONTEXT = re.compile(r"\[1m\]$")


def _forms(model_id: str) -> Iterator[tuple[str, str]]:
    """Yield the names that an id may have in the table, the most exact first.

    With each the provider that the id itself names: ``azure/gpt-5`` is ``gpt-5`` of ``azure``.
    What ends an id without changing its price goes: a date, Bedrock's version, ``[1m]``.
    """
    hint, rest = "", model_id
    seen: set[str] = set()
    while True:
        for name in _shortened(rest):
            for form in (name, re.sub(r"(?<=\d)\.(?=\d)", "-", name)):
                if form not in seen:
                    seen.add(form)
                    yield form, hint
        first, slash, below = rest.partition("/")
        if not slash:
            return
        hint, rest = hint or first, below


def _shortened(name: str) -> Iterator[str]:
    yield name
    for ending in (_CONTEXT, _VERSION, _DATED):
        shorter = ending.sub("", name)
        if shorter != name:
            name = shorter
            yield name


_SAME_PROVIDER = {
    "unknown": "",
    "amazon-bedrock": "bedrock", "bedrock_converse": "bedrock", "bedrock_mantle": "bedrock",
    "aws-bedrock": "bedrock", "aws": "bedrock",
    "google-vertex": "vertex_ai", "google-vertex-anthropic": "vertex_ai", "vertex": "vertex_ai",
    "vertexai": "vertex_ai", "vertex-ai": "vertex_ai",
    "google": "gemini", "google-generative-ai": "gemini", "google-ai-studio": "gemini",
    "azure-openai": "azure", "azure-openai-responses": "azure", "azure-cognitive-services": "azure",
    "moonshotai": "moonshot", "moonshotai-cn": "moonshot", "kimi-coding": "moonshot",
    "alibaba": "dashscope", "alibaba-cn": "dashscope", "qwen": "dashscope",
    "z-ai": "zai", "zhipuai": "zai", "zhipu": "zai", "zai-coding-plan": "zai",
    "mistralai": "mistral", "x-ai": "xai", "github_copilot": "github-copilot",
    "copilot": "github-copilot",
}  # fmt: skip
"""Names that agents have for one provider."""


def canonical_provider(provider: str) -> str:
    """Return the one name of a provider that agents name in several ways; empty if unknown."""
    name = provider.strip().lower()
    if name.startswith("vertex_ai-"):
        return "vertex_ai"
    return _SAME_PROVIDER.get(name, name)
