"""What the agents of a session sent to each other."""
