"""Two branches beside each other."""
