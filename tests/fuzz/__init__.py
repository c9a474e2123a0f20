"""Seeded rounds of damaged and hostile input: sources, recorder, imports, hosts' files.

``test_fuzz.py`` runs a bounded number of rounds of each; ``python -m tests.fuzz`` runs as
many as one has time for and prints the seed of each that fails.
"""
