"""A table's columns: types, column mapping, type widening, partition values."""
