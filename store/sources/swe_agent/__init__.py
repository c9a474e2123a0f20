"""Trajectories of mini-SWE-agent and SWE-agent: a JSON document a run."""

from store.sources.swe_agent.source import SweAgentSource

__all__ = ["SweAgentSource"]
