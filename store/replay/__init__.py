"""A session in time: when its parts came, how they were at a moment, and playing that."""
