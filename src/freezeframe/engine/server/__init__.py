"""The warm Spark server: its start, its status, its end, and what jobs leave on it."""
