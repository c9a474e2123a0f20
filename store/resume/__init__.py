"""Resumes a session in the agent that wrote it, or in another one."""
