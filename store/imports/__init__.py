"""Reads exported sessions back into a store."""
