"""The tree of a session's family, line by line."""
