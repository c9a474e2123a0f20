"""Databases on PostgreSQL servers as places of sessions: reading only, in short transactions."""
