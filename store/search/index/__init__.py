"""A search index in a file beside each store: which messages may hold some words.

The index only names candidates. Every hit is verified in the store's rows, so a stale entry is
harmless, and the file may be deleted at any time: it is made again.
"""
