"""The screen that chooses what of a session goes out, shows it, and writes it to a file."""
