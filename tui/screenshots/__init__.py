"""Pictures of the real app, for the README and the documentation."""
