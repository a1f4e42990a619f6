"""A stream's rows as the service shows them: previews, differences, statistics."""
