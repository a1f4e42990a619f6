"""Replays of jobs: what they are of, and the built-in script that carries them out."""
