"""``--to claude-code``: a file that Claude Code resumes.

Source of the recipe: the Claude Code format page, section 6. One line a message in one
linear chain; no notes, no attachments; every tool call is followed by its result; a
thinking block goes out only with its own signature.
"""
