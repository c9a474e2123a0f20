"""Session files for pi."""
