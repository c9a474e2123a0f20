"""The details of a session: its timeline and its facts."""
