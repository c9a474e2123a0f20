"""What every screen is drawn with: text, lines, styles, themes, and ways out of the app."""
