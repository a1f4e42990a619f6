"""File names of a log, their listing, JSON fields, numbers between Arrow and NumPy."""
