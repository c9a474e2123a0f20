"""The event log of a library: every change of the three tables, if its owner wants that."""
