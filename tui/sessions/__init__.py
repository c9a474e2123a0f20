"""The session list: its model, how a row is drawn, and the widget."""
