"""The verbs as commands: their dialogs, what they do, their toasts."""
