"""The verbs as keys: what is asked before, what is done, what a toast says after."""
