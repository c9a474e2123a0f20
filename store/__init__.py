"""The async store layer: the three-table contract, its engines, queries, verbs and sources.

Nothing here imports Textual. Heavy imports (pydantic, aiosqlite) happen in the modules
that need them, so that a first page of sessions can be read without them.
"""
