"""From the command line to the first frame: the store, the settings, the state, the exits."""
