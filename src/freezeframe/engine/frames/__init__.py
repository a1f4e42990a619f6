"""Rows at the edge: pandas, Arrow and Python values, checked batches, and a hash of rows."""
