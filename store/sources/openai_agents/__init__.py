"""OpenAI Agents SDK: sessions in a SQLite file of the program that was built with it."""

from store.sources.openai_agents.source import OpenaiAgentsSource

__all__ = ["OpenaiAgentsSource"]
