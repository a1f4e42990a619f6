"""File names of a log, their listing, JSON fields, numbers between Arrow and NumPy: what every other room uses."""
