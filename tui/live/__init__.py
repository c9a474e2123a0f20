"""What happens while the app is open: polling, sync, notifications."""
