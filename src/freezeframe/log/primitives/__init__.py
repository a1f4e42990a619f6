"""File names, listings, JSON fields, options, and conversions between Arrow and NumPy."""
