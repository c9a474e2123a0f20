"""``--to codex``: a rollout that Codex resumes.

Source of the recipe: the Codex format page, section 3.8. A file of the legacy mode, which
every version reads: ``session_meta``, then response items; what a person typed and the
agent said stands once more as events, for Codex's own display. Reasoning goes out only
with its own encrypted content.
"""
