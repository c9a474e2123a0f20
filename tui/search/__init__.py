"""The search screen: a query, what it found by session, facets that narrow it, a preview."""
