"""Facts about messages: speakers, turns, users' replies to tool calls, and marks."""
