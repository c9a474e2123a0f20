"""Keys: how they are declared, resolved to commands, and run in order."""
