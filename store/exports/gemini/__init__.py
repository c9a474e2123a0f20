"""Session files for Gemini CLI."""
