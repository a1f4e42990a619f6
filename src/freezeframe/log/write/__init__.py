"""Writing: transactions and their conflicts, new files, deleted rows, and what follows a commit."""
