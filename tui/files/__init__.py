"""A file of a session at each point: its text, what differs, a copy to save."""
