"""The warm Spark server: start, status, stop, and cleanup after jobs."""
