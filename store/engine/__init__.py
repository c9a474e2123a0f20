"""Files that hold the three tables: opened, checked, migrated, changed, and what moved in them."""
