"""From actions to the state of a table (pure)."""
