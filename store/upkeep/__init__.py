"""Keeps the files beside a store, its search index and its statistics, in a process of its own.

Both are kept in one process: a second one would take another 12 MB, and neither has much to do
once it has caught up.
"""
