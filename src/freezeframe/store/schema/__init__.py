"""Columns of a stream: types, widening, comparison, and their Delta schema (pure)."""
