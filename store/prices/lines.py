"""Lines of prices from JSON and TOML of any origin, checked whole before one is used.

Two forms are read. Ours is ``{"prices": [{"id": ID or [ID, ...], "input": DOLLARS, ...}]}``:
dollars per million tokens under the names of ``Price``, ``above`` with prices by size of the
request, ``tiers`` with prices by tier, or ``tier`` that the line is for. The other is LiteLLM's
``model_prices_and_context_window.json``: dollars per token by model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from store.prices.table import REQUEST_SIZES, STANDARD, Above, Price, canonical_provider, tier_of
from store.text.neutral import with_escapes

RATES: Final = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
"""The prices of a line, by their names in our form."""
MOST_DOLLARS: Final = 100_000
"""Dollars per million tokens; no model comes near it."""
_MOST_LINES: Final = 100_000
_LONGEST_TEXT: Final = 256
_LARGEST_REQUEST: Final = 10**9
_SIZES: Final = tuple(map(str, REQUEST_SIZES))
_KNOWN: Final = {*RATES, "above", "tier", "tiers", "providers", "source", "date", "from"}


class BadPrices(ValueError):
    """A line of prices that cannot be used.

    Attributes:
        path: Where in the line, from the outside inwards; empty for the line itself.
        reason: What is wrong, without the place.
    """

    def __init__(self, reason: str, path: tuple[str, ...] = (), entry: str = "") -> None:
        """Name what is wrong, and where.

        Args:
            reason: What is wrong.
            path: Where in the line, from the outside inwards.
            entry: The line's id.
        """
        named, place = (_on_one_line(text) for text in (entry, ".".join(path)))
        super().__init__(": ".join(one for one in (named, place, reason) if one))
        self.path = path
        self.reason = reason


def _on_one_line(text: str) -> str:
    text = with_escapes(" ".join(text.split()))
    return text if len(text) <= 80 else text[:79] + "…"


def lines_of(value: Any, *, source: str = "", date: str = "") -> list[Price]:
    """Return the lines of a decoded file in our form or LiteLLM's.

    Args:
        value: The decoded JSON.
        source: Where lines come from that do not say it themselves.
        date: When those were taken from there.

    Raises:
        BadPrices: A line cannot be used; it is named. No line is left out.
    """
    if not isinstance(value, dict):
        raise BadPrices("is not a table of prices: an object is needed")
    ours = value.get("prices")
    if isinstance(ours, list):
        entries = list(_ours(ours, source, date))
    else:
        entries = list(_litellm(value, source, date))
    if not entries:
        raise BadPrices("has no prices")
    if len(entries) > _MOST_LINES:
        raise BadPrices(f"has more than {_MOST_LINES:,} lines")
    return entries


def _ours(entries: list[Any], source: str, date: str) -> Iterator[Price]:
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise BadPrices("is not an object", entry=f"entry {number}")
        ids = entry.get("id")
        names = ids if isinstance(ids, list) else [ids]
        for name in names:
            if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_TEXT:
                reason = "a text of 1 to 256 characters is needed"
                raise BadPrices(reason, ("id",), f"entry {number}")
            line = {key: value for key, value in entry.items() if key != "id"}
            try:
                yield from checked_line(name, line, source=source, date=date)
            except BadPrices as error:
                raise BadPrices(error.reason, error.path, name) from None


def checked_line(
    name: str, line: Mapping[str, Any], *, source: str = "", date: str = ""
) -> Iterator[Price]:
    """Yield the lines of one entry in our form: one for each tier, and each way to write the id.

    Args:
        name: The id; ``*`` is any text, and ``{us,eu}`` one of some.
        line: The prices by name, with ``above``, ``tiers``, ``providers``, ``source``, ``date``.
        source: Taken where the line does not say it.
        date: Taken where the line does not say it.

    Raises:
        BadPrices: Something in it cannot be used.
    """
    _refuse_unknown(line, _KNOWN, ())
    said = {key: _text(line[key], key) for key in ("source", "date") if key in line}
    providers = line.get("providers", [])
    if not isinstance(providers, list) or len(providers) > 64:
        raise BadPrices("a list of names is needed", ("providers",))
    named = tuple(canonical_provider(_text(one, "providers")) for one in providers)
    tiers = _table(line.get("tiers", {}), ("tiers",))
    by_tier = {tier_of(_text(line.get("tier", ""), "tier")): _rates_of(line, ())}
    for tier, rates in tiers.items():
        path = ("tiers", str(tier))
        table = _table(rates, path)
        _refuse_unknown(table, {*RATES, "above"}, path)
        by_tier[tier_of(tier)] = _rates_of(table, path)
    if not any(rates for rates, _ in by_tier.values()):
        raise BadPrices(f"has no price; one of {', '.join(RATES)} is needed")
    for tier, (rates, above) in by_tier.items():
        if rates:
            for pattern in _spelled_out(name):
                yield Price(
                    **rates, above=above, tier=tier, providers=named, pattern=pattern,
                    source=said.get("source", source), date=said.get("date", date),
                )  # fmt: skip


def _rates_of(
    table: Mapping[str, Any], path: tuple[str, ...]
) -> tuple[dict[str, float], tuple[Above, ...]]:
    rates = _dollars_of(table, path)
    larger = []
    for size, prices in _table(table.get("above", {}), (*path, "above")).items():
        place = (*path, "above", str(size))
        if str(size) not in _SIZES:
            raise BadPrices(f"the size of a request is one of {', '.join(_SIZES)}", place)
        held = _table(prices, place)
        _refuse_unknown(held, set(RATES), place)
        larger.append(Above(int(size), **_dollars_of(held, place)))
    return rates, tuple(sorted(larger, key=lambda one: one.tokens))


def _dollars_of(table: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, float]:
    """Return the prices of a table that are known."""
    known = (key for key in RATES if table.get(key) is not None)
    return {key: _dollars(table[key], (*path, key)) for key in known}


def _table(value: Any, path: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or len(value) > 64:
        raise BadPrices("a table is needed", path)
    return value


def _refuse_unknown(table: Mapping[str, Any], known: set[str], path: tuple[str, ...]) -> None:
    for key, value in table.items():
        if key not in known:
            reason = "there is no such field"
            if isinstance(value, dict) and not path:
                reason += "; an id with a dot needs quotation marks"
            raise BadPrices(reason, (*path, str(key)))


def _dollars(value: Any, path: tuple[str, ...]) -> float:
    """Return a price; whole numbers of any length, NaN and what is no number are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadPrices("a number is needed", path)
    if not 0 <= value <= MOST_DOLLARS:
        raise BadPrices(f"must be 0 to {MOST_DOLLARS:,} dollars per million tokens", path)
    return float(value)


def _text(value: Any, key: str) -> str:
    if isinstance(value, date):  # TOML has dates
        value = value.isoformat()
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise BadPrices("a text of up to 256 characters is needed", (key,))
    return value


_CHOICE = re.compile(r"\{([^{}]*)\}")


def _spelled_out(name: str) -> list[str]:
    """Return the ids that one with ``{us,eu}`` means."""
    names = [name]
    while (choice := _CHOICE.search(names[0])) is not None:
        names = [
            one[: choice.start()] + word + one[choice.end() :]
            for word in choice[1].split(",") for one in names
        ]  # fmt: skip
        if len(names) > 64 or sum(map(len, names)) > 64 * _LONGEST_TEXT:
            raise BadPrices("stands for more than 64 ids")
    return names


def written(lines: Iterable[Price]) -> dict[str, Any]:
    """Return lines as a file in our form, from which ``lines_of`` gives the same lines."""
    return {"prices": [_entry(line) for line in lines]}


def _entry(line: Price) -> dict[str, Any]:
    rates: dict[str, Any] = _said(line)
    if line.above:
        rates["above"] = {str(one.tokens): _said(one) for one in line.above}
    tier = "" if line.tier == STANDARD else line.tier
    told = {"tier": tier, "providers": list(line.providers), "source": line.source,
            "date": line.date}  # fmt: skip
    return {"id": line.pattern, **rates, **{key: value for key, value in told.items() if value}}


def _said(rates: Price | Above) -> dict[str, float]:
    held = ((key, getattr(rates, key)) for key in RATES)
    return {key: value for key, value in held if value is not None}


_MODES = {None, "chat", "responses", "completion"}
_FIELD = re.compile(
    r"(input_cost_per_token|output_cost_per_token|cache_read_input_token_cost"
    r"|cache_creation_input_token_cost)(_above_1hr)?(?:_above_(\d{1,6})k_tokens)?(?:_([a-z]+))?"
)
_RATE_OF = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write_5m",
}
_FOR_ALL = {"anthropic", "openai", "gemini", "xai", "bedrock", "vertex_ai"}
"""Providers whose plain ids are theirs alone, so that who passes them on changes nothing."""
_MAKERS = {"deepseek", "moonshot", "zai", "mistral", "dashscope", "meta", "minimax"}
"""Who makes models that others serve too, at prices of their own."""


def _litellm(models: Mapping[str, Any], source: str, date: str) -> Iterator[Price]:
    for name, entry in models.items():
        if name == "sample_spec":
            continue
        if not isinstance(entry, dict):
            raise BadPrices("is not an object", entry=name or '""')
        mode = entry.get("mode")
        if mode is not None and not isinstance(mode, str):
            raise BadPrices("a text is needed", ("mode",), name or '""')
        if mode not in _MODES or not 0 < len(name) <= _LONGEST_TEXT:
            continue
        try:
            line = _from_litellm(name, entry)
            if line is not None:
                yield from checked_line(_id_of(name, entry), line, source=source, date=date)
        except BadPrices as error:
            raise BadPrices(error.reason, error.path, name or '""') from None


def _from_litellm(name: str, entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an entry of LiteLLM's in our form; None where its prices cannot be applied.

    They cannot where they are not by token, where thinking costs more than an answer, and
    where the size of a request matters that is none of ``REQUEST_SIZES``.
    """
    held = {STANDARD: _Held()}
    for key, value in entry.items():
        field = _FIELD.fullmatch(key)
        if field is None or value is None:
            continue
        kind, hour, size, tier = field.groups()
        rate = "cache_write_1h" if hour else _RATE_OF[kind]
        place = held.setdefault(tier_of(tier), _Held())
        place.put(int(size) * 1000 if size else 0, rate, _per_million(value, key))
    for number, step in enumerate(_steps(entry)):
        for kind, rate in _RATE_OF.items():
            if kind in step:
                held[STANDARD].put(_begin(step, number), rate, _per_million(step[kind], kind))
    if any(str(size) not in _SIZES for one in held.values() for size in one.by_size if size):
        return None
    _add_factors(held, entry.get("provider_specific_entry"))
    standard = held.pop(STANDARD).as_line()
    thinking = entry.get("output_cost_per_reasoning_token")
    differs = thinking is not None and thinking != entry.get("output_cost_per_token", thinking)
    if differs or "input" not in standard or "output" not in standard:
        return None
    tiers = {tier: line for tier, one in held.items() if "input" in (line := one.as_line())}
    line = {**standard, "tiers": tiers, "providers": _providers_of(name, entry)}
    told = entry.get("source")
    if isinstance(told, str) and 0 < len(told) <= 200:
        line["source"] = f"LiteLLM, {told}"
    return line


class _Held:
    """Prices by size of the request; 0 is any."""

    def __init__(self) -> None:
        self.by_size: dict[int, dict[str, float]] = {}

    def put(self, size: int, rate: str, dollars: float) -> None:
        self.by_size.setdefault(size, {})[rate] = dollars

    def as_line(self) -> dict[str, Any]:
        above = {str(size): rates for size, rates in self.by_size.items() if size}
        return {**self.by_size.get(0, {}), "above": above}


def _add_factors(held: dict[str, _Held], factors: Any) -> None:
    """Add the tiers that cost a multiple of all standard prices."""
    if not isinstance(factors, dict):
        return
    for tier in ("fast", "us"):
        if tier not in factors or tier in held:
            continue
        factor = _number(factors[tier], f"provider_specific_entry.{tier}")
        made = held.setdefault(tier, _Held())
        for size, rates in held[STANDARD].by_size.items():
            for rate, dollars in rates.items():
                made.put(size, rate, round(dollars * factor, 9))


def _steps(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    steps = entry.get("tiered_pricing")
    if steps is None:
        return []
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise BadPrices("a list of objects is needed", ("tiered_pricing",))
    # Where thinking costs more than an answer, its tokens have no price of their own here.
    return [] if any("output_cost_per_reasoning_token" in step for step in steps) else steps


def _begin(step: Mapping[str, Any], number: int) -> int:
    begun = step.get("range")
    least = begun[0] if isinstance(begun, list) and begun else None
    place = ("tiered_pricing", str(number), "range")
    if isinstance(least, bool) or not isinstance(least, int | float):
        raise BadPrices("a number of tokens is needed", place)
    if not 0 <= least <= _LARGEST_REQUEST:
        raise BadPrices("a number of tokens is needed", place)
    return int(least)


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadPrices("a number is needed", (key,))
    if not 0 <= value <= MOST_DOLLARS:
        raise BadPrices("is out of range", (key,))
    return float(value)


def _per_million(value: Any, key: str) -> float:
    # Rounded: 3e-07 dollars a token are 0.3 a million, not 0.29999999999999999.
    return round(_number(value, key) * 1_000_000, 9)


def _id_of(name: str, entry: Mapping[str, Any]) -> str:
    first, slash, rest = name.partition("/")
    provider = entry.get("litellm_provider")
    is_prefix = slash and isinstance(provider, str) and first == provider.split("-")[0]
    # A brace or a star of theirs is no pattern.
    return re.sub(r"[{}*]", "?", rest if is_prefix else name)


def _providers_of(name: str, entry: Mapping[str, Any]) -> list[str]:
    said = entry.get("litellm_provider")
    provider = canonical_provider(said if isinstance(said, str) else "")
    own = name.startswith(("xai/", "gemini/")) or "/" not in name
    if provider in _FOR_ALL and own:
        return []
    return [provider, ""] if provider in _MAKERS else [provider]
