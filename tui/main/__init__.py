"""The main screen: three panes, their layout, and the lines above and below them."""
