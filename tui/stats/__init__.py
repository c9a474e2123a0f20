"""The statistics screen: what was spent, on what, and when."""
