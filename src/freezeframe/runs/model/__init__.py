"""What a run is asked for, where it works, and what came of it."""
