"""Text and JSON of any origin: made harmless, masked, decoded within bounds."""
