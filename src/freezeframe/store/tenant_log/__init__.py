"""The tenant log: entries by put-if-absent, their folded state, and their roll-forward into tables."""
