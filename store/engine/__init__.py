"""Store files with the three tables: opening, checking, migrating, writing, detecting changes."""
