"""Sessions, messages, tool calls and JSON values in words, for the screens and the command line."""
