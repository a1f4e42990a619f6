"""The catalogue of operations, from which both doors are made."""
