"""The tenant log: entries by put-if-absent, the state they come to, and their roll-forward into tables."""
