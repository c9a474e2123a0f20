"""Sessions from one store to another: to a file, to a server, to the store of a team."""
