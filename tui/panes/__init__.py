"""The three panes."""
