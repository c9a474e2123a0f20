"""``--to codex``: a rollout that Codex resumes.

Source of the recipe: the Codex format page, section 3.8. A file of the legacy mode, which
every version reads: ``session_meta``, then response items. Prompts and answers are repeated as
events for Codex's own display. Reasoning is exported only if it has its encrypted content.
"""
