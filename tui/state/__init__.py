"""What the app shows and remembers: the library, the layout of the panes, the view."""
