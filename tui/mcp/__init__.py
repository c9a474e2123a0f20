"""The store for coding agents: a server of the Model Context Protocol on stdin and stdout."""
