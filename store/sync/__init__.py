"""Brings sources into a store: discovery, incremental reading, writing."""
