"""Records AI SDK UI message streams into a store."""
