"""What models' tokens cost: a table of prices, and estimates where an agent tells no cost."""
