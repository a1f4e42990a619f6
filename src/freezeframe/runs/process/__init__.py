"""The script's own process: its variables, its notebook, its failure."""
