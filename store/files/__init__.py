"""The files of a session as they were at each of its calls, and how they are on disk today."""
