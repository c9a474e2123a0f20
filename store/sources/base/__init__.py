"""What readers of several agents share: lines, databases, servers, drafts and the protocol."""
