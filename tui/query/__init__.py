"""The line that a query is typed into, with completion, problems and history."""
