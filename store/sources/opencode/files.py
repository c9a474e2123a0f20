"""File parts as AI SDK file parts."""

from __future__ import annotations

from typing import Any

from store.sources.values import string


def file_data(file: dict[str, Any]) -> dict[str, Any]:
    """Return a file part: ``{type, mediaType, url, filename?}``.

    Args:
        file: ``{mime, url, filename?, source?}``; the URL is a ``file://`` or ``data:`` one.
    """
    data: dict[str, Any] = {
        "type": "file",
        "mediaType": string(file.get("mime")) or "application/octet-stream",
        "url": string(file.get("url")) or "",
    }
    if string(file.get("filename")):
        data["filename"] = file["filename"]
    if file.get("source"):
        data["providerMetadata"] = {"backscroll": {"source": file["source"]}}
    return data
