"""Statistics of data files, and data skipping by them."""
