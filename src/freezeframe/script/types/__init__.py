"""From text to values and types."""
