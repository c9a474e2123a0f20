"""What messages are: who speaks, what a turn is, what a reply says, how messages are marked."""
