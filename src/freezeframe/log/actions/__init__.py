"""The actions of a commit as values and as Arrow columns; protocol versions and features."""
