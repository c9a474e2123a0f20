"""What of a session is kept back when it is shared: rules, finding, masks, home folders."""
