"""``--to claude-code``: a file that Claude Code resumes.

Source of the recipe: the Claude Code format page, section 6. One line per message in one
linear chain, without notes and attachments; every tool call is followed by its result; a
thinking block is exported only if it has its signature.
"""
