"""Rows in, rows out: the one package that knows Spark. Empty, so that importing `base` loads no Spark."""
