"""The query language: words, phrases, regular expressions and fields. Knows text alone."""
