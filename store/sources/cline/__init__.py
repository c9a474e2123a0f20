"""Cline: sessions of its newer program, and task folders of Cline, Roo Code and Kilo Code."""

from store.sources.cline.source import ClineSource

__all__ = ["ClineSource"]
