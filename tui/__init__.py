"""The Textual app: three panes over a store."""
