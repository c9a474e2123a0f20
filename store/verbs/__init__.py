"""What a user does to sessions: fork, rewind, archive and the rest, with undo."""
