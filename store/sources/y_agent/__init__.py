"""y-agent: ``y-agent.db`` with both transcripts of each session."""

from store.sources.y_agent.source import YAgentSource

__all__ = ["YAgentSource"]
