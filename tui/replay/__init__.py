"""The replay of a session: the transcript as it was, moved through time."""
