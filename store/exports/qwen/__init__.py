"""Session files for Qwen Code."""
