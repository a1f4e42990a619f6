"""Writing: transactions and conflict detection, new files, deleted rows, post-commit hooks."""
