"""Spark Connect sessions of this process."""
