"""A second count of tokens and costs, straight from the agents' files.

Nothing here is shared with ``store.sources`` or ``store.stats``: two programs that read the same
files by the same description, and must come to the same figures.
"""
