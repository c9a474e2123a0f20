"""The model that a message's metadata names, in whatever shape a host writes it."""

from __future__ import annotations

from collections.abc import Mapping

_PROVIDER = ("provider_id", "providerID", "providerId", "provider")
_MODEL = ("model_id", "modelID", "modelId", "model", "id", "name")
_FLAT = ("model_id", "modelID", "modelId")
_VARIANT = ("variant", "reasoningEffort", "reasoning_effort")
_LONGEST = 200
"""Characters of the longest name of a model; anything longer is no name."""


def model_of(metadata: object) -> dict[str, str] | None:
    """Return the model as the contract has it.

    Hosts write an object under ``model`` (the contract's ``provider_id`` and ``model_id``,
    the AI SDK's ``provider`` and ``modelId``, opencode's ``providerID`` and ``modelID``), a
    name such as ``anthropic/claude-sonnet-4-5`` or ``openai:gpt-5``, or the keys beside the
    others.

    Args:
        metadata: A message's metadata.

    Returns:
        ``{provider_id, model_id, variant?}``, the provider ``unknown`` where it is not
        named; None where the metadata name no model.
    """
    if not isinstance(metadata, Mapping):
        return None
    given = metadata.get("model")
    if isinstance(given, str):
        return _named(given, _first(metadata, _PROVIDER))
    if isinstance(given, Mapping):
        name = _first(given, _MODEL)
        return None if name is None else _model(name, _first(given, _PROVIDER), given)
    name = _first(metadata, _FLAT)
    return None if name is None else _named(name, _first(metadata, _PROVIDER))


def _named(name: str, provider: str | None) -> dict[str, str] | None:
    name = name.strip()
    if not name or len(name) > _LONGEST:
        return None
    if provider is None:
        for mark in ("/", ":"):
            before, found, after = name.partition(mark)
            if found and before and after:
                return {"provider_id": before, "model_id": after}
    return {"provider_id": provider or "unknown", "model_id": name}


def _model(
    name: str, provider: str | None, given: Mapping[object, object]
) -> dict[str, str] | None:
    model = _named(name, provider)
    variant = _first(given, _VARIANT)
    if model is not None and variant is not None:
        model["variant"] = variant
    return model


def _first(given: Mapping[object, object], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and 0 < len(value) <= _LONGEST:
            return value
    return None
