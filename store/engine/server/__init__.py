"""Stores on PostgreSQL servers: connections, schema, statements."""
