"""Small dialogs that verbs ask with; each is a list of lines, an input, or both."""
