"""Query functions: SQL in, light rows out. Each takes a ``Database`` first."""
