"""What a session is doing now, and which process is doing it."""
