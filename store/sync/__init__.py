"""Imports agents' sessions into the store: incremental, resumable, in a process of its own."""
